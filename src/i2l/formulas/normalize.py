r"""A formula as its author wrote it becomes canonical tokens: lexed, parsed, and printed in one way.

The tree is printed with im2markup's choices where they keep the picture, and faithful ones elsewhere.
Words become letters of a math alphabet where that gives the same picture. Which letters are safe was found by
comparing pixels of `\text{...}` and `\mathrm{...}` for every character in every place: punctuation comes from
other fonts in math, a last letter with an italic correction moves what follows, spaces keep their size in a
subscript, and a single letter has its scripts at other heights than a box.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Final

from i2l.formulas import commands
from i2l.formulas.commands import CELL_STYLES, COMMANDS, MATRIX_FENCES
from i2l.formulas.expansion import Macros
from i2l.formulas.lexer import FormulaError, RawTokens, Token
from i2l.formulas.parser import Parser
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
    is_lone_prime,
    put_before,
)

# A cell with one of these is written without braces, which would change what it does.
_UNBRACEABLE: Final = commands.names_of(lambda command: command.cell)
_SPECIAL_SYMBOLS: Final = frozenset(
    {r"\rm", *commands.STYLE_SWITCHES, *commands.OPERATOR_LETTERS, r"\left.", r"\right."}
)
_UNITS: Final = ("cm", "in", "pt", "mm", "em")


@dataclass(frozen=True)
class NormalizeResult:
    """The canonical tokens of one formula."""

    tokens: list[Token]
    written: dict[int, str]  # tokens that LaTeX must see otherwise than after one space

    @cached_property
    def formula(self) -> str:
        """The tokens joined by single spaces: what is stored, learnt and compared."""
        return " ".join([token.text for token in self.tokens])

    @cached_property
    def latex(self) -> str:
        """The same for TeX: lengths and text in one piece, where a space would count."""
        if not self.written:
            return self.formula
        written = self.written
        return "".join(
            [written.get(index) or f" {token.text}" for index, token in enumerate(self.tokens)]
        ).lstrip()


def normalize_formula(source: str, *, macros: Macros | None = None) -> NormalizeResult:
    """Parse a formula, its macros written out, and print it in canonical tokens.

    Raises:
        FormulaError: if it is not a formula; the error has the reason and the position.
    """
    if macros is None:
        return _normalize(source)
    expansion = macros.expand(source)
    spans = [*expansion.spans, (len(source), len(source))]
    try:
        result = _normalize(expansion.source)
    except FormulaError as error:
        position = spans[min(error.position, len(spans) - 1)][0]
        raise FormulaError(error.reason, position, error.detail) from None
    tokens = [
        token._replace(
            start=spans[token.start][0], end=spans[max(token.start, token.end - 1)][token.end > token.start]
        )
        for token in result.tokens
    ]
    return NormalizeResult(tokens, result.written)


def _normalize(source: str) -> NormalizeResult:
    raw = RawTokens(source)
    items = Parser(raw).parse()
    printer = CanonicalPrinter(spaced=raw.spaced)
    printer.items(items, 0)
    if not printer.tokens:
        raise FormulaError("empty", 0)
    return NormalizeResult(printer.tokens, printer.written)


class CanonicalPrinter:
    """Collects the tokens of a tree; `written` holds those that LaTeX must see otherwise than after a space.

    Each method prints one kind of node, in a style of TeX: 0 display, 1 text, 2 script, 3 scriptscript. Some
    rewritings keep the picture in one style only.
    """

    def __init__(self, *, spaced: bool) -> None:
        self.spaced = spaced
        self.tokens: list[Token] = []
        self.written: dict[int, str] = {}
        self.hidden = False  # inside a phantom nothing is drawn
        self._printers = {
            Group: self.group,
            Scripts: self.scripts,
            Command: self.command,
            Delimited: self.delimited,
            Array: self.array,
            Optional: self.optional,
            Length: self.length,
            Text: self.text,
        }

    def emit(self, text: str, start: int, end: int) -> None:
        """Add one token."""
        self.tokens.append(Token(text, start, end, not self.hidden and text not in commands.STRUCTURAL))

    def structure(self, text: str, position: int) -> None:
        """Add a token that draws nothing and has no text of its own in the source."""
        self.tokens.append(Token(text, position, position, False))

    def node(self, node: Node, style: int) -> None:
        """Print one node as it is."""
        if type(node) is Symbol:
            self.items([node], style)
        else:
            self._printers[type(node)](node, style)  # type: ignore[operator]

    def items(self, items: list[Node], style: int, *, braced: bool = False) -> None:
        """Print the items of a group, following the style switches among them."""
        tokens, structural, hidden = self.tokens, commands.STRUCTURAL, self.hidden
        for index, node in enumerate(items):
            if type(node) is not Symbol:
                self._printers[type(node)](node, style)  # type: ignore[operator]
                continue
            text = node.text
            if text not in _SPECIAL_SYMBOLS:
                tokens.append(Token(text, node.start, node.end, not hidden and text not in structural))
            elif text in commands.STYLE_SWITCHES:
                style = commands.STYLE_SWITCHES[text]
                tokens.append(Token(text, node.start, node.end, False))
            elif text in commands.OPERATOR_LETTERS:
                self.operator(node, "*" if text in commands.LIMIT_OPERATORS else "")
            elif text == r"\rm":
                self.roman(node, items[index + 1 :], style, opens_group=braced and not index)
                return
            else:
                self.emit(text, node.start, node.end)

    def operator(self, node: Symbol, star: str) -> None:
        """Print \\sin letter by letter."""
        self.emit(rf"\operatorname{star}", node.start, node.end)
        self.structure("{", node.end)
        for letter in commands.OPERATOR_LETTERS[node.text]:
            self.emit(letter, node.start, node.end)
        self.structure("}", node.end)

    def roman(self, switch: Symbol, rest: list[Node], style: int, *, opens_group: bool) -> None:
        """Print `\\rm` and what it reaches as `\\mathrm { ... }`; `\\rm{tr}(1)` is `\\mathrm{tr}(1)`."""
        self.emit(r"\mathrm", switch.start, switch.end)
        scope = rest
        if not opens_group and rest and isinstance(rest[0], Group) and not any(map(_has_letters, rest[1:])):
            scope = rest[0].items
        self.structure("{", switch.end)
        self.items(scope, style)
        self.structure("}", scope[-1].end if scope else switch.end)
        if scope is not rest:
            self.items(rest[1:], style)

    def group(self, node: Group, style: int) -> None:
        """Print `{ ... }`; a group in roman is the braces of \\mathrm."""
        items = node.items
        if items and type(items[0]) is Symbol and items[0].text == r"\rm":
            self.items(items, style, braced=True)
        else:
            self.braced(items, node, style)

    def braced(self, items: list[Node], node: Node, style: int) -> None:
        """Print items in braces that stand where the node does."""
        self.tokens.append(Token("{", node.start, min(node.start + 1, node.end), False))
        self.items(items, style, braced=True)
        self.tokens.append(Token("}", max(node.end - 1, node.start), node.end, False))

    def argument(self, node: Node, style: int) -> None:
        """Print an argument as it was written: a group in its braces, anything else bare."""
        if type(node) is Group:
            self.braced(node.items, node, style)
        else:
            self.node(node, style)

    def braced_argument(self, node: Node, style: int) -> None:
        """Print an argument in exactly one pair of braces of its own."""
        if type(node) is Group:
            self.braced(node.items, node, style)
        else:
            self.structure("{", node.start)
            self.node(node, style)
            self.structure("}", node.end)

    def optional(self, node: Optional, style: int) -> None:
        """Print `[ ... ]`."""
        self.tokens.append(Token("[", node.start, node.start + 1, False))
        self.items(node.items, style)
        self.tokens.append(Token("]", node.end - 1, node.end, False))

    def scripts(self, node: Scripts, style: int) -> None:
        """Print the base, then what is below, then what is above."""
        limits = node.limits
        base = node.base
        if base is not None:
            name = node_name(base)
            if limits is not None and type(base) is Symbol and name in commands.OPERATOR_LETTERS:
                limits = self.limited_operator(base, limits, style)
            elif type(base) is Command and name in commands.TEXTS:
                self.text_command(base, style, scripts=node)
            else:
                self.node(base, style)
                if limits is not None and _limits_are_default(name, limits.text, style):
                    limits = None
        if limits is not None:
            self.emit(limits.text, limits.start, limits.end)
        script_style = 2 if style < 2 else 3
        scripts = [
            (mark, script) for mark, script in (("_", node.sub), ("^", node.sup)) if script is not None
        ]
        if base is None:  # im2markup leaves what starts a group as it was written
            scripts.sort(key=lambda pair: pair[1].start)
            if node.sub is None and node.sup is not None and is_lone_prime(node.sup):
                self.emit("'", node.sup.start, node.sup.end)
                return
        for index, (mark, script) in enumerate(scripts):
            self.structure(mark, script.start)
            if base is None and index == 0:
                self.argument(script, script_style)
            else:
                self.braced_argument(script, script_style)

    def limited_operator(self, base: Symbol, limits: Symbol, style: int) -> Symbol | None:
        """Print \\lim\\nolimits and the like: the star says where limits stand, but only in display style."""
        limited = base.text in commands.LIMIT_OPERATORS
        if limits.text == r"\nolimits":
            self.operator(base, "")
            return None
        if limits.text == r"\limits" and style == 0:
            self.operator(base, "*")
            return None
        self.operator(base, "*" if limited else "")
        return limits

    def delimited(self, node: Delimited, style: int) -> None:
        """Print \\left( ... \\right)."""
        self.emit(node.left.text, node.left.start, node.left.end)
        self.items(node.items, style)
        self.emit(node.right.text, node.right.start, node.right.end)

    def command(self, node: Command, style: int) -> None:
        """Print a command by its family."""
        name = node.name
        arguments = node.arguments
        if name in commands.FRACTIONS or name in commands.BINOMIALS:
            name, style = _fraction(name, style)
        elif name in commands.TEXTS:
            self.text_command(node, style)
            return
        elif name in commands.SLASHED:
            self.slashed(node, style)
            return
        elif name == r"\ensuremath":
            self.node(arguments[0], style)
            return
        elif name == r"\hskip" and (braced := _braced_length(arguments[0])):
            self.emit(r"\hspace", node.start, node.name_end)
            self.length(braced, style)
            return
        self.emit(name, node.start, node.name_end)
        if name in commands.PHANTOMS:
            hidden, self.hidden = self.hidden, True
            (self.braced_argument if COMMANDS[name].braces else self.argument)(arguments[0], style)
            self.hidden = hidden
        elif COMMANDS[name].braces == "one":
            self.braced_argument(arguments[0], style)
        elif COMMANDS[name].braces == "two":
            self.line_argument(arguments[0], style)
        else:
            styles = _argument_styles(name, len(arguments), style)
            for argument, argument_style in zip(arguments, styles, strict=True):
                if name in commands.BOX_MOVERS and isinstance(argument, Command):
                    self.box(argument, argument_style)
                else:
                    self.argument(argument, argument_style)

    def slashed(self, node: Command, style: int) -> None:
        r"""Print `\nicefrac{a}{b}` as `{ } ^ { a } / { } _ { b }`, which needs no package."""
        script_style = 2 if style < 2 else 3
        for mark, argument in zip(("^", "_"), node.arguments, strict=True):
            if mark == "_":
                self.emit("/", node.start, node.name_end)
            self.structure("{", argument.start)
            self.structure("}", argument.start)
            self.structure(mark, argument.start)
            self.braced_argument(argument, script_style)

    def line_argument(self, node: Node, style: int) -> None:
        """Print what a line is drawn over, in the line's own braces around those of the source."""
        if self.spaced or type(node) is not Group:
            self.braced_argument(node, style)
        else:
            self.structure("{", node.start)
            self.group(node, style)
            self.structure("}", node.end)

    def length(self, node: Length, style: int) -> None:
        """Print a length character by character; LaTeX sees it in one piece."""
        if node.bracket:
            self.structure(node.bracket, node.start)
        for index, symbol in enumerate(node.symbols):
            if index or node.bracket:
                self.written[len(self.tokens)] = symbol.text
            self.tokens.append(Token(symbol.text, symbol.start, symbol.end, False))
        if node.bracket:
            self.written[len(self.tokens)] = "}" if node.bracket == "{" else "]"
            self.structure("}" if node.bracket == "{" else "]", node.end)

    def text_command(self, node: Command, style: int, scripts: Scripts | None = None) -> None:
        """Print words as a math alphabet where that gives the same picture, else as the text they are."""
        text = node.arguments[0]
        assert isinstance(text, Text)
        alphabet = commands.TEXT_ALPHABETS.get(node.name)
        small_box = style > 1 and node.name in commands.FIXED_SIZE_TEXTS
        if alphabet and not small_box and plain_letters(text.symbols, alphabet, style, scripts):
            self.emit(alphabet, node.start, node.name_end)
            self.structure("{", text.start)
            for symbol in text.symbols:
                self.emit(symbol.text, symbol.start, symbol.end)
            self.structure("}", text.end)
        else:
            self.box(node, style)

    def box(self, node: Command, style: int) -> None:
        """Print a command with its text as they are."""
        self.emit(node.name, node.start, node.name_end)
        for argument in node.arguments:
            self.argument(argument, style)

    def text(self, node: Text, style: int) -> None:
        """Print text character by character; LaTeX sees it in one piece, with its spaces."""
        self.structure("{", node.start)
        for symbol, piece in zip(node.symbols, written_text(node.symbols), strict=True):
            self.written[len(self.tokens)] = piece
            self.emit(symbol.text, symbol.start, symbol.end)
        self.written[len(self.tokens)] = "}"
        self.structure("}", node.end)

    # Arrays: each cell in braces, each row closed by `\\`

    def array(self, node: Array, style: int) -> None:
        """Print rows and cells, each cell in braces and each row closed by `\\\\`."""
        name = commands.PRINTED_ENVIRONMENTS.get(node.name, node.name)
        if name == "substack":
            self.substack(node, style)
            return
        fences = MATRIX_FENCES.get(name)
        if fences:
            self.emit(rf"\left{fences[0]}", node.begin.start, node.begin.end)
            name = "matrix"
        begin, closing = node.begin, node.closing
        self.tokens.append(Token(rf"\begin{{{name}}}", begin.start, begin.end, name == "cases"))
        hidden = self.hidden
        if node.position:
            self.hidden = True  # it says where the array stands, and draws nothing
            self.written[len(self.tokens)] = "["  # inside a matrix amsmath looks for it right behind the name
            self.optional(node.position, style)
            self.hidden = hidden
        if node.columns is not None:
            self.columns(node.columns, begin.end)
        for row in node.rows:
            self.row(row, node.name, closing.start)
        self.items(node.rules, style)
        self.tokens.append(Token(rf"\end{{{name}}}", closing.start, closing.end, False))
        if fences:
            self.emit(rf"\right{fences[1]}", closing.start, closing.end)

    def columns(self, columns: list[Symbol], position: int) -> None:
        """Print a column specification; only its rules are drawn."""
        self.structure("{", position)
        plain = all(symbol.text in "lcr|" for symbol in columns)
        for symbol, piece in zip(columns, written_text(columns, tie="~"), strict=True):
            if not plain:
                self.written[len(self.tokens)] = piece
            self.tokens.append(Token(symbol.text, symbol.start, symbol.end, symbol.text == "|"))
        self.structure("}", position)

    def row(self, row: Row, environment: str, end: int) -> None:
        """Print one row of an array."""
        style = CELL_STYLES.get(environment, 1)
        self.items(row.rules, style)
        cells = row.cells
        if environment == "eqnarray" and len(cells) > 2:
            cells = [cells[0], [node for cell in cells[1:] for node in cell]]
        aligned = environment in commands.ALIGNING and not self.spaced
        for index, cell in enumerate(cells):
            if index:
                self.emit("&", row.breaks[index - 1].start, row.breaks[index - 1].end)
            self.cell(
                cell,
                row.breaks[index].start if index < len(row.breaks) else end,
                style,
                aligned and index % 2,
            )
        closing = row.breaks[-1] if len(row.breaks) == len(row.cells) else Symbol("\\\\", end, end)
        self.emit("\\\\", closing.start, closing.end)
        if row.gap is not None:
            self.written[len(self.tokens)] = "["
            self.length(row.gap, style)

    def cell(self, cell: list[Node], position: int, style: int, aligned: int) -> None:
        """Print one cell; right of an alignment point an empty group keeps the space of the relation."""
        if any(node_name(node) in _UNBRACEABLE for node in cell):
            self.items(cell, style)
            return
        if len(cell) == 1 and type(cell[0]) is Group:
            items = cell[0].items
            if self.spaced or (items and node_name(items[-1]) in commands.DOTS):
                self.braced(items, cell[0], style)
                return
        start = cell[0].start if cell else position
        self.structure("{", start)
        if aligned:
            cell = put_before(Group([], start, start), cell)
        self.items(cell, style)
        self.structure("}", cell[-1].end if cell else position)

    def substack(self, node: Array, style: int) -> None:
        """Print the lines of \\substack, which takes no cells."""
        self.emit(r"\substack", node.begin.start, node.begin.end)
        self.structure("{", node.begin.end)
        for index, row in enumerate(node.rows):
            if index:
                self.structure("\\\\", row.cells[0][0].start if row.cells[0] else node.end)
            for cell in row.cells:
                self.items(cell, style)
        self.structure("}", node.end)


