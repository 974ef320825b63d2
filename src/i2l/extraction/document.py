r"""One document as TeX reads it, and where its formulas stand.

Files are put in where they are input, definitions taken out and remembered.

The text that comes out is what TeX would typeset: comments, conditions that do not hold and definitions are
left out. Macros that open or close a formula (`\be` for `\begin{equation}`) are written out in it; all others
stay, to be written out formula by formula. Every character of the text knows its file and its place there,
and every definition how far it holds: to the end of the group that it stands in, as in TeX.

The body of a display is given without what belongs to the page around it, such as labels and numbers, either
in parts that text separates or row by row.
"""

import posixpath
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from i2l.extraction.archives import STYLE_SUFFIXES, Bundle, CleanText, Verdict, find_input
from i2l.formulas.commands import ENVIRONMENTS
from i2l.formulas.expansion import opens_condition
from i2l.formulas.lexer import FormulaError
from i2l.formulas.macros import (
    DEFINING,
    Definition,
    Macro,
    Piece,
    Reader,
    add_definition,
    cut,
    cut_body,
    fill,
    join,
    read_arguments,
    read_definition,
)

# One formula; it is written without its environment.
SINGLE: Final = frozenset(name for name, known in ENVIRONMENTS.items() if known.holds == "formula")
# Several lines; the environment says how they stand to each other.
LINES: Final = frozenset(name for name, known in ENVIRONMENTS.items() if known.holds == "lines")
MAX_FORMULA_CHARACTERS: Final = 20_000  # a longer one has lost its end
UNCLOSED: Final = "unclosed"

_MAX_UNCLOSED: Final = 100  # formulas without an end; then the rest of the document is left

_OPENING: Final = re.compile(r"\\(?:begin\s*\{([^{}]*)\}|([\[(])|[A-Za-z@]+|.)|(\$\$?)", re.DOTALL)
_STEP: Final = re.compile(r"\\(?:[A-Za-z@]+|.)|\$\$?|[{}]|\n[ \t]*\n", re.DOTALL)
_CLOSING: Final = {"[": r"\]", "(": r"\)", "$": "$", "$$": "$$"}


class Found(NamedTuple):
    """A formula in a text: its whole span, the span of its body, and what it stands in."""

    start: int
    end: int
    body_start: int
    body_end: int
    environment: str  # the name of the environment, or one of \\[ $$ \\( $

    @property
    def inline(self) -> bool:
        """Whether it stands in a line of text."""
        return self.environment in (r"\(", "$", "math")


def is_math(name: str) -> bool:
    """Tell whether an environment holds a formula."""
    plain = name.rstrip("*")
    return plain in SINGLE or plain in LINES


def find_formulas(text: str) -> Iterator[Found | int]:
    """Find every formula of a text; a number is the place of one that never ends."""
    position = 0
    unclosed_left = _MAX_UNCLOSED  # a text in which nothing closes would be searched for ever
    while unclosed_left and (match := _OPENING.search(text, position)):
        position = match.end()
        name, bracket, dollars = match.groups()
        if name is not None and is_math(name):
            closing = re.compile(rf"\\end\s*\{{{re.escape(name)}\}}")
            end = closing.search(text, position, position + MAX_FORMULA_CHARACTERS)
            if end is None:
                unclosed_left -= 1
                yield match.start()
                continue
            found = Found(match.start(), end.end(), position, end.start(), name)
        elif mark := bracket or dollars:
            span = _find_end(text, position, mark)
            if span is None:
                unclosed_left -= 1
                yield match.start()
                continue
            environment = mark if dollars else "\\" + mark
            found = Found(match.start(), span[1], position, span[0], environment)
        else:
            continue
        yield found
        position = found.end


