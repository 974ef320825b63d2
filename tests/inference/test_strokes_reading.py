"""Strokes are read: in Python, by `i2l read`, with boxes in their own units and a word about the model."""

import copy
import json
from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

from i2l import Reader
from i2l.cli import app
from i2l.images.prepare import ImageTooLargeError, NotAFormulaError
from i2l.inference import reading as reading_module
from i2l.inference.policy import SearchPolicy
from i2l.ink.strokes import Ink, InkError, write_inkml

LINE = [[0, 30], [10, 30], [20, 30], [30, 30]]
PLUS = [LINE, [[15, 12], [15, 24], [15, 36], [15, 48]]]


def moved(strokes, x, y=0, *, size=1.0):
    return [[[size * (px + x), size * (py + y)] for px, py in stroke] for stroke in strokes]


def letter_x(x):
    return moved([[[0, 12], [12, 30], [24, 48]], [[24, 12], [12, 30], [0, 48]]], x)


OPTIONS = ("--model", "pinpoint", "--beam-width", "1", "--threads", "1")
FORMULA = [*letter_x(0), *moved(PLUS, 50), *letter_x(110)]


@pytest.fixture(scope="module")
def reader():
    return Reader("pinpoint", threads=1, beam_width=1)


@pytest.fixture(scope="module")
def reading(reader):
    return reader.read_strokes(FORMULA)


def test_signs_like_print_are_read_and_boxes_are_in_units_of_the_strokes(reading):
    assert "+" in reading.tokens
    box = reading.boxes[reading.tokens.index("+")]
    middle = (box[0] + box[2]) / 2
    assert 50 <= middle <= 80, box
    assert 0 <= box[1] < 30 < box[3] <= 60


def test_the_scale_of_strokes_does_not_matter(reader, reading):
    for size in (0.01, 40.0):
        again = reader.read_strokes(moved(FORMULA, 0, size=size))
        assert again.tokens == reading.tokens
        place = reading.tokens.index("+")
        np.testing.assert_allclose(
            np.array(again.boxes[place]) / size, reading.boxes[place], rtol=0.05, atol=1
        )


def test_the_model_for_print_says_what_it_is(reading):
    assert "never taught handwriting" in reading.note
    assert reading.to_dict() | {"latex": reading.latex, "model": "pinpoint"} == reading.to_dict()


def test_doubt_of_a_model_for_print_refuses_no_strokes(reader, monkeypatch):
    """Whether it made sense of them was a matter of its weights: a word about the model says enough."""
    lost = NotAFormulaError("This does not look like a formula: what can be read in it makes no sense.")
    monkeypatch.setattr(reading_module, "find_nonsense", lambda _: lost)
    assert "never taught handwriting" in reader.read_strokes(FORMULA).note
    taught = copy.copy(reader)
    taught.model = replace(reader.model, handwriting=True)
    with pytest.raises(NotAFormulaError, match="makes no sense"):
        taught.read_strokes(FORMULA)


@pytest.mark.parametrize(
    ("strokes", "readings"),
    [
        ([LINE], {"-"}),
        ([[[0, 30], [50, 20], [100, 2]]], {"-"}),
        ([[[5, 5]]], {".", r"\cdot"}),
        ([[[5, 5]], [[5, 45]]], {":", ";"}),
        ([[[5, 5]], [[45, 5]], [[85, 5]]], {r"\ldots", r"\cdots"}),
    ],
)
def test_a_bar_and_dots_alone_are_what_they_look_like(reader, strokes, readings):
    """Inks to learn from hold no such formula: a minus by itself was read as roots in roots, a dot as i."""
    taught = copy.copy(reader)
    taught.model = replace(reader.model, handwriting=True)
    taught._policy = SearchPolicy(taught.model, reader.options)
    assert taught.read_strokes(strokes).latex in readings


def test_what_is_no_ink_is_refused(reader):
    with pytest.raises(InkError, match="no strokes"):
        reader.read_strokes([])
    with pytest.raises(InkError, match="Cannot read"):
        reader.read_strokes("missing.inkml")


def test_the_command_reads_inkml_and_json(reading, tmp_path):
    ink = Ink(tuple(np.array(stroke, dtype=float) for stroke in FORMULA))
    write_inkml(ink, tmp_path / "a.inkml")
    (tmp_path / "b.json").write_text(json.dumps({"strokes": FORMULA}))
    (tmp_path / "c.json").write_text("{}")
    names = [str(tmp_path / name) for name in ("a.inkml", "b.json", "c.json")]
    result = CliRunner().invoke(app, ["read", *names, "--no-names", *OPTIONS])
    assert result.exit_code == 1
    assert result.stdout.splitlines() == [reading.latex, reading.latex, ""]
    assert result.stderr.count("never taught handwriting") == 1
    assert "c.json: Strokes are a list" in result.stderr
    piped = CliRunner().invoke(app, ["read", *OPTIONS], input=(tmp_path / "a.inkml").read_bytes())
    assert piped.stdout.splitlines() == [reading.latex]


def test_strokes_are_drawn_at_the_scale_of_the_model(reader):
    """A model of 300 dpi gets larger strokes; places stay theirs."""
    ink = Ink(tuple(np.array(stroke, dtype=float) for stroke in FORMULA))
    usual = reader.prepare_strokes(ink)
    larger = Reader("pinpoint", threads=1)
    config = replace(reader.model.config, dpi=300.0)
    larger.model = replace(reader.model, config=config)
    image = larger.prepare_strokes(ink)
    assert np.abs(np.array(image.pixels.shape) - 1.5 * np.array(usual.pixels.shape)).max() < 5
    assert image.scale == pytest.approx(1.5 * usual.scale)
    for point in ((15.0, 30.0), (80.0, 40.0)):
        box = (*point, *point)
        np.testing.assert_allclose(np.array(image.from_file(box)) / 1.5, usual.from_file(box), atol=2)
    assert (image.pixels == 0).mean() == pytest.approx((usual.pixels == 0).mean(), abs=0.1)


def test_strokes_that_were_taken_for_too_small_are_drawn_smaller(reader):
    """Letters far from each other are small for the whole, which fits all the same; too many do not."""
    ink = Ink(tuple(np.array(s, dtype=float) for n in range(12) for s in letter_x(280 * n)))
    image = reader.prepare_strokes(ink)
    limits = reader.model.limits.canvas_shape
    assert all(side < most for side, most in zip(image.pixels.shape, limits, strict=True))
    assert image.pixels.shape[1] > 0.8 * limits[1]
    with pytest.raises(ImageTooLargeError):
        reader.prepare_strokes(
            Ink(tuple(np.array(s, dtype=float) for n in range(400) for s in letter_x(60 * n)))
        )
