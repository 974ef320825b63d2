"""A contact sheet of the pictures of wild that were read wrong: picture, label drawn, reading drawn.

    python -m benchmarks.wild.sheet DATA OUT.json -o sheet.png --kinds lines,photo

It shows pictures of the data: look at it, and do not publish it.
"""

import argparse
import json
from pathlib import Path
from typing import Final

from PIL import Image, ImageDraw

from benchmarks.wild.judging import Judged
from benchmarks.wild.pictures import KINDS
from i2l.evaluation.visual import prepare_formula
from i2l.images.open import open_image
from i2l.rendering.rasterize import Pixels
from i2l.rendering.render import render_formulas

_CELL_PX: Final = (680, 400)
_GAP_PX: Final = 10


def draw_sheet(wrong: list[Judged], images: Path) -> Image.Image:
    """Draw a line for each picture, with its name, F1 and confidence above it."""
    formulas = [
        prepare_formula(text, canonical=True).latex or r"\quad"
        for one in wrong
        for text in (one.reference, one.reading)
    ]
    drawn = [_fit(render.pixels) for render in render_formulas(formulas)]
    lines = [
        [_fit(open_image(images / one.name)), *drawn[2 * place : 2 * place + 2]]
        for place, one in enumerate(wrong)
    ]
    heights = [max(cell.height for cell in line) + 3 * _GAP_PX for line in lines]
    sheet = Image.new("RGB", (3 * (_CELL_PX[0] + _GAP_PX), max(sum(heights), 1)), "white")
    pen, top = ImageDraw.Draw(sheet), 0
    for one, line, height in zip(wrong, lines, heights, strict=True):
        pen.text((0, top), f"{one.group} {one.name}  F1 {one.f1:.2f}  {one.confidence:.2f} sure", "blue")
        for column, cell in enumerate(line):
            sheet.paste(cell, (column * (_CELL_PX[0] + _GAP_PX), top + 2 * _GAP_PX))
        top += height
    return sheet


def _fit(source: Image.Image | Pixels | None) -> Image.Image:
    """Make a picture small enough for its cell; what was not drawn is a red spot."""
    if source is None:
        return Image.new("RGB", (30, 30), "red")
    image = (source if isinstance(source, Image.Image) else Image.fromarray(source)).convert("RGB")
    image.thumbnail(_CELL_PX)
    return image


def main() -> None:
    """Draw the sheet."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("measured", type=Path, help="what `python -m benchmarks.wild` wrote")
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("-o", "--output", type=Path, required=True)
    options = parser.parse_args()
    content = json.loads(options.measured.read_text(encoding="utf-8"))
    readings = [Judged(**one) for one in content["parts"]["wild"]["readings"]]
    kinds = options.kinds.split(",")
    wrong = [one for one in readings if not one.right and one.group in kinds]
    draw_sheet(wrong, options.data / "wild" / "images").save(options.output)
    print(f"{len(wrong)} pictures")


if __name__ == "__main__":
    main()
