"""`report.html`: scores, where the reader fails, and every sample to look at, in one file.

Scores with their intervals as SVG text: a report needs no plotting library and no network.

The samples as the report's page wants them: small JSON pieces that the browser reads one at a time.
"""

import base64
import json
from collections.abc import Iterable, Sequence
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

from i2l.evaluation.breakdown import SubsetScores, TokenScores
from i2l.evaluation.results import EvaluationResult
from i2l.evaluation.scores import FIGURE_BY_KEY, FIGURES, Interval, format_interval, format_score
from i2l.evaluation.visual import VisualSample
from i2l.files import atomic_write

_LABEL_WIDTH: Final = 170
_ROW_HEIGHT: Final = 24
_SIZE: Final = (420, 220)  # of the plotting area, in SVG units
_LEFT, _TOP, _RIGHT, _BOTTOM = 48, 12, 44, 56
_COLOURS: Final = 6  # as many as the style sheet has


def interval_chart(rows: Sequence[tuple[str, int, Interval]]) -> str:
    """One row a subset: its name, its size, a dot for the score and a line for the interval; from 0 to 1."""
    width = _SIZE[0]
    marks = []
    for index, (label, num_samples, score) in enumerate(rows):
        y = index * _ROW_HEIGHT + 14
        low, value, high = (
            _LABEL_WIDTH + min(max(x, 0.0), 1.0) * width for x in (score.low, score.value, score.high)
        )
        marks.append(
            f'<text x="{_LABEL_WIDTH - 10}" y="{y + 4}" text-anchor="end">{escape(label)}</text>'
            f'<path class="grid" d="M{_LABEL_WIDTH} {y}h{width}"/>'
            f'<path class="whisker" d="M{low:.1f} {y}H{high:.1f}"/>'
            f'<circle cx="{value:.1f}" cy="{y}" r="4.5"><title>{_percent(score)}</title></circle>'
            f'<text x="{_LABEL_WIDTH + width + 12}" y="{y + 4}" class="dim">{num_samples:,}</text>'
        )
    bottom = len(rows) * _ROW_HEIGHT + 8
    ticks = "".join(
        f'<text x="{_LABEL_WIDTH + share * width:.0f}" y="{bottom + 12}" text-anchor="middle" class="dim">'
        f"{share:.0%}</text>"
        for share in (0, 0.25, 0.5, 0.75, 1)
    )
    return _svg(_LABEL_WIDTH + width + 80, bottom + 20, "".join(marks) + ticks)


def line_chart(
    labels: Sequence[str], lines: Sequence[tuple[str, Sequence[Interval]]], *, caption: str
) -> str:
    """Several scores over the same points, each with its interval as a band."""
    width, height = _SIZE
    step = width / max(len(labels) - 1, 1)

    def place(index: int, value: float) -> str:
        return f"{_LEFT + index * step:.1f},{_TOP + (1 - min(max(value, 0.0), 1.0)) * height:.1f}"

    parts = [
        f'<path class="grid" d="M{_LEFT} {_TOP + (1 - share) * height:.1f}h{width}"/>'
        f'<text x="{_LEFT - 6}" y="{_TOP + (1 - share) * height + 4:.1f}" text-anchor="end" class="dim">'
        f"{share:.0%}</text>"
        for share in (0, 0.25, 0.5, 0.75, 1)
    ]
    parts += [
        f'<text x="{_LEFT + index * step:.1f}" y="{_TOP + height + 16}" text-anchor="middle" class="dim">'
        f"{escape(label)}</text>"
        for index, label in enumerate(labels)
    ]
    for number, (name, scores) in enumerate(lines):
        colour = f"c{number % _COLOURS}"
        band = [place(index, score.high) for index, score in enumerate(scores)]
        band += [place(index, score.low) for index, score in reversed(list(enumerate(scores)))]
        points = [place(index, score.value) for index, score in enumerate(scores)]
        dots = "".join(
            '<circle cx="{}" cy="{}" r="3.5"><title>{}: {}, {}</title></circle>'.format(
                *point.split(","), escape(label), escape(name), _percent(score)
            )
            for point, label, score in zip(points, labels, scores, strict=True)
        )
        parts.append(
            f'<g class="{colour}"><polygon points="{" ".join(band)}"/>'
            f'<polyline points="{" ".join(points)}"/>{dots}</g>'
        )
    parts.append(
        f'<text x="{_LEFT + width / 2}" y="{_TOP + height + 36}" text-anchor="middle" class="dim">'
        f"{escape(caption)}</text>"
    )
    keys = "".join(
        f'<span class="key c{number % _COLOURS}">{escape(name)}</span>'
        for number, (name, _) in enumerate(lines)
    )
    return _svg(_LEFT + width + _RIGHT, _TOP + height + _BOTTOM, "".join(parts)) + f"<div>{keys}</div>"


