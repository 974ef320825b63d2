"""Character detection: which symbols count as found, and what the names of symbols forgive."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from i2l.evaluation.detection import Symbol, _centres, _join_negations, detect_symbols, find_symbols
from i2l.formulas.normalize import normalize_formula
from i2l.rendering.render import render_formulas

EM_PX = 33.2


def names(formula):
    return [symbol.name for symbol in find_symbols(normalize_formula(formula).tokens, None)]


@pytest.mark.parametrize(
    ("formula", "same"),
    [
        (r"a \to b", r"a \rightarrow b"),
        (r"a \le b", r"a \leq b"),
        (r"a \ne b", r"a \not= b"),
        (r"\left( x \right)", r"( x )"),
        (r"\big( x \big)", r"( x )"),
        (r"\left< x \right>", r"\langle x \rangle"),
        (r"\mathrm{1} + \mathrm{sin}", r"1 + \operatorname{sin}"),
        (r"{\bf x} y", r"\mathbf{x} y"),
        (r"x'", r"x^{\prime}"),
        (r"\mathbf{\alpha} 2", r"\alpha 2"),  # \mathbf has no lower-case Greek
    ],
)
def test_equal_glyphs_have_equal_names(formula, same):
    assert names(formula) == names(same)


@pytest.mark.parametrize(
    ("formula", "other"),
    [
        (r"\mathbf{x}", "x"),
        (r"\mathrm{d} x", "d x"),
        (r"\mathcal{A}", "A"),
        (r"\epsilon", r"\varepsilon"),
        (r"\hat{x}", r"\widehat{x}"),
        (r"\boldsymbol{\alpha}", r"\alpha"),
        (r"a < b", r"a \langle b"),
        (r"\leftarrow", "arrow"),
    ],
)
def test_other_glyphs_have_other_names(formula, other):
    assert names(formula) != names(other)


def row(text, *, left=0, top=0, step=20, height=15):
    """A line of symbols, each 15 pixels wide."""
    return [
        Symbol(name, (left + step * index, top, left + step * index + 15, top + height), name.isalnum())
        for index, name in enumerate(text)
    ]


def found(target, prediction):
    result = detect_symbols(target, prediction, em_px=EM_PX)
    return result.found, result.f1


def test_all_found():
    assert found(row("abc=d"), row("abc=d")) == (5, 1.0)


def test_one_replaced_one_missing_one_too_many():
    assert found(row("abc=d"), row("abx=d")) == (4, pytest.approx(8 / 10))
    assert found(row("abc=d"), row("ab=d")) == (4, pytest.approx(8 / 9))
    assert found(row("abc=d"), row("abcc=d")) == (5, pytest.approx(10 / 11))
    assert not detect_symbols(row("abc=d"), row("abcc=d"), em_px=EM_PX).right


def test_shifts_of_the_whole_formula_do_not_count():
    assert found(row("abc=d"), row("abc=d", left=300, top=40)) == (5, 1.0)


def test_a_superscript_read_as_a_subscript_is_not_found_however_long():
    base = row("abcdefgh")
    above, below = row("nm+1", left=160, top=-10, height=10), row("nm+1", left=160, top=10, height=10)
    assert found([*base, *above], [*base, *below]) == (8, pytest.approx(16 / 24))


def test_a_symbol_of_another_size_is_not_found():
    small = [*row("abc"), *row("d", left=60, top=4, height=10)]
    assert found(row("abcd"), small) == (3, 0.75)


def test_large_parts_may_move_on_their_own():
    rows = [row("abcdef", top=0), row("ghijkl", top=50), row("mnopqr", top=100)]
    without_the_second = [*row("abcdef", top=0), *row("mnopqr", top=50)]
    assert found([symbol for line in rows for symbol in line], without_the_second) == (
        12,
        pytest.approx(24 / 30),
    )


def test_the_same_picture_in_another_order_is_found():
    target = [*row("ab"), *row("1", left=40, top=-8, height=10), *row("2", left=40, top=8, height=10)]
    prediction = [target[0], target[1], target[3], target[2]]
    assert found(target, prediction) == (4, 1.0)


def test_symbols_are_compared_at_their_middles():
    """However wide they are: a rule that is longer on one side has moved."""
    assert _centres([Symbol("-", (0, 10, 40, 30), True)], [0]).tolist() == [[20, 20]]


def test_an_equal_symbol_elsewhere_is_not_found():
    assert found([*row("abcdefx")], [*row("xabcdef")]) == (6, pytest.approx(12 / 14))


def test_symbols_without_boxes_count_by_name_and_order():
    plain = [Symbol(name, None, True) for name in "abc"]
    assert found(plain, row("abd")) == (2, pytest.approx(4 / 6))


def test_nothing_to_find():
    assert detect_symbols([], [], em_px=EM_PX).f1 == 1.0
    assert found(row("ab"), []) == (0, 0.0)


@pytest.mark.parametrize(("target", "prediction"), [("=a", "a="), ("a=b", "ab="), ("abc", "cba")])
def test_neighbours_that_changed_places_are_not_right(target, prediction):
    assert not detect_symbols(row(target), row(prediction), em_px=EM_PX).right


@given(st.text("abc=+", min_size=1, max_size=12), st.text("abc=+", min_size=1, max_size=12))
def test_f1_is_bounded_and_one_for_the_same_only(target, prediction):
    """It need not be symmetric: of several alignments of `==+aaa` and `aa===+` each side finds another."""
    found = detect_symbols(row(target), row(prediction), em_px=EM_PX)
    assert 0 <= found.f1 <= 1
    assert (found.f1 == 1) == (target == prediction) == found.right


@given(st.text("abc=+", min_size=1, max_size=12), st.integers(0, 11), st.sampled_from("abc=+"))
def test_one_sign_more_or_less_is_found_from_both_sides(target, place, sign):
    longer = target[:place] + sign + target[place:]
    there = detect_symbols(row(target), row(longer), em_px=EM_PX)
    back = detect_symbols(row(longer), row(target), em_px=EM_PX)
    assert back.found == pytest.approx(there.found, abs=2)  # of several alignments, one may differ


@pytest.mark.tex
@pytest.mark.parametrize(
    ("target", "prediction", "missing"),
    [
        ("x ^ { a b } + y", "x _ { a b } + y", 2),
        ("x _ { i } ^ { 2 } + y", "x _ { i } + y", 1),
        (r"\frac { a } { b } + c", r"\frac { b } { a } + c", 2),
        ("a + b", r"a \quad + b", 0),
        (r"\mathbf { a } + b", "a + b", 1),
        (r"\begin{array} { c } { a b c d e } \\ { f g h i j } \\ \end{array}", "f g h i j", 5),
    ],
)
def test_on_real_renders(target, prediction, missing):
    sides = []
    for render in render_formulas([target, prediction], boxes=True):
        tokens = normalize_formula(render.formula).tokens
        sides.append(find_symbols(tokens, render.boxes))
    result = detect_symbols(*sides, em_px=EM_PX)
    assert len(sides[0]) - result.found == missing


def test_letters_and_digits_tell_the_size_they_are_set_in():
    found = find_symbols(normalize_formula(r"a + 2 \sum \alpha (").tokens, None)
    assert [(symbol.name, symbol.fixed_size) for symbol in found] == [
        ("a", True), ("+", False), ("2", True), (r"\sum", False), (r"\alpha", False), ("(", False)
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("first", "second", "box"),
    [
        ((5, 6, 20, 30), (1, 8, 12, 40), (1, 6, 20, 40)),
        (None, (1, 2, 3, 4), (1, 2, 3, 4)),
        ((1, 2, 3, 4), None, (1, 2, 3, 4)),
        (None, None, None),
    ],
)
def test_a_stroke_and_what_it_strikes_out_are_one_symbol(first, second, box):
    symbols = [Symbol("x", (0, 0, 1, 1), True), Symbol(r"\not", first, False), Symbol("<", second, False)]
    joined = _join_negations([*symbols, Symbol("y", None, True)])
    assert [symbol.box for symbol in joined] == [(0, 0, 1, 1), box, None]
    assert [symbol.name for symbol in joined][::2] == ["x", "y"]
    assert joined[1].name == _join_negations([Symbol(r"\not", None, False), Symbol("<", None, False)])[0].name
    assert not joined[1].fixed_size
