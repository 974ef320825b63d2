"""`report.html`: scores, where the reader fails, and every sample to look at, in one file."""

from collections.abc import Iterable, Sequence
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

from i2l.evaluation.breakdown import SubsetScores, TokenScores
from i2l.evaluation.charts import interval_chart, line_chart
from i2l.evaluation.figures import FIGURE_BY_KEY, FIGURES, format_interval, format_score
from i2l.evaluation.gallery import gallery_scripts
from i2l.evaluation.results import EvaluationResult
from i2l.evaluation.visual import VisualSample
from i2l.files import atomic_write

_GROUPS: Final = {"text": "Tokens", "image": "Pictures", "compile": "LaTeX"}
_NUM_TOKENS: Final = 60
_NUM_CONFUSIONS: Final = 60
_SPACE: Final = "nothing"


def write_report(
    result: EvaluationResult,
    path: Path,
    *,
    visuals: Sequence[VisualSample] = (),
    inputs: Sequence[bytes] = (),
    sections: Sequence[str] = (),
) -> None:
    """Write the report; ``visuals`` and ``inputs`` are the images of the gallery, ``sections`` more HTML."""
    samples, left_out = gallery_scripts(result, visuals, inputs)
    page = files("i2l.evaluation").joinpath("page")
    parts = {
        "TITLE": escape(_title(result)),
        "STYLE": page.joinpath("report.css").read_text(encoding="utf-8"),
        "HEAD": _head(result),
        "FIGURES": _figures(result),
        "BREAKDOWNS": _breakdowns(result),
        "SECTIONS": "\n".join(sections),
        "GALLERY_NOTE": _gallery_note(left_out),
        "SAMPLES": samples,
        "SCRIPT": page.joinpath("gallery.js").read_text(encoding="utf-8"),
    }
    text = page.joinpath("report.html").read_text(encoding="utf-8")
    for name, part in parts.items():
        before, _, after = text.partition(f"@{name}@")
        text = before + part + after
    with atomic_write(path) as file:
        file.write(text)


def _title(result: EvaluationResult) -> str:
    return f"{result.source.get('title', 'Evaluation')}, {len(result):,} samples"


def _head(result: EvaluationResult) -> str:
    tiles = "".join(
        f'<div class="tile"><b>{format_score(figure, result.figures[figure.key].value)}</b>'
        f"<span>{escape(figure.label)}</span></div>"
        for figure in FIGURES
        if figure.headline and figure.key in result.figures
    )
    about = _definition_list({**result.source, **result.options})
    faults = "".join(
        f"<li><b>{len(places):,}</b> × {escape(kind)}: "
        f'<span class="dim">{escape(", ".join(places[:8]))}{" …" if len(places) > 8 else ""}</span></li>'
        for kind, places in result.faults.items()
    )
    said = f'<ul class="faults">{faults}</ul>' if faults else "<p>Nothing was wrong with the input.</p>"
    return (
        f'<div class="tiles">{tiles}</div>'
        f"<details><summary>What was measured, and how</summary>{about}</details>"
        f"<h2>What was wrong with the input</h2>{said}"
    )


def _definition_list(items: dict[str, Any]) -> str:
    rows = "".join(
        f"<dt>{escape(str(name))}</dt><dd>{escape(_inline(value))}</dd>" for name, value in items.items()
    )
    return f"<dl>{rows}</dl>"


def _inline(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {item}" for name, item in value.items())
    return str(value)


def _figures(result: EvaluationResult) -> str:
    rows = []
    for group, title in _GROUPS.items():
        figures = [figure for figure in FIGURES if figure.group == group and figure.key in result.figures]
        if figures:
            rows.append(f'<tr class="group"><th colspan="4">{title}</th></tr>')
        for figure in figures:
            interval = result.figures[figure.key]
            rows.append(
                f'<tr><td>{escape(figure.label)}</td><td class="n">'
                f"<b>{format_score(figure, interval.value)}</b></td>"
                f'<td class="n dim">{format_interval(figure, interval)}</td>'
                f'<td class="dim">{escape(figure.definition)}</td></tr>'
            )
    return (
        '<table><tr><th>Score</th><th class="n">Value</th><th class="n">95 % interval</th><th>What it is</th>'
        f"</tr>{''.join(rows)}</table>"
    )


def _breakdowns(result: EvaluationResult) -> str:
    main = "tolerant_match" if "tolerant_match" in result.figures else "exact_match"
    parts = [
        _chart(
            f"By construct: {FIGURE_BY_KEY[main].label.lower()}",
            interval_chart(
                [(part.label, part.num_samples, part.figures[main]) for part in result.by_construct]
            ),
        ),
        _chart("By tokens of the target", _curve(result.by_length, "tokens of the target")),
    ]
    parts += [_chart(f"Disturbed: {curve.name}", _curve(curve.points, curve.name)) for curve in result.curves]
    return (
        f'<div class="grid2">{"".join(parts)}</div>'
        f'<div class="grid2">{_confusions(result)}{_tokens(result.by_token)}</div>'
    )


def _chart(title: str, drawing: str) -> str:
    return f"<figure><figcaption>{escape(title)}</figcaption>{drawing}</figure>"


def _curve(points: Sequence[SubsetScores], caption: str) -> str:
    figures = [
        figure
        for figure in FIGURES
        if figure.headline
        and figure.higher_is_better
        and all(figure.key in point.figures for point in points)
    ]
    lines = [(figure.short, [point.figures[figure.key] for point in points]) for figure in figures]
    return line_chart([point.label for point in points], lines, caption=caption)


def _confusions(result: EvaluationResult) -> str:
    rows = (
        (_token(pair.target), _token(pair.prediction), f"{pair.count:,}", _names(pair.samples))
        for pair in result.confusions[:_NUM_CONFUSIONS]
    )
    return (
        "<div><h2>Taken for another</h2>"
        + _table(["Target", "Read as", "Times", "For example"], rows)
        + "</div>"
    )


def _tokens(scores: Sequence[TokenScores]) -> str:
    worst = sorted(scores, key=lambda score: (1 - score.recall.value) * score.num_target, reverse=True)
    rows = (
        (
            _token(score.token),
            f"{score.num_target:,}",
            f"{score.recall.value:.1%}",
            f"{score.recall.low:.1%} to {score.recall.high:.1%}",
            f"{score.precision.value:.1%}",
        )
        for score in worst[:_NUM_TOKENS]
    )
    heads = ["Token", "In targets", "Found", "95 % interval", "Right where read"]
    return "<div><h2>Tokens missed most</h2>" + _table(heads, rows) + "</div>"


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    head = "".join(f"<th>{cell}</th>" for cell in heads)
    body = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    return f'<div class="list"><table class="tokens"><tr>{head}</tr>{body}</table></div>'


def _token(token: str) -> str:
    return f"<code>{escape(token)}</code>" if token else f'<span class="dim">{_SPACE}</span>'


def _names(names: Sequence[str]) -> str:
    return f'<span class="dim">{escape(", ".join(names))}</span>'


def _gallery_note(left_out: int) -> str:
    if not left_out:
        return ""
    return (
        f"<p>To keep this file small, {left_out:,} samples are shown without images (right ones before"
        " others). Their tokens are here.</p>"
    )
