"""Canonical tokens to the LaTeX a person would write: the same picture, and the same tokens again."""

import re
from collections.abc import Sequence
from typing import Final

from i2l.formulas import commands
from i2l.formulas.commands import respell, without_outer_space
from i2l.formulas.lexer import FormulaError, RawTokens
from i2l.formulas.normalize import NormalizeResult, normalize_formula, written_text
from i2l.formulas.parser import Parser
from i2l.formulas.tree import (
    Array,
    Command,
    Delimited,
    Group,
    Length,
    Node,
    Optional,
    Scripts,
    Symbol,
    Text,
    is_lone_prime,
)

_OPERATORS: Final = {
    (r"\operatorname*" if name in commands.LIMIT_OPERATORS else r"\operatorname", *letters): name
    for name, letters in commands.OPERATOR_LETTERS.items()
}
_MATRICES: Final = {
    (rf"\left{left}", rf"\right{right}"): name for name, (left, right) in commands.MATRIX_FENCES.items()
}


def _printed_as(word: str) -> frozenset[str]:
    return commands.names_of(lambda command: word in command.pretty)


_RELATIONS: Final = _printed_as("spaced")
_OPENING: Final = _printed_as("opening")
_GLUED: Final = _RELATIONS | _printed_as("joins")
_REACHING: Final = commands.SWITCHES | _printed_as("reaches")
_ORDINARY: Final = _printed_as("ordinary")
# After these a group is no argument.
_ALONE: Final = commands.SPACES | _ORDINARY | _RELATIONS | _printed_as("alone")
# Set as a letter is; \overbrace and \underbrace keep the distance of an operator.
_ACCENTS: Final = commands.names_of(
    lambda command: command.kind in ("accent", "line") and command.limits != "brace"
)
_TABLES: Final = frozenset(
    name for name, environment in commands.ENVIRONMENTS.items() if environment.unspaced
)  # TeX keeps no distance around them
_GLUE: Final = "\0"  # before a cell that stands at its `&`
_FILLS: Final = commands.names_of(lambda command: command.cell == "fills")
_ALPHABET_OF_SWITCH: Final = {switch: alphabet for alphabet, switch in commands.SWITCH_OF_ALPHABET.items()}
_FENCES_OPEN: Final = frozenset(["(", "[", r"\{", r"\lbrace"])
_FENCES_CLOSE: Final = frozenset([")", "]", r"\}", r"\rbrace"])
_BARS: Final = frozenset(["|", r"\|", r"\vert", r"\Vert"])
_TALL_TABLES: Final = frozenset([r"\begin{array}", r"\begin{matrix}"])
_TALL: Final = _TALL_TABLES | {r"\frac", r"\binom", r"\sum", r"\prod", r"\int", r"\oint"}
_NAME = re.compile(r"\\[A-Za-z]+$")


def pretty_formula(formula: str) -> str:
    """Write a canonical formula as readable LaTeX.

    What cannot be written more plainly without changing its tokens stays as it is.

    Raises:
        FormulaError: if the formula does not parse.
    """
    return _write(normalize_formula(formula))


def _write(canonical: NormalizeResult) -> str:
    items = Parser(RawTokens(canonical.formula)).parse()
    for words in (True, False):
        written = PrettyPrinter(words=words).items(items).strip(" ")
        if written.endswith("\\") and not written.endswith("\\\\"):
            written += " "  # a space that the formula has
        try:
            if normalize_formula(written).formula == canonical.formula:
                return written
        except FormulaError:
            continue
    return canonical.latex


def readable_formula(formula: str) -> str:
    r"""Write a canonical formula as a person would today: the same picture, but not always the same tokens.

    `{ \bf x }` becomes `\mathbf{x}`, `{ \cal L }` becomes `\mathcal{L}`; braces that nobody sees are left
    out, and so is space before and after the formula.

    Raises:
        FormulaError: if the formula does not parse.
    """
    canonical = " ".join(without_outer_space(normalize_formula(formula).formula.split()))
    items = Parser(RawTokens(canonical)).parse()
    while len(items) == 1 and isinstance(items[0], Group):  # braces around all of it
        items = items[0].items
    written = ModernPrinter(words=False).items(items)
    try:
        modern = normalize_formula(written)
    except FormulaError:
        return pretty_formula(canonical)
    same = _without_braces(modern.formula) == _without_braces(canonical)
    return _write(modern) if same else pretty_formula(canonical)


