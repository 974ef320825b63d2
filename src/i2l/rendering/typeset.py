"""One formula typeset by TeX, for people: as a PNG file, or as an SVG file made of outlines."""

import io
from typing import Any, Final

from PIL import Image

from i2l.errors import I2LError, require_extra
from i2l.rendering.pdf_ink import Glyph, Ink, PdfInk, Rule
from i2l.rendering.render import render_formulas
from i2l.rendering.styles import PAPER
from i2l.rendering.tex import compile_formulas

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
