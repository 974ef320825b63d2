"""Short formulas cut out of long ones."""

import pytest
from hypothesis import given

from i2l.formulas.compose import common_parts
from i2l.formulas.normalize import normalize_formula
from tests.formulas.test_properties import canonical, formulas


def cut(source, max_tokens=8):
    return common_parts([normalize_formula(source).formula], max_tokens=max_tokens)


def test_sides_arguments_and_symbols_with_their_scripts():
    parts = cut(r"\frac{a+b}{x_1} = \sum_{n=1}^N \alpha_n , y")
    assert {"a + b", "x _ { 1 }", r"\alpha _ { n }", "n", "N", "y", "a"} <= set(parts)
    assert "n = 1" not in cut(r"\sum_{n=1}^N", max_tokens=2)
    assert "n = 1" in cut(r"\sum_{n=1}^N")


def test_the_most_frequent_first_and_rare_ones_not_at_all():
    sums = ["x + y", "x + z", "x - w"]
    assert common_parts(sums, max_tokens=1)[0] == "x"
    assert common_parts(sums, max_tokens=1, min_count=2) == ["x", "+"]


@pytest.mark.parametrize(
    ("source", "part"),
    [
        (r"\begin{array}{rl} a & b \\ c & d \end{array}", "r l"),  # columns
        (r"\operatorname{rank} A", "r a n k"),  # a word
        (r"{\cal L}_0", r"\cal L"),  # a switch outside of braces
        (r"\frac{a+b}{c}", "{ a + b }"),  # braces that show nothing
        (r"\left( x \right)", r"\left("),  # no formula
        (r"x \, y", r"\,"),  # nothing to see
        (r"\frac{x \,}{{} = 0}", r"x \,"),  # the same as x
        (r"\frac{x \,}{{} = 0}", "{ } = 0"),
    ],
)
def test_what_is_no_part(source, part):
    assert part not in cut(source, max_tokens=12)


def test_space_around_a_part_is_cut_off():
    assert {"x", "y = 0"} <= set(cut(r"\frac{x \,}{\quad y = 0}"))


def test_a_switch_keeps_its_braces():
    assert r"{ \cal L }" in cut(r"\frac{{\cal L}}{2}")


@given(formulas)
def test_every_part_is_a_formula_that_stays_as_it_is(source):
    formula = canonical(source)
    for part in common_parts([formula], max_tokens=12):
        assert normalize_formula(part).formula == part
        assert f" {part} " in f" {formula} "
