"""The network of the preset `pinpoint`: residual convolutions near the ink, then a transformer decoder.

The grid lies on the canvas as that of the paper's networks does, with cells of 16 pixels, and images are
centred on it in the same way; but only the part around the ink is computed, and only cells near ink are read.

Encoder: after every layer whatever is further than a few pixels from ink is set to zero, which is also what a
convolution finds beyond the edge. So an image has the same features on any canvas that holds it, and there is
no background to read: cells without ink take no part in attention.

Decoder: its layers work on all steps at once in training, and on one step in decoding. What a layer needs of
earlier steps are its keys and values: the state. Before the first step that is one empty place, all zeros,
which every step may also look at. What it needs of the image are keys and values too, computed once. The last
layer looks at the image with a single head, and that is the attention the network reports: all that it adds
to the decision comes from there.
"""

import math
from collections.abc import Iterable, Sequence
from typing import cast

import torch
from torch import Tensor, nn
from torch.export import Dim
from torch.nn import functional

from i2l.images.prepare import FAINT, FRAME_PX, WHITE
from i2l.model.network import ExportExample, Network, NetworkOutput, Window, autocast, shift_right
from i2l.model.pinpoint.config import PinpointConfig

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
            as_product = index == 0 and (grid.is_cuda or self.training)  # channels last: all layers keep it
            grid = functional.relu(first_halving(cast(nn.Conv2d, halve), grid) if as_product else halve(grid))
            grid = grid * near.to(grid.dtype)
            for block in blocks:  # type: ignore[attr-defined]
                grid = block(grid, near)
        return grid.permute(0, 2, 3, 1), near.squeeze(1) > 0


FEEDFORWARD = 4  # times the units
BLANK_SCORE = -1e4  # added to the attention score of a cell that is not near ink: it gets a share of zero
EXAMPLE_CELLS = 3, 5  # rows and columns of the window that export traces the network with
EXAMPLE_STEPS = 4


def wave_positions(places: Tensor, units: int) -> Tensor:
    """Sines and cosines of places: (...) to (..., units)."""
    half = units // 2
    rates = torch.exp(torch.arange(half, device=places.device) * (-math.log(10_000.0) / half))
    angles = places.unsqueeze(-1) * rates
    return torch.cat([angles.sin(), angles.cos()], dim=-1)


def split_heads(values: Tensor, heads: int) -> Tensor:
    """(B, N, d) to (B, heads, N, d / heads)."""
    return values.view(*values.shape[:2], heads, -1).transpose(1, 2)


