"""Pairs that an evaluation must survive: words spelled with spaces, tokens in any order, our own mistakes."""

import random

import pytest

from i2l.evaluation import compare, visual
from i2l.evaluation.compare import EvaluationOptions, Pairs, evaluate_pairs
from i2l.evaluation.report import write_report
from i2l.evaluation.visual import compare_images, prepare_formula
from i2l.rendering.render import render_formulas
from tests.rendering.random_formulas import random_formula

SPELLED = r"\text { ~ i ~ f ~ } r"
WORDS = [
    SPELLED,
    r"\text { ~ f o r ~ a l l ~ ~ x }",
    r"\mbox { i f } ~ \mbox { ~ a - b . }",
    r"\mathrm { ~ a n d ~ } \textbf { ~ o ~ r ~ }",
    r"\operatorname { a r g ~ m a x } _ { x }",
    r"\hspace { 1 0 p t } a \raisebox { 2 p t } { $ x $ }",
    r"\text { a $ x ^ { 2 } $ b } + 1",
]


def damaged(formula, source):
    """The same tokens with some left out, doubled, swapped or replaced, with spaces or without."""
    tokens = formula.split()
    for _ in range(source.randint(1, 3)):
        place = source.randrange(len(tokens))
        change = source.randrange(4)
        if change == 0 and len(tokens) > 1:
            del tokens[place]
        elif change == 1:
            tokens.insert(place, source.choice(tokens))
        elif change == 2:
            tokens[place] = source.choice(["~", "{", "}", r"\text", r"\mbox", r"\quad", "$", "^", r"\\"])
        else:
            tokens.insert(place, source.choice(WORDS))
    return source.choice([" ", "  "]).join(tokens)


def some_predictions(number):
    source = random.Random(7)
    for seed in range(number):
        formula = f"{random_formula(seed)} {source.choice(WORDS)}"
        yield formula
        yield damaged(formula, source)


def evaluate(pairs, **options):
    return evaluate_pairs(pairs, options=EvaluationOptions(rounds=10, jobs=1, **options), source={})


@pytest.mark.tex
@pytest.mark.parametrize("canonical", [False, True])
def test_words_spelled_with_spaces(canonical):
    pair = tuple(prepare_formula(side, canonical=canonical) for side in ("x", SPELLED))
    (sample,) = compare_images([pair])
    assert sample.counts["compiles"] == 1
    assert sample.counts["expression_right"] == sample.counts["character_f1"] == 0
    same = tuple(prepare_formula(side, canonical=canonical) for side in (r"\text{if}r\,", SPELLED))
    (sample,) = compare_images([same])
    assert sample.counts["character_f1"] == 1


@pytest.mark.slow
@pytest.mark.tex
def test_every_symbol_has_a_box_or_none_has(monkeypatch):
    """What the symbols are named by and what the boxes belong to are tokens of the same formula."""
    predictions = list(some_predictions(12))
    prepared = [prepare_formula(prediction, canonical=False) for prediction in predictions]
    drawn = [formula for formula in prepared if formula.symbols]
    assert len(drawn) > 15
    for formula, render in zip(
        drawn, render_formulas([formula.latex for formula in drawn], boxes=True), strict=True
    ):
        if render.boxes is not None:
            assert len(render.boxes) == len(formula.symbols), formula.latex
            assert not any(
                box for box, token in zip(render.boxes, formula.symbols, strict=True) if not token.visible
            )
    monkeypatch.setattr(visual, "_page_appears", bool)  # starts TeX once more for each that it stopped at
    names = [str(number) for number in range(len(predictions))]
    result = evaluate(Pairs(names, ["x"] * len(names), predictions), canonical=False).result
    assert len(result) == len(predictions)
    assert not any("not compared" in kind for kind in result.faults)


@pytest.mark.slow
@pytest.mark.tex
def test_a_pair_that_cannot_be_compared_is_wrong_and_named(monkeypatch, tmp_path):
    real = visual.find_symbols

    def fail(tokens, boxes):
        if any(token.text == "q" for token in tokens):
            raise IndexError("list index out of range")
        return real(tokens, boxes)

    monkeypatch.setattr(visual, "find_symbols", fail)
    pairs = Pairs(list("ABC"), ["a", "b", "q + 1"], ["a", "q", "y"])
    result = evaluate(pairs).result
    assert result.columns["strict_match"].tolist() == [1, 0, 0]
    assert result.columns["target_renders"].tolist() == [1, 1, 0]  # of the last it is the target that fails
    assert result.predictions == [["a"], [], []]
    places = result.faults["pair not compared, counted as wrong"]
    assert places == [f"{name} (IndexError: list index out of range)" for name in "BC"]
    write_report(result, tmp_path / "report.html")
    assert "pair not compared" in (tmp_path / "report.html").read_text()


def test_a_formula_that_cannot_be_prepared_is_wrong_and_named(monkeypatch):
    real = compare.prepare_formula

    def fail(formula, *, canonical):
        if "q" in formula:
            raise RecursionError("too deep")
        return real(formula, canonical=canonical)

    monkeypatch.setattr(compare, "prepare_formula", fail)
    pairs = Pairs(list("ABC"), ["a", "q", "c"], ["a", "q", "q"])
    result = evaluate(pairs, render=False).result
    assert result.figures["exact_match"].value == pytest.approx(1 / 3)
    assert result.targets == [["a"], ["q"], ["c"]]
    (places,) = result.faults.values()
    assert places == ["B (RecursionError: too deep)", "C (RecursionError: too deep)"]
