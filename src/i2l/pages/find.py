"""Where the formulas of a page are: from a picture to boxes, by a small network and the ink itself.

The network (`i2l.pages.train`) sees the ink of the page, made so large that letters have a known height, and
says for each cell what it is part of; `i2l.pages.gather` puts the ink together to formulas accordingly.

A page that was photographed or scanned askew is straightened first, by the lines of its own ink.
"""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from i2l.errors import I2LError
from i2l.files import find_damage
from i2l.images.ink import extract_ink, measure_pieces
from i2l.images.open import EmptyImageError
from i2l.pages.gather import CELL_PX, FoundPage, Gathering, GlyphHints, PageInk
from i2l.pages.order import Found
from i2l.pages.shapes import find_characters

DETECTOR_FILE: Final = "detector.onnx"
DETECTOR_FOLDER: Final = Path(__file__).parent.parent / "models" / "detector"

# What the network sees.
SYMBOL_PX: Final = 7.0  # height of small letters where a network looks that does not say another one
SYMBOL_KEY: Final = "symbol_px"  # by which it says so, in its ONNX file
MULTIPLE_PX: Final = 32  # sides of its input are multiples of this
_BAND_PX: Final = 1536  # rows that it sees at once; more would take much memory
_OVERLAP_PX: Final = 192  # rows of one band that the next one sees again
_MAX_WORK_PIXELS: Final = 16_000_000  # of the picture, else it is made smaller

# Pieces of ink.
_DARK: Final = 110  # ink at least this dark makes pieces
_FAINT: Final = 64  # where type is small, since a thin stroke between two pixels is faint in both
_SMALL_PX: Final = 10.5
_MIN_SYMBOLS: Final = 3
_MIN_LETTER_PX: Final = 2.5  # smaller letters cannot be told from each other
_MAX_PIECES: Final = 60_000
_LETTER_IN_CHARACTER: Final = 0.45  # height of small letters beside square characters, in their height


def symbol_height(boxes: NDArray[Any]) -> float | None:
    """Return the height of small letters from the boxes of pieces of ink; None if there are too few."""
    heights = boxes[:, 3] - boxes[:, 1]
    widths = boxes[:, 2] - boxes[:, 0]
    letters = heights[(heights >= 3) & (widths >= 2) & (widths < 12 * heights)]
    if len(letters) < _MIN_SYMBOLS:
        return None
    letters = letters[letters >= 0.35 * np.median(letters)]
    return float(np.median(letters))


def find_ink(image: Image.Image) -> PageInk | None:
    """Find the ink of a page and its pieces; None if there is nothing that could be letters."""
    try:
        ink = extract_ink(image)
    except EmptyImageError:
        return None
    dark = ink >= _DARK
    if np.count_nonzero(dark[:, 1:] & ~dark[:, :-1]) > 40 * _MAX_PIECES:
        return None  # grain all over
    pieces, _ = measure_pieces(dark)
    symbol_px = symbol_height(pieces)
    if symbol_px is None or len(pieces) > _MAX_PIECES:
        return None
    return PageInk(ink, pieces, symbol_px)


def reduce_page(
    image: Image.Image, hints: GlyphHints | None
) -> tuple[PageInk | None, GlyphHints | None, int]:
    """Find the ink of a page, made smaller by a whole factor if it is very large.

    Returns:
        The ink, as from `find_ink`; the hints for it; the factor.
    """
    factor = max(1, math.ceil(math.sqrt(image.width * image.height / _MAX_WORK_PIXELS)))
    if factor > 1:
        image = (image if image.mode in ("L", "RGB", "RGBA") else image.convert("RGB")).reduce(factor)
        hints = None if hints is None else hints.reduced(factor)
    page = find_ink(image)
    if page is None:
        return None, hints, factor
    characters, height_px = find_characters(page.ink, page.pieces, page.symbol_px)
    if len(characters):
        page = replace(page, symbol_px=_LETTER_IN_CHARACTER * height_px, characters=characters)
    if page.symbol_px < _SMALL_PX:
        pieces, _ = measure_pieces(page.ink >= _FAINT)
        if len(pieces) <= _MAX_PIECES:
            page = replace(page, pieces=pieces)
    return page, hints, factor


