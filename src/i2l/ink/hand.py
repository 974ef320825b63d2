"""Formulas written by hand: where TeX would put each symbol, a person's own stands, placed as hands place it.

`write_formula` takes the boxes of a typeset formula and decides where each symbol of a hand goes: its size,
how far symbols are spread, how the line drifts. What comes out are boxes again, in whole pixels, and they
say everything: `draw_formula` takes the symbols that the seed picks out of the bank, bends each a little, and
fits it into its box. So a sample is stored as its tokens, its boxes and a seed, in about a hundred bytes, and
boxes hold their ink because the ink is made to fit them.

Real inks are drawn by `draw_written_ink`, as `write_ink` has bent them, or had another writer write them in
the same places; seed 0 is the ink as it is, drawn with a plain pen. `hand_look` says what else a seed means:
the pen, and the paper, the scan or the photograph.
"""

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from i2l.formulas.lexer import Token
from i2l.ink.bank import ARROW, BAR, ROOT, Bank, Shape, Unit, formula_units, unit_shape
from i2l.ink.pens import PLAIN, Lines, Pen, draw_lines, draw_pen, drawn_signs, stroke_boxes, symbol_scale
from i2l.ink.strokes import Ink, Points, Symbol
from i2l.rendering.camera import degrade
from i2l.rendering.rasterize import PageImage, Pixels
from i2l.rendering.styles import PAPER, Style, Tones, draw_photo

Box = tuple[int, int, int, int]  # left, top, right, bottom in pixels, half-open
Boxes = NDArray[np.float64]  # (N, 4)

HAND_PREFIX: Final = "hand:"  # of the text of a style: the seed follows
_IDENTITY: Final = (1.0, 0.0, 0.0, 1.0, 0.0, 0.0)
_EM_PX: Final = PAPER.dpi * PAPER.size_pt / 72
_TALL_PX: Final = 42.0  # a printed sign so high has grown with what stands beside it
_OTHER_HANDS: Final = 0.5  # share of the copies of an ink that another writer writes
_CLEAN, _SCANNED = 0.3, 0.45  # shares of clean drawings, and of these with scans
_RULED: Final = 0.4  # share of photographs of paper with lines or squares
_CHALKED: Final = 0.1  # share of photographs that become those of blackboards, beside those that are
_COARSE: Final = 0.4  # share of photographs with few pixels for a symbol, and the most that are one
_MOST_COARSE: Final = 2.6
_WIDE_GAP_PX: Final = 0.4 * _EM_PX  # what TeX leaves more than this between signs hands leave as they like
# what stands above something, and is as wide as that is
_ABOVE: Final = frozenset(
    {r"\vec", r"\overrightarrow", r"\overleftarrow", r"\overline", r"\bar", r"\hat", r"\widehat"}
    | {r"\tilde", r"\widetilde", r"\check"}
)


@dataclass(frozen=True)
class HandLook:
    """What a seed means for a picture besides what is written on it."""

    pen: Pen
    style: Style  # margins, shades, noise, photograph; of the page at 12 pt and 200 dpi
    coarse: float = 1.0  # pixels of a photograph for one of the sensor

    @property
    def inset_px(self) -> float:
        """How far ink may reach beyond the middle of its line."""
        return 0.63 * self.pen.width_px + 0.5


