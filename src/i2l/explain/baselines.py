"""What localisation is compared with: attention that never saw the image's content.

Each gives, for the tokens that count, attention of the model's shape.
"""

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from i2l.explain.localized_tokens import LocalizedTokens
from i2l.inference.attention_boxes import Attention
from i2l.model.receptive_field import AxisField, ReceptiveField

Baseline = Callable[[LocalizedTokens, ReceptiveField, np.random.Generator], Attention]


def uniform_attention(
    counted: LocalizedTokens, field: ReceptiveField, generator: np.random.Generator
) -> Attention:
    """Look at every cell alike."""
    return np.full((len(counted.steps), *field.grid), 1 / np.prod(field.grid))


def random_attention(
    counted: LocalizedTokens, field: ReceptiveField, generator: np.random.Generator
) -> Attention:
    """Look at one cell, any that has ink."""
    points = np.argwhere(counted.ink)
    cells = np.unique(
        np.stack([_cells(field.rows, points[:, 0]), _cells(field.columns, points[:, 1])], axis=1), axis=0
    )
    return _one_hot(cells[generator.integers(len(cells), size=len(counted.steps))], field)


def scan_attention(
    counted: LocalizedTokens, field: ReceptiveField, generator: np.random.Generator
) -> Attention:
    """Go from the left edge of the ink to its right edge at an even pace, half-way up."""
    points = np.argwhere(counted.ink)
    (top, left), (bottom, right) = points.min(axis=0), points.max(axis=0) + 1
    x = left + (counted.steps + 0.5) / counted.num_steps * (right - left)
    y = np.full_like(x, (top + bottom) / 2)
    return _one_hot(np.stack([_cells(field.rows, y), _cells(field.columns, x)], axis=1), field)


BASELINES: Final[dict[str, Baseline]] = {
    "random": random_attention,
    "uniform": uniform_attention,
    "left to right": scan_attention,
}


def _cells(axis: AxisField, pixels: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Give the cell in whose core each pixel lies; the frame belongs to the nearest."""
    cells: npt.NDArray[np.int64] = ((pixels - axis.core_start_px) // axis.stride_px).astype(np.int64)
    return cells.clip(0, axis.num_cells - 1)


def _one_hot(cells: npt.NDArray[np.int64], field: ReceptiveField) -> Attention:
    attention = np.zeros((len(cells), *field.grid))
    attention[np.arange(len(cells)), cells[:, 0], cells[:, 1]] = 1
    return attention
