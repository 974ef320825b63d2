"""What speaks for a reading, which spellings are one picture, and what may stand in the place of a token."""

import numpy as np
import pytest

from i2l.formulas.commands import picture_of
from i2l.formulas.vocabulary import Vocabulary
from i2l.inference.boxes import block_box, choose_symbols, smallest_blocks
from i2l.inference.confidence import MAX_COMPANY, MAX_LEAD, TokenLooks, gather_evidence
from i2l.inference.decoding import Hypothesis, NumpyArrays
from i2l.inference.reading import is_formula, token_alternatives
from i2l.model.config import AxisField, ReceptiveField

VOCABULARY = Vocabulary.from_formula_tokens(
    ["a", "b", "x", "2", "+", "=", "{", "}", "^", "_", r"\,", r"\ne", r"\neq", r"\times", r"\frac", "("]
)


def hypothesis(*steps):
    """Each step is the tokens that were likeliest there with their probabilities, the one written first."""
    written = [step[0] for step in steps]
    names = np.array([[VOCABULARY.encode([name])[0] if name else 0 for name, _ in step] for step in steps])
    chances = np.array([[chance for _, chance in step] for step in steps], np.float32)
    own = np.log([chance for _, chance in written]).astype(np.float32)
    order = np.argsort(-chances, axis=1, kind="stable")
    return Hypothesis(
        token_ids=VOCABULARY.encode([name for name, _ in written if name]),
        log_prob=float(own.sum()),
        score=float(own.sum()),
        token_log_probs=own,
        attention=None,
        finished=True,
        likeliest=np.take_along_axis(names, order, axis=1),
        likeliest_log_probs=np.log(np.take_along_axis(chances, order, axis=1)),
    )


def certainty(*steps):
    return np.exp(TokenLooks(VOCABULARY).certainty(hypothesis(*steps))).round(3).tolist()


def test_what_changes_nothing_counts_with_a_token():
    end = [("", 0.9), ("x", 0.05), ("a", 0.01)]
    assert certainty([("a", 0.5), (r"\,", 0.3), ("b", 0.1)], end) == [0.8, 0.9]
    assert certainty([(r"\ne", 0.5), (r"\neq", 0.4), ("b", 0.05)], end) == [0.9, 0.9]
    # space was written, and the sign behind it was as likely
    sign = [("a", 0.9), ("b", 0.02), ("x", 0.01)]
    assert certainty([(r"\,", 0.5), ("a", 0.4), ("b", 0.05)], sign, end) == [0.9, 0.9, 0.9]
    # a brace that closes an exponent is another matter
    assert certainty([("}", 0.5), ("a", 0.4), ("b", 0.05)], end)[0] == 0.5


def test_a_sign_that_the_model_does_not_know_is_the_lowest():
    """`a ÷ b × c` was read with `\\ne` at 9.5 %, and called 96 % sure."""
    sure = [("a", 0.95), ("b", 0.01), ("x", 0.01)]
    unknown = [(r"\ne", 0.095), ("+", 0.09), ("=", 0.08)]
    times = [(r"\times", 0.9), ("+", 0.02), ("=", 0.01)]
    found = TokenLooks(VOCABULARY).certainty(hypothesis(sure, unknown, sure, times))
    evidence = gather_evidence(found, log_prob=-2.6, others=[], agreement=1.0, unread=0.0, finished=True)
    assert evidence.lowest == pytest.approx(np.log(0.095), abs=1e-3)
    assert evidence.second == pytest.approx(np.log(0.9), abs=1e-3)
    assert evidence.lead == MAX_LEAD
    assert evidence.company == pytest.approx(np.log(4))


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (r"x\,y", "xy", True),
        (r"\left(x\right)", "(x)", True),
        (r"a \leq b", r"a\le b", True),
        (r"\bigl(x\bigr)", "(x)", True),
        (r"x \in t", r"x \int", False),
        (r"\leftarrow", r"\to", False),
        ("x^{2y}", "x^{2}y", False),
        (r"\big|x", "x|", False),
    ],
)
def test_one_picture(one, other, same):
    assert (picture_of(one) == picture_of(other)) is same


