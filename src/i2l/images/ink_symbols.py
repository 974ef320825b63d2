"""The symbols on a page, from its ink alone: connected pieces, and pieces that belong together like `=`.

In NumPy, since reading must not need SciPy. Runs of ink in neighbouring rows that touch, also by a corner,
are of one piece.
"""

from typing import Final

import numpy as np
import numpy.typing as npt

Ink = npt.NDArray[np.bool_]
Boxes = npt.NDArray[np.int64]  # (N, 4): left, top, right, bottom, half-open

# In pixels of the model's canvas, where a line of symbols is about 30 tall.
_MAX_GAP_PX: Final = 10  # between bars of one symbol
_WIDEST_PX: Final = 40  # of such bars; a fraction's bar over a root of its width is another symbol
_DOT_PX: Final = 6  # of an i or a j, at most; and its gap
_STEM_PX: Final = 16
_MAX_PIECES: Final = 2000  # more is grain: every pair of them would take minutes
_COVERED: Final = 0.8  # of a width


def find_symbols(ink: Ink) -> Boxes:
    """Give the box of each symbol."""
    return join_pieces(find_pieces(ink))


def join_pieces(pieces: Boxes) -> Boxes:
    """Give the box of each symbol from those of connected pieces of ink.

    Stacked pieces are one symbol if they are about as wide as each other (`=`, `\\leq`) or one is a dot over
    a stem (`i`). Letters that touch are one symbol too.
    """
    if len(pieces) > _MAX_PIECES:
        return pieces
    width = pieces[:, 2] - pieces[:, 0]
    height = pieces[:, 3] - pieces[:, 1]
    first, second = np.triu_indices(len(pieces), 1)
    overlap = np.minimum(pieces[first, 2], pieces[second, 2]) - np.maximum(
        pieces[first, 0], pieces[second, 0]
    )
    gap = np.maximum(pieces[first, 1], pieces[second, 1]) - np.minimum(pieces[first, 3], pieces[second, 3])
    wider, narrower = np.maximum(width[first], width[second]), np.minimum(width[first], width[second])
    alike = (
        (overlap >= _COVERED * wider) & (wider <= _WIDEST_PX) & (gap <= np.minimum(0.6 * wider, _MAX_GAP_PX))
    )
    dotted = (
        (overlap >= _COVERED * narrower)
        & (np.maximum(narrower, np.minimum(height[first], height[second])) <= _DOT_PX)
        & (wider <= _STEM_PX)
        & (gap <= _DOT_PX)
    )
    joined = (gap >= 0) & (alike | dotted)
    return _enclose(pieces, _connect(len(pieces), first[joined], second[joined]))


def find_pieces(ink: Ink) -> Boxes:
    """Give the box of each connected piece of ink."""
    return measure_pieces(ink)[0]


def measure_pieces(ink: Ink) -> tuple[Boxes, npt.NDArray[np.int64]]:
    """Give the box of each connected piece of ink, and how many pixels it has."""
    steps = np.diff(np.pad(ink.astype(np.int8), ((0, 0), (1, 1))), axis=1)
    rows, starts = np.nonzero(steps == 1)
    ends = np.nonzero(steps == -1)[1]
    runs = np.stack([starts, rows, ends, rows + 1], axis=1).astype(np.int64)
    # Runs come row by row, left to right, so their places in one long line rise.
    pitch = ink.shape[1] + 2
    below = (rows + 1) * pitch
    first = np.searchsorted(rows * pitch + ends, below + starts, side="left")
    last = np.searchsorted(rows * pitch + starts, below + ends, side="right")
    counts = np.maximum(last - first, 0)
    upper = np.repeat(np.arange(len(runs)), counts)
    lower = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts) + np.repeat(first, counts)
    group = _connect(len(runs), upper, lower)
    amounts = np.bincount(group, weights=ends - starts).astype(np.int64)
    return _enclose(runs, group), amounts


def _connect(
    num_items: int, first: npt.NDArray[np.int64], second: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    """Give the number of each item's group, where pairs of items are of one group."""
    groups = np.arange(num_items)
    while True:
        lowest = np.minimum(groups[first], groups[second])
        joined = groups.copy()
        np.minimum.at(joined, first, lowest)
        np.minimum.at(joined, second, lowest)
        joined = joined[joined]
        if np.array_equal(joined, groups):
            break
        groups = joined
    return np.unique(groups, return_inverse=True)[1]


def _enclose(boxes: Boxes, group: npt.NDArray[np.int64]) -> Boxes:
    """Give one box for each group of boxes."""
    num_groups = int(group.max(initial=-1)) + 1
    corners = np.full((num_groups, 2), np.iinfo(np.int64).max)
    ends = np.zeros((num_groups, 2), np.int64)
    np.minimum.at(corners, group, boxes[:, :2])
    np.maximum.at(ends, group, boxes[:, 2:])
    return np.concatenate([corners, ends], axis=1)
