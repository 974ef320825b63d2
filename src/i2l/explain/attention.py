"""Attention on the image: where cells lie on it, what share each pixel gets, and figures about both.

`Placement` says where the pixels of a file lie on the model's canvas: cropped, scaled, placed.

`AttentionMapper` turns attention over cells into density over pixels, of the canvas or of the file that was
read. Every way of spreading is separable: a cell's attention goes to rows and columns of pixels by weights
that sum to one along each axis, so a map sums to one like the attention it came from. What lands on the
canvas beside the file (the white that was added around it) is not on the map of the file; `outside` says how
much.

`measure_claims` checks the paper's observations: that most of the weight lies on one to four neighbouring
cells; that the model scans left to right (STRIPS) or left-right and up-down (NOPOOL); and that it looks at
empty margins only at the first and the last (eos) step. It is measured over all steps of what was read.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, get_args

import numpy as np
import numpy.typing as npt

from i2l.errors import require_choice
from i2l.images.ink import InkMask as Ink
from i2l.images.prepare import FRAME_PX, Box, PreparedImage, centre
from i2l.inference.boxes import Attention
from i2l.model.config import AxisField, ReceptiveField

if TYPE_CHECKING:
    from i2l.evaluation.scores import Interval


@dataclass(frozen=True, kw_only=True)
class Placement:
    """An affine map from a file's pixels to the canvas, frame included: canvas = offset + scale * file."""

    height_px: int  # of the file's image, upright
    width_px: int
    scale_x: float = 1.0  # canvas pixels for a pixel of the file
    scale_y: float = 1.0
    offset_x: float = 0.0  # where the file's left edge would lie on the canvas, had it not been cropped
    offset_y: float = 0.0

    @classmethod
    def centred(cls, image_shape: tuple[int, int], *, canvas_shape: tuple[int, int]) -> "Placement":
        """Place an image that goes on the canvas as it is, as in training."""
        height, width = image_shape
        return cls(
            height_px=height,
            width_px=width,
            offset_x=centre(width, canvas_shape[1]) + FRAME_PX,
            offset_y=centre(height, canvas_shape[0]) + FRAME_PX,
        )

    @classmethod
    def prepared(cls, image: PreparedImage, *, canvas_shape: tuple[int, int]) -> "Placement":
        """Place an image that was cropped and scaled to be read."""
        height, width = image.pixels.shape
        return cls(
            height_px=image.file_size_px[1],
            width_px=image.file_size_px[0],
            scale_x=image.scale,
            scale_y=image.scale,
            offset_x=centre(width, canvas_shape[1]) + FRAME_PX - image.scale * image.left_px,
            offset_y=centre(height, canvas_shape[0]) + FRAME_PX - image.scale * image.top_px,
        )

    def to_canvas(self, box: Box) -> Box:
        """Move a box of the file onto the canvas."""
        left, top, right, bottom = box
        return (
            self.offset_x + self.scale_x * left,
            self.offset_y + self.scale_y * top,
            self.offset_x + self.scale_x * right,
            self.offset_y + self.scale_y * bottom,
        )

    def to_image(self, box: Box) -> Box:
        """Move a box of the canvas into the file, cut at its edges."""
        left, top, right, bottom = box
        return (
            min(max((left - self.offset_x) / self.scale_x, 0.0), self.width_px),
            min(max((top - self.offset_y) / self.scale_y, 0.0), self.height_px),
            min(max((right - self.offset_x) / self.scale_x, 0.0), self.width_px),
            min(max((bottom - self.offset_y) / self.scale_y, 0.0), self.height_px),
        )

    def row_edges(self) -> npt.NDArray[np.float64]:
        """Compute where the edges of the file's pixel rows lie on the canvas, (height + 1,)."""
        return self.offset_y + self.scale_y * np.arange(self.height_px + 1, dtype=np.float64)

    def column_edges(self) -> npt.NDArray[np.float64]:
        """Compute where the edges of the file's pixel columns lie on the canvas, (width + 1,)."""
        return self.offset_x + self.scale_x * np.arange(self.width_px + 1, dtype=np.float64)


Array = npt.NDArray[np.float64]
Spread = Literal["nearest", "field", "bilinear", "gaussian"]

