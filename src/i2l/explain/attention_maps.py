"""Attention over cells to density over pixels, of the canvas or of the file that was read.

Every way of spreading is separable: a cell's attention goes to rows and columns of pixels by weights that
sum to one along each axis, so a map sums to one like the attention it came from. What lands on the canvas
beside the file (the white that was added around it) is not on the map of the file; `outside` says how much.
"""

from typing import Final, Literal

import numpy as np
import numpy.typing as npt

from i2l.errors import I2LError
from i2l.explain.placement import Placement
from i2l.model.receptive_field import AxisField, ReceptiveField

Array = npt.NDArray[np.float64]
Spread = Literal["nearest", "field", "bilinear", "gaussian"]

SPREADS: Final[tuple[Spread, ...]] = ("nearest", "field", "bilinear", "gaussian")
# Two standard deviations to the edge of the field: what a cell sees of its outermost pixels is little.
_SIGMAS_TO_EDGE: Final = 2.0


class SpreadError(I2LError):
    """A way of spreading that does not exist."""


def axis_weights(axis: AxisField, spread: Spread) -> Array:
    """Give how each cell's attention is shared among the pixels of an axis: (cells, pixels), rows sum to 1.

    ``nearest`` shares it evenly over the core and ``field`` over all that the cell sees; ``bilinear`` falls
    linearly to the neighbours' centres and is level beyond the outermost ones; ``gaussian`` is a bell over
    the field.

    Raises:
        SpreadError: for another name.
    """
    pixels = np.arange(axis.canvas_px) + 0.5
    cells = range(axis.num_cells)
    centres = np.array([axis.centre(cell) for cell in cells])[:, None]
    starts, ends = np.array([axis.field(cell) for cell in cells]).T[:, :, None]
    in_field = (starts < pixels) & (pixels < ends)
    distance = np.abs(pixels - centres)
    inside = (axis.core_start_px < pixels) & (pixels < axis.core(axis.num_cells - 1)[1])
    if spread == "nearest":
        weights = (distance < axis.stride_px / 2).astype(np.float64)
    elif spread == "field":
        weights = in_field.astype(np.float64)
    elif spread == "bilinear":
        clamped = np.clip(pixels, centres[0], centres[-1])
        weights = np.maximum(0.0, 1 - np.abs(clamped - centres) / axis.stride_px) * inside
    elif spread == "gaussian":
        sigma = axis.field_px / 2 / _SIGMAS_TO_EDGE
        weights = np.exp(-0.5 * (distance / sigma) ** 2) * in_field
    else:
        raise SpreadError(f"There is no way of spreading {spread!r}; choose one of {', '.join(SPREADS)}.")
    normalized: Array = weights / weights.sum(axis=1, keepdims=True)
    return normalized


def resample_weights(weights: Array, edges: Array) -> Array:
    """Move weights from the canvas to other pixels, each taking the part of the canvas that it covers.

    Args:
        weights: (cells, canvas pixels)
        edges: of the other pixels on the canvas, rising, (pixels + 1,)

    Returns:
        (cells, pixels); a row sums to the share that lies between the first and the last edge.
    """
    corners = np.arange(weights.shape[1] + 1)
    covered = np.concatenate([np.zeros((len(weights), 1)), np.cumsum(weights, axis=1)], axis=1)
    return np.stack([np.diff(np.interp(edges, corners, row)) for row in covered])


class AttentionMapper:
    """Draws the attention of one reading on its image, pixel by pixel."""

    def __init__(
        self, field: ReceptiveField, *, placement: Placement | None = None, spread: Spread = "bilinear"
    ) -> None:
        """Work out the weights of all rows and columns; without a placement, of the canvas itself.

        Raises:
            SpreadError: if there is no such way of spreading.
        """
        self._rows, self._columns = axis_weights(field.rows, spread), axis_weights(field.columns, spread)
        if placement is not None:
            self._rows = resample_weights(self._rows, placement.row_edges())
            self._columns = resample_weights(self._columns, placement.column_edges())

    def map(self, attention: npt.NDArray[np.floating]) -> Array:
        """Give the share of attention that each pixel gets: (..., rows, columns) to (..., height, width)."""
        density: Array = np.swapaxes(self._rows, 0, 1) @ attention.astype(np.float64) @ self._columns
        return density

    def outside(self, attention: npt.NDArray[np.floating]) -> Array:
        """Give the share that falls beside the image: (..., rows, columns) to (...)."""
        kept = self._rows.sum(axis=1) @ attention.astype(np.float64) @ self._columns.sum(axis=1)
        return np.asarray(attention.sum(axis=(-2, -1), dtype=np.float64) - kept)
