"""Boxes from attention: smallest blocks by brute force, ink, structural tokens, the fitted share."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from i2l.explain.localization import BoxError, TrueBoxes, box_iou, fit_share
from i2l.inference.boxes import attention_boxes, smallest_blocks, visible_tokens
from i2l.model.calstm.config import CalstmConfig

CONFIG = CalstmConfig(height_px=128, width_px=256)
FIELD = CONFIG.receptive_field()


def brute_force_cells(attention, share):
    """Fewest cells of a rectangle that holds the share, and the most such a rectangle holds."""
    rows, columns = attention.shape
    found = []
    for top in range(rows):
        for bottom in range(top + 1, rows + 1):
            for left in range(columns):
                for right in range(left + 1, columns + 1):
                    held = attention[top:bottom, left:right].sum()
                    if held >= share * (1 - 1e-6):
                        found.append(((bottom - top) * (right - left), -held))
    return min(found)


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 4), st.integers(1, 7), st.floats(0.05, 1), st.integers(0, 2**31), st.floats(0.05, 3))
def test_blocks_are_the_smallest(rows, columns, share, seed, sharpness):
    attention = (
        np.random.default_rng(seed).dirichlet(np.full(rows * columns, sharpness)).reshape(rows, columns)
    )
    top, left, bottom, right = smallest_blocks(attention[None], share)[0]
    cells, held = brute_force_cells(attention, share)
    assert (bottom - top) * (right - left) == cells
    assert attention[top:bottom, left:right].sum() == pytest.approx(-held, abs=1e-9)


def test_a_box_is_that_of_the_symbol_nearest_to_attention():
    ink = np.zeros(CONFIG.canvas_shape, np.bool_)
    ink[40:45, 68:75] = True  # in the second row of cells, third column
    ink[40:45, 90:112] = True  # from there into the next
    attention = np.zeros((3, *FIELD.grid), np.float32)
    attention[0, 1, 2] = 1
    attention[1, 1, 2], attention[1, 1, 3] = 0.4, 0.6
    attention[2, 3, 7] = 1
    boxes = attention_boxes(attention, field=FIELD, ink=ink, share=0.9)
    assert boxes == [(68, 40, 75, 45), (90, 40, 112, 45), None]


def test_overlap():
    assert box_iou((0, 0, 2, 2), (0, 0, 2, 2)) == 1
    assert box_iou((0, 0, 2, 2), (1, 0, 3, 2)) == pytest.approx(1 / 3)
    assert box_iou((0, 0, 2, 2), (2, 0, 3, 2)) == 0
    assert box_iou(None, (0, 0, 1, 1)) == 0


def test_structural_tokens_are_left_out():
    tokens = [r"\frac", "{", "a", "}", "{", "b", "_", "{", "2", "}", "}", r"\mathrm", "{", "i", "f", "}"]
    shown = [token for token, visible in zip(tokens, visible_tokens(tokens), strict=True) if visible]
    assert shown == [r"\frac", "a", "b", "2", "i", "f"]
    broken = ["x", "}", "^", r"\left(", r"\begin{array}", "3", r"\mathrm"]
    assert visible_tokens(broken) == [True, False, False, True, False, True, False]


def test_the_fitted_share_is_the_one_that_overlaps_best():
    """Three quarters of attention lie on two cells around the symbol, the rest far away on other ink."""
    ink = np.zeros(CONFIG.canvas_shape, np.bool_)
    ink[33:65, 33:40] = True  # nearest to the first cell alone
    ink[33:65, 55:75] = True
    ink[80:90, 90:110] = True  # nearest to the middle of all
    attention = np.zeros((1, *FIELD.grid))
    attention[0, 1, 1], attention[0, 1, 2], attention[0, 3, 6] = 0.4, 0.35, 0.25
    sample = TrueBoxes(attention, [(55, 33, 75, 65)], ink)
    fit = fit_share([sample], field=FIELD, shares=(0.3, 0.7, 0.9))
    assert (fit.share, fit.mean_iou) == (0.7, 1.0)
    assert fit.curve == {0.3: 0.0, 0.7: 1.0, 0.9: 0.0}
    with pytest.raises(BoxError, match="Nothing to fit on"):
        fit_share([], field=FIELD)
