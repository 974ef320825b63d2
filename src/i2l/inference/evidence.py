"""What speaks for a reading: a few numbers, each of which is the higher the surer the reading should be.

The product of all tokens' probabilities alone says little. A long formula has a small one, however right it
is; and one sign that the model does not know is one low factor among many high ones. So the lowest factors
are looked at by themselves, and what a token shares with harmless others (a space before it, a brace around
it, another name of the same sign) counts as its own.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from i2l.formulas.vocabulary import Vocabulary
from i2l.inference.decoding import Hypothesis
from i2l.inference.looks import SILENT, look_of

MIN_LOG_PROB: Final = -7.0  # of a token: what is less is impossible, however little it is
MAX_LEAD: Final = 5.0
MAX_UNREAD: Final = 0.1


class Evidence(NamedTuple):
    """What is known about a reading beside its text."""

    log_prob: float  # that the model gives it, in all the ways to write it that the search found
    lowest: float  # log-probability of the least sure token
    second: float  # of the next one
    total: float  # the sum over all tokens, flattened: from -10 to -20 is not as far as from 0 to -10
    shortness: float  # fewer tokens, fewer mistakes
    lead: float  # over the best other reading, in log-probability; the most if none was found
    agreement: float  # share of the other scales it was read at that gave the same; 1 if at none
    whole: float  # less, the more ink no token looked at
    finished: float  # 0 if it was cut at the limit of tokens


class TokenLooks:
    """The tokens of a vocabulary as numbers: which draw nothing, and which draw the same."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._silent = np.array([token in SILENT for token in vocabulary.tokens])
        numbers: dict[str, int] = {}
        self._looks = np.array(
            [
                numbers.setdefault(token if token in SILENT else look_of(token), len(numbers))
                for token in vocabulary.tokens
            ]
        )

    def certainty(self, hypothesis: Hypothesis) -> NDArray[np.float64]:
        """Give the log-probability of each token, eos included, together with others that change nothing.

        In the place of a sign those are space, an opening brace, and other names of the sign; in the place of
        space or an opening brace also the sign that follows.
        """
        own = np.exp(hypothesis.token_log_probs.astype(np.float64))
        if hypothesis.likeliest is None or hypothesis.likeliest_log_probs is None or not len(own):
            return np.log(own)
        tokens = np.array([*hypothesis.token_ids, Vocabulary.eos_id])[: len(own)]
        looks, silent = self._looks[tokens], self._silent[tokens]
        following = looks.copy()
        for place in range(len(tokens) - 2, -1, -1):
            if silent[place]:
                following[place] = following[place + 1]
        others = hypothesis.likeliest
        other_looks = self._looks[others]
        same = (other_looks == looks[:, None]) | (other_looks == following[:, None])
        harmless = same | self._silent[others]
        shares = np.exp(hypothesis.likeliest_log_probs.astype(np.float64))
        own += (shares * (harmless & (others != tokens[:, None]))).sum(axis=1)
        certainty: NDArray[np.float64] = np.log(own.clip(np.exp(MIN_LOG_PROB), 1.0))
        return certainty


def gather_evidence(
    certainty: NDArray[np.float64],
    *,
    log_prob: float,
    others: Sequence[float],
    agreement: float,
    unread: float,
    finished: bool,
) -> Evidence:
    """Put together what speaks for a reading.

    Args:
        certainty: of each token.
        log_prob: of the reading.
        others: log-probabilities of other readings.
        agreement: share of the other scales that gave the same.
        unread: share of the ink that no token looked at.
        finished: whether the reading came to its end.
    """
    ordered = np.sort(certainty) if len(certainty) else np.zeros(1)
    lead = min([log_prob - other for other in others], default=MAX_LEAD)
    return Evidence(
        log_prob=log_prob,
        lowest=float(ordered[0]),
        second=float(ordered[min(1, len(ordered) - 1)]),
        total=-float(np.log1p(-ordered.sum())),
        shortness=-float(np.log(len(ordered))),
        lead=float(np.clip(lead, 0.0, MAX_LEAD)),
        agreement=agreement,
        whole=-min(unread, MAX_UNREAD),
        finished=float(finished),
    )
