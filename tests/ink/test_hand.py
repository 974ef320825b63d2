"""Pens, the bank of symbols and formulas written with it: ink in its boxes, the same for the same seed."""

import random
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from i2l.formulas.normalize import normalize_formula
from i2l.images.prepare import SYMBOL_PX
from i2l.ink.bank import (
    Bank,
    drawn_signs,
    formula_units,
    ink_latex,
    label_tokens,
    writer_of,
    written_formula,
    written_tokens,
)
from i2l.ink.hand import (
    draw_formula,
    draw_written_ink,
    hand_look,
    ink_token_boxes,
    match_symbols,
    missing_sign,
    write_formula,
    write_ink,
)
from i2l.ink.pens import PLAIN, Lines, Pen, draw_ink, draw_lines, draw_pen, stroke_boxes, symbol_scale
from i2l.ink.strokes import Ink, InkError, Symbol
from i2l.rendering.styles import PAPER
from tests.ink.written import LABELS, row_of, small_inks

BANK = Bank.of(small_inks())


@pytest.fixture
def bank():
    return BANK


def printed(formula):
    """Tokens of a formula, and boxes in a row for those that draw, as large as print."""
    tokens = normalize_formula(formula).tokens
    boxes, left = [], 0
    for token in tokens:
        if not token.visible:
            boxes.append(None)
            continue
        width = 60 if token.text in (r"\frac", r"\sqrt") else 20
        height = 2 if token.text in (r"\frac", "-") else 30
        boxes.append((left, 10, left + width, 10 + height))
        left += width + 6
    return tokens, boxes


FORMULAS = [
    "x + y = 1",
    r"\frac { 1 } { 2 }",
    r"\sqrt { x } - a",
    r"\sin x",
    r"\left( a \right)",
    r"\partial x",
]


@given(seed=st.integers(1, 2**40), formula=st.sampled_from(FORMULAS))
@settings(max_examples=60, deadline=None)
def test_boxes_hold_their_ink_and_nothing_is_outside_of_them(seed, formula):
    tokens, boxes = printed(formula)
    bank = BANK
    placed, shape = write_formula(tokens, boxes, bank=bank, seed=seed)
    pixels = draw_formula(tokens, placed, shape, bank=bank, seed=seed)
    assert pixels.shape == shape
    assert [box is None for box in placed] == [not token.visible for token in tokens]
    for box in placed:
        if box is not None:
            assert 0 <= box[0] < box[2] <= shape[1]
            assert 0 <= box[1] < box[3] <= shape[0]
    if hand_look(seed).style == PAPER:
        covered = np.zeros(shape, dtype=bool)
        for unit in formula_units(tokens):  # the letters of a word have gaps between them
            corners = np.array([placed[token] for token in unit.tokens])
            (left, top), (right, bottom) = corners[:, :2].min(axis=0), corners[:, 2:].max(axis=0)
            covered[top:bottom, left:right] = True
            assert (pixels[top:bottom, left:right] < 250).any()
        assert (pixels[~covered] == 255).all()


def test_the_same_seed_writes_the_same_and_another_does_not(bank):
    tokens, boxes = printed("x + y = a - 1")
    pictures = []
    for seed in (7, 7, 8):
        placed, shape = write_formula(tokens, boxes, bank=bank, seed=seed)
        pictures.append(draw_formula(tokens, placed, shape, bank=Bank.of(small_inks()), seed=seed))
    assert np.array_equal(pictures[0], pictures[1])
    assert not np.array_equal(pictures[0], pictures[2])


