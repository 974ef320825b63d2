r"""Pages set by TeX and by a browser, with known formulas: what the detector learns from and is judged by.

The prose of TeX sources is brought into a plain form, its formulas between the words. Runs of it are set by
pdflatex in the sandbox, in many classes, fonts and sizes, every formula in a colour of its own; or they are
written as web pages of many looks. `i2l.pages.marked` makes pictures of both.
"""

import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from i2l.errors import I2LError
from i2l.extraction.archives import Bundle, Verdict, list_units, open_unit
from i2l.extraction.document import DocumentReader, Found, find_formulas
from i2l.extraction.harvest import HarvestOptions, Meanings, write_out
from i2l.extraction.packages import stand_ins
from i2l.formulas.lexer import FormulaError
from i2l.formulas.macros import Macro
from i2l.formulas.normalize import normalize_formula
from i2l.rendering.styles import FONTS

TRAINING_CLASSES: Final = ("article", "article", "report", "book", "amsart", "amsbook", "scrartcl", "beamer")
TEST_CLASSES: Final = ("article", "amsart", "memoir")  # the last one is never trained with

RUN_CHARACTERS: Final = 14_000  # of one document: about five pages
_MAX_FORMULA_CHARACTERS: Final = 900  # a longer display hardly ever fits a page
_MIN_WORDS: Final = 150  # of a story
_WORDS_PER_FORMULA: Final = 2.0
_WORDS_PER_TAG: Final = 200  # of HTML; TeX has none, but for one in many pages
_TAG: Final = re.compile(  # also as it is left over where a sign was taken for one of TeX
    r"</?(?:a|b|i|p|em|li|ol|ul|br|hr|div|img|sub|sup|pre|span|code|font|table|strong|center|h[1-6])\b[^<>]*>"
    r"|\b(?:amp|lt|gt|quot|nbsp);"
)
MARKED_RED: Final = 1  # red of every marked colour; green and blue count the formulas
NUMBER_KEY: Final = 0x3000  # more than a document has formulas; dark, as all marks are
_SKIPPED: Final = (
    "figure|figure*|table|table*|tikzpicture|asy|asydef|tikzcd|tabular|tabular*|verbatim|lstlisting|minted"
    "|thebibliography|comment|picture|filecontents|mathpar|prooftree|inputwrap|titlepage|mmaCell|diagram"
)
_SKIP: Final = re.compile(
    rf"\\begin\s*\{{({_SKIPPED.replace('*', chr(92) + '*')})\}}.*?\\end\s*\{{\1\}}", re.DOTALL
)
PLACE: Final = re.compile("\x01(\\d+)\x02")


@dataclass(frozen=True)
class Part:
    """One part of a story: a heading, a paragraph, an item of a list or a displayed formula."""

    kind: str  # heading, text, item or displayed
    text: str  # LaTeX; formulas are their numbers between the characters 1 and 2
    leaning: bool = False  # as theorems are set


@dataclass
class Story:
    """The prose of one document in plain LaTeX, and the formulas in it."""

    source: str
    parts: list[Part] = field(default_factory=list)
    formulas: list[tuple[str, str]] = field(default_factory=list)  # environment, LaTeX


def read_stories(sources: Sequence[Path]) -> Iterator[Story]:
    """Read the prose of TeX sources: folders, files, archives.

    Raises:
        SourceError: if a source is not there.
    """
    for unit in list_units(list(sources)):
        for bundle in open_unit(unit, unit.name):
            yield from _stories_of(bundle)


def _stories_of(bundle: Bundle) -> Iterator[Story]:
    names = bundle.tex_names()
    reached: set[str] = set()
    borrowed: dict[str, Macro] = {}
    for name in sorted(names, key=lambda name: not bundle.is_root(name)):
        if name in reached:
            continue
        given = {} if bundle.is_root(name) else borrowed
        reader = DocumentReader(bundle, name, definitions=dict(given))
        document = reader.read()
        reached |= document.files
        borrowed = reader.definitions | borrowed
        story = Story(bundle.label(name))
        text = document.text
        skipped = [match.span() for match in _SKIP.finditer(text)]
        meanings = Meanings(document, stand_ins() | given)
        _tell(story, text, document.body_start, skipped, meanings)
        if _is_prose(story):
            yield story
    bundle.forget()


