"""One batch in, its gradients and scalars out; the part of a step that runs on the device."""

import contextlib
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.profiler import record_function

from i2l.config import ObjectiveConfig
from i2l.model.objective import step_mask
from i2l.model.recognizer import Recognizer
from i2l.training.resident import ResidentSplit
from i2l.training.shapes import BatchShape

SCALARS = ("objective", "loss", "regularization", "alpha_penalty", "ase", "aae", "token_accuracy")


@dataclass(frozen=True)
class GradientResult:
    """What a step says beside its gradients; read it later, so that the device is not waited for."""

    scalars: Tensor  # one value for each of SCALARS
    predicted: (
        Tensor  # (B, T), the likeliest token at each step given the true ones before it; eos after the end
    )


def autocast(device: torch.device, precision: str) -> contextlib.AbstractContextManager[object]:
    """Let matrix products and convolutions run in the precision of the config."""
    if precision == "float32":
        return contextlib.nullcontext()
    # The cache would keep casts of weights that the optimiser has changed inside a captured graph.
    return torch.autocast(device.type, dtype=getattr(torch, precision), cache_enabled=False)


class GradientStep:
    """Adds the gradients of a batch to those of the model's parameters."""

    def __init__(
        self, *, model: Recognizer, data: ResidentSplit, objective: ObjectiveConfig, precision: str
    ) -> None:
        self._model = model
        self._data = data
        self._objective = objective
        self._precision = precision

    def __call__(self, indices: Tensor, shape: BatchShape) -> GradientResult:
        """Compute the gradients of the samples at ``indices`` (B,), on the device."""
        with record_function("i2l: gather"):
            pixels = self._data.canvases(indices)
            token_ids, lengths = self._data.targets(indices, num_tokens=shape.num_tokens)
        with record_function("i2l: forward"), autocast(indices.device, self._precision):
            output = self._model(pixels, token_ids, lengths)
            result = self._model.loss(output, token_ids, lengths, objective=self._objective)
        with record_function("i2l: backward"):
            torch.autograd.backward(result.total)
        with record_function("i2l: scalars"), torch.no_grad():
            mask = step_mask(lengths, shape.num_tokens)
            predicted = output.logits.argmax(dim=2) * mask
            right = ((predicted == token_ids) & mask).sum() / lengths.sum()
            parts = (
                result.total,
                result.log_loss,
                result.regularization,
                result.alpha_penalty,
                result.ase,
                result.aae,
                right,
            )
            return GradientResult(torch.stack([part.detach().float() for part in parts]), predicted)
