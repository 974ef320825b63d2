"""`i2l convert`, and a formula typeset as a file."""

import io
import re

import numpy as np
import pytest
from PIL import Image, ImageFilter
from typer.testing import CliRunner

from i2l.cli import app
from i2l.rendering.render import TypesetError, typeset_png, typeset_svg

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


@pytest.mark.tex
@pytest.mark.slow
def test_svg_is_the_same_picture_as_png(browser):
    """Chromium draws the outlines where pdfium draws the page: at most two pixels apart."""
    dpi = 288
    picture = np.asarray(Image.open(io.BytesIO(typeset_png(FORMULA, dpi=dpi))))
    svg = typeset_svg(FORMULA)
    page = browser.new_page(device_scale_factor=dpi / 96)
    page.set_content(f"<style>body{{margin:0}}</style>{svg}")
    drawn = Image.open(io.BytesIO(page.locator("svg").screenshot())).convert("L")
    page.close()
    width, height = (float(size) for size in re.findall(r'(?:width|height)="([\d.]+)pt"', svg))
    assert abs(width * dpi / 72 - picture.shape[1]) < 4
    assert abs(height * dpi / 72 - picture.shape[0]) < 4
    same_size = drawn.resize(picture.shape[::-1])
    for one, other in ((same_size, Image.fromarray(picture)), (Image.fromarray(picture), same_size)):
        ink, near = np.asarray(one) < 128, np.asarray(other.filter(ImageFilter.MinFilter(5))) < 128
        assert ink.any()
        assert near[ink].mean() > 0.995


@pytest.mark.tex
def test_what_tex_cannot_draw_is_said():
    for typeset in (typeset_png, typeset_svg):
        with pytest.raises(TypesetError, match="TeX cannot draw"):
            typeset(r"\unheardof")
