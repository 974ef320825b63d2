"""Formulas have the tokens that models learned, and are written for people as they were."""

import re
from pathlib import Path

import pytest

from i2l.formulas.commands import SIGNATURES
from i2l.formulas.lexer import FormulaError
from i2l.formulas.normalize import normalize_formula
from i2l.formulas.pretty import pretty_formula, readable_formula
from tests.kept import assert_text_kept

FORMULAS = (Path(__file__).parents[1] / "formats" / "formulas.txt").read_text().splitlines()
# Words, empty and blank ones among them, lengths, fences, scripts and whatever else is seldom written.
SELDOM = r"""
x\text{}y
x\text{ }y
\text{ a  b }x
\mbox{if }x\hspace{1.5em}\mathrm{for all}~y
\left.\frac{a}{b}\right|_{x=0}^{1}
{x}^{2}_{i}{}_{j}
x''^2
\sum\limits_{i}\nolimits^{n}a_i
\begin{array}{|l|cr}\hline a&b&c\\\hline\hline 1&2&3\\[2pt]\end{array}
\begin{cases}a&x>0\\b&\text{otherwise}\end{cases}
\begin{aligned}a&=b\\&=c+\begin{pmatrix}1&2\\3&4\end{pmatrix}\end{aligned}
\sqrt[3]{x}\overline{\overbrace{a+b}^{n}}\underset{x}{\arg\max}
\mathbf{\alpha\beta}\boldsymbol{x}\mathcal{L}{\cal M}{\bf x y}\rm d
\frac12\tfrac{a}b\binom nk{n\choose k}{a\over b}
\not=\not\in\neq\nsubseteq\stackrel{def}{=}
\big(\Big[\bigg\{\Bigg|\middle|x
\mathop{\rm lim}\limits_{x\to0}\operatorname*{sup}f
a\,b\;c\!d\quad e\qquad f\ g~h\hskip 3pt i\kern-2mu j
\underbrace{x_1,\dots,x_n}_{\text{$n$ terms}}\cdots\ldots
\xrightarrow[a]{b}\overset{*}{\rightarrow}\overrightarrow{AB}\widehat{xyz}
\tag{1}x\label{a}\nonumber
\hbox{a $x$ b}\mathrm{d}x\,\mathrm{sin}\,x\sin x
\substack{a\\b}\sum_{\substack{i<n\\j<m}}\prod_{i}^{}x^{}
\left(\begin{matrix}a\\b\end{matrix}\right)\left\lbrace x\right\rbrace
{{{x}}}^{{2}}+{a+b}c{}
""".strip().splitlines()


# Every command that takes arguments, with each of its arguments, and with a script.
ARGUMENTS = {"m": "{a+b}", "t": "{a b}", "o": "[3]", "d": "(", "l": "{2pt}", "L": "[2pt]"}
COMMANDS = [
    f"x{name}{''.join(ARGUMENTS[kind] for kind in kinds)}^{{2}}y" for name, kinds in SIGNATURES.items()
]


def canonical(source):
    return normalize_formula(source).formula


def told(write, source):
    try:
        return write(source)
    except FormulaError as error:
        return f"refused: {re.sub('[0-9]+', '#', str(error))}"


@pytest.mark.parametrize("write", [canonical, pretty_formula, readable_formula])
def test_formulas_are_written_as_they_were(write):
    name = write.__name__.removesuffix("_formula")
    assert_text_kept(
        name, [told(write, source).replace("\n", "\\n") for source in [*FORMULAS, *SELDOM, *COMMANDS]]
    )
