"""`i2l render` as a user meets it."""

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from i2l.cli import app
from i2l.errors import I2LError

pytestmark = pytest.mark.tex


def run(*arguments):
    return CliRunner().invoke(app, ["render", *map(str, arguments)])


def test_a_formula_becomes_a_file(tmp_path):
    done = run("x^2", "-o", tmp_path / "x.png")
    assert done.exit_code == 0, done.output
    assert done.stdout == ""
    assert done.stderr == f"Written: {tmp_path / 'x.png'}\n"
    image = Image.open(tmp_path / "x.png")
    assert image.mode == "L"
    assert np.asarray(image).min() < 50


def test_a_tex_error_is_told_in_tex_own_words(tmp_path):
    done = run(r"\frac{a}{\nosuchcommand}", "-o", tmp_path / "x.png")
    assert done.exit_code == 1
    assert done.stderr == "error: tex-error: Undefined control sequence \\nosuchcommand\n"
    assert not list(tmp_path.iterdir())


def test_a_file_of_formulas_becomes_a_folder(tmp_path):
    (tmp_path / "list.txt").write_text("x\n\\nosuchcommand\ny\n")
    done = run("--formulas", tmp_path / "list.txt", "-o", tmp_path / "out", "--dpi", 100)
    assert done.exit_code == 1
    assert "formula 2: tex-error" in done.stderr
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["000001.png", "000003.png"]


def test_boxes_are_drawn_in_colour(tmp_path):
    assert run(r"\frac{a}{b}", "--boxes", "-o", tmp_path / "b.png").exit_code == 0
    pixels = np.asarray(Image.open(tmp_path / "b.png"))
    assert pixels.ndim == 3
    assert (pixels[..., 0] != pixels[..., 2]).any()
    done = run(r"\def\y{x}\y", "--boxes", "-o", tmp_path / "w.png")
    assert done.exit_code == 0
    assert "no boxes" in done.stderr


def test_no_other_format_under_its_name(tmp_path):
    done = run("x", "-o", tmp_path / "x.jpg")
    assert isinstance(done.exception, I2LError)
    assert str(done.exception) == f"Cannot write {tmp_path / 'x.jpg'}: its name must end in .png."


def test_nothing_to_draw(tmp_path):
    done = run("-o", tmp_path / "x.png")
    assert isinstance(done.exception, I2LError)
    assert "give a formula" in str(done.exception)


def test_help_has_an_example():
    assert "i2l render 'x^2" in run("--help").output
