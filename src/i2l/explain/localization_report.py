"""Localisation of a model on a dataset: measured, written down, and shown to people.

The section has tables, charts, and a gallery of true boxes and of boxes found from attention.

Readings are replayed for their attention. People get a table on the terminal and a section of the report.
"""

import base64
import io
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Final

import numpy as np
from markupsafe import Markup
from PIL import Image
from rich.console import Console
from rich.table import Table

from i2l.dataset.format import DatasetReader, Split
from i2l.dataset.model_view import PreparedSplit, open_split
from i2l.evaluation.compare import Listener
from i2l.evaluation.judge import BatchReader
from i2l.evaluation.scores import Interval
from i2l.explain.attention import NUM_PHASES, AttentionClaims, Placement, measure_claims
from i2l.explain.explanation import replay_tokens
from i2l.explain.localization import (
    METRICS,
    BoxError,
    LocalizationError,
    LocalizationResult,
    LocalizationSample,
    LocalizationScores,
    ShareFit,
    evaluate_localization,
    fit_localization,
    format_metric,
    localized_tokens,
)
from i2l.files import atomic_write
from i2l.html import fill_template, interval_chart, line_chart
from i2l.images.ink import InkMask as Ink
from i2l.images.prepare import FRAME_PX, place_on_canvas
from i2l.inference.boxes import attention_boxes, find_ink
from i2l.inference.model_folder import LoadedModel
from i2l.model.config import ReceptiveField

_TRUE: Final = Markup('fill="none" stroke="#15803d" stroke-width="1.4" stroke-dasharray="4 2"')
_FOUND: Final = Markup('fill="#f06e14" fill-opacity=".10" stroke="#c2410c" stroke-width="1"')
_NUM_SHOWN: Final = 4  # samples of each kind in the gallery
_LINES: Final = ("cell_pointing", "pointing", "ink_share", "iou")


def localization_section(
    result: LocalizationResult,
    claims: AttentionClaims,
    *,
    field: ReceptiveField,
    fit: ShareFit | None = None,
    gallery: Sequence[LocalizationSample] = (),
) -> Markup:
    """Write the section as HTML, in the style of the evaluation's report.

    Args:
        result: of `evaluate_localization`.
        claims: of the same readings.
        field: of the model.
        fit: how the share of attention in a box was chosen, if it was.
        gallery: samples to choose from for the gallery.
    """
    charts = [_class_chart("By kind of token: mean IoU", result, "iou")]
    charts.append(_class_chart("By kind of token: the peak's cell touches the box", result, "cell_pointing"))
    charts.append(("By the box's longer side", _curve(result.by_size, "size of the symbol")))
    charts.append(("By place in the formula", _curve(result.by_position, "place of the token")))
    if fit is not None:
        charts.append(_fit_chart(fit))
    charts.append(("Entropy of attention", _entropy(claims)))
    return fill_template(
        "i2l.explain",
        "localization.html",
        result=result,
        claims=claims,
        systems=[scores.label for scores in result.systems],
        metrics=[
            (label, [_formatted(key, scores.figures[key]) for scores in result.systems])
            for key, label in METRICS.items()
        ],
        charts=charts,
        claim_rows=_claim_rows(claims),
        gallery=_gallery(gallery, result, field),
    )


def _formatted(key: str, interval: Interval) -> tuple[str, ...]:
    return tuple(format_metric(key, value) for value in (interval.value, interval.low, interval.high))


def _class_chart(title: str, result: LocalizationResult, key: str) -> tuple[str, Markup]:
    return title, interval_chart(
        [(part.label, part.num_tokens, part.figures[key]) for part in result.by_class]
    )


def _curve(parts: Sequence[LocalizationScores], caption: str) -> Markup:
    lines = [(METRICS[key], [part.figures[key] for part in parts]) for key in _LINES]
    return line_chart([part.label for part in parts], lines, caption=caption)


def _fit_chart(fit: ShareFit) -> tuple[str, Markup]:
    shares = list(fit.curve)[::3]
    points = [Interval(fit.curve[share], fit.curve[share], fit.curve[share]) for share in shares]
    title = f"Share of attention in a box, fitted on validation: {fit.share:.0%}"
    labels = [f"{share:.0%}" for share in shares]
    return title, line_chart(labels, [("Mean IoU", points)], caption="share")


def _entropy(claims: AttentionClaims) -> Markup:
    shares = [bits / claims.max_entropy_bits for bits in claims.entropy_bits]
    labels = [f"{(phase + 1) / NUM_PHASES:.0%}" for phase in range(NUM_PHASES)]
    points = [Interval(share, share, share) for share in shares]
    caption = f"part of the reading; 100 % is {claims.max_entropy_bits:.1f} bits, all cells alike"
    return line_chart(labels, [("Entropy", points)], caption=caption)


