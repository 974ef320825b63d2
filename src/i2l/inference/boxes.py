"""Where on the canvas each token was read, and how much of the ink was read by none.

Attention says where a token was read to within some cells. `smallest_blocks` finds the smallest block of
cells that holds enough of it; how much is enough is one number for a model, fitted where the true boxes are
known. `CanvasInk` has the ink of a prepared image: it shares the ink out among the tokens, by where they
looked, and measures how much of it no token looked at, as a reading that leaves out a
line may be sure of all it has.

`attention_boxes` judges attention by itself, token by token: of the symbols that have ink in the block, it
takes the one nearest to the centre of the block's attention. (With attention made up around true boxes, this
overlaps them twice as well as all ink in the block does: cells are larger than symbols, and symbols do not
end where cells do.)

`match_ink` says which ink each token was read from. A cell is larger than most symbols, so taking the ink
nearest to each token's look gives one letter to two tokens and none to its neighbour. Here tokens and
connected pieces of ink are matched all at once, at the least cost. A piece costs its distance from where the
token looked, more if it does not have the shape that the token draws (a bar, a dot, a letter), and more if
another token has it already. Tokens that looked at one place stand there from left to right, as they are
written. What remains is shared out afterwards: a piece that several tokens got, as letters that touch, is cut
between them, and a piece that none got goes to the token beside it whose sign has several parts. What is left
over then nobody read: a reading that lost its place and left out some signs may have looked beside them.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import Final, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from i2l.formulas.commands import STRUCTURAL, names_of
from i2l.formulas.lexer import FormulaError
from i2l.formulas.normalize import normalize_formula
from i2l.images.ink import Boxes, InkMask, find_symbols, join_pieces, measure_pieces
from i2l.images.prepare import FRAME_PX, REFERENCE_DPI, SYMBOL_PX, WHITE, Box, PreparedImage, centre
from i2l.model.config import AxisField, ModelConfig, ReceptiveField

Places = npt.NDArray[np.float64]  # (T, 2): x and y of where each token looked
Costs = npt.NDArray[np.float64]  # (T, number of pieces)


def _shaped(word: str) -> frozenset[str]:
    return names_of(lambda command: word in command.shape)


# What tokens draw, as far as that decides between neighbours.
_BARS: Final = _shaped("bar")
_MARKS: Final = _shaped("mark")
_AROUND_OTHERS: Final = _shaped("around") | {r"\left(", r"\right)", r"\left[", r"\right]"}
# Signs of several parts one above the other, or side by side.
_STACKED: Final = _shaped("stacked")
_BESIDE: Final = _shaped("beside") | {r"\left\|", r"\right\|"}
# Words and rows of dots: as many parts as they have letters.
_ROWS: Final = _shaped("row")
_SLANTED_ROWS: Final = _shaped("slanted")

# Costs in pixels of distance at the model's scale, where a small letter is some 14 px high. Found on 24
# formulas of validation at five sizes (docs/LOG.md); the mean IoU hardly moves when any is half or double.
_FROM_CENTRE: Final = 0.3  # of the distance from a piece's centre, beside that from its edge
_MAX_FROM_CENTRE_PX: Final = 40.0
_NOT_A_BAR: Final = 10.0
_NOT_A_MARK: Final = 8.0
_AROUND: Final = 12.0
_SHARED: Final = 8.0  # for the second token of a piece; twice that for the third; half for wide pieces
_MAX_SHARES: Final = 3
_SAME_LOOK_PX: Final = 9.0  # looks that are nearer than this are at one place
_NEXT_PX: Final = 7.0  # from one token to the next at one place
_PALE_RIM: Final = 251  # of a drawn stroke's last pixel; paper is above
_PART_SIZE: Final = 0.5  # of an ordinary symbol's height: smaller pieces are dots, and specks


class InkMatch(NamedTuple):
    """The ink that tokens were read from."""

    boxes: list[Box | None]  # of each token; None if it draws nothing
    left_over: int  # pieces that are no dots and that no token has


def match_ink(
    tokens: Sequence[str], looks: Places, pieces: Boxes, *, ink: InkMask, pixels: npt.NDArray[np.uint8] | None
) -> InkMatch:
    """Find the ink that each token was read from, in pixels of the image.

    Args:
        tokens: the visible ones of a reading, in order.
        looks: where each of them looked.
        pieces: the boxes of connected pieces of ink, at least one.
        ink: of the whole image.
        pixels: of an image that was not resized, whose strokes end in a pale pixel that belongs to them.
    """
    boxes = pieces.astype(np.float64)
    looks = _side_by_side(looks)
    typical = _typical_height(boxes)
    costs = _costs(tokens, looks, boxes, typical)
    owners = assign(_with_shares(costs, boxes, typical)) % len(boxes)
    found = [_box(boxes[piece]) for piece in owners]
    shared: dict[int, list[int]] = defaultdict(list)
    for token, piece in enumerate(owners.tolist()):
        shared[piece].append(token)
    free = np.ones(len(boxes), np.bool_)
    free[owners] = False
    alone = [token for token, piece in enumerate(owners.tolist()) if len(shared[piece]) == 1]
    for token in sorted(alone, key=lambda token: tokens[token] not in _STACKED):
        found[token] = _with_parts(tokens[token], found[token], boxes, free, typical)
    for piece, members in shared.items():
        if len(members) > 1:
            for token, part in zip(*_cut(_box(boxes[piece]), members, looks, ink), strict=True):
                found[token] = part
    sizes = (boxes[:, 2:] - boxes[:, :2]).max(axis=1)
    left_over = int((free & (sizes >= _PART_SIZE * typical)).sum())
    return InkMatch([box if pixels is None else _with_rim(box, pixels) for box in found], left_over)


def assign(costs: Costs) -> npt.NDArray[np.int64]:
    """Return a column for each row, no column twice, so that the sum of their costs is the least.

    This is the Hungarian method by shortest augmenting paths; SciPy has it too, but is not installed where
    models only read. There must be at least as many columns as rows.
    """
    num_rows, num_columns = costs.shape
    row_prices, column_prices = np.zeros(num_rows), np.zeros(num_columns)
    row_of = np.full(num_columns, -1)
    for row in range(num_rows):
        shortest = np.full(num_columns, np.inf)
        before = np.full(num_columns, -1)
        done = np.zeros(num_columns, bool)
        tree_rows: list[int] = [row]
        tree_columns: list[int] = []
        current, column = row, -1
        while True:
            reduced = costs[current] - row_prices[current] - column_prices
            better = ~done & (reduced < shortest)
            shortest[better], before[better] = reduced[better], column
            column = int(np.where(done, np.inf, shortest).argmin())
            step = shortest[column]
            row_prices[tree_rows] += step
            column_prices[tree_columns] -= step
            shortest[~done] -= step
            done[column] = True
            if row_of[column] < 0:
                break
            current = int(row_of[column])
            tree_rows.append(current)
            tree_columns.append(column)
        while column >= 0:
            earlier = int(before[column])
            row_of[column] = row if earlier < 0 else row_of[earlier]
            column = earlier
    chosen = np.zeros(num_rows, np.int64)
    chosen[row_of[row_of >= 0]] = np.flatnonzero(row_of >= 0)
    return chosen


def _side_by_side(looks: Places) -> Places:
    """Move tokens that looked at one place apart, from left to right in the order they are written."""
    moved = looks.copy()
    first = 0
    while first < len(looks):
        last = first + 1
        while last < len(looks) and np.hypot(*(looks[last] - looks[first])) < _SAME_LOOK_PX:
            last += 1
        moved[first:last, 0] += (np.arange(last - first) - (last - first - 1) / 2) * _NEXT_PX
        first = last
    return moved


def _typical_height(boxes: npt.NDArray[np.float64]) -> float:
    """Return the height of an ordinary symbol, bars and dots aside."""
    heights = boxes[:, 3] - boxes[:, 1]
    letters = heights[heights > 6]
    return float(np.median(letters if len(letters) else heights))


def _costs(tokens: Sequence[str], looks: Places, boxes: npt.NDArray[np.float64], typical: float) -> Costs:
    """Return what it costs to say that a token was read from a piece, for all pairs of them."""
    near = np.clip(looks[:, None], boxes[None, :, :2], boxes[None, :, 2:])
    from_edge = np.hypot(*np.moveaxis(looks[:, None] - near, 2, 0))
    centres = (boxes[:, :2] + boxes[:, 2:]) / 2
    from_centre = np.hypot(*np.moveaxis(looks[:, None] - centres[None], 2, 0))
    costs: Costs = from_edge + _FROM_CENTRE * np.minimum(from_centre, _MAX_FROM_CENTRE_PX)
    width, height = boxes[:, 2] - boxes[:, 0], boxes[:, 3] - boxes[:, 1]
    flat = (width > 2 * height) & (height < 0.45 * typical)
    small = np.maximum(width, height) < 0.5 * typical
    around = (width > 3 * typical) & (height > 1.2 * typical)

    def those(members: frozenset[str]) -> npt.NDArray[np.bool_]:
        return np.array([[token in members] for token in tokens])

    bar, mark, outside = those(_BARS), those(_MARKS), those(_AROUND_OTHERS)
    many = those(_STACKED | _ROWS | _BESIDE)
    costs += _NOT_A_BAR * ((bar & ~flat) | (~bar & ~mark & ~many & flat))
    costs += _NOT_A_MARK * ((~mark & ~bar & ~many & small) | (mark & (height > typical)))
    costs += _AROUND * (~outside & around)
    return costs


def _with_shares(costs: Costs, boxes: npt.NDArray[np.float64], typical: float) -> Costs:
    """Repeat the columns of all pieces, dearer each time, so that one piece can go to several tokens."""
    width, height = boxes[:, 2] - boxes[:, 0], boxes[:, 3] - boxes[:, 1]
    unlikely = 4 * (np.maximum(width, height) < 0.5 * typical) + 8 * (
        (width > 2 * height) & (height < 0.45 * typical)
    )
    columns = [costs]
    while len(columns) < _MAX_SHARES or len(columns) * len(boxes) < len(costs):
        times = len(columns)
        wide = width > 1.6 * typical * times
        columns.append(costs + np.where(wide, _SHARED / 2, _SHARED) * times + unlikely)
    return np.concatenate(columns, axis=1)


def _with_parts(
    token: str, box: Box, boxes: npt.NDArray[np.float64], free: npt.NDArray[np.bool_], typical: float
) -> Box:
    """Take the pieces beside a box that nobody has and that the token's sign may have as parts."""
    while (parts := free & _may_be_parts(token, box, boxes, typical)).any():
        centre = np.array([box[0] + box[2], box[1] + box[3]]) / 2
        distances = np.abs((boxes[:, :2] + boxes[:, 2:]) / 2 - centre).sum(axis=1)
        nearest = int(np.where(parts, distances, np.inf).argmin())
        free[nearest] = False
        left, top, right, bottom = _box(boxes[nearest])
        box = (min(box[0], left), min(box[1], top), max(box[2], right), max(box[3], bottom))
    return box


