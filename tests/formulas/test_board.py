"""Formulas as boards have them: every kind is canonical and of a known vocabulary."""

from itertools import islice
from pathlib import Path

import pytest
from typer.testing import CliRunner

import i2l
from i2l.cli import app
from i2l.formulas import school
from i2l.formulas.normalize import normalize_formula
from i2l.formulas.school import BoardComposer
from i2l.formulas.vocabulary import Vocabulary
from i2l.rendering.render import render_formulas

KINDS = [maker.__name__ for maker, _ in school._BOARD_KINDS]
SHOWN = {
    "matrices": {r"\begin{matrix}", r"\left|", r"\left(", r"\left[", r"\operatorname*", r"\vec"},
    "vector": {r"\vec", r"\overrightarrow", r"\hat", r"\cdot", r"\times", r"\sqrt"},
    "ratio": {":", r"\div", r"\cdots", r"\frac"},
    "calculus": {r"\prime", r"\int", r"\sum", r"\partial", r"\to", r"\right|", r"\infty"},
    "line": {r"\bar", r"\overline", r"\therefore", "[", r"\left("},
    "system": {r"\begin{cases}", "&", "="},
}


def composed(count: int, *, seed: int = 1) -> list[str]:
    return list(islice(BoardComposer(seed=seed).formulas(), count))


def test_the_same_seed_gives_the_same_formulas():
    assert composed(60) == composed(60)
    assert composed(60) != composed(60, seed=2)


def test_formulas_are_of_the_vocabulary_of_the_model_in_the_box():
    known = set(Vocabulary.load(Path(i2l.__file__).parent / "models" / "pinpoint" / "vocab.json").tokens)
    formulas = [normalize_formula(formula).formula for formula in composed(1500)]
    assert {token for formula in formulas for token in formula.split()} <= known
    assert len(set(formulas)) > 1300


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_shows_what_it_is_there_for(kind):
    composer = BoardComposer(seed=3)
    formulas = [normalize_formula(getattr(composer, kind)()).formula for _ in range(400)]
    assert SHOWN[kind] <= {token for formula in formulas for token in formula.split()}


def test_determinants_are_square():
    composer = BoardComposer(seed=4)
    for _ in range(200):
        matrix = composer.matrix()
        if matrix.startswith(r"\left|"):
            rows = matrix.split(r"\\")
            assert {row.count("&") for row in rows} == {len(rows) - 1}


@pytest.mark.tex
def test_tex_draws_all_of_them():
    results = render_formulas([normalize_formula(formula).latex for formula in composed(120)])
    assert [result.message for result in results if result.pixels is None] == []


def test_the_command_needs_no_list_for_them():
    result = CliRunner().invoke(app, ["compose", "--board", "--count", "30", "--seed", "1"])
    assert result.exit_code == 0
    assert result.output.splitlines() == [normalize_formula(formula).formula for formula in composed(30)]
    both = CliRunner().invoke(app, ["compose", "--board", "--school"])
    assert both.exit_code == 2
