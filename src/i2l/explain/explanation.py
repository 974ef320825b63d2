"""An image read and explained: each token of the reading with its attention, box, probability, alternatives.

Beam search keeps the attention of its winner. `replay_tokens` computes it again from the printed tokens
alone, which are given back to the model step by step. So it also works for a reading whose attention was not
kept, and shows that the attention belongs to what was printed.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import numpy.typing as npt
from PIL import Image

from i2l.errors import I2LError
from i2l.explain.attention import Placement
from i2l.formulas.vocabulary import EOS, Vocabulary
from i2l.images.ink import find_pieces
from i2l.images.open import ImageSource, open_image
from i2l.images.prepare import Box, place_on_canvas
from i2l.inference.boxes import DEFAULT_SHARE, MAX_PIECES, Attention, find_ink, match_tokens, visible_tokens
from i2l.inference.decoding import Backend
from i2l.inference.reader import Reader
from i2l.model.config import AxisField, ReceptiveField

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
    canvas: npt.NDArray[np.uint8]  # what the model read: the image prepared, on white

    @property
    def attention(self) -> Attention:
        """The attention of all tokens, (T, rows, columns)."""
        return np.stack([token.attention for token in self.tokens])

    def on_canvas(self, shape: tuple[int, int] | None = None) -> "Explanation":
        """Return the same reading on what the model read, with the white around the formula.

        Args:
            shape: height and width of the part in the middle of the canvas that is shown. If None, it is all
                that the model can look at: for some networks that is the whole canvas, for others the cells
                near ink.
        """
        if shape is None:
            top, bottom = _reach(self.attention.max(axis=(0, 2)), self.field.rows)
            left, right = _reach(self.attention.max(axis=(0, 1)), self.field.columns)
        else:
            top, left = ((side - wanted) // 2 for side, wanted in zip(self.canvas.shape, shape, strict=True))
            bottom, right = top + shape[0], left + shape[1]
        placement = Placement(
            height_px=bottom - top, width_px=right - left, offset_x=float(left), offset_y=float(top)
        )
        return replace(
            self,
            image=Image.fromarray(self.canvas[top:bottom, left:right]),
            tokens=tuple(
                replace(token, box=token.box and placement.to_image(self.placement.to_canvas(token.box)))
                for token in self.tokens
            ),
            placement=placement,
        )


def _reach(seen: npt.NDArray[np.floating], axis: AxisField) -> tuple[int, int]:
    """Find the pixels from the first to the last cell with any attention, (cells,), and the frame beside."""
    cells = np.flatnonzero(seen)
    first, last = (int(cells[0]), int(cells[-1])) if len(cells) else (0, axis.num_cells - 1)
    start = axis.core(first)[0] if first else 0
    return start, axis.core(last)[1] if last < axis.num_cells - 1 else axis.canvas_px


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
    pieces = find_pieces(find_ink(canvas))
    boxes: list[Box | None] = [None] * len(steps)
    if 0 < len(pieces) <= MAX_PIECES:
        read = [*tokens][: len(steps)]
        seen, resized = attention[: len(read)], placement.scale_x != 1
        boxes[: len(read)] = match_tokens(
            read, seen, pieces, canvas, field=field, share=share, resized=resized
        ).boxes
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
        canvas=canvas,
    )


@dataclass(frozen=True)
class Replay:
    """One reading, step by step, eos last."""

    log_probs: npt.NDArray[np.float32]  # of every token of the vocabulary, (T + 1, K)
    attention: Attention  # (T + 1, rows, columns)


def replay_tokens(
    backend: Backend, canvases: npt.NDArray[np.uint8], readings: Sequence[Sequence[int]]
) -> list[Replay]:
    """Feed readings back to the model.

    Args:
        backend: a model.
        canvases: the images on the model's canvas, (B, height, width).
        readings: the token ids of each, without eos.
    """
    arrays = backend.arrays
    memory = backend.encode(canvases)
    state = backend.start(memory)
    steps = max(len(reading) for reading in readings) + 1
    inputs = np.full((len(readings), steps), Vocabulary.eos_id, np.int64)
    inputs[:, 0] = Vocabulary.bos_id
    for row, reading in zip(inputs, readings, strict=True):
        row[1 : len(reading) + 1] = reading
    log_probs, attention = [], []
    for token_ids in inputs.T:
        logits, state, seen = backend.step(memory, state, arrays.integers(token_ids))
        log_probs.append(arrays.numpy(arrays.log_softmax(logits)))
        attention.append(arrays.numpy(seen))
    all_log_probs, all_attention = np.stack(log_probs, axis=1), np.stack(attention, axis=1)
    return [
        Replay(
            all_log_probs[row, : len(reading) + 1], all_attention[row, : len(reading) + 1].astype(np.float32)
        )
        for row, reading in enumerate(readings)
    ]


def find_alternatives(
    log_probs: npt.NDArray[np.float32], token_ids: Sequence[int], vocabulary: Vocabulary, *, count: int
) -> list[list[tuple[str, float]]]:
    """Return for each step the likeliest other tokens and their probabilities; bos is none.

    Args:
        log_probs: of a replay, (T, K).
        token_ids: the tokens that were read, as many as steps.
        vocabulary: of the model.
        count: how many others.
    """
    others = log_probs.astype(np.float64)
    others[:, Vocabulary.bos_id] = -np.inf
    others[np.arange(len(token_ids)), list(token_ids)] = -np.inf
    best = np.argsort(-others, axis=1, kind="stable")[:, :count]
    return [
        [(vocabulary.tokens[index], float(np.exp(row[index]))) for index in places if row[index] > -np.inf]
        for row, places in zip(others, best.tolist(), strict=True)
    ]


def explain_image(
    reader: Reader,
    source: ImageSource,
    *,
    title: str,
    scale: float | None = None,
    share: float | None = None,
) -> Explanation:
    """Read an image and explain the reading.

    Args:
        reader: reads it.
        source: a path, the bytes of a file, an array, or an open image.
        title: what to call it.
        scale: as in `Reader.read`.
        share: of a token's attention that its box holds; the model's own if None.

    Raises:
        ImageError: if there is no formula in it.
        ExplanationError: if nothing was read.
    """
    image = open_image(source)
    reading = reader.read(image, scale=scale)
    model = reader.that_read(reading).model
    canvases = place_on_canvas([reading.prepared.pixels], canvas_shape=model.config.canvas_shape)
    token_ids = model.vocabulary.encode(reading.tokens)
    (replay,) = replay_tokens(model.backend, canvases, [token_ids])
    steps = [*token_ids, Vocabulary.eos_id] if reading.finished else token_ids
    log_probs = replay.log_probs[: len(steps)]
    return build_explanation(
        title=title,
        image=image,
        canvas=canvases[0],
        latex=reading.latex,
        tokens=reading.tokens,
        probabilities=np.exp(log_probs[np.arange(len(steps)), steps]).tolist(),
        alternatives=find_alternatives(log_probs, steps, model.vocabulary, count=NUM_ALTERNATIVES),
        attention=replay.attention[: len(steps)],
        field=model.config.receptive_field(),
        placement=Placement.prepared(reading.prepared, canvas_shape=model.config.canvas_shape),
        share=model.box_share if share is None else share,
    )
