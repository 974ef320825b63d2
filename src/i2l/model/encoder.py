"""Pixels to a grid of feature vectors: five convolutions, each with tanh and a 2x2 max-pool."""

from collections.abc import Iterable, Sequence
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from i2l.model.glorot import glorot_

KERNEL = 3


def whiten(pixels: Tensor, dtype: torch.dtype) -> Tensor:
    """Map grey levels 0..255 to -0.5..0.5; white is +0.5."""
    return (pixels.to(dtype) - 127.5) / 255


def regroup(grid: Tensor, *, pool_rows: int, pool_columns: int) -> Tensor:
    """Concatenate neighbouring feature vectors in strides, row by row within a stride.

    Args:
        grid: (B, C, R, W)
        pool_rows: vectors of this many rows become one, top to bottom.
        pool_columns: and of this many columns, left to right.

    Returns:
        (B, R / pool_rows, W / pool_columns, pool_rows * pool_columns * C)
    """
    batch, channels, rows, columns = grid.shape
    grid = grid.permute(0, 2, 3, 1)  # (B, R, W, C)
    grid = grid.reshape(
        batch, rows // pool_rows, pool_rows, columns // pool_columns, pool_columns, channels
    ).transpose(2, 3)
    return grid.flatten(3)


def convolution(units_in: int, units_out: int, *, padding: int) -> nn.Conv2d:
    """A 3x3 convolution: Glorot kernel, zero bias."""
    layer = nn.Conv2d(units_in, units_out, KERNEL, padding=padding)
    glorot_(layer.weight, fan_in=KERNEL * KERNEL * units_in, fan_out=KERNEL * KERNEL * units_out)
    nn.init.zeros_(layer.bias)  # type: ignore[arg-type]
    return layer


class Encoder(nn.Module):
    """The paper's convolutional encoder.

    The first convolution is VALID: the canvas brings its own white frame. The others are zero-padded.
    """

    def __init__(self, *, channels: Sequence[int], pool_rows: int = 1, pool_columns: int = 1) -> None:
        super().__init__()
        self.pool_rows, self.pool_columns = pool_rows, pool_columns
        inputs = [1, *channels[:-1]]
        self.convolutions = nn.ModuleList(
            convolution(units_in, units_out, padding=0 if index == 0 else 1)
            for index, (units_in, units_out) in enumerate(zip(inputs, channels, strict=True))
        )

    def kernels(self, dtype: torch.dtype) -> tuple[list[Tensor], list[Tensor]]:
        """Give the kernels in the type they multiply in, channels last, and the biases as they are."""
        layers = cast(Iterable[nn.Conv2d], self.convolutions)
        kernels = [layer.weight.to(dtype, memory_format=torch.channels_last) for layer in layers]
        return kernels, [cast(Tensor, layer.bias) for layer in layers]

    def forward(self, pixels: Tensor) -> Tensor:
        """Encode whole canvases.

        Args:
            pixels: (B, H + 2, W + 2), uint8.

        Returns:
            (B, rows, columns, D)
        """
        grid = whiten(pixels, next(self.parameters()).dtype).unsqueeze(1)  # (B, 1, H + 2, W + 2)
        for layer in self.convolutions:
            grid = functional.max_pool2d(torch.tanh(layer(grid)), 2)  # (B, C, H / 2, W / 2), ...
        return regroup(grid, pool_rows=self.pool_rows, pool_columns=self.pool_columns)
