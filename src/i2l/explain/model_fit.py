"""What a model is told about itself on validation data: what its confidence means, how boxes are found.

Confidence is fitted on readings of several kinds of pictures, right and wrong ones. Every kind has the same
weight, however many readings it has. First a logistic model weighs the evidence; its weights are at least 0,
as all evidence speaks for a reading. Then the rising line that is nearest to what was seen (scipy's isotonic
regression, over groups of neighbours) maps its score to a share of right readings.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import isotonic_regression, minimize

from i2l.dataset.format import Box, DatasetReader, Split, decode_stored, drawn_zoom
from i2l.dataset.shards import PICTURE_TEXT, style_from_text
from i2l.evaluation.compare import Listener
from i2l.evaluation.visual import compare_images, prepare_formula
from i2l.explain.localization import BoxError, LocalizationSample, ShareFit, fit_localization
from i2l.inference.confidence import (
    Calibration,
    CalibrationError,
    Evidence,
    Kind,
    Scoring,
    expected_calibration_error,
)
from i2l.inference.reader import Reader
from i2l.inference.reading import Reading
from i2l.ink.hand import HAND_PREFIX
from i2l.rendering.rasterize import Pixels
from i2l.rendering.render import render_formulas
from i2l.rendering.styles import PAPER, Style

MIN_SAMPLES: Final = 50
READINGS_PER_GROUP: Final = 20  # readings: fewer say little about a share
FOLDS: Final = 5
READINGS_PER_BIN: Final = 60  # readings in a bin, for the error of one kind
# `total` is a tamer `log_prob`; what is not finished is not right, whatever speaks for it.
WEIGHED_EVIDENCE: Final = tuple(name for name in Evidence._fields if name not in ("log_prob", "finished"))
_RIDGE: Final = 1e-3  # keeps weights finite where the evidence separates right from wrong

_Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Judgement:
    """One reading: what kind of picture it is of, what speaks for it, whether it is right."""

    kind: str
    evidence: Evidence
    right: bool


def fit_confidence(judgements: Sequence[Judgement]) -> Calibration:
    """Fit a calibration.

    The errors it carries are honest: each fifth of the readings is judged by the fit of the others.

    Raises:
        CalibrationError: if there are too few readings.
    """
    if len(judgements) < MIN_SAMPLES:
        raise CalibrationError(
            f"A calibration needs at least {MIN_SAMPLES} readings, and there are {len(judgements)}."
        )
    kinds = np.array([one.kind for one in judgements])
    table = np.array(
        [[getattr(one.evidence, name) for name in WEIGHED_EVIDENCE] for one in judgements], np.float64
    )
    right = np.array([one.right for one in judgements], np.float64)
    names, places, counts = np.unique(kinds, return_inverse=True, return_counts=True)
    weights = (1.0 / counts)[places]
    folds = np.empty(len(right), np.int64)
    for place, count in enumerate(counts):
        folds[places == place] = np.arange(count) % FOLDS
    honest = np.empty(len(right))
    for fold in range(FOLDS):
        fitted, judged = folds != fold, folds == fold
        calibration = _fit(table[fitted], right[fitted], weights[fitted])
        honest[judged] = _confidences(calibration, table[judged])
    whole = _fit(table, right, weights)
    return Calibration(
        whole.given,
        whole.right,
        error=expected_calibration_error(honest, right),
        num_samples=len(right),
        scoring=whole.scoring,
        kinds=tuple(_kind(str(name), honest[kinds == name], right[kinds == name]) for name in names),
    )


def _kind(name: str, honest: _Floats, right: _Floats) -> Kind:
    bins = max(1, len(right) // READINGS_PER_BIN)
    return Kind(name, len(right), float(right.mean()), expected_calibration_error(honest, right, bins=bins))


def _fit(table: _Floats, right: _Floats, weights: _Floats) -> Calibration:
    scoring = _fit_scoring(table, right, weights)
    given, shares = _fit_line(_scores(scoring, table), right, weights)
    return Calibration(given, shares, error=0.0, num_samples=len(right), scoring=scoring)


def _fit_scoring(table: _Floats, right: _Floats, weights: _Floats) -> Scoring:
    """Find the weights of the logistic model, with the evidence brought to mean 0 and deviation 1."""
    weights = weights / weights.sum()
    means = weights @ table
    deviations = np.sqrt(weights @ (table - means) ** 2)
    scales = np.where(deviations > 1e-9, deviations, 1.0)
    standard = np.column_stack([(table - means) / scales, np.ones(len(table))])
    signs = 2 * right - 1

    def loss(values: _Floats) -> tuple[float, _Floats]:
        margins = signs * (standard @ values)
        slopes = -signs * np.exp(-np.logaddexp(0, margins)) * weights
        penalty = values * np.append(np.ones(len(scales)), 1e-3)
        return (
            float(weights @ np.logaddexp(0, -margins) + _RIDGE * values @ penalty / 2),
            standard.T @ slopes + _RIDGE * penalty,
        )

    bounds = [(0.0, None)] * len(scales) + [(None, None)]
    found = minimize(loss, np.zeros(len(bounds)), jac=True, method="L-BFGS-B", bounds=bounds)
    *values, bias = found.x.tolist()
    return Scoring(WEIGHED_EVIDENCE, tuple(means.tolist()), tuple(scales.tolist()), tuple(values), bias)


def _scores(scoring: Scoring, table: _Floats) -> _Floats:
    filled = dict.fromkeys(Evidence._fields, 0.0)
    return np.array(
        [
            scoring(Evidence(**filled | dict(zip(WEIGHED_EVIDENCE, row, strict=True))))
            for row in table.tolist()
        ]
    )


def _confidences(calibration: Calibration, table: _Floats) -> _Floats:
    assert calibration.scoring is not None
    return calibration(_scores(calibration.scoring, table))


def _fit_line(
    scores: _Floats, right: _Floats, weights: _Floats
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return the points of the line: the middles of the steps that groups of neighbours are pooled to."""
    order = np.argsort(scores, kind="stable")
    groups = np.array_split(order, max(1, len(order) // READINGS_PER_GROUP))
    sizes = np.array([weights[group].sum() for group in groups])
    middles = np.array([np.average(scores[group], weights=weights[group]) for group in groups])
    shares = np.array([np.average(right[group], weights=weights[group]) for group in groups])
    pooled = isotonic_regression(shares, weights=sizes)
    steps = list(zip(pooled.blocks[:-1], pooled.blocks[1:], strict=True))
    given = [float(np.average(middles[a:b], weights=sizes[a:b])) for a, b in steps]
    return tuple(given), tuple(float(pooled.x[a]) for a, _ in steps)


_IMAGES_PER_CHUNK: Final = 64  # images that are read, and then drawn, together
_MAX_BOXED: Final = 60  # pictures of a kind that boxes are fitted on: a long one has 20 MB of attention


@dataclass(frozen=True)
class ModelFit:
    """What was found out."""

    calibration: Calibration  # to be stored with the model
    share_right: float  # of the readings
    error_before: float  # expected calibration error of the model's own probabilities
    boxes: ShareFit | None  # None if no dataset has boxes
    left_out: list[str]  # ids of samples that the model cannot read


@dataclass
class _Seen:
    """What has been read so far, of all datasets."""

    judgements: list[Judgement] = field(default_factory=list)
    samples: list[LocalizationSample] = field(default_factory=list)  # those with true boxes
    left_out: list[str] = field(default_factory=list)


def fit_model(
    reader: Reader,
    *,
    data: Sequence[Path],
    split: str,
    limit: int = 0,
    jobs: int | None = None,
    progress: Listener | None = None,
) -> ModelFit:
    """Read a split; fit the confidence, and the share of attention in a box if there are true boxes.

    Pictures are read as those of users are: nobody tells the reader their scale. A reading is right if it
    draws the characters of its target, each in its place: what tokens a picture was made from it cannot tell,
    and nobody who reads it cares.

    Args:
        reader: as it will be used.
        data: datasets, each of one kind of pictures, named after its folder; all kinds count the same.
        split: of them, which the model was not trained on.
        limit: take only the first so many samples of each, if not 0.
        jobs: processes to load images with.
        progress: told how far the work is.

    Raises:
        DatasetError: if there is no such dataset or split.
        CalibrationError: if too few images can be read.
        MissingDependencyError: if pdflatex is not installed.
    """
    seen = _Seen()
    for path, kind in zip(data, _names(data), strict=True):
        _read_kind(reader, DatasetReader(path).split(split), kind, seen, limit, jobs, progress)
    try:
        boxes = fit_localization(seen.samples, field=reader.model.config.receptive_field())
    except BoxError:  # no dataset has any
        boxes = None
    right = [one.right for one in seen.judgements]
    calibration = fit_confidence(seen.judgements)
    return ModelFit(
        calibration=replace(calibration, box_share=boxes.share if boxes else None),
        share_right=float(np.mean(right)),
        error_before=expected_calibration_error(
            [np.exp(one.evidence.log_prob) for one in seen.judgements], right
        ),
        boxes=boxes,
        left_out=seen.left_out,
    )


def _names(data: Sequence[Path]) -> list[str]:
    """Name kinds after their folders; of two with one name the second gets a number."""
    names: list[str] = []
    for path in data:
        name = path.resolve().name
        names.append(name if name not in names else f"{name}-{len(names) + 1}")
    return names


def _read_kind(
    reader: Reader,
    rows: Split,
    kind: str,
    seen: _Seen,
    limit: int,
    jobs: int | None,
    progress: Listener | None,
) -> None:
    """Read the pictures of one dataset, and judge the readings."""
    reader = reader.with_options(check=False)  # what it reads wrong counts, however wrong
    total = min(len(rows), limit or len(rows))
    most_boxed = len(seen.samples) + _MAX_BOXED
    for start in range(0, total, _IMAGES_PER_CHUNK):
        places = range(start, min(start + _IMAGES_PER_CHUNK, total))
        pictures, zoom = _pictures(rows, places, reader.model.limits.dpi / PAPER.dpi, jobs)
        readings = reader.read_many(pictures, errors="return")
        found = {
            place: reading
            for place, reading in zip(places, readings, strict=True)
            if isinstance(reading, Reading)
        }
        seen.left_out += [rows.ids[place] for place in places if place not in found]
        right = _same_pictures(
            [(rows.formulas[place], reading.formula) for place, reading in found.items()],
            [_plain_style(rows.styles[place]) for place in found],
        )
        seen.judgements += [
            Judgement(kind, reading.evidence, same)
            for reading, same in zip(found.values(), right, strict=True)
        ]
        for (place, reading), boxes in zip(found.items(), rows.boxes(list(found)), strict=True):
            if boxes and len(seen.samples) < most_boxed:
                seen.samples.append(
                    _boxed_sample(rows.ids[place], rows.formulas[place], reading, boxes, zoom)
                )
        if progress:
            progress(f"reading {kind}", places.stop, total)


def _pictures(rows: Split, places: range, zoom: float, jobs: int | None) -> tuple[list[Pixels], float]:
    """Return pictures of some samples, and how many times as large as the dataset says they are drawn.

    Handwriting that is stored as strokes is drawn as large as the model reads it: pictures of users show as
    much, and enlarged ones would not.
    """
    stored = rows.stored(np.array(places), np.array(places)) if zoom > 1 else []
    zoom = min((drawn_zoom(samples, zoom) for samples in stored), default=1.0)
    if zoom == 1:
        return rows.pixels(places, jobs=jobs), 1.0
    found: dict[int, Pixels] = {}
    for samples in stored:
        images = map(np.asarray, decode_stored(samples, zoom=zoom))
        found |= zip(samples.offsets.tolist(), images, strict=True)
    return [found[place] for place in places], zoom


def _boxed_sample(
    name: str, formula: str, reading: Reading, boxes: Sequence[Box | None], zoom: float
) -> LocalizationSample:
    """Bring the true boxes of a picture, drawn with a zoom, to what the model saw of it."""
    moved: list[Box | None] = []
    for box in boxes:
        if box is None:
            moved.append(None)
            continue
        drawn = box[0] * zoom, box[1] * zoom, box[2] * zoom, box[3] * zoom
        left, top, right, bottom = (round(value) for value in reading.prepared.from_file(drawn))
        moved.append((left, top, max(right, left + 1), max(bottom, top + 1)))
    return LocalizationSample(
        name, reading.prepared.pixels, formula.split(), moved, reading.tokens, reading.attention
    )


def _plain_style(text: str) -> Style | None:
    """Return the font and size of a sample that TeX drew, from how its style is stored; else None."""
    if text == PICTURE_TEXT or text.startswith(HAND_PREFIX):
        return None
    style = style_from_text(text)
    what_tex_does = {name: getattr(style, name) for name in ("font", "size_pt", "display", "bold")}
    return Style(**what_tex_does, dpi=style.dpi)


def _same_pictures(pairs: list[tuple[str, str]], styles: Sequence[Style | None]) -> list[bool]:
    """Tell which readings draw what their target draws.

    Both are drawn in Computer Modern, where signs differ that another font draws alike, as Times does two
    epsilons. What differs there is drawn in the font of the picture too, and is right if it is the same.
    """
    differing = sorted({pair for pair in pairs if pair[0] != pair[1]})
    compared = compare_images(
        [
            (prepare_formula(target, canonical=True), prepare_formula(reading, canonical=True))
            for target, reading in differing
        ]
    )
    same = {
        pair: bool(sample.counts["expression_right"])
        for pair, sample in zip(differing, compared, strict=True)
    }
    right = [same.get(pair, True) for pair in pairs]
    doubted = [
        (place, pair, style)
        for place, (pair, style) in enumerate(zip(pairs, styles, strict=True))
        if not right[place] and style is not None
    ]
    renders = [
        render_formulas(
            [prepare_formula(pair[side], canonical=True).latex for _, pair, _ in doubted],
            style=[style for _, _, style in doubted],
        )
        for side in (0, 1)
    ]
    for (place, _, _), target, reading in zip(doubted, *renders, strict=True):
        if target.pixels is not None and reading.pixels is not None:
            right[place] = np.array_equal(target.pixels, reading.pixels)
    return right
