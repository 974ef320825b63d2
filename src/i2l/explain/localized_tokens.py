"""The tokens that localisation is measured on: read right, with a true box; all on the model's canvas."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from i2l.errors import I2LError
from i2l.evaluation.breakdown import align_tokens
from i2l.explain.box_fit import TrueBoxes
from i2l.explain.placement import Placement
from i2l.images.canvas import place_on_canvas
from i2l.images.ink_symbols import Ink
from i2l.inference.attention_boxes import Attention, Box, find_ink


class LocalizationError(I2LError):
    """Localisation that cannot be measured."""


@dataclass(frozen=True)
class LocalizationSample:
    """One image that was read, and the truth about it."""

    name: str
    pixels: npt.NDArray[np.uint8]  # (height, width), grey on white, at the model's scale
    target: Sequence[str]
    boxes: Sequence[Box | None]  # one for each token of the target, in pixels of the image
    prediction: Sequence[str]
    attention: Attention  # one for each token of the prediction, and one more for eos: (T, rows, columns)


@dataclass(frozen=True)
class LocalizedTokens:
    """The tokens of one sample that count, all on the canvas."""

    tokens: list[str]
    steps: npt.NDArray[np.int64]  # of the prediction, (N,)
    num_steps: int  # of the prediction, eos not counted
    attention: Attention  # (N, rows, columns)
    boxes: npt.NDArray[np.int64]  # (N, 4)
    ink: Ink  # (canvas height, canvas width)


def matched_tokens(target: Sequence[str], prediction: Sequence[str]) -> list[tuple[int, int]]:
    """Give the places in target and prediction of the tokens that were read right."""
    pairs, start, other_start = [], 0, 0
    for first, last, other_first, other_last in [
        *align_tokens(target, prediction),
        (len(target), len(target), len(prediction), len(prediction)),
    ]:
        pairs += list(zip(range(start, first), range(other_start, other_first), strict=True))
        start, other_start = last, other_last
    return pairs


def localized_tokens(sample: LocalizationSample, *, canvas_shape: tuple[int, int]) -> LocalizedTokens:
    """Pick the tokens that count, and put their boxes and the ink on the canvas.

    Raises:
        LocalizationError: if boxes and tokens do not go together.
    """
    if len(sample.boxes) != len(sample.target) or len(sample.attention) < len(sample.prediction):
        raise LocalizationError(
            f"{sample.name}: each token of the target needs a box or None, each of the prediction attention."
        )
    placement = Placement.centred(sample.pixels.shape, canvas_shape=canvas_shape)
    pairs = [
        (place, step, box)
        for place, step in matched_tokens(sample.target, sample.prediction)
        if (box := sample.boxes[place]) is not None
    ]
    steps = np.array([step for _, step, _ in pairs], np.int64)
    return LocalizedTokens(
        tokens=[sample.target[place] for place, _, _ in pairs],
        steps=steps,
        num_steps=len(sample.prediction),
        attention=np.asarray(sample.attention)[steps],
        boxes=np.array([placement.to_canvas(box) for _, _, box in pairs], np.int64).reshape(-1, 4),
        ink=find_ink(place_on_canvas([sample.pixels], canvas_shape=canvas_shape)[0]),
    )


def true_boxes(
    samples: Iterable[LocalizationSample], *, canvas_shape: tuple[int, int]
) -> Iterator[TrueBoxes]:
    """Give what the share of attention is fitted on."""
    for sample in samples:
        counted = localized_tokens(sample, canvas_shape=canvas_shape)
        yield TrueBoxes(counted.attention, [tuple(box) for box in counted.boxes.tolist()], counted.ink)
