"""One formula in any format: the names of the formats, and the call that writes each."""

from collections.abc import Callable
from functools import cached_property
from importlib.util import find_spec
from typing import Final, Literal, get_args

from i2l.errors import I2LError
from i2l.formats.asciimath import to_asciimath
from i2l.formats.layout import FormatError, Row
from i2l.formats.mathml import to_mathml
from i2l.formats.omml import to_omml, write_docx
from i2l.formats.plain import to_plain_text
from i2l.formats.translate import read_layout
from i2l.formats.typst import draw_png, draw_svg, to_typst
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

EVERY_FORMAT: Final[tuple[OutputFormat, ...]] = (*TEXT_FORMATS, *FILE_FORMATS)

__all__ = [
    "FormatError",
    "Formula",
    "OutputFormat",
    "TextFormat",
    "choose_formats",
    "formula_docx",
    "formula_file",
    "write_formula",
]

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
    "svg": ("SVG", draw_svg),
}


class Formula:
    """LaTeX that is written in several formats, and read only once for all of them."""

    def __init__(self, latex: str) -> None:
        self.latex = latex

    @cached_property
    def _layout(self) -> Row:
        return read_layout(self.latex)

    def layout(self, title: str) -> Row:
        """Read the LaTeX; what no format can say is said of the one that was asked for.

        Raises:
            FormulaError: if the LaTeX is not a formula.
            FormatError: if no format can say it.
        """
        try:
            return self._layout
        except FormatError as error:
            raise FormatError(title, error.construct) from None

    def write(self, output: OutputFormat, *, dpi: int = 300) -> str | bytes:
        """Write the formula in any format: as text where the format is one, and SVG is, as bytes where not.

        Raises:
            FormulaError: if the LaTeX is not a formula.
            FormatError: if the format cannot say it; the message names the command or construct.
            MissingDependencyError: if a picture is asked for and Typst is not installed.
            I2LError: for a format that does not exist.
        """
        if output not in EVERY_FORMAT:
            raise I2LError(f"There is no format {output!r}; choose one of {', '.join(EVERY_FORMAT)}.")
        if output in _WRAPPED:
            before, after = _WRAPPED[output]
            return f"{before}{self.latex}{after}"
        if output == "tokens":
            return normalize_formula(self.latex).formula
        if output == "docx":
            return write_docx([self.layout("Word")])
        if output == "png":
            return draw_png(self.layout("PNG"), dpi=dpi)
        title, printer = _PRINTERS[output]
        return printer(self.layout(title))


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
    written = Formula(latex).write(output)
    if not isinstance(written, str):
        raise I2LError(f"{output} is a file, and no text: take formula_file.")
    return written


def formula_file(latex: str, output: FileFormat, *, dpi: int = 300) -> bytes:
    """Write a formula as a file: a Word document, or a picture of it typeset, drawn by Typst.

    Args:
        latex: as a person would write it.
        output: docx, png or svg.
        dpi: pixels an inch of a PNG, in which letters are 10 points high.

    Raises:
        FormulaError: if the LaTeX is not a formula.
        FormatError: if the format cannot say it; the message names the command or construct.
        MissingDependencyError: if a picture is asked for and Typst is not installed.
    """
    written = Formula(latex).write(output, dpi=dpi)
    return written.encode() if isinstance(written, str) else written


def formula_docx(*formulas: str) -> bytes:
    """Write formulas as a Word document, each as a display of its own that Word can edit.

    Raises:
        FormulaError: if one of them is not a formula.
        FormatError: if Word cannot say one; the message names the command or construct.
    """
    return write_docx([Formula(latex).layout("Word") for latex in formulas])


def formats_here() -> list[OutputFormat]:
    """List the formats that this installation can write: pictures need Typst."""
    drawn = find_spec("typst") is not None
    return [name for name in EVERY_FORMAT if drawn or name not in ("png", "svg")]


def choose_formats(names: str) -> list[OutputFormat]:
    """Read the names of formats, separated by commas.

    Raises:
        I2LError: for a format that does not exist.
    """
    chosen: list[OutputFormat] = []
    for name in names.split(","):
        found = next((one for one in EVERY_FORMAT if one == name.strip()), None)
        if found is None:
            raise I2LError(f"There is no format {name.strip()!r}; choose of {', '.join(EVERY_FORMAT)}.")
        chosen.append(found)
    return chosen
