"""The two ends of the decoder: the state it starts from, and the scores of the next token."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from i2l.model.glorot import linear


class InitModel(nn.Module):
    """The initial state from the whole image: a hidden layer, then one output layer per part of the state."""

    def __init__(
        self, *, image_units: int, hidden_units: int, units: int, state_names: Sequence[str]
    ) -> None:
        super().__init__()
        self.state_names = list(state_names)
        self.hidden = linear(image_units, hidden_units)
        self.parts = nn.ModuleList(linear(hidden_units, units) for _ in self.state_names)

    def forward(self, features: Tensor) -> dict[str, Tensor]:
        """Give each part of the state, (B, n), from the features (B, L, D)."""
        hidden = torch.tanh(self.hidden(features.flatten(1)))
        return {
            name: torch.tanh(part(hidden)) for name, part in zip(self.state_names, self.parts, strict=True)
        }


class OutputLayer(nn.Module):
    """The deep output layer: an MLP over the word read, the stack's output and the context (two skips)."""

    def __init__(
        self, *, embedding_units: int, state_units: int, feature_units: int, units: int, vocab_size: int
    ) -> None:
        super().__init__()
        units = max(units, vocab_size)
        self.first = linear(embedding_units + state_units + feature_units, units)
        self.second = linear(units, units)
        self.score = linear(units, vocab_size)

    def forward(self, embedded: Tensor, output: Tensor, context: Tensor) -> Tensor:
        """Give the logits (..., K) from (..., m), (..., n) and (..., D)."""
        first = torch.tanh(self.first(torch.cat([embedded, output, context], dim=-1)))
        logits: Tensor = self.score(torch.tanh(self.second(first)))
        return logits
