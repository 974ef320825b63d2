"""Small charts as SVG text, drawn by hand so that a report needs no plotting library and no network."""

from collections.abc import Mapping, Sequence
from html import escape
from math import ceil, log10

_WIDTH, _HEIGHT = 460, 200  # of the plotting area, in SVG units
_LEFT, _BOTTOM, _TOP, _RIGHT = 62, 36, 10, 24


def bar_chart(counts: Mapping[str, int]) -> str:
    """Draw one horizontal bar per name, longest first, with its number."""
    rows = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    largest = max(counts.values(), default=1) or 1
    label_width, bar_width, row_height = 160, 300, 22
    bars = []
    for index, (name, count) in enumerate(rows):
        y = index * row_height
        length = count / largest * bar_width
        bars.append(
            f'<text x="{label_width - 8}" y="{y + 15}" text-anchor="end">{escape(name)}</text>'
            f'<rect x="{label_width}" y="{y + 3}" width="{max(length, 1):.1f}" height="16"/>'
            f'<text x="{label_width + length + 6:.1f}" y="{y + 15}" class="value">{count:,}</text>'
        )
    return _svg(label_width + bar_width + 80, max(len(rows), 1) * row_height, "".join(bars))


def histogram(counts: Mapping[int, int], *, limit: int, num_bins: int, unit: str) -> str:
    """Draw how many values fall into each of the equal bins between 0 and the limit, inclusive."""
    size = max(1, ceil((limit + 1) / num_bins))
    bins = [0] * ceil((limit + 1) / size)
    for value, count in counts.items():
        bins[min(value, limit) // size] += count
    largest = max(bins, default=0) or 1
    step = _WIDTH / len(bins)
    bars = []
    for index, count in enumerate(bins):
        height = count / largest * _HEIGHT
        first = index * size
        span = f"{first}" if size == 1 else f"{first} to {min(first + size - 1, limit)}"
        bars.append(
            f'<rect x="{_LEFT + index * step:.1f}" y="{_TOP + _HEIGHT - height:.1f}" '
            f'width="{max(step - 1, 0.5):.1f}" height="{height:.1f}">'
            f"<title>{span} {escape(unit)}: {count:,}</title></rect>"
        )
    ticks_x = [(value, _LEFT + value / (len(bins) * size) * _WIDTH) for value in _round_steps(limit, 6)]
    ticks_y = [(value, _TOP + _HEIGHT - value / largest * _HEIGHT) for value in _round_steps(largest, 5)]
    return _framed("".join(bars), ticks_x, ticks_y, unit)


def rank_chart(counts: Sequence[int], *, unit: str, minimum: int) -> str:
    """Draw counts against their rank, both on a logarithmic scale; a dashed line marks the minimum."""
    ranked = sorted(counts, reverse=True)
    largest = max(ranked, default=1)
    decades_x = max(ceil(log10(max(len(ranked), 2))), 1)
    decades_y = max(ceil(log10(max(largest, 2))), 1)

    def x_of(rank: int) -> float:
        return _LEFT + log10(rank) / decades_x * _WIDTH

    def y_of(count: int) -> float:
        return _TOP + _HEIGHT - log10(max(count, 1)) / decades_y * _HEIGHT

    points = " ".join(f"{x_of(rank):.1f},{y_of(count):.1f}" for rank, count in enumerate(ranked, start=1))
    dashed = f'<path class="limit" d="M{_LEFT} {y_of(minimum):.1f}h{_WIDTH}"/>'
    ticks_x = [(10**power, x_of(10**power)) for power in range(decades_x + 1)]
    ticks_y = [(10**power, y_of(10**power)) for power in range(decades_y + 1)]
    return _framed(f'<polyline points="{points}"/>{dashed}', ticks_x, ticks_y, unit)


def _round_steps(largest: float, at_most: int) -> list[int]:
    """Give 0, s, 2s... up to the largest, with s of the form 1, 2 or 5 times a power of ten."""
    step = 1
    while largest / step > at_most:
        step = step * 5 // 2 if str(step)[0] == "2" else step * 2
    return list(range(0, int(largest) + 1, step))


def _framed(
    content: str, ticks_x: list[tuple[int, float]], ticks_y: list[tuple[int, float]], unit: str
) -> str:
    axes = "".join(
        f'<path class="grid" d="M{_LEFT} {y:.1f}h{_WIDTH}"/>'
        f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{value:,}</text>'
        for value, y in ticks_y
    )
    axes += "".join(
        f'<text x="{x:.1f}" y="{_TOP + _HEIGHT + 16}" text-anchor="middle">{value:,}</text>'
        for value, x in ticks_x
    )
    caption = (
        f'<text x="{_LEFT + _WIDTH / 2}" y="{_TOP + _HEIGHT + 31}" text-anchor="middle" class="value">'
        f"{escape(unit)}</text>"
    )
    return _svg(_LEFT + _WIDTH + _RIGHT, _TOP + _HEIGHT + _BOTTOM, axes + content + caption)


def _svg(width: float, height: float, content: str) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" viewBox="0 0 {width:g} {height:g}" '
        f'width="{width:g}">'
        f"{content}</svg>"
    )