def attend(
    queries: Tensor, keys: Tensor, values: Tensor, scores: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Return what queries find, (B, heads, Q, d), and where, (B, heads, Q, N).

    For few queries: exported, it needs no transposed copy of the keys, as torch's own attention does.
    """
    products = queries @ keys.transpose(2, 3) * keys.shape[3] ** -0.5
    products = products.to(torch.promote_types(products.dtype, torch.float32))
    if scores is not None:
        products = products + scores
    shares = torch.softmax(products, dim=3)
    return shares.to(values.dtype) @ values, shares


class DecoderLayer(nn.Module):
    """Looks back at the words, then at the image, then thinks.

    Looking back, several heads share their keys and values: they are what a search copies at every step.
    """

    def __init__(
        self, *, units: int, heads: int, shared_heads: int, image_heads: int, dropout: float
    ) -> None:
        super().__init__()
        self.heads, self.shared_heads, self.image_heads = heads, shared_heads, image_heads
        self.shared_units = units // heads * shared_heads
        self.norms = nn.ModuleList(nn.LayerNorm(units) for _ in range(3))
        self.look_back = nn.Linear(units, units + 2 * self.shared_units)
        self.look_back_out = nn.Linear(units, units)
        self.look_query = nn.Linear(units, units)
        self.look_out = nn.Linear(units, units)
        self.widen = nn.Linear(units, FEEDFORWARD * units)
        self.narrow = nn.Linear(FEEDFORWARD * units, units)
        self.dropout = nn.Dropout(dropout)

    def back(
        self, inputs: Tensor, keys: Tensor, values: Tensor, seen: Tensor | None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Look at earlier words.

        Args:
            inputs: (R, T, d)
            keys: of the places before the first of these steps, (R, shared, P, d / heads).
            values: likewise.
            seen: which of all P + T places each step may look at, (T, P + T); all if None.

        Returns:
            (R, T, d), and keys and values of all P + T places.
        """
        rows, steps, units = inputs.shape
        group = self.heads // self.shared_heads
        sizes = [units, self.shared_units, self.shared_units]
        queries, *own = self.look_back(self.norms[0](inputs)).split(sizes, dim=2)
        keys, values = (
            torch.cat([past, split_heads(new, self.shared_heads).to(past.dtype)], dim=2)
            for past, new in zip((keys, values), own, strict=True)
        )
        # the heads of a group are so many more queries to the same keys
        queries = split_heads(queries, self.heads).reshape(rows, self.shared_heads, group * steps, -1)
        past = keys.to(queries.dtype), values.to(queries.dtype)
        if seen is None:
            mixed, _ = attend(queries, *past)
        else:
            mixed = functional.scaled_dot_product_attention(queries, *past, attn_mask=seen.repeat(group, 1))
        mixed = mixed.reshape(rows, self.heads, steps, -1).transpose(1, 2).reshape(rows, steps, units)
        return inputs + self.dropout(self.look_back_out(mixed)), keys, values

    def look(
        self, inputs: Tensor, keys: Tensor, values: Tensor, scores: Tensor
    ) -> tuple[Tensor, Tensor | None]:
        """Look at the image; a single head also says where it looked.

        Args:
            inputs: (R, T, d); rows of one image stand next to each other, and so share its keys and values.
            keys: (B, heads, N, d / heads)
            values: likewise.
            scores: (B, N), added to those of all steps.

        Returns:
            (R, T, d), and the attention (R, T, N) of a single head.
        """
        queries = self.look_query(self.norms[1](inputs)).reshape(keys.shape[0], -1, inputs.shape[2])
        queries = split_heads(queries, self.image_heads)
        attention = None
        if self.image_heads == 1:
            mixed, shares = attend(queries, keys, values, scores[:, None, None])
            attention = shares.reshape(*inputs.shape[:2], -1)
        elif inputs.shape[1] == 1:
            mixed, _ = attend(queries, keys, values, scores[:, None, None])
        else:
            mixed = functional.scaled_dot_product_attention(
                queries, keys, values, attn_mask=scores[:, None, None].to(queries.dtype)
            )
        mixed = mixed.transpose(1, 2).reshape(inputs.shape)
        return inputs + self.dropout(self.look_out(mixed)), attention

    def think(self, inputs: Tensor) -> Tensor:
        """(R, T, d) to the same."""
        wide = functional.gelu(self.widen(self.norms[2](inputs)))
        thought: Tensor = inputs + self.dropout(self.narrow(wide))
        return thought


class Decoder(nn.Module):
    """All layers, with the words at one end and their scores at the other."""

    def __init__(
        self,
        *,
        units: int,
        layers: int,
        heads: int,
        shared_heads: int,
        vocab_size: int,
        max_steps: int,
        dropout: float,
        word_dropout: float,
    ) -> None:
        super().__init__()
        self.word_dropout = word_dropout
        self.embedding = nn.Embedding(vocab_size, units)
        nn.init.normal_(self.embedding.weight, std=1.0)
        self.layers = nn.ModuleList(
            DecoderLayer(
                units=units,
                heads=heads,
                shared_heads=shared_heads,
                image_heads=heads if index + 1 < layers else 1,
                dropout=dropout,
            )
            for index in range(layers)
        )
        self.image_keys = nn.Linear(units, layers * units)
        self.image_values = nn.Linear(units, layers * units)
        self.norm = nn.LayerNorm(units)
        self.score = nn.Linear(units, vocab_size)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("positions", wave_positions(torch.arange(max_steps), units), persistent=False)

    def each_layer(self) -> list[DecoderLayer]:
        """Return the layers, first to last."""
        return list(cast(Iterable[DecoderLayer], self.layers))

    def prepare(self, image: Tensor) -> dict[str, Tensor]:
        """Compute keys and values of the image for each layer, (B, heads, N, ...), from (B, N, d)."""
        layers = self.each_layer()
        prepared = {}
        for name, project in (("keys", self.image_keys), ("values", self.image_values)):
            for index, part in enumerate(project(image).chunk(len(layers), dim=2)):
                prepared[f"{name}{index}"] = split_heads(part, layers[index].image_heads).contiguous()
        return prepared

    def start(self, rows: int, like: Tensor) -> dict[str, Tensor]:
        """Return the empty place before the first step: keys and values of each layer."""
        empty = {}
        for index, layer in enumerate(self.each_layer()):
            shape = rows, layer.shared_heads, 1, layer.shared_units // layer.shared_heads
            empty[f"keys{index}"] = empty[f"values{index}"] = like.new_zeros(shape)
        return empty

    def forward(
        self, token_ids: Tensor, past: dict[str, Tensor], image: dict[str, Tensor], near: Tensor
    ) -> tuple[Tensor, dict[str, Tensor], Tensor]:
        """Take T more words of each formula.

        Args:
            token_ids: (R, T); the rows of one image stand next to each other.
            past: what `start` or an earlier call gave, with R rows.
            image: what `prepare` gave.
            near: (B, N), 1 where ink is near.

        Returns:
            logits (R, T, K), the past of the next call, and the attention (R, T, N).
        """
        steps, before = token_ids.shape[1], past["keys0"].shape[2]
        positions: Tensor = self.positions  # type: ignore[assignment]
        words = self.embedding(token_ids)
        if self.training and self.word_dropout:
            words = words * (torch.rand_like(words[..., :1]) >= self.word_dropout)
        hidden = self.dropout(words + positions[before - 1 : before - 1 + steps])
        seen = None
        if steps > 1:
            seen = torch.ones(steps, before + steps, dtype=torch.bool, device=near.device).tril(before)
        scores = BLANK_SCORE * (1 - near)
        new_past: dict[str, Tensor] = {}
        attention: Tensor | None = None
        for index, layer in enumerate(self.each_layer()):
            keys, values = f"keys{index}", f"values{index}"
            hidden, new_past[keys], new_past[values] = layer.back(hidden, past[keys], past[values], seen)
            hidden, attention = layer.look(hidden, image[keys], image[values], scores)
            hidden = layer.think(hidden)
        assert attention is not None
        return self.score(self.norm(hidden)), new_past, attention


class Pinpoint(Network):
    """A small network with a fine grid, whose last look at the image is its attention."""

    config: PinpointConfig

    def __init__(self, config: PinpointConfig, *, vocab_size: int) -> None:
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
            max_steps=config.max_steps,
            dropout=config.dropout,
            word_dropout=config.word_dropout,
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
        """Return the empty place before the first step."""
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

    def training_pass(
        self,
        pixels: Tensor,
        token_ids: Tensor,
        lengths: Tensor,
        *,
        window: Window,
        precision: str,
        fast: bool,
    ) -> NetworkOutput:
        """Read the window alone, whose cells are the attention's: the fastest way is the plainest."""
        with autocast(pixels.device, precision):
            return self.read_part(pixels, token_ids)

    def export_encoder(self) -> nn.Module:
        """Return the encoder of any window whose edges are edges of cells."""
        return _PartEncoder(self)

    @torch.no_grad()
    def export_example(self) -> ExportExample:
        """Return blank windows, as after some steps: a size of one would be taken for a fixed one."""
        cell_px, (rows, columns) = self.config.cell_px, EXAMPLE_CELLS
        pixels = torch.full((2, rows * cell_px, columns * cell_px), WHITE, dtype=torch.uint8)
        cells = torch.arange(rows * columns)
        memory = self.remember(pixels, cells)
        state = {name: part.repeat(1, 1, EXAMPLE_STEPS, 1) for name, part in self.start(memory).items()}
        sides = (
            cell_px * Dim(name, max=max(size, example + 1))
            for name, size, example in zip(("rows", "columns"), self.config.grid, EXAMPLE_CELLS, strict=True)
        )
        any_cells = Dim("cells")
        return ExportExample(
            pixels=pixels,
            cells=cells,
            memory=memory,
            state=state,
            encoder_shapes=({0: Dim.DYNAMIC, 1: next(sides), 2: next(sides)}, {0: Dim.DYNAMIC}),
            memory_shapes={name: {2 if part.dim() == 4 else 1: any_cells} for name, part in memory.items()},
            state_shape={3: Dim("steps")},
        )

    def idle_weights(self, names: Iterable[str]) -> dict[str, Tensor]:
        """Let blocks of the encoder look as new ones do, and add nothing of it yet."""
        own = self.state_dict()
        blocks = {name: own[name] for name in names if name.startswith("encoder.stages.")}
        return {
            name: torch.zeros_like(weight) if ".mix." in name else weight for name, weight in blocks.items()
        }

    def regularized_parameters(self) -> list[nn.Parameter]:
        """All matrices and kernels; no bias, no gain of a normalisation, no embedding."""
        return [
            parameter
            for name, parameter in self.named_parameters()
            if parameter.dim() > 1 and "embedding" not in name
        ]


class _PartEncoder(nn.Module):
    """Pixels of a part of the canvas, and the number of each of its cells, to memory and first state."""

    def __init__(self, model: Pinpoint) -> None:
        super().__init__()
        self.model = model

    def forward(self, pixels: Tensor, cells: Tensor) -> tuple[Tensor, ...]:
        memory = self.model.remember(pixels, cells)
        state = self.model.start(memory)
        return (*memory.values(), *(state[name] for name in self.model.state_names))
