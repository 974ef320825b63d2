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
    formula_units,
    ink_latex,
    label_tokens,
    unit_shape,
    writer_of,
    written_formula,
    written_tokens,
)
from i2l.ink.hand import (
    _closed_up,
    _stretched_arrow,
    draw_formula,
    draw_written_ink,
    hand_look,
    ink_token_boxes,
    match_symbols,
    missing_sign,
    write_formula,
    write_ink,
)
from i2l.ink.pens import (
    PLAIN,
    Lines,
    Pen,
    draw_ink,
    draw_lines,
    draw_pen,
    drawn_signs,
    stroke_boxes,
    symbol_scale,
)
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
        "28 16 48 53 40 30 68 40 45 18 62 36 45 35 62 53 58 17 78 54 70 31 87 40 82 24 100 43",
        "214.1 209.4 208.4 211.1 213.9 214.5 188.1 161.7 178.4 197.3 211.8 214.9 216.8 215.8 214.6",
    ),
    13: (
        "35 17 51 48 44 29 69 36 49 17 64 33 50 33 63 47 63 17 78 48 73 29 86 36 84 25 99 39",
        "10.7 18.5 26.0 17.7 12.5 12.8 29.0 54.2 44.4 26.3 11.1 12.2 13.0 11.1 12.5",
    ),
    15: (
        "29 25 48 61 41 38 67 47 44 26 61 42 46 43 62 59 59 24 78 61 70 38 86 47 82 32 99 50",
        "140.6 164.9 166.7 167.4 164.5 155.4 140.7 108.2 140.2 169.2 144.1 170.3 176.2 182.7 178.8",
    ),
    20: (
        "17 19 34 52 26 31 51 41 30 19 46 36 29 34 46 51 44 19 62 54 55 31 71 40 66 26 83 44",
        "232.8 233.1 232.9 232.9 233.0 232.9 163.6 148.3 187.5 186.1 233.0 184.9 186.6 199.8 218.5",
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
    assert 90 < clean < 150
    assert 180 < photos < 260
    boards = sum(look.style.ink > look.style.paper for look in looks)
    assert 20 < boards < 80
    coarse = [look.coarse for look in looks if look.style.photo is not None]
    assert 0.3 < sum(factor > 1 for factor in coarse) / len(coarse) < 0.5
    assert max(coarse) <= 2.6
    cut = [look for look in looks if look.style.photo is not None and look.style.photo.cut_top_em]
    assert cut, "a line above that is cut off"
    for look in cut:
        photo = look.style.photo
        assert look.style.margin_top_px == round((photo.gap_em + photo.cut_top_em) * 100 / 3)
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
        (r"a \cdots b \dots c", r"a \cdots b \ldots c"),
        (r"\overrightarrow{v} \vec{AB}", r"\vec { v } \overrightarrow { A B }"),
        (r"\overline x \bar{x_1}", r"\bar { x } \overline { x _ { 1 } }"),
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
            r"\begin{cases} { a } \\ { b _ { 1 } c } \\ \end{cases}",
        ),
        (
            r"\left|\begin{array}{rl}{a}&b\\ c\end{array}\right|",
            r"| \begin{matrix} { a } & { b } \\ { c } \\ \end{matrix} |",
        ),
        (
            r"\left\{\begin{array}{lcr}a&b&c\end{array}\right.",
            r"\{ \begin{array} { l c r } { a } & { b } & { c } \\ \end{array}",
        ),
        (
            r"\left(\begin{array}{c|c}a&b\end{array}\right)",
            r"( \begin{array} { c | c } { a } & { b } \\ \end{array} )",
        ),
        (
            r"\left(\begin{array}{l}\left[\begin{array}{r}a\end{array}\right]\end{array}\right)",
            r"( \begin{matrix} { [ \begin{matrix} { a } \\ \end{matrix} ] } \\ \end{matrix} )",
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


def laid_out(formula, boxes):
    """Tokens of a formula, and the boxes of those that draw, one after the other."""
    tokens = normalize_formula(formula).tokens
    places = iter(boxes)
    return tokens, [next(places) if token.visible else None for token in tokens]


@pytest.mark.parametrize("accent", [r"\overrightarrow", r"\overline", r"\widehat"])
def test_what_stands_above_is_as_wide_as_what_is_below(bank, accent):
    """TeX sets an accent of one size where a hand draws over all of it."""
    tokens, boxes = laid_out(
        rf"{accent} {{ x y }} = a",
        [(18, 0, 30, 6), (0, 10, 20, 40), (26, 10, 50, 40), (60, 20, 80, 30), (86, 10, 106, 40)],
    )
    for seed in range(1, 40):
        placed, _ = write_formula(tokens, boxes, bank=bank, seed=seed)
        above, x, y, *_ = (box for box in placed if box is not None)
        left, right, top = min(x[0], y[0]), max(x[2], y[2]), min(x[1], y[1])
        assert 0.7 < (above[2] - above[0]) / (right - left) < 1.4, seed
        assert abs(above[0] + above[2] - left - right) / 2 < 0.3 * (right - left), seed
        assert above[1] < top, seed
        assert above[3] <= top + 2 * hand_look(seed).inset_px + 2, seed


def test_a_long_arrow_has_the_head_of_a_short_one():
    """The line is drawn to length; the head keeps its size and its side."""
    arrow = unit_shape(
        np.array([[0.0, 20], [60, 20], [100, 20], [80, 0], [100, 20], [80, 40]]),
        np.zeros(6, dtype=np.int64),
    )
    for times in (1.0, 2.0, 6.0):
        x = _stretched_arrow(arrow, times * arrow.aspect, leftwards=False)
        assert (x[0], x[2]) == (0, 1)
        assert 1 - x[3] == pytest.approx(0.2 / times)
        mirrored = arrow._replace(points=arrow.points * (-1, 1) + (1, 0))
        np.testing.assert_allclose(_stretched_arrow(mirrored, times * arrow.aspect, leftwards=True), 1 - x)
    short = _stretched_arrow(arrow, 0.5 * arrow.aspect, leftwards=False)
    np.testing.assert_allclose(short, arrow.points[:, 0])


def test_wide_gaps_are_as_wide_as_a_hand_leaves_them():
    printed = np.array(
        [[0.0, 0, 20, 30], [22, 0, 40, 30], [100, 0, 120, 30], [0, 40, 60, 70], [190, 0, 200, 30]]
    )
    widths = set()
    for seed in range(30):
        closed = _closed_up(printed, random.Random(seed))
        np.testing.assert_allclose(closed[:, 2:] - closed[:, :2], printed[:, 2:] - printed[:, :2])
        np.testing.assert_allclose(closed[[0, 1, 3]], printed[[0, 1, 3]])  # no gap of the picture beside them
        gaps = closed[2, 0] - closed[3, 2], closed[4, 0] - closed[2, 2]
        assert 13 < gaps[0] < 44
        assert gaps[0] < gaps[1] < 80
        widths.add(round(gaps[1]))
    assert len(widths) > 20


def test_tall_brackets_are_written_tall(bank):
    tokens, boxes = laid_out(
        r"( \frac { x } { 2 } )",
        [(0, 0, 14, 80), (20, 40, 60, 42), (30, 4, 50, 34), (30, 46, 50, 76), (66, 0, 80, 80)],
    )
    for seed in range(1, 30):
        placed, _ = write_formula(tokens, boxes, bank=bank, seed=seed)
        left, _, over, *_ = (box for box in placed if box is not None)
        assert left[3] - left[1] > 1.7 * (over[3] - over[1]), seed


def test_a_photograph_may_show_a_part_of_the_next_line(bank):
    """Ink of a neighbour lies in the margin of the picture, beyond all boxes."""
    tokens, boxes = printed("x + y = a - 1")
    cut = [s for s in range(1, 900) if (p := hand_look(s).style.photo) and p.cut_bottom_em > 0.3][:5]
    assert len(cut) == 5
    for seed in cut:
        placed, shape = write_formula(tokens, boxes, bank=bank, seed=seed)
        pixels = draw_formula(tokens, placed, shape, bank=bank, seed=seed)
        assert pixels.shape == shape
        below = max(box[3] for box in placed if box is not None)
        look = hand_look(seed)
        margin = pixels[below + 4 :].astype(int)
        assert np.abs(margin - np.median(margin)).max() > 0.25 * abs(look.style.ink - look.style.paper)
