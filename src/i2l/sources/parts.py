"""The body of a display without what belongs to the page around it, in parts or in rows."""

import re
from collections.abc import Iterator
from typing import Final

# Marks for the page: numbers, labels, breaks; they draw nothing of the formula.
_MARKS: Final = re.compile(
    r"\\(?:label|index|tag\*?|vspace\*?)\s*\{(?:[^{}]|\{[^{}]*\})*\}"
    r"|\\(?:nonumber|notag|qedhere|allowdisplaybreaks|displaybreak|noindent|postdisplaypenalty\s*=?\s*-?\d+"
    r"|predisplaypenalty\s*=?\s*-?\d+)(?![A-Za-z])(?:\[\d\])?"
    r"|\\l?eqno\s*(?:\{[^{}]*\}|\([^()]*\)|\S+)\s*$"
)
_STEP: Final = re.compile(r"\\(?:begin|end)\s*\{[^{}]*\}|\\(?:[A-Za-z]+|.)|[{}]", re.DOTALL)
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
    for match in _STEP.finditer(latex):
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
    for match in _STEP.finditer(latex, position):
        depth += (match.group() == "{") - (match.group() == "}")
        if depth == 0:
            return match.end()
    return len(latex)
