"""What else might stand in the place of a token: only what leaves a formula, and another picture."""

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from i2l.formulas.commands import SWITCHES
from i2l.formulas.lexer import FormulaError
from i2l.formulas.normalize import normalize_formula
from i2l.formulas.spelling import SILENT, look_of
from i2l.formulas.vocabulary import Vocabulary
from i2l.inference.decoding import Hypothesis
from i2l.inference.grammar import MAX_DEPTH, START, State, advance, may_end

TokenAlternatives = tuple[tuple[str, float], ...]

OTHERS: Final = 3  # tokens that might stand in the place of another
# Of those. Below it lies what label smoothing spreads over all tokens, and each costs a look at the formula.
MIN_PROBABILITY: Final = 0.005
_NOT_ALONE: Final = SILENT | {"}"}  # space and braces: in their place something would come in, or go


def token_alternatives(hypothesis: Hypothesis, vocabulary: Vocabulary) -> tuple[TokenAlternatives, ...]:
    """Give for each token the likeliest others that could stand in its place, each with its probability."""
    tokens = vocabulary.decode(hypothesis.token_ids)
    found: list[list[tuple[str, float]]] = [[] for _ in tokens]
    states: list[State] = []  # before each token, as far as they were needed
    for place, other, probability in _candidates(hypothesis, tokens, vocabulary):
        _follow(states, tokens[:place])
        if len(states) <= place:
            break  # without a guard what was read may be no formula
        if _is_formula(states[place], [other, *tokens[place + 1 :]]) and _is_another_picture(
            tokens, place, other
        ):
            found[place].append((other, probability))
    return tuple(map(tuple, found))


def is_formula(tokens: Sequence[str]) -> bool:
    """Tell whether the guard would let tokens through, from the first to the end."""
    return _is_formula(START, tokens)


def _candidates(
    hypothesis: Hypothesis, tokens: Sequence[str], vocabulary: Vocabulary
) -> Iterator[tuple[int, str, float]]:
    """Give places, other tokens there that draw something else, and how probable these are."""
    assert hypothesis.likeliest is not None
    assert hypothesis.likeliest_log_probs is not None
    probabilities = np.exp(hypothesis.likeliest_log_probs[: len(tokens)])
    places, ranks = np.nonzero(probabilities >= MIN_PROBABILITY)
    for place, rank in zip(places.tolist(), ranks.tolist(), strict=True):
        token, other_id = tokens[place], int(hypothesis.likeliest[place, rank])
        other = vocabulary.tokens[other_id]
        if other_id == Vocabulary.eos_id or token in _NOT_ALONE or other in _NOT_ALONE:
            continue
        # of font and style a switch is another choice, of a sign it is not
        if look_of(other) != look_of(token) and (other in SWITCHES) == (token in SWITCHES):
            yield place, other, float(probabilities[place, rank])


def _follow(states: list[State], tokens: Sequence[str]) -> None:
    """Go on with the states before tokens up to the one behind these, or to where they are no formula."""
    if not states:
        states.append(START)
    for token in tokens[len(states) - 1 :]:
        state = advance(states[-1], token)
        if state is None:
            return
        states.append(state)


def _is_formula(state: State, tokens: Sequence[str]) -> bool:
    for token in tokens:
        after = advance(state, token)
        if after is None or (state.depth >= MAX_DEPTH and after.depth > state.depth):
            return False
        state = after
    return may_end(state)


def _is_another_picture(tokens: Sequence[str], place: int, other: str) -> bool:
    """Tell whether the normaliser takes a formula with another token, and writes it otherwise than before."""
    try:
        changed = normalize_formula(" ".join([*tokens[:place], other, *tokens[place + 1 :]])).tokens
    except FormulaError:
        return False
    return [look for token in changed if (look := look_of(token.text))] != [
        look for token in tokens if (look := look_of(token))
    ]
