"""A small book in several files, with the habits of real authors."""

MAIN = r"""\documentclass{book}
\usepackage{amsmath}
\input{macros}
\newcommand{\be}{\begin{equation}} \def\ee{\end{equation}}
\newenvironment{eq}{\begin{align*}}{\end{align*}}
\newenvironment{old}{\csname eqnarray*\endcsname}{\csname endeqnarray*\endcsname}
\newif\ifdraft
\begin{document}
\chapter{One}
Text with $a_1 + b_1$ and \$5, 100\%, \verb|$no$| inline. % $comment$ \[ no \]
\be\label{first} \E[X] = \norm{x}_2 \ee
\include{chapters/two}
\begin{verbatim}
\[ not typeset % \]
\end{verbatim}
\begin{comment} $$ no $$ \end{comment}
\iffalse \[ never \] \else \[ always \] \fi
\ifdraft \[ draft \] \else $$ final $$ \fi
\end{document}
\[ behind the end \]
"""
MACROS = r"""\newcommand{\R}{\mathbb{R}} % \newcommand{\R}{R}
\DeclareMathOperator{\E}{E}
\newcommand{\norm}[1]{\left\|#1\right\|}
\let\oldepsilon\epsilon
\renewcommand{\epsilon}{\varepsilon}
\def\pair(#1,#2){\langle #1|#2\rangle}
"""
TWO = r"""\begin{eq}
  f &: \R \to \R, \\ \intertext{and then} % a comment
  g &= \pair(a,b) \notag
\end{eq}
\begin{old} x &=& \epsilon \\ y &=& \oldepsilon \end{old}
{\renewcommand{\R}{R} \[ \R \]}
\[ \R \text{ if $x$} \\[2pt] \]
\begin{tabular}{l} a \\[1ex] b \end{tabular}
\begin{theorem} \begin{multline} a \\ b \end{multline} \end{theorem}
"""
BOOK = {
    "book.tex": MAIN.encode(),
    "macros.tex": MACROS.encode(),
    "chapters/two.tex": TWO.encode(),
    "notes.txt": b"only words",
}
DISPLAYS = [
    (r"\operatorname{E}[X] = \left\|x\right\|_2", "equation"),
    (r"\begin{align*}f &: \mathbb{R}\to \mathbb{R},\end{align*}", "align*"),
    (r"\begin{align*}g &= \langle a|b\rangle\end{align*}", "align*"),
    (r"\begin{eqnarray*}x &=& \varepsilon\\ y &=& \epsilon\end{eqnarray*}", "eqnarray*"),
    (r"R", r"\["),
    (r"\mathbb{R}\text{ if $x$}", r"\["),
    (r"\begin{multline}a \\ b\end{multline}", "multline"),
    ("always", r"\["),
    ("final", "$$"),
]
