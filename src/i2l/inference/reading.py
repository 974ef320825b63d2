"""What a reader found: LaTeX, how sure it is, where each token was read, and what else it might be."""

import base64
import html
import io
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from i2l.formats.convert import TextFormat, formula_docx, write_formula
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

    def to(self, output: TextFormat) -> str:
        """Give the formula in a format of text, by its name in `i2l read --format`.

        Raises:
            FormatError: if the format cannot say it; the message names the command or construct.
        """
        return self.formula if output == "tokens" else write_formula(self.latex, output)

    @property
    def mathml(self) -> str:
        """The formula in MathML, as one `<math>` element."""
        return self.to("mathml")

    @property
    def omml(self) -> str:
        """The formula as Word has it, as one `<m:oMath>` element."""
        return self.to("omml")

    @property
    def typst(self) -> str:
        """The formula in Typst, without the dollars."""
        return self.to("typst")

    @property
    def asciimath(self) -> str:
        """The formula in AsciiMath."""
        return self.to("asciimath")

    @property
    def unicode(self) -> str:
        """The formula as one line of plain text."""
        return self.to("unicode")

    def docx(self) -> bytes:
        """Give a Word document that holds the formula."""
        return formula_docx(self.latex)

    def png(self, *, dpi: int = 300) -> bytes:
        """Give the formula typeset by TeX, as a picture.

        Raises:
            MissingDependencyError: if pdflatex or pypdfium2 is not installed.
            I2LError: if TeX cannot draw it.
        """
        from i2l.rendering.typeset import typeset_png

        return typeset_png(self.latex, dpi=dpi)

    def svg(self) -> str:
        """Give the formula typeset by TeX, as outlines that scale.

        Raises:
            MissingDependencyError: if pdflatex or pypdfium2 is not installed.
            I2LError: if TeX cannot draw it.
        """
        from i2l.rendering.typeset import typeset_svg

        return typeset_svg(self.latex)

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
