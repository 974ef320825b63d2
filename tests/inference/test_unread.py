"""Ink that no token looked at, against counting by hand."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from i2l.images.ink import measure_pieces
from i2l.images.prepare import PreparedImage, prepare_image
from i2l.inference.boxes import CanvasInk, unread_ink
from i2l.model.config import model_preset

FIELDS = {name: model_preset(name).receptive_field() for name in ("nopool", "strips", "pinpoint")}
FIELD = FIELDS["pinpoint"]
ROWS, COLUMNS = FIELD.grid
ROW, COLUMN = ROWS // 2, COLUMNS // 2


def page(*cells, field=FIELD):
    """Ink that fills the cores of cells but for their rims, so that each is a piece."""
    ink = np.zeros(field.canvas_shape, bool)
    for row, column in cells:
        (top, bottom), (left, right) = field.rows.core(row), field.columns.core(column)
        ink[top + 1 : bottom - 1, left + 1 : right - 1] = True
    return ink


def unread(ink, looks, tokens=("x",), field=FIELD):
    attention = np.zeros((len(looks), *field.grid), np.float32)
    for step, cell in enumerate(looks):
        attention[(step, *cell)] = 1
    return unread_ink(tokens, attention, *measure_pieces(ink), field=field)


@given(data=st.data(), field=st.sampled_from(list(FIELDS.values())))
def test_a_piece_is_read_by_a_look_at_it_or_beside_it(data, field):
    rows, columns = field.grid
    cell = st.tuples(st.integers(0, rows - 1), st.integers(0, columns - 1))
    cells = data.draw(st.sets(cell, min_size=1, max_size=12))
    looks = data.draw(st.lists(cell, max_size=6))
    left_out = sum(
        not any(abs(row - y) <= 1 and abs(column - x) <= 1 for y, x in looks) for row, column in cells
    )
    ink = page(*cells, field=field)
    assert unread(ink, looks, field=field) == pytest.approx(left_out / len(cells))


@pytest.mark.parametrize(
    ("boxes", "shape"),
    [
        ([(10, 10, 14, 14)], "dot"),
        ([(10, 10, 14, 14), (11, 60, 15, 64)], "two dots"),
        ([(10, 10, 14, 14), (60, 11, 64, 15)], ""),
        ([(10, 10, 14, 14), (60, 11, 64, 15), (110, 9, 114, 13)], "three dots"),
        ([(10, 10, 14, 14), (10, 30, 14, 34), (11, 70, 15, 74)], "three dots"),
        ([(10, 40, 14, 44), (30, 10, 34, 14), (50, 40, 54, 44)], ""),
        ([(10, 10, 14, 14), (30, 40, 34, 44), (50, 10, 54, 14)], ""),
        ([(10 + 30 * place, 10, 14 + 30 * place, 14) for place in range(4)], ""),
        ([(10, 10, 40, 14)], "bar"),
        ([(10, 10, 14, 40)], ""),
        ([(10, 10, 40, 30)], ""),
        ([(10, 10, 40, 14), (10, 30, 40, 34)], ""),
        ([], ""),
    ],
)
def test_a_bar_and_dots_by_themselves_are_known_by_their_shape(boxes, shape):
    pixels = np.full((80, 140), 255, np.uint8)
    for left, top, right, bottom in boxes:
        pixels[top:bottom, left:right] = 0
    image = PreparedImage(pixels, 1.0, 0.0, 0.0, (140, 80))
    assert CanvasInk.find(image, model_preset("pinpoint")).shape == shape


def test_a_long_piece_is_read_by_a_look_at_its_end():
    ink = page((ROW, COLUMN))
    (top, bottom), (left, _) = FIELD.rows.core(ROW), FIELD.columns.core(COLUMN)
    ink[top + 1 : bottom - 1, left + 1 : left + 300] = True
    assert unread(ink, [(ROW, COLUMN)]) == 0
    assert unread(ink, [(0, COLUMN)]) == 1


def test_attention_that_is_spread_is_no_look():
    ink = page((ROW, COLUMN))
    spread = np.full((1, ROWS, COLUMNS), 1 / (ROWS * COLUMNS))
    assert unread_ink(["x"], spread, *measure_pieces(ink), field=FIELD) == 1


def test_what_draws_a_row_of_letters_cannot_be_judged():
    ink = page((ROW, COLUMN), (ROW, COLUMN + 6))
    assert unread(ink, [(ROW, COLUMN)]) == pytest.approx(0.5)
    assert unread(ink, [(ROW, COLUMN)], tokens=["a", r"\pmod"]) == 0


def test_no_ink():
    assert unread(page(), [(ROW, COLUMN)]) == 0
    assert unread(page(), []) == 0


def test_what_a_sign_encloses_is_not_the_signs_own():
    ink = np.zeros((30, 40), bool)
    ink[0, :] = ink[:, 0] = True  # over and left of a square
    ink[10:20, 10:20] = True
    pieces, amounts = measure_pieces(ink)
    assert dict(zip(map(tuple, pieces.tolist()), amounts.tolist(), strict=True)) == {
        (0, 0, 40, 30): 69,
        (10, 10, 20, 20): 100,
    }


def test_grain_is_not_judged():
    config = model_preset("pinpoint")
    (prepared,) = prepare_image(
        page((ROW, COLUMN)).astype(np.uint8) * 255, canvas_shape=config.canvas_shape, dpi=200, scale=1
    )
    grain = replace(prepared, pixels=np.tile(np.uint8([[0, 255], [255, 255]]), (40, 40)))
    ink = CanvasInk.find(grain, config)
    assert len(ink.pieces) == len(ink.amounts) == 0
    attention = np.zeros((1, *config.grid), np.float32)
    assert ink.unread(["x"], attention) == 0
    assert ink.match(["x"], attention, share=0.8) == ([None], 0)
