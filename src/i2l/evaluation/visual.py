"""Pictures against pictures: renders both sides of every pair in one batch and compares them.

Each formula is first made ready for comparing: its tokens, and what TeX is given. Equal formulas are rendered
once. A target that cannot be rendered is not left out: its prediction is right if it has the same tokens, and
wrong otherwise (only im2markup's own scores skip it, as im2markup does).
"""

import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from PIL import Image

from i2l.evaluation.detection import DetectionResult, detect_symbols, find_symbols
from i2l.evaluation.image_match import (
    MAX_INK,
    ImageMatch,
    PixelDifference,
    Pixels,
    find_difference,
    match_images,
)
from i2l.evaluation.scores import Columns, without_spacing
from i2l.formulas.lexer import FormulaError, RawTokens, Token
from i2l.formulas.normalize import NormalizeResult, normalize_formula
from i2l.rendering import EMPTY
from i2l.rendering.isolation import IsolationError
from i2l.rendering.render import RenderResult, render_formulas
from i2l.rendering.sandbox import run_pdflatex
from i2l.rendering.styles import PAPER
from i2l.rendering.tex import document


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
        return bool(
            run_pdflatex(document(PAPER, body, trusted=False), trusted=False, cpu_s=_ERRORS_CPU_S).pdf
        )
    except IsolationError:
        return False


def encode_png(pixels: Pixels) -> bytes:
    """A render in black and white, as the matchers see it: about 1 kB."""
    buffer = io.BytesIO()
    Image.fromarray(pixels > MAX_INK).save(buffer, "PNG")
    return buffer.getvalue()
