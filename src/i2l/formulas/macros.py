"""Simple macros of a preamble, written out in a formula; every character knows where it came from."""

import re
from pathlib import Path
from typing import NamedTuple

from i2l.errors import I2LError
from i2l.formulas.lexer import MAX_CHARACTERS
from i2l.formulas.tokens import FormulaError

MAX_EXPANSIONS = 2_000

_DEFINITION = re.compile(
    r"\\(?:(?:re)?newcommand|providecommand|DeclareRobustCommand)\*?"
    r"\s*(?:\{\s*(?P<name>\\[A-Za-z]+)\s*\}|(?P<bare>\\[A-Za-z]+))"
    r"\s*(?:\[(?P<count>\d)\])?\s*(?:\[(?P<default>[^\]]*)\])?\s*(?=\{)"
    r"|\\def\s*(?P<def>\\[A-Za-z]+)\s*(?P<parameters>(?:#\d)*)\s*(?=\{)"
    r"|\\DeclareMathOperator(?P<star>\*?)\s*\{?\s*(?P<operator>\\[A-Za-z]+)\s*\}?\s*(?=\{)"
)
_COMMENT = re.compile(r"(?<!\\)%.*")
_NAME = re.compile(r"\\[A-Za-z]+")
_ENDS_IN_NAME = re.compile(r"\\[A-Za-z]+$")
_ATOM = re.compile(r"\\[A-Za-z]+|\\.|.", re.DOTALL)


class MacroError(I2LError):
    """A preamble that cannot be read."""


class Macro(NamedTuple):
    """What stands for a command: its number of arguments, the default of the first, and the text."""

    arguments: int
    default: str | None
    body: str


class Expansion(NamedTuple):
    """A source with its macros written out; spans[i] is where in the original character i came from."""

    source: str
    spans: list[tuple[int, int]]


class Macros:
    """The macros of one preamble."""

    def __init__(self, definitions: dict[str, Macro]) -> None:
        self.definitions = definitions

    @classmethod
    def load(cls, path: Path) -> "Macros":
        """Read a preamble file.

        Raises:
            MacroError: if the file cannot be read, or a definition in it is cut off.
        """
        try:
            return cls.parse(path.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError) as error:
            raise MacroError(f"Cannot read the macros {path}: {error}") from error

    @classmethod
    def parse(cls, preamble: str) -> "Macros":
        """Find every \\newcommand, \\def with plain parameters and \\DeclareMathOperator; skip the rest."""
        preamble = _COMMENT.sub("", preamble)
        definitions = {}
        for match in _DEFINITION.finditer(preamble):
            found = _argument(preamble, match.end())
            if found is None:
                raise MacroError(f"The definition at {match.group()[:40]!r} has no closing brace.")
            body = preamble[found[0] : found[1]]
            if name := match["operator"]:
                definitions[name] = Macro(0, None, rf"\operatorname{match['star']}{{{body}}}")
            elif name := match["def"]:
                definitions[name] = Macro(match["parameters"].count("#"), None, body)
            else:
                name = match["name"] or match["bare"]
                definitions[name] = Macro(int(match["count"] or 0), match["default"], body)
        return cls(definitions)

    def expand(self, source: str) -> Expansion:
        """Write out the macros of a formula, those inside macros too.

        Raises:
            FormulaError: for a macro that lacks an argument, or that never stops growing.
        """
        spans = [(position, position + 1) for position in range(len(source))]
        position = expansions = 0
        while match := _NAME.search(source, position):
            macro = self.definitions.get(match.group())
            if macro is None:
                position = match.end()
                continue
            expansions += 1
            position = match.start()
            if expansions > MAX_EXPANSIONS or len(source) > MAX_CHARACTERS:
                raise FormulaError("macro never ends", spans[position][0], match.group())
            end, body, body_spans = _call(source, spans, match, macro)
            if _ENDS_IN_NAME.search(body) and source[end : end + 1].isalpha():
                body, body_spans = body + " ", [*body_spans, body_spans[-1]]
            source = source[:position] + body + source[end:]
            spans[position:end] = body_spans
        return Expansion(source, spans)


def _call(
    source: str, spans: list[tuple[int, int]], match: re.Match[str], macro: Macro
) -> tuple[int, str, list[tuple[int, int]]]:
    """Read the arguments of one call; give where it ends, its text and where each character came from."""
    end = match.end()
    arguments: list[tuple[str, list[tuple[int, int]]]] = []
    if macro.default is not None:
        optional = re.compile(r"\s*\[([^\]]*)\]").match(source, end)
        if optional:
            end = optional.end()
            arguments.append((optional[1], spans[optional.start(1) : optional.end(1)]))
        else:
            arguments.append((macro.default, [spans[match.start()]] * len(macro.default)))
    while len(arguments) < macro.arguments:
        found = _argument(source, end)
        if found is None:
            raise FormulaError("macro without its argument", spans[match.start()][0], match.group())
        first, last, end = found
        arguments.append((source[first:last], spans[first:last]))
    whole = (spans[match.start()][0], spans[match.end() - 1][1])
    body = ""
    body_spans: list[tuple[int, int]] = []
    for piece in re.split(r"(#\d)", macro.body):
        if re.fullmatch(r"#\d", piece):
            index = int(piece[1]) - 1
            text, places = arguments[index] if 0 <= index < len(arguments) else ("", [])
        else:
            text, places = piece, [whole] * len(piece)
        if text[:1].isalpha() and _ENDS_IN_NAME.search(body):
            body, body_spans = body + " ", [*body_spans, whole]
        body += text
        body_spans += places
    return end, body, body_spans


def _argument(source: str, position: int) -> tuple[int, int, int] | None:
    """Find the group, command or character at a position: where its text starts, ends, and what is next."""
    while position < len(source) and source[position].isspace():
        position += 1
    if position >= len(source) or source[position] == "}":
        return None
    if source[position] != "{":
        match = _ATOM.match(source, position)
        assert match
        return match.start(), match.end(), match.end()
    depth = 0
    for match in _ATOM.finditer(source, position):
        depth += (match.group() == "{") - (match.group() == "}")
        if depth == 0:
            return position + 1, match.start(), match.end()
    return None