SPREADS: Final[tuple[Spread, ...]] = get_args(Spread)
# Two standard deviations to the edge of the field: what a cell sees of its outermost pixels is little.
_SIGMAS_TO_EDGE: Final = 2.0


def axis_weights(axis: AxisField, spread: Spread) -> Array:
    """Share each cell's attention among the pixels of an axis: (cells, pixels), rows sum to 1.

    ``nearest`` shares it evenly over the core and ``field`` over all that the cell sees; ``bilinear`` falls
    linearly to the neighbours' centres and is level beyond the outermost ones; ``gaussian`` is a bell over
    the field.

    Raises:
        I2LError: for another name.
    """
    require_choice(spread, Spread, "way of spreading")
    pixels = np.arange(axis.canvas_px) + 0.5
    cells = range(axis.num_cells)
    centres = np.array([axis.centre(cell) for cell in cells])[:, None]
    starts, ends = np.array([axis.field(cell) for cell in cells]).T[:, :, None]
    in_field = (starts < pixels) & (pixels < ends)
    distance = np.abs(pixels - centres)
    inside = (axis.core_start_px < pixels) & (pixels < axis.core(axis.num_cells - 1)[1])
    if spread == "nearest":
        weights = (distance < axis.stride_px / 2).astype(np.float64)
    elif spread == "field":
        weights = in_field.astype(np.float64)
    elif spread == "bilinear":
        clamped = np.clip(pixels, centres[0], centres[-1])
        weights = np.maximum(0.0, 1 - np.abs(clamped - centres) / axis.stride_px) * inside
    else:
        sigma = axis.field_px / 2 / _SIGMAS_TO_EDGE
        weights = np.exp(-0.5 * (distance / sigma) ** 2) * in_field
    normalized: Array = weights / weights.sum(axis=1, keepdims=True)
    return normalized


def resample_weights(weights: Array, edges: Array) -> Array:
    """Move weights from the canvas to other pixels, each taking the part of the canvas that it covers.

    Args:
        weights: (cells, canvas pixels)
        edges: of the other pixels on the canvas, rising, (pixels + 1,)

    Returns:
        (cells, pixels); a row sums to the share that lies between the first and the last edge.
    """
    corners = np.arange(weights.shape[1] + 1)
    covered = np.concatenate([np.zeros((len(weights), 1)), np.cumsum(weights, axis=1)], axis=1)
    return np.stack([np.diff(np.interp(edges, corners, row)) for row in covered])


class AttentionMapper:
    """Draws the attention of one reading on its image, pixel by pixel."""

    def __init__(
        self, field: ReceptiveField, *, placement: Placement | None = None, spread: Spread = "bilinear"
    ) -> None:
        """Work out the weights of all rows and columns; without a placement, of the canvas itself.

        Raises:
            I2LError: if there is no such way of spreading.
        """
        self._rows, self._columns = axis_weights(field.rows, spread), axis_weights(field.columns, spread)
        if placement is not None:
            self._rows = resample_weights(self._rows, placement.row_edges())
            self._columns = resample_weights(self._columns, placement.column_edges())

    def map(self, attention: npt.NDArray[np.floating]) -> Array:
        """Map attention to the share that each pixel gets: (..., rows, columns) to (..., height, width)."""
        density: Array = np.swapaxes(self._rows, 0, 1) @ attention.astype(np.float64) @ self._columns
        return density

    def outside(self, attention: npt.NDArray[np.floating]) -> Array:
        """Compute the share that falls beside the image: (..., rows, columns) to (...)."""
        kept = self._rows.sum(axis=1) @ attention.astype(np.float64) @ self._columns.sum(axis=1)
        return np.asarray(attention.sum(axis=(-2, -1), dtype=np.float64) - kept)


FOCUS_SHARE: Final = 0.9
MAX_FOCUS_CELLS: Final = 4  # of the paper's "1-4 neighborhood"
NUM_PHASES: Final = 10
_COUNT_ENDS: Final = (1, 2, 4, 8, 16)  # upper ends of the classes of cells
_SECOND_PLACE: Final = 0.1  # attention on one cell, away from the peak, that makes a second place


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
    one_place: float  # steps in which no cell farther from the peak has a tenth of the attention
    mean_entropy_bits: float
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
    # ... and of these on the margins: cells beyond the outermost ink
    margin_first: float
    margin_between: float
    margin_eos: float
    # How evenly the cells were looked at over a whole reading, 0 to 100
    ase: float
    aae: float
    # Of all figures that are means: with the range that holds them if readings are drawn again
    intervals: "dict[str, Interval]"


