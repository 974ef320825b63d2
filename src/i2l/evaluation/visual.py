"""Pictures against pictures: renders both sides of every pair in one batch and compares them.

Each formula is first made ready for comparing: its tokens, and what TeX is given. Equal formulas are rendered
once. A target that cannot be rendered is not left out: its prediction is right if it has the same tokens, and
wrong otherwise (only im2markup's own scores skip it, as im2markup does).

Two renders are compared by im2markup's matcher bug for bug, by ours, and by equality of pixels.

im2markup (Deng et al. 2017, evaluate_image.py) reads an image as a string of pixel columns:
  - ink is a pixel of at most 128; the lower image is padded below;
  - going through the target's columns and then the prediction's, a column gets the symbol of the first
    distinct earlier one that differs from it in fewer than 5 pixels, or a new symbol;
  - the images match unless an edit between the two strings covers 5 or more columns *of the target*.
So content inserted into the prediction is never seen, edits of up to 4 columns are forgiven any number of
times, and a column with fewer than 5 ink pixels is as good as blank. The original stops with an error above
255 symbols; Singh's copy, and this one, go on. Which edits there are depends on which of the shortest edit
scripts is taken: `_edit_script` takes that of python-Levenshtein 0.12, of the time of the published scores.
Today's rapidfuzz takes another, which turns one verdict in thirty on renders that differ.

Ours goes by columns too, blank ones left out. Two columns are equal if the ink of each lies within one pixel
of the other's, which is as far as a shift by a fraction of a pixel moves it; edits count on both sides, and
only single columns that touch other ink are forgiven. Trials behind this rule: docs/LOG.md.

Where two renders differ, for people: columns are aligned, so one error shows as one spot.
"""

import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from PIL import Image
from rapidfuzz.distance import Levenshtein

from i2l.evaluation.detection import DetectionResult, detect_symbols, find_symbols
from i2l.evaluation.scores import Columns, without_spacing
from i2l.formulas.lexer import FormulaError, RawTokens, Token
from i2l.formulas.normalize import NormalizeResult, normalize_formula
from i2l.rendering import EMPTY
from i2l.rendering.isolation import IsolationError
from i2l.rendering.render import RenderResult, render_formulas
from i2l.rendering.sandbox import run_tex
from i2l.rendering.styles import PAPER
from i2l.rendering.tex import document

Pixels = npt.NDArray[np.uint8]
Bits = npt.NDArray[np.bool_]
Words = npt.NDArray[np.uint64]  # (columns, words), a bit a pixel
Ids = npt.NDArray[np.int64]

MAX_INK: Final = 128
SAME_SYMBOL_PIXELS: Final = 5  # columns that differ in fewer pixels are one symbol
LONG_EDIT_COLUMNS: Final = 5  # an edit of so many columns is a mismatch


@dataclass(frozen=True)
class ImageMatch:
    """What the matchers say about a target and a prediction."""

    im2markup: bool  # with spaces
    im2markup_no_spaces: bool
    image_edits: int  # Levenshtein distance between the columns, compared exactly
    image_width: int  # of the wider image
    tolerant: bool
    strict: bool


Kind = Literal["replace", "insert", "delete"]


class Edit(NamedTuple):
    """One step of an edit script; the index that a step does not use is where it happens."""

    kind: Kind
    target: int
    prediction: int