def _find_end(text: str, position: int, mark: str) -> tuple[int, int] | None:
    """Find the end of a formula outside of all braces that were opened in it."""
    closing = _CLOSING[mark]
    depth = 0
    for match in _STEP.finditer(text, position, position + MAX_FORMULA_CHARACTERS):
        step = match.group()
        if depth == 0 and (step == closing or (closing == "$" and step == "$$")):
            return match.start(), match.start() + len(closing)
        if step == "{":
            depth += 1
        elif step == "}":
            depth -= 1
            if depth < 0:
                return None
        elif step[0] == "\n" and mark in ("$", "("):
            return None
    return None


# Marks for the page: numbers, labels, breaks; they draw nothing of the formula.
_MARKS: Final = re.compile(
    r"\\(?:label|index|tag\*?|vspace\*?)\s*\{(?:[^{}]|\{[^{}]*\})*\}"
    r"|\\(?:nonumber|notag|qedhere|allowdisplaybreaks|displaybreak|noindent|postdisplaypenalty\s*=?\s*-?\d+"
    r"|predisplaypenalty\s*=?\s*-?\d+)(?![A-Za-z])(?:\[\d\])?"
    r"|\\l?eqno\s*(?:\{[^{}]*\}|\([^()]*\)|\S+)\s*$"
)
_PART_STEP: Final = re.compile(r"\\(?:begin|end)\s*\{[^{}]*\}|\\(?:[A-Za-z]+|.)|[{}]", re.DOTALL)
_BREAK: Final = re.compile(r"\\\\\s*\*?\s*(?:\[[^\]]*\])?")
_LAST_BREAKS: Final = re.compile(r"(?:\\\\\s*(?:\[[^\]]*\])?\s*)+$")  # as before a text between lines
_TEXT_BETWEEN: Final = frozenset([r"\intertext", r"\shortintertext"])


def strip_marks(body: str) -> str:
    """Take labels, numbers and page breaks out of a formula, and write it in one line."""
    body = _MARKS.sub(" ", body)
    return re.sub(r"\s*\n\s*", " ", body).strip()


def is_empty(latex: str) -> bool:
    """Tell whether nothing is left to draw."""
    return not re.sub(r"[\s{}&]|\\\\", "", latex)


def split_parts(latex: str, *, rows: bool) -> Iterator[str]:
    """Cut a body at text between its lines, and at its lines if rows are asked for."""
    depth, start, skip_to = 0, 0, -1
    for match in _PART_STEP.finditer(latex):
        step = match.group()
        if match.start() < skip_to:
            continue
        if depth == 0 and step in _TEXT_BETWEEN:
            yield from _part(latex[start : match.start()], rows)
            start = skip_to = _group_end(latex, match.end())
        elif depth == 0 and rows and step == "\\\\":
            end = _BREAK.match(latex, match.start())
            yield from _part(latex[start : match.start()], rows)
            start = end.end() if end else match.end()
        elif step == "{" or step.startswith(r"\begin"):
            depth += 1
        elif step == "}" or step.startswith(r"\end"):
            depth -= 1
    yield from _part(latex[start:], rows)


def _part(text: str, rows: bool) -> Iterator[str]:
    text = _without_columns(text.strip()) if rows else _LAST_BREAKS.sub("", text.strip()).strip()
    if not is_empty(text):
        yield text


def _without_columns(row: str) -> str:
    """Take out the `&` of a row, but not those of a matrix in it."""
    depth, kept, start = 0, [], 0
    for match in re.finditer(r"\\(?:begin|end)\s*\{|\\.|[{}&]", row, re.DOTALL):
        step = match.group()
        if step.startswith(r"\begin"):
            depth += 2
        elif step.startswith(r"\end"):
            continue
        elif step == "{":
            depth += 1
        elif step == "}":
            depth -= 1
        elif step == "&" and depth <= 0:
            kept.append(row[start : match.start()])
            start = match.end()
    return " ".join([*kept, row[start:]]).strip()


def _group_end(latex: str, position: int) -> int:
    depth = 0
    for match in _PART_STEP.finditer(latex, position):
        depth += (match.group() == "{") - (match.group() == "}")
        if depth == 0:
            return match.end()
    return len(latex)