def node_name(node: Node) -> str:
    """Return the name of a node that is a command or a symbol, and nothing for any other."""
    return node.text if type(node) is Symbol else node.name if type(node) is Command else ""


def _has_letters(node: Node) -> bool:
    """Tell whether \\rm would change how a node looks."""
    return not (type(node) is Symbol and not (node.text.isalpha() or node.text[0] == "\\"))


def _limits_are_default(name: str, limits: str, style: int) -> bool:
    if limits == r"\limits":
        return name in commands.BIG_OPERATORS and style == 0
    if limits == r"\nolimits":
        return name in commands.SIDE_OPERATORS or (name in commands.BIG_OPERATORS and style > 0)
    return False


def _fraction(name: str, style: int) -> tuple[str, int]:
    """Return the name by which a fraction or binomial is printed in a style, and the style of its parts."""
    kind = "binom" if name in commands.BINOMIALS else "frac"
    if name == r"\cfrac":
        return name, 0
    if name[1] == "d" and kind != name[1:]:
        return (rf"\{kind}" if style == 0 else name), 1
    if name[1] == "t" and kind != name[1:]:
        return (rf"\{kind}" if style == 1 else name), 2
    return name, min(style + 1, 3)


def _argument_styles(name: str, count: int, style: int) -> list[int]:
    if name in commands.STACKS or name in commands.LONG_ARROWS:
        small = min(style + 2, 3) if style == 0 else min(style + 1, 3)
        return [small] * count if name in commands.LONG_ARROWS else [small, style]
    inner_style = COMMANDS[name].inner_style
    return [style if inner_style < 0 else inner_style] * count


