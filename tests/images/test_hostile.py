"""Whatever a formula tries, it gets a verdict, and its neighbours get their picture."""

import os
import time

import numpy as np
import pytest

from i2l.images import tame, tex
from i2l.images.render import render_formulas

pytestmark = pytest.mark.tex

SECRET = "xyzzysecretplugh"
REASONS = {None, "tex-error", "timeout", "too-large", "empty"}

# @F is a file outside that holds the secret, @D its folder. The first nine are those of the specification.
READ_AND_WRITE = r"""
\input{/etc/passwd}
\immediate\write18{cat @F > out.tex}\input{out.tex}
\openin5=@F \read5 to\x \x
\csname in\endcsname\csname put\endcsname{@F}
\csname @@input\endcsname @F
\input{@F}
\input @F
\catcode`\@=11 \@@input @F
\scantokens{\input @F }
\input|"cat @F"
\input{../../../../../../../..@F}
\input{~/.bashrc}
\InputIfFileExists{@F}{}{}
\pdffiledump offset 0 length 99{@F}
\pdfmdfivesum file{@F}
\pdffilesize{@F}
\immediate\pdfobj file{@F}x
\immediate\pdfobj stream file{@F}x
\immediate\csname tex_pdfobj:D\endcsname stream file{@F}x
\pdfprimitive\pdfobj stream file{@F}\pdfrefobj\pdflastobj x
\pdfximage{@D/secret.png}\pdfrefximage\pdflastximage
\pdfmapfile{@F}x
\pdfmapline{=cmmi12 CMMI12 <<@F}x
\csname tex_mapline:D\endcsname{=cmmi12 CMMI12 <<@F}x
\special{psfile=@F}x
\special{pdf:stream @F}x
\pdfcatalog{/OpenAction << /S /Launch /F (@F) >>}x
\font\f=@F \f x
\includegraphics{@F}
\lstinputlisting{@F}
\directlua{os.execute("cat @F")}
\immediate\openout3=@D/written.txt \immediate\write3{x}\immediate\closeout3 x
\immediate\openout3=../written.txt \immediate\write3{x}\immediate\closeout3 x
\immediate\openout3=.hidden \immediate\write3{x}x
\immediate\openout3=formulas.tex \immediate\write3{x}x
\immediate\openout3=formulas.log \immediate\write3{i2l:end 1 0v-1}\end
""".strip().splitlines()
CHANGE_THE_REST = r"""
\gdef\frac#1#2{HACKED}x
\global\let\sum\relax x
\renewcommand{\alpha}{\beta}\global\let\alpha\beta x
\globaldefs=1 \mathcode`x=`y \catcode`\\=12 x
\catcode`\{=12 x
^^5cgdef^^5citlend{}x
\gdef\itlend{}\gdef\itlbegin#1{}x
\everymath{x}\everydisplay{x}\everypar{x}\global\everydisplay{$$}x
\output={\shipout\box255}x
\shipout\hbox{x}\shipout\hbox{y} z
\setbox0\vbox{\unvbox\itlouter}\box0 x
}}}}}}$$\egroup\egroup x
$$ $$ x $$ $$
x \] y \[ z
x \) y \( z
\begingroup x
\begin{array}{c} x
\end{array} x
\end{document}
\end
\stop
\csname endinput\endcsname x
\endinput
\csname @@end\endcsname
\begin{document} x \end{document}
\errorstopmode\undefinedcommand x
\scrollmode\errmessage{x}
\batchmode\errmessage{x}
\interactionmode=3 \read16 to\x x
\tracingall\tracingonline=1 x
\hsize=1pt\parindent=0pt\global\hsize=1pt x
\global\pdfpagewidth=1pt \global\itlmargin=-99pt x
\aftergroup\end x
\afterassignment\end\count0=1
\obeylines\uppercase{\gdef\x}{\x}
\mathversion{bold}\setcounter{page}{99}\label{x}\ref{y}\cite{z}
%
#1 ## \iffalse
\fi \else \or x
\relax
""".strip().splitlines()
_GROWING_LINES = r"""
\loop\iftrue\repeat
\def\x{\x\x}\x
\def\x{\x}\x
\def\x{a\x}\x
\def\a{xx}\def\b{\a\a\a\a\a\a\a\a}\def\c{\b\b\b\b\b\b\b\b}\def\d{\c\c\c\c\c\c\c\c}\def\e{\d\d\d\d\d\d\d\d}\e\e\e\e
\edef\x{x}\loop\edef\x{\x\x}\iftrue\repeat
\loop\immediate\write-1{flood}\iftrue\repeat
\loop\typeout{flood of the terminal and of the log}\iftrue\repeat
\newcount\n \loop\immediate\openout3=f\the\n\immediate\write3{flood}\advance\n1 \ifnum\n<1000000\repeat
\newcount\n \loop\shipout\hbox{x}\advance\n1 \ifnum\n<1000000\repeat
\newcount\n \loop\advance\n1 \expandafter\gdef\csname x\the\n\endcsname{x}\ifnum\n<9999999\repeat
\rule{1000000pt}{1000000pt}
\rule{16000pt}{16000pt}
\hspace{16000pt}x\hspace{16000pt}x\hspace{16000pt}x
\kern16000pt\kern16000pt\kern16000pt\kern16000pt\kern16000pt x
\vrule height 16000pt width 1pt x
\hbox to 16383pt{x\hfil x}
\raisebox{9999pt}{x}\raisebox{-9999pt}{x}
\pdfliteral{q 1000000 0 0 1000000 0 0 cm 0 0 1 1 re f Q}x
\font\f=cmr10 scaled 32767 \hbox{\f x}
\begin{array}{*{99999}{c}} x \end{array}
\multicolumn{999999999}{c}{x}
\pdfcompresslevel=9 x
\pdfoutput=0 x
\count255=2147483647 \multiply\count255 2 x
\skewchar\font=-1 \fontdimen999999\font=1pt x
\left(\left(\left(\left(\left(\left(\left(\left(\left(\left(\left(\left(\left(x
"""
GROW = [
    *_GROWING_LINES.strip().splitlines(),
    "{" * 300 + "x" + "}" * 300,
    "{" * 5000 + "x" + "}" * 5000,
    r"\frac{x}" * 200 + "{x}",
    r"\sqrt" * 300 + "x",
    "x" * 19_000,
    "x" * 1_000_000,
    "x^" * 300 + "x",
    "&" * 200,
    "}" * 200,
    "\0\1\x7f",
    "é∫日本 \ud800",
    "a\n\n\nb",
    "\\",
    "",
]
LOOPS = {0, 6, 7, 8, 9, 10}  # of GROW: no verdict before the time limit