def cells_for_share(attention: Attention, share: float) -> npt.NDArray[np.int64]:
    """Count the cells, the fullest first, that hold a share of each step's attention: (T, ...) to (T,)."""
    flat = np.sort(attention.reshape(len(attention), -1).astype(np.float64), axis=1)[:, ::-1]
    wanted = share * flat.sum(axis=1, keepdims=True) * (1 - 1e-9)
    counts: npt.NDArray[np.int64] = (flat.cumsum(axis=1) < wanted).sum(axis=1) + 1
    return counts


def entropy_bits(attention: Attention) -> Array:
    """Compute the entropy of each step's attention in bits: (T, ...) to (T,)."""
    flat = attention.reshape(len(attention), -1).astype(np.float64)
    entropy: Array = -(flat * np.log2(np.where(flat > 0, flat, 1))).sum(axis=1)
    return entropy


def attention_errors(attention: Attention) -> tuple[float, float]:
    """Compute ASE_N and AAE_N of one reading, (T, ...) with eos; `i2l.model` has them in torch."""
    steps = len(attention)
    seen = attention.reshape(steps, -1).sum(axis=0, dtype=np.float64)
    difference = seen - steps / len(seen)
    share = (len(seen) - 1) / len(seen)
    ase = 100 * float(np.square(difference).sum()) / (steps**2 * share)
    return ase, 100 * float(np.abs(difference).sum()) / (2 * steps * share)


def attention_centres(attention: Attention) -> Array:
    """Compute the mean cell of each step's attention: (T, rows, columns) to (T, 2), row and column."""
    rows, columns = (np.arange(size) for size in attention.shape[1:])
    return np.stack([attention.sum(axis=2) @ rows, attention.sum(axis=1) @ columns], axis=1)


