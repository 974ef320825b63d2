"""Formulas to images: the one call that the rest of the package uses, and pictures for people.

For people a formula is typeset as a PNG file or as an SVG file made of outlines, or shown with its boxes
drawn in.
"""

import io
import multiprocessing
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import repeat
from typing import TYPE_CHECKING, Any, Final

from PIL import Image, ImageDraw

from i2l.errors import I2LError, require_extra
from i2l.rendering import EMPTY, TOO_LARGE
from i2l.rendering.boxes import find_boxes
from i2l.rendering.camera import degrade
from i2l.rendering.rasterize import Box, Glyph, Ink, PageImage, PdfInk, Pixels, Rule, open_pdf, rasterize_page
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


MARGIN_PT: Final = 2.0


class TypesetError(I2LError):
    """A formula that TeX cannot draw; the message has TeX's own words."""


def typeset_png(latex: str, *, dpi: int = 300) -> bytes:
    """Typeset a formula as a PNG file, cropped to its ink with a small white margin.

    Raises:
        TypesetError: if TeX cannot draw it.
        MissingDependencyError: if pdflatex or pypdfium2 is not installed.
    """
    from dataclasses import replace

    (result,) = render_formulas([latex], style=replace(PAPER, dpi=dpi))
    if result.pixels is None:
        raise TypesetError(f"TeX cannot draw this formula ({result.reason}): {result.message}")
    height, width = result.pixels.shape
    margin = round(MARGIN_PT * dpi / 72)
    page = Image.new("L", (width + 2 * margin, height + 2 * margin), 255)
    page.paste(Image.fromarray(result.pixels), (margin, margin))
    file = io.BytesIO()
    page.save(file, "PNG", dpi=(dpi, dpi))
    return file.getvalue()


def typeset_svg(latex: str) -> str:
    """Typeset a formula as an SVG file: the outlines of its glyphs, so that no font is needed to show it.

    Raises:
        TypesetError: if TeX cannot draw it.
        MissingDependencyError: if pdflatex or fonttools is not installed.
    """
    batch = compile_formulas([latex], style=PAPER.tex_part())
    (verdict,) = batch.formulas
    if verdict.page is None:
        raise TypesetError(f"TeX cannot draw this formula ({verdict.reason}): {verdict.message}")
    pdf = PdfInk(batch.pdf)
    ink = pdf.page(verdict.page)
    if not ink:
        raise TypesetError("TeX draws nothing for this formula.")
    return _Outlines(pdf).svg(ink)


class _Outlines:
    """The outlines of the glyphs that a PDF of ours shows."""

    def __init__(self, pdf: PdfInk) -> None:
        self.pdf = pdf
        self.fonts: dict[str, Any] = {}

    def font(self, resource: str) -> Any:  # noqa: ANN401 - of fontTools
        """Read the Type 1 font that is embedded under a name."""
        if resource not in self.fonts:
            t1 = require_extra("fontTools.t1Lib", "data")
            font = t1.T1Font.__new__(t1.T1Font)
            font.data = self.pdf.font_program(resource)
            font.encoding = "ascii"
            font.parse()
            self.fonts[resource] = font
        return self.fonts[resource]

    def draw(self, glyph: Glyph, pen: Any) -> None:  # noqa: ANN401
        """Draw one glyph at its place on the page, y upwards."""
        transform = require_extra("fontTools.pens.transformPen", "data").TransformPen
        font = self.font(glyph.resource)
        glyphs = font.getGlyphSet()
        name = glyph.shape if glyph.shape in glyphs else font["Encoding"][glyph.code]
        scale = glyph.size / 1000
        place = (scale * glyph.stretch, 0, scale * glyph.slant, scale, glyph.x, glyph.y)
        glyphs[name].draw(transform(pen, place))

    def svg(self, ink: list[Ink]) -> str:
        """Write ink as an SVG file, cropped to it."""
        paths = require_extra("fontTools.pens.svgPathPen", "data")
        bounds = require_extra("fontTools.pens.boundsPen", "data").BoundsPen(None)
        flip = require_extra("fontTools.pens.transformPen", "data").TransformPen
        pen = paths.SVGPathPen(None, ntos=lambda number: f"{number:.3f}".rstrip("0").rstrip("."))
        for target in (bounds, flip(pen, (1, 0, 0, -1, 0, 0))):
            for piece in ink:
                if isinstance(piece, Rule):
                    _draw_rule(piece, target)
                else:
                    self.draw(piece, target)
        if bounds.bounds is None:
            raise TypesetError("TeX draws nothing for this formula.")
        left, bottom, right, top = bounds.bounds
        width, height = right - left + 2 * MARGIN_PT, top - bottom + 2 * MARGIN_PT
        box = f"{left - MARGIN_PT:.2f} {-top - MARGIN_PT:.2f} {width:.2f} {height:.2f}"
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.2f}pt" height="{height:.2f}pt" '
            f'viewBox="{box}"><path d="{pen.getCommands()}"/></svg>'
        )


def _draw_rule(rule: Rule, pen: Any) -> None:  # noqa: ANN401
    corners = (
        (rule.left, rule.bottom),
        (rule.right, rule.bottom),
        (rule.right, rule.top),
        (rule.left, rule.top),
    )
    pen.moveTo(corners[0])
    for corner in corners[1:]:
        pen.lineTo(corner)
    pen.closePath()