def stretch_fences(tokens: Sequence[str]) -> list[str]:
    r"""Let brackets around what is tall grow with it: `( \frac ... )` becomes `\left( \frac ... \right)`.

    Whoever writes by hand draws them so, and readings of handwriting have them of one height. Tokens keep
    their places. A bracket without its partner in the same group or cell stays as it is, and so do bars,
    which do not say where they open, unless they stand right before and right after a table.
    """
    found, stretched = list(tokens), list(tokens)
    opened: list[tuple[int, int]] = []  # place and depth of brackets that are open
    depth = 0
    for place, token in enumerate(found):
        begins, ends = token == "{" or token.startswith(r"\begin"), token == "}" or token.startswith(r"\end")
        depth += begins - ends
        if ends or token in ("&", r"\\"):
            opened = [(start, level) for start, level in opened if level < depth + ends]
        elif token in _FENCES_OPEN:
            opened.append((place, depth))
        elif token in _FENCES_CLOSE and opened and opened[-1][1] == depth:
            start, _ = opened.pop()
            of_root = found[start - 1 : start] == [r"\sqrt"]  # around its degree
            if not of_root and not _TALL.isdisjoint(found[start:place]):
                stretched[start], stretched[place] = rf"\left{found[start]}", rf"\right{token}"
    tables: list[int] = []  # where those begin that are open
    for place, token in enumerate(found):
        if token in _TALL_TABLES:
            tables.append(place)
        elif token.startswith(r"\end") and tables and token[4:] == found[tables[-1]][6:]:
            before, after = found[tables[-1] - 1 : tables[-1]], found[place + 1 : place + 2]
            if before == after and before and before[0] in _BARS:
                stretched[tables[-1] - 1], stretched[place + 1] = rf"\left{before[0]}", rf"\right{before[0]}"
            tables.pop()
    return stretched


def _without_braces(formula: str) -> list[str]:
    return [token for token in respell(formula).split() if token not in "{}"]


