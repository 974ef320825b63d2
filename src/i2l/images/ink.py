"""Ink on paper out of any picture: how dark each pixel is against its background, whatever the colours.

White type on black, blue on yellow, a transparent background, a photograph with a shadow on it: what counts
is the distance to the background. Black on white comes out exactly as it went in.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageFilter

from i2l.images.open import EmptyImageError

Ink = NDArray[np.uint8]  # 0 is paper, 255 full ink

CLEAN_SHARE: Final = 0.4  # of pixels that are exactly paper or full ink, in an image without noise
EDGE_PX: Final = 3
EDGE_SHARE: Final = 0.7  # of the edge must be of one colour to be paper
MIN_CONTRAST: Final = 24
FULL_CONTRAST: Final = 200  # ink at least this dark is left as it is
BLOCK_PX: Final = 32  # a shadow may change over this distance
NOISY_INK: Final = 40  # in a noisy image, what is fainter is no ink


def extract_ink(image: Image.Image) -> Ink:
    """Give the darkness of each pixel against the background, (H, W).

    Raises:
        EmptyImageError: if nothing stands out from the background.
    """
    colours = _colours(image)
    ink = np.abs(colours - _background(colours)).max(axis=2)
    if ((ink == 0) | (ink == ink.max())).mean() < CLEAN_SHARE:
        ink = _without_noise(_shadowless(colours))
    peak = int(ink.max(initial=0))
    if peak < MIN_CONTRAST:
        raise EmptyImageError("The image is empty: nothing stands out from its background.")
    if peak < FULL_CONTRAST:
        ink = ink.astype(np.int32) * 255 // peak
    strength: Ink = np.clip(ink, 0, 255).astype(np.uint8)
    return strength


def _colours(image: Image.Image) -> NDArray[np.int16]:
    """Give the channels, (H, W, 1 or 3), with what is transparent as white paper."""
    mode = image.mode
    if mode.startswith("I") or mode == "F":
        return _wide_grey(np.asarray(image))
    if mode in ("LA", "La", "PA", "RGBA", "RGBa") or "transparency" in image.info:
        return _over_paper(np.asarray(image.convert("RGBA")).astype(np.int16))
    if mode == "LAB":
        image = image.getchannel(0)  # lightness
    elif mode not in ("1", "L", "RGB"):
        image = image.convert("RGB")
    channels = np.asarray(image.convert("L") if mode == "1" else image).astype(np.int16)
    return channels[:, :, None] if channels.ndim == 2 else channels


def _background(colours: NDArray[np.int16]) -> NDArray[np.int16]:
    """Give the colour of the paper: that along the edge if it is one, else the most usual one."""
    band = EDGE_PX
    edges = (colours[:band], colours[-band:], colours[:, :band], colours[:, -band:])
    edge = np.concatenate([part.reshape(-1, colours.shape[2]) for part in edges])
    colour = np.median(edge, axis=0)
    if (np.abs(edge - colour).max(axis=1) < MIN_CONTRAST).mean() < EDGE_SHARE:
        colour = np.median(colours.reshape(-1, colours.shape[2]), axis=0)
    paper: NDArray[np.int16] = colour.astype(np.int16)
    return paper


def _wide_grey(values: NDArray[np.generic]) -> NDArray[np.int16]:
    """Bring 16-bit, 32-bit and floating grey to 0..255: by the range of the bits used, else of the image."""
    grey = np.nan_to_num(values.astype(np.float64), posinf=0.0, neginf=0.0)
    low, high = float(grey.min()), float(grey.max())
    tops = [top for top in (255.0, 4095.0, 65535.0) if high <= top]  # of 8, 12 and 16 bits
    if tops and low >= 0 and high > 1:
        low, high = 0.0, tops[0]
    scaled = (grey - low) * (255 / max(high - low, 1e-12))
    return np.rint(scaled).astype(np.int16)[:, :, None]


def _over_paper(colours: NDArray[np.int16]) -> NDArray[np.int16]:
    """Lay a transparent picture on white; on black if its ink is white."""
    alpha = colours[:, :, 3:].astype(np.int32)
    for paper in (255, 0):
        laid = (colours[:, :, :3] * alpha + paper * (255 - alpha)) // 255
        if np.ptp(laid, axis=(0, 1)).max() >= MIN_CONTRAST:
            break
    return laid.astype(np.int16)


def _shadowless(colours: NDArray[np.int16]) -> NDArray[np.int16]:
    """Divide by the paper's own lightness, found block by block; type lighter than its paper is inverted."""
    grey = np.clip(colours.mean(axis=2), 0, 255).astype(np.uint8)
    if grey.mean() > np.median(grey):  # what stands out is light
        grey = 255 - grey
    height, width = grey.shape
    rows, columns = -(-height // BLOCK_PX), -(-width // BLOCK_PX)
    padded = np.pad(grey, ((0, rows * BLOCK_PX - height), (0, columns * BLOCK_PX - width)), mode="edge")
    blocks = padded.reshape(rows, BLOCK_PX, columns, BLOCK_PX).swapaxes(1, 2).reshape(rows, columns, -1)
    paper = Image.fromarray(np.percentile(blocks, 80, axis=2).astype(np.uint8))
    paper = paper.filter(ImageFilter.MedianFilter(3)) if min(rows, columns) >= 3 else paper
    paper = paper.resize((columns * BLOCK_PX, rows * BLOCK_PX), Image.Resampling.BICUBIC)
    lightness = np.maximum(np.asarray(paper)[:height, :width], 1).astype(np.int32)
    ink: NDArray[np.int16] = (255 - np.minimum(grey * np.int32(255) // lightness, 255)).astype(np.int16)
    return ink


def _without_noise(ink: NDArray[np.int16]) -> NDArray[np.int16]:
    """Take off what the paper's own grain amounts to."""
    middle = np.median(ink)
    floor = middle + 4 * np.median(np.abs(ink - middle)) + 4
    left = np.maximum(ink - np.int16(min(floor, 128)), 0)
    peak = int(np.percentile(left[left > 0], 95)) if (left > 0).any() else 0
    if peak < MIN_CONTRAST:
        return np.zeros_like(left)
    darkened = np.minimum(left.astype(np.int32) * 255 // peak, 255)
    return np.where(darkened >= NOISY_INK, darkened, 0).astype(np.int16)


def ink_bounds(ink: Ink) -> tuple[int, int, int, int]:
    """Give left, top, right, bottom (half-open) of all ink.

    Raises:
        EmptyImageError: if there is none.
    """
    rows = np.flatnonzero(ink.any(axis=1))
    columns = np.flatnonzero(ink.any(axis=0))
    if not len(rows):
        raise EmptyImageError("The image is empty: nothing stands out from its background.")
    return int(columns[0]), int(rows[0]), int(columns[-1]) + 1, int(rows[-1]) + 1