def _may_be_parts(
    token: str, box: Box, pieces: npt.NDArray[np.float64], typical: float
) -> npt.NDArray[np.bool_]:
    """Tell which pieces may be parts of the sign whose other parts are in the box."""
    left, top, right, bottom = pieces.T
    across = np.maximum(left - box[2], box[0] - right)  # the gap; negative where they overlap
    down = np.maximum(top - box[3], box[1] - bottom)
    width, height = box[2] - box[0], box[3] - box[1]
    widths, heights = right - left, bottom - top
    # ink that broke apart, as in a pale print
    parts: npt.NDArray[np.bool_] = (np.maximum(across, down) <= 1) & (widths * heights <= width * height)
    if token in _STACKED:
        wider = np.maximum(width, widths)
        covered = -across >= 0.6 * np.minimum(width, widths)
        near = down <= np.minimum(typical, np.maximum(0.6 * wider, 8.0))
        parts |= (wider < 3.5 * typical) & covered & near
    if token in _BESIDE:
        parts |= (across < 12) & (down < 0)
    if token in _ROWS:
        in_line = (across < 0) | (down < 0) | (token in _SLANTED_ROWS)
        near = np.maximum(across, down) <= max(0.5 * height, 10.0)
        parts |= (heights < 2 * max(height, typical)) & in_line & near
    return parts


