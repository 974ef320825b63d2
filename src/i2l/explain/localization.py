"""How well attention points at what was read: measured against true boxes, token by token.

Only tokens count that were read right and have a true box. Everything is measured on the model's canvas.

    pointing         the peak lies in the token's box; it is the mean place of attention within one cell of
                     the fullest cell, since symbols are smaller than cells
    cell pointing    the fullest cell's core touches the box: all that a single cell can do
    ink share        of the attention, each cell's share spread over the ink of its core, on the token's ink
    IoU              of the box that attention gives with the true one
    distance         from the peak to the centre of the box, also in median widths of the formula's symbols

Where several cells tie for the most attention, the mean over them counts.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from i2l.evaluation.bootstrap import ROUNDS, quantiles, resampled_sums
from i2l.evaluation.figures import Interval
from i2l.explain.baselines import BASELINES
from i2l.explain.box_fit import ShareFit, box_iou, fit_share
from i2l.explain.localized_tokens import (
    LocalizationError,
    LocalizationSample,
    LocalizedTokens,
    localized_tokens,
    true_boxes,
)
from i2l.explain.token_classes import TOKEN_CLASSES, token_class
from i2l.images.ink_symbols import Ink
from i2l.inference.attention_boxes import Attention, attention_boxes
from i2l.model.receptive_field import ReceptiveField

Array = npt.NDArray[np.float64]

METRICS: Final = {
    "pointing": "Peak in the box",
    "cell_pointing": "Peak's cell touches the box",
    "ink_share": "Attention on the token's ink",
    "iou": "Mean IoU of boxes",
    "iou_over_half": "IoU over 0.5",
    "distance_px": "Distance in pixels",
    "distance_widths": "Distance in symbol widths",
}
MODEL: Final = "model"
SIZES_PX: Final = (16, 32, 64)  # upper ends of the size classes, by a box's longer side
SIZE_LABELS: Final = ("under 16 px", "16 to 31 px", "32 to 63 px", "64 px and more")
POSITION_LABELS: Final = ("first fifth", "second fifth", "third fifth", "fourth fifth", "last fifth")


@dataclass(frozen=True)
class LocalizationScores:
    """The scores of some tokens."""

    label: str
    num_tokens: int
    figures: dict[str, Interval]  # by the keys of METRICS


@dataclass(frozen=True)
class LocalizationResult:
    """Localisation of one model on one set of samples, with the baselines beside it."""

    num_samples: int  # that have a token that counts
    num_tokens: int
    share: float  # of attention that a box holds
    systems: list[LocalizationScores]  # the model first, then the baselines
    by_class: list[LocalizationScores]
    by_size: list[LocalizationScores]
    by_position: list[LocalizationScores]
    sample_iou: dict[str, float]  # mean of each sample, by its name


def score_tokens(
    attention: Attention, boxes: npt.NDArray[np.int64], ink: Ink, *, field: ReceptiveField, share: float
) -> dict[str, Array]:
    """Give all scores of each token, (N,) by the keys of METRICS; arguments as in `LocalizedTokens`."""
    fullest = (attention == attention.max(axis=(1, 2), keepdims=True)).astype(np.float64)
    fullest /= fullest.sum(axis=(1, 2), keepdims=True)
    cell_y, cell_x = np.meshgrid(
        *([axis.centre(cell) for cell in range(axis.num_cells)] for axis in (field.rows, field.columns)),
        indexing="ij",
    )
    around = _sum_around(attention)
    peak_x, peak_y = _sum_around(attention * cell_x) / around, _sum_around(attention * cell_y) / around
    left, top, right, bottom = boxes.T[:, :, None, None]
    inside = (left <= peak_x) & (peak_x < right) & (top <= peak_y) & (peak_y < bottom)
    half_x, half_y = field.columns.stride_px / 2, field.rows.stride_px / 2
    touched = (
        (left < cell_x + half_x)
        & (cell_x - half_x < right)
        & (top < cell_y + half_y)
        & (cell_y - half_y < bottom)
    )
    distance = np.hypot(peak_x - (left + right) / 2, peak_y - (top + bottom) / 2)
    distance_px = (fullest * distance).sum(axis=(1, 2))
    found = attention_boxes(attention, field=field, ink=ink, share=share)
    iou = np.array([box_iou(a, tuple(b)) for a, b in zip(found, boxes.tolist(), strict=True)], np.float64)
    return {
        "pointing": (fullest * inside).sum(axis=(1, 2)),
        "cell_pointing": (fullest * touched).sum(axis=(1, 2)),
        "ink_share": _ink_share(attention, boxes, ink, field),
        "iou": iou,
        "iou_over_half": (iou > 0.5).astype(np.float64),
        "distance_px": distance_px,
        "distance_widths": distance_px / max(float(np.median(boxes[:, 2] - boxes[:, 0])), 1.0),
    }


def _sum_around(values: Attention) -> Array:
    """Add to each cell its neighbours, also diagonal ones: (N, rows, columns)."""
    padded = np.pad(values.astype(np.float64), ((0, 0), (1, 1), (1, 1)))
    rows = padded[:, :-2] + padded[:, 1:-1] + padded[:, 2:]
    sums: Array = np.maximum(rows[:, :, :-2] + rows[:, :, 1:-1] + rows[:, :, 2:], 1e-30)
    return sums


def _ink_share(attention: Attention, boxes: npt.NDArray[np.int64], ink: Ink, field: ReceptiveField) -> Array:
    sums = np.pad(ink.astype(np.int64).cumsum(0).cumsum(1), ((1, 0), (1, 0)))
    row_edges, column_edges = (
        np.array([axis.core(cell)[0] for cell in range(axis.num_cells + 1)])
        for axis in (field.rows, field.columns)
    )

    def per_cell(rows: npt.NDArray[np.int64], columns: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        counts: npt.NDArray[np.int64] = np.diff(np.diff(sums[np.ix_(rows, columns)], axis=0), axis=1)
        return counts

    in_cells = np.maximum(per_cell(row_edges, column_edges), 1)
    shares = [
        (seen * per_cell(row_edges.clip(top, bottom), column_edges.clip(left, right)) / in_cells).sum()
        for seen, (left, top, right, bottom) in zip(attention, boxes.tolist(), strict=True)
    ]
    return np.array(shares, np.float64)


def fit_localization(samples: Iterable[LocalizationSample], *, field: ReceptiveField) -> ShareFit:
    """Choose, on a validation split, the share of attention that a box holds.

    Raises:
        BoxError: if no token counts.
    """
    return fit_share(list(true_boxes(samples, canvas_shape=field.canvas_shape)), field=field)


def evaluate_localization(
    samples: Iterable[LocalizationSample],
    *,
    field: ReceptiveField,
    share: float,
    rounds: int = ROUNDS,
    seed: int = 0,
) -> LocalizationResult:
    """Measure a model and the baselines.

    Args:
        samples: what was read; one at a time is kept.
        field: of the model.
        share: of attention that a box holds, from `fit_localization` on other samples.
        rounds: of resampling samples, for the intervals.
        seed: of the random baseline.

    Raises:
        LocalizationError: if no token counts.
    """
    generator = np.random.default_rng(seed)
    tables: dict[str, list[Array]] = {name: [] for name in (MODEL, *BASELINES)}
    classes: list[str] = []
    groups: list[tuple[int, int]] = []  # size and position of each token
    names: list[str] = []
    for sample in samples:
        counted = localized_tokens(sample, canvas_shape=field.canvas_shape)
        if not counted.tokens:
            continue
        names.append(sample.name)
        classes += [token_class(token) for token in counted.tokens]
        groups += _groups(counted)
        guesses = {name: guess(counted, field, generator) for name, guess in BASELINES.items()}
        for name, attention in ({MODEL: counted.attention} | guesses).items():
            scores = score_tokens(attention, counted.boxes, counted.ink, field=field, share=share)
            tables[name].append(np.stack([scores[key] for key in METRICS], axis=1))
    if not names:
        raise LocalizationError("Nothing to measure: no token was read right and has a true box.")
    owners = np.repeat(np.arange(len(names)), [len(table) for table in tables[MODEL]])
    table = np.concatenate(tables[MODEL])
    sizes, positions = np.array(groups).T

    def subsets(labels: Sequence[str], members: npt.NDArray[np.int64]) -> list[LocalizationScores]:
        return [
            _scores(label, table[members == number], owners[members == number], rounds)
            for number, label in enumerate(labels)
            if (members == number).any()
        ]

    iou = list(METRICS).index("iou")
    return LocalizationResult(
        num_samples=len(names),
        num_tokens=len(table),
        share=share,
        systems=[_scores(name, np.concatenate(parts), owners, rounds) for name, parts in tables.items()],
        by_class=subsets(TOKEN_CLASSES, np.array([TOKEN_CLASSES.index(name) for name in classes])),
        by_size=subsets(SIZE_LABELS, sizes),
        by_position=subsets(POSITION_LABELS, positions),
        sample_iou={
            name: float(part[:, iou].mean()) for name, part in zip(names, tables[MODEL], strict=True)
        },
    )


def _groups(counted: LocalizedTokens) -> list[tuple[int, int]]:
    longer = np.maximum(counted.boxes[:, 2] - counted.boxes[:, 0], counted.boxes[:, 3] - counted.boxes[:, 1])
    sizes = np.searchsorted(SIZES_PX, longer, side="right")
    positions = counted.steps * len(POSITION_LABELS) // counted.num_steps
    return list(zip(sizes.tolist(), positions.tolist(), strict=True))


def _scores(label: str, table: Array, owners: npt.NDArray[np.int64], rounds: int) -> LocalizationScores:
    """Means over tokens, with intervals from resampling the samples they belong to."""
    num_samples = int(owners.max()) + 1
    counts = np.bincount(owners, minlength=num_samples).astype(np.float64)
    present = counts > 0
    sums: Array = np.stack(
        [*(np.bincount(owners, column, num_samples) for column in table.T), counts], axis=1
    )
    drawn = resampled_sums(sums[present], rounds=rounds, seed=0)
    means = drawn[:, :-1] / drawn[:, -1:]
    figures = {
        key: quantiles(float(table[:, number].mean()), means[:, number]) for number, key in enumerate(METRICS)
    }
    return LocalizationScores(label, len(table), figures)


def format_metric(key: str, value: float) -> str:
    """A score as people write it: shares in per cent, distances as they are."""
    return f"{value:.2f}" if key.startswith("distance") else f"{100 * value:.1f} %"