def _is_prose(story: Story) -> bool:
    """Tell prose with formulas in it from tables of symbols, from preambles and from pages of the web."""
    texts = [PLACE.sub(" ", part.text) for part in story.parts]
    words = sum(len(text.split()) for text in texts)
    tags = sum(1 for text in texts for _ in _TAG.finditer(text))
    return (
        words >= _MIN_WORDS
        and words >= _WORDS_PER_FORMULA * len(story.formulas)
        and words >= _WORDS_PER_TAG * tags
    )


def _tell(story: Story, text: str, start: int, skipped: list[tuple[int, int]], meanings: Meanings) -> None:
    """Fill a story with the parts of a text."""
    pieces: list[str] = []
    last = start
    edges = iter([*skipped, (len(text) + 1, len(text) + 1)])
    edge = next(edges)

    def prose(until: int) -> None:
        pieces.append(text[last:until])

    for found in find_formulas(text):
        if isinstance(found, int) or found.start < last:
            continue
        while edge[1] <= found.start:
            if edge[0] >= last:
                prose(edge[0])
                pieces.append("\n\n")
                last = edge[1]
            edge = next(edges)
        if found.start >= edge[0] or found.start < last:
            continue
        prose(found.start)
        last = found.end
        number = _add_formula(story, text, found, meanings)
        pieces.append(f"\x01{number}\x02" if number is not None else (" " if found.inline else "\n\n"))
    prose(len(text))
    _cut_parts(story, "".join(pieces))


def _add_formula(story: Story, text: str, found: Found, meanings: Meanings) -> int | None:
    """Put a formula, its macros written out, into the story; None if it cannot be set alone."""
    body = text[found.body_start : found.body_end]
    try:
        written = list(write_out(body, found, meanings.at(found.start), HarvestOptions(min_inline=1)))
    except (FormulaError, RecursionError):
        return None
    if len(written) != 1 or isinstance(written[0], Verdict):
        return None
    latex = written[0][0]
    if len(latex) > _MAX_FORMULA_CHARACTERS or "\x01" in latex:
        return None
    try:
        normalize_formula(latex)
    except (FormulaError, RecursionError):
        return None
    story.formulas.append((found.environment, latex))
    return len(story.formulas) - 1


_HEADING: Final = re.compile(
    r"\\(?:chapter|section|subsection|subsubsection|paragraph)\*?\s*(?:\[[^\]]*\])?\s*\{"
)
_ITEM: Final = re.compile(r"\\(?:item|ii)(?![A-Za-z])(?:\[[^\]]*\])?")
_OPEN_LEANING: Final = re.compile(r"\\begin\s*\{(theorem|thm|lem|lemma|prop|proposition|cor|corollary)\}")
_CLOSE_LEANING: Final = re.compile(r"\\end\s*\{(theorem|thm|lem|lemma|prop|proposition|cor|corollary)\}")
_ENVIRONMENT: Final = re.compile(r"\\begin\s*\{([A-Za-z]+)\*?\}\s*(?:\[([^\]\n]*)\])?")
_NAMES: Final = (
    "Theorem theorem thm; Lemma lemma lem; Proposition proposition prop; Corollary corollary cor; Proof proof"
    "; Definition definition defi defn; Example example eg; Remark remark; Exercise exercise; Problem problem"
    "; Notation notation; Question question"
)
_NAMED: Final = {word: entry.split()[0] for entry in _NAMES.split(";") for word in entry.split()[1:]}
WORDS: Final = ("mass", "charge", "length", "time", "field", "model", "error", "rate", "depth", "mean")
_DROPPED: Final = re.compile(
    r"\\(?:label|index|vspace|hspace|input|include|includegraphics|caption|footnote|footnotetext|bibliography"
    r"|bibliographystyle|setcounter|addtocounter|pagestyle|thispagestyle|usepackage|cssId|date|author|title)\*?"
    r"\s*(?:\[[^\]]*\])?\s*\{(?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*\}"
)
_REFERENCE: Final = re.compile(r"\\([A-Za-z]*(?:ref|cite)[A-Za-z]*)\s*(?:\[[^\]]*\])?\s*\{[^{}]*\}")
_ACCENTS: Final = "'`^\"~=.-"  # or where a word may be parted: its letters stay together
_KEPT: Final = ("emph", "textbf", "textit", "texttt", "textsc", "textsf")
_COMMAND: Final = re.compile(r"\\([A-Za-z@]+)\*?[ \t]*(?:\[[^\]\n]*\])?|\\(.)", re.DOTALL)


