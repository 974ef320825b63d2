"""An explanation as a page and as pictures.

The page is one HTML file to explore, which needs no network and no server. The pictures are the paper's
contact sheet, an animated scan, and all boxes at once.
"""

import base64
import io
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from markupsafe import Markup
from PIL import Image, ImageDraw, ImageFont

from i2l.explain.attention import FOCUS_SHARE, AttentionMapper, Placement, Spread, cells_for_share
from i2l.explain.explanation import ExplainedToken, Explanation
from i2l.formulas.vocabulary import EOS
from i2l.html import fill_template, page_file
from i2l.images.prepare import Box

_MAX_SIDE_PX: Final = 1600
_MAX_IMAGE_BYTES: Final = 240_000  # base64 makes a third more of it; the page stays under 500 kB


def explanation_page(explanation: Explanation) -> str:
    """Write the page to explore an explanation with: one file that needs no network."""
    url, shown = image_url(explanation.image)
    zoom_x, zoom_y = shown.width / explanation.image.width, shown.height / explanation.image.height
    return fill_template(
        "i2l.explain",
        "explain.html",
        title=explanation.title,
        latex=explanation.latex,
        width=shown.width,
        height=shown.height,
        style=page_file("i2l.explain", "explain.css"),
        script=page_file("i2l.explain", "explain.js"),
        image=url,
        data=_data(explanation, shown.size, zoom_x, zoom_y),
    )