class Event(NamedTuple):
    """A definition, and from which character of the document's text on it counts."""

    position: int
    definition: Definition


class Place(NamedTuple):
    """Where a piece of the document's text came from: a file from a place on, or a macro called there."""

    file: str
    text: CleanText
    offset: int  # of the piece in the file's clean text
    call_end: int | None  # for a macro: where its call ends, so that the piece has no places of its own


@dataclass
class Document:
    """What TeX typesets of one root file, in order."""

    text: str
    starts: list[int]
    places: list[Place]
    events: list[Event]
    body_start: int = 0  # where \\begin{document} stands
    files: set[str] = field(default_factory=set)

    def locate(self, start: int, end: int) -> tuple[str, int, int]:
        """Return the file in which a span of the text starts, and the span in that file that it came from."""
        file, first = self._place(start, opening=True)
        other, last = self._place(max(start, end - 1), opening=False)
        return file, first, last if other == file and last > first else first

    def _place(self, position: int, *, opening: bool) -> tuple[str, int]:
        index = max(0, bisect_right(self.starts, position) - 1)
        place = self.places[index]
        if place.call_end is not None:
            return place.file, place.text.place(place.offset if opening else place.call_end - 1) + (
                not opening
            )
        inside = place.offset + position - self.starts[index]
        return place.file, place.text.place(inside) + (not opening)


_SCOPE_EDGE: Final = re.compile(
    r"\\(?:(begin|end)\s*\{([^{}]*)\}|(bgroup|begingroup|egroup|endgroup)(?![A-Za-z@])|.)|([{}])", re.DOTALL
)
_GROUP_OPENING: Final = frozenset(["{", "bgroup", "begingroup"])


def scope_ends(text: str, positions: Sequence[int]) -> list[int]:
    """Say for each position, in rising order, where the group around it ends, or the whole text."""
    ends = [len(text)] * len(positions)
    groups: list[tuple[str, list[int]]] = []  # what opened each group, and which positions stand in it
    names: Counter[str] = Counter()  # of the environments that are open
    waiting = num_open = 0
    for match in _SCOPE_EDGE.finditer(text):
        while waiting < len(positions) and positions[waiting] <= match.start():
            if groups:
                groups[-1][1].append(waiting)
                num_open += 1
            waiting += 1
        if waiting == len(positions) and not num_open:
            break
        edge, environment, command, brace = match.groups()
        closed = None
        if edge == "begin":
            groups.append((environment, []))
            names[environment] += 1
        elif (brace or command) in _GROUP_OPENING:
            groups.append(("{", []))
        elif edge == "end" and names[environment]:
            closed = environment
        elif (brace or command) and groups and groups[-1][0] == "{":
            closed = "{"
        while closed is not None:
            opened, members = groups.pop()
            names[opened] -= 1
            num_open -= len(members)
            for member in members:
                ends[member] = match.start()
            if opened == closed:
                closed = None
    return ends


MAX_DEPTH: Final = 60  # files and macros inside each other
MAX_INPUTS: Final = 5_000
MAX_CALLS: Final = 50_000
MAX_FAILURES: Final = 20  # definitions and macros that are cut off; each is searched for its end
MAX_DOCUMENT_CHARACTERS: Final = 50_000_000
MAX_VERDICTS: Final = 1_000

