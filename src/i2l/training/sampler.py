"""The order of training: which samples form which batch, in which fixed shape, at which step.

The order is a pure function of (seed, epoch), made of integer arithmetic alone, so it is the same on every
platform and with every library version; a run is resumed from three integers (seed, epoch, position).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from i2l.errors import I2LError

Indices = NDArray[np.int64]


class SamplerError(I2LError):
    """Samples that cannot be put into batches as asked."""


@dataclass(frozen=True)
class BatchShape:
    """The room a batch gives to every sample; few of them exist, so each can be planned once."""

    num_tokens: int  # eos included
    width_px: int


@dataclass(frozen=True)
class Batch:
    """The samples of one step over all processes, and their shape."""

    shape: BatchShape
    indices: Indices


@dataclass(frozen=True)
class SamplerState:
    """Where the order stands: ``position`` batches of ``epoch`` are done."""

    seed: int
    epoch: int = 0
    position: int = 0


class Sampler:
    """Groups samples by shape and deals them out in batches of one size, epoch after epoch.

    A sample belongs to the smallest length class and the smallest width class that hold it. What is left of a
    class after whole batches moves up to the next wider class, then to the next longer one, as in the paper;
    what is left of the largest (fewer than one batch, others in every epoch) waits for the next epoch.
    """

    def __init__(
        self,
        *,
        lengths: Indices,
        widths_px: Indices,
        batch_size: int,
        length_classes: Sequence[int],
        width_classes_px: Sequence[int],
        state: SamplerState,
    ) -> None:
        """Take the samples' lengths (eos included) and widths, and the rising upper bounds of the classes.

        Raises:
            SamplerError: if a sample fits in no class, or there are fewer samples than one batch holds.
        """
        if len(lengths) < batch_size:
            raise SamplerError(
                f"The training split has {len(lengths)} samples, fewer than one batch of {batch_size}; "
                "choose a smaller batch size."
            )
        self.batch_size = batch_size
        self.state = state
        self._shapes = [
            BatchShape(num_tokens, width_px) for num_tokens in length_classes for width_px in width_classes_px
        ]
        self._num_widths = len(width_classes_px)
        self._classes = classify(lengths, length_classes, what="tokens") * self._num_widths + classify(
            widths_px, width_classes_px, what="pixels in width"
        )
        self._epoch_batches = self._deal(state.epoch)

    @property
    def batches_per_epoch(self) -> int:
        """How many whole batches the samples give; the same in every epoch."""
        return len(self._epoch_batches)

    @property
    def epochs(self) -> float:
        """How many epochs are done, with the fraction of the present one."""
        return self.state.epoch + self.state.position / self.batches_per_epoch

    def next_batch(self) -> Batch:
        """Give the next batch and move on."""
        batch = self._epoch_batches[self.state.position]
        self.state = replace(self.state, position=self.state.position + 1)
        if self.state.position == self.batches_per_epoch:
            self.state = replace(self.state, epoch=self.state.epoch + 1, position=0)
            self._epoch_batches = self._deal(self.state.epoch)
        return batch

    def _deal(self, epoch: int) -> list[Batch]:
        order = shuffled(len(self._classes), seed=self.state.seed, stream=2 * epoch)
        by_class = order[np.argsort(self._classes[order], kind="stable")]
        bounds = np.searchsorted(self._classes[by_class], np.arange(len(self._shapes) + 1))
        batches: list[Batch] = []
        shorter = narrower = by_class[:0]  # what is left of the classes before
        for number, shape in enumerate(self._shapes):
            widest = (number + 1) % self._num_widths == 0
            own = by_class[bounds[number] : bounds[number + 1]]
            members = np.concatenate([own, narrower, shorter] if widest else [own, narrower])
            whole = len(members) - len(members) % self.batch_size
            batches += [Batch(shape, part) for part in members[:whole].reshape(-1, self.batch_size)]
            narrower = members[whole:]
            if widest:
                shorter, narrower = narrower, by_class[:0]
        mixed = shuffled(len(batches), seed=self.state.seed, stream=2 * epoch + 1)
        return [batches[index] for index in mixed]


def classify(values: Indices, bounds: Sequence[int], *, what: str) -> Indices:
    """Give for each value the number of the first of the rising ``bounds`` that is not below it.

    Raises:
        SamplerError: if a value is above the last bound.
    """
    if len(values) and values.max() > bounds[-1]:
        raise SamplerError(
            f"{int((values > bounds[-1]).sum())} samples have more than {bounds[-1]} {what} (the largest has "
            f"{values.max()}); build the dataset with that limit, or raise the limit of training."
        )
    return np.searchsorted(np.asarray(bounds), values).astype(np.int64)


def shuffled(num_items: int, *, seed: int, stream: int) -> Indices:
    """Give 0 .. num_items-1 in the random order that belongs to (seed, stream): sorted by SplitMix64 keys."""
    start = _mix(np.array([seed], dtype=np.uint64)) ^ _mix(~np.array([stream], dtype=np.uint64))
    counters = np.arange(1, num_items + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    return np.argsort(_mix(start + counters), kind="stable").astype(np.int64)


def _mix(keys: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The finaliser of SplitMix64: every bit of the result depends on every bit of the key."""
    keys = (keys ^ (keys >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    keys = (keys ^ (keys >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: NDArray[np.uint64] = keys ^ (keys >> np.uint64(31))
    return mixed
