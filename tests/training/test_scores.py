import pytest
import sacrebleu
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from nltk.translate import bleu_score

from i2l.training.validation import corpus_bleu, edit_distances, score_formulas

formulas = st.lists(st.integers(1, 6), max_size=12)
pairs = st.lists(st.tuples(formulas, formulas), min_size=1, max_size=6)


def padded(rows, width=None):
    width = width or max([len(row) for row in rows]) + 1
    # What follows the eos must not matter.
    return torch.tensor([row + [0] + [3] * (width - len(row) - 1) for row in rows])


def levenshtein(a, b):
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        previous, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            previous, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, previous + (x != y))
    return row[-1]


@settings(max_examples=100, deadline=None)
@given(pairs)
def test_edit_distance_is_levenshtein(rows):
    predicted, target = zip(*rows, strict=True)
    expected = [levenshtein(a, b) for a, b in rows]
    assert edit_distances(padded(predicted), padded(target)).tolist() == expected


@settings(max_examples=60, deadline=None)
@given(pairs)
def test_bleu_is_sacrebleu(rows):
    predicted, target = zip(*rows, strict=True)
    metric = sacrebleu.BLEU(tokenize="none", smooth_method="none", force=True)
    texts = [[" ".join(f"t{i}" for i in row) for row in side] for side in (predicted, target)]
    expected = metric.corpus_score(texts[0], [texts[1]]).score / 100 if any(target) else 0.0
    assert corpus_bleu(padded(predicted), padded(target)) == pytest.approx(expected, abs=1e-12)


def test_bleu_is_the_papers_on_formulas_of_four_tokens_and_more():
    generator = torch.Generator().manual_seed(1)
    target = torch.randint(1, 9, (50, 30), generator=generator)
    predicted = torch.where(torch.rand(50, 30, generator=generator) < 0.1, 9, target)[:, :28]
    expected = bleu_score.corpus_bleu([[row] for row in target.tolist()], predicted.tolist())
    assert corpus_bleu(predicted, target) == pytest.approx(expected, abs=1e-12)


def test_scores_of_a_known_case():
    result = score_formulas(padded([[1, 2, 3, 4], [5]]), padded([[1, 2, 3, 4], [5, 5]]))
    assert result.exact_match == 0.5
    assert result.edit_distance == pytest.approx(0.25)
    assert result.length_ratio == pytest.approx(0.75)
    assert result.num_formulas == 2
