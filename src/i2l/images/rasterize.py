"""PDF pages to grey pixels, cropped to ink, at any dpi and a slight angle. pdfium, no threads."""

import ctypes
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from i2l.errors import require_extra

if TYPE_CHECKING:
    from pypdfium2 import PdfDocument

Pixels = npt.NDArray[np.uint8]

WHITE: Final = 255
MAX_PIXELS: Final = 1 << 28


@dataclass(frozen=True)
class PageImage:
    """The ink of a page, and how PDF coordinates map to its pixels: (x, y) -> matrix @ (x, y, 1)."""

    pixels: Pixels | None  # None: no ink
    matrix: tuple[float, float, float, float, float, float]  # a b c d e f: column = a x + c y + e


def rasterize_pages(
    pdf: bytes, pages: Sequence[int], *, dpi: float, rotation_deg: float = 0.0
) -> Iterator[PageImage]:
    """Draw ``pages`` (counted from 0) of a PDF, each cropped to its ink.

    pdfium is not thread-safe: use processes, each with its own document.

    Raises:
        MissingDependencyError: if pypdfium2 is not installed.
    """
    pdfium = require_extra("pypdfium2", "data")
    document = pdfium.PdfDocument(pdf)
    try:
        for page in pages:
            yield _rasterize(pdfium.raw, document, page, dpi=dpi)
    finally:
        document.close()


def _rasterize(raw: ModuleType, document: "PdfDocument", number: int, *, dpi: float) -> PageImage:
    page = raw.FPDF_LoadPage(document.raw, number)
    try:
        scale = dpi / 72
        width_bp, height_bp = raw.FPDF_GetPageWidthF(page), raw.FPDF_GetPageHeightF(page)
        width, height = math.ceil(width_bp * scale), math.ceil(height_bp * scale)
        if width * height > MAX_PIXELS:
            raise ValueError(f"page {number} has {width} x {height} pixels")
        pixels = np.full((height, width), WHITE, dtype=np.uint8)
        bitmap = raw.FPDFBitmap_CreateEx(
            width, height, raw.FPDFBitmap_Gray, pixels.ctypes.data_as(ctypes.c_void_p), width
        )
        # y counts from the top here; keep the lower edge on a pixel corner, as the baseline hangs on it.
        shift = height - height_bp * scale
        matrix = raw.FS_MATRIX(scale, 0, 0, scale, 0, shift)
        clip = raw.FS_RECTF(0, 0, width, height)
        raw.FPDF_RenderPageBitmapWithMatrix(bitmap, page, matrix, clip, 0)
        raw.FPDFBitmap_Destroy(bitmap)
    finally:
        raw.FPDF_ClosePage(page)
    box = ink_box(pixels)
    if box is None:
        return PageImage(None, (scale, 0, 0, -scale, 0, height))
    left, top, right, bottom = box
    return PageImage(pixels[top:bottom, left:right].copy(), (scale, 0, 0, -scale, -left, height - top))


def ink_box(pixels: Pixels) -> tuple[int, int, int, int] | None:
    """Left, top, right, bottom (half-open) of all that is not white."""
    rows = np.flatnonzero(pixels.min(axis=1, initial=WHITE) < WHITE)
    if not rows.size:
        return None
    columns = np.flatnonzero(pixels[rows[0] : rows[-1] + 1].min(axis=0) < WHITE)
    return int(columns[0]), int(rows[0]), int(columns[-1]) + 1, int(rows[-1]) + 1
