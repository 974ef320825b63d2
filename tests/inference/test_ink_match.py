"""Which ink belongs to which token: the assignment against brute force, and small pictures made by hand."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from i2l.inference.boxes import _with_shares, assign, match_ink


@settings(max_examples=200, deadline=None)
@given(
    st.integers(1, 5).flatmap(
        lambda rows: st.integers(rows, 6).flatmap(
            lambda columns: hnp.arrays(float, (rows, columns), elements=st.integers(0, 20).map(float))
        )
    )
)
def test_the_assignment_is_the_cheapest(costs):
    rows, columns = costs.shape
    chosen = assign(costs)
    assert len(set(chosen.tolist())) == rows
    cheapest = min(
        sum(costs[row, column] for row, column in enumerate(order))
        for order in permutations(range(columns), rows)
    )
    assert costs[np.arange(rows), chosen].sum() == pytest.approx(cheapest)


def picture(*boxes):
    """Ink that fills boxes, each a piece of its own."""
    ink = np.zeros((120, 200), bool)
    for left, top, right, bottom in boxes:
        ink[top:bottom, left:right] = True
    return ink


def matched(tokens, looks, *boxes):
    return match_ink(tokens, np.array(looks, float), np.array(boxes), ink=picture(*boxes), pixels=None).boxes


def test_two_tokens_that_look_at_one_place_take_a_piece_each_from_left_to_right():
    left, right = (40, 40, 50, 54), (53, 40, 63, 54)
    assert matched(["a", "b"], [(51, 47), (51, 47)], left, right) == [left, right]
    assert matched(["b", "a"], [(51, 47), (51, 47)], right, left) == [left, right]


def test_a_fraction_takes_the_bar_and_not_what_stands_on_it():
    one, bar, two = (42, 20, 48, 34), (40, 40, 50, 42), (42, 48, 48, 62)
    found = matched([r"\frac", "1", "2"], [(45, 36), (45, 30), (45, 55)], one, bar, two)
    assert found == [bar, one, two]


def test_signs_of_several_parts_take_them_all():
    upper, lower, letter = (40, 40, 56, 42), (40, 46, 56, 48), (70, 38, 80, 52)
    assert matched(["=", "x"], [(48, 44), (75, 45)], upper, lower, letter) == [(40, 40, 56, 48), letter]
    dot, stem = (42, 30, 45, 33), (41, 36, 46, 50)
    assert matched(["i"], [(44, 42)], dot, stem) == [(41, 30, 46, 50)]
    s, i, n, x = (10, 40, 18, 50), (20, 36, 23, 50), (25, 40, 35, 50), (44, 40, 54, 50)
    assert matched([r"\sin", "x"], [(22, 44), (49, 45)], s, i, n, x) == [(10, 36, 35, 50), x]


def test_letters_that_touch_are_cut_between_their_tokens():
    found = matched(["m", "n"], [(46, 47), (62, 47)], (40, 40, 70, 54))
    assert found == [(40, 40, 54, 54), (54, 40, 70, 54)]


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_every_token_gets_a_box_inside_the_image(data):
    corners = st.tuples(st.integers(0, 180), st.integers(0, 100), st.integers(1, 19), st.integers(1, 19))
    boxes = [
        (left, top, left + width, top + height)
        for left, top, width, height in data.draw(st.lists(corners, min_size=1, max_size=8))
    ]
    names = st.sampled_from(["a", "=", "i", ".", r"\frac", r"\sqrt", r"\sin", r"\ldots", r"\|", "-"])
    tokens = data.draw(st.lists(names, min_size=1, max_size=12))
    looks = [data.draw(st.tuples(st.floats(-50, 250), st.floats(-50, 150))) for _ in tokens]
    ink = picture(*boxes)
    white = np.where(ink, 0, 255).astype(np.uint8)
    found = match_ink(tokens, np.array(looks), np.array(boxes), ink=ink, pixels=white)
    assert len(found.boxes) == len(tokens)
    assert 0 <= found.left_over <= len(boxes)
    for left, top, right, bottom in found.boxes:
        assert 0 <= left <= right <= 200
        assert 0 <= top <= bottom <= 120


def test_a_piece_is_dearer_each_time_it_is_shared_and_dots_and_bars_most_of_all():
    """Two tokens sooner share a wide piece, of letters that touch, than a dot or the bar of a fraction."""
    letter, wide, dot, bar = (0, 0, 20, 30), (0, 0, 60, 30), (0, 0, 8, 8), (0, 0, 40, 4)
    boxes = np.array([letter, wide, dot, bar], dtype=float)
    once, twice, thrice = np.split(_with_shares(np.zeros((1, 4)), boxes, 30.0)[0][:12], 3)
    assert (once == 0).all()
    assert (thrice > twice).all()
    assert (twice > once).all()
    assert twice[1] < twice[0] < twice[2] < twice[3]
    assert _with_shares(np.zeros((9, 4)), boxes, 30.0).shape[1] >= 9, "there is room for every token"


def test_what_no_token_was_read_from_is_left_over():
    """A reading that leaves out letters has pieces over; dots and the parts of signs are not counted."""
    letters = [(20 * place, 40, 20 * place + 12, 56) for place in range(6)]
    dot = (150, 52, 153, 55)
    ink, boxes = picture(*letters, dot), np.array([*letters, dot])
    looks = np.array([(left + 6, 48) for left, *_ in letters], float)
    for places in ([0, 1, 2, 3, 4, 5], [0, 1, 4, 5], [0]):
        found = match_ink(["a"] * len(places), looks[places], boxes, ink=ink, pixels=None)
        assert found.left_over == 6 - len(places)
    equals = [(40, 40, 56, 42), (40, 46, 56, 48), (70, 38, 80, 52)]
    looks = np.array([(48.0, 44), (75, 45)])
    assert match_ink(["=", "x"], looks, np.array(equals), ink=picture(*equals), pixels=None).left_over == 0
