"""What is in doubt is read at other scales too, and the readings vote."""

from itertools import permutations
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from i2l.explain.localization import box_iou
from i2l.inference import reader as reader_module
from i2l.inference.boxes import InkMatch
from i2l.inference.policy import Attempt
from i2l.inference.reader import Reader
from i2l.inference.reading import Candidate, Weighed, choose
from tests.inference.conftest import draw_formula


def weighed(text, *, log_prob=-1.0, left_over=0, unread=0.0, finished=True):
    """An attempt at which a text was read, as `choose` needs it."""
    hypothesis = SimpleNamespace(text=text, log_prob=log_prob, finished=finished)
    tokens = tuple(text)
    candidate = Candidate(text, tokens, hypothesis, log_prob, unread, tokens)
    return Weighed(Attempt(object(), [hypothesis], seconds=1.0), [candidate], InkMatch([], left_over))


EXAMPLE = Path(__file__).parents[2] / "examples" / "3-palatino-large.png"
FIRST, OTHER, THIRD = "abcdef", "abcdeg", "abcdeh"


def test_most_votes_win_and_the_first_reading_where_there_are_as_many():
    first, other, third = weighed(FIRST), weighed(OTHER), weighed(THIRD, log_prob=-0.1)
    for order in permutations([other, other, third, first]):
        best, settled = choose([first, *order])
        assert best.found[0].text == FIRST  # two of five each
        assert not settled
    best, settled = choose([first, other, third, other])
    assert best.found[0].text == OTHER
    assert not settled
    best, settled = choose([first, other, third, other, other])
    assert best.found[0].text == OTHER
    assert settled
    assert [one.text for one in best.elsewhere] == [FIRST, THIRD, OTHER, OTHER]
    assert best.seconds == 5.0
    best, settled = choose([first, first, first])
    assert best.ink is first.attempt.ink
    assert settled


def test_of_one_reading_the_first_attempt_is_kept_or_else_the_surest():
    first, sure, sures = weighed(FIRST, log_prob=-3.0), weighed(FIRST, log_prob=-0.5), weighed(OTHER)
    assert choose([first, sure])[0].ink is first.attempt.ink
    surest = weighed(OTHER, log_prob=-0.2)
    assert choose([first, sures, surest])[0].ink is surest.attempt.ink


def test_what_leaves_less_over_comes_before_all_votes():
    lost, whole = weighed(FIRST, left_over=3), weighed(OTHER, log_prob=-9.0)
    best, settled = choose([lost, lost, lost, lost, whole])
    assert best.found[0].text == OTHER
    assert not settled
    sign, other = weighed("a", left_over=3), weighed("b")
    assert choose([sign, sign, other])[0].found[0].text == "a", "of a sign alone any part may be over"


def test_nothing_and_what_never_ends_wins_no_vote():
    first = weighed(FIRST, left_over=2)
    empty, endless = weighed("", unread=1.0), weighed(OTHER, finished=False)
    for others in permutations([empty, empty, endless, endless]):
        assert choose([first, *others])[0].ink is first.attempt.ink


@pytest.fixture
def scales(monkeypatch):
    """The scales at which a reader reads once more."""
    found = []
    rescale = reader_module._rescale

    def noted(image, factor, limits):
        found.append(factor)
        return rescale(image, factor, limits)

    monkeypatch.setattr(reader_module, "_rescale", noted)
    return found


def test_only_doubt_is_looked_at_again_and_the_boxes_stay_in_the_picture(scales, monkeypatch):
    box = Reader("pinpoint")
    picture = EXAMPLE
    sure = box.read(picture)
    assert sure.left_over == 0
    assert not scales
    monkeypatch.setattr(reader_module, "_UNSURE_LOG_PROB", 1.0)
    again = box.read(picture)
    assert scales == [0.93, 1.07], "three of five are enough"
    assert again.tokens == sure.tokens
    assert again.evidence.agreement == 1
    scales.clear()
    box.with_options(beam_width=1).read(picture)
    assert not scales, "whoever wants one hypothesis gets it"
    monkeypatch.setattr(reader_module, "choose", lambda them: (them[-1].attempt, False))  # the last one wins
    other = box.with_options(n_best=5).read(picture)
    assert scales == [0.93, 1.07, 0.87, 1.15]
    assert other.tokens == sure.tokens
    assert other.prepared.scale == pytest.approx(1.15 * sure.prepared.scale, rel=0.02)
    assert len(other.alternatives) >= 2
    assert all(one.confidence <= other.confidence for one in other.alternatives)
    overlaps = []
    for ours, theirs in zip(sure.boxes, other.boxes, strict=True):
        assert (ours is None) == (theirs is None)
        if ours and theirs:
            overlaps.append(box_iou(ours, theirs))
    assert np.mean(overlaps) > 0.7


def test_a_model_for_one_scale_looks_once(checkpoint, scales, monkeypatch):
    monkeypatch.setattr(reader_module, "_UNSURE_LOG_PROB", 1.0)
    reader = Reader(checkpoint)
    assert reader.model.limits.one_scale
    assert reader.read(draw_formula("x ^ { 2 } = y"), scale=1).tokens
    assert not scales
