"""Sweeps: what they mean on the command line, and curves of a reader that is good at one thing only."""

import pytest

from i2l.evaluation.compare import EvaluationOptions
from i2l.evaluation.judge import SweepError, parse_sweep, run_sweep
from i2l.rendering.styles import FONTS


def test_ranges_and_lists():
    scale = parse_sweep("scale=0.5:2:3")
    assert list(scale.styles) == ["0.5", "1", "2"]
    assert [style.dpi for style in scale.styles.values()] == [100, 200, 400]
    assert len(parse_sweep("scale=0.4:2.5").styles) == 9
    blur = parse_sweep("blur=0:3:4")
    assert [style.blur_px for style in blur.styles.values()] == [0, 1, 2, 3]
    assert [style.rotation_deg for style in parse_sweep("rotation=-1,0,1").styles.values()] == [-1, 0, 1]
    assert list(parse_sweep("font=all").styles) == list(FONTS)
    assert [style.font for style in parse_sweep("font=latin-modern").styles.values()] == ["latin-modern"]


@pytest.mark.parametrize(
    "text", ["scale", "scale=", "colour=1:2", "scale=a:b", "blur=1:2:x", "font=nosuchfont"]
)
def test_nonsense_is_refused(text):
    with pytest.raises(SweepError):
        parse_sweep(text)


@pytest.mark.tex
def test_curve_of_a_reader_that_knows_one_size():
    targets = ["x _ { 1 } + y", r"\frac { a } { b }", r"\nosuchcommand"]

    def read(images):
        large = images[0].shape[1] > 150
        return ["x"] * len(images) if large else targets[: len(images)]

    options = EvaluationOptions(rounds=10, jobs=1)
    curve = run_sweep(parse_sweep("scale=1,2"), targets, read, options=options)
    assert curve.name.startswith("scale")
    assert [point.label for point in curve.points] == ["1", "2"]
    assert [point.num_samples for point in curve.points] == [2, 2]  # the third cannot be drawn
    assert [point.figures["exact_match"].value for point in curve.points] == [1, 0]
    assert [point.figures["tolerant_match"].value for point in curve.points] == [1, 0]