def match_images(target: Pixels, prediction: Pixels) -> ImageMatch:
    """Compare two grey images that are cropped to their ink."""
    width = max(target.shape[1], prediction.shape[1])
    if target.shape == prediction.shape and np.array_equal(target, prediction):
        return ImageMatch(True, True, 0, width, True, True)
    height = max(target.shape[0], prediction.shape[0])
    inks = [_pad_below(pixels <= MAX_INK, height) for pixels in (target, prediction)]
    columns = [pack_columns(ink) for ink in inks]
    first, ids = distinct_columns(np.concatenate(columns))
    distinct = np.concatenate(columns)[first]
    strings = ids[: len(columns[0])], ids[len(columns[0]) :]
    edits = int(Levenshtein.distance(as_text(strings[0]), as_text(strings[1])))
    symbols = merge_similar(distinct)
    inked = distinct.any(axis=1)
    symbols_no_spaces = np.full(len(distinct), -1)
    symbols_no_spaces[inked] = merge_similar(distinct[inked])
    return ImageMatch(
        im2markup=edits == 0 or _no_long_edit(symbols[strings[0]], symbols[strings[1]]),
        im2markup_no_spaces=_match_no_spaces(symbols_no_spaces[strings[0]], symbols_no_spaces[strings[1]]),
        image_edits=edits,
        image_width=width,
        tolerant=_match_tolerant(*inks),
        strict=False,
    )


def _pad_below(ink: Bits, height: int) -> Bits:
    return np.pad(ink, ((0, height - ink.shape[0]), (0, 0)))


def pack_columns(ink: Bits) -> Words:
    """Columns as rows of 64-bit words."""
    packed = np.packbits(ink, axis=0)
    packed = np.pad(packed, ((0, -len(packed) % 8), (0, 0)))
    return np.ascontiguousarray(packed.T).view(np.uint64)


def distinct_columns(columns: Words) -> tuple[Ids, Ids]:
    """Where each distinct column comes first, in that order; and for every column, which of them it is."""
    keys = columns.view(np.dtype((np.void, columns.itemsize * columns.shape[1]))).ravel()
    _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return first[order], rank[inverse]


def as_text(ids: Ids) -> str:
    """A string of one character an id, for rapidfuzz."""
    return "".join(map(chr, ids.tolist()))


def merge_similar(distinct: Words) -> Ids:
    """The symbol of each distinct column: that of the first one before it that is similar and has its own."""
    symbols = np.empty(len(distinct), dtype=np.int64)
    rest = np.arange(len(distinct))
    symbol = 0
    while rest.size:
        differing = np.bitwise_count(distinct[rest] ^ distinct[rest[0]]).sum(axis=1)
        similar = differing < SAME_SYMBOL_PIXELS
        symbols[rest[similar]] = symbol
        rest = rest[~similar]
        symbol += 1
    return symbols


def _match_no_spaces(target: Ids, prediction: Ids) -> bool:
    target, prediction = target[target >= 0], prediction[prediction >= 0]
    if not target.size or not prediction.size:
        return target.size == prediction.size
    return _no_long_edit(target, prediction)


def _no_long_edit(target: Ids, prediction: Ids) -> bool:
    """No run of edits of one kind covers LONG_EDIT_COLUMNS columns of the target; insertions cover none."""
    length, last = 0, None
    for edit in _edit_script(target[:, None] == prediction[None, :]):
        follows = last is not None and edit == (
            last.kind,
            last.target + (edit.kind != "insert"),
            last.prediction + (edit.kind != "delete"),
        )
        length = length + 1 if follows else 1
        if length >= LONG_EDIT_COLUMNS and edit.kind != "insert":
            return False
        last = edit
    return True


def _edit_script(equal: Bits) -> list[Edit]:
    """The edits that turn a target into a prediction, given which of their items are equal: (M, N).

    Of the shortest scripts, the one that python-Levenshtein 0.12 takes: equal ends are stripped; then, going
    back from the end, it goes on inserting or deleting while that is optimal; else it keeps, replaces,
    inserts or deletes, whichever is possible first.
    """
    shortest = min(equal.shape)
    start = _leading(equal.diagonal())
    end = _leading(equal[::-1, ::-1].diagonal()[: shortest - start])
    equal = equal[start : equal.shape[0] - end, start : equal.shape[1] - end]
    costs = _edit_costs(equal)
    edits = []
    i, j = equal.shape
    direction: Kind = "replace"
    while i or j:
        cost = costs[i, j]
        inserts = j > 0 and cost == costs[i, j - 1] + 1
        deletes = i > 0 and cost == costs[i - 1, j] + 1
        if (direction == "insert" and inserts) or (direction == "delete" and deletes):
            pass
        elif i and j and equal[i - 1, j - 1]:
            i, j, direction = i - 1, j - 1, "replace"
            continue
        elif i and j and cost == costs[i - 1, j - 1] + 1:
            direction = "replace"
        else:
            direction = "insert" if inserts else "delete"
        i -= direction != "insert"
        j -= direction != "delete"
        edits.append(Edit(direction, start + i, start + j))
    return edits[::-1]


