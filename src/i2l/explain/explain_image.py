"""An image read and explained: the reader's answer, and what the model saw and considered at each token."""

import numpy as np

from i2l.explain.explanation import NUM_ALTERNATIVES, Explanation, build_explanation
from i2l.explain.placement import Placement
from i2l.explain.replay import find_alternatives, replay_tokens
from i2l.formulas.vocabulary import Vocabulary
from i2l.images.canvas import place_on_canvas
from i2l.images.open import ImageSource, open_image
from i2l.inference.reader import Reader
from i2l.model.receptive_field import receptive_field


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
    model = reader.model
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
        field=receptive_field(model.config),
        placement=Placement.prepared(reading.prepared, canvas_shape=model.config.canvas_shape),
        share=model.box_share if share is None else share,
    )