def test_other_tokens_leave_a_formula_that_draws_something_else():
    end = [("", 0.9), ("x", 0.05), ("a", 0.01), ("b", 0.01)]
    # \frac wants arguments, `^` one behind it; space and braces draw nothing, other names of a sign the same
    steps = [
        [("x", 0.4), ("a", 0.3), (r"\frac", 0.1), (r"\,", 0.1)],
        [("^", 0.6), ("_", 0.3), ("}", 0.05), ("2", 0.04)],
        [("{", 0.9), ("a", 0.05), ("b", 0.02), ("2", 0.001)],
        [("2", 0.9), ("}", 0.04), (r"\ne", 0.02), ("x", 0.001)],
        [("}", 0.9), ("a", 0.05), ("b", 0.02), ("2", 0.001)],
        [(r"\ne", 0.5), (r"\neq", 0.3), ("=", 0.1), ("", 0.05)],
        [("b", 0.9), (r"\times", 0.05), ("^", 0.02), ("(", 0.01)],
    ]
    found = token_alternatives(hypothesis(*steps, end), VOCABULARY)
    tokens = [step[0][0] for step in steps]
    assert [[name for name, _ in others] for others in found] == [
        ["a"],
        ["_", "2"],
        [],
        [r"\ne"],
        [],
        ["="],
        [r"\times", "("],
    ]
    assert dict(found[1])["_"] == pytest.approx(0.3)
    for place, others in enumerate(found):
        for other, _ in others:
            assert is_formula([*tokens[:place], other, *tokens[place + 1 :]])


def test_what_is_no_formula_has_no_others():
    step = [("}", 0.5), ("a", 0.4)]
    assert token_alternatives(hypothesis(step, [("a", 0.5), ("b", 0.4)]), VOCABULARY) == ((), ())


def test_a_sign_in_company_is_surer_than_alone_and_a_crowd_no_surer_than_a_few():
    few, more, many, crowd = (
        gather_evidence(
            np.zeros(count), log_prob=0.0, others=[], agreement=1.0, unread=0.0, finished=True
        ).company
        for count in (1, 6, MAX_COMPANY, 600)
    )
    assert few == 0 < more < many == crowd


@pytest.mark.parametrize(("other", "lead"), [(-2.1, 0.0), (-2.6, 0.0), (-3.0, 0.4), (-99.0, MAX_LEAD)])
def test_the_lead_is_that_over_the_next_reading(other, lead):
    evidence = gather_evidence(
        np.log([0.5, 0.9]), log_prob=-2.6, others=[other, -99.5], agreement=1.0, unread=0.0, finished=True
    )
    assert evidence.lead == pytest.approx(lead)


def test_the_largest_of_a_row_are_those_of_a_sorted_row():
    """Against plain sorting, with many equal values: of these the first come first."""
    source = np.random.default_rng(0)
    for k in (1, 2, 3, 7, 8):
        values = source.integers(0, 4, (50, 8)).astype(np.float32)
        found, places = NumpyArrays().top_k(values, k)
        for row, best, where in zip(values.tolist(), found.tolist(), places.tolist(), strict=True):
            assert best == sorted(row, reverse=True)[:k]
            assert [row[place] for place in where] == best
            assert where == sorted(where, key=lambda place: (-row[place], place))


def test_the_symbol_looked_at_is_the_nearest_that_the_block_touches():
    """Against plain loops: symbols that only border on the block are none of it."""
    source = np.random.default_rng(1)
    field = ReceptiveField(AxisField(6, 60, 8, 6, -4, 20), AxisField(12, 120, 8, 6, -4, 20))
    symbols = []
    for top in range(0, 48, 8):  # on the edges of cells, so that many border on a block
        for left in range(0, 104, 8):
            if source.random() < 0.25:
                symbols.append((left + 6, top + 6, left + 6 + int(source.choice([4, 8, 12])), top + 14))
    boxes = np.array(symbols)
    attention = source.random((40, 6, 12)) ** 60
    attention /= attention.sum(axis=(1, 2), keepdims=True)
    found = choose_symbols(attention, boxes, field=field, share=0.4)
    assert None in found
    for seen, chosen in zip(attention, found, strict=True):
        ((top, left, bottom, right),) = smallest_blocks(seen[None], 0.4).tolist()
        x0, y0, x1, y1 = block_box(field, (top, left, bottom, right))
        touched = [box for box in symbols if box[0] < x1 and x0 < box[2] and box[1] < y1 and y0 < box[3]]
        if not touched:
            assert chosen is None
            continue
        weights = {(r, c): seen[r, c] for r in range(top, bottom) for c in range(left, right)}
        total = sum(weights.values())
        x = sum(weight * (6 + 8 * (c + 0.5)) for (_, c), weight in weights.items()) / total
        y = sum(weight * (6 + 8 * (r + 0.5)) for (r, _), weight in weights.items()) / total
        distances = {box: np.hypot((box[0] + box[2]) / 2 - x, (box[1] + box[3]) / 2 - y) for box in touched}
        assert distances[chosen] <= min(distances.values()) + 1e-9
