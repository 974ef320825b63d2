"""Batches: one PDF, a page or a verdict for each formula, the same bytes every time."""

import re
import sys
from dataclasses import replace

import numpy as np
import pytest

from i2l.errors import I2LError, MissingDependencyError
from i2l.rendering import sandbox, styles, tex
from i2l.rendering.rasterize import _crop, rasterize_pages
from i2l.rendering.render import render_formulas
from i2l.rendering.sandbox import TexRunResult, run_tex
from i2l.rendering.styles import PAPER, Style
from i2l.rendering.tex import TexError, _read_outcome, compile_formulas, document, formula_lines
from tests.rendering.random_formulas import random_formula

pytestmark = pytest.mark.tex

BAD = [
    r"\nosuchcommand",
    "x_1_2",
    r"\left(",
    r"\begin{array}{c} x",
    r"\frac{",
    "}",
    r"\hspace{1xx}",
    r"a & b",
]


def test_every_formula_has_a_page_or_a_reason():
    formulas = ["x", BAD[0], r"\frac{a}{b}", r"\rule{9000pt}{1pt}", "y" * 30_000, "z"]
    batch = compile_formulas(formulas)
    assert [verdict.page for verdict in batch.formulas] == [0, None, 1, None, None, 2]
    reasons = [verdict.reason for verdict in batch.formulas]
    assert reasons == [None, "tex-error", None, "too-large", "too-large", None]
    assert batch.formulas[1].message == r"Undefined control sequence \nosuchcommand"


def test_errors_cost_no_neighbour_and_change_none():
    good = [random_formula(seed) for seed in range(3 * len(BAD))]
    mixed = [
        formula for number, bad in enumerate(BAD) for formula in (*good[3 * number : 3 * number + 3], bad)
    ]
    results = render_formulas(mixed)
    assert [result.reason for result in results[3::4]] == ["tex-error"] * len(BAD)
    assert all(result.message for result in results[3::4])
    together = [result for number, result in enumerate(results) if number % 4 != 3]
    for result, undisturbed in zip(together, render_formulas(good[::-1])[::-1], strict=True):
        assert np.array_equal(result.pixels, undisturbed.pixels)


@pytest.mark.parametrize("display", [True, False])
def test_more_errors_than_tex_bears_in_a_paragraph(monkeypatch, display):
    runs = []
    monkeypatch.setattr(
        tex, "run_tex", lambda *given, **named: runs.append(named) or sandbox.run_tex(*given, **named)
    )
    batch = compile_formulas([r"\nosuch", "x"] * 120, style=Style(display=display))
    assert [one.page is not None for one in batch.formulas] == [False, True] * 120
    assert len(runs) <= 4, "one with everything, one without what failed, and the questions before"


def test_a_page_is_the_same_alone_and_in_company():
    formulas = [random_formula(seed) for seed in range(3)]
    for formula, together in zip(formulas, render_formulas(formulas), strict=True):
        assert np.array_equal(render_formulas([formula])[0].pixels, together.pixels)


def test_the_same_bytes_every_time():
    formulas = ["x", r"\mathcal{A}_1", r"\def\y{y}\y"]
    assert compile_formulas(formulas).pdf == compile_formulas(formulas).pdf


def test_nothing_good_is_no_pdf():
    batch = compile_formulas([r"\nosuchcommand"])
    assert batch.pdf == b""
    assert compile_formulas([]).formulas == []


def test_a_display_is_squeezed_into_the_line_or_sticks_out():
    def width(formula, style=PAPER):
        return render_formulas([formula], style=style)[0].pixels.shape[1]

    term = r"+ x_1"
    fits = next(count for count in range(10, 40) if width("x" + term * count, Style(display=False)) > 1079)
    assert width("x" + term * fits) <= 1080  # 390 pt at 200 dpi
    assert width("x" + term * (2 * fits)) > 1500


def test_ink_beyond_the_box_is_kept():
    shifted, plain = render_formulas([r"\hspace{-2cm} y \hspace{2cm} \llap{x}", "y"])
    assert shifted.pixels.shape[1] > plain.pixels.shape[1] * 3


def test_what_draws_nothing_is_empty():
    (result,) = render_formulas([r"\phantom{x}"])
    assert (result.reason, result.pixels) == ("empty", None)


def test_a_font_without_the_letter_is_an_error():
    """TeX would leave the letter out and only say so in its log: the picture would lie."""
    (result,) = render_formulas([r"\mathscr{1}"])
    assert result.reason == "tex-error"
    assert "Missing character" in result.message


def test_many_alphabets_share_one_process():
    """Each math alphabet takes one of TeX's sixteen families for good."""
    alphabets = "mathrm mathit mathbf mathsf mathtt mathcal mathbb mathfrak mathscr bm boldsymbol"
    names = alphabets.split()
    formulas = [rf"\{first}{{\{second}{{A}}}}" for first in names for second in names]
    assert not [result for result in render_formulas(formulas) if result.reason]


def test_a_missing_font_package_says_so(monkeypatch):
    monkeypatch.setitem(styles.FONTS, "none", r"\usepackage{nosuchfontpackage}")
    with pytest.raises(TexError, match=r"needs the TeX file nosuchfontpackage\.sty"):
        compile_formulas(["x"], style=Style(font="none"))
    with pytest.raises(I2LError, match="choose one of: computer-modern"):
        compile_formulas(["x"], style=Style(font="comic"))


def test_missing_programs_say_what_to_install(monkeypatch):
    sandbox.tex_path.cache_clear()
    monkeypatch.setattr(sandbox.shutil, "which", lambda name: None)
    with pytest.raises(MissingDependencyError, match="apt-get install"):
        compile_formulas(["x"])
    sandbox.tex_path.cache_clear()