class Detector:
    """Finds formulas on pictures of pages. Threads may share one."""

    def __init__(self, folder: Path = DETECTOR_FOLDER, *, threads: int | None = None) -> None:
        """Load the network.

        Args:
            folder: that has the model; the one in the box if none is given.
            threads: of one call; all processors if None.

        Raises:
            I2LError: if the model is not there or damaged.
        """
        import onnxruntime

        if not (folder / DETECTOR_FILE).is_file():
            raise I2LError(f"There is no {DETECTOR_FILE} in {folder}; install the package again.")
        if damage := find_damage(folder, [DETECTOR_FILE]):
            raise I2LError(damage)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads or 0
        options.log_severity_level = 3
        options.enable_cpu_mem_arena = False  # pages have many sizes: the arena would keep room for each
        self._session = onnxruntime.InferenceSession(
            folder / DETECTOR_FILE, options, providers=["CPUExecutionProvider"]
        )
        said = self._session.get_modelmeta().custom_metadata_map
        self._symbol_px = float(said.get(SYMBOL_KEY, SYMBOL_PX))

    def find(self, image: Image.Image, hints: GlyphHints | None = None) -> FoundPage:
        """Find the formulas of a straight page.

        Args:
            image: the page.
            hints: what a PDF says of its glyphs; they outvote the picture where they are clear.
        """
        page, hints, reduced = reduce_page(image, hints)
        if page is None:
            return FoundPage()
        found = self.find_in(page, hints)
        return _enlarged(found, reduced) if reduced > 1 else found

    def find_in(self, page: PageInk, hints: GlyphHints | None = None) -> FoundPage:
        """Find the formulas in the ink of a page."""
        if page.symbol_px < _MIN_LETTER_PX:
            return FoundPage()
        return Gathering(page, self.look(page), hints, self._symbol_px).found

    def look(self, page: PageInk) -> NDArray[np.float32]:
        """Return what the network says of each cell: (8, rows, columns), regions first, then whose ink."""
        factor = self._symbol_px / page.symbol_px
        height, width = (max(1, round(side * factor)) for side in page.ink.shape)
        method = Image.Resampling.BOX if factor < 1 else Image.Resampling.BILINEAR
        ink = np.asarray(Image.fromarray(page.ink).resize((width, height), method))
        rows, columns = -(-height // MULTIPLE_PX) * MULTIPLE_PX, -(-width // MULTIPLE_PX) * MULTIPLE_PX
        padded = np.zeros((rows, columns), np.float32)
        padded[:height, :width] = ink / np.float32(255)
        parts: list[NDArray[np.float32]] = []
        top = 0
        while True:
            bottom = min(rows, top + _BAND_PX)
            (cells,) = self._session.run(None, {"ink": padded[None, None, top:bottom]})
            first = 0 if top == 0 else _OVERLAP_PX // 2 // CELL_PX
            last = None if bottom == rows else -(_OVERLAP_PX // 2 // CELL_PX)
            parts.append(cells[0, :, first:last])
            if bottom == rows:
                break
            top = bottom - _OVERLAP_PX
        return np.concatenate(parts, axis=1)


def _enlarged(found: FoundPage, factor: int) -> FoundPage:
    def enlarge(items: tuple[Found, ...]) -> tuple[Found, ...]:
        enlarged = []
        for item in items:
            left, top, right, bottom = item.box
            box = left * factor, top * factor, right * factor, bottom * factor
            enlarged.append(item._replace(box=box))
        return tuple(enlarged)

    return replace(
        found,
        formulas=enlarge(found.formulas),
        numbers=enlarge(found.numbers),
        symbol_px=found.symbol_px * factor,
    )