def check(formulas, tmp_path, monkeypatch):
    """Render the formulas with good ones between them; return the results of the hostile ones."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.tex").write_text(SECRET)
    monkeypatch.setenv("I2L_SECRET", SECRET)
    seen = []

    def watched(source, **options):
        result = run_pdflatex(source, **options)
        seen.append(result.said.encode() + result.pdf)
        return result

    run_pdflatex = tex.run_pdflatex
    monkeypatch.setattr(tex, "run_pdflatex", watched)
    hostile = [
        formula.replace("@F", str(outside / "secret.tex")).replace("@D", str(outside)) for formula in formulas
    ]
    good = [rf"\frac{{\alpha_{{{number}}}}}{{\sum x}}" for number in range(len(hostile) + 1)]
    mixed = [formula for pair in zip(good, hostile, strict=False) for formula in pair] + good[-1:]
    results = render_formulas(mixed, timeout_s=1)
    undisturbed = render_formulas(good)
    assert len(results) == len(mixed)
    for number, (result, expected) in enumerate(zip(results[::2], undisturbed, strict=True)):
        assert result.reason is None
        assert np.array_equal(result.pixels, expected.pixels), f"disturbed by {hostile[max(0, number - 1)]}"
    for formula, result in zip(hostile, results[1::2], strict=True):
        assert result.reason in REASONS, formula
        assert (result.pixels is None) == (result.reason is not None), formula
        assert SECRET not in result.message
    assert not any(SECRET.encode() in run for run in seen)
    assert os.listdir(outside) == ["secret.tex"]
    return results[1::2]


def test_the_worst_of_each_kind(tmp_path, monkeypatch):
    formulas = [
        *READ_AND_WRITE[:4],
        r"\loop\iftrue\repeat",
        r"\def\x{\x\x}\x",
        r"\rule{1000000pt}{1000000pt}",
    ]
    results = check(formulas, tmp_path, monkeypatch)
    assert [result.reason for result in results] == ["tex-error"] * 4 + ["timeout", "tex-error", "tex-error"]
    assert all(result.message for result in results)


@pytest.mark.slow
@pytest.mark.parametrize("formulas", [READ_AND_WRITE, CHANGE_THE_REST], ids=["read", "change"])
def test_formulas_that_reach_out(formulas, tmp_path, monkeypatch):
    check(formulas, tmp_path, monkeypatch)


@pytest.mark.slow
def test_formulas_that_grow(tmp_path, monkeypatch):
    start = time.monotonic()
    results = check(GROW, tmp_path, monkeypatch)
    assert time.monotonic() - start < 60
    assert all(results[number].reason in {"timeout", "too-large", "tex-error"} for number in LOOPS)


def test_a_wild_formula_is_drawn_like_a_tame_one():
    wild, plain = render_formulas([r"\def\y{x^2}\y+1", "x^2+1"])
    assert np.array_equal(wild.pixels, plain.pixels)


@pytest.mark.parametrize(
    "formula",
    [
        r"\input{x}",
        r"\begin{input}",
        r"^^5cinput",
        "a%b",
        "$",
        r"\csname",
        r"\mathchar",
        "{",
        "}{",
        r"\1",
        "é",
    ],
)
def test_what_can_act_is_wild(formula):
    assert tame.find_wild(["x", formula, "y"], tex.PAPER) == {1}


@pytest.mark.parametrize(
    "formula", [r"\leq", r"\nosuchcommand", r"\begin{array}{c}x\end{array}", r"\%\{", "a\nb"]
)
def test_what_only_draws_or_fails_is_tame(formula):
    assert not tame.find_wild([formula], tex.PAPER)
