"""Weights of evidence, and what confidence means, fitted on readings of several kinds."""

import numpy as np
import pytest

from i2l.explain.model_fit import WEIGHED_EVIDENCE, Judgement, fit_confidence
from i2l.inference.confidence import (
    MAX_COMPANY,
    CalibrationError,
    Evidence,
    expected_calibration_error,
)


def readings(count, *, seed=0, kind="print", doubt=1.0):
    """Readings whose least sure token says how often they are right; their whole probability says nothing."""
    random = np.random.default_rng(seed)
    found = []
    for lowest, length in zip(random.gamma(1.0, doubt, count), random.integers(5, 200, count), strict=True):
        evidence = Evidence(
            log_prob=float(-0.05 * length),
            lowest=float(-lowest),
            second=float(-lowest / 2),
            total=float(-np.log1p(0.05 * length)),
            shortness=float(-np.log(length)),
            company=float(np.log(min(length, MAX_COMPANY))),
            lead=float(random.uniform(0, 5)),
            agreement=1.0,
            whole=0.0,
            finished=1.0,
        )
        found.append(Judgement(kind, evidence, bool(random.random() < 1 / (1 + np.exp(3 * lowest - 3)))))
    return found


def confidences(calibration, judgements):
    return np.array([calibration.confidence(one.evidence) for one in judgements])


def test_of_the_readings_given_p_about_p_are_right():
    seen = [*readings(900), *readings(300, seed=1, kind="photo", doubt=2.0)]
    calibration = fit_confidence(seen)
    fresh = [*readings(2000, seed=2), *readings(2000, seed=3, kind="photo", doubt=2.0)]
    right = [one.right for one in fresh]
    given = confidences(calibration, fresh)
    before = expected_calibration_error([np.exp(one.evidence.log_prob) for one in fresh], right)
    assert before > 0.3
    assert expected_calibration_error(given, right) < 0.05
    assert calibration.error < 0.06  # of 1,200 readings in 15 bins .03 is noise
    assert ((given >= 0) & (given <= 1)).all()
    wrong = given[~np.array(right)]
    assert (wrong > 0.9).mean() < 0.1
    assert [(kind.name, kind.num_samples) for kind in calibration.kinds] == [("photo", 300), ("print", 900)]


def test_the_error_is_that_of_readings_that_were_not_fitted():
    """A fit finds a pattern in a hundred tosses of a coin, and other tosses do not have it."""
    tosses = np.random.default_rng(5).integers(2, size=100)
    seen = [
        Judgement(one.kind, one.evidence, bool(toss)) for one, toss in zip(readings(100), tosses, strict=True)
    ]
    calibration = fit_confidence(seen)
    fitted = expected_calibration_error(confidences(calibration, seen), [one.right for one in seen])
    assert calibration.error > 1.5 * fitted


def test_no_evidence_speaks_against_a_reading():
    calibration = fit_confidence(readings(300))
    weights = dict(zip(WEIGHED_EVIDENCE, calibration.scoring.weights, strict=True))
    assert min(weights.values()) >= 0
    assert weights["lowest"] + weights["second"] > 5 * weights["total"]
    assert weights["agreement"] == pytest.approx(0)  # it never varied
    assert (np.diff(calibration.given) > 0).all()
    assert (np.diff(calibration.right) > 0).all()


def test_kinds_count_the_same_however_many_readings_they_have():
    """Of the large kind all are right, of the small one none, and no evidence tells them apart."""
    evidence = readings(1)[0].evidence
    seen = [Judgement("large", evidence, True)] * 400 + [Judgement("small", evidence, False)] * 100
    assert fit_confidence(seen).confidence(evidence) == pytest.approx(0.5, abs=0.01)


@pytest.mark.parametrize("right", [True, False])
def test_always_right_and_never_right(right):
    seen = [Judgement(one.kind, one.evidence, right) for one in readings(100)]
    # scores of one group differ in their last digits, and the line rises from the origin
    assert confidences(fit_confidence(seen), seen) == pytest.approx(float(right), abs=1e-12)


def test_too_few_readings():
    with pytest.raises(CalibrationError, match="at least 50 readings, and there are 10"):
        fit_confidence(readings(10))
