"""The pixels that a glyph covers, asked from the rasteriser itself and remembered.

pdfium draws a glyph always as the same bitmap and puts it at the nearest whole pixel. So one picture of the
glyph alone tells, relative to its rounded origin, exactly which box it fills anywhere at that size and angle.
"""

import math
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from typing import Final, Self

from i2l.images.pdf_ink import Glyph, PdfInk
from i2l.images.rasterize import Matrix, PageImage, open_pdf, rasterize_page

Box = tuple[int, int, int, int]  # left, top, right, bottom in pixels, half-open
Shape = tuple[str, int, str, float, float, float]  # font, code, name, size, stretch, slant

# The room of a glyph around its origin, in ems: the largest delimiters hang three ems down or stand two high.
_LEFT, _RIGHT, _UP, _DOWN = 2, 4, 4, 4
_MAX_REMEMBERED: Final = 200_000

_remembered: dict[tuple[float, float], dict[Shape, Box | None]] = {}


class GlyphMeter:
    """Measures the glyphs of one PDF. A context: a document of one-glyph pages stays open meanwhile."""

    def __init__(self, ink: PdfInk, glyphs: Iterable[Glyph]) -> None:
        shapes = {shape_of(glyph): glyph for glyph in glyphs}
        self._page_of = {shape: page for page, shape in enumerate(shapes)}
        self._stack = ExitStack()
        self._document = self._stack.enter_context(open_pdf(_one_glyph_pages(ink, list(shapes.values()))))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def boxes(self, shapes: set[Shape], *, dpi: float, rotation_deg: float = 0.0) -> dict[Shape, Box | None]:
        """The boxes of glyphs, relative to the pixel of their origin; None for one without ink."""
        if sum(map(len, _remembered.values())) > _MAX_REMEMBERED:
            _remembered.clear()
        known = _remembered.setdefault((dpi, rotation_deg), {})
        for shape in shapes - known.keys():
            page = self._page_of[shape]
            image = rasterize_page(self._document, page, dpi=dpi, rotation_deg=rotation_deg)
            known[shape] = _relative_box(image, size=shape[3])
        return known


def shape_of(glyph: Glyph) -> Shape:
    """What glyphs of the same bitmap have in common."""
    return glyph.font, glyph.code, glyph.shape, glyph.size, glyph.stretch, glyph.slant


def origin_pixels(glyphs: Sequence[Glyph], matrix: Matrix) -> list[tuple[int, int]]:
    """The pixels that pdfium puts the origins of the glyphs of one run at.

    It rounds each, and then, from the right, moves a glyph that came too near to the next one by a pixel.
    """
    exact = [transform(glyph.x, glyph.y, matrix) for glyph in glyphs]
    rounded = [[math.floor(column + 0.5), math.floor(row + 0.5)] for column, row in exact]
    axis = 1 if rounded[0][0] == rounded[-1][0] else 0
    if axis == 1 or rounded[0][1] == rounded[-1][1]:
        for index in range(len(glyphs) - 2, 0, -1):
            space = rounded[index + 1][axis] - rounded[index][axis]
            if abs(exact[index + 1][axis] - exact[index][axis]) - abs(space) > 0.5:
                rounded[index][axis] -= 1 if space > 0 else -1
    return [(column, row) for column, row in rounded]


def transform(x: float, y: float, matrix: Matrix) -> tuple[float, float]:
    """Column and row of a point of the page."""
    a, b, c, d, e, f = matrix
    return a * x + c * y + e, b * x + d * y + f


def _relative_box(image: PageImage, size: float) -> Box | None:
    if image.pixels is None:
        return None
    column, row = (math.floor(place + 0.5) for place in transform(_LEFT * size, _DOWN * size, image.matrix))
    height, width = image.pixels.shape
    return -column, -row, width - column, height - row


def _one_glyph_pages(ink: PdfInk, glyphs: list[Glyph]) -> bytes:
    """The PDF with other pages, one for each glyph: an update appended to it, with a catalog of its own."""
    pages = ink.num_objects
    objects = {
        ink.root: f"<< /Type /Catalog /Pages {pages} 0 R >>",
        pages: f"<< /Type /Pages /Count {len(glyphs)} /Kids ["
        + " ".join(f"{pages + 1 + 2 * index} 0 R" for index in range(len(glyphs)))
        + "] >>",
    }
    for index, glyph in enumerate(glyphs):
        number = pages + 1 + 2 * index
        size = glyph.size
        origin = f"{_LEFT * size:.4f} {_DOWN * size:.4f}"
        content = f"BT /F {size} Tf {glyph.stretch} 0 {glyph.slant} 1 {origin} Tm <{glyph.code:02x}> Tj ET"
        objects[number] = (
            f"<< /Type /Page /Parent {pages} 0 R /Contents {number + 1} 0 R"
            f" /Resources << /Font << /F {ink.font_objects[glyph.resource]} 0 R >> >>"
            f" /MediaBox [0 0 {math.ceil((_LEFT + _RIGHT) * size)} {math.ceil((_DOWN + _UP) * size)}] >>"
        )
        objects[number + 1] = f"<< /Length {len(content)} >>\nstream\n{content}\nendstream"
    body = bytearray(ink.pdf + b"\n")
    table = ["xref"]
    for number, text in sorted(objects.items()):
        table += [f"{number} 1", f"{len(body):010d} 00000 n "]
        body += f"{number} 0 obj\n{text}\nendobj\n".encode()
    start = len(body)
    trailer = f"trailer << /Size {max(objects) + 1} /Root {ink.root} 0 R /Prev {ink.start} >>"
    body += "\n".join([*table, trailer, f"startxref\n{start}\n%%EOF\n"]).encode()
    return bytes(body)
