"""How much of the ink no token looked at: a reading that leaves out a line may be sure of all it has."""

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from i2l.images.ink_symbols import Boxes
from i2l.model.receptive_field import AxisField, ReceptiveField

MUCH: Final = 0.02  # of the ink; one of 2,559 validation images had more, and it was misread (docs/LOG.md)
_LOOKED: Final = 0.1  # of a token's attention, for its cell to count as looked at
# Each draws a row of letters and is looked at in one place: with one of them nothing can be said.
_WORDS: Final = frozenset({r"\pmod", r"\bmod", r"\mod", r"\pod"})

_Integers = npt.NDArray[np.int64]
_Span = tuple[_Integers, _Integers]  # first, and one beyond the last


def unread_ink(
    tokens: Sequence[str],
    attention: npt.NDArray[np.floating],
    pieces: Boxes,
    amounts: _Integers,
    *,
    field: ReceptiveField,
) -> float:
    """Give the share of ink in pieces that no token looked at, neither at their cells nor at the next ones.

    Args:
        tokens: that were read.
        attention: (T, rows, columns)
        pieces: the boxes of connected pieces of ink on the canvas.
        amounts: of their pixels.
        field: of the model.
    """
    if _WORDS.intersection(tokens):
        return 0.0
    left, top, right, bottom = pieces.T
    looked = np.any(attention >= _LOOKED, axis=0)
    read = _count(looked, _cells(top, bottom, field.rows), _cells(left, right, field.columns)) > 0
    return float(amounts[~read].sum() / max(amounts.sum(), 1))


def _cells(start: _Integers, end: _Integers, axis: AxisField) -> _Span:
    """Give the cells of spans of pixels, and one more on either side."""
    first, last = ((place - axis.core_start_px) // axis.stride_px for place in (start, end - 1))
    return (first - 1).clip(0, axis.num_cells), (last + 2).clip(0, axis.num_cells)


def _count(values: npt.NDArray[np.bool_], rows: _Span, columns: _Span) -> _Integers:
    """Count what is true in each of many rectangles."""
    sums = np.zeros((values.shape[0] + 1, values.shape[1] + 1), np.int64)
    sums[1:, 1:] = values.cumsum(0).cumsum(1)
    (top, bottom), (left, right) = rows, columns
    return sums[bottom, right] - sums[top, right] - sums[bottom, left] + sums[top, left]
