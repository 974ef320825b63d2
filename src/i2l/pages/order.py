"""What was found on a page, and the order in which it is read: columns first, then lines."""

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from i2l.images.ink import Boxes

Box = tuple[int, int, int, int]  # left, top, right, bottom in pixels, half-open


class Found(NamedTuple):
    """A formula or a number on a page."""

    kind: str
    box: Box
    score: float  # how sure the detector is of it, from 0 to 1


_GUTTER: Final = 1.8  # heights of small letters
_LINE_GAP: Final = 1.0
_MAX_CUTS: Final = 12


def reading_order(found: list[Found], pieces: Boxes, symbol_px: float) -> list[Found]:
    """Put formulas into the order in which the page is read: columns first, then lines.

    The page is cut along its widest empty strips: between columns where there is a gutter, else between
    lines; formulas of one block come line by line.
    """
    cell = max(1.0, symbol_px / 2)
    if not found or not len(pieces):
        return found
    rows, columns = (int(pieces[:, side].max() / cell) + 2 for side in (3, 2))
    filled = np.zeros((rows, columns), np.bool_)
    for left, top, right, bottom in (pieces / cell).astype(np.int64):
        filled[top : bottom + 1, left : right + 1] = True
    ordered: list[Found] = []
    _order(found, filled, (0, 0, columns, rows), cell, symbol_px, ordered, 0)
    return ordered


def _order(
    found: list[Found],
    filled: NDArray[np.bool_],
    block: Box,
    cell: float,
    symbol_px: float,
    ordered: list[Found],
    depth: int,
) -> None:
    if len(found) > 1 and depth < _MAX_CUTS:
        left, top, right, bottom = block
        part = filled[top:bottom, left:right]
        cut = _gutter(part, _GUTTER * symbol_px / cell)
        if cut is not None:
            edge = (left + cut) * cell
            sides = (
                [item for item in found if _middle(item, 0) < edge],
                [item for item in found if _middle(item, 0) >= edge],
            )
            if all(sides):
                for side, box in zip(
                    sides, ((left, top, left + cut, bottom), (left + cut, top, right, bottom)), strict=True
                ):
                    _order(side, filled, box, cell, symbol_px, ordered, depth + 1)
                return
        cut = _widest_gap(_rows_with_ink(part), _LINE_GAP * symbol_px / cell)
        if cut is not None:
            edge = (top + cut) * cell
            sides = (
                [item for item in found if _middle(item, 1) < edge],
                [item for item in found if _middle(item, 1) >= edge],
            )
            for side, box in zip(
                sides, ((left, top, right, top + cut), (left, top + cut, right, bottom)), strict=True
            ):
                _order(side, filled, box, cell, symbol_px, ordered, depth + 1)
            return
    ordered += _by_lines(found, symbol_px)


def _middle(item: Found, axis: int) -> float:
    return (item.box[axis] + item.box[axis + 2]) / 2


def _gutter(part: NDArray[np.bool_], least: float) -> int | None:
    """Return the middle of an empty strip with much ink on both sides; None if there is none."""
    share = part.mean(axis=0) if part.size else np.zeros(0)
    cut = _widest_gap(share > 0.0, least)
    if cut is None:
        return None
    inked = _rows_with_ink(part)
    if part.shape[0] * least < 40:
        return None
    left, right = (_rows_with_ink(side)[inked].mean() for side in (part[:, :cut], part[:, cut:]))
    return cut if min(left, right) > 0.4 and 0.2 < cut / part.shape[1] < 0.8 else None


def _rows_with_ink(part: NDArray[np.bool_]) -> NDArray[np.bool_]:
    rows: NDArray[np.bool_] = np.asarray(part.any(axis=1))
    return rows


def _widest_gap(filled: NDArray[np.bool_], least: float) -> int | None:
    """Return the middle of the widest empty run between filled ones; None if none is wide enough."""
    places = np.flatnonzero(filled)
    if len(places) < 2:
        return None
    gaps = np.diff(places) - 1
    widest = int(gaps.argmax())
    return int(places[widest] + 1 + gaps[widest] // 2) if gaps[widest] >= least else None


def _by_lines(found: list[Found], symbol_px: float) -> list[Found]:
    """Order formulas of one block: those of about one height are one line."""
    lines: list[list[Found]] = []
    for item in sorted(found, key=lambda item: _middle(item, 1)):
        if lines and _middle(item, 1) - _middle(lines[-1][-1], 1) < 0.9 * symbol_px:
            lines[-1].append(item)
        else:
            lines.append([item])
    return [item for line in lines for item in sorted(line, key=lambda item: item.box[0])]
