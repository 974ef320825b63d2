import numpy as np
import pytest
import torch

from i2l.images.prepare import WHITE
from i2l.model.calstm.config import CalstmConfig
from i2l.model.calstm.encoder import Encoder


def config(**changes):
    return CalstmConfig(**({"height_px": 128, "width_px": 320, "channels": (2, 3, 3, 4, 5)} | changes))


def canvas(box, settings):
    height, width = settings.canvas_shape
    pixels = np.full((1, height, width), WHITE, np.uint8)
    top, left, bottom, right = box
    random = np.random.default_rng(0)
    pixels[0, top + 1 : bottom + 1, left + 1 : right + 1] = random.integers(
        0, 256, (bottom - top, right - left)
    )
    return pixels


def encoder(settings):
    torch.manual_seed(0)
    made = Encoder(
        channels=settings.channels, pool_rows=settings.pool_rows, pool_columns=settings.pool_columns
    ).double()
    for layer in made.convolutions:
        torch.nn.init.uniform_(layer.bias, -0.5, 0.5)
    return made


@pytest.mark.parametrize("pool", [(1, 1), (4, 1), (2, 2)])
@pytest.mark.parametrize(
    "box",
    [
        (60, 150, 64, 170),
        (0, 0, 5, 5),
        (123, 310, 128, 320),
        (63, 159, 65, 161),
        (0, 0, 128, 320),
        (31, 32, 97, 287),
    ],
)
def test_the_window_gives_the_features_of_the_whole_canvas(box, pool):
    settings = config(pool_rows=pool[0], pool_columns=pool[1])
    pixels = canvas(box, settings)
    made = encoder(settings)
    (window,) = settings.find_windows(pixels)
    with torch.no_grad():
        whole = made(torch.from_numpy(pixels)).flatten(1, 2)
        blank = made(torch.full_like(torch.from_numpy(pixels), WHITE)).flatten(1, 2)
        part = made(torch.from_numpy(pixels[:, window.rows, window.columns])).flatten(1, 2)
    features = torch.cat([part, blank], dim=1)[:, torch.from_numpy(window.cells)]
    torch.testing.assert_close(features, whole, atol=1e-12, rtol=0)


def test_the_window_is_small():
    settings = config(width_px=1088)
    (window,) = settings.find_windows(canvas((40, 500, 90, 600), settings))
    assert window.columns.stop - window.columns.start == 8 * 32 + 2  # 4 cells of ink, 1 beside, 1 not used
    assert window.rows == slice(0, 130)


def test_a_blank_canvas():
    settings = config()
    (window,) = settings.find_windows(canvas((0, 0, 0, 0), settings))
    assert window.columns.stop <= 3 * 32 + 2