class PrettyPrinter:
    """Turns nodes into strings; with `words`, roman text is written as text."""

    def __init__(self, *, words: bool) -> None:
        self.words = words

    def items(self, items: list[Node]) -> str:
        """Write the items of a group."""
        pieces: list[str] = []
        for node in items:
            piece = self.item(node)
            if (piece in _RELATIONS and not (pieces and pieces[-1].strip() in _GLUED)) or (
                piece in ("+", "-") and pieces and pieces[-1].strip() not in _OPENING
            ):
                piece = f" {piece} "
            pieces.append(piece)
        return _join(pieces)

    def item(self, node: Node) -> str:
        """Write a node that is no argument."""
        return self.node(node)

    def base(self, node: Node) -> str:
        """Write what scripts belong to."""
        return self.node(node)

    def node(self, node: Node) -> str:
        """Write one node."""
        match node:
            case Symbol(text="\\"):
                return "\\ "
            case Symbol(text=text):
                return text
            case Group(items=items):
                return f"{{{self.items(items)}}}"
            case Optional(items=items):
                return f"[{self.items(items)}]"
            case Scripts():
                return self.scripts(node)
            case Command():
                return self.command(node)
            case Delimited():
                return self.delimited(node)
            case Array():
                return self.array(node)
            case Length(symbols=symbols, bracket=bracket):
                closing = {"{": "}", "[": "]", "": " "}[bracket]
                return f"{bracket or ' '}{''.join(symbol.text for symbol in symbols)}{closing}"
            case Text(symbols=symbols):
                return f"{{{''.join(written_text(symbols))}}}"

    def scripts(self, node: Scripts) -> str:
        """Write a base and its scripts; primes as primes."""
        if node.base is None and node.sub is None and node.sup is not None and is_lone_prime(node.sup):
            return "'"
        pieces = [] if node.base is None else [self.base(node.base)]
        if node.limits is not None:
            pieces.append(node.limits.text)
        scripts = [("_", node.sub), ("^", node.sup)]
        if node.base is None:
            scripts.sort(key=lambda pair: pair[1].start if pair[1] is not None else 0)
        for mark, script in scripts:
            if script is None:
                continue
            primes = _count_primes(script) if node.base is not None and mark == "^" else 0
            pieces += ["'" * primes] if primes else [mark, self.node(script)]
        return _join(pieces)

    def command(self, node: Command) -> str:
        """Write a command with its arguments."""
        name, arguments = node.name, node.arguments
        first = arguments[0] if arguments else None
        if isinstance(first, Group):
            letters = tuple(item.text if isinstance(item, Symbol) else "" for item in first.items)
            if (name, *letters) in _OPERATORS:
                return _OPERATORS[name, *letters]
            if name == r"\mathrm" and self.words and "~" in letters and all(letters):
                symbols = [item for item in first.items if isinstance(item, Symbol)]
                return rf"\text{{{''.join(written_text(symbols))}}}"
            if (
                name in commands.LINES
                and len(first.items) == 1
                and isinstance(first.items[0], Symbol | Group)
            ):
                return _join([name, self.node(first.items[0])])
        return _join([name, *(self.node(argument) for argument in arguments)])

    def delimited(self, node: Delimited) -> str:
        """Write \\left and \\right, or the matrix that has them built in."""
        fences = (node.left.text, node.right.text)
        if fences in _MATRICES and len(node.items) == 1:
            inner = node.items[0]
            if isinstance(inner, Array) and inner.name == "matrix":
                return self.array(inner, _MATRICES[fences])
        return _join([node.left.text, self.items(node.items), node.right.text])

    def array(self, node: Array, name: str | None = None) -> str:
        """Write rows on one line; cells lose the braces that only the canonical form has."""
        if node.name == "substack":
            rows = [self.items([item for cell in row.cells for item in cell]) for row in node.rows]
            return r"\substack{" + r" \\ ".join(rows) + "}"
        name = name or node.name
        head = rf"\begin{{{name}}}" + (self.node(node.position) if node.position else "")
        if node.columns is not None:
            head += f"{{{''.join(written_text(node.columns, tie='~'))}}}"
        rows = []
        for row in node.rows:
            aligning = name in commands.ALIGNING
            cells = [
                self.cell(cell, aligned=aligning and index % 2 == 1) for index, cell in enumerate(row.cells)
            ]
            rows.append(" ".join(filter(None, [self.items(row.rules), _join_cells(cells)])))
        body = rows[0] if rows else ""
        for row, text in zip(node.rows, rows[1:], strict=False):
            body += " \\\\" + (self.node(row.gap) if row.gap else "") + (f" {text}" if text else "")
        if node.rules:
            body += rf" \\ {self.items(node.rules)}"
        return " ".join(filter(None, [head, body, rf"\end{{{name}}}"]))

    def cell(self, cell: list[Node], *, aligned: bool) -> str:
        """Write one cell without its braces and without the empty group that keeps a relation's space."""
        if len(cell) != 1 or not isinstance(cell[0], Group):
            return self.items(cell)
        items = cell[0].items
        if _needs_its_cell(items):
            return self.node(cell[0])
        if aligned and items and isinstance(items[0], Group) and not items[0].items:
            return _GLUE + self.items(items[1:]).lstrip(" ")
        return self.items(items)


def _join_cells(cells: list[str]) -> str:
    """Write the cells of a row, with a space on either side of each `&`, or only before it: `a &= b`."""
    tidy = [cell.lstrip(" ") if cell.endswith("\\ ") else cell.strip(" ") for cell in cells]
    marked = [tidy[0], *(f"& {cell}" if cell else "&" for cell in tidy[1:])]
    return " ".join(filter(None, marked)).replace(f" {_GLUE}", "").replace(_GLUE, "")


def _needs_its_cell(items: list[Node]) -> bool:
    r"""Tell whether a cell must keep its braces.

    amsmath adds a space after dots that end it, `\hfill` would push it aside, and `[` or `*` at its start
    would belong to the `\\` before it.
    """
    symbols = [node.text if isinstance(node, Symbol) else "" for node in items]
    return bool(symbols) and (
        symbols[0] in ("[", "*") or symbols[-1] in commands.DOTS or not _FILLS.isdisjoint(symbols)
    )


