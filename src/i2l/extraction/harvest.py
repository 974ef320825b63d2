"""The formulas of a bundle: its documents are read, their formulas found, and the macros in them written out.

Which of the formulas go into a list is decided by filters; those that im2latex-100k was made with are given.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

from i2l.extraction.archives import Bundle, Verdict
from i2l.extraction.document import (
    LINES,
    UNCLOSED,
    Document,
    DocumentReader,
    Found,
    find_formulas,
    is_empty,
    scope_ends,
    split_parts,
    strip_marks,
)
from i2l.extraction.packages import DIAGRAMS, find_unknown, replace_environments, stand_ins
from i2l.formulas.expansion import Macros
from i2l.formulas.lexer import FormulaError
from i2l.formulas.macros import Macro, add_definition, join

_NEVER_ENDS: Final = "macro-never-ends"
_MAX_ENDLESS_FORMULAS: Final = 50  # of a document, whose macros never end; then the rest is left


class Formula(NamedTuple):
    """A formula of a paper, as it compiles alone."""

    latex: str
    environment: str
    file: str
    span: tuple[int, int]  # characters of the file, decoded and with \\n at the end of lines
    macros: dict[str, str]  # those that were written out


@dataclass(frozen=True)
class HarvestOptions:
    """Which formulas are wanted."""

    min_inline: int | None = None  # characters of an inline formula, as it stands; None: none of them
    rows: bool = False  # every row of a display by itself


def harvest(bundle: Bundle, options: HarvestOptions) -> Iterator[Formula | Verdict]:
    """Yield every formula of a bundle, document by document, and a verdict for what is none."""
    names = bundle.tex_names()
    roots = [name for name in names if bundle.is_root(name)]
    seen: set[tuple[str, int, int]] = set()
    reached: set[str] = set()
    borrowed: dict[str, Macro] = {}
    for name in roots:
        reader = DocumentReader(bundle, name)
        document = reader.read()
        reached |= document.files
        borrowed = reader.definitions | borrowed
        yield from _formulas(bundle, document, {}, options, seen)
    # Chapters whose book is not here, or that it leaves out: they get the macros of all that is here.
    for name in names:
        if name not in reached:
            document = DocumentReader(bundle, name, definitions=borrowed).read()
            reached |= document.files
            yield from _formulas(bundle, document, borrowed, options, seen)
    yield from bundle.verdicts
    bundle.verdicts.clear()
    bundle.forget()


def _formulas(
    bundle: Bundle,
    document: Document,
    given: dict[str, Macro],
    options: HarvestOptions,
    seen: set[tuple[str, int, int]],
) -> Iterator[Formula | Verdict]:
    meanings = Meanings(document, stand_ins() | given)
    endless_left = _MAX_ENDLESS_FORMULAS
    for found in find_formulas(document.text):
        start = found if isinstance(found, int) else found.start
        if isinstance(found, int):
            file, first, _ = document.locate(found, found)
            yield Verdict(bundle.label(file), UNCLOSED, document.text[found : found + 40], (first, first))
            continue
        body = document.text[found.body_start : found.body_end]
        if found.inline and (options.min_inline is None or len(body.strip()) < options.min_inline):
            continue
        file, first, last = document.locate(found.start, found.end)
        if (file, first, last) in seen:  # a file that several documents put in
            continue
        seen.add((file, first, last))
        for formula in write_out(body, found, meanings.at(start), options):
            if isinstance(formula, Verdict):
                endless_left -= formula.verdict == _NEVER_ENDS
                yield formula._replace(file=bundle.label(file), span=(first, last))
            else:
                latex, used = formula
                yield Formula(latex, found.environment, bundle.label(file), (first, last), used)
        if not endless_left:
            yield Verdict(bundle.label(file), "given-up", "too many macros never end", (last, last))
            return


class Meanings:
    """What each command means at a place of a document, asked in rising order."""

    def __init__(self, document: Document, given: dict[str, Macro]) -> None:
        events = document.events
        local = [
            index
            for index, event in enumerate(events)
            if event.position > document.body_start and not event.definition.everywhere
        ]
        ends = scope_ends(document.text, [events[index].position for index in local])
        self._ends = dict(zip(local, ends, strict=True))
        self._events = events
        self._next = 0
        self._macros = Macros(dict(given))
        self._former: list[tuple[int, str, Macro | None]] = []  # until where, and what it meant before
        self._soonest = len(document.text) + 1  # where the first of them comes back

    def at(self, position: int) -> Macros:
        """Return the macros that hold at a position."""
        definitions = self._macros.definitions
        while self._next < len(self._events) and self._events[self._next].position <= position:
            event = self._events[self._next]
            self._restore(event.position)
            if self._next in self._ends:
                name = event.definition.name
                self._former.append((self._ends[self._next], name, definitions.get(name)))
                self._soonest = min(self._soonest, self._ends[self._next])
            add_definition(definitions, event.definition._replace(weak=False))
            self._next += 1
        self._restore(position)
        return self._macros

    def _restore(self, position: int) -> None:
        """Undo the definitions whose group has ended, the last first."""
        if self._soonest > position or not self._former:
            return
        for end, name, macro in reversed(self._former):
            if end <= position:
                if macro is None:
                    self._macros.definitions.pop(name, None)
                else:
                    self._macros.definitions[name] = macro
        self._former = [former for former in self._former if former[0] > position]
        self._soonest = min((end for end, _, _ in self._former), default=self._soonest + position)


def write_out(
    body: str, found: Found, macros: Macros, options: HarvestOptions
) -> Iterator[tuple[str, dict[str, str]] | Verdict]:
    """Yield the formulas of a body, without what belongs to the page, or a verdict."""
    try:
        expansion = macros.expand(body, inline=found.inline)
    except FormulaError as error:
        yield Verdict("", error.reason.replace(" ", "-"), error.detail)
        return
    used = {name: describe(macro) for name, macro in expansion.used.items()}
    latex = replace_environments(strip_marks(expansion.source))
    plain = found.environment.rstrip("*")
    if is_empty(latex):
        yield Verdict("", "empty")
    elif diagram := DIAGRAMS.search(latex):
        yield Verdict("", "diagram", diagram.group())
    elif unknown := find_unknown(latex):
        yield Verdict("", "undefined-command", unknown)
    else:
        for part in split_parts(latex, rows=options.rows):
            whole = plain in LINES and not options.rows
            yield rf"\begin{{{found.environment}}}{part}\end{{{found.environment}}}" if whole else part, used


def describe(macro: Macro) -> str:
    """Write a macro's text as its author did, near enough."""
    return join(macro.body)