def _leading(flags: Bits) -> int:
    """How many flags are set before the first that is not."""
    return int(np.argmin(flags)) if not flags.all() else len(flags)


def _edit_costs(equal: Bits) -> npt.NDArray[np.int32]:
    """The distance between the first i items and the first j, for all i and j."""
    rows, columns = equal.shape
    steps = np.arange(columns + 1, dtype=np.int32)
    costs = np.empty((rows + 1, columns + 1), dtype=np.int32)
    costs[0] = steps
    differs = (~equal).astype(np.int32)
    for i in range(rows):
        costs[i + 1, 0] = i + 1
        np.minimum(costs[i, :-1] + differs[i], costs[i, 1:] + 1, out=costs[i + 1, 1:])
        # Insertions: the cheapest of all that lie left, plus one for each step from there.
        costs[i + 1] = np.minimum.accumulate(costs[i + 1] - steps) + steps
    return costs


def _match_tolerant(target: Bits, prediction: Bits) -> bool:
    """Whether the inked columns differ only in single ones that touch ink."""
    inked: list[Bits] = [np.any(ink, axis=0) for ink in (target, prediction)]
    (first, second) = (
        (pack_columns(ink[:, kept]), pack_columns(_spread(ink)[:, kept]))
        for ink, kept in zip((target, prediction), inked, strict=True)
    )
    outside: Words = np.zeros((len(first[0]), len(second[0])), dtype=np.uint64)
    for word in range(first[0].shape[1]):
        outside |= first[0][:, None, word] & ~second[1][None, :, word]
        outside |= second[0][None, :, word] & ~first[1][:, None, word]
    alone = [_stands_alone(kept) for kept in inked]
    last = None
    for edit in _edit_script(outside == 0):
        if last is not None and edit.target - last.target <= 1 and edit.prediction - last.prediction <= 1:
            return False  # two columns in a row
        if edit.kind != "insert" and alone[0][edit.target]:
            return False
        if edit.kind != "delete" and alone[1][edit.prediction]:
            return False
        last = edit
    return True


def _spread(ink: Bits) -> Bits:
    """The ink and the pixels around it."""
    padded = np.pad(ink, 1)
    rows = padded[:-2] | padded[1:-1] | padded[2:]
    return rows[:, :-2] | rows[:, 1:-1] | rows[:, 2:]


def _stands_alone(inked: Bits) -> Bits:
    """For each inked column, whether both its neighbours are blank."""
    padded = np.pad(inked, 1)
    return (~padded[:-2] & ~padded[2:])[inked]


_MAX_SHIFT_PX: Final = 60


@dataclass(frozen=True)
class PixelDifference:
    """How to lay a prediction over its target."""

    shift_px: int  # rows to move the prediction down (up, if negative)
    blocks: list[tuple[int, int, int, int]]  # differing columns: target from, to, prediction from, to