def _percent(score: Interval) -> str:
    return f"{score.value:.1%} ({score.low:.1%} to {score.high:.1%})"


def _svg(width: float, height: float, content: str) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" viewBox="0 0 {width:g} {height:g}" '
        f'width="{width:g}">{content}</svg>'
    )


FAILED, WRONG, RIGHT_OTHERWISE, RIGHT = "failed", "wrong", "otherwise", "right"
CATEGORIES: Final = {
    WRONG: "Wrong",
    FAILED: "Did not compile",
    RIGHT_OTHERWISE: "Right, but other tokens",
    RIGHT: "Right",
}
_PIECE: Final = 20  # samples
# All images together, in base64. What has the least to show goes without images first.
_IMAGE_BYTES: Final = 22_000_000
_PRIORITY: Final = (WRONG, FAILED, RIGHT_OTHERWISE, RIGHT)


def sample_category(result: EvaluationResult, index: int) -> str:
    """What became of a sample. Without renders only the tokens tell."""
    columns = result.columns
    if columns["exact"][index]:
        return RIGHT
    if "compiles" in columns and not columns["compiles"][index]:
        return FAILED
    if "tolerant_match" in columns and columns["tolerant_match"][index]:
        return RIGHT_OTHERWISE
    return WRONG


def gallery_scripts(
    result: EvaluationResult, visuals: Sequence[VisualSample], inputs: Sequence[bytes]
) -> tuple[str, int]:
    """The script elements with all samples, and how many had to go without images.

    Args:
        result: the samples and their scores.
        visuals: their renders, or nothing.
        inputs: for each sample the image that was read, as WebP, empty if it looks like the target's render;
            or nothing.
    """
    categories = [sample_category(result, index) for index in range(len(result))]
    drawn = _within_budget(categories, visuals, inputs)
    samples = [
        _sample(result, index, visuals[index] if index in drawn else None, inputs)
        for index in range(len(result))
    ]
    names = list(CATEGORIES)
    columns = result.columns
    scores = columns.get("character_f1", 1 - columns["edits_per_token"])
    index = {
        "categories": CATEGORIES,
        "category": [names.index(category) for category in categories],
        "score": [round(float(score), 3) for score in scores],
        "length": [len(tokens) for tokens in result.targets],
        "piece": _PIECE,
    }
    scripts = [_script("gallery-index", index)]
    scripts += [
        _script(f"gallery-{number}", samples[start : start + _PIECE])
        for number, start in enumerate(range(0, len(samples), _PIECE))
    ]
    return "\n".join(scripts), len(visuals) - len(drawn)


def _within_budget(
    categories: Sequence[str], visuals: Sequence[VisualSample], inputs: Sequence[bytes]
) -> set[int]:
    order = sorted(range(len(visuals)), key=lambda index: (_PRIORITY.index(categories[index]), index))
    drawn, used = set(), 0
    for index in order:
        visual = visuals[index]
        size = len(visual.target_png) + len(visual.prediction_png) + (len(inputs[index]) if inputs else 0)
        used += size * 4 // 3
        if used > _IMAGE_BYTES:
            break
        drawn.add(index)
    return drawn


def _sample(
    result: EvaluationResult, index: int, visual: VisualSample | None, inputs: Sequence[bytes]
) -> dict[str, Any]:
    sample: dict[str, Any] = {
        "name": result.names[index],
        "target": " ".join(result.targets[index]),
        "prediction": " ".join(result.predictions[index]),
        "blocks": result.blocks[index],
    }
    if "tolerant_match" in result.columns:
        sample["scores"] = {
            name: round(float(result.columns[name][index]), 3)
            for name in ("character_f1", "tolerant_match", "strict_match", "im2markup_match_no_spaces")
        }
        sample["message"] = result.messages[index]
    if visual is not None:
        sample["targetImage"] = _base64(visual.target_png)
        sample["predictionImage"] = _base64(visual.prediction_png)
        if visual.difference is not None:
            sample["shift"] = visual.difference.shift_px
            sample["columns"] = visual.difference.blocks
        if inputs:
            sample["inputImage"] = _base64(inputs[index])
    return sample


def _base64(content: bytes) -> str:
    return base64.b64encode(content).decode()


def _script(identifier: str, content: object) -> str:
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
    return f'<script type="application/json" id="{identifier}">{text}</script>'


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
