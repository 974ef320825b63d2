"""The transformer decoder: layers that work on all steps at once in training, and on one step in decoding.

What a layer needs of earlier steps are its keys and values: the state. Before the first step that is one
empty place, all zeros, which every step may also look at. What it needs of the image are keys and values too,
computed once.

The last layer looks at the image with a single head, and that is the attention the network reports: all that
it adds to the decision comes from there.
"""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

FEEDFORWARD = 4  # times the units
MAX_STEPS = 512
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


def attend(queries: Tensor, keys: Tensor, values: Tensor, scores: Tensor | None, heads: int) -> Tensor:
    """Attention with several heads: (B, T, d) over (B, N, d), to which ``scores`` are added, to (B, T, d)."""
    queries, keys, values = (split_heads(part, heads) for part in (queries, keys, values))
    mixed = functional.scaled_dot_product_attention(queries, keys, values, attn_mask=scores)
    return mixed.transpose(1, 2).flatten(2)


class DecoderLayer(nn.Module):
    """Looks back at the words, then at the image, then thinks."""

    def __init__(self, *, units: int, heads: int, image_heads: int, dropout: float) -> None:
        super().__init__()
        self.heads, self.image_heads = heads, image_heads
        self.norms = nn.ModuleList(nn.LayerNorm(units) for _ in range(3))
        self.look_back = nn.Linear(units, 3 * units)
        self.look_back_out = nn.Linear(units, units)
        self.look_query = nn.Linear(units, units)
        self.look_out = nn.Linear(units, units)
        self.widen = nn.Linear(units, FEEDFORWARD * units)
        self.narrow = nn.Linear(FEEDFORWARD * units, units)
        self.dropout = nn.Dropout(dropout)

    def back(self, inputs: Tensor, past: Tensor, scores: Tensor | None) -> tuple[Tensor, Tensor]:
        """Look at earlier words.

        Args:
            inputs: (B, T, d)
            past: keys and values before the first of these steps, (B, P, 2d).
            scores: added to those of each step over all P + T places.

        Returns:
            (B, T, d), and keys and values of these steps, (B, T, 2d).
        """
        units = inputs.shape[2]
        queries, own = self.look_back(self.norms[0](inputs)).split([units, 2 * units], dim=2)
        keys, values = torch.cat([past.to(own.dtype), own], dim=1).chunk(2, dim=2)
        mixed = attend(queries, keys, values, scores, self.heads)
        return inputs + self.dropout(self.look_back_out(mixed)), own

    def look(
        self, inputs: Tensor, keys: Tensor, values: Tensor, scores: Tensor
    ) -> tuple[Tensor, Tensor | None]:
        """Look at the image; a single head also says where it looked.

        Args:
            inputs: (R, T, d); rows of one image stand next to each other, and so share its keys and values.
            keys: (B, N, d)
            values: likewise.
            scores: (B, N), added to those of all steps.

        Returns:
            (R, T, d), and the attention (R, T, N) of a single head.
        """
        queries = self.look_query(self.norms[1](inputs)).reshape(keys.shape[0], -1, keys.shape[2])
        attention = None
        if self.image_heads == 1:
            products = queries @ keys.transpose(1, 2) * keys.shape[2] ** -0.5  # (B, T, N)
            attention = torch.softmax(products.float() + scores.unsqueeze(1), dim=2)
            mixed = attention.to(values.dtype) @ values
        else:
            mixed = attend(queries, keys, values, scores[:, None, None].to(queries.dtype), self.image_heads)
        if attention is not None:
            attention = attention.reshape(*inputs.shape[:2], -1)
        return inputs + self.dropout(self.look_out(mixed.reshape(inputs.shape))), attention

    def think(self, inputs: Tensor) -> Tensor:
        """(B, T, d) to the same."""
        wide = functional.gelu(self.widen(self.norms[2](inputs)))
        thought: Tensor = inputs + self.dropout(self.narrow(wide))
        return thought


class Decoder(nn.Module):
    """All layers, with the words at one end and their scores at the other."""

    def __init__(self, *, units: int, layers: int, heads: int, vocab_size: int, dropout: float) -> None:
        super().__init__()
        self.units = units
        self.embedding = nn.Embedding(vocab_size, units)
        nn.init.normal_(self.embedding.weight, std=1.0)
        self.layers = nn.ModuleList(
            DecoderLayer(
                units=units, heads=heads, image_heads=heads if index + 1 < layers else 1, dropout=dropout
            )
            for index in range(layers)
        )
        self.image_keys = nn.Linear(units, layers * units)
        self.image_values = nn.Linear(units, layers * units)
        self.norm = nn.LayerNorm(units)
        self.score = nn.Linear(units, vocab_size)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("positions", wave_positions(torch.arange(MAX_STEPS), units), persistent=False)

    def forward(
        self, token_ids: Tensor, past: Tensor, keys: Tensor, values: Tensor, near: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Take T more words of each formula.

        Args:
            token_ids: (R, T); the rows of one image stand next to each other.
            past: keys and values of all layers at the places before, (R, P, layers * 2d); P is at least 1.
            keys: of the image for all layers, (B, N, layers * d).
            values: likewise.
            near: (B, N), 1 where ink is near.

        Returns:
            logits (R, T, K), keys and values of these steps (R, T, layers * 2d), attention (R, T, N).
        """
        steps, before = token_ids.shape[1], past.shape[1]
        positions: Tensor = self.positions  # type: ignore[assignment]
        hidden = self.embedding(token_ids) + positions[before - 1 : before - 1 + steps]
        hidden = self.dropout(hidden)
        later = None
        if steps > 1:
            later = torch.ones(steps, before + steps, dtype=torch.bool, device=past.device).tril(before)
        scores = FAR * (1 - near)
        count = len(self.layers)
        pasts, image_keys, image_values = (part.chunk(count, dim=2) for part in (past, keys, values))
        added, attention = [], None
        for index, layer in enumerate(self.layers):
            hidden, own = layer.back(hidden, pasts[index], later)  # type: ignore[operator]
            hidden, attention = layer.look(hidden, image_keys[index], image_values[index], scores)  # type: ignore[operator]
            hidden = layer.think(hidden)  # type: ignore[operator]
            added.append(own)
        assert attention is not None
        return self.score(self.norm(hidden)), torch.cat(added, dim=2), attention
