"""The TeX document around the formulas: one page each, exact in size, the same bytes on every run.

Page geometry, on which the rasteriser and the boxes rely: width and height are whole big points (1/72 inch);
the formula starts a whole number of inches from the left edge, and its baseline lies a whole number of inches
above the lower edge. So at every whole dpi the reference point falls on a pixel corner, and equal formulas
give equal pixels whatever surrounds them.
"""

import re
from collections.abc import Iterable
from typing import Final

from i2l.images.styles import Style, preamble

MARGIN_BP: Final = 36
ROOMY_MARGIN_BP: Final = 360
MAX_SIDE_PT: Final = 4000  # of a formula; at 300 dpi that is 16,600 px

# Ink may lie far outside the box that TeX knows of: such formulas get a page with room around them.
_STRAYS: Final = re.compile(
    r"\\(?:llap|rlap|clap|math[lrc]lap|smash|raise|lower|raisebox|makebox|framebox|lefteqn|skew|ooalign)"
    r"(?![A-Za-z])|skip[ {]*-|kern[ {]*-|space\*?[ {]*-|(?:\\!.{0,9}){6}|\\hss"
)

_MACROS: Final = r"""
\nofiles \pagestyle{empty}
\pdfcompresslevel=0 \pdfobjcompresslevel=0 \pdfgentounicode=0
\pdfinfoomitdate=1 \pdftrailerid{} \pdfsuppressptexinfo=-1
\hbadness=10000 \vbadness=10000 \hfuzz=\maxdimen \vfuzz=\maxdimen
\errorcontextlines=0 \tracinglostchars=3
\hoffset=0pt \voffset=0pt
\def\boldsymbol{\bm}% what bm makes of \boldsymbol{\boldsymbol{x}} never ends
\newbox\itlouter \newbox\itlbox \newdimen\itlleft \newcount\itltop \newcount\itlbottom \newdimen\itlmargin
\def\itllog#1{\immediate\write16{@NONCE@:#1}}
\def\itlroom{\global\itlmargin=@ROOMY@bp }
% A message is written out at once, so that we know where TeX was when it was killed.
\def\itlstart#1{\itllog{begin #1}\message{}}
\def\itlbegin#1{\gdef\itlkey{#1}\itlstart{#1}\itlopen}
\def\itlship{%
  \edef\itlstate{\the\currentgrouplevel\ifvmode v\fi}%
  \setbox\itlouter\hbox{\unhcopy\itlbox}% TeX calls a display wider than the line as wide as the line
  \ifdim\wd\itlouter>\wd\itlbox \wd\itlbox=\wd\itlouter \fi
  \ifdim\wd\itlbox>@MAX@pt \itllog{large \itlkey}\else
  \ifdim\wd\itlbox<-300pt \itllog{large \itlkey}\else % wider than TeX can count
  \ifdim\dimexpr\ht\itlbox/2+\dp\itlbox/2\relax>\dimexpr@MAX@pt/2\relax \itllog{large \itlkey}\else
    \itlbottom=\numexpr 72*((\dp\itlbox+\itlmargin+\dimexpr36bp\relax)/\dimexpr72bp\relax)\relax
    \itltop=\numexpr (\ht\itlbox+\itlmargin)/\dimexpr1bp\relax+1\relax
    \itlleft=\ifdim\itlmargin<72bp 72bp\else\itlmargin\fi
    \pdfpagewidth=\numexpr (\wd\itlbox+\itlleft+\itlmargin)/\dimexpr1bp\relax+1\relax bp
    \pdfpageheight=\numexpr \itltop+\itlbottom\relax bp
    \pdfhorigin=\itlleft \pdfvorigin=\dimexpr\itltop bp-\ht\itlbox\relax
    \RawShipout\box\itlbox
  \fi\fi\fi
  \global\itlmargin=@MARGIN@bp
  \itllog{end \itlkey\space\itlstate\itlrest}}
\itlmargin=@MARGIN@bp
% A page that a process of its own has made: put it in as a picture, with its own size.
\def\itlpicture#1{\itlstart{#1}\pdfximage{#1.pdf}\setbox\itlbox\hbox{\pdfrefximage\pdflastximage}%
  \ifnum\pdflastximagepages=1
    \ifdim\wd\itlbox>@PAGE@bp \itllog{large #1}\else \ifdim\ht\itlbox>@PAGE@bp \itllog{large #1}\else
    \pdfpagewidth=\wd\itlbox \pdfpageheight=\ht\itlbox \pdfhorigin=0pt \pdfvorigin=0pt
    \RawShipout\box\itlbox
    \fi\fi
    \itllog{end #1 0v-1}%
  \else \errmessage{The formula makes \the\pdflastximagepages\space pages}\itllog{end #1 0v-1}\fi}
"""
# Set by TeX as the display it is, so that one a little wider than the text is squeezed to it as on paper;
# then the display's own box is taken off the list, which must hold nothing else.
_DISPLAY: Final = r"""
\def\itlopen{\setbox\itlouter\vbox\bgroup@BOLD@\noindent$$}
\def\itltrim{\ifcase\numexpr\lastnodetype-11\relax \unskip\or\unkern\or\unpenalty\else\expandafter\itlstop\fi
  \itltrim}
\def\itlstop\itltrim{}
\def\itlend{$$\par\itltrim \ifnum\lastnodetype=3 \let\itlnext\itlwhole\else\let\itlnext\itlalone\fi \itlnext}
\def\itlalone{\global\setbox\itlbox\lastbox\itltrim\xdef\itlrest{\the\lastnodetype}\egroup\itlship}
\def\itlwhole{\gdef\itlrest{-1}\egroup\setbox\itlbox\hbox{\box\itlouter}\itlship}% a \vspace* hangs behind it
"""
_INLINE: Final = r"""
\def\itlopen{\setbox\itlbox\hbox\bgroup@BOLD@$}
\def\itlend{$\egroup\gdef\itlrest{-1}\itlship}
"""
MARK_COMMANDS: Final = ("itltoken", "vrule")  # in the formulas that `i2l.images.marks` writes
# Tells in the page which token the ink after it belongs to. bm looks at every token of its argument, which
# the marks do not survive: an older way to the same bold letters does.
_TOKEN_MACROS: Final = r"""
\protected\def\itltoken#1{\pdfliteral direct{/#1 MP}}
\def\itlbold#1#2{\hbox{\boldmath$#1#2$}}
\protected\def\bm#1{{\mathchoice{\itlbold\displaystyle{#1}}{\itlbold\textstyle{#1}}%
  {\itlbold\scriptstyle{#1}}{\itlbold\scriptscriptstyle{#1}}}}
\let\boldsymbol\bm
"""
# A formula in a process of its own loses what reads files without asking `openin_any`, what writes raw PDF or
# other files, and what could hide a huge page by compressing it: under the names of pdfTeX and those that
# expl3 gives them (\\tex_pdfobj:D, \\tex_mapfile:D). The isolation does not rely on it.
_BANNED: Final = (
    "obj ximage mapfile mapline filedump filesize filemoddate mdfivesum primitive literal xform pageresources"
    " xformresources pageattr pagesattr catalog annot startlink thread colorstack setmatrix compresslevel"
    " special openout"
)
_BAN: Final = r"""
% LaTeX writes *{99999}{c} out in quadratic time.
\makeatletter
\let\itlexpand\@xexpast
\def\@xexpast#1*#2#3#4\@@{\ifnum#2>200 \errmessage{Too many columns}\itlexpand#1*{0}{#3}#4\@@
  \else\itlexpand#1*{#2}{#3}#4\@@\fi}
\makeatother
\def\itlban#1 {\ifx\relax#1\else
  \expandafter\let\csname pdf#1\endcsname\undefined \expandafter\let\csname tex_pdf#1:D\endcsname\undefined
  \expandafter\let\csname #1\endcsname\undefined \expandafter\let\csname tex_#1:D\endcsname\undefined
  \expandafter\itlban\fi}
\AtBeginDocument{\itlban @BANNED@ \relax\space
  \let\pdfoutput\undefined \expandafter\let\csname tex_pdfoutput:D\endcsname\undefined}
"""
CLEAN: Final = "0v-1"  # after a formula: outermost group, vertical mode, and nothing left over


