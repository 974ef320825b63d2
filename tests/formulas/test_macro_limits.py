"""Where writing out macros stops, and what it must not glue together."""

import pytest

from i2l.formulas.expansion import Macros
from i2l.formulas.lexer import FormulaError

MACROS = Macros.parse(r"\newcommand{\be}{b} \newcommand{\half}[1]{#1\alpha} \newcommand{\grow}{x\grow}")


def test_two_thousand_macros_are_written_out_and_no_more():
    assert MACROS.expand(r"\be " * 2000).source.count("b") == 2000
    with pytest.raises(FormulaError, match="macro never ends"):
        MACROS.expand(r"\be " * 2001)


def test_a_macro_that_calls_itself_stops_before_it_is_long():
    with pytest.raises(FormulaError) as caught:
        MACROS.expand(r"y\grow")
    assert caught.value.position == 1


def test_macros_may_stand_for_so_much_in_all_even_if_nothing_is_left_of_it():
    macros = Macros.parse(rf"\newcommand{{\nought}}{{\iffalse {'x' * 10_000}\fi}}")
    assert macros.expand(r"\nought " * 29 + "y").source == "y"
    with pytest.raises(FormulaError, match="macro never ends"):
        macros.expand(r"\nought " * 31 + "y")


def test_a_command_at_the_end_of_a_macro_keeps_its_name():
    expansion = MACROS.expand(r"\half{u}v")
    assert expansion.source == r"u\alpha v"
    assert len(expansion.spans) == len(expansion.source)
    assert MACROS.expand(r"\half{u}2").source == r"u\alpha2"
