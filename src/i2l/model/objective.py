"""What training minimises: log-loss per word, L2 on the kernels, and the optional penalty on attention."""

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional


@dataclass(frozen=True)
class ObjectiveResult:
    """The objective and its parts, all scalars that gradients flow through."""

    total: Tensor  # log_loss + l2 * regularization + lambda_A * |ASE_N - ASE_T|
    log_loss: Tensor
    regularization: Tensor  # half the squared norm, before its factor
    alpha_penalty: Tensor  # before its factor
    ase: Tensor  # ASE_N, batch mean: how unevenly the locations were looked at, 0..100
    aae: Tensor  # AAE_N, batch mean: the same from absolute differences


def step_mask(lengths: Tensor, steps: int) -> Tensor:
    """Mark the steps that belong to each sample, eos included: (B,) to (B, T)."""
    return torch.arange(steps, device=lengths.device).unsqueeze(0) < lengths.unsqueeze(1)


def log_loss(logits: Tensor, token_ids: Tensor, lengths: Tensor, *, label_smoothing: float = 0.0) -> Tensor:
    """Cross-entropy: the mean over each sample's own words, then the mean over the batch.

    Args:
        logits: (B, T, K)
        token_ids: (B, T), the targets.
        lengths: (B,), words counted with eos.
        label_smoothing: this share of the target is spread evenly over all tokens.
    """
    batch, steps, _ = logits.shape
    losses = functional.cross_entropy(
        logits.flatten(0, 1).to(torch.promote_types(logits.dtype, torch.float32)),
        token_ids.flatten(),
        reduction="none",
        label_smoothing=label_smoothing,
    ).view(batch, steps)
    mask = step_mask(lengths, steps)
    return ((losses * mask).sum(1) / lengths).mean()


def attention_errors(attention: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
    """Give ASE_N and AAE_N of each sample, (B,) each, from the attention (B, T, rows, columns)."""
    attention = attention.flatten(2)
    _, steps, locations = attention.shape
    seen = (attention * step_mask(lengths, steps).unsqueeze(2)).sum(1)  # (B, L)
    words = lengths.to(seen.dtype)
    difference = seen - (words / locations).unsqueeze(1)
    share = (locations - 1) / locations
    ase = 100 * difference.square().sum(1) / (words.square() * share)
    aae = 100 * difference.abs().sum(1) / (2 * words * share)
    return ase, aae


def guidance_loss(attention: Tensor, covered: Tensor) -> Tensor:
    """The mean over tokens with a box of minus the log of the attention on it; 0 if there is none.

    Args:
        attention: (B, T, rows, columns)
        covered: how much of each cell the token's box covers, likewise; zero for a token without.
    """
    on_box = (attention * covered).sum(dim=(2, 3))
    has_box = covered.amax(dim=(2, 3)) > 0
    losses = -torch.log(on_box.clamp(min=1e-6)) * has_box
    return losses.sum() / has_box.sum().clamp(min=1)


def half_squared_norm(weights: Iterable[Tensor]) -> Tensor:
    """Half the sum of squares. By way of the norm: its gradient makes one pass over a weight, not three."""
    return torch.stack([torch.linalg.vector_norm(weight).square() for weight in weights]).sum() / 2
