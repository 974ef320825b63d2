"""Many formulas in, one PDF out: batches that survive their bad members, each of which gets a verdict.

Two kinds of formulas. A *tame* one is made only of commands that draw (and of names TeX does not know, which
can do nothing but fail): it cannot define, read, write or loop, so tame formulas share a TeX process. Any
other is *wild* and gets a process of its own; if that draws one page, and a process with nothing to lose can
draw it too, the page is put into the common PDF as a picture. Where the operating system cannot isolate the
process, wild formulas are refused.

The PDF that is kept always comes from a run in which no formula raised an error, so no error can have
disturbed a neighbour. TeX sets a formula in about 60 us and starts in 100 ms: running twice is cheap.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from secrets import token_hex
from typing import Final

from i2l.errors import I2LError
from i2l.images.isolation import IsolationError
from i2l.images.pdf_trial import try_pdfs
from i2l.images.sandbox import TexRunResult, run_pdflatex
from i2l.images.styles import PAPER, Style
from i2l.images.tame import find_wild
from i2l.images.template import CLEAN, MARK_COMMANDS, document, formula_lines, picture_line

TEX_ERROR, TIMEOUT, TOO_LARGE, REFUSED = "tex-error", "timeout", "too-large", "refused"

_EVENT: Final = r"^(?:NONCE:(begin|end|large) (\d{1,9})(?: (.*))?|! ?(.*))$"
_UNKNOWN: Final = "Undefined control sequence."
_COMMAND_AT_END: Final = re.compile(r"(\\[A-Za-z]+|\\.) ?$", re.MULTILINE)
_MAX_CHARACTERS: Final = 50_000
_START_CPU_S: Final = 10  # a hundred times what it takes here
_FORMULAS_PER_CPU_S: Final = 500  # a thirtieth of what TeX does
_SCOUTED: Final = (
    1000  # formulas that are run again when one of them ends a run: as long as TeX takes to start
)
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
        marked: the formulas carry the token marks of `i2l.images.boxes`.

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
        """Give a formula its verdict."""
        self.verdicts[key] = CompiledFormula(page=None, reason=reason, message=message)

    def compile(self, tame: list[int], wild: set[int]) -> CompiledBatch:
        """Run, blame, run again without the blamed, until a run is clean."""
        outcome = self.run(tame)
        if wild or not outcome.clean:
            culprits, killers = self.scout(tame, outcome)
            # An error can be the fault of the formula before it: does it come again in other company?
            culprits, more = self.scout(sorted(culprits, reverse=True))
            for key, (reason, message) in culprits.items():
                self.fail(key, reason, message)
            self.run_apart(sorted(wild | killers | more), wild)
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
        """Those of ``keys`` that raise an error, and those that end the process."""
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
        """The outcome of a clean run of those of ``keys`` that allow one; the others are failed."""
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
        """Give each formula a process of its own, and keep the pages that can be drawn without harm."""
        for key in keys:
            self.run_alone(key, trusted=key not in wild)
        made = [key for key in keys if key in self.pictures]
        reasons = try_pdfs([self.pictures[key] for key in made], cpu_s=self.timeout_s)
        for key, reason in zip(made, reasons, strict=True):
            if reason is not None:
                del self.pictures[key]
                self.fail(key, reason, "drawing the page takes too long or too much memory")

    def run_alone(self, key: int, *, trusted: bool) -> None:
        """Give a formula a process of its own: it can only harm itself. Nobody has tried its page yet."""
        nonce = token_hex(8)
        lines = formula_lines(key, self.formulas[key], roomy=True)
        source = document(self.style, [lines], trusted=False, nonce=nonce)
        try:
            result = run_pdflatex(
                source, trusted=trusted, cpu_s=self.timeout_s, max_file_bytes=_ALONE_FILE_BYTES
            )
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
        result = run_pdflatex(
            document(self.style, body, marked=self.marked, nonce=nonce),
            trusted=True,
            files=pictures,
            draft=draft,
            cpu_s=_START_CPU_S + len(keys) // _FORMULAS_PER_CPU_S + num_characters // _CHARACTERS_PER_CPU_S,
            max_file_bytes=_FILE_BYTES
            + _FILE_BYTES_PER_CHARACTER * num_characters
            + 2 * sum(map(len, pictures.values())),
        )
        return _read_outcome(result, keys, nonce)


def _pieces(keys: list[int]) -> list[list[int]]:
    return [keys[start : start + _SCOUTED] for start in range(0, len(keys), _SCOUTED)]


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
            left_clean = state == CLEAN
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
    """TeX's message, with the unknown command that TeX only shows in the lines after it."""
    if message == _UNKNOWN and (command := _COMMAND_AT_END.search(rest)):
        return f"{_UNKNOWN[:-1]} {command[1]}"
    return message


def _template_message(message: str) -> str:
    if missing := re.search(r"File `([^']+)' not found", message):
        return (
            f"This style needs the TeX file {missing[1]}. On Debian or Ubuntu: apt-get install"
            " texlive-latex-extra texlive-fonts-recommended texlive-fonts-extra texlive-plain-generic"
        )
    return f"The TeX template does not compile: {message}"
