"""How pieces of ink become formulas, case by case: each was found wrong on a page once."""

import numpy as np

from i2l.images.ink import measure_pieces
from i2l.pages.find import CELL_PX, NUM_CLASSES, PageInk, _Assembly

SYMBOL = 12  # height of small letters; a network that sees them so high has cells of two pixels
TEXT, INLINE, DISPLAYED, NUMBER = range(NUM_CLASSES)


def letters(left, top, count, width=8, height=SYMBOL):
    """Boxes of some letters in a row."""
    return [(x, top, x + width, top + height) for x in range(left, left + count * (width + 4), width + 4)]


def equality(left, top):
    """Boxes of the two bars of a sign of equality."""
    return [(left, top + 3, left + 14, top + 5), (left, top + 8, left + 14, top + 10)]


def found(signs, regions):
    """What is found where signs are ink of their kinds, regions of theirs, and all the rest is text."""
    ink = np.zeros((200, 400), np.uint8)
    cells = np.zeros((2 * NUM_CLASSES, ink.shape[0] // CELL_PX, ink.shape[1] // CELL_PX), np.float32)
    cells[[TEXT, NUM_CLASSES + TEXT]] = 1

    def say(kind, box, first):
        left, top, right, bottom = (side // CELL_PX for side in box)
        cells[first + np.arange(NUM_CLASSES), top : bottom + 1, left : right + 1] = 0
        cells[first + kind, top : bottom + 1, left : right + 1] = 1

    for kind, box in regions:
        say(kind, box, 0)
    for kind, boxes in signs:
        for left, top, right, bottom in boxes:
            ink[top:bottom, left:right] = 255
            say(kind, (left, top, right, bottom), NUM_CLASSES)
    page = PageInk(ink, measure_pieces(ink > 0)[0], float(SYMBOL))
    formulas = _Assembly(page, cells, None, float(SYMBOL)).found.formulas
    return [(formula.kind, formula.box) for formula in formulas]


def test_a_row_that_begins_with_equality_goes_on_with_the_display_above():
    rows = [*letters(60, 20, 4), *equality(110, 20), *letters(130, 20, 6)]
    more = [*equality(110, 60), *letters(130, 60, 8)]
    regions = [(DISPLAYED, (56, 16, 200, 36)), (DISPLAYED, (106, 56, 222, 76))]
    assert found([(DISPLAYED, rows + more)], regions) == [("displayed", (60, 20, 222, 72))]
    between = letters(60, 40, 5)
    assert len(found([(DISPLAYED, rows + more), (TEXT, between)], regions)) == 2


def test_rows_with_equalities_under_each_other_are_one_display_and_others_two():
    rows = [*letters(60, 20, 4), *equality(110, 20), *letters(130, 20, 6)]
    regions = [(DISPLAYED, (56, 16, 200, 36)), (DISPLAYED, (80, 44, 222, 66))]
    aligned = [*letters(84, 48, 2), *equality(110, 48), *letters(130, 48, 8)]
    assert found([(DISPLAYED, rows + aligned)], regions) == [("displayed", (60, 20, 222, 60))]
    centred = [*letters(84, 48, 3), *equality(122, 48), *letters(142, 48, 7)]
    assert len(found([(DISPLAYED, rows + centred)], regions)) == 2


def test_inline_formulas_in_two_lines_are_two():
    upper, lower = letters(60, 20, 5), letters(100, 50, 5)
    words = [*letters(8, 20, 3), *letters(8, 50, 6), *letters(190, 50, 5)]
    regions = [(INLINE, (58, 20, 116, 34)), (INLINE, (98, 34, 156, 62))]  # they touch
    assert found([(INLINE, upper + lower), (TEXT, words)], regions) == [
        ("inline", (60, 20, 116, 32)),
        ("inline", (100, 50, 156, 62)),
    ]


def test_a_sign_of_the_next_line_is_no_script():
    base, below = letters(60, 20, 2), letters(64, 48, 1)
    words = [*letters(8, 20, 3), *letters(8, 48, 4), *letters(90, 48, 4)]
    regions = [(INLINE, (58, 20, 80, 32))]
    assert found([(INLINE, base + below), (TEXT, words)], regions) == [("inline", (60, 20, 80, 32))]


def test_a_display_has_nothing_of_the_line_of_text_below_it():
    display, words = letters(60, 20, 12), letters(20, 50, 12)
    marks = letters(170, 46, 3, width=4, height=8)  # as of a reference; the network is wrong about them
    regions = [(DISPLAYED, (56, 16, 206, 58))]
    assert found([(DISPLAYED, display + marks), (TEXT, words)], regions) == [
        ("displayed", (60, 20, 200, 32)),
    ]


def test_a_few_cells_of_a_display_do_not_make_an_inline_formula_one():
    formula, words = letters(60, 20, 8), [*letters(8, 20, 4), *letters(170, 20, 8)]
    regions = [(INLINE, (58, 20, 154, 32)), (DISPLAYED, (58, 16, 68, 30))]
    assert found([(INLINE, formula), (TEXT, words)], regions) == [("inline", (60, 20, 152, 32))]


def test_the_bracket_of_the_text_beside_a_letter_is_not_of_the_formula():
    letter, bracket = [(60, 20, 68, 32)], (70, 16, 75, 36)
    regions = [(INLINE, (58, 20, 76, 32))]
    signs = [(TEXT, [bracket, *letters(8, 20, 3)]), (INLINE, [*letter, (70, 16, 75, 20)])]
    assert found(signs, regions) == [("inline", (60, 20, 68, 32))]
