"""The paper's observations about attention, as figures that can be checked.

It says that most of the weight lies on one to four neighbouring cells; that the model scans left to right
(STRIPS) or left-right and up-down (NOPOOL); and that it looks at empty margins only at the first and the last
(eos) step. Everything is measured over all steps of what was read, eos included.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from i2l.images.ink_symbols import Ink
from i2l.inference.attention_boxes import Attention

Array = npt.NDArray[np.float64]

FOCUS_SHARE: Final = 0.9
MAX_FOCUS_CELLS: Final = 4  # of the paper's "1-4 neighborhood"
NUM_PHASES: Final = 10
_COUNT_ENDS: Final = (1, 2, 4, 8, 16)  # upper ends of the classes of cells


@dataclass(frozen=True)
class AttentionClaims:
    """The figures of one model on one set of readings."""

    num_readings: int
    num_steps: int
    # How sharp: cells that together hold 90 % of a step's attention
    mean_cells: float
    median_cells: float
    share_up_to_four: float
    cell_counts: dict[str, float]  # share of the steps by number of cells
    around_peak: float  # attention within one cell of the peak, on average
    entropy_bits: list[float]  # by tenths of the reading
    max_entropy_bits: float
    # In which order: moves of the centre of attention from one step to the next, as shares
    right: float  # by more than half a cell
    still: float
    left: float
    up: float  # of the moves that stay within half a cell sideways
    down: float
    order_correlation: float  # Spearman's, of step and place from left to right; mean over the readings
    # Where there is nothing: attention on cells without ink
    empty_first: float  # at the first step
    empty_between: float
    empty_eos: float  # at the eos step
    # How evenly the cells were looked at over a whole reading, 0 to 100
    ase: float
    aae: float


def cells_for_share(attention: Attention, share: float) -> npt.NDArray[np.int64]:
    """Give how many cells, the fullest first, hold a share of each step's attention: (T, ...) to (T,)."""
    flat = np.sort(attention.reshape(len(attention), -1).astype(np.float64), axis=1)[:, ::-1]
    wanted = share * flat.sum(axis=1, keepdims=True) * (1 - 1e-9)
    counts: npt.NDArray[np.int64] = (flat.cumsum(axis=1) < wanted).sum(axis=1) + 1
    return counts


def entropy_bits(attention: Attention) -> Array:
    """Give the entropy of each step's attention in bits: (T, ...) to (T,)."""
    flat = attention.reshape(len(attention), -1).astype(np.float64)
    entropy: Array = -(flat * np.log2(np.where(flat > 0, flat, 1))).sum(axis=1)
    return entropy


def attention_errors(attention: Attention) -> tuple[float, float]:
    """Give ASE_N and AAE_N of one reading, (T, ...) with eos; as `i2l.model.objective` has them in torch."""
    steps = len(attention)
    seen = attention.reshape(steps, -1).sum(axis=0, dtype=np.float64)
    difference = seen - steps / len(seen)
    share = (len(seen) - 1) / len(seen)
    ase = 100 * float(np.square(difference).sum()) / (steps**2 * share)
    return ase, 100 * float(np.abs(difference).sum()) / (2 * steps * share)


def attention_centres(attention: Attention) -> Array:
    """Give the mean place of each step's attention in cells, row and column: (T, rows, columns) to (T, 2)."""
    rows, columns = (np.arange(size) for size in attention.shape[1:])
    return np.stack([attention.sum(axis=2) @ rows, attention.sum(axis=1) @ columns], axis=1)


def measure_claims(readings: Iterable[tuple[Attention, Ink]]) -> AttentionClaims:
    """Measure attention over readings that end in eos.

    Args:
        readings: at least one; of each the attention (T, rows, columns), the last step being eos, and which
            cells have ink, (rows, columns).
    """
    parts = [_measure(attention.astype(np.float64), inked) for attention, inked in readings]

    def joined(name: str) -> Array:
        return np.concatenate([part[name] for part in parts])

    cells, phases, entropy = joined("cells"), joined("phases"), joined("entropy")
    sideways, upright, empty, place = (joined(name) for name in ("sideways", "upright", "empty", "place"))
    steady = np.abs(sideways) <= 0.5
    classes = np.searchsorted(_COUNT_ENDS, cells)
    return AttentionClaims(
        num_readings=len(parts),
        num_steps=len(cells),
        mean_cells=float(cells.mean()),
        median_cells=float(np.median(cells)),
        share_up_to_four=float((cells <= MAX_FOCUS_CELLS).mean()),
        cell_counts={
            label: float((classes == number).mean()) for number, label in enumerate(_count_labels())
        },
        around_peak=float(joined("around_peak").mean()),
        entropy_bits=[_mean(entropy[phases == phase]) for phase in range(NUM_PHASES)],
        max_entropy_bits=float(parts[0]["max_entropy"][0]),
        right=_mean(sideways > 0.5),
        still=_mean(steady),
        left=_mean(sideways < -0.5),
        up=_mean(upright[steady] < -0.5),
        down=_mean(upright[steady] > 0.5),
        order_correlation=_mean(joined("correlation")),
        empty_first=_mean(empty[place == 0]),
        empty_between=_mean(empty[place == 1]),
        empty_eos=_mean(empty[place == 2]),
        ase=_mean(joined("ase")),
        aae=_mean(joined("aae")),
    )


def _count_labels() -> list[str]:
    starts = [1, *(end + 1 for end in _COUNT_ENDS)]
    spans = [str(a) if a == b else f"{a} to {b}" for a, b in zip(starts, _COUNT_ENDS, strict=False)]
    return [*spans, f"over {_COUNT_ENDS[-1]}"]


def _mean(values: npt.NDArray[np.generic]) -> float:
    return float(values.mean()) if len(values) else 0.0


def _measure(attention: Array, inked: Ink) -> dict[str, Array]:
    steps = len(attention)
    centres = attention_centres(attention)
    ase, aae = attention_errors(attention)
    place = np.ones(steps)  # 0 at the first step, 2 at eos, else 1
    place[0], place[-1] = 0, 2
    return {
        "cells": cells_for_share(attention, FOCUS_SHARE).astype(np.float64),
        "around_peak": _around_peak(attention),
        "entropy": entropy_bits(attention),
        "max_entropy": np.array([np.log2(inked.size)]),
        "phases": np.arange(steps) * NUM_PHASES // steps,
        "upright": np.diff(centres[:, 0]),
        "sideways": np.diff(centres[:, 1]),
        "correlation": np.array([_rank_correlation(centres[:-1, 1])] if steps > 2 else []),
        "empty": attention[:, ~inked].sum(axis=1),
        "place": place,
        "ase": np.array([ase]),
        "aae": np.array([aae]),
    }


def _around_peak(attention: Array) -> Array:
    """The attention within one cell of the fullest, sideways, upright and diagonally."""
    steps, rows, columns = attention.shape
    row, column = np.divmod(attention.reshape(steps, -1).argmax(axis=1), columns)
    near_rows = np.abs(np.arange(rows) - row[:, None]) <= 1  # (T, rows)
    near_columns = np.abs(np.arange(columns) - column[:, None]) <= 1
    around: Array = np.einsum("trc,tr,tc->t", attention, near_rows, near_columns)
    return around


def _rank_correlation(values: Array) -> float:
    """Spearman's correlation of values with their order; equal values share their rank."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[inverse]
    if ranks.std() == 0:
        return 0.0
    return float(np.corrcoef(ranks, np.arange(len(values)))[0, 1])