def _count_primes(node: Node) -> int:
    """Count the primes of a superscript that has nothing else."""
    primes = isinstance(node, Group) and all(
        isinstance(item, Symbol) and item.text == r"\prime" for item in node.items
    )
    return len(node.items) if isinstance(node, Group) and primes else 0


def _join(pieces: list[str]) -> str:
    """Join strings with a space only where TeX needs one: after a command's name, and between two dashes."""
    written = ""
    for piece in pieces:
        if (piece[:1].isalpha() and _NAME.search(written)) or (piece[:1] == "-" and written.endswith("-")):
            written += " "
        doubled = piece[:1] == " " and written.endswith(" ") and not written.endswith("\\ ")
        written += piece[1:] if doubled else piece
    return written


class ModernPrinter(PrettyPrinter):
    """Writes fonts as commands instead of switches, and no braces that cannot be seen."""

    def items(self, items: list[Node]) -> str:
        """Write the items of a group."""
        return self._as_font(items) or super().items(_without_unseen_braces(items))

    def _as_font(self, items: list[Node]) -> str | None:
        """Write a group that begins with a switch of fonts, and has no other, as a command."""
        if not (items and isinstance(items[0], Symbol) and items[0].text in _ALPHABET_OF_SWITCH):
            return None
        rest = items[1:]
        if not rest or any(isinstance(n, Symbol) and n.text in commands.FONT_SWITCHES for n in rest):
            return None
        return f"{_ALPHABET_OF_SWITCH[items[0].text]}{{{super().items(_without_unseen_braces(rest))}}}"

    def item(self, node: Node) -> str:
        """Write a node that is no argument."""
        if isinstance(node, Group) and self._needs_no_braces(node.items):
            return self.items(node.items)
        return super().item(node)

    def base(self, node: Node) -> str:
        """Write what scripts belong to; braces around a fraction show what that is."""
        if isinstance(node, Group) and len(node.items) > 1:
            return self.item(node)
        return super().base(node)

    def _needs_no_braces(self, items: list[Node]) -> bool:
        """Tell whether items are one fraction or table, or open with a switch that becomes a command."""
        if len(items) == 1:
            (node,) = items
            return (isinstance(node, Command) and node.name in commands.FRACTIONS) or (
                isinstance(node, Array) and node.name in _TABLES
            )
        return self._as_font(items) is not None


def _without_unseen_braces(items: list[Node]) -> list[Node]:
    """Take groups apart that begin and end as a letter does, since their braces then change no distance."""
    flat: list[Node] = []
    for place, node in enumerate(items):
        after = items[place + 1] if place + 1 < len(items) else None
        inner = _without_unseen_braces(node.items) if isinstance(node, Group) else []
        if inner and _needs_no_group(inner, after) and (not flat or _takes_nothing(flat[-1])):
            flat += inner
        else:
            flat.append(node)
    return flat


def _needs_no_group(items: list[Node], after: Node | None) -> bool:
    """Tell whether a group can lose its braces: nothing in it works up to them, or moves without them."""
    first, last = items[0], items[-1]
    return (
        not any(isinstance(node, Symbol) and node.text in _REACHING for node in items)
        and _is_ordinary(first)
        and (_is_ordinary(last) or (isinstance(last, Symbol) and last.text == ")"))
        and not (isinstance(after, Symbol) and after.text in (",", "."))
    )


def _is_ordinary(node: Node) -> bool:
    """Tell whether TeX sets a node as it sets a letter: no space of its own on either side."""
    if isinstance(node, Scripts):
        return node.base is not None and node.limits is None and _is_ordinary(node.base)
    if isinstance(node, Command):
        return node.name in _ACCENTS
    return isinstance(node, Symbol) and (node.text.isalnum() or node.text in _ORDINARY)


def _takes_nothing(node: Node) -> bool:
    """Tell whether what stands behind a node cannot be its argument."""
    if isinstance(node, Command):
        return node.name in commands.FRACTIONS or node.name in _ACCENTS
    if not isinstance(node, Symbol):
        return True
    return not node.text.startswith("\\") or node.text in _ALONE