def _cut(box: Box, members: list[int], looks: Places, ink: InkMask) -> tuple[list[int], list[Box]]:
    """Cut a piece of ink between the tokens that share it, half way from one look to the next."""
    places = looks[members]
    spread = np.ptp(places, axis=0) / np.maximum([box[2] - box[0], box[3] - box[1]], 1)
    axis = 0 if spread[0] >= 0.8 * spread[1] else 1
    order = np.argsort(places[:, axis], kind="stable")
    along = places[order, axis].clip(box[axis], box[axis + 2])
    edges = [box[axis], *((along[1:] + along[:-1]) / 2).tolist(), box[axis + 2]]
    if np.diff(edges).min() < 1:  # they looked beside it: it is cut into equal parts
        edges = np.linspace(box[axis], box[axis + 2], len(members) + 1).tolist()
    parts = []
    for start, end in pairwise(edges):
        part = (start, box[1], end, box[3]) if axis == 0 else (box[0], start, box[2], end)
        parts.append(_tighten(part, ink))
    return [members[place] for place in order.tolist()], parts


def _tighten(box: Box, ink: InkMask) -> Box:
    """Return the box of the ink inside a box; the same box if there is none."""
    left, top, right, bottom = (round(edge) for edge in box)
    inside = ink[top:bottom, left:right]
    rows, columns = np.flatnonzero(inside.any(axis=1)), np.flatnonzero(inside.any(axis=0))
    if not len(rows):
        return box
    return (
        float(left + columns[0]),
        float(top + rows[0]),
        float(left + columns[-1] + 1),
        float(top + rows[-1] + 1),
    )


