"""How sure a reading is: what speaks for it, and what a model was told about that on validation data.

`Evidence` is a few numbers, each of which is the higher the surer the reading should be. The product of all
tokens' probabilities alone says little. A long formula has a small one, however right it is; and one sign
that the model does not know is one low factor among many high ones. So the lowest factors are looked at by
themselves, and what a token shares with harmless others (a space before it, a brace around it, another name
of the same sign) counts as its own.

`Calibration` maps evidence to a confidence. A logistic model, whose weights are never negative, sums the
evidence up in one score: what speaks for a reading cannot make it less sure. A rising line then maps the
score to the share of such readings that are right. `i2l.explain.model_fit` fits both. Files from before have
no weights: their score is the probability that the model gives a reading.
"""

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from i2l.errors import I2LError
from i2l.files import atomic_write
from i2l.formulas.commands import SILENT, look_of
from i2l.formulas.vocabulary import Vocabulary
from i2l.inference.boxes import UNREAD_LIMIT
from i2l.inference.decoding import Hypothesis

MIN_LOG_PROB: Final = -7.0  # of a token: what is less is impossible, however little it is
MAX_LEAD: Final = 5.0
MAX_COMPANY: Final = 12  # tokens
MAX_UNREAD: Final = 0.1


class Evidence(NamedTuple):
    """What is known about a reading beside its text."""

    log_prob: float  # that the model gives it, in all the ways to write it that the search found
    lowest: float  # log-probability of the least sure token
    second: float  # of the next one
    total: float  # the sum over all tokens, flattened: from -10 to -20 is not as far as from 0 to -10
    shortness: float  # fewer tokens, fewer mistakes
    company: float  # more tokens, up to a few: a sign alone has nothing beside it that shows its size
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
        """Return the log-probability of each token, eos included, with others that would change nothing.

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
        company=float(np.log(min(len(ordered), MAX_COMPANY))),
        lead=float(np.clip(lead, 0.0, MAX_LEAD)),
        agreement=agreement,
        whole=-min(unread, MAX_UNREAD),
        finished=float(finished),
    )


FORMAT = "i2l-calibration-2"
OLD_FORMAT = "i2l-calibration-1"  # of one kind of pictures, by the probability alone


class CalibrationError(I2LError):
    """Data or a file that no calibration can be made from."""


@dataclass(frozen=True)
class Scoring:
    """A logistic model: which evidence it weighs, how that is brought to one measure, and the weights."""

    names: tuple[str, ...]
    means: tuple[float, ...]
    scales: tuple[float, ...]
    weights: tuple[float, ...]
    bias: float

    def __post_init__(self) -> None:
        parts = (self.names, self.means, self.scales, self.weights)
        if len({len(part) for part in parts}) != 1:
            raise ValueError("evidence, means, scales and weights differ in number")
        unknown = sorted(set(self.names) - set(Evidence._fields))
        if unknown:
            raise ValueError(f"unknown evidence {', '.join(map(repr, unknown))}")

    def __call__(self, evidence: Evidence) -> float:
        """Return the score of a reading, between 0 and 1."""
        total = self.bias
        for name, mean, scale, weight in zip(self.names, self.means, self.scales, self.weights, strict=True):
            total += weight * (getattr(evidence, name) - mean) / scale
        return 1 / (1 + math.exp(-max(min(total, 500.0), -500.0)))


@dataclass(frozen=True)
class Kind:
    """What was seen of one kind of pictures."""

    name: str
    num_samples: int
    share_right: float
    error: float  # expected calibration error, measured on readings that were not fitted


@dataclass(frozen=True)
class Calibration:
    """A rising line from the origin through points: the score of readings, and the share that is right.

    The lowest point is the mean of a group: without the origin nothing would be less sure than such a mean,
    not even what was read in a picture of grain.
    """

    given: tuple[float, ...]
    right: tuple[float, ...]
    error: float  # expected calibration error of all kinds together, on readings that were not fitted
    num_samples: int
    box_share: float | None = None  # of a token's attention, for its box; None if that was not fitted
    scoring: Scoring | None = None  # None: the score is the probability that the model gives the reading
    kinds: tuple[Kind, ...] = ()

    def __call__(self, scores: ArrayLike) -> NDArray[np.float64]:
        """Map scores to the shares that are right."""
        return np.interp(np.asarray(scores, np.float64), (0.0, *self.given), (0.0, *self.right))

    def confidence(self, evidence: Evidence) -> float:
        """Return the probability that a reading is right.

        What was cut at the limit is not, nor what leaves out a part of the picture, however sure of the rest;
        a little of that the scoring weighs, as specks of a photograph are read by nobody.
        """
        if not evidence.finished or evidence.whole <= -(MAX_UNREAD if self.scoring else UNREAD_LIMIT):
            return 0.0
        return float(self(self.scoring(evidence) if self.scoring else math.exp(evidence.log_prob)))

    def save(self, path: Path) -> None:
        """Write the JSON file."""
        content = {
            "format": FORMAT,
            "scoring": asdict(self.scoring) if self.scoring else None,
            "given": self.given,
            "right": self.right,
            "expected_calibration_error": self.error,
            "num_samples": self.num_samples,
            "kinds": [asdict(kind) for kind in self.kinds],
            "box_share": self.box_share,
        }
        with atomic_write(path) as file:
            json.dump(content, file, indent=1)
            file.write("\n")

    @classmethod
    def load(cls, path: Path) -> "Calibration":
        """Read a file that `save` wrote, now or before there were weights.

        Raises:
            CalibrationError: if it is not such a file.
        """
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            if content["format"] not in (FORMAT, OLD_FORMAT):
                raise CalibrationError(f"{path} is of format {content['format']!r}, not {FORMAT!r}.")
            return cls(
                given=tuple(content["given"]),
                right=tuple(content["right"]),
                error=content["expected_calibration_error"],
                num_samples=content["num_samples"],
                box_share=content.get("box_share"),
                scoring=_scoring(content.get("scoring")),
                kinds=tuple(Kind(**kind) for kind in content.get("kinds", ())),
            )
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise CalibrationError(f"Cannot read the calibration {path}: {error}") from error


def _scoring(content: dict[str, Any] | None) -> Scoring | None:
    if content is None:
        return None
    lists = {name: tuple(content[name]) for name in ("names", "means", "scales", "weights")}
    return Scoring(**lists, bias=content["bias"])


def expected_calibration_error(probabilities: ArrayLike, correct: ArrayLike, *, bins: int = 15) -> float:
    """Return the mean distance between confidence and share of right readings, over bins of equal size."""
    given, right = np.asarray(probabilities, np.float64), np.asarray(correct, np.float64)
    order = np.argsort(given, kind="stable")
    parts = np.array_split(order, min(bins, len(order)))
    return float(sum(abs(given[part].sum() - right[part].sum()) for part in parts) / len(order))
