"""A box for each token, from attention alone: the smallest block of cells with enough of it, and its ink.

Of the symbols that have ink in the block, the box is that of the one nearest to the centre of the block's
attention. (With attention made up around true boxes, this overlaps them twice as well as all ink in the
block does: cells are larger than symbols, and symbols do not end where cells do.) How much attention is
enough is one number for a model, fitted where the true boxes are known. Boxes and ink are on the canvas.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from i2l.formulas.commands import STRUCTURAL
from i2l.formulas.normalize import normalize_formula
from i2l.formulas.tokens import FormulaError
from i2l.images.canvas import WHITE
from i2l.images.ink_symbols import Boxes, Ink, find_symbols
from i2l.model.receptive_field import ReceptiveField

Attention = npt.NDArray[np.floating]
Box = tuple[float, float, float, float]  # left, top, right, bottom

DEFAULT_SHARE: Final = 0.8  # of attention; for a model that was never fitted
# Paler pixels are the soft rim of a stroke at most, or what a scanner makes of paper.
_PALEST_INK: Final = WHITE - 32


def find_ink(pixels: npt.NDArray[np.uint8]) -> Ink:
    """Mark the pixels of a grey image that are not paper; paper is white."""
    ink: Ink = pixels <= _PALEST_INK
    return ink


def visible_tokens(tokens: Sequence[str]) -> list[bool]:
    """Tell which tokens draw ink of their own; the others (`{`, `^`, `\\mathrm`, ...) get no box."""
    try:
        canonical = normalize_formula(" ".join(tokens)).tokens
    except FormulaError:
        canonical = []
    if [token.text for token in canonical] == list(tokens):
        return [token.visible for token in canonical]
    return [token not in STRUCTURAL and not token.startswith((r"\begin{", r"\end{")) for token in tokens]


def smallest_blocks(attention: Attention, share: float) -> npt.NDArray[np.int64]:
    """Find the smallest rectangle of cells that holds a share of each step's attention.

    Of rectangles with as many cells, the one that holds most is taken.

    Args:
        attention: (T, rows, columns)
        share: of the attention of a step, above 0 and at most 1.

    Returns:
        (T, 4): first row, first column, last row, last column; the last ones are beyond the block.
    """
    used: npt.NDArray[np.bool_] = np.any(attention, axis=0)
    first_row, last_row = _span(used, 1)
    first_column, last_column = _span(used, 0)
    attention = attention[:, first_row:last_row, first_column:last_column]
    steps, rows, columns = attention.shape
    sums = np.zeros((steps, rows + 1, columns + 1))
    sums[:, 1:, 1:] = attention.astype(np.float64).cumsum(1).cumsum(2)
    wanted = share * sums[:, -1, -1] * (1 - 1e-6)  # the model computes in float32
    tops, bottoms = np.triu_indices(rows + 1, 1)
    best = np.full(steps, np.inf)
    blocks = np.zeros((steps, 4), np.int64)
    for width in range(1, columns + 1):
        if width - 0.5 > best.max(initial=0):  # not even a single row of this width could be better
            break
        strips = sums[:, :, width:] - sums[:, :, :-width]  # (T, rows + 1, columns - width + 1)
        held = strips[:, bottoms] - strips[:, tops]  # (T, pairs of rows, first columns)
        # Fewest cells first; more attention decides between equals, and counts for less than a cell.
        cost = ((bottoms - tops) * width)[:, None] - 0.5 * held / np.maximum(sums[:, -1:, -1:], 1e-30)
        cost = np.where(held >= wanted[:, None, None], cost, np.inf)
        cost = cost.reshape(steps, len(tops) * (columns - width + 1))  # -1 fails where there are no steps
        place = cost.argmin(axis=1)
        lowest = cost[np.arange(steps), place]
        pair, left = np.divmod(place, columns - width + 1)
        better = lowest < best
        found = np.stack([tops[pair], left, bottoms[pair], left + width], axis=1)
        blocks[better], best[better] = found[better], lowest[better]
    blocks += np.array([first_row, first_column] * 2)
    return blocks


def _span(used: npt.NDArray[np.bool_], over: int) -> tuple[int, int]:
    """Give the first line that is used and the one after the last, over an axis; all lines if none is."""
    places = np.flatnonzero(np.any(used, axis=over))
    return (int(places[0]), int(places[-1]) + 1) if len(places) else (0, used.shape[1 - over])


def block_box(field: ReceptiveField, block: Sequence[int]) -> Box:
    """Give a block of cells, by its cores, as a box on the canvas."""
    top, left, bottom, right = block
    return (
        field.columns.core(left)[0],
        field.rows.core(top)[0],
        field.columns.core(right - 1)[1],
        field.rows.core(bottom - 1)[1],
    )


def attention_boxes(
    attention: Attention, *, field: ReceptiveField, ink: Ink, share: float
) -> list[Box | None]:
    """Give each step's box, half-open; None where the model looked at no ink.

    Args:
        attention: (T, rows, columns)
        field: of the model.
        ink: of the canvas, (height, width).
        share: of a step's attention that the block holds in which its symbol is looked for.
    """
    return choose_symbols(attention, find_symbols(ink), field=field, share=share)


def choose_symbols(
    attention: Attention, symbols: Boxes, *, field: ReceptiveField, share: float
) -> list[Box | None]:
    """Give for each step the box of the symbol it looked at; arguments as in `attention_boxes`."""
    centres = (symbols[:, :2] + symbols[:, 2:]) / 2
    rows, columns = (
        np.array([axis.centre(cell) for cell in range(axis.num_cells)])
        for axis in (field.rows, field.columns)
    )
    boxes: list[Box | None] = []
    for seen, block in zip(attention, smallest_blocks(attention, share).tolist(), strict=True):
        left, top, right, bottom = block_box(field, block)
        touched = np.flatnonzero(
            (symbols[:, 0] < right)
            & (left < symbols[:, 2])
            & (symbols[:, 1] < bottom)
            & (top < symbols[:, 3])
        )
        if not len(touched):
            boxes.append(None)
            continue
        inside = seen[block[0] : block[2], block[1] : block[3]]
        y = inside.sum(axis=1) @ rows[block[0] : block[2]] / inside.sum()
        x = inside.sum(axis=0) @ columns[block[1] : block[3]] / inside.sum()
        nearest = touched[np.hypot(*(centres[touched] - (x, y)).T).argmin()]
        boxes.append(tuple(symbols[nearest].tolist()))
    return boxes
