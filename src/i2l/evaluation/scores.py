"""Tokens against tokens: the scores of the field by name, made of counts, with intervals.

For each sample a few counts are taken, by sacrebleu and rapidfuzz, one target a sample. Every score is a
function of sums of these counts, so the same line gives its value for all samples, for a subset, and for a
thousand resamplings at once, without a second comparison.

The BLEUs. All are corpus BLEU-4 with uniform weights, case-sensitive, without smoothing:
  moses  multi-bleu.perl of Deng et al. 2017: tokens between spaces, a missing prediction is an empty line.
  nltk   corpus_bleu, the paper's score: a prediction shorter than n adds 1, not 0, to the number of n-grams
         that the matches are divided by, so predictions under four tokens lower it. If an order has no match
         at all, today's NLTK gives about 1e-78 instead of 0, and older ones left the order out. The brevity
         penalty is the same.
  13a    UniMERNet's, through Hugging Face `evaluate`: spaces removed, then split by the rules of mteval-v13a.

Bootstrap intervals say how far a score would move with other samples, and a paired test compares two systems.
Resampling is done on sums: a thousand draws of N samples are a thousand rows of weights, and one matrix
product gives the sums of all counts for all of them.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

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


Sums = Mapping[str, npt.NDArray[np.float64]]  # sums of counts; any shape, all the same
Values = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Interval:
    """A score and the range that holds it in 95 of 100 resamplings."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Figure:
    """One score."""

    key: str
    label: str
    group: Literal["text", "image", "compile"]
    definition: str
    columns: tuple[str, ...]
    compute: Callable[[Sums], Values]
    higher_is_better: bool = True
    short: str = ""  # name in breakdowns and curves; only the main scores have one

    @property
    def headline(self) -> bool:
        """Whether it is one of the main scores."""
        return bool(self.short)


def _divide(numerator: Values, denominator: Values) -> Values:
    """A quotient that is 0 where there is nothing to divide by."""
    return np.divide(numerator, denominator, out=np.zeros_like(numerator), where=denominator > 0)


def _bleu(name: str, ngrams: str = "ngrams") -> tuple[tuple[str, ...], Callable[[Sums], Values]]:
    orders = range(1, MAX_ORDER + 1)
    columns = (
        f"{name}_length",
        f"{name}_target_length",
        *(f"{name}_matches_{order}" for order in orders),
        *(f"{name}_{ngrams}_{order}" for order in orders),
    )

    def compute(sums: Sums) -> Values:
        precisions = np.stack(
            [_divide(sums[f"{name}_matches_{order}"], sums[f"{name}_{ngrams}_{order}"]) for order in orders]
        )
        with np.errstate(divide="ignore"):
            mean = np.exp(np.log(precisions).mean(axis=0))
            ratio = sums[f"{name}_target_length"] / np.maximum(sums[f"{name}_length"], 1e-9)
        values: Values = mean * np.exp(np.minimum(0.0, 1.0 - ratio))
        return values

    return columns, compute


def _share(column: str, of: str = "samples") -> tuple[tuple[str, ...], Callable[[Sums], Values]]:
    return (column, of), lambda sums: _divide(sums[column], sums[of])


def _one_minus(column: str, of: str) -> tuple[tuple[str, ...], Callable[[Sums], Values]]:
    return (column, of), lambda sums: 1.0 - _divide(sums[column], sums[of])


