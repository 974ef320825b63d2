"""What the page is told: where the grid of attention lies on the image it shows."""

import base64
import json
import re

import numpy as np
import pytest

from i2l.explain.drawings import explanation_page
from tests.explain.readings import SYMBOLS, TOKENS, make_explanation


@pytest.mark.parametrize("zoom", [1, 3, 9])  # at 9 the image is larger than the page shows it
def test_the_fullest_cell_lies_on_the_symbol(zoom):
    page = explanation_page(make_explanation(zoom=zoom))
    data = json.loads(re.search(r'id="data">(.*?)</script>', page, re.DOTALL)[1])
    grid, shown = data["grid"], data["width"] / 240
    assert data["height"] == pytest.approx(48 * shown, abs=1)
    flat = np.frombuffer(base64.b64decode(data["attention"]), np.uint8)
    attention = flat.reshape(len(TOKENS) + 1, grid["rows"], grid["columns"])
    for step, box in SYMBOLS.items():
        row, column = np.unravel_index(attention[step].argmax(), attention[step].shape)
        left, top = grid["left"] + column * grid["width"], grid["top"] + row * grid["height"]
        x, y = (box[0] + box[2]) / 2 * shown, (box[1] + box[3]) / 2 * shown
        assert left - 1 <= x <= left + grid["width"] + 1
        assert top - 1 <= y <= top + grid["height"] + 1
        assert data["tokens"][step]["box"] == pytest.approx([side * shown for side in box], abs=2 * shown)
    assert grid["width"] == pytest.approx(32 * shown, rel=0.01)
    assert data["field"]["height"] == pytest.approx(94 * shown, rel=0.01)
    assert data["tokens"][-1]["end"]
