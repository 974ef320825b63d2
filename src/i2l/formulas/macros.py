r"""Macros as TeX has them: reading their definitions, and writing their bodies with the arguments put in.

Source is cut into the pieces that macros work on, each with its place. Definitions are read from text:
\newcommand, \def, \let, \DeclareMathOperator and their relatives. `i2l.formulas.expansion` decides when a
macro is called.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from i2l.errors import I2LError
from i2l.formulas.commands import SIGNATURES
from i2l.formulas.lexer import MAX_CHARACTERS, FormulaError

# A name may hold @, as in the files where authors define macros; an author's formula has no such name.
_PIECE: Final = re.compile(r"\\[A-Za-z@]+|\\.|#+[1-9]?|%[^\n]*|\s+|.", re.DOTALL)
_PLAIN_PIECE: Final = re.compile(r"\\[A-Za-z]+|\\.|#+[1-9]?|%[^\n]*|\s+|.", re.DOTALL)
_MAX_ARGUMENT: Final = 20_000  # pieces; who has more has lost a closing brace


class Piece(NamedTuple):
    """A command, a character, a run of white space or a parameter like `#1`."""

    text: str
    start: int  # where it came from in the author's formula
    end: int
    frozen: bool = False  # a command that no macro may replace: it has TeX's own meaning


def is_word(text: str) -> bool:
    r"""Tell whether a piece is a command made of letters, which swallows the white space behind it."""
    return len(text) > 1 and text[0] == "\\" and (text[1].isalpha() or text[1] == "@")


def cut(source: str, position: int = 0, *, at_letter: bool = False) -> Iterator[Piece]:
    """Cut a source into pieces, from a position on, as they are asked for."""
    pattern = _PIECE if at_letter else _PLAIN_PIECE
    for match in pattern.finditer(source, position):
        yield Piece(match.group(), match.start(), match.end())


def cut_body(source: str) -> tuple[str, ...]:
    """Cut the text of a macro as TeX stores it: no comments, one space for many, none behind a name."""
    texts: list[str] = []
    for match in _PIECE.finditer(source):
        text = match.group()
        if text[0] == "%" or (text.isspace() and texts and is_word(texts[-1])):
            continue
        texts.append(" " if text.isspace() else text)
    return tuple(texts)


def join(texts: Iterable[str]) -> str:
    """Write texts one behind the other, with a space where a name would swallow the letter behind it."""
    written: list[str] = []
    after_word = False
    for text in texts:
        if after_word and (text[:1].isalpha() or text[:1] == "@"):
            written.append(" ")
        written.append(text)
        after_word = is_word(text) if text else after_word
    return "".join(written)


class Reader:
    """A source read piece by piece; what was read, or what stands for it, can be put back."""

    def __init__(self, pieces: Iterator[Piece], start: int = 0) -> None:
        self._ahead = pieces
        self._back: list[Piece] = []
        self._end = start

    @property
    def position(self) -> int:
        """Where in the source the next piece starts, as long as nothing but its own pieces was put back."""
        return self._back[-1].start if self._back else self._end

    def pop(self) -> Piece | None:
        """Take the next piece; None at the end."""
        if self._back:
            return self._back.pop()
        piece = next(self._ahead, None)
        if piece is not None:
            self._end = piece.end
        return piece

    def push(self, pieces: Iterable[Piece]) -> None:
        """Put pieces in front of what is left to read."""
        self._back.extend(reversed(list(pieces)))

    def num_waiting(self) -> int:
        """Count the pieces that were put back and not read again."""
        return len(self._back)

    def skip_space(self) -> list[Piece]:
        """Take white space and comments, if they are next."""
        skipped: list[Piece] = []
        while (piece := self.pop()) is not None:
            if not (piece.text.isspace() or piece.text[0] == "%"):
                self.push([piece])
                break
            skipped.append(piece)
        return skipped

    def peek(self) -> Piece | None:
        """Look at the next piece, white space included."""
        piece = self.pop()
        if piece is not None:
            self.push([piece])
        return piece

    def argument(self) -> list[Piece] | None:
        """Take a group without its braces, or a single piece; None if there is no argument."""
        self.skip_space()
        piece = self.pop()
        if piece is None or piece.text == "}":
            if piece is not None:
                self.push([piece])
            return None
        return [piece] if piece.text != "{" else self.group()

    def group(self) -> list[Piece] | None:
        """Take what is left of a group whose opening brace was read, without its closing brace."""
        depth = 1
        taken: list[Piece] = []
        while (piece := self.pop()) is not None:
            depth += (piece.text == "{") - (piece.text == "}")
            if depth == 0:
                return taken
            taken.append(piece)
            if len(taken) > _MAX_ARGUMENT:
                break
        return None

    def optional(self, opening: str = "[", closing: str = "]") -> list[Piece] | None:
        """Take what stands in brackets, if they are next; else leave everything where it was."""
        skipped = self.skip_space()
        piece = self.pop()
        if piece is None or piece.text != opening:
            self.push([*skipped, piece] if piece is not None else skipped)
            return None
        found = self.until((closing,))
        if found is None:
            self.push([*skipped, piece])
        return found

    def until(self, delimiter: tuple[str, ...]) -> list[Piece] | None:
        """Take everything up to a delimiter outside of braces; if it never comes, put all of it back."""
        depth = 0
        taken: list[Piece] = []
        size = len(delimiter)
        while (piece := self.pop()) is not None:
            taken.append(piece)
            depth += (piece.text == "{") - (piece.text == "}")
            if depth < 0 or len(taken) > _MAX_ARGUMENT:
                break
            if depth == (piece.text == "{") and tuple(each.text for each in taken[-size:]) == delimiter:
                del taken[-size:]
                if len(taken) > 1 and taken[0].text == "{" and _closes_at_end(taken):
                    return taken[1:-1]
                return taken
        self.push(taken)
        return None


def _closes_at_end(pieces: list[Piece]) -> bool:
    depth = 0
    for index, piece in enumerate(pieces):
        depth += (piece.text == "{") - (piece.text == "}")
        if depth == 0:
            return index == len(pieces) - 1
    return False


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


MANDATORY: Final = Parameter("m")
_COMMENT: Final = re.compile(r"(?<!\\)((?:\\\\)*)%.*")


class Definition(NamedTuple):
    """A name and what it stands for from here on: a macro, or the two ends of an environment."""

    name: str
    macro: Macro | None  # None: TeX's own meaning again
    end: int  # where in the text the definition ends
    closing: Macro | None = None  # of an environment
    weak: bool = False  # counts only if the name has no meaning yet
    everywhere: bool = False  # holds beyond the group that it stands in


class _CutOffError(Exception):
    """A definition that does not end, or has a form that is not understood."""


def read_definition(text: str, command: str, position: int) -> Definition | None:
    r"""Read the definition that a command opens; None if it is cut off or not understood.

    Args:
        text: the source, without comments.
        command: one of `DEFINING`, without its backslash.
        position: where the text behind the command starts.
    """
    reader = Reader(cut(text, position, at_letter=True), position)
    try:
        return DEFINING[command](_Source(reader), command)
    except _CutOffError:
        return None


class _Source:
    """The text behind a defining command."""

    def __init__(self, reader: Reader) -> None:
        self.reader = reader

    def pieces(self) -> list[Piece]:
        found = self.reader.argument()
        if found is None:
            raise _CutOffError
        return found

    def text(self) -> str:
        return join(piece.text for piece in self.pieces())

    def body(self) -> tuple[str, ...]:
        return cut_body(self.text())

    def name(self) -> str:
        texts = [piece.text for piece in self.pieces() if not piece.text.isspace()]
        if len(texts) != 1:
            raise _CutOffError
        return self._named(texts[0])

    def bare_name(self) -> str:
        self.reader.skip_space()
        piece = self.reader.pop()
        if piece is None:
            raise _CutOffError
        return self._named(piece.text)

    def _named(self, text: str) -> str:
        r"""Return a command's name, which may be spelled between \csname and \endcsname."""
        if text == r"\csname":  # behind \expandafter, which has been passed over
            letters = self.reader.until((r"\endcsname",)) or []
            text = "\\" + "".join(piece.text for piece in letters).lstrip()
        if text[0] != "\\" or text == "\\":
            raise _CutOffError
        return text

    def word(self) -> str:
        return "".join(piece.text for piece in self.pieces()).strip()

    def optional(self) -> str | None:
        found = self.reader.optional()
        return None if found is None else join(piece.text for piece in found)

    def star(self) -> bool:
        skipped = self.reader.skip_space()
        piece = self.reader.peek()
        if piece is not None and piece.text == "*":
            self.reader.pop()
            return True
        self.reader.push(skipped)
        return False

    def count(self) -> int:
        number = (self.optional() or "0").strip()
        return int(number) if number.isdecimal() and len(number) == 1 else 0

    def done(
        self, name: str, macro: Macro | None, *, closing: Macro | None = None, weak: bool = False
    ) -> Definition:
        return Definition(name, macro, self.reader.position, closing, weak)


