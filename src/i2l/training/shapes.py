"""The few fixed shapes of batches: how many tokens, and which window of the canvas.

A device plans (and captures) each shape once; with ever-changing shapes it would plan for most of the run.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from i2l.config import ModelConfig
from i2l.model.canvas import (
    ALIGNED_HEIGHTS_PX,
    LINE_HEIGHTS_PX,
    Window,
    assign_windows,
    centred_windows,
)
from i2l.training.sampler import SamplerError


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
        """Give the samples of a batch with this window and length, halving until it is within the limits."""
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
        model: has the canvas.

    Raises:
        SamplerError: if a formula is longer than the last class.
        ImageTooLargeError: if an image is larger than the canvas.
    """
    area = model.height_px, model.width_px
    windows = [Window(*area, 0, 0)]
    aligned = model.network == "transformer"
    if window_step:
        windows = centred_windows(
            area=area,
            cell_px=model.cell_px,
            step=window_step,
            line_heights_px=ALIGNED_HEIGHTS_PX if aligned else LINE_HEIGHTS_PX,
        )
    limits = np.array(length_classes) + 1
    if lengths.max() > limits[-1]:
        raise SamplerError(
            f"{(lengths > limits[-1]).sum()} formulas have more than {length_classes[-1]} tokens (up to "
            f"{lengths.max() - 1}); build the dataset with that limit, or raise training.length_classes."
        )
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
    if aligned:  # a transformer sees a little more than the ink
        sizes = np.minimum(sizes + 2 * model.reach_px, area)
    chosen = assign_windows(sizes, windows, canvas_shape=model.canvas_shape)
    classes = np.searchsorted(limits, lengths) * len(windows) + chosen
    for number, parent in enumerate(larger):
        if parent is not None and (classes == number).sum() < min_batches * shapes[number].num_samples:
            classes[classes == number] = parent
    return ShapeClasses(shapes, larger, classes)


def _next_holding(windows: Sequence[Window], number: int) -> int | None:
    own = windows[number]
    for later in range(number + 1, len(windows)):
        other = windows[later]
        if other.height_px >= own.height_px and other.width_px >= own.width_px:
            return later
    return None
