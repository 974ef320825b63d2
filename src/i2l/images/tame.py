"""Which formulas may share a TeX process: those made only of commands that draw, and change nothing else.

A command is tame if it stands in the list below, if TeX says that it is a plain math symbol, or if TeX does
not know it at all: then it can do nothing but raise an error.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Final

from i2l.images.sandbox import run_pdflatex
from i2l.images.styles import Style
from i2l.images.template import document

# Macros and primitives that only draw. Symbols that TeX defines by \mathchardef need no entry.
_TAME_NAMES: Final = """
    frac dfrac tfrac cfrac genfrac over atop above choose brace brack binom dbinom tbinom sqrt root of
    surd stackrel buildrel overset underset substack sideset overline underline overbrace underbrace
    overrightarrow overleftarrow overleftrightarrow underrightarrow underleftarrow underleftrightarrow
    widehat widetilde hat tilde bar vec dot ddot dddot ddddot acute grave breve check mathring
    xrightarrow xleftarrow xleftrightarrow xRightarrow xLeftarrow xLeftrightarrow xmapsto
    xhookrightarrow xhookleftarrow xrightharpoonup xleftharpoonup xrightleftharpoons cancel bcancel
    xcancel coloneqq Coloneqq eqqcolon dblcolon vcentcolon circledR yen maltese mathllap mathrlap
    mathclap skew boxed fbox framebox makebox raisebox rule smash phantom hphantom vphantom strut
    mathstrut llap rlap clap lefteqn ooalign left right middle big Big bigg Bigg bigl Bigl biggl Biggl
    bigr Bigr biggr Biggr bigm Bigm biggm Biggm langle rangle lbrace rbrace lbrack rbrack lceil rceil
    lfloor rfloor lgroup rgroup lmoustache rmoustache vert Vert lvert rvert lVert rVert arrowvert
    Arrowvert bracevert backslash uparrow downarrow updownarrow Uparrow Downarrow Updownarrow ulcorner
    urcorner llcorner lrcorner operatorname operatornamewithlimits mathop mathbin mathrel mathord
    mathopen mathclose mathpunct mathinner limits nolimits displaylimits sum prod coprod int oint iint
    iiint iiiint idotsint bigcap bigcup bigvee bigwedge bigoplus bigotimes bigodot biguplus bigsqcup
    arccos arcsin arctan arg cos cosh cot coth csc deg det dim exp gcd hom inf injlim ker lg lim liminf
    limsup ln log max min Pr projlim sec sin sinh sup tan tanh varinjlim varliminf varlimsup varprojlim
    bmod pmod pod mod And Join Longleftarrow Longleftrightarrow Longrightarrow bowtie cdots checkmark
    colon cong dag dashleftarrow dashrightarrow ddag ddots dots dotsb dotsc dotsi dotsm dotso doteq hbar
    hookleftarrow hookrightarrow iff impliedby implies ldots longleftarrow longleftrightarrow longmapsto
    longrightarrow mapsto models ne neq not notin rightleftharpoons slash vdots lq rq sp sb prime relax
    null empty mathrm mathit mathbf mathbb mathcal mathfrak mathscr mathsf mathtt mathnormal boldsymbol
    bm pmb rm bf it sl sf tt sc cal mit em boldmath unboldmath bfseries itshape rmfamily sffamily
    ttfamily mdseries upshape slshape scshape normalfont tiny scriptsize footnotesize small normalsize
    large Large LARGE huge Huge displaystyle textstyle scriptstyle scriptscriptstyle text mbox hbox
    textrm textbf textit textsf texttt textnormal textup textsc textsl textmd emph ensuremath AA aa AE
    ae OE oe O o L l ss SS S P i j u v H c d b t pounds copyright textcircled quad qquad enspace enskip
    thinspace medspace thickspace negthinspace negmedspace negthickspace space nobreakspace hspace
    vspace hskip vskip kern mkern mskip hfil hfill hss vss vcenter raise lower smallskip medskip bigskip
    allowbreak nobreak nolinebreak protect noindent hline cline vline multicolumn cr crcr noalign tag
    nonumber notag matrix pmatrix cases
"""
_TAME_COMMANDS: Final = frozenset(_TAME_NAMES.split())
_TAME_ENVIRONMENTS: Final = (
    "array|tabular|[pbBvV]?matrix|smallmatrix|cases|aligned|alignedat|gathered|split|subarray"
)
_TAME_SYMBOLS: Final = re.escape(",;:!>{}|&%$#_-/\\'`^\"~=.* \t\n@+")
_MAX_CHARACTERS: Final = 50_000  # a long display with a mark before each token
_MAX_DEPTH: Final = 40  # TeX dies at 255 groups, and each brace may open several

_CONTROL: Final = re.compile(
    rf"\\(?:(?:begin|end)\{{(?:{_TAME_ENVIRONMENTS})\}}|([A-Za-z]+)|[{_TAME_SYMBOLS}])"
)
# What is left must be printable ASCII; no $, no comment, no ^^41 for A, no control symbol but those above.
_ODD: Final = re.compile(r"[^ -~\t\n]|[$%\\]|\^\^|\n[ \t]*\n")
# A count that TeX would loop over: *{99999}{c}, \multicolumn{99999}.
_COUNTED: Final = re.compile(
    r"(?<![A-Za-z])\*\s*\{\s*\d|(?:multicolumn|cline|alignedat\})\s*\{[^}]*\d\s*\d\s*\d"
)


def find_wild(formulas: Sequence[str], style: Style, *, extra: Iterable[str] = ()) -> set[int]:
    """The positions of the formulas that need a process of their own; ``extra`` names are tame as well."""
    tame = _TAME_COMMANDS.union(extra)
    wild: set[int] = set()
    unsure: dict[int, set[str]] = {}
    for position, formula in enumerate(formulas):
        names = {match[1] for match in _CONTROL.finditer(formula) if match[1]}
        if not _is_plain(formula):
            wild.add(position)
        elif unknown := names - tame:
            unsure[position] = unknown
    if unsure:
        harmless = _harmless_names(style, set().union(*unsure.values()))
        wild |= {position for position, names in unsure.items() if names - harmless}
    return wild


def _is_plain(formula: str) -> bool:
    rest = _CONTROL.sub(" ", f"{formula}\n")  # as in the document: a last backslash is a space
    if len(formula) > _MAX_CHARACTERS or _ODD.search(rest) or _COUNTED.search(formula):
        return False
    depth = 0
    for brace in re.findall("[{}]", rest):
        depth += 1 if brace == "{" else -1
        if not 0 <= depth <= _MAX_DEPTH:
            return False
    return depth == 0


_HARMLESS: dict[Style, dict[str, bool]] = {}


def _harmless_names(style: Style, names: set[str]) -> set[str]:
    """Those of ``names`` that TeX does not know, or knows as a math symbol; it is asked once for a name."""
    known = _HARMLESS.setdefault(style.tex_part(), {})
    if new := sorted(names - known.keys()):
        questions = (
            rf"\immediate\write16{{i2l:name {name} \ifcsname {name}\endcsname"
            rf"\expandafter\meaning\csname {name}\endcsname\else ?\fi}}"
            for name in new
        )
        said = run_pdflatex(document(style, questions), draft=True).said
        answers = dict(re.findall(r"^i2l:name (\w+) (.*)$", said, re.MULTILINE))
        known.update({name: answers.get(name, "").startswith(("?", '\\mathchar"')) for name in new})
    return {name for name in names if known[name]}
