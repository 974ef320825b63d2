"""The many names of a sign: each becomes one name, and TeX agrees that it is the same sign."""

import re

import pytest

from i2l.formulas.commands import ALIASES, COMMANDS, SPELLED_OUT, one_name
from i2l.formulas.normalize import normalize_formula
from i2l.rendering.render import render_formulas


@pytest.mark.parametrize(
    ("written", "canonical"),
    [
        (r"a \le b \rightarrow c \ne d", r"a \leq b \to c \neq d"),
        (r"\infin \rarr \Rarr", r"\infty \to \Rightarrow"),
        (r"\left\lbrace x \right\rbrace", r"\left\{ x \right\}"),
        (r"\left\lvert x \right\rvert", r"\left| x \right|"),
        (r"\left< x \middle\vert y \right>", r"\left\langle x \middle | y \right\rangle"),
        (r"a \not= b", r"a \neq b"),
        (r"a \not = b", r"a \neq b"),
        (r"x \in \R", r"x \in \mathbb { R }"),
        (r"\nicefrac{1}{2}", r"{ } ^ { 1 } / { } _ { 2 }"),
        (r"\argmin_x", r"\operatorname* { a r g \, m i n } _ { x }"),
    ],
)
def test_names_become_one(written: str, canonical: str) -> None:
    assert normalize_formula(written).formula == canonical
    assert normalize_formula(canonical).formula == canonical


def test_an_alias_is_never_an_alias_itself() -> None:
    assert all(one_name(name) == name for name in ALIASES.values())
    for written in SPELLED_OUT.values():
        assert all(one_name(name) == name for name in re.findall(r"\\[A-Za-z]+", written))


@pytest.mark.tex
def test_tex_draws_the_same_for_both_names() -> None:
    pairs = [
        (old, new) for old, new in ALIASES.items() if not COMMANDS[old].elsewhere and old != r"\ordinarycolon"
    ]
    formulas = [f"x {name} y_{{a {name} b}}" for pair in pairs for name in pair]
    pictures = [result.pixels for result in render_formulas(formulas)]
    for index, (old, new) in enumerate(pairs):
        first, second = pictures[2 * index : 2 * index + 2]
        assert first is not None, old
        assert second is not None, new
        assert first.tobytes() == second.tobytes(), (old, new)


@pytest.mark.tex
def test_names_of_other_programs_render() -> None:
    formulas = [f"x {name} y" if "math" not in name else f"{name}{{x}}" for name in ALIASES]
    formulas += [rf"x {name} y" for name in SPELLED_OUT]
    formulas += [
        r"a \coloneqq b",
        r"a \eqqcolon b",
        r"\nicefrac{1}{2}",
        r"\xhookrightarrow{f}",
        r"\cancel{x}",
    ]
    drawn = render_formulas([normalize_formula(formula).latex for formula in formulas])
    assert [f for f, result in zip(formulas, drawn, strict=True) if result.pixels is None] == []
