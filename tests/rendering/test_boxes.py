"""Boxes against ink: the pixels themselves say whether a box is right."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from i2l.formulas.lexer import FormulaError
from i2l.formulas.normalize import normalize_formula
from i2l.rendering.boxes import NO_TOKEN, mark_tokens, match_ink, token_boxes
from i2l.rendering.rasterize import Glyph
from i2l.rendering.render import draw_boxes, render_formulas
from i2l.rendering.styles import Style
from tests.formulas.test_kept import COMMANDS, FORMULAS, RARE, SELDOM
from tests.kept import assert_text_kept
from tests.rendering.random_formulas import random_formula

pytestmark = pytest.mark.tex

TRACE = 253  # lighter is no ink: the edge of a rule that covers a thousandth of a pixel


@pytest.fixture(scope="module")
def drawn():
    """200 formulas of every construct, with their boxes."""
    return render_formulas([random_formula(seed) for seed in range(200)], boxes=True)


def has_ink(pixels, box):
    left, top, right, bottom = box
    return bool((pixels[top:bottom, left:right] < 255).any())


def edges(box):
    """The outermost rows and columns of a box."""
    left, top, right, bottom = box
    return [
        (left, top, right, top + 1),
        (left, bottom - 1, right, bottom),
        (left, top, left + 1, bottom),
        (right - 1, top, right, bottom),
    ]


def test_every_visible_token_has_a_box(drawn):
    assert all(result.reason is None for result in drawn)
    assert sum(result.boxes is not None for result in drawn) >= 0.97 * len(drawn)
    for result in drawn:
        if result.boxes is not None:
            visible = [token.visible for token in normalize_formula(result.formula).tokens]
            assert [box is not None for box in result.boxes] == visible


def test_all_ink_is_in_boxes_and_all_boxes_are_tight(drawn):
    num_loose = num_edges = num_uncovered = 0
    for result in drawn:
        covered = np.zeros(result.pixels.shape, dtype=bool)
        height, width = covered.shape
        for box in result.boxes or []:
            if box is None:
                continue
            left, top, right, bottom = box
            assert 0 <= left < right <= width
            assert 0 <= top < bottom <= height
            covered[top:bottom, left:right] = True
            num_loose += sum(not has_ink(result.pixels, edge) for edge in edges(box))
            num_edges += 4
            # never by more than a pixel
            assert has_ink(result.pixels, (left, top, min(left + 2, right), bottom))
            assert has_ink(result.pixels, (max(right - 2, left), top, right, bottom))
        if result.boxes is not None:
            num_uncovered += int(((result.pixels < TRACE) & ~covered).any())
    assert num_loose <= num_edges / 1000
    assert num_uncovered == 0


def test_a_letter_is_where_its_box_says(drawn):
    """A letter on the main line looks in its box as it does alone."""
    alone = {
        result.formula: result.pixels
        for result in render_formulas(["a", "x", "M", r"\alpha", r"\Omega", "7", r"\partial"])
    }
    checked = 0
    for result in drawn:
        tokens = result.formula.split()
        plain = len({"{", "\\left(", "\\left["} & set(tokens)) == 0
        for token, box in zip(tokens, result.boxes or [], strict=False):
            if plain and box is not None and token in alone:
                left, top, right, bottom = box
                assert np.array_equal(result.pixels[top:bottom, left:right], alone[token]), result.formula
                checked += 1
    assert checked >= 5


FRACTION = r"\frac { a } { b }"
ROOT = r"\sqrt [ 3 ] { x }"
SUM = r"\sum _ { i } ^ { n }"
TALL = r"\left( \begin{array} { c } " + 9 * r"{ x } \\ " + r"\end{array} \right)"
RULES = r"\begin{array} { | c || c } \hline { a } & { b } \\ { c } & { d } \\ \end{array}"
LIGATURE = r"\mathrm { e f f }"
SWAPPED = r"{ \dot { x } _ { a } } ^ { 2 }"  # TeX draws the 2 first, but on the marked page the a
DIALECT = r"{a\over b}"
WILD = r"\def\y{x}\y"


@pytest.fixture(scope="module")
def named():
    """The formulas above, by themselves."""
    results = render_formulas(
        [FRACTION, ROOT, SUM, TALL, RULES, LIGATURE, SWAPPED, DIALECT, WILD], boxes=True
    )
    return {result.formula: result for result in results}


def inside(box, other):
    return other[0] <= box[0] and other[1] <= box[1] and box[2] <= other[2] and box[3] <= other[3]


def test_a_fraction_bar_lies_between_its_parts(named):
    boxes = named[FRACTION].boxes
    bar, above, below = boxes[0], boxes[2], boxes[5]
    assert above[3] <= bar[1] < bar[3] <= below[1]
    assert bar[0] <= above[0] < above[2] <= bar[2]


def test_a_root_reaches_around_what_it_covers(named):
    boxes = named[ROOT].boxes
    root, index, base = boxes[0], boxes[2], boxes[5]
    assert inside(base, root)
    assert root[0] <= index[0] < index[2] < base[0]


def test_a_sum_is_apart_from_its_limits(named):
    boxes = named[SUM].boxes
    sign, below, above = boxes[0], boxes[3], boxes[7]
    assert above[3] < sign[1]
    assert sign[3] < below[1]


def test_a_tall_delimiter_made_of_pieces_is_one_box(named):
    boxes = named[TALL].boxes
    assert boxes[0][3] - boxes[0][1] == boxes[-1][3] - boxes[-1][1] == named[TALL].pixels.shape[0]


def test_rules_of_an_array(named):
    pixels, boxes = named[RULES].pixels, named[RULES].boxes
    height, width = pixels.shape
    bars = [boxes[index] for index in (2, 4, 5)]
    assert [bar[0] for bar in bars] == sorted(bar[0] for bar in bars)
    assert all(bar[3] - bar[1] > 0.9 * height and bar[2] - bar[0] <= 3 for bar in bars)
    assert boxes[8][2] - boxes[8][0] > 0.9 * width
    assert boxes[8][1] == 0


def test_letters_of_a_ligature_share_its_box(named):
    boxes = named[LIGATURE].boxes
    assert boxes[2] != boxes[3] == boxes[4]


def test_scripts_drawn_in_another_order(named):
    boxes = named[SWAPPED].boxes
    base, below, above = boxes[3], boxes[7], boxes[12]
    assert above[3] < below[1]
    assert base[0] < below[0] < base[2] + 5


def test_a_formula_of_another_dialect_has_the_boxes_of_its_canonical_tokens(named):
    boxes = named[DIALECT].boxes
    assert sum(box is not None for box in boxes) == 3


def test_no_boxes_rather_than_wrong_ones(named):
    boxes = named[WILD].boxes
    assert boxes is None
    plain = [Glyph(None, "F", code, "", "F1", 10.0, 1.0, 0.0, 0.0, 0.0, 0) for code in b"abc"]
    marked = [glyph._replace(token=number, code=glyph.code + 9) for number, glyph in enumerate(plain)]
    assert match_ink(plain, marked) is None


@pytest.mark.parametrize(
    "style",
    [
        Style(dpi=97),
        Style(dpi=300, font="latin-modern", size_pt=9, display=False),
        Style(dpi=150, rotation_deg=1.7),
        Style(dpi=120, rotation_deg=-2, margin_left_px=20, margin_top_px=11),
    ],
    ids=["low", "fine", "turned", "framed"],
)
def test_boxes_follow_the_style(style):
    results = render_formulas([random_formula(seed) for seed in range(30)], boxes=True, style=style)
    assert sum(result.boxes is not None for result in results) >= 29
    for result in results:
        covered = np.zeros(result.pixels.shape, dtype=bool)
        for box in result.boxes or []:
            if box is not None:
                left, top, right, bottom = box
                covered[max(0, top - 1) : bottom + 1, max(0, left - 1) : right + 1] = True
                assert has_ink(result.pixels, box)
        assert result.boxes is None or not ((result.pixels < TRACE) & ~covered).any()


@given(
    st.lists(st.integers(0, 3), max_size=12),
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 5)), max_size=12),
)
def test_every_piece_of_ink_has_owners_or_there_are_none(plain, marked):
    def glyph(code, token):
        return Glyph(token, "font", code, "shape", "F1", 10.0, 1.0, 0.0, 0.0, 0.0, 0)

    owners = match_ink([glyph(code, None) for code in plain], [glyph(*pair) for pair in marked])
    assert owners is None or len(owners) == len(plain)


def test_outlines_lie_on_the_outermost_pixels_of_their_boxes():
    drawn = np.asarray(draw_boxes(np.full((6, 10), 255, np.uint8), [None, (2, 1, 5, 4)]))
    rows, columns = np.nonzero((drawn != 255).any(axis=2))
    assert drawn.shape == (18, 30, 3)
    assert (columns.min(), rows.min(), columns.max() + 1, rows.max() + 1) == (6, 3, 15, 12)
    assert len(rows) == 9 * 9 - 7 * 7


def test_marks_stand_where_they_stood():
    """What TeX sees of a formula with marks, for every command and kind of environment."""
    lines = []
    for source in [*FORMULAS, *SELDOM, *RARE, *COMMANDS, *MARKED]:
        try:
            lines.append(mark_tokens(normalize_formula(source)).replace(r"\itltoken", "@").strip())
        except FormulaError:
            lines.append("refused")
    assert_text_kept("marks", lines)


MARKED = [
    r"\begin{array}{c|c}\multicolumn{2}{|c|}{a+b}\\\cline{1-2}c&d\\\hline\end{array}",
    r"\begin{array}[t]{l@{x}r}a&b\end{array}\begin{alignedat}{2}a&b\end{alignedat}",
    r"\frac ab\sqrt x\hat\alpha x^\frac12 y_\mathrm{a}",
    r"\sum\limits_a^b\mathop{x}\nolimits^2\rule{1pt}{2pt}\big(\middle|",
    r"\'e\"{o}x\limits_a\left(a\middle|b\right)",
]


def test_ink_of_a_formula_is_that_of_its_visible_tokens():
    """Boxes join all ink of a token; ink of no token is left out, and tokens without ink give no boxes."""
    tokens = normalize_formula("x + y").tokens
    places = [(0, 0, 5, 5), (3, 2, 9, 4), (20, 0, 25, 5), (30, 0, 35, 5), None]
    owners = [[0], [0], [1], [2, NO_TOKEN], [NO_TOKEN]]
    assert token_boxes(tokens, owners, places) == [(0, 0, 9, 5), (20, 0, 25, 5), (30, 0, 35, 5)]
    assert token_boxes(tokens, [[0], [0], [1], [NO_TOKEN], [2]], places) is None
    assert token_boxes(tokens, [[0], [0], [1], [2], [7]], [*places[:4], (1, 1, 2, 2)]) is None
