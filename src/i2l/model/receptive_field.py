"""Which pixels of the canvas each cell of the attention grid sees, worked out from the model's layers.

Coordinates are those of the canvas that the model reads, white frame included. Along each axis a cell has a
core (the cores of all cells tile the area inside the frame) and a field: all pixels that can change its
feature vector. For the paper's encoder a core is 32 pixels and a field 94, for the transformer's 16 and 142.
"""

from dataclasses import dataclass
from typing import Final

from i2l.config import ModelConfig
from i2l.images.prepare import FRAME_PX

Interval = tuple[float, float]  # from, to

# Kernel, stride and padding of a convolution and of the pooling after it, as in `i2l.model.calstm.encoder`.
# The canvas brings its own frame, so the first convolution has no padding.
_CONVOLUTION: Final = (3, 1, 1)
_POOLING: Final = (2, 2, 0)
# Of a halving and of a block in `i2l.model.pinpoint.network`, which reads what is inside the frame.
_HALVING: Final = (4, 2, 1)
_BLOCK: Final = (3, 1, 1)
Layers = list[tuple[int, int, int]]


@dataclass(frozen=True)
class AxisField:
    """The cells along one axis of the canvas."""

    num_cells: int
    canvas_px: int
    stride_px: int  # from one cell to the next; also the size of a core
    core_start_px: int  # of the first cell
    field_start_px: int  # of the first cell; negative where the field reaches beyond the canvas
    field_px: int  # size of a field that the canvas does not cut
    edge_px: int = 0  # of the canvas on either side that no cell sees

    def core(self, cell: int) -> tuple[int, int]:
        """Give the pixels of a cell's own part of the canvas, half-open."""
        start = self.core_start_px + cell * self.stride_px
        return start, start + self.stride_px

    def field(self, cell: int) -> tuple[int, int]:
        """Give the pixels that a cell sees, half-open, cut at the canvas."""
        start = self.field_start_px + cell * self.stride_px
        return max(start, self.edge_px), min(start + self.field_px, self.canvas_px - self.edge_px)

    def centre(self, cell: int) -> float:
        """Give the middle of a cell's core."""
        return self.core_start_px + (cell + 0.5) * self.stride_px


@dataclass(frozen=True)
class ReceptiveField:
    """The cells of the attention grid on the canvas."""

    rows: AxisField
    columns: AxisField

    @property
    def grid(self) -> tuple[int, int]:
        """Rows and columns of the attention grid."""
        return self.rows.num_cells, self.columns.num_cells

    @property
    def canvas_shape(self) -> tuple[int, int]:
        """Height and width of the canvas, frame included."""
        return self.rows.canvas_px, self.columns.canvas_px


def receptive_field(config: ModelConfig) -> ReceptiveField:
    """Work out the fields of a model's cells."""
    rows, columns = config.grid
    height_px, width_px = config.canvas_shape
    layers, edge_px = _layers(config)
    return ReceptiveField(
        rows=_axis_field(layers, edge_px, config.pool_rows, rows, height_px),
        columns=_axis_field(layers, edge_px, config.pool_columns, columns, width_px),
    )


def _layers(config: ModelConfig) -> tuple[Layers, int]:
    """Give kernel, stride and padding of all layers, and how many pixels at the edge they do not read."""
    if config.network == "transformer":
        return [layer for depth in config.depths for layer in (_HALVING, *[_BLOCK] * depth)], FRAME_PX
    kernel, stride, _ = _CONVOLUTION
    first: Layers = [(kernel, stride, 0), _POOLING]
    return first + [_CONVOLUTION, _POOLING] * (len(config.channels) - 1), 0


def _axis_field(layers: Layers, edge_px: int, pooled: int, num_cells: int, canvas_px: int) -> AxisField:
    """Walk down the layers: where the first cell's field starts, its size, and the step to the next cell."""
    start, size, step = edge_px, 1, 1
    for kernel, stride, padding in layers:
        start -= step * padding
        size += (kernel - 1) * step
        step *= stride
    core_start = start + (size - step) // 2  # the core is the middle of the field
    return AxisField(
        num_cells=num_cells,
        canvas_px=canvas_px,
        stride_px=step * pooled,
        core_start_px=core_start,
        field_start_px=start,
        field_px=size + (pooled - 1) * step,
        edge_px=edge_px,
    )
