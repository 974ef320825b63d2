"""How pieces of ink become formulas, case by case: each was found wrong on a page once."""

import numpy as np
import pytest

from i2l.images.ink import measure_pieces
from i2l.pages.gather import CELL_PX, NUM_CLASSES, Gathering, PageInk
from i2l.pages.shapes import find_characters

SYMBOL = 12  # height of small letters; a network that sees them so high has cells of two pixels
TEXT, INLINE, DISPLAYED, NUMBER = range(NUM_CLASSES)


def letters(left, top, count, width=8, height=SYMBOL):
    """Boxes of some letters in a row."""
    return [(x, top, x + width, top + height) for x in range(left, left + count * (width + 4), width + 4)]


def equality(left, top):
    """Boxes of the two bars of a sign of equality."""
    return [(left, top + 3, left + 14, top + 5), (left, top + 8, left + 14, top + 10)]


def found(signs, regions, symbol_px=SYMBOL, characters=()):
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
    squares = np.array(characters, np.int64).reshape(-1, 4)
    page = PageInk(ink, measure_pieces(ink > 0)[0], float(symbol_px), squares)
    formulas = Gathering(page, cells, None, float(symbol_px)).found.formulas
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


def test_the_number_of_the_page_is_no_row_of_the_display_above_it():
    words = letters(20, 20, 30)  # the page is 20 to 376 wide, its middle is at 198
    display, number = letters(140, 60, 10), [(194, 84, 202, 100)]
    regions = [(DISPLAYED, (136, 56, 262, 102))]
    signs = [(TEXT, words), (DISPLAYED, [*display, *number])]
    assert found(signs, regions) == [("displayed", (140, 60, 256, 72))]
    signs = [(TEXT, [*words, *letters(20, 130, 30)]), (DISPLAYED, [*display, *number])]
    assert found(signs, regions) == [("displayed", (140, 60, 256, 100))], "more ink is below it"
    limit = [(194, 77, 202, 93)]
    assert found([(TEXT, words), (DISPLAYED, [*display, *limit])], regions) == [
        ("displayed", (140, 60, 256, 93))
    ]
    aside = [(224, 84, 232, 100)]
    assert found([(TEXT, words), (DISPLAYED, [*display, *aside])], regions) == [
        ("displayed", (140, 60, 256, 100))
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


def test_equalities_one_pixel_apart_are_under_each_other_where_type_is_small():
    rows = [*letters(60, 20, 4), *equality(110, 20), *letters(130, 20, 6)]
    regions = [(DISPLAYED, (56, 16, 200, 36)), (DISPLAYED, (80, 46, 222, 66))]
    for off, displays in ((1, 1), (4, 2)):
        aligned = [*letters(84, 50, 2), *equality(110 + off, 50), *letters(130, 50, 8)]
        assert len(found([(DISPLAYED, rows + aligned)], regions, symbol_px=6.0)) == displays


def test_tall_signs_do_not_join_the_formulas_of_two_lines_with_words():
    upper, lower = [(60, 16, 70, 40), *letters(74, 20, 3)], [(60, 43, 70, 68), *letters(74, 48, 3)]
    words = [*letters(8, 20, 3), *letters(8, 48, 3), *letters(120, 20, 5), *letters(120, 48, 5)]
    regions = [(INLINE, (58, 20, 106, 60))]  # one of both lines
    assert found([(INLINE, upper + lower), (TEXT, words)], regions) == [
        ("inline", (60, 16, 106, 40)),
        ("inline", (60, 43, 106, 68)),
    ]


def test_what_lies_in_a_formula_is_of_it():
    formula = [(60, 14, 64, 46), *letters(68, 20, 3), (112, 14, 116, 46)]
    regions = [(INLINE, (58, 20, 116, 32)), (INLINE, (78, 36, 90, 44))]
    signs = [(INLINE, [*formula, (80, 36, 88, 44)]), (TEXT, letters(8, 20, 3))]
    assert found(signs, regions) == [("inline", (60, 14, 116, 46))]


@pytest.mark.parametrize(
    ("gap", "brackets", "formulas"), [(10, False, 2), (5, False, 1), (20, False, 1), (10, True, 1)]
)
def test_a_list_is_as_many_formulas_as_words_would_be(gap, brackets, formulas):
    first, comma = letters(60, 20, 3), (94, 29, 98, 36)
    second = letters(98 + gap, 20, 3)
    words = [box for left in (8, 240, 270, 300, 330) for box in letters(left, 20, 2)]  # ten pixels between
    signs = [*first, comma, *second]
    if brackets:
        signs += [(50, 14, 52, 38), (52, 14, 56, 16), (52, 36, 56, 38)]
    regions = [(INLINE, (50, 20, 98 + gap + 32, 32))]
    assert len(found([(INLINE, signs), (TEXT, words)], regions)) == formulas


def character(left, top, side=24):
    """Boxes of the strokes of a square character: three across and three down."""
    across = [(left, y, left + side, y + 2) for y in (top, top + side // 2 - 1, top + side - 2)]
    return across + [(x, top, x + 2, top + side) for x in (left, left + side // 2 - 1, left + side - 2)]


def drawn(boxes, shape=(300, 400)):
    """Ink, and its pieces."""
    ink = np.zeros(shape, np.uint8)
    for left, top, right, bottom in boxes:
        ink[top:bottom, left:right] = 255
    return ink, measure_pieces(ink > 0)[0]


def test_square_characters_are_told_from_letters():
    places = [(20 + 27 * column, 20 + 45 * row) for row in range(5) for column in range(8)]
    strokes = [stroke for place in places for stroke in character(*place)]
    words = [box for row in range(5) for box in letters(260, 28 + 45 * row, 6)]
    stops = [(20 + 27 * 8 + 2, 40 + 45 * row, 20 + 27 * 8 + 8, 46 + 45 * row) for row in range(5)]
    ink, pieces = drawn(strokes + words + stops)
    found_ones, height_px = find_characters(ink, pieces, 24.0)
    sides = [(left, top, left + 24, top + 24) for left, top in places]
    assert sorted(map(tuple, found_ones.tolist())) == sorted(sides + stops)
    assert 22 < height_px < 28
    ink, pieces = drawn([box for row in range(5) for box in letters(20, 20 + 45 * row, 30)])
    assert len(find_characters(ink, pieces, float(SYMBOL))[0]) == 0
    assert len(find_characters(ink, pieces[:0], float(SYMBOL))[0]) == 0


def test_square_characters_are_no_formulas():
    first, second = letters(30, 26, 2), letters(110, 26, 2)
    places = [(56, 20), (83, 20)]
    strokes = [stroke for place in places for stroke in character(*place)]
    squares = np.array([(left, top, left + 24, top + 24) for left, top in places])
    regions = [(INLINE, (30, 26, 132, 38))]  # all of it
    signs = [(INLINE, first + strokes + second)]
    assert found(signs, regions) == [("inline", (30, 20, 130, 44))]
    assert found(signs, regions, characters=squares) == [
        ("inline", (30, 26, 50, 38)),
        ("inline", (110, 26, 130, 38)),
    ]


def test_a_line_with_characters_is_not_of_the_display_below_it():
    squares = np.array([(60, 20, 84, 44), (87, 20, 111, 44)])
    line, display = letters(116, 28, 6), letters(60, 60, 12)
    apart = [(60, 28, 66, 31), (70, 34, 76, 37), (90, 30, 96, 33)]  # strokes that do not touch
    signs = [(DISPLAYED, line + display), (TEXT, apart)]
    regions = [(DISPLAYED, (56, 16, 206, 76))]
    assert found(signs, regions, characters=squares) == [("displayed", (60, 60, 200, 72))]
    assert found(signs, regions) == [("displayed", (60, 28, 200, 72))]