def document(
    style: Style, body: Iterable[str], *, marked: bool = False, trusted: bool = True, nonce: str = "i2l"
) -> str:
    """A whole LaTeX document for ``style`` with ``body`` in it.

    Args:
        style: only its TeX part counts.
        body: `formula_lines` and `picture_line`.
        marked: the formulas carry token marks.
        trusted: nothing in the body can act; else TeX is cut down first.
        nonce: what the template's own lines in the log begin with, so that nobody else can write them.
    """
    macros = _MACROS + (_DISPLAY if style.display else _INLINE)
    macros += (_TOKEN_MACROS if marked else "") + ("" if trusted else _BAN)
    values = {
        "MARGIN": str(MARGIN_BP),
        "ROOMY": str(ROOMY_MARGIN_BP),
        "MAX": str(MAX_SIDE_PT),
        "PAGE": str(MAX_SIDE_PT + 2 * ROOMY_MARGIN_BP + 72),
        "BANNED": _BANNED,
        "NONCE": nonce,
        "BOLD": r"\boldmath" if style.bold else "",
    }
    macros = re.sub("@([A-Z]+)@", lambda match: values[match[1]], macros)
    return "\n".join([preamble(style), macros, r"\begin{document}", *body, r"\end{document}", ""])


def formula_lines(key: int, formula: str, *, roomy: bool = False) -> str:
    """What draws a formula as the next page."""
    room = r"\itlroom" if roomy or _STRAYS.search(formula) else ""
    return f"{room}\\itlbegin{{{key}}}\n{formula}\n\\itlend"


def picture_line(key: int) -> str:
    """What puts the page of the file ``<key>.pdf`` in as the next page."""
    return f"\\itlpicture{{{key}}}"
