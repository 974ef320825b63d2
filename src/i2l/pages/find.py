"""Where the formulas of a page are: from a picture to boxes, by a small network and the ink itself."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from i2l.images.ink import Ink, measure_pieces

DETECTOR_FILE: Final = "detector.onnx"
SYMBOL_PX: Final = 7.0  # height of small letters where the network looks
CELL_PX: Final = 2  # side of a cell that it answers for
MULTIPLE_PX: Final = 32  # sides of its input are multiples of this
NUM_CLASSES: Final = 4  # nothing or text, inline, displayed, number
_DARK: Final = 110  # ink at least this dark makes pieces
_MIN_SYMBOLS: Final = 3


def measure_symbols(ink: Ink) -> float | None:
    """Return the height of small letters: the median of all pieces that are as large as letters.

    Args:
        ink: of the page.

    Returns:
        The height in pixels; None if there are not even a few pieces.
    """
    boxes, _ = measure_pieces(ink >= _DARK)
    return _symbol_height(boxes)


def _symbol_height(boxes: NDArray[np.int64]) -> float | None:
    heights = boxes[:, 3] - boxes[:, 1]
    widths = boxes[:, 2] - boxes[:, 0]
    letters = heights[(heights >= 3) & (widths >= 2) & (widths < 12 * heights)]
    if len(letters) < _MIN_SYMBOLS:
        return None
    letters = letters[letters >= 0.35 * np.median(letters)]
    return float(np.median(letters))