_COMMAND: Final = re.compile(r"\\(?:(begin|end)\s*\{([^{}]*)\}|([A-Za-z@]+)|.)", re.DOTALL)
_CONDITION: Final = re.compile(r"\\(?:(?:if[A-Za-z@]*|else|fi)(?![A-Za-z@])|.)", re.DOTALL)
_FILE: Final = re.compile(r"\s*(?:\[[^\]]*\]\s*)?(?:\{([^{}]*)\}|([^\s{}\\\[]+))")
_TWO_ARGUMENTS: Final = re.compile(r"\*?\s*\{([^{}]*)\}\s*\{([^{}]*)\}")
_PACKAGE: Final = re.compile(r"\s*(?:\[([^\]]*)\])?\s*\{([^{}]*)\}")
_ENVIRONMENT_EDGE: Final = re.compile(r"\\(?:begin|end)\s*\{([^{}]*)\}")
_IFX: Final = re.compile(r"\s*(\\[A-Za-z@]+|.)\s*(\\[A-Za-z@]+|.)")
_ENVIRONMENT_BY_NAME: Final = re.compile(
    r"\\csname\s*(end)?([A-Za-z]+\*?)\s*\\endcsname"
    r"|\\(end)?(equation|displaymath|math|dmath|[fx]?x?lalign|align|alignat|gather|multline|eqnarray)(?![A-Za-z@])"
)
_IF_NAME: Final = re.compile(r"\s*\\if([A-Za-z@]+)")
_INPUTS: Final = frozenset(
    ["input", "include", "subfile", "subfileinclude", "InputIfFileExists", "loadglsentries"]
)
_IMPORTS: Final = frozenset(
    ["import", "subimport", "includefrom", "subincludefrom", "inputfrom", "subinputfrom"]
)
_PACKAGES: Final = {
    "usepackage": ".sty",
    "RequirePackage": ".sty",
    "documentclass": ".cls",
    "LoadClass": ".cls",
    "documentstyle": ".sty",
}


@dataclass
class _Frame:
    """A file or the text of a macro that is being read."""

    text: str
    file: str
    clean: CleanText
    silent: bool  # only its definitions count
    folder: str  # from where its own inputs are looked for
    call: tuple[int, int] | None = None  # the span of the call in the file, for the text of a macro
    position: int = 0


