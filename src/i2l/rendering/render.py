"""Formulas to images by TeX: the one call that the rest of the package uses, and their boxes for people."""

import multiprocessing
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import repeat
from typing import TYPE_CHECKING, Final

from PIL import Image, ImageDraw

from i2l.rendering import EMPTY, TOO_LARGE
from i2l.rendering.boxes import find_boxes
from i2l.rendering.camera import degrade
from i2l.rendering.rasterize import Box, PageImage, Pixels, open_pdf, rasterize_page
from i2l.rendering.styles import PAPER, Style
from i2l.rendering.tex import compile_formulas

if TYPE_CHECKING:
    from pypdfium2 import PdfDocument

# Starting TeX and embedding fonts costs as much as a thousand formulas; more in a batch only take memory.
_FORMULAS_PER_BATCH: Final = 5000
_MESSAGES: Final = {EMPTY: "the formula draws nothing", TOO_LARGE: "the formula is larger than its page"}


@dataclass(frozen=True)
class RenderResult:
    """The picture of a formula, or why there is none."""

    formula: str
    reason: str | None = None  # None if all is well, else tex-error, timeout, too-large, refused or empty
    message: str = ""  # TeX's own words
    pixels: Pixels | None = None  # grey, 255 is white; cropped to the ink, unless the style has margins
    boxes: list[Box | None] | None = None  # one entry for each canonical token; None if not found


def render_formulas(
    formulas: Sequence[str],
    *,
    style: Style | Sequence[Style] = PAPER,
    boxes: bool = False,
    jobs: int = 1,
    timeout_s: int = 5,
) -> list[RenderResult]:
    """Render every formula; one result each, in order.

    Args:
        formulas: LaTeX, as it would stand in a display.
        style: one for all, or one for each formula. Formulas that differ in what TeX does to them cannot
            share a TeX process, so many different ones are slow.
        boxes: also find the box of every canonical token. The result has none if the formula is not one that
            `normalize_formula` reads, or if a token's ink cannot be told from its neighbour's.
        jobs: processes to share the work among.
        timeout_s: CPU seconds for a formula that needs a TeX process of its own.

    Raises:
        MissingDependencyError: if pdflatex or pypdfium2 is not installed.
        TexError: if a style's TeX packages are not installed.
    """
    styles = list(repeat(style, len(formulas))) if isinstance(style, Style) else list(style)
    groups: dict[Style, list[int]] = {}
    for index, own in enumerate(styles):
        groups.setdefault(own.tex_part(), []).append(index)
    size = min(_FORMULAS_PER_BATCH, -(-len(formulas) // jobs)) or 1
    batches = [
        group[start : start + size] for group in groups.values() for start in range(0, len(group), size)
    ]
    tasks = [([formulas[i] for i in batch], [styles[i] for i in batch]) for batch in batches]
    work = partial(_render_batch, boxes=boxes, timeout_s=timeout_s)
    results: dict[int, RenderResult] = {}
    for batch, rendered in zip(batches, _run(work, tasks, jobs), strict=True):
        results.update(zip(batch, rendered, strict=True))
    return [results[index] for index in range(len(formulas))]


_Task = tuple[list[str], list[Style]]


def _run(work: "partial[list[RenderResult]]", tasks: list[_Task], jobs: int) -> Iterator[list[RenderResult]]:
    if jobs == 1 or len(tasks) < 2:
        yield from map(work, tasks)
        return
    with ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("spawn")) as pool:
        yield from pool.map(work, tasks)


def draw_pages(pdf: bytes, pages: Sequence[int], styles: Iterable[Style]) -> Iterator[PageImage]:
    """Draw pages (counted from 0) of a compiled batch, each in its own style.

    Photographs may show parts of the pages before and after; their size and boxes do not depend on those.

    Raises:
        MissingDependencyError: if pypdfium2 is not installed.
    """
    if pages:
        with open_pdf(pdf) as document:
            for page, style in zip(pages, styles, strict=True):
                image = rasterize_page(document, page, dpi=style.dpi, rotation_deg=style.rotation_deg)
                yield degrade(image, style, partial(_neighbour, document, page, style.dpi))


def _neighbour(document: "PdfDocument", page: int, dpi: int, offset: int) -> Pixels | None:
    return rasterize_page(document, (page + offset) % len(document), dpi=dpi).pixels


def _render_batch(task: _Task, *, boxes: bool, timeout_s: int) -> list[RenderResult]:
    """Render formulas whose styles have the same TeX part."""
    formulas, styles = task
    batch = compile_formulas(formulas, style=styles[0].tex_part(), timeout_s=timeout_s)
    drawn = [index for index, verdict in enumerate(batch.formulas) if verdict.page is not None]
    pages = [verdict.page for verdict in batch.formulas if verdict.page is not None]
    images = dict(zip(drawn, draw_pages(batch.pdf, pages, [styles[index] for index in drawn]), strict=True))
    found = find_boxes(formulas, styles, batch, images) if boxes else {}
    results = []
    for index, (formula, verdict) in enumerate(zip(formulas, batch.formulas, strict=True)):
        image = images.get(index)
        if image is None:
            results.append(RenderResult(formula, verdict.reason, verdict.message))
        elif image.reason:
            results.append(RenderResult(formula, image.reason, _MESSAGES[image.reason]))
        else:
            results.append(RenderResult(formula, pixels=image.pixels, boxes=found.get(index)))
    return results


_ZOOM: Final = 3
_COLORS: Final = ("#d62728", "#1f77b4", "#2ca02c", "#9467bd", "#ff7f0e", "#17becf", "#e377c2", "#8c564b")


def draw_boxes(pixels: Pixels, boxes: Sequence[Box | None]) -> Image.Image:
    """Enlarge an image and outline each box on it; the outline lies on the box's outermost pixels."""
    image = Image.fromarray(pixels).convert("RGB")
    image = image.resize((image.width * _ZOOM, image.height * _ZOOM), Image.Resampling.NEAREST)
    draw = ImageDraw.Draw(image)
    for number, (left, top, right, bottom) in enumerate(box for box in boxes if box is not None):
        corners = (left * _ZOOM, top * _ZOOM, right * _ZOOM - 1, bottom * _ZOOM - 1)
        draw.rectangle(corners, outline=_COLORS[number % len(_COLORS)])
    return image
