"""Learning curves as one SVG: validation BLEU by the clock, also the authors', and BLEU in training."""

import math
from collections.abc import Callable, Iterable, Sequence
from html import escape
from typing import Final

from benchmarks.results.paper import CURVE
from benchmarks.results.store import Run

_COLOURS: Final = ("#8a6d3b", "#0b62c4", "#c2410c", "#15803d", "#7c3aed", "#be185d")
_WIDTH, _HEIGHT = 900, 400
_PANEL: Final = (330, 280)  # width and height of a panel
_LEFT, _TOP, _GAP = 56, 44, 100
_STYLE: Final = (
    "text{font:12px system-ui,sans-serif;fill:#333}.t{font-weight:600}.d{fill:#666}"
    ".g{stroke:#ddd;fill:none}polyline{fill:none;stroke-width:2}"
)
_LOG_MINUTES: Final = (1.0, 5000.0)
_LOW, _HIGH = 0.70, 0.92  # BLEU shown; the second panel goes up to 1
Place = Callable[[float, float], tuple[float, float]]


def draw_curves(runs: Sequence[Run]) -> str:
    """Both panels."""
    parts = [f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="#fff"/>', *_by_clock(runs), *_memorising(runs)]
    for number, (label, colour) in enumerate([("the authors, two GTX 1080 Ti", "#111"), *_legend(runs)]):
        x, y = _LEFT + (number % 4) * 215, _HEIGHT - 28 + 18 * (number // 4)
        parts.append(f'<rect x="{x}" y="{y - 9}" width="12" height="10" fill="{colour}"/>')
        parts.append(f'<text x="{x + 18}" y="{y}">{escape(label)}</text>')
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" role="img" '
        f'viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}">'
        f"<title>Learning curves</title><style>{_STYLE}</style>{''.join(parts)}</svg>\n"
    )


def _legend(runs: Sequence[Run]) -> list[tuple[str, str]]:
    return [(run.title, _COLOURS[number % len(_COLOURS)]) for number, run in enumerate(runs)]


def _by_clock(runs: Sequence[Run]) -> Iterable[str]:
    span = math.log(_LOG_MINUTES[1] / _LOG_MINUTES[0])

    def place(minutes: float, bleu: float) -> tuple[float, float]:
        x = _LEFT + _PANEL[0] * math.log(max(minutes, _LOG_MINUTES[0]) / _LOG_MINUTES[0]) / span
        return x, _TOP + _PANEL[1] * (_HIGH - bleu) / (_HIGH - _LOW)

    yield f'<text class="t" x="{_LEFT}" y="{_TOP - 18}">Validation BLEU by the clock</text>'
    for minutes, label in ((1, "1 min"), (10, "10 min"), (60, "1 h"), (600, "10 h"), (3600, "60 h")):
        x, bottom = place(minutes, _LOW)
        yield f'<path class="g" d="M{x:.1f} {_TOP}V{bottom:.1f}"/>'
        yield f'<text class="d" x="{x:.1f}" y="{bottom + 16:.1f}" text-anchor="middle">{label}</text>'
    yield from _scale(place, _LOG_MINUTES[0], (0.70, 0.75, 0.80, 0.85, 0.90))
    yield _line([place(*point) for point in CURVE], "#111", dots=True)
    for run, (_, colour) in zip(runs, _legend(runs), strict=True):
        yield _line([place(*point) for point in _validations(run)], colour, dots=True)


def _memorising(runs: Sequence[Run]) -> Iterable[str]:
    left = _LEFT + _PANEL[0] + _GAP
    longest = math.ceil(max((run.curve["train"]["minutes"][-1] for run in runs), default=1))

    def place(minutes: float, bleu: float) -> tuple[float, float]:
        return left + _PANEL[0] * minutes / longest, _TOP + _PANEL[1] * (1 - bleu) / (1 - _LOW)

    yield f'<text class="t" x="{left}" y="{_TOP - 18}">BLEU in training (line) and validation (dots)</text>'
    for minutes in range(0, longest + 1, max(longest // 5, 1)):
        x, bottom = place(minutes, _LOW)
        yield f'<text class="d" x="{x:.1f}" y="{bottom + 16:.1f}" text-anchor="middle">{minutes} min</text>'
    yield from _scale(place, 0, (0.7, 0.8, 0.9, 1.0))
    for run, (_, colour) in zip(runs, _legend(runs), strict=True):
        train = run.curve["train"]
        points = zip(train["minutes"], train["teacher_forced_bleu"], strict=True)
        yield _line([place(*point) for point in points if point[1] >= _LOW], colour)
        for point in _validations(run):
            x, y = place(*point)
            yield f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{colour}" stroke="#fff"/>'


def _validations(run: Run) -> list[tuple[float, float]]:
    """Minutes and BLEU, where they are on the panels."""
    return [(row["minutes"], row["bleu"]) for row in run.curve["validation"] if row["bleu"] >= _LOW]


def _scale(place: Place, start: float, values: Sequence[float]) -> Iterable[str]:
    for value in values:
        x, y = place(start, value)
        yield f'<path class="g" d="M{x:.1f} {y:.1f}h{_PANEL[0]}"/>'
        label = f"{100 * value:.0f}"
        yield f'<text class="d" x="{x - 8:.1f}" y="{y + 4:.1f}" text-anchor="end">{label}</text>'


def _line(points: Sequence[tuple[float, float]], colour: str, *, dots: bool = False) -> str:
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    marks = "".join(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{colour}"/>' for x, y in points)
    return f'<polyline points="{path}" stroke="{colour}"/>' + (marks if dots else "")