def _parameters(count: int, default: str | None) -> tuple[Parameter, ...]:
    if default is None or count == 0:
        return (MANDATORY,) * count
    return (Parameter("o", cut_body(default)), *(MANDATORY,) * (count - 1))


def _new_command(source: _Source, command: str) -> Definition:
    source.star()
    name = source.name()
    count, default = source.count(), source.optional()
    return source.done(
        name, Macro(_parameters(count, default), source.body()), weak=command.startswith("provide")
    )


def _new_commandx(source: _Source, command: str) -> Definition:
    source.star()
    name, count = source.name(), source.count()
    parameters = [MANDATORY] * count
    for choice in (source.optional() or "").split(","):
        number, _, default = choice.partition("=")
        if number.strip().isdecimal() and 1 <= int(number) <= count:
            parameters[int(number) - 1] = Parameter("o", cut_body(default))
    return source.done(name, Macro(tuple(parameters), source.body()), weak=command.startswith("provide"))


def _def(source: _Source, command: str) -> Definition:
    name = source.bare_name()
    pattern: list[str] = []
    while (piece := source.reader.pop()) is not None and piece.text != "{":
        if len(pattern) > 100 or piece.text == "}":
            raise _CutOffError
        pattern.append(piece.text)
    body = source.reader.group()
    if body is None:
        raise _CutOffError
    prefix, parameters = _delimited(cut_body("".join(pattern)))
    texts = cut_body(join(piece.text for piece in body))
    found = source.done(name, Macro(parameters, texts, prefix))
    return found._replace(everywhere=command in ("gdef", "xdef"))


