"""Localisation for people: a section of the evaluation's report, and a table for the terminal.

The section has tables, charts, and a gallery of true boxes and of boxes found from attention.
"""

import base64
import io
from collections.abc import Sequence
from typing import Final

from markupsafe import Markup
from PIL import Image
from rich.console import Console
from rich.table import Table

from i2l.evaluation.scores import Interval
from i2l.explain.attention import NUM_PHASES, AttentionClaims, Placement
from i2l.explain.localization import (
    METRICS,
    LocalizationResult,
    LocalizationSample,
    LocalizationScores,
    ShareFit,
    format_metric,
    localized_tokens,
)
from i2l.html import fill_template, interval_chart, line_chart
from i2l.inference.boxes import attention_boxes
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
            f"{claims.around_peak:.1%} of attention lie within one cell of the peak",
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
            f"{claims.empty_eos:.1%} at eos, {claims.empty_between:.1%} at the others",
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
