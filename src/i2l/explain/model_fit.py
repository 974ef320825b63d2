"""What a model is told about itself on a validation split: what its confidence means, how boxes are found."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np

from i2l.dataset.format import DatasetReader
from i2l.dataset.prepared import open_split
from i2l.evaluation.prepare import prepare_formula
from i2l.evaluation.run import Progress
from i2l.evaluation.visual import compare_images
from i2l.explain.box_fit import BoxError, ShareFit
from i2l.explain.localization import fit_localization
from i2l.explain.localized_tokens import LocalizationSample
from i2l.inference.calibration import Calibration, expected_calibration_error, fit_calibration
from i2l.inference.reader import Reader
from i2l.inference.reading import Reading
from i2l.model.receptive_field import receptive_field

_CHUNK: Final = 64  # images that are read, and then drawn, together


@dataclass(frozen=True)
class ModelFit:
    """What was found out."""

    calibration: Calibration  # to be stored with the model
    share_right: float  # of the readings
    error_before: float  # expected calibration error of the model's own probabilities
    boxes: ShareFit | None  # None if the dataset has no boxes
    left_out: list[str]  # ids of samples that the model cannot read


def fit_model(
    reader: Reader,
    *,
    data: Path,
    split: str,
    limit: int = 0,
    jobs: int | None = None,
    progress: Progress | None = None,
) -> ModelFit:
    """Read a split; fit the confidence, and the share of attention in a box if there are true boxes.

    A reading is right if it draws the picture of its target: what tokens a picture was made from it cannot
    tell, and nobody who reads it cares.

    Args:
        reader: as it will be used.
        data: a dataset; what is not in the paper's style is brought to the model's scale.
        split: of it, which the model was not trained on.
        limit: take only the first so many samples, if not 0.
        jobs: processes to load images with.
        progress: told how far the work is.

    Raises:
        DatasetError: if there is no such dataset or split.
        CalibrationError: if too few images can be read.
        MissingDependencyError: if pdflatex is not installed.
    """
    canvas_shape = reader.model.config.canvas_shape
    reader = reader.with_options(check=False)  # what it reads wrong counts, however wrong
    rows = open_split(DatasetReader(data), split, canvas_shape=canvas_shape, limit=limit, jobs=jobs)
    left_out = list(rows.left_out)
    total = min(len(rows), limit or len(rows))
    given: list[float] = []
    right: list[bool] = []
    samples: list[LocalizationSample] = []
    for start in range(0, total, _CHUNK):
        places = range(start, min(start + _CHUNK, total))
        images = rows.pixels(places, jobs=jobs)
        readings = reader.read_many(images, scale=1, errors="return")
        found = {
            place: (image, reading)
            for place, image, reading in zip(places, images, readings, strict=True)
            if isinstance(reading, Reading)
        }
        left_out += [rows.ids[place] for place in places if place not in found]
        given += [float(np.exp(reading.log_prob)) for _, reading in found.values()]
        right += _same_pictures([(rows.formulas[place], found[place][1].formula) for place in found])
        for (place, (image, reading)), boxes in zip(found.items(), rows.boxes(list(found)), strict=True):
            if boxes:
                target = rows.formulas[place].split()
                samples.append(
                    LocalizationSample(
                        rows.ids[place], image, target, boxes, reading.tokens, reading.attention
                    )
                )
        if progress:
            progress("reading", places.stop, total)
    try:
        fit = fit_localization(samples, field=receptive_field(reader.model.config))
    except BoxError:  # the dataset has none
        fit = None
    return ModelFit(
        calibration=replace(fit_calibration(given, right), box_share=fit.share if fit else None),
        share_right=float(np.mean(right)),
        error_before=expected_calibration_error(given, right),
        boxes=fit,
        left_out=left_out,
    )


def _same_pictures(pairs: list[tuple[str, str]]) -> list[bool]:
    """Tell which readings draw what their target draws."""
    differing = sorted({pair for pair in pairs if pair[0] != pair[1]})
    compared = compare_images(
        [
            (prepare_formula(target, canonical=False), prepare_formula(reading, canonical=False))
            for target, reading in differing
        ]
    )
    same = {
        pair: bool(sample.counts["tolerant_match"]) for pair, sample in zip(differing, compared, strict=True)
    }
    return [same.get(pair, True) for pair in pairs]
