"""What every HTML page that this package writes is made of: templates that escape, and charts as SVG.

Templates are Jinja2 with autoescape always on: whatever a formula, a file name or a model's name holds, a
page shows it as text. Only `Markup` is inserted as it stands, and `Markup.format` escapes what it fills in.
Charts are text, so that a page needs no plotting library and no network.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from math import ceil, log10
from typing import Final, Protocol

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

_PLOT_WIDTH, _PLOT_HEIGHT = 460, 200  # of the plotting area of a histogram, in SVG units
_LEFT, _BOTTOM, _TOP, _RIGHT = 62, 36, 10, 24  # room around it
_BAR_LABEL_WIDTH, _BAR_WIDTH, _BAR_ROW_HEIGHT = 160, 300, 22
_CURVE_WIDTH, _CURVE_HEIGHT = 420, 220  # of the plotting area of curves and intervals
_PANEL_WIDTH, _PANEL_HEIGHT = 200, 110  # of one of several curves
_CURVE_LEFT, _CURVE_TOP, _CURVE_RIGHT, _CURVE_BOTTOM = 48, 26, 24, 45
_FLOORS: Final = (0.0, 0.5, 0.8, 0.9)  # shares that a chart of high scores may begin with
_GRID_STEPS: Final = 4
_LETTER_WIDTH: Final = 7
_SUBSET_LABEL_WIDTH, _SUBSET_ROW_HEIGHT = 190, 24
_NUM_COLOURS: Final = 6  # as many as the style sheets have
_GRID_SHARES: Final = (0, 0.25, 0.5, 0.75, 1)


class Range(Protocol):
    """A score of a chart, from 0 to 1, with the ends of its interval."""

    @property
    def value(self) -> float:
        """The score itself."""

    @property
    def low(self) -> float:
        """The lower end of its interval."""

    @property
    def high(self) -> float:
        """The upper end of its interval."""


def fill_template(package: str, template: str, **values: object) -> Markup:
    """Fill a template of a package's folder `page`.

    Args:
        package: such as `i2l.evaluation`.
        template: name of the file.
        values: what the template asks for; it must get all of it. Everything but `Markup` is escaped.
    """
    return Markup(_environment(package).get_template(template).render(values))


def page_file(package: str, name: str) -> Markup:
    """Read a style sheet or a script of a package's folder `page`, to stand in a page as it is."""
    return Markup(files(package).joinpath("page", name).read_text(encoding="utf-8"))