def _delimited(pattern: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[Parameter, ...]]:
    """Read the parameters of a `\\def`: text in front of the first, and behind each."""
    parts: list[list[str]] = [[]]
    for text in pattern:
        if text[0] == "#" and len(text) == 2:
            parts.append([])
        else:
            parts[-1].append(text)
    prefix, *delimiters = (tuple(part) for part in parts)
    return prefix, tuple(Parameter("u", None, each) if each else MANDATORY for each in delimiters)


def _let(source: _Source, _: str) -> Definition:
    name = source.bare_name()
    source.reader.skip_space()
    target = source.reader.pop()
    if target is not None and target.text == "=":
        source.reader.skip_space()
        target = source.reader.pop()
    if target is None:
        raise _CutOffError
    return source.done(name, Macro((), (target.text,), frozen=True))


def _operator(source: _Source, _: str) -> Definition:
    star = "*" if source.star() else ""
    name = source.name()
    return source.done(name, Macro((), cut_body(rf"\operatorname{star}{{{source.text()}}}")))


def _paired(source: _Source, _: str) -> Definition:
    name = source.name()
    left, right = source.text(), source.text()
    return source.done(name, _delimiters(1, left, "#3", right))


def _paired_x(source: _Source, _: str) -> Definition:
    name, count = source.name(), source.count()
    left, right, body = source.text(), source.text(), source.text()
    # its parameters come behind the star and the size; \delimsize is the size
    shifted = re.sub(r"#([1-7])", lambda match: f"#{int(match[1]) + 2}", body)
    return source.done(name, _delimiters(count, left, shifted, right))


def _delimiters(count: int, left: str, body: str, right: str) -> Macro:
    r"""Make what \DeclarePairedDelimiter does: stretched with a star, sized with an optional \big."""
    stretched, sized = (body.replace(r"\delimsize", size) for size in (r"\middle", "#2"))
    stretched = rf"\mathopen{{}}\left{left} {stretched}\right{right} \mathclose{{}}"
    sized = rf"\mathopen{{#2{left}}}{sized}\mathclose{{#2{right}}}"
    text = rf"\IfBooleanTF{{#1}}{{{stretched}}}{{{sized}}}"
    parameters = (Parameter("s"), Parameter("o", ()), *(MANDATORY,) * count)
    return Macro(parameters, cut_body(text))


