import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from i2l.dataset.sources import SPLITS
from i2l.dataset.verdicts import (
    DUPLICATE,
    EARLY_REASONS,
    LEAK,
    REJECTED,
    UNASSIGNED,
    _find,
    hash64,
    loose_key,
    select_lines,
)
from i2l.formulas.normalize import normalize_formula

TRAIN, VAL, TEST = range(3)


def key(source):
    return loose_key(normalize_formula(source).tokens)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (r"a\,b", "a b"),
        (r"a\hspace{1cm}b", "a b"),
        (r"\mathbf{x}+{\cal y}", "x+y"),
        (r"x_i^2", r"x_{i}^{{2}}"),
        (r"\left( \frac{a}{b} \right)", r"( \frac{a}{b} )"),
        (r"\bigl( a \bigr)", "(a)"),
        (r"\displaystyle \sum_i", r"\sum_i"),
    ],
)
def test_formulas_that_look_alike_share_a_key(one, other):
    assert key(one) == key(other)


@pytest.mark.parametrize(
    ("one", "other"), [("x_2", "x^2"), ("ab", "ba"), (r"\frac{a}{b}", "ab"), (r"\left\{ a \right.", "a")]
)
def test_formulas_that_look_different_do_not(one, other):
    assert key(one) != key(other)


def select(lines, *, val_fraction=0.0, test_fraction=0.0):
    """Lines are (split, formula, looks), with the hashes taken from the two strings."""
    splits, formulas, looks = zip(*lines, strict=True)
    return select_lines(
        given_splits=np.array(splits, np.uint8),
        reasons=np.array([EARLY_REASONS.index(REJECTED) if f is None else 0 for f in formulas], np.uint8),
        fingerprints=np.array([hash64(f or "") for f in formulas], np.uint64),
        keys=np.array([hash64(k) for k in looks], np.uint64),
        draws=np.array([hash64("draw" + k) for k in looks], np.uint64),
        val_fraction=val_fraction,
        test_fraction=test_fraction,
    )


def test_duplicates_and_leaks_name_the_line_that_stays():
    selection = select(
        [
            (TRAIN, "a", "a"),
            (TRAIN, "b", "b"),
            (TRAIN, "a", "a"),  # repeats line 0
            (TRAIN, r"c \,", "c"),  # looks like line 6 of val
            (TRAIN, None, "t"),
            (TRAIN, "t", "t"),  # looks like line 7 of test
            (VAL, "c", "c"),
            (TEST, r"t \,", "t"),
            (VAL, "t", "t"),  # looks like line 7 of test
        ]
    )
    assert [EARLY_REASONS[reason] for reason in selection.reasons] == [
        *("", "", DUPLICATE, LEAK, REJECTED, LEAK),
        *("", "", LEAK),
    ]
    assert selection.others.tolist() == [-1, -1, 0, 6, -1, 7, -1, -1, 7]


LINES = st.lists(
    st.tuples(st.integers(0, 2), st.sampled_from("abcdef"), st.sampled_from("uvw")), min_size=1, max_size=40
)


@given(LINES)
def test_selection_against_a_plain_loop(lines):
    selection = select(lines)
    seen, kept = {}, {split: set() for split in range(3)}
    expected = [""] * len(lines)
    for number, (split, formula, _) in enumerate(lines):
        if seen.setdefault((split, formula), number) != number:
            expected[number] = DUPLICATE
    for number, (split, _, looks) in enumerate(lines):
        if not expected[number]:
            kept[split].add(looks)
    for number, (split, _, looks) in enumerate(lines):
        guarded = {TRAIN: kept[VAL] | kept[TEST], VAL: kept[TEST], TEST: set()}[split]
        if not expected[number] and looks in guarded:
            expected[number] = LEAK
    assert [EARLY_REASONS[reason] for reason in selection.reasons] == expected


@given(LINES, st.randoms())
def test_drawn_splits_do_not_depend_on_order_and_leak_nothing(lines, random):
    lines = [(UNASSIGNED, formula, looks) for _, formula, looks in lines]
    order = list(range(len(lines)))
    random.shuffle(order)
    one = select(lines, val_fraction=0.3, test_fraction=0.3)
    other = select([lines[i] for i in order], val_fraction=0.3, test_fraction=0.3)
    assert [one.splits[i] for i in order] == other.splits.tolist()
    assert EARLY_REASONS.index(LEAK) not in one.reasons


def test_drawn_splits_have_their_shares():
    lines = [(UNASSIGNED, str(number), str(number)) for number in range(20_000)]
    splits = select(lines, val_fraction=0.1, test_fraction=0.05).splits
    shares = np.bincount(splits, minlength=len(SPLITS)) / len(lines)
    assert shares == pytest.approx([0.85, 0.1, 0.05], abs=0.008)


@given(
    st.lists(st.integers(0, 9), max_size=8).map(lambda numbers: np.array(numbers, np.uint64)),
    st.lists(st.integers(0, 9), max_size=8).map(lambda numbers: np.array(numbers, np.uint64)),
)
def test_what_is_found_is_the_first_of_its_like(wanted, among):
    expected = [among.tolist().index(number) if number in among else -1 for number in wanted]
    assert _find(wanted, among).tolist() == expected
