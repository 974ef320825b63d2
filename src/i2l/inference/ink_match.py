"""Which ink each token was read from: pieces of ink shared out among the tokens that looked near them.

Attention tells where a token was read to within a cell, and a cell is larger than most symbols; so taking the
ink nearest to each token's look gives one letter to two tokens and none to its neighbour. Here tokens and
connected pieces of ink are matched all at once, at the least cost. A piece costs its distance from where the
token looked, more if it does not have the shape that the token draws (a bar, a dot, a letter), and more if
another token has it already. Tokens that looked at one place stand there from left to right, as they are
written. What remains is shared out afterwards: a piece that several tokens got, as letters that touch, is cut
between them, and a piece that none got goes to the token beside it whose sign has several parts.
"""

from collections import defaultdict
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

import numpy as np
import numpy.typing as npt

from i2l.formulas.commands import names_of
from i2l.images.ink import Boxes, InkMask
from i2l.images.prepare import Box

Places = npt.NDArray[np.float64]  # (T, 2): x and y of where each token looked
Costs = npt.NDArray[np.float64]  # (T, number of pieces)


def _shaped(word: str) -> frozenset[str]:
    return names_of(lambda command: word in command.shape)


# What tokens draw, as far as that decides between neighbours.
_BARS: Final = _shaped("bar")
_MARKS: Final = _shaped("mark")
_AROUND_OTHERS: Final = _shaped("around") | {r"\left(", r"\right)", r"\left[", r"\right]"}
# Signs of several parts one above the other, or side by side.
_STACKED: Final = _shaped("stacked")
_BESIDE: Final = _shaped("beside") | {r"\left\|", r"\right\|"}
# Words and rows of dots: as many parts as they have letters.
_ROWS: Final = _shaped("row")
_SLANTED_ROWS: Final = _shaped("slanted")

# Costs in pixels of distance at the model's scale, where a small letter is some 14 px high. Found on 24
# formulas of validation at five sizes (docs/LOG.md); the mean IoU hardly moves when any is half or double.
_FROM_CENTRE: Final = 0.3  # of the distance from a piece's centre, beside that from its edge
_MAX_FROM_CENTRE_PX: Final = 40.0
_NOT_A_BAR: Final = 10.0
_NOT_A_MARK: Final = 8.0
_AROUND: Final = 12.0
_SHARED: Final = 8.0  # for the second token of a piece; twice that for the third; half for wide pieces
_MAX_SHARES: Final = 3
_SAME_LOOK_PX: Final = 9.0  # looks that are nearer than this are at one place
_NEXT_PX: Final = 7.0  # from one token to the next at one place
_PALE_RIM: Final = 251  # of a drawn stroke's last pixel; paper is above


def match_ink(
    tokens: Sequence[str], looks: Places, pieces: Boxes, *, ink: InkMask, pixels: npt.NDArray[np.uint8] | None
) -> list[Box]:
    """Return the box of the ink that each token was read from, in pixels of the image.

    Args:
        tokens: the visible ones of a reading, in order.
        looks: where each of them looked.
        pieces: the boxes of connected pieces of ink, at least one.
        ink: of the whole image.
        pixels: of an image that was not resized, whose strokes end in a pale pixel that belongs to them.
    """
    boxes = pieces.astype(np.float64)
    looks = _side_by_side(looks)
    typical = _typical_height(boxes)
    costs = _costs(tokens, looks, boxes, typical)
    owners = assign(_with_shares(costs, boxes, typical)) % len(boxes)
    found: list[Box] = [_box(boxes[piece]) for piece in owners]
    shared: dict[int, list[int]] = defaultdict(list)
    for token, piece in enumerate(owners.tolist()):
        shared[piece].append(token)
    free = sorted(set(range(len(boxes))) - shared.keys())
    alone = [token for token, piece in enumerate(owners.tolist()) if len(shared[piece]) == 1]
    for token in sorted(alone, key=lambda token: tokens[token] not in _STACKED):
        found[token] = _with_parts(tokens[token], found[token], boxes, free, typical)
    for piece, members in shared.items():
        if len(members) > 1:
            for token, part in zip(*_cut(_box(boxes[piece]), members, looks, ink), strict=True):
                found[token] = part
    return found if pixels is None else [_with_rim(box, pixels) for box in found]


