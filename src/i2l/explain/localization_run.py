"""Localisation of a model on a dataset: readings replayed for their attention, measured, written down."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Final

import numpy as np
from markupsafe import Markup

from i2l.dataset.format import DatasetReader, Split
from i2l.dataset.model_view import PreparedSplit, open_split
from i2l.evaluation.compare import Listener
from i2l.evaluation.read_samples import BatchReader
from i2l.explain.attention import AttentionClaims, measure_claims
from i2l.explain.explanation import replay_tokens
from i2l.explain.localization import (
    BoxError,
    LocalizationError,
    LocalizationResult,
    LocalizationSample,
    ShareFit,
    evaluate_localization,
    fit_localization,
)
from i2l.explain.localization_report import localization_section
from i2l.files import atomic_write
from i2l.images.ink import InkMask as Ink
from i2l.images.prepare import FRAME_PX, place_on_canvas
from i2l.inference.boxes import find_ink
from i2l.inference.model_folder import LoadedModel
from i2l.model.config import ReceptiveField

VALIDATION: Final = "val"
_NUM_FITTED: Final = 500  # samples that the share of attention is fitted on
_NUM_GALLERY: Final = 200  # samples that the gallery is chosen from
_IMAGES_PER_BATCH: Final = 32  # images of about one size, replayed together


@dataclass(frozen=True)
class LocalizationReport:
    """Everything that was found out about where a model looks."""

    result: LocalizationResult
    claims: AttentionClaims
    fit: ShareFit | None
    section: Markup


def require_boxes(data: Path, split: str) -> None:
    """Refuse a dataset without boxes, before anything is read.

    Raises:
        LocalizationError: if no sample of the split has boxes.
    """
    rows = DatasetReader(data).split(split)
    if not any(rows.boxes(range(len(rows)))):
        raise LocalizationError(f"{data} has no boxes of tokens; build it again with --boxes.")


def localize_model(
    reader: BatchReader,
    *,
    data: Path,
    split: str,
    readings: Sequence[str],
    rounds: int,
    jobs: int | None = None,
    progress: Listener | None = None,
) -> LocalizationReport:
    """Measure where a model looks on the first samples of a split, as many as there are readings.

    The share of attention that a box holds is fitted on another split: validation, or training where
    validation itself is measured.

    Args:
        reader: the model.
        data: a dataset with boxes.
        split: of the dataset.
        readings: what the model read of them, in canonical tokens; nothing, and last, of those left out.
        rounds: of resampling, for the intervals.
        jobs: processes to load images with.
        progress: told how far the work is.

    Raises:
        LocalizationError: if no token was read right and has a true box.
    """
    dataset = DatasetReader(data)
    model, field = reader.model, reader.model.config.receptive_field()
    canvas_shape = model.config.canvas_shape
    fitted_on = "train" if split == VALIDATION else VALIDATION
    others: Iterator[LocalizationSample] = iter(())
    if fitted_on in dataset.splits:
        rows = open_split(
            dataset, fitted_on, canvas_shape=canvas_shape, dpi=model.limits.dpi, limit=_NUM_FITTED, jobs=jobs
        )
        indices = range(min(len(rows), _NUM_FITTED))
        fit_readings = reader.read(rows.pixels(indices, jobs=jobs))
        others = replay_split(model, rows, fit_readings, jobs=jobs)
    rows = open_split(
        dataset, split, canvas_shape=canvas_shape, dpi=model.limits.dpi, limit=len(readings), jobs=jobs
    )
    readings = readings[: len(readings) - len(rows.left_out)]  # those of what was left out come last
    samples = replay_split(model, rows, readings, jobs=jobs, progress=progress)
    return report_localization(samples, field=field, validation=others, share=model.box_share, rounds=rounds)


def replay_split(
    model: LoadedModel,
    rows: Split | PreparedSplit,
    readings: Sequence[str],
    *,
    jobs: int | None = None,
    progress: Listener | None = None,
) -> Iterator[LocalizationSample]:
    """Yield the first samples of a split with the attention of what was read, in batches of alike sizes.

    An image that is too large for the canvas, that has no boxes, or of which nothing was read is left out.
    """
    canvas_shape = model.config.canvas_shape
    boxes = rows.boxes(range(len(readings)))
    room = np.array(canvas_shape) - 2 * FRAME_PX
    places = [
        place
        for place, reading in enumerate(readings)
        if boxes[place] and reading and (rows.sizes[place] <= room).all()
    ]
    places.sort(key=lambda place: tuple(rows.sizes[place][::-1]))
    for start in range(0, len(places), _IMAGES_PER_BATCH):
        batch = places[start : start + _IMAGES_PER_BATCH]
        images = rows.pixels(batch, jobs=jobs)
        tokens = [readings[place].split() for place in batch]
        replays = replay_tokens(
            model.backend,
            place_on_canvas(images, canvas_shape=canvas_shape),
            [model.vocabulary.encode(reading) for reading in tokens],
        )
        for place, image, reading, replay in zip(batch, images, tokens, replays, strict=True):
            yield LocalizationSample(
                name=rows.ids[place],
                pixels=image,
                target=rows.formulas[place].split(),
                boxes=boxes[place] or [],
                prediction=reading,
                attention=replay.attention,
            )
        if progress:
            progress("localising", start + len(batch), len(places))


def report_localization(
    samples: Iterable[LocalizationSample],
    *,
    field: ReceptiveField,
    validation: Iterable[LocalizationSample] = (),
    share: float,
    rounds: int,
) -> LocalizationReport:
    """Measure where a model looks.

    Args:
        samples: what it read.
        field: of the model.
        validation: other samples, to fit the share of attention that a box holds.
        share: what to take without any.
        rounds: of resampling, for the intervals.

    Raises:
        LocalizationError: if no token was read right and has a true box.
    """
    try:
        fit = fit_localization(list(validation), field=field)
    except BoxError:  # nothing to fit on
        fit = None
    given = list(samples)
    result = evaluate_localization(given, field=field, share=fit.share if fit else share, rounds=rounds)
    claims = measure_claims((sample.attention, inked_cells(sample, field)) for sample in given)
    gallery = list(islice(given, _NUM_GALLERY))
    section = localization_section(result, claims, field=field, fit=fit, gallery=gallery)
    return LocalizationReport(result, claims, fit, section)


def inked_cells(sample: LocalizationSample, field: ReceptiveField) -> Ink:
    """Tell which cells have ink in their core, (rows, columns)."""
    ink = find_ink(place_on_canvas([sample.pixels], canvas_shape=field.canvas_shape)[0])
    frame = field.rows.core_start_px, field.columns.core_start_px
    rows, columns = field.grid
    cores = ink[
        frame[0] : frame[0] + rows * field.rows.stride_px,
        frame[1] : frame[1] + columns * field.columns.stride_px,
    ]
    return np.asarray(
        cores.reshape(rows, field.rows.stride_px, columns, field.columns.stride_px).any(axis=(1, 3))
    )


def save_localization(report: LocalizationReport, path: Path, *, source: Mapping[str, Any]) -> None:
    """Write all figures as JSON, with what they were measured on."""
    content = {
        "source": source,
        "localization": asdict(report.result),
        "attention": asdict(report.claims),
        "fit": asdict(report.fit) if report.fit else None,
    }
    with atomic_write(path) as file:
        json.dump(content, file, ensure_ascii=False, indent=1)
        file.write("\n")
