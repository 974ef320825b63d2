"""Where to look next: a distribution over the image's locations, given the state of the top LSTM.

Both forms split their first layer: what depends on the image alone is computed once per image (`prepare`),
what depends on the state at every step. The sum is the paper's product with the concatenated inputs.
"""

import torch
from torch import Tensor, nn

from i2l.model.glorot import linear


class FullAttention(nn.Module):
    """The paper's attention: one MLP reads the whole flattened image and the state, scores all locations."""

    def __init__(
        self, *, locations: int, feature_units: int, state_units: int, units: tuple[int, int]
    ) -> None:
        super().__init__()
        first, second = (max(width, locations) for width in units)
        fan_in = locations * feature_units + state_units
        self.image = linear(locations * feature_units, first, fan_in=fan_in)
        self.state = linear(state_units, first, bias=False, fan_in=fan_in)
        self.hidden = linear(first, second)
        self.score = linear(second, locations)

    def prepare(self, features: Tensor) -> Tensor:
        """The image's share of the first layer: (B, L, D) to (B, units)."""
        prepared: Tensor = self.image(features.flatten(1))
        return prepared

    def forward(self, prepared: Tensor, hidden: Tensor) -> Tensor:
        """Give the attention (B * k, L) for the states (B * k, n) of k hypotheses per image."""
        state = self.state(hidden).unflatten(0, (prepared.shape[0], -1))  # (B, k, units)
        first = torch.tanh(prepared.unsqueeze(1) + state).flatten(0, 1)
        return torch.softmax(self.score(torch.tanh(self.hidden(first))), dim=1)


class SharedAttention(nn.Module):
    """The attention of Xu et al.: one MLP reads one location and the state, and scores that location."""

    def __init__(self, *, feature_units: int, state_units: int, units: tuple[int, int]) -> None:
        super().__init__()
        first, second = units
        fan_in = feature_units + state_units
        self.location = linear(feature_units, first, fan_in=fan_in)
        self.state = linear(state_units, first, bias=False, fan_in=fan_in)
        self.hidden = linear(first, second)
        self.score = linear(second, 1)

    def prepare(self, features: Tensor) -> Tensor:
        """Each location's share of the first layer: (B, L, D) to (B, L, units)."""
        prepared: Tensor = self.location(features)
        return prepared

    def forward(self, prepared: Tensor, hidden: Tensor) -> Tensor:
        """Give the attention (B * k, L) for the states (B * k, n) of k hypotheses per image."""
        state = self.state(hidden).unflatten(0, (prepared.shape[0], -1))  # (B, k, units)
        first = torch.tanh(prepared.unsqueeze(1) + state.unsqueeze(2)).flatten(0, 1)  # (B * k, L, units)
        return torch.softmax(self.score(torch.tanh(self.hidden(first))).squeeze(2), dim=1)
