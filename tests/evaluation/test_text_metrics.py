"""Every text score against a hand-computed value or the tool that defines it."""

import math
import random
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from nltk.translate.bleu_score import corpus_bleu
from sacrebleu.metrics.bleu import BLEU

from i2l.evaluation.scores import FIGURE_BY_KEY, remove_spaces, text_columns, without_spacing

EXACT = pytest.approx
NEAR = 1e-6


def score(key, targets, predictions):
    columns = text_columns([t.split() for t in targets], [p.split() for p in predictions])
    return float(
        FIGURE_BY_KEY[key].compute({name: np.asarray(column.sum()) for name, column in columns.items()})
    )


TARGETS = [r"\frac { a } { b } + c", r"x _ { i } ^ { 2 } = 0", r"\alpha \beta"]
PREDICTIONS = [r"\frac { a } { b } - c", r"x _ { i } = 0", r"\alpha \beta"]


def test_moses_bleu_by_hand():
    # Matches of 1- to 4-grams: 8+7+2 of 9+7+2, 6+6+1 of 8+6+1, 5+4 of 7+5, 4+2 of 6+4; 18 tokens for 22.
    expected = math.exp(
        (math.log(17 / 18) + math.log(13 / 15) + math.log(9 / 12) + math.log(6 / 10)) / 4 + 1 - 22 / 18
    )
    assert score("bleu_moses", TARGETS, PREDICTIONS) == EXACT(expected, abs=NEAR)


def test_nltk_bleu_by_hand():
    # The two-token prediction has no 3- and 4-grams; NLTK adds 1 to each of their numbers all the same.
    expected = math.exp(
        (math.log(17 / 18) + math.log(13 / 15) + math.log(9 / 13) + math.log(6 / 11)) / 4 + 1 - 22 / 18
    )
    assert score("bleu_nltk", TARGETS, PREDICTIONS) == EXACT(expected, abs=NEAR)


def random_corpus(seed, *, min_length=0):
    generator = random.Random(seed)
    targets = [[generator.choice("abcdef") for _ in range(generator.randint(1, 30))] for _ in range(40)]
    predictions = []
    for tokens in targets:
        kept = [generator.choice("abcdef") if generator.random() < 0.2 else token for token in tokens]
        predictions.append(kept[: generator.randint(min_length, len(kept) + 3)] + ["a"] * min_length)
    return [" ".join(t) for t in targets], [" ".join(p) for p in predictions]


@pytest.mark.parametrize("seed", range(5))
def test_bleus_equal_the_tools_that_define_them(seed):
    targets, predictions = random_corpus(seed)
    moses = BLEU(tokenize="none", smooth_method="none", force=True).corpus_score(predictions, [targets])
    assert score("bleu_moses", targets, predictions) == EXACT(moses.score / 100, abs=NEAR)
    nltk = corpus_bleu([[t.split()] for t in targets], [p.split() for p in predictions])
    assert score("bleu_nltk", targets, predictions) == EXACT(nltk, abs=NEAR)
    thirteen = BLEU(tokenize="13a", smooth_method="none", force=True).corpus_score(
        [remove_spaces(p) for p in predictions], [[remove_spaces(t) for t in targets]]
    )
    assert score("bleu_13a", targets, predictions) == EXACT(thirteen.score / 100, abs=NEAR)


def test_moses_and_nltk_agree_without_short_predictions():
    targets, predictions = random_corpus(7, min_length=4)
    assert score("bleu_moses", targets, predictions) == EXACT(
        score("bleu_nltk", targets, predictions), abs=1e-12
    )


def test_no_match_of_an_order_is_zero():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # NLTK warns that it makes 0 a little more than 0
        nltk = corpus_bleu([[["a", "b", "c", "d"]]], [["a", "c", "b", "d"]])
    assert 0 < nltk < 1e-70
    assert score("bleu_moses", ["a b c d"], ["a c b d"]) == 0
    assert score("bleu_nltk", ["a b c d"], ["a c b d"]) == 0


def test_missing_predictions_are_empty_lines():
    targets, predictions = ["a b c d e", "f g h i j"], ["a b c d e", ""]
    assert score("bleu_moses", targets, predictions) == EXACT(math.exp(1 - 10 / 5), abs=NEAR)
    assert score("bleu_moses", targets, ["", ""]) == 0


def test_13a_splits_like_english():
    # Without spaces `\frac{a}{b}` is eight 13a tokens: \ frac { a } { b }.
    target, prediction = r"\frac { a } { b }", r"\frac { a } { c }"
    num_tokens = 8
    grams = [(num_tokens - n, num_tokens - n - min(n + 1, 2)) for n in range(4)]
    expected = math.exp(sum(math.log(match / total) for total, match in grams) / 4)
    assert score("bleu_13a", [target], [prediction]) == EXACT(expected, abs=NEAR)


def test_edit_distance_per_target_token_can_exceed_one():
    # 1 of 8 tokens replaced; 3 tokens inserted before a single one.
    assert score("edit_distance", [r"a b c d e f g h", "a"], [r"a b x d e f g h", "x y z a"]) == EXACT(
        (1 / 8 + 3 / 1) / 2, abs=NEAR
    )


def test_edit_accuracy_by_hand():
    # Distances 1 and 3, longer lengths 8 and 4.
    assert score("edit_accuracy", ["a b c d e f g h", "a"], ["a b x d e f g h", "x y z a"]) == EXACT(
        1 - 4 / 12, abs=NEAR
    )


def test_character_edit_by_hand():
    # `x^{2}` against `x^{10}`: two edits in six characters; the other pair is equal without its spaces.
    assert score("character_edit", ["x ^ { 2 }", r"\alpha x"], ["x ^ { 1 0 }", r"\alpha  x"]) == EXACT(
        (2 / 6) / 2, abs=NEAR
    )


def test_exact_match_with_and_without_spacing():
    targets = [r"a \, b", r"a b", r"a \hspace { 1 c m } b", "a b"]
    predictions = [r"a b", r"a b", r"a \kern - 1 . 5 e m b", "a c"]
    assert score("exact_match", targets, predictions) == 0.25
    assert score("exact_match_no_spacing", targets, predictions) == 0.75


def test_spacing_commands_go_with_their_lengths():
    formula = r"a \, \quad ~ \ b \hspace* { - 2 p t } c \mskip 3 m u d \qquad \q"
    assert without_spacing(formula.split()) == ["a", "b", "c", "d", r"\q"]


@pytest.mark.parametrize(
    ("formula", "expected"),
    [
        (r"\frac { a } { b }", r"\frac{a}{b}"),
        (r"\operatorname { s i n } x", r"\operatorname{sin}x"),
        (r"\mathrm { d i a g } ( a )", r"\mathrm{diag}(a)"),
        (r"\alpha x", r"\alpha x"),  # the space between letters stays
        (r"a \ b", r"a\ b"),  # and so does a control space
        (r"x _ { i } ^ { 2 }", r"x_{i}^{2}"),
        ("", ""),
    ],
)
def test_spaces_are_removed_by_unimernets_rule(formula, expected):
    assert remove_spaces(formula) == expected


@given(st.lists(st.sampled_from(["a", "b", r"\,", r"\frac", "{", "}", "1"]), min_size=1, max_size=30))
def test_a_formula_read_right_has_the_best_scores(tokens):
    formula = " ".join(tokens)
    assert score("edit_distance", [formula], [formula]) == 0
    assert score("character_edit", [formula], [formula]) == 0
    assert score("exact_match", [formula], [formula]) == 1
    if len(tokens) >= 4:
        assert score("bleu_moses", [formula], [formula]) == EXACT(1)
