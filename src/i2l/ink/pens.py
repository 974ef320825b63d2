"""Strokes drawn as pens draw them: ballpoint, fineliner, fountain pen, pencil, marker, chalk, and tablets.

All strokes of a picture lie in one array, with a third column for the width of the line at each point. They
are made smooth by cutting corners, drawn four times as large by Pillow, and made smaller again, which leaves
soft edges. A formula of twenty symbols takes about three milliseconds. The same strokes, pen and seed give
the same pixels.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from i2l.images.prepare import SYMBOL_PX, large_symbol_size
from i2l.ink.strokes import Ink, InkError, Points
from i2l.rendering.camera import cut_texture, paper_grain, white_noise
from i2l.rendering.rasterize import WHITE, Pixels

OVERSAMPLING: Final = 4
MAX_SIDE_PX: Final = 16_000
_LONG_PX: Final = 3.0  # segments longer than this are still cut when corners have been cut once
_COARSE: Final = 1.0  # steps of widths, in pixels of the large picture
_SHARP: Final = 0.4  # radians by which a line turns where it gets a round corner

PENS: Final = ("ballpoint", "fineliner", "fountain", "pencil", "marker", "chalk", "tablet")


@dataclass(frozen=True)
class Pen:
    """How a pen draws; the default is a plain even line."""

    width_px: float = 2.4
    speed: float = 0.0  # how much thinner a fast line is, 0 to 1
    taper: float = 0.0  # how much thinner strokes begin and end
    nib: float = 0.0  # how much thinner a line along the nib's edge is, as of a broad marker or fountain pen
    nib_deg: float = 40.0
    grain: float = 0.0  # share of the line that the paper's grain keeps bare: pencil and chalk
    fade: float = 0.0  # how much of the ink's darkness is lost where it fades
    smooth: bool = True  # cut corners; else the line is drawn from point to point
    seed: int = 0  # of the grain


PLAIN: Final = Pen()


def draw_pen(source: random.Random) -> Pen:
    """Draw a pen as people have them; thin pens are more common than thick ones."""
    kind = source.choices(PENS, weights=(28, 14, 10, 12, 10, 8, 18))[0]
    seed = source.randrange(1 << 30)
    width, speed, taper, nib, grain, fade = (source.random() for _ in range(6))
    smooth = source.random() < 0.85
    angle = source.uniform(20, 60)
    if kind == "ballpoint":
        return Pen(
            1.4 + 1.3 * width, 0.35 * speed, 0.4 * taper, grain=0.10 * grain, fade=0.3 * fade, seed=seed
        )
    if kind == "fineliner":
        return Pen(1.5 + 1.5 * width, 0.1 * speed, smooth=smooth)
    if kind == "fountain":
        return Pen(2.0 + 1.8 * width, 0.5 * speed, 0.3 * taper, 0.6 * nib, angle)
    if kind == "pencil":
        return Pen(
            1.5 + 1.6 * width, 0.4 * speed, 0.5 * taper, grain=0.15 + 0.3 * grain, fade=0.5 * fade, seed=seed
        )
    if kind == "marker":
        return Pen(3.2 + 2.6 * width, 0.15 * speed, 0.1 * taper, 0.4 * nib, angle)
    if kind == "chalk":
        return Pen(3.0 + 2.4 * width, 0.2 * speed, grain=0.25 + 0.35 * grain, fade=0.3 * fade, seed=seed)
    return Pen(1.5 + 2.2 * width, 0.5 * speed, 0.8 * taper, smooth=smooth)


@dataclass(frozen=True)
class Lines:
    """Many strokes as one array, so that all of them are worked on at once."""

    points: NDArray[np.float64]  # (N, 2)
    owners: NDArray[np.int64]  # (N,): the number of each point's stroke, rising

    @staticmethod
    def of(strokes: Sequence[Points]) -> "Lines":
        """Put strokes one after the other."""
        owners = np.repeat(np.arange(len(strokes)), [len(stroke) for stroke in strokes])
        return Lines(np.concatenate([np.zeros((0, 2)), *strokes]), owners)


def draw_lines(lines: Lines, shape: tuple[int, int], pen: Pen = PLAIN) -> Pixels:
    """Draw strokes, whose points are pixels, on white; what lies beyond the edges is cut off."""
    height, width = shape
    if min(shape) < 1 or max(shape) > MAX_SIDE_PX:
        raise InkError(f"A picture of {width} x {height} pixels cannot be drawn.")
    table = np.column_stack([lines.points, _widths(lines, pen)])
    owners = lines.owners
    if pen.smooth:
        table, owners = _cut_corners(table, owners)
        if len(table) and _median_step(table, owners) > _LONG_PX:
            table, owners = _cut_corners(table, owners)
    large = Image.new("L", (width * OVERSAMPLING, height * OVERSAMPLING), 0)
    _draw_runs(ImageDraw.Draw(large), table * OVERSAMPLING, owners)
    ink = np.asarray(large.reduce(OVERSAMPLING))
    if pen.grain or pen.fade:
        ink = _rub(ink, pen)
    return WHITE - ink


def _widths(lines: Lines, pen: Pen) -> NDArray[np.float64]:
    """Compute the width of the line at every point, from how fast and in which direction the pen moved."""
    count = len(lines.points)
    widths = np.full(count, pen.width_px)
    if count < 2 or not (pen.speed or pen.taper or pen.nib):
        return widths
    inside = lines.owners[1:] == lines.owners[:-1]
    steps = np.diff(lines.points, axis=0) * inside[:, None]
    lengths = np.hypot(steps[:, 0], steps[:, 1])
    before, after = np.concatenate([[0.0], lengths]), np.concatenate([lengths, [0.0]])
    if pen.speed:
        speeds = np.maximum(before, after)
        usual = max(float(np.median(speeds)), 1e-6)
        slowed = np.clip(speeds / usual, 0.0, 3.0)
        slowed = np.convolve(np.pad(slowed, 2, mode="edge"), np.full(5, 0.2), mode="valid")
        widths *= 1 + pen.speed * np.clip(0.5 - 0.5 * slowed, -0.5, 0.5)
    if pen.nib:
        angles = np.arctan2(steps[:, 1], steps[:, 0])
        along = np.concatenate([np.abs(np.cos(angles - np.deg2rad(pen.nib_deg))), [0.5]])
        widths *= 1 - pen.nib * along
    if pen.taper:
        starts = np.flatnonzero(np.concatenate([[True], ~inside]))
        sizes = np.diff(np.append(starts, count))
        place = np.arange(count) - np.repeat(starts, sizes)
        near_end = np.minimum(place, np.repeat(sizes, sizes) - 1 - place)
        widths *= (
            1 - pen.taper * np.where(np.repeat(sizes, sizes) > 4, np.clip(1 - near_end / 3, 0, 1), 0) * 0.7
        )
    least: NDArray[np.float64] = np.maximum(widths, 0.8)
    return least


def _cut_corners(
    table: NDArray[np.float64], owners: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Cut the corners of all strokes once (Chaikin); their first and last points stay."""
    count = len(table)
    if count < 2:
        return table, owners
    inside = owners[1:] == owners[:-1]
    first, second = table[:-1][inside], table[1:][inside]
    begins, ends = np.concatenate([[True], ~inside]), np.concatenate([~inside, [True]])
    places = np.flatnonzero(inside)
    rows = np.concatenate(
        [0.75 * first + 0.25 * second, 0.25 * first + 0.75 * second, table[begins], table[ends]]
    )
    # a point's place in the new order: strokes begin, then each piece has two points, then they end
    order = np.concatenate(
        [places + 0.25, places + 0.75, np.flatnonzero(begins) + 0.0, np.flatnonzero(ends) + 0.01]
    )
    names = np.concatenate([owners[:-1][inside], owners[:-1][inside], owners[begins], owners[ends]])
    ranks = np.argsort(order, kind="stable")
    return rows[ranks], names[ranks]


