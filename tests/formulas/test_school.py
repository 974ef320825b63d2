"""Formulas as schoolbooks have them: every kind is canonical, of a known vocabulary, and TeX draws it."""

import re
from itertools import islice
from pathlib import Path

import pytest

import i2l
from i2l.formulas import school
from i2l.formulas.normalize import normalize_formula
from i2l.formulas.school import SchoolComposer
from i2l.formulas.vocabulary import Vocabulary
from i2l.rendering.render import render_formulas

FORMULAS = [
    r"a + b = c _ { 1 } ,",
    r"[ x , y ] \leq \frac { y } { 2 } .",
    r"f ( x ) = \int _ { 0 } ^ { 1 } g ( t ) d t",
]
KINDS = [maker.__name__ for maker, _ in school._KINDS]


def composed(count: int, *, seed: int = 1) -> list[str]:
    return list(islice(SchoolComposer(FORMULAS, seed=seed).formulas(), count))


def test_the_same_seed_gives_the_same_formulas():
    assert composed(60) == composed(60)
    assert composed(60) != composed(60, seed=2)


def test_formulas_are_of_the_vocabulary_of_the_model_in_the_box():
    known = set(Vocabulary.load(Path(i2l.__file__).parent / "models" / "pinpoint" / "vocab.json").tokens)
    formulas = [normalize_formula(formula).formula for formula in composed(1500)]
    assert {token for formula in formulas for token in formula.split()} <= known
    assert len(set(formulas)) > 1400
    assert [formula for formula in formulas if normalize_formula(formula).formula != formula] == []


@pytest.mark.parametrize(
    ("kind", "pattern"),
    [
        (
            "column_sum",
            r"\\begin\{array\} \{ r \} .* \\\\ \{ \+ \\ \\\$ [\d .]+ \} \\\\ \\hline \\end\{array\}",
        ),
        ("long_division", r"\d \\overline \{ \{ \) [\d ]+ \} \}"),
        ("cases", r"\\left\\\{ \\begin\{array\} \{ l l \} .* & \{ x < - \d \} .*\\right\."),
        ("system", r"\\left\\\{ \\begin\{array\} \{ r c r c r \} .*\\right\."),
        ("item", r"\\mathrm \{ b \) \} \\ .*"),
        ("line", r"\\angle [A-Z] [A-Z] [A-Z] = .* \^ \{ \\circ \}"),
        ("marked", r"\\boxed \{ .* \}"),
        ("matrices", r".*\\left\[ \\begin\{array\} \{ r r \} .*"),
        (
            "optimisation",
            r"\\begin\{array\} \{ r l \} \{ \\mathrm \{ M [a-z ]+ \} \} & .*"
            r"\{ \\mathrm \{ s u b j e c t ~ t o \} \} & \{ \\left\\\{ \\begin\{array\} .*",
        ),
        ("chain", r".*(\\xrightarrow \{ f _ \{ \d \} \} A _ \{ \d \} ){3}.*"),
        (
            "real_rows",
            r"\\begin\{array\} \{ r l \} \{ a \+ b \} & \{ = c _ \{ 1 \}[^&]*\} \\\\ \\end\{array\}",
        ),
        ("nested", r"\\begin\{array\} \{ l l \} \{ \\left\\\{ \\begin\{array\} .*"),
    ],
)
def test_kinds_are_what_they_are_called(kind, pattern):
    composer = SchoolComposer(FORMULAS, seed=1)
    maker = getattr(composer, kind)
    formulas = (normalize_formula(" ".join(maker().split())).formula for _ in range(4000))
    assert any(re.fullmatch(pattern, formula) for formula in formulas)


def test_sums_and_differences_are_right():
    composer = SchoolComposer(FORMULAS, seed=1)
    checked = 0
    for _ in range(500):
        formula = " ".join(composer.column_sum().split())
        if r"\times" in formula or r"\underline" in formula:
            continue
        terms, _, result = formula.partition(r"\hline")
        values = [_value(row) for row in terms.split(r"\\")[:-1]]
        if any(character.isdigit() for character in result):
            assert _value(result) == pytest.approx(sum(values))
            checked += 1
    assert checked > 80


def _value(row: str) -> float:
    return float("".join(token for token in row.split() if token in "+-." or token.isdigit()))


@pytest.mark.tex
def test_every_kind_draws():
    composer = SchoolComposer(FORMULAS, seed=5)
    formulas = [getattr(composer, kind)() for kind in KINDS for _ in range(12)]
    canonical = [normalize_formula(" ".join(formula.split())) for formula in formulas]
    drawn = render_formulas([one.latex for one in canonical])
    assert [one.formula for one, result in zip(canonical, drawn, strict=True) if result.pixels is None] == []
