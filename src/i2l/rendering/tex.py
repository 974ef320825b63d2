"""Many formulas in, one PDF out: batches that survive their bad members, each of which gets a verdict.

Two kinds of formulas. A *tame* one is made only of commands that draw and change nothing else: it cannot
define, read, write or loop, so tame formulas share a TeX process. A command is tame if its record says so, if
TeX says that it is a plain math symbol, or if TeX does not know it at all: then it can do nothing but raise
an error. Any other formula is *wild* and gets a process of its own; if that draws one page, and a process
with nothing to lose can draw it too, the page is put into the common PDF as a picture. Where the operating
system cannot isolate the process, wild formulas are refused.

The PDF that is kept always comes from a run in which no formula raised an error, so no error can have
disturbed a neighbour. TeX sets a formula in about 60 us and starts in 100 ms: running twice is cheap.

The document has one page for each formula, with the same bytes on every run. The rasteriser and the boxes
rely on its geometry: width and height are whole big points (1/72 inch); the formula starts a whole number of
inches from the left edge, and its baseline lies a whole number of inches above the lower edge. So at every
whole dpi the reference point falls on a pixel corner, and equal formulas give equal pixels whatever surrounds
them.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from secrets import token_hex
from typing import Final

from i2l.errors import I2LError
from i2l.formulas import commands
from i2l.rendering import REFUSED, TEX_ERROR, TIMEOUT, TOO_LARGE
from i2l.rendering.isolation import IsolationError
from i2l.rendering.sandbox import TexRunResult, missing_files, run_tex, try_pdfs
from i2l.rendering.styles import LUALATEX, PAPER, PDFLATEX, UNICODE_FONT_FILES, Style, preamble

MARGIN_BP: Final = 36
ROOMY_MARGIN_BP: Final = 360
MAX_SIDE_PT: Final = 4000  # of a formula; at 300 dpi that is 16,600 px

# Ink may lie far outside the box that TeX knows of: such formulas get a page with room around them.
_STRAYING: Final = "|".join(sorted(name[1:] for name in commands.names_of(lambda command: command.strays)))
_STRAYS: Final = re.compile(
    rf"\\(?:{_STRAYING})(?![A-Za-z])|skip[ {{]*-|kern[ {{]*-|space\*?[ {{]*-|(?:\\!.{{0,9}}){{6}}"
)

# What the two programs call the same things, and what keeps time and chance out of their files.
_ENGINES: Final = {
    PDFLATEX: r"""
\pdfcompresslevel=0 \pdfobjcompresslevel=0 \pdfgentounicode=0
\pdfinfoomitdate=1 \pdftrailerid{} \pdfsuppressptexinfo=-1
\def\boldsymbol{\bm}% what bm makes of \boldsymbol{\boldsymbol{x}} never ends
""",
    LUALATEX: r"""
\pdfvariable compresslevel=0 \pdfvariable objcompresslevel=0 \pdfvariable gentounicode=0
\pdfvariable suppressoptionalinfo=1023 \pdfvariable trailerid{[<00> <00>]}
\let\pdfpagewidth\pagewidth \let\pdfpageheight\pageheight
\def\pdfhorigin{\pdfvariable horigin} \def\pdfvorigin{\pdfvariable vorigin}
""",
}
_MACROS: Final = r"""
\nofiles \pagestyle{empty}
\hbadness=10000 \vbadness=10000 \hfuzz=\maxdimen \vfuzz=\maxdimen
\errorcontextlines=0 \tracinglostchars=3
\hoffset=0pt \voffset=0pt
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
\def\itlopen{\setbox\itlbox\hbox\bgroup@BOLD@$@STYLE@}
\def\itlend{$\egroup\gdef\itlrest{-1}%
  \setbox\itlouter\vbox{\noindent\par}% TeX gives up after a hundred errors, counted to the end of a paragraph
  \itlship}
