"""Brackets that grow with what they hold, for readings of handwriting."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from i2l.formulas.normalize import normalize_formula
from i2l.formulas.pretty import stretch_fences

FRACTION = r"\frac { a } { b }"
MATRIX = r"\begin{matrix} { a } & { b } \\ { c } & { d } \\ \end{matrix}"
STRETCHED = [
    (rf"( {FRACTION} ) ^ {{ 2 }}", rf"\left( {FRACTION} \right) ^ {{ 2 }}"),
    (rf"[ x + ( {FRACTION} ) ]", rf"\left[ x + \left( {FRACTION} \right) \right]"),
    (rf"\{{ ( x ) {FRACTION} \}}", rf"\left\{{ ( x ) {FRACTION} \right\}}"),
    (rf"[ 0 , {FRACTION} )", rf"\left[ 0 , {FRACTION} \right)"),
    (r"( x + y ) ^ { 2 }", r"( x + y ) ^ { 2 }"),  # nothing tall in it
    (rf"( {FRACTION}", rf"( {FRACTION}"),  # no partner
    (rf"\frac {{ ( a }} {{ b ) }} {FRACTION}", rf"\frac {{ ( a }} {{ b ) }} {FRACTION}"),  # in two groups
    (rf"\sqrt [ {FRACTION} ] {{ x }}", rf"\sqrt [ {FRACTION} ] {{ x }}"),  # no brackets: an argument
    (rf"| {FRACTION} |", rf"| {FRACTION} |"),
    (rf"| {MATRIX} |", rf"\left| {MATRIX} \right|"),
    (rf"\| {MATRIX} \| ^ {{ 2 }}", rf"\left\| {MATRIX} \right\| ^ {{ 2 }}"),
    (rf"| {MATRIX} + x |", rf"| {MATRIX} + x |"),  # not right after it
    (rf"| {MATRIX} \|", rf"| {MATRIX} \|"),  # no pair
    (rf"( {MATRIX} )", rf"\left( {MATRIX} \right)"),
    (rf"[ {MATRIX.replace('matrix', 'array')} ]", rf"\left[ {MATRIX.replace('matrix', 'array')} \right]"),
    (
        rf"\begin{{matrix}} ( a & {MATRIX} ) \end{{matrix}}",
        rf"\begin{{matrix}} ( a & {MATRIX} ) \end{{matrix}}",
    ),
    (rf"( a ) {FRACTION} ( b )", rf"( a ) {FRACTION} ( b )"),  # between, not inside
]


@pytest.mark.parametrize(("formula", "stretched"), STRETCHED)
def test_brackets_grow_with_what_they_hold(formula, stretched):
    assert " ".join(stretch_fences(formula.split())) == stretched
    assert stretch_fences(stretched.split()) == stretched.split()


def test_cells_keep_their_brackets_to_themselves():
    formula = (
        rf"\begin{{array}} {{ l l }} {{ ( {FRACTION} }} & {{ x ) }} \\ ( {FRACTION} & ) \\ \end{{array}}"
    )
    assert stretch_fences(formula.split()) == formula.split()


def test_the_brackets_around_a_degree_close_nothing_else():
    formula = rf"( {FRACTION} \sqrt [ {{ 3 }} ] {{ x }}"
    assert stretch_fences(formula.split()) == formula.split()
    closed = stretch_fences(f"{formula} )".split())
    assert (closed[0], closed[-1]) == (r"\left(", r"\right)")
    assert "]" in closed


parts = st.recursive(
    st.sampled_from(["x", "2", "+", "(", ")", "[", "]", r"\{", r"\}", "|"]),
    lambda inner: st.one_of(
        st.lists(inner, max_size=5).map(" ".join),
        st.tuples(inner, inner).map(lambda pair: rf"\frac {{ {pair[0]} }} {{ {pair[1]} }}"),
        inner.map(lambda body: rf"\sqrt [ {{ 3 }} ] {{ {body} }}"),
        inner.map(lambda body: f"x ^ {{ {body} }}"),
        inner.map(lambda body: f"( {body} )"),
    ),
    max_leaves=14,
)


@given(formula=parts)
@settings(max_examples=300, deadline=None)
def test_stretched_formulas_are_formulas_and_no_other_token_changes(formula):
    tokens = formula.split()
    stretched = stretch_fences(tokens)
    normalize_formula(" ".join(["x", *stretched]))
    assert [token.removeprefix(r"\left").removeprefix(r"\right") or token for token in stretched] == tokens
    assert sum(t.startswith(r"\left") for t in stretched) == sum(t.startswith(r"\right") for t in stretched)