def _with_rim(box: Box, pixels: npt.NDArray[np.uint8]) -> Box:
    """Add the pale pixels in which the strokes in a box end."""
    left, top, right, bottom = (round(edge) for edge in box)
    height, width = pixels.shape
    left -= left > 0 and bool((pixels[top:bottom, left - 1] < _PALE_RIM).any())
    right += right < width and bool((pixels[top:bottom, right] < _PALE_RIM).any())
    top -= top > 0 and bool((pixels[top - 1, left:right] < _PALE_RIM).any())
    bottom += bottom < height and bool((pixels[bottom, left:right] < _PALE_RIM).any())
    return (float(left), float(top), float(right), float(bottom))


def _box(row: npt.NDArray[np.float64]) -> Box:
    left, top, right, bottom = row.tolist()
    return (left, top, right, bottom)


Attention = npt.NDArray[np.floating]

DEFAULT_SHARE: Final = 0.8  # of attention; for a model that was never fitted
# Paler pixels are the soft rim of a stroke at most, or what a scanner makes of paper.
_PALEST_INK: Final = WHITE - 32


def find_ink(pixels: npt.NDArray[np.uint8]) -> InkMask:
    """Mark the pixels of a grey image that are not paper; paper is white."""
    ink: InkMask = pixels <= _PALEST_INK
    return ink


def visible_tokens(tokens: Sequence[str]) -> list[bool]:
    """Tell which tokens draw ink of their own; the others (`{`, `^`, `\\mathrm`, ...) get no box."""
    try:
        canonical = normalize_formula(" ".join(tokens)).tokens
    except FormulaError:
        canonical = []
    if [token.text for token in canonical] == list(tokens):
        return [token.visible for token in canonical]
    return [token not in STRUCTURAL and not token.startswith((r"\begin{", r"\end{")) for token in tokens]


