"""Typst: what stands between the dollars of a formula there, and the pictures that Typst draws of it.

Tokens are set apart by spaces, so that letters never join to a name and signs never to a shorthand. Inside
the parentheses of a function commas and semicolons are escaped, where they would part its arguments.

PNG and SVG are drawn by Typst too, which is one package from PyPI with its own fonts: it needs no TeX, takes
milliseconds, and a formula in it looks as TeX would set it.
"""

import re
from functools import cache
from typing import Any, Final

from i2l.errors import require_extra
from i2l.formats import layout as to
from i2l.formats.layout import FormatError, Item, Row
from i2l.formats.mathml import limits_by_nature
from i2l.formulas.commands import SHOWN_RELATIONS, TYPST_ACCENTS, TYPST_NAMES, TYPST_OPERATORS

_NAME: Final = "Typst"


_ESCAPED: Final = frozenset("()[]{}#$\"\\/&_^'`@")
_PARTING: Final = frozenset(",;:")
_SPACES: Final = ((1 / 6, "thin"), (2 / 9, "med"), (5 / 18, "thick"), (1.0, "quad"), (2.0, "wide"))
_FUNCTIONS: Final = {
    "rm": "upright",
    "it": "italic",
    "cal": "cal",
    "scr": "scr",
    "frak": "frak",
    "bb": "bb",
    "sf": "sans",
    "tt": "mono",
}
_BIG_EM: Final = ("", "1.2em", "1.8em", "2.4em", "3em")
_STYLES: Final = {"display": "display", "text": "inline", "script": "script", "scriptscript": "sscript"}
_BRACKETS: Final = frozenset("()[]")
_PAIRS: Final = frozenset(["⟦⟧", "⟮⟯", "⌈⌉", "⌊⌋", "⌞⌟", "⌜⌝", "⎰⎱"])  # which Typst reads as such
_OPENING: Final = frozenset(pair[0] for pair in _PAIRS)
_NESTED_PAIRS: Final = 16  # brackets deeper in one another are escaped: Typst's parser gives up at 256
_PAGE: Final = """#set page(width: auto, height: auto, margin: 2pt, fill: {fill})
#set text(10pt)
$ {formula} $"""
_SIZE_PT: Final = re.compile(r'width="([\d.]+)pt" height="([\d.]+)pt"')
MAX_PICTURE_PIXELS: Final = 50_000_000


def to_typst(row: Row, *, drawn: bool = False) -> str:
    """Write a layout as Typst, without the dollars around it.

    Args:
        row: the formula.
        drawn: whether it is for a picture and not for a person to edit. Then every bracket that is not one of
            `\\left` and `\\right` is escaped, so that it stays as low as TeX would have it.

    Raises:
        FormatError: for what Typst cannot say.
    """
    only = to.unwrapped(row)
    printer = _Printer(pairs=not drawn)
    if isinstance(only, to.Table) and only.environment in to.ALIGNED | {"gathered"} and not only.has_rules:
        lines = [" & ".join(printer.row(cell) for cell in line) for line in only.rows]
        return " \\ ".join(line.strip() for line in lines)
    return printer.row(row)


def draw_svg(row: Row) -> str:
    """Typeset a layout as an SVG of outlines, which needs no font to be shown.

    Raises:
        FormatError: for what Typst cannot say.
        MissingDependencyError: if Typst is not installed.
    """
    return _compile(_PAGE.format(fill="none", formula=to_typst(row, drawn=True)), "svg").decode()


def draw_png(row: Row, *, dpi: int = 300) -> bytes:
    """Typeset a layout as a PNG on white.

    Raises:
        FormatError: for what Typst cannot say, and for a picture of more than `MAX_PICTURE_PIXELS`.
        MissingDependencyError: if Typst is not installed.
    """
    size = _SIZE_PT.search(draw_svg(row))
    width, height = (float(side) * dpi / 72 for side in size.groups()) if size else (0.0, 0.0)
    if width * height > MAX_PICTURE_PIXELS:
        raise FormatError("PNG", f"a formula of {width:.0f} x {height:.0f} pixels")
    return _compile(_PAGE.format(fill="white", formula=to_typst(row, drawn=True)), "png", dpi)


def _compile(source: str, kind: str, dpi: int = 72) -> bytes:
    typst = require_extra("typst", "draw")
    try:
        drawn: bytes = typst.compile(source.encode(), format=kind, ppi=dpi, font_paths=_fonts())
    except typst.TypstError as error:
        raise FormatError(_NAME, f"a formula of which its compiler says: {error}") from error
    return drawn


@cache
def _fonts() -> Any:  # noqa: ANN401 - of a package that may be missing
    """Only the fonts that Typst brings, so that a picture is the same on every machine."""
    return require_extra("typst", "draw").Fonts(include_system_fonts=False)