def image_url(image: Image.Image, *, max_bytes: int = _MAX_IMAGE_BYTES) -> tuple[str, Image.Image]:
    """Write an image as a data URL that is not too long; return it and the image in it, maybe smaller."""
    shown = image.convert("L" if image.mode in ("1", "L", "I;16") else "RGB")
    shown.thumbnail((_MAX_SIDE_PX, _MAX_SIDE_PX))
    kind, content = "png", _encode(shown, "png", optimize=True)
    while len(content) > max_bytes:
        kind, content = "jpeg", _encode(shown, "jpeg", quality=80)
        if len(content) > max_bytes:
            shown = shown.resize((max(shown.width * 3 // 4, 1), max(shown.height * 3 // 4, 1)))
    return f"data:image/{kind};base64,{base64.b64encode(content).decode()}", shown


def _encode(image: Image.Image, kind: str, **options: Any) -> bytes:  # noqa: ANN401 - whatever Pillow takes
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return buffer.getvalue()


def _data(explanation: Explanation, size: tuple[int, int], zoom_x: float, zoom_y: float) -> dict[str, Any]:
    """Collect all that the page's script needs; places are in pixels of the image shown."""
    rows, columns = explanation.field.rows, explanation.field.columns
    placement = explanation.placement
    pixel_x, pixel_y = zoom_x / placement.scale_x, zoom_y / placement.scale_y  # of the canvas, on the image
    attention = explanation.attention
    cells = cells_for_share(attention, FOCUS_SHARE)
    return {
        "width": size[0],
        "height": size[1],
        "grid": {
            "rows": rows.num_cells,
            "columns": columns.num_cells,
            "left": (columns.core_start_px - placement.offset_x) * pixel_x,
            "top": (rows.core_start_px - placement.offset_y) * pixel_y,
            "width": columns.stride_px * pixel_x,
            "height": rows.stride_px * pixel_y,
        },
        "field": {"width": columns.field_px * pixel_x, "height": rows.field_px * pixel_y},
        "attention": base64.b64encode(np.round(255 * attention).astype(np.uint8).tobytes()).decode(),
        "tokens": [
            {
                "text": "end" if token.text == EOS else token.text,
                "end": token.text == EOS,
                "visible": token.visible,
                "probability": round(token.probability, 5),
                "alternatives": [
                    ("end" if text == EOS else text, round(share, 5)) for text, share in token.alternatives
                ],
                "cells": int(count),
                "box": token.box
                and [
                    round(side * zoom, 2) for side, zoom in zip(token.box, (zoom_x, zoom_y) * 2, strict=True)
                ],
            }
            for token, count in zip(explanation.tokens, cells, strict=True)
        ],
    }


Font = ImageFont.FreeTypeFont | ImageFont.ImageFont
Density = npt.NDArray[np.float64]

_INK: Final = (28, 35, 48)
_DIM: Final = (93, 102, 120)
_MARKED: Final = (194, 65, 12)
_HEAT: Final = np.array([240, 130, 50], np.float64)
_HEAT_STEPS: Final = 12
_DARKEST: Final = 0.55  # of its light is lost where attention is fullest; ink still shows there
_LEAST_PEAK: Final = 0.25  # of attention on a cell; where no token has more on one, the sheet stays paler
_COLOURS: Final = ("#d62728", "#1f77b4", "#2ca02c", "#9467bd", "#b8600b", "#0e7490", "#c2378f", "#8c564b")
_GAP_PX: Final = 10
_PANEL_WIDTH_PX: Final = 360
_SHEET_COLUMNS: Final = 4
_FRAME_WIDTH_PX: Final = 720
_FRAME_MS: Final = 350
_LAST_FRAME_MS: Final = 1500
_LABEL_PX: Final = 15


def contact_sheet(
    explanation: Explanation,
    *,
    spread: Spread = "bilinear",
    columns: int = _SHEET_COLUMNS,
    panel_width_px: int = _PANEL_WIDTH_PX,
) -> Image.Image:
    """Draw one panel a token under its name, the whiter the less the model looked there; ink stays black.

    The first panel is the image itself. As in the paper's figure, darkness is proportional to attention, and
    the darkest place of a sheet is the one that had the most.
    """
    image, placement = _fitted(explanation, panel_width_px)
    densities = list(_densities(explanation, placement, spread))
    peak = max(_LEAST_PEAK, *(float(density.max()) for density in densities))
    panels: list[tuple[str, Density]] = [("", image.astype(np.float64))]
    for token, density in zip(explanation.tokens, densities, strict=True):
        panels.append((_name(token), image * (1 - _DARKEST / peak * density)))
    height, width = image.shape[:2]
    label_px = round(_LABEL_PX * panel_width_px / _PANEL_WIDTH_PX)
    title_px = label_px + 8
    step_x, step_y = width + 2 * _GAP_PX, height + title_px + 2 * _GAP_PX
    columns = min(columns, len(panels))
    sheet = Image.new("RGB", (columns * step_x, -(-len(panels) // columns) * step_y), "white")
    draw, font = ImageDraw.Draw(sheet), _font(label_px)
    for number, (name, pixels) in enumerate(panels):
        left, top = number % columns * step_x + _GAP_PX, number // columns * step_y + _GAP_PX
        draw.text((left + width / 2, top), name, fill=_INK, font=font, anchor="ma")
        sheet.paste(Image.fromarray(pixels.astype(np.uint8)), (left, top + title_px))
        draw.rectangle(
            (left - 1, top + title_px - 1, left + width, top + title_px + height), outline="#d8dde6"
        )
    return sheet


def scan_gif(explanation: Explanation, *, spread: Spread = "bilinear") -> bytes:
    """Draw the scan: a frame a token, its attention on the image and what was written so far under it."""
    image, placement = _fitted(explanation, _FRAME_WIDTH_PX)
    names = [_name(token) for token in explanation.tokens]
    images = []
    for number, density in enumerate(_densities(explanation, placement, spread), start=1):
        # The root, so that little can still be seen; in steps, so that frames compress.
        heat = np.round(np.sqrt(density) * _HEAT_STEPS) / _HEAT_STEPS
        pixels = image * (1 - heat * (1 - _HEAT / 255))
        images.append(_captioned(pixels.astype(np.uint8), names[:number]))
    buffer = io.BytesIO()
    # One palette for all frames: they share their colours, and frames then compress to what changes.
    palette = images[len(images) // 2].quantize(48)
    first, *others = [image.quantize(palette=palette, dither=Image.Dither.NONE) for image in images]
    durations = [_FRAME_MS] * len(others) + [_LAST_FRAME_MS]
    first.save(buffer, "gif", save_all=True, append_images=others, duration=durations, loop=0, optimize=True)
    return buffer.getvalue()


def boxes_svg(explanation: Explanation) -> str:
    """Draw all boxes with their tokens on the image, as SVG with the image inside."""
    url, _ = image_url(explanation.image)
    width, height = explanation.image.size
    size = _label_size(explanation)
    boxed = [token for token in explanation.tokens if token.box]
    labels = _place_labels([token.box for token in boxed if token.box], [_name(t) for t in boxed], size)
    margin = max(size, max((size - y for _, y in labels), default=0))
    box = Markup(
        '<g stroke="{colour}" fill="{colour}"><title>{name}</title>'
        '<rect x="{left:g}" y="{top:g}" width="{width:g}" height="{height:g}"'
        ' fill-opacity=".08" stroke-width="{stroke:g}"/>'
        '<text x="{x:g}" y="{y:g}" stroke="none">{name}</text></g>'
    )
    boxes = []
    for number, (token, (x, y)) in enumerate(zip(boxed, labels, strict=True)):
        left, top, right, bottom = token.box or (0, 0, 0, 0)
        boxes.append(
            box.format(
                name=_name(token),
                colour=_COLOURS[number % len(_COLOURS)],
                left=left,
                top=top,
                width=right - left,
                height=bottom - top,
                stroke=size / 10,
                x=x,
                y=y,
            )
        )
    whole = Markup(
        '<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{latex}" width="{whole_width:g}"'
        ' height="{whole_height:g}" viewBox="{left:g} {top:g} {whole_width:g} {whole_height:g}"'
        ' font-family="monospace" font-size="{size:g}" text-anchor="middle">'
        '<rect x="{left:g}" y="{top:g}" width="{whole_width:g}" height="{whole_height:g}" fill="white"/>'
        '<image href="{url}" width="{width}" height="{height}" preserveAspectRatio="none"/>{boxes}</svg>\n'
    )
    return whole.format(
        latex=explanation.latex,
        whole_width=width + 2 * size,
        whole_height=height + margin + size,
        left=-size,
        top=-margin,
        size=size,
        url=url,
        width=width,
        height=height,
        boxes=Markup("").join(boxes),
    )


def boxes_picture(explanation: Explanation) -> Image.Image:
    """Draw all boxes with their tokens on the image, enlarged if it is small."""
    image = explanation.image.convert("RGB")
    zoom = max(1.0, 1400 / image.width) if image.width < 1400 else 1.0
    image = image.resize((round(image.width * zoom), round(image.height * zoom)), Image.Resampling.LANCZOS)
    boxed = [(token, token.box) for token in explanation.tokens if token.box]
    boxes: list[Box] = [(a * zoom, b * zoom, c * zoom, d * zoom) for _, (a, b, c, d) in boxed]
    names = [_name(token) for token, _ in boxed]
    labels = _place_labels(boxes, names, _LABEL_PX)
    margin = int(max(_LABEL_PX, max((_LABEL_PX - y for _, y in labels), default=0))) + _GAP_PX
    picture = Image.new("RGB", (image.width + 2 * _GAP_PX, image.height + margin + _GAP_PX), "white")
    picture.paste(image, (_GAP_PX, margin))
    draw, font = ImageDraw.Draw(picture), _font(_LABEL_PX)
    for number, ((left, top, right, bottom), name, (x, y)) in enumerate(
        zip(boxes, names, labels, strict=True)
    ):
        colour = _COLOURS[number % len(_COLOURS)]
        corners = (left + _GAP_PX, top + margin, right + _GAP_PX - 1, bottom + margin - 1)
        draw.rectangle(corners, outline=colour, width=2)
        draw.text((x + _GAP_PX, y + margin), name, fill=colour, font=font, anchor="ms")
    return picture


def _fitted(explanation: Explanation, width_px: int) -> tuple[npt.NDArray[np.uint8], Placement]:
    """Scale the image to a width, small ones to twice their size at most; give where it then lies, too."""
    given, image = explanation.placement, explanation.image.convert("RGB")
    zoom = min(width_px / image.width, 2.0)
    size = max(round(image.width * zoom), 1), max(round(image.height * zoom), 1)
    placement = replace(
        given,
        height_px=size[1],
        width_px=size[0],
        scale_x=given.scale_x * image.width / size[0],
        scale_y=given.scale_y * image.height / size[1],
    )
    return np.asarray(image.resize(size, Image.Resampling.LANCZOS)), placement


def _densities(explanation: Explanation, placement: Placement, spread: Spread) -> Iterator[Density]:
    """Yield each token's attention by pixel; 1 is all of it on one cell's core."""
    mapper = AttentionMapper(explanation.field, placement=placement, spread=spread)
    core_px = explanation.field.rows.stride_px * explanation.field.columns.stride_px
    full = placement.scale_x * placement.scale_y / core_px
    for token in explanation.tokens:
        yield np.clip(mapper.map(token.attention) / full, 0, 1)[:, :, None]


def _captioned(pixels: npt.NDArray[np.uint8], names: Sequence[str]) -> Image.Image:
    """Put tokens under a frame, the last one marked; what has no room falls off at the left."""
    height, width = pixels.shape[:2]
    image = Image.new("RGB", (width + 2 * _GAP_PX, height + 2 * _GAP_PX + 34), "white")
    image.paste(Image.fromarray(pixels), (_GAP_PX, _GAP_PX))
    draw, font = ImageDraw.Draw(image), _font(18)
    lengths = [draw.textlength(name, font=font) + 9 for name in names]
    x = min(float(_GAP_PX), image.width - sum(lengths))
    for number, (name, length) in enumerate(zip(names, lengths, strict=True), start=1):
        colour = _MARKED if number == len(names) else _DIM
        draw.text((x, height + 2 * _GAP_PX + 4), name, fill=colour, font=font)
        x += length
    return image


def _place_labels(boxes: Sequence[Box], names: Sequence[str], size: float) -> list[tuple[float, float]]:
    """Place the labels: the middle of each foot, over its box, moved up where another is in the way."""
    taken: list[Box] = []
    places = []
    for (left, top, right, _), name in zip(boxes, names, strict=True):
        x, y, half = (left + right) / 2, top - 0.2 * size, 0.31 * size * len(name) + 1
        while any(a < x + half and x - half < c and b < y and y - size < d for a, b, c, d in taken):
            y -= size
        taken.append((x - half, y - size, x + half, y))
        places.append((x, y))
    return places


def _label_size(explanation: Explanation) -> float:
    """Of text on the SVG: as tall as a third of an ordinary symbol's line on the model's canvas."""
    return 10 / explanation.placement.scale_y


def _font(size: int) -> Font:
    return ImageFont.load_default(size)


def _name(token: ExplainedToken) -> str:
    return "end" if token.text == EOS else token.text
