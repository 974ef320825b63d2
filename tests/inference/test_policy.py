"""Which of several attempts at an image is kept."""

from types import SimpleNamespace

import pytest

from i2l.inference.policy import Attempt, SearchPolicy


def attempt(name, *, score, scale):
    found = [SimpleNamespace(score=score, log_prob=score, finished=True, name=name)]
    return Attempt(SimpleNamespace(image=SimpleNamespace(scale=scale)), found, seconds=1.0)


@pytest.mark.parametrize(
    ("scores", "whole", "kept"),
    [
        ((-0.1, -5.0), ("other",), "other"),  # what leaves ink out is sure of the rest
        ((-5.0, -0.1), ("first",), "first"),
        ((-0.1, -5.0), ("first", "other"), "first"),
        ((-5.0, -0.1), ("first", "other"), "other"),
        ((-5.0, -0.1), (), "other"),
        ((-1.0, -1.0), ("first", "other"), "other"),  # at the smaller scale
    ],
)
def test_at_several_scales_what_leaves_nothing_out_comes_first(scores, whole, kept):
    first, other = attempt("first", score=scores[0], scale=1.2), attempt("other", score=scores[1], scale=1.0)
    policy = object.__new__(SearchPolicy)
    policy._greedy = policy._find_ink = None
    policy._is_whole = lambda one: one.found[0].name in whole
    policy._search = lambda *_: [other]
    policy._find_ink = lambda image: image
    attempts = [first]
    policy._try_other_forms(attempts, [0], [["of the other", "of the first"]], None, {})
    (best,) = attempts
    assert best.found[0].name == kept
    assert [one.name for one in best.elsewhere] == [{"first": "other", "other": "first"}[kept]]
    assert best.seconds == 2.0
