"""The few array operations that beam search needs, on NumPy arrays and on torch tensors alike.

Everything else the search does with arrays (arithmetic, comparisons, indexing with arrays, reshape) is
written the same way for both.
"""

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from i2l.errors import require_extra

Array = Any  # an ndarray or a Tensor


class Arrays(Protocol):
    """Operations whose names or arguments differ between the two libraries."""

    check_every: int  # steps between looks at values; on a GPU each look waits for the device

    def log_softmax(self, logits: Array) -> Array:
        """Logits (N, K) to log-probabilities."""

    def top_k(self, values: Array, k: int) -> tuple[Array, Array]:
        """Give the k largest of each row and where they are, largest first: (B, M) to (B, k) twice."""

    def where(self, condition: Array, values: Array, others: Array | float) -> Array:
        """Choose by condition."""

    def arange(self, stop: int) -> Array:
        """Whole numbers from 0."""

    def floats(self, values: NDArray[Any]) -> Array:
        """Numbers as float32, where the search runs."""

    def integers(self, values: NDArray[Any]) -> Array:
        """Numbers as int64, where the search runs."""

    def booleans(self, values: NDArray[Any]) -> Array:
        """Truth values, where the search runs."""

    def numpy(self, values: Array) -> NDArray[Any]:
        """Copy to an ndarray."""


class NumpyArrays:
    """Beam search on NumPy arrays."""

    check_every = 1

    def log_softmax(self, logits: NDArray[np.float32]) -> NDArray[np.float32]:
        """Logits (N, K) to log-probabilities."""
        shifted = logits - logits.max(axis=1, keepdims=True)
        result: NDArray[np.float32] = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
        return result

    def top_k(self, values: NDArray[np.float32], k: int) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """Give the k largest of each row and where they are, largest first."""
        places = np.argpartition(-values, k - 1, axis=1)[:, :k] if k < values.shape[1] else None
        if places is None:
            places = np.argsort(-values, axis=1, kind="stable")[:, :k]
        else:
            places.sort(axis=1)  # so that equal values come in the order of their places
            order = np.argsort(-np.take_along_axis(values, places, axis=1), axis=1, kind="stable")
            places = np.take_along_axis(places, order, axis=1)
        return np.take_along_axis(values, places, axis=1), places

    def where(self, condition: Array, values: Array, others: Array | float) -> NDArray[Any]:
        """Choose by condition."""
        return np.where(condition, values, others)

    def arange(self, stop: int) -> NDArray[np.int64]:
        """Whole numbers from 0."""
        return np.arange(stop)

    def floats(self, values: NDArray[Any]) -> NDArray[np.float32]:
        """Numbers as float32."""
        return np.asarray(values, np.float32)

    def integers(self, values: NDArray[Any]) -> NDArray[np.int64]:
        """Numbers as int64."""
        return np.asarray(values, np.int64)

    def booleans(self, values: NDArray[Any]) -> NDArray[np.bool_]:
        """Truth values."""
        return np.asarray(values, np.bool_)

    def numpy(self, values: NDArray[Any]) -> NDArray[Any]:
        """Give the array itself."""
        return values


class TorchArrays:
    """Beam search on torch tensors, on any device."""

    def __init__(self, device: Any) -> None:  # noqa: ANN401 - torch.device, without importing torch here
        self._torch = require_extra("torch", "train")
        self._device = device
        self.check_every = 1 if device.type == "cpu" else 16

    def log_softmax(self, logits: Array) -> Array:
        """Logits (N, K) to log-probabilities."""
        return logits.float().log_softmax(dim=1)

    def top_k(self, values: Array, k: int) -> tuple[Array, Array]:
        """Give the k largest of each row and where they are, largest first."""
        best, places = values.topk(k, dim=1)
        return best, places

    def where(self, condition: Array, values: Array, others: Array | float) -> Array:
        """Choose by condition."""
        return self._torch.where(condition, values, others)

    def arange(self, stop: int) -> Array:
        """Whole numbers from 0."""
        return self._torch.arange(stop, device=self._device)

    def floats(self, values: NDArray[Any]) -> Array:
        """Numbers as float32, on the device."""
        return self._torch.as_tensor(values, dtype=self._torch.float32, device=self._device)

    def integers(self, values: NDArray[Any]) -> Array:
        """Numbers as int64, on the device."""
        return self._torch.as_tensor(values, dtype=self._torch.int64, device=self._device)

    def booleans(self, values: NDArray[Any]) -> Array:
        """Truth values, on the device."""
        return self._torch.as_tensor(values, dtype=self._torch.bool, device=self._device)

    def numpy(self, values: Array) -> NDArray[Any]:
        """Copy to an ndarray."""
        copied: NDArray[Any] = values.cpu().numpy()
        return copied