class _Printer:
    """Prints items; `inside` says that commas would part arguments, `pairs` that some brackets stay bare."""

    def __init__(self, *, pairs: bool = True) -> None:
        self.inside = 0
        self.pairs = pairs

    def row(self, row: Row) -> str:
        """Write items side by side; brackets that Typst would stretch are escaped, unless all is low."""
        pairs = _bare_pairs(row.items) if self.pairs else {}
        inside, held_until = self.inside, 0  # within bare brackets no comma parts arguments
        pieces = []
        for place, item in enumerate(row.items):
            self.inside = 0 if place < held_until else inside
            if written := self.item(item, bare=place in pairs):
                pieces.append(written)
            held_until = max(held_until, pairs.get(place, 0))
        self.inside = inside
        return _joined(pieces)

    def argument(self, item: Item) -> str:
        """Write an argument of a function."""
        self.inside += 1
        written = self.row(Row(to.items_of(item)))
        self.inside -= 1
        return written

    def call(self, name: str, *arguments: Item) -> str:
        """Write a function with its arguments; an empty one is an empty text."""
        return f"{name}({', '.join(self.argument(argument) or EMPTY for argument in arguments)})"

    def item(self, item: Item, *, bare: bool = False) -> str:
        """Write one item."""
        match item:
            case to.Sign():
                return self.sign(item, bare=bare)
            case to.Number(text, font, bold):
                return self.styled(text, "" if font == "rm" else font, bold)
            case to.Word():
                return self.word(item)
            case to.Space(em):
                return next((name for width, name in _SPACES if abs(em - width) < 0.005), f"#h({em:.3g}em)")
            case Row():
                return self.row(item)
            case to.Scripts():
                return self.scripts(item, bare=bare)
            case to.Fraction():
                return self.fraction(item)
            case to.Root(body, index):
                return self.call("sqrt", body) if index is None else self.call("root", index, body)
            case to.Fenced():
                return self.fenced(item)
            case to.Accent():
                return self.accent(item)
            case to.Stretched(text):
                return f"stretch({TYPST_NAMES.get(text, text)}, size: #150%)"
            case to.Enclosed():
                return self.enclosed(item)
            case to.Phantom(body, width, height):
                inner = f"${self.row(Row(to.items_of(body)))}$"
                if not (width and height):
                    inner = f"box({'height' if width else 'width'}: 0pt, {inner})"
                return f"#hide({inner})"
            case to.Styled(body, style):
                return self.call(_STYLES[style], body)
            case to.Table():
                return self.table(item)

    def sign(self, sign: to.Sign, *, bare: bool = False) -> str:
        """Write one sign."""
        text = sign.text
        if (text in _ESCAPED and not bare) or (
            text in _PARTING and (self.inside or text == ":" or sign.bold or sign.font)
        ):
            written = f"\\{text}"
        else:
            written = TYPST_NAMES.get(text, text)
        if sign.size:
            written = f"\\{text}" if text in _OPENING else written
            return f"lr(size: #{_BIG_EM[sign.size]}, {written})"
        if sign.font == "rm" and not sign.bold and not (text.isalpha() and text.isascii()):
            return written  # Greek capitals stand upright by themselves
        return self.styled(written, sign.font, sign.bold)

    def styled(self, written: str, font: str, bold: bool) -> str:
        """Put what was written into an alphabet."""
        if bold:
            written = f"bold({written})"
        return f"{_FUNCTIONS[font]}({written})" if font else written

    def word(self, word: to.Word) -> str:
        """Write an operator by its name, anything else as text."""
        name = word.text.replace(" ", "")
        if TYPST_OPERATORS.get(name) == word.role:
            return name
        if word.role in ("operator", "limits"):
            return f"op({_quoted(word.text)}{', limits: #true' if word.role == 'limits' else ''})"
        written = f"bold({_quoted(word.text)})" if word.bold else _quoted(word.text)
        return written if word.font in ("rm", "") else f"{_FUNCTIONS[word.font]}({written})"

    def scripts(self, node: to.Scripts, *, bare: bool) -> str:
        """Write a base and its scripts."""
        base = to.unwrapped(node.base)
        if isinstance(base, to.Accent) and base.mark in "⏞⏟" and not node.primes:
            note, other = (node.sub, node.sup) if base.under else (node.sup, node.sub)
            if note is not None and other is None:
                return self.call(TYPST_ACCENTS[base.command], base.body, note)
        over = node.placement == "over"
        relation = isinstance(base, to.Stretched) or (
            isinstance(base, to.Sign) and base.text in SHOWN_RELATIONS
        )
        if to.is_blank(base):
            written = EMPTY
        elif over:
            natural = (limits_by_nature(base) or relation) and not _is_a_script(base)
            written = self.item(base) if natural else self.call("limits", base)
        elif _is_a_script(base):
            written = self.call("limits" if limits_by_nature(base) else "scripts", base)
        elif (
            isinstance(base, Row | to.Scripts)
            or relation
            or (node.placement == "side" and limits_by_nature(base))
        ):
            written = self.call("scripts", base)
        else:
            written = self.item(base, bare=bare)
        written += "'" * node.primes
        for mark, script in (("_", node.sub), ("^", node.sup)):
            if script is not None:
                written += mark + self.script(script)
        return written

    def script(self, script: Item) -> str:
        """Write a script: one token as it is, anything else in parentheses, which Typst takes away."""
        inner = to.unwrapped(script)
        if isinstance(inner, to.Table) and inner.environment in ("substack", "subarray"):
            lines = [" ".join(self.row(cell) for cell in line) for line in inner.rows]
            return "(" + " \\ ".join(lines) + ")"
        written = self.row(Row(to.items_of(inner)))
        simple = isinstance(inner, to.Sign | to.Number | to.Word) and (
            written.isalnum() or (written.startswith('"') and isinstance(inner, to.Word))
        )
        return written if simple else f"({written or EMPTY})"

    def fraction(self, node: to.Fraction) -> str:
        """Write a fraction or what stands over one another without a line."""
        if node.line and not node.left and not node.right:
            written = self.call("frac", node.above, node.below)
        elif not node.line and (node.left, node.right) == ("(", ")"):
            written = self.call("binom", node.above, node.below)
        elif not node.line:
            rows = [[Row(to.items_of(node.above))], [Row(to.items_of(node.below))]]
            written = self.matrix(to.Table("matrix", rows, ["c"]), (node.left, node.right))
        else:
            inner: Item = to.Fraction(node.above, node.below)
            written = self.fenced(to.Fenced(node.left, [Row([inner])], [], node.right))
        return f"{_STYLES[node.style]}({written})" if node.style else written

    def fenced(self, node: to.Fenced) -> str:
        """Write fences that stretch."""
        inner = to.unwrapped(node.parts[0])
        if isinstance(inner, to.Table) and len(node.parts) == 1 and inner.environment in ("matrix", "array"):
            return self.matrix(inner, (node.left, node.right))
        if not node.middles and node.left + node.right in ("()", "[]", "{}", "(]", "[)"):
            inside, self.inside = self.inside, 0  # Typst stretches a pair by itself
            written = _joined([node.left, *filter(None, [self.row(node.parts[0])]), node.right])
            self.inside = inside
            return written
        self.inside += 1
        paired = node.left + node.right in _PAIRS
        pieces = [self.fence(node.left, paired=paired), self.row(node.parts[0])]
        for middle, part in zip(node.middles, node.parts[1:], strict=True):
            pieces += [f"mid({self.fence(middle)})" if middle else "", self.row(part)]
        pieces.append(self.fence(node.right, paired=paired))
        self.inside -= 1
        return f"lr({' '.join(filter(None, pieces))})"

    def fence(self, text: str, *, paired: bool = False) -> str:
        """Write one delimiter; Typst waits for the partner of one that opens, so that is told to be alone."""
        if not text:
            return ""
        return f"\\{text}" if text in _OPENING and not paired else self.sign(to.Sign(text))

    def accent(self, node: to.Accent) -> str:
        """Write a mark over or under something."""
        if _is_a_script(node):
            place, mark = "_" if node.under else "^", TYPST_NAMES.get(node.mark, node.mark)
            return f"{self.call('limits', node.body)}{place}(stretch({mark}))"
        return self.call(TYPST_ACCENTS[node.command], node.body)

    def enclosed(self, node: to.Enclosed) -> str:
        """Write a frame or a strike."""
        if node.how == "box":
            body = self.argument(node.body)
            return f"#box(stroke: 0.5pt, inset: 0.3em, baseline: 0.3em, $display({body})$)"
        option = {"up": "", "down": ", inverted: #true", "cross": ", cross: #true"}[node.how]
        return f"cancel({self.argument(node.body)}{option})"

    def table(self, table: to.Table) -> str:
        """Write a table that has no fences around it but its own."""
        if table.environment in to.BUILT_IN_FENCES and not table.has_rules:
            self.inside += 1
            rows = [
                f"& {' quad & & '.join(self.row(cell) for cell in row)}" if len(row) > 1 else self.row(row[0])
                for row in table.rows
            ]
            self.inside -= 1
            option = "reverse: #true, " if table.environment == "rcases" else ""
            return f"cases({option}{', '.join(row or EMPTY for row in rows)})"
        written = self.matrix(table, ("", ""))
        return f"script({written})" if table.environment in to.SMALL else written

    def matrix(self, table: to.Table, fences: tuple[str, str]) -> str:
        """Write a matrix in fences; columns that are not centred stand at an alignment point."""
        self.inside += 1
        if not _NOT_AROUND_MATRICES.isdisjoint(fences):
            pieces = [self.fence(fences[0]), self.matrix(table, ("", "")), self.fence(fences[1])]
            self.inside -= 1
            return f"lr({' '.join(filter(None, pieces))})"
        rows = [
            [_aligned(self.row(cell), column) for cell, column in zip(row, table.columns, strict=True)]
            for row in table.rows
        ]
        self.inside -= 1
        options = [f"delim: {_delim(*fences)}"]
        if table.has_rules:
            options.append(_augment(table))
        if table.environment in to.ALIGNED:
            options.append("column-gap: #0em")
        written = " ; ".join(", ".join(cell or EMPTY for cell in row) for row in rows)
        return f"mat({', '.join([*options, written])})"


