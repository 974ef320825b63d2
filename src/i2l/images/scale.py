"""How large the type of a picture is, so that a picture at any zoom is read at the model's scale.

Measured is the size of symbols (connected pieces of ink): the 90th percentile of height^0.8 width^0.2, which
is about the height of digits. Over 400 formulas it is off by 14 % (standard deviation of the log), the same
at 70 to 400 dpi, with other fonts and with blur; `benchmarks/scale.py` measures that. The width of strokes is
nearer (10 %) where a picture is sharp and drawn by our own renderer, and far off everywhere else.
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
MAX_RUNS: Final = 60_000  # of ink, in all rows together; more is grain, not symbols


def estimate_scale(ink: Ink) -> float | None:
    """Give the size of the type, 1 for that of 12 pt at 200 dpi; None if there are no symbols to measure."""
    darkness = ink.astype(np.float64)
    mean_darkness = np.square(darkness).sum() / darkness.sum()  # of ink, weighted by itself
    symbols = ink > 0.5 * mean_darkness
    if np.count_nonzero(symbols[:, 1:] & ~symbols[:, :-1]) > MAX_RUNS:
        return None
    left, top, right, bottom = find_pieces(symbols).T
    return large_symbol_size(bottom - top, right - left) / SYMBOL_PX


def large_symbol_size(heights: NDArray[np.int64], widths: NDArray[np.int64]) -> float:
    """Give the size of the larger ones of symbols, without rules and tall delimiters."""
    compact = (widths <= 3 * heights) & (heights <= 3 * widths)
    if not compact.any():  # a minus or a bar by itself is about as long as a digit is high
        return float(np.maximum(heights, widths).max())
    logs = (1 - WIDTH_SHARE) * np.log(heights[compact]) + WIDTH_SHARE * np.log(widths[compact])
    return math.exp(float(np.percentile(logs, 90)))
