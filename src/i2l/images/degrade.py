"""What happens to the pixels after the page is drawn: margins, shades, blur, noise, JPEG; or a camera.

Integers and a fixed bit stream only, so that a style gives the same bytes on every machine (JPEG: with the
same libjpeg; photographs: with the same Pillow).
"""

import io
import math

import numpy as np
from PIL import Image

from i2l.images.camera import Neighbour, take_photo
from i2l.images.rasterize import WHITE, PageImage, Pixels
from i2l.images.styles import Style


def degrade(image: PageImage, style: Style, neighbour: Neighbour = lambda offset: None) -> PageImage:
    """Do to a drawn page what its style says, and keep track of where its points go.

    ``neighbour`` draws the page so many pages on, for photographs with neighbours of the formula in them.
    """
    if image.pixels is None:
        return image
    if style.photo is not None:
        pixels, warp = take_photo(image.pixels, style, style.photo, neighbour)
        return PageImage(_jpeg(pixels, style.jpeg_quality), image.matrix, warp=warp)
    pixels = image.pixels
    rows, columns = (
        (style.margin_top_px, style.margin_bottom_px),
        (style.margin_left_px, style.margin_right_px),
    )
    if any(rows + columns):
        pixels = np.pad(pixels, (rows, columns), constant_values=WHITE)
    if style.ink or style.paper != WHITE:
        shades = style.ink + (np.arange(256) * (style.paper - style.ink) + 127) // 255
        pixels = shades.astype(np.uint8)[pixels]
    if style.blur_px:
        pixels = _blur(pixels, style.blur_px)
    if style.noise:
        pixels = _add_noise(pixels, style.noise, style.noise_seed)
    a, b, c, d, e, f = image.matrix
    matrix = a, b, c, d, e + style.margin_left_px, f + style.margin_top_px
    return PageImage(_jpeg(pixels, style.jpeg_quality), matrix)


def _blur(pixels: Pixels, deviation_px: float) -> Pixels:
    radius = math.ceil(2.5 * deviation_px)
    bell = np.exp(-0.5 * (np.arange(-radius, radius + 1) / deviation_px) ** 2)
    weights = np.round(bell / bell.sum() * 256).astype(np.int32)
    weights[radius] += 256 - weights.sum()
    for axis in (0, 1):
        length = pixels.shape[axis]
        padded = np.pad(
            pixels, [(radius, radius) if axis == other else (0, 0) for other in (0, 1)], mode="edge"
        )
        total = np.full(pixels.shape, 128, dtype=np.int32)
        for shift, weight in enumerate(weights):
            total += weight * padded.take(np.arange(shift, shift + length), axis=axis)
        pixels = (total >> 8).astype(np.uint8)
    return pixels


def _add_noise(pixels: Pixels, deviation: float, seed: int) -> Pixels:
    # The sum of four bytes is close to normal, with a deviation of 147.8; the raw stream never changes.
    stream = np.random.PCG64(seed).random_raw((pixels.size + 1) // 2)
    sums = stream.view(np.uint8).reshape(-1, 4).sum(axis=1, dtype=np.int32)[: pixels.size] - 510
    offsets = (sums.reshape(pixels.shape) * round(deviation * 65536 / 147.8) + 32768) >> 16
    noisy: Pixels = np.clip(pixels + offsets, 0, 255).astype(np.uint8)
    return noisy


def _jpeg(pixels: Pixels, quality: int) -> Pixels:
    if not quality:
        return pixels
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, format="jpeg", quality=quality)
    return np.asarray(Image.open(file), dtype=np.uint8)
