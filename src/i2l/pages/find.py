"""Where the formulas of a page are: from a picture to boxes, by a small network and the ink itself.

The network (`i2l.pages.train`) sees the ink of the page, made so large that letters have a known height, and
says for each cell what it is part of. Its answer is coarse; the boxes are not, since a box is always that of
the connected pieces of ink that belong to the formula, at the full resolution of the picture.

A page that was photographed or scanned askew is straightened first, by the lines of its own ink.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from i2l.errors import I2LError
from i2l.files import find_damage
from i2l.images.ink import Boxes, Ink, extract_ink, measure_pieces
from i2l.images.open import EmptyImageError
from i2l.pages.order import Box as Box
from i2l.pages.order import Found as Found
from i2l.pages.order import reading_order

DETECTOR_FILE: Final = "detector.onnx"
DETECTOR_FOLDER: Final = Path(__file__).parent.parent / "models" / "detector"
INLINE, DISPLAYED, NUMBER = "inline", "displayed", "number"
KINDS: Final = (INLINE, DISPLAYED, NUMBER)  # a cell's class is the place here, from 1

# What the network sees and says.
SYMBOL_PX: Final = 7.0  # height of small letters where a network looks that does not say another one
SYMBOL_KEY: Final = "symbol_px"  # by which it says so, in its ONNX file
CELL_PX: Final = 2  # side of a cell that it answers for
MULTIPLE_PX: Final = 32  # sides of its input are multiples of this
NUM_CLASSES: Final = 4  # nothing or text, inline, displayed, number
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

# From cells to boxes; lengths are in heights of small letters.
_REACH: Final = 2.2  # of an inline formula's scripts above and below its line
_JOINED_GAP: Final = 0.45  # between parts of one inline formula
_JOINED_ROWS: Final = 0.6  # share of the height that parts of one display have in common
_JOINED_COLUMNS: Final = 3.0  # gap between such parts
_NEXT_SIGN: Final = 2.0  # gap to the next sign in the row of a display
_MAYBE_DISPLAY: Final = 0.3  # probability of a display, of an inline formula that has a row for itself
_ROW_REACH: Final = 12.0  # how far text beside it is looked for
_ROWS_APART: Final = 3.2  # empty height between rows of a display; between two displays there is more
_ROWS_CONTINUED: Final = 5.0  # the same before a row that begins with a sign of equality
_ROWS_ALIGNED: Final = 1.6  # and before one whose sign stands under that of the row above
_ALIGNED: Final = 0.12
_LINE_GAP_IN_DISPLAY: Final = 0.3  # empty height between a display and a line of text
_LINES_APART: Final = 0.45  # empty height that no inline formula has
_WORD_PIECES: Final = 3  # of text between rows, which part them
_OWNED: Final = 0.45  # probability that a piece of ink near the line of an inline formula is of a formula
_MIN_SCORE: Final = 0.5
_MIN_INLINE: Final = 0.4
_SURE_BY_FONTS: Final = 0.95
_SURE_BY_PICTURE: Final = 0.9  # for a formula of which the fonts show nothing


@dataclass(frozen=True)
class FoundPage:
    """What was found on a picture, in reading order, and the size of its type."""

    formulas: tuple[Found, ...] = ()
    numbers: tuple[Found, ...] = ()
    number_of: tuple[int, ...] = ()  # for each number the formula it belongs to
    symbol_px: float = 0.0  # height of small letters; 0 if there are none


@dataclass(frozen=True)
class PageInk:
    """The ink of a page, its connected pieces, and the height of small letters."""

    ink: Ink
    pieces: Boxes
    symbol_px: float


class GlyphHints(NamedTuple):
    """What a PDF says of its glyphs: boxes on the picture, and which of them are set in fonts of formulas."""

    boxes: NDArray[np.float64]  # (N, 4)
    mathematical: NDArray[np.bool_]  # (N,)
    runs: tuple[Box, ...] = ()  # of formulas, or of their parts in one line
    numbers: tuple[Box, ...] = ()  # that may be equation numbers

    def reduced(self, factor: int) -> "GlyphHints":
        """Return the same for a picture that was made smaller."""

        def smaller(boxes: tuple[Box, ...]) -> tuple[Box, ...]:
            return tuple(
                (left // factor, top // factor, -(-right // factor), -(-bottom // factor))
                for left, top, right, bottom in boxes
            )

        return GlyphHints(self.boxes / factor, self.mathematical, smaller(self.runs), smaller(self.numbers))


def measure_symbols(ink: Ink) -> float | None:
    """Return the height of small letters: the median of all pieces that are as large as letters.

    Args:
        ink: of the page.

    Returns:
        The height in pixels; None if there are not even a few pieces.
    """
    boxes, _ = measure_pieces(ink >= _DARK)
    return symbol_height(boxes)


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
    if page is not None and page.symbol_px < _SMALL_PX:
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
        return _Assembly(page, self.look(page), hints, self._symbol_px).found

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


class _Assembly:
    """Puts the pieces of ink of a page together to formulas, as the network says."""

    def __init__(
        self,
        page: PageInk,
        cells: NDArray[np.float32],
        hints: GlyphHints | None,
        symbol_px: float = SYMBOL_PX,
    ) -> None:
        self._symbol = page.symbol_px
        self._cell = page.symbol_px / symbol_px * CELL_PX  # pixels of the page for a cell
        self._pieces = page.pieces[_is_ink(page.pieces, page.symbol_px)]
        self._regions = cells[:NUM_CLASSES]
        self._class = self._regions.argmax(axis=0)
        self._owners = self._owners_of(page.ink, cells[NUM_CLASSES:])
        self._hints = hints
        if hints is not None:
            self._heed(hints)
        self._taken = np.zeros(len(self._pieces), np.bool_)
        self._display_boxes: list[Box] = []

    @cached_property
    def found(self) -> FoundPage:
        """All formulas and numbers."""
        numbers = self._numbers()
        displays = self._displays()
        self._display_boxes = [item.box for item in displays]
        inline = self._inline() if self._hints is None else self._inline_runs(self._hints)
        formulas = reading_order([*displays, *inline], self._pieces, self._symbol)
        owners = [_owner_of(number, formulas) for number in numbers]
        owned = [(number, owner) for number, owner in zip(numbers, owners, strict=True) if owner >= 0]
        return FoundPage(
            tuple(formulas),
            tuple(number for number, _ in owned),  # one that no display has is a page's, or a list's
            tuple(owner for _, owner in owned),
            self._symbol,
        )

    def _owners_of(self, ink: Ink, owners: NDArray[np.float32]) -> NDArray[np.float64]:
        """Return for each piece of ink how likely it is text, inline, displayed, a number: (N, 4)."""
        rows, columns = owners.shape[1:]
        padded = np.zeros((rows, columns))
        height, width = ink.shape
        small = Image.fromarray(ink).resize(
            (max(1, round(width / self._cell)), max(1, round(height / self._cell))), Image.Resampling.BOX
        )
        part = np.asarray(small)[:rows, :columns]
        padded[: part.shape[0], : part.shape[1]] = part
        padded[padded < 24] = 0.01
        left, top, right, bottom = self._in_cells(self._pieces, rows, columns)
        weights = _sum_in(padded, left, top, right, bottom)
        return np.stack(
            [
                _sum_in(padded * plane, left, top, right, bottom) / np.maximum(weights, 1e-9)
                for plane in owners
            ],
            1,
        )

    def _in_cells(self, boxes: Boxes, rows: int, columns: int) -> tuple[NDArray[np.int64], ...]:
        left, top = (np.floor(boxes[:, side] / self._cell).astype(np.int64) for side in (0, 1))
        right, bottom = (np.ceil(boxes[:, side] / self._cell).astype(np.int64) for side in (2, 3))
        left, top = np.clip(left, 0, columns - 1), np.clip(top, 0, rows - 1)
        return left, top, np.clip(right, left + 1, columns), np.clip(bottom, top + 1, rows)

    def _heed(self, hints: GlyphHints) -> None:
        """Let glyphs in fonts of formulas outvote the picture on whether their ink is text."""
        centres_x = (self._pieces[:, 0] + self._pieces[:, 2]) / 2
        centres_y = (self._pieces[:, 1] + self._pieces[:, 3]) / 2
        order = np.argsort(hints.boxes[:, 0])
        boxes, mathematical = hints.boxes[order], hints.mathematical[order]
        widest = float((boxes[:, 2] - boxes[:, 0]).max(initial=0))
        for index, (x, y) in enumerate(zip(centres_x, centres_y, strict=True)):
            first, last = np.searchsorted(boxes[:, 0], [x - widest, x + 1])
            near = boxes[first:last]
            inside = (near[:, 2] >= x) & (near[:, 1] <= y) & (near[:, 3] >= y)
            if inside.any() and mathematical[first:last][inside].all() and self._owners[index, 0] > 0.5:
                lift = self._owners[index, 1:3]
                self._owners[index, 1:3] = 0.7 * (lift + 0.01) / (lift.sum() + 0.02)
                self._owners[index, 0] = 0.3

    def _region_boxes(self, kind: int) -> tuple[Boxes, NDArray[np.float64]]:
        """Return the boxes of the regions of a kind, in pixels of the page, and how sure they are."""
        mask = self._class == kind
        boxes, amounts = measure_pieces(mask)
        if not len(boxes):
            return boxes, np.zeros(0)
        sums = _sum_in(np.where(mask, self._regions[kind], 0), *boxes.T)
        scores = sums / np.maximum(_sum_in(mask.astype(np.float64), *boxes.T), 1)
        kept = amounts >= 3
        return np.rint(boxes[kept] * self._cell).astype(np.int64), scores[kept]

    def _displays(self) -> list[Found]:
        boxes, scores = self._region_boxes(KINDS.index(DISPLAYED) + 1)
        boxes, scores = _join_rows(boxes, scores, self._symbol)
        parts: list[tuple[NDArray[np.bool_], float]] = []
        for box, score in zip(boxes, scores, strict=True):
            inside = _covered(self._pieces, box, margin=self._cell) > 0.5
            theirs = inside & ~self._taken & (self._owners[:, 2] + self._owners[:, 1] > 0.35)
            theirs = self._without_lines_of_text(theirs)
            if theirs.any():
                parts += [(part, float(score)) for part in self._split_rows(theirs)]
        displays = (self._display(*part) for part in self._join_continued(parts))
        return [display for display in displays if display]

    def _without_lines_of_text(self, theirs: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Leave out what a region has of the line of text above or below the display."""
        while theirs.any():
            left, _, right, _ = _hull(self._pieces[theirs])
            rows = _rows_of(self._pieces[theirs], _LINE_GAP_IN_DISPLAY * self._symbol)
            if len(rows) == 1:
                break
            for top, bottom in (rows[0], rows[-1]):
                row = (self._pieces[:, 1] < bottom) & (self._pieces[:, 3] > top)
                row &= (self._pieces[:, 2] > left) & (self._pieces[:, 0] < right)
                text = row & ~theirs & ~self._taken & (self._owners[:, 0] > 0.6)
                if text.sum() >= _WORD_PIECES and text.sum() > (row & theirs).sum():
                    theirs = theirs & ~row
                    break
            else:
                break
        return theirs

    def _join_continued(
        self, parts: list[tuple[NDArray[np.bool_], float]]
    ) -> list[tuple[NDArray[np.bool_], float]]:
        """Join rows of one display that the network took apart, by their signs of equality.

        No display begins with one; where those of two rows stand one under the other, they were aligned.
        """
        joined: list[tuple[NDArray[np.bool_], float]] = []
        for part, score in sorted(parts, key=lambda part: int(self._pieces[part[0], 1].min())):
            above = [index for index, other in enumerate(joined) if self._continues(other[0], part)]
            if above:
                other, other_score = joined[above[-1]]
                joined[above[-1]] = other | part, max(score, other_score)
            else:
                joined.append((part, score))
        return joined

    def _continues(self, upper: NDArray[np.bool_], lower: NDArray[np.bool_]) -> bool:
        """Tell whether rows below others are of the same display."""
        first, second = _hull(self._pieces[upper]), _hull(self._pieces[lower])
        gap = (second[1] - first[3]) / self._symbol
        left, right = min(first[0], second[0]), max(first[2], second[2])
        if not -1 <= gap <= _ROWS_CONTINUED or first[3] >= second[3]:
            return False
        if min(first[2], second[2]) <= max(first[0], second[0]):
            return False
        theirs, others = (_equalities(self._pieces[part], self._symbol) for part in (lower, upper))
        begins = (theirs <= second[0] + 0.2 * self._symbol).any()
        aligned = (np.abs(theirs[:, None] - others[None]) <= _ALIGNED * self._symbol).any()
        if not (begins or (aligned and gap <= _ROWS_ALIGNED)):
            return False
        text = self._pieces[(self._owners[:, 0] > 0.6) & ~self._taken]
        between = (text[:, 1] >= first[3] - 1) & (text[:, 3] <= second[1] + 1)
        between &= (text[:, 2] > left) & (text[:, 0] < right)
        return bool(between.sum() < _WORD_PIECES)

    def _split_rows(self, theirs: NDArray[np.bool_]) -> list[NDArray[np.bool_]]:
        """Cut a region where its rows lie far apart, or text stands between them: it is several displays."""
        order = np.flatnonzero(theirs)[np.argsort(self._pieces[theirs, 1], kind="stable")]
        text = self._pieces[(self._owners[:, 0] > 0.6) & ~self._taken]
        parts: list[list[int]] = [[int(order[0])]]
        bottom = int(self._pieces[order[0], 3])
        for index in order[1:].tolist():
            top = int(self._pieces[index, 1])
            gap = top - bottom
            between = (
                (text[:, 1] >= bottom - 1) & (text[:, 3] <= top + 1) if gap > 0.9 * self._symbol else None
            )
            if gap > _ROWS_APART * self._symbol or (between is not None and between.sum() >= _WORD_PIECES):
                parts.append([])
            parts[-1].append(index)
            bottom = max(bottom, int(self._pieces[index, 3]))
        masks = []
        for part in parts:
            mask = np.zeros_like(theirs)
            mask[part] = True
            masks.append(mask)
        return masks

    def _display(self, theirs: NDArray[np.bool_], region_score: float) -> Found | None:
        """Make a display of pieces of ink and of what goes with them; None if that is not likely."""
        theirs = theirs & ~self._taken
        if not theirs.any():
            return None
        # Delimiters and signs that stick out of the region: their ink says whose it is.
        hull = _hull(self._pieces[theirs])
        near = _covered(self._pieces, hull, margin=0.8 * self._symbol) > 0.99
        theirs = theirs | (near & ~self._taken & (self._owners[:, 2] > 0.6))
        hull = self._lengthen(theirs)
        # What lies wholly within the box is part of it, as a word between two formulas.
        theirs |= (_covered(self._pieces, hull, margin=1) > 0.9) & ~self._taken
        score = float(region_score * self._owners[theirs, 1:3].sum(axis=1).mean())
        if self._owners[theirs, 1].mean() > self._owners[theirs, 2].mean():
            return None  # a piece of an inline formula was taken for one of a display
        self._taken |= theirs
        if score < _MIN_SCORE or hull[2] - hull[0] <= 0.8 * self._symbol:
            return None
        return Found(DISPLAYED, hull, score)

    def _lengthen(self, theirs: NDArray[np.bool_]) -> Box:
        """Add what goes on in the rows of a display: no text stands beside one. Return the box of it all."""
        while True:
            left, top, right, bottom = hull = _hull(self._pieces[theirs])
            pieces = self._pieces
            middle = (pieces[:, 1] + pieces[:, 3]) / 2
            gap = np.maximum(pieces[:, 0] - right, left - pieces[:, 2])
            more = (middle >= top) & (middle <= bottom) & (gap <= _NEXT_SIGN * self._symbol)
            more &= ~theirs & ~self._taken & (self._owners[:, 1] + self._owners[:, 2] > 0.5)
            if not more.any():
                return hull
            theirs |= more

    def _stands_alone(self, box: Box, region: NDArray[np.int64]) -> bool:
        """Tell whether a formula that seems to be inline has a row for itself, and may be a display."""
        rows, columns = self._class.shape
        left, top, right, bottom = (int(side[0]) for side in self._in_cells(region[None], rows, columns))
        if self._regions[KINDS.index(DISPLAYED) + 1, top:bottom, left:right].mean() < _MAYBE_DISPLAY:
            return False
        reach = _ROW_REACH * self._symbol
        pieces = self._pieces
        beside = (pieces[:, 3] > region[1]) & (pieces[:, 1] < region[3])
        beside &= (pieces[:, 2] > box[0] - reach) & (pieces[:, 0] < box[2] + reach)
        return not (beside & (self._owners[:, 0] > 0.5)).any()

    def _inline(self) -> list[Found]:
        lines, scores = self._region_boxes(KINDS.index(INLINE) + 1)
        wanted = ~self._taken & (self._owners[:, 1] + self._owners[:, 2] > _OWNED)
        lines, scores = _join_in_line(lines, scores, self._pieces[~self._taken & ~wanted], self._symbol)
        if not len(lines):
            return []
        nearest = self._nearest_line(lines, wanted)
        found: list[Found] = []
        for index in range(len(lines)):
            for theirs in self._split_lines(nearest == index, lines[index]):
                self._taken |= theirs
                score = float(scores[index] * self._owners[theirs, 1:3].sum(axis=1).mean())
                hull = _hull(self._pieces[theirs])
                kind = DISPLAYED if self._stands_alone(hull, lines[index]) else INLINE
                if score >= (_MIN_SCORE if kind == DISPLAYED else _MIN_INLINE):
                    found.append(Found(kind, hull, score))
        return found

    def _split_lines(self, theirs: NDArray[np.bool_], region: NDArray[np.int64]) -> list[NDArray[np.bool_]]:
        """Part what lies in several lines of the text; what lies outside of the region's is not of it."""
        rows = _rows_of(self._pieces[theirs], _LINES_APART * self._symbol)
        if len(rows) < 2:
            return [theirs] if rows else []
        parts = []
        for top, bottom in rows:
            if min(bottom, region[3]) - max(top, region[1]) > 0:
                parts.append(theirs & (self._pieces[:, 1] >= top) & (self._pieces[:, 3] <= bottom))
        return parts

    def _nearest_line(self, lines: Boxes, wanted: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Return for each piece the line of an inline formula that it belongs to; -1 for none."""
        pieces = self._pieces
        width = np.maximum(pieces[:, 2] - pieces[:, 0], 1)
        nearest = np.full(len(pieces), -1)
        least = np.full(len(pieces), np.inf)
        for index, (left, top, right, bottom) in enumerate(lines):
            common = np.minimum(pieces[:, 2], right + self._cell) - np.maximum(
                pieces[:, 0], left - self._cell
            )
            gap = np.maximum(np.maximum(pieces[:, 1], top) - np.minimum(pieces[:, 3], bottom), 0.0)
            possible = (common >= 0.5 * width) & (gap <= _REACH * self._symbol) & ~self._taken
            possible &= wanted
            cost = np.where(possible, gap + 0.1 * np.maximum(width - common, 0), np.inf)
            nearest[cost < least] = index
            least = np.minimum(cost, least)
        return nearest

    def _inline_runs(self, hints: GlyphHints) -> list[Found]:
        """Return the inline formulas that the fonts of a PDF show, and surely seen ones that they do not."""
        boxes = [box for box in hints.runs if not self._in_display(box)]
        seen = [item for item in self._inline() if item.score >= _SURE_BY_PICTURE]
        runs = np.array(boxes, np.int64).reshape(-1, 4)
        found = [item for item in seen if not _covered(runs, item.box, margin=0.0).any()]
        for box in boxes:
            theirs = _covered(self._pieces, box, margin=1.0) > 0.5
            if theirs.any():
                found.append(Found(INLINE, _hull(self._pieces[theirs]), _SURE_BY_FONTS))
        return found

    def _in_display(self, box: Box) -> bool:
        one = np.array([box], np.int64)
        return any(_covered(one, display, margin=2.0)[0] > 0.5 for display in self._display_boxes)

    def _numbers_by_fonts(self) -> list[Found]:
        """Return what a PDF says to be numbers in brackets, apart from all else in their rows."""
        found: list[Found] = []
        for box in () if self._hints is None else self._hints.numbers:
            theirs = _covered(self._pieces, box, margin=1.0) > 0.5
            if theirs.any():
                self._taken |= theirs
                found.append(Found(NUMBER, _hull(self._pieces[theirs]), _SURE_BY_FONTS))
        return found

    def _numbers(self) -> list[Found]:
        boxes, scores = self._region_boxes(KINDS.index(NUMBER) + 1)
        boxes, scores = _join_rows(boxes, scores, self._symbol, columns=1.5)
        found = self._numbers_by_fonts()
        for index, box in enumerate(boxes):
            inside = _covered(self._pieces, box, margin=self._cell) > 0.5
            theirs = inside & ~self._taken & (self._owners[:, 3] > 0.3)
            if not theirs.any():
                continue
            hull = _hull(self._pieces[theirs])
            score = float(scores[index] * self._owners[theirs, 3].mean())
            if score >= _MIN_SCORE:
                self._taken |= theirs
                found.append(Found(NUMBER, hull, score))
        return found


def _is_ink(pieces: Boxes, symbol_px: float) -> NDArray[np.bool_]:
    """Tell symbols from specks and from frames around half a page."""
    width, height = pieces[:, 2] - pieces[:, 0], pieces[:, 3] - pieces[:, 1]
    symbols: NDArray[np.bool_] = (np.maximum(width, height) >= max(1.0, 0.12 * symbol_px)) & (
        height < 60 * symbol_px
    )
    return symbols


def _sum_in(
    values: NDArray[Any],
    left: NDArray[np.int64],
    top: NDArray[np.int64],
    right: NDArray[np.int64],
    bottom: NDArray[np.int64],
) -> NDArray[np.float64]:
    """Sum values over boxes, by sums over all that lies above and to the left."""
    sums = np.zeros((values.shape[0] + 1, values.shape[1] + 1))
    np.cumsum(np.cumsum(values, axis=0, dtype=np.float64), axis=1, out=sums[1:, 1:])
    total: NDArray[np.float64] = sums[bottom, right] - sums[top, right] - sums[bottom, left] + sums[top, left]
    return total


def _rows_of(pieces: Boxes, gap_px: float) -> list[tuple[int, int]]:
    """Return tops and bottoms of the rows that pieces of ink stand in, with more than a gap between them."""
    rows: list[tuple[int, int]] = []
    for top, bottom in sorted(map(tuple, pieces[:, [1, 3]].tolist())):
        if rows and top - rows[-1][1] <= gap_px:
            rows[-1] = rows[-1][0], max(rows[-1][1], bottom)
        else:
            rows.append((top, bottom))
    return rows


def _equalities(pieces: Boxes, symbol_px: float) -> NDArray[np.int64]:
    """Return the left edges of signs of equality: two bars of one width, one above the other."""
    size = pieces[:, 2:] - pieces[:, :2]
    bars = pieces[
        (size[:, 0] > 3 * size[:, 1]) & (size[:, 0] > 0.6 * symbol_px) & (size[:, 0] < 3 * symbol_px)
    ]
    edges = np.abs(bars[:, None] - bars[None]) <= max(1.0, 0.12 * symbol_px)
    apart = bars[None, :, 1] - bars[:, None, 3]
    pairs = edges[:, :, 0] & edges[:, :, 2] & (apart > 0) & (apart < 0.8 * symbol_px)
    left: NDArray[np.int64] = bars[pairs.any(axis=1), 0]
    return left


def _covered(pieces: Boxes, box: Sequence[int] | Boxes, *, margin: float) -> NDArray[np.float64]:
    """Return the share of each piece's box that lies in a box with a margin: (pieces,)."""
    size = np.maximum(pieces[:, 2:] - pieces[:, :2], 1).prod(axis=1)
    sides = np.asarray(box, np.float64)
    low = np.maximum(pieces[:, :2], sides[:2] - margin)
    high = np.minimum(pieces[:, 2:], sides[2:] + margin)
    share: NDArray[np.float64] = np.maximum(high - low, 0).prod(axis=1) / size
    return share


def _hull(boxes: Boxes) -> Box:
    left, top = boxes[:, :2].min(axis=0)
    right, bottom = boxes[:, 2:].max(axis=0)
    return int(left), int(top), int(right), int(bottom)


def _join_rows(
    boxes: Boxes, scores: NDArray[np.float64], symbol_px: float, *, columns: float = _JOINED_COLUMNS
) -> tuple[Boxes, NDArray[np.float64]]:
    """Join regions side by side that have most of their height in common, and such as lie in each other."""
    items = [(tuple(map(int, box)), float(score)) for box, score in zip(boxes, scores, strict=True)]
    joined = True
    while joined:
        joined = False
        for first in range(len(items)):
            for second in range(first + 1, len(items)):
                (a, score_a), (b, score_b) = items[first], items[second]
                rows = min(a[3], b[3]) - max(a[1], b[1])
                gap = max(a[0], b[0]) - min(a[2], b[2])
                lower = min(a[3] - a[1], b[3] - b[1])
                if rows >= _JOINED_ROWS * lower and gap <= columns * symbol_px:
                    hull = (min(a[0], b[0]), min(a[1], b[1]), max(a[2], b[2]), max(a[3], b[3]))
                    items[first] = (hull, max(score_a, score_b))
                    del items[second]
                    joined = True
                    break
            if joined:
                break
    if not items:
        return np.zeros((0, 4), np.int64), np.zeros(0)
    return np.array([box for box, _ in items], np.int64), np.array([score for _, score in items])


def _join_in_line(
    lines: Boxes, scores: NDArray[np.float64], text: Boxes, symbol_px: float
) -> tuple[Boxes, NDArray[np.float64]]:
    """Join parts of inline formulas in one line with a narrow gap in which no text stands."""
    kept: list[list[float]] = []
    for index in np.argsort(lines[:, 0]):
        box = [*map(float, lines[index]), float(scores[index])]
        for other in reversed(kept[-60:]):
            rows = min(other[3], box[3]) - max(other[1], box[1])
            gap = box[0] - other[2]
            if rows >= 0.5 * min(other[3] - other[1], box[3] - box[1]) and gap <= _JOINED_GAP * symbol_px:
                between = (
                    (text[:, 0] < box[0] + 1) & (text[:, 2] > other[2] - 1)
                    & (text[:, 3] > other[1]) & (text[:, 1] < other[3])
                )  # fmt: skip
                if not between.any():
                    other[:4] = [
                        min(other[0], box[0]),
                        min(other[1], box[1]),
                        max(other[2], box[2]),
                        max(other[3], box[3]),
                    ]
                    other[4] = max(other[4], box[4])
                    break
        else:
            kept.append(box)
    return np.array([item[:4] for item in kept], np.int64).reshape(-1, 4), np.array(
        [item[4] for item in kept]
    )


def _owner_of(number: Found, formulas: Sequence[Found]) -> int:
    """Return the display whose height a number stands in, the nearest one; -1 if there is none."""
    middle = (number.box[1] + number.box[3]) / 2
    best, distance = -1, math.inf
    for index, formula in enumerate(formulas):
        left, top, right, bottom = formula.box
        slack = 0.3 * (number.box[3] - number.box[1])
        if formula.kind == DISPLAYED and top - slack <= middle <= bottom + slack:
            apart = max(number.box[0] - right, left - number.box[2], 0)
            if apart < distance:
                best, distance = index, apart
    return best