EMPTY: Final = '""'
_NOT_AROUND_MATRICES: Final = frozenset("/\\↑↓↕⇑⇓⇕⎪")  # its `mat` takes brackets and bars only


def _is_a_script(item: Item) -> bool:
    """Whether an accent is one that Typst has no function for, such as an arrow under something."""
    return isinstance(item, to.Accent) and item.command not in TYPST_ACCENTS


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _aligned(cell: str, column: str) -> str:
    return {"l": f"& {cell}", "r": f"{cell} &"}.get(column, cell) if cell else cell


def _delim(left: str, right: str) -> str:
    if not left and not right:
        return "#none"
    if (left, right) in (("(", ")"), ("[", "]"), ("{", "}"), ("|", "|"), ("‖", "‖")):
        return f'"{left}"'
    one, other = (f'"{fence}"' if fence else "none" for fence in (left, right))
    return f"#({one}, {other})"


def _augment(table: to.Table) -> str:
    """Write the rules of a matrix; Typst draws them between rows and columns only."""
    outer_lines = table.lines_before & {0, len(table.columns)}
    outer_rules = table.rules_above & {0, len(table.rows)}
    if outer_lines or outer_rules:
        raise FormatError(_NAME, "a rule around a table (\\hline or | at its edge)")
    parts = []
    for name, places in (("hline", table.rules_above), ("vline", table.lines_before)):
        if places:
            parts.append(f"{name}: ({', '.join(map(str, sorted(places)))},)")
    return f"augment: #({', '.join(parts)})"