def find_difference(target: Pixels, prediction: Pixels) -> PixelDifference:
    """Align two renders: one shift for all rows, then columns by a shortest edit script."""
    inks = [pixels <= MAX_INK for pixels in (target, prediction)]
    shift = _row_shift(*(ink.sum(axis=1) for ink in inks))
    tops = max(-shift, 0), max(shift, 0)
    height = max(ink.shape[0] + top for ink, top in zip(inks, tops, strict=True))
    columns = [
        pack_columns(np.pad(ink, ((top, height - top - ink.shape[0]), (0, 0))))
        for ink, top in zip(inks, tops, strict=True)
    ]
    together = np.concatenate(columns)
    first, ids = distinct_columns(together)
    symbols = merge_similar(together[first])[ids]
    width = len(columns[0])
    codes = Levenshtein.opcodes(as_text(symbols[:width]), as_text(symbols[width:]))
    blocks = [
        (code.src_start, code.src_end, code.dest_start, code.dest_end)
        for code in codes
        if code.tag != "equal"
    ]
    return PixelDifference(shift, blocks)


def _row_shift(target: npt.NDArray[np.int64], prediction: npt.NDArray[np.int64]) -> int:
    """The shift under which the ink of the rows fits best; the smallest of several."""
    fits = np.correlate(target.astype(np.float64), prediction.astype(np.float64), mode="full")
    shifts = np.arange(1 - len(prediction), len(target))
    allowed = np.abs(shifts) <= _MAX_SHIFT_PX
    order = np.argsort(np.abs(shifts[allowed]), kind="stable")
    return int(shifts[allowed][order][np.argmax(fits[allowed][order])])


@dataclass(frozen=True)
class PreparedFormula:
    """The two forms in which a formula is compared."""

    tokens: list[str]  # for the text scores
    latex: str  # for the image scores; empty if there is nothing to draw
    symbols: list[Token] | None  # the canonical tokens of what is drawn; None if it cannot be parsed

    @property
    def parsed(self) -> bool:
        """Whether it is a formula to us; nothing at all is not the fault of its writer."""
        return self.symbols is not None or not self.latex


def prepare_formula(formula: str, *, canonical: bool) -> PreparedFormula:
    """Prepare a formula as read from a file or from a model.

    Args:
        formula: LaTeX, or tokens with spaces between them.
        canonical: compare the text in canonical tokens; else split at its spaces and compare as it is. What
            cannot be parsed is split by the lexer, or at its spaces if even that fails.
    """
    try:
        normalized = normalize_formula(formula)
    except FormulaError:
        return PreparedFormula(_raw_tokens(formula) if canonical else formula.split(), formula.strip(), None)
    tokens = normalized.formula.split() if canonical else formula.split()
    return PreparedFormula(tokens, normalized.latex, _drawn_tokens(normalized))


def _drawn_tokens(normalized: NormalizeResult) -> list[Token]:
    """Return the tokens that the renderer has boxes for: those of the LaTeX that TeX is given.

    It can have fewer of them, with the same symbols: `\\text { ~ i ~ f ~ }` is `\\text { i f }` there.
    """
    if normalized.latex == normalized.formula:
        return normalized.tokens
    try:
        return normalize_formula(normalized.latex).tokens
    except FormulaError:  # the renderer finds no boxes then
        return normalized.tokens


def _raw_tokens(formula: str) -> list[str]:
    try:
        return [token for token in RawTokens(formula).texts if token]
    except FormulaError:
        return formula.split()


_EM_PX: Final = PAPER.size_pt * PAPER.dpi / 72.27
_ERRORS_CPU_S: Final = 5


@dataclass(frozen=True)
class VisualSample:
    """What rendering and comparing one pair gave."""

    counts: dict[str, float]  # the columns of the image and compile scores
    target_reason: str | None  # why there is no render, as in `RenderResult`
    prediction_reason: str | None
    message: str  # TeX's words about the prediction
    target_png: bytes  # empty if there is no render
    prediction_png: bytes  # empty also if it is the same picture
    difference: PixelDifference | None  # if there are two pictures


Pair = tuple[PreparedFormula, PreparedFormula]


def compare_images(pairs: Sequence[Pair]) -> list[VisualSample]:
    """Render both sides of every pair and compare them; TeX starts once or twice for all of them."""
    renders = _render(pairs)
    renders[""] = RenderResult("", reason="missing", message="no prediction")
    return [_compare(pair, renders[pair[0].latex], renders[pair[1].latex]) for pair in pairs]