_REFERENCES: Final = re.compile(r"\\(?:label|cite[a-z]*|ref|eqref|pageref|footnote)(?![A-Za-z])|(?<!\\)%")
_WORD: Final = re.compile(r"\\(?:[A-Za-z]+|.)|[^\s\\]", re.DOTALL)


@dataclass(frozen=True)
class FormulaFilters:
    """What a formula must be like; the default takes all."""

    environments: tuple[str, ...] = ()  # none: any; a star counts as none
    min_characters: int = 1
    max_characters: int | None = None
    min_tokens: int = 1
    references: bool = True  # formulas that cite or refer to something are taken too
    unique: bool = False  # a formula is taken once, however often it occurs
    sample: float = 1.0  # the share of formulas that is drawn ...
    seed: int = 0  # ... by a hash of the formula and this

    def reason(self, formula: Formula) -> str | None:
        """Say why a formula is left out; None if it is not."""
        if self.environments and formula.environment.rstrip("*") not in self.environments:
            return "other-environment"
        length = len(formula.latex)
        if length < self.min_characters:
            return "too-short"
        if self.max_characters is not None and length > self.max_characters:
            return "too-long"
        if self.min_tokens > 1 and len(_WORD.findall(formula.latex)) < self.min_tokens:
            return "too-short"
        if not self.references and _REFERENCES.search(formula.latex):
            return "reference"
        return None


# Bodies of `equation`, more than 40 and fewer than 1,024 characters and more than three tokens long, each
# once, without labels, citations and references; one in five was drawn.
ORIGINAL: Final = FormulaFilters(
    environments=("equation",),
    min_characters=41,
    max_characters=1023,
    min_tokens=4,
    references=False,
    unique=True,
    sample=0.2,
)
