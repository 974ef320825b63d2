"""What the recipe `world` needs, what messages say to install and what `make test` installs are one list."""

import re
from pathlib import Path

import pytest

from i2l.dataset.shards import check_styles
from i2l.dataset.sources import WORLD_STYLES
from i2l.rendering import sandbox, tex
from i2l.rendering.render import render_formulas
from i2l.rendering.styles import FONTS, Style

ROOT = Path(__file__).parents[2]


def installed_packages():
    text = (ROOT / "debian-packages.txt").read_text(encoding="utf-8")
    return set(re.sub(r"#.*", "", text).split())


@pytest.mark.parametrize("module", [sandbox, tex])
def test_packages_that_messages_name_are_installed_for_the_tests(module):
    named = set(re.findall(r"texlive-[a-z-]+|lmodern", Path(module.__file__).read_text(encoding="utf-8")))
    assert named
    assert named <= installed_packages()


def test_packages_that_the_pages_name_are_installed_for_the_tests():
    for page in (ROOT / "docs").glob("*.md"):
        assert set(re.findall(r"\btexlive-[a-z-]+", page.read_text(encoding="utf-8"))) <= installed_packages()


@pytest.mark.tex
@pytest.mark.slow
def test_every_font_set_of_the_world_is_there():
    check_styles(WORLD_STYLES)


@pytest.mark.tex
@pytest.mark.slow
def test_words_of_every_font_set_are_outlines():
    """A font of bitmaps that nobody has ends pdfTeX, and with it all formulas of the same run."""
    formulas = [
        r"\mathsf { a } \mathtt { b } x ^ { \mathsf { i n } }",
        r"{ \tt x } \textsf { ab } \texttt { ab }",
    ]
    for font in FONTS:
        drawn = render_formulas(formulas, style=Style(font=font, size_pt=10, dpi=100))
        assert [(font, result.reason, result.message) for result in drawn if result.reason] == []
