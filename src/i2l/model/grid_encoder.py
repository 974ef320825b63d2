"""Pixels to a grid of feature vectors by residual convolutions that see near the ink only.

After every layer whatever is further than a few pixels from ink is set to zero, which is also what a
convolution finds beyond the edge. So an image has the same features on any canvas that holds it, and there is
no background to read: cells without ink take no part in attention.
"""

from collections.abc import Sequence
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from i2l.images.canvas import FAINT

HALVING_KERNEL, BLOCK_KERNEL = 4, 3  # an even one, so that a cell stands in the middle of what it sees
EXPANSION = 2
RESIDUAL_GAIN = 0.3  # of a block's last kernel at the start, so that seven blocks need no normalisation


def convolution(
    units_in: int, units_out: int, *, kernel: int, stride: int = 1, gain: float = 1.0
) -> nn.Conv2d:
    """A convolution as wide as its stride asks: He's kernel, zero bias."""
    layer = nn.Conv2d(units_in, units_out, kernel, stride=stride, padding=(kernel - 1) // 2)
    nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
    with torch.no_grad():
        layer.weight.mul_(gain)
    nn.init.zeros_(layer.bias)  # type: ignore[arg-type]
    return layer


class Block(nn.Module):
    """A residual block that looks one position to each side."""

    def __init__(self, units: int) -> None:
        super().__init__()
        self.look = convolution(units, EXPANSION * units, kernel=BLOCK_KERNEL)
        self.mix = convolution(EXPANSION * units, units, kernel=1, gain=RESIDUAL_GAIN)

    def forward(self, grid: Tensor, near: Tensor) -> Tensor:
        """(B, C, H, W) and where ink is near, (B, 1, H, W), to the same shape."""
        mixed: Tensor = self.mix(functional.relu(self.look(grid)))
        return torch.addcmul(grid, mixed, near.to(mixed.dtype))  # autocast's products are narrower


def first_halving(layer: nn.Conv2d, ink: Tensor) -> Tensor:
    """Compute a halving of a single channel, (B, 1, H, W) to (B, C, H / 2, W / 2), as a product of patches.

    That is twice as fast as cuDNN, whose layouts are made for more channels.
    """
    padded = functional.pad(ink.squeeze(1), ((HALVING_KERNEL - 1) // 2,) * 4)
    patches = padded.unfold(1, HALVING_KERNEL, 2).unfold(2, HALVING_KERNEL, 2).flatten(3)
    return functional.linear(patches, layer.weight.flatten(1), layer.bias).permute(0, 3, 1, 2)


class GridEncoder(nn.Module):
    """Halves the image as often as there are channels, with some blocks after each time."""

    def __init__(self, *, channels: Sequence[int], depths: Sequence[int], reach_px: int) -> None:
        super().__init__()
        self.reach_px = reach_px
        inputs = [1, *channels[:-1]]
        self.halvings = nn.ModuleList(
            convolution(units_in, units_out, kernel=HALVING_KERNEL, stride=2)
            for units_in, units_out in zip(inputs, channels, strict=True)
        )
        self.stages = nn.ModuleList(
            nn.ModuleList(Block(units) for _ in range(depth))
            for units, depth in zip(channels, depths, strict=True)
        )

    def forward(self, pixels: Tensor) -> tuple[Tensor, Tensor]:
        """Encode any part of a canvas whose edges are edges of cells, and which holds all ink.

        Args:
            pixels: (B, H, W), uint8, H and W multiples of the cell.

        Returns:
            Features (B, rows, columns, D), and whether ink is near each cell, (B, rows, columns).
        """
        dtype = next(self.parameters()).dtype
        ink = 1 - pixels.unsqueeze(1).to(dtype) / 255  # (B, 1, H, W)
        grid, near = ink, (pixels.unsqueeze(1) < FAINT).to(dtype)
        for index, (halve, blocks) in enumerate(zip(self.halvings, self.stages, strict=True)):
            reach = self.reach_px if index == 0 else 0
            near = functional.max_pool2d(near, 2 + 2 * reach, 2, reach)
            as_product = index == 0 and grid.is_cuda  # channels last, and all layers keep that order
            grid = functional.relu(first_halving(cast(nn.Conv2d, halve), grid) if as_product else halve(grid))
            grid = grid * near.to(grid.dtype)
            for block in blocks:  # type: ignore[attr-defined]
                grid = block(grid, near)
        return grid.permute(0, 2, 3, 1), near.squeeze(1) > 0
