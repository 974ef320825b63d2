"""A third network in one module: all that a network must say and do, as small as can be."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch import nn
from torch.export import Dim

from i2l.images.prepare import FRAME_PX, WHITE
from i2l.model.config import InkWindow, Layer, ModelConfig, ReceptiveField, convolved_axis
from i2l.model.network import ExportExample, Network, NetworkOutput, shift_right


@dataclass(frozen=True, kw_only=True)
class ToyConfig(ModelConfig):
    network: ClassVar = "toy"
    presets: ClassVar = {"toy": {}, "toy-wide": {"units": 24}}
    window_heights_px: ClassVar = (32,)
    score_bias: ClassVar = "score.bias"

    height_px: int = 64
    width_px: int = 192
    max_tokens: int = 16
    units: int = 12

    @property
    def cell_px(self):
        return 16

    @property
    def grid(self):
        return self.height_px // self.cell_px, self.width_px // self.cell_px

    @property
    def description(self):
        return f"a toy of {self.units} units"

    def receptive_field(self):
        return ReceptiveField(
            *(
                convolved_axis(
                    [Layer(self.cell_px, self.cell_px, 0)], canvas_px=size, num_cells=cells, edge_px=FRAME_PX
                )
                for size, cells in zip(self.canvas_shape, self.grid, strict=True)
            )
        )

    def find_windows(self, pixels):
        whole = slice(None)
        return [InkWindow(whole, whole, whole, np.arange(self.grid[0] * self.grid[1]))]

    def build(self, *, vocab_size):
        return ToyNetwork(self, vocab_size=vocab_size)


class ToyNetwork(Network):
    """Looks at the mean of each cell, remembers in one layer of tanh."""

    state_names = ("hidden",)

    def __init__(self, config, *, vocab_size):
        super().__init__(config, vocab_size=vocab_size)
        self.look = nn.Linear(config.cell_px**2, config.units)
        self.embedding = nn.Embedding(vocab_size, config.units)
        self.remember = nn.Linear(3 * config.units, config.units)
        self.score = nn.Linear(config.units, vocab_size)

    def features(self, pixels):
        area = 1 - pixels[:, FRAME_PX:-FRAME_PX, FRAME_PX:-FRAME_PX].float() / WHITE
        rows, columns = self.config.grid
        side = self.config.cell_px
        cells = area.reshape(-1, rows, side, columns, side).transpose(2, 3).flatten(3)
        return torch.tanh(self.look(cells)).flatten(1, 2)  # (B, L, units)

    def encode(self, pixels):
        return {"features": self.features(pixels)}

    def start(self, memory):
        return {"hidden": memory["features"].mean(dim=1)}

    def step(self, memory, state, token_ids):
        features, hidden = memory["features"], state["hidden"]
        images = features.shape[0]
        queries = hidden.reshape(images, -1, hidden.shape[1])  # (B, k, units)
        attention = torch.softmax(queries @ features.transpose(1, 2), dim=2)
        context = (attention @ features).reshape(hidden.shape)
        hidden = torch.tanh(self.remember(torch.cat([self.embedding(token_ids), hidden, context], dim=1)))
        return self.score(hidden), {"hidden": hidden}, attention.reshape(-1, *self.config.grid)

    def forward(self, pixels, token_ids, lengths):
        memory = self.encode(pixels)
        state, found = self.start(memory), []
        for inputs in shift_right(token_ids).unbind(1):
            logits, state, attention = self.step(memory, state, inputs)
            found.append((logits, attention))
        logits, attention = (torch.stack(parts, dim=1) for parts in zip(*found, strict=True))
        return NetworkOutput(logits=logits, attention=attention)

    def regularized_parameters(self):
        return [parameter for parameter in self.parameters() if parameter.dim() > 1]

    def export_encoder(self):
        return ToyEncoder(self)

    def export_example(self):
        pixels = torch.full((2, *self.config.canvas_shape), WHITE, dtype=torch.uint8)
        memory = self.encode(pixels)
        return ExportExample(
            pixels=pixels,
            cells=torch.arange(memory["features"].shape[1]),
            memory=memory,
            state=self.start(memory),
            encoder_shapes=({0: Dim.DYNAMIC}, None),
        )


class ToyEncoder(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, pixels, cells):
        memory = {"features": self.model.features(pixels)[:, cells]}
        return memory["features"], self.model.start(memory)["hidden"]
