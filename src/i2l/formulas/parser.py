"""Raw tokens to the tree: groups, scripts, fractions, environments, and commands as their records say.

The parser goes from left to right and looks ahead only for what closes a bracket. Words of text commands and
lengths are not mathematics: they are taken from the source as they stand there.
"""

import re
from typing import Final

from i2l.formulas.commands import (
    DELIMITERS,
    DISPLAYS,
    DROPPED,
    ENVIRONMENTS,
    FONT_SWITCHES,
    INFIXES,
    LIMITS,
    MATH_SHIFTS,
    ROW_COMMANDS,
    ROW_ENDS,
    ROW_RULES,
    SIGNATURES,
    Environment,
)
from i2l.formulas.lexer import FormulaError, RawTokens
from i2l.formulas.tree import (
    Array,
    Command,
    Delimited,
    Group,
    Length,
    Node,
    Optional,
    Row,
    Scripts,
    Symbol,
    Text,
    put_before,
)

MAX_DEPTH = 90  # nested groups and arguments; real formulas stay under 20, Python's stack allows about 200

SCRIPT_MARKS: Final = frozenset({"_", "^", "'"}) | LIMITS  # \sp and \sb are passed on as they are

_PLAIN, _GROUP, _SCRIPT, _COMMAND, _LEFT, _BEGIN, _CLOSE, _INFIX, _DROP, _SKIP, _ROWS, _ROW_END, _BUILDREL = (
    range(13)
)
_KINDS: Final[dict[str, int]] = (
    dict.fromkeys(map(chr, range(33, 127)), _PLAIN)
    | dict.fromkeys(SIGNATURES, _COMMAND)
    | dict.fromkeys(SCRIPT_MARKS, _SCRIPT)
    | dict.fromkeys(INFIXES, _INFIX)
    | dict.fromkeys(DROPPED, _DROP)
    | dict.fromkeys(MATH_SHIFTS, _SKIP)
    | dict.fromkeys(ROW_COMMANDS, _ROWS)
    | dict.fromkeys((rf"\left{delimiter}" for delimiter in ("", *DELIMITERS)), _LEFT)
    | dict.fromkeys((rf"\right{delimiter}" for delimiter in ("", *DELIMITERS)), _CLOSE)
    | dict.fromkeys(ROW_ENDS, _ROW_END)
    | {"{": _GROUP, "}": _CLOSE, "": _CLOSE, "&": _CLOSE, r"\buildrel": _BUILDREL}
)


def _kind_of(text: str) -> int:
    """Tell what a token starts that is not in the table: an environment, a bad delimiter, or nothing."""
    if text.startswith(r"\begin{"):
        return _BEGIN
    if text.startswith(r"\end{") or (text.startswith(r"\right") and not text[6].isalpha()):
        return _CLOSE
    return _LEFT if text.startswith(r"\left") and not text[5].isalpha() else _PLAIN


def _find_closers(texts: list[str]) -> dict[int, int]:
    """Find, in one pass from the right, the first `]` after each `[` and `\\over` after each `\\buildrel`."""
    closers: dict[int, int] = {}
    levels: list[dict[str, int]] = [{}]  # for each open brace, the nearest closing tokens seen so far
    for index in range(len(texts) - 1, -1, -1):
        text = texts[index]
        if text == "}":
            levels.append({})
        elif text == "{":
            levels.pop()
            if not levels:
                levels.append({})
        elif text in ("]", r"\over"):
            levels[-1][text] = index
        elif text in ("[", r"\buildrel"):
            closing = levels[-1].get("]" if text == "[" else r"\over")
            if closing is not None:
                closers[index] = closing
    return closers


