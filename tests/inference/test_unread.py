"""Ink that no token looked at, against counting by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from i2l.config import model_preset
from i2l.images.ink_symbols import find_pieces
from i2l.inference.unread import piece_amounts, unread_ink
from i2l.model.receptive_field import receptive_field

FIELD = receptive_field(model_preset("pinpoint"))
ROWS, COLUMNS = FIELD.grid
ROW, COLUMN = ROWS // 2, COLUMNS // 2


def page(*cells):
    """Ink that fills the cores of cells, in pieces; one number of pixels for each."""
    ink = np.zeros(FIELD.canvas_shape, bool)
    for row, column in cells:
        (top, bottom), (left, right) = FIELD.rows.core(row), FIELD.columns.core(column)
        ink[top + 1 : bottom - 1, left + 1 : right - 1] = True
    return ink


def unread(ink, looks, tokens=("x",)):
    attention = np.zeros((len(looks), ROWS, COLUMNS), np.float32)
    for step, cell in enumerate(looks):
        attention[(step, *cell)] = 1
    pieces = find_pieces(ink)
    return unread_ink(tokens, attention, pieces, piece_amounts(ink, pieces), field=FIELD)


@given(
    cells=st.sets(st.tuples(st.integers(0, ROWS - 1), st.integers(0, COLUMNS - 1)), min_size=1, max_size=12),
    looks=st.lists(st.tuples(st.integers(0, ROWS - 1), st.integers(0, COLUMNS - 1)), max_size=6),
)
def test_a_piece_is_read_by_a_look_at_it_or_beside_it(cells, looks):
    left_out = sum(
        not any(abs(row - y) <= 1 and abs(column - x) <= 1 for y, x in looks) for row, column in cells
    )
    assert unread(page(*cells), looks) == pytest.approx(left_out / len(cells))


def test_a_long_piece_is_read_by_a_look_at_its_end():
    ink = page((ROW, COLUMN))
    (top, bottom), (left, _) = FIELD.rows.core(ROW), FIELD.columns.core(COLUMN)
    ink[top + 1 : bottom - 1, left + 1 : left + 300] = True
    assert unread(ink, [(ROW, COLUMN)]) == 0
    assert unread(ink, [(0, COLUMN)]) == 1


def test_attention_that_is_spread_is_no_look():
    ink = page((ROW, COLUMN))
    pieces = find_pieces(ink)
    spread = np.full((1, ROWS, COLUMNS), 1 / (ROWS * COLUMNS))
    assert unread_ink(["x"], spread, pieces, piece_amounts(ink, pieces), field=FIELD) == 1


def test_what_draws_a_row_of_letters_cannot_be_judged():
    ink = page((ROW, COLUMN), (ROW, COLUMN + 6))
    assert unread(ink, [(ROW, COLUMN)]) == pytest.approx(0.5)
    assert unread(ink, [(ROW, COLUMN)], tokens=["a", r"\pmod"]) == 0


def test_no_ink():
    assert unread(page(), [(ROW, COLUMN)]) == 0
    assert unread(page(), []) == 0
