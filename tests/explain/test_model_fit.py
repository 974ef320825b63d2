"""`i2l calibrate`: what a model's confidence means and how its boxes are found, stored with the model."""

import shutil
from types import SimpleNamespace

import numpy as np
import pytest
from typer.testing import CliRunner

from i2l.cli import app
from i2l.explain import model_fit
from i2l.explain.localization import ShareFit
from i2l.inference import boxes
from i2l.inference.confidence import Calibration, CalibrationError, Kind
from i2l.inference.reader import Reader
from i2l.rendering.styles import Style
from tests.inference.conftest import (  # noqa: F401 - fixtures
    FORMULAS,
    checkpoint,
    draw_formula,
    ink_of,
    shared_folder,
)

EMPTY = 2  # pictures with nothing in them


class Split:
    """The formulas that the model knows, ten times over; every fifth has a target that draws otherwise."""

    def __init__(self, *, boxes):
        self.ids = [str(index) for index in range(80)]
        self.shown = [FORMULAS[index % 8] for index in range(80)]
        self.formulas = [
            "a + a" if index % 5 == 0 else self.written(formula) for index, formula in enumerate(self.shown)
        ]
        self.styles = ["picture"] * 80
        self._boxes = boxes

    def written(self, formula):
        return formula.replace("x", "{ x }", 1) if formula.startswith("x") else formula  # draws the same

    def __len__(self):
        return len(self.ids)

    def pixels(self, places, *, jobs=None):
        shown = [ink_of(draw_formula(self.shown[place])) for place in places]
        return [
            np.full((5, 5), 255, np.uint8) if place < EMPTY else one
            for place, one in zip(places, shown, strict=True)
        ]

    def boxes(self, places):
        if not self._boxes:
            return [None] * len(places)
        images = self.pixels(places)
        return [
            [(0, 0, *image.shape[::-1]), *[None] * (self.formulas[place].count(" "))]
            for place, image in zip(places, images, strict=True)
        ]


class Dataset:
    """A dataset of one split."""

    def __init__(self, *, boxes):
        self._boxes = boxes

    def split(self, name):
        assert name == "val"
        return Split(boxes=self._boxes)


@pytest.fixture
def model(checkpoint, tmp_path):  # noqa: F811
    return shutil.copytree(checkpoint, tmp_path / "model")


def test_a_point_of_the_line_stands_on_twenty_readings():
    """Fewer say little about a share; more would hide where the line bends."""
    scores = np.linspace(-3, 3, 100)
    right = (np.arange(100) % 20 < 4 + 3 * (np.arange(100) // 20)).astype(float)  # 4, 7, 10, 13 and 16 of 20
    _, shares = model_fit._fit_line(scores, right, np.ones(100))
    assert shares == pytest.approx((0.2, 0.35, 0.5, 0.65, 0.8))


def calibrate(model, monkeypatch, *arguments, boxes=True):
    monkeypatch.setattr(model_fit, "DatasetReader", lambda path: Dataset(boxes=boxes))
    return CliRunner().invoke(app, ["calibrate", str(model), "--data", "print", *arguments])


@pytest.mark.tex
def test_confidence_is_the_share_of_readings_that_draw_the_target(model, monkeypatch):
    plain = Reader(model).read(draw_formula("a"), scale=1)
    result = calibrate(model, monkeypatch, "--data", "photo")
    assert "print: 78 readings" in result.stdout
    assert "156 readings" in result.stdout
    assert "4 (0, 1, 0, ...)" in result.stderr
    stored = Calibration.load(model / "calibration.json")
    assert [(kind.name, kind.num_samples) for kind in stored.kinds] == [("photo", 78), ("print", 78)]
    assert stored.box_share is not None
    shares = []
    find = boxes.match_tokens
    monkeypatch.setattr(
        boxes,
        "match_tokens",
        lambda *args, share, **rest: shares.append(share) or find(*args, share=share, **rest),
    )
    reading = Reader(model).read(draw_formula("a"), scale=1)
    assert plain.confidence > 0.95
    assert reading.confidence < 0.9
    assert shares == [stored.box_share]


def test_a_dataset_without_boxes(model, monkeypatch):
    monkeypatch.setattr(model_fit, "_same_pictures", lambda pairs, styles: [True] * len(pairs))
    assert "boxes by" not in calibrate(model, monkeypatch, boxes=False).stdout
    assert Calibration.load(model / "calibration.json").box_share is None


def test_too_few_readings(model, monkeypatch):
    monkeypatch.setattr(model_fit, "_same_pictures", lambda pairs, styles: [True] * len(pairs))
    assert isinstance(calibrate(model, monkeypatch, "--limit", "20").exception, CalibrationError)
    assert not (model / "calibration.json").exists()


def test_what_was_fitted_is_said(tmp_path, monkeypatch):
    kind = Kind("print", 60, 0.9, 0.021)
    calibration = Calibration((0.0, 1.0), (0.0, 1.0), 0.03, 80, kinds=(kind,))
    fit = model_fit.ModelFit(calibration, 0.85, 0.07, ShareFit(0.6, 0.8, {}), ["a", "b", "c", "d"])
    monkeypatch.setattr(model_fit, "fit_model", lambda *_, **__: fit)
    reader = SimpleNamespace(model=SimpleNamespace(path=tmp_path))
    monkeypatch.setattr("i2l.inference.reader.Reader", lambda _: reader)
    monkeypatch.setattr("i2l.inference.model_folder.update_model_card", lambda _: None)
    done = CliRunner().invoke(app, ["calibrate", "model", "--data", "x"])
    assert done.exit_code == 0, done.output
    assert "cannot read them: 4 (a, b, c, ...)" in done.output
    assert "print: 60 readings, 90.0% right; expected calibration error 0.021" in done.output
    assert "80 readings, 85.0% right; expected calibration error 0.030 (was 0.070)" in done.output
    assert "boxes hold 60% of attention, IoU 0.80" in done.output
    fit.left_out.pop()
    assert "3 (a, b, c)" in CliRunner().invoke(app, ["calibrate", "model", "--data", "x"]).output
    fit.left_out.clear()
    assert "Left out" not in CliRunner().invoke(app, ["calibrate", "model", "--data", "x"]).output


@pytest.mark.tex
def test_what_a_font_draws_alike_is_right_in_that_font():
    epsilons = (r"\epsilon", r"\varepsilon")
    plain, times = Style(), Style(font="times")
    assert model_fit._same_pictures([epsilons, epsilons], [plain, times]) == [False, True]
    assert model_fit._same_pictures([epsilons, ("x", "y"), ("x", "x")], [None, times, None]) == [
        False,
        False,
        True,
    ]
    assert model_fit._plain_style("picture") is None
    assert model_fit._plain_style('{"font": "times", "blur_px": 0.4, "dpi": 150}') == Style(
        font="times", dpi=150
    )
