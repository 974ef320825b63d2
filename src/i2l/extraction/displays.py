"""Where the formulas of a document stand: in which environments, from where to where, and in which parts.

The body of a display is given without what belongs to the page around it, such as labels and numbers, either
in parts that text separates or row by row.
"""

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from i2l.formulas.commands import ENVIRONMENTS

# One formula; it is written without its environment.
SINGLE: Final = frozenset(name for name, known in ENVIRONMENTS.items() if known.holds == "formula")
# Several lines; the environment says how they stand to each other.
LINES: Final = frozenset(name for name, known in ENVIRONMENTS.items() if known.holds == "lines")
MAX_CHARACTERS: Final = 20_000  # a longer one has lost its end
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
            end = closing.search(text, position, position + MAX_CHARACTERS)
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
    for match in _STEP.finditer(text, position, position + MAX_CHARACTERS):
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
