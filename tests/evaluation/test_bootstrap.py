"""Intervals and paired tests: against plain resampling, and with known answers."""

import numpy as np
import pytest

from i2l.evaluation.scores import (
    FIGURE_BY_KEY,
    available_figures,
    bootstrap_figures,
    paired_bootstrap,
    resampled_sums,
    text_columns,
)

EXACT = FIGURE_BY_KEY["exact_match"]


def columns_with(shares):
    exact = np.array(shares, dtype=np.float64)
    return {"exact": exact, "samples": np.ones(len(exact))}


def test_sums_are_those_of_drawn_rows():
    table = np.random.default_rng(0).normal(size=(50, 3))
    drawn = np.random.default_rng(9).integers(50, size=(7, 50))
    assert resampled_sums(table, rounds=7, seed=9) == pytest.approx(table[drawn].sum(axis=1))


def test_interval_of_a_share_is_the_binomial_one():
    generator = np.random.default_rng(1)
    interval = bootstrap_figures(columns_with(generator.random(2000) < 0.7), [EXACT])["exact_match"]
    deviation = np.sqrt(0.7 * 0.3 / 2000)
    assert interval.value == pytest.approx(0.7, abs=0.03)
    assert interval.high - interval.low == pytest.approx(2 * 1.96 * deviation, rel=0.1)
    assert interval.low < interval.value < interval.high


def test_interval_covers_the_truth_about_as_often_as_it_says():
    generator = np.random.default_rng(2)
    covered = 0
    for _ in range(200):
        interval = bootstrap_figures(columns_with(generator.random(300) < 0.6), [EXACT], rounds=300)
        covered += interval["exact_match"].low <= 0.6 <= interval["exact_match"].high
    assert 180 <= covered <= 199


def test_values_are_those_of_all_samples():
    targets = [["a", "b", "c", "d", "e"], ["a"], ["x", "y", "z", "w"]]
    columns = text_columns(targets, [["a", "b", "c", "d"], ["a", "b"], ["x", "y", "z", "w"]])
    intervals = bootstrap_figures(columns, available_figures(columns), rounds=20)
    for key, interval in intervals.items():
        sums = {name: np.asarray(column.sum()) for name, column in columns.items()}
        assert interval.value == pytest.approx(float(FIGURE_BY_KEY[key].compute(sums)), abs=1e-12)


def test_a_reader_does_not_differ_from_itself():
    columns = columns_with(np.random.default_rng(3).random(100) < 0.5)
    difference = paired_bootstrap(columns, columns, [EXACT])["exact_match"]
    assert difference.interval.value == difference.interval.low == difference.interval.high == 0
    assert difference.p_value == 1


def test_pairing_sees_what_two_intervals_cannot():
    generator = np.random.default_rng(4)
    first = generator.random(1000) < 0.5
    second = first.copy()
    second[np.flatnonzero(~first)[:15]] = True  # better on 15 samples, worse on none
    difference = paired_bootstrap(columns_with(first), columns_with(second), [EXACT])["exact_match"]
    assert difference.interval.value == pytest.approx(0.015)
    assert difference.p_value < 0.01
    assert difference.interval.low > 0


def test_p_values_of_equal_readers_are_evenly_spread():
    generator = np.random.default_rng(5)
    small = 0
    for _ in range(200):
        first, second = (columns_with(generator.random(200) < 0.5) for _ in range(2))
        small += paired_bootstrap(first, second, [EXACT], rounds=200)["exact_match"].p_value < 0.05
    assert 2 <= small <= 22