@lru_cache(maxsize=4096)
def hand_look(seed: int) -> HandLook:
    """Draw the pen and the paper of a seed; seed 0 is a plain pen on white."""
    if seed == 0:
        return HandLook(PLAIN, PAPER)
    source = random.Random(f"look {seed}")
    pen, kind = draw_pen(source), source.random()
    if kind < _CLEAN:
        return HandLook(pen, PAPER)
    coarse = 1.0
    margins = [int(40 * source.random() ** 1.5) for _ in range(4)]
    noise, quality = source.uniform(0, 6), source.randrange(35, 96)
    if kind < _SCANNED:
        style = Style(
            ink=int(110 * source.random()),
            paper=int(255 - 70 * source.random() ** 2),
            blur_px=round(source.uniform(0, 0.9), 2),
            noise=round(noise * 0.7, 1),
            noise_seed=seed,
            jpeg_quality=quality if source.random() < 0.6 else 0,
        )
    else:
        photo, tones = draw_photo(source, seed=seed, em_px=_EM_PX)
        ruled, chalked, part = source.random() < _RULED, source.random() < _CHALKED, source.random()
        coarse = round(1 + (_MOST_COARSE - 1) * part / _COARSE, 2) if part < _COARSE else 1.0
        if chalked and tones.ink < tones.paper:
            tones = Tones(ink=tones.paper, paper=tones.ink)
        photo = replace(
            photo,
            # what moves points is done to the strokes
            frame_sides=0, rotation_deg=0.0, tilt_x_deg=0.0, tilt_y_deg=0.0, bend_em=0.0,
            ruling_mm=round(source.uniform(4.5, 9), 1) if ruled else photo.ruling_mm,
            ruling=source.randrange(12, 60) if ruled else photo.ruling,
            squared=source.random() < 0.6,
        )  # fmt: skip
        if tones.ink > tones.paper:  # a blackboard: chalk, and no squares
            pen = replace(pen, width_px=max(pen.width_px, 2.8), grain=source.uniform(0.1, 0.5), seed=seed)
            photo = replace(photo, ruling_mm=0.0, ruling=0)
        cuts = (photo.cut_left_em, photo.cut_top_em, photo.cut_right_em, photo.cut_bottom_em)
        margins = [
            round((photo.gap_em + cut) * _EM_PX) if cut else margin
            for cut, margin in zip(cuts, margins, strict=True)
        ]
        limit = abs(tones.paper - tones.ink) / 14  # nobody sends what nobody can read
        style = Style(
            ink=tones.ink,
            paper=tones.paper,
            noise=round(min(noise, limit), 1),
            noise_seed=seed,
            jpeg_quality=quality if source.random() < 0.85 else 0,
            photo=photo,
        )
    left, top, right, bottom = margins
    style = replace(
        style, margin_left_px=left, margin_top_px=top, margin_right_px=right, margin_bottom_px=bottom
    )
    return HandLook(pen, style, coarse)


def style_of_hand(text: str) -> Style:
    """Return the style that the text `hand:SEED` names."""
    return hand_look(int(text.removeprefix(HAND_PREFIX))).style


# --- formulas from the bank -----------------------------------------------------------------------------


def write_formula(
    tokens: Sequence[Token], boxes: Sequence[Box | None], *, bank: Bank, seed: int
) -> tuple[list[Box | None], tuple[int, int]]:
    """Write a typeset formula by hand: where each of its tokens comes to stand in the finished picture.

    Args:
        tokens: canonical.
        boxes: of the tokens as TeX sets them, at 12 pt and 200 dpi.
        bank: to write with.
        seed: decides who writes, and how.

    Returns:
        The boxes, and the height and width of the picture.

    Raises:
        KeyError: for a sign that cannot be written; see `missing_sign`.
    """
    units = formula_units(tokens)
    look = hand_look(seed)
    shapes = _bent_shapes(units, bank, seed)
    printed = np.array([_union([boxes[i] for i in unit.tokens]) for unit in units])
    source = random.Random(f"layout {seed}")
    placed = _place(units, _closed_up(printed, source), shapes, source)
    _put_above(placed, units, _covered(tokens, units), shapes, source)
    placed = _turned(placed, random.Random(f"line {seed}"))
    scale = symbol_scale(placed) * math.exp(random.Random(f"scale {seed}").gauss(0, 0.1))
    placed = placed * min(max(scale, 0.3), 3.0)
    reach = look.inset_px
    placed[:, :2] = np.floor(placed[:, :2] - reach)
    placed[:, 2:] = np.ceil(placed[:, 2:] + reach)
    shape, placed = _on_page(placed, look.style)
    return _token_boxes(len(tokens), units, boxes, printed, placed), shape


