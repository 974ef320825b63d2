"""Boxes of tokens and what is left unread are found as when they were measured and confidence was fitted."""

import numpy as np

from i2l.images.ink import measure_pieces
from i2l.inference.boxes import match_tokens, unread_ink
from i2l.model.pinpoint.config import PinpointConfig
from tests.kept import assert_kept

FIELD = PinpointConfig(height_px=128, width_px=576).receptive_field()
TOKENS = ["a", r"\frac", "2", "=", "i", r"\sqrt", "x", "-", "(", "M", r"\leq", ".", r"\sum", ":", "j", "1"]


def crowded(number):
    """Signs made of one, two and three pieces, some of which touch, and attention that is a little off."""
    random = np.random.default_rng(number)
    pixels = np.full((100, 560), 255, np.uint8)
    tokens, looks, x = [], [], 12
    while x < 480:
        token = TOKENS[int(random.integers(len(TOKENS)))]
        top, size = int(random.integers(25, 45)), int(random.integers(9, 24))
        parts = {
            "=": [(0, 6, size, 8), (0, 12, size, 14)],
            r"\leq": [(0, 0, size, 9), (0, 12, size, 14)],
            "i": [(2, 0, 5, 3), (2, 6, 6, 22)],
            "j": [(2, 0, 5, 3), (2, 6, 6, 27)],
            ":": [(0, 6, 4, 10), (0, 16, 4, 20)],
            r"\frac": [(-4, 18, size + 4, 20)],
            "-": [(0, 10, size, 12)],
            ".": [(0, 18, 3, 21)],
            "(": [(0, -8, 5, 30)],
            r"\sqrt": [(0, -6, 3 * size, -4), (0, -6, 3, 22)],
        }.get(token, [(0, 0, size, 22)])
        for left, up, right, down in parts:
            pixels[top + up : top + down, x + left : x + right] = 0
            pixels[top + up : top + down, x + right] = 240  # a soft edge
        width = max(part[2] for part in parts)
        tokens.append(token)
        looks.append((x + width / 2 + random.normal(0, 3), top + 11 + random.normal(0, 4)))
        x += (size if token == r"\sqrt" else width) + int(random.integers(-1, 9))
    rows, columns = (
        np.array([axis.centre(cell) for cell in range(axis.num_cells)])
        for axis in (FIELD.rows, FIELD.columns)
    )
    away = [(rows[:, None] - y - 1) ** 2 + (columns - x - 1) ** 2 for x, y in looks]
    attention = np.exp(-np.array(away) / (2 * 7.0**2)) + 1e-9
    return pixels, tokens, (attention / attention.sum(axis=(1, 2), keepdims=True)).astype(np.float32)


def test_boxes_and_what_is_unread_are_those_that_were_measured():
    measured = {}
    for number in range(5):
        pixels, tokens, attention = crowded(number)
        pieces, amounts = measure_pieces(pixels < 128)
        for resized in (False, True):
            found = match_tokens(
                tokens, attention, pieces, pixels, field=FIELD, share=0.5, corner=(1, 1), resized=resized
            )
            measured[f"boxes {number} {resized}"] = [box or (0, 0, 0, 0) for box in found.boxes]
        measured[f"unread {number}"] = [
            unread_ink(tokens[first::3], attention[first::3], pieces + 1, amounts, field=FIELD)
            for first in range(3)
        ]
    assert_kept("token_boxes", measured)
