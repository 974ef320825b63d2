"""Where two renders differ, for people: columns are aligned, so one error shows as one spot."""

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
from rapidfuzz.distance import Levenshtein

from i2l.evaluation.image_match import (
    MAX_INK,
    Pixels,
    as_text,
    distinct_columns,
    merge_similar,
    pack_columns,
)

_MAX_SHIFT_PX: Final = 60


@dataclass(frozen=True)
class PixelDifference:
    """How to lay a prediction over its target."""

    shift_px: int  # rows to move the prediction down (up, if negative)
    blocks: list[tuple[int, int, int, int]]  # differing columns: target from, to, prediction from, to


def find_difference(target: Pixels, prediction: Pixels) -> PixelDifference:
    """Align two renders: one shift for all rows, then columns by a shortest edit script."""
    inks = [pixels <= MAX_INK for pixels in (target, prediction)]
    shift = _row_shift(*(ink.sum(axis=1) for ink in inks))
    tops = max(-shift, 0), max(shift, 0)
    height = max(ink.shape[0] + top for ink, top in zip(inks, tops, strict=True))
    columns = [
        pack_columns(np.pad(ink, ((top, height - top - ink.shape[0]), (0, 0))))
        for ink, top in zip(inks, tops, strict=True)
    ]
    together = np.concatenate(columns)
    first, ids = distinct_columns(together)
    symbols = merge_similar(together[first])[ids]
    width = len(columns[0])
    codes = Levenshtein.opcodes(as_text(symbols[:width]), as_text(symbols[width:]))
    blocks = [
        (code.src_start, code.src_end, code.dest_start, code.dest_end)
        for code in codes
        if code.tag != "equal"
    ]
    return PixelDifference(shift, blocks)


def _row_shift(target: npt.NDArray[np.int64], prediction: npt.NDArray[np.int64]) -> int:
    """The shift under which the ink of the rows fits best; the smallest of several."""
    fits = np.correlate(target.astype(np.float64), prediction.astype(np.float64), mode="full")
    shifts = np.arange(1 - len(prediction), len(target))
    allowed = np.abs(shifts) <= _MAX_SHIFT_PX
    order = np.argsort(np.abs(shifts[allowed]), kind="stable")
    return int(shifts[allowed][order][np.argmax(fits[allowed][order])])