def _cut_parts(story: Story, text: str) -> None:
    """Cut a text, in which formulas are numbers, into parts that compile."""
    leaning = False
    for paragraph in re.split(r"\n[ \t]*\n", text):
        for number, piece in enumerate(_ITEM.split(paragraph)):
            kind = "item" if number else "text"
            if heading := _HEADING.search(piece):
                rest = piece[heading.end() :]
                title, _, after = rest.partition("}")
                if title := _plain(PLACE.sub("", title)):
                    story.parts.append(Part("heading", title))
            else:
                after = piece
            if _OPEN_LEANING.search(after):
                leaning = True
            _add_text(story, kind, after, leaning)
            if _CLOSE_LEANING.search(after):
                leaning = False


def _add_text(story: Story, kind: str, text: str, leaning: bool) -> None:
    last = 0
    for place in PLACE.finditer(text):
        if not Found(0, 0, 0, 0, story.formulas[int(place[1])][0]).inline:
            _add_prose(story, kind, text[last : place.start()], leaning)
            story.parts.append(Part("displayed", place.group()))
            last, kind = place.end(), "text"
    _add_prose(story, kind, text[last:], leaning)


def _add_prose(story: Story, kind: str, text: str, leaning: bool) -> None:
    text = _plain(text)
    if len(text) > 1:
        story.parts.append(Part(kind, text, leaning))


def _plain(text: str) -> str:
    """Reduce prose to words, formulas and a few commands that every class knows."""
    text = _ENVIRONMENT.sub(_name_environment, text)
    text = re.sub(r"\\end\s*\{[^{}]*\}", " ", text)
    text = _DROPPED.sub(" ", text)
    text = _REFERENCE.sub(_stand_for_reference, text)
    if re.search(r"(?<!\\)[&_^$]", text):  # a formula in a macro or an environment that is not known
        return ""
    text = _COMMAND.sub(_keep_command, text)
    text = "".join(
        character if character < "\x7f" else "'" if character in "’‘" else "" for character in text
    )
    depth = 0
    for brace in re.findall(r"(?<!\\)[{}]", text):
        depth += 1 if brace == "{" else -1
        if depth < 0:
            break
    if depth:
        text = re.sub(r"\\(?:" + "|".join(_KEPT) + r")(?![A-Za-z])|(?<!\\)[{}]", "", text)
    return re.sub(r"\s+", " ", text).strip()


def _name_environment(match: re.Match[str]) -> str:
    name = _NAMED.get(match[1])
    if name is None:
        return " "
    return rf" \textbf{{{name}.}} " if not match[2] else rf" \textbf{{{name}}} ({match[2]}). "


def _stand_for_reference(match: re.Match[str]) -> str:
    number = len(match.group()) % 9 + 1
    return (
        f"[{number}]"
        if "cite" in match[1]
        else f"({number})"
        if "eq" in match[1]
        else f"{number}.{number + 1}"
    )


def _keep_command(match: re.Match[str]) -> str:
    if match[1] in _KEPT:
        return rf"\{match[1]}"
    if match[2] is not None:
        return match.group() if match[2] in "%&#_{}$" else "" if match[2] in _ACCENTS else " "
    return {"ldots": r"\ldots{}", "dots": r"\dots{}", "S": r"\S{}", "LaTeX": "LaTeX", "TeX": "TeX"}.get(
        match[1], " "
    )


