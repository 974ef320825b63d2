r"""Which symbols were found where they should be: an F1 like UniMERNet's CDM (arXiv 2409.03643).

Both sides are rendered, with a box for every symbol. Symbols are matched one to one:
  - by name and order: those that a shortest edit script between the two sequences of names keeps;
  - the rest by name and place: the assignment with the least distance, if it is no more than an em and no
    symbol beside them has changed sides.
A match counts if the symbol is also in its place and of its size: its height above the baseline must fit
one of the vertical shifts that large parts of the formula share, and a letter or digit must be as high as it
should be.
F1 = 2 matches / (symbols of the target + symbols of the prediction).

What CDM does otherwise: a target that cannot be rendered is skipped; its boxes come from colours, so that
symbols mix where they touch and the spacing can change; its random search for shifts can differ from run to
run, and calls any two symbols that moved together in place, so that `x ^ { a b }` read as `x _ { a b }` is
right; glyphs that only resemble each other are equal; F1 is rounded to three digits, so that one wrong symbol
in five thousand makes an exact expression.

The symbols that a formula draws: one for each visible token, named by what it looks like, with its box.

Two symbols have one name if they draw the same glyph: `\to` and `\rightarrow`, `\left(` and `(`, `1` and
`\mathrm { 1 }`. Unlike in UniMERNet's CDM, glyphs that only resemble each other (`\epsilon` and
`\varepsilon`, `\hat` and `\widehat`, `\dot` and a full stop) keep their names; a bold x is no plain x.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
from rapidfuzz.distance import Levenshtein
from scipy.optimize import linear_sum_assignment

from i2l.formulas import commands
from i2l.formulas.lexer import Token

Box = tuple[int, int, int, int]  # left, top, right, bottom in pixels, half-open

# What draws the glyph of another command, at its distance or at another.
NAMES: Final = {
    name: command.glyph or command.same_as
    for name, command in commands.COMMANDS.items()
    if command.glyph or command.same_as
} | {r"\not=": r"\neq", r"\begin{cases}": r"\{"}

_PLAIN_FONT: Final = "plain"
FONT_OF: Final = {
    name: "" if command.font == _PLAIN_FONT else command.font
    for name, command in commands.COMMANDS.items()
    if command.font
}
_FONT_SWITCHES: Final = commands.FONT_SWITCHES & FONT_OF.keys()
_CAPITAL_GREEK: Final = frozenset(name for name in commands.GREEK if name[1].isupper())


@dataclass(frozen=True)
class Symbol:
    """A symbol on the page."""

    name: str
    box: Box | None  # None if the renderer did not find it
    fixed_size: bool  # a letter or digit: its height tells the size it is set in


def find_symbols(tokens: Sequence[Token], boxes: Sequence[Box | None] | None) -> list[Symbol]:
    """The symbols of a formula, in the order of its tokens."""
    symbols: list[Symbol] = []
    fonts = [""]
    argument: str | None = None  # the font of the argument that comes next
    for index, (text, _, _, visible) in enumerate(tokens):
        font = fonts[-1] if argument is None else argument
        if text == "{":
            fonts.append(font)
        elif text == "}" and len(fonts) > 1:
            fonts.pop()
        elif visible:
            box = None if boxes is None else boxes[index]
            symbols.append(Symbol(_name(text, font), box, fixed_size=len(text) == 1 and text.isalnum()))
        argument = FONT_OF.get(text)
        if text in _FONT_SWITCHES:
            fonts[-1], argument = FONT_OF[text], None
    return _join_negations(symbols)


def _join_negations(symbols: Sequence[Symbol]) -> list[Symbol]:
    """`\\not =` as the one symbol that `\\neq` is."""
    joined: list[Symbol] = []
    for symbol in symbols:
        if joined and joined[-1].name == r"\not":
            box = _union(joined.pop().box, symbol.box)
            symbol = Symbol(_name(rf"\not{symbol.name}", ""), box, fixed_size=False)  # noqa: PLW2901
        joined.append(symbol)
    return joined


def _union(first: Box | None, second: Box | None) -> Box | None:
    if first is None or second is None:
        return first or second
    (left, top, right, bottom), (left2, top2, right2, bottom2) = first, second
    return min(left, left2), min(top, top2), max(right, right2), max(bottom, bottom2)


def _name(text: str, font: str) -> str:
    for prefix in (r"\left", r"\right"):
        if text.startswith(prefix) and (rest := text.removeprefix(prefix)) and not rest[0].isalpha():
            text = commands.DELIMITER_ALIASES.get(rest, rest)
    text = NAMES.get(text, text)
    if text.isdigit() or text in _CAPITAL_GREEK:
        font = "" if font == "roman" else font
    elif not (len(text) == 1 and text.isalpha()):
        font = font if font == "bold-symbols" else ""
    return f"{text} {font}" if font else text


Array = npt.NDArray[np.float64]

# In em, the size of the type. A superscript read as subscript moves by 0.6 em; a subscript beside a
# superscript is 0.05 to 0.1 em lower than one alone.
_MAX_SHIFT_EM: Final = 0.15
_MAX_DISTANCE_EM: Final = 1.0
_MAX_SIZE_RATIO: Final = 1.2  # the next smaller size of TeX is 1.4 times smaller
_MAX_SIZE_DIFFERENCE_PX: Final = 2
# Parts of a formula, such as the rows of an array, may move as a whole if they are this large.
_MIN_PART_SYMBOLS: Final = 5
_MIN_PART_SHARE: Final = 0.25


@dataclass(frozen=True)
class DetectionResult:
    """How many symbols were found."""

    found: int
    target_symbols: int
    predicted_symbols: int

    @property
    def f1(self) -> float:
        """1 if every symbol was found and none is too many."""
        total = self.target_symbols + self.predicted_symbols
        return 2 * self.found / total if total else 1.0

    @property
    def right(self) -> bool:
        """Whether every symbol was found and none is too many."""
        return 2 * self.found == self.target_symbols + self.predicted_symbols


def detect_symbols(
    target: Sequence[Symbol], prediction: Sequence[Symbol], *, em_px: float
) -> DetectionResult:
    """Count the symbols of the target that the prediction has in the same place."""
    matches = _match_in_order(target, prediction)
    placed = [pair for pair in matches if _has_place(target, prediction, pair)]
    free = len(matches) - len(placed)  # matched symbols without a box: nothing to check
    placed += _match_rest(target, prediction, matches, em_px)
    found = free + _count_in_place(target, prediction, placed, em_px)
    return DetectionResult(found, len(target), len(prediction))


def _match_in_order(target: Sequence[Symbol], prediction: Sequence[Symbol]) -> list[tuple[int, int]]:
    names = [symbol.name for symbol in target], [symbol.name for symbol in prediction]
    return [
        (block.a + step, block.b + step)
        for block in Levenshtein.opcodes(*names).as_matching_blocks()
        for step in range(block.size)
    ]


def _has_place(target: Sequence[Symbol], prediction: Sequence[Symbol], pair: tuple[int, int]) -> bool:
    return target[pair[0]].box is not None and prediction[pair[1]].box is not None


def _match_rest(
    target: Sequence[Symbol],
    prediction: Sequence[Symbol],
    matches: Sequence[tuple[int, int]],
    em_px: float,
) -> list[tuple[int, int]]:
    """Pairs of equal names among the symbols without a match, nearest to each other in all."""
    used = {i for i, _ in matches}, {j for _, j in matches}
    rest = [
        [index for index, symbol in enumerate(side) if index not in taken and symbol.box is not None]
        for side, taken in ((target, used[0]), (prediction, used[1]))
    ]
    pairs = []
    for name in {target[i].name for i in rest[0]} & {prediction[j].name for j in rest[1]}:
        ours = [i for i in rest[0] if target[i].name == name]
        theirs = [j for j in rest[1] if prediction[j].name == name]
        distances = np.abs(_centres(target, ours)[:, None] - _centres(prediction, theirs)[None]).max(axis=2)
        pairs += [
            (ours[i], theirs[j])
            for i, j in zip(*linear_sum_assignment(distances), strict=True)
            if distances[i, j] <= _MAX_DISTANCE_EM * em_px
        ]
    known = [pair for pair in matches if _has_place(target, prediction, pair)]
    return [pair for pair in pairs if not _changed_sides(target, prediction, pair, known)]


def _changed_sides(
    target: Sequence[Symbol],
    prediction: Sequence[Symbol],
    pair: tuple[int, int],
    known: Sequence[tuple[int, int]],
) -> bool:
    """Say whether a symbol beside the first one of a pair is on the other side of the second."""
    if not known:
        return False
    sides = []
    for symbols, index, others in (
        (target, pair[0], [i for i, _ in known]),
        (prediction, pair[1], [j for _, j in known]),
    ):
        own, boxes = _boxes(symbols, [index])[0], _boxes(symbols, others)
        level = (boxes[:, 1] < own[3]) & (own[1] < boxes[:, 3])
        sides.append(np.where(level, np.sign(boxes[:, [0, 2]].sum(axis=1) - own[0] - own[2]), 0))
    return bool((sides[0] * sides[1] < 0).any())


def _boxes(symbols: Sequence[Symbol], indices: Sequence[int]) -> Array:
    return np.array([symbols[index].box for index in indices], dtype=np.float64).reshape(-1, 4)


def _centres(symbols: Sequence[Symbol], indices: Sequence[int]) -> Array:
    boxes = _boxes(symbols, indices)
    return (boxes[:, :2] + boxes[:, 2:]) / 2


def _count_in_place(
    target: Sequence[Symbol], prediction: Sequence[Symbol], pairs: Sequence[tuple[int, int]], em_px: float
) -> int:
    """How many matched symbols have the right height above the baseline, and the right size."""
    ours, theirs = _boxes(target, [i for i, _ in pairs]), _boxes(prediction, [j for _, j in pairs])
    tops, bottoms = theirs[:, 1] - ours[:, 1], theirs[:, 3] - ours[:, 3]
    # Stretched ones (roots, fences) keep their top, their bottom or their middle.
    shifts = np.stack([tops, bottoms, (tops + bottoms) / 2], axis=1)
    heights = ours[:, 3] - ours[:, 1], theirs[:, 3] - theirs[:, 1]
    higher: Array = np.maximum(*heights)
    lower: Array = np.minimum(*heights)
    fixed = np.array([target[i].fixed_size for i, _ in pairs], dtype=bool)
    resized = fixed & (higher > _MAX_SIZE_RATIO * lower) & (higher - lower > _MAX_SIZE_DIFFERENCE_PX)
    left = shifts[~resized]
    needed, found = 0.0, 0
    while len(left):
        distances = np.abs(left[:, None, :] - left[None, :, 2:]).min(axis=2)
        near = distances <= _MAX_SHIFT_EM * em_px
        inside = near[:, near.sum(axis=0).argmax()]
        if inside.sum() < needed:
            break
        found += int(inside.sum())
        left = left[~inside]
        needed = max(_MIN_PART_SYMBOLS, _MIN_PART_SHARE * len(pairs))
    return found
