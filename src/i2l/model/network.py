"""What training, decoding and export ask of a network, whichever it is.

What training minimises: log-loss per word, L2 on the kernels, and the optional penalty on attention.

The network that a config describes.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from i2l.config import ModelConfig, ObjectiveConfig
from i2l.formulas.vocabulary import Vocabulary


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


@dataclass(frozen=True)
class NetworkOutput:
    """What a network says about a batch when each true word is fed to the next step."""

    logits: Tensor  # (B, T, K)
    attention: Tensor  # (B, T, rows, columns)


def shift_right(token_ids: Tensor) -> Tensor:
    """The input at each step is the word before the target: bos first, (B, T) to (B, T)."""
    first = torch.full_like(token_ids[:, :1], Vocabulary.bos_id)
    return torch.cat([first, token_ids[:, :-1]], dim=1)


class Network(nn.Module, ABC):
    """Reads the image of a formula and writes its tokens.

    Training calls `forward` and `loss`. Decoding calls `encode` once per image, `start`, and `step` once
    per token. `step` takes k hypotheses per image: the rows of the state and of ``token_ids`` are then
    B * k, with those of one image next to each other, and the memory is never copied per hypothesis.
    """

    def __init__(self, config: ModelConfig, *, vocab_size: int) -> None:
        super().__init__()
        self.config = config
        self.vocab_size = vocab_size

    @property
    @abstractmethod
    def state_names(self) -> list[str]:
        """The keys of the state."""

    @abstractmethod
    def encode(self, pixels: Tensor) -> dict[str, Tensor]:
        """Compute all that decoding needs from the images.

        Args:
            pixels: (B, H + 2, W + 2), uint8 grey on the model's canvas, white = 255.

        Returns:
            The memory: tensors with a leading batch dimension.
        """

    @abstractmethod
    def start(self, memory: dict[str, Tensor]) -> dict[str, Tensor]:
        """Give the state before the first step, one hypothesis per image: each part (B, ...)."""

    @abstractmethod
    def step(
        self, memory: dict[str, Tensor], state: dict[str, Tensor], token_ids: Tensor
    ) -> tuple[Tensor, dict[str, Tensor], Tensor]:
        """Read one token per hypothesis and score the next.

        Args:
            memory: of B images.
            state: each part (B * k, ...).
            token_ids: (B * k,), the last token of each hypothesis; bos at first.

        Returns:
            logits (B * k, K), the new state, and the attention (B * k, rows, columns).
        """

    @abstractmethod
    def forward(self, pixels: Tensor, token_ids: Tensor, lengths: Tensor) -> NetworkOutput:
        """Score each target given the true words before it.

        Args:
            pixels: (B, H + 2, W + 2), uint8 grey on the model's canvas.
            token_ids: (B, T), the targets: words, then eos; eos also pads.
            lengths: (B,), words counted with eos. What stands after them is computed all the same.
        """

    @abstractmethod
    def regularized_parameters(self) -> list[nn.Parameter]:
        """The weights under L2 and weight decay."""

    def loss(
        self,
        output: NetworkOutput,
        token_ids: Tensor,
        lengths: Tensor,
        *,
        objective: ObjectiveConfig,
        covered: Tensor | None = None,
    ) -> ObjectiveResult:
        """Compute the objective of a batch; targets and lengths as in `forward`.

        ``covered`` says how much of each cell the box of each token covers, (B, T, rows, columns).
        """
        word_loss = log_loss(output.logits, token_ids, lengths, label_smoothing=objective.label_smoothing)
        ase, aae = (errors.mean() for errors in attention_errors(output.attention, lengths))
        alpha_penalty = (ase - objective.ase_target).abs()
        regularization = half_squared_norm(self.regularized_parameters())
        total = word_loss
        if objective.l2:
            total = total + objective.l2 * regularization
        if objective.alpha_penalty:
            total = total + objective.alpha_penalty * alpha_penalty
        if objective.guidance and covered is not None:
            total = total + objective.guidance * guidance_loss(output.attention, covered)
        return ObjectiveResult(
            total=total,
            log_loss=word_loss,
            regularization=regularization,
            alpha_penalty=alpha_penalty,
            ase=ase,
            aae=aae,
        )


def build_network(config: ModelConfig, *, vocab_size: int) -> Network:
    """Make the network with new weights."""
    from i2l.model.calstm.network import Recognizer
    from i2l.model.pinpoint.network import Pinpoint

    kind = Pinpoint if config.network == "transformer" else Recognizer
    return kind(config, vocab_size=vocab_size)
