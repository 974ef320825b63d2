"""What ink shows of a formula, and what TeX is to see of it so that signs stand where hands put them."""

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from i2l.formulas.lexer import FormulaError
from i2l.formulas.normalize import normalize_formula
from i2l.ink.bank import formula_units, label_tokens, layout_formula, written_formula

FRACTION = r"\frac { a } { b }"
ROWS = r"{ a } & { b } \\ { c } & { d } \\"


@pytest.mark.parametrize(
    ("label", "layout"),
    [
        (rf"( {FRACTION} ) ^ 2", rf"\left( {FRACTION} \right) ^ {{ 2 }}"),
        (r"\left. x \right| _ 0", r"\left. x \right| _ { 0 }"),
        (r"a \quad b \, c", r"a \quad b \, c"),
        (r"\Big( x \Big)", "( x )"),
        (
            rf"\begin{{vmatrix}} {ROWS} \end{{vmatrix}}",
            rf"\left| \begin{{matrix}} {ROWS} \end{{matrix}} \right|",
        ),
        (
            r"\left\{ \begin{array} { l } a \\ b \end{array} \right.",
            r"\left\{ \begin{array} { l } { a } \\ { b } \\ \end{array} \right.",
        ),
        (r"\overline { x } \vec { A B }", r"\overline { x } \vec { A B }"),
    ],
)
def test_tex_sees_tall_brackets_and_spaces(label, layout):
    assert layout_formula(label) == layout


SPACES = (r"\,", r"\quad")
signs = st.sampled_from(["x", "2", "+", "=", r"\alpha", *SPACES, r"\cdots", r"\sin", "'", r"\mathrm { d }"])
formulas = st.recursive(
    signs,
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=4).map(" ".join),
        st.tuples(inner, inner).map(lambda pair: rf"\frac {{ {pair[0]} }} {{ {pair[1]} }}"),
        inner.map(lambda body: rf"\left( {body} \right)"),
        inner.map(lambda body: rf"\Big[ {body} \Big]"),
        inner.map(lambda body: rf"\left. {body} \right|"),
        inner.map(lambda body: f"{{ x }} ^ {{ {body} }} _ {{ 1 }}"),
        inner.map(lambda body: rf"\overrightarrow {{ {body} }}"),
        inner.map(lambda body: rf"\left| \begin{{array}} {{ l r }} {body} & 1 \\ 2 \end{{array}} \right|"),
        inner.map(lambda body: rf"\left\{{ \begin{{array}} {{ l }} {body} \\ 2 \end{{array}} \right."),
    ),
    max_leaves=8,
)


@given(formula=formulas)
@settings(max_examples=200, deadline=None)
def test_label_and_layout_draw_the_same_signs_in_the_same_order(formula):
    assume(not set(formula.split()) <= set(SPACES))  # ink shows no spaces: the test below is about these
    written = written_formula(formula)
    layout = normalize_formula(layout_formula(formula))
    labels = [unit.label for unit in formula_units(written.tokens)]
    assert [unit.label for unit in formula_units(layout.tokens)] == labels
    assert written_formula(written.formula).formula == written.formula


@pytest.mark.parametrize("label", [*SPACES, r"\, \quad", "$ \\, $"])
def test_spaces_alone_are_no_ink(label):
    with pytest.raises(FormulaError, match="empty"):
        written_formula(label)


def test_the_first_cell_of_a_table_has_no_idle_braces_either():
    for name in ("matrix", "cases", "aligned"):
        formula = rf"\begin{{{name}}} {{ {{ a }} b }} & {{ {{ c }} }} \\ \end{{{name}}}"
        assert written_formula(formula).formula == rf"\begin{{{name}}} {{ a b }} & {{ c }} \\ \end{{{name}}}"


def test_the_field_does_not_tell_dots_apart_but_labels_do():
    assert written_formula(r"1 \cdots n \ldots m").formula == r"1 \cdots n \ldots m"
    assert label_tokens([r"1", r"\cdots", r"n", r"\ldots", r"m"]) == ["1", r"\ldots", "n", r"\ldots", "m"]