# Boxes of `\left( \frac { x } { 2 } \right) - a` as seeds write it, and the lightness of its parts.
WRITTEN = {
    5: (
        "0 0 31 95 27 39 81 51 37 4 67 36 38 56 65 86 71 2 105 97 101 41 129 51 126 26 160 58",
        "211.4 205.4 223.2 255.0 245.9 209.7 210.9 183.4 230.4 196.7 214.6 208.3 234.5 237.1 255.0",
    ),
    13: (
        "35 18 62 87 54 47 97 56 65 23 89 47 65 58 87 81 90 17 116 87 109 49 133 56 130 38 157 64",
        "247.0 235.6 228.2 245.6 247.0 246.9 221.7 207.3 222.3 225.9 247.0 241.5 244.6 243.2 247.0",
    ),
    15: (
        "29 34 61 121 57 72 114 84 70 42 100 69 72 87 97 113 105 34 138 122 135 73 163 82 165 59 196 91",
        "144.0 168.0 175.4 170.9 173.0 144.6 159.7 150.0 173.5 165.6 137.8 154.0 162.5 170.9 177.3",
    ),
    20: (
        "0 1 19 43 12 16 41 26 20 2 37 20 18 25 35 41 34 0 51 43 47 17 63 25 60 10 78 29",
        "171.7 193.7 168.4 255.0 234.2 154.4 160.0 120.0 191.0 137.6 175.4 157.7 203.1 249.9 255.0",
    ),
}


@pytest.mark.parametrize("seed", WRITTEN)
def test_a_seed_writes_in_every_version_what_it_wrote_before(bank, seed):
    """A stored sample is boxes and a seed: datasets that people have would change with it."""
    tokens = normalize_formula(r"\left( \frac { x } { 2 } \right) - a").tokens
    boxes = iter(
        [
            (0, 0, 14, 74),
            (20, 36, 60, 38),
            (30, 2, 50, 30),
            (30, 44, 48, 72),
            (64, 0, 78, 74),
            (84, 36, 104, 38),
        ]
    )
    places = [next(boxes, (110, 20, 130, 50)) if token.visible else None for token in tokens]
    placed, shape = write_formula(tokens, places, bank=bank, seed=seed)
    pixels = draw_formula(tokens, placed, shape, bank=bank, seed=seed)
    parts = [part.mean() for row in np.array_split(pixels, 3) for part in np.array_split(row, 5, axis=1)]
    corners, light = (np.array(text.split(), dtype=float) for text in WRITTEN[seed])
    assert np.abs(np.array([box for box in placed if box is not None]).ravel() - corners).max() <= 1
    np.testing.assert_allclose(parts, light, atol=2)


def test_looks_are_clean_scanned_and_photographed():
    looks = [hand_look(seed) for seed in range(1, 400)]
    clean = sum(look.style == PAPER for look in looks)
    photos = sum(look.style.photo is not None for look in looks)
    assert 180 < clean < 260
    assert 70 < photos < 140
    assert any(look.style.ink > look.style.paper for look in looks), "a blackboard"
    assert hand_look(0).pen == PLAIN
    assert hand_look(0).style == PAPER


def test_a_bank_survives_its_file_and_knows_its_writers(bank, tmp_path):
    path, again = tmp_path / "bank.npz", tmp_path / "again.npz"
    bank.save(path)
    loaded = Bank.load(path)
    loaded.save(again)
    assert path.read_bytes() == again.read_bytes()
    assert loaded.labels == sorted(LABELS)
    assert loaded.num_symbols == 6 * len(LABELS)
    for number, ink in enumerate(small_inks()):
        for one, other in zip(loaded.strokes(number), ink.strokes, strict=True):
            np.testing.assert_array_equal(np.diff(one, axis=0), np.diff(other, axis=0))
        assert [symbol.label for symbol in loaded.ink(number).symbols] == LABELS
    for content in (b"", b"PK\x03\x04", path.read_bytes()[:-40], b"[" * 99):
        again.write_bytes(content)
        with pytest.raises(InkError, match="bank"):
            Bank.load(again)


def test_only_inks_for_training_are_written_with(bank):
    restricted = bank.restricted([True, False, True, False, True, False])
    assert len(restricted) == len(bank)
    assert restricted.num_symbols == bank.num_symbols // 2
    assert restricted.groups(0) == bank.groups(0)
    assert restricted.groups(1) == []
    picked = {n for s in range(50) for n in restricted.pick(["x", "2"], random.Random(s))}
    writers = {writer_of(ink) for ink in small_inks()}
    assert writers == {"sheet0", "sheet1"}
    assert len(picked) > 2
    nobody = bank.restricted([False] * 6)
    assert not nobody.writes("x")
    assert nobody.writes(r"\partial")


