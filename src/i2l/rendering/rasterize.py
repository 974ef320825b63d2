"""PDF pages to grey pixels, cropped to ink, at any dpi and angle. pdfium bears no threads: use processes."""

import ctypes
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from i2l.errors import require_extra
from i2l.rendering import EMPTY, TOO_LARGE
from i2l.rendering.photo import Warp

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
