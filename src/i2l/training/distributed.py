"""The processes of a run, as torchrun starts them: which one this is, and how they agree.

Each process computes its share of every batch, and one all-reduce of the flat gradients joins them: shares
are equal and the loss is a mean over samples, so the mean of the gradients is that of the joined batch.
(`DistributedDataParallel` would overlap the two, but its hooks do not go with captured CUDA graphs.)
"""

import os
from typing import TypeVar

import torch
import torch.distributed as dist
from torch import Tensor

from i2l.errors import I2LError

T = TypeVar("T")


class DeviceError(I2LError):
    """A device that is not there."""


class Processes:
    """This process among those of the run; alone if torchrun did not start it."""

    def __init__(self, *, device: str) -> None:
        """Join the others; ``device`` is "auto", "cpu" or "cuda".

        Raises:
            DeviceError: if there is no such device.
        """
        self.rank = int(os.environ.get("RANK", "0"))
        self.count = int(os.environ.get("WORLD_SIZE", "1"))
        self.count_here = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))  # on this machine
        if device == "auto":
            device = "cuda" if torch.cuda.is_available() else "cpu"
        if device == "cuda" and not torch.cuda.is_available():
            raise DeviceError("PyTorch sees no GPU here; train with --device cpu.")
        self.device = torch.device(device)
        if device == "cuda":
            self.device = torch.device(device, int(os.environ.get("LOCAL_RANK", "0")))
            torch.cuda.set_device(self.device)
        if self.count > 1:
            dist.init_process_group("nccl" if self.device.type == "cuda" else "gloo")
            # Words between hosts must not wait for the GPUs.
            self._hosts = dist.new_group(backend="gloo")

    @property
    def is_first(self) -> bool:
        """Whether this process writes and prints."""
        return self.rank == 0

    def average(self, tensor: Tensor) -> None:
        """Replace a tensor by its mean over the processes, on their devices."""
        if self.count > 1:
            dist.all_reduce(tensor)
            tensor /= self.count

    def agree(self, value: T) -> T:
        """Return the value that the first process has."""
        if self.count == 1:
            return value
        values: list[T | None] = [value]
        dist.broadcast_object_list(values, src=0, group=self._hosts)
        return values[0]  # type: ignore[return-value]

    def gather(self, value: T) -> list[T]:
        """Return the values of all processes, in their order."""
        values: list[T | None] = [value] * self.count
        if self.count > 1:
            dist.all_gather_object(values, value, group=self._hosts)
        return values  # type: ignore[return-value]

    def close(self) -> None:
        """Leave the others."""
        if self.count > 1:
            dist.destroy_process_group()
