"""Arrays printed as canonical tokens: each cell in braces, each row closed by `\\\\`."""

from abc import abstractmethod
from typing import Final

from i2l.formulas import commands
from i2l.formulas.canonical_text import written_text
from i2l.formulas.environments import CELL_STYLES, MATRICES
from i2l.formulas.tokens import Token
from i2l.formulas.tree import Array, Command, Group, Length, Node, Optional, Row, Symbol, put_before

_UNBRACEABLE: Final = frozenset(
    [
        r"\hfill",
        r"\hfil",
        r"\hss",
        r"\hfilneg",
        r"\vspace",
        r"\vspace*",
        r"\vskip",
        r"\smallskip",
        r"\medskip",
        r"\bigskip",
        r"\multicolumn",
        r"\omit",
        r"\span",
        r"\noalign",
    ]
)


class ArrayPrinter:
    """Collects tokens; `written` holds those that LaTeX must see otherwise than after one space."""

    def __init__(self, *, spaced: bool) -> None:
        self.spaced = spaced
        self.tokens: list[Token] = []
        self.written: dict[int, str] = {}
        self.hidden = False  # inside a phantom nothing is drawn

    @abstractmethod
    def items(self, items: list[Node], style: int, *, braced: bool = False) -> None:
        """Print the items of a group."""

    @abstractmethod
    def braced(self, items: list[Node], node: Node, style: int) -> None:
        """Print items in braces."""

    @abstractmethod
    def optional(self, node: Optional, style: int) -> None:
        """Print `[ ... ]`."""

    @abstractmethod
    def length(self, node: Length, style: int) -> None:
        """Print a length."""

    def emit(self, text: str, start: int, end: int) -> None:
        """Add one token."""
        self.tokens.append(Token(text, start, end, not self.hidden and text not in commands.STRUCTURAL))

    def structure(self, text: str, position: int) -> None:
        """Add a token that draws nothing and has no text of its own in the source."""
        self.tokens.append(Token(text, position, position, False))

    def array(self, node: Array, style: int) -> None:
        """Print rows and cells, each cell in braces and each row closed by `\\\\`."""
        name = {"eqnarray": "aligned", "equation": "gathered"}.get(node.name, node.name)
        if name == "substack":
            self.substack(node, style)
            return
        fences = MATRICES.get(name)
        if fences:
            self.emit(fences[0], node.begin.start, node.begin.end)
        name = "matrix" if name in MATRICES else name
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
        style = CELL_STYLES.get(environment, 1)
        self.items(row.rules, style)
        cells = row.cells
        if environment == "eqnarray" and len(cells) > 2:
            cells = [cells[0], [node for cell in cells[1:] for node in cell]]
        aligned = environment in ("aligned", "alignedat", "eqnarray") and not self.spaced
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
    """Give the command or symbol that a node is, or nothing."""
    return node.text if type(node) is Symbol else node.name if type(node) is Command else ""