def test_one_writer_writes_a_formula(bank):
    owners = []
    for seed in range(30):
        picked = bank.pick(["x", "y", "a", "b", "2", "1"], random.Random(seed))
        inks = {int(bank._arrays["symbol_inks"][symbol]) % 2 for symbol in picked}
        owners.append(len(inks))
    assert set(owners) == {1}


def test_every_drawn_sign_is_a_token_and_lies_in_its_box():
    for name, lines in drawn_signs().items():
        tokens = normalize_formula(f"{name} {{ x }}").tokens
        assert name in {unit.label for unit in formula_units(tokens)}, name
        assert lines.points.min() >= 0, name
        assert lines.points.max() <= 1, name
        assert len(lines.points) >= 2, name


def test_signs_that_nobody_writes_are_named(bank):
    assert missing_sign(normalize_formula("x + y").tokens, bank) is None
    assert missing_sign(normalize_formula(r"x \bowtie y").tokens, bank) == r"\bowtie"
    assert missing_sign(normalize_formula(r"\mathbf { x }").tokens, bank) == r"\mathbf"


@pytest.mark.parametrize(
    ("label", "written"),
    [
        (r"$\left( x \right)$", "( x )"),
        (r"$$ x \, + ~ y $$", "x + y"),
        (r"\mathrm { d } x", "d x"),
        (r"\mathrm { log } x", r"\operatorname { l o g } x"),
        (r"\lim _ {y \to x}} f", r"\operatorname* { l i m } _ { y \to x } f"),
        (r"x \ltN", "x < N"),
        (r"a \cdots b", r"a \ldots b"),
        (r"\mbox { i f }", "i f"),
        ("f ' ( x )", r"f ^ { \prime } ( x )"),
        (r"\Big( x \Big)", "( x )"),
        (r"\left. x \right|", "x |"),
        (r"\sum\limits_{i} x", r"\sum _ { i } x"),
        (r"\frac 1 {\sqrt 2}", r"\frac { 1 } { \sqrt { 2 } }"),
        (r"{(a-2x)}", "( a - 2 x )"),
        (r"\int{\frac{{q}}{p}}dp", r"\int \frac { q } { p } d p"),
        (r"{a^2}+{v}", "a ^ { 2 } + v"),
        (r"{a_1}^2", "a _ { 1 } ^ { 2 }"),
        (r"{a^1}^2", "{ a ^ { 1 } } ^ { 2 }"),
        (r"x^{{1}}", "x ^ { 1 }"),
        (r"x^{^{\prime}}", r"x ^ { \prime }"),
        (r"y\prime", r"y ^ { \prime }"),
        (r"{}^{2}a", "{ } ^ { 2 } a"),
        (r"\sqrt[3]{{x}}", r"\sqrt [ 3 ] { x }"),
        (r"\sqrt\frac ab", r"\sqrt { \frac { a } { b } }"),
        (
            r"\left\{\begin{array}{c}{{a}}\\ {b_1}c\end{array}\right.",
            r"\{ \begin{array} { c } { a } \\ { b _ { 1 } c } \\ \end{array}",
        ),
    ],
)
def test_labels_say_what_ink_shows(label, written):
    found = written_formula(label).formula
    assert found == written
    assert " ".join(written_tokens(found.split())) == found, "once is enough"


def test_letters_that_are_one_symbol_are_one_word():
    latex = "$log _ 2 x + 2$"
    assert ink_latex(row_of([r"\sin", "x"], latex=latex)) == latex
    assert ink_latex(row_of([r"\sin", "x"], latex="s i n x")) == r"\sin  x"
    assert ink_latex(row_of([r"\sin", "x"], latex=r"\sin x sin")) == r"\sin x sin"


def test_labels_of_the_field():
    tokens = normalize_formula(r"\sin ^ 2 x \to \lim _ { n } a < b").formula.split()
    assert label_tokens(tokens) == [
        *(r"\sin", "^", "{", "2", "}", "x", r"\rightarrow", r"\lim", "_", "{", "n", "}", "a", r"\lt", "b"),
    ]