def measure_claims(readings: Iterable[tuple[Attention, Ink]], *, rounds: int = 0) -> AttentionClaims:
    """Measure attention over readings that end in eos.

    Args:
        readings: at least one; of each the attention (T, rows, columns), the last step being eos, and which
            cells have ink, (rows, columns).
        rounds: of resampling the readings, for the intervals; none if 0.
    """
    num_cells, parts = 1, []
    for attention, inked in readings:
        num_cells = inked.size
        parts.append(_measure(attention.astype(np.float64), inked))
    values = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    means = {name: _mean(numbers) for name, numbers in values.items()}
    cells, entropy = values["mean_cells"], values["mean_entropy_bits"]
    lengths = [len(part["mean_cells"]) for part in parts]
    phases = np.concatenate([np.arange(length) * NUM_PHASES // length for length in lengths])
    classes = np.searchsorted(_COUNT_ENDS, cells)
    return AttentionClaims(
        num_readings=len(parts),
        num_steps=len(cells),
        mean_cells=means["mean_cells"],
        median_cells=float(np.median(cells)),
        share_up_to_four=means["share_up_to_four"],
        cell_counts={
            label: float((classes == number).mean()) for number, label in enumerate(_count_labels())
        },
        around_peak=means["around_peak"],
        one_place=means["one_place"],
        mean_entropy_bits=means["mean_entropy_bits"],
        entropy_bits=[_mean(entropy[phases == phase]) for phase in range(NUM_PHASES)],
        max_entropy_bits=float(np.log2(num_cells)),
        right=means["right"],
        still=means["still"],
        left=means["left"],
        up=means["up"],
        down=means["down"],
        order_correlation=means["order_correlation"],
        empty_first=means["empty_first"],
        empty_between=means["empty_between"],
        empty_eos=means["empty_eos"],
        margin_first=means["margin_first"],
        margin_between=means["margin_between"],
        margin_eos=means["margin_eos"],
        ase=means["ase"],
        aae=means["aae"],
        intervals=mean_intervals(parts, rounds=rounds) if rounds else {},
    )


def mean_intervals(parts: Sequence[Mapping[str, Array]], *, rounds: int) -> "dict[str, Interval]":
    """Compute the mean of each name's values and its range if the samples were drawn again.

    Args:
        parts: of each sample, values by name, any number of them.
        rounds: of resampling.
    """
    from i2l.evaluation.scores import quantiles, resampled_sums  # comes with i2l[evaluate]

    names = list(parts[0])
    sums = np.array([[part[name].sum() for name in names] for part in parts], np.float64)
    counts = np.array([[len(part[name]) for name in names] for part in parts], np.float64)
    drawn = resampled_sums(np.concatenate([sums, counts], axis=1), rounds=rounds, seed=0)
    means = drawn[:, : len(names)] / np.maximum(drawn[:, len(names) :], 1)
    all_means = sums.sum(axis=0) / np.maximum(counts.sum(axis=0), 1)
    return {name: quantiles(float(all_means[number]), means[:, number]) for number, name in enumerate(names)}


def _count_labels() -> list[str]:
    starts = [1, *(end + 1 for end in _COUNT_ENDS)]
    spans = [str(a) if a == b else f"{a} to {b}" for a, b in zip(starts, _COUNT_ENDS, strict=False)]
    return [*spans, f"over {_COUNT_ENDS[-1]}"]


def _mean(values: npt.NDArray[np.generic]) -> float:
    return float(values.mean()) if len(values) else 0.0


def _measure(attention: Array, inked: Ink) -> dict[str, Array]:
    """Compute for one reading the values whose means over all readings are the figures, by their names."""
    steps = len(attention)
    centres = attention_centres(attention)
    upright, sideways = np.diff(centres, axis=0).T
    steady = np.abs(sideways) <= 0.5
    cells = cells_for_share(attention, FOCUS_SHARE)
    around_peak, farther = _around_peak(attention)
    ase, aae = attention_errors(attention)
    empty, margin = (attention[:, where].sum(axis=1) for where in (~inked, margin_cells(inked)))
    measured = {
        "mean_cells": cells,
        "share_up_to_four": cells <= MAX_FOCUS_CELLS,
        "around_peak": around_peak,
        "one_place": farther < _SECOND_PLACE,
        "mean_entropy_bits": entropy_bits(attention),
        "right": sideways > 0.5,
        "still": steady,
        "left": sideways < -0.5,
        "up": upright[steady] < -0.5,
        "down": upright[steady] > 0.5,
        "order_correlation": [_rank_correlation(centres[:-1, 1])] if steps > 2 else [],
        "ase": [ase],
        "aae": [aae],
    }
    for name, seen in (("empty", empty), ("margin", margin)):
        measured[f"{name}_first"] = seen[:-1][:1]
        measured[f"{name}_between"] = seen[1:-1]
        measured[f"{name}_eos"] = seen[-1:]
    return {name: np.asarray(values, np.float64) for name, values in measured.items()}


def margin_cells(inked: Ink) -> Ink:
    """Tell which cells lie beyond the outermost ones with ink, (rows, columns)."""
    margin = np.ones_like(inked)
    if inked.any():
        rows, columns = (np.flatnonzero(inked.any(axis=axis)) for axis in (1, 0))
        margin[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1] = False
    return margin


def _around_peak(attention: Array) -> tuple[Array, Array]:
    """The attention within one cell of the fullest, diagonally too; and on the fullest of the others."""
    steps, rows, columns = attention.shape
    row, column = np.divmod(attention.reshape(steps, -1).argmax(axis=1), columns)
    near_rows = np.abs(np.arange(rows) - row[:, None]) <= 1  # (T, rows)
    near_columns = np.abs(np.arange(columns) - column[:, None]) <= 1
    near = near_rows[:, :, None] & near_columns[:, None, :]
    return np.where(near, attention, 0).sum(axis=(1, 2)), np.where(near, 0, attention).max(axis=(1, 2))


def _rank_correlation(values: Array) -> float:
    """Compute Spearman's correlation of values with their order; 0 if all values are the same."""
    from scipy.stats import spearmanr  # here, because explaining one image works without scipy

    if np.ptp(values) == 0:
        return 0.0
    return float(spearmanr(values, np.arange(len(values))).statistic)