def events(*lines, nonce="n"):
    """What TeX may have said, with a page."""
    said = "\n".join(line.replace("N:", f"{nonce}:") for line in lines)
    return TexRunResult(said=said, pdf=b"%PDF", timed_out=False, killed=False)


def read(*lines, keys=(4, 7)):
    return _read_outcome(events(*lines), keys, "n")


WHOLE = ["N:begin 4", "N:end 4 0v-1", "N:begin 7", "N:end 7 0v-1"]


def test_a_run_is_clean_if_every_formula_left_tex_as_it_was():
    assert read(*WHOLE).clean
    changed = read("N:begin 4", "N:end 4 1v-1", *WHOLE[2:])
    assert changed.errors == {4: ("tex-error", "not a single formula")}
    assert changed.unreached == [7]  # what comes after it does not count
    assert not changed.clean


def test_an_error_between_two_formulas_is_blamed_on_the_first():
    """It draws after its mark, when TeX sends its page out."""
    between = read(*WHOLE[:2], "! Too much.", *WHOLE[2:4], "N:begin 9", "N:end 9 0v-1", keys=(4, 7, 9))
    assert {key: reason for key, (_, reason) in between.errors.items()} == {4: "Too much."}
    later = read(*WHOLE, "! Too much.", "N:begin 9", "N:end 9 0v-1", keys=(4, 7, 9))
    assert {key: reason for key, (_, reason) in later.errors.items()} == {7: "Too much."}


@pytest.mark.parametrize(
    "forged",
    [
        ["N:end 4 0v-1", "N:begin 9"],
        ["N:begin 4"],
        ["N:end 7 0v-1"],
        ["N:end 4 0v-1", "N:end 4 0v-1"],
        ["N:end 4 0v-1", "N:begin 7", "N:end 7 0v-1", "N:begin 8", "N:begin 9"],
        ["N:large 99"],
        ["N:begin 99999999999999999999999999"],
        ["N:end " + "9" * 5000 + " 0v-1"],
        ["N:end 4"],
        ["N:large 4 \x00"],
    ],
)
def test_forged_events_are_no_worse_than_a_verdict(forged):
    outcome = read("N:begin 4", *forged, *WHOLE[1:])
    assert outcome.errors.keys() <= {4, 7}
    assert set(outcome.unreached) <= {4, 7}


def test_events_without_the_nonce_of_the_run_are_not_heard():
    assert read("N:begin 4", "i2l:end 4 0v-1", "m:begin 9", *WHOLE[1:]).clean


def test_every_run_has_a_nonce_of_its_own(monkeypatch):
    formulas = ["x", r"\def\y{y}\y"]
    compile_formulas(formulas)  # TeX is asked once which of their names it knows
    seen = []
    monkeypatch.setattr(tex, "run_tex", lambda *a, **k: seen.append(a[0]) or run_tex(*a, **k))
    compile_formulas(formulas)
    nonces = {re.search(r"write16\{(\w+):#1", source)[1] for source in seen}
    assert len(nonces) == len(seen) == 3
    assert all(len(nonce) == 16 for nonce in nonces)


def test_a_build_survives_events_in_a_formula():
    forged = r"\immediate\write16{i2l:end 1 0v-1}\immediate\write16{i2l:begin 9}\itllog{begin 9}x"
    batch = compile_formulas(["a", forged, "b"])
    assert [verdict.page for verdict in batch.formulas] == [0, None, 1]


def test_formulas_that_are_too_much_together_come_to_an_end(monkeypatch):
    """Each makes a page, but no two of them do: nobody is to blame, and the work must end all the same."""

    def run(source, **options):
        result = run_tex(source, **options)
        return replace(result, pdf=b"") if source.count("itlbegin{") > 1 else result

    monkeypatch.setattr(tex, "run_tex", run)
    pages = [verdict.page for verdict in compile_formulas(["x", "y", "z"]).formulas]
    assert pages.count(None) == 2


def test_the_environment_is_empty(monkeypatch):
    monkeypatch.setenv("I2L_SECRET", "hunter2")
    run = run_tex(document(PAPER, [r"\typeout{\jobname}", formula_lines(0, "x")]), trusted=True)
    assert "i2l:end 0 0v-1" in run.said
    assert sandbox._environment(sandbox.Path("/nowhere")).keys() & {"I2L_SECRET", "USER", "TEXMFCNF"} == set()


@pytest.mark.parametrize("place", [(0, 3), (5, 3), (2, 0), (2, 7)], ids=["top", "bottom", "left", "right"])
def test_ink_that_touches_an_edge_may_go_on_beyond_it(place):
    matrix = (1.0, 0.0, 0.0, 1.0, 0.0, 0.0)
    pixels = np.full((6, 8), 255, np.uint8)
    pixels[2:4, 3:5] = 0
    assert _crop(pixels, matrix).pixels.shape == (2, 2)
    pixels[place] = 0
    assert _crop(pixels, matrix).reason == "too-large"


def test_pages_drawn_at_any_dpi():
    pdf = compile_formulas([r"\frac{x}{y}"]).pdf
    small, large = (next(rasterize_pages(pdf, [0], dpi=dpi)).pixels for dpi in (100, 400))
    assert abs(large.shape[0] - 4 * small.shape[0]) <= 4
    assert abs(large.shape[1] - 4 * small.shape[1]) <= 4
    assert small.min() < 100
    assert np.unique(large).size > 2  # antialiased


def test_a_missing_rasteriser_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "pypdfium2", None)
    with pytest.raises(MissingDependencyError, match="package 'pypdfium2'"):
        render_formulas(["x"])
