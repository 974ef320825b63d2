"""From gradients to new weights: learning-rate schedule, clipping, Adam or AdamW, weight averaging.

Nothing here waits for the device: norms and scales stay tensors, the learning rate is the only number that
comes from the host.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

AVERAGE_WARMUP = 10  # the average forgets its random start: decay (1 + n) / (10 + n) for the first updates


def scheduled_learning_rate(
    *, peak: float, schedule: str, warmup_steps: int, final_fraction: float, step: int, progress: float
) -> float:
    """Return the learning rate of one step.

    Args:
        peak: the rate after warm-up.
        schedule: "constant", or "cosine" from the peak down to ``final_fraction`` of it.
        warmup_steps: the rate rises linearly over this many steps.
        final_fraction: where the cosine ends, as a share of the peak.
        step: steps done before this one.
        progress: share of the run that is done, 0 .. 1, by steps or by wall-clock, whichever is further.
    """
    warmup = min(1.0, (step + 1) / (warmup_steps + 1))
    if schedule == "constant":
        return peak * warmup
    cosine = 0.5 * (1 + math.cos(math.pi * min(1.0, progress)))
    return peak * warmup * (final_fraction + (1 - final_fraction) * cosine)


class FlatGradients:
    """All gradients as views of one float32 buffer, at fixed addresses.

    One memset clears them, one reduction gives their norm, one all-reduce joins the processes, and captured
    CUDA graphs may write to them for as long as the run lasts.
    """

    def __init__(self, parameters: Sequence[nn.Parameter]) -> None:
        sizes = [parameter.numel() for parameter in parameters]
        self.buffer = torch.zeros(sum(sizes), device=parameters[0].device)
        start = 0
        for parameter, size in zip(parameters, sizes, strict=True):
            parameter.grad = self.buffer[start : start + size].view_as(parameter)
            start += size

    def clip(self, max_norm: float) -> Tensor:
        """Scale the gradients down to ``max_norm`` (0: leave them); return the norm they had, a scalar."""
        norm: Tensor = torch.linalg.vector_norm(self.buffer)
        if max_norm:
            self.buffer.mul_((max_norm / norm).clamp(max=1.0))
        return norm


def build_optimizer(
    *,
    regularized: Iterable[nn.Parameter],
    free: Iterable[nn.Parameter],
    kind: str,
    beta1: float,
    beta2: float,
    epsilon: float,
    weight_decay: float,
) -> torch.optim.Optimizer:
    """Build "adam" or "adamw"; with the latter the ``regularized`` parameters decay by ``weight_decay``.

    The paper's L2 term is not here: it is part of the objective.
    """
    optimizer: type[torch.optim.Adam] = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW}[kind]
    decay = {"adam": 0.0, "adamw": weight_decay}[kind]
    groups: list[dict[str, Any]] = [
        {"params": list(regularized), "weight_decay": decay},
        {"params": list(free), "weight_decay": 0.0},
    ]
    return optimizer(groups, lr=0.0, betas=(beta1, beta2), eps=epsilon, fused=True)


def set_learning_rate(optimizer: torch.optim.Optimizer, learning_rate: float) -> None:
    """Set the learning rate of every parameter group."""
    for group in optimizer.param_groups:
        group["lr"] = learning_rate


class WeightAverage:
    """An exponential moving average of the weights, swapped in for validation and for the checkpoint."""

    def __init__(self, parameters: Sequence[nn.Parameter], *, decay: float) -> None:
        self._weights = [parameter.data for parameter in parameters]
        self._decay = decay
        self.averages = [weight.clone() for weight in self._weights]
        self.num_updates = 0

    def update(self) -> None:
        """Take in the present weights."""
        self.num_updates += 1
        decay = min(self._decay, (1 + self.num_updates) / (AVERAGE_WARMUP + self.num_updates))
        torch._foreach_lerp_(self.averages, self._weights, 1 - decay)

    @contextmanager
    def swapped_in(self) -> Iterator[None]:
        """Let the model hold the averages inside the block, and its own weights again after it."""
        self._swap()
        try:
            yield
        finally:
            self._swap()

    def _swap(self) -> None:
        for weight, average in zip(self._weights, self.averages, strict=True):
            kept = weight.clone()
            weight.copy_(average)
            average.copy_(kept)

    def load(self, averages: Sequence[Tensor], num_updates: int) -> None:
        """Go on from saved averages."""
        for own, saved in zip(self.averages, averages, strict=True):
            own.copy_(saved)
        self.num_updates = num_updates