def smallest_blocks(attention: Attention, share: float) -> npt.NDArray[np.int64]:
    """Find the smallest rectangle of cells that holds a share of each step's attention.

    Of rectangles with as many cells, the one that holds most is taken.

    Args:
        attention: (T, rows, columns)
        share: of the attention of a step, above 0 and at most 1.

    Returns:
        (T, 4): first row, first column, last row, last column; the last ones are beyond the block.
    """
    used: npt.NDArray[np.bool_] = np.any(attention, axis=0)
    first_row, last_row = _span(used, 1)
    first_column, last_column = _span(used, 0)
    attention = attention[:, first_row:last_row, first_column:last_column]
    steps, rows, columns = attention.shape
    sums = np.zeros((steps, rows + 1, columns + 1))
    sums[:, 1:, 1:] = attention.astype(np.float64).cumsum(1).cumsum(2)
    wanted = share * sums[:, -1, -1] * (1 - 1e-6)  # the model computes in float32
    sizes = _sizes_by_area(rows, columns)
    areas = sizes[:, 0] * sizes[:, 1]
    blocks = np.zeros((steps, 4), np.int64)
    for step in range(steps):
        # No block of fewer cells can hold enough, were they the ones most looked at.
        most = np.sort(attention[step], axis=None)[::-1].astype(np.float64).cumsum()
        num_needed = int(np.searchsorted(most, wanted[step] * (1 - 1e-9))) + 1
        best = np.inf
        for height, width in sizes[np.searchsorted(areas, num_needed) :].tolist():
            if height * width - 0.5 > best:  # not even one that held all would be better
                break
            strips = sums[step, :, width:] - sums[step, :, :-width]  # (rows + 1, columns - width + 1)
            held = strips[height:] - strips[:-height]
            # Fewest cells first; more attention decides between equals, and counts for less than a cell.
            cost = height * width - 0.5 * held / max(sums[step, -1, -1], 1e-30)
            cost = np.where(held >= wanted[step], cost, np.inf)
            place = int(cost.argmin())
            if cost.flat[place] < best:
                best = cost.flat[place]
                top, left = divmod(place, columns - width + 1)
                blocks[step] = top, left, top + height, left + width
    blocks += np.array([first_row, first_column] * 2)
    return blocks


@lru_cache
def _sizes_by_area(rows: int, columns: int) -> npt.NDArray[np.int64]:
    """Return height and width of all blocks of cells that fit, smallest area first, narrow ones first."""
    sizes = np.array([(height, width) for width in range(1, columns + 1) for height in range(1, rows + 1)])
    sizes = sizes.reshape(-1, 2)
    return sizes[np.argsort(sizes[:, 0] * sizes[:, 1], kind="stable")]


def _span(used: npt.NDArray[np.bool_], over: int) -> tuple[int, int]:
    """Return the first line that is used and the one after the last along an axis; all if none is used."""
    places = np.flatnonzero(np.any(used, axis=over))
    return (int(places[0]), int(places[-1]) + 1) if len(places) else (0, used.shape[1 - over])


def block_box(field: ReceptiveField, block: Sequence[int]) -> Box:
    """Return a block of cells, by its cores, as a box on the canvas."""
    top, left, bottom, right = block
    return (
        field.columns.core(left)[0],
        field.rows.core(top)[0],
        field.columns.core(right - 1)[1],
        field.rows.core(bottom - 1)[1],
    )


def attention_boxes(
    attention: Attention, *, field: ReceptiveField, ink: InkMask, share: float
) -> list[Box | None]:
    """Return each step's box, half-open; None where the model looked at no ink.

    Args:
        attention: (T, rows, columns)
        field: of the model.
        ink: of the canvas, (height, width).
        share: of a step's attention that the block holds in which its symbol is looked for.
    """
    return choose_symbols(attention, find_symbols(ink), field=field, share=share)


def choose_symbols(
    attention: Attention, symbols: Boxes, *, field: ReceptiveField, share: float
) -> list[Box | None]:
    """Return for each step the box of the symbol it looked at; arguments as in `attention_boxes`."""
    centres = (symbols[:, :2] + symbols[:, 2:]) / 2
    blocks = smallest_blocks(attention, share).tolist()
    boxes: list[Box | None] = []
    for look, block in zip(attention_centres(attention, blocks, field=field), blocks, strict=True):
        left, top, right, bottom = block_box(field, block)
        touched = np.flatnonzero(
            (symbols[:, 0] < right)
            & (left < symbols[:, 2])
            & (symbols[:, 1] < bottom)
            & (top < symbols[:, 3])
        )
        if not len(touched):
            boxes.append(None)
            continue
        nearest = touched[np.hypot(*(centres[touched] - look).T).argmin()]
        boxes.append(tuple(symbols[nearest].tolist()))
    return boxes


