"""The transformer decoder: layers that work on all steps at once in training, and on one step in decoding.

What a layer needs of earlier steps are its keys and values: the state. Before the first step that is one
empty place, all zeros, which every step may also look at. What it needs of the image are keys and values too,
computed once.

The last layer looks at the image with a single head, and that is the attention the network reports: all that
it adds to the decision comes from there.
"""

import math
from collections.abc import Iterable
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional

FEEDFORWARD = 4  # times the units
MAX_STEPS = 1024
FAR = -1e4  # the score of a cell without ink


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
    """Give what queries find, (B, heads, Q, d), and where, (B, heads, Q, N).

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
        self, *, units: int, layers: int, heads: int, shared_heads: int, vocab_size: int, dropout: float
    ) -> None:
        super().__init__()
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
        self.register_buffer("positions", wave_positions(torch.arange(MAX_STEPS), units), persistent=False)

    def each_layer(self) -> list[DecoderLayer]:
        """Give the layers, first to last."""
        return list(cast(Iterable[DecoderLayer], self.layers))

    def prepare(self, image: Tensor) -> dict[str, Tensor]:
        """Give keys and values of the image for each layer, (B, heads, N, ...), from (B, N, d)."""
        layers = self.each_layer()
        prepared = {}
        for name, project in (("keys", self.image_keys), ("values", self.image_values)):
            for index, part in enumerate(project(image).chunk(len(layers), dim=2)):
                prepared[f"{name}{index}"] = split_heads(part, layers[index].image_heads).contiguous()
        return prepared

    def start(self, rows: int, like: Tensor) -> dict[str, Tensor]:
        """Give the empty place before the first step: keys and values of each layer."""
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
        hidden = self.dropout(self.embedding(token_ids) + positions[before - 1 : before - 1 + steps])
        seen = None
        if steps > 1:
            seen = torch.ones(steps, before + steps, dtype=torch.bool, device=near.device).tril(before)
        scores = FAR * (1 - near)
        new_past: dict[str, Tensor] = {}
        attention: Tensor | None = None
        for index, layer in enumerate(self.each_layer()):
            keys, values = f"keys{index}", f"values{index}"
            hidden, new_past[keys], new_past[values] = layer.back(hidden, past[keys], past[values], seen)
            hidden, attention = layer.look(hidden, image[keys], image[values], scores)
            hidden = layer.think(hidden)
        assert attention is not None
        return self.score(self.norm(hidden)), new_past, attention
