"""Formulas to images: the one call that the rest of the package uses."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from i2l.images.rasterize import EMPTY, TOO_LARGE, Pixels, rasterize_pages
from i2l.images.styles import PAPER, Style
from i2l.images.tex import compile_formulas

MESSAGES: Final = {EMPTY: "the formula draws nothing", TOO_LARGE: "the formula is larger than its page"}

Box = tuple[int, int, int, int]  # left, top, right, bottom in pixels, half-open


@dataclass(frozen=True)
class RenderResult:
    """The picture of a formula, or why there is none."""

    formula: str
    reason: str | None = None  # None if all is well, else a short word: tex-error, timeout, too-large, empty
    message: str = ""  # TeX's own words
    pixels: Pixels | None = None  # grey, 255 is white, cropped to the ink
    boxes: list[Box | None] | None = None  # one entry for each canonical token; None if they were not found


def render_formulas(
    formulas: Sequence[str], *, style: Style = PAPER, boxes: bool = False, timeout_s: int = 5
) -> list[RenderResult]:
    """Render every formula; one result each, in order."""
    batch = compile_formulas(formulas, style=style, timeout_s=timeout_s)
    pages = [verdict.page for verdict in batch.formulas if verdict.page is not None]
    images = rasterize_pages(batch.pdf, pages, dpi=style.dpi)
    results = []
    for formula, verdict in zip(formulas, batch.formulas, strict=True):
        if verdict.page is None:
            results.append(RenderResult(formula, verdict.reason, verdict.message))
            continue
        image = next(images)
        message = MESSAGES[image.reason] if image.reason else ""
        results.append(RenderResult(formula, image.reason, message, image.pixels))
    return results
