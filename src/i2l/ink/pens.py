"""Strokes drawn as pens draw them: ballpoint, fineliner, fountain pen, pencil, marker, chalk, and tablets.

All strokes of a picture lie in one array, with a third column for the width of the line at each point. They
are made smooth by cutting corners, drawn four times as large by Pillow, and made smaller again, which leaves
soft edges. A formula of twenty symbols takes about three milliseconds. The same strokes, pen and seed give
the same pixels. `drawn_signs` are strokes for signs that few people wrote.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
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
_CORNER: Final = 1.2  # radians
_FEW_POINTS: Final = 4  # a stroke of the table with more is a curve ...
_ANGULAR: Final = ("W", r"\star")  # ... but for these

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
            1.1 + 1.6 * width, 0.35 * speed, 0.4 * taper, grain=0.10 * grain, fade=0.3 * fade, seed=seed
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
        return Pen(3.2 + 3.4 * width, 0.15 * speed, 0.1 * taper, 0.4 * nib, angle)
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


# Signs that inks of CROHME lack: strokes of points x,y in hundredths of the sign's box, `|` lifts the pen.
_DRAWN: Final = r"""
D 8,2 8,98|0,2 60,6 98,40 94,70 60,96 2,98
J 20,2 98,2|64,2 66,70 50,96 20,96 2,74
K 8,0 8,100|96,2 10,58|34,44 98,98
O 56,2 20,8 2,46 14,88 50,98 86,84 98,46 82,10 52,2
Q 54,2 18,8 2,46 14,82 50,90 86,78 98,42 82,8 50,2|58,66 98,100
U 4,0 4,64 24,96 62,96 88,70 94,2|92,30 96,98
W 0,2 24,98 50,22 74,98 100,0
Z 4,4 96,4 4,96 98,96|24,50 78,50
\delta 80,6 40,2 30,18 70,50 78,74 54,98 22,90 14,64 40,44 66,52
\epsilon 92,12 50,2 20,16 26,42 66,48|30,46 6,66 14,90 52,98 96,84
\zeta 30,2 78,10 24,40 8,70 40,86 74,92 60,100 40,98
\eta 2,22 16,6 22,20 22,66|22,30 52,6 78,12 82,40 82,100
\iota 40,2 34,70 52,98 80,84
\kappa 10,2 10,98|90,6 14,56|40,44 92,98
\nu 2,4 16,6 34,98 84,40 96,2
\xi 86,4 40,2 26,18 44,32 80,34|50,34 12,48 16,64 56,70|40,70 4,82 40,92 78,96 60,100
\rho 6,100 14,30 48,2 88,18 94,48 60,72 20,62
\tau 2,22 24,4 98,6|52,8 46,80 62,98 80,90
\upsilon 2,14 18,4 20,60 46,96 80,76 92,20 80,2
\varphi 30,10 6,26 10,56 50,66 86,54 94,24 70,4 52,26 46,100
\chi 4,6 22,8 76,96 96,94|92,4 8,98
\psi 2,16 16,8 20,46 48,62 80,50 96,8|62,0 42,100
\omega 16,8 2,44 16,92 40,88 50,50 60,88 84,92 98,44 80,6
\vartheta 4,46 22,30 30,60 34,90 60,98 80,50 70,6 50,4 44,30 60,48 98,40
\Gamma 12,2 12,98|10,4 92,4 92,20
\Lambda 2,98 50,2 98,98
\Omega 2,96 30,96 30,84 6,56 14,18 50,2 86,18 94,56 70,84 70,96 98,96
\Phi 50,0 50,100|50,20 12,28 4,54 20,76 52,82 86,72 96,48 82,26 52,20
\Psi 2,16 16,16 22,52 50,66 78,52 86,16 98,14|50,0 50,100
\Pi 0,6 100,6|18,6 18,98|82,6 82,98
\prod 0,6 100,6|18,6 18,98|82,6 82,98
\coprod 0,96 100,96|18,2 18,96|82,2 82,96
\Theta 52,2 18,10 2,48 16,88 50,98 86,86 98,46 82,10 52,2|26,50 74,50
\Xi 4,4 96,4|22,50 78,50|2,96 98,96
\partial 30,10 60,2 88,22 92,60 64,94 24,96 6,72 24,48 64,46 90,60
\nabla 2,4 98,4 50,98 2,4
\cup 2,0 4,60 30,98 70,98 96,60 98,0
\cap 2,100 4,40 30,2 70,2 96,40 98,100
\subset 98,4 40,6 4,30 4,70 40,94 98,96
\supset 2,4 60,6 96,30 96,70 60,94 2,96
\subseteq 96,2 40,4 6,24 6,50 40,72 96,74|4,98 98,98
\supseteq 4,2 60,4 94,24 94,50 60,72 4,74|2,98 96,98
\notin 96,14 40,16 6,40 6,62 40,86 96,88|8,50 90,50|78,0 26,100
\emptyset 52,14 20,22 8,52 24,82 52,88 82,76 92,48 78,20 50,14|92,0 8,100
\equiv 2,4 98,4|2,50 98,50|2,96 98,96
\approx 2,30 24,4 50,24 76,38 98,10|2,90 24,64 50,84 76,98 98,70
\sim 2,80 24,10 50,46 76,90 98,20
\simeq 2,48 24,6 50,28 76,54 98,10|2,98 98,98
\cong 2,36 24,4 50,20 76,40 98,8|2,68 98,68|2,98 98,98
\propto 98,16 70,10 40,84 14,92 2,50 14,8 40,16 70,88 98,84
\ll 46,2 2,50 46,98|98,2 54,50 98,98
\gg 2,2 46,50 2,98|54,2 98,50 54,98
\mp 4,4 96,4|4,62 96,62|50,30 50,98
\circ 52,4 14,16 4,52 20,90 52,98 88,82 96,48 82,14 50,4
\bullet 50,30 36,40 36,62 52,72 68,60 66,40 50,32 44,50 58,56
\star 50,2 22,96 98,36 4,36 78,98 50,4
* 50,2 50,98|8,26 92,76|92,24 8,78
\oplus 52,2 16,12 2,50 16,88 50,98 86,86 98,48 84,12 50,2|50,2 50,98|2,50 98,50
\otimes 52,2 16,12 2,50 16,88 50,98 86,86 98,48 84,12 50,2|18,18 82,82|82,18 18,82
\wedge 2,98 50,2 98,98
\vee 2,2 50,98 98,2
\neg 2,10 96,10 96,96
\perp 50,0 50,98|2,98 98,98
\parallel 14,0 10,100|90,0 86,100
\| 14,0 10,100|90,0 86,100
\langle 92,0 8,50 92,100
\rangle 8,0 92,50 8,100
\lceil 96,2 10,2 8,100
\rceil 4,2 90,2 92,100
\lfloor 8,0 8,98 96,98
\rfloor 92,0 92,98 4,98
\leftarrow 98,50 2,50|24,4 2,50 24,96
\leftrightarrow 2,50 98,50|18,4 2,50 18,96|82,4 98,50 82,96
\Rightarrow 2,30 84,30|2,70 84,70|68,2 98,50 68,98
\Leftrightarrow 12,30 88,30|12,70 88,70|26,2 2,50 26,98|74,2 98,50 74,98
\Leftarrow 98,30 16,30|98,70 16,70|32,2 2,50 32,98
\mapsto 4,10 4,90|4,50 98,50|78,6 98,50 78,94
\uparrow 50,100 50,2|4,26 50,2 96,26
\downarrow 50,0 50,98|4,74 50,98 96,74
\ell 6,88 44,76 86,30 76,4 48,14 38,60 52,96 90,86
\hbar 30,2 8,98|14,60 50,40 78,50 70,80 84,98|8,30 66,14
\hat 2,96 50,4 98,96
\tilde 2,80 24,12 50,46 76,88 98,20
\dot 48,46 56,54
\ddot 8,46 16,54|86,46 94,54
\check 2,4 50,96 98,4
: 44,10 56,14|44,86 56,92
; 48,8 60,14|56,80 30,100
? 8,24 30,4 76,4 90,26 50,54 50,72|48,94 56,98
\setminus 4,0 96,100
\backslash 4,0 96,100
\iint 60,4 46,0 36,14 26,86 14,100 0,94|98,4 86,0 76,14 66,86 54,100 40,94
\oint 96,6 76,0 58,14 42,86 24,100 4,94|52,34 26,42 24,60 48,68 74,60 76,42 52,34
\bigcup 2,0 4,70 30,98 70,98 96,70 98,0
\bigcap 2,100 4,30 30,2 70,2 96,30 98,100
\triangle 50,4 4,96 96,96 50,4
\angle 92,4 4,96 98,96
\dag 50,0 50,100|8,28 92,28
\prec 96,2 60,40 4,50 60,60 96,98
\succ 4,2 40,40 96,50 40,60 4,98
\aleph 6,4 96,96|16,30 4,60 10,98|84,4 96,30 66,60
\Re 10,96 40,40 20,10 10,40|30,8 80,10 84,36 44,48 70,94 98,90
\Im 90,14 50,4 14,20 50,40 60,70 40,94 6,84
\overbrace 2,98 10,56 30,48 46,42 50,4 54,42 70,48 90,56 98,98
\underbrace 2,2 10,44 30,52 46,58 50,96 54,58 70,52 90,44 98,2
\vdots 48,4 54,8|48,48 54,52|48,92 54,96
\ddots 4,6 8,10|48,48 52,52|92,92 96,96
\therefore 48,6 54,10|6,90 12,94|88,90 94,94
\because 6,6 12,10|88,6 94,10|48,90 54,94
\square 4,4 4,96 96,96 96,4 4,4
\varrho 10,60 30,4 84,10 90,46 50,66 20,56|16,50 10,84 60,90 70,100
\varsigma 92,10 40,2 8,34 30,60 74,72 70,92 40,100
\Upsilon 4,20 24,2 46,30 50,98|50,60 54,26 76,2 96,20
\nearrow 4,96 96,4|52,4 96,4 96,48
\searrow 4,4 96,96|52,96 96,96 96,52
\leftharpoonup 98,96 2,96 28,4
\rightharpoonup 2,96 98,96 72,4
\rightleftharpoons 2,36 98,36 74,4|98,64 2,64 26,96
\overleftrightarrow 2,50 98,50|18,4 2,50 18,96|82,4 98,50 82,96
\subsetneq 96,2 40,4 6,20 6,46 40,66 96,68|4,84 98,84|64,72 40,100
\nmid 50,0 50,100|10,62 90,38
\% 88,4 10,98|18,6 4,24 18,44 32,24 18,6|82,58 68,76 82,96 96,76 82,58
"""


@lru_cache(maxsize=1)
def drawn_signs() -> dict[str, Lines]:
    """Return the signs of the table, by their names."""
    signs = {}
    for line in _DRAWN.strip().splitlines():
        name, _, text = line.partition(" ")
        strokes = [
            np.array([[float(value) for value in point.split(",")] for point in stroke.split()]) / 100
            for stroke in text.split("|")
        ]
        signs[name] = Lines.of(
            [_with_corners(s) if len(s) <= _FEW_POINTS or name in _ANGULAR else s for s in strokes]
        )
    return signs


def _with_corners(stroke: Points) -> Points:
    """Repeat the points at which a line turns sharply: pens cut corners, but not where they halt."""
    steps = np.diff(stroke, axis=0)
    angles = np.arctan2(steps[:, 1], steps[:, 0])
    turns = np.abs((np.diff(angles) + np.pi) % (2 * np.pi) - np.pi)
    times = np.ones(len(stroke), dtype=np.int64)
    times[1:-1][turns > _CORNER] = 3
    return np.repeat(stroke, times, axis=0)
