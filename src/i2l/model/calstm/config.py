"""The settings of the paper's networks, and what can be said about them without weights."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final, Literal

import numpy as np
from numpy.typing import NDArray

from i2l.files import ConfigError
from i2l.images.prepare import FRAME_PX, WHITE
from i2l.model.config import InkWindow, Layer, ModelConfig, ReceptiveField, convolved_axis

if TYPE_CHECKING:
    from i2l.model.network import Network

# The layers of `i2l.model.calstm.encoder`. The canvas brings its own frame, so the first has no padding.
_FIRST_CONVOLUTION: Final = Layer(kernel=3, stride=1, padding=0)
_CONVOLUTION: Final = Layer(kernel=3, stride=1, padding=1)
_POOLING: Final = Layer(kernel=2, stride=2, padding=0)


@dataclass(frozen=True, kw_only=True)
class CalstmConfig(ModelConfig):
    """The paper's networks: convolutions, attention and an LSTM stack. The defaults are I2L-NOPOOL."""

    network: ClassVar = "calstm"
    presets: ClassVar = {"nopool": {}, "strips": {"pool_rows": 4}}
    # Heights of printed formulas come in groups: at 200 dpi, a third is up to 42 pixels tall (one line of
    # symbols), and four in five up to 82 (a fraction).
    window_heights_px: ClassVar = (42, 82)
    score_bias: ClassVar = "output.score.bias"
    one_scale: ClassVar = True  # the paper's images are of one size, drawn by one program

    height_px: int = 128
    width_px: int = 1088
    max_tokens: int = 150

    # Encoder: channels after each halving of the image, then feature vectors concatenated in strides.
    channels: tuple[int, ...] = (64, 128, 256, 512, 512)
    pool_rows: int = 1
    pool_columns: int = 1

    # Attention: "full" reads the whole image (the paper), "shared" one location at a time (Xu et al.).
    # The units of "full" are raised to the number of locations where that is larger.
    attention: Literal["full", "shared"] = "full"
    attention_units: tuple[int, int] = (256, 128)
    beta_gate: bool = False

    # LSTM stack. The cell is not clipped: the paper's equations have no clip. (The cell of TensorFlow 1.3
    # that the authors used may have clipped at 3; set 3.0 to follow that.)
    embedding_units: int = 64
    lstm_layers: int = 2
    lstm_units: int = 1500
    lstm_skip: bool = False  # every layer above the first also reads the stack's input
    cell_clip: float | None = None
    calstm_cells: int = 1  # attention + LSTM stack together are a cell; that many are stacked

    # Initial state from the image; without it the state starts at zero.
    init_model: bool = True
    init_units: int = 100

    # Output layer: its two hidden layers have this many units, raised to the vocabulary's size if larger.
    output_units: int = 358
    output_skips: bool = True  # it also reads the word before and what attention read, past the LSTM stack
    dropout: float = 0.0  # on what a layer hands upwards, never on the recurrence

    def __post_init__(self) -> None:
        """Check what cannot be checked by the types.

        Raises:
            ConfigError: if the sizes do not fit together.
        """
        super().__post_init__()
        rows, columns = self.encoder_grid
        if rows % self.pool_rows or columns % self.pool_columns:
            raise ConfigError(f"pool_rows and pool_columns must divide the grid {rows} x {columns}.")
        if self.attention not in ("full", "shared"):
            raise ConfigError(f"attention must be 'full' or 'shared', not {self.attention!r}.")
        if not 0 <= self.dropout < 1:
            raise ConfigError("dropout must be at least 0 and below 1.")

    @property
    def cell_px(self) -> int:
        """The side of one of the encoder's cells, before feature pooling."""
        return int(2 ** len(self.channels))

    @property
    def encoder_grid(self) -> tuple[int, int]:
        """Rows and columns of the encoder's cells, before feature pooling."""
        return self.height_px // self.cell_px, self.width_px // self.cell_px

    @property
    def grid(self) -> tuple[int, int]:
        """Rows and columns that attention is spread over."""
        rows, columns = self.encoder_grid
        return rows // self.pool_rows, columns // self.pool_columns

    @property
    def feature_units(self) -> int:
        """Length of one feature vector."""
        return self.channels[-1] * self.pool_rows * self.pool_columns

    @property
    def description(self) -> str:
        """What the model card says about the decoder."""
        return f"{self.lstm_layers} LSTM layers of {self.lstm_units} units"

    def receptive_field(self) -> ReceptiveField:
        """Work out which pixels of the canvas each cell of the grid sees."""
        more = [_CONVOLUTION, _POOLING] * (len(self.channels) - 1)
        layers = [_FIRST_CONVOLUTION, _POOLING, *more]
        (rows, columns), (height_px, width_px) = self.grid, self.canvas_shape
        return ReceptiveField(
            rows=convolved_axis(layers, canvas_px=height_px, num_cells=rows, pooled=self.pool_rows),
            columns=convolved_axis(layers, canvas_px=width_px, num_cells=columns, pooled=self.pool_columns),
        )

    def find_windows(self, pixels: NDArray[np.uint8]) -> list[InkWindow]:
        """Choose one window for all canvases (B, H, W), around the ink of all of them.

        A cell whose receptive field holds no ink has the features of a blank canvas. So the encoder is run on
        the part of the canvas that holds the other cells and one more cell (or pooled group of cells) on each
        side: those feel the zero padding at the edge of the part, and are not used. The result is that of
        the whole canvas.

        The window's ``cells`` say for each location of the grid where its features are: at a cell of the
        window, or, counted on after the last of those, at a cell of the blank canvas.
        """
        darkest = pixels.min(axis=0)[FRAME_PX:-FRAME_PX, FRAME_PX:-FRAME_PX]
        ink: NDArray[np.bool_] = darkest < WHITE
        needed, taken, parts = [], [], []
        for axis, (cells, pool) in enumerate(
            zip(self.encoder_grid, (self.pool_rows, self.pool_columns), strict=True)
        ):
            first, last = _touched_cells(np.flatnonzero(ink.any(axis=1 - axis)), self.cell_px)
            groups = cells // pool
            inner = max(first // pool, 0), min(last // pool + 1, groups)  # half-open
            outer = max(inner[0] - 1, 0), min(inner[1] + 1, groups)
            needed.append(inner)
            taken.append(outer)
            group_px = pool * self.cell_px
            parts.append(slice(outer[0] * group_px, outer[1] * group_px + 2 * FRAME_PX))
        cells_of_grid = _cell_index(self.grid, needed, taken)
        return [InkWindow(images=slice(None), rows=parts[0], columns=parts[1], cells=cells_of_grid)]

    def build(self, *, vocab_size: int) -> "Network":
        """Make the network, with new weights."""
        from i2l.model.calstm.network import Recognizer

        return Recognizer(self, vocab_size=vocab_size)


def _touched_cells(places: NDArray[np.intp], cell_px: int) -> tuple[int, int]:
    """Find the first and last cell whose receptive field holds ink, from its places along one axis.

    Five times a convolution of 3 and a pooling of 2 make a field of 94 pixels, 31 on each side of the cell.
    """
    if not len(places):
        return 0, 0
    margin_px = cell_px - 1
    return int(-(-(places[0] - 2 * margin_px) // cell_px)), int((places[-1] + margin_px) // cell_px)


def _cell_index(
    grid: tuple[int, int], needed: list[tuple[int, int]], taken: list[tuple[int, int]]
) -> NDArray[np.int64]:
    """Number for each location of the grid the cell of the window, or after those of the blank canvas."""
    (top, bottom), (left, right) = needed
    heights, widths = (last - first for first, last in taken)
    cells = heights * widths + np.arange(grid[0] * grid[1]).reshape(grid)
    rows = np.arange(top, bottom)[:, None] - taken[0][0]
    columns = np.arange(left, right)[None, :] - taken[1][0]
    cells[top:bottom, left:right] = rows * widths + columns
    index: NDArray[np.int64] = cells.reshape(-1)
    return index
