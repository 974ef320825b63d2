"""One macro: how its arguments are read, and what is written in its place."""

from typing import Final, NamedTuple

from i2l.errors import I2LError
from i2l.formulas.lexer import MAX_CHARACTERS
from i2l.formulas.pieces import Piece, Reader, is_word
from i2l.formulas.tokens import FormulaError

NO_VALUE: Final = r"\i@l@novalue"  # stands for an optional argument that was not given
TRUE: Final = r"\i@l@true"  # a star that was given
FALSE: Final = r"\i@l@false"


class MacroError(I2LError):
    """A preamble that cannot be read."""


class Parameter(NamedTuple):
    """How one argument is read.

    The kind is `m` for a group or a single piece, `o` for one in brackets that may be left out, `s` for a
    star that may be left out, `g` for a group that may be left out, or `u` for all up to the delimiter.
    """

    kind: str
    default: tuple[str, ...] | None = None  # of kind `o`
    delimiter: tuple[str, ...] = ()  # of kind `u`, and the two brackets of kind `o`


class Macro(NamedTuple):
    """What stands for a command: how its arguments are read, and the text they are put into."""

    parameters: tuple[Parameter, ...]
    body: tuple[str, ...]
    prefix: tuple[str, ...] = ()  # must follow the name
    frozen: bool = False  # the body is a command of TeX's own, whatever macros are called like it


def fill(macro: Macro, arguments: list[list[Piece]], place: Piece) -> list[Piece]:
    """Put arguments into the text of a macro; its own pieces come from the place of the call.

    Raises:
        FormulaError: if the result is longer than any formula.
    """
    filled: list[Piece] = []
    for text in macro.body:
        if text[0] == "#" and len(text) > 1 and text[-1] != "#":
            level = text.count("#")
            if level == 1:
                index = int(text[-1]) - 1
                filled += arguments[index] if index < len(arguments) else []
            else:  # the parameter of a macro that this one defines
                filled.append(Piece("#" * (level // 2) + text[-1], place.start, place.end))
        else:
            filled.append(Piece(text, place.start, place.end, macro.frozen))
        if len(filled) > MAX_CHARACTERS:
            raise FormulaError("macro never ends", place.start, place.text)
    return filled


def read_arguments(macro: Macro, reader: Reader, place: Piece) -> list[list[Piece]]:
    """Read the arguments that follow a macro's name.

    Raises:
        FormulaError: if one is missing.
    """
    if (is_word(place.text) and macro.parameters) or macro.prefix:
        reader.skip_space()
    for expected in macro.prefix:
        piece = reader.pop()
        if piece is None or piece.text != expected:
            raise FormulaError("macro without its argument", place.start, place.text)
    arguments: list[list[Piece]] = []
    for parameter in macro.parameters:
        found: list[Piece] | None
        if parameter.kind == "o":
            found = reader.optional(*parameter.delimiter or ("[", "]"))
            if found is None:
                default = (NO_VALUE,) if parameter.default is None else parameter.default
                found = [Piece(text, place.start, place.end) for text in default]
        elif parameter.kind == "s":
            piece = reader.peek()
            starred = piece is not None and piece.text == "*"
            if starred:
                reader.pop()
            found = [Piece(TRUE if starred else FALSE, place.start, place.end)]
        elif parameter.kind == "g":
            following = reader.peek()
            found = [Piece(NO_VALUE, place.start, place.end)]
            if following is not None and following.text == "{":
                found = reader.argument()
        elif parameter.kind == "u":
            found = reader.until(parameter.delimiter)
        else:
            found = reader.argument()
        if found is None:
            raise FormulaError("macro without its argument", place.start, place.text)
        arguments.append(found)
    return arguments
