r"""The old font switches in place of `\mathcal` and `\mathbf`."""

import numpy as np
import pytest

from i2l.formulas.normalize import normalize_formula
from i2l.formulas.spelling import respell
from i2l.images.render import render_formulas


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
