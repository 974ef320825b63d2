"""`i2l convert`, and a formula typeset as a file."""

import io
import sys
import time

import numpy as np
import pytest
from PIL import Image, ImageFilter
from typer.testing import CliRunner

from i2l.cli import app
from i2l.formats.convert import FormatError, formula_file, write_formula
from i2l.formats.translate import read_layout
from i2l.formats.typst import _fonts, to_typst

FORMULA = r"\sum_{n=1}^{\infty} \frac{1}{n^2} = \left( \frac{\pi}{\sqrt{6}} \right)^2 + \mathcal{L}"


def convert(text, *arguments):
    return CliRunner().invoke(app, ["convert", *map(str, arguments)], input=text)


def test_one_line_for_one_line():
    result = convert("\\frac{a}{b}\n{x\na \\tag{1}\n\\alpha\n")
    assert result.stdout == "frac(a, b)\n\n\nalpha\n"
    assert result.exit_code == 1
    first, second = result.stderr.splitlines()
    assert first.startswith("line 2: unmatched brace")
    assert second.startswith(r"line 3: Typst cannot say \tag")


def test_several_formats_and_files(tmp_path):
    result = convert("x^2\ny\n", "--format", "unicode,asciimath,docx", "--out", tmp_path)
    assert result.stdout == "unicode\tx²\nasciimath\tx^(2)\nunicode\ty\nasciimath\ty\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["000001.docx", "000002.docx"]
    assert convert("x\n", "--format", "word").exit_code == 2


def test_pictures_are_drawn_with_the_fonts_that_typst_brings(monkeypatch):
    monkeypatch.setattr("typst.Fonts", lambda **options: options)
    assert _fonts.__wrapped__() == {"include_system_fonts": False}


@pytest.mark.parametrize("names", ["png,svg", "svg,unicode"])
def test_pictures_are_files_beside_each_other(names, tmp_path):
    result = convert(FORMULA, "--format", names, "--out", tmp_path / "formula.png")
    assert (result.exit_code, result.stderr) == (0, "")
    wanted = {f"formula.{kind}" for kind in names.split(",") if kind != "unicode"}
    assert {path.name for path in tmp_path.iterdir()} == wanted


@pytest.mark.slow
def test_svg_is_the_same_picture_as_png(browser):
    """Chromium draws the outlines where Typst draws the page: at most two pixels apart."""
    dpi = 288
    picture = np.asarray(Image.open(io.BytesIO(formula_file(FORMULA, "png", dpi=dpi))).convert("L"))
    svg = formula_file(FORMULA, "svg").decode()
    assert "<text" not in svg, "outlines, so that no font is needed"
    page = browser.new_page(device_scale_factor=dpi / 96)
    page.set_content(f"<style>body{{margin:0}}</style>{svg}")
    drawn = Image.open(io.BytesIO(page.locator("svg").screenshot())).convert("L")
    page.close()
    same_size = drawn.resize(picture.shape[::-1])
    for one, other in ((same_size, Image.fromarray(picture)), (Image.fromarray(picture), same_size)):
        ink, near = np.asarray(one) < 128, np.asarray(other.filter(ImageFilter.MinFilter(5))) < 128
        assert ink.any()
        assert near[ink].mean() > 0.995


def test_a_bracket_is_as_high_as_tex_has_it():
    """In text for people a pair may grow by a hair; in a picture it grows only by `\\left`."""
    heights = [Image.open(io.BytesIO(formula_file(latex, "png"))).height for latex in ("(p)", "(p_q)")]
    row = read_layout("(p_{q})")
    assert to_typst(row) == "(p_q)"
    assert to_typst(row, drawn=True) == r"\( p_q \)"
    assert heights[0] <= heights[1] < heights[0] * 1.3


def test_what_cannot_be_drawn_is_said():
    for kind in ("png", "svg"):
        with pytest.raises(FormatError, match=rf"{kind.upper()} cannot say \\unheardof"):
            formula_file(r"\unheardof", kind)
    with pytest.raises(FormatError, match=r"PNG cannot say a formula of .* pixels"):
        formula_file("x+" * 9000, "png", dpi=600)


def test_without_typst_the_command_that_installs_it_is_said(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "typst", None)
    result = convert("x", "--format", "svg", "--out", tmp_path / "x.svg")
    assert result.exit_code == 1
    assert "pip install" in result.stderr
    assert "draw" in result.stderr


def test_hostile_brackets_take_no_time():
    """Ten thousand brackets in one another took half a minute, and more than Typst's parser goes down."""
    start = time.perf_counter()
    written = write_formula("(" * 4000 + "x" + ")" * 4000, "typst")
    assert written.startswith("(" * 16)
    assert formula_file("(" * 900 + "x" + ")" * 900, "svg")
    assert time.perf_counter() - start < 3


def test_a_formula_may_be_named_itself_or_its_file(tmp_path):
    assert convert("", r"\frac{a}{b}", r"\sqrt{x}").stdout == "frac(a, b)\nsqrt(x)\n"
    (tmp_path / "formulas").write_text("x\ny\n")
    assert convert("", tmp_path / "formulas", "z").stdout == "x\ny\nz\n"
    missing = convert("", tmp_path / "none.txt")
    assert missing.exit_code
    assert missing.stdout == ""


def test_text_goes_to_a_file_if_asked(tmp_path):
    result = convert("", r"\alpha", "x", "--format", "unicode", "-o", tmp_path / "out.txt")
    assert (result.exit_code, result.stdout) == (0, "")
    assert (tmp_path / "out.txt").read_text() == "α\nx\n"
