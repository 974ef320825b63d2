"""The settings of the network `pinpoint`, and what can be said about it without weights."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from i2l.files import ConfigError
from i2l.images.prepare import FAINT, FRAME_PX
from i2l.model.config import InkWindow, Layer, Memory, ModelConfig, ReceptiveField, convolved_axis

if TYPE_CHECKING:
    from i2l.model.network import Network

# The layers of `i2l.model.pinpoint.network`, which reads what is inside the frame.
_HALVING: Final = Layer(kernel=4, stride=2, padding=1)
_BLOCK: Final = Layer(kernel=3, stride=1, padding=1)


@dataclass(frozen=True, kw_only=True)
class PinpointConfig(ModelConfig):
    """Residual convolutions near the ink, and a transformer decoder; in the box is one with more blocks."""

    network: ClassVar = "pinpoint"
    presets: ClassVar = {"pinpoint": {}}
    # The edges of its windows are edges of cells; the higher ones are for displays of several lines.
    window_heights_px: ClassVar = (64, 96, 160, 256, 384, 576, 896)
    score_bias: ClassVar = "decoder.score.bias"

    height_px: int = 1408
    width_px: int = 1600
    max_tokens: int = 600

    # Encoder: channels after each halving of the image, and the residual blocks that follow it.
    channels: tuple[int, ...] = (32, 64, 128, 256)
    depths: tuple[int, ...] = (0, 2, 3, 1)
    reach_px: int = 4  # what is further from ink takes no part

    # Decoder
    decoder_units: int = 384
    decoder_layers: int = 4
    decoder_heads: int = 6
    decoder_shared_heads: int = 2  # keys and values of earlier words that the heads share among them
    dropout: float = 0.1
    word_dropout: float = 0.0  # share of earlier words that training hides, so that it looks more closely

    def __post_init__(self) -> None:
        """Check what cannot be checked by the types.

        Raises:
            ConfigError: if the sizes do not fit together.
        """
        super().__post_init__()
        if len(self.depths) != len(self.channels):
            raise ConfigError("There must be as many depths as channels.")
        if self.decoder_units % (4 * self.decoder_heads) or self.decoder_heads % self.decoder_shared_heads:
            raise ConfigError(
                "decoder_units must be a multiple of 4 decoder_heads, and those of decoder_shared_heads."
            )
        if not (0 <= self.dropout < 1 and 0 <= self.word_dropout < 1):
            raise ConfigError("dropout and word_dropout must be at least 0 and below 1.")

    @property
    def cell_px(self) -> int:
        """The side of a cell."""
        return int(2 ** len(self.channels))

    @property
    def grid(self) -> tuple[int, int]:
        """Rows and columns that attention is spread over."""
        return self.height_px // self.cell_px, self.width_px // self.cell_px

    @property
    def feature_units(self) -> int:
        """Length of one feature vector."""
        return self.channels[-1]

    @property
    def description(self) -> str:
        """What the model card says about the decoder."""
        return f"{self.decoder_layers} transformer layers of {self.decoder_units} units"

    @property
    def window_margin_px(self) -> int:
        """A little more than the ink takes part."""
        return self.reach_px

    def receptive_field(self) -> ReceptiveField:
        """Work out which pixels of the canvas each cell of the grid sees."""
        layers = [layer for depth in self.depths for layer in (_HALVING, *[_BLOCK] * depth)]
        (rows, columns), (height_px, width_px) = self.grid, self.canvas_shape
        return ReceptiveField(
            rows=convolved_axis(layers, canvas_px=height_px, num_cells=rows, edge_px=FRAME_PX),
            columns=convolved_axis(layers, canvas_px=width_px, num_cells=columns, edge_px=FRAME_PX),
        )

    def near_cells(self, first_px: int, last_px: int, *, num_cells: int) -> tuple[int, int]:
        """Find, along an axis, the cells that are needed for ink from and to these pixels: half-open."""
        first, last = first_px - self.reach_px, last_px + self.reach_px
        return max(first // self.cell_px, 0), min(last // self.cell_px + 1, num_cells)

    def find_windows(self, pixels: NDArray[np.uint8]) -> list[InkWindow]:
        """Choose a window for each canvas: one around the ink of all of them would be mostly blank.

        The window's ``cells`` are the numbers that its cells have on the canvas.
        """
        return [self._find_window(pixels, number) for number in range(len(pixels))]

    def _find_window(self, pixels: NDArray[np.uint8], number: int) -> InkWindow:
        ink = pixels[number, FRAME_PX:-FRAME_PX, FRAME_PX:-FRAME_PX] < FAINT
        cell_px, spans = self.cell_px, []
        for axis, cells in enumerate(self.grid):
            places = np.flatnonzero(ink.any(axis=1 - axis))
            first, last = (int(places[0]), int(places[-1])) if len(places) else (0, 0)
            spans.append(self.near_cells(first, last, num_cells=cells))
        (top, bottom), (left, right) = spans
        numbers = np.arange(top, bottom)[:, None] * self.grid[1] + np.arange(left, right)
        return InkWindow(
            images=slice(number, number + 1),
            rows=slice(FRAME_PX + top * cell_px, FRAME_PX + bottom * cell_px),
            columns=slice(FRAME_PX + left * cell_px, FRAME_PX + right * cell_px),
            cells=numbers.reshape(-1),
        )

    def join_memories(self, memories: Sequence[Memory]) -> Memory:
        """Make one memory of those of single images, with the cells near ink alone: no step looks beyond.

        An image with fewer of them than another is filled up with cells that are not near ink, all zeros.
        Attention is written to the canvas by the numbers of the cells, so the added ones get numbers that
        the image does not use, each a different one.
        """
        near = [np.flatnonzero(memory["near"][0]) for memory in memories]
        longest = max(1, *map(len, near))
        joined: Memory = {}
        for name, first in memories[0].items():
            axis = first.ndim // 2  # of the cells: (B, N) or (B, heads, N, units)
            shape = len(memories), *first.shape[1:axis], longest, *first.shape[axis + 1 :]
            value = np.zeros(shape, first.dtype)
            for index, (memory, places) in enumerate(zip(memories, near, strict=True)):
                part = memory[name]
                value[index].swapaxes(0, axis - 1)[: len(places)] = part[0].swapaxes(0, axis - 1)[places]
                if name == "cells":
                    unused = np.setdiff1d(np.arange(math.prod(self.grid)), part[0][places])
                    value[index, len(places) :] = unused[: longest - len(places)]
            joined[name] = value
        return joined

    def build(self, *, vocab_size: int) -> "Network":
        """Make the network, with new weights."""
        from i2l.model.pinpoint.network import Pinpoint

        return Pinpoint(self, vocab_size=vocab_size)
