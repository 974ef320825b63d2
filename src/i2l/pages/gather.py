"""From what the network says of the cells of a page to the boxes of its formulas, by the ink itself.

The network's answer is coarse; the boxes are not, since a box is always that of the connected pieces of ink
that belong to the formula, at the full resolution of the picture.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from i2l.images.ink import Boxes, Ink, measure_pieces
from i2l.pages.order import Box, Found, reading_order
from i2l.pages.shapes import bracket, covered, equalities, hull_of, is_comma, is_ink, rows_of

INLINE, DISPLAYED, NUMBER = "inline", "displayed", "number"
KINDS: Final = (INLINE, DISPLAYED, NUMBER)  # a cell's class is the place here, from 1
CELL_PX: Final = 2  # side of a cell that the network answers for
NUM_CLASSES: Final = 4  # nothing or text, inline, displayed, number

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
_ROWS_ALIGNED: Final = 3.2  # and before one whose sign stands under that of the row above
_ALIGNED: Final = 0.12
_LINE_GAP_IN_DISPLAY: Final = 0.3  # empty height between a display and a line of text
_LINES_APART: Final = 0.45  # empty height that no inline formula has
_TWO_LINES: Final = 2.6  # height of what may lie in two lines
_BESIDE: Final = 8.0  # how far words beside it are looked for
_SPACE: Final = 0.7  # between words, at least
_WIDEST_SPACE: Final = 1.5  # after a comma of the text, in spaces between words: more is of the formula
_LIST_PX: Final = 10.0  # where letters are lower, a thin space and one between words look alike
_SPACES_REACH: Final = 40.0  # how far they are looked for
_WORD_PIECES: Final = 3  # of text between rows, which part them
_FOOT_GAP: Final = 0.6  # empty height above the number of a page; above a limit of a sum there is less
_DIGIT: Final = (0.9, 1.8)  # its height, in small type and in that of the text
_FOOT_SIGNS: Final = 4  # of a number of a page, at most
_FOOT_CENTRED: Final = 1.0  # how far it stands from the middle of the text
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
    characters: Boxes = field(
        default_factory=lambda: np.zeros((0, 4), np.int64)
    )  # square ones, as in Chinese


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


class Gathering:
    """Puts the pieces of ink of a page together to formulas, as the network says."""

    def __init__(
        self,
        page: PageInk,
        cells: NDArray[np.float32],
        hints: GlyphHints | None,
        symbol_px: float,
    ) -> None:
        self._ink = page.ink
        self._symbol = page.symbol_px
        self._cell = page.symbol_px / symbol_px * CELL_PX  # pixels of the page for a cell
        self._pieces = page.pieces[is_ink(page.pieces, page.symbol_px)]
        self._regions = cells[:NUM_CLASSES]
        self._class = self._regions.argmax(axis=0)
        self._owners = self._owners_of(page.ink, cells[NUM_CLASSES:])
        self._of_characters = np.zeros(len(self._pieces), np.bool_)
        self._make_text(page.characters)
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

    def _make_text(self, characters: Boxes) -> None:
        """Let square characters be text, whatever the network says: it has learnt from letters."""
        for box, left, top, right, bottom in zip(
            characters, *self._in_cells(characters, *self._class.shape), strict=True
        ):
            self._class[top:bottom, left:right] = 0
            theirs = covered(self._pieces, box, margin=0.0) > 0.99
            self._owners[theirs] = (1.0, 0.0, 0.0, 0.0)
            self._of_characters |= theirs

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
            inside = covered(self._pieces, box, margin=self._cell) > 0.5
            theirs = inside & ~self._taken & (self._owners[:, 2] + self._owners[:, 1] > 0.35)
            theirs = self._without_page_number(self._without_lines_of_text(theirs))
            if theirs.any():
                parts += [(part, float(score)) for part in self._split_rows(theirs)]
        displays = (self._display(*part) for part in self._join_continued(parts))
        return [display for display in displays if display]

    def _without_lines_of_text(self, theirs: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Leave out what a region has of the line of text above or below the display."""
        while theirs.any():
            left, _, right, _ = hull_of(self._pieces[theirs])
            rows = rows_of(self._pieces[theirs], _LINE_GAP_IN_DISPLAY * self._symbol)
            if len(rows) == 1:
                break
            for top, bottom in (rows[0], rows[-1]):
                row = (self._pieces[:, 1] < bottom) & (self._pieces[:, 3] > top)
                row &= (self._pieces[:, 2] > left) & (self._pieces[:, 0] < right)
                text = row & ~theirs & ~self._taken & (self._owners[:, 0] > 0.6)
                characters = (text & self._of_characters).sum() >= _WORD_PIECES
                if characters or (text.sum() >= _WORD_PIECES and text.sum() > (row & theirs).sum()):
                    theirs = theirs & ~row
                    break
            else:
                break
        return theirs

    def _without_page_number(self, theirs: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Leave out the number of the page, which seems to be a last row where a display ends the page.

        It is the lowest ink of all: a few signs of one height, about that of a digit, in the middle.
        """
        rows = rows_of(self._pieces[theirs], _FOOT_GAP * self._symbol) if theirs.any() else []
        if len(rows) < 2:
            return theirs
        foot = self._pieces[:, 3] > rows[-1][0]
        signs = self._pieces[foot]
        left, top, right, bottom = hull_of(signs)
        lowest_digit, highest_digit = (share * self._symbol for share in _DIGIT)
        if top < rows[-1][0] or len(signs) > _FOOT_SIGNS or not lowest_digit <= bottom - top <= highest_digit:
            return theirs
        if np.ptp(signs[:, 1]) > 1 + 0.05 * self._symbol or np.ptp(signs[:, 3]) > 1 + 0.05 * self._symbol:
            return theirs
        across = hull_of(self._pieces)
        if abs(left + right - across[0] - across[2]) > 2 * _FOOT_CENTRED * self._symbol:
            return theirs
        return theirs & ~foot

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
        first, second = hull_of(self._pieces[upper]), hull_of(self._pieces[lower])
        gap = (second[1] - first[3]) / self._symbol
        left, right = min(first[0], second[0]), max(first[2], second[2])
        if not -1 <= gap <= _ROWS_CONTINUED or first[3] >= second[3]:
            return False
        if min(first[2], second[2]) <= max(first[0], second[0]):
            return False
        theirs, others = (equalities(self._pieces[part], self._symbol) for part in (lower, upper))
        begins = (theirs <= second[0] + 0.2 * self._symbol).any()
        aligned = (np.abs(theirs[:, None] - others[None]) <= max(1.0, _ALIGNED * self._symbol)).any()
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
        hull = hull_of(self._pieces[theirs])
        near = covered(self._pieces, hull, margin=0.8 * self._symbol) > 0.99
        theirs = theirs | (near & ~self._taken & (self._owners[:, 2] > 0.6))
        hull = self._lengthen(theirs)
        # What lies wholly within the box is part of it, as a word between two formulas.
        theirs |= (covered(self._pieces, hull, margin=1) > 0.9) & ~self._taken
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
            left, top, right, bottom = hull = hull_of(self._pieces[theirs])
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
        parts: list[tuple[NDArray[np.bool_], int]] = []
        for index in range(len(lines)):
            parts += [(part, index) for part in self._split_lines(nearest == index, lines[index])]
        found: list[Found] = []
        for joined, index in self._join_enclosed(parts):
            for theirs in self._cut_list(joined, lines[index]):
                self._taken |= theirs
                score = float(scores[index] * self._owners[theirs, 1:3].sum(axis=1).mean())
                hull = hull_of(self._pieces[theirs])
                kind = DISPLAYED if self._stands_alone(hull, lines[index]) else INLINE
                if score >= (_MIN_SCORE if kind == DISPLAYED else _MIN_INLINE):
                    found.append(Found(kind, hull, score))
        return found

    def _split_lines(self, theirs: NDArray[np.bool_], region: NDArray[np.int64]) -> list[NDArray[np.bool_]]:
        """Part what lies in several lines of the text; what lies outside of the region's is not of it."""
        parts = []
        for top, bottom in rows_of(self._pieces[theirs], _LINES_APART * self._symbol):
            if min(bottom, region[3]) - max(top, region[1]) > 0:
                row = theirs & (self._pieces[:, 1] >= top) & (self._pieces[:, 3] <= bottom)
                parts += self._split_by_words(row)
        return parts

    def _split_by_words(self, theirs: NDArray[np.bool_]) -> list[NDArray[np.bool_]]:
        """Part what has words beside it in several lines, which tall signs may join."""
        left, top, right, bottom = hull_of(self._pieces[theirs])
        if bottom - top < _TWO_LINES * self._symbol:
            return [theirs]
        middle = (self._pieces[:, 1] + self._pieces[:, 3]) / 2
        height = (self._pieces[:, 3] - self._pieces[:, 1]) / self._symbol
        letters = (self._owners[:, 0] > 0.6) & (height > 0.8) & (height < 1.3)
        letters &= self._pieces[:, 2] > left - _BESIDE * self._symbol
        letters &= self._pieces[:, 0] < right + _BESIDE * self._symbol
        letters &= (middle > top + 0.3 * self._symbol) & (middle < bottom - 0.3 * self._symbol)
        rows = rows_of(self._pieces[letters], 0.3 * self._symbol)
        centres = np.array([(first + last) / 2 for first, last in rows])
        if len(centres) < 2:
            return [theirs]
        nearest = np.abs(middle[:, None] - centres[None]).argmin(axis=1)
        parts = [theirs & (nearest == row) for row in range(len(rows))]
        return [part for part in parts if part.any()]

    def _join_enclosed(
        self, parts: list[tuple[NDArray[np.bool_], int]]
    ) -> list[tuple[NDArray[np.bool_], int]]:
        """Join what lies in the box of another formula with it."""
        hulls = np.array([hull_of(self._pieces[part]) for part, _ in parts], np.int64).reshape(-1, 4)
        joined: list[int] = []
        for place in np.argsort(-(hulls[:, 2:] - hulls[:, :2]).prod(axis=1)).tolist():
            around = covered(hulls[[place]], hulls[joined], margin=0.1 * self._symbol) > 0.8
            if around.any():
                other = joined[int(around.argmax())]
                parts[other] = parts[other][0] | parts[place][0], parts[other][1]
            else:
                joined.append(place)
        return [parts[place] for place in joined]

    def _cut_list(self, theirs: NDArray[np.bool_], line: NDArray[np.int64]) -> list[NDArray[np.bool_]]:
        """Part formulas of a list, whose commas are the text's: a space as wide as between words follows."""
        if self._symbol < _LIST_PX:
            return [theirs]
        order = np.flatnonzero(theirs)[np.argsort(self._pieces[theirs, 0], kind="stable")]
        pieces = self._pieces[order]
        commas = is_comma(pieces, int(line[3]), self._symbol)
        if not commas.any():
            return [theirs]
        space = self._word_space(line)
        reached = np.maximum.accumulate(pieces[:, 2])
        gaps = (pieces[1:, 0] - reached[:-1]) / self._symbol
        depth = np.cumsum([bracket(self._ink, piece, self._symbol) for piece in pieces])
        cuts = commas[:-1] & (depth[:-1] <= 0)
        cuts &= (gaps >= max(space, _SPACE)) & (gaps <= _WIDEST_SPACE * space)
        formulas = np.concatenate([[0], np.cumsum(cuts)])
        formulas[:-1][cuts] = -1  # the comma is of none
        parts = []
        for number in range(formulas.max() + 1):
            mask = np.zeros_like(theirs)
            mask[order[formulas == number]] = True
            parts.append(mask)
        return [part for part in parts if part.any()]

    def _word_space(self, line: NDArray[np.int64]) -> float:
        """Return the space between the words of a line, in heights of small letters."""
        text = self._pieces[
            (self._owners[:, 0] > 0.6) & (self._pieces[:, 1] < line[3]) & (self._pieces[:, 3] > line[1])
        ]
        reach = _SPACES_REACH * self._symbol
        text = text[(text[:, 2] > line[0] - reach) & (text[:, 0] < line[2] + reach)]
        text = text[np.argsort(text[:, 0])]
        gaps = (text[1:, 0] - np.maximum.accumulate(text[:, 2])[:-1]) / self._symbol
        gaps = gaps[(gaps > 0.45) & (gaps < 2.5)]
        return float(np.median(gaps)) if len(gaps) >= 3 else _SPACE

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
        found = [item for item in seen if not covered(runs, item.box, margin=0.0).any()]
        for box in boxes:
            theirs = covered(self._pieces, box, margin=1.0) > 0.5
            if theirs.any():
                found.append(Found(INLINE, hull_of(self._pieces[theirs]), _SURE_BY_FONTS))
        return found

    def _in_display(self, box: Box) -> bool:
        one = np.array([box], np.int64)
        return any(covered(one, display, margin=2.0)[0] > 0.5 for display in self._display_boxes)

    def _numbers_by_fonts(self) -> list[Found]:
        """Return what a PDF says to be numbers in brackets, apart from all else in their rows."""
        found: list[Found] = []
        for box in () if self._hints is None else self._hints.numbers:
            theirs = covered(self._pieces, box, margin=1.0) > 0.5
            if theirs.any():
                self._taken |= theirs
                found.append(Found(NUMBER, hull_of(self._pieces[theirs]), _SURE_BY_FONTS))
        return found

    def _numbers(self) -> list[Found]:
        boxes, scores = self._region_boxes(KINDS.index(NUMBER) + 1)
        boxes, scores = _join_rows(boxes, scores, self._symbol, columns=1.5)
        found = self._numbers_by_fonts()
        for index, box in enumerate(boxes):
            inside = covered(self._pieces, box, margin=self._cell) > 0.5
            theirs = inside & ~self._taken & (self._owners[:, 3] > 0.3)
            if not theirs.any():
                continue
            hull = hull_of(self._pieces[theirs])
            score = float(scores[index] * self._owners[theirs, 3].mean())
            if score >= _MIN_SCORE:
                self._taken |= theirs
                found.append(Found(NUMBER, hull, score))
        return found


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