def assign(costs: Costs) -> npt.NDArray[np.int64]:
    """Return a column for each row, no column twice, so that the sum of their costs is the least.

    This is the Hungarian method by shortest augmenting paths; SciPy has it too, but is not installed where
    models only read. There must be at least as many columns as rows.
    """
    num_rows, num_columns = costs.shape
    row_prices, column_prices = np.zeros(num_rows), np.zeros(num_columns)
    row_of = np.full(num_columns, -1)
    for row in range(num_rows):
        shortest = np.full(num_columns, np.inf)
        before = np.full(num_columns, -1)
        done = np.zeros(num_columns, bool)
        tree_rows: list[int] = [row]
        tree_columns: list[int] = []
        current, column = row, -1
        while True:
            reduced = costs[current] - row_prices[current] - column_prices
            better = ~done & (reduced < shortest)
            shortest[better], before[better] = reduced[better], column
            column = int(np.where(done, np.inf, shortest).argmin())
            step = shortest[column]
            row_prices[tree_rows] += step
            column_prices[tree_columns] -= step
            shortest[~done] -= step
            done[column] = True
            if row_of[column] < 0:
                break
            current = int(row_of[column])
            tree_rows.append(current)
            tree_columns.append(column)
        while column >= 0:
            earlier = int(before[column])
            row_of[column] = row if earlier < 0 else row_of[earlier]
            column = earlier
    chosen = np.zeros(num_rows, np.int64)
    chosen[row_of[row_of >= 0]] = np.flatnonzero(row_of >= 0)
    return chosen


def _side_by_side(looks: Places) -> Places:
    """Move tokens that looked at one place apart, from left to right in the order they are written."""
    moved = looks.copy()
    first = 0
    while first < len(looks):
        last = first + 1
        while last < len(looks) and np.hypot(*(looks[last] - looks[first])) < _SAME_LOOK_PX:
            last += 1
        moved[first:last, 0] += (np.arange(last - first) - (last - first - 1) / 2) * _NEXT_PX
        first = last
    return moved


def _typical_height(boxes: npt.NDArray[np.float64]) -> float:
    """Return the height of an ordinary symbol, bars and dots aside."""
    heights = boxes[:, 3] - boxes[:, 1]
    letters = heights[heights > 6]
    return float(np.median(letters if len(letters) else heights))


def _costs(tokens: Sequence[str], looks: Places, boxes: npt.NDArray[np.float64], typical: float) -> Costs:
    """Return what it costs to say that a token was read from a piece, for all pairs of them."""
    near = np.clip(looks[:, None], boxes[None, :, :2], boxes[None, :, 2:])
    from_edge = np.hypot(*np.moveaxis(looks[:, None] - near, 2, 0))
    centres = (boxes[:, :2] + boxes[:, 2:]) / 2
    from_centre = np.hypot(*np.moveaxis(looks[:, None] - centres[None], 2, 0))
    costs: Costs = from_edge + _FROM_CENTRE * np.minimum(from_centre, _MAX_FROM_CENTRE_PX)
    width, height = boxes[:, 2] - boxes[:, 0], boxes[:, 3] - boxes[:, 1]
    flat = (width > 2 * height) & (height < 0.45 * typical)
    small = np.maximum(width, height) < 0.5 * typical
    around = (width > 3 * typical) & (height > 1.2 * typical)

    def those(members: frozenset[str]) -> npt.NDArray[np.bool_]:
        return np.array([[token in members] for token in tokens])

    bar, mark, outside = those(_BARS), those(_MARKS), those(_AROUND_OTHERS)
    many = those(_STACKED | _ROWS | _BESIDE)
    costs += _NOT_A_BAR * ((bar & ~flat) | (~bar & ~mark & ~many & flat))
    costs += _NOT_A_MARK * ((~mark & ~bar & ~many & small) | (mark & (height > typical)))
    costs += _AROUND * (~outside & around)
    return costs


def _with_shares(costs: Costs, boxes: npt.NDArray[np.float64], typical: float) -> Costs:
    """Repeat the columns of all pieces, dearer each time, so that one piece can go to several tokens."""
    width, height = boxes[:, 2] - boxes[:, 0], boxes[:, 3] - boxes[:, 1]
    unlikely = 4 * (np.maximum(width, height) < 0.5 * typical) + 8 * (
        (width > 2 * height) & (height < 0.45 * typical)
    )
    columns = [costs]
    while len(columns) < _MAX_SHARES or len(columns) * len(boxes) < len(costs):
        times = len(columns)
        wide = width > 1.6 * typical * times
        columns.append(costs + np.where(wide, _SHARED / 2, _SHARED) * times + unlikely)
    return np.concatenate(columns, axis=1)


