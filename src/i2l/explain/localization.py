"""How well attention points at what was read: measured against true boxes, token by token.

Only tokens count that were read right and have a true box. Everything is measured on the model's canvas.

    pointing         the peak lies in the token's box; it is the mean place of attention within one cell of
                     the fullest cell, since symbols are smaller than cells
    cell pointing    the fullest cell's core touches the box: all that a single cell can do
    ink share        of the attention, each cell's share spread over the ink of its core, on the token's ink
    IoU              of the box that attention gives with the true one
    distance         from the peak to the centre of the box, also in median widths of the formula's symbols

Where several cells tie for the most attention, the mean over them counts.

`fit_localization` finds how much attention a box should hold: the share whose boxes overlap the true ones
best. Beside the model stand baselines, attention of the model's shape that never saw the image's content.
Scores are also broken down by what a token draws: letters, digits, operators, and so on.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from i2l.errors import I2LError
from i2l.evaluation.breakdown import align_tokens
from i2l.evaluation.scores import ROUNDS, Interval, quantiles, resampled_sums
from i2l.explain.attention import Placement
from i2l.formulas.commands import COMMANDS
from i2l.images.ink import InkMask as Ink
from i2l.images.ink import find_symbols
from i2l.images.prepare import Box, place_on_canvas
from i2l.inference.boxes import Attention, attention_boxes, choose_symbols, find_ink
from i2l.model.config import AxisField, ReceptiveField

_AROUND_CELLS: Final = 1.5  # as far around its fullest cell a token points at ink
_SHARES: Final = tuple(np.round(np.arange(0.2, 0.96, 0.05), 2).tolist())


class BoxError(I2LError):
    """Boxes that cannot be fitted."""


@dataclass(frozen=True)
class ShareFit:
    """Which share of attention gives boxes nearest the true ones."""

    share: float
    mean_iou: float
    curve: dict[float, float]  # share tried -> mean IoU


@dataclass(frozen=True)
class TrueBoxes:
    """One formula with known boxes, to fit the share on."""

    attention: Attention  # (T, rows, columns), of the tokens that have a box
    boxes: Sequence[Box]  # theirs
    ink: Ink  # (height, width)


def box_iou(first: Box | None, second: Box | None) -> float:
    """Area of two boxes' intersection over that of their union; 0 without a box."""
    if first is None or second is None:
        return 0.0
    width = min(first[2], second[2]) - max(first[0], second[0])
    height = min(first[3], second[3]) - max(first[1], second[1])
    if width <= 0 or height <= 0:
        return 0.0
    both = width * height
    return both / (_area(first) + _area(second) - both)


def _area(box: Box) -> float:
    return (box[2] - box[0]) * (box[3] - box[1])


def fit_share(
    samples: Sequence[TrueBoxes], *, field: ReceptiveField, shares: Sequence[float] = _SHARES
) -> ShareFit:
    """Choose the share of attention whose boxes overlap the true ones best on average.

    Raises:
        BoxError: if no sample has a box.
    """
    curve = {}
    symbols = [find_symbols(sample.ink) for sample in samples]
    for share in shares:
        overlaps = [
            box_iou(found, true)
            for sample, own in zip(samples, symbols, strict=True)
            for found, true in zip(
                choose_symbols(sample.attention, own, field=field, share=share), sample.boxes, strict=True
            )
        ]
        if not overlaps:
            raise BoxError("Nothing to fit on: no token of these samples has a true box and was read right.")
        curve[share] = float(np.mean(overlaps))
    best = max(curve, key=lambda share: curve[share])
    return ShareFit(best, curve[best], curve)


class LocalizationError(I2LError):
    """Localisation that cannot be measured."""


@dataclass(frozen=True)
class LocalizationSample:
    """One image that was read, and the truth about it."""

    name: str
    pixels: npt.NDArray[np.uint8]  # (height, width), grey on white, at the model's scale
    target: Sequence[str]
    boxes: Sequence[Box | None]  # one for each token of the target, in pixels of the image
    prediction: Sequence[str]
    attention: Attention  # one for each token of the prediction, and one more for eos: (T, rows, columns)


@dataclass(frozen=True)
class LocalizedTokens:
    """The tokens of one sample that count, all on the canvas."""

    tokens: list[str]
    steps: npt.NDArray[np.int64]  # of the prediction, (N,)
    num_steps: int  # of the prediction, eos not counted
    attention: Attention  # (N, rows, columns)
    boxes: npt.NDArray[np.int64]  # (N, 4)
    ink: Ink  # (canvas height, canvas width)


def matched_tokens(target: Sequence[str], prediction: Sequence[str]) -> list[tuple[int, int]]:
    """Return the places in target and prediction of the tokens that were read right."""
    pairs, start, other_start = [], 0, 0
    for first, last, other_first, other_last in [
        *align_tokens(target, prediction),
        (len(target), len(target), len(prediction), len(prediction)),
    ]:
        pairs += list(zip(range(start, first), range(other_start, other_first), strict=True))
        start, other_start = last, other_last
    return pairs


