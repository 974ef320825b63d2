"""A reading as text: LaTeX by itself or in dollars, canonical tokens, or MathML."""

from typing import Literal, get_args

from i2l.errors import I2LError, require_extra

OutputFormat = Literal["latex", "tokens", "display", "inline", "mathml"]


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
    try:
        converted = converter.convert(latex, display="block")
    except Exception as error:  # latex2mathml raises its own errors, and IndexError and the like besides
        raise OutputError(f"latex2mathml cannot convert {latex!r} ({type(error).__name__}).") from error
    return " ".join(str(converted).split())
