"""What confidence means: files of it, old and new, and what evidence may do to it."""

import json
from dataclasses import replace

import numpy as np
import pytest

from i2l.inference.confidence import (
    MAX_UNREAD,
    OLD_FORMAT,
    Calibration,
    CalibrationError,
    Evidence,
    Kind,
    Scoring,
    expected_calibration_error,
)

SURE = Evidence(
    log_prob=-0.3,
    lowest=-0.05,
    second=-0.04,
    total=-0.2,
    shortness=-2.0,
    company=2.0,
    lead=5.0,
    agreement=1.0,
    whole=0.0,
    finished=1.0,
)
SCORING = Scoring(("lowest", "lead"), (-0.5, 2.0), (0.5, 2.0), (1.5, 0.5), bias=0.3)
NEW = Calibration(
    (0.1, 0.5, 0.9), (0.05, 0.5, 0.99), error=0.02, num_samples=300, kinds=(Kind("print", 300, 0.9, 0.01),)
)


def test_error_of_known_cases():
    assert expected_calibration_error([0.5] * 10, [1, 0] * 5, bins=1) == 0
    assert expected_calibration_error([1.0] * 10, [0] * 10) == 1
    assert expected_calibration_error([0.9] * 10, [1] * 10, bins=1) == pytest.approx(0.1)


@pytest.mark.parametrize("scoring", [None, SCORING])
@pytest.mark.parametrize("box_share", [None, 0.6])
def test_saved_and_loaded(tmp_path, scoring, box_share):
    calibration = replace(NEW, scoring=scoring, box_share=box_share)
    calibration.save(tmp_path / "calibration.json")
    assert Calibration.load(tmp_path / "calibration.json") == calibration


def test_a_file_from_before_maps_the_probability(tmp_path):
    path = tmp_path / "calibration.json"
    old = {"format": OLD_FORMAT, "given": [0, 1], "right": [0.5, 1], "num_samples": 100, "box_share": 0.9}
    path.write_text(json.dumps(old | {"expected_calibration_error": 0.03}))
    calibration = Calibration.load(path)
    assert calibration.scoring is None
    assert calibration.confidence(SURE) == pytest.approx(0.5 + np.exp(-0.3) / 2)
    assert calibration.confidence(SURE._replace(whole=-0.02)) == 0


def test_one_token_in_doubt_makes_a_reading_doubtful():
    calibration = replace(NEW, scoring=SCORING)
    confidences = [calibration.confidence(SURE._replace(lowest=lowest)) for lowest in np.linspace(0, -7, 20)]
    assert confidences == sorted(confidences, reverse=True)
    assert confidences[0] > 0.8
    assert confidences[-1] < 0.1


def test_the_line_comes_from_the_origin():
    """With a lowest group of which a fifth was right, nonsense was called a fifth sure."""
    good = replace(NEW, given=(0.2, 0.9), right=(0.21, 0.99))
    np.testing.assert_allclose(good([0.0, 0.002, 0.1, 0.2, 1.0]), [0.0, 0.0021, 0.105, 0.21, 0.99])
    hopeless = SURE._replace(lowest=-7.0, lead=0.0)
    assert replace(good, scoring=SCORING).confidence(hopeless) < 0.001


def test_what_is_cut_or_leaves_ink_out_is_not_sure():
    calibration = replace(NEW, scoring=SCORING)
    assert calibration.confidence(SURE._replace(finished=0.0)) == 0
    assert calibration.confidence(SURE._replace(whole=-MAX_UNREAD)) == 0
    assert calibration.confidence(SURE._replace(whole=-0.03)) > 0.8


def test_what_cannot_be_loaded(tmp_path):
    path = tmp_path / "calibration.json"
    replace(NEW, scoring=SCORING).save(path)
    good = json.loads(path.read_text())
    unknown = good | {"scoring": good["scoring"] | {"names": ["lowest", "weather"]}}
    uneven = good | {"scoring": good["scoring"] | {"means": [0.0]}}
    for content in (
        *("", "[]", '{"format": "other"}', '{"format": "i2l-calibration-1"}'),
        *(json.dumps(unknown), json.dumps(uneven)),
    ):
        path.write_text(content)
        with pytest.raises(CalibrationError):
            Calibration.load(path)
