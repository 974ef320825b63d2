"""Localisation for people: tables, charts and a gallery of true and found boxes, as a section of a report.

Localisation as a table for the terminal.
"""

import base64
import io
from collections.abc import Sequence
from html import escape
from typing import Final

from PIL import Image
from rich.console import Console
from rich.table import Table

from i2l.evaluation.report import interval_chart, line_chart
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
from i2l.inference.boxes import attention_boxes
from i2l.model.config import ReceptiveField

_NUM_SHOWN: Final = 4  # samples of each kind in the gallery
_LINES: Final = ("cell_pointing", "pointing", "ink_share", "iou")


def localization_section(
    result: LocalizationResult,
    claims: AttentionClaims,
    *,
    field: ReceptiveField,
    fit: ShareFit | None = None,
    gallery: Sequence[LocalizationSample] = (),
) -> str:
    """Give the section as HTML, in the style of the evaluation's report.

    Args:
        result: of `evaluate_localization`.
        claims: of the same readings.
        field: of the model.
        fit: how the share of attention in a box was chosen, if it was.
        gallery: samples to choose from for the gallery.
    """
    parts = [
        '<h2 id="localization">Where it looked</h2>',
        f"<p>{result.num_tokens:,} visible tokens that were read right, of {result.num_samples:,} samples, "
        f"against their true boxes. A box from attention is that of a symbol where {result.share:.0%} of "
        "attention lie. Beside the model: a look at any cell with ink, at all cells alike, and a steady scan."
        "</p>",
        _systems(result.systems),
        '<div class="grid2">',
        _chart(
            "By kind of token: mean IoU",
            interval_chart([(part.label, part.num_tokens, part.figures["iou"]) for part in result.by_class]),
        ),
        _chart(
            "By kind of token: the peak's cell touches the box",
            interval_chart(
                [(part.label, part.num_tokens, part.figures["cell_pointing"]) for part in result.by_class]
            ),
        ),
        _chart("By the box's longer side", _curve(result.by_size, "size of the symbol")),
        _chart("By place in the formula", _curve(result.by_position, "place of the token")),
        _fit_chart(fit) if fit else "",
        _chart("Entropy of attention", _entropy(claims)),
        "</div>",
        "<h2>What the paper says about attention</h2>",
        _claims(claims),
        _gallery(gallery, result, field),
    ]
    return "\n".join(part for part in parts if part)


def _systems(systems: Sequence[LocalizationScores]) -> str:
    heads = "".join(f'<th class="n">{escape(scores.label)}</th>' for scores in systems)
    rows = []
    for key, label in METRICS.items():
        cells = "".join(
            f'<td class="n" title="95 %: {low} to {high}">{value}</td>'
            for value, low, high in (_formatted(key, scores.figures[key]) for scores in systems)
        )
        rows.append(f"<tr><td>{escape(label)}</td>{cells}</tr>")
    return f"<table><tr><th>Localisation</th>{heads}</tr>{''.join(rows)}</table>"


def _formatted(key: str, interval: Interval) -> tuple[str, ...]:
    return tuple(format_metric(key, value) for value in (interval.value, interval.low, interval.high))


def _chart(title: str, drawing: str) -> str:
    return f"<figure><figcaption>{escape(title)}</figcaption>{drawing}</figure>"


def _curve(parts: Sequence[LocalizationScores], caption: str) -> str:
    lines = [(METRICS[key], [part.figures[key] for part in parts]) for key in _LINES]
    return line_chart([part.label for part in parts], lines, caption=caption)


def _fit_chart(fit: ShareFit) -> str:
    shares = list(fit.curve)[::3]
    points = [Interval(fit.curve[share], fit.curve[share], fit.curve[share]) for share in shares]
    title = f"Share of attention in a box, fitted on validation: {fit.share:.0%}"
    labels = [f"{share:.0%}" for share in shares]
    return _chart(title, line_chart(labels, [("Mean IoU", points)], caption="share"))


def _entropy(claims: AttentionClaims) -> str:
    shares = [bits / claims.max_entropy_bits for bits in claims.entropy_bits]
    labels = [f"{(phase + 1) / NUM_PHASES:.0%}" for phase in range(NUM_PHASES)]
    points = [Interval(share, share, share) for share in shares]
    caption = f"part of the reading; 100 % is {claims.max_entropy_bits:.1f} bits, all cells alike"
    return line_chart(labels, [("Entropy", points)], caption=caption)


def _claims(claims: AttentionClaims) -> str:
    counts = ", ".join(f"{label}: {share:.0%}" for label, share in claims.cell_counts.items())
    rows = [
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
    body = "".join(f"<tr><td>{escape(claim)}</td><td>{escape(value)}</td></tr>" for claim, value in rows)
    return (
        f"<table><tr><th>Claim</th><th>Measured over {claims.num_steps:,} steps of {claims.num_readings:,} "
        f"readings</th></tr>{body}</table>"
    )


def _gallery(gallery: Sequence[LocalizationSample], result: LocalizationResult, field: ReceptiveField) -> str:
    ranked = sorted(
        (sample for sample in gallery if sample.name in result.sample_iou),
        key=lambda sample: result.sample_iou[sample.name],
    )
    if not ranked:
        return ""
    middle = max((len(ranked) - _NUM_SHOWN) // 2, 0)
    groups = {
        "Lowest IoU": ranked[:_NUM_SHOWN],
        "In the middle": ranked[middle : middle + _NUM_SHOWN],
        "Highest IoU": ranked[-_NUM_SHOWN:],
    }
    parts = [
        "<h2>Boxes</h2><p>Dashed green: true. Orange: from attention. Only tokens that were read right.</p>"
    ]
    for title, samples in groups.items():
        pictures = "".join(
            f'<div class="card"><h3>{escape(sample.name)}<span>mean IoU '
            f"{result.sample_iou[sample.name]:.2f}</span></h3>"
            f'<div class="paper">{_picture(sample, field, result.share)}</div></div>'
            for sample in samples
        )
        parts.append(f"<h3>{title}</h3>{pictures}")
    return "".join(parts)


def _picture(sample: LocalizationSample, field: ReceptiveField, share: float) -> str:
    counted = localized_tokens(sample, canvas_shape=field.canvas_shape)
    placement = Placement.centred(sample.pixels.shape, canvas_shape=field.canvas_shape)
    found = attention_boxes(counted.attention, field=field, ink=counted.ink, share=share)
    buffer = io.BytesIO()
    Image.fromarray(sample.pixels).save(buffer, "webp", quality=70)
    height, width = sample.pixels.shape
    url = f"data:image/webp;base64,{base64.b64encode(buffer.getvalue()).decode()}"
    parts = [f'<image href="{url}" width="{width}" height="{height}"/>']
    for token, true, box in zip(counted.tokens, counted.boxes.tolist(), found, strict=True):
        for corners, style in ((true, _TRUE), (box, _FOUND)):
            if corners is not None:
                left, top, right, bottom = placement.to_image(tuple(corners))
                parts.append(
                    f'<rect x="{left:g}" y="{top:g}" width="{right - left:g}" height="{bottom - top:g}" '
                    f"{style}><title>{escape(token)}</title></rect>"
                )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" viewBox="-2 -2 {width + 4} {height + 4}" '
        f'width="{1.5 * width:g}">{"".join(parts)}</svg>'
    )


_TRUE: Final = 'fill="none" stroke="#15803d" stroke-width="1.4" stroke-dasharray="4 2"'
_FOUND: Final = 'fill="#f06e14" fill-opacity=".10" stroke="#c2410c" stroke-width="1"'


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
