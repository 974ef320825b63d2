"""Blur spreads ink and paper, and makes neither lighter nor darker."""

from dataclasses import replace

import numpy as np
import pytest

from i2l.rendering.camera import degrade
from i2l.rendering.rasterize import PageImage
from i2l.rendering.styles import PAPER

STEADY = (1.0, 0.0, 0.0, -1.0, 0.0, 20.0)


def blurred(pixels, deviation_px):
    return degrade(PageImage(pixels, STEADY), replace(PAPER, blur_px=deviation_px)).pixels


@pytest.mark.parametrize("deviation_px", [0.3, 0.45, 0.6, 0.75, 0.9, 1.15, 1.4, 1.8, 2.5])
def test_blur_keeps_the_brightness(deviation_px):
    for grey in (0, 1, 100, 254, 255):
        flat = np.full((9, 9), grey, dtype=np.uint8)
        assert np.array_equal(blurred(flat, deviation_px), flat)
    ink = np.full((41, 41), 255, dtype=np.uint8)
    ink[15:26, 15:26] = 0
    spread = blurred(ink, deviation_px)
    for same in (spread.T, spread[::-1], spread[:, ::-1]):
        assert np.abs(spread.astype(int) - same).max() <= 1  # each direction is rounded by itself
    assert abs(spread.mean() - ink.mean()) < 0.25
    assert 0 < spread[14, 20] < 255
