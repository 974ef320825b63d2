import itertools

import numpy as np
import pytest
import torch

from i2l.model.calstm.encoder import Encoder, encode_windows
from i2l.model.network import Window, centred_windows, crop_window

AREAS = [(128, 192), (96, 160), (64, 32), (32, 256)]


def windows_of(area):
    """Windows at every place of the canvas: off-centre ones, and those that touch some of its edges."""
    height, width = area
    windows = centred_windows(area=area, cell_px=32, heights_px=(42, 82))
    places = itertools.product((0, 1, 13, height - 9), (0, 7, width - 6, width // 2 - 3))
    return windows + [Window(9, 6, top, left) for top, left in places]


def encoder_of(dtype):
    torch.manual_seed(1)
    encoder = Encoder(channels=(4, 5, 6, 7, 8), pool_rows=1).to(dtype)
    with torch.no_grad():
        for parameter in encoder.parameters():
            parameter.uniform_(-0.5, 0.5)
    return encoder


def canvases(area, window):
    """Two canvases with ink up to the window's edges, white elsewhere."""
    generator = np.random.default_rng(2)
    pixels = np.full((2, area[0] + 2, area[1] + 2), 255, np.uint8)
    ink = generator.integers(0, 256, (2, window.height_px, window.width_px))
    crop_window(torch.from_numpy(pixels), window).copy_(torch.from_numpy(ink))
    return torch.from_numpy(pixels)


@pytest.mark.parametrize("area", AREAS, ids=str)
def test_windows_give_features_and_gradients_of_the_whole_canvas(area):
    encoder = encoder_of(torch.float64)
    for window in windows_of(area):
        pixels = canvases(area, window)
        plain = encoder(pixels)
        crop = crop_window(pixels, window)
        fast = encode_windows(encoder, crop, window=window, area=area, dtype=torch.float64)
        torch.testing.assert_close(fast, plain, rtol=0, atol=1e-13, msg=str(window))
        weighting = torch.randn_like(plain)
        expected = torch.autograd.grad((plain * weighting).sum(), list(encoder.parameters()))
        found = torch.autograd.grad((fast * weighting).sum(), list(encoder.parameters()))
        for one, other in zip(found, expected, strict=True):
            torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-11, msg=str(window))


def test_a_blank_canvas_costs_no_accuracy_in_float32():
    encoder = encoder_of(torch.float32)
    area, window = (128, 192), Window(64, 64, 32, 64)
    pixels = torch.full((1, 130, 194), 255, dtype=torch.uint8)
    fast = encode_windows(encoder, crop_window(pixels, window), window=window, area=area, dtype=torch.float32)
    torch.testing.assert_close(fast, encoder(pixels), rtol=0, atol=1e-6)