class DocumentReader:
    """Reads one document of a bundle."""

    def __init__(self, bundle: Bundle, root: str, *, definitions: dict[str, Macro] | None = None) -> None:
        self.bundle = bundle
        self.root_folder = posixpath.dirname(root)
        self.definitions = dict(definitions or {})
        self.environments: dict[str, tuple[Macro, Macro]] = {}
        # Macros stand here by their names, and environments as `_begin` writes them.
        self.openers: set[str] = set()  # must be written out to find formulas
        self.users: dict[str, set[str]] = {}  # of each, those that have it in their text
        for name in self.definitions:
            self._note_opener(name)
        self.flags = {"pdf": True, "true": True, "false": False}
        self.switches: dict[str, tuple[str, bool]] = {}
        self.conditions: list[bool | None] = []  # those that are open; None: it may hold or not
        self.written: list[str] = []
        self.length = self.num_inputs = self.num_calls = self.num_failures = self.num_verdicts = 0
        self.document = Document("", [], [], [])
        self.stack: list[_Frame] = []
        self._push_file(root, silent=False, folder=self.root_folder)

    def read(self) -> Document:
        """Read to the end."""
        while self.stack:
            if not self._advance(self.stack[-1]):
                self.stack.pop()
        self.document.text = "".join(self.written)
        return self.document

    def _advance(self, frame: _Frame) -> bool:
        """Read a frame up to the first command that changes how it goes on; False at its end."""
        for match in _COMMAND.finditer(frame.text, frame.position):
            edge, environment, name = match.groups()
            if name is not None:
                if name in _ACTIONS:
                    went_on = _ACTIONS[name](self, frame, match.start(), match.end(), name)
                elif "\\" + name in self.openers:
                    went_on = self._call(frame, match.start(), match.end(), self.definitions["\\" + name])
                elif name[:2] == "if":
                    went_on = self._condition(frame, match.start(), match.end(), name)
                elif name in self.switches:
                    went_on = self._switch(frame, match.start(), match.end(), name)
                else:
                    continue
            elif environment is not None and _begin(environment) in self.openers:
                macro = self.environments[environment][edge == "end"]
                went_on = self._call(frame, match.start(), match.end(), macro)
            elif environment == "document" and not frame.silent:
                went_on = self._edge_of_document(frame, match.start(), match.end(), edge)
            else:
                continue
            if went_on:
                return True
        self._write(frame, len(frame.text))
        return False

    def _edge_of_document(self, frame: _Frame, start: int, end: int, edge: str) -> bool:
        """Note where the preamble ends; behind the end of a document, TeX reads no more of its file."""
        if edge == "end":
            return self._leave(frame, start, len(frame.text))
        self._leave(frame, start, end)
        self.document.body_start = self.document.body_start or self.length
        return True

    def _write(self, frame: _Frame, end: int) -> None:
        """Take the text of a frame up to here into the document."""
        start, frame.position = frame.position, end
        if frame.silent or end <= start or self.length > MAX_DOCUMENT_CHARACTERS:
            return
        self.written.append(frame.text[start:end])
        self.document.starts.append(self.length)
        if frame.call is None:
            self.document.places.append(Place(frame.file, frame.clean, start, None))
        else:
            self.document.places.append(Place(frame.file, frame.clean, *frame.call))
        self.length += end - start

    def _leave(self, frame: _Frame, start: int, end: int) -> bool:
        """Write what stands before a command, and go on behind it."""
        self._write(frame, start)
        frame.position = end
        return True

    def _verdict(self, frame: _Frame, position: int, verdict: str, message: str) -> None:
        self.num_verdicts += 1
        if self.num_verdicts > MAX_VERDICTS:
            return
        place = frame.clean.place(frame.call[0] if frame.call else position)
        self.bundle.verdicts.append(Verdict(self.bundle.label(frame.file), verdict, message, (place, place)))

    def _push_file(self, name: str, *, silent: bool, folder: str) -> None:
        clean = self.bundle.text(name)
        self.document.files.add(name)
        self.stack.append(_Frame(clean.text, name, clean, silent, folder))

    def _include(self, frame: _Frame, start: int, name: str, folders: list[str], suffixes: list[str]) -> bool:
        """Go on in another file, if the bundle has it."""
        found = find_input(self.bundle, name, folders, suffixes)
        if found is None:
            return False
        looped = any(each.file == found and each.call is None for each in self.stack)
        self.num_inputs += 1
        if (
            looped
            or len(self.stack) > MAX_DEPTH
            or self.num_inputs > MAX_INPUTS
            or self.length > MAX_DOCUMENT_CHARACTERS
        ):
            self._verdict(frame, start, "input-loop", name)
            return False
        silent = frame.silent or found.endswith(STYLE_SUFFIXES)
        self._push_file(found, silent=silent, folder=folders[0])
        return True

    def _call(self, frame: _Frame, start: int, end: int, macro: Macro) -> bool:
        """Go on in the text that a macro stands for."""
        if frame.silent or self.num_failures > MAX_FAILURES:
            return False
        self.num_calls += 1
        if len(self.stack) > MAX_DEPTH or self.num_calls > MAX_CALLS or self.length > MAX_DOCUMENT_CHARACTERS:
            self._verdict(frame, start, "macro-loop", frame.text[start:end])
            return self._leave(frame, start, end)
        reader = Reader(cut(frame.text, end), end)
        place = Piece(frame.text[start:end], start, end)
        try:
            text = join(piece.text for piece in fill(macro, read_arguments(macro, reader, place), place))
        except FormulaError:
            self.num_failures += 1
            return False
        self._leave(frame, start, reader.position)
        call = frame.call or (start, reader.position)
        self.stack.append(_Frame(text, frame.file, frame.clean, False, frame.folder, call))
        return True

    def _define(self, frame: _Frame, start: int, end: int, name: str) -> bool:
        if self.num_failures > MAX_FAILURES:
            return False
        found = read_definition(frame.text, name, end)
        if found is None:
            self.num_failures += 1
            return False
        self._leave(frame, start, found.end)
        found = _spell_environments(found)
        if found.closing is not None and found.macro is not None:
            self.environments[found.name] = (found.macro, found.closing)
            self._note_opener(_begin(found.name))
            return True
        if found.weak and found.name in self.definitions:
            return True
        add_definition(self.definitions, found)
        self.document.events.append(Event(self.length, found))
        self._note_opener(found.name)
        return True

    def _note_opener(self, defined: str) -> None:
        """Note whether what was just defined must be written out, and so what used it before it was."""
        for text in self._mentioned(defined):
            self.users.setdefault(text, set()).add(defined)
        self.openers.discard(defined)
        waiting = [defined]
        while waiting:
            name = waiting.pop()
            if name not in self.openers and any(map(self._opens, self._macros(name))):
                self.openers.add(name)
                waiting += self.users.pop(name, ())

    def _macros(self, name: str) -> tuple[Macro, ...]:
        """Give the macro of a name, or the two of an environment; none where TeX's own meaning counts."""
        if environment := _ENVIRONMENT_EDGE.fullmatch(name):
            return self.environments.get(environment[1], ())
        return (self.definitions[name],) if name in self.definitions else ()

    def _mentioned(self, name: str) -> set[str]:
        """Give the macros and the environments that the text of a macro or of an environment has."""
        macros = self._macros(name)
        environments = _ENVIRONMENT_EDGE.findall("".join(text for macro in macros for text in macro.body))
        commands = {text for macro in macros for text in macro.body if text[0] == "\\"}
        return commands.union(map(_begin, environments))

    def _opens(self, macro: Macro) -> bool:
        """Tell whether a macro must be written out to find formulas: it opens, closes or swallows some."""
        if macro.frozen:
            return macro.body[0] in (r"\[", r"\]", r"\(", r"\)")
        depth = 0
        for text in macro.body:
            depth += (text == "{") - (text == "}")
            if text in (r"\[", r"\]") or (depth == 0 and text in ("$", r"\(", r"\)")) or text in self.openers:
                return True
        named = _ENVIRONMENT_EDGE.findall("".join(macro.body))
        if any(is_math(name) or _begin(name) in self.openers for name in named):
            return True
        taken = [index for index, each in enumerate(macro.parameters, 1) if each.kind == "m"]
        return bool(taken) and not any(text[0] == "#" for text in macro.body)

    def _condition(self, frame: _Frame, start: int, end: int, name: str) -> bool:
        holds = self.flags.get(name[2:])
        if name == "ifx" and (sides := _IFX.match(frame.text, end)):
            holds, end = self._same_meaning(sides[1], sides[2]), sides.end()
        if not opens_condition("\\" + name):
            return False
        self.conditions.append(holds)
        if holds is None:
            return False
        self._leave(frame, start, end)
        if not holds:
            frame.position = self._branch_end(frame, stop_at_else=True)
        return True

    def _same_meaning(self, first: str, second: str) -> bool | None:
        if r"\undefined" not in (first, second) and r"\@undefined" not in (first, second):
            return None
        return first not in self.definitions and second not in self.definitions

    def _branch_end(self, frame: _Frame, *, stop_at_else: bool) -> int:
        r"""Find the end of a branch that does not hold: behind its \else or \fi."""
        depth = 0
        for match in _CONDITION.finditer(frame.text, frame.position):
            word = match.group()
            if depth == 0 and (word == r"\fi" or (stop_at_else and word == r"\else")):
                if word == r"\fi":
                    self.conditions.pop()
                return match.end()
            depth += opens_condition(word) - (word == r"\fi")
        return len(frame.text)

    def _else(self, frame: _Frame, start: int, end: int, _: str) -> bool:
        if not self.conditions or self.conditions[-1] is not True:
            return False
        self._leave(frame, start, end)
        frame.position = self._branch_end(frame, stop_at_else=False)
        return True

    def _fi(self, *_: object) -> bool:
        if self.conditions:
            self.conditions.pop()
        return False

    def _new_if(self, frame: _Frame, start: int, end: int, _: str) -> bool:
        match = _IF_NAME.match(frame.text, end)
        if match is None:
            return False
        name = match[1]
        self.flags[name] = False
        self.switches |= {f"{name}true": (name, True), f"{name}false": (name, False)}
        return self._leave(frame, start, match.end())

    def _switch(self, frame: _Frame, start: int, end: int, name: str) -> bool:
        flag, value = self.switches[name]
        self.flags[flag] = value
        return self._leave(frame, start, end)

    def _input(self, frame: _Frame, start: int, end: int, _: str) -> bool:
        match = _FILE.match(frame.text, end)
        if match is None:
            return False
        name = match[1] or match[2] or ""
        self._leave(frame, start, match.end())
        folders = [frame.folder, self.root_folder, posixpath.dirname(frame.file), *_parents(self.root_folder)]
        if not self._include(frame, start, name, folders, [".tex"]) and not frame.silent:
            self._verdict(frame, start, "missing-input", name)
        return True

    def _import(self, frame: _Frame, start: int, end: int, name: str) -> bool:
        match = _TWO_ARGUMENTS.match(frame.text, end)
        if match is None:
            return False
        self._leave(frame, start, match.end())
        base = frame.folder if name.startswith("sub") else self.root_folder
        folder = posixpath.join(base, match[1].strip())
        if not self._include(frame, start, match[2], [folder], [".tex"]) and not frame.silent:
            self._verdict(frame, start, "missing-input", match[1] + match[2])
        return True

    def _package(self, frame: _Frame, start: int, end: int, command: str) -> bool:
        match = _PACKAGE.match(frame.text, end)
        if match is None:
            return False
        self._leave(frame, start, match.end())
        names = match[2].split(",")
        if command == "documentstyle":
            names = [*(match[1] or "").split(","), *names]
        folders = [self.root_folder, posixpath.dirname(frame.file)]
        for name in reversed(names):
            if self._include(frame, start, name.strip(), folders, [_PACKAGES[command]]):
                self.stack[-1].silent = True
        return True

    def _end_input(self, frame: _Frame, start: int, _: int, __: str) -> bool:
        return self._leave(frame, start, len(frame.text))


