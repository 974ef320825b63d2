r"""Stories that differ from their authors' habits, which a few authors would else teach the detector.

Their letters become vectors; formulas of other authors stand in the place of their own; displays have more
rows, or follow each other without words; and between the words comes what looks like a formula and is none:
references, numbers, paths, abbreviations, entries of a bibliography, words that are bold or lean.
"""

import lzma
import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from i2l.errors import I2LError
from i2l.extraction.document import Found
from i2l.formulas.lexer import FormulaError
from i2l.formulas.normalize import normalize_formula
from i2l.pages.corpus import PLACE, RUN_CHARACTERS, Part, Story

_FIXED: Final = re.compile(  # letters in these are no letters of the formula
    r"\\(?:begin|end|text\w*|mathrm|operatorname|mathcal|mathbb|mathfrak|mathscr|mathbf|bm|boldsymbol|mathsf"
    r"|mathit|mathtt|hspace|vspace|phantom|rule|mbox|hbox|label|tag)\*?\s*(?:\{(?:[^{}]|\{[^{}]*\})*\}){1,2}"
    r"|\\(?:hskip|kern|mskip|mkern)[^a-z]*[a-z]{2}|\\\\\[[^\]]*\]|\\[A-Za-z]+|\\.|[A-Za-z]"
)
_VECTORS: Final = (r"\mathbf{%s}",) * 4 + (r"\boldsymbol{%s}", r"\vec{%s}", r"\mathrm{%s}", r"\mathsf{%s}")
_HATS: Final = ("", "", r"\hat", r"\tilde", r"\bar")
_UNLIKE: Final = (  # a formula, though it may look like one
    "(%d)", "(%d)", "(%d)", "(%d.%d)", "(%d.%d)", "[%d]", "[%d]", "[%d],", "[%d].", "[%d, %d]",
    "[%d], [%d], [%d]", "%d.%d", "%d.%d", "%d.%d.", "%d.%d,", "%d", "%d", "%d", "%d,", "%d.%d%d",
    "Figure %d.%d,", "fig. %d", "eq. (%d)", "page %d", "pp. %d--%d%d", "(%da)", "(ii)", "(iv),", "(a)",
    "(b)", "1%d9%d", "(19%d%d)", "20%d%d,", "%dD", "%dth", "%d and %d", "%d, %d and %d", "%d kg", "%d m/s",
    "%d0 Hz", "-%d", "+%d", "%d-blade", "%d-form", "no.~%d", "I", "I", "I", "A", "As", "X11", "C++", "R",
    "x", "y", "x,", "y,", "to x and y", "PPC,", "AIX", "UTF-8", "ABC", "ie.", "i.e.", "e.g.", "cf.", "etc.",
    "(see %d)", "([%d] pr. %d.%d0b)", "([%d] %d.%d)", "()", "(...)", "( ... )", "...", "\\ldots{}", "--",
    "---", "- A", "->", "=>", "- >", ":", ";", "*", "**", "/", "\\&", "\\#%d", "%d\\%",
    "../../data/run%d.dat", "../", "figures/plot%d.eps", "fig:sheet:comparePlot%d.%d", "main.c:%d",
    "x86\\_64", r"\texttt{run -p -i %d}", r"\texttt{x[%d] = y}", r"\texttt{*p->q}", r"\texttt{if (n < %d)}",
    r"\texttt{f(x)}", "-p -e %d", "<li>", "</em>.", "<h2>", "</h2>", "<h2>Answer</h2>", "<b>note</b>", "<",
    ">", "10%d\\%", "%d:%d", "%d/%d", "%d/%d/20%d%d", "http://www.example.org/page%d.html",
    "someone@example.org", r"\emph{a priori}", r"\textit{et al.}", r"\textit{in situ}", r"\textbf{%d.}",
    r"\textbf{note}", r"\textbf{Case %d.}", r"\textbf{(%d)}", r"\textsc{ii}", r"\textsf{yes}",
    r"\textit{(%d)}", "x-axis", "z-plane", "don't", "I've", "it's", "can't", "J. Phys. A",
    "Phys. Rev. D %d%d", "No. %d", "Vol. %d", "\\S{}%d", "A. B. Smith", "H.", "M.", "St. %d", "B.C.",
    "U.S.", "(A)", "(I)", "(N)", "a)", "b)", "%d)", "i)", "ii)", "?", "!", "??",
)  # fmt: skip
_UNLIKE_SHARE: Final = 0.03  # of the words
_STRANGE: Final = (0.0, 0.5, 1.0, 2.0, 4.0)  # times that share, in a story
_LETTERS: Final = "abcdefghijklmnopqrstuvwxyzABCDEFGHIKLMNPQRSTUVWXYZ"
_GREEK: Final = (
    r"\alpha", r"\beta", r"\gamma", r"\delta", r"\epsilon", r"\theta", r"\lambda", r"\mu", r"\nu", r"\pi",
    r"\rho", r"\sigma", r"\tau", r"\phi", r"\psi", r"\omega", r"\Gamma", r"\Omega",
)  # fmt: skip
_AFTER: Final = ("", "", ",", ".", ";", ")", "-blade", "-form", "th", "'s", ":", "-axis")
_NUMBER: Final = re.compile(r"[-+]?[\d.,\s]+")  # an inline formula that a reader cannot tell from a number
_NAMES: Final = ("Smith", "Weyl", "Noether", "Born", "Curie", "Dirac", "Hopf", "Lie", "Bohr", "Fermi")
_JOURNALS: Final = ("Ann. of Math.", "J. Phys. A", "Phys. Rev. Lett.", "Math. Z.", "Acta", "Proc. AMS", "CUP")
_ROW_END: Final = r" \\ "
_MAX_INLINE_TOKENS: Final = 22
_MAX_DISPLAY_TOKENS: Final = 110
_TRIES: Final = 20


