"""The order of training: which samples form which batch at which step, and the few shapes that batches have.

The order is a pure function of (seed, epoch), made of integer arithmetic alone, so it is the same on every
platform and with every library version; a run is resumed from three integers (seed, epoch, position).

A shape is a number of tokens and a window of the canvas. A device plans (and captures) each shape once; with
ever-changing shapes it would plan for most of the run.
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from i2l.errors import I2LError
from i2l.model.config import ModelConfig
from i2l.model.network import Window, assign_windows, centred_windows

Indices = NDArray[np.int64]


class SamplerError(I2LError):
    """Samples that cannot be put into batches as asked."""


@dataclass(frozen=True)
class Batch:
    """The samples of one step over all processes, and the number of their shape."""

    shape: int
    indices: Indices


@dataclass(frozen=True)
class SamplerState:
    """Where the order stands: ``position`` batches of ``epoch`` are done."""

    seed: int
    epoch: int = 0
    position: int = 0


class Sampler:
    """Deals samples of one shape out in batches of that shape's size, epoch after epoch.

    What is left of a shape after whole batches moves up to a larger one, as in the paper; what is left of the
    largest (fewer than one batch, others in every epoch) waits for the next epoch.
    """

    def __init__(
        self,
        *,
        classes: Indices,
        larger: Sequence[int | None],
        batch_sizes: Sequence[int],
        state: SamplerState,
        times: Indices | None = None,
    ) -> None:
        """Take the shape of each sample; for each shape a later one that holds its samples; its batch size.

        ``times`` says how often each sample comes in an epoch; once if None.

        Raises:
            SamplerError: if there are fewer samples than one batch holds.
        """
        if len(classes) < max(batch_sizes):
            raise SamplerError(
                f"The training split has {len(classes)} samples, fewer than one batch of {max(batch_sizes)}; "
                "choose a smaller batch size."
            )
        self._batch_sizes = batch_sizes
        self._classes = classes
        self._samples = np.repeat(np.arange(len(classes)), 1 if times is None else times)
        self._larger = larger
        self.state = state
        self._batches = self._deal(state.epoch)

    @property
    def batches_per_epoch(self) -> int:
        """How many whole batches the samples give; the same in every epoch."""
        return len(self._batches)

    @property
    def num_shapes(self) -> int:
        """How many shapes the batches of this epoch have."""
        return len({batch.shape for batch in self._batches})

    @property
    def epochs(self) -> float:
        """How many epochs are done, with the fraction of the present one."""
        return self.state.epoch + self.state.position / self.batches_per_epoch

    def next_batch(self) -> Batch:
        """Return the next batch and move on."""
        batch = self._batches[self.state.position]
        self.state = replace(self.state, position=self.state.position + 1)
        if self.state.position == self.batches_per_epoch:
            self.state = replace(self.state, epoch=self.state.epoch + 1, position=0)
            self._batches = self._deal(self.state.epoch)
        return batch

    def go_to(self, state: SamplerState) -> None:
        """Stand where ``state`` says."""
        self.state = state
        self._batches = self._deal(state.epoch)

    def _deal(self, epoch: int) -> list[Batch]:
        order = self._samples[shuffled(len(self._samples), seed=self.state.seed, stream=2 * epoch)]
        members = [order[self._classes[order] == shape] for shape in range(len(self._larger))]
        batches: list[Batch] = []
        for shape, larger in enumerate(self._larger):
            size = self._batch_sizes[shape]
            whole = len(members[shape]) - len(members[shape]) % size
            batches += [Batch(shape, part) for part in members[shape][:whole].reshape(-1, size)]
            if larger is not None:
                members[larger] = np.concatenate([members[larger], members[shape][whole:]])
        mixed = shuffled(len(batches), seed=self.state.seed, stream=2 * epoch + 1)
        return [batches[index] for index in mixed]


def emphasized(ids: Sequence[str], emphasis: Sequence[str]) -> Indices:
    """Say how often each sample comes in an epoch: once, or as the first fitting "NAME=TIMES" says.

    A name that no sample's id starts with changes nothing, and is said in a warning: the same configuration
    may serve other data.

    Raises:
        SamplerError: for an emphasis of another form.
    """
    times = np.ones(len(ids), dtype=np.int64)
    for rule in reversed(emphasis):
        name, equals, count = rule.rpartition("=")
        if not (name and equals and count.isdecimal()):
            raise SamplerError(f"training.emphasis has {rule!r}; write NAME=TIMES, such as hepth2003=3.")
        chosen = np.array([sample_id.startswith(name) for sample_id in ids])
        if not chosen.any():
            warnings.warn(
                f"training.emphasis names {name!r}, and no sample's id starts so; it changes nothing here.",
                stacklevel=2,
            )
        times[chosen] = int(count)
    return times


def shuffled(num_items: int, *, seed: int, stream: int) -> Indices:
    """Shuffle 0 .. num_items-1 into the order that belongs to (seed, stream): sorted by SplitMix64 keys."""
    start = _mix(np.array([seed], dtype=np.uint64)) ^ _mix(~np.array([stream], dtype=np.uint64))
    counters = np.arange(1, num_items + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    return np.argsort(_mix(start + counters), kind="stable").astype(np.int64)


def _mix(keys: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The finaliser of SplitMix64: every bit of the result depends on every bit of the key."""
    keys = (keys ^ (keys >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    keys = (keys ^ (keys >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: NDArray[np.uint64] = keys ^ (keys >> np.uint64(31))
    return mixed


@dataclass(frozen=True)
class BatchShape:
    """The room a batch gives to each of its samples."""

    num_tokens: int  # eos included
    window: Window
    num_samples: int  # of the batch, over all processes


@dataclass(frozen=True)
class BatchLimits:
    """How large a batch may be; 0 pixels or tokens: any number."""

    samples: int
    pixels: int = 0
    tokens: int = 0
    multiple: int = 1  # of this many samples, so that as many processes can share it

    def num_samples(self, window: Window, num_tokens: int) -> int:
        """Halve the number of samples until a batch of this window and length is within the limits."""
        size, area = self.samples, window.height_px * window.width_px
        while size % (2 * self.multiple) == 0 and (
            (self.pixels and size * area > self.pixels) or (self.tokens and size * num_tokens > self.tokens)
        ):
            size //= 2
        return size


@dataclass(frozen=True)
class ShapeClasses:
    """All shapes, small ones first, and the smallest that holds each sample."""

    shapes: list[BatchShape]
    larger: list[int | None]  # for each shape, the next one that holds all that it holds
    classes: NDArray[np.int64]  # (N,), the shape of each sample


def classify_samples(
    *,
    lengths: NDArray[np.int64],
    sizes: NDArray[np.int64],
    length_classes: Sequence[int],
    window_step: int,
    min_batches: int,
    batch: BatchLimits,
    model: ModelConfig,
) -> ShapeClasses:
    """Find the smallest shape for every sample.

    Args:
        lengths: (N,) tokens with eos.
        sizes: (N, 2) height and width of the images.
        length_classes: rising limits of tokens, eos not counted.
        window_step: windows grow by this many cells to the left and right; 0: always the whole canvas.
        min_batches: a shape with fewer whole batches goes up in the next larger one.
        batch: how many samples a batch may have.
        model: has the canvas, and the longest formula.

    Raises:
        SamplerError: if a formula is longer than the last class, or than the model can write.
        ImageTooLargeError: if an image is larger than the canvas.
    """
    area = model.height_px, model.width_px
    windows = [Window(*area, 0, 0)]
    if window_step:
        windows = centred_windows(
            area=area, cell_px=model.cell_px, heights_px=model.window_heights_px, step=window_step
        )
    limits = _token_limits(lengths, length_classes, max_tokens=model.limits.max_tokens)
    shapes = [
        BatchShape(int(limit), window, batch.num_samples(window, int(limit)))
        for limit in limits
        for window in windows
    ]
    parents = [_next_holding(windows, number) for number in range(len(windows))]
    larger: list[int | None] = []
    for number in range(len(shapes)):
        length_class, window = divmod(number, len(windows))
        parent = parents[window]
        if parent is not None:
            larger.append(length_class * len(windows) + parent)
        else:  # the whole canvas: on to the next longer class
            larger.append(number + len(windows) if number + len(windows) < len(shapes) else None)
    wider = np.minimum(sizes + 2 * model.window_margin_px, area)  # a window at the edge has no margin there
    sizes = np.where(sizes <= area, wider, sizes)
    chosen = assign_windows(sizes, windows, canvas_shape=model.canvas_shape)
    classes = np.searchsorted(limits, lengths) * len(windows) + chosen
    for number, parent in enumerate(larger):
        if parent is not None and (classes == number).sum() < min_batches * shapes[number].num_samples:
            classes[classes == number] = parent
    return ShapeClasses(shapes, larger, classes)


def _token_limits(
    lengths: NDArray[np.int64], length_classes: Sequence[int], *, max_tokens: int
) -> NDArray[np.int64]:
    """Return the most tokens of each length class, eos included; none is beyond what the model can write.

    Raises:
        SamplerError: if a formula is longer than the last class, or than the model can write.
    """
    most = min(length_classes[-1], max_tokens)
    if lengths.max() > most + 1:
        limit = "model.max_tokens" if most == max_tokens else "training.length_classes"
        raise SamplerError(
            f"{(lengths > most + 1).sum()} formulas have more than {most} tokens (up to "
            f"{lengths.max() - 1}); build the dataset with that limit, or raise {limit}."
        )
    return np.array([*(number for number in length_classes if number < most), most]) + 1


def _next_holding(windows: Sequence[Window], number: int) -> int | None:
    own = windows[number]
    for later in range(number + 1, len(windows)):
        other = windows[later]
        if other.height_px >= own.height_px and other.width_px >= own.width_px:
            return later
    return None