class Parser:
    """Reads one source from left to right: the current token, and methods that each read one thing there."""

    __slots__ = ("closers", "depth", "ends", "index", "source", "spaced", "starts", "texts")

    def __init__(self, raw: RawTokens) -> None:
        self.source = raw.source
        self.spaced = raw.spaced
        self.texts = raw.texts
        self.starts = raw.starts
        self.ends = raw.ends
        self.index = 0
        self.depth = 0
        self.closers: dict[int, int] | None = None

    def parse(self) -> list[Node]:
        """Read the whole source.

        Raises:
            FormulaError: if it is not a formula.
        """
        items = self.items()
        if self.texts[self.index]:
            raise self.unmatched()
        if len(items) == 1 and isinstance(items[0], Group) and self.texts[0].startswith(r"\begin{"):
            return items[0].items  # a display environment of one line is just its formula
        return items

    def unmatched(self) -> FormulaError:
        """Make the error for a closing token that closes nothing."""
        text = self.texts[self.index]
        if text.startswith(r"\right"):
            return self.error(r"\right without \left")
        if text.startswith(r"\end"):
            return self.error(r"\end without \begin")
        return self.error("alignment outside an array" if text == "&" else "unmatched brace")

    def descend(self) -> None:
        """Count one level of nesting; hostile input must not exhaust the stack."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise self.error("nested too deeply")

    def ascend(self) -> None:
        """Leave one level of nesting."""
        self.depth -= 1

    def items(self, *, in_row: bool = False, after_infix: bool = False) -> list[Node]:
        """Read items up to a token that closes something; only inside a row do `&` and `\\\\` close."""
        self.descend()
        texts, starts, ends = self.texts, self.starts, self.ends
        out: list[Node] = []
        while True:
            index = self.index
            text = texts[index]
            kind = _KINDS.get(text)
            if kind is None:
                kind = _kind_of(text)
            if kind == _PLAIN:
                self.index = index + 1
                node: Node = Symbol(text, starts[index], ends[index])
                if texts[index + 1] in SCRIPT_MARKS:
                    node = self.scripts(node)
                out.append(node)
            elif kind == _CLOSE or (kind == _ROW_END and in_row):
                break
            elif kind == _SCRIPT:
                if out and isinstance(out[-1], Scripts):  # TeX reads `x^a^b` as `x^a{}^b`
                    out.append(self.scripts(Group([], starts[index], starts[index])))
                elif out:  # something that draws nothing stood between
                    out.append(self.scripts(out.pop()))
                else:
                    out.append(self.scripts(None))
            elif kind == _ROW_END:
                self.index += 1  # outside an array TeX sets what follows on the same line
                self.gap()
            elif kind == _SKIP:
                self.index += 1
            elif kind == _DROP:
                self.drop()
            elif kind == _INFIX:
                if after_infix:
                    raise self.error("two fractions in one group")
                out = self.infix(out, in_row=in_row)
                break
            else:
                node = self.atom()
                out.append(self.scripts(node) if texts[self.index] in SCRIPT_MARKS else node)
        self.ascend()
        return out

    def atom(self) -> Node:
        """Read one atom without its scripts."""
        text = self.texts[self.index]
        kind = _KINDS.get(text)
        if kind is None:
            kind = _kind_of(text)
        if kind == _PLAIN:
            return self.take()
        if kind == _GROUP:
            return self.group()
        if kind == _COMMAND:
            return self.command()
        if kind == _LEFT:
            return self.delimited()
        if kind == _BEGIN:
            return self.environment()
        if kind == _ROWS:
            return self.row_command()
        if kind == _BUILDREL:
            return self.buildrel()
        if text == "'":
            symbol = self.take()
            return Symbol(r"\prime", symbol.start, symbol.end)
        raise self.error("missing argument")

    def argument(self) -> Node:
        """Read one argument: a group, or the one atom that follows."""
        self.descend()
        while self.texts[self.index] in MATH_SHIFTS:
            self.index += 1
        node = self.first_dash() if self.texts[self.index].startswith("--") else self.atom()
        self.ascend()
        return node

    def first_dash(self) -> Symbol:
        """Read one `-` of a longer run: an argument is one character."""
        index = self.index
        self.texts[index] = self.texts[index][1:]
        self.starts[index] += 1
        return Symbol("-", self.starts[index] - 1, self.starts[index])

    def group(self) -> Group:
        """Read `{ ... }`."""
        opening = self.take()
        items = self.items()
        if self.texts[self.index] != "}":
            raise (
                FormulaError("unmatched brace", opening.start, "{")
                if not self.texts[self.index]
                else self.unmatched()
            )
        self.index += 1
        return Group(items, opening.start, self.ends[self.index - 1])

    def optional(self) -> Optional | None:
        """Read `[ ... ]` if it is there and closed on this level."""
        if self.texts[self.index] != "[":
            return None
        start = self.index
        items = self.items_before("]")
        if items is None:
            return None
        return Optional(items, self.starts[start], self.ends[self.index - 1])

    def items_before(self, closer: str) -> list[Node] | None:
        """Read from after the current token to past the one that closes it, if there is one."""
        if self.closers is None:
            self.closers = _find_closers(self.texts)
        closing = self.closers.get(self.index)
        if closing is None:
            return None
        self.index += 1
        self.texts[closing] = ""  # so that the items end there
        items = self.items()
        self.texts[closing] = closer
        if self.index != closing:
            raise self.unmatched()
        self.index += 1
        return items

    def scripts(self, base: Node | None) -> Scripts:
        """Read the scripts of a base: at most one below, one above, and where they stand."""
        start = base.start if base else self.starts[self.index]
        sub: Node | None = None
        sup: Node | None = None
        limits: Symbol | None = None
        while (text := self.texts[self.index]) in SCRIPT_MARKS:
            if text == "_":
                if sub is not None:
                    break
                self.index += 1
                sub = self.argument()
            elif text == "^" or text == "'":
                if sup is not None:
                    break
                if text == "'":
                    sup = self.primes()
                else:
                    self.index += 1
                    sup = self.argument()
            else:
                limits = self.take()
        return Scripts(base, sub, sup, limits, start, self.ends[self.index - 1])

    def primes(self) -> Group:
        """Read `''^{2}` as one superscript, as TeX does."""
        start = self.starts[self.index]
        items: list[Node] = []
        while self.texts[self.index] == "'":
            symbol = self.take()
            items.append(Symbol(r"\prime", symbol.start, symbol.end))
        if self.texts[self.index] == "^":
            self.index += 1
            above = self.argument()
            items[-1:] = put_before(items[-1], above.items if isinstance(above, Group) else [above])
        return Group(items, start, self.ends[self.index - 1])

    def infix(self, before: list[Node], *, in_row: bool) -> list[Node]:
        """Read the rest of `a \\over b`: all before it in the group goes on top, all after it below.

        A font switch on top reaches below too: \\rm is put before the fraction, another is repeated below.
        """
        symbol = self.take()
        after = self.items(in_row=in_row, after_infix=True)
        switches = [node for node in before if isinstance(node, Symbol) and node.text in FONT_SWITCHES]
        roman = bool(switches) and switches[0] is before[0] and switches[0].text == r"\rm"
        if roman:
            before = before[1:]
        for switch in reversed(switches[roman:]):
            after = put_before(switch, after)
        start = before[0].start if before else symbol.start
        end = self.ends[self.index - 1]
        parts: list[Node] = [
            items[0] if len(items) == 1 and isinstance(items[0], Group) else Group(items, first, last)
            for items, first, last in ((before, start, symbol.start), (after, symbol.end, end))
        ]
        fraction = Command(INFIXES[symbol.text], parts, symbol.start, symbol.end, end)
        return [switches[0], fraction] if roman else [fraction]

    def buildrel(self) -> Command:
        """Read `\\buildrel a \\over b`."""
        start, name_end = self.starts[self.index], self.ends[self.index]
        above = self.items_before(r"\over")
        if above is None:
            raise self.error(r"\buildrel without \over")
        parts: list[Node] = [Group(above, name_end, self.starts[self.index - 1]), self.argument()]
        return Command(r"\overset", parts, start, name_end, self.ends[self.index - 1])

    def delimited(self) -> Delimited:
        """Read `\\left( ... \\right)`."""
        left = self.take()
        if left.text[5:] not in DELIMITERS:
            raise FormulaError("bad delimiter", left.start, left.text)
        items = self.items()
        text = self.texts[self.index]
        if not text.startswith(r"\right"):
            raise FormulaError(r"\left without \right", left.start, left.text)
        if text[6:] not in DELIMITERS:
            raise self.error("bad delimiter")
        right = self.take()
        return Delimited(left, items, right, left.start, right.end)

    def command(self) -> Command:
        """Read a command and the arguments that its signature asks for."""
        name = self.take()
        arguments: list[Node] = []
        for letter in SIGNATURES[name.text]:
            found: Node | None
            if letter == "m":
                found = self.argument()
            elif letter == "o":
                found = self.optional()
            elif letter == "t":
                found = self.text()
            elif letter == "l":
                found = self.length()
            elif letter == "L":
                found = self.length("[") if self.texts[self.index] == "[" else None
            else:
                found = self.bare_length()
            if found is not None:
                arguments.append(found)
        return Command(name.text, arguments, name.start, name.end, self.ends[self.index - 1])

    def drop(self) -> None:
        """Pass over a command that draws nothing, with its argument."""
        name = self.take()
        if DROPPED[name.text]:
            self.optional()
            if self.texts[self.index] == "{":
                self.raw_group()
            elif _KINDS.get(self.texts[self.index]) not in (_CLOSE, _ROW_END):
                self.index += 1

    # Environments, and the old plain TeX commands with rows in their argument

    def environment(self) -> Node:
        """Read `\\begin{name} ... \\end{name}`."""
        begin = self.take()
        name = begin.text[7:-1].rstrip("*")
        environment = ENVIRONMENTS.get(name) or Environment(name)
        position = self.optional() if environment.position else None
        columns = None
        if environment.specification and self.texts[self.index] in ("}", "&", "]"):
            raise self.error("missing column specification")
        if environment.specification or environment.counted:
            columns = self.raw_group() if self.texts[self.index] == "{" else [self.take()]
        rows, rules = self.rows()
        if environment.counted:
            if all(len(row.cells) <= 2 for row in rows):  # with a single column it is what align makes
                name, columns = name.replace("at", ""), None
            return self.close(begin, name, position, columns, rows, rules)
        if columns is not None:
            columns = expand_columns(columns, max((len(row.cells) for row in rows), default=1))
        return self.close(begin, name, position, columns, rows, rules)

    def close(
        self,
        begin: Symbol,
        name: str,
        position: Optional | None,
        columns: list[Symbol] | None,
        rows: list[Row],
        rules: list[Node],
    ) -> Node:
        """Read `\\end{name}` and make the node of an environment."""
        if position is not None and [
            node.text if isinstance(node, Symbol) else "" for node in position.items
        ] == ["c"]:
            position = None  # the default
        if self.texts[self.index] != r"\end{" + begin.text[7:]:
            if self.texts[self.index].startswith(r"\end{"):
                raise self.error(r"\end of another environment")
            raise FormulaError(r"\begin without \end", begin.start, begin.text)
        closing = self.take()
        if name in DISPLAYS:
            name = DISPLAYS[name]
            if len(rows) <= 1 and not rules:
                items = [node for row in rows for cell in row.cells for node in cell]
                return items[0] if len(items) == 1 else Group(items, begin.start, closing.end)
        return Array(begin, name, position, columns, rows, rules, closing, begin.start, closing.end)

    def row_command(self) -> Array:
        """Read an old plain TeX `\\matrix{a & b \\cr c & d}`."""
        begin = self.take()
        if self.texts[self.index] != "{":
            raise self.error("missing argument")
        self.index += 1
        rows, rules = self.rows()
        if self.texts[self.index] != "}":
            raise FormulaError("unmatched brace", begin.end, "{")
        closing = self.take()
        return Array(
            begin, ROW_COMMANDS[begin.text], None, None, rows, rules, closing, begin.start, closing.end
        )

    def rows(self) -> tuple[list[Row], list[Node]]:
        """Read rows up to the end of the environment; what stands after the last `\\\\` may be rules only."""
        self.descend()
        rows: list[Row] = []
        while True:
            row = Row()
            while self.texts[self.index] in ROW_RULES:
                rule = self.take()
                row.rules.append(rule)
                if rule.text in (r"\cline", r"\noalign"):
                    row.rules.append(self.argument())
            while True:
                row.cells.append(self.items(in_row=True))
                if self.texts[self.index] != "&":
                    break
                row.breaks.append(self.take())
            if self.texts[self.index] not in ROW_ENDS:
                break
            row.breaks.append(self.take())
            row.gap = self.gap()
            rows.append(row)
        self.ascend()
        if row.cells == [[]]:
            return rows, row.rules
        return [*rows, row], []

    # What is read without the grammar: single tokens, lengths, words

    def error(self, reason: str) -> FormulaError:
        """Make the error for the current token."""
        return FormulaError(reason, self.starts[self.index], self.texts[self.index][:40])

    def take(self) -> Symbol:
        """Read one token as it is."""
        index = self.index
        if not self.texts[index]:
            raise self.error("missing argument")
        self.index = index + 1
        return Symbol(self.texts[index], self.starts[index], self.ends[index])

    def take_until(self, position: int) -> list[Symbol]:
        """Read the tokens that start before a position of the source, broken into characters."""
        symbols = []
        while self.starts[self.index] < position and self.texts[self.index]:
            symbols.append(self.take())
        return _characters(symbols)

    def raw_group(self) -> list[Symbol]:
        """Read the tokens of `{ ... }` without looking into them."""
        opening = self.take()
        symbols: list[Symbol] = []
        depth = 1
        while True:
            if not self.texts[self.index]:
                raise FormulaError("unmatched brace", opening.start, "{")
            symbol = self.take()
            depth += (symbol.text == "{") - (symbol.text == "}")
            if not depth:
                return symbols
            symbols.append(symbol)

    def length(self, bracket: str = "{") -> Length:
        """Read a length in braces or brackets."""
        start = self.starts[self.index]
        if bracket == "{" and self.texts[self.index] not in ("{", "}", "&", ""):
            symbols = [self.take()]
        elif self.texts[self.index] != bracket:
            raise self.error("missing length")
        elif bracket == "{":
            symbols = self.raw_group()
        else:
            self.index += 1
            symbols = []
            while self.texts[self.index] not in ("]", ""):
                symbols.append(self.take())
            if not self.texts[self.index]:
                raise FormulaError("unmatched bracket", start, "[")
            self.index += 1
        return Length(_characters(symbols), bracket, start, self.ends[self.index - 1])

    def bare_length(self) -> Length:
        """Read a length that no braces hold, as after \\kern."""
        start = self.ends[self.index - 1]
        match = _LENGTH.match(self.source, start)
        if not match:
            raise self.error("missing length")
        return Length(self.take_until(match.end()), "", start, match.end())

    def gap(self) -> Length | None:
        """Read the `[2pt]` that may follow `\\\\`."""
        start = self.ends[self.index - 1]
        match = _GAP.match(self.source, start)
        if not match:
            return None
        inner = [symbol for symbol in self.take_until(match.end()) if symbol.text not in "[]*"]
        return Length(inner, "[", start, match.end()) if inner else None

    def text(self) -> Text:
        """Read an argument set in text mode, where spaces count; each run of them becomes the symbol `~`."""
        start = self.starts[self.index]
        if self.texts[self.index] != "{":
            if not self.texts[self.index] or self.texts[self.index] in "}&":
                raise self.error("missing argument")
            return Text([self.take()], start, self.ends[self.index - 1])
        symbols = self.raw_group()
        end = self.ends[self.index - 1]
        if self.spaced or not symbols:
            spaces = [] if self.spaced or end - start <= 2 else [Symbol("~", start + 1, end - 1)]
            return Text(_characters(symbols) or spaces, start, end)
        return Text(_text_symbols(self.source, start + 1, end - 1), start, end)


_LENGTH = re.compile(
    r"\s*=?(?:\s*[-+])*(?:\s*[\d.,])*\s*(?:t\s*r\s*u\s*e\s*)?"
    r"(?:p\s*t|m\s*m|c\s*m|i\s*n|e\s*m|e\s*x|m\s*u|b\s*p|s\s*p|d\s*d|c\s*c|p\s*c|\\[A-Za-z]+)"
)
_GAP = re.compile(r"\s*\*?\s*\[([-+.,\d\sa-z]*|[-+.,\d\s]*\\[A-Za-z]+\s*)\]")
_TEXT_TOKEN = re.compile(r"\\[A-Za-z]+\s*|\\[^A-Za-z]|\s+|.", re.DOTALL)


def _characters(symbols: list[Symbol]) -> list[Symbol]:
    """Break `--` and the like into single characters."""
    characters = []
    for symbol in symbols:
        if symbol.text[0] == "\\" or len(symbol.text) == 1:
            characters.append(symbol)
        else:
            start = symbol.start
            characters += [Symbol(c, start + k, start + k + 1) for k, c in enumerate(symbol.text)]
    return characters


def _text_symbols(source: str, start: int, end: int) -> list[Symbol]:
    symbols = []
    for match in _TEXT_TOKEN.finditer(source, start, end):
        piece = match.group()
        if piece == "%":
            break
        if piece.isspace():
            piece = "~"
        elif piece[0] == "\\":
            piece = "\\" if piece[1:].isspace() else piece.rstrip()
        elif not piece.isascii():
            raise FormulaError("unknown character", match.start(), repr(piece))
        symbols.append(Symbol(piece, match.start(), match.end()))
    return symbols


MAX_COLUMNS = 200
_NUMBER = re.compile(r"0{0,99}[0-9]{1,6}")  # a count that Python and TeX read alike


def expand_columns(symbols: list[Symbol], used: int) -> list[Symbol]:
    """Write `*{3}{c|}` out as `c|c|c|`, cut to the columns that are used; everything else stays.

    MathType writes `*{20}{c}` for any matrix; TeX draws nothing for the columns without a cell.

    Raises:
        FormulaError: for a repetition without a count, or too many columns.
    """
    columns: list[Symbol] = []
    index = 0
    while index < len(symbols):
        symbol = symbols[index]
        index += 1
        if symbol.text != "*":
            columns.append(symbol)
            continue
        count, index = _argument(symbols, index)
        repeated, index = _argument(symbols, index)
        digits = "".join(part.text for part in count)
        times = int(digits) if _NUMBER.fullmatch(digits) else MAX_COLUMNS + 1
        if times * max(1, len(repeated)) > MAX_COLUMNS:
            raise FormulaError("bad column specification", symbol.start, digits[:20])
        columns += expand_columns(repeated, MAX_COLUMNS) * times
        if len(columns) > MAX_COLUMNS:
            raise FormulaError("too many columns", symbol.start)
    if any(symbol.text == "*" for symbol in symbols) and all(symbol.text in "lcr" for symbol in columns):
        columns = columns[:used]
    if len(columns) > MAX_COLUMNS:
        raise FormulaError("too many columns", columns[0].start)
    return columns


def _argument(symbols: list[Symbol], index: int) -> tuple[list[Symbol], int]:
    """Take the group or symbol at an index; return what is in it and the index after it."""
    if index >= len(symbols):
        raise FormulaError("bad column specification", symbols[-1].start)
    if symbols[index].text != "{":
        return [symbols[index]], index + 1
    depth, end = 1, index + 1
    while depth:
        if end >= len(symbols):
            raise FormulaError("bad column specification", symbols[index].start)
        depth += (symbols[end].text == "{") - (symbols[end].text == "}")
        end += 1
    return symbols[index + 1 : end - 1], end
