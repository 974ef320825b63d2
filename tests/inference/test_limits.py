"""Limits of a reading: steps that are left, repetition that is too much, confidence that is left over."""

import shutil

import numpy as np
import pytest

from i2l.inference.confidence import Calibration
from i2l.inference.decoding import BeamOptions, NumpyArrays, beam_search
from i2l.inference.grammar import FormulaGuard
from i2l.inference.model_folder import CALIBRATION
from i2l.inference.reader import Reader
from tests.inference.conftest import draw_formula
from tests.inference.test_guards import GUARD, VOCABULARY, Parrot

MEMORY = {"features": np.zeros((1, 1), np.float32)}


class CountingGuard(FormulaGuard):
    """A guard that writes down what it is told."""

    def __init__(self):
        super().__init__(VOCABULARY)
        self.told = []

    def allowed(self, states, *, steps_left):
        self.told.append(steps_left)
        return super().allowed(states, steps_left=steps_left)


@pytest.mark.parametrize("width", [1, 3])
def test_a_guard_is_told_how_many_steps_are_left(width):
    for max_steps in (5, 20):
        guard = CountingGuard()
        options = BeamOptions(width=width, max_steps=max_steps)
        ((best,),) = beam_search(Parrot(["{"]), MEMORY, arrays=NumpyArrays(), options=options, guard=guard)
        assert guard.told == list(range(max_steps, max_steps - len(guard.told), -1))
        assert best.finished
        assert len(best.token_ids) < max_steps


def times_until_it_loops(period):
    """How many tokens of a repeated piece a guard takes before it calls it a loop."""
    token_ids = VOCABULARY.encode(["x", "+", *["x"] * (period - 2)] if period > 1 else ["x"])
    state = GUARD.start()
    for count in range(1, 200):
        state = GUARD.advance(state, token_ids[(count - 1) % period])
        if state.loops:
            return count
    raise AssertionError("never")


def test_a_loop_is_four_times_the_same_and_48_tokens():
    assert times_until_it_loops(1) == 48
    assert times_until_it_loops(2) == 48
    assert times_until_it_loops(12) == 48
    assert times_until_it_loops(13) == 52
    assert times_until_it_loops(24) == 96


def test_alternatives_share_what_the_reading_leaves(checkpoint, tmp_path):
    """The map of confidence was fitted on best readings; an alternative cannot be right beside one."""
    folder = tmp_path / "checkpoint"
    shutil.copytree(checkpoint, folder)
    Calibration(given=(0.0, 1.0), right=(0.75, 0.75), error=0.1, num_samples=1000).save(folder / CALIBRATION)
    reading = Reader(folder, n_best=4).read(draw_formula("x ^ { a + b }"), scale=1)
    plain = Reader(checkpoint, n_best=4).read(draw_formula("x ^ { a + b }"), scale=1)
    assert reading.confidence == pytest.approx(0.75)
    assert len(reading.alternatives) >= 3
    left = 0.25 / (1 - plain.confidence)
    assert [other.confidence for other in reading.alternatives] == pytest.approx(
        [left * other.confidence for other in plain.alternatives]
    )
    assert sum(other.confidence for other in reading.alternatives) <= 0.25
