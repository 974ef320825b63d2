"""A reading as text: LaTeX by itself or in dollars, canonical tokens, or MathML."""

import re
from typing import Final, Literal, get_args
from xml.etree import ElementTree

from i2l.errors import I2LError, require_extra

OutputFormat = Literal["latex", "tokens", "display", "inline", "mathml"]

# What latex2mathml does not know, by names that it does, or by nothing where nothing is drawn.
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
} | dict.fromkeys(
    (r"\relax", r"\null", r"\protect", r"\boldmath", r"\unboldmath", r"\em", r"\sl", r"\sc", r"\itshape"), ""
)
_ENVIRONMENTS: Final = {"aligned": "align*", "gathered": "matrix"}
_COMMAND: Final = re.compile(r"\\[A-Za-z]+")
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
    known = _COMMAND.sub(lambda match: _known_as(match.group()), latex)
    known = _ENVIRONMENT.sub(lambda match: rf"\{match[1]}{{{_ENVIRONMENTS[match[2]]}}}", known)
    try:
        converted = str(converter.convert(known, display="block"))
        text = "".join(ElementTree.fromstring(converted).itertext())
    except Exception as error:  # latex2mathml raises its own errors, and IndexError and the like besides
        raise OutputError(f"MathML cannot express {latex!r} ({type(error).__name__}).") from error
    if unknown := _COMMAND.search(text):
        raise OutputError(f"MathML cannot express {unknown.group()} in {latex!r}.")
    return " ".join(converted.split())


def _known_as(command: str) -> str:
    known = _KNOWN_AS.get(command, command)
    return known if known.startswith("\\") or not known else f"{{{known}}}" if known.isalpha() else known
