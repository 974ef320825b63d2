r"""The old font switches in place of `\mathcal` and `\mathbf`."""

import numpy as np
import pytest
from hypothesis import given

from i2l.formulas.commands import SPACES, respell
from i2l.formulas.normalize import normalize_formula
from i2l.formulas.pretty import readable_formula
from i2l.rendering.render import render_formulas
from tests.formulas.test_properties import canonical, formulas


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (r"\mathcal { L } = 1", r"{ \cal L } = 1"),
        (r"\hat { \mathbf { x } } _ { \mathcal { M } }", r"\hat { { \bf x } } _ { { \cal M } }"),
        (r"\mathbf { A _ { \mathcal { B } } }", r"{ \bf A _ { { \cal B } } }"),
        (r"\mathrm { d } x \mathbb { R }", r"\mathrm { d } x \mathbb { R }"),
        (r"{ \cal L }", r"{ \cal L }"),
        ("", ""),
    ],
)
def test_respell(source, expected):
    assert respell(source) == expected


@pytest.mark.parametrize(
    "formula", [r"\mathcal { L } _ { 1 } + x", r"\mathbf { x y } ^ { 2 } \mathcal { A B }"]
)
def test_what_it_writes_is_canonical(formula):
    assert normalize_formula(respell(formula)).formula == respell(formula)


@pytest.mark.tex
def test_the_picture_is_the_same():
    formulas = [
        r"a \mathcal { L } _ { 1 } + \hat { \mathbf { x } }",
        r"\sum _ { \mathbf { k } } \mathcal { H } b",
    ]
    before = render_formulas(formulas)
    after = render_formulas([respell(formula) for formula in formulas])
    for one, other in zip(before, after, strict=True):
        np.testing.assert_array_equal(one.pixels, other.pixels)


READABLE = [
    (r"{ \bf E } \cdot d { \bf l }", r"\mathbf{E}\cdot d\mathbf{l}"),
    (r"{ \cal L } _ { 0 } + x _ { \bf k }", r"\mathcal{L}_{0} + x_{\mathbf{k}}"),
    (r"- { \frac { d } { d t } } f", r"-\frac{d}{dt}f"),
    (r"{ \frac { a } { b } } ^ { 2 }", r"{\frac{a}{b}}^{2}"),  # what the square belongs to
    (r"\hat { \bf x } \sqrt { { \cal A } }", r"\hat{\mathbf{x}}\sqrt{\mathcal{A}}"),
    (r"{ \bf A _ { { \cal B } } } ^ { \prime }", r"\mathbf{A_{\mathcal{B}}}'"),
    (r"\, \quad x \, y ~ \ ", r"x\,y"),
    (r"\rightarrow", r"\to"),
    (r"{ \bf } { x + y } { \left( x \right) }", r"{\bf}x + y{\left(x\right)}"),
    (r"\sum { x } ( { a _ { 1 } + b ) } \overline { { y } }", r"\sum x(a_{1} + b)\overline{y}"),
    (r"{ d s } ^ { 2 } \sb { \mu \nu }", r"{ds}^{2}\sb{\mu\nu}"),  # a base, an argument
    (
        r"\begin{array} { c } { a } \\ { [ b ] } \\ { c \hfill } \\ { d d d d } \\ \end{array}",
        r"\begin{array}{c} a \\ {[b]} \\ {c\hfill} \\ dddd \end{array}",
    ),
    (r"{ x \atop y } = b { z \atop w } c", r"{x\atop y} = b{z\atop w}c"),
    (r"\sqrt [ { a ] } ] { x } { a V } , b", r"\sqrt[{a]}]{x}{aV},b"),
    (
        r"\begin{array} { c } { a \hfill b } \\ { d d d d d } \\ \end{array}",
        r"\begin{array}{c} {a\hfill b} \\ ddddd \end{array}",
    ),
    (r"\sum { ( x ) } { = } { + a }", r"\sum{(x)}{ = }{+a}"),  # where braces keep a distance
    (
        r"{ \vec { F } } = m { \vec { a } } { \overrightarrow { A B } }",
        r"\vec{F} = m\vec{a}\overrightarrow{AB}",
    ),
    (r"a { \underbrace { b } } c { \overbrace { d } } e", r"a{\underbrace{b}}c{\overbrace{d}}e"),
    (r"{ | { x } | } ^ { 2 }", r"{|x|}^{2}"),  # a script as high as all of its base
]


@pytest.mark.parametrize(("formula", "expected"), READABLE)
def test_readable(formula, expected):
    assert readable_formula(formula) == expected


@pytest.mark.tex
def test_readable_draws_the_same():
    before = render_formulas([normalize_formula(formula).latex for formula, _ in READABLE])
    after = render_formulas([readable for _, readable in READABLE])
    for one, other in zip(before, after, strict=True):
        np.testing.assert_array_equal(one.pixels, other.pixels)


@given(formulas)
def test_readable_changes_nothing_but_fonts_braces_and_outer_space(source):
    formula = canonical(source)
    again = normalize_formula(readable_formula(formula)).formula
    assert drawn(again) == drawn(formula)


def drawn(formula):
    tokens = [token for token in respell(formula).split() if token not in "{}"]
    shown = [place for place, token in enumerate(tokens) if token not in SPACES]
    return tokens[shown[0] : shown[-1] + 1] if shown else []


@pytest.mark.parametrize("cell", ["* b", "[ b ]"])
def test_a_cell_is_no_part_of_the_line_break_before_it(cell):
    written = readable_formula(rf"\begin{{matrix}} {{ a }} \\ {{ {cell} }} \\ \end{{matrix}}")
    assert written == rf"\begin{{matrix}} a \\ {{{cell.replace(' ', '')}}} \end{{matrix}}"
