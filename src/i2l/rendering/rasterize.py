"""PDF pages to grey pixels, and what our own pages draw: every glyph and rule, for which token.

Pixels are cropped to ink, at any dpi and angle. pdfium bears no threads: use processes.

The reader of PDFs knows only what pdfTeX writes with compression off: the classic cross-reference table,
plain content streams, `TJ` for text, thin strokes or filled rectangles for rules, and the `/<number> MP`
marks of our template.

pdfium draws a glyph always as the same bitmap and puts it at the nearest whole pixel. So one picture of the
glyph alone, which is asked for once and remembered, tells exactly which box it fills anywhere at that size
and angle, relative to its rounded origin.
"""

import ctypes
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from i2l.errors import require_extra
from i2l.rendering import EMPTY, TOO_LARGE
from i2l.rendering.styles import Warp

if TYPE_CHECKING:
    from pypdfium2 import PdfDocument

Pixels = npt.NDArray[np.uint8]
Matrix = tuple[float, float, float, float, float, float]  # a b c d e f, as in PDF: (ax + cy + e, bx + dy + f)

WHITE: Final = 255
_MAX_PIXELS: Final = 1 << 26
# pdfium puts glyphs on whole pixels. TeX's coordinates are thousandths of a point, at common dpi often exact
# half pixels: moved by a trifle, no rounding error decides to which side such a glyph goes.
_NUDGE: Final = 1 / 1024


@dataclass(frozen=True)
class PageImage:
    """The ink of a page, and where points of the page went."""

    pixels: Pixels | None  # grey, 255 is white; None if there is a reason
    matrix: Matrix  # from PDF coordinates to column and row, of the page as it was drawn
    reason: str | None = None  # empty: no ink; too-large: too many pixels, or ink over the edge of the page
    warp: Warp | None = None  # from there to the pixels, if a camera came in between


@contextmanager
def open_pdf(pdf: bytes) -> Iterator["PdfDocument"]:
    """Open a PDF for `rasterize_page`.

    Raises:
        MissingDependencyError: if pypdfium2 is not installed.
    """
    document = require_extra("pypdfium2", "data").PdfDocument(pdf)
    try:
        yield document
    finally:
        document.close()


def rasterize_page(
    document: "PdfDocument", number: int, *, dpi: float, rotation_deg: float = 0.0
) -> PageImage:
    """Draw a page (counted from 0), turned counter-clockwise, and crop it to its ink."""
    raw = require_extra("pypdfium2.raw", "data")
    page = raw.FPDF_LoadPage(document.raw, number)
    try:
        # pdfium scales by the whole part of the size; our pages are whole.
        width_bp, height_bp = int(raw.FPDF_GetPageWidthF(page)), int(raw.FPDF_GetPageHeightF(page))
        scale, angle = dpi / 72, math.radians(rotation_deg)
        cos, sin = scale * math.cos(angle), scale * math.sin(angle)
        width = math.ceil(width_bp * cos + height_bp * abs(sin))
        height = math.ceil(height_bp * cos + width_bp * abs(sin))
        # The corner that becomes the lowest (the lower left one, without rotation) keeps on a pixel corner.
        left = max(0.0, -sin * height_bp) + _NUDGE
        top = height - height_bp * cos - max(0.0, -sin * width_bp) + _NUDGE
        matrix = (cos, -sin, -sin, -cos, left + sin * height_bp, top + cos * height_bp)
        if width * height > _MAX_PIXELS:
            return PageImage(None, matrix, TOO_LARGE)
        pixels = np.full((height, width), WHITE, dtype=np.uint8)
        buffer = pixels.ctypes.data_as(ctypes.c_void_p)
        bitmap = raw.FPDFBitmap_CreateEx(width, height, raw.FPDFBitmap_Gray, buffer, width)
        downward = raw.FS_MATRIX(cos, -sin, sin, cos, left, top)
        clip = raw.FS_RECTF(0, 0, width, height)
        raw.FPDF_RenderPageBitmapWithMatrix(bitmap, page, downward, clip, 0)
        raw.FPDFBitmap_Destroy(bitmap)
    finally:
        raw.FPDF_ClosePage(page)
    return _crop(pixels, matrix)


