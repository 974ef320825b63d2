"""How far a score would move with other samples: bootstrap intervals, and the paired test of two systems.

Resampling is done on sums: a thousand draws of N samples are a thousand rows of weights, and one matrix
product gives the sums of all counts for all of them.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from i2l.evaluation.figures import Figure, Interval

Array = npt.NDArray[np.float64]

LEVEL: Final = 0.95
ROUNDS: Final = 1000
_BLOCK: Final = 100  # rounds at a time: 5,000 samples make 4 MB of weights


@dataclass(frozen=True)
class Difference:
    """Second system minus first, on the same samples."""

    first: float
    second: float
    interval: Interval
    p_value: float  # of a difference this large if the systems were equally good


def bootstrap_figures(
    columns: Mapping[str, Array], figures: Sequence[Figure], *, rounds: int = ROUNDS, seed: int = 0
) -> dict[str, Interval]:
    """The value and interval of each score."""
    names = sorted({name for figure in figures for name in figure.columns})
    drawn = resampled_sums(_table(columns, names), rounds=rounds, seed=seed)
    total = _sums(columns, names)
    return {
        figure.key: quantiles(
            float(figure.compute(total)), figure.compute(dict(zip(names, drawn.T, strict=True)))
        )
        for figure in figures
    }


def paired_bootstrap(
    first: Mapping[str, Array],
    second: Mapping[str, Array],
    figures: Sequence[Figure],
    *,
    rounds: int = ROUNDS,
    seed: int = 0,
) -> dict[str, Difference]:
    """Compare two systems on the same samples, in the same order (Koehn 2004).

    The p-value is two-sided: how often the difference of a resampling lies as far from the mean of all
    resamplings as the observed one lies from zero, as sacrebleu counts it.
    """
    names = sorted({name for figure in figures for name in figure.columns})
    table = np.concatenate([_table(first, names), _table(second, names)], axis=1)
    drawn = resampled_sums(table, rounds=rounds, seed=seed)
    first_drawn = dict(zip(names, drawn[:, : len(names)].T, strict=True))
    second_drawn = dict(zip(names, drawn[:, len(names) :].T, strict=True))
    results = {}
    for figure in figures:
        values = [float(figure.compute(_sums(columns, names))) for columns in (first, second)]
        differences = figure.compute(second_drawn) - figure.compute(first_drawn)
        observed = values[1] - values[0]
        as_far = np.abs(differences - differences.mean()) >= abs(observed)
        results[figure.key] = Difference(
            first=values[0],
            second=values[1],
            interval=quantiles(observed, differences),
            p_value=float((as_far.sum() + 1) / (rounds + 1)),
        )
    return results


def resampled_sums(table: Array, *, rounds: int, seed: int) -> Array:
    """Sums over ``rounds`` draws of N rows of ``table`` (N, C), with replacement: (rounds, C)."""
    blocks = [weights @ table for weights in _weights(len(table), rounds, np.random.default_rng(seed))]
    sums: Array = np.concatenate(blocks)
    return sums


def _weights(num_samples: int, rounds: int, generator: np.random.Generator) -> Iterator[Array]:
    for start in range(0, rounds, _BLOCK):
        size = min(_BLOCK, rounds - start)
        drawn = generator.integers(num_samples, size=(size, num_samples))
        weights = np.zeros((size, num_samples))
        for row in range(size):
            weights[row] = np.bincount(drawn[row], minlength=num_samples)
        yield weights


def _table(columns: Mapping[str, Array], names: Sequence[str]) -> Array:
    return np.stack([columns[name] for name in names], axis=1)


def _sums(columns: Mapping[str, Array], names: Sequence[str]) -> dict[str, Array]:
    return {name: np.asarray(columns[name].sum()) for name in names}


def quantiles(value: float, drawn: Array) -> Interval:
    """The interval of a score of ``value`` with its values ``drawn`` in resamplings."""
    low, high = np.quantile(drawn, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Interval(value, float(low), float(high))