@dataclass(frozen=True)
class Strangers:
    """Formulas of other authors, to stand in the place of a story's own."""

    inline: list[str] = field(default_factory=list)
    displayed: list[str] = field(default_factory=list)

    def draw(self, source: random.Random, *, inline: bool) -> str | None:
        """Draw a formula that can be set; None if none comes up."""
        formulas = self.inline if inline else self.displayed
        for _ in range(_TRIES if formulas else 0):
            latex = source.choice(formulas)
            try:
                normalize_formula(latex)
            except (FormulaError, RecursionError):
                continue
            return latex
        return None


def read_strangers(lists: Sequence[Path]) -> Strangers:
    """Read lists of formulas, one a line, as text or packed by xz; short ones are for lines of text.

    Raises:
        I2LError: if a list cannot be read.
    """
    found = Strangers()
    for path in lists:
        try:
            data = path.read_bytes()
            text = (lzma.decompress(data) if path.suffix == ".xz" else data).decode()
        except (OSError, lzma.LZMAError, UnicodeDecodeError) as error:
            raise I2LError(f"{path} cannot be read as a list of formulas: {error}.") from error
        for latex in text.splitlines():
            size = latex.count(" ") + 1
            if "&" not in latex and "\\begin" not in latex and 1 < size <= _MAX_DISPLAY_TOKENS:
                (found.inline if size <= _MAX_INLINE_TOKENS else found.displayed).append(latex)
    return found


def part_of(story: Story, first: int) -> Story:
    """Return the run of a story that a document has."""
    size, last = 0, first
    while last < len(story.parts) and size < 2 * RUN_CHARACTERS:
        size += len(story.parts[last].text)
        last += 1
    return replace(story, parts=story.parts[first:last])


def vary_story(story: Story, source: random.Random, others: Strangers | None = None) -> Story:
    """Make a story differ from its author's habits.

    Args:
        story: what was told.
        source: of all choices.
        others: formulas of other authors; without them the story has its own.
    """
    formulas = list(story.formulas)
    if others is not None and source.random() < 0.6:
        formulas = list(_exchange(formulas, others, source, source.choice([0.3, 0.6, 0.9])))
    form = _draw_form(source)
    if source.random() < 0.5:
        formulas = _dress_letters(formulas, form, source)
    strange = source.choice(_STRANGE) * _UNLIKE_SHARE
    letters = source.choice([0.0, 0.01, 0.03]) if others is not None else 0.0
    parts: list[Part] = []
    displays = (part for part in story.parts if part.kind == "displayed")
    for part in story.parts:
        if part.kind == "displayed" or part.kind == "heading":
            parts.append(part)
        else:
            text = _without_numbers(part.text, formulas, source) if others is not None else part.text
            parts.append(replace(part, text=_mix(text, formulas, form, strange, letters, source)))
            if others is not None and source.random() < 0.015:
                parts += [Part("text", _entry(source)) for _ in range(source.randint(1, 6))]
        if part.kind == "displayed" and source.random() < 0.12:
            parts.append(next(displays, part))
    return replace(story, parts=parts, formulas=formulas)


def _draw_form(source: random.Random) -> str:
    return source.choice(_VECTORS)


def _dress_letters(
    formulas: list[tuple[str, str]], form: str, source: random.Random
) -> list[tuple[str, str]]:
    """Make vectors of some letters, and put hats on some of these."""
    letters = [one for _, latex in formulas for one in _FIXED.findall(latex) if len(one) == 1]
    chosen = set(source.sample(letters, min(len(letters), source.randint(2, 12))))
    hat = source.choice(_HATS)
    hatted = {letter for letter in sorted(chosen) if hat and source.random() < 0.4}

    def dress(match: re.Match[str]) -> str:
        letter = match.group()
        if letter not in chosen:
            return letter
        return f"{{{hat}{{{form % letter}}}}}" if letter in hatted else f"{{{form % letter}}}"

    return [(environment, _FIXED.sub(dress, latex)) for environment, latex in formulas]


