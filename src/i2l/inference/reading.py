"""What a reader found: LaTeX, how sure it is, where each token was read, and what else it might be.

A reading as text: LaTeX by itself or in dollars, canonical tokens, or MathML.
"""

import base64
import html
import io
import re
from dataclasses import dataclass
from typing import Any, Final, Literal, get_args
from xml.etree import ElementTree

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from i2l.errors import I2LError, require_extra
from i2l.formulas import commands
from i2l.images.prepare import Box, PreparedImage
from i2l.inference.confidence import Evidence

MARGIN_PX = 8  # around the ink in a notebook
SHOWN = 80  # characters of the LaTeX on a terminal


@dataclass(frozen=True)
class Alternative:
    """Another reading of the same image."""

    latex: str
    tokens: tuple[str, ...]
    confidence: float


@dataclass(frozen=True, eq=False, repr=False)
class Reading:
    """One image, read. In a notebook it shows itself."""

    latex: str  # as a person would write it
    tokens: tuple[str, ...]  # canonical
    confidence: float  # that all of it is right; calibrated if the model is
    log_prob: float  # that the model gives it, in all the ways to write it that the search found
    token_probabilities: NDArray[np.float32]  # of each token, given those before it
    attention: NDArray[np.float32]  # tokens x rows x columns of the model's grid
    boxes: tuple[Box | None, ...]  # of each token in pixels of the file; None for one that draws nothing
    alternatives: tuple[Alternative, ...]  # best first
    finished: bool  # False if it was cut at the limit of tokens
    unread: float  # share of the ink that no token looked at
    seconds: float  # that it took, in its batch
    prepared: PreparedImage  # what the model saw
    # For each token the likeliest others that could stand in its place, each with its probability.
    token_alternatives: tuple[tuple[tuple[str, float], ...], ...]
    evidence: Evidence  # what the confidence was found from

    def __repr__(self) -> str:
        latex = self.latex if len(self.latex) <= SHOWN else f"{self.latex[:SHOWN]}..."
        return f"Reading({latex!r}, confidence={self.confidence:.2f}, {len(self.tokens)} tokens)"

    @property
    def formula(self) -> str:
        """The canonical tokens joined by spaces."""
        return " ".join(self.tokens)

    def to_dict(self) -> dict[str, Any]:
        """Give it as JSON values, without attention."""
        return {
            "latex": self.latex,
            "confidence": round(self.confidence, 4),
            "tokens": [
                {
                    "text": token,
                    "probability": round(float(probability), 4),
                    "box": None if box is None else [round(value, 1) for value in box],
                    "alternatives": [
                        {"text": text, "probability": round(chance, 4)} for text, chance in others
                    ],
                }
                for token, probability, box, others in zip(
                    self.tokens,
                    self.token_probabilities,
                    self.boxes,
                    self.token_alternatives,
                    strict=True,
                )
            ],
            "alternatives": [
                {"latex": other.latex, "confidence": round(other.confidence, 4)}
                for other in self.alternatives
            ],
            "finished": self.finished,
            "unread": round(self.unread, 4),
            "size": list(self.prepared.file_size_px),
            "scale": round(self.prepared.scale, 4),
            "seconds": round(self.seconds, 4),
        }

    def _repr_html_(self) -> str:
        """Show the image with the boxes, and the formula typeset by the notebook."""
        height, width = self.prepared.pixels.shape
        margin = MARGIN_PX
        file = io.BytesIO()
        Image.fromarray(self.prepared.pixels).save(file, "PNG")
        picture = base64.b64encode(file.getvalue()).decode()
        shapes = []
        for token, probability, box in zip(self.tokens, self.token_probabilities, self.boxes, strict=True):
            if box is None:
                continue
            left, top, right, bottom = self.prepared.from_file(box)
            shapes.append(
                f'<rect x="{left:.1f}" y="{top:.1f}" width="{right - left:.1f}" height="{bottom - top:.1f}" '
                f'fill="#06c" fill-opacity="0.06" stroke="#06c" stroke-opacity="0.5" stroke-width="0.7">'
                f"<title>{html.escape(token)}  {probability:.0%}</title></rect>"
            )
        return (
            f'<div><svg viewBox="{-margin} {-margin} {width + 2 * margin} {height + 2 * margin}" '
            f'width="{width + 2 * margin}" style="background:#fff;max-width:100%">'
            f'<image href="data:image/png;base64,{picture}" width="{width}" height="{height}"/>'
            f"{''.join(shapes)}</svg><p>$${html.escape(self.latex)}$$</p>"
            f"<code>{html.escape(self.latex)}</code> <small>{self.confidence:.0%}</small></div>"
        )


OutputFormat = Literal["latex", "tokens", "display", "inline", "mathml"]

# What latex2mathml does not know, by names that it does, or by nothing.
_KNOWN_AS: Final = {
    name: command.mathml for name, command in commands.COMMANDS.items() if command.mathml is not None
}
# After \big and the like latex2mathml leaves names as they are.
_DELIMITERS: Final = {name: commands.COMMANDS[name].unicode for name in commands.DELIMITERS}
_ENVIRONMENTS: Final = {
    name: environment.mathml for name, environment in commands.ENVIRONMENTS.items() if environment.mathml
}
_COMMAND: Final = re.compile(r"\\[A-Za-z]+")
_VERTICAL_SPACE: Final = re.compile(r"\\vspace\*?\{[^{}]*\}")
_SIZED_ANGLE: Final = re.compile(r"(\\[bB]igg?[lrm]?) *([<>])")
_LEFT_AS_IT_IS: Final = re.compile(r"(?<=>)\\(?:[A-Za-z]+|[{}|])(?=</mo>)")
_ENVIRONMENT: Final = re.compile(rf"\\(begin|end)\{{({'|'.join(_ENVIRONMENTS)})\}}")


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
        converted = _LEFT_AS_IT_IS.sub(lambda match: _DELIMITERS.get(match[0]) or match[0], converted)
        texts = list(ElementTree.fromstring(converted).itertext())
    except Exception as error:  # latex2mathml raises its own errors, and IndexError and the like besides
        raise OutputError(f"MathML cannot express {latex!r} ({type(error).__name__}).") from error
    for unknown in filter(None, map(_COMMAND.search, texts)):
        raise OutputError(f"MathML cannot express {unknown.group()} in {latex!r}.")
    return " ".join(converted.split())


def _known_as(command: str) -> str:
    known = _KNOWN_AS.get(command, command)
    return f"{{{known}}}" if known.isalpha() else known
