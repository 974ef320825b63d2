"""Where on the canvas each token was read, and how much of the ink was read by none.

Attention says where a token was read to within some cells. `smallest_blocks` finds the smallest block of
cells that holds enough of it; how much is enough is one number for a model, fitted where the true boxes are
known. `PageInk` has the ink of a prepared image: it shares the ink out among the tokens, by where they looked
(`i2l.inference.ink_match`), and measures how much of it no token looked at, as a reading that leaves out a
line may be sure of all it has.

`attention_boxes` judges attention by itself, token by token: of the symbols that have ink in the block, it
takes the one nearest to the centre of the block's attention. (With attention made up around true boxes, this
overlaps them twice as well as all ink in the block does: cells are larger than symbols, and symbols do not
end where cells do.)
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Final

import numpy as np
import numpy.typing as npt
from numpy.typing import NDArray

from i2l.formulas.commands import STRUCTURAL, names_of
from i2l.formulas.lexer import FormulaError
from i2l.formulas.normalize import normalize_formula
from i2l.images.ink import Boxes, find_symbols, join_pieces, measure_pieces
from i2l.images.ink import InkMask as Ink
from i2l.images.prepare import FRAME_PX, WHITE, Box, PreparedImage, centre
from i2l.inference.ink_match import match_ink
from i2l.model.config import AxisField, ModelConfig, ReceptiveField

Attention = npt.NDArray[np.floating]

DEFAULT_SHARE: Final = 0.8  # of attention; for a model that was never fitted
# Paler pixels are the soft rim of a stroke at most, or what a scanner makes of paper.
_PALEST_INK: Final = WHITE - 32


def find_ink(pixels: npt.NDArray[np.uint8]) -> Ink:
    """Mark the pixels of a grey image that are not paper; paper is white."""
    ink: Ink = pixels <= _PALEST_INK
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
    attention: Attention, *, field: ReceptiveField, ink: Ink, share: float
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


MAX_PIECES: Final = 1000  # to look for symbols among them: a formula has some hundreds, grain has thousands


@dataclass(frozen=True)
class PageInk:
    """Connected pieces of ink on a model's canvas; none if they are grain."""

    image: PreparedImage
    config: ModelConfig
    corner: tuple[int, int]  # of the image on the canvas: left, top
    pieces: Boxes
    amounts: NDArray[np.int64]  # of their pixels

    @classmethod
    def find(cls, image: PreparedImage, config: ModelConfig) -> "PageInk":
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

    def unread(self, tokens: Sequence[str], attention: NDArray[np.float32]) -> float:
        """Return the share of ink that a reading leaves out."""
        field = self.config.receptive_field()
        return unread_ink(tokens, attention, self.pieces, self.amounts, field=field)

    def boxes(
        self, tokens: Sequence[str], attention: NDArray[np.float32], *, share: float
    ) -> tuple[Box | None, ...]:
        """Find where in the file each token was read; `share` as in `i2l.inference.boxes`."""
        boxes: list[Box | None] = [None] * len(tokens)
        if not tokens or not len(self.pieces):
            return tuple(boxes)
        places = np.flatnonzero(visible_tokens(tokens))
        if not len(places):
            return tuple(boxes)
        blocks = smallest_blocks(attention[places], share).tolist()
        looks = attention_centres(attention[places], blocks, field=self.config.receptive_field())
        found = match_ink(
            [tokens[place] for place in places.tolist()],
            looks - np.array(self.corner),
            self.pieces - np.array(self.corner * 2),
            ink=find_ink(self.image.pixels),
            pixels=self.image.pixels if self.image.scale == 1 else None,
        )
        for place, box in zip(places.tolist(), found, strict=True):
            boxes[place] = self.image.to_file(box)
        return tuple(boxes)
