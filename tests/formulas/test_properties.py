"""Properties that hold for every formula and for every string of bytes."""

import contextlib
import gc
import time

import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st

from i2l.formulas.commands import SIGNATURES
from i2l.formulas.lexer import FormulaError
from i2l.formulas.normalize import normalize_formula
from i2l.formulas.pretty import pretty_formula

leaves = st.sampled_from(
    [
        *"abxyN013+-=(,)/|",
        r"\alpha",
        r"\sum",
        r"\int",
        r"\sin",
        r"\lim",
        r"\,",
        "~",
        r"\ ",
        r"\cdots",
        r"\bf",
        r"\rm",
        r"\displaystyle",
        r"\mbox{for all }",
        r"\text{if}",
        r"\hspace{1cm}",
        r"\kern-2pt ",
        r"\foo",
        "--",
        "'",
    ]
)
one_argument = sorted(name for name, signature in SIGNATURES.items() if signature == "m")


def compose(inner):
    group = inner.map(lambda body: f"{{{body}}}")
    return st.one_of(
        group,
        st.tuples(inner, inner).map("".join),
        st.tuples(inner, st.sampled_from("_^"), group).map("".join),
        st.tuples(inner, group, group).map(lambda parts: f"{parts[0]}_{parts[1]}^{parts[2]}"),
        st.tuples(group, group).map(lambda parts: r"\frac" + "".join(parts)),
        st.tuples(inner, inner).map(lambda parts: rf"{{{parts[0]}\over {parts[1]}}}"),
        st.tuples(st.sampled_from(one_argument), group).map("".join),
        st.tuples(inner, group).map(lambda parts: rf"\sqrt[{{{parts[0]}}}]{parts[1]}"),
        inner.map(lambda body: rf"\left({body}\right]"),
        st.tuples(inner, inner).map(
            lambda cells: rf"\begin{{array}}{{cl}}{cells[0]}&{cells[1]}\\x\end{{array}}"
        ),
        st.tuples(inner, inner).map(lambda cells: rf"\begin{{aligned}}{cells[0]}&{cells[1]}\end{{aligned}}"),
        inner.map(lambda body: rf"\begin{{pmatrix}}{body}\end{{pmatrix}}"),
    )


formulas = st.recursive(leaves, compose, max_leaves=12)


def canonical(source):
    """The formula of a drawn source; a source that is none is drawn again."""
    try:
        return normalize_formula(source).formula
    except FormulaError:
        reject()


@given(formulas)
@settings(max_examples=400)
def test_normalising_twice_changes_nothing(source):
    try:
        once = normalize_formula(source)
    except FormulaError as error:
        if error.reason not in ("two fractions in one group", "empty"):
            raise
        return
    again = normalize_formula(once.formula)
    assert again.formula == once.formula
    assert again.latex == once.latex
    assert [token.visible for token in again.tokens] == [token.visible for token in once.tokens]


@given(formulas)
@settings(max_examples=300)
def test_pretty_form_normalises_to_the_same_tokens(source):
    try:
        canonical = normalize_formula(source)
    except FormulaError:
        return
    written = pretty_formula(canonical.formula)
    if written != canonical.latex:  # the last resort, which keeps the picture
        assert normalize_formula(written).formula == canonical.formula


@given(formulas)
@settings(max_examples=200)
def test_spans_lie_in_the_source(source):
    try:
        tokens = normalize_formula(source).tokens
    except FormulaError:
        return
    for token in tokens:
        assert 0 <= token.start <= token.end <= len(source)
        assert token.text
        assert " " not in token.text


noise = st.lists(
    st.sampled_from(
        [
            *r"\{}[]_^&%$#'~ ab1",
            r"\left",
            r"\right",
            r"\begin{array}",
            r"\end{array}",
            r"\over",
            r"\\",
            r"\sqrt",
            r"\mbox",
            r"\kern",
            r"\hspace",
            r"\substack",
            r"\buildrel",
            r"\rm",
            r"\left(",
            r"\right)",
            "\x00",
            "é",
            "≤",
        ]
    ),
    max_size=60,
).map("".join)


@given(st.one_of(noise, st.text(max_size=80)))
@settings(max_examples=800)
def test_any_string_gets_tokens_or_a_reason(source):
    try:
        formula = normalize_formula(source).formula
    except FormulaError:
        return
    assert normalize_formula(formula).formula == formula


@pytest.mark.parametrize(
    "piece", ["x", "x_", "{}", "{x}", "x'", r"\frac", "x^{2}", r"\mbox{a b}", "[", r"\sqrt[", "&", "- ", "\\"]
)
def test_time_grows_with_the_length_not_faster(piece):
    def seconds(length):
        source = piece * (length // len(piece))
        gc.collect()
        gc.disable()  # its passes over ever more objects are not the parser's time
        start = time.process_time()
        with contextlib.suppress(FormulaError):
            normalize_formula(source)
        taken = time.process_time() - start
        gc.enable()
        return taken

    short, long = (min(seconds(length) for _ in range(3)) for length in (8_000, 80_000))
    assert long < 40 * max(short, 0.003)  # ten times the length; a square would take a hundred times as long
