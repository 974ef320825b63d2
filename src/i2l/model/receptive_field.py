"""Which pixels of the canvas each cell of the attention grid sees, worked out from a network's layers.

Coordinates are those of the canvas that the model reads, white frame included. Along each axis a cell has a
core (the cores of all cells tile the area inside the frame) and a field: all pixels that can change its
feature vector. For the paper's encoder a core is 32 pixels and a field 94, for that of pinpoint 16 and 142.
"""

from collections.abc import Sequence
from dataclasses import dataclass

Interval = tuple[float, float]  # from, to


@dataclass(frozen=True)
class Layer:
    """A convolution or a pooling, along one axis."""

    kernel: int
    stride: int
    padding: int


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
        """Return the pixels of a cell's own part of the canvas, half-open."""
        start = self.core_start_px + cell * self.stride_px
        return start, start + self.stride_px

    def field(self, cell: int) -> tuple[int, int]:
        """Return the pixels that a cell sees, half-open, cut at the canvas."""
        start = self.field_start_px + cell * self.stride_px
        return max(start, self.edge_px), min(start + self.field_px, self.canvas_px - self.edge_px)

    def centre(self, cell: int) -> float:
        """Return the middle of a cell's core."""
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


def convolved_axis(
    layers: Sequence[Layer], *, canvas_px: int, num_cells: int, edge_px: int = 0, pooled: int = 1
) -> AxisField:
    """Walk down the layers: where the first cell's field starts, its size, and the step to the next cell.

    Args:
        layers: from the pixels upwards.
        canvas_px: the size of the canvas along this axis.
        num_cells: of the attention grid.
        edge_px: that the first layer is not given, on either side.
        pooled: how many positions after the last layer make one cell.
    """
    start, size, step = edge_px, 1, 1
    for layer in layers:
        start -= step * layer.padding
        size += (layer.kernel - 1) * step
        step *= layer.stride
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
