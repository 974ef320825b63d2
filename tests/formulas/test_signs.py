"""Formulas that show the signs of a vocabulary: every sign in each round, canonical, and TeX draws them."""

import re
from collections import Counter
from itertools import islice
from pathlib import Path

import pytest

import i2l
from i2l.formulas.normalize import normalize_formula
from i2l.formulas.signs import SignComposer, can_be_shown, fragment
from i2l.formulas.vocabulary import Vocabulary
from i2l.rendering.render import render_formulas

FORMULAS = [r"a + b \leq c _ { 1 }", r"\hat { x } = \mathbf { X } \mathbf y", r"\sum _ { i } x _ { i } \to 2"]
VOCABULARY = Vocabulary.load(Path(i2l.__file__).parent / "models" / "pinpoint" / "vocab.json").tokens


def composed(rounds: int, *, seed: int = 1) -> tuple[tuple[str, ...], list[str]]:
    composer = SignComposer(VOCABULARY, FORMULAS, seed=seed)
    return composer.shown, list(islice(composer.formulas(), rounds * len(composer.shown)))


def test_every_round_shows_every_sign_and_nothing_else():
    shown, formulas = composed(4)
    assert len(shown) > 600
    for number in range(4):
        found = formulas[number * len(shown) : (number + 1) * len(shown)]
        assert set(shown) <= {token for formula in found for token in formula.split()}
    assert {token for formula in formulas for token in formula.split()} <= set(VOCABULARY)
    assert [formula for formula in formulas if normalize_formula(formula).formula != formula] == []


def test_the_same_seed_gives_the_same_formulas():
    assert composed(1)[1] == composed(1)[1]
    assert composed(1)[1] != composed(1, seed=2)[1]


def test_a_sign_stands_alone_and_in_many_surroundings():
    composer = SignComposer(VOCABULARY, FORMULAS, seed=3)
    for sign in (r"\succnsim", r"\beth", r"\boxdot", "q"):
        found = Counter(formula for _ in range(30) for formula in composer.showing(sign))
        assert found[sign] > 10
        for start in (
            rf"\frac {{ {sign}",
            rf"\sqrt {{ {sign}",
            f"{sign} {sign}",
            f"{sign} _",
            r"\begin{matrix}",
        ):
            assert any(start in formula for formula in found), (sign, start)
    replaced = {formula for _ in range(100) for formula in composer.showing(r"\succnsim")}
    assert r"a + b \succnsim c _ { 1 }" in replaced  # a relation in the place of another


def test_accents_and_alphabets_have_many_letters_and_operators_limits():
    composer = SignComposer(VOCABULARY, seed=3)
    for token in (r"\ddot", r"\mathfrak", r"\mathscr"):
        parts = {composer.part(token) for _ in range(200)}
        assert len(parts) > 20
    composer = SignComposer(VOCABULARY, FORMULAS, seed=3)
    scripted = {formula for _ in range(20) for formula in composer.showing(r"\mathscr")}
    assert r"\hat { x } = \mathscr { X } \mathbf y" in scripted
    assert not any(re.search(r"\\mathscr (\{ )?[a-z]", formula) for formula in scripted)
    operators = {composer.part(r"\bigsqcup") for _ in range(50)}
    assert r"\bigsqcup" in operators
    assert any("_" in part and "^" in part for part in operators)
    fences = [composer.part(r"\right\rfloor") for _ in range(50)]
    assert any(part.startswith(r"\left\lfloor \frac") for part in fences)


@pytest.mark.parametrize(
    "token", [r"\dotsc", r"\lvert", r"\bm", r"\le", r"\quad", r"\ref", "{", "--", r"\left."]
)
def test_what_another_name_draws_has_no_turn(token):
    assert not can_be_shown(token)


def test_a_sign_that_differs_by_its_distances_stands_between_others():
    composer = SignComposer(VOCABULARY, seed=3)
    formulas = [formula for _ in range(5) for formula in composer.showing(r"\mid")]
    assert len(formulas) == 100
    assert all(formula.split().index(r"\mid") not in (0, len(formula.split()) - 1) for formula in formulas)


def test_letters_are_shown_by_themselves_and_accents_on_something():
    assert fragment("x") == "x"
    assert fragment(r"\vec") == r"\vec { a }"
    assert fragment(r"\quad") is None


def test_a_vocabulary_must_draw_something():
    with pytest.raises(ValueError, match="draws anything"):
        SignComposer(["{", "}", r"\quad"], seed=0)


@pytest.mark.tex
def test_nearly_all_signs_draw():
    _, formulas = composed(1, seed=4)
    drawn = render_formulas([normalize_formula(formula).latex for formula in formulas])
    assert sum(result.pixels is None for result in drawn) <= len(drawn) // 100
