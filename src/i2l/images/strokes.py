"""Whether ink is made of strokes, as formulas are: in shades and solid areas it is deeper than any stroke."""

from typing import Final

import numpy as np
from PIL import Image

from i2l.images.ink import Ink

# Measured in pictures of 1,000 formulas and symbols and of 210 other things (docs/LOG.md): only symbols
# that are solid by themselves, as a bullet, have any ink so deep, and at most .35 of it.
MAX_DEEP_SHARE: Final = 0.4
_DEPTH: Final = 0.25  # of the size of a symbol; bold strokes are half as deep
_WORK_PX: Final = 20  # size of a symbol where this is measured


def deep_share(ink: Ink, *, symbol_px: float) -> float:
    """Give the share of ink that lies deeper inside other ink than half of a very bold stroke."""
    if symbol_px > _WORK_PX:
        width, height = (max(1, round(side * _WORK_PX / symbol_px)) for side in ink.shape[::-1])
        ink = np.asarray(Image.fromarray(ink).resize((width, height), Image.Resampling.BOX))
    radius = max(1, round(_DEPTH * min(symbol_px, _WORK_PX)))
    deep = _erode(_erode(ink, radius).T, radius)
    return float(deep.sum(dtype=np.int64) / max(int(ink.sum(dtype=np.int64)), 1))


def _erode(ink: Ink, radius: int) -> Ink:
    """Give for each pixel the least ink in a piece of its column; beyond the picture there is none."""
    padded = np.pad(ink, ((radius, radius), (0, 0)))
    least = ink
    for start in range(2 * radius + 1):
        least = np.minimum(least, padded[start : start + len(ink)])
    return least
