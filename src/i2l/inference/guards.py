"""Guards on decoding: only tokens that keep the formula well-formed, and an end to endless repetition.

A guard follows every hypothesis with a small state of its own and says which tokens may come next. Where a
hypothesis repeats itself, or few steps are left, only the shortest way to the end of the formula is open.
"""

from collections.abc import Collection, Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from i2l.formulas import commands
from i2l.formulas.vocabulary import Vocabulary
from i2l.inference.grammar import MAX_DEPTH, START, advance, is_right, may_end
from i2l.inference.grammar_frames import ENVIRONMENTS, LEFT, Items, State, closing_token

# The same up to 24 tokens, four times or more and over 48 tokens: 6 of 45,000 real formulas do that.
MAX_PERIOD: Final = 24
MIN_REPEATS: Final = 4
MIN_REPEATED_TOKENS: Final = 48
SPARE_STEPS: Final = 6  # one token may ask for this many more to close what it opens


# What a picture of one or two symbols cannot show: the size they are set in, an alphabet that looks like the
# plain one, a table around them. A model that has seen such labels would write them now and then.
UNSEEN: Final = (
    commands.SIZE_SWITCHES
    | commands.STYLE_SWITCHES.keys()
    | commands.PHANTOMS
    | {r"\mathit", r"\textit", r"\emph", r"\it", r"\em", r"\sl", r"\mit", r"\lefteqn", r"\smash"}
    | {rf"\begin{{{name}}}" for name in ENVIRONMENTS}
)
# Of one symbol: scripts, and a weight or upright form that nothing beside it shows.
UNSEEN_ALONE: Final = UNSEEN | {
    *("_", "^", "'", r"\mathrm", r"\rm", r"\mathtt", r"\tt", r"\mathsf", r"\sf", r"\mathbf", r"\bf"),
    *(r"\boldsymbol", r"\bm", r"\pmb", r"\boldmath", r"\textrm", r"\textbf", r"\text", r"\mbox", r"\hbox"),
}


class GuardState(NamedTuple):
    """What a guard knows about one hypothesis."""

    grammar: State
    recent: tuple[int, ...] = ()  # the last tokens, newest first
    repeated: tuple[int, ...] = (0,) * MAX_PERIOD  # for each period, how many of the last tokens repeat

    @property
    def loops(self) -> bool:
        """Whether the hypothesis has only been repeating itself for long."""
        possible = max(self.repeated) >= MIN_REPEATED_TOKENS - MAX_PERIOD
        return possible and any(
            run + period >= max(MIN_REPEATED_TOKENS, MIN_REPEATS * period)
            for period, run in enumerate(self.repeated, start=1)
        )


def guards_of_few(vocabulary: Vocabulary) -> dict[int, "FormulaGuard"]:
    """Give the guards of pictures with one symbol and with two, which can show less than others."""
    return {
        1: FormulaGuard(vocabulary, without=UNSEEN_ALONE),
        2: FormulaGuard(vocabulary, without=UNSEEN),
    }


class FormulaGuard:
    """Lets through what is a formula and comes to an end. Safe to share between threads."""

    def __init__(self, vocabulary: Vocabulary, *, without: Collection[str] = ()) -> None:
        """Take the vocabulary, and tokens that are let through nowhere."""
        self._tokens = vocabulary.tokens
        self._without = [index for index, token in enumerate(vocabulary.tokens) if token in without]
        self._ids = {token: index for index, token in enumerate(vocabulary.tokens)}
        rights = sorted((token for token in self._tokens if is_right(token)), key=lambda t: t != r"\right.")
        self._rights = rights
        self._masks: dict[object, NDArray[np.bool_]] = {}

    def start(self) -> GuardState:
        """Give the state before the first token."""
        return GuardState(START)

    def advance(self, state: GuardState, token_id: int) -> GuardState:
        """Give the state after a token that `allowed` let through."""
        grammar = advance(state.grammar, self._tokens[token_id])
        assert grammar is not None
        repeated = tuple(
            run + 1 if token_id == before else 0
            for run, before in zip(state.repeated, state.recent, strict=False)
        )
        return GuardState(
            grammar,
            (token_id, *state.recent[: MAX_PERIOD - 1]),
            repeated + (0,) * (MAX_PERIOD - len(repeated)),
        )

    def allowed(self, states: Sequence[GuardState], *, steps_left: int) -> NDArray[np.bool_]:
        """Tell for each state which tokens may come next: (N, K).

        Args:
            states: of N hypotheses.
            steps_left: tokens that may still be written, eos included.
        """
        return np.stack([self._mask(state, steps_left) for state in states])

    def _mask(self, state: GuardState, steps_left: int) -> NDArray[np.bool_]:
        grammar = state.grammar
        closing = state.loops or steps_left <= grammar.cost + SPARE_STEPS
        deep = grammar.depth >= MAX_DEPTH
        key = (type(grammar.frame), grammar.frame, closing, deep)  # equal tuples may be frames of two kinds
        mask = self._masks.get(key)
        if mask is None:
            mask = self._closing_mask(grammar) if closing else self._full_mask(grammar, deep=deep)
            self._masks[key] = mask
        return mask

    def _closing_mask(self, state: State) -> NDArray[np.bool_]:
        if not self._can_close(state, 1):  # an empty formula is filled with braces, which may be missing
            return self._full_mask(state, deep=True)
        token = closing_token(state, self._rights)
        mask = np.zeros(len(self._tokens), np.bool_)
        mask[self._ids[token] if token else Vocabulary.eos_id] = True
        return mask

    def _full_mask(self, state: State, *, deep: bool) -> NDArray[np.bool_]:
        mask = np.zeros(len(self._tokens), np.bool_)
        mask[Vocabulary.eos_id] = may_end(state)
        for token_id in range(Vocabulary.bos_id + 1, len(self._tokens)):
            after = advance(state, self._tokens[token_id])
            if after is not None and not (deep and after.depth > state.depth):
                mask[token_id] = self._can_close(after, state.depth)
        rest = mask.copy()
        rest[self._without] = False
        return rest if rest.any() else mask

    def _can_close(self, state: State, depth: int) -> bool:
        """Tell whether all above a depth can be closed with this vocabulary."""
        while state.depth > depth or not isinstance(state.frame, Items) or not state.frame.filled:
            if isinstance(state.frame, Items) and state.frame.owner == LEFT and not self._rights:
                return False
            closer = closing_token(state, self._rights)
            after = advance(state, closer) if closer in self._ids else None
            if after is None:
                return False
            state = after
        return True
