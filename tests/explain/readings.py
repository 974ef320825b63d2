"""A made-up reading to draw: five symbols in a row, attention on each in turn."""

import numpy as np
from PIL import Image

from i2l.explain.attention import Placement
from i2l.explain.explanation import build_explanation
from i2l.images.prepare import place_on_canvas
from i2l.model.calstm.config import CalstmConfig

CONFIG = CalstmConfig(height_px=64, width_px=320)
FIELD = CONFIG.receptive_field()
TOKENS = ["a", "^", "{", "2", "}", "+", "<b>&"]  # the last one is no token, but would break a careless page
# Symbols in pixels of an image of 240 x 48; the image lies at (41, 9) on the canvas.
SYMBOLS = {0: (8, 20, 28, 40), 3: (40, 4, 52, 18), 5: (72, 20, 92, 40), 6: (200, 20, 220, 40)}


def pixels():
    image = np.full((48, 240), 255, np.uint8)
    for left, top, right, bottom in SYMBOLS.values():
        image[top:bottom, left:right] = 0
    return image


def attention():
    """Each visible token looks at its symbol, the others where the one before looked; eos at the end."""
    placement = Placement.centred((48, 240), canvas_shape=CONFIG.canvas_shape)
    steps = np.zeros((len(TOKENS) + 1, *FIELD.grid), np.float32)
    for step in range(len(TOKENS) + 1):
        symbol = SYMBOLS[max(number for number in SYMBOLS if number <= step)]
        left, top, right, bottom = placement.to_canvas(symbol)
        steps[step, int((top + bottom) / 2 - 1) // 32, int((left + right) / 2 - 1) // 32] = 1
    steps[-1] = 0
    steps[-1, 0, -1] = 1
    return 0.9 * steps + 0.1 / FIELD.grid[0] / FIELD.grid[1]


def make_explanation(*, zoom=1, tokens=TOKENS):
    """The reading of the image at so many times its size."""
    placement = Placement.centred((48, 240), canvas_shape=CONFIG.canvas_shape)
    image = Image.fromarray(pixels())
    if zoom != 1:
        image = image.resize((240 * zoom, 48 * zoom), Image.Resampling.NEAREST)
        placement = Placement(
            height_px=48 * zoom,
            width_px=240 * zoom,
            scale_x=1 / zoom,
            scale_y=1 / zoom,
            offset_x=placement.offset_x,
            offset_y=placement.offset_y,
        )
    steps = len(tokens) + 1
    return build_explanation(
        title="a <formula>.png",
        image=image,
        canvas=place_on_canvas([pixels()], canvas_shape=CONFIG.canvas_shape)[0],
        latex="a^{2} + <b>&",
        tokens=tokens,
        probabilities=[0.99, 0.98, 0.97, 0.6, 0.95, 0.9, 0.999, 0.97][:steps],
        alternatives=[[("z", 0.3), ("Z", 0.05)] if step == 3 else [] for step in range(steps)],
        attention=attention()[:steps],
        field=FIELD,
        placement=placement,
    )
