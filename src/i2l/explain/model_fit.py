"""What a model is told about itself on validation data: what its confidence means, how boxes are found."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

import numpy as np

from i2l.dataset.format import Box, DatasetReader, Split
from i2l.evaluation.prepare import prepare_formula
from i2l.evaluation.run import Progress
from i2l.evaluation.visual import compare_images
from i2l.explain.box_fit import BoxError, ShareFit
from i2l.explain.confidence_fit import Judgement, fit_confidence
from i2l.explain.localization import fit_localization
from i2l.explain.localized_tokens import LocalizationSample
from i2l.inference.calibration import Calibration, expected_calibration_error
from i2l.inference.reader import Reader
from i2l.inference.reading import Reading
from i2l.model.receptive_field import receptive_field

_CHUNK: Final = 64  # images that are read, and then drawn, together
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
    progress: Progress | None = None,
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
        boxes = fit_localization(seen.samples, field=receptive_field(reader.model.config))
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
    progress: Progress | None,
) -> None:
    """Read the pictures of one dataset, and judge the readings."""
    reader = reader.with_options(check=False)  # what it reads wrong counts, however wrong
    total = min(len(rows), limit or len(rows))
    most_boxed = len(seen.samples) + _MAX_BOXED
    for start in range(0, total, _CHUNK):
        places = range(start, min(start + _CHUNK, total))
        readings = reader.read_many(rows.pixels(places, jobs=jobs), errors="return")
        found = {
            place: reading
            for place, reading in zip(places, readings, strict=True)
            if isinstance(reading, Reading)
        }
        seen.left_out += [rows.ids[place] for place in places if place not in found]
        right = _same_pictures([(rows.formulas[place], reading.formula) for place, reading in found.items()])
        seen.judgements += [
            Judgement(kind, reading.evidence, same)
            for reading, same in zip(found.values(), right, strict=True)
        ]
        for (place, reading), boxes in zip(found.items(), rows.boxes(list(found)), strict=True):
            if boxes and len(seen.samples) < most_boxed:
                seen.samples.append(_boxed_sample(rows.ids[place], rows.formulas[place], reading, boxes))
        if progress:
            progress(f"reading {kind}", places.stop, total)


def _boxed_sample(
    name: str, formula: str, reading: Reading, boxes: Sequence[Box | None]
) -> LocalizationSample:
    """Bring the true boxes of a picture to what the model saw of it."""
    moved: list[Box | None] = []
    for box in boxes:
        if box is None:
            moved.append(None)
            continue
        left, top, right, bottom = (round(value) for value in reading.prepared.from_file(box))
        moved.append((left, top, max(right, left + 1), max(bottom, top + 1)))
    return LocalizationSample(
        name, reading.prepared.pixels, formula.split(), moved, reading.tokens, reading.attention
    )


def _same_pictures(pairs: list[tuple[str, str]]) -> list[bool]:
    """Tell which readings draw what their target draws."""
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
    return [same.get(pair, True) for pair in pairs]
