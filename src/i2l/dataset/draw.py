"""Samples drawn in the style of their recipe, and how a style and an image are written down."""

import io
import json
from collections.abc import Sequence
from dataclasses import asdict
from functools import cache

from PIL import Image

from i2l.images.rasterize import Pixels
from i2l.images.render import RenderResult, render_formulas
from i2l.images.styles import PAPER, Style

_PAPER_TEXT = "paper"


def style_text(style: Style) -> str:
    """Write a style down: `paper`, or JSON of what differs from it."""
    if style == PAPER:
        return _PAPER_TEXT
    usual = asdict(PAPER)
    return json.dumps({name: value for name, value in asdict(style).items() if value != usual[name]})


@cache
def style_from_text(text: str) -> Style:
    """Read what `style_text` wrote."""
    return PAPER if text == _PAPER_TEXT else Style(**json.loads(text))


def encode_png(pixels: Pixels) -> bytes:
    """Pack an image; the bytes depend on nothing but the pixels and the versions of Pillow and zlib."""
    file = io.BytesIO()
    # level 4 packs within 3 % of level 6 and takes 0.56 ms instead of 0.78 for a formula at 200 dpi
    Image.fromarray(pixels).save(file, format="png", compress_level=4)
    return file.getvalue()


def draw_formulas(formulas: Sequence[str], *, style: Style, boxes: bool) -> list[RenderResult]:
    """Render formulas."""
    return render_formulas(formulas, style=style, boxes=boxes)