@cache
def _environment(package: str) -> Environment:
    environment = Environment(
        loader=PackageLoader(package, "page"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    # `tojson` writes < > & and ' by their numbers, so that no text can end the script element it stands in
    environment.policies["json.dumps_kwargs"] = {"ensure_ascii": False, "separators": (",", ":")}
    return environment


def bar_chart(counts: Mapping[str, int]) -> Markup:
    """Draw one horizontal bar per name, longest first, with its number."""
    rows = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    largest = max(counts.values(), default=1) or 1
    bar = Markup(
        '<text x="{label_x}" y="{text_y}" text-anchor="end">{name}</text>'
        '<rect x="{bar_x}" y="{bar_y}" width="{width:.1f}" height="16"/>'
        '<text x="{value_x:.1f}" y="{text_y}" class="value">{count:,}</text>'
    )
    bars = []
    for index, (name, count) in enumerate(rows):
        y = index * _BAR_ROW_HEIGHT
        length = count / largest * _BAR_WIDTH
        bars.append(
            bar.format(
                name=name,
                count=count,
                label_x=_BAR_LABEL_WIDTH - 8,
                bar_x=_BAR_LABEL_WIDTH,
                value_x=_BAR_LABEL_WIDTH + length + 6,
                width=max(length, 1),
                bar_y=y + 3,
                text_y=y + 15,
            )
        )
    return svg(_BAR_LABEL_WIDTH + _BAR_WIDTH + 80, max(len(rows), 1) * _BAR_ROW_HEIGHT, bars)


def histogram(counts: Mapping[int, int], *, limit: int, num_bins: int, unit: str) -> Markup:
    """Draw how many values fall into each of the equal bins between 0 and the limit, inclusive."""
    size = max(1, ceil((limit + 1) / num_bins))
    bins = [0] * ceil((limit + 1) / size)
    for value, count in counts.items():
        bins[min(value, limit) // size] += count
    largest = max(bins, default=0) or 1
    step = _PLOT_WIDTH / len(bins)
    bar = Markup(
        '<rect x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}"><title>{} {}: {:,}</title></rect>'
    )
    bars = []
    for index, count in enumerate(bins):
        height = count / largest * _PLOT_HEIGHT
        first = index * size
        span = f"{first}" if size == 1 else f"{first} to {min(first + size - 1, limit)}"
        x, y = _LEFT + index * step, _TOP + _PLOT_HEIGHT - height
        bars.append(bar.format(x, y, max(step - 1, 0.5), height, span, unit, count))
    ticks_x = [(value, _LEFT + value / (len(bins) * size) * _PLOT_WIDTH) for value in _round_steps(limit, 6)]
    ticks_y = [
        (value, _TOP + _PLOT_HEIGHT - value / largest * _PLOT_HEIGHT) for value in _round_steps(largest, 5)
    ]
    return _framed(bars, ticks_x, ticks_y, unit)


def rank_chart(counts: Sequence[int], *, unit: str, minimum: int) -> Markup:
    """Draw counts against their rank, both on a logarithmic scale; a dashed line marks the minimum."""
    ranked = sorted(counts, reverse=True)
    largest = max(ranked, default=1)
    decades_x = max(ceil(log10(max(len(ranked), 2))), 1)
    decades_y = max(ceil(log10(max(largest, 2))), 1)

    def x_of(rank: int) -> float:
        return _LEFT + log10(rank) / decades_x * _PLOT_WIDTH

    def y_of(count: int) -> float:
        return _TOP + _PLOT_HEIGHT - log10(max(count, 1)) / decades_y * _PLOT_HEIGHT

    points = " ".join(f"{x_of(rank):.1f},{y_of(count):.1f}" for rank, count in enumerate(ranked, start=1))
    lines = [
        Markup('<polyline points="{}"/>').format(points),
        Markup('<path class="limit" d="M{} {:.1f}h{}"/>').format(_LEFT, y_of(minimum), _PLOT_WIDTH),
    ]
    ticks_x = [(10**power, x_of(10**power)) for power in range(decades_x + 1)]
    ticks_y = [(10**power, y_of(10**power)) for power in range(decades_y + 1)]
    return _framed(lines, ticks_x, ticks_y, unit)


def _round_steps(largest: float, at_most: int) -> list[int]:
    """List 0, s, 2s... up to the largest, with s of the form 1, 2 or 5 times a power of ten."""
    step = 1
    while largest / step > at_most:
        step = step * 5 // 2 if str(step)[0] == "2" else step * 2
    return list(range(0, int(largest) + 1, step))


def _framed(
    content: Sequence[Markup], ticks_x: list[tuple[int, float]], ticks_y: list[tuple[int, float]], unit: str
) -> Markup:
    """Put axes around a plot, and its unit below it."""
    line = Markup(
        '<path class="grid" d="M{} {:.1f}h{}"/><text x="{}" y="{:.1f}" text-anchor="end">{:,}</text>'
    )
    mark = Markup('<text x="{:.1f}" y="{}" text-anchor="middle">{:,}</text>')
    caption = Markup('<text x="{}" y="{}" text-anchor="middle" class="value">{}</text>')
    axes = [line.format(_LEFT, y, _PLOT_WIDTH, _LEFT - 6, y + 4, value) for value, y in ticks_y]
    axes += [mark.format(x, _TOP + _PLOT_HEIGHT + 16, value) for value, x in ticks_x]
    below = caption.format(_LEFT + _PLOT_WIDTH / 2, _TOP + _PLOT_HEIGHT + 31, unit)
    width, height = _LEFT + _PLOT_WIDTH + _RIGHT, _TOP + _PLOT_HEIGHT + _BOTTOM
    return svg(width, height, [*axes, *content, below])


def interval_chart(rows: Sequence[tuple[str, int, Range]]) -> Markup:
    """Draw one row a subset: its name, its size, a dot for the score and a line for the interval; 0 to 1."""
    row = Markup(
        '<text x="{label_x}" y="{text_y}" text-anchor="end">{label}</text>'
        '<path class="grid" d="M{left} {y}h{width}"/>'
        '<path class="whisker" d="M{low:.1f} {y}H{high:.1f}"/>'
        '<circle cx="{value:.1f}" cy="{y}" r="4.5"><title>{title}</title></circle>'
        '<text x="{count_x}" y="{text_y}" class="dim">{num_samples:,}</text>'
    )
    marks = []
    for index, (label, num_samples, score) in enumerate(rows):
        y = index * _SUBSET_ROW_HEIGHT + 14
        low, value, high = (
            _SUBSET_LABEL_WIDTH + min(max(x, 0.0), 1.0) * _CURVE_WIDTH
            for x in (score.low, score.value, score.high)
        )
        marks.append(
            row.format(
                label=label,
                num_samples=num_samples,
                title=_percent(score),
                low=low,
                value=value,
                high=high,
                y=y,
                text_y=y + 4,
                left=_SUBSET_LABEL_WIDTH,
                width=_CURVE_WIDTH,
                label_x=_SUBSET_LABEL_WIDTH - 10,
                count_x=_SUBSET_LABEL_WIDTH + _CURVE_WIDTH + 12,
            )
        )
    bottom = len(rows) * _SUBSET_ROW_HEIGHT + 8
    tick = Markup('<text x="{:.0f}" y="{}" text-anchor="middle" class="dim">{:.0%}</text>')
    marks += [
        tick.format(_SUBSET_LABEL_WIDTH + share * _CURVE_WIDTH, bottom + 12, share) for share in _GRID_SHARES
    ]
    return svg(_SUBSET_LABEL_WIDTH + _CURVE_WIDTH + 80, bottom + 20, marks)


def line_chart(
    labels: Sequence[str], lines: Sequence[tuple[str, Sequence[Range]]], *, caption: str
) -> Markup:
    """Draw scores over the same points, each with its interval as a band, in a small chart of its own.

    All of them have the same axes, so that they compare at a glance and no band hides another.
    """
    width = _CURVE_WIDTH if len(lines) == 1 else _PANEL_WIDTH
    height = _CURVE_HEIGHT if len(lines) == 1 else _PANEL_HEIGHT
    lowest = min((score.low for _, scores in lines for score in scores), default=0.0)
    floor = max(floor for floor in _FLOORS if floor <= max(lowest, 0.0))
    panels = [
        _Panel(width, height, floor).draw(number, name, labels, scores, caption)
        for number, (name, scores) in enumerate(lines)
    ]
    return Markup('<div class="multiples">{}</div>').format(Markup("").join(panels))


class _Panel:
    """One small chart: a line, its band and a dot at each point, from a lowest share up to all."""

    def __init__(self, width: float, height: float, floor: float) -> None:
        self.width, self.height, self.floor = width, height, floor

    def draw(
        self, number: int, name: str, labels: Sequence[str], scores: Sequence[Range], caption: str
    ) -> Markup:
        """Draw the chart with its title, its axes and the caption of the lower one."""
        base = _CURVE_TOP + self.height
        grid = Markup(
            '<path class="grid" d="M{} {:.1f}h{}"/>'
            '<text x="{}" y="{:.1f}" text-anchor="end" class="dim">{:.0%}</text>'
        )
        text = Markup('<text x="{:.1f}" y="{}" text-anchor="middle" class="dim">{}</text>')
        parts = [Markup('<text x="{}" y="14">{}</text>').format(_CURVE_LEFT, name)]
        for step in range(_GRID_STEPS + 1):
            share = self.floor + (1 - self.floor) * step / _GRID_STEPS
            y = base - self.height * step / _GRID_STEPS
            parts.append(grid.format(_CURVE_LEFT, y, self.width, _CURVE_LEFT - 6, y + 4, share))
        widest = max(map(len, labels), default=1) * _LETTER_WIDTH + _LETTER_WIDTH
        every = ceil(widest * max(len(labels) - 1, 1) / self.width)  # labels that would touch are left out
        parts += [
            text.format(self._x(index, labels), base + 19, label)
            for index, label in enumerate(labels)
            if index % every == 0
        ]
        parts.append(self._line(number, name, labels, scores))
        parts.append(text.format(_CURVE_LEFT + self.width / 2, base + 37, caption))
        return svg(_CURVE_LEFT + self.width + _CURVE_RIGHT, base + _CURVE_BOTTOM, parts)

    def _x(self, index: int, labels: Sequence[str]) -> float:
        return _CURVE_LEFT + index * self.width / max(len(labels) - 1, 1)

    def _line(self, number: int, name: str, labels: Sequence[str], scores: Sequence[Range]) -> Markup:
        def place(index: int, value: float) -> tuple[str, str]:
            share = (min(max(value, self.floor), 1.0) - self.floor) / (1 - self.floor)
            return f"{self._x(index, labels):.1f}", f"{_CURVE_TOP + (1 - share) * self.height:.1f}"

        band = [place(index, score.high) for index, score in enumerate(scores)]
        band += [place(index, score.low) for index, score in reversed(list(enumerate(scores)))]
        points = [place(index, score.value) for index, score in enumerate(scores)]
        dot = Markup('<circle cx="{}" cy="{}" r="3"><title>{}: {}, {}</title></circle>')
        dots = Markup("").join(
            dot.format(*point, label, name, _percent(score))
            for point, label, score in zip(points, labels, scores, strict=True)
        )
        group = Markup('<g class="c{}"><polygon points="{}"/><polyline points="{}"/>{}</g>')
        corners, turns = (" ".join(map(",".join, places)) for places in (band, points))
        return group.format(number % _NUM_COLOURS, corners, turns, dots)


def _percent(score: Range) -> str:
    return f"{score.value:.1%} ({score.low:.1%} to {score.high:.1%})"


def svg(width: float, height: float, content: Sequence[Markup]) -> Markup:
    """Put drawn elements into an SVG element of that size."""
    whole = Markup(
        '<svg xmlns="http://www.w3.org/2000/svg" role="img" viewBox="0 0 {:g} {:g}" width="{:g}">{}</svg>'
    )
    return whole.format(width, height, width, Markup("").join(content))