def missing_sign(tokens: Sequence[Token], bank: Bank) -> str | None:
    """Name the first token that neither the bank nor the table of signs can write."""
    for unit in formula_units(tokens):
        if not bank.writes(unit.label):
            return tokens[unit.tokens[0]].text
    fonts = (token.text for token in tokens if not token.visible and token.text.startswith(("\\math", "\\b")))
    return next((text for text in fonts if text in _UNSHOWN), None)


_UNSHOWN: Final = frozenset(
    {r"\mathbf", r"\mathbb", r"\mathcal", r"\mathfrak", r"\mathscr", r"\mathsf", r"\mathtt", r"\boldsymbol"}
    | {r"\bf", r"\bm", r"\boldmath"}
)


def draw_formula(
    tokens: Sequence[Token], boxes: Sequence[Box | None], shape: tuple[int, int], *, bank: Bank, seed: int,
    zoom: float = 1.0,
) -> Pixels:  # fmt: skip
    """Draw a formula that `write_formula` wrote, from the boxes and the size of the picture that it gave.

    With a zoom all of it is so many times as large, as a model of another scale wants it.
    """
    units = formula_units(tokens)
    look = hand_look(seed)
    margin = np.array([look.style.margin_left_px, look.style.margin_top_px] * 2)
    points, owners, first = [], [], 0
    for unit, form in zip(units, _bent_shapes(units, bank, seed), strict=True):
        box = _union([boxes[i] for i in unit.tokens]) - margin
        points.append(_fit(unit, form, box, look.inset_px))
        owners.append(form.owners + first)
        first += int(form.owners[-1]) + 1
    lines = Lines(np.concatenate(points), np.concatenate(owners))
    return _finish(lines, shape, look, zoom)


def _finish(lines: Lines, shape: tuple[int, int], look: HandLook, zoom: float) -> Pixels:
    """Draw lines on a page, and do to the page what the look says.

    The shape is that of the finished picture, before the zoom; with it sides are up to two pixels longer than
    theirs times the zoom, as pages have even sides.
    """
    pen, style = look.pen, look.style
    page = (
        shape[0] - style.margin_top_px - style.margin_bottom_px,
        shape[1] - style.margin_left_px - style.margin_right_px,
    )
    if zoom != 1:
        lines = Lines(lines.points * zoom, lines.owners)
        pen = replace(pen, width_px=pen.width_px * zoom)
        left, top = round(style.margin_left_px * zoom), round(style.margin_top_px * zoom)
        right, bottom = round(style.margin_right_px * zoom), round(style.margin_bottom_px * zoom)
        style = replace(
            style, dpi=round(style.dpi * zoom), blur_px=style.blur_px * zoom,
            margin_left_px=left, margin_top_px=top, margin_right_px=right, margin_bottom_px=bottom,
        )  # fmt: skip
        page = 2 * math.ceil(page[0] * zoom / 2), 2 * math.ceil(page[1] * zoom / 2)
    ink = draw_lines(lines, page, pen)
    # what is cut off beside a formula is mostly like it: the line before, or the line after
    image = degrade(PageImage(ink, _IDENTITY), style, lambda offset: ink, coarse=look.coarse)
    assert image.pixels is not None
    return image.pixels


