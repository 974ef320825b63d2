"""Displays composed from single formulas: they parse, they draw, and the same seed gives the same ones."""

import re
from itertools import islice

import pytest
from typer.testing import CliRunner

from i2l.cli import app
from i2l.errors import I2LError
from i2l.formulas import commands
from i2l.formulas.compose import Composer, common_parts, physics_displays
from i2l.formulas.normalize import normalize_formula
from i2l.formulas.school import SchoolComposer
from i2l.formulas.vocabulary import Vocabulary
from i2l.rendering.render import render_formulas
from tests.kept import assert_text_kept

FORMULAS = [
    r"a + b = c _ { 1 } ,",
    r"x ^ { 2 } \leq \frac { y } { 2 } .",
    r"f ( x ) = \int _ { 0 } ^ { 1 } g ( t ) d t",
    r"\left( a + b \right) ^ { 2 } = a ^ { 2 } + 2 a b + b ^ { 2 }",
    r"\alpha \to \beta",
]


def compose(count: int, *, seed: int = 1) -> list[str]:
    return list(islice(Composer(FORMULAS, seed=seed).displays(), count))


def test_the_same_seed_gives_the_same_displays():
    assert compose(50) == compose(50)
    assert compose(50) != compose(50, seed=2)


def test_displays_have_several_lines_matrices_and_rare_signs():
    displays = compose(600)
    tokens = {token for display in displays for token in display.split()}
    for wanted in (r"\begin{aligned}", r"\begin{gathered}", r"\begin{cases}", r"\begin{matrix}", r"\left\{"):
        assert wanted in tokens
    rare = {*commands.RELATIONS, *commands.ARROW_SIGNS, *commands.BINARIES, *commands.LETTERS}
    assert len(tokens & rare) > 150


def test_displays_of_physics_have_its_notation_and_parse():
    displays = list(islice(physics_displays(FORMULAS * 60, seed=2), 400))
    assert displays == list(islice(physics_displays(FORMULAS * 60, seed=2), 400))
    tokens = [normalize_formula(display).formula.split() for display in displays]
    for wanted in (
        r"\boxed",
        r"\boldsymbol",
        r"\mathbf",
        r"\vec",
        r"\left\langle",
        r"\left\|",
        r"\underbrace",
    ):
        assert any(wanted in one for one in tokens), wanted
    framed = sum(display.startswith(r"\boxed") for display in displays)
    assert 0.07 < framed / len(displays) < 0.18


def test_physics_leaves_words_and_switched_letters_as_they_are():
    parts = r"{ \cal H }", r"\mathrm { m a x }", r"\operatorname { d e t }"
    displays = list(islice(physics_displays([" ".join(parts)] * 900, seed=5), 400))
    assert any(r"\left\langle { \cal H }" in display for display in displays)
    vectors = [re.findall(r"\\(?:mathbf|boldsymbol|vec) { ([Hdet]) }", display) for display in displays]
    assert not any(vectors)


def test_stacked_formulas_fill_the_columns_that_their_array_has():
    composer = Composer(FORMULAS, seed=3)
    seen = set()
    for display in (composer.stacked() for _ in range(400)):
        columns, body = re.search(r"\\begin{array} { ([lcr ]+) } (.*) \\end{array}", display).groups()
        for row in body.split(r" \\ "):
            cells = [cell.removeprefix(r"\displaystyle ").strip() for cell in row.split(" & ")]
            assert len(cells) == len(columns.split())
            if not any(cells[1:]):  # a formula without a relation is in the first cell, whole
                continue
            seen.add(columns)
            if columns == "r l":  # cut before its relation, which keeps its distance by an empty group
                assert cells[1].startswith(("{ } =", r"{ } \leq", r"{ } \to"))
            elif columns == "l l":  # whole, and a condition
                assert cells[0].endswith(" ,")
            else:
                assert cells[1] in ("=", r"\leq", r"\to")
    assert seen == {"r l", "l l", "r c l", "l c l"}


@pytest.mark.tex
def test_nearly_all_displays_parse_and_draw():
    canonical = [normalize_formula(display) for display in compose(150)]
    drawn = render_formulas([one.latex for one in canonical])
    assert sum(result.pixels is not None for result in drawn) >= 145


