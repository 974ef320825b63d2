"""One reading with all that can be shown about it: each token's attention, box, probability, alternatives."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
from PIL import Image

from i2l.errors import I2LError
from i2l.explain.placement import Placement
from i2l.formulas.vocabulary import EOS
from i2l.inference.attention_boxes import (
    DEFAULT_SHARE,
    Attention,
    Box,
    attention_boxes,
    find_ink,
    visible_tokens,
)
from i2l.model.receptive_field import ReceptiveField

NUM_ALTERNATIVES: Final = 4

Alternative = tuple[str, float]  # a token and its probability


class ExplanationError(I2LError):
    """A reading that cannot be explained."""


@dataclass(frozen=True)
class ExplainedToken:
    """A token of a reading."""

    text: str  # the last one is eos, if the model came to it
    visible: bool  # draws ink of its own
    probability: float
    alternatives: tuple[Alternative, ...]  # what else the model considered there, likeliest first
    attention: Attention  # (rows, columns)
    box: Box | None  # in pixels of the image; None for a token that draws nothing, or if it saw no ink


@dataclass(frozen=True)
class Explanation:
    """A reading, token by token, on the image that was given."""

    title: str
    image: Image.Image  # upright
    latex: str
    tokens: tuple[ExplainedToken, ...]
    field: ReceptiveField
    placement: Placement

    @property
    def attention(self) -> Attention:
        """The attention of all tokens, (T, rows, columns)."""
        return np.stack([token.attention for token in self.tokens])


def build_explanation(
    *,
    title: str,
    image: Image.Image,
    canvas: npt.NDArray[np.uint8],
    latex: str,
    tokens: Sequence[str],
    probabilities: Sequence[float],
    alternatives: Sequence[Sequence[Alternative]],
    attention: Attention,
    field: ReceptiveField,
    placement: Placement,
    share: float = DEFAULT_SHARE,
) -> Explanation:
    """Put together what is known about a reading, and find the boxes.

    Args:
        title: what to call the image.
        image: as it was given, upright.
        canvas: the pixels that the model read, grey on white.
        latex: the reading as people write it.
        tokens: canonical tokens, without eos.
        probabilities: one for each token, and one more if the model came to eos.
        alternatives: for each of these, other tokens with their probabilities; or nothing at all.
        attention: for each of these, (T, rows, columns).
        field: of the model.
        placement: of the image on the canvas.
        share: of a token's attention that its box holds.

    Raises:
        ExplanationError: if there is no token, or not as much of one as of the other.
    """
    steps = [*tokens, EOS][: len(probabilities)]
    alternatives = alternatives or [()] * len(steps)
    if not steps or not len(steps) == len(attention) == len(probabilities) == len(alternatives):
        raise ExplanationError(
            f"{title}: nothing was read, or attention was not kept; there is nothing to show."
        )
    shown = [*visible_tokens(tokens), False][: len(steps)]
    boxes = attention_boxes(attention, field=field, ink=find_ink(canvas), share=share)
    return Explanation(
        title=title,
        image=image,
        latex=latex,
        tokens=tuple(
            ExplainedToken(
                text=text,
                visible=visible,
                probability=float(probability),
                alternatives=tuple(others[:NUM_ALTERNATIVES]),
                attention=seen,
                box=placement.to_image(box) if visible and box is not None else None,
            )
            for text, visible, probability, others, seen, box in zip(
                steps, shown, probabilities, alternatives, attention, boxes, strict=True
            )
        ),
        field=field,
        placement=placement,
    )
