"""Pieces of ink against SciPy's, and the symbols made of several."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import ndimage

from i2l.images.ink import _correlation, _slide, find_pieces, find_symbols


@settings(max_examples=80, deadline=None)
@given(st.integers(1, 30), st.integers(1, 40), st.floats(0, 1), st.integers(0, 2**31))
def test_pieces_are_those_of_scipy(height, width, density, seed):
    ink = np.random.default_rng(seed).random((height, width)) < density
    labels, _ = ndimage.label(ink, np.ones((3, 3)))
    expected = [(x.start, y.start, x.stop, y.stop) for y, x in ndimage.find_objects(labels)]
    assert sorted(map(tuple, find_pieces(ink).tolist())) == sorted(expected)


@pytest.mark.parametrize("radius", [1, 2, 3])
def test_what_is_least_and_most_around_a_pixel_is_what_scipy_finds(radius):
    pixels = np.random.default_rng(radius).integers(0, 256, (17, 23)).astype(np.uint8)
    for choose, reference in ((np.minimum, ndimage.minimum_filter), (np.maximum, ndimage.maximum_filter)):
        expected = reference(pixels, 2 * radius + 1, mode="nearest")
        assert np.array_equal(_slide(pixels, radius, choose), expected)


def drawn(*boxes):
    ink = np.zeros((60, 100), np.bool_)
    for left, top, right, bottom in boxes:
        ink[top:bottom, left:right] = True
    return ink


@pytest.mark.parametrize(
    ("pieces", "expected"),
    [
        ([(10, 10, 30, 12), (10, 18, 30, 20)], [(10, 10, 30, 20)]),  # =
        ([(10, 10, 14, 14), (9, 17, 17, 35)], [(9, 10, 17, 35)]),  # i
        ([(10, 10, 30, 12), (14, 18, 22, 40)], [(10, 10, 30, 12), (14, 18, 22, 40)]),  # a bar over a letter
        ([(10, 10, 30, 12), (35, 10, 55, 12)], [(10, 10, 30, 12), (35, 10, 55, 12)]),  # two minus signs
        ([(10, 10, 30, 12), (10, 40, 30, 42)], [(10, 10, 30, 12), (10, 40, 30, 42)]),  # bars far apart
        ([], []),
    ],
)
def test_symbols_of_several_pieces(pieces, expected):
    assert sorted(map(tuple, find_symbols(drawn(*pieces)).tolist())) == expected


def test_grain_is_not_paired():
    ink = np.zeros((130, 1090), np.bool_)
    ink[::4, ::4] = True
    assert len(find_symbols(ink)) == ink.sum()


def test_what_is_all_one_grey_is_like_nothing():
    grey, steps = np.full((3, 4), 7, np.uint8), np.arange(12, dtype=np.uint8).reshape(3, 4)
    assert _correlation(grey, steps) == _correlation(steps, grey) == _correlation(grey, grey) == 0
    assert abs(_correlation(steps, 20 - steps) + 1) < 1e-9
