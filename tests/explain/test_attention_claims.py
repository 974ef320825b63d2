"""The claims' figures on attention whose figures are known."""

import numpy as np
import pytest
import torch

from i2l.explain.attention import (
    attention_errors,
    cells_for_share,
    entropy_bits,
    margin_cells,
    measure_claims,
)
from i2l.model import network


def one_hot(cells, grid=(4, 10)):
    attention = np.zeros((len(cells), *grid))
    for step, (row, column) in enumerate(cells):
        attention[step, row, column] = 1
    return attention


def test_cells_and_entropy():
    attention = np.array([[[1.0, 0, 0, 0]], [[0.5, 0.5, 0, 0]], [[0.25] * 4], [[0.6, 0.25, 0.1, 0.05]]])
    assert cells_for_share(attention, 0.9).tolist() == [1, 2, 4, 3]
    assert entropy_bits(attention)[:3].tolist() == [0, 1, 2]


def test_errors_are_those_of_training():
    attention = np.random.default_rng(0).dirichlet(np.ones(40), size=7).reshape(7, 4, 10)
    ase, aae = network.attention_errors(torch.from_numpy(attention)[None], torch.tensor([7]))
    assert attention_errors(attention) == pytest.approx((ase.item(), aae.item()))


def test_a_scan_from_left_to_right_with_a_look_at_the_margins():
    """Margin first, then right, down and up over cells with ink, then the margin again at eos."""
    inked = np.zeros((4, 10), np.bool_)
    inked[1:3, 1:9] = True
    attention = one_hot([(1, 0), (1, 1), (1, 2), (2, 2), (1, 3), (1, 4), (2, 4), (1, 4), (0, 9)])
    claims = measure_claims([(attention, inked), (attention, inked)])
    assert (claims.num_readings, claims.num_steps) == (2, 18)
    assert (claims.mean_cells, claims.share_up_to_four, claims.around_peak) == (1, 1, 1)
    assert claims.cell_counts["1"] == 1
    assert claims.one_place == 1
    assert (claims.empty_first, claims.empty_between, claims.empty_eos) == (1, 0, 1)
    assert (claims.margin_first, claims.margin_between, claims.margin_eos) == (1, 0, 1)
    assert (claims.right, claims.still, claims.left) == (5 / 8, 3 / 8, 0)
    assert (claims.down, claims.up) == (pytest.approx(2 / 3), pytest.approx(1 / 3))
    assert claims.order_correlation > 0.9
    assert claims.entropy_bits == [0] * 10


def test_margins_are_beyond_the_outermost_ink_and_gaps_are_not():
    inked = np.zeros((4, 10), np.bool_)
    inked[1, 2], inked[2, 7] = True, True
    assert np.argwhere(~margin_cells(inked)).tolist() == [
        [row, column] for row in (1, 2) for column in range(2, 8)
    ]
    claims = measure_claims([(one_hot([(1, 1), (1, 2), (1, 4), (2, 7), (3, 7)]), inked)])
    assert (claims.empty_first, claims.empty_between, claims.empty_eos) == (1, pytest.approx(1 / 3), 1)
    assert (claims.margin_first, claims.margin_between, claims.margin_eos) == (1, 0, 1)
    assert margin_cells(np.zeros((2, 3), np.bool_)).all(), "nothing but margin without ink"


def test_a_second_place_is_one_far_from_the_peak():
    attention = np.zeros((3, 4, 10))
    attention[:, 1, 1] = 0.6
    attention[0, 2, 2] = 0.4  # beside the peak
    attention[1, 1, 4] = 0.4  # away from it
    attention[2, 1, 3:8] = 0.08  # away, but thinly spread
    claims = measure_claims([(attention, np.ones((4, 10), np.bool_))])
    assert claims.one_place == pytest.approx(2 / 3)
    assert claims.around_peak == pytest.approx((1 + 0.6 + 0.6) / 3)


def test_intervals_come_from_drawing_readings_again():
    """Readings that are all alike leave no doubt; those that differ leave a range around the mean."""
    inked = np.ones((4, 10), np.bool_)
    sharp, even = one_hot([(0, 0), (0, 1), (0, 2)]), np.full((3, 4, 10), 1 / 40)
    assert measure_claims([(sharp, inked)]).intervals == {}
    alike = measure_claims([(sharp, inked)] * 8, rounds=50).intervals["mean_cells"]
    assert (alike.low, alike.value, alike.high) == (1, 1, 1)
    claims = measure_claims([(sharp, inked), (even, inked)] * 4, rounds=200)
    for name, interval in claims.intervals.items():
        assert interval.low <= interval.value <= interval.high, name
        assert getattr(claims, name) == pytest.approx(interval.value), name
    doubtful = claims.intervals["mean_cells"]
    assert 1 < doubtful.low < doubtful.value == 18.5 < doubtful.high < 36


def test_even_attention():
    claims = measure_claims([(np.full((5, 4, 10), 1 / 40), np.ones((4, 10), np.bool_))])
    assert claims.mean_cells == 36
    assert claims.entropy_bits[0] == pytest.approx(claims.max_entropy_bits)
    assert (claims.ase, claims.order_correlation) == (pytest.approx(0), 0)
    backwards = measure_claims(
        [(one_hot([(0, column) for column in range(9, -1, -1)]), np.ones((4, 10), np.bool_))]
    )
    assert (backwards.left, backwards.order_correlation) == (1, pytest.approx(-1))
