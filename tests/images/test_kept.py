"""Pictures are prepared, and strokes told from shades, as when models were trained and limits measured."""

import numpy as np
import pytest
from PIL import Image

from i2l.images.ink import (
    deep_share,
    extract_ink,
    join_pieces,
    looks_written,
    print_likeness,
    stroke_likeness,
)
from i2l.images.prepare import prepare_image
from tests.kept import assert_kept, outline

CANVAS = (130, 1090)


def formula(seed=0, *, em=24, count=7, thick=0.1):
    """Rings, stems, bars and crosses in a row, as darkness from 0 to 1; drawn without fonts, which change."""
    random = np.random.default_rng(seed)
    fine = 4
    darkness = np.zeros((fine * em * 2, fine * em * count))
    rows, columns = np.mgrid[: darkness.shape[0], : darkness.shape[1]] / (fine * em)
    for number in range(count):
        x, y, size = number + 0.5, 1 + random.uniform(-0.25, 0.25), random.uniform(0.25, 0.45)
        across, down = columns - x, rows - y
        shapes = (
            np.abs(np.hypot(across, down) - size) < thick / 2,
            (np.abs(across) < thick / 2) & (np.abs(down) < size),
            (np.abs(down - 0.12) < thick / 2) & (np.abs(across) < size),
            (np.abs(across - down) < thick * 0.7) & (np.abs(across) < size * 0.8),
            (np.abs(np.abs(down) - 0.12) < thick / 2) & (np.abs(across) < size),
        )
        darkness += shapes[int(random.integers(len(shapes)))]
    height, width = darkness.shape
    return np.minimum(darkness, 1).reshape(height // fine, fine, width // fine, fine).mean(axis=(1, 3))


def printed(darkness, *, ink=0.0, paper=255.0, grain=0.0, light=1.0):
    """Darkness as grey, in some light, with the grain of a camera."""
    noise = np.random.default_rng(1).normal(0, grain, darkness.shape) if grain else 0.0
    return np.clip((paper + (ink - paper) * darkness) * light + noise, 0, 255).astype(np.uint8)


def pictures():
    plain = formula()
    height, width = plain.shape
    slope = 1 - 0.5 * np.mgrid[:height, :width][1] / width
    edge = np.where(np.mgrid[:height, :width][0] + np.mgrid[:height, :width][1] < width / 2, 0.55, 1.0)
    colours = np.stack([printed(plain, ink=20, paper=paper) for paper in (250, 240, 60)], axis=2)
    clear = np.dstack([np.full((*plain.shape, 3), 255), plain * 255]).astype(np.uint8)
    yield "plain", printed(plain)
    yield "small type", printed(formula(3, em=9))
    yield "large type", printed(formula(4, em=57))
    yield "very large type", printed(formula(5, em=110, count=4))
    yield "bold", printed(formula(6, thick=0.2))
    yield "long", printed(formula(7, count=60))
    yield "faint", printed(plain, ink=200, paper=255)
    yield "light on dark", printed(plain, ink=250, paper=12)
    yield "colours", colours
    yield "clear, of white ink", clear
    yield "sixteen bits", (printed(plain).astype(np.uint16) * 257)
    yield "in a slope of light", printed(plain, ink=30, paper=225, light=slope, grain=3)
    yield "half in shadow", printed(plain, ink=30, paper=225, light=edge, grain=4)
    yield "very grainy", printed(formula(9, em=40), ink=60, paper=200, grain=14)
    yield "a board in a slope of light", printed(plain, ink=230, paper=60, light=slope, grain=3)


def test_pictures_are_prepared_as_they_were():
    measured = {}
    for name, pixels in pictures():
        for number, one in enumerate(prepare_image(pixels, canvas_shape=CANVAS)):
            place = [one.scale, one.left_px, one.top_px]
            measured[f"{name} {number}"] = [*place, *outline(255 - one.pixels.astype(int))]
    assert_kept("prepared", measured)


def test_what_tells_strokes_from_shades_is_measured_as_it_was():
    measured = {}
    for name, pixels in pictures():
        if name in ("bold", "large type", "in a slope of light", "half in shadow", "very grainy"):
            ink = extract_ink(Image.fromarray(pixels))
            for px in (9.0, 22.0, 44.0):
                measures = deep_share(ink, symbol_px=px), stroke_likeness(pixels, ink, symbol_px=px)
                measured[f"{name} {px:g}"] = measures
    assert_kept("strokes", measured)


def test_what_tells_writing_from_print_is_measured_as_it_was():
    measured = {}
    for seed in range(4):
        for wobble in (0.0, 1.5):
            pixels = 255 - (255 * formula(seed, count=25)).astype(np.uint8)
            if wobble:
                shifts = np.rint(wobble * np.sin(np.arange(pixels.shape[1]) / 9)).astype(int)
                pixels = np.stack([np.roll(pixels[:, x], shift) for x, shift in enumerate(shifts)], axis=1)
            measured[f"{seed} {wobble}"] = [*print_likeness(pixels), looks_written(pixels)]
    assert print_likeness(np.full((40, 40), 255, np.uint8)) is None
    assert_kept("print_likeness", measured)


def joined_by_hand(pieces):
    """The rules of docstring and limits in plain words, for two pieces, the upper one first."""
    (left, top, right, bottom), (left2, top2, right2, bottom2) = pieces
    overlap, gap = min(right, right2) - max(left, left2), top2 - bottom
    widths, heights = sorted([right - left, right2 - left2]), sorted([bottom - top, bottom2 - top2])
    bars = overlap >= 0.8 * widths[1] and widths[1] <= 40 and gap <= min(0.6 * widths[1], 10)
    dotted = overlap >= 0.8 * widths[0] and max(widths[0], heights[0]) <= 6 and widths[1] <= 16 and gap <= 6
    return gap >= 0 and (bars or dotted)


@pytest.mark.parametrize("wide", [5, 6, 7, 10, 16, 17, 30, 39, 40, 41, 42])
def test_pieces_are_joined_up_to_their_limits_and_not_beyond(wide):
    wrong = [
        pieces
        for narrow in {3, 6, 7, 15, 16, wide - 9, wide - 8, wide - 1, wide} - set(range(-20, 1))
        if narrow <= wide
        for gap in (-1, 0, 3, 4, 6, 7, 9, 10, 11)
        for tall in (2, 6, 7)
        for shift in (0, 1, 2)
        for pieces in [[(0, 0, wide, tall), (shift, tall + gap, shift + narrow, tall + gap + 9)]]
        if (len(join_pieces(np.array(pieces))) == 1) != joined_by_hand(pieces)
    ]
    assert wrong == []
