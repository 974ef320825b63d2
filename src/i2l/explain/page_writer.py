"""The explanation as one HTML page that needs nothing else: no network, no server."""

import base64
import io
import json
from html import escape
from importlib.resources import files
from typing import Any, Final

import numpy as np
from PIL import Image

from i2l.explain.attention_claims import FOCUS_SHARE, cells_for_share
from i2l.explain.explanation import Explanation
from i2l.formulas.vocabulary import EOS

_MAX_SIDE_PX: Final = 1600
_MAX_IMAGE_BYTES: Final = 240_000  # base64 makes a third more of it; the page stays under 500 kB


def explanation_page(explanation: Explanation) -> str:
    """Give the page's text."""
    url, shown = image_url(explanation.image)
    zoom_x, zoom_y = shown.width / explanation.image.width, shown.height / explanation.image.height
    page = files("i2l.explain").joinpath("page")
    parts = {
        "TITLE": escape(explanation.title),
        "LATEX": escape(explanation.latex),
        "WIDTH": str(shown.width),
        "HEIGHT": str(shown.height),
        "STYLE": page.joinpath("explain.css").read_text(encoding="utf-8"),
        "SCRIPT": page.joinpath("explain.js").read_text(encoding="utf-8"),
        "IMAGE": url,
        "DATA": _script_text(_data(explanation, shown.size, zoom_x, zoom_y)),
    }
    text = page.joinpath("explain.html").read_text(encoding="utf-8")
    pieces = text.split("@")
    return "".join(parts.get(piece, piece) if index % 2 else piece for index, piece in enumerate(pieces))


def image_url(image: Image.Image, *, max_bytes: int = _MAX_IMAGE_BYTES) -> tuple[str, Image.Image]:
    """Give an image as a data URL that is not too long, and the image in it, which may be smaller."""
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
    """All that the script needs; places are in pixels of the image shown."""
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


def _script_text(content: object) -> str:
    """JSON that can stand inside a script element."""
    return json.dumps(content, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
