"""An image with the boxes of its tokens drawn in, to look at."""

from collections.abc import Sequence
from typing import Final

from PIL import Image, ImageDraw

from i2l.images.glyphs import Box
from i2l.images.rasterize import Pixels

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
