"""`report.html` of an evaluation: scores, where the reader fails, and every sample to look at, in one file.

The samples stand in the page as small JSON pieces, of which the browser reads one at a time.
"""

import base64
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from markupsafe import Markup

from i2l.evaluation.breakdown import SubsetScores, TokenScores
from i2l.evaluation.results import EvaluationResult
from i2l.evaluation.scores import FIGURE_BY_KEY, FIGURES, format_interval, format_score
from i2l.evaluation.visual import VisualSample
from i2l.files import atomic_write
from i2l.html import fill_template, interval_chart, line_chart, page_file

_GROUPS: Final = {"text": "Tokens", "image": "Pictures", "compile": "LaTeX"}
_NUM_TOKENS: Final = 60
_NUM_CONFUSIONS: Final = 60
_NUM_PLACES: Final = 8  # of a fault

FAILED, WRONG, RIGHT_OTHERWISE, RIGHT = "failed", "wrong", "otherwise", "right"
CATEGORIES: Final = {
    WRONG: "Wrong",
    FAILED: "Did not compile",
    RIGHT_OTHERWISE: "Right, but other tokens",
    RIGHT: "Right",
}
_SAMPLES_PER_PIECE: Final = 20  # samples
# All images together, in base64. What has the least to show goes without images first.
_MAX_IMAGE_BYTES: Final = 22_000_000
_PRIORITY: Final = (WRONG, FAILED, RIGHT_OTHERWISE, RIGHT)


def write_report(
    result: EvaluationResult,
    path: Path,
    *,
    visuals: Sequence[VisualSample] = (),
    inputs: Sequence[bytes] = (),
    sections: Sequence[Markup] = (),
) -> None:
    """Write the report; ``visuals`` and ``inputs`` are the images of the gallery, ``sections`` more HTML."""
    index, pieces, num_left_out = gallery_pieces(result, visuals, inputs)
    text = fill_template(
        "i2l.evaluation",
        "report.html",
        title=_title(result),
        subtitle=f"{len(result):,} samples, {result.source.get('date', 'on a day that was not kept')}",
        style=page_file("i2l.evaluation", "report.css"),
        script=page_file("i2l.evaluation", "gallery.js"),
        tiles=[
            (format_score(figure, result.figures[figure.key].value), figure.label)
            for figure in FIGURES
            if figure.headline and figure.key in result.figures
        ],
        about={str(name): _inline(value) for name, value in (result.source | result.options).items()},
        faults={
            kind: (len(places), ", ".join(places[:_NUM_PLACES]) + (" …" if len(places) > _NUM_PLACES else ""))
            for kind, places in result.faults.items()
        },
        groups=list(_figure_groups(result)),
        charts=list(_charts(result)),
        confusions=result.confusions[:_NUM_CONFUSIONS],
        tokens=_missed_tokens(result.by_token),
        sections=sections,
        num_left_out=num_left_out,
        gallery_index=index,
        gallery_pieces=pieces,
    )
    with atomic_write(path) as file:
        file.write(text)


def _title(result: EvaluationResult) -> str:
    """Name what was judged, and on what."""
    data = result.source.get("dataset") or result.source.get("images") or result.source.get("references")
    name = result.source.get("title", "Evaluation")
    if not isinstance(data, dict):
        return str(name)
    split = f", split {data['split']}" if "split" in data else ""
    return f"{name} on {Path(str(data['path'])).name}{split}"


def _inline(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {item}" for name, item in value.items())
    return str(value)


def _figure_groups(result: EvaluationResult) -> Iterator[tuple[str, list[tuple[str, str, str, str]]]]:
    """Yield each group of scores that there are: its title, and label, value, interval and definition."""
    for group, title in _GROUPS.items():
        figures = [figure for figure in FIGURES if figure.group == group and figure.key in result.figures]
        if figures:
            rows = []
            for figure in figures:
                interval = result.figures[figure.key]
                value, span = format_score(figure, interval.value), format_interval(figure, interval)
                rows.append((figure.label, value, span, figure.definition))
            yield title, rows


def _charts(result: EvaluationResult) -> Iterator[tuple[str, Markup]]:
    """Yield the charts with their titles: by construct, by length, and one for each disturbance."""
    main = "tolerant_match" if "tolerant_match" in result.figures else "exact_match"
    constructs = [(part.label, part.num_samples, part.figures[main]) for part in result.by_construct]
    yield f"By construct: {FIGURE_BY_KEY[main].label.lower()}", interval_chart(constructs)
    yield "By tokens of the target", _curve(result.by_length, "tokens of the target")
    for curve in result.curves:
        yield f"Disturbed: {curve.name}", _curve(curve.points, curve.name)


def _curve(points: Sequence[SubsetScores], caption: str) -> Markup:
    figures = [
        figure
        for figure in FIGURES
        if figure.headline
        and figure.higher_is_better
        and all(figure.key in point.figures for point in points)
    ]
    lines = [(figure.short, [point.figures[figure.key] for point in points]) for figure in figures]
    return line_chart([point.label for point in points], lines, caption=caption)


def _missed_tokens(scores: Sequence[TokenScores]) -> list[TokenScores]:
    """Return the tokens that are missed most often, most of all first."""
    worst = sorted(scores, key=lambda score: (1 - score.recall.value) * score.num_target, reverse=True)
    return worst[:_NUM_TOKENS]


def sample_category(result: EvaluationResult, index: int) -> str:
    """Say what became of a sample. Without renders only the tokens tell."""
    columns = result.columns
    if columns["exact"][index]:
        return RIGHT
    if "compiles" in columns and not columns["compiles"][index]:
        return FAILED
    if "tolerant_match" in columns and columns["tolerant_match"][index]:
        return RIGHT_OTHERWISE
    return WRONG


def gallery_pieces(
    result: EvaluationResult, visuals: Sequence[VisualSample], inputs: Sequence[bytes]
) -> tuple[dict[str, Any], list[list[dict[str, Any]]], int]:
    """Collect the samples for the page: an index, pieces of samples, and how many go without images.

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
        "piece": _SAMPLES_PER_PIECE,
    }
    pieces = [
        samples[start : start + _SAMPLES_PER_PIECE] for start in range(0, len(samples), _SAMPLES_PER_PIECE)
    ]
    return index, pieces, len(visuals) - len(drawn)


def _within_budget(
    categories: Sequence[str], visuals: Sequence[VisualSample], inputs: Sequence[bytes]
) -> set[int]:
    order = sorted(range(len(visuals)), key=lambda index: (_PRIORITY.index(categories[index]), index))
    drawn, used = set(), 0
    for index in order:
        visual = visuals[index]
        size = len(visual.target_png) + len(visual.prediction_png) + (len(inputs[index]) if inputs else 0)
        used += size * 4 // 3
        if used > _MAX_IMAGE_BYTES:
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
