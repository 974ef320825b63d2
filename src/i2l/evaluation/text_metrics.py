"""Tokens against tokens: for each sample the counts that the published scores are made of.

Every score of a set of samples is a function of sums of these counts (`i2l.evaluation.figures`), so intervals
and subsets cost no second comparison. Counted by sacrebleu and rapidfuzz; one target a sample.

The BLEUs. All are corpus BLEU-4 with uniform weights, case-sensitive, without smoothing:
  moses  multi-bleu.perl of Deng et al. 2017: tokens between spaces, a missing prediction is an empty line.
  nltk   corpus_bleu, the paper's score: a prediction shorter than n adds 1, not 0, to the number of n-grams
         that the matches are divided by, so predictions under four tokens lower it. If an order has no match
         at all, today's NLTK gives about 1e-78 instead of 0, and older ones left the order out. The brevity
         penalty is the same.
  13a    UniMERNet's, through Hugging Face `evaluate`: spaces removed, then split by the rules of mteval-v13a.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
from rapidfuzz.distance import Levenshtein
from sacrebleu.metrics.bleu import BLEU

Columns = dict[str, npt.NDArray[np.float64]]  # for each count, its value for every sample

MAX_ORDER: Final = 4

# Commands that only move what comes after them, in a line of tokens.
_SPACING: Final = re.compile(
    r"(?<!\S)(?:~|\\[,:;!>/]?|\\(?:q?quad|ens(?:pace|kip)|(?:neg)?(?:thin|med|thick)space|space|nobreakspace|hfill?)"
    r"|\\[hv]space\*? \{ [^{}]* \}|\\(?:h|m)skip(?: [-+.\d])* \w \w|\\m?kern(?: [-+.\d])* \w \w)(?!\S)"
)


def text_columns(targets: Sequence[Sequence[str]], predictions: Sequence[Sequence[str]]) -> Columns:
    """Compare every prediction with its target."""
    words = [" ".join(tokens) for tokens in targets], [" ".join(tokens) for tokens in predictions]
    dense = [remove_spaces(text) for text in words[0]], [remove_spaces(text) for text in words[1]]
    pairs = list(zip(targets, predictions, strict=True))
    distances = _column(Levenshtein.distance(target, prediction) for target, prediction in pairs)
    target_lengths = _column(len(target) for target in targets)
    return {
        "samples": np.ones(len(pairs)),
        **_bleu_columns("tokens", *words, tokenize="none"),
        **_bleu_columns("13a", *dense, tokenize="13a"),
        "edit_distance": distances,
        "longer_length": np.maximum(target_lengths, [len(prediction) for prediction in predictions]),
        # A target without tokens counts as one token long: the ratio stays finite.
        "edits_per_token": distances / np.maximum(target_lengths, 1),
        "character_edits": _column(
            Levenshtein.normalized_distance(prediction, target)
            for target, prediction in zip(*dense, strict=True)
        ),
        "exact": _column(list(target) == list(prediction) for target, prediction in pairs),
        "exact_without_spacing": _column(
            without_spacing(target) == without_spacing(prediction) for target, prediction in pairs
        ),
    }


def _column(values: Iterable[float]) -> npt.NDArray[np.float64]:
    return np.fromiter(values, dtype=np.float64)


def _bleu_columns(name: str, targets: Sequence[str], predictions: Sequence[str], *, tokenize: str) -> Columns:
    """Matching n-grams, n-grams, and lengths, of every sample."""
    bleu = BLEU(tokenize=tokenize, smooth_method="none", force=True)
    scores = [
        bleu.corpus_score([prediction], [[target]])
        for target, prediction in zip(targets, predictions, strict=True)
    ]
    columns = {
        f"{name}_length": _column(score.sys_len for score in scores),
        f"{name}_target_length": _column(score.ref_len for score in scores),
    }
    for order in range(MAX_ORDER):
        columns[f"{name}_matches_{order + 1}"] = _column(score.counts[order] for score in scores)
        columns[f"{name}_ngrams_{order + 1}"] = _column(score.totals[order] for score in scores)
        columns[f"{name}_ngrams_nltk_{order + 1}"] = np.maximum(columns[f"{name}_ngrams_{order + 1}"], 1)
    return columns


def without_spacing(tokens: Sequence[str]) -> list[str]:
    """The tokens without the commands that only leave room."""
    return _SPACING.sub("", " ".join(tokens)).split()


# pix2tex's and UniMERNet's rule: names after these commands in one word, then no space beside a non-letter.
_NAMES: Final = re.compile(r"\\(?:operatorname|mathrm|text|mathbf)\s?\*? {.*?}")
_BETWEEN_SIGNS: Final = re.compile(r"(?!\\ )([\W_^\d])\s+?([\W_^\d])")
_SIGN_LETTER: Final = re.compile(r"(?!\\ )([\W_^\d])\s+?([a-zA-Z])")
_LETTER_SIGN: Final = re.compile(r"([a-zA-Z])\s+?([\W_^\d])")


def remove_spaces(formula: str) -> str:
    """The formula without the spaces that LaTeX does not need, by the rule that UniMERNet compares under."""
    text = _NAMES.sub(lambda match: match[0].replace(" ", ""), formula)
    while True:
        before = text
        for rule in (_BETWEEN_SIGNS, _SIGN_LETTER, _LETTER_SIGN):
            text = rule.sub(r"\1\2", text)
        if text == before:
            return text
