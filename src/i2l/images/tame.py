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
_TAME_SYMBOLS: Final = frozenset(",;:!>{}|&%$#_-/\\'`^\"~=.* \t\n@+")
_MAX_CHARACTERS: Final = 50_000  # a long display with a mark before each token
_MAX_DEPTH: Final = 40  # TeX dies at 255 groups, and each brace may open several
_MAX_COLUMNS: Final = 200
_MAX_COLUMN_CHARACTERS: Final = 2000
# Commands that set their argument several times over, to choose one: nested, each multiplies the work.
_MANIFOLD_NAMES: Final = """
    text textrm textbf textit textsf texttt textnormal textup textsc textsl textmd emph smash phantom
    hphantom vphantom bm boldsymbol pmb overset underset overrightarrow overleftarrow overleftrightarrow
    underrightarrow underleftarrow underleftrightarrow sideset root
"""
_MANIFOLD: Final = frozenset(_MANIFOLD_NAMES.split())
_MAX_MANIFOLD: Final = 4  # nested: work of at most some hundred times

# What TeX makes of the characters is sure only in printable ASCII and without ^^41 for A; a blank line ends
# the formula.
_UNSURE: Final = re.compile(r"[^ -~\t\n]|\^\^|\n[ \t]*\n")
_TOKEN: Final = re.compile(rf"\\(begin|end)\{{({_TAME_ENVIRONMENTS})\}}|\\([A-Za-z]+)|\\([\s\S])|([{{}}$%])")
_ENVIRONMENT, _WORD, _SYMBOL = 2, 3, 4  # what the last group of a match is
# What TeX counts up to must be written plainly, and be small.
_COUNT: Final = r"\{\s*\d\s*\d?\s*\}"
_BEFORE_COLUMNS: Final = {
    **dict.fromkeys(("array", "tabular", "subarray"), re.compile(r"\s*(?:\[[^\]]{0,9}\]\s*)?(?=[{lcr])")),
    "multicolumn": re.compile(rf"\s*{_COUNT}\s*(?=\{{)"),
}
_COUNTED: Final = {
    "alignedat": re.compile(rf"\s*{_COUNT}"),
    "cline": re.compile(r"\s*\{\s*\d\s*\d?\s*-\s*\d\s*\d?\s*\}"),
}
_BRACE: Final = re.compile(r"\\[\s\S]|[{}]")
_REPEATED: Final = re.compile(r"\*\s*\{\s*(\d)\s*(\d?)\s*\}\s*\{([lcr|\s]*)\}")


def find_wild(formulas: Sequence[str], style: Style, *, extra: Iterable[str] = ()) -> set[int]:
    """The positions of the formulas that need a process of their own; ``extra`` names are tame as well."""
    tame = _TAME_COMMANDS.union(extra)
    wild: set[int] = set()
    unsure: dict[int, set[str]] = {}
    for position, formula in enumerate(formulas):
        words = _command_words(formula)
        if words is None:
            wild.add(position)
        elif unknown := words - tame:
            unsure[position] = unknown
    if unsure:
        harmless = _harmless_names(style, set().union(*unsure.values()))
        wild |= {position for position, names in unsure.items() if names - harmless}
    return wild


def _command_words(formula: str) -> set[str] | None:
    """The names of the commands in a formula; None if something else in it makes it wild."""
    text = f"{formula}\n"  # as in the document: a last backslash is a space
    if len(formula) > _MAX_CHARACTERS or _UNSURE.search(text):
        return None
    words: set[str] = set()
    # For each open group: how many commands may be at work on it, and whether one stands in it.
    manifold, groups = [0], [False]
    for token in _TOKEN.finditer(text):
        kind = token.lastindex
        if kind == _WORD:
            words.add(token[_WORD])
            groups[-1] |= token[_WORD] in _MANIFOLD
        if kind == _WORD or (kind == _ENVIRONMENT and token[1] == "begin"):
            if not _counts_are_small(token[kind], text, token.end()):
                return None
        elif kind == _SYMBOL:
            if token[_SYMBOL] not in _TAME_SYMBOLS:
                return None
        elif token[0] == "{":
            manifold.append(manifold[-1] + groups[-1])
            groups.append(False)
            if len(groups) > _MAX_DEPTH + 1 or manifold[-1] > _MAX_MANIFOLD:
                return None
        elif token[0] == "}" and len(groups) > 1:
            manifold.pop()
            groups.pop()
        elif kind != _ENVIRONMENT:  # $, %, or a brace too many
            return None
    return words if len(groups) == 1 else None


def _counts_are_small(name: str, text: str, position: int) -> bool:
    """Whether what follows a command or environment lets TeX count only to small numbers."""
    if name in _COUNTED:
        return _COUNTED[name].match(text, position) is not None
    if name not in _BEFORE_COLUMNS:
        return True
    before = _BEFORE_COLUMNS[name].match(text, position)
    if before is None or text[before.end()] != "{":
        return before is not None
    depth, end = 0, len(text)
    for brace in _BRACE.finditer(text, before.end()):
        depth += (brace[0] == "{") - (brace[0] == "}")
        if depth == 0:
            end = brace.start()
            break
    columns = text[before.end() + 1 : end]
    if "*" in columns:
        repeats = _REPEATED.findall(columns)
        counted = sum(int(tens + ones) * max(1, len(repeated)) for tens, ones, repeated in repeats)
        if counted > _MAX_COLUMNS or "*" in _REPEATED.sub("", columns):
            return False
    return len(columns) <= _MAX_COLUMN_CHARACTERS


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
        said = run_pdflatex(document(style, questions), trusted=True, draft=True).said
        answers = dict(re.findall(r"^i2l:name (\w+) (.*)$", said, re.MULTILINE))
        known.update({name: answers.get(name, "").startswith(("?", '\\mathchar"')) for name in new})
    return {name for name in names if known[name]}