def _claim_rows(claims: AttentionClaims) -> list[tuple[str, str]]:
    """Return each claim of the paper about attention, and what was measured."""
    counts = ", ".join(f"{label}: {share:.0%}" for label, share in claims.cell_counts.items())
    return [
        (
            "Most of the weight is on 1 to 4 cells",
            f"{claims.share_up_to_four:.1%} of the steps have 90 % of attention on up to 4 cells; on average "
            f"on {claims.mean_cells:.1f}, median {claims.median_cells:.0f} ({counts})",
        ),
        (
            "... around the mode",
            f"{claims.around_peak:.1%} of attention lie within one cell of the peak; at "
            f"{claims.one_place:.1%} of the steps no cell farther off has a tenth of it",
        ),
        (
            "It scans left to right",
            f"{claims.right:.1%} of the moves go right, {claims.left:.1%} left, {claims.still:.1%} stay; "
            f"order and place correlate by {claims.order_correlation:.3f} (Spearman)",
        ),
        (
            "... and up and down",
            f"of those that stay, {claims.up:.1%} go up and {claims.down:.1%} down by more than half a cell",
        ),
        (
            "It looks at empty margins only at the first and last step",
            f"on cells without ink: {claims.empty_first:.1%} of attention at the first step, "
            f"{claims.empty_eos:.1%} at eos, {claims.empty_between:.1%} at the others; on those beyond the "
            f"outermost ink: {claims.margin_first:.1%}, {claims.margin_eos:.1%}, {claims.margin_between:.1%}",
        ),
        (
            "ASE_N, how unevenly cells are looked at: STRIPS 5.0 to 5.4, NOPOOL 4.6 to 4.7",
            f"{claims.ase:.2f}; AAE_N {claims.aae:.2f}",
        ),
    ]


def _gallery(
    gallery: Sequence[LocalizationSample], result: LocalizationResult, field: ReceptiveField
) -> dict[str, list[tuple[str, float, Markup]]]:
    """Choose samples of low, middle and high IoU: name, mean IoU and drawing of each."""
    ranked = sorted(
        (sample for sample in gallery if sample.name in result.sample_iou),
        key=lambda sample: result.sample_iou[sample.name],
    )
    if not ranked:
        return {}
    middle = max((len(ranked) - _NUM_SHOWN) // 2, 0)
    groups = {
        "Lowest IoU": ranked[:_NUM_SHOWN],
        "In the middle": ranked[middle : middle + _NUM_SHOWN],
        "Highest IoU": ranked[-_NUM_SHOWN:],
    }
    return {
        title: [
            (sample.name, result.sample_iou[sample.name], _picture(sample, field, result.share))
            for sample in samples
        ]
        for title, samples in groups.items()
    }


def _picture(sample: LocalizationSample, field: ReceptiveField, share: float) -> Markup:
    """Draw a sample with the true boxes of its tokens, and those found from attention."""
    counted = localized_tokens(sample, canvas_shape=field.canvas_shape)
    placement = Placement.centred(sample.pixels.shape, canvas_shape=field.canvas_shape)
    found = attention_boxes(counted.attention, field=field, ink=counted.ink, share=share)
    buffer = io.BytesIO()
    Image.fromarray(sample.pixels).save(buffer, "webp", quality=70)
    height, width = sample.pixels.shape
    url = f"data:image/webp;base64,{base64.b64encode(buffer.getvalue()).decode()}"
    outline = Markup('<rect x="{:g}" y="{:g}" width="{:g}" height="{:g}" {}><title>{}</title></rect>')
    boxes = []
    for token, true, box in zip(counted.tokens, counted.boxes.tolist(), found, strict=True):
        for corners, style in ((true, _TRUE), (box, _FOUND)):
            if corners is not None:
                left, top, right, bottom = placement.to_image(tuple(corners))
                boxes.append(outline.format(left, top, right - left, bottom - top, style, token))
    drawing = Markup(
        '<svg xmlns="http://www.w3.org/2000/svg" role="img" viewBox="-2 -2 {} {}" width="{:g}">'
        '<image href="{}" width="{}" height="{}"/>{}</svg>'
    )
    return drawing.format(width + 4, height + 4, 1.5 * width, url, width, height, Markup("").join(boxes))


def print_localization(result: LocalizationResult, console: Console) -> None:
    """Print the model's scores with the baselines beside them."""
    title = f"Where it looked: {result.num_tokens:,} tokens of {result.num_samples:,} samples"
    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    table.add_column("")
    for number, scores in enumerate(result.systems):
        table.add_column(scores.label, justify="right", style="dim" if number else "bold")
    for key, label in METRICS.items():
        table.add_row(label, *(format_metric(key, scores.figures[key].value) for scores in result.systems))
    console.print()
    console.print(table)


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
    claims = measure_claims(
        ((sample.attention, inked_cells(sample, field)) for sample in given), rounds=rounds
    )
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
