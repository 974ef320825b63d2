"""One formula in any format: the names of the formats, and the call that writes each."""

from collections.abc import Callable
from typing import Final, Literal, get_args

from i2l.errors import I2LError
from i2l.formats.asciimath import to_asciimath
from i2l.formats.layout import FormatError, Row
from i2l.formats.mathml import to_mathml
from i2l.formats.omml import to_omml, write_docx
from i2l.formats.plain import to_plain_text
from i2l.formats.translate import read_layout
from i2l.formats.typst import to_typst
from i2l.formulas.normalize import normalize_formula

TextFormat = Literal[
    "latex",
    "inline",
    "display",
    "brackets",
    "equation",
    "tokens",
    "mathml",
    "omml",
    "typst",
    "asciimath",
    "unicode",
]
FileFormat = Literal["docx", "png", "svg"]
OutputFormat = Literal[TextFormat, FileFormat]
TEXT_FORMATS: Final[tuple[TextFormat, ...]] = get_args(TextFormat)
FILE_FORMATS: Final[tuple[FileFormat, ...]] = get_args(FileFormat)

__all__ = ["FormatError", "OutputFormat", "TextFormat", "choose_formats", "formula_docx", "write_formula"]

_WRAPPED: Final = {
    "latex": ("", ""),
    "inline": ("$", "$"),
    "display": ("$$", "$$"),
    "brackets": (r"\[ ", r" \]"),
    "equation": (r"\begin{equation} ", r" \end{equation}"),
}
_PRINTERS: Final[dict[str, tuple[str, Callable[[Row], str]]]] = {
    "mathml": ("MathML", to_mathml),
    "omml": ("Word", to_omml),
    "typst": ("Typst", to_typst),
    "asciimath": ("AsciiMath", to_asciimath),
    "unicode": ("Plain text", to_plain_text),
}


def write_formula(latex: str, output: TextFormat = "latex") -> str:
    """Write a formula in a format of text, on one line.

    Args:
        latex: as a person would write it.
        output: latex, inline ($...$), display ($$...$$), brackets (\\[...\\]), equation, tokens (canonical),
            mathml, omml (Word), typst, asciimath or unicode.

    Raises:
        FormulaError: if the LaTeX is not a formula.
        FormatError: if the format cannot say it; the message names the command or construct.
        I2LError: for a format that does not exist.
    """
    if output in _WRAPPED:
        before, after = _WRAPPED[output]
        return f"{before}{latex}{after}"
    if output == "tokens":
        return normalize_formula(latex).formula
    if output not in _PRINTERS:
        raise I2LError(f"There is no format {output!r}; choose one of {', '.join(TEXT_FORMATS)}.")
    title, printer = _PRINTERS[output]
    return printer(_layout(latex, title))


def formula_docx(*formulas: str) -> bytes:
    """Write formulas as a Word document, each as a display of its own that Word can edit.

    Raises:
        FormulaError: if one of them is not a formula.
        FormatError: if Word cannot say one; the message names the command or construct.
    """
    return write_docx([_layout(latex, "Word") for latex in formulas])


def choose_formats(names: str) -> list[OutputFormat]:
    """Read the names of formats, separated by commas.

    Raises:
        I2LError: for a format that does not exist.
    """
    known: tuple[OutputFormat, ...] = (*TEXT_FORMATS, *FILE_FORMATS)
    chosen: list[OutputFormat] = []
    for name in names.split(","):
        found = next((one for one in known if one == name.strip()), None)
        if found is None:
            raise I2LError(f"There is no format {name.strip()!r}; choose of {', '.join(known)}.")
        chosen.append(found)
    return chosen


def _layout(latex: str, title: str) -> Row:
    """Read LaTeX; what no format can say is said of the one that was asked for."""
    try:
        return read_layout(latex)
    except FormatError as error:
        raise FormatError(title, error.construct) from None