_TEXT: Final = (
    Figure(
        "bleu_moses",
        "BLEU-4, Moses multi-bleu",
        "text",
        "Corpus BLEU of im2markup (Deng et al. 2017): tokens between spaces, no smoothing.",
        *_bleu("tokens"),
        short="BLEU",
    ),
    Figure(
        "bleu_nltk",
        "BLEU-4, NLTK corpus_bleu",
        "text",
        "The paper's (Singh 2018). Differs from Moses only by predictions of fewer than four tokens.",
        *_bleu("tokens", "ngrams_nltk"),
    ),
    Figure(
        "bleu_13a",
        "BLEU-4, 13a tokenisation",
        "text",
        "UniMERNet's and texify's: spaces removed, split like a sentence of English by mteval-v13a.",
        *_bleu("13a"),
    ),
    Figure(
        "edit_distance",
        "Edits per target token",
        "text",
        "The paper's: mean over samples of Levenshtein distance / target length. May exceed 1.",
        *_share("edits_per_token"),
        higher_is_better=False,
        short="Edits",
    ),
    Figure(
        "edit_accuracy",
        "Token edit accuracy",
        "text",
        "im2markup's: 1 - sum of distances / sum of the longer lengths.",
        *_one_minus("edit_distance", "longer_length"),
    ),
    Figure(
        "character_edit",
        "Character edit distance",
        "text",
        "UniMERNet's: mean over samples of character distance / longer length, spaces removed.",
        *_share("character_edits"),
        higher_is_better=False,
    ),
    Figure(
        "exact_match",
        "Exact match",
        "text",
        "Share of samples with exactly the target's tokens.",
        *_share("exact"),
        short="Exact",
    ),
    Figure(
        "exact_match_no_spacing",
        "Exact match without spacing",
        "text",
        "The same after \\, \\quad \\hspace{...} and the like are taken out on both sides.",
        *_share("exact_without_spacing"),
    ),
)
_IMAGE: Final = (
    Figure(
        "im2markup_match",
        "Image match, im2markup",
        "image",
        "Deng et al.'s matcher with spaces, bug for bug: blind to anything inserted. Targets that do not "
        "render are left out.",
        *_share("im2markup_match", "target_renders"),
    ),
    Figure(
        "im2markup_match_no_spaces",
        "Image match, im2markup without spaces",
        "image",
        "The same without blank columns: the visual match of the paper and of Deng's 79.88.",
        *_share("im2markup_match_no_spaces", "target_renders"),
    ),
    Figure(
        "im2markup_image_edit",
        "Image edit accuracy, im2markup",
        "image",
        "1 - sum of edit distances between pixel columns / sum of the larger widths.",
        *_one_minus("image_edits", "image_widths"),
    ),
    Figure(
        "tolerant_match",
        "Image match, tolerant",
        "image",
        "Ours: nothing added, nothing missing, and all ink within a pixel of where it should be once blank "
        "columns are left out.",
        *_share("tolerant_match"),
        short="Tolerant",
    ),
    Figure(
        "strict_match",
        "Image match, identical pixels",
        "image",
        "Share of samples whose two renders are equal in every pixel.",
        *_share("strict_match"),
        short="Same pixels",
    ),
    Figure(
        "character_f1",
        "Character detection F1",
        "image",
        "Like UniMERNet's CDM: mean F1 of the symbols found, by identity, order and place.",
        *_share("character_f1"),
        short="F1",
    ),
    Figure(
        "expression_rate",
        "Expression rate",
        "image",
        "Share of samples with every symbol found and none too many (F1 = 1).",
        *_share("expression_right"),
    ),
)
_COMPILE: Final = (
    Figure(
        "compiles_somehow",
        "Compiles: a page appeared",
        "compile",
        "What the field reports: pdflatex made a PDF, whatever errors it skipped.",
        *_share("page_appeared"),
    ),
    Figure(
        "compiles",
        "Compiles without error",
        "compile",
        "pdflatex had nothing to complain about.",
        *_share("compiles"),
        short="Compiles",
    ),
)
FIGURES: Final = (*_TEXT, *_IMAGE, *_COMPILE)
FIGURE_BY_KEY: Final = {figure.key: figure for figure in FIGURES}


def available_figures(columns: Mapping[str, object]) -> list[Figure]:
    """The scores that these counts allow."""
    return [figure for figure in FIGURES if all(column in columns for column in figure.columns)]


def format_score(figure: Figure, score: float) -> str:
    """A score as people write it: shares in per cent, distances as they are."""
    return f"{100 * score:.2f} %" if figure.higher_is_better else f"{score:.4f}"