def _joined(pieces: list[str]) -> str:
    """Set pieces apart by spaces, except where a person would not and Typst does not care."""
    written = ""
    for place, piece in enumerate(pieces):
        previous = pieces[place - 1] if place else ""
        close = (
            not place
            or previous in ("(", "[", "{")
            or piece[0] in ")]},"
            or (piece in ("(", "[") and len(previous) == 1 and previous.isalpha())
            or _is_at_bar(previous[-1], piece[0])
        )
        written += f" {piece}" if not close or (place and _are_one_sign(previous[-1], piece[0])) else piece
    return written


def _is_at_bar(before: str, after: str) -> bool:
    """Whether two characters meet at a bar, around which Typst would set the space that it is given."""
    return after in "|‖" or before in "|‖"


def _are_one_sign(before: str, after: str) -> bool:
    """Whether two characters that touch are another sign, as a bar and a bracket are."""
    return (before in "|[" and after == "|") or (before == "|" and after in "]->=.")


def _bare_pairs(items: list[Item]) -> dict[int, int]:
    """Find the pairs of brackets that hold nothing tall, so that stretching them changes nothing.

    Returns:
        the place of each of their brackets, with the place of the one that closes its pair.
    """
    bare: dict[int, int] = {}
    opened: list[tuple[int, int]] = []  # the place of a bracket, and how many tall items stand before it
    tall = 0
    for place, item in enumerate(items):
        sign = item.base if isinstance(item, to.Scripts) else item
        if isinstance(sign, to.Sign) and sign.text in _BRACKETS and not sign.size:
            if sign.text in "([" and sign is item:
                opened.append((place, tall))
            elif sign.text in ")]" and opened:
                start, tall_before = opened.pop()
                if tall == tall_before and len(opened) < _NESTED_PAIRS:
                    bare[start] = bare[place] = place
        tall += not _is_low(item)
    return bare


def _is_low(item: Item) -> bool:
    if isinstance(item, to.Scripts):
        return item.placement == "auto" and all(
            part is None or _is_low(part) for part in (item.base, item.sub, item.sup)
        )
    if isinstance(item, Row):
        return all(map(_is_low, item.items))
    if isinstance(item, to.Sign):
        return item.kind != "large" and not item.size
    return isinstance(item, to.Number | to.Word | to.Space)