def _document_command(source: _Source, command: str) -> Definition:
    name = source.name()
    parameters = _argument_types(source.pieces())
    return source.done(name, Macro(parameters, source.body()), weak=command.startswith("Provide"))


def _argument_types(pieces: list[Piece]) -> tuple[Parameter, ...]:
    """Read the argument types of xparse: m, o, O, s, g, d, D, and those that are read like them.

    Raises:
        _CutOffError: for types that are not understood.
    """
    reader = Reader(iter(pieces))
    parameters: list[Parameter] = []
    while (piece := reader.pop()) is not None:
        kind = piece.text
        if kind.isspace() or kind in "+!":
            continue
        if kind == "m":
            parameters.append(MANDATORY)
        elif kind in "sg":
            parameters.append(Parameter(kind))
        elif kind in "oOdD":
            brackets: tuple[str, ...] = ()
            if kind in "dD":
                opening, closing = reader.pop(), reader.pop()
                if opening is None or closing is None:
                    raise _CutOffError
                brackets = (opening.text, closing.text)
            default = reader.argument() if kind in "OD" else None
            texts = None if default is None else cut_body(join(each.text for each in default))
            parameters.append(Parameter("o", texts, brackets))
        else:
            raise _CutOffError
    return tuple(parameters)


def _environment(source: _Source, command: str) -> Definition:
    source.star()
    name = source.word()
    if command.endswith("DocumentEnvironment"):
        parameters = _argument_types(source.pieces())
    else:
        count, default = source.count(), source.optional()
        parameters = _parameters(count, default)
    opening, closing = source.body(), source.body()
    return source.done(name, Macro(parameters, opening), closing=Macro(parameters, closing))


DEFINING: Final = {
    **dict.fromkeys(
        [
            "newcommand",
            "renewcommand",
            "providecommand",
            "DeclareRobustCommand",
            "newrobustcmd",
            "renewrobustcmd",
        ],
        _new_command,
    ),
    **dict.fromkeys(["newcommandx", "renewcommandx", "providecommandx"], _new_commandx),
    **dict.fromkeys(["def", "gdef", "edef", "xdef"], _def),
    "let": _let,
    "DeclareMathOperator": _operator,
    "DeclarePairedDelimiter": _paired,
    "DeclarePairedDelimiterX": _paired_x,
    **dict.fromkeys(
        ["NewDocumentCommand", "RenewDocumentCommand", "ProvideDocumentCommand", "DeclareDocumentCommand"],
        _document_command,
    ),
    **dict.fromkeys(
        [
            "newenvironment",
            "renewenvironment",
            "NewDocumentEnvironment",
            "RenewDocumentEnvironment",
            "DeclareDocumentEnvironment",
        ],
        _environment,
    ),
}
_COMMANDS: Final = re.compile(rf"\\({'|'.join(sorted(DEFINING, key=len, reverse=True))})(?![A-Za-z@])")


def add_definition(definitions: dict[str, Macro], found: Definition) -> None:
    r"""Take a definition in; \let takes the meaning that its target has now."""
    macro = found.macro
    if macro is not None and macro.frozen:
        macro = definitions.get(macro.body[0], macro)
    if found.weak and (found.name in definitions or found.name in SIGNATURES):
        return
    if macro is None or (macro.frozen and macro.body == (found.name,)):
        definitions.pop(found.name, None)
    else:
        definitions[found.name] = macro


def read_preamble(preamble: str) -> dict[str, Macro]:
    """Read all commands that a preamble defines, in their order.

    Raises:
        MacroError: if a definition is cut off.
    """
    definitions: dict[str, Macro] = {}
    for found in _definitions(_COMMENT.sub(r"\1", preamble)):
        if found.closing is None:
            add_definition(definitions, found)
    return definitions


def _definitions(preamble: str) -> Iterator[Definition]:
    position = 0
    while match := _COMMANDS.search(preamble, position):
        found = read_definition(preamble, match[1], match.end())
        if found is None and _is_cut_off(preamble, match.end()):
            raise MacroError(
                f"The definition at {preamble[match.start() : match.start() + 40]!r} has no closing brace."
            )
        if found is not None:
            yield found
        position = match.end() if found is None else found.end


def _is_cut_off(text: str, position: int) -> bool:
    depth = 0
    for match in re.finditer(r"\\.|[{}]", text[position:], re.DOTALL):
        depth += (match.group() == "{") - (match.group() == "}")
        if depth < 0:
            return False
    return depth > 0