def rasterize_pages(
    pdf: bytes, pages: Sequence[int], *, dpi: float, rotation_deg: float = 0.0
) -> Iterator[PageImage]:
    """Draw pages (counted from 0) of a PDF, each turned and cropped to its ink.

    Raises:
        MissingDependencyError: if pypdfium2 is not installed.
    """
    if pages:
        with open_pdf(pdf) as document:
            for page in pages:
                yield rasterize_page(document, page, dpi=dpi, rotation_deg=rotation_deg)


def _crop(pixels: Pixels, matrix: Matrix) -> PageImage:
    box = ink_box(pixels)
    if box is None:
        return PageImage(None, matrix, EMPTY)
    left, top, right, bottom = box
    if left == 0 or top == 0 or bottom == pixels.shape[0] or right == pixels.shape[1]:
        return PageImage(None, matrix, TOO_LARGE)
    a, b, c, d, e, f = matrix
    return PageImage(pixels[top:bottom, left:right].copy(), (a, b, c, d, e - left, f - top))


def ink_box(pixels: Pixels) -> tuple[int, int, int, int] | None:
    """Return left, top, right and bottom (half-open) of all that is not white."""
    rows = np.flatnonzero(pixels.min(axis=1, initial=WHITE) < WHITE)
    if not rows.size:
        return None
    columns = np.flatnonzero(pixels[rows[0] : rows[-1] + 1].min(axis=0, initial=WHITE) < WHITE)
    return int(columns[0]), int(rows[0]), int(columns[-1]) + 1, int(rows[-1]) + 1


_REFERENCE: Final = rb"(\d+) 0 R"
_NUMBER: Final = rb"(-?[\d.]+)"
_OPERATIONS: Final = (
    rb"\[((?:[^\[\]()]|\((?:[^\\()]|\\.)*\))*)\]TJ",
    rb"/(\w+) N Tf",
    rb"N N Td",
    rb"/(\d+) MP",
    rb"(BT)",
    rb"N N N N N N (Tm)",
    rb"N N N N N N cm",
    rb"N w N N m N N l S",
    rb"N N N N re f",
)
_OPERATION: Final = re.compile(b"|".join(_OPERATIONS).replace(b"N", _NUMBER), re.DOTALL)
# The last group of each kind of operation, which is what tells them apart.
_TEXT, _SELECT, _MOVE, _MARK, _BEGIN, _TEXT_MATRIX, _TRANSLATE, _STROKE, _FILL = 1, 3, 5, 6, 7, 14, 20, 25, 29
_TEXT_PART: Final = re.compile(rb"\(((?:[^\\()]|\\.)*)\)|" + _NUMBER, re.DOTALL)
_ESCAPE: Final = re.compile(rb"\\([0-7]{3}|.)", re.DOTALL)


class Glyph(NamedTuple):
    """One character of a font, with the matrix from its em square to the page."""

    token: int | None  # of the mark before it
    font: str  # PostScript name
    code: int
    shape: str  # what the font draws for the code: two fonts of one name may be encoded differently
    resource: str  # name of the font in this PDF
    size: float
    stretch: float  # 1, but for a font that TeX makes narrower or wider ...
    slant: float  # ... or oblique
    x: float
    y: float
    run: int  # where the text operator that shows it stands


class Rule(NamedTuple):
    """A rectangle, in PDF coordinates."""

    token: int | None
    stroked: bool  # else filled
    left: float
    bottom: float
    right: float
    top: float


Ink = Glyph | Rule


@dataclass(frozen=True)
class _Font:
    name: str
    first: int
    widths: list[int]  # whole thousandths: so pdfium reads them
    shapes: dict[int, str]  # names of re-encoded characters


_NO_FONT: Final = _Font("", 0, [], {})


