"""Whether a reading makes sense: a model writes something about any picture, also about one of no formula.

Only a model that was calibrated is asked, as the doubt of one that cannot read yet says nothing about the
picture. What the limits rest on is in docs/LOG.md.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np

from i2l.images.canvas import WHITE
from i2l.images.prepare import MIN_DENSE_PX, NotAFormulaError
from i2l.inference.reading import Reading

_LONG: Final = 6  # tokens: of fewer, the doubt may be about one odd symbol
_MEAN_LOG_PROB: Final = -0.6  # of a token; in long readings of formulas, also misread ones, it is above -.5
_RUNAWAY: Final = 60  # tokens: shorter readings may well say the same thing again
_VARIETY: Final = 0.2  # distinct runs of four tokens among all of them; formulas have .3 and more ...
_DOUBTFUL: Final = 0.01  # ... or, as a matrix of zeros, are read with a greater confidence
_DENSE: Final = 0.42  # share of ink; bold capitals have .4 ...
_SURE: Final = 0.5  # ... and are read with a greater probability


def find_nonsense(reading: Reading) -> NotAFormulaError | None:
    """Give an error for a reading of something that is no formula, as far as that can be told."""
    if not reading.tokens:
        return NotAFormulaError("This does not look like a formula: nothing can be read in it.")
    probabilities = np.maximum(reading.token_probabilities, 1e-9)
    if len(reading.tokens) >= _LONG and np.log(probabilities).mean() < _MEAN_LOG_PROB:
        return NotAFormulaError("This does not look like a formula: what can be read in it makes no sense.")
    if reading.confidence < _DOUBTFUL and _repeats_itself(reading.tokens):
        return NotAFormulaError("This does not look like a formula: the same is read in it over and over.")
    pixels = reading.prepared.pixels
    large = min(pixels.shape) / reading.prepared.scale >= MIN_DENSE_PX
    if large and np.exp(reading.log_prob) < _SURE and 1 - pixels.mean() / WHITE > _DENSE:
        return NotAFormulaError("This does not look like a formula: nearly half of it is ink.")
    return None


def _repeats_itself(tokens: Sequence[str]) -> bool:
    """Whether a long reading says little else than the same few things, as a model does that is lost."""
    runs = list(zip(tokens, tokens[1:], tokens[2:], tokens[3:], strict=False))
    return len(tokens) >= _RUNAWAY and len(set(runs)) < _VARIETY * len(runs)
