from dataclasses import replace

import numpy as np
import pytest

from i2l.inference.calibration import (
    Calibration,
    CalibrationError,
    expected_calibration_error,
    fit_calibration,
)


def overconfident(count, seed=0):
    """Readings given p are right with probability p squared."""
    random = np.random.default_rng(seed)
    given = random.beta(4, 1, count)
    return given, random.random(count) < given**2


def test_of_the_readings_given_p_about_p_are_right():
    given, right = overconfident(4000)
    before = expected_calibration_error(given, right)
    calibration = fit_calibration(given, right)
    fresh, fresh_right = overconfident(4000, seed=1)
    after = expected_calibration_error(calibration(fresh), fresh_right)
    assert before > 0.1
    assert after < 0.05  # 0.025 on average, of which most is the noise of 15 bins
    assert calibration.error == pytest.approx(after, abs=0.02)
    np.testing.assert_allclose(calibration([0.5, 0.8, 0.95]), [0.25, 0.64, 0.9], atol=0.06)


def test_the_order_of_readings_is_kept():
    calibration = fit_calibration(*overconfident(300))
    assert (np.diff(calibration(np.linspace(0, 1, 101))) >= 0).all()


def test_always_right_and_never_right():
    given = np.linspace(0, 1, 100)
    assert fit_calibration(given, np.ones(100))(0.3) == 1
    assert fit_calibration(given, np.zeros(100))(0.3) == 0


def test_error_of_known_cases():
    assert expected_calibration_error([0.5] * 10, [1, 0] * 5, bins=1) == 0
    assert expected_calibration_error([1.0] * 10, [0] * 10) == 1
    assert expected_calibration_error([0.9] * 10, [1] * 10, bins=1) == pytest.approx(0.1)


def test_saved_and_loaded(tmp_path):
    calibration = fit_calibration(*overconfident(200))
    calibration.save(tmp_path / "calibration.json")
    assert Calibration.load(tmp_path / "calibration.json") == calibration
    with_boxes = replace(calibration, box_share=0.6)
    with_boxes.save(tmp_path / "calibration.json")
    assert Calibration.load(tmp_path / "calibration.json") == with_boxes


def test_what_cannot_be_fitted_or_loaded(tmp_path):
    with pytest.raises(CalibrationError, match="at least 50"):
        fit_calibration([0.5] * 10, [1] * 10)
    with pytest.raises(CalibrationError, match="between 0 and 1"):
        fit_calibration([1.5] * 100, [1] * 100)
    path = tmp_path / "calibration.json"
    for content in ("", "[]", '{"format": "other"}', '{"format": "i2l-calibration-1"}'):
        path.write_text(content)
        with pytest.raises(CalibrationError):
            Calibration.load(path)