@dataclass(frozen=True)
class Look:
    """How a document is set."""

    document_class: str
    font: str
    size_pt: int
    columns: int
    numbers: str  # all, some or none of the displays have one
    left_numbers: bool
    text_width_cm: float
    breaks: bool  # inline formulas may go on in the next line
    spread: float
    sheet: tuple[float, float]  # cm

    def __str__(self) -> str:
        """Say what stands out."""
        return f"{self.document_class} {self.font} {self.size_pt}pt {self.columns}col"


def draw_look(source: random.Random, classes: Sequence[str]) -> Look:
    """Choose a look by chance."""
    document_class = source.choice(classes)
    columns = 2 if document_class in ("article", "amsart", "memoir") and source.random() < 0.3 else 1
    sheet = source.choice(
        [(21.0, 29.7), (21.6, 27.9), (17.0, 24.0)] if columns == 1 else [(21.0, 29.7), (21.6, 27.9)]
    )
    font = "computer-modern" if source.random() < 0.3 else source.choice(list(FONTS))
    return Look(
        document_class,
        font,
        source.choice([9, 10, 11] if columns == 2 else [10, 11, 12]) if document_class != "beamer" else 11,
        columns,
        source.choice(["all", "some", "some", "none"]),
        source.random() < 0.12,
        sheet[0] - (source.uniform(2.5, 4.0) if columns == 2 else source.uniform(3.5, 7.5)),
        source.random() < 0.6,
        source.choice([1.0, 1.0, 1.0, 1.1, 1.3]),
        sheet,
    )


_PREAMBLE: Final = r"""
\pdfcompresslevel=0 \pdfobjcompresslevel=0
\hbadness=10000 \vbadness=10000 \hfuzz=\maxdimen \vfuzz=\maxdimen \errorcontextlines=0
\def\itlpush#1{\pdfcolorstack0 push{#1 rg #1 RG}}
\def\itlpop{\pdfcolorstack0 pop\relax}
\makeatletter
\def\tagform@#1{\maketag@@@{\itlpush{@NUMBER@}(\ignorespaces#1\unskip\@@italiccorr)\itlpop}}
\def\@eqnnum{\hbox{\itlpush{@NUMBER@}(\theequation)\itlpop}}
\makeatother
\allowdisplaybreaks[1]
"""


def compose_document(
    story: Story, first: int, look: Look, source: random.Random, *, row_gap_pt: float | None = None
) -> tuple[str, int, list[int]]:
    """Write a document from a part of a story on, with so much more room between rows than TeX gives.

    Returns:
        The document, the next part that it does not have, and the formula behind each mark, from 1.
    """
    writer = _Writer(story, look, source)
    lines: list[str] = []
    size, number = 0, first
    while number < len(story.parts) and size < RUN_CHARACTERS:
        written = writer.write(story.parts[number])
        size += len(written)
        lines.append(written)
        number += 1
    body = "\n".join([*lines, *writer.close()])
    if row_gap_pt is not None:
        body = rf"\jot={row_gap_pt}pt" + "\n" + body
    return _frame(look, source, body), number, writer.marked