def attention_centres(
    attention: Attention, blocks: Sequence[Sequence[int]], *, field: ReceptiveField
) -> npt.NDArray[np.float64]:
    """Return x and y of the centre of each step's attention inside its block of cells, (T, 2)."""
    rows, columns = (
        np.array([axis.centre(cell) for cell in range(axis.num_cells)])
        for axis in (field.rows, field.columns)
    )
    centres = np.empty((len(attention), 2))
    for step, (seen, (top, left, bottom, right)) in enumerate(zip(attention, blocks, strict=True)):
        inside = seen[top:bottom, left:right]
        centres[step] = (
            inside.sum(axis=0) @ columns[left:right] / inside.sum(),
            inside.sum(axis=1) @ rows[top:bottom] / inside.sum(),
        )
    return centres


# Of the ink; one of 2,559 validation images had more unread, and it was misread (docs/LOG.md).
UNREAD_LIMIT: Final = 0.02
_LOOKED: Final = 0.1  # of a token's attention, for its cell to count as looked at
# Each draws a row of letters and is looked at in one place: with one of them nothing can be said.
_WORDS: Final = names_of(lambda command: command.kind == "modulo")

_Integers = npt.NDArray[np.int64]
_Span = tuple[_Integers, _Integers]  # first, and one beyond the last


def unread_ink(
    tokens: Sequence[str],
    attention: npt.NDArray[np.floating],
    pieces: Boxes,
    amounts: _Integers,
    *,
    field: ReceptiveField,
) -> float:
    """Return the share of ink in pieces that no token looked at, neither at their cells nor the next ones.

    Args:
        tokens: that were read.
        attention: (T, rows, columns)
        pieces: the boxes of connected pieces of ink on the canvas.
        amounts: of their pixels.
        field: of the model.
    """
    if _WORDS.intersection(tokens):
        return 0.0
    left, top, right, bottom = pieces.T
    looked = np.any(attention >= _LOOKED, axis=0)
    read = _count(looked, _cells(top, bottom, field.rows), _cells(left, right, field.columns)) > 0
    return float(amounts[~read].sum() / max(amounts.sum(), 1))