def _bent_shapes(units: Sequence[Unit], bank: Bank, seed: int) -> list[Shape]:
    """Pick a symbol for each unit and bend it a little, as no two symbols of a hand are the same."""
    source = random.Random(f"shapes {seed}")
    picked = bank.pick([unit.label for unit in units], source)
    slant = source.gauss(0, 0.10)
    shapes = []
    for unit, symbol in zip(units, picked, strict=True):
        numbers = [source.random() for _ in range(4)]
        lean, turn, strength = source.gauss(0, 0.05), source.gauss(0, 0.035), source.random()
        if symbol is None:
            lines = drawn_signs()[unit.label]
            form = Shape(lines.points, lines.owners, 1.0)
            strength += 1.0
        else:
            form = bank.shape(symbol)
        points = form.points + (0.012 * strength) * np.sin(
            2 * math.pi * (form.points[:, ::-1] * (0.6 + numbers[0]) + numbers[1:3])
        )
        if unit.kind == BAR or symbol is None:
            shapes.append(unit_shape(points * (form.aspect, 1.0), form.owners))
            continue
        points = points * (form.aspect, 1.0)
        cos, sin = math.cos(turn), math.sin(turn)
        lean += slant
        matrix = np.array([[cos, sin], [-sin - lean * cos, cos - lean * sin]])
        shapes.append(unit_shape(points @ matrix, form.owners))
    return shapes


def _closed_up(printed: Boxes, source: random.Random) -> Boxes:
    """Let wide gaps between signs, as between the columns of a matrix, be as wide as a hand leaves them."""
    kept = source.uniform(0.2, 1.1)
    order = np.argsort(printed[:, 0], kind="stable")
    reach = np.maximum.accumulate(printed[order, 2])
    gaps = printed[order[1:], 0] - reach[:-1]
    closed = np.concatenate([[0.0], np.cumsum(np.maximum(gaps - _WIDE_GAP_PX, 0) * (1 - kept))])
    moved = printed.copy()
    moved[order, 0] -= closed
    moved[order, 2] -= closed
    return moved


def _covered(tokens: Sequence[Token], units: Sequence[Unit]) -> dict[int, list[int]]:
    """Return for each unit that stands above something the numbers of the units of that."""
    found: dict[int, list[int]] = {}
    for number, unit in enumerate(units):
        first = unit.tokens[0]
        if tokens[first].text not in _ABOVE:
            continue
        depth, last = 0, first
        for last in range(first + 1, len(tokens)):
            depth += (tokens[last].text == "{") - (tokens[last].text == "}")
            if depth <= 0:
                break
        below = [n for n, other in enumerate(units) if first < other.tokens[0] <= last]
        if below:
            found[number] = below
    return found


def _put_above(
    placed: Boxes, units: Sequence[Unit], covered: dict[int, list[int]], shapes: Sequence[Shape],
    source: random.Random,
) -> None:  # fmt: skip
    """Draw bars, arrows and hats above what has come to stand below them, as wide as it is."""
    for number in sorted(covered, reverse=True):  # of two above each other the inner one first
        below = placed[covered[number]]
        left, top, right = below[:, 0].min(), below[:, 1].min(), below[:, 2].max()
        wide = max((right - left) * source.uniform(0.8, 1.25), source.uniform(0.3, 0.5) * _EM_PX)
        high = min(source.uniform(0.14, 0.34) * _EM_PX, 0.6 * wide)
        if units[number].kind == BAR:
            high = min(wide / shapes[number].aspect, 0.1 * wide + 2)
        middle = (left + right) / 2 + source.gauss(0, 0.06) * _EM_PX
        bottom = top - source.uniform(0.02, 0.18) * _EM_PX
        placed[number] = middle - wide / 2, bottom - high, middle + wide / 2, bottom


