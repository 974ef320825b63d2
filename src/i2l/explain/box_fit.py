"""How much attention a box should hold: the share whose boxes overlap the true ones best."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from i2l.errors import I2LError
from i2l.images.ink_symbols import Ink, find_symbols
from i2l.inference.attention_boxes import Attention, Box, choose_symbols
from i2l.model.receptive_field import ReceptiveField

_SHARES: Final = tuple(np.round(np.arange(0.2, 0.96, 0.05), 2).tolist())


class BoxError(I2LError):
    """Boxes that cannot be fitted."""


@dataclass(frozen=True)
class ShareFit:
    """Which share of attention gives boxes nearest the true ones."""

    share: float
    mean_iou: float
    curve: dict[float, float]  # share tried -> mean IoU


@dataclass(frozen=True)
class TrueBoxes:
    """One formula with known boxes, to fit the share on."""

    attention: Attention  # (T, rows, columns), of the tokens that have a box
    boxes: Sequence[Box]  # theirs
    ink: Ink  # (height, width)


def box_iou(first: Box | None, second: Box | None) -> float:
    """Area of two boxes' intersection over that of their union; 0 without a box."""
    if first is None or second is None:
        return 0.0
    width = min(first[2], second[2]) - max(first[0], second[0])
    height = min(first[3], second[3]) - max(first[1], second[1])
    if width <= 0 or height <= 0:
        return 0.0
    both = width * height
    return both / (_area(first) + _area(second) - both)


def _area(box: Box) -> float:
    return (box[2] - box[0]) * (box[3] - box[1])


def fit_share(
    samples: Sequence[TrueBoxes], *, field: ReceptiveField, shares: Sequence[float] = _SHARES
) -> ShareFit:
    """Choose the share of attention whose boxes overlap the true ones best on average.

    Raises:
        BoxError: if no sample has a box.
    """
    curve = {}
    symbols = [find_symbols(sample.ink) for sample in samples]
    for share in shares:
        overlaps = [
            box_iou(found, true)
            for sample, own in zip(samples, symbols, strict=True)
            for found, true in zip(
                choose_symbols(sample.attention, own, field=field, share=share), sample.boxes, strict=True
            )
        ]
        if not overlaps:
            raise BoxError("Nothing to fit on: no token of these samples has a true box and was read right.")
        curve[share] = float(np.mean(overlaps))
    best = max(curve, key=lambda share: curve[share])
    return ShareFit(best, curve[best], curve)
