"""A reading as text: LaTeX by itself or in dollars, canonical tokens, or MathML."""

import re
from typing import Final, Literal, get_args
from xml.etree import ElementTree

from i2l.errors import I2LError, require_extra

OutputFormat = Literal["latex", "tokens", "display", "inline", "mathml"]

# What latex2mathml does not know, by names that it does.
_KNOWN_AS: Final = {
    r"\dag": r"\dagger",
    r"\ddag": r"\ddagger",
    r"\AA": "Å",
    r"\L": "Ł",
    r"\l": "ł",
    r"\O": "Ø",
    r"\o": "ø",
    r"\ae": "æ",
    r"\ss": "ß",
    r"\i": "ı",
    r"\j": "ȷ",
    r"\sp": "^",
    r"\sb": "_",
    r"\enskip": r"\enspace",
    r"\arrowvert": r"\vert",
    r"\P": "¶",
    r"\shortparallel": r"\parallel",
    r"\fbox": r"\boxed",
    r"\hfill": r"\quad",
}
_NOT_DRAWN: Final = (
    r"\relax \null \protect \expandafter \lefteqn \uppercase \romannumeral \d \smallskip \medskip \bigskip"
    r" \boldmath \unboldmath \em \sl \sc \itshape"
)
# After \big and the like latex2mathml leaves names as they are.
_DELIMITERS: Final = {
    r"\{": "{",
    r"\}": "}",
    r"\lbrace": "{",
    r"\rbrace": "}",
    r"\langle": "⟨",
    r"\rangle": "⟩",
    r"\vert": "|",
    r"\lvert": "|",
    r"\rvert": "|",
    r"\|": "‖",
    r"\Vert": "‖",
    r"\lVert": "‖",
    r"\rVert": "‖",
    r"\lfloor": "⌊",
    r"\rfloor": "⌋",
    r"\lceil": "⌈",
    r"\rceil": "⌉",
    r"\lbrack": "[",
    r"\rbrack": "]",
    r"\backslash": "\\",
    r"\uparrow": "↑",
    r"\downarrow": "↓",
    r"\updownarrow": "↕",
    r"\Uparrow": "⇑",
    r"\Downarrow": "⇓",
    r"\Updownarrow": "⇕",
}
_ENVIRONMENTS: Final = {"aligned": "align*", "gathered": "matrix"}
_COMMAND: Final = re.compile(r"\\[A-Za-z]+")
_VERTICAL_SPACE: Final = re.compile(r"\\vspace\*?\{[^{}]*\}")
_SIZED_ANGLE: Final = re.compile(r"(\\[bB]igg?[lrm]?) *([<>])")
_LEFT_AS_IT_IS: Final = re.compile(r"(?<=>)\\(?:[A-Za-z]+|[{}|])(?=</mo>)")
_ENVIRONMENT: Final = re.compile(r"\\(begin|end)\{(aligned|gathered)\}")


class OutputError(I2LError):
    """A reading that cannot be written in a format."""


def format_formula(latex: str, tokens: tuple[str, ...], output: OutputFormat = "latex") -> str:
    """Write a formula in a format, on one line.

    Args:
        latex: as a person would write it.
        tokens: canonical.
        output: latex, tokens, display ($$...$$), inline ($...$) or mathml.

    Raises:
        OutputError: for a format that does not exist, or a formula that MathML cannot express.
        MissingDependencyError: if latex2mathml is needed and not installed.
    """
    if output == "latex":
        return latex
    if output == "tokens":
        return " ".join(tokens)
    if output == "display":
        return f"$${latex}$$"
    if output == "inline":
        return f"${latex}$"
    if output == "mathml":
        return to_mathml(latex)
    raise OutputError(f"There is no format {output!r}; choose one of {', '.join(get_args(OutputFormat))}.")


def to_mathml(latex: str) -> str:
    """Write LaTeX as MathML, by latex2mathml.

    Raises:
        OutputError: if it cannot be expressed.
        MissingDependencyError: if latex2mathml is not installed.
    """
    converter = require_extra("latex2mathml.converter", "mathml")
    known = _COMMAND.sub(lambda match: _known_as(match.group()), _VERTICAL_SPACE.sub("", latex))
    known = _SIZED_ANGLE.sub(lambda match: match[1] + {"<": "⟨", ">": "⟩"}[match[2]], known)
    known = _ENVIRONMENT.sub(lambda match: rf"\{match[1]}{{{_ENVIRONMENTS[match[2]]}}}", known)
    try:
        converted = str(converter.convert(known, display="block"))
        converted = _LEFT_AS_IT_IS.sub(lambda match: _DELIMITERS.get(match[0], match[0]), converted)
        texts = list(ElementTree.fromstring(converted).itertext())
    except Exception as error:  # latex2mathml raises its own errors, and IndexError and the like besides
        raise OutputError(f"MathML cannot express {latex!r} ({type(error).__name__}).") from error
    for unknown in filter(None, map(_COMMAND.search, texts)):
        raise OutputError(f"MathML cannot express {unknown.group()} in {latex!r}.")
    return " ".join(converted.split())


def _known_as(command: str) -> str:
    if command in _NOT_DRAWN.split(" "):
        return ""
    known = _KNOWN_AS.get(command, command)
    return f"{{{known}}}" if known.isalpha() else known
