"""How well the scale of a picture is estimated.

    python -m benchmarks.scale FORMULAS      one formula a line; about 400 will do

Prints for each resolution and disturbance the median and the standard deviation of log(estimated / true).
"""

import argparse
import dataclasses
import math
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageFilter

from i2l.formulas.lexer import FormulaError
from i2l.formulas.normalize import normalize_formula
from i2l.images.prepare import REFERENCE_DPI, estimate_scale
from i2l.rendering.render import render_formulas
from i2l.rendering.styles import PAPER, Style

DPIS = (70, 100, 130, 200, 300, 400)
Pixels = NDArray[np.uint8]


def blurred(sigma: float) -> Callable[[Pixels], Pixels]:
    """Give a blur by so many pixels."""
    return lambda pixels: np.asarray(
        Image.fromarray(np.pad(pixels, 8, constant_values=255)).filter(ImageFilter.GaussianBlur(sigma))
    )


def resized(factor: float) -> Callable[[Pixels], Pixels]:
    """Give a change of size."""
    return lambda pixels: np.asarray(
        Image.fromarray(pixels).resize(
            (max(1, round(pixels.shape[1] * factor)), max(1, round(pixels.shape[0] * factor)))
        )
    )


def render(formulas: list[str], style: Style) -> list[Pixels]:
    """Render what can be rendered."""
    return [result.pixels for result in render_formulas(formulas, style=style) if result.pixels is not None]


def report(name: str, images: list[Pixels], dpi: float) -> None:
    """Print the errors of one set."""
    scales = [estimate_scale(255 - pixels) for pixels in images]
    errors = np.array([math.log(scale * REFERENCE_DPI / dpi) for scale in scales if scale is not None])
    within = (np.abs(errors) < math.log(1.25)).mean()
    print(f"{name:28} {np.median(errors):+.2f}  {errors.std():.2f}  {within:6.1%} within 25 %")


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("formulas", type=Path)
    formulas = []
    for line in parser.parse_args().formulas.read_text().splitlines():
        try:
            formulas.append(normalize_formula(line).latex)
        except FormulaError:
            print(f"left out: {line[:60]}", file=sys.stderr)
    images = {dpi: render(formulas, dataclasses.replace(PAPER, dpi=dpi)) for dpi in DPIS}
    for dpi in DPIS:
        report(f"{dpi} dpi", images[dpi], dpi)
    report("130 dpi, zoomed to 260", [resized(2)(pixels) for pixels in images[130]], 260)
    report("300 dpi, zoomed to 150", [resized(0.5)(pixels) for pixels in images[300]], 150)
    for sigma in (0.5, 1.0, 1.5):
        report(f"200 dpi, blurred by {sigma} px", [blurred(sigma)(pixels) for pixels in images[200]], 200)
    for change in ({"bold": True}, {"font": "times"}, {"font": "palatino"}):
        style = dataclasses.replace(PAPER, dpi=150, **change)
        report(f"150 dpi, {next(iter(change))} {next(iter(change.values()))}", render(formulas, style), 150)


if __name__ == "__main__":
    main()
