"""The scores by name: what each means, which counts it is made of, and its value from their sums.

A score is a function of sums over samples, so the same line gives its value for all samples, for a subset,
and for a thousand resamplings at once.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
import numpy.typing as npt

from i2l.evaluation.text_metrics import MAX_ORDER

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
