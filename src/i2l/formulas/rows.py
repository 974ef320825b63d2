"""Reading environments and old plain TeX matrices: rows, cells, rules and gaps."""

from abc import abstractmethod
from typing import Final

from i2l.formulas.columns import expand_columns
from i2l.formulas.cursor import Cursor
from i2l.formulas.environments import DISPLAYS, ROW_COMMANDS
from i2l.formulas.tokens import FormulaError
from i2l.formulas.tree import Array, Group, Node, Optional, Row, Symbol

ROW_ENDS: Final = frozenset({"\\\\", r"\cr", r"\crcr"})
RULES: Final = frozenset({r"\hline", r"\cline", r"\noalign", r"\hdashline"})


class RowReader(Cursor):
    """Reads rows of cells; what stands in a cell is read by the grammar above it."""

    __slots__ = ()

    @abstractmethod
    def items(self, *, in_row: bool = False) -> list[Node]:
        """Read items up to a token that closes something."""

    @abstractmethod
    def argument(self) -> Node:
        """Read one argument."""

    @abstractmethod
    def optional(self) -> Optional | None:
        """Read `[ ... ]` if it is there."""

    @abstractmethod
    def descend(self) -> None:
        """Count one level of nesting."""

    @abstractmethod
    def ascend(self) -> None:
        """Leave one level of nesting."""

    def environment(self) -> Node:
        """Read `\\begin{name} ... \\end{name}`."""
        begin = self.take()
        name = begin.text[7:-1].rstrip("*")
        position = self.optional() if name in ("array", "aligned", "gathered", "tabular") else None
        columns = None
        if name in ("array", "tabular", "subarray"):
            if self.texts[self.index] in ("}", "&", "]"):
                raise self.error("missing column specification")
            columns = self.raw_group() if self.texts[self.index] == "{" else [self.take()]
        elif name in ("alignat", "alignedat"):
            columns = self.raw_group() if self.texts[self.index] == "{" else [self.take()]
        rows, rules = self.rows()
        if name in ("alignat", "alignedat"):
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
            while self.texts[self.index] in RULES:
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