def _frame(look: Look, source: random.Random, body: str) -> str:
    options = (
        [f"{look.size_pt}pt"]
        + (["twocolumn"] if look.columns == 2 else [])
        + (["leqno"] if look.left_numbers else [])
    )
    document_class = look.document_class
    if look.size_pt == 9 and document_class == "article":
        document_class = "extarticle"
    lines = [rf"\documentclass[{','.join(options)}]{{{document_class}}}"]
    if document_class == "beamer":
        lines.append(rf"\usetheme{{{source.choice(['default', 'Madrid', 'Boadilla', 'Singapore'])}}}")
        if source.random() < 0.5:
            lines.append(
                r"\usefonttheme{professionalfonts}" if source.random() < 0.5 else r"\usefonttheme{serif}"
            )
        lines.append(r"\usepackage{amsmath,amssymb,mathtools,bm,mathrsfs}")
    else:
        height = look.sheet[1] - source.uniform(3.5, 6.5)
        paper = f"paperwidth={look.sheet[0]}cm,paperheight={look.sheet[1]}cm"
        geometry = f"{paper},textwidth={look.text_width_cm:.2f}cm,textheight={height:.2f}cm"
        lines.append(rf"\usepackage{{amsmath,mathtools,cancel}}{FONTS[look.font]}")
        lines.append(r"\newcommand\bmmax{0}\newcommand\hmmax{0}\usepackage{bm,mathrsfs}")
        lines.append(rf"\usepackage[{geometry}]{{geometry}}")
        if document_class not in ("amsart", "amsbook", "memoir") and source.random() < 0.5:
            lines.append(
                r"\usepackage{fancyhdr}\pagestyle{fancy}"
                r"\fancyhead[L]{\slshape Notes on the theory}\fancyhead[R]{\thepage}"
            )
    lines.append(_PREAMBLE.replace("@NUMBER@", _colour(NUMBER_KEY)))
    if not look.breaks:
        lines.append(r"\relpenalty=10000 \binoppenalty=10000")
    if look.spread != 1 and document_class != "beamer":
        lines.append(rf"\linespread{{{look.spread}}}\selectfont")
    if document_class not in ("beamer",) and source.random() < 0.4:
        lines.append(r"\setlength\parindent{0pt}\setlength\parskip{6pt plus 2pt}")
    lines += [r"\begin{document}", body, r"\end{document}"]
    return "\n".join(lines)


def _colour(key: int) -> str:
    return " ".join(f"{value / 255:.5f}" for value in (MARKED_RED, key >> 8, key & 255))