class PdfInk:
    """A PDF made by the template, read page by page."""

    def __init__(self, pdf: bytes) -> None:
        self.pdf = pdf
        self.start = int(pdf[pdf.rindex(b"startxref") + 9 :].split()[0])  # of the cross-reference table
        table = pdf[self.start :]
        self._offsets = [int(entry) for entry in re.findall(rb"^(\d{10}) \d{5} [nf]", table, re.MULTILINE)]
        root = re.search(rb"/Root " + _REFERENCE, table)
        assert root is not None
        self.root = int(root[1])
        self._pages = self._leaves(self._reference(self.root, b"/Pages"))

    @property
    def num_objects(self) -> int:
        """The number of objects, which is the first number that is free."""
        return len(self._offsets)

    def __len__(self) -> int:
        return len(self._pages)

    def page(self, number: int) -> list[Ink]:
        """Read what a page (counted from 0) draws, in order."""
        contents = self._offsets[self._reference(self._pages[number], b"/Contents")]
        start = self.pdf.index(b"stream\n", contents) + 7
        length = int(re.search(rb"/Length (\d+)", self.pdf[contents:start])[1])  # type: ignore[index]
        return _read_content(self.pdf[start : start + length], self._fonts)

    def _object(self, number: int) -> bytes:
        offset = self._offsets[number]
        return self.pdf[offset : self.pdf.index(b"endobj", offset)]

    def _reference(self, number: int, key: bytes) -> int:
        match = re.search(key + b" " + _REFERENCE, self._object(number))
        assert match is not None, f"object {number} has no {key.decode()}"
        return int(match[1])

    def _leaves(self, number: int) -> list[int]:
        kids = re.search(rb"/Kids \[(.*?)\]", self._object(number), re.DOTALL)
        if kids is None:
            return [number]
        return [leaf for kid in re.findall(_REFERENCE, kids[1]) for leaf in self._leaves(int(kid))]

    @cached_property
    def font_objects(self) -> dict[str, int]:
        """The object of each font by its name in the pages; pdfTeX uses one name for all pages."""
        found: dict[str, int] = {}
        for page in self._pages:
            resources = self._object(self._reference(page, b"/Resources"))
            for name, number in re.findall(rb"/(F\d+) " + _REFERENCE, resources):
                found[name.decode()] = int(number)
        return found

    @cached_property
    def _fonts(self) -> dict[str, _Font]:
        return {name: self._font(number) for name, number in self.font_objects.items()}

    def _font(self, number: int) -> _Font:
        entry = self._object(number)
        name = re.search(rb"/BaseFont /(?:[A-Z]{6}\+)?(\S+)", entry)
        first = re.search(rb"/FirstChar (\d+)", entry)
        assert name is not None
        assert first is not None
        widths = self._object(self._reference(number, b"/Widths")).partition(b"[")[2].split(b"]")[0]
        encoding = re.search(rb"/Encoding " + _REFERENCE, entry)
        return _Font(
            name[1].decode(),
            int(first[1]),
            [int(float(width)) for width in widths.split()],
            _read_differences(self._object(int(encoding[1]))) if encoding else {},
        )


def _read_differences(encoding: bytes) -> dict[int, str]:
    shapes: dict[int, str] = {}
    code = 0
    for number, name in re.findall(rb"(\d+)|/([^\s/\[\]]+)", encoding.partition(b"/Differences")[2]):
        if number:
            code = int(number)
        else:
            shapes[code] = name.decode()
            code += 1
    return shapes


