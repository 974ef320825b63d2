"""The tree printed as canonical tokens: im2markup's choice wherever it keeps the picture, a faithful one elsewhere.

Each method prints one kind of node. Style is TeX's: 0 display, 1 text, 2 script, 3 scriptscript; some rewritings
keep the picture in one style only.
"""

from typing import Final

from i2l.formulas import commands
from i2l.formulas.canonical_text import plain_letters, written_text
from i2l.formulas.tokens import Token
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
)

_RENAMED: Final = {r"\>": r"\:"}
_SPECIAL_SYMBOLS: Final = frozenset(
    {r"\rm", *commands.STYLE_SWITCHES, *commands.OPERATOR_LETTERS, *_RENAMED, r"\left.", r"\right."}
)
_UNBRACEABLE: Final = frozenset(r"\hfill \hfil \hss \hfilneg \vspace \vspace* \vskip \smallskip \medskip \bigskip \multicolumn \omit \span \noalign".split())


class CanonicalPrinter:
    """Collects tokens; `written` holds those that LaTeX must see otherwise than after one space."""

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
                self.emit(_RENAMED.get(text, text), node.start, node.end)

    def operator(self, node: Symbol, star: str) -> None:
        """Print \\sin letter by letter."""
        self.emit(rf"\operatorname{star}", node.start, node.end)
        self.structure("{", node.end)
        for letter in commands.OPERATOR_LETTERS[node.text]:
            self.emit(letter, node.start, node.end)
        self.structure("}", node.end)

    def roman(self, switch: Symbol, rest: list[Node], style: int, *, opens_group: bool) -> None:
        """Print `\\rm` and what it reaches as `\\mathrm { ... }`; `\\rm{tr}(1)` reads as `\\mathrm{tr}(1)`."""
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
            name = _name(base)
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
        scripts = [(mark, script) for mark, script in (("_", node.sub), ("^", node.sup)) if script is not None]
        if base is None:  # im2markup leaves what starts a group as it was written
            scripts.sort(key=lambda pair: pair[1].start)
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
        elif name in commands.FONT_ALIASES:
            name = commands.FONT_ALIASES[name]
        elif name == r"\ensuremath":
            self.node(arguments[0], style)
            return
        elif name == r"\hskip" and _is_plain_length(arguments[0]):
            self.emit(r"\hspace", node.start, node.name_end)
            self.length(Length(arguments[0].symbols, "{", arguments[0].start, arguments[0].end), style)
            return
        self.emit(name, node.start, node.name_end)
        if name in commands.NARROW_ACCENTS:
            self.braced_argument(arguments[0], style)
        elif name in commands.LINES:
            self.line_argument(arguments[0], style)
        elif name in commands.PHANTOMS:
            hidden, self.hidden = self.hidden, True
            (self.braced_argument if name == r"\phantom" else self.argument)(arguments[0], style)
            self.hidden = hidden
        else:
            styles = _argument_styles(name, len(arguments), style)
            for argument, argument_style in zip(arguments, styles, strict=True):
                self.argument(argument, argument_style)

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
            self.emit(node.name, node.start, node.name_end)
            self.text(text, style)

    def text(self, node: Text, style: int) -> None:
        """Print text character by character; LaTeX sees it in one piece, with its spaces."""
        self.structure("{", node.start)
        for symbol, piece in zip(node.symbols, written_text(node.symbols), strict=True):
            self.written[len(self.tokens)] = piece
            self.emit(symbol.text, symbol.start, symbol.end)
        self.written[len(self.tokens)] = "}"
        self.structure("}", node.end)

    def array(self, node: Array, style: int) -> None:
        """Print rows and cells, each cell in braces and each row closed by `\\\\`."""
        name = {"eqnarray": "aligned", "equation": "gathered"}.get(node.name, node.name)
        if name == "substack":
            self.substack(node, style)
            return
        fences = commands.MATRICES.get(name)
        if fences:
            self.emit(fences[0], node.begin.start, node.begin.end)
        name = "matrix" if name in commands.MATRICES else name
        begin, closing = node.begin, node.closing
        self.tokens.append(Token(rf"\begin{{{name}}}", begin.start, begin.end, name == "cases"))
        if node.position:
            self.optional(node.position, style)
        if node.columns is not None:
            self.columns(node.columns, begin.end)
        for row in node.rows:
            self.row(row, node.name, closing.start)
        self.items(node.rules, style)
        self.tokens.append(Token(rf"\end{{{name}}}", closing.start, closing.end, False))
        if fences:
            self.emit(fences[1], closing.start, closing.end)

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
        style = commands.CELL_STYLES.get(environment, 1)
        self.items(row.rules, style)
        cells = row.cells
        if environment == "eqnarray" and len(cells) > 2:
            cells = [cells[0], [node for cell in cells[1:] for node in cell]]
        aligned = environment in ("aligned", "alignedat", "eqnarray") and not self.spaced
        for index, cell in enumerate(cells):
            if index:
                self.emit("&", row.breaks[index - 1].start, row.breaks[index - 1].end)
            self.cell(cell, row.breaks[index].start if index < len(row.breaks) else end, style, aligned and index % 2)
        closing = row.breaks[-1] if len(row.breaks) == len(row.cells) else Symbol("\\\\", end, end)
        self.emit("\\\\", closing.start, closing.end)
        if row.gap is not None:
            self.written[len(self.tokens)] = "["
            self.length(row.gap, style)

    def cell(self, cell: list[Node], position: int, style: int, aligned: int) -> None:
        """Print one cell; on the right of an alignment point an empty group keeps the space of the relation."""
        if any(_name(node) in _UNBRACEABLE for node in cell):
            self.items(cell, style)
            return
        if self.spaced and len(cell) == 1 and type(cell[0]) is Group:
            self.braced(cell[0].items, cell[0], style)
            return
        start = cell[0].start if cell else position
        self.structure("{", start)
        if aligned:
            self.structure("{", start)
            self.structure("}", start)
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


def _name(node: Node) -> str:
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
    """Give the name to print for a fraction or binomial in a style, and the style of its parts."""
    kind = "binom" if name in commands.BINOMIALS else "frac"
    if name == r"\cfrac":
        return name, 0
    if name[1] == "d" and kind != name[1:]:
        return (rf"\{kind}" if style == 0 else name), 1
    if name[1] == "t" and kind != name[1:]:
        return (rf"\{kind}" if style == 1 else name), 2
    return name, min(style + 1, 3)


def _argument_styles(name: str, count: int, style: int) -> list[int]:
    if name in commands.STACKS or name in commands.ARROWS:
        small = min(style + 2, 3) if style == 0 else min(style + 1, 3)
        return [small] * count if name in commands.ARROWS else [small, style]
    if name in (r"\overbrace", r"\underbrace", r"\lefteqn", r"\boxed"):
        return [0] * count
    return [style] * count


def _is_plain_length(node: Node) -> bool:
    assert isinstance(node, Length)
    return "".join(symbol.text for symbol in node.symbols)[-2:] in ("cm", "in", "pt", "mm", "em")
