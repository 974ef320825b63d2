"""Textures of photographs: noise, grain and fibres, made once and repeated, each with deviation 32."""

from functools import cache

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFilter

Texture = NDArray[np.int16]

DEVIATION = 32
_HEIGHT, _WIDTH = 512, 1024
_NUM_FIBRES = 900


def cut_texture(texture: Texture, shape: tuple[int, int], seed: int) -> Texture:
    """Give a piece of a texture, repeated as needed, from a place that depends on the seed."""
    row, column = seed * 7919 % _HEIGHT, seed * 104_729 % _WIDTH
    rows = np.arange(row, row + shape[0]) % _HEIGHT
    columns = np.arange(column, column + shape[1]) % _WIDTH
    piece: Texture = texture.take(rows, axis=0).take(columns, axis=1)
    return piece


@cache
def white_noise() -> Texture:
    """Noise of a sensor: every pixel for itself."""
    return _level(_raw(1))


@cache
def soft_noise() -> Texture:
    """Coloured specks, which a camera smooths, as they look in grey."""
    return _level(_blurred(_raw(2), 2.2))


@cache
def paper_grain() -> Texture:
    """Paper: fine grain and larger clouds."""
    fine, clouds = _level(_blurred(_raw(3), 0.8)), _level(_blurred(_raw(4), 5.0))
    return _level(4 * fine + 3 * clouds)


@cache
def paper_fibres() -> Texture:
    """Short hairs, darker and lighter than the paper."""
    image = Image.new("L", (_WIDTH, _HEIGHT), 128)
    pen = ImageDraw.Draw(image)
    numbers = np.random.PCG64(5).random_raw(_NUM_FIBRES * 6).reshape(-1, 6)
    for x, y, first, second, third, shade in (numbers >> np.uint64(32)).tolist():
        points = [(x % _WIDTH, y % _HEIGHT)]
        for step in (first, second, third):
            points.append((points[-1][0] + step % 13 - 6, points[-1][1] + step // 13 % 9 - 4))
        pen.line(points, fill=(70, 100, 160)[shade % 3])
    softened = np.asarray(image.filter(ImageFilter.BoxBlur(0.6))).astype(np.int16)
    return (softened - 128) * DEVIATION // 32


def _raw(seed: int) -> NDArray[np.uint8]:
    # The raw stream never changes; the mean of four bytes is close to normal.
    stream = np.random.PCG64(seed).random_raw(_HEIGHT * _WIDTH // 2).view(np.uint8)
    sums = stream.reshape(_HEIGHT, _WIDTH, 4).sum(axis=2, dtype=np.int32)
    noise: NDArray[np.uint8] = (sums // 4).astype(np.uint8)
    return noise


def _blurred(noise: NDArray[np.uint8], radius_px: float) -> Texture:
    wide = (np.clip((noise.astype(np.int32) - 128) * 2 + 128, 0, 255)).astype(np.uint8)
    return np.asarray(Image.fromarray(wide).filter(ImageFilter.GaussianBlur(radius_px))).astype(np.int16)


def _level(values: NDArray[np.integer]) -> Texture:
    centred = values.astype(np.float64) - values.mean()
    levelled: Texture = np.rint(centred * (DEVIATION / centred.std())).astype(np.int16)
    return levelled
