"""A checkpoint, or a model in training, run by torch on its own device.

This module needs torch, so it is imported only where a checkpoint is read or a model is trained.
"""

from collections.abc import Callable
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor

from i2l.inference.decoding import Arrays, BeamOptions, Memory, State, beam_search
from i2l.model.network import Network


class TorchBackend:
    """A network that reads on the device where its weights are."""

    batch_size = 32

    def __init__(self, model: Network) -> None:
        self._model = model
        self._device = next(model.parameters()).device
        self.num_lanes = 1  # torch has threads of its own, or there is one device
        self.arrays: Arrays = TorchArrays(self._device)

    def lane(self) -> "TorchBackend":
        """Return this back end itself, as it has no lanes."""
        return self

    def encode(self, pixels: NDArray[Any]) -> Memory:
        """Compute once per image what every step needs, from canvases (B, H + 2, W + 2)."""
        with torch.inference_mode():
            return self._model.encode(torch.from_numpy(pixels).to(self._device))

    def start(self, memory: Memory) -> State:
        """Return the state before the first token."""
        with torch.inference_mode():
            return self._model.start(memory)

    def step(self, memory: Memory, state: State, token_ids: Tensor) -> tuple[Tensor, State, Tensor]:
        """Take one step for all hypotheses; see `StepModel`."""
        with torch.inference_mode():
            return self._model.step(memory, state, token_ids)


def beam_decoder(*, width: int = 10) -> Callable[[Network, Tensor, int], Tensor]:
    """Return a decoder for validation during training: the same search, on the device of the model."""

    def decode(model: Network, pixels: Tensor, max_tokens: int) -> Tensor:
        options = BeamOptions(width=width, max_steps=max_tokens, keep_attention=False)
        with torch.no_grad():
            found = beam_search(
                model, model.encode(pixels), arrays=TorchArrays(pixels.device), options=options
            )
        token_ids = torch.zeros(len(found), max_tokens, dtype=torch.int64)  # eos, which is the padding too
        for row, (best,) in zip(token_ids, found, strict=True):
            row[: len(best.token_ids)] = torch.tensor(best.token_ids)
        return token_ids.to(pixels.device)

    return decode


class TorchArrays:
    """The operations of beam search on torch tensors, on any device; `Arrays` says what each does."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self.check_every = 1 if device.type == "cpu" else 16

    def log_softmax(self, logits: Tensor) -> Tensor:
        """Turn logits (N, K) into log-probabilities."""
        return logits.float().log_softmax(dim=1)

    def top_k(self, values: Tensor, k: int) -> tuple[Tensor, Tensor]:
        """Return the k largest of each row and where they are, largest first."""
        best, places = values.topk(k, dim=1)
        return best, places

    def where(self, condition: Tensor, values: Tensor, others: Tensor | float) -> Tensor:
        """Choose by condition."""
        return torch.where(condition, values, others)

    def arange(self, stop: int) -> Tensor:
        """Count from 0."""
        return torch.arange(stop, device=self._device)

    def floats(self, values: NDArray[Any]) -> Tensor:
        """Turn numbers into float32 on the device."""
        return torch.as_tensor(values, dtype=torch.float32, device=self._device)

    def integers(self, values: NDArray[Any]) -> Tensor:
        """Turn numbers into int64 on the device."""
        return torch.as_tensor(values, dtype=torch.int64, device=self._device)

    def booleans(self, values: NDArray[Any]) -> Tensor:
        """Turn truth values into a tensor on the device."""
        return torch.as_tensor(values, dtype=torch.bool, device=self._device)

    def numpy(self, values: Tensor) -> NDArray[Any]:
        """Copy a tensor to an ndarray."""
        copied: NDArray[Any] = values.cpu().numpy()
        return copied
