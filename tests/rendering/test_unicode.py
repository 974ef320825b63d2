"""Formulas in OpenType fonts, set by LuaLaTeX: what is drawn, what is refused, and that nothing acts."""

import numpy as np
import pytest

from i2l.dataset.shards import check_styles, styles_of_lines
from i2l.dataset.sources import UNICODE_STYLES
from i2l.errors import I2LError
from i2l.rendering import REFUSED, TEX_ERROR, sandbox, tex
from i2l.rendering.isolation import IsolationError
from i2l.rendering.render import render_formulas
from i2l.rendering.sandbox import missing_files, run_tex
from i2l.rendering.styles import (
    LUALATEX,
    UNICODE_FONT_FILES,
    UNICODE_FONTS,
    UNICODE_SEEDS_PER_BLOCK,
    Style,
    preamble,
    unicode_style,
    world_style,
)
from i2l.rendering.tex import TexError, compile_formulas

TERMES = Style(font="unicode-termes")


def test_a_style_is_the_world_style_in_another_font():
    for seed in range(0, 60_000, 977):
        style, world = unicode_style(seed), world_style(seed)
        assert style.font in UNICODE_FONTS
        assert style.engine == LUALATEX
        assert not style.bold
        assert (style.noise, style.margin_left_px, style.ink) == (
            world.noise,
            world.margin_left_px,
            world.ink,
        )
        assert abs(style.dpi * style.size_pt - world.dpi * world.size_pt) <= style.size_pt


def test_seeds_of_a_block_share_what_tex_does():
    styles = styles_of_lines(UNICODE_STYLES, seed=3, lines=range(UNICODE_SEEDS_PER_BLOCK))
    assert len({style.tex_part() for style in styles}) == 1
    blocks = {unicode_style(UNICODE_SEEDS_PER_BLOCK * block).font for block in range(400)}
    assert blocks == set(UNICODE_FONTS)


def test_the_preamble_names_the_files():
    text = preamble(Style(font="unicode-fira-words"))
    assert r"\setmathfont{FiraMath-Regular.otf}" in text
    assert r"\setmainfont{FiraSans}" in text
    with pytest.raises(I2LError, match="unicode-fira"):
        preamble(Style(font="unicode-comic"))


def test_lualatex_runs_nothing_that_is_not_trusted():
    with pytest.raises(IsolationError):
        run_tex("x", trusted=False, engine=LUALATEX)


@pytest.mark.tex
def test_all_files_are_there(monkeypatch):
    assert missing_files(UNICODE_FONT_FILES) == []
    assert missing_files(["no-such-font.otf", "article.cls"]) == ["no-such-font.otf"]
    check_styles(UNICODE_STYLES)
    monkeypatch.setattr(tex, "UNICODE_FONT_FILES", ("no-such-font.otf",))
    with pytest.raises(TexError, match=r"no-such-font.otf.*fonts-texgyre-math"):
        check_styles(UNICODE_STYLES)


@pytest.mark.slow
@pytest.mark.tex
def test_what_is_drawn_and_what_is_refused(monkeypatch, tmp_path):
    canary = tmp_path / "canary"
    formulas = [
        r"x \to \alpha \circ \frac { a } { b }",
        r"\mathscr { L }",  # these fonts draw it as the calligraphic letter
        r"\boldsymbol { x }",  # and this one plainly
        r"\def \x { 1 } \x",
        rf"\directlua {{ io.open('{canary}', 'w') }}",
        r"\begin{array} { c c } { a } & { \hat { b } } \\ \end{array}",
    ]
    runs = []
    monkeypatch.setattr(
        tex, "run_tex", lambda *given, **named: runs.append(named) or sandbox.run_tex(*given, **named)
    )
    found = render_formulas(formulas, style=TERMES, boxes=True)
    assert [result.reason for result in found] == [None, TEX_ERROR, TEX_ERROR, REFUSED, REFUSED, None]
    assert all(result.boxes is None for result in found)
    assert not canary.exists()
    assert all(named["trusted"] for named in runs)
    (plain,) = render_formulas(formulas[:1])
    assert not np.array_equal(plain.pixels, found[0].pixels)
    assert 0.7 < found[0].pixels.shape[1] / plain.pixels.shape[1] < 1.4


@pytest.mark.slow
@pytest.mark.tex
def test_the_same_bytes_every_time():
    first, second = (compile_formulas(["x ^ { 2 }", r"\sum _ { i } y"], style=TERMES) for _ in range(2))
    assert first.pdf == second.pdf
    assert len(first.pdf) > 1000
