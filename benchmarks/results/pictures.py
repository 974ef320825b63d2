"""Draws the examples of docs/errors.md: the target above, the reading below."""

import json
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
from PIL import Image

from benchmarks.results.store import EXAMPLES
from i2l.evaluation.visual import MAX_INK
from i2l.formulas.normalize import normalize_formula
from i2l.rendering.render import render_formulas

FOLDER: Final = Path(__file__).parents[2] / "docs" / "results"
_MARGIN_PX: Final = 12
_WHITE, _BLACK, _RULE = 0, 1, 2  # places in the palette
_PALETTE: Final = (255, 255, 255, 20, 20, 20, 200, 205, 215)


def draw_examples() -> None:
    """Write one PNG an example; needs pdflatex."""
    examples = json.loads(EXAMPLES.read_text(encoding="utf-8"))
    formulas = [
        normalize_formula(example[side]).latex for example in examples for side in ("target", "reading")
    ]
    renders = [render.pixels for render in render_formulas(formulas)]
    for number, example in enumerate(examples):
        target, reading = renders[2 * number : 2 * number + 2]
        if target is None or reading is None:
            raise ValueError(f"TeX cannot draw example {example['name']}.")
        picture = Image.fromarray(_stack(target, reading), mode="P")
        picture.putpalette(_PALETTE)
        picture.save(FOLDER / f"{example['name']}.png", optimize=True)


def _stack(above: npt.NDArray[np.uint8], below: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """Both on one sheet in black and white, a rule between them."""
    width = max(above.shape[1], below.shape[1]) + 2 * _MARGIN_PX
    height = above.shape[0] + below.shape[0] + 4 * _MARGIN_PX
    sheet = np.full((height, width), _WHITE, dtype=np.uint8)
    middle = above.shape[0] + 2 * _MARGIN_PX
    sheet[middle, :] = _RULE
    for pixels, top in ((above, _MARGIN_PX), (below, middle + _MARGIN_PX)):
        ink = np.where(pixels <= MAX_INK, _BLACK, _WHITE)
        sheet[top : top + pixels.shape[0], _MARGIN_PX : _MARGIN_PX + pixels.shape[1]] = ink
    return sheet
