"""What pieces of ink show by where they stand and by their shape: rows, equalities, commas, brackets, and
characters that are square, as those of Chinese.

Lengths are in heights of small letters.
"""

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from i2l.images.ink import Boxes, Ink
from i2l.pages.order import Box

# Square characters; lengths are in their height.
_INK_HEIGHT: Final = 0.94  # of a row of them
_LOW_ROW: Final = 30  # percentile of the heights of rows: formulas make some of them taller
_MIN_RATIO: Final = 0.52  # of the usual height of pieces to that of rows; small letters have less
_NARROWEST, _LOWEST, _LARGEST = 0.7, 0.74, 1.02
_WITHIN: Final = 0.2  # gap between pieces of one character
_BETWEEN: Final = 0.22  # gap between two of them
_FLAT: Final = 0.25  # height of such as are but a stroke
_POINT: Final = 0.4  # side of a stop or a comma
_MIN_STROKES: Final = 4.2  # that a row and a column of pixels cross, together, on the average
_MIN_EITHER: Final = 1.8  # and each of the two: a row crosses many where letters stand close
_MIN_SHARE: Final = 0.12  # of what stands in the rows, that has as many strokes
_DARK_STROKE: Final = 110


def is_ink(pieces: Boxes, symbol_px: float) -> NDArray[np.bool_]:
    """Tell symbols from specks and from frames around half a page."""
    width, height = pieces[:, 2] - pieces[:, 0], pieces[:, 3] - pieces[:, 1]
    symbols: NDArray[np.bool_] = (np.maximum(width, height) >= max(1.0, 0.12 * symbol_px)) & (
        height < 60 * symbol_px
    )
    return symbols


def rows_of(pieces: Boxes, gap_px: float) -> list[tuple[int, int]]:
    """Return tops and bottoms of the rows that pieces of ink stand in, with more than a gap between them."""
    rows: list[tuple[int, int]] = []
    for top, bottom in sorted(map(tuple, pieces[:, [1, 3]].tolist())):
        if rows and top - rows[-1][1] <= gap_px:
            rows[-1] = rows[-1][0], max(rows[-1][1], bottom)
        else:
            rows.append((top, bottom))
    return rows


def equalities(pieces: Boxes, symbol_px: float) -> NDArray[np.int64]:
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


def covered(pieces: Boxes, box: Sequence[int] | Boxes, *, margin: float) -> NDArray[np.float64]:
    """Return the share of each piece's box that lies in a box with a margin: (pieces,).

    Of one piece and many boxes it is the share in each of them.
    """
    size = np.maximum(pieces[:, 2:] - pieces[:, :2], 1).prod(axis=1)
    sides = np.asarray(box, np.float64)
    low = np.maximum(pieces[:, :2], sides[..., :2] - margin)
    high = np.minimum(pieces[:, 2:], sides[..., 2:] + margin)
    share: NDArray[np.float64] = np.maximum(high - low, 0).prod(axis=1) / size
    return share


def hull_of(boxes: Boxes) -> Box:
    """Return the box around boxes."""
    left, top = boxes[:, :2].min(axis=0)
    right, bottom = boxes[:, 2:].max(axis=0)
    return int(left), int(top), int(right), int(bottom)


def is_comma(pieces: Boxes, baseline: int, symbol_px: float) -> NDArray[np.bool_]:
    """Tell commas: small pieces that stand on the baseline and hang below it."""
    size = (pieces[:, 2:] - pieces[:, :2]) / symbol_px
    above, below = (baseline - pieces[:, 1]) / symbol_px, (pieces[:, 3] - baseline) / symbol_px
    commas = (size[:, 1] > 0.4) & (size[:, 1] < 0.85) & (size[:, 0] < 0.5)
    commas &= (above > 0) & (above < 0.6) & (below > 0.05) & (below < 0.65)
    return commas


