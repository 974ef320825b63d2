"""Does the exported network compute what the checkpoint computes? A difference is an error, never a skip."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from i2l.errors import I2LError
from i2l.formulas.vocabulary import Vocabulary
from i2l.images.canvas import place_on_canvas
from i2l.inference.backends import Backend, TorchBackend

if TYPE_CHECKING:
    from i2l.model.network import Network

# Root mean square of the difference over that of what is compared, logits taken from their mean.
# On the presets with random weights: float32 5e-6, float16 4e-4, int8 2e-2.
TOLERANCES: Final = {"float32": 1e-4, "float16": 1e-2, "int8": 1e-1}
STEPS = 6
SIZES = ((20, 30), (60, 400), (128, 1088))  # of the ink, in pixels; cut to the canvas


class ParityError(I2LError):
    """The exported network does not compute what the checkpoint computes."""


@dataclass(frozen=True)
class ParityResult:
    """The largest relative differences that were found."""

    logits: float
    attention: float
    tolerance: float


def check_parity(model: "Network", backend: Backend, *, precision: str) -> ParityResult:
    """Compare an exported network with its torch model: several windows, batches and numbers of hypotheses.

    Raises:
        ParityError: if they differ by more than the precision explains.
    """
    tolerance = TOLERANCES[precision]
    height, width = model.config.canvas_shape
    sizes = [(min(rows, height - 2), min(columns, width - 2)) for rows, columns in SIZES]
    random = np.random.default_rng(0)
    images = [random.integers(0, 256, size).astype(np.uint8) for size in sizes]
    batches = [*([image] for image in images), images]
    found = [0.0, 0.0]
    for hypotheses, batch in enumerate(batches, start=1):
        pixels = place_on_canvas(batch, canvas_shape=(height, width))
        tokens = random.integers(2, model.vocab_size, (STEPS, len(batch) * hypotheses))
        expected = _run(TorchBackend(model), pixels, tokens, hypotheses)
        computed = _run(backend, pixels, tokens, hypotheses)
        found = [
            max(old, _difference(*pair))
            for old, pair in zip(found, zip(expected, computed, strict=True), strict=True)
        ]
    if not max(found) <= tolerance:  # not a number is a difference too
        raise ParityError(
            f"The exported {precision} network differs from the checkpoint: {found[0]:.1e} in logits and "
            f"{found[1]:.1e} in attention, where {tolerance:.0e} is allowed. It was not kept."
        )
    return ParityResult(logits=found[0], attention=found[1], tolerance=tolerance)


def _run(
    backend: Backend, pixels: NDArray[np.uint8], tokens: NDArray[np.int64], hypotheses: int
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Feed the same tokens; give the logits of all steps, from their mean, and the attention."""
    arrays = backend.arrays
    memory = backend.encode(pixels)
    rows = arrays.integers(np.arange(len(pixels)).repeat(hypotheses))
    state = {name: part[rows] for name, part in backend.start(memory).items()}
    inputs = np.concatenate([np.full_like(tokens[:1], Vocabulary.bos_id), tokens])
    all_logits, all_attention = [], []
    for token_ids in inputs:
        logits, state, attention = backend.step(memory, state, arrays.integers(token_ids))
        all_logits.append(arrays.numpy(logits))
        all_attention.append(arrays.numpy(attention))
    stacked = np.stack(all_logits)
    return stacked - stacked.mean(axis=2, keepdims=True), np.stack(all_attention)


def _difference(expected: NDArray[Any], computed: NDArray[Any]) -> float:
    return float(np.sqrt(np.square(expected - computed).mean() / np.square(expected).mean()))