def test_words_are_one_unit():
    units = formula_units(normalize_formula(r"\sin x + \frac { 1 } { \sqrt { 2 } }").tokens)
    assert [unit.label for unit in units] == [r"\sin", "x", "+", "-", "1", r"\sqrt", "2"]
    assert len(units[0].tokens) == 3


def test_symbols_of_one_label_are_told_apart_by_their_places():
    """x_1 over x_2: in the ink the lower x was written first."""
    tokens = normalize_formula(r"\frac { x + 1 } { x + 2 }").tokens
    boxes = iter([(0, 40, 80, 42), (0, 0, 20, 30), (30, 0, 50, 30), (60, 0, 80, 30)])
    below = iter([(0, 50, 20, 80), (30, 50, 50, 80), (60, 50, 80, 80)])
    places = [next(boxes, None) or next(below) if token.visible else None for token in tokens]
    ink = row_of(["x", "+", "2", "-", "x", "+", "1"])
    targets = [(0, 300), (300, 300), (600, 300), (250, 180), (0, 0), (300, 0), (600, 0)]
    strokes = list(ink.strokes)
    for symbol, target in zip(ink.symbols, targets, strict=True):
        corner = np.concatenate([strokes[n] for n in symbol.strokes]).min(axis=0)
        for number in symbol.strokes:
            strokes[number] = strokes[number] - corner + target
    moved = Ink(tuple(strokes), symbols=ink.symbols)
    units = formula_units(tokens)
    found = match_symbols(moved, units, places)
    assert [moved.symbols.index(symbol) for symbol in found] == [3, 4, 5, 6, 0, 1, 2]
    drawn, shape = write_ink(moved, seed=3)
    own = ink_token_boxes(drawn, found, units, len(tokens), printed=places, seed=3)
    known = [box for box in own if box is not None]
    assert len(known) == 7
    assert known[1][1] < known[4][1], "the upper x is the first"
    assert all(0 <= box[0] < box[2] <= shape[1] and 0 <= box[1] < box[3] <= shape[0] for box in known)


@given(seed=st.integers(0, 2**40))
@settings(max_examples=40, deadline=None)
def test_real_inks_keep_inside_their_picture(seed):
    ink = row_of(["x", "+", "2", "=", "a"], seed=seed % 5)
    written, shape = write_ink(ink, bank=BANK, seed=seed)
    pixels = draw_written_ink(written, shape, seed=seed)
    assert pixels.shape == shape
    look = hand_look(seed)
    if look.style == PAPER:
        points = np.concatenate(written.strokes)
        assert points.min() >= 0
        assert (points.max(axis=0) <= (shape[1], shape[0])).all()
        assert (pixels < 128).any()
    if seed == 0:
        np.testing.assert_allclose(
            np.diff(written.strokes[0], axis=0) * (ink.strokes[0][1, 0] - ink.strokes[0][0, 0]),
            np.diff(ink.strokes[0], axis=0) * (written.strokes[0][1, 0] - written.strokes[0][0, 0]),
        )


def test_ink_is_drawn_at_the_scale_of_models():
    for factor in (0.01, 1.0, 250.0):
        ink = row_of(["x", "y", "a", "b"])
        scaled = Ink(tuple(stroke * factor for stroke in ink.strokes))
        pixels, scale, _ = draw_ink(scaled)
        height = np.ptp(np.flatnonzero((pixels < 128).any(axis=1)))
        assert 0.8 * SYMBOL_PX < height < 1.5 * SYMBOL_PX
        assert scale == pytest.approx(symbol_scale(stroke_boxes(scaled.strokes)))


def test_degenerate_strokes_are_drawn():
    for strokes in (
        [[[5.0, 5.0]]],
        [[[0.0, 0.0], [0.0, 0.0]]],
        [[[0, 0], [1e9, 0]]],
        [[[0, 0]], [[1e8, 1e-9]]],
    ):
        pixels, _, _ = draw_ink(Ink(tuple(np.array(stroke, dtype=float) for stroke in strokes)))
        assert (pixels < 128).any()
        assert max(pixels.shape) <= 4_002