def _place(units: Sequence[Unit], printed: Boxes, shapes: Sequence[Shape], source: random.Random) -> Boxes:
    """Decide where and how large each unit is written, from where TeX has it."""
    spread_x, spread_y = source.uniform(0.98, 1.5), source.uniform(1.0, 1.3)
    size = source.uniform(0.95, 1.25)
    jitter = source.uniform(0.02, 0.07)
    placed = np.empty((len(units), 4))
    for number, (unit, form) in enumerate(zip(units, shapes, strict=True)):
        left, top, right, bottom = printed[number].tolist()
        width, height = right - left, bottom - top
        x, y = spread_x * (left + right) / 2, spread_y * (top + bottom) / 2
        own = size * math.exp(source.gauss(0, 0.07))
        stretches_x = unit.kind == ROOT or (unit.kind == BAR and width > 26)
        if unit.kind == BAR:
            wide = width * spread_x * source.uniform(0.98, 1.1) if stretches_x else width * own
            new = wide, min(wide / form.aspect, 0.1 * wide + 2)
        elif unit.kind == ROOT:
            new = width * spread_x, height * spread_y * source.uniform(1.0, 1.08)
        elif height > _TALL_PX and height > 2.2 * width:
            new = (
                min(max(width, height * form.aspect), 0.35 * height) * own,
                (height * spread_y * source.uniform(0.85, 1.05)),
            )
        else:
            new = _natural_size(width * own, height * own, form.aspect)
        x += source.gauss(0, jitter) * min(_EM_PX, new[0]) * (0.3 if stretches_x else 1)
        y += source.gauss(0, jitter) * min(_EM_PX, max(new[1], 0.3 * new[0]))
        placed[number] = x - new[0] / 2, y - new[1] / 2, x + new[0] / 2, y + new[1] / 2
    return placed


def _natural_size(width: float, height: float, aspect: float) -> tuple[float, float]:
    """Return the size of a hand's symbol in the place of a printed one; mostly it keeps its proportions."""
    if width > 2.5 * height:  # a line or an arrow: its length counts
        return width, min(max(width / aspect, height * 0.5), 0.6 * width)
    if height > 2.5 * width:  # upright: its height does
        return min(max(height * aspect, 0.5 * width), 0.6 * height), height
    area = math.sqrt(width * height)
    new_height = min(max(area / math.sqrt(aspect), 0.75 * height), 1.3 * height)
    new_width = min(max(new_height * aspect, 0.6 * width), 1.5 * width)
    return new_width, new_height


def _turned(placed: Boxes, source: random.Random) -> Boxes:
    """Let the line that the formula stands on rise or fall, and drift."""
    middle = (placed[:, 0] + placed[:, 2]) / 2
    slope = math.tan(math.radians(source.gauss(0, 1.3)))
    drift, length, phase = (
        source.uniform(0, 0.1) * _EM_PX,
        source.uniform(4, 12) * _EM_PX,
        source.uniform(0, 6.3),
    )
    shift = slope * (middle - middle.mean()) + drift * np.sin(middle / length + phase)
    moved: Boxes = placed + np.stack([np.zeros_like(shift), shift, np.zeros_like(shift), shift], axis=1)
    return moved


def _fit(unit: Unit, form: Shape, box: NDArray[np.float64], inset: float) -> Points:
    """Fit a shape into a box, so that a line along its edge stays in the box."""
    left, top, right, bottom = box.tolist()
    width, height = max(right - left - 2 * inset, 0.1), max(bottom - top - 2 * inset, 0.1)
    x = form.points[:, 0]
    if unit.kind == ROOT:
        x = _stretched_root(form.points, width, height)
    elif unit.kind == ARROW:
        x = _stretched_arrow(form, width / height, leftwards=unit.label == r"\leftarrow")
    return np.column_stack([left + inset + width * x, top + inset + height * form.points[:, 1]])


def _stretched_root(points: Points, width: float, height: float) -> NDArray[np.float64]:
    """Stretch the bar of a root to its length, and leave the hook before it as it is."""
    x, y = points.T
    lowest = int(np.argmax(y))
    up = np.flatnonzero(y[lowest:] < 0.2)
    knee = float(x[lowest + up[0]]) if len(up) else 0.3
    knee = min(max(knee, 0.05), 0.95)
    hook = min(knee, 0.55 * height / width, 0.6)
    stretched: NDArray[np.float64] = np.where(
        x < knee, x * (hook / knee), hook + (x - knee) * ((1 - hook) / (1 - knee))
    )
    return stretched