def _with_parts(token: str, box: Box, boxes: npt.NDArray[np.float64], free: list[int], typical: float) -> Box:
    """Take the pieces beside a box that nobody has and that the token's sign may have as parts."""
    while True:
        centre = np.array([box[0] + box[2], box[1] + box[3]]) / 2
        by_distance = sorted(
            free, key=lambda piece: np.abs((boxes[piece, :2] + boxes[piece, 2:]) / 2 - centre).sum()
        )
        taken = next(
            (piece for piece in by_distance if _belongs(token, box, _box(boxes[piece]), typical)), None
        )
        if taken is None:
            return box
        free.remove(taken)
        left, top, right, bottom = _box(boxes[taken])
        box = (min(box[0], left), min(box[1], top), max(box[2], right), max(box[3], bottom))


def _belongs(token: str, box: Box, piece: Box, typical: float) -> bool:
    """Whether a piece may be a part of the sign whose other parts are in the box."""
    across = max(piece[0] - box[2], box[0] - piece[2])  # the gap; negative where they overlap
    down = max(piece[1] - box[3], box[1] - piece[3])
    width, height = box[2] - box[0], box[3] - box[1]
    piece_width, piece_height = piece[2] - piece[0], piece[3] - piece[1]
    wider = max(width, piece_width)
    if token in _STACKED and wider < 3.5 * typical:
        covered = -across >= 0.6 * min(width, piece_width)
        if covered and down <= min(typical, max(0.6 * wider, 8.0)):
            return True
    if token in _BESIDE and across < 12 and down < 0:
        return True
    if token in _ROWS and piece_height < 2 * max(height, typical):
        in_line = token in _SLANTED_ROWS or across < 0 or down < 0
        if in_line and max(across, down) <= max(0.5 * height, 10.0):
            return True
    # ink that broke apart, as in a pale print
    return max(across, down) <= 1 and piece_width * piece_height <= width * height


def _cut(box: Box, members: list[int], looks: Places, ink: InkMask) -> tuple[list[int], list[Box]]:
    """Cut a piece of ink between the tokens that share it, half way from one look to the next."""
    places = looks[members]
    spread = np.ptp(places, axis=0) / np.maximum([box[2] - box[0], box[3] - box[1]], 1)
    axis = 0 if spread[0] >= 0.8 * spread[1] else 1
    order = np.argsort(places[:, axis], kind="stable")
    along = places[order, axis].clip(box[axis], box[axis + 2])
    edges = [box[axis], *((along[1:] + along[:-1]) / 2).tolist(), box[axis + 2]]
    if np.diff(edges).min() < 1:  # they looked beside it: it is cut into equal parts
        edges = np.linspace(box[axis], box[axis + 2], len(members) + 1).tolist()
    parts = []
    for start, end in pairwise(edges):
        part = (start, box[1], end, box[3]) if axis == 0 else (box[0], start, box[2], end)
        parts.append(_tighten(part, ink))
    return [members[place] for place in order.tolist()], parts


def _tighten(box: Box, ink: InkMask) -> Box:
    """Return the box of the ink inside a box; the same box if there is none."""
    left, top, right, bottom = (round(edge) for edge in box)
    inside = ink[top:bottom, left:right]
    rows, columns = np.flatnonzero(inside.any(axis=1)), np.flatnonzero(inside.any(axis=0))
    if not len(rows):
        return box
    return (
        float(left + columns[0]),
        float(top + rows[0]),
        float(left + columns[-1] + 1),
        float(top + rows[-1] + 1),
    )


def _with_rim(box: Box, pixels: npt.NDArray[np.uint8]) -> Box:
    """Add the pale pixels in which the strokes in a box end."""
    left, top, right, bottom = (round(edge) for edge in box)
    height, width = pixels.shape
    drawn = pixels < _PALE_RIM
    left -= left > 0 and bool(drawn[top:bottom, left - 1].any())
    right += right < width and bool(drawn[top:bottom, right].any())
    top -= top > 0 and bool(drawn[top - 1, left:right].any())
    bottom += bottom < height and bool(drawn[bottom, left:right].any())
    return (float(left), float(top), float(right), float(bottom))


def _box(row: npt.NDArray[np.float64]) -> Box:
    left, top, right, bottom = row.tolist()
    return (left, top, right, bottom)
