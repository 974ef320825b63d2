"""Any picture of a formula to the pixels that a model reads; the one place where that happens.

Black type on white at the model's scale comes out unchanged: what the renderer draws for training is already
prepared, and goes onto the canvas by the same `place_on_canvas`.

How large the type of a picture is, so that a picture at any zoom is read at the model's scale.

Measured is the size of symbols (connected pieces of ink): the 90th percentile of height^0.8 width^0.2, which
is about the height of digits. Over 400 formulas it is off by 14 % (standard deviation of the log), the same
at 70 to 400 dpi, with other fonts and with blur; `benchmarks/scale.py` measures that. The width of strokes is
nearer (10 %) where a picture is sharp and drawn by our own renderer, and far off everywhere else.
"""

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from i2l.errors import I2LError
from i2l.images.canvas import FRAME_PX, WHITE, ImageTooLargeError
from i2l.images.ink import (
    MAX_DEEP_SHARE,
    MIN_LIKENESS,
    Ink,
    deep_share,
    extract_ink,
    find_pieces,
    image_colours,
    ink_bounds,
    stroke_likeness,
)
from i2l.images.open import ImageError, ImageSource, open_image

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


Box = tuple[float, float, float, float]  # left, top, right, bottom

MAX_WORK_PIXELS: Final = 4_000_000  # larger pictures are made smaller at once
MAX_WORK_SIDE_PX: Final = 125_000  # and so are thin ones, whose light is measured in cells of some pixels
NEAR: Final = 0.12  # |log| of a change of scale: below, not worth the blur of resampling ...
FAR: Final = 0.5  # ... and beyond, the estimate is right that the scale must change
# The estimate is off by 14 %, and a model that knows one scale wants it nearer: with the best of three,
# NOPOOL makes half as many errors on pictures zoomed by 1.6 and 2.5 (.17 to .09 edits a token, 24 formulas).
NEIGHBOUR: Final = 1.2
MAX_SHRINK: Final = 0.6  # how far below its own scale a model still reads
MAX_INK_SHARE: Final = 0.5
MIN_DENSE_PX: Final = 64  # smaller pictures may be all ink: a fraction bar
SPECKS_PX: Final = 5  # symbols that are not even so large cannot be read: they are grain


class NotAFormulaError(ImageError):
    """A picture of something else."""


@dataclass(frozen=True)
class PreparedImage:
    """What the model gets to see, and where it was in the file."""

    pixels: NDArray[np.uint8]  # grey, 255 is white, cropped to the ink, fits on the canvas
    scale: float  # pixels of the model for one pixel of the file
    left_px: float  # where the pixels start in the file, the camera's rotation applied
    top_px: float
    file_size_px: tuple[int, int]  # width and height of the file

    def to_file(self, box: Box) -> Box:
        """Give where a box of these pixels lies in the file."""
        left, top, right, bottom = (value / self.scale for value in box)
        return left + self.left_px, top + self.top_px, right + self.left_px, bottom + self.top_px

    def from_file(self, box: Box) -> Box:
        """Give where a box of the file lies in these pixels."""
        left, top, right, bottom = box
        scale = self.scale
        return (
            (left - self.left_px) * scale,
            (top - self.top_px) * scale,
            (right - self.left_px) * scale,
            (bottom - self.top_px) * scale,
        )


