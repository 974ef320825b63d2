"""Where it fails: subsets, tokens and confusions."""

import pytest

from i2l.evaluation.breakdown import (
    CONSTRUCTS,
    align_tokens,
    find_confusions,
    find_constructs,
    scores_by_construct,
    scores_by_length,
    scores_by_token,
)
from i2l.evaluation.scores import text_columns


@pytest.mark.parametrize(
    ("formula", "constructs"),
    [
        ("a + b", ["none of these"]),
        ("x _ { i }", ["scripts"]),
        (r"\frac { a } { \sqrt { b } }", ["fractions", "roots"]),
        (r"\sum _ { i } \hat { x }", ["scripts", "big operators", "accents"]),
        (r"\mathbf { x }", ["fonts"]),
        (r"\left( \begin{array} { c } { a } \\ \end{array} \right)", ["fences", "matrices and arrays"]),
        (r"\leftarrow \rightarrow", ["none of these"]),
        (r"\operatorname { s i n } x", ["words"]),
        (r"\mathrm { d } x", ["fonts"]),
        (r"\mathrm { i f }", ["fonts", "words"]),
        ("", ["none of these"]),
    ],
)
def test_constructs(formula, constructs):
    assert find_constructs(formula.split()) == constructs
    assert set(constructs) <= set(CONSTRUCTS)


def test_subsets_have_the_scores_of_their_samples():
    targets = [["a"] * 10, ["a"] * 30, [r"\sqrt", "{", "a", "}"], ["a"] * 200]
    predictions = [["a"] * 10, ["b"] * 30, [r"\sqrt", "{", "a", "}"], ["a"] * 200]
    columns = text_columns(targets, predictions)
    by_length = {part.label: part for part in scores_by_length(columns, targets, rounds=20)}
    assert {label: part.num_samples for label, part in by_length.items()} == {
        "0 to 20": 2,
        "21 to 40": 1,
        "over 150": 1,
    }
    assert by_length["0 to 20"].figures["exact_match"].value == 1
    assert by_length["21 to 40"].figures["edit_distance"].value == 1
    by_construct = {part.label: part for part in scores_by_construct(columns, targets, rounds=20)}
    assert by_construct["roots"].figures["bleu_moses"].value == 1
    assert by_construct["none of these"].figures["exact_match"].value == pytest.approx(2 / 3)


def test_tokens_and_confusions():
    targets = [["x", "+", "y"]] * 12
    predictions = [["x", "+", "y"]] * 6 + [["x", "+", "v"]] * 3 + [["x", "y"]] * 2 + [["x", "+", "y", "y"]]
    blocks = [align_tokens(*pair) for pair in zip(targets, predictions, strict=True)]
    scores = {part.token: part for part in scores_by_token(targets, predictions, blocks, rounds=50)}
    assert set(scores) == {"x", "+", "y"}
    assert scores["x"].recall.value == scores["x"].recall.low == 1
    assert scores["+"].recall.value == pytest.approx(10 / 12)
    assert scores["y"].recall.value == pytest.approx(9 / 12)
    assert scores["y"].recall.low < scores["y"].recall.value < scores["y"].recall.high
    assert (scores["y"].num_target, scores["y"].num_predicted) == (12, 10)
    assert scores["y"].precision.value == pytest.approx(9 / 10)
    names = [str(number) for number in range(12)]
    confusions = find_confusions(names, targets, predictions, blocks)
    assert [(pair.target, pair.prediction, pair.count) for pair in confusions] == [
        ("y", "v", 3),
        ("+", "", 2),
        ("", "y", 1),
    ]
    assert confusions[0].samples == ["6", "7", "8"]