def _median_step(table: NDArray[np.float64], owners: NDArray[np.int64]) -> float:
    steps = np.diff(table[:, :2], axis=0)[owners[1:] == owners[:-1]]
    return float(np.median(np.hypot(steps[:, 0], steps[:, 1]))) if len(steps) else 0.0


def _draw_runs(pencil: ImageDraw.ImageDraw, table: NDArray[np.float64], owners: NDArray[np.int64]) -> None:
    """Draw every stroke as runs of one width each, round at its ends and where it turns."""
    if not len(table):
        return
    widths = np.maximum(np.rint(table[:, 2] / _COARSE) * _COARSE, 2.0)
    ends_here = np.append(owners[1:] != owners[:-1], True)
    steps = np.diff(table[:, :2], axis=0)
    angles = np.arctan2(steps[:, 1], steps[:, 0])
    turns = np.abs((np.diff(angles) + np.pi) % (2 * np.pi) - np.pi) > _SHARP
    round_here = np.ones(len(table), dtype=bool)
    round_here[1:-1] = turns | ends_here[1:-1] | ends_here[:-2]
    for x, y, radius in np.column_stack([table[:, :2] - 0.5, widths / 2])[round_here].tolist():
        pencil.ellipse((x - radius, y - radius, x + radius, y + radius), fill=255)
    changes = np.flatnonzero(ends_here[:-1] | (widths[1:] != widths[:-1])) + 1
    starts = np.concatenate([[0], changes])
    # a run reaches to the first point of the next one of its stroke, so that the line has no gaps
    ends = np.concatenate([changes + ~ends_here[changes - 1], [len(table)]])
    flat = (table[:, :2] - 0.5).ravel().tolist()
    for start, end, width in zip(starts.tolist(), ends.tolist(), widths[starts].tolist(), strict=True):
        if end - start > 1:
            pencil.line(flat[2 * start : 2 * end], fill=255, width=int(width))


