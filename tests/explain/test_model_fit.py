"""`i2l calibrate`: what a model's confidence means and how its boxes are found, stored with the model."""

import shutil

import pytest
from typer.testing import CliRunner

from i2l.cli import app
from i2l.explain import model_fit
from i2l.inference import page_ink
from i2l.inference.calibration import Calibration, CalibrationError
from i2l.inference.reader import Reader
from tests.inference.conftest import (  # noqa: F401 - fixtures
    FORMULAS,
    checkpoint,
    draw_formula,
    ink_of,
    one_thread,
    shared_folder,
)


class Split:
    """The formulas that the model knows, ten times over; every fifth has a target that draws otherwise."""

    def __init__(self, *, boxes):
        self.ids = [str(index) for index in range(80)]
        self.shown = [FORMULAS[index % 8] for index in range(80)]
        self.formulas = [
            "a + a" if index % 5 == 0 else self.written(formula) for index, formula in enumerate(self.shown)
        ]
        self._boxes = boxes
        self.left_out = ["wide:1", "wide:2"]

    def written(self, formula):
        return formula.replace("x", "{ x }", 1) if formula.startswith("x") else formula  # draws the same

    def __len__(self):
        return len(self.ids)

    def pixels(self, places, *, jobs=None):
        return [ink_of(draw_formula(self.shown[place])) for place in places]

    def boxes(self, places):
        if not self._boxes:
            return [None] * len(places)
        images = self.pixels(places)
        return [
            [(0, 0, *image.shape[::-1]), *[None] * (self.formulas[place].count(" "))]
            for place, image in zip(places, images, strict=True)
        ]


@pytest.fixture
def model(checkpoint, tmp_path):  # noqa: F811
    return shutil.copytree(checkpoint, tmp_path / "model")


def calibrate(model, monkeypatch, *arguments, boxes=True):
    monkeypatch.setattr(model_fit, "DatasetReader", lambda path: None)
    monkeypatch.setattr(model_fit, "open_split", lambda dataset, name, **options: Split(boxes=boxes))
    return CliRunner().invoke(app, ["calibrate", str(model), "--data", "data", *arguments])


@pytest.mark.tex
def test_confidence_is_the_share_of_readings_that_draw_the_target(model, monkeypatch):
    plain = Reader(model).read(draw_formula("a"), scale=1)
    result = calibrate(model, monkeypatch)
    assert "80 readings, 80.0% right" in result.stdout
    assert "2 (wide:1, wide:2)" in result.stderr
    stored = Calibration.load(model / "calibration.json")
    assert stored.num_samples == 80
    assert stored.box_share is not None
    shares = []
    boxes = page_ink.choose_symbols
    monkeypatch.setattr(
        page_ink,
        "choose_symbols",
        lambda *args, share, **rest: shares.append(share) or boxes(*args, share=share, **rest),
    )
    reading = Reader(model).read(draw_formula("a"), scale=1)
    assert plain.confidence > 0.95
    assert reading.confidence < 0.9
    assert shares == [stored.box_share]


def test_a_dataset_without_boxes(model, monkeypatch):
    monkeypatch.setattr(model_fit, "_same_pictures", lambda pairs: [True] * len(pairs))
    assert "boxes by" not in calibrate(model, monkeypatch, boxes=False).stdout
    assert Calibration.load(model / "calibration.json").box_share is None


def test_too_few_readings(model, monkeypatch):
    monkeypatch.setattr(model_fit, "_same_pictures", lambda pairs: [True] * len(pairs))
    assert isinstance(calibrate(model, monkeypatch, "--limit", "20").exception, CalibrationError)
    assert not (model / "calibration.json").exists()