def _begin(environment: str) -> str:
    return rf"\begin{{{environment}}}"


def _parents(folder: str) -> list[str]:
    """List the folders above one: authors move a document, and not the files that it shares with others."""
    parents = []
    while folder:
        folder = posixpath.dirname(folder)
        parents.append(folder)
    return parents


def _spell_environments(found: Definition) -> Definition:
    r"""Write \begin and \end where a definition uses the commands behind an environment, as in \endalign."""

    def spelled(macro: Macro | None) -> Macro | None:
        if macro is None or macro.frozen:
            return macro
        body = join(macro.body)
        text = _ENVIRONMENT_BY_NAME.sub(_spell, body)
        return macro if text == body else macro._replace(body=cut_body(text))

    return found._replace(macro=spelled(found.macro), closing=spelled(found.closing))


def _spell(match: re.Match[str]) -> str:
    name = match[2] or match[4]
    return rf"\{'end' if match[1] or match[3] else 'begin'}{{{name}}}" if is_math(name) else match.group()


_ACTIONS: Final[dict[str, Callable[[DocumentReader, _Frame, int, int, str], bool]]] = {
    **dict.fromkeys(DEFINING, DocumentReader._define),
    **dict.fromkeys(_INPUTS, DocumentReader._input),
    **dict.fromkeys(_IMPORTS, DocumentReader._import),
    **dict.fromkeys(_PACKAGES, DocumentReader._package),
    "newif": DocumentReader._new_if,
    "else": DocumentReader._else,
    "fi": DocumentReader._fi,
    "endinput": DocumentReader._end_input,
}
