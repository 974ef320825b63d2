"""What training, decoding and export ask of a network, whichever it is."""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from i2l.config import ModelConfig, ObjectiveConfig
from i2l.formulas.vocabulary import Vocabulary
from i2l.model.objective import (
    ObjectiveResult,
    attention_errors,
    guidance_loss,
    half_squared_norm,
    log_loss,
)


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