def _render(pairs: Sequence[Pair]) -> dict[str, RenderResult]:
    """Every formula once. Boxes take as long again as drawing: only pairs that differ get them."""
    differing = {side.latex for pair in pairs for side in pair if pair[0].latex != pair[1].latex}
    renders: dict[str, RenderResult] = {}
    for boxes, formulas in (
        (True, sorted(differing)),
        (False, sorted({target.latex for target, _ in pairs} - differing)),
    ):
        wanted = [formula for formula in formulas if formula]
        renders |= dict(zip(wanted, render_formulas(wanted, boxes=boxes), strict=True))
    return renders


def visual_columns(samples: Sequence[VisualSample]) -> Columns:
    """The counts of all samples, by name."""
    names = samples[0].counts if samples else {}
    return {name: np.array([sample.counts[name] for sample in samples], dtype=np.float64) for name in names}


def _compare(pair: Pair, target: RenderResult, prediction: RenderResult) -> VisualSample:
    compiles = prediction.reason in (None, EMPTY)
    match = _match(pair, target.pixels, prediction.pixels)
    found = _detect(pair, target, prediction, match)
    width = 0 if target.pixels is None else target.pixels.shape[1]
    return VisualSample(
        counts={
            "target_renders": float(target.pixels is not None),
            "im2markup_match": float(match.im2markup),
            "im2markup_match_no_spaces": float(match.im2markup_no_spaces),
            "image_edits": float(match.image_edits if match.image_width else width),
            "image_widths": float(match.image_width or width),
            "tolerant_match": float(match.tolerant),
            "strict_match": float(match.strict),
            "character_f1": found.f1,
            "expression_right": float(found.right),
            "page_appeared": float(compiles or _page_appears(pair[1].latex)),
            "compiles": float(compiles),
        },
        target_reason=target.reason,
        prediction_reason=prediction.reason,
        message=prediction.message,
        target_png=b"" if target.pixels is None else encode_png(target.pixels),
        prediction_png=b"" if prediction.pixels is None or match.strict else encode_png(prediction.pixels),
        difference=None
        if match.strict or target.pixels is None or prediction.pixels is None
        else find_difference(target.pixels, prediction.pixels),
    )


def _match(pair: Pair, target: Pixels | None, prediction: Pixels | None) -> ImageMatch:
    if target is not None and prediction is not None:
        return match_images(target, prediction)
    same = target is None and without_spacing(pair[0].tokens) == without_spacing(pair[1].tokens)
    return ImageMatch(False, False, image_edits=0, image_width=0, tolerant=same, strict=same)


def _detect(pair: Pair, target: RenderResult, prediction: RenderResult, match: ImageMatch) -> DetectionResult:
    if match.strict:
        return DetectionResult(1, 1, 1)
    sides = [
        []
        if render.pixels is None or formula.symbols is None
        else find_symbols(formula.symbols, render.boxes)
        for formula, render in zip(pair, (target, prediction), strict=True)
    ]
    if not sides[0] or not sides[1]:
        return DetectionResult(0, max(len(sides[0]), 1), len(sides[1]))
    return detect_symbols(*sides, em_px=_EM_PX)


def _page_appears(latex: str) -> bool:
    """Whether pdflatex makes a PDF if it goes on after errors, as im2markup's script lets it.

    Where nothing isolates pdflatex the answer is no.
    """
    if not latex:
        return False
    body = [r"\begin{displaymath}", latex, r"\end{displaymath}"]
    try:
        return bool(run_tex(document(PAPER, body, trusted=False), trusted=False, cpu_s=_ERRORS_CPU_S).pdf)
    except IsolationError:
        return False


def encode_png(pixels: Pixels) -> bytes:
    """A render in black and white, as the matchers see it: about 1 kB."""
    buffer = io.BytesIO()
    Image.fromarray(pixels > MAX_INK).save(buffer, "PNG")
    return buffer.getvalue()