@given(st.randoms(use_true_random=False))
@settings(max_examples=50, deadline=None)
def test_every_pen_leaves_ink_near_its_line(source):
    pen = draw_pen(source)
    line = Lines.of([np.array([[20.0, 20.0], [40.0, 22.0], [60.0, 20.0], [80.0, 24.0]])])
    pixels = draw_lines(line, (48, 100), pen)
    rows, columns = np.nonzero(pixels < 200)
    assert len(rows) > 30
    assert rows.min() >= 20 - pen.width_px - 1
    assert rows.max() <= 24 + pen.width_px + 1
    assert 15 <= columns.min() <= 30
    assert 70 <= columns.max() <= 86


@pytest.mark.parametrize("turn", [0.45, 0.55, 1.5])
def test_a_line_has_no_notch_where_it_turns(turn):
    """All that is nearer to the line than half a pen's width is ink, outside of a corner too."""
    corner = np.array([60.0, 40.0])
    end = corner + 50 * np.array([np.cos(turn), np.sin(turn)])
    pixels = draw_lines(
        Lines.of([np.array([[10.0, 40.0], corner, end])]), (110, 130), Pen(12.0, smooth=False)
    )
    outwards = np.array([np.sin(turn / 2), -np.cos(turn / 2)])
    for reach in (2.0, 3.5, 5.0):
        x, y = corner + reach * outwards
        assert pixels[int(y), int(x)] < 64, reach


def test_lines_are_as_wide_as_their_pen():
    line = Lines.of([np.array([[10.0, 30.0], [90.0, 30.0]])])
    for width in (1.5, 3.0, 6.0):
        column = draw_lines(line, (60, 100), Pen(width_px=width))[:, 50]
        assert (255 - column.astype(float)).sum() / 255 == pytest.approx(width, abs=0.35)


def test_another_writer_writes_in_the_same_places():
    """Half of the copies are another writer's; each symbol keeps its label, its place and about its size."""
    ink = row_of(["x", "+", "2", "=", "a"])
    others = [
        replace(known, strokes=tuple(s.repeat(2, axis=0) for s in known.strokes)) for known in small_inks()
    ]
    bank = Bank.of(others)  # whose strokes have twice the points
    counts = {"own": 0, "other": 0}
    for seed in range(1, 61):
        written, _ = write_ink(ink, bank=bank, seed=seed)
        alone, _ = write_ink(ink, seed=seed)
        assert [s.label for s in written.symbols] == [s.label for s in ink.symbols]
        assert sorted(n for s in written.symbols for n in s.strokes) == list(range(len(written.strokes)))
        assert [s.strokes for s in alone.symbols] == [s.strokes for s in ink.symbols]
        own = [len(stroke) for stroke in written.strokes] == [len(stroke) for stroke in ink.strokes]
        counts["own" if own else "other"] += 1
        boxes = []
        for symbol in written.symbols:
            points = np.concatenate([written.strokes[n] for n in symbol.strokes])
            boxes.append((*points.min(axis=0), *points.max(axis=0)))
        middles = [(left + right) / 2 for left, _, right, _ in boxes]
        assert middles == sorted(middles)
        tall = [bottom - top for _, top, _, bottom in boxes]
        assert 0.2 < tall[0] / tall[2] < 5
    assert min(counts.values()) > 10


def test_an_ink_with_a_sign_that_no_other_writes_stays_its_writers():
    ink = row_of(["x", "+", "2"])
    strange = Ink(ink.strokes, symbols=(Symbol("\\unheard", ink.symbols[0].strokes), *ink.symbols[1:]))
    for seed in range(1, 20):
        written, _ = write_ink(strange, bank=BANK, seed=seed)
        assert [len(stroke) for stroke in written.strokes] == [len(stroke) for stroke in ink.strokes]


def test_labels_have_what_is_below_before_what_is_above():
    assert " ".join(written_tokens([*"x^{2}_{1}"])) == "x _ { 1 } ^ { 2 }"