def _stretched_arrow(form: Shape, aspect: float, *, leftwards: bool) -> NDArray[np.float64]:
    """Stretch the line of an arrow to its length, and leave its head, in the outer half, as it is."""
    head = 0.5 * min(form.aspect / aspect, 1.0)
    outer = 1 - form.points[:, 0] if leftwards else form.points[:, 0]
    stretched = np.where(outer < 0.5, outer * 2 * (1 - head), 1 - (1 - outer) * 2 * head)
    return 1 - stretched if leftwards else stretched


def _union(boxes: Sequence[Box | None]) -> NDArray[np.float64]:
    known = np.array([box for box in boxes if box is not None], dtype=np.float64)
    return np.concatenate([known[:, :2].min(axis=0), known[:, 2:].max(axis=0)])


def _on_page(placed: Boxes, style: Style) -> tuple[tuple[int, int], Boxes]:
    """Move boxes of whole pixels to the page's corner, and give the size of the picture with its margins.

    Pages have even sides: a photograph turns them around their middle, which then is no half pixel.
    """
    corner = placed[:, :2].min(axis=0)
    placed = placed - np.tile(corner, 2)
    width, height = (int(side) + int(side) % 2 for side in placed[:, 2:].max(axis=0))
    margins = np.array([style.margin_left_px, style.margin_top_px])
    shape = (
        height + style.margin_top_px + style.margin_bottom_px,
        width + style.margin_left_px + style.margin_right_px,
    )
    return shape, placed + np.tile(margins, 2)


def _token_boxes(
    num_tokens: int, units: Sequence[Unit], boxes: Sequence[Box | None], printed: Boxes, placed: Boxes
) -> list[Box | None]:
    """Give each token its box; the letters of a word share the word's, as print shares it."""
    found: list[Box | None] = [None] * num_tokens
    for unit, old, new in zip(units, printed.tolist(), placed.tolist(), strict=True):
        for token in unit.tokens:
            box = boxes[token]
            if box is None:
                continue
            factor = (new[2] - new[0]) / max(old[2] - old[0], 1e-9)
            left, right = (round(new[0] + (edge - old[0]) * factor) for edge in (box[0], box[2]))
            found[token] = (left, int(new[1]), max(right, left + 1), int(new[3]))
    return found


# --- real inks ------------------------------------------------------------------------------------------


def write_ink(ink: Ink, *, bank: Bank | None = None, seed: int) -> tuple[Ink, tuple[int, int]]:
    """Bring an ink to the scale of models, changed as the seed decides; seed 0 leaves its shape as it is.

    Other seeds let another writer of the bank write it in the same places, or the same one; symbols are
    moved and bent a little, and all of it is slanted, turned and stretched.

    Args:
        ink: what was written. Only the symbols that are known of it are changed one by one.
        bank: gives the other writers, if there are to be any.
        seed: decides how.

    Returns:
        The ink in pixels of the page, its symbols in the order that they had, and the height and width of the
        finished picture.
    """
    look = hand_look(seed)
    scale = symbol_scale(stroke_boxes(ink.strokes))
    if seed:
        source = random.Random(f"ink {seed}")
        if bank is not None and source.random() < _OTHER_HANDS:
            ink = _in_another_hand(ink, bank, source)
        scale *= math.exp(source.gauss(0, 0.12))
        ink = _bent_ink(ink, source)
    strokes = [stroke * scale for stroke in ink.strokes]
    points, reach = np.concatenate(strokes), look.inset_px
    corner = np.floor(points.min(axis=0) - reach)
    width, height = (int(side) + int(side) % 2 for side in np.ceil(points.max(axis=0) + reach) - corner)
    style = look.style
    shape = (
        height + style.margin_top_px + style.margin_bottom_px,
        width + style.margin_left_px + style.margin_right_px,
    )
    return replace(ink, strokes=tuple(stroke - corner for stroke in strokes)), shape


