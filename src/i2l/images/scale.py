"""How large the type of a picture is, so that a picture at any zoom is read at the model's scale.

Two looks, both in units of 12 pt type at 200 dpi. *Size*: the 90th percentile of height^0.8 width^0.2 over
the symbols (connected pieces of ink); it stands fonts and blur, and is off by 14 % (standard deviation of the
log, 70 to 400 dpi). *Stroke*: how wide and how dark strokes are; off by 10 % on sharp pictures in normal
weight, useless on blurred or bold ones. Where they agree, both count. `benchmarks/scale.py` measures this.
"""

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

from i2l.images.ink import Ink
from i2l.images.ink_symbols import find_pieces

REFERENCE_DPI: Final = 200.0
SYMBOL_PX: Final = 21.6  # of larger symbols in 12 pt type at 200 dpi; digits are 21.4 pixels high
WIDTH_SHARE: Final = 0.2
# log(scale) as a polynomial of x = log(2 ink / outline) and y = log(mean darkness): 1, x, y, x^2, x y, y^2
STROKE_FIT: Final = (-0.178, 2.083, 1.831, -0.761, 2.462, 0.921)
STROKE_WEIGHT: Final = 0.75
AGREEMENT: Final = 0.35  # two standard deviations of the difference
MAX_RUNS: Final = 60_000  # more is grain, not symbols


def estimate_scale(ink: Ink) -> float | None:
    """Give the size of the type, 1 for that of 12 pt at 200 dpi; None if there are no symbols to measure."""
    sizes = symbol_sizes(ink > 0.5 * mean_darkness(ink))
    if sizes is None:
        return None
    by_size = math.log(large_symbol_size(sizes) / SYMBOL_PX)
    by_stroke = float(np.dot(STROKE_FIT, stroke_terms(ink)))
    if abs(by_stroke - by_size) > AGREEMENT:
        return math.exp(by_size)
    return math.exp(STROKE_WEIGHT * by_stroke + (1 - STROKE_WEIGHT) * by_size)


def large_symbol_size(sizes: NDArray[np.int64]) -> float:
    """Give the size of the larger ones of symbols (height, width), without rules and tall delimiters."""
    heights, widths = np.maximum(sizes, 1).T
    compact = (widths <= 3 * heights) & (heights <= 3 * widths)
    if not compact.any():
        compact[:] = True
    logs = (1 - WIDTH_SHARE) * np.log(heights[compact]) + WIDTH_SHARE * np.log(widths[compact])
    return math.exp(float(np.percentile(logs, 90)))


def mean_darkness(ink: Ink) -> float:
    """Give how dark ink is on average, weighted by itself: 0 to 255."""
    darkness = ink.astype(np.float64)
    return float(np.square(darkness).sum() / darkness.sum())


def stroke_terms(ink: Ink) -> tuple[float, ...]:
    """Give the terms of the polynomial of `STROKE_FIT`."""
    darkness = np.pad(ink, 1).astype(np.float32)
    right, down = np.diff(darkness, axis=1), np.diff(darkness, axis=0)
    outline = np.hypot(right[:-1] + right[1:], down[:, :-1] + down[:, 1:]).sum() / 2  # the sum of the slopes
    x = math.log(2 * float(darkness.sum()) / float(outline))
    y = math.log(mean_darkness(ink) / 255)
    return 1.0, x, y, x * x, x * y, y * y


def symbol_sizes(ink: NDArray[np.bool_]) -> NDArray[np.int64] | None:
    """Give height and width of each connected piece of ink, (N, 2); None if there is none, or only grain."""
    num_runs = int(np.count_nonzero(ink[:, 1:] & ~ink[:, :-1]))
    if num_runs > MAX_RUNS or not ink.any():
        return None
    left, top, right, bottom = find_pieces(ink).T
    return np.stack([bottom - top, right - left], axis=1)