def localized_tokens(sample: LocalizationSample, *, canvas_shape: tuple[int, int]) -> LocalizedTokens:
    """Pick the tokens that count, and put their boxes and the ink on the canvas.

    Raises:
        LocalizationError: if boxes and tokens do not go together.
    """
    if len(sample.boxes) != len(sample.target) or len(sample.attention) < len(sample.prediction):
        raise LocalizationError(
            f"{sample.name}: each token of the target needs a box or None, each of the prediction attention."
        )
    placement = Placement.centred(sample.pixels.shape, canvas_shape=canvas_shape)
    pairs = [
        (place, step, box)
        for place, step in matched_tokens(sample.target, sample.prediction)
        if (box := sample.boxes[place]) is not None
    ]
    steps = np.array([step for _, step, _ in pairs], np.int64)
    return LocalizedTokens(
        tokens=[sample.target[place] for place, _, _ in pairs],
        steps=steps,
        num_steps=len(sample.prediction),
        attention=np.asarray(sample.attention)[steps],
        boxes=np.array([placement.to_canvas(box) for _, _, box in pairs], np.int64).reshape(-1, 4),
        ink=find_ink(place_on_canvas([sample.pixels], canvas_shape=canvas_shape)[0]),
    )


def true_boxes(
    samples: Iterable[LocalizationSample], *, canvas_shape: tuple[int, int]
) -> Iterator[TrueBoxes]:
    """Return what the share of attention is fitted on."""
    for sample in samples:
        counted = localized_tokens(sample, canvas_shape=canvas_shape)
        yield TrueBoxes(counted.attention, [tuple(box) for box in counted.boxes.tolist()], counted.ink)


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
    """Find the cell in whose core each pixel lies; the frame belongs to the nearest."""
    cells: npt.NDArray[np.int64] = ((pixels - axis.core_start_px) // axis.stride_px).astype(np.int64)
    return cells.clip(0, axis.num_cells - 1)


def _one_hot(cells: npt.NDArray[np.int64], field: ReceptiveField) -> Attention:
    attention = np.zeros((len(cells), *field.grid))
    attention[np.arange(len(cells)), cells[:, 0], cells[:, 1]] = 1
    return attention


LETTERS, DIGITS, GREEK = "letters", "digits", "Greek letters"
OPERATORS, DELIMITERS, BIG = "operators and relations", "delimiters", "big operators"
RULES, ACCENTS, PUNCTUATION = "fractions, roots, lines", "accents", "punctuation and dots"
TOKEN_CLASSES: Final = (LETTERS, DIGITS, GREEK, OPERATORS, DELIMITERS, BIG, RULES, ACCENTS, PUNCTUATION)

_CLASS_OF_KIND: Final = {
    "greek": GREEK,
    "delimiter": DELIMITERS,
    "fraction": RULES,
    "root": RULES,
    "line": RULES,
    "binomial": RULES,
    "row-rule": RULES,
    "accent": ACCENTS,
    "punctuation": PUNCTUATION,
    "dots": PUNCTUATION,
    "column-dots": PUNCTUATION,
}


def token_class(token: str) -> str:
    """Return the class of a visible token; what is in no other class is an operator or relation."""
    if len(token) == 1 and token.isalpha():
        return LETTERS
    if token.isdigit():
        return DIGITS
    if _is_sized_delimiter(token):
        return DELIMITERS
    command = COMMANDS.get(token)
    if command is None:
        return OPERATORS
    if command.limits in ("display", "side"):
        return BIG
    return _CLASS_OF_KIND.get(command.kind, OPERATORS)


def _is_sized_delimiter(token: str) -> bool:
    """Whether it is a delimiter glued to its command: `\\left(`, `\\right\\rangle`, but not `\\leftarrow`."""
    for command in (r"\left", r"\right"):
        if token.startswith(command) and len(token) > len(command):
            return not token[len(command)].isalpha()
    return False


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
    """Score each token, (N,) by the keys of METRICS; arguments as in `LocalizedTokens`."""
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


def point_at_ink(
    attention: Attention,
    boxes: npt.NDArray[np.int64],
    ink: Ink,
    *,
    field: ReceptiveField,
    among: Attention | None = None,
) -> Array:
    """Tell of each token, (N,), whether the ink that it points at lies in its box, 1 or 0.

    A peak is a point between strokes as often as on them, and a cell may hold ink of several tokens; what was
    read is one piece of ink. A cell counts for a token by its attention and by the share of it in all that
    tokens pay to the cell. Around the cell that counts most, ink weighs as much as the place it lies at. The
    token points at the connected piece with the most weight for the root of its size, at its middle.
    `among` has the attention of all tokens of a reading, where some of them have no box.
    """
    from scipy import ndimage  # comes with i2l[evaluate]; pictures are read without it

    looks = attention.astype(np.float64)
    paid = (attention if among is None else among).sum(axis=0, dtype=np.float64)
    looks *= looks / np.maximum(paid, 1e-9)
    inked = np.argwhere(ink)
    pieces = ndimage.label(ink, np.ones((3, 3)))[0][tuple(inked.T)]
    sizes = np.maximum(np.bincount(pieces), 1)
    places = inked + 0.5
    origin = field.rows.centre(0), field.columns.centre(0)
    cells = (places - origin) / (field.rows.stride_px, field.columns.stride_px)
    hits = np.zeros(len(looks))
    for number, (seen, (left, top, right, bottom)) in enumerate(zip(looks, boxes.tolist(), strict=True)):
        fullest = np.unravel_index(int(seen.argmax()), seen.shape)
        near = (np.abs(cells - fullest) < _AROUND_CELLS).all(axis=1)
        weights = near * ndimage.map_coordinates(seen, cells.T, order=1, mode="nearest")
        chosen = pieces == (np.bincount(pieces, weights) / np.sqrt(sizes)).argmax()
        middle = weights[chosen] @ places[chosen] / max(weights[chosen].sum(), 1e-30)
        y, x = places[chosen][np.square(places[chosen] - middle).sum(axis=1).argmin()]
        hits[number] = left <= x < right and top <= y < bottom
    return hits


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
