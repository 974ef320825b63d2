"""Which formulas share a TeX process, and that none of these can change the picture of another."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from i2l.rendering import tex
from i2l.rendering.render import render_formulas
from i2l.rendering.styles import PAPER
from tests.rendering.random_formulas import random_formula

pytestmark = pytest.mark.tex

WILD = [
    r"\input{x}",
    r"\begin{input}",
    r"\begin {array}{c}x\end{array}",
    r"^^5cinput",
    r"\^^67def\alpha{x}",
    r"\^^^^0067def",
    r"\^^",
    r"x^^M",
    "a%b",
    "$",
    r"\csname",
    r"\catcode",
    r"\mathcode",
    r"\everymath",
    r"\hoffset",
    r"\pdfobj",
    r"\scantokens",
    r"\itlend",
    r"\mathchar",
    "{",
    "}{",
    r"\{}",
    r"\1",
    r"\(",
    "é",
    "a\0",
    "a\x7f",
    "a\r",
    "a\x0c",
    "a\xa0",
    "a\n \nb",
    "a\\\n\nb",
    "a\n",  # a blank line in the document
    r"\begin{array}{*{99999}{c}}x\end{array}",
    r"\begin{array}{*{+77777}{c}}x\end{array}",
    r"\begin{array}{c*{99999}{c}}x\end{array}",
    r"\begin{array}{*{99}{ccc}}x\end{array}",
    r"\begin{array}{*{9}{*{9}{c}}}x\end{array}",
    r"\begin{array}{*9{c}}x\end{array}",
    r'\begin{array}{*{"FF}{c}}x\end{array}',
    r"\begin{array}{c\}*{9999}{c}}x\end{array}",
    r"\begin{array}[t]{@{\}}*{9999}{c}}x\end{array}",
    r"\begin{array}*x\end{array}",
    r"\begin{tabular}{*{999}{c}}x\end{tabular}",
    r"\begin{subarray}{*{999}{c}}x\end{subarray}",
    r"\multicolumn{999}{c}{x}",
    r"\multicolumn{+9}{c}{x}",
    r"\multicolumn{9}{*{999}{c}}{x}",
    r"\multicolumn9{c}{x}",
    r"\cline{1-999}",
    r"\cline1-9",
    r"\begin{alignedat}{999}x\end{alignedat}",
    r"\begin{array}{" + "c" * 2001 + r"}x\end{array}",
    "{" * 41 + "}" * 41,
    r"\phantom{" * 5 + "x" + "}" * 5,
    r"\overset{a}{" * 5 + "x" + "}" * 5,
    "x" * (tex._MAX_CHARACTERS + 1),
]
TAME = [
    r"\leq",
    r"\nosuchcommand",
    r"\%\{",
    "a\nb",
    "a\\\nb",
    "\\",
    "x^2^",
    r"\hat{x}\^{x}",
    r"a*{2024}",
    r"\hspace*{2cm}\operatorname*{lim}",
    r"\begin{array}{c}x\end{array}",
    r"\begin{array}c x\end{array}",
    r"\begin{array} [ t ] { c | c } x & y \end{array}",
    r"\begin{array}{*{20}{c}}x\end{array}",
    r"\begin{array}{l@{\hspace{1cm}}r}x\end{array}",
    r"\begin{array}{c}\multicolumn { 1 2 } { c } { x }\cline { 1 - 2 }\end{array}",
    r"\begin{alignedat}{2}x&y\end{alignedat}",
    r"\phantom{" * 4 + "x" + "}" * 4,
    "{" * 40 + "}" * 40,
]


def test_what_can_act_or_count_is_wild():
    assert [WILD[place] for place in range(len(WILD)) if place not in tex.find_wild(WILD, PAPER)] == []


def test_what_only_draws_or_fails_is_tame():
    assert [TAME[place] for place in tex.find_wild(TAME, PAPER)] == []


@given(st.text(st.sampled_from("\\^{}%$*#&~_ax67defbginc\n\r\t\0é "), max_size=30))
@settings(max_examples=300, deadline=None)
def test_no_text_that_tex_may_read_otherwise_is_tame(text):
    """Whatever else it holds: a formula with ^^41 for A, or a character beyond ASCII, is wild."""
    odd = "^^" in text or any(not (" " <= character <= "~" or character in "\t\n") for character in text)
    assert not odd or tex._command_words(text) is None


PROBE = (
    r"\frac{\alpha_1}{\sum_x \mathbf{B}} \text{ if } \left("
    r" \begin{array}{c|c} a & b \\ \hline c \end{array} \right)"
)


def neighbours_of(formulas):
    """The pictures of one formula between each two of the formulas, and of the same alone."""
    mixed = [PROBE] + [formula for each in formulas for formula in (each, PROBE)]
    (alone,) = render_formulas([PROBE])
    results = render_formulas(mixed)
    assert sum(result.pixels is not None for result in results[1::2]) > 50  # not all of them were left out
    return [
        each
        for each, result in zip(["", *formulas], results[::2], strict=True)
        if not np.array_equal(result.pixels, alone.pixels)
    ]


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_no_tame_command_changes_a_neighbour():
    """Every command that may share a process; in text, which takes minutes, it was tried once."""
    names = sorted(tex._TAME_COMMANDS)
    formulas = [rf"\{name} x" for name in names]
    assert neighbours_of(formulas) == []


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_no_random_tame_formula_changes_a_neighbour():
    assert neighbours_of([random_formula(seed) for seed in range(1000, 1200)]) == []
