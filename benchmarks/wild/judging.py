"""Pictures with their formulas are read and judged: what every part of the benchmark has in common."""

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from math import sqrt
from typing import Any, Final

import numpy as np

from i2l.errors import I2LError
from i2l.evaluation.scores import ROUNDS, Interval, quantiles, resampled_sums
from i2l.evaluation.visual import compare_images, prepare_formula
from i2l.images.open import ImageSource
from i2l.inference.reader import Reader
from i2l.inference.reading import Reading
from i2l.rendering.render import render_formulas
from i2l.rendering.styles import Style

_TOGETHER: Final = 120  # pictures: enough for a batch, few enough to see that it goes on
_Z: Final = 1.959964  # of the normal distribution, for 95 %


@dataclass(frozen=True)
class Sample:
    """A picture and what it shows."""

    group: str  # the row of the table that it counts in
    name: str
    image: ImageSource
    reference: str
    style: Style | None = None  # that we drew it in; None if others drew it


@dataclass(frozen=True)
class Judged:
    """How one sample was read."""

    group: str
    name: str
    reference: str
    reading: str  # canonical tokens; empty if the reader refused the picture
    right: bool  # the reading draws every symbol in its place, and none too many
    f1: float  # of its symbols
    confidence: float
    error: str = ""  # why the reader refused the picture
    own_font: bool = False  # right only because it draws the very same picture in the picture's own font


@dataclass(frozen=True)
class Row:
    """One row of a table."""

    label: str
    samples: int
    figures: dict[str, Interval]
    notes: str = ""


def balanced(count: int, conditions: int, *, limit: int | None = None) -> Iterable[tuple[int, int]]:
    """Give pairs of a formula and a condition, every pair once, so that any first part is balanced.

    Each round shows every formula once, and moves on to the next condition.
    """
    pairs = ((number, (number + turn) % conditions) for turn in range(conditions) for number in range(count))
    return islice(pairs, limit)


def read_samples(reader: Reader, samples: Sequence[Sample], *, part: str) -> list[Reading | I2LError]:
    """Read every picture; what the reader refuses is an error in the place of its reading."""
    readings: list[Reading | I2LError] = []
    for start in range(0, len(samples), _TOGETHER):
        batch = samples[start : start + _TOGETHER]
        readings += reader.read_many([sample.image for sample in batch], errors="return")
        show_progress(f"{part}: {len(readings)} of {len(samples)} read")
    return readings


def judge(samples: Sequence[Sample], readings: Sequence[Reading | I2LError]) -> list[Judged]:
    """Compare what was read with what is there, by the pictures that both draw."""
    texts = ["" if isinstance(reading, I2LError) else reading.formula for reading in readings]
    return [
        replace(one, error=str(reading))
        if isinstance(reading, I2LError)
        else replace(one, confidence=reading.confidence)
        for one, reading in zip(judge_texts(samples, texts), readings, strict=True)
    ]


def judge_texts(samples: Sequence[Sample], texts: Sequence[str]) -> list[Judged]:
    """Judge formulas of which nothing is known but their text.

    Both sides are drawn in Computer Modern, where signs differ that another font draws alike: Times has one
    shape for two epsilons. So a reading that is wrong there is drawn in the style of the picture too, and is
    right if that is the picture to the pixel.
    """
    judged: list[Judged] = []
    for start in range(0, len(samples), 10 * _TOGETHER):
        part = list(zip(samples, texts, strict=True))[start : start + 10 * _TOGETHER]
        pairs = [
            (prepare_formula(sample.reference, canonical=True), prepare_formula(text, canonical=True))
            for sample, text in part
        ]
        for (sample, text), visual in zip(part, compare_images(pairs), strict=True):
            right, f1 = bool(visual.counts["expression_right"]), visual.counts["character_f1"]
            judged.append(
                Judged(sample.group, sample.name, sample.reference, text, right, f1, confidence=0.0)
            )
    doubted = [
        (number, sample.style)
        for number, (one, sample) in enumerate(zip(judged, samples, strict=True))
        if sample.style is not None and not one.right and one.reading
    ]
    formulas = [prepare_formula(judged[number].reading, canonical=True).latex for number, _ in doubted]
    renders = render_formulas(formulas, style=[style for _, style in doubted])
    for (number, _), render in zip(doubted, renders, strict=True):
        if render.pixels is not None and np.array_equal(render.pixels, np.asarray(samples[number].image)):
            judged[number] = replace(judged[number], right=True, own_font=True)
    return judged


def rows(judged: Sequence[Judged], groups: Sequence[str] | None = None) -> list[Row]:
    """Give expression rate and character F1 of each group, in the order given, or that they come in."""
    found = []
    for group in groups or list(dict.fromkeys(one.group for one in judged)):
        members = [one for one in judged if one.group == group]
        if members:
            found.append(summarize(group, members))
    return found


def summarize(label: str, members: Sequence[Judged]) -> Row:
    """Give expression rate and character F1 of some samples."""
    figures = {
        "expression_rate": wilson(sum(one.right for one in members), len(members)),
        "character_f1": mean_interval([one.f1 for one in members]),
    }
    counts = {
        "refused": sum(bool(one.error) for one in members),
        "right in their own font alone": sum(one.own_font for one in members),
    }
    notes = ", ".join(f"{count} {what}" for what, count in counts.items() if count)
    return Row(label, len(members), figures, notes)


def wilson(hits: int, count: int) -> Interval:
    """Give a share with its 95 % interval by Wilson, which keeps its sense near 0 and 1."""
    if not count:
        return Interval(0.0, 0.0, 1.0)
    share, squared = hits / count, _Z**2 / count
    middle = (share + squared / 2) / (1 + squared)
    half = _Z * sqrt(share * (1 - share) / count + squared / (4 * count)) / (1 + squared)
    return Interval(share, max(0.0, middle - half), min(1.0, middle + half))


def mean_interval(values: Sequence[float], weights: Sequence[float] | None = None) -> Interval:
    """Give a mean with its 95 % interval, from resampling.

    Args:
        values: of the samples, or sums over what each sample holds.
        weights: how many each sum is over; 1 if None.
    """
    table = np.array([values, weights or [1.0] * len(values)], np.float64).T
    table = table[table[:, 1] > 0]
    if not len(table):
        return Interval(0.0, 0.0, 1.0)
    drawn = resampled_sums(table, rounds=ROUNDS, seed=0)
    return quantiles(float(table[:, 0].sum() / table[:, 1].sum()), drawn[:, 0] / drawn[:, 1])


def row_as_json(row: Row) -> dict[str, Any]:
    """Give a row as plain values."""
    figures = {
        key: {"value": found.value, "low": found.low, "high": found.high}
        for key, found in row.figures.items()
    }
    return {"label": row.label, "samples": row.samples, "figures": figures, "notes": row.notes}


def show_progress(text: str) -> None:
    """Say on standard error how far the work has come."""
    print(text, file=sys.stderr, flush=True)
