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


# What is written in one paper of a thousand: infixes with lengths, limits of operators, scripts of scripts.
RARE = r"""
{a\above 1pt b}{a\overwithdelims()b}{a\atopwithdelims\{\}b}
{\large x}y{\tiny z}
\liminf_a\varlimsup_b\projlim\injlim_c
\lim\nolimits_a\max\limits_b\sin\limits_c\textstyle\max\limits_d\lim\nolimits_e
\lim\displaylimits_a\sum\displaylimits_b
\sum\nolimits_a\int\limits_b\int\nolimits_c{\textstyle\sum\nolimits_d\sum\limits_e}x\limits_f
\mathop{x}\limits_a\mathop{y}\nolimits_b
\vspace{1pt}x\vskip 2pt y
\hspace{\textwidth}x
\hskip 3pt plus 1fil x
'x
{}'+{}^{\prime}
\big{(}x\big(^2\big.y\bigl\langle z\bigr|_a
\bigl x
\not_a=
\not
\not\!=\not{ab}\not=_a
\idotsint_a^b\bmod_a x\mod_b
x^{^{\prime}}+x^{^a}+x^{\prime_a}+x^{\prime\prime b}+x'^2+x''_a
\mathrm{a\bf b}\mathrm{a\,b}\mathrm{x}_a\mathit{ab cd}
\operatorname{a+b}\operatorname{a\,b}\operatorname{a-b}\operatorname*{a b}_c
\overset{a}{\underset{b}{c}}\underset{a}{\overset{b}{c}}\overset a{\overset bc}\underset a{\underset bc}
\genfrac{}{}{}{2}{a}{b}
\genfrac{}{}{2pt}{}{a}{b}
\genfrac{\{}{]}{}{0}{a}{b}\genfrac[]{0pt}{1}{a}{b}
\begin{array}{l@{\,}c!{\quad}r}a&b&c\end{array}
\begin{array}{l@{x}r}a&b\end{array}
\begin{array}{p{2cm}c}a&b\end{array}
\begin{array}{*{2}{c}|r}a&b&c\end{array}
\begin{array}{c}a&b&c\end{array}
\begin{array}{cc}\cline{1-2}a&b\end{array}
\begin{array}{cc}a&b\\\hline\end{array}
\text{\bf a}\mbox{\it b c}\text{\tt d{e}}
\text{\alpha}
\text{a -- b --- ``c'' \'e \"{\i} {\bf f}}
x\kern-5em y
\left\langle\begin{matrix}a\\b\end{matrix}\right\rangle\left/\begin{matrix}a\\b\end{matrix}\right\backslash
\left(a\middle|b\middle/c\right)+\left\uparrow x\right\Downarrow
\left.\begin{matrix}a&b\\c&\&\end{matrix}\right\}
\sum+\int\prod_a x
\text{p}_a\text{q}^b\text{x}_c\text{fg}^d\text{a b}_e\mathrm{f}^a_b
x_\text{a b}+x_{\text{a b}}^{\text{f}}
{\bf{x}}y\rm{a}+b\rm{a}(1)\rm{tr}bc{\rm d}x
--+---
\boldmath x\pmb{y}\boldsymbol{\mathrm{z}}\mathbf{\mathit{a}}
\left\|x\right\|^2_{a}\lVert y\rVert
^a_b{}_c^d
_a^b x
a^{b^{c^{d}}}_{e_{f_{g}}}
\sqrt[\frac{a}{b}]{\sqrt{x}}
\dfrac{a}{b}{\textstyle\dfrac{a}{b}\tfrac{c}{d}}\cfrac{1}{x+\cfrac{1}{y}}{\displaystyle\tfrac ab}
x\hskip 1em y\mskip 3mu z\hspace*{2ex}\kern 1pc
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


@pytest.mark.parametrize("write", [canonical, pretty_formula, readable_formula])
def test_rare_formulas_are_written_as_they_were(write):
    name = write.__name__.removesuffix("_formula")
    assert_text_kept(f"{name}_rare", [told(write, source).replace("\n", "\\n") for source in RARE])
