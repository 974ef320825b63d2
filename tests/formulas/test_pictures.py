"""What canonical and pretty forms must keep above all: the picture, by the pixel, with real pdflatex."""

import numpy as np
import pytest

from i2l.formulas.normalize import normalize_formula
from i2l.formulas.pretty import pretty_formula
from i2l.rendering.render import render_formulas

pytestmark = pytest.mark.tex

FORMULAS = [
    r"{a+b \over c}+{\rm Tr}\,\overline{A}B^\dagger",
    r"\sqrt[3]{x+\sqrt{y}}",
    r"\int\limits_0^\infty e^{-x^2}dx=\frac{\sqrt\pi}{2}",
    r"\frac{\sum\limits_{i=1}^n x_i}{\sum_j y_j}",
    r"x'^2+f''(x)+y^{'}+g'_a",
    r"f(x)=\begin{cases} x^2, & \text{if } x>0, \\ 0 & \text{otherwise.}\end{cases}",
    r"\begin{array}{l@{\quad}r|c} a & b & c \\[4pt] \hline d & e & \\ \\ f\hfill & g & h \end{array}",
    r"\left(\begin{array}{cc} 1 & 0 \\ 0 & 1 \end{array}\right)\begin{pmatrix} a \\ b \end{pmatrix}",
    r"\begin{bmatrix} x & y \end{bmatrix}\begin{vmatrix} a & b \\ c & d \end{vmatrix}",
    r"\mbox{non-linear and any $x$ value, i.e.\ one}",
    r"x_{\mbox{eff}}+x_{\mbox{\tiny WKB}}+x_{\text{max}}+y_{\text{if}}",
    r"\textbf{A}^{T}\textbf{x}+\textit{N}+\textsf{Sf}+\texttt{code}",
    r"\text{for all }x\in X\text{ and any }y\quad\text{by }z",
    r"\tfrac12\dfrac34+\binom{n}{k}+\tbinom nk+{n \choose k}",
    r"\limsup_{n\to\infty}a_n\le\liminf_n b_n\cdot\lim\nolimits_x c",
    r"\operatorname*{arg\,max}_{x} f(x)",
    r"\sum_{\substack{i<j \\ j<k}} a_{ijk}",
    r"a\hspace{1cm}b\kern-.3em c\mkern 5mu d\hskip 0.5cm e",
    r"{\bf a \over b}+{\it x}+{\cal L}",
    r"A \buildrel f \over \longrightarrow B \stackrel{g}{\to} C",
    r"\Big[\bigl(x\bigr)\Bigr|_{x=0}",
    r"\hat x\tilde{\bf y}\vec{AB}\widehat{xyz}\bar\psi\ddot{q}",
    r"\left.\frac{\partial f}{\partial x}\right|_{x_0}",
    r"\underbrace{a+\cdots+a}_{n\text{ times}}\overbrace{b}^m",
    r"\phantom{x}a\vphantom{\frac12}b\llap{/}c",
    r"\begin{aligned} a &= b+c \\ &= d \end{aligned}",
    r"x_--1 + {}_1F_2 + {_6}x",
    r"\not= \; \slash\!\!\!\! D",
    r"\raise 2pt\hbox{x} \raisebox{1ex}{a b} \fbox{text here}",
    r"1 -- 2 --- 3 - -4",
    r"\genfrac{\{}{\}}{0pt}{}{n}{k}",
    r"\mathrm{\Gamma d\theta}+\mathbf{x\cdot\nabla}",
    r"a \, b \: c \; d \! e \ f ~ g \quad h",
    r"e^{\displaystyle\frac{1}{2}}+\scriptstyle x",
]


def test_raw_canonical_and_pretty_are_the_same_picture():
    canonical = [normalize_formula(formula) for formula in FORMULAS]
    pretty = [pretty_formula(result.formula) for result in canonical]
    results = render_formulas([*FORMULAS, *(result.latex for result in canonical), *pretty])
    assert [(r.formula, r.message) for r in results if r.reason] == []
    count = len(FORMULAS)
    for index, formula in enumerate(FORMULAS):
        raw, norm, nice = (
            results[index].pixels,
            results[count + index].pixels,
            results[2 * count + index].pixels,
        )
        assert np.array_equal(raw, norm), f"canonical: {formula} -> {canonical[index].latex}"
        assert np.array_equal(raw, nice), f"pretty: {formula} -> {pretty[index]}"
