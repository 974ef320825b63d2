"""Preamble macros are written out, and tokens still point at the formula the user gave."""

import pytest

from i2l.formulas.macros import MacroError, Macros
from i2l.formulas.normalize import normalize_formula
from i2l.formulas.tokens import FormulaError

PREAMBLE = r"""
\newcommand{\be}{\beta} % \newcommand{\no}{x}
\renewcommand\norm[2][p]{\left\|#2x\right\|_{#1}}
\def\dd#1#2{\frac{d #1}{d #2}}
\DeclareMathOperator*{\argmax}{arg\,max}
\newcommand{\deep}{\be\be}
\newcommand{\forever}{\forever\forever}
"""
MACROS = Macros.parse(PREAMBLE)


@pytest.mark.parametrize(
    ("source", "canonical"),
    [
        (r"\be", r"\beta"),
        (r"\be x\deep", r"\beta x \beta \beta"),
        (r"\norm{\be}", r"\left\| \beta x \right\| _ { p }"),
        (r"\norm[q]y", r"\left\| y x \right\| _ { q }"),
        (r"\dd x\be", r"\frac { d x } { d \beta }"),
        (r"\argmax_x", r"\operatorname* { a r g \, m a x } _ { x }"),
        (r"\no", r"\no"),
    ],
)
def test_macros_are_written_out(source, canonical):
    assert normalize_formula(source, macros=MACROS).formula == canonical


def test_spans_are_those_of_the_original():
    source = r"a+\dd{u}{\be}"
    spans = {
        token.text: source[token.start : token.end]
        for token in normalize_formula(source, macros=MACROS).tokens
    }
    assert spans["u"] == "u"
    assert spans[r"\beta"] == r"\be"
    assert spans[r"\frac"] == r"\dd"


@pytest.mark.parametrize("source", [r"x\forever", r"x\dd{a}"])
def test_a_macro_that_cannot_be_written_out_is_named_in_its_place(source):
    with pytest.raises(FormulaError) as caught:
        normalize_formula(source, macros=MACROS)
    assert caught.value.position == 1


def test_an_error_behind_a_macro_points_at_the_original():
    with pytest.raises(FormulaError) as caught:
        normalize_formula(r"\be\be }", macros=MACROS)
    assert caught.value.position == 7


def test_a_cut_off_preamble_is_refused(tmp_path):
    with pytest.raises(MacroError, match="closing brace"):
        Macros.parse(r"\newcommand{\a}{b")
    with pytest.raises(MacroError, match="nowhere"):
        Macros.load(tmp_path / "nowhere")
