"""What the page is answered, as JSON values: readings, failures, formulas in other formats.

The server's workers and routes answer with these, and so does the reader inside a browser (recipes/site). So
nothing here knows of HTTP, and nothing but the base install is needed.
"""

import base64
import logging
from collections.abc import Sequence
from typing import Any, Final

from i2l.errors import I2LError, MissingDependencyError
from i2l.formats.convert import FormatError, Formula, OutputFormat, TextFormat
from i2l.formulas.lexer import FormulaError
from i2l.images.open import NotAnImageError, OversizedImageError
from i2l.images.prepare import ImageTooLargeError
from i2l.inference.reading import Reading
from i2l.ink.strokes import InkError

logger = logging.getLogger("i2l.web.worker")


class UnknownModelError(I2LError):
    """A request that names a model which is not here."""


_KINDS: Final = {
    UnknownModelError: "invalid-request",
    OversizedImageError: "too-large",
    ImageTooLargeError: "too-large",
    NotAnImageError: "not-an-image",
    InkError: "invalid-request",
    I2LError: "not-a-formula",  # after the others, which are its children
}

# A file in a format: what browsers call it, and how its name ends. A format that is not here is plain text.
_FILE_TYPES: Final = {
    "latex": ("text/x-tex", "tex"),
    "inline": ("text/x-tex", "tex"),
    "display": ("text/x-tex", "tex"),
    "brackets": ("text/x-tex", "tex"),
    "equation": ("text/x-tex", "tex"),
    "mathml": ("application/mathml+xml", "mml"),
    "omml": ("application/xml", "xml"),
    "docx": ("application/vnd.openxmlformats-officedocument.wordprocessingml.document", "docx"),
    "typst": ("text/plain", "typ"),
    "svg": ("image/svg+xml", "svg"),
    "png": ("image/png", "png"),
}


def describe_reading(reading: Reading, formats: Sequence[TextFormat] = ()) -> dict[str, Any]:
    """Return a reading as JSON values, with where its ink is, and written in other formats."""
    content = reading.to_dict()
    height, width = reading.prepared.pixels.shape
    content["ink"] = [round(value, 1) for value in reading.prepared.to_file((0, 0, width, height))]
    content["data"] = []
    for kind in formats:
        entry: dict[str, Any] = {"type": kind}
        try:
            entry["value"] = reading.to(kind)
        except (FormatError, FormulaError) as error:
            entry |= {"value": None, "error": str(error)}
        content["data"].append(entry)
    return content


def describe_failure(error: Exception) -> dict[str, Any]:
    """Return why an image could not be read: a kind of problem, and a sentence."""
    for kind, name in _KINDS.items():
        if isinstance(error, kind):
            return {"kind": name, "detail": str(error)}
    logger.error("A worker met an error that nobody expected", exc_info=error)
    return {"kind": "reader-failed", "detail": f"{type(error).__name__} while reading; this is a bug."}


def list_formats(names: Sequence[OutputFormat]) -> list[dict[str, Any]]:
    """Describe formats that `convert_formula` writes, in the order in which a menu would show them."""
    return [
        {
            "name": name,
            "text": media_type.startswith("text/") or media_type.endswith("xml"),
            "media_type": media_type,
            "extension": extension,
        }
        for name in names
        for media_type, extension in [_FILE_TYPES.get(name, ("text/plain", "txt"))]
    ]


def convert_formula(latex: str, formats: Sequence[OutputFormat]) -> list[dict[str, Any]]:
    """Write a formula in each format, or say why not.

    Raises:
        FormulaError: if the LaTeX is not a formula.
    """
    formula = Formula(latex)
    data = []
    for kind in formats:
        entry: dict[str, Any] = {"type": kind, "value": None, "error": None}
        try:
            written = formula.write(kind)
            entry["value"] = written if isinstance(written, str) else base64.b64encode(written).decode()
        except (FormatError, MissingDependencyError) as error:
            entry["error"] = str(error)
        data.append(entry)
    return data
