"""What a search in an image gave, before it becomes a reading."""

import math
from collections.abc import Sequence
from typing import NamedTuple

from i2l.formulas.pretty import readable_formula
from i2l.formulas.tokens import FormulaError
from i2l.inference.decoding import Hypothesis
from i2l.inference.page_ink import PageInk
from i2l.inference.reading import Alternative


class Candidate(NamedTuple):
    """A reading as a person would write it, the likeliest hypothesis that draws it, and what all have."""

    latex: str
    tokens: tuple[str, ...]
    hypothesis: Hypothesis
    log_prob: float
    unread: float
    picture: tuple[str, ...]  # as `picture_of` gives it


class Attempt(NamedTuple):
    """The ink of a form of an image, what was read there, and how long that took."""

    ink: PageInk
    found: list[Hypothesis]
    seconds: float
    elsewhere: tuple[Hypothesis, ...] = ()  # the best one of each other form that was read


def most_probable_first(found: Sequence[Hypothesis]) -> list[Hypothesis]:
    """Order what a search found."""
    return sorted(found, key=lambda one: (one.finished, one.log_prob), reverse=True)


def readable_tokens(tokens: Sequence[str]) -> str:
    """Give the LaTeX a person would write; without a guard tokens may be no formula, and stay as they are."""
    formula = " ".join(tokens)
    try:
        return readable_formula(formula)
    except FormulaError:
        return formula


def share_rest(confidence: float, best: Candidate, others: Sequence[Candidate]) -> tuple[Alternative, ...]:
    """Share what the confidence in a reading leaves as the model shares what its probability leaves.

    So all together are at most 1; and no other reading is surer than the one that is printed.
    """
    left = (1 - confidence) / max(-math.expm1(best.log_prob), 1e-9)
    return tuple(
        Alternative(other.latex, other.tokens, min(confidence, left * math.exp(other.log_prob)))
        for other in others
    )
