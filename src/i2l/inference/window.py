"""The part of the canvas that the encoder needs to see: around the ink, the rest is known beforehand.

For the paper's networks:

A cell whose receptive field holds no ink has the features of a blank canvas. So the encoder is run on the
part of the canvas that holds the other cells and one more cell (or pooled group of cells) on each side: those
feel the zero padding at the edge of the part, and are not used. The result is that of the whole canvas.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from i2l.config import ModelConfig
from i2l.images.canvas import FAINT, FRAME_PX, WHITE


@dataclass(frozen=True)
class InkWindow:
    """Which pixels to encode, and where each location of the grid finds its features."""

    rows: slice  # of the canvas, frame included
    columns: slice
    # (L,): a cell of the window, or behind all of those one of the blank canvas; of a transformer, the number
    # on the canvas of each cell of the window
    cells: NDArray[np.int64]


def find_window(pixels: NDArray[np.uint8], config: ModelConfig) -> InkWindow:
    """Find the window of canvases that are encoded together, (B, H + 2, W + 2)."""
    darkest = pixels.min(axis=0)[FRAME_PX:-FRAME_PX, FRAME_PX:-FRAME_PX]
    if config.network == "transformer":
        return _find_part(darkest < FAINT, config)
    ink: NDArray[np.bool_] = darkest < WHITE
    needed, taken, parts = [], [], []
    for axis, (cells, pool) in enumerate(
        zip(config.encoder_grid, (config.pool_rows, config.pool_columns), strict=True)
    ):
        cell_px = ink.shape[axis] // cells
        first, last = _touched_cells(np.flatnonzero(ink.any(axis=1 - axis)), cell_px)
        group_px = pool * cell_px
        groups = cells // pool
        inner = max(first // pool, 0), min(last // pool + 1, groups)  # half-open
        outer = max(inner[0] - 1, 0), min(inner[1] + 1, groups)
        needed.append(inner)
        taken.append(outer)
        parts.append(slice(outer[0] * group_px, outer[1] * group_px + 2 * FRAME_PX))
    return InkWindow(rows=parts[0], columns=parts[1], cells=_cell_index(config.grid, needed, taken))


def _find_part(ink: NDArray[np.bool_], config: ModelConfig) -> InkWindow:
    """Find the cells near ink; a transformer has no others, and reads no frame."""
    cell_px, spans = config.cell_px, []
    for axis, cells in enumerate(config.grid):
        places = np.flatnonzero(ink.any(axis=1 - axis))
        first, last = (int(places[0]), int(places[-1])) if len(places) else (0, 0)
        spans.append(config.near_cells(first, last, num_cells=cells))
    (top, bottom), (left, right) = spans
    numbers = np.arange(top, bottom)[:, None] * config.grid[1] + np.arange(left, right)
    return InkWindow(
        rows=slice(FRAME_PX + top * cell_px, FRAME_PX + bottom * cell_px),
        columns=slice(FRAME_PX + left * cell_px, FRAME_PX + right * cell_px),
        cells=numbers.reshape(-1),
    )


def _touched_cells(places: NDArray[np.intp], cell_px: int) -> tuple[int, int]:
    """Give the first and last cell whose receptive field holds ink, from its places along one axis.

    Five times a convolution of 3 and a pooling of 2 make a field of 94 pixels, 31 on each side of the cell.
    """
    if not len(places):
        return 0, 0
    margin_px = cell_px - 1
    return int(-(-(places[0] - 2 * margin_px) // cell_px)), int((places[-1] + margin_px) // cell_px)


def _cell_index(
    grid: tuple[int, int], needed: list[tuple[int, int]], taken: list[tuple[int, int]]
) -> NDArray[np.int64]:
    (top, bottom), (left, right) = needed
    heights, widths = (last - first for first, last in taken)
    cells = heights * widths + np.arange(grid[0] * grid[1]).reshape(grid)
    rows = np.arange(top, bottom)[:, None] - taken[0][0]
    columns = np.arange(left, right)[None, :] - taken[1][0]
    cells[top:bottom, left:right] = rows * widths + columns
    index: NDArray[np.int64] = cells.reshape(-1)
    return index
