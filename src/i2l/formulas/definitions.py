r"""Commands that define commands, read from text: \newcommand, \def, \let, \DeclareMathOperator and so on."""

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from i2l.formulas.commands import SIGNATURES
from i2l.formulas.macro import Macro, MacroError, Parameter
from i2l.formulas.pieces import Piece, Reader, cut, cut_body, join

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
        if len(texts) != 1 or texts[0][0] != "\\":
            raise _CutOffError
        return texts[0]

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
    source.reader.skip_space()
    name = source.reader.pop()
    if name is None or name.text[0] != "\\":
        raise _CutOffError
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
    found = source.done(name.text, Macro(parameters, texts, prefix))
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
    source.reader.skip_space()
    name = source.reader.pop()
    source.reader.skip_space()
    target = source.reader.pop()
    if target is not None and target.text == "=":
        source.reader.skip_space()
        target = source.reader.pop()
    if name is None or target is None or name.text[0] != "\\":
        raise _CutOffError
    return source.done(name.text, Macro((), (target.text,), frozen=True))


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
