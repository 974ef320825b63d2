"""The network of the preset `pinpoint`: residual grid encoder, places in the plane, transformer decoder.

The grid lies on the canvas as that of the paper's networks does, with cells of 16 pixels, and images are
centred on it in the same way; but only the part around the ink is computed, and only cells near ink are read.
"""

import torch
from torch import Tensor, nn

from i2l.config import ModelConfig
from i2l.images.canvas import FAINT, FRAME_PX
from i2l.model.grid_encoder import GridEncoder
from i2l.model.network import Network, NetworkOutput, shift_right
from i2l.model.transformer import Decoder, wave_positions


class Pinpoint(Network):
    """A small network with a fine grid, whose last look at the image is its attention."""

    def __init__(self, config: ModelConfig, *, vocab_size: int) -> None:
        super().__init__(config, vocab_size=vocab_size)
        units = config.decoder_units
        self.encoder = GridEncoder(channels=config.channels, depths=config.depths, reach_px=config.reach_px)
        self.norm = nn.LayerNorm(config.feature_units)
        self.project = nn.Linear(config.feature_units, units)
        self.decoder = Decoder(
            units=units,
            layers=config.decoder_layers,
            heads=config.decoder_heads,
            shared_heads=config.decoder_shared_heads,
            vocab_size=vocab_size,
            dropout=config.dropout,
        )

    @property
    def state_names(self) -> list[str]:
        """Keys and values of each layer at all steps so far."""
        return [
            f"{part}{index}" for index in range(self.config.decoder_layers) for part in ("keys", "values")
        ]

    def encode(self, pixels: Tensor) -> dict[str, Tensor]:
        """Compute the memory from the part of the canvases that holds their ink."""
        area = pixels[:, FRAME_PX:-FRAME_PX, FRAME_PX:-FRAME_PX]
        ink = (area < FAINT).any(dim=0)
        (top, bottom), (left, right) = (
            self._near_cells(ink.any(dim=1 - axis), cells) for axis, cells in enumerate(self.config.grid)
        )
        cell_px = self.config.cell_px
        part = area[:, top * cell_px : bottom * cell_px, left * cell_px : right * cell_px]
        columns = torch.arange(left, right, device=pixels.device)
        rows = torch.arange(top, bottom, device=pixels.device).unsqueeze(1)
        return self.remember(part, (rows * self.config.grid[1] + columns).flatten())

    def _near_cells(self, inked: Tensor, num_cells: int) -> tuple[int, int]:
        places = inked.nonzero()
        if not len(places):
            return 0, 1
        return self.config.near_cells(int(places[0]), int(places[-1]), num_cells=num_cells)

    def remember(self, pixels: Tensor, cells: Tensor) -> dict[str, Tensor]:
        """Compute the memory from a part of canvases, (B, h, w), and the numbers of its cells, (N,)."""
        features, near = self.encoder(pixels)
        hidden = self.project(self.norm(features)) + self._places(near)
        return {
            **self.decoder.prepare(hidden.flatten(1, 2)),
            "near": near.flatten(1).to(hidden.dtype),
            "cells": cells.unsqueeze(0).expand(len(pixels), -1),
        }

    def _places(self, near: Tensor) -> Tensor:
        """Describe where each cell is, counted from the first row and column with ink: (B, r, c, d)."""
        half = self.config.decoder_units // 2
        waves = []
        for axis in (1, 2):
            inked = near.any(dim=3 - axis)  # (B, r) or (B, c)
            first = inked.to(torch.int32).argmax(dim=1, keepdim=True)
            places = torch.arange(near.shape[axis], device=near.device) - first
            waves.append(wave_positions(places, half))
        rows, columns = waves
        shape = (-1, near.shape[1], near.shape[2], -1)
        return torch.cat([rows.unsqueeze(2).expand(shape), columns.unsqueeze(1).expand(shape)], dim=3)

    def start(self, memory: dict[str, Tensor]) -> dict[str, Tensor]:
        """Give the empty place before the first step."""
        near = memory["near"]
        return self.decoder.start(near.shape[0], near)

    def step(
        self, memory: dict[str, Tensor], state: dict[str, Tensor], token_ids: Tensor
    ) -> tuple[Tensor, dict[str, Tensor], Tensor]:
        """Read one token per hypothesis and score the next; see `Network.step`."""
        logits, state, attention = self.decoder(token_ids.unsqueeze(1), state, memory, memory["near"])
        rows, columns = self.config.grid
        cells = memory["cells"]
        attention = attention.reshape(cells.shape[0], -1, cells.shape[1])  # (B, k, N)
        grid = attention.new_zeros(*attention.shape[:2], rows * columns)
        grid = grid.scatter(2, cells.unsqueeze(1).expand_as(attention), attention)
        return logits.squeeze(1), state, grid.reshape(-1, rows, columns)

    def forward(self, pixels: Tensor, token_ids: Tensor, lengths: Tensor) -> NetworkOutput:
        """Score each target given the true words before it; see `Network.forward`."""
        area = pixels[:, FRAME_PX:-FRAME_PX, FRAME_PX:-FRAME_PX]
        return self.read_part(area, token_ids)

    def read_part(self, pixels: Tensor, token_ids: Tensor) -> NetworkOutput:
        """Do as `forward`, from a part of the canvas (B, h, w) that holds all ink, and attend to that."""
        rows, columns = (size // self.config.cell_px for size in pixels.shape[1:])
        cells = torch.arange(rows * columns, device=pixels.device)
        memory = self.remember(pixels, cells)
        start = self.start(memory)
        logits, _, attention = self.decoder(shift_right(token_ids), start, memory, memory["near"])
        return NetworkOutput(logits=logits, attention=attention.unflatten(2, (rows, columns)))

    def regularized_parameters(self) -> list[nn.Parameter]:
        """All matrices and kernels; no bias, no gain of a normalisation, no embedding."""
        return [
            parameter
            for name, parameter in self.named_parameters()
            if parameter.dim() > 1 and "embedding" not in name
        ]