def _cells(start: _Integers, end: _Integers, axis: AxisField) -> _Span:
    """Return the cells of spans of pixels, and one more on either side."""
    first, last = ((place - axis.core_start_px) // axis.stride_px for place in (start, end - 1))
    return (first - 1).clip(0, axis.num_cells), (last + 2).clip(0, axis.num_cells)


def _count(values: npt.NDArray[np.bool_], rows: _Span, columns: _Span) -> _Integers:
    """Count what is true in each of many rectangles."""
    sums = np.zeros((values.shape[0] + 1, values.shape[1] + 1), np.int64)
    sums[1:, 1:] = values.cumsum(0).cumsum(1)
    (top, bottom), (left, right) = rows, columns
    return sums[bottom, right] - sums[top, right] - sums[bottom, left] + sums[top, left]


def match_tokens(
    tokens: Sequence[str],
    attention: Attention,
    pieces: Boxes,
    pixels: npt.NDArray[np.uint8],
    *,
    field: ReceptiveField,
    share: float,
    corner: tuple[int, int] = (0, 0),
    resized: bool = False,
) -> InkMatch:
    """Match the tokens of a reading with the ink of an image, from where they looked and from what is there.

    Args:
        tokens: of a reading; those that draw nothing get no box.
        attention: of these tokens, (T, rows, columns).
        pieces: the boxes of connected pieces of ink on the image, at least one.
        pixels: of the image, grey on white.
        field: of the model.
        share: of a token's attention that the block holds whose centre is where it looked.
        corner: of the image on the canvas, left and top.
        resized: whether the image is larger or smaller than its file, so that strokes end softly.
    """
    boxes: list[Box | None] = [None] * len(tokens)
    left_over = 0
    places = np.flatnonzero(visible_tokens(tokens)).tolist()
    if places:
        blocks = smallest_blocks(attention[places], share).tolist()
        looks = attention_centres(attention[places], blocks, field=field) - np.array(corner)
        seen = [tokens[place] for place in places]
        rims = None if resized else pixels
        found = match_ink(seen, looks, pieces, ink=find_ink(pixels), pixels=rims)
        left_over = found.left_over
        for place, box in zip(places, found.boxes, strict=True):
            boxes[place] = box
    return InkMatch(boxes, left_over)


# How large dots are at most and how high a bar, in heights of a symbol, of which a plain pen draws a ninth;
# and how many times as wide as high a bar is.
_DOT: Final = 0.25
_FLAT: Final = 0.5
_LONG: Final = 2.5
MAX_PIECES: Final = 1000  # to look for symbols among them: a formula has some hundreds, grain has thousands


@dataclass(frozen=True)
class CanvasInk:
    """Connected pieces of ink on a model's canvas; none if they are grain."""

    image: PreparedImage
    config: ModelConfig
    corner: tuple[int, int]  # of the image on the canvas: left, top
    pieces: Boxes
    amounts: npt.NDArray[np.int64]  # of their pixels

    @classmethod
    def find(cls, image: PreparedImage, config: ModelConfig) -> "CanvasInk":
        """Look for the ink on the image, which is all there is on the canvas."""
        pieces, amounts = measure_pieces(find_ink(image.pixels))
        if len(pieces) > MAX_PIECES:
            pieces, amounts = pieces[:0], amounts[:0]
        height, width = image.pixels.shape
        canvas_height, canvas_width = config.canvas_shape
        corner = centre(width, canvas_width) + FRAME_PX, centre(height, canvas_height) + FRAME_PX
        return cls(image, config, corner, pieces + np.array(corner * 2), amounts)

    @cached_property
    def num_symbols(self) -> int:
        """How many symbols there are, as far as that shows: letters that touch are one."""
        return len(join_pieces(self.pieces))

    @cached_property
    def shape(self) -> Literal["bar", "dot", "two dots", "three dots", ""]:
        """Say what there is, if that is a bar by itself, or dots: two above each other, three in a line."""
        if not 0 < len(self.pieces) <= 3:
            return ""
        typical = SYMBOL_PX * self.config.dpi / REFERENCE_DPI
        widths, heights = (self.pieces[:, 2:] - self.pieces[:, :2]).T
        if max(widths.max(), heights.max()) > _DOT * typical:
            flat = len(widths) == 1 and heights[0] <= _FLAT * typical and widths[0] >= _LONG * heights[0]
            return "bar" if flat else ""
        across, down = np.ptp(self.pieces[:, :2], axis=0)
        if len(widths) == 2:
            return "two dots" if down > 2 * across else ""
        if len(widths) == 1:
            return "dot"
        first, second, third = self.pieces[np.argsort(self.pieces[:, int(down > across)]), :2]
        (x1, y1), (x2, y2) = second - first, third - first
        return "three dots" if abs(x1 * y2 - y1 * x2) < 0.2 * max(across, down) ** 2 else ""

    def unread(self, tokens: Sequence[str], attention: npt.NDArray[np.float32]) -> float:
        """Return the share of ink that a reading leaves out."""
        field = self.config.receptive_field()
        return unread_ink(tokens, attention, self.pieces, self.amounts, field=field)

    def match(self, tokens: Sequence[str], attention: npt.NDArray[np.float32], *, share: float) -> InkMatch:
        """Find where in the file each token was read, and what was not; `share` as in `match_tokens`."""
        if not tokens or not len(self.pieces):
            return InkMatch([None] * len(tokens), 0)
        found = match_tokens(
            tokens,
            attention,
            self.pieces - np.array(self.corner * 2),
            self.image.pixels,
            field=self.config.receptive_field(),
            share=share,
            corner=self.corner,
            resized=self.image.scale != 1,
        )
        return found._replace(boxes=[None if box is None else self.image.to_file(box) for box in found.boxes])
