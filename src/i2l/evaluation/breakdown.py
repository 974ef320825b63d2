"""Where a reader fails: scores by length, by construct and by token, and which tokens it takes for which.

The constructs of a formula are what one asks about when a score is low: fractions, scripts, matrices, words.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import Final

import numpy as np
import numpy.typing as npt
from rapidfuzz.distance import Levenshtein

from i2l.evaluation.scores import (
    Columns,
    Interval,
    available_figures,
    bootstrap_figures,
    quantiles,
    resampled_sums,
)
from i2l.formulas.commands import (
    BIG_OPERATORS,
    BINOMIALS,
    FONT_SWITCHES,
    FRACTIONS,
    LINES,
    MATH_FONTS,
    NARROW_ACCENTS,
    OPERATOR_LETTERS,
    ROOTS,
    SIDE_OPERATORS,
    TEXTS,
    WIDE_ACCENTS,
    names_of,
)

_NAMED_OPERATORS: Final = names_of(lambda command: command.kind == "operator-name")
_WORDS: Final = {r"\mathrm", *_NAMED_OPERATORS, *TEXTS}
_CONSTRUCTS: Final[dict[str, frozenset[str]]] = {
    "scripts": frozenset("_^"),
    "fractions": FRACTIONS | BINOMIALS,
    "roots": ROOTS,
    "big operators": (BIG_OPERATORS | SIDE_OPERATORS) - _NAMED_OPERATORS - OPERATOR_LETTERS.keys(),
    "accents": NARROW_ACCENTS | WIDE_ACCENTS | LINES,
    "fonts": MATH_FONTS | FONT_SWITCHES,
}
CONSTRUCTS: Final = (*_CONSTRUCTS, "fences", "matrices and arrays", "words", "none of these")


def find_constructs(tokens: Sequence[str]) -> list[str]:
    """The constructs that a formula has, by name, in the order of CONSTRUCTS."""
    present = set(tokens)
    found = [name for name, commands in _CONSTRUCTS.items() if present & commands]
    if any(token.startswith(r"\left") and not token[5:6].isalpha() for token in present):
        found.append("fences")
    if any(token.startswith(r"\begin{") for token in present):
        found.append("matrices and arrays")
    if present & _WORDS and _has_word(tokens):
        found.append("words")
    return found or ["none of these"]


def _has_word(tokens: Sequence[str]) -> bool:
    """Whether a roman argument has two letters in a row: `\\mathrm { i f }`, not `\\mathrm { d } x`."""
    return any(
        token in _WORDS
        and len(tokens) > index + 3
        and tokens[index + 1] == "{"
        and all(len(letter) == 1 and letter.isalpha() for letter in tokens[index + 2 : index + 4])
        for index, token in enumerate(tokens)
    )


Blocks = list[tuple[int, int, int, int]]  # differing spans: target from, to, prediction from, to
Tokens = Sequence[str]

_LENGTHS: Final = (20, 40, 60, 80, 100, 150)  # upper ends, in tokens of the target
_MIN_TOKEN_COUNT: Final = 10
_NUM_CONFUSIONS: Final = 100
_NUM_EXAMPLES: Final = 3


@dataclass(frozen=True)
class SubsetScores:
    """The headline scores of some of the samples."""

    label: str
    num_samples: int
    figures: dict[str, Interval]


@dataclass(frozen=True)
class TokenScores:
    """How often a token is read where it is, and is there where it is read."""

    token: str
    num_target: int
    num_predicted: int
    recall: Interval
    precision: Interval


@dataclass(frozen=True)
class Confusion:
    """A token that was read as another; an empty one stands for nothing at all."""

    target: str
    prediction: str
    count: int
    samples: list[str]  # names of some that have it


def align_tokens(target: Tokens, prediction: Tokens) -> Blocks:
    """The spans in which a prediction differs from its target, by a shortest edit script."""
    return [
        (code.src_start, code.src_end, code.dest_start, code.dest_end)
        for code in Levenshtein.opcodes(target, prediction)
        if code.tag != "equal"
    ]


def scores_by_length(columns: Columns, targets: Sequence[Tokens], *, rounds: int) -> list[SubsetScores]:
    """The scores of short formulas, longer ones, and so on."""
    groups = defaultdict(list)
    labels = _length_labels()
    for index, tokens in enumerate(targets):
        groups[labels[int(np.searchsorted(_LENGTHS, len(tokens)))]].append(index)
    return _scores_of(columns, groups, labels, rounds)


def _length_labels() -> list[str]:
    starts = [0, *(end + 1 for end in _LENGTHS)]
    spans = [f"{start} to {end}" for start, end in zip(starts, _LENGTHS, strict=False)]
    return [*spans, f"over {_LENGTHS[-1]}"]


def scores_by_construct(columns: Columns, targets: Sequence[Tokens], *, rounds: int) -> list[SubsetScores]:
    """The scores of formulas with fractions, with roots, and so on; a formula can be in several."""
    groups = defaultdict(list)
    for index, tokens in enumerate(targets):
        for construct in find_constructs(tokens):
            groups[construct].append(index)
    return _scores_of(columns, groups, CONSTRUCTS, rounds)


def _scores_of(
    columns: Columns, groups: Mapping[str, list[int]], labels: Sequence[str], rounds: int
) -> list[SubsetScores]:
    figures = [figure for figure in available_figures(columns) if figure.headline]
    return [
        SubsetScores(
            label,
            len(groups[label]),
            bootstrap_figures(
                {name: column[groups[label]] for name, column in columns.items()}, figures, rounds=rounds
            ),
        )
        for label in labels
        if label in groups
    ]


def scores_by_token(
    targets: Sequence[Tokens], predictions: Sequence[Tokens], blocks: Sequence[Blocks], *, rounds: int
) -> list[TokenScores]:
    """Recall and precision of every token that the targets have often enough, the most frequent first."""
    counts = Counter(token for tokens in targets for token in tokens)
    tokens = [token for token, count in counts.most_common() if count >= _MIN_TOKEN_COUNT]
    if not tokens:
        return []
    place = {token: index for index, token in enumerate(tokens)}
    # Three counts of every token for every sample: in the target, in the prediction, aligned.
    table = np.zeros((3, len(targets), len(tokens)), dtype=np.float64)
    for row, (target, prediction, differing) in enumerate(zip(targets, predictions, blocks, strict=True)):
        kept = [True] * len(target)
        for start, end, _, _ in differing:
            kept[start:end] = [False] * (end - start)
        for number, side in enumerate((target, prediction, compress(target, kept))):
            _count(side, place, table[number, row])
    totals = table.sum(axis=1)
    drawn = np.stack([resampled_sums(counted, rounds=rounds, seed=0) for counted in table])
    recall, precision = _ratio(drawn[2], drawn[0]), _ratio(drawn[2], drawn[1])
    values = _ratio(totals[2], totals[0]), _ratio(totals[2], totals[1])
    return [
        TokenScores(
            token,
            int(totals[0, index]),
            int(totals[1, index]),
            quantiles(float(values[0][index]), recall[:, index]),
            quantiles(float(values[1][index]), precision[:, index]),
        )
        for index, token in enumerate(tokens)
    ]


def _count(tokens: Iterable[str], place: Mapping[str, int], row: npt.NDArray[np.float64]) -> None:
    for token in tokens:
        if token in place:
            row[place[token]] += 1


def _ratio(
    numerator: npt.NDArray[np.float64], denominator: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    return np.divide(numerator, denominator, out=np.zeros_like(numerator), where=denominator > 0)


def find_confusions(
    names: Sequence[str],
    targets: Sequence[Tokens],
    predictions: Sequence[Tokens],
    blocks: Sequence[Blocks],
) -> list[Confusion]:
    """The most frequent pairs of a token and what was read instead of it."""
    counts: Counter[tuple[str, str]] = Counter()
    examples: dict[tuple[str, str], list[str]] = defaultdict(list)
    for name, target, prediction, differing in zip(names, targets, predictions, blocks, strict=True):
        for start, end, other_start, other_end in differing:
            for step in range(max(end - start, other_end - other_start)):
                pair = (
                    target[start + step] if start + step < end else "",
                    prediction[other_start + step] if other_start + step < other_end else "",
                )
                counts[pair] += 1
                if len(examples[pair]) < _NUM_EXAMPLES and name not in examples[pair]:
                    examples[pair].append(name)
    return [
        Confusion(*pair, count=count, samples=examples[pair])
        for pair, count in counts.most_common(_NUM_CONFUSIONS)
    ]