def _in_another_hand(ink: Ink, bank: Bank, source: random.Random) -> Ink:
    """Write each symbol of an ink as another writer does, where it stands and about as large."""
    if not all(bank.writes(symbol.label) for symbol in ink.symbols):
        return ink
    picked = bank.pick([symbol.label for symbol in ink.symbols], source)
    of_symbols = {number for symbol in ink.symbols for number in symbol.strokes}
    strokes = [stroke for number, stroke in enumerate(ink.strokes) if number not in of_symbols]
    symbols = []
    for symbol, other in zip(ink.symbols, picked, strict=True):
        own = [ink.strokes[number] for number in symbol.strokes]
        if other is not None:
            own = _fitted(bank.shape(other), symbol.label, _union_of(np.concatenate(own)))
        symbols.append(Symbol(symbol.label, tuple(range(len(strokes), len(strokes) + len(own)))))
        strokes += own
    return replace(ink, strokes=tuple(strokes), symbols=tuple(symbols))


def _fitted(form: Shape, label: str, box: NDArray[np.float64]) -> list[Points]:
    """Fit a shape into the place of a symbol of the same label, mostly with the proportions that it has."""
    width, height = np.maximum(box[2:] - box[:2], 1e-3).tolist()
    points = form.points
    if label == r"\sqrt":
        points = np.column_stack([_stretched_root(points, width, height), points[:, 1]])
    else:
        width, height = _natural_size(width, height, form.aspect)
    placed = _middle(box) + (points - 0.5) * (width, height)
    return [placed[form.owners == owner] for owner in range(int(form.owners[-1]) + 1)]


def _bent_ink(ink: Ink, source: random.Random) -> Ink:
    """Move, turn and bend each symbol a little, and slant, turn and stretch the whole."""
    strokes = list(ink.strokes)
    lean, turn = source.gauss(0, 0.15), math.radians(source.gauss(0, 2.2))
    stretch = math.exp(source.gauss(0, 0.13))
    cos, sin = math.cos(turn), math.sin(turn)
    matrix = np.array([[stretch * cos, stretch * sin], [-sin - lean * cos, cos - lean * sin]])
    size, shift, bend = source.uniform(0, 0.12), source.uniform(0, 0.08), source.uniform(0, 0.035)
    parts = [np.concatenate([strokes[number] for number in symbol.strokes]) for symbol in ink.symbols]
    usual = float(np.median([np.ptp(part, axis=0).max() for part in parts])) if parts else 0.0
    for symbol, part in zip(ink.symbols, parts, strict=True):
        middle, sides = part.mean(axis=0), np.ptp(part, axis=0)
        extent = max(float(sides.max()), 1e-9)
        own = np.exp([source.gauss(0, size), source.gauss(0, size)])
        # long symbols, such as bars and roots, stand around others, which they must not cross
        moved = np.array([source.gauss(0, shift), source.gauss(0, shift)]) * min(extent, usual)
        angle = source.gauss(0, 0.06) * min(1.0, 3 * float(sides.min()) / extent)
        turned = np.array([[math.cos(angle), math.sin(angle)], [-math.sin(angle), math.cos(angle)]]) * own
        wave = np.array([source.uniform(0.5, 1.2), source.random(), source.random()])
        for number in symbol.strokes:
            points = strokes[number] - middle
            bent = np.sin(2 * math.pi * (points[:, ::-1] / extent * wave[0] + wave[1:]))
            points = points + bend * np.minimum(sides, 0.6 * extent) * bent
            strokes[number] = points @ turned + middle + moved
    return replace(ink, strokes=tuple(stroke @ matrix for stroke in strokes))


def draw_written_ink(ink: Ink, shape: tuple[int, int], *, seed: int, zoom: float = 1.0) -> Pixels:
    """Draw what `write_ink` gave, so many times as large."""
    return _finish(Lines.of(ink.strokes), shape, hand_look(seed), zoom)