def _exchange(
    formulas: Sequence[tuple[str, str]], others: Strangers, source: random.Random, share: float
) -> Iterator[tuple[str, str]]:
    """Put formulas of others in the place of some; displays become ones of several rows now and then."""
    for environment, latex in formulas:
        inline = Found(0, 0, 0, 0, environment).inline
        drawn = None if source.random() >= share else others.draw(source, inline=inline)
        if drawn is None:
            yield environment, latex
        elif inline:
            yield environment, drawn
        else:
            yield "equation", drawn if source.random() < 0.5 else _stack(drawn, others, source)


def _stack(first: str, others: Strangers, source: random.Random) -> str:
    """Set several formulas one under the other, as the steps of a computation."""
    rows = [first]
    for _ in range(source.choice([1, 1, 2, 3, 5])):
        inline = source.random() < 0.5
        rows.append(others.draw(source, inline=inline) or first)
    form = source.choice(["aligned", "aligned", "gathered", "lists"])
    if form == "gathered":
        return rf"\begin{{gathered}}{_ROW_END.join(rows)}\end{{gathered}}"
    if form == "lists":
        numbers = ", ".join(
            f"{source.random():.{source.randint(2, 6)}g}" for _ in range(source.randint(4, 12))
        )
        return rf"{source.choice(_LETTERS)} = ( {numbers}, \cdots )"
    lines = [f"{source.choice(_LETTERS)} &= {rows[0]}"]
    lines += [rf"{source.choice(['', '', '', '', source.choice(_GREEK)])} &= {row}" for row in rows[1:]]
    return rf"\begin{{aligned}}{_ROW_END.join(lines)}\end{{aligned}}"


def _without_numbers(text: str, formulas: Sequence[tuple[str, str]], source: random.Random) -> str:
    """Make words of most numbers that an author has set as formulas: nobody can tell them apart."""

    def put(place: re.Match[str]) -> str:
        latex = formulas[int(place[1])][1].strip()
        return latex if _NUMBER.fullmatch(latex) and source.random() < 0.8 else place.group()

    return PLACE.sub(put, text)


def _mix(
    text: str,
    formulas: list[tuple[str, str]],
    form: str,
    strange: float,
    letters: float,
    source: random.Random,
) -> str:
    """Put what is no formula, and formulas of one letter, between the words of a text."""
    if "{" in text:
        return text
    words = text.split(" ")
    for place in range(len(words) - 1, 0, -1):
        chance = source.random()
        if chance < strange:
            words.insert(place, _unlike(source))
        elif chance < strange + letters:
            words.insert(place, _letter(formulas, form, source))
        elif chance > 1 - strange / 4 and words[place].isalpha():
            words[place] = rf"\{source.choice(['emph', 'textbf', 'textit', 'textsc'])}{{{words[place]}}}"
    text = " ".join(words)
    if strange and source.random() < 0.03 and not PLACE.search(text) and "\\" not in text:
        text = rf"\{source.choice(['textbf', 'textit', 'textsf', 'textsc', 'texttt'])}{{{text}}}"
    return text


def _letter(formulas: list[tuple[str, str]], form: str, source: random.Random) -> str:
    """Add a formula of one letter, as prose has many, with what may stand beside it; return its place."""
    chance = source.random()
    letter = source.choice(_LETTERS)
    if chance < 0.45:
        letter = form % letter
        if source.random() < 0.15:
            letter = f"{source.choice(_HATS[2:])}{{{letter}}}"
    elif chance < 0.6:
        letter = source.choice(_GREEK)
    if source.random() < 0.15:
        letter += f"{source.choice('_^')}{source.choice('0123ijkn')}"
    formulas.append(("$", letter))
    before, after = source.choice(["", "", "", "", "("]), source.choice(_AFTER)
    return f"{before}\x01{len(formulas) - 1}\x02{')' if before and ')' not in after else ''}{after}"


def _entry(source: random.Random) -> str:
    """Write an entry of a bibliography or of a table of contents."""
    number, page = source.randint(1, 40), source.randint(1, 600)
    first, second = source.choice(_NAMES), source.choice(_NAMES)
    initials = [source.choice("ABCDEFGHJKLMNPRSTW") for _ in range(3)]
    if source.random() < 0.3:
        return (
            f"{number % 9 + 1}.{page % 7} The {first}--{second} theory {'. ' * source.randint(5, 30)}{page}"
        )
    return (
        rf"[{number}] {initials[0]}. {first} and {initials[1]}. {initials[2]}. {second}, "
        rf"\emph{{On the theory of {second}}}, {source.choice(_JOURNALS)} \textbf{{{page % 90}}} "
        f"({1900 + page % 99}), no. {number % 6}, {page}--{page + number}."
    )


def _unlike(source: random.Random) -> str:
    """Give something that stands in prose and is no formula."""
    return re.sub("%d", lambda _: str(source.randint(1, 12)), source.choice(_UNLIKE))
