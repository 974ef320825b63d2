"""Whether ink is made of strokes, as formulas are; shades, clouds and solid areas are not.

What the limits rest on is in docs/reading.md.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from i2l.images.ink import CLEAN_SHARE, Ink

MAX_DEEP_SHARE: Final = 0.4
MIN_LIKENESS: Final = 0.25
_DEPTH: Final = 0.25  # of the size of a symbol; bold strokes are half as deep
_NARROW_PX: Final = 12  # a bar that was cropped to its ink
_WORK_PX: Final = 20  # size of a symbol where this is measured


def deep_share(ink: Ink, *, symbol_px: float) -> float:
    """Give the share of ink that lies deeper inside other ink than half of a very bold stroke."""
    ink = _at_work_size(ink, symbol_px)
    radius = _radius(symbol_px)
    deep = _slide(np.pad(ink, radius), radius, np.minimum)[radius:-radius, radius:-radius]
    return float(deep.sum(dtype=np.int64) / max(int(ink.sum(dtype=np.int64)), 1))


def stroke_likeness(grey: NDArray[np.uint8], ink: Ink, *, symbol_px: float) -> float:
    """Give how well ink agrees with the strokes of the picture that it was found in, at most 1.

    Strokes are what closing (or, of light ones, opening) fills up: what is darker than all that lies a little
    to either side. A shade has none, wherever its ink was found. The correlation with these is given, and 1
    for a picture of nothing but paper and full ink, or one as narrow as a stroke.
    """
    if min(grey.shape) < _NARROW_PX or ((grey == grey.min()) | (grey == grey.max())).mean() >= CLEAN_SHARE:
        return 1.0
    grey, ink = (_at_work_size(pixels, symbol_px) for pixels in (grey, ink))
    return max(_correlation(_top_hat(pixels, _radius(symbol_px)), ink) for pixels in (grey, 255 - grey))


def _top_hat(grey: NDArray[np.uint8], radius: int) -> NDArray[np.uint8]:
    """Give how much darker each pixel is than the least dark way past it on both sides."""
    margin = 2 * radius
    padded = np.pad(grey, margin, mode="edge")
    closed = _slide(_slide(padded, radius, np.maximum), radius, np.minimum)
    return closed[margin:-margin, margin:-margin] - grey


def _correlation(first: NDArray[np.uint8], second: NDArray[np.uint8]) -> float:
    if first.std() == 0 or second.std() == 0:
        return 0.0
    return float(np.corrcoef(first.ravel(), second.ravel())[0, 1])


def _radius(symbol_px: float) -> int:
    return max(1, round(_DEPTH * min(symbol_px, _WORK_PX)))


def _at_work_size(pixels: NDArray[np.uint8], symbol_px: float) -> NDArray[np.uint8]:
    """Make a picture smaller, if its symbols are larger than is needed."""
    if symbol_px <= _WORK_PX:
        return pixels
    width, height = (max(1, round(side * _WORK_PX / symbol_px)) for side in pixels.shape[::-1])
    return np.asarray(Image.fromarray(pixels).resize((width, height), Image.Resampling.BOX))


def _slide(pixels: NDArray[np.uint8], radius: int, choose: np.ufunc) -> NDArray[np.uint8]:
    """Give for each pixel the least (or most) of the square around it; outside the picture nothing counts."""
    for _ in range(2):
        chosen = pixels.copy()
        for shift in range(1, radius + 1):
            choose(chosen[shift:], pixels[:-shift], out=chosen[shift:])
            choose(chosen[:-shift], pixels[shift:], out=chosen[:-shift])
        pixels = chosen.T
    return pixels
