"""Pages are photographed as they were: datasets keep formulas and seeds, of which pictures are made."""

import random

import numpy as np

from i2l.rendering.camera import _disc, _streak, degrade
from i2l.rendering.rasterize import PageImage
from i2l.rendering.styles import Style, draw_photo
from tests.kept import assert_kept

STEADY = (1.0, 0.0, 0.0, -1.0, 0.0, 20.0)


def page(source, shape=(90, 240)):
    """Bars of some greys on white, each at another place."""
    pixels = np.full(shape, 255, np.uint8)
    for _ in range(14):
        top, left = source.randrange(10, shape[0] - 30), source.randrange(10, shape[1] - 50)
        pixels[top : top + source.randrange(2, 20), left : left + source.randrange(2, 40)] = source.choice(
            [0, 0, 90]
        )
    return pixels


def parts(pixels):
    """The size of a picture, and the light and the contrast of its parts."""
    cells = [cell for row in np.array_split(pixels, 4) for cell in np.array_split(row, 6, axis=1)]
    return [*pixels.shape, *(cell.mean() for cell in cells), *(cell.std() for cell in cells)]


def test_photographs_are_as_they_were():
    measured = {}
    for seed in range(24):
        source = random.Random(seed)
        photo, tones = draw_photo(source, seed=seed, em_px=24.0)
        style = Style(
            ink=tones.ink, paper=tones.paper, noise=[0.0, 3.0][seed % 2], noise_seed=seed, photo=photo
        )
        measured[str(seed)] = parts(degrade(PageImage(page(source), STEADY), style).pixels)
    assert_kept("photographs", measured, relative=4e-3)


def test_lenses_and_hands_blur_as_they_did():
    """The weights of every kernel, which are added up by Pillow."""
    measured = {f"disc {radius}": _disc(radius).filterargs[3] for radius in (0.1, 0.5, 0.8, 1.3, 2.0, 2.4)}
    for length in (0.5, 2.0, 3.7):
        measured |= {
            f"streak {length} {turn}": _streak(length, turn).filterargs[3] for turn in (0, 30, 90, 140)
        }
    assert_kept("kernels", measured)