"""
MARK_COMMANDS: Final = ("itltoken", "vrule")  # in the formulas that `i2l.rendering.boxes` writes
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
CLEAN_STATE: Final = "0v-1"  # after a formula: outermost group, vertical mode, and nothing left over


def document(
    style: Style, body: Iterable[str], *, marked: bool = False, trusted: bool = True, nonce: str = "i2l"
) -> str:
    """Write a whole LaTeX document for ``style`` with ``body`` in it.

    Args:
        style: only its TeX part counts.
        body: `formula_lines` and `picture_line`.
        marked: the formulas carry token marks.
        trusted: nothing in the body can act; else TeX is cut down first.
        nonce: what the template's own lines in the log begin with, so that nobody else can write them.
    """
    # LuaTeX puts nodes of its own around displays, so it sets them in a line, in the style of displays.
    alone = style.display and style.engine == PDFLATEX
    macros = _ENGINES[style.engine] + _MACROS + (_DISPLAY if alone else _INLINE)
    macros += (_TOKEN_MACROS if marked else "") + ("" if trusted else _BAN)
    values = {
        "MARGIN": str(MARGIN_BP),
        "ROOMY": str(ROOMY_MARGIN_BP),
        "MAX": str(MAX_SIDE_PT),
        "PAGE": str(MAX_SIDE_PT + 2 * ROOMY_MARGIN_BP + 72),
        "BANNED": _BANNED,
        "NONCE": nonce,
        "BOLD": r"\boldmath" if style.bold else "",
        "STYLE": r"\displaystyle " if style.display else "",
    }
    macros = re.sub("@([A-Z]+)@", lambda match: values[match[1]], macros)
    return "\n".join([preamble(style), macros, r"\begin{document}", *body, r"\end{document}", ""])


def formula_lines(key: int, formula: str, *, roomy: bool = False) -> str:
    """Write what draws a formula as the next page."""
    room = r"\itlroom" if roomy or _STRAYS.search(formula) else ""
    return f"{room}\\itlbegin{{{key}}}\n{formula}\n\\itlend"


def picture_line(key: int) -> str:
    """Write what puts the page of the file ``<key>.pdf`` in as the next page."""
    return f"\\itlpicture{{{key}}}"


# Commands that only draw. A sign that TeX defines by \mathchardef needs no word in the table: TeX is asked.
_TAME: Final = commands.names_of(lambda command: command.tame and command.name[0] == "\\") - {"\\"}
_TAME_COMMANDS: Final = frozenset(name[1:].rstrip("*") for name in _TAME if name[1:2].isalpha())
_TAME_SYMBOLS: Final = frozenset(name[1:] for name in _TAME if not name[1:2].isalpha()) | {" ", "\t", "\n"}
_TAME_ENVIRONMENTS: Final = "|".join(name for name, known in commands.ENVIRONMENTS.items() if known.tame)
_MAX_CHARACTERS: Final = 50_000  # a long display with a mark before each token
_MAX_DEPTH: Final = 40  # TeX dies at 255 groups, and each brace may open several
_MAX_COLUMNS: Final = 200
_MAX_COLUMN_CHARACTERS: Final = 2000
# Commands that set their argument several times over, to choose one: nested, each multiplies the work.
_MANIFOLD: Final = frozenset(name[1:] for name in commands.names_of(lambda command: command.manifold))
_MAX_MANIFOLD: Final = 4  # nested: work of at most some hundred times

# What TeX makes of the characters is sure only in printable ASCII and without ^^41 for A; a blank line ends
# the formula.
_UNSURE: Final = re.compile(r"[^ -~\t\n]|\^\^|\n[ \t]*\n")
_TOKEN: Final = re.compile(rf"\\(begin|end)\{{({_TAME_ENVIRONMENTS})\}}|\\([A-Za-z]+)|\\([\s\S])|([{{}}$%])")
_ENVIRONMENT, _WORD, _SYMBOL = 2, 3, 4  # what the last group of a match is
# What TeX counts up to must be written plainly, and be small.
_COUNT: Final = r"\{\s*\d\s*\d?\s*\}"
_BEFORE_COLUMNS: Final = {
    **{
        name: re.compile(r"\s*(?:\[[^\]]{0,9}\]\s*)?(?=[{lcr])")
        for name, known in commands.ENVIRONMENTS.items()
        if known.specification
    },
    "multicolumn": re.compile(rf"\s*{_COUNT}\s*(?=\{{)"),
}
_COUNTED: Final = {
    "alignedat": re.compile(rf"\s*{_COUNT}"),
    "cline": re.compile(r"\s*\{\s*\d\s*\d?\s*-\s*\d\s*\d?\s*\}"),
}
_BRACE: Final = re.compile(r"\\[\s\S]|[{}]")
_REPEATED: Final = re.compile(r"\*\s*\{\s*(\d)\s*(\d?)\s*\}\s*\{([lcr|\s]*)\}")


def find_wild(formulas: Sequence[str], style: Style, *, extra: Iterable[str] = ()) -> set[int]:
    """Return the positions of the formulas that need a process of their own; ``extra`` names are tame too."""
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
    """Return the names of the commands in a formula, or None if something else in it makes it wild."""
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
    """Tell whether what follows a command or environment lets TeX count only to small numbers."""
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


# Unknown, a sign of TeX's, or one of unicode-math's.
_HARMLESS_MEANING: Final = re.compile(r'\?|\\U?mathchar"|the character ')
_SIGN_MEANING: Final = '\\mathchar"'
_MEANINGS: dict[Style, dict[str, str]] = {}


def _harmless_names(style: Style, names: set[str]) -> set[str]:
    """Return the names that TeX does not know, or knows as a math symbol.

    unicode-math gives many signs by way of another name, so what is a sign with pdfLaTeX counts there too.
    """
    meanings = _meanings(style, names)
    harmless = {name for name in names if _HARMLESS_MEANING.match(meanings[name])}
    if style.engine != PDFLATEX and (rest := names - harmless):
        plain = _meanings(PAPER, rest)
        harmless |= {name for name in rest if plain[name].startswith(_SIGN_MEANING)}
    return harmless


def _meanings(style: Style, names: set[str]) -> dict[str, str]:
    """Return what TeX takes names for, a question mark for what it does not know; it is asked once."""
    known = _MEANINGS.setdefault(style.tex_part(), {})
    if new := sorted(names - known.keys()):
        questions = (
            rf"\immediate\write16{{i2l:name {name} \ifcsname {name}\endcsname"
            rf"\expandafter\meaning\csname {name}\endcsname\else ?\fi}}"
            for name in new
        )
        said = run_tex(document(style, questions), trusted=True, engine=style.engine, draft=True).said
        answers = dict(re.findall(r"^i2l:name (\w+) (.*)$", said, re.MULTILINE))
        known.update({name: answers.get(name, "") for name in new})
    return known


_EVENT: Final = r"^(?:NONCE:(begin|end|large) (\d{1,9})(?: (.*))?|! ?(.*))$"
_UNKNOWN: Final = "Undefined control sequence."
_COMMAND_AT_END: Final = re.compile(r"(\\[A-Za-z]+|\\.) ?$", re.MULTILINE)
_START_CPU_S: Final = {PDFLATEX: 10, LUALATEX: 60}  # a hundred times, and ten times, what TeX takes to start
_FORMULAS_PER_CPU_S: Final = 500  # a thirtieth of what TeX does
# Formulas that are run again when one of them ends a run: they take as long as TeX takes to start.
_FORMULAS_PER_SCOUT: Final = 1000
_CHARACTERS_PER_CPU_S: Final = 50_000
_FILE_BYTES: Final = 1 << 28
_FILE_BYTES_PER_CHARACTER: Final = 100
_ALONE_FILE_BYTES: Final = 1 << 24
_PICTURES_BYTES: Final = 1 << 29  # of the pages of a batch that were made apart


class TexError(I2LError):
    """The template itself does not compile, so nothing can be rendered with it."""


@dataclass(frozen=True)
class CompiledFormula:
    """Where a formula is in the PDF, or why it is not there."""

    page: int | None  # counted from 0
    reason: str | None = None
    message: str = ""


@dataclass(frozen=True)
class CompiledBatch:
    """One PDF with a page for each good formula, and a verdict for each formula."""

    pdf: bytes  # empty if no formula is good
    formulas: list[CompiledFormula]


def compile_formulas(
    formulas: Sequence[str], *, style: Style = PAPER, timeout_s: int = 5, marked: bool = False
) -> CompiledBatch:
    """Set every formula on a page of its own in one PDF; the bytes depend on nothing but the arguments.

    Args:
        formulas: LaTeX, as it would stand in a display.
        style: only its TeX part counts here (fonts, size, display).
        timeout_s: CPU seconds for a formula that needs a process of its own.
        marked: the formulas carry the token marks of `i2l.rendering.boxes`.

    Raises:
        MissingDependencyError: if pdflatex is not installed, or for a wild formula pypdfium2.
        OSError: if there is no room for TeX's files.
        TexError: if the template does not compile, for instance because a font package is missing.
    """
    batch = _Batch(formulas, style, timeout_s, marked)
    sized = [key for key, formula in enumerate(formulas) if len(formula) <= _MAX_CHARACTERS]
    for key in set(range(len(formulas))).difference(sized):
        batch.fail(key, TOO_LARGE, f"longer than {_MAX_CHARACTERS} characters")
    positions = find_wild([formulas[key] for key in sized], style, extra=MARK_COMMANDS if marked else ())
    wild = {sized[position] for position in positions}
    if style.engine != PDFLATEX:
        batch.refuse(wild)
        wild = set()
    return batch.compile([key for key in sized if key not in wild], wild)


@dataclass
class _Outcome:
    """What a run tells about its formulas."""

    pdf: bytes = b""
    errors: dict[int, tuple[str, str]] = field(default_factory=dict)  # reason and message
    killer: int | None = None  # the process ended inside this one
    unreached: list[int] = field(default_factory=list)
    ending: str = ""  # an error after the last formula, as when a font cannot be embedded: anyone's fault

    @property
    def clean(self) -> bool:
        return not self.errors and self.killer is None and not self.unreached and bool(self.pdf)


class _Batch:
    """The work of one call: the verdicts so far, and the pages made apart."""

    def __init__(self, formulas: Sequence[str], style: Style, timeout_s: int, marked: bool) -> None:
        self.formulas = formulas
        self.style = style
        self.timeout_s = timeout_s
        self.marked = marked
        self.verdicts: dict[int, CompiledFormula] = {}
        self.pictures: dict[int, bytes] = {}

    def fail(self, key: int, reason: str, message: str) -> None:
        """Note why a formula was not drawn."""
        self.verdicts[key] = CompiledFormula(page=None, reason=reason, message=message)

    def refuse(self, keys: Iterable[int]) -> None:
        """Fail formulas that need a process of their own: one of LuaLaTeX could run any program of Lua."""
        for key in keys:
            self.fail(key, REFUSED, "LuaLaTeX sets only formulas that draw and do nothing else")

    def compile(self, tame: list[int], wild: set[int]) -> CompiledBatch:
        """Run all, find who raised errors, and run again without them until a run is clean."""
        outcome = self.run(tame)
        if wild or not outcome.clean:
            culprits, killers = self.scout(tame, outcome)
            # An error can be the fault of the formula before it: does it come again in other company?
            culprits, more = self.scout(sorted(culprits, reverse=True))
            for key, (reason, message) in culprits.items():
                self.fail(key, reason, message)
            apart = wild | killers | more
            if self.style.engine == PDFLATEX:
                self.run_apart(sorted(apart), wild)
            else:
                self.refuse(apart)
            good = sorted(key for key in {*tame, *wild} if key not in self.verdicts)
            outcome = self.run_until_clean(good)
        return self.finish(outcome.pdf)

    def finish(self, pdf: bytes) -> CompiledBatch:
        page = 0
        results = []
        for key in range(len(self.formulas)):
            verdict = self.verdicts.get(key)
            if verdict is None:
                verdict = CompiledFormula(page=page)
                page += 1
            results.append(verdict)
        return CompiledBatch(pdf=pdf, formulas=results)

    def scout(
        self, keys: list[int], outcome: _Outcome | None = None
    ) -> tuple[dict[int, tuple[str, str]], set[int]]:
        """Find those of ``keys`` that raise an error, and those that end the process."""
        errors: dict[int, tuple[str, str]] = {}
        killers: set[int] = set()
        pending = [] if outcome else _pieces(keys)
        while outcome or pending:
            outcome = outcome or self.run(pending.pop(), draft=True)
            errors |= outcome.errors
            killers |= set() if outcome.killer is None else {outcome.killer}
            pending += _pieces(outcome.unreached)
            outcome = None
        return {key: error for key, error in errors.items() if key not in killers}, killers

    def run_until_clean(self, keys: list[int]) -> _Outcome:
        """Return the outcome of a clean run of those of ``keys`` that allow one; the others are failed."""
        while keys:
            outcome = self.run(keys)
            if outcome.clean:
                return outcome
            blamed = outcome.errors
            if outcome.killer is not None:
                blamed.setdefault(outcome.killer, (TEX_ERROR, "TeX stopped at this formula"))
            if not blamed:  # no PDF, and nobody named: halve to find who
                middle = len(keys) // 2
                if middle:
                    self.run_until_clean(keys[:middle])
                    self.run_until_clean(keys[middle:])
                if self.verdicts.keys().isdisjoint(keys):  # each half is good: together they are too much
                    blamed = dict.fromkeys(keys[middle:], (TEX_ERROR, outcome.ending or "TeX made no page"))
            for key, (reason, message) in blamed.items():
                self.fail(key, reason, message)
            keys = [key for key in keys if key not in self.verdicts]
        return _Outcome()

    def run_apart(self, keys: list[int], wild: set[int]) -> None:
        """Run each formula in a process of its own, and keep the pages that can be drawn without harm."""
        for key in keys:
            self.run_alone(key, trusted=key not in wild)
        made = [key for key in keys if key in self.pictures]
        reasons = try_pdfs([self.pictures[key] for key in made], cpu_s=self.timeout_s)
        for key, reason in zip(made, reasons, strict=True):
            if reason is not None:
                del self.pictures[key]
                self.fail(key, reason, "drawing the page takes too long or too much memory")

    def run_alone(self, key: int, *, trusted: bool) -> None:
        """Run a formula in a process of its own, where it can only harm itself; its page is tried later."""
        nonce = token_hex(8)
        lines = formula_lines(key, self.formulas[key], roomy=True)
        source = document(self.style, [lines], trusted=False, nonce=nonce)
        try:
            result = run_tex(source, trusted=trusted, cpu_s=self.timeout_s, max_file_bytes=_ALONE_FILE_BYTES)
        except IsolationError as error:
            return self.fail(key, REFUSED, str(error))
        if result.timed_out:
            return self.fail(key, TIMEOUT, f"TeX was not done after {self.timeout_s} s")
        if result.killed:
            return self.fail(key, TOO_LARGE, "TeX wrote or took too much")
        outcome = _read_outcome(result, [key], nonce)
        if key in outcome.errors:
            return self.fail(key, *outcome.errors[key])
        if not outcome.clean:
            return self.fail(key, TEX_ERROR, "TeX stopped before the end of the formula")
        if len(result.pdf) + sum(map(len, self.pictures.values())) > _PICTURES_BYTES:
            return self.fail(key, TOO_LARGE, "the formulas of the batch take too much room")
        self.pictures[key] = result.pdf

    def run(self, keys: list[int], *, draft: bool = False) -> _Outcome:
        if not keys:
            return _Outcome()
        nonce = token_hex(8)
        pictures = {f"{key}.pdf": self.pictures[key] for key in keys if key in self.pictures}
        body = (
            picture_line(key) if key in self.pictures else formula_lines(key, self.formulas[key])
            for key in keys
        )
        num_characters = sum(len(self.formulas[key]) for key in keys)
        result = run_tex(
            document(self.style, body, marked=self.marked, nonce=nonce),
            trusted=True,
            engine=self.style.engine,
            files=pictures,
            draft=draft,
            cpu_s=_START_CPU_S[self.style.engine]
            + len(keys) // _FORMULAS_PER_CPU_S
            + num_characters // _CHARACTERS_PER_CPU_S,
            max_file_bytes=_FILE_BYTES
            + _FILE_BYTES_PER_CHARACTER * num_characters
            + 2 * sum(map(len, pictures.values())),
        )
        return _read_outcome(result, keys, nonce)


def _pieces(keys: list[int]) -> list[list[int]]:
    return [keys[start : start + _FORMULAS_PER_SCOUT] for start in range(0, len(keys), _FORMULAS_PER_SCOUT)]


def _read_outcome(result: TexRunResult, keys: Sequence[int], nonce: str) -> _Outcome:
    """Read what TeX said. A formula counts as reached only if those before it left TeX as they found it.

    Raises:
        TexError: if TeX did not come to the first formula.
    """
    outcome = _Outcome(pdf=result.pdf)
    reached = 0
    current: int | None = None
    for event in re.finditer(_EVENT.replace("NONCE", nonce), result.said, re.MULTILINE):
        kind, number, state, message = event.groups()
        if kind is None:
            if reached == 0 and current is None:
                raise TexError(_template_message(message))
            said = _with_command(message, result.said[event.end() :])
            if current is None and reached == len(keys):
                outcome.ending = outcome.ending or said
            else:
                culprit = keys[reached - 1] if current is None else current
                outcome.errors.setdefault(culprit, (TEX_ERROR, said))
        elif kind == "begin" and current is None and number in map(str, keys[reached : reached + 1]):
            current = keys[reached]
        elif current is None or number != str(current):
            break  # not what the template writes there
        elif kind == "large":
            outcome.errors.setdefault(current, (TOO_LARGE, "larger than the largest page"))
        elif kind == "end":
            left_clean = state == CLEAN_STATE
            if not left_clean:
                outcome.errors.setdefault(current, (TEX_ERROR, "not a single formula"))
            reached, current = reached + 1, None
            if not left_clean:
                break
        else:
            break
    if reached == 0 and current is None:
        raise TexError("TeX did not come to the first formula: is it installed as it should?")
    if current is not None:
        outcome.killer, reached = current, reached + 1
    outcome.unreached = list(keys[reached:])
    return outcome


def _with_command(message: str, rest: str) -> str:
    """Add to TeX's message the unknown command, which TeX only shows in the lines after it."""
    if message == _UNKNOWN and (command := _COMMAND_AT_END.search(rest)):
        return f"{_UNKNOWN[:-1]} {command[1]}"
    return message


def check_font(font: str) -> None:
    """Draw a letter in a font set; of OpenType fonts only the files are looked for, which takes less time.

    Raises:
        TexError: if what it needs is not installed.
    """
    style = Style(font=font)
    if style.engine == PDFLATEX:
        compile_formulas(["x"], style=style)
    elif missing := missing_files(["luaotfload.sty", "unicode-math.sty", *UNICODE_FONT_FILES]):
        raise TexError(_template_message(f"File `{missing[0]}' not found"))


def _template_message(message: str) -> str:
    if missing := re.search(r"File `([^']+)' not found", message):
        return (
            f"This style needs the TeX file {missing[1]}. On Debian or Ubuntu: apt-get install"
            " texlive-latex-extra texlive-fonts-recommended texlive-fonts-extra texlive-plain-generic"
            " texlive-luatex fonts-texgyre-math fonts-oflb-asana-math"
        )
    return f"The TeX template does not compile: {message}"