def prepare_image(
    source: ImageSource,
    *,
    canvas_shape: tuple[int, int],
    dpi: float = REFERENCE_DPI,
    scale: float | None = None,
    check: bool = True,
) -> list[PreparedImage]:
    """Turn a picture into what a model reads.

    Args:
        source: a path, the bytes of a file, an array, or an open image.
        canvas_shape: height and width of the model's canvas, frame included.
        dpi: the scale of the text that the model knows, as of 12 pt type.
        scale: pixels of the model for one pixel of the file; estimated from the picture if None.
        check: refuse what does not look like a formula.

    Returns:
        One image; or two where the estimate leaves open whether the scale must change, and three around the
        estimate where it must: the reader takes the one that it reads with the best score.

    Raises:
        ImageError: if there is no formula in it.
        ImageTooLargeError: if the formula is too large for the model.
        I2LError: if the scale is none.
    """
    if scale is not None and not 0 < scale < math.inf:
        raise I2LError(f"The scale must be a number above 0, not {scale}.")
    image = open_image(source)
    file_size = image.size
    image, reduced = _reduce(image)
    found = extract_ink(image)
    left, top, right, bottom = ink_bounds(found)
    ink = found[top:bottom, left:right]
    if check and min(ink.shape) >= MIN_DENSE_PX and ink.mean() > MAX_INK_SHARE * 255:
        raise NotAFormulaError("This does not look like a formula: more than half of it is ink.")
    area = canvas_shape[0] - 2 * FRAME_PX, canvas_shape[1] - 2 * FRAME_PX
    scales = [scale] if scale is not None else _scales(ink, reduced, dpi / REFERENCE_DPI)
    symbol_px = SYMBOL_PX * dpi / REFERENCE_DPI / scales[-1]  # in the file, if that was estimated
    if check and scale is None and not _has_strokes(image, found, symbol_px / reduced):
        raise NotAFormulaError("This does not look like a formula: it has shades and areas, not strokes.")
    prepared: dict[float, PreparedImage] = {}
    for wanted in scales:
        fitting = min(
            wanted, *(limit / (size * reduced) for limit, size in zip(area, ink.shape, strict=True))
        )
        if fitting < MAX_SHRINK * scales[-1]:
            continue
        pixels, (more_left, more_top) = _resize(ink, fitting * reduced)
        prepared[fitting] = PreparedImage(
            pixels=pixels,
            scale=fitting,
            left_px=left * reduced + more_left / fitting,
            top_px=top * reduced + more_top / fitting,
            file_size_px=file_size,
        )
    if not prepared:
        if scale is None and symbol_px < SPECKS_PX:
            raise NotAFormulaError("This does not look like a formula: there are only specks in it.")
        height, width = (math.ceil(size * reduced * scales[-1]) for size in ink.shape)
        raise ImageTooLargeError(
            f"The formula is too large: at the scale of this model it has {width} x {height} pixels, and "
            f"it reads at most {area[1]} x {area[0]}. Crop the image to one formula."
        )
    return list(prepared.values())


def _reduce(image: Image.Image) -> tuple[Image.Image, int]:
    """Make a large picture smaller; give it, and by how much."""
    reduced = max(
        math.ceil(math.sqrt(image.width * image.height / MAX_WORK_PIXELS)),
        math.ceil(max(image.size) / MAX_WORK_SIDE_PX),
    )
    if reduced <= 1:
        return image, 1
    if image.mode not in ("L", "RGB", "RGBA", "F", "I"):
        image = image.convert("RGBA" if "transparency" in image.info else "RGB")
    return image.reduce(reduced), reduced


def _has_strokes(image: Image.Image, ink: Ink, symbol_px: float) -> bool:
    """Tell whether ink is made of strokes, and strokes of the picture."""
    if deep_share(ink, symbol_px=symbol_px) > MAX_DEEP_SHARE:
        return False
    channels = np.clip(image_colours(image), 0, WHITE).astype(np.uint8)
    return any(
        stroke_likeness(channels[:, :, channel], ink, symbol_px=symbol_px) >= MIN_LIKENESS
        for channel in range(channels.shape[2])
    )


def _scales(ink: Ink, reduced: int, wanted: float) -> list[float]:
    """Give the scales to read at, the estimated one last.

    Raises:
        NotAFormulaError: if there are no symbols to estimate from.
    """
    found = estimate_scale(ink)
    if found is None:
        raise NotAFormulaError("This does not look like a formula: there is only grain in it.")
    change = wanted / (found * reduced)
    if abs(math.log(change)) <= NEAR:
        return [1.0]
    if abs(math.log(change)) <= FAR:
        return [1.0, change]
    return [change / NEIGHBOUR, change * NEIGHBOUR, change]


def _resize(ink: Ink, factor: float) -> tuple[NDArray[np.uint8], tuple[int, int]]:
    """Change the size of the ink; give it as grey pixels, and what was cropped off on the left and top."""
    if factor == 1:
        return WHITE - ink, (0, 0)
    height, width = (max(1, round(size * factor)) for size in ink.shape)
    resized = np.asarray(Image.fromarray(ink).resize((width, height), Image.Resampling.BICUBIC))
    left, top, right, bottom = ink_bounds(resized)
    return WHITE - resized[top:bottom, left:right], (left, top)
