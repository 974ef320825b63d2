"""Commands of common packages in terms of amsmath, so that a formula that uses them compiles without them.

A stand-in draws the same symbols, if not always to the hair; what a paper defines itself comes first.
"""

import re
from functools import cache
from typing import Final

from i2l.formulas.definitions import read_preamble
from i2l.formulas.macro import Macro

_DEFINITIONS: Final = r"""
% mathtools, colonequals
\def\vcentcolon{\mathrel{\mathop{:}}}
\def\coloneqq{\mathrel{\mathop{:}}=}
\def\Coloneqq{\mathrel{\mathop{:}}\mathrel{\mathop{:}}=}
\def\coloneq{\mathrel{\mathop{:}}-}
\def\eqqcolon{=\mathrel{\mathop{:}}}
\def\eqcolon{-\mathrel{\mathop{:}}}
\def\dblcolon{\mathrel{\mathop{:}}\mathrel{\mathop{:}}}
\let\colonequals\coloneqq
\let\equalscolon\eqqcolon
\let\coloncolon\dblcolon
\def\mathrlap#1{\mathord{\rlap{$#1$}}}
\def\mathllap#1{\mathord{\llap{$#1$}}}
\def\mathclap#1{\mathord{#1}}
\def\clap#1{#1}
\def\vdotswithin#1{\vdots}
\def\shortvdotswithin#1{\vdots}
\newcommand\xhookrightarrow[2][]{\overset{#2}{\hookrightarrow}}
\newcommand\xhookleftarrow[2][]{\overset{#2}{\hookleftarrow}}
\newcommand\xmapsto[2][]{\overset{#2}{\longmapsto}}
\newcommand\xRightarrow[2][]{\overset{#2}{\Longrightarrow}}
\newcommand\xLeftarrow[2][]{\overset{#2}{\Longleftarrow}}
\newcommand\xleftrightarrow[2][]{\overset{#2}{\longleftrightarrow}}
\newcommand\xLeftrightarrow[2][]{\overset{#2}{\Longleftrightarrow}}
\newcommand\xtwoheadrightarrow[2][]{\overset{#2}{\twoheadrightarrow}}
\def\prescript#1#2#3{{}^{#1}_{#2}#3}
\def\adjustlimits{}
\def\smashoperator#1{#1}
\def\cramped#1{#1}
\def\overbracket#1{\overline{#1}}
\def\underbracket#1{\underline{#1}}
\def\mapsfrom{\leftarrow\!\shortmid}
\def\nuparrow{\not\uparrow}
\def\lparen{(}
\def\rparen{)}
% braket, physics
\def\bra#1{\langle #1|}
\def\ket#1{|#1\rangle}
\def\braket#1{\langle #1\rangle}
\def\ketbra#1#2{|#1\rangle\langle #2|}
\def\Bra#1{\left\langle #1\right|}
\def\Ket#1{\left|#1\right\rangle}
\def\Braket#1{\left\langle #1\right\rangle}
\def\set#1{\{#1\}}
\def\Set#1{\left\{#1\right\}}
\def\i@over#1#2#3#4{\IfValueTF{#4}{\frac{#1\IfValueT{#2}{^{#2}}#3}{#1#4\IfValueT{#2}{^{#2}}}}%
  {\frac{#1\IfValueT{#2}{^{#2}}}{#1#3\IfValueT{#2}{^{#2}}}}}
\NewDocumentCommand\pdv{s o m g}{\i@over{\partial}{#2}{#3}{#4}}
\NewDocumentCommand\dv{s o m g}{\i@over{\mathrm{d}}{#2}{#3}{#4}}
\let\odv\dv
\def\dd#1{\mathrm{d}#1}
\def\abs#1{\left|#1\right|}
\def\norm#1{\left\|#1\right\|}
\def\qty#1{\left(#1\right)}
\def\expval#1{\left\langle #1\right\rangle}
\def\ev#1{\left\langle #1\right\rangle}
\def\mel#1#2#3{\left\langle #1\middle|#2\middle|#3\right\rangle}
\def\comm#1#2{\left[#1,#2\right]}
\def\acomm#1#2{\left\{#1,#2\right\}}
\def\vb#1{\mathbf{#1}}
\def\va#1{\vec{#1}}
\def\vu#1{\hat{#1}}
\def\grad{\nabla}
\def\curl{\nabla\times}
\def\laplacian{\nabla^2}
\def\order#1{\mathcal{O}\left(#1\right)}
\def\eval#1{\left.#1\right|}
\DeclareMathOperator\tr{tr}
\DeclareMathOperator\Tr{Tr}
\DeclareMathOperator\rank{rank}
% slashed, cancel, ulem, nicefrac, units, xfrac, tcolorbox, empheq
\def\slashed#1{\not{#1}}
\def\cancel#1{#1}
\def\bcancel#1{#1}
\def\xcancel#1{#1}
\def\cancelto#1#2{#2}
\newcommand\nicefrac[3][]{#2/#3}
\newcommand\sfrac[3][]{#2/#3}
\newcommand\unitfrac[3][]{#1\,\mathrm{#2}/\mathrm{#3}}
\newcommand\unit[2][]{#1\,\mathrm{#2}}
\newcommand\tcboxmath[2][]{\boxed{#2}}
\newcommand\Aboxed[1]{\boxed{#1}}
% beamer, amsthm, cleveref, hyperref, color: nothing of them is in a formula's picture
\newcommand\pause[1][]{}
\def\uncover<#1>#2{#2}
\def\qed{}
\def\qedsymbol{\square}
\def\pushQED#1{}
\def\popQED{}
\newcommand\textcolor[3][]{#3}
\newcommand\color[2][]{}
\newcommand\colorbox[3][]{#3}
\def\xspace{}
\def\phantomsection{}
\newcommand\hyperref[2][]{#2}
\def\href#1#2{#2}
\def\hypertarget#1#2{#2}
\def\texorpdfstring#1#2{#1}
\def\shortintertext#1{}
\def\MoveEqLeft{}
\def\cref#1{\ref{#1}}
\def\Cref#1{\ref{#1}}
\def\autoref#1{\ref{#1}}
\def\citep#1{\cite{#1}}
\def\citet#1{\cite{#1}}
% fonts and symbols
\def\mathds#1{\mathbb{#1}}
\def\mathbbm#1{\mathbb{#1}}
\def\mathbbmss#1{\mathbb{#1}}
\def\bbone{\mathbb{1}}
\def\EuScript#1{\mathcal{#1}}
\def\mathpzc#1{\mathcal{#1}}
\def\llbracket{[\![}
\def\rrbracket{]\!]}
\def\lBrack{[\![}
\def\rBrack{]\!]}
\def\sslash{/\!/}
\def\fint{-\!\!\!\!\!\!\int}
\def\oiint{\iint}
\def\ointclockwise{\oint}
\def\ointctrclockwise{\oint}
\def\varointclockwise{\oint}
\def\ocircle{\bigcirc}
\def\trianglelefteqslant{\trianglelefteq}
\def\trianglerighteqslant{\trianglerighteq}
\def\iddots{\cdot^{\cdot^{\cdot}}}
\def\adots{\cdot^{\cdot^{\cdot}}}
\def\wideparen#1{\widehat{#1}}
\def\degree{^\circ}
\def\celsius{^\circ\mathrm{C}}
\def\textdegree{$^\circ$}
\def\upmu{\mu}
\def\uppi{\pi}
\def\updelta{\delta}
\def\Perp{\perp\!\!\!\perp}
\def\independent{\perp\!\!\!\perp}
"""
# Environments by those of amsmath: what opens and what closes them.
ENVIRONMENTS: Final = {
    "dcases": (r"\begin{cases}", r"\end{cases}"),
    "dcases*": (r"\begin{cases}", r"\end{cases}"),
    "cases*": (r"\begin{cases}", r"\end{cases}"),
    "rcases": (r"\left.\begin{array}{l}", r"\end{array}\right\}"),
    "drcases": (r"\left.\begin{array}{l}", r"\end{array}\right\}"),
    "psmallmatrix": (r"\left(\begin{smallmatrix}", r"\end{smallmatrix}\right)"),
    "bsmallmatrix": (r"\left[\begin{smallmatrix}", r"\end{smallmatrix}\right]"),
    "Bsmallmatrix": (r"\left\{\begin{smallmatrix}", r"\end{smallmatrix}\right\}"),
    "vsmallmatrix": (r"\left|\begin{smallmatrix}", r"\end{smallmatrix}\right|"),
    "matrix*": (r"\begin{matrix}", r"\end{matrix}"),
    "pmatrix*": (r"\begin{pmatrix}", r"\end{pmatrix}"),
    "bmatrix*": (r"\begin{bmatrix}", r"\end{bmatrix}"),
    "vmatrix*": (r"\begin{vmatrix}", r"\end{vmatrix}"),
    "multlined": (r"\begin{gathered}", r"\end{gathered}"),
    "lgathered": (r"\begin{gathered}", r"\end{gathered}"),
    "darray": (r"\begin{array}", r"\end{array}"),
    "subequations": ("", ""),
}
_EDGE: Final = re.compile(r"\\(begin|end)\s*\{([^{}]*)\}(?:(?<=\*\})\[[lcr]\])?")


def replace_environments(latex: str) -> str:
    """Write environments of packages as those of amsmath."""
    return _EDGE.sub(_stand_in, latex)


def _stand_in(match: re.Match[str]) -> str:
    texts = ENVIRONMENTS.get(match[2])
    return match.group() if texts is None else texts[match[1] == "end"]


@cache
def stand_ins() -> dict[str, Macro]:
    """Give the commands of packages that have a stand-in."""
    return read_preamble(_DEFINITIONS)