def format_interval(figure: Figure, interval: Interval) -> str:
    """The range of a score, in the same unit."""
    if figure.higher_is_better:
        return f"{100 * interval.low:.2f} to {100 * interval.high:.2f}"
    return f"{interval.low:.4f} to {interval.high:.4f}"


Array = npt.NDArray[np.float64]

LEVEL: Final = 0.95
ROUNDS: Final = 1000
_BLOCK: Final = 100  # rounds at a time: 5,000 samples make 4 MB of weights


@dataclass(frozen=True)
class Difference:
    """Second system minus first, on the same samples."""

    first: float
    second: float
    interval: Interval
    p_value: float  # of a difference this large if the systems were equally good


def bootstrap_figures(
    columns: Mapping[str, Array], figures: Sequence[Figure], *, rounds: int = ROUNDS, seed: int = 0
) -> dict[str, Interval]:
    """The value and interval of each score."""
    names = sorted({name for figure in figures for name in figure.columns})
    drawn = resampled_sums(_table(columns, names), rounds=rounds, seed=seed)
    total = _sums(columns, names)
    return {
        figure.key: quantiles(
            float(figure.compute(total)), figure.compute(dict(zip(names, drawn.T, strict=True)))
        )
        for figure in figures
    }


def paired_bootstrap(
    first: Mapping[str, Array],
    second: Mapping[str, Array],
    figures: Sequence[Figure],
    *,
    rounds: int = ROUNDS,
    seed: int = 0,
) -> dict[str, Difference]:
    """Compare two systems on the same samples, in the same order (Koehn 2004).

    The p-value is two-sided: how often the difference of a resampling lies as far from the mean of all
    resamplings as the observed one lies from zero, as sacrebleu counts it.
    """
    names = sorted({name for figure in figures for name in figure.columns})
    table = np.concatenate([_table(first, names), _table(second, names)], axis=1)
    drawn = resampled_sums(table, rounds=rounds, seed=seed)
    first_drawn = dict(zip(names, drawn[:, : len(names)].T, strict=True))
    second_drawn = dict(zip(names, drawn[:, len(names) :].T, strict=True))
    results = {}
    for figure in figures:
        values = [float(figure.compute(_sums(columns, names))) for columns in (first, second)]
        differences = figure.compute(second_drawn) - figure.compute(first_drawn)
        observed = values[1] - values[0]
        as_far = np.abs(differences - differences.mean()) >= abs(observed)
        results[figure.key] = Difference(
            first=values[0],
            second=values[1],
            interval=quantiles(observed, differences),
            p_value=float((as_far.sum() + 1) / (rounds + 1)),
        )
    return results


def resampled_sums(table: Array, *, rounds: int, seed: int) -> Array:
    """Sums over ``rounds`` draws of N rows of ``table`` (N, C), with replacement: (rounds, C)."""
    blocks = [weights @ table for weights in _weights(len(table), rounds, np.random.default_rng(seed))]
    sums: Array = np.concatenate(blocks)
    return sums


def _weights(num_samples: int, rounds: int, generator: np.random.Generator) -> Iterator[Array]:
    for start in range(0, rounds, _BLOCK):
        size = min(_BLOCK, rounds - start)
        drawn = generator.integers(num_samples, size=(size, num_samples))
        weights = np.zeros((size, num_samples))
        for row in range(size):
            weights[row] = np.bincount(drawn[row], minlength=num_samples)
        yield weights


def _table(columns: Mapping[str, Array], names: Sequence[str]) -> Array:
    return np.stack([columns[name] for name in names], axis=1)


def _sums(columns: Mapping[str, Array], names: Sequence[str]) -> dict[str, Array]:
    return {name: np.asarray(columns[name].sum()) for name in names}


def quantiles(value: float, drawn: Array) -> Interval:
    """The interval of a score of ``value`` with its values ``drawn`` in resamplings."""
    low, high = np.quantile(drawn, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Interval(value, float(low), float(high))
