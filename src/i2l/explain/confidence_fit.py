"""Fits what a model's confidence means, from readings of several kinds of pictures, right and wrong ones.

Every kind has the same weight, however many readings it has. First a logistic model weighs the evidence; its
weights are at least 0, as all evidence speaks for a reading. Then the rising line that is nearest to what was
seen (scipy's isotonic regression, over groups of neighbours) maps its score to a share of right readings.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import isotonic_regression, minimize

from i2l.inference.calibration import (
    Calibration,
    CalibrationError,
    Kind,
    Scoring,
    expected_calibration_error,
)
from i2l.inference.evidence import Evidence

MIN_SAMPLES: Final = 50
GROUP_SIZE: Final = 20  # readings: fewer say little about a share
FOLDS: Final = 5
KIND_BIN: Final = 60  # readings in a bin, for the error of one kind
# `total` is a tamer `log_prob`; what is not finished is not right, whatever speaks for it.
WEIGHED: Final = tuple(name for name in Evidence._fields if name not in ("log_prob", "finished"))
_RIDGE: Final = 1e-3  # keeps weights finite where the evidence separates right from wrong

_Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Judgement:
    """One reading: what kind of picture it is of, what speaks for it, whether it is right."""

    kind: str
    evidence: Evidence
    right: bool


def fit_confidence(judgements: Sequence[Judgement]) -> Calibration:
    """Fit a calibration.

    The errors it carries are honest: each fifth of the readings is judged by the fit of the others.

    Raises:
        CalibrationError: if there are too few readings.
    """
    if len(judgements) < MIN_SAMPLES:
        raise CalibrationError(
            f"A calibration needs at least {MIN_SAMPLES} readings, and there are {len(judgements)}."
        )
    kinds = np.array([one.kind for one in judgements])
    table = np.array([[getattr(one.evidence, name) for name in WEIGHED] for one in judgements], np.float64)
    right = np.array([one.right for one in judgements], np.float64)
    names, places, counts = np.unique(kinds, return_inverse=True, return_counts=True)
    weights = (1.0 / counts)[places]
    folds = np.empty(len(right), np.int64)
    for place, count in enumerate(counts):
        folds[places == place] = np.arange(count) % FOLDS
    honest = np.empty(len(right))
    for fold in range(FOLDS):
        fitted, judged = folds != fold, folds == fold
        calibration = _fit(table[fitted], right[fitted], weights[fitted])
        honest[judged] = _confidences(calibration, table[judged])
    whole = _fit(table, right, weights)
    return Calibration(
        whole.given,
        whole.right,
        error=expected_calibration_error(honest, right),
        num_samples=len(right),
        scoring=whole.scoring,
        kinds=tuple(_kind(str(name), honest[kinds == name], right[kinds == name]) for name in names),
    )


def _kind(name: str, honest: _Floats, right: _Floats) -> Kind:
    bins = max(1, len(right) // KIND_BIN)
    return Kind(name, len(right), float(right.mean()), expected_calibration_error(honest, right, bins=bins))


def _fit(table: _Floats, right: _Floats, weights: _Floats) -> Calibration:
    scoring = _fit_scoring(table, right, weights)
    given, shares = _fit_line(_scores(scoring, table), right, weights)
    return Calibration(given, shares, error=0.0, num_samples=len(right), scoring=scoring)


def _fit_scoring(table: _Floats, right: _Floats, weights: _Floats) -> Scoring:
    """Find the weights of the logistic model, with the evidence brought to mean 0 and deviation 1."""
    weights = weights / weights.sum()
    means = weights @ table
    deviations = np.sqrt(weights @ (table - means) ** 2)
    scales = np.where(deviations > 1e-9, deviations, 1.0)
    standard = np.column_stack([(table - means) / scales, np.ones(len(table))])
    signs = 2 * right - 1

    def loss(values: _Floats) -> tuple[float, _Floats]:
        margins = signs * (standard @ values)
        slopes = -signs * np.exp(-np.logaddexp(0, margins)) * weights
        penalty = values * np.append(np.ones(len(scales)), 1e-3)
        return (
            float(weights @ np.logaddexp(0, -margins) + _RIDGE * values @ penalty / 2),
            standard.T @ slopes + _RIDGE * penalty,
        )

    bounds = [(0.0, None)] * len(scales) + [(None, None)]
    found = minimize(loss, np.zeros(len(bounds)), jac=True, method="L-BFGS-B", bounds=bounds)
    *values, bias = found.x.tolist()
    return Scoring(WEIGHED, tuple(means.tolist()), tuple(scales.tolist()), tuple(values), bias)


def _scores(scoring: Scoring, table: _Floats) -> _Floats:
    filled = dict.fromkeys(Evidence._fields, 0.0)
    return np.array(
        [scoring(Evidence(**filled | dict(zip(WEIGHED, row, strict=True)))) for row in table.tolist()]
    )


def _confidences(calibration: Calibration, table: _Floats) -> _Floats:
    assert calibration.scoring is not None
    return calibration(_scores(calibration.scoring, table))


def _fit_line(
    scores: _Floats, right: _Floats, weights: _Floats
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Give the points of the line: the middles of the steps that groups of neighbours are pooled to."""
    order = np.argsort(scores, kind="stable")
    groups = np.array_split(order, max(1, len(order) // GROUP_SIZE))
    sizes = np.array([weights[group].sum() for group in groups])
    middles = np.array([np.average(scores[group], weights=weights[group]) for group in groups])
    shares = np.array([np.average(right[group], weights=weights[group]) for group in groups])
    pooled = isotonic_regression(shares, weights=sizes)
    steps = list(zip(pooled.blocks[:-1], pooled.blocks[1:], strict=True))
    given = [float(np.average(middles[a:b], weights=sizes[a:b])) for a, b in steps]
    return tuple(given), tuple(float(pooled.x[a]) for a, _ in steps)