class _Writer:
    """Writes the parts of a story in one look, and counts the formulas that it marks."""

    def __init__(self, story: Story, look: Look, source: random.Random) -> None:
        self._story, self._look, self._source = story, look, source
        self._open = ""  # the environment that items stand in
        self._frame_size = -1  # characters of the slide; -1: none is open
        self.marked: list[int] = []

    def write(self, part: Part) -> str:
        """Write a part, and now and then a table or a drawing before it."""
        before = ""
        if self._look.document_class == "beamer":
            before = self._turn_slide(part)
        if part.kind != "item" and self._open:
            before += rf"\end{{{self._open}}}" + "\n"
            self._open = ""
        elif part.kind == "item" and not self._open:
            self._open = self._source.choice(["itemize", "enumerate"])
            before += rf"\begin{{{self._open}}}" + "\n"
        if part.kind == "text" and self._source.random() < 0.02 and self._look.document_class != "beamer":
            before += self._source.choice([self._table, self._drawing, self._listing])()
        return before + self._write(part)

    def _write(self, part: Part) -> str:
        if part.kind == "heading":
            if self._look.document_class == "beamer":
                return ""
            level = self._source.choice(["section", "section", "subsection", "paragraph"])
            return rf"\{level}{{{part.text}}}"
        if part.kind == "displayed":
            return self._display(int(part.text[1:-1]))
        words = PLACE.sub(lambda place: self._inline(int(place[1])), part.text)
        if part.leaning:
            words = rf"{{\itshape {words}}}"
        return (
            rf"\item {words}"
            if part.kind == "item"
            else f"{words}\n"
            if self._source.random() < 0.1
            else words + self._end()
        )

    def _end(self) -> str:
        return "\n\n" if self._source.random() < 0.5 else "%\n" if self._source.random() < 0.3 else "\n"

    def _mark(self, formula: int) -> tuple[str, str]:
        self.marked.append(formula)
        return rf"\itlpush{{{_colour(len(self.marked))}}}", r"\itlpop "

    def _inline(self, formula: int) -> str:
        push, pop = self._mark(formula)
        # Where a line begins, TeX first sets the label of an item or a heading: these are not marked.
        return rf"\leavevmode{push}${self._story.formulas[formula][1]}${pop.strip()}{{}}"

    def _display(self, formula: int) -> str:
        environment, latex = self._story.formulas[formula]
        push, pop = self._mark(formula)
        numbered = self._look.numbers == "all" or (
            self._look.numbers == "some" and self._source.random() < 0.4
        )
        name = environment.rstrip("*")
        match = re.fullmatch(r"\\begin\{([a-z]+)\*?\}((?:\{\d+\})?)(.*)\\end\{\1\*?\}", latex, re.DOTALL)
        if match is None or match[1] != name:
            name, argument, body = "equation", "", latex
        else:
            name, argument, body = match[1], match[2], match[3]
        star = "" if numbered else "*"
        if not body.strip() or "\\tag" in body:
            self.marked.pop()
            return ""
        return f"%\n\\begin{{{name}{star}}}{argument}{push}{body}{pop}\\end{{{name}{star}}}\n"

    def _turn_slide(self, part: Part) -> str:
        if self._frame_size < 0 or part.kind == "heading" or self._frame_size > 500:
            before = "\n".join(self.close())
            title = (
                part.text
                if part.kind == "heading"
                else self._source.choice(["Examples", "Summary", "A closer look", "Proof"])
            )
            self._frame_size = 0
            return f"{before}\n\\begin{{frame}}{{{PLACE.sub('', title)}}}\n"
        self._frame_size += len(part.text)
        return ""

    def close(self) -> list[str]:
        """Close what is open."""
        lines = [rf"\end{{{self._open}}}"] if self._open else []
        if self._frame_size >= 0:
            lines.append(r"\end{frame}")
        self._open, self._frame_size = "", -1
        return lines

    def _word(self) -> str:
        return self._source.choice(WORDS)

    def _table(self) -> str:
        source = self._source
        rows = [
            " & ".join(
                [self._word(), *(f"{source.uniform(0, 100):.{source.randint(0, 3)}f}" for _ in range(3))]
            )
            for _ in range(source.randint(3, 8))
        ]
        rule = source.choice([r"\hline", ""])
        body = f"\\\\ {rule}\n".join(rows)
        columns = "l" + source.choice(["|", "||", ""]) + "rrr"
        table = rf"\begin{{tabular}}{{{columns}}}{rule} {body} \\ {rule}\end{{tabular}}"
        caption = rf"\caption{{The {self._word()} of each {self._word()}}}"
        return rf"\begin{{table}}[ht]\centering {table}{caption}\end{{table}}" + "\n"

    def _drawing(self) -> str:
        source = self._source

        def point() -> str:
            return f"({source.randint(0, 180)},{source.randint(0, 90)})"

        strokes = "".join(rf"\qbezier{point()}{point()}{point()}" for _ in range(source.randint(2, 6)))
        labels = "".join(rf"\put{point()}{{{self._word()}}}" for _ in range(3))
        axes = r"\put(0,0){\vector(1,0){190}}\put(0,0){\vector(0,1){95}}\put(40,20){\circle{22}}"
        picture = rf"\begin{{picture}}(190,95){axes}{strokes}{labels}\end{{picture}}"
        caption = rf"\caption{{A {self._word()} and its {self._word()}.}}"
        return rf"\begin{{figure}}[ht]\centering{picture}{caption}\end{{figure}}" + "\n"

    def _listing(self) -> str:
        place = self._source.randint(0, 99)
        lines = [
            rf"\texttt{{{self._word()} = {self._word()}({place}) + {self._word()}[i]}}\\" for _ in range(4)
        ]
        return r"\begin{quote}" + "\n".join(lines) + r"\end{quote}" + "\n"


def draw_stories(sources: Sequence[Path], source: random.Random) -> Iterator[Story]:
    """Draw stories without end, long ones more often.

    Raises:
        I2LError: if there is no prose in the sources.
    """
    stories = list(read_stories(sources))
    if not stories:
        raise I2LError(
            "There is no prose with formulas in these sources; name folders or archives of TeX files."
        )
    weights = [len(story.parts) for story in stories]
    while True:
        yield source.choices(stories, weights)[0]