def _read_content(content: bytes, fonts: dict[str, _Font]) -> list[Ink]:
    """Follow the operators of a content stream. Only translations and slants occur."""
    ink: list[Ink] = []
    token: int | None = None
    font, resource, size, stretch, slant = _NO_FONT, "", 0.0, 1.0, 0.0
    x = y = line_x = line_y = shift_x = shift_y = 0.0
    for operation in _OPERATION.finditer(content):
        kind = operation.lastindex
        if kind == _TEXT:
            run = operation.start()
            for string, kern in _TEXT_PART.findall(operation[1]):
                if kern:
                    x -= float(kern) * size * stretch / 1000
                for code in _unescape(string):
                    shape = font.shapes.get(code, "")
                    ink.append(
                        Glyph(token, font.name, code, shape, resource, size, stretch, slant, x, y, run)
                    )
                    x += font.widths[code - font.first] * size * stretch / 1000
        elif kind == _MOVE:
            # in single precision, as pdfium adds them: it decides to which side a half pixel is rounded
            line_x, line_y = _single(line_x + float(operation[4])), _single(line_y + float(operation[5]))
            x, y = line_x, line_y
        elif kind == _SELECT:
            resource, size = operation[2].decode(), float(operation[3])
            font = fonts[resource]
        elif kind == _MARK:
            token = int(operation[6])
        elif kind == _BEGIN:
            line_x = line_y = x = y = slant = 0.0
            stretch = 1.0
        elif kind == _TEXT_MATRIX:
            stretch, slant = float(operation[8]), float(operation[10])
            line_x, line_y = x, y = float(operation[12]), float(operation[13])
        elif kind == _TRANSLATE:
            shift_x, shift_y = float(operation[19]), float(operation[20])
        elif kind == _STROKE:
            width, x0, y0, x1, y1 = map(float, operation.group(21, 22, 23, 24, 25))
            across_x, across_y = (0, width / 2) if y0 == y1 else (width / 2, 0)
            box = (x0 - across_x, y0 - across_y, x1 + across_x, y1 + across_y)
            ink.append(_rule(token, True, box, shift_x, shift_y))
        elif kind == _FILL:
            x0, y0, width, height = map(float, operation.group(26, 27, 28, 29))
            ink.append(_rule(token, False, (x0, y0, x0 + width, y0 + height), shift_x, shift_y))
    return ink


def _rule(
    token: int | None, stroked: bool, box: tuple[float, float, float, float], shift_x: float, shift_y: float
) -> Rule:
    left, bottom, right, top = box
    return Rule(token, stroked, left + shift_x, bottom + shift_y, right + shift_x, top + shift_y)


def _single(number: float) -> float:
    return ctypes.c_float(number).value


@lru_cache(maxsize=4096)
def _unescape(string: bytes) -> bytes:
    if b"\\" not in string:
        return string
    return _ESCAPE.sub(lambda match: bytes([int(match[1], 8)]) if len(match[1]) == 3 else match[1], string)


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
        """Return the boxes of glyphs, relative to the pixel of their origin; None for one without ink."""
        if sum(map(len, _remembered.values())) > _MAX_REMEMBERED:
            _remembered.clear()
        known = _remembered.setdefault((dpi, rotation_deg), {})
        for shape in shapes - known.keys():
            page = self._page_of[shape]
            image = rasterize_page(self._document, page, dpi=dpi, rotation_deg=rotation_deg)
            known[shape] = _relative_box(image, size=shape[3])
        return known


def shape_of(glyph: Glyph) -> Shape:
    """Return what glyphs of the same bitmap have in common."""
    return glyph.font, glyph.code, glyph.shape, glyph.size, glyph.stretch, glyph.slant


def origin_pixels(glyphs: Sequence[Glyph], matrix: Matrix) -> list[tuple[int, int]]:
    """Return the pixels at which pdfium puts the origins of the glyphs of one run.

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
    """Return the column and row of a point of the page."""
    a, b, c, d, e, f = matrix
    return a * x + c * y + e, b * x + d * y + f


def _relative_box(image: PageImage, size: float) -> Box | None:
    if image.pixels is None:
        return None
    column, row = (math.floor(place + 0.5) for place in transform(_LEFT * size, _DOWN * size, image.matrix))
    height, width = image.pixels.shape
    return -column, -row, width - column, height - row


def _one_glyph_pages(ink: PdfInk, glyphs: list[Glyph]) -> bytes:
    """Write the PDF with one page for each glyph instead: an update is appended, with its own catalog."""
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
