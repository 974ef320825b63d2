"""Glorot's uniform initialisation with the fans stated by the caller, as a kernel may be stored in parts."""

import math

import torch
from torch import Tensor, nn


def glorot_(tensor: Tensor, *, fan_in: int, fan_out: int) -> Tensor:
    """Fill in place, uniform within sqrt(6 / (fan_in + fan_out))."""
    limit = math.sqrt(6 / (fan_in + fan_out))
    with torch.no_grad():
        return tensor.uniform_(-limit, limit)


def linear(units_in: int, units_out: int, *, bias: bool = True, fan_in: int | None = None) -> nn.Linear:
    """A fully connected layer: Glorot kernel, zero bias.

    ``fan_in`` counts the inputs of the whole kernel where this layer holds only a part of it.
    """
    layer = nn.Linear(units_in, units_out, bias=bias)
    glorot_(layer.weight, fan_in=fan_in or units_in, fan_out=units_out)
    if bias:
        nn.init.zeros_(layer.bias)
    return layer
