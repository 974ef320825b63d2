"""From any picture of a formula to the pixels that a model reads; this is the only place where that happens.

A picture is opened, a region of it is chosen if only that is to be read, its ink is found, and the ink is
brought to the scale that the model knows: `prepare_image` does the four in this order. What comes out is
centred on the model's canvas by `place_on_canvas`, in training as in reading. Black type on white at the
model's scale comes out unchanged, so what the renderer draws for training is already prepared.

The scale is estimated, so that a picture at any zoom can be read. Measured is the size of symbols (connected
pieces of ink): the 90th percentile of height^0.8 width^0.2, which is about the height of digits. Over 400
formulas it is off by 14 % (standard deviation of the log), the same at 70 to 400 dpi, with other fonts and
with blur; `benchmarks/scale.py` measures that. The width of strokes would be nearer (10 %) where a picture is
sharp and drawn by our own renderer, and far off everywhere else.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from i2l.errors import I2LError
from i2l.images.ink import (
    MAX_DEEP_SHARE,
    MIN_LIKENESS,
    Ink,
    InkMask,
    deep_share,
    extract_ink,
    find_pieces,
    image_colours,
    ink_bounds,
    is_grain,
    stroke_likeness,
)
from i2l.images.open import ImageError, ImageSource, open_image

Box = tuple[float, float, float, float]  # left, top, right, bottom

# The canvas.
WHITE: Final = 255
FAINT: Final = 230  # pixels at least so light are no sign of ink: grain of scans and of JPEG
FRAME_PX: Final = 1  # of white on each side of the canvas

# The work on a picture.
MAX_WORK_PIXELS: Final = 4_000_000  # larger pictures are made smaller at once
MAX_WORK_SIDE_PX: Final = 125_000  # and so are thin ones, whose light is measured in cells of some pixels

# The scale of its type.
REFERENCE_DPI: Final = 200.0
SYMBOL_PX: Final = 21.6  # of larger symbols in 12 pt type at 200 dpi; digits are 21.4 pixels high
WIDTH_SHARE: Final = 0.2  # how much the width of a symbol counts for its size
MAX_RUNS: Final = 60_000  # of ink, in all rows together; more is grain, not symbols
KEPT_SCALE_LOG: Final = (
    0.12  # a change of scale by less than this log is not worth the blur of resampling ...
)
CHANGED_SCALE_LOG: Final = 0.5  # ... and by more than this, the estimate is right that it must be changed
# The estimate is off by 14 %, and a model that knows one scale wants it nearer: with the best of three,
# NOPOOL makes half as many errors on pictures zoomed by 1.6 and 2.5 (.17 to .09 edits a token, 24 formulas).
NEIGHBOUR_FACTOR: Final = 1.2
# Where every tenth symbol is an integral or a sum, these pass for the larger letters: of 1,000 images of
# another renderer 16 were taken for twice as large as they are, and read as nonsense. A lower one tells.
SECOND_PERCENTILE: Final = 75
SECOND_FACTOR: Final = 1.1  # by so much it is smaller where there are no such signs
SECOND_SCALE_LOG: Final = 0.2  # from so far off it is worth a look
# Of a picture with so few pieces, the pieces may say nothing of the scale: three dots, a bracket, bars above
# each other. All of it as one symbol is looked at as well, and the picture as it is if that is near.
FEW_PIECES: Final = 10
OWN_SCALE_LOG: Final = 1.4
MAX_SHRINK: Final = 0.6  # how far below its own scale a model still reads

# What is no formula.
MAX_INK_SHARE: Final = 0.5
MIN_DENSE_PX: Final = 64  # smaller pictures may be all ink: a fraction bar
SPECK_PX: Final = 5  # symbols that are not even so large cannot be read: they are grain
_ONLY_GRAIN: Final = "This does not look like a formula: there is only grain in it."


class ImageTooLargeError(ImageError):
    """An image that does not fit on the canvas."""


class NotAFormulaError(ImageError):
    """A picture of something else."""


@dataclass(frozen=True)
class PreparedImage:
    """What the model gets to see, and where it was in the picture."""

    pixels: NDArray[np.uint8]  # grey, 255 is white, cropped to the ink, fits on the canvas
    scale: float  # pixels of the model for one pixel of the picture
    left_px: float  # where the pixels start in the picture, the camera's rotation applied
    top_px: float
    file_size_px: tuple[int, int]  # width and height of the whole picture

    def to_file(self, box: Box) -> Box:
        """Return where a box of these pixels lies in the picture."""
        left, top, right, bottom = (value / self.scale for value in box)
        return left + self.left_px, top + self.top_px, right + self.left_px, bottom + self.top_px

    def from_file(self, box: Box) -> Box:
        """Return where a box of the picture lies in these pixels."""
        left, top, right, bottom = box
        scale = self.scale
        return (
            (left - self.left_px) * scale,
            (top - self.top_px) * scale,
            (right - self.left_px) * scale,
            (bottom - self.top_px) * scale,
        )


@dataclass(frozen=True)
class FoundInk:
    """The ink of a picture or of a region of it, cropped, and what is needed to prepare it."""

    image: Image.Image  # the region, made smaller if it is very large
    uncropped: Ink  # of all of the region
    ink: Ink  # cropped to where there is some
    left_px: int  # where the cropped ink starts in the whole picture
    top_px: int
    reduced: int  # pixels of the picture for one of the ink, along each side
    file_size_px: tuple[int, int]


def prepare_image(
    source: ImageSource,
    *,
    canvas_shape: tuple[int, int],
    dpi: float = REFERENCE_DPI,
    max_shrink: float = MAX_SHRINK,
    scale_step: float = NEIGHBOUR_FACTOR,
    typeset: bool = True,
    as_it_is: bool = False,
    scale: float | None = None,
    check: bool = True,
    region: Box | None = None,
) -> list[PreparedImage]:
    """Turn a picture into what a model reads.

    Args:
        source: a path, the bytes of a file, an array, or an open image.
        canvas_shape: height and width of the model's canvas, frame included.
        dpi: the scale of the text that the model knows, as of 12 pt type.
        max_shrink: the share of that scale down to which a formula may be made smaller to fit on the canvas.
        scale_step: the factor between the estimated scale and those beside it that are given too.
        typeset: whether a scale near the picture's own may be just that. No two people write equally large.
        as_it_is: whether the picture's own scale is given too where the estimate is another one, for models
            that were trained on one size of type and cannot read what was resampled.
        scale: pixels of the model for one pixel of the picture; estimated from the picture if None.
        check: refuse what does not look like a formula.
        region: the part of the picture to read, in its pixels: left, top, right, bottom; all of it if None.

    Returns:
        One image; or two where the estimate leaves open whether the scale must change, and three around the
        estimate where it must, or where nothing is typeset; two more where large signs may pass for letters,
        and up to two where there is little to estimate from. The reader takes the one that it reads with the
        best score.

    Raises:
        ImageError: if there is no formula in it.
        ImageTooLargeError: if the formula is too large for the model.
        I2LError: if the scale or the region is none.
    """
    if scale is not None and not 0 < scale < math.inf:
        raise I2LError(f"The scale must be a number above 0, not {scale}.")
    image = open_image(source)
    left, top, right, bottom = choose_region(image, region)
    part = image if (right - left, bottom - top) == image.size else image.crop((left, top, right, bottom))
    found = _find_ink(part, corner=(left, top), file_size_px=image.size)
    return _fit(
        found,
        canvas_shape=canvas_shape,
        dpi=dpi,
        max_shrink=max_shrink,
        scale_step=scale_step,
        typeset=typeset,
        as_it_is=as_it_is,
        scale=scale,
        check=check,
    )


def choose_region(image: Image.Image, region: Box | None) -> tuple[int, int, int, int]:
    """Return the whole pixels of a region, cut at the edges of the picture: left, top, right, bottom.

    Only the region's own pixels are looked at then, at full resolution: reading it gives what reading a
    picture of it alone gives.

    Raises:
        I2LError: if the region holds no pixel of the picture.
    """
    width, height = image.size
    if region is None:
        return 0, 0, width, height
    if not all(map(math.isfinite, region)):
        raise I2LError(f"A region is left, top, right, bottom in pixels, not {region}.")
    left, top = max(math.floor(region[0]), 0), max(math.floor(region[1]), 0)
    right, bottom = min(math.ceil(region[2]), width), min(math.ceil(region[3]), height)
    if left >= right or top >= bottom:
        raise I2LError(
            f"The region from {region[0]:g}, {region[1]:g} to {region[2]:g}, {region[3]:g} holds nothing of "
            f"the picture, which has {width} x {height} pixels."
        )
    return left, top, right, bottom


def _find_ink(part: Image.Image, *, corner: tuple[int, int], file_size_px: tuple[int, int]) -> FoundInk:
    """Find the ink of a part of a picture, which starts at a corner in it.

    Raises:
        EmptyImageError: if there is none.
    """
    image, reduced = _reduce(part)
    found = extract_ink(image)
    left, top, right, bottom = ink_bounds(found)
    return FoundInk(
        image=image,
        uncropped=found,
        ink=found[top:bottom, left:right],
        left_px=corner[0] + left * reduced,
        top_px=corner[1] + top * reduced,
        reduced=reduced,
        file_size_px=file_size_px,
    )


def _fit(
    found: FoundInk,
    *,
    canvas_shape: tuple[int, int],
    dpi: float,
    max_shrink: float,
    scale_step: float,
    typeset: bool,
    as_it_is: bool,
    scale: float | None,
    check: bool,
) -> list[PreparedImage]:
    """Bring ink to the scales at which a model should read it; arguments and errors as in `prepare_image`."""
    ink, reduced = found.ink, found.reduced
    if check and min(ink.shape) >= MIN_DENSE_PX and ink.mean() > MAX_INK_SHARE * 255:
        raise NotAFormulaError("This does not look like a formula: more than half of it is ink.")
    area = canvas_shape[0] - 2 * FRAME_PX, canvas_shape[1] - 2 * FRAME_PX
    scales = [scale] if scale else _scales(ink, reduced, dpi / REFERENCE_DPI, scale_step, typeset=typeset)
    if as_it_is and scale is None and 1.0 not in scales:
        scales.insert(0, 1.0)
    if check and scale is None and is_grain(_symbol_ink(ink)):
        raise NotAFormulaError(_ONLY_GRAIN)
    symbol_px = SYMBOL_PX * dpi / REFERENCE_DPI / scales[-1]  # in the picture, if that was estimated
    if check and scale is None and not _has_strokes(found.image, found.uncropped, symbol_px / reduced):
        raise NotAFormulaError("This does not look like a formula: it has shades and areas, not strokes.")
    prepared: dict[float, PreparedImage] = {}
    for wanted in scales:
        fitting = min(
            wanted, *(limit / (size * reduced) for limit, size in zip(area, ink.shape, strict=True))
        )
        if fitting < max_shrink * min(wanted, scales[-1]):
            continue
        pixels, (more_left, more_top) = _resize(ink, fitting * reduced)
        prepared[fitting] = PreparedImage(
            pixels=pixels,
            scale=fitting,
            left_px=found.left_px + more_left / fitting,
            top_px=found.top_px + more_top / fitting,
            file_size_px=found.file_size_px,
        )
    if not prepared:
        if scale is None and symbol_px < SPECK_PX:
            raise NotAFormulaError("This does not look like a formula: there are only specks in it.")
        height, width = (math.ceil(size * reduced * scales[-1]) for size in ink.shape)
        raise ImageTooLargeError(
            f"The formula is too large: at the scale of this model it has {width} x {height} pixels, and "
            f"it reads at most {area[1]} x {area[0]}. Crop the image to one formula."
        )
    return list(prepared.values())


def _reduce(image: Image.Image) -> tuple[Image.Image, int]:
    """Make a large picture smaller, and return by how much."""
    reduced = max(
        math.ceil(math.sqrt(image.width * image.height / MAX_WORK_PIXELS)),
        math.ceil(max(image.size) / MAX_WORK_SIDE_PX),
    )
    if reduced <= 1:
        return image, 1
    if image.mode not in ("L", "RGB", "RGBA", "F", "I"):
        image = image.convert("RGBA" if "transparency" in image.info else "RGB")
    return image.reduce(reduced), reduced


def _scales(ink: Ink, reduced: int, wanted: float, step: float, *, typeset: bool) -> list[float]:
    """Return the scales to read at, the estimated one last.

    Raises:
        NotAFormulaError: if there are no symbols to estimate from.
    """
    pieces = _measure_pieces(ink)
    if pieces is None:
        raise NotAFormulaError(_ONLY_GRAIN)
    heights, widths = pieces
    change = wanted * SYMBOL_PX / (large_symbol_size(heights, widths) * reduced)
    smaller = SECOND_FACTOR * large_symbol_size(heights, widths, percentile=SECOND_PERCENTILE)
    second = wanted * SYMBOL_PX / (smaller * reduced)
    apart = math.log(second / change)
    beyond = second * step if apart > 0 else second / step  # such signs move the lower percentile too
    seconds = [beyond, second] if abs(apart) > SECOND_SCALE_LOG else []
    if typeset and abs(math.log(change)) <= KEPT_SCALE_LOG:
        return [*seconds, 1.0]
    if typeset and abs(math.log(change)) <= CHANGED_SCALE_LOG:
        return [*seconds, 1.0, change]
    scales = [*seconds, change / step, change * step, change]
    if typeset and len(heights) <= FEW_PIECES:
        height, width = (np.array([size]) for size in ink.shape)
        whole = wanted * SYMBOL_PX / (large_symbol_size(height, width) * reduced)
        return [1.0, whole, *scales] if abs(math.log(whole)) <= OWN_SCALE_LOG else [whole, *scales]
    return scales


def estimate_scale(ink: Ink) -> float | None:
    """Return the size of the type, 1 for 12 pt at 200 dpi; None if there are no symbols to measure."""
    pieces = _measure_pieces(ink)
    return None if pieces is None else large_symbol_size(*pieces) / SYMBOL_PX


def _measure_pieces(ink: Ink) -> tuple[NDArray[np.int64], NDArray[np.int64]] | None:
    """Return heights and widths of the pieces of ink; None if they are grain, not symbols."""
    symbols = _symbol_ink(ink)
    if np.count_nonzero(symbols[:, 1:] & ~symbols[:, :-1]) > MAX_RUNS:
        return None
    left, top, right, bottom = find_pieces(symbols).T
    return bottom - top, right - left


def _symbol_ink(ink: Ink) -> InkMask:
    """Tell the ink of symbols from the pale rim of their strokes."""
    darkness = ink.astype(np.float64)
    mean_darkness = np.square(darkness).sum() / darkness.sum()  # of ink, weighted by itself
    symbols: InkMask = ink > 0.5 * mean_darkness
    return symbols


def large_symbol_size(
    heights: NDArray[np.int64] | NDArray[np.float64],
    widths: NDArray[np.int64] | NDArray[np.float64],
    *,
    percentile: int = 90,
) -> float:
    """Return the size of the larger ones of symbols, without rules and tall delimiters."""
    compact = (widths <= 3 * heights) & (heights <= 3 * widths)
    if not compact.any():  # a minus or a bar by itself is about as long as a digit is high
        return float(np.maximum(heights, widths).max())
    logs = (1 - WIDTH_SHARE) * np.log(heights[compact]) + WIDTH_SHARE * np.log(widths[compact])
    return math.exp(float(np.percentile(logs, percentile)))


def _has_strokes(image: Image.Image, ink: Ink, symbol_px: float) -> bool:
    """Tell whether ink is made of strokes, and whether these are strokes of the picture it was found in."""
    if deep_share(ink, symbol_px=symbol_px) > MAX_DEEP_SHARE:
        return False
    channels = np.clip(image_colours(image), 0, WHITE).astype(np.uint8)
    return any(
        stroke_likeness(channels[:, :, channel], ink, symbol_px=symbol_px) >= MIN_LIKENESS
        for channel in range(channels.shape[2])
    )


def _resize(ink: Ink, factor: float) -> tuple[NDArray[np.uint8], tuple[int, int]]:
    """Change the size of ink; return it as grey pixels, and what was cropped off on the left and top."""
    if factor == 1:
        return WHITE - ink, (0, 0)
    height, width = (max(1, round(size * factor)) for size in ink.shape)
    resized = np.asarray(Image.fromarray(ink).resize((width, height), Image.Resampling.BICUBIC))
    left, top, right, bottom = ink_bounds(resized)
    return WHITE - resized[top:bottom, left:right], (left, top)


def place_on_canvas(
    images: Sequence[NDArray[np.uint8]], *, canvas_shape: tuple[int, int]
) -> NDArray[np.uint8]:
    """Centre each image (H, W) on a white canvas of its own: (B, canvas height, canvas width).

    Raises:
        ImageTooLargeError: if an image would reach into the frame.
    """
    height, width = canvas_shape
    pixels = np.full((len(images), height, width), WHITE, np.uint8)
    for canvas, image in zip(pixels, images, strict=True):
        rows, columns = image.shape
        top, left = centre(rows, height), centre(columns, width)
        if top < 0 or left < 0:
            raise ImageTooLargeError(
                f"The image has {columns} x {rows} pixels; the model reads at most "
                f"{width - 2 * FRAME_PX} x {height - 2 * FRAME_PX}. Crop or scale it down."
            )
        canvas[top + FRAME_PX : top + FRAME_PX + rows, left + FRAME_PX : left + FRAME_PX + columns] = image
    return pixels


def centre(size_px: int, canvas_px: int) -> int:
    """Return where a centred image starts inside the frame; an odd pixel of space goes to the far side."""
    return (canvas_px - size_px) // 2 - FRAME_PX
