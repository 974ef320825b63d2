"""A seed writes what it wrote: datasets keep inks with seeds, and are drawn when they are used."""

import random
from itertools import permutations

import numpy as np

from i2l.formulas.normalize import normalize_formula
from i2l.ink.bank import Bank
from i2l.ink.hand import (
    _assign,
    _natural_size,
    _stretched_root,
    draw_formula,
    draw_written_ink,
    hand_look,
    write_formula,
    write_ink,
)
from i2l.ink.strokes import Ink, Symbol
from tests.ink.written import row_of, small_inks
from tests.kept import assert_kept, outline

BANK = Bank.of(small_inks())
FORMULAS = [
    r"\sqrt { x + y } - \frac { a } { b } = 1",
    r"\sum \left( x \rightarrow 2 \right) + \sin a",
    r"\sqrt { \sqrt { 3 } } - - x \partial y",
]
# Small ones, dots, high and wide ones, and those that are neither: width and height.
SIZES = [(20, 30), (120, 60), (60, 2), (18, 2), (12, 90), (40, 8), (8, 24), (30, 30), (200, 40), (25, 70)]


def printed(formula, source):
    """Tokens of a formula, with boxes of all kinds of sizes at places that rise and fall."""
    tokens = normalize_formula(formula).tokens
    boxes, left = [], 0
    for token in tokens:
        (width, height), top = source.choice(SIZES), source.randrange(60)
        boxes.append((left, top, left + width, top + height) if token.visible else None)
        left += width + 6 if token.visible else 0
    return tokens, boxes


def test_formulas_are_written_as_they_were():
    measured = {}
    for seed in range(1, 13):
        tokens, boxes = printed(FORMULAS[seed % 3], random.Random(seed))
        placed, shape = write_formula(tokens, boxes, bank=BANK, seed=seed)
        measured[f"boxes {seed}"] = [corner for box in placed if box is not None for corner in box]
        for zoom in (1.0, 1.7) if seed < 6 else ():
            pixels = draw_formula(tokens, placed, shape, bank=BANK, seed=seed, zoom=zoom)
            measured[f"picture {seed} {zoom}"] = outline(pixels)
    assert_kept("handwriting", measured, relative=2e-3)


def described(ink):
    """The middle and the extent of every stroke."""
    return [number for stroke in ink.strokes for number in (*stroke.mean(axis=0), *np.ptp(stroke, axis=0))]


def test_inks_are_written_as_they_were():
    ink = row_of([r"\sqrt", "x", "-", "+", "2", r"\rightarrow", "("], seed=9)
    measured = {}
    for seed in range(12):
        written, shape = write_ink(ink, bank=BANK, seed=seed)
        measured[f"strokes {seed}"] = [*shape, *described(written)]
        if seed < 3:
            pixels = draw_written_ink(written, shape, seed=seed, zoom=1.3)
            measured[f"picture {seed}"] = outline(pixels)
    assert_kept("inks", measured, relative=2e-3)


def test_looks_are_drawn_as_they_were():
    """What a seed draws of pens and paper, number by number."""
    measured = {}
    for seed in range(1, 25):
        look = hand_look(seed)
        style = look.style
        numbers = [value for value in vars(look.pen).values() if isinstance(value, int | float)]
        numbers += [look.coarse, style.ink, style.paper, style.blur_px, style.noise, style.jpeg_quality]
        numbers += [style.margin_left_px, style.margin_top_px, style.margin_right_px, style.margin_bottom_px]
        if style.photo is not None:
            numbers += [value for value in vars(style.photo).values() if isinstance(value, int | float)]
        measured[str(seed)] = numbers
    assert_kept("looks", measured)


def test_a_symbol_keeps_its_proportions_within_limits():
    measured = {
        f"{width} by {height}": [
            side for aspect in (0.02, 0.3, 1.0, 2.0, 30.0) for side in _natural_size(width, height, aspect)
        ]
        for width, height in [(100, 40), (100, 39), (40, 100), (39, 100), (30, 30), (60, 30), (30, 60)]
    }
    assert_kept("natural_sizes", measured)


def test_a_root_has_its_hook_at_any_length():
    """The hook stays before the bar, which is as long as what is under it; no point leaves its box."""
    hook = np.array([[0.0, 0.7], [0.1, 0.6], [0.2, 1.0], [0.3, 0.5], [0.4, 0.1], [0.5, 0.0], [1.0, 0.0]])
    for width, height, end in ((100, 100, 0.4), (1000, 100, 0.055), (50, 100, 0.4), (200, 100, 0.275)):
        stretched = _stretched_root(hook, width, height)
        assert stretched[[0, -1]].tolist() == [0, 1]
        assert abs(stretched[4] - end) < 1e-9
        np.testing.assert_allclose(stretched[:4], hook[:4, 0] * end / 0.4)
        assert abs(stretched[5] - (end + (1 - end) / 6)) < 1e-9
    no_knee = np.array([[0.0, 0.5], [0.5, 1.0], [1.0, 0.6]])
    assert abs(_stretched_root(no_knee, 100, 100)[1] - (0.3 + 0.2)) < 1e-9


def test_what_few_would_write_so_is_not_written_with():
    """A symbol four times as far from the usual as is usual, and at least .4, is mostly a mistake."""
    line = np.column_stack([np.linspace(0, 100, 12), np.linspace(0, 100, 12)])

    def bank_of(logs):
        strokes = [line * (np.exp(log), 1.0) + (400 * place, 0) for place, log in enumerate(logs)]
        symbols = tuple(Symbol("x", (place,)) for place in range(len(logs)))
        ink = Ink(tuple(strokes), latex="x", symbols=symbols, name="sheet", writer="w")
        return Bank.of([ink])

    near = [0.0] * 7
    assert bank_of([*near, 0.35]).by_label == {"x": list(range(8))}
    assert bank_of([*near, 0.45]).by_label == {"x": list(range(7))}
    wide = [-0.2] * 4 + [0.2] * 4
    assert bank_of([*wide, 1.75]).by_label == {"x": list(range(9))}
    assert bank_of([*wide, 1.85]).by_label == {"x": list(range(8))}


def test_places_are_paired_so_that_no_exchange_is_better():
    """Against all ways to pair four places with four others."""
    source = np.random.default_rng(1)
    best = 0
    for _ in range(60):
        places, others = source.uniform(0, 1, (4, 2)), source.uniform(0, 1, (4, 2))
        costs = np.square(places[:, None] - others[None]).sum(axis=2)
        order = _assign(places, others)
        assert sorted(order) == [0, 1, 2, 3]
        own = costs[range(4), order].sum()
        for i, j in permutations(range(4), 2):
            changed = list(order)
            changed[i], changed[j] = order[j], order[i]
            assert own <= costs[range(4), changed].sum() + 1e-9
        best += own <= min(costs[range(4), list(way)].sum() for way in permutations(range(4))) + 1e-9
    assert best >= 45
