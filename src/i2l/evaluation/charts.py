"""Scores with their intervals as SVG text: a report needs no plotting library and no network."""

from collections.abc import Sequence
from html import escape
from typing import Final

from i2l.evaluation.figures import Interval

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