def ink_token_boxes(
    ink: Ink, symbols: Sequence[Symbol | None], units: Sequence[Unit], num_tokens: int,
    *, printed: Sequence[Box | None], seed: int,
) -> list[Box | None]:  # fmt: skip
    """Find the boxes of tokens on a finished picture, from the symbol of its ink that each unit is."""
    look = hand_look(seed)
    margin = np.array([look.style.margin_left_px, look.style.margin_top_px] * 2)
    known = [(unit, symbol) for unit, symbol in zip(units, symbols, strict=True) if symbol is not None]
    if not known:
        return [None] * num_tokens
    placed = []
    for _, symbol in known:
        points = np.concatenate([ink.strokes[number] for number in symbol.strokes])
        low, high = points.min(axis=0) - look.inset_px, points.max(axis=0) + look.inset_px
        placed.append(np.concatenate([np.floor(low), np.ceil(high)]) + margin)
    old = np.array([_union([printed[i] for i in unit.tokens]) for unit, _ in known])
    return _token_boxes(num_tokens, [unit for unit, _ in known], printed, old, np.array(placed))


def match_symbols(ink: Ink, units: Sequence[Unit], printed: Sequence[Box | None]) -> list[Symbol | None]:
    """Find which symbol of an ink is which unit of its formula; None where that cannot be told.

    Symbols of one label are told apart by where they stand: as TeX sets the formula, roughly, after the best
    change of place and scale.
    """
    result: list[Symbol | None] = [None] * len(units)
    places = np.array([_middle(_union([printed[i] for i in unit.tokens])) for unit in units]).reshape(-1, 2)
    labels: dict[str, tuple[list[int], list[int]]] = {}
    for number, unit in enumerate(units):
        labels.setdefault(unit.label, ([], []))[0].append(number)
    for number, symbol in enumerate(ink.symbols):
        labels.setdefault(symbol.label, ([], []))[1].append(number)
    pairs = {label: pair for label, pair in labels.items() if pair[0] and len(pair[0]) == len(pair[1])}
    if not pairs:
        return result
    written = np.array(
        [
            _middle(_union_of(np.concatenate([ink.strokes[n] for n in symbol.strokes])))
            for symbol in ink.symbols
        ]
    )
    start, end = _normal(places), _normal(written)
    found: dict[int, int] = {}
    for _ in range(3):
        found = {}
        for members, candidates in pairs.values():
            order = _assign(start[members], end[candidates])
            found |= {member: candidates[place] for member, place in zip(members, order, strict=True)}
        keys, values = list(found), [found[key] for key in found]
        if len(keys) > 3:
            table = np.column_stack([places[keys], np.ones(len(keys))])
            change, *_ = np.linalg.lstsq(table, written[values], rcond=None)
            size = max(float(np.ptp(written, axis=0).max()), 1e-9)
            start = np.column_stack([places, np.ones(len(places))]) @ change / size
            end = written / size
    for member, symbol_number in found.items():
        result[member] = ink.symbols[symbol_number]
    return result


def _assign(places: Points, others: Points) -> list[int]:
    """Pair places with others so that distances are small: from left to right, then by exchanges."""
    order = [0] * len(places)
    for place, other in zip(np.argsort(places[:, 0]), np.argsort(others[:, 0]), strict=True):
        order[int(place)] = int(other)
    costs = np.square(places[:, None] - others[None]).sum(axis=2)
    improved = True
    while improved:
        improved = False
        for i in range(len(order)):
            for j in range(i):
                old = costs[i, order[i]] + costs[j, order[j]]
                if costs[i, order[j]] + costs[j, order[i]] < old - 1e-12:
                    order[i], order[j] = order[j], order[i]
                    improved = True
    return order


def _middle(box: NDArray[np.float64]) -> NDArray[np.float64]:
    middle: NDArray[np.float64] = (box[:2] + box[2:]) / 2
    return middle


def _union_of(points: Points) -> NDArray[np.float64]:
    return np.concatenate([points.min(axis=0), points.max(axis=0)])


def _normal(places: Points) -> Points:
    """Bring places to a width of 1; where they start does not matter to who is nearest to whom."""
    width = float(np.ptp(places[:, 0]))
    normal: Points = places / max(width, 1e-9)
    return normal