def _braced_length(node: Node) -> Length | None:
    """Return the length of an \\hskip as \\hspace takes it, if its unit is one that im2markup knows."""
    if not isinstance(node, Length) or "".join(symbol.text for symbol in node.symbols)[-2:] not in _UNITS:
        return None
    return Length(node.symbols, "{", node.start, node.end)


_ALPHANUMERIC = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789")
_SPACES = frozenset(("~", "\\", r"\quad", r"\qquad"))
_SAFE = {
    r"\mathrm": _ALPHANUMERIC | frozenset("()[]"),
    r"\mathbf": _ALPHANUMERIC,
    r"\mathsf": _ALPHANUMERIC,
    r"\mathtt": _ALPHANUMERIC,
}
_ITALIC_CORRECTED = {
    r"\mathrm": frozenset("fgvwyVWY"),
    r"\mathbf": frozenset("fgvwyVWY"),
    r"\mathsf": frozenset("fgrvwyVWY"),
    r"\mathtt": frozenset(),
}
_LOW = frozenset("aceimnorstuxz")  # single letters whose scripts stand where those of a box do ...
_DESCENDING = frozenset("gjpqyQ")  # ... and those whose subscript does not


def plain_letters(symbols: list[Symbol], alphabet: str, style: int, scripts: Scripts | None) -> bool:
    """Tell whether words in a math alphabet give the picture of the text, in a style and under scripts."""
    safe, corrected = _SAFE[alphabet], _ITALIC_CORRECTED[alphabet]
    spaces = alphabet == r"\mathrm" and style < 2
    previous = ""
    for symbol in symbols:
        text = symbol.text
        if text in _SPACES:
            if not spaces or previous in corrected:
                return False
        elif text not in safe:
            return False
        previous = text
    if previous in corrected:
        return False
    if scripts is not None and len(symbols) == 1:
        if scripts.sup is not None and not (previous in _LOW or previous.isdigit()):
            return False
        if scripts.sub is not None and previous in _DESCENDING:
            return False
    return True


def written_text(symbols: list[Symbol], tie: str = " ") -> list[str]:
    """Return what LaTeX must see for each symbol of a text: its spaces, and one after a command's name."""
    written: list[str] = []
    after_name = after_space = False
    for symbol in symbols:
        text = symbol.text
        if text == "~":
            written.append("~" if after_name or after_space else tie)  # TeX drops a space after either
        elif text == "\\":
            written.append("\\ ")
        else:
            written.append(f" {text}" if after_name and text[0].isalnum() else text)
        after_name = len(text) > 1 and text[0] == "\\" and text[-1].isalpha()
        after_space = text in ("~", "\\")
    return written