def bracket(ink: Ink, piece: NDArray[np.int64], symbol_px: float) -> int:
    """Return 1 for a bracket that opens, -1 for one that closes, 0 for any other piece of ink."""
    left, top, right, bottom = piece.tolist()
    height, width = bottom - top, right - left
    if height < 1.5 * symbol_px or width > 0.5 * height:
        return 0
    part = ink[top:bottom, left:right].astype(np.float64)
    places = (part @ np.arange(width)) / np.maximum(part.sum(axis=1), 1)
    end = max(1, height // 10)
    upper, lower = places[:end].mean(), places[-end:].mean()
    middle = places[height // 2 - end : height // 2 + end].mean()
    bow = (upper + lower) / 2 - middle
    if abs(upper - lower) > 0.1 * height or abs(bow) < 0.05 * height:
        return 0
    return 1 if bow > 0 else -1


def find_characters(ink: Ink, pieces: Boxes, usual_px: float) -> tuple[Boxes, float]:
    """Find square characters, as those of Chinese: as high as their row, as wide, and full of strokes.

    A page has many of them or none: two letters that stand close may be as square, but have fewer strokes.

    Args:
        ink: of a level page.
        pieces: its connected pieces.
        usual_px: their usual height.

    Returns:
        The boxes of the characters, and their height with the room around them; none and 0 where few are.
    """
    none = np.zeros((0, 4), np.int64), 0.0
    rows = rows_of(pieces, 0.0)
    heights = [bottom - top for top, bottom in rows if bottom - top >= 0.8 * usual_px]
    height_px = float(np.percentile(heights, _LOW_ROW)) / _INK_HEIGHT if heights else 0.0
    if usual_px < _MIN_RATIO * height_px or not heights:
        return none
    order = np.argsort(pieces[:, 0], kind="stable")
    row_of = np.searchsorted([top for top, _ in rows], pieces[order, 1], side="right") - 1
    lines = [
        list(_blocks(pieces[order[row_of == row]], height_px))
        for row, (top, bottom) in enumerate(rows)
        if bottom - top >= 0.6 * height_px
    ]
    full = [[_is_square(box, height_px) and _is_full(ink, box) for box in line] for line in lines]
    if sum(map(sum, full)) < _MIN_SHARE * sum(map(len, full)):
        return none
    found = [
        box for line, sure in zip(lines, full, strict=True) for box in _with_neighbours(line, sure, height_px)
    ]
    return np.array(found, np.int64).reshape(-1, 4), height_px


def _blocks(row: Boxes, height_px: float) -> Iterator[Box]:
    """Join pieces of a row, from left to right, to blocks that are no wider than a character."""
    block: list[int] = []
    for left, top, right, bottom in row.tolist():
        if (
            block
            and max(right, block[2]) - block[0] <= _LARGEST * height_px
            and left - block[2] <= _WITHIN * height_px
        ):
            block = [block[0], min(top, block[1]), max(right, block[2]), max(bottom, block[3])]
        else:
            if block:
                yield block[0], block[1], block[2], block[3]
            block = [left, top, right, bottom]
    if block:
        yield block[0], block[1], block[2], block[3]


def _is_square(box: Box, height_px: float) -> bool:
    width, height = (box[2] - box[0]) / height_px, (box[3] - box[1]) / height_px
    return _NARROWEST <= width <= _LARGEST and _LOWEST <= height <= _LARGEST


def _may_be_character(box: Box, height_px: float) -> bool:
    """Tell whether what stands beside a character may be one too: square, a stroke, a stop or a comma."""
    width, height = (box[2] - box[0]) / height_px, (box[3] - box[1]) / height_px
    flat = width >= _NARROWEST and height <= _FLAT
    return flat or max(width, height) <= _POINT or _is_square(box, height_px)


def _is_full(ink: Ink, box: Box) -> bool:
    """Tell whether a row and a column of pixels cross as many strokes, on the average, as in a character."""
    left, top, right, bottom = box
    dark = np.pad(ink[top:bottom, left:right] >= _DARK_STROKE, 1)
    down = float((dark[1:, 1:-1] & ~dark[:-1, 1:-1]).sum(axis=0).mean())
    across = float((dark[1:-1, 1:] & ~dark[1:-1, :-1]).sum(axis=1).mean())
    return down + across >= _MIN_STROKES and min(down, across) >= _MIN_EITHER


def _with_neighbours(line: Sequence[Box], sure: Sequence[bool], height_px: float) -> Iterator[Box]:
    """Return the characters of a row: those that are sure, and such as stand beside one and may be one."""
    chosen = list(sure)
    for places in (range(1, len(line)), range(len(line) - 2, -1, -1)):
        for place in places:
            beside = place - 1 if places.step > 0 else place + 1
            gap = max(line[place][0], line[beside][0]) - min(line[place][2], line[beside][2])
            if chosen[beside] and gap <= _BETWEEN * height_px and _may_be_character(line[place], height_px):
                chosen[place] = True
    return (box for box, is_one in zip(line, chosen, strict=True) if is_one)