def _rub(ink: Pixels, pen: Pen) -> Pixels:
    """Take away what the grain of the paper keeps bare, and what has faded."""
    grain = cut_texture(paper_grain(), ink.shape, pen.seed).astype(np.float32) / 32
    if pen.grain:
        fine = cut_texture(white_noise(), ink.shape, pen.seed + 1).astype(np.float32) / 32
        # both are of deviation 1; the share below the limit is what stays bare
        bare = 0.75 * grain + 0.65 * fine < np.float32(3.2 * pen.grain - 1.9)
        ink = np.where(bare, ink // 5, ink)
    if pen.fade:
        kept = np.clip(1 - pen.fade * (0.5 + 0.25 * grain), 0.25, 1.0)
        ink = (ink * kept).astype(np.uint8)
    return ink


def symbol_scale(boxes: NDArray[np.float64]) -> float:
    """Return by how much written symbols must be enlarged to be as large as a model knows them.

    The symbols are measured as those of pictures are, but for what stands around others, such as roots.
    """
    middles = (boxes[:, :2] + boxes[:, 2:]) / 2
    inside = (boxes[:, None, :2] <= middles) & (middles <= boxes[:, None, 2:])
    alone = inside.all(axis=2).sum(axis=1) <= 2  # itself, and a dot or bar that crosses it
    sizes = np.maximum(boxes[:, 2:] - boxes[:, :2], 1e-9)[alone if alone.any() else slice(None)]
    found = large_symbol_size(sizes[:, 1], sizes[:, 0])
    return SYMBOL_PX / found if found > 1e-6 else 1.0


def stroke_boxes(strokes: Sequence[Points]) -> NDArray[np.float64]:
    """Return the boxes, (N, 4), of what strokes form: those that touch are taken for one symbol."""
    boxes = np.array([[*stroke.min(axis=0), *stroke.max(axis=0)] for stroke in strokes])
    return np.array(
        [[*boxes[group, :2].min(axis=0), *boxes[group, 2:].max(axis=0)] for group in _touching(boxes)]
    )


def _touching(boxes: NDArray[np.float64]) -> list[list[int]]:
    """Group strokes written one after the other whose boxes overlap: mostly they are one symbol."""
    groups: list[list[int]] = []
    for number, box in enumerate(boxes):
        if groups:
            last = boxes[groups[-1]]
            left, top = last[:, :2].min(axis=0)
            right, bottom = last[:, 2:].max(axis=0)
            across = min(right, box[2]) - max(left, box[0])
            down = min(bottom, box[3]) - max(top, box[1])
            if across > 0.3 * min(right - left, box[2] - box[0]) and down >= 0:
                groups[-1].append(number)
                continue
        groups.append([number])
    return groups


def draw_ink(
    ink: Ink, *, pen: Pen = PLAIN, margin_px: int = 6, max_side_px: int = 4_000, zoom: float = 1.0
) -> tuple[Pixels, float, tuple[float, float]]:
    """Draw ink at the scale that models know, or so many times as large, with a margin.

    Returns:
        The picture, how many of its pixels one unit of the ink is, and where in the ink its corner lies.

    Raises:
        InkError: if the ink is so long and thin that no picture of it can be drawn.
    """
    left, top, right, bottom = ink.bounds
    room = max_side_px - 2 * margin_px
    scale = min(zoom * symbol_scale(stroke_boxes(ink.strokes)), room / max(right - left, bottom - top, 1e-9))
    pen = replace(pen, width_px=pen.width_px * zoom)
    width, height = (
        int(np.ceil((high - low) * scale)) + 2 * margin_px + 1 for low, high in ((left, right), (top, bottom))
    )
    strokes = [(stroke - (left, top)) * scale + margin_px for stroke in ink.strokes]
    corner = left - margin_px / scale, top - margin_px / scale
    return draw_lines(Lines.of(strokes), (height, width), pen), scale, corner