@pytest.mark.tex
def test_every_sign_is_canonical_and_draws():
    groups = (
        commands.LETTERS,
        commands.BINARIES,
        commands.RELATIONS,
        commands.ARROW_SIGNS,
        commands.OPERATORS,
    )
    formulas = [f"a {sign} b" for group in groups for sign in group]
    formulas += [
        f"{sign} {{ X }}" for sign in (*commands.ACCENTS, *commands.ALPHABETS, *commands.STRETCHED_ARROWS)
    ]
    formulas += [rf"\left{left} x \right{right}" for left, right in commands.FENCES]
    assert [formula for formula in formulas if normalize_formula(formula).formula != formula] == []
    drawn = render_formulas(formulas)
    assert [f for f, result in zip(formulas, drawn, strict=True) if result.pixels is None] == []


def test_a_composer_needs_formulas():
    with pytest.raises(ValueError, match="no formulas"):
        Composer([], seed=0)


def test_formulas_with_other_letters():
    """Letters become letters, digits digits and signs signs; words, commands and braces stay as they are."""
    formulas = [
        r"\operatorname { s i n } x ^ { 2 } + \alpha y = A B _ { 1 2 }",
        r"\frac { a } { 3 } \leq C \mathrm { i f } b",
    ]
    variants = list(islice(Composer(formulas, seed=1).variants(), 300))

    def kinds(formula: str) -> str:
        words = re.sub(r"(\\operatorname|\\mathrm) \{ [^}]*\}", "word", formula)
        words = re.sub(r"\\alpha|\b[a-z]\b", "x", words)
        words = re.sub(r"\b[A-Z]\b", "X", words)
        return re.sub(r"=|\\leq", "=", re.sub(r"\d", "1", words))

    assert {kinds(variant) for variant in variants} == {kinds(formula) for formula in formulas}
    assert not set(variants) & set(formulas)
    assert len(set(variants)) > 250
    assert all("s i n" in variant or "i f" in variant for variant in variants)


def test_displays_are_composed_as_they_were():
    """Lists of displays that models learned from are made again from their seed."""
    composer = Composer(FORMULAS, seed=3)
    assert_text_kept("composed", [*islice(composer.displays(), 120), *islice(composer.variants(), 20)])


def test_the_commands_print_parts_and_displays(tmp_path):
    (tmp_path / "a.txt").write_text("\n".join([*FORMULAS, r"\frac{", ""]))
    Vocabulary.from_formula_tokens(list("abc+=")).save(tmp_path / "vocab.json")

    def told(*arguments):
        result = CliRunner().invoke(app, [*arguments, str(tmp_path / "a.txt")])
        assert result.exit_code == 0, result.output
        return result.output.splitlines()

    def refused(*options):
        result = CliRunner().invoke(app, ["compose", *options, str(tmp_path / "a.txt")])
        assert result.exit_code == 2
        return " ".join(result.output.split())

    parts = told("parts", "--min-count", "1", "--max-tokens", "3")
    assert parts == list(common_parts(FORMULAS, max_tokens=3, min_count=1))
    known = told(
        "parts", "--min-count", "1", "--max-tokens", "3", "--vocabulary", str(tmp_path / "vocab.json")
    )
    assert known == [part for part in parts if set(part.split()) <= set("abc+=")] != []
    displays = told("compose", "--count", "25", "--seed", "3", "--max-tokens", "60")
    assert len(displays) == 25
    assert max(len(line.split()) for line in displays) <= 60
    composed = (normalize_formula(line).formula for line in Composer(FORMULAS, seed=3).displays())
    assert displays == list(islice((line for line in composed if len(line.split()) <= 60), 25))
    letters = told("compose", "--count", "1", "--letters")
    assert letters == [next(Composer(FORMULAS, seed=0).variants())]
    school = told("compose", "--count", "20", "--school")
    made = SchoolComposer(FORMULAS, seed=0).formulas()
    assert school == [normalize_formula(formula).formula for formula in islice(made, 20)]
    signs = told("compose", "--count", "10", "--signs", "--vocabulary", str(tmp_path / "vocab.json"))
    assert {token for formula in signs for token in formula.split()} == set("abc+=")
    assert "choose one" in refused("--letters", "--school")
    assert "--vocabulary" in refused("--signs")
    Vocabulary.from_formula_tokens(["{", "}"]).save(tmp_path / "vocab.json")
    for kind in ("--signs", "--school"):
        arguments = ["compose", kind, "--vocabulary", str(tmp_path / "vocab.json"), str(tmp_path / "a.txt")]
        assert isinstance(CliRunner().invoke(app, arguments).exception, I2LError)
    (tmp_path / "a.txt").write_text("\\frac{\n")
    assert isinstance(CliRunner().invoke(app, ["compose", str(tmp_path / "a.txt")]).exception, I2LError)
