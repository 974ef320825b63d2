"""Part `speed`: seconds for a formula of 50 tokens, against another model in one run, and for one of 500.

The two models take turns, so that what else the machine does slows both. Medians count; the ratio is the
median of the ratios of neighbouring readings.
"""

import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any, Final

import numpy as np

from benchmarks.wild.screens import choose_formulas
from i2l.errors import I2LError
from i2l.formulas.normalize import normalize_formula
from i2l.inference.reader import Reader
from i2l.rendering.rasterize import Pixels
from i2l.rendering.render import render_formulas

SHORT: Final = 50  # tokens
LONG: Final = 500
_SHORT_FORMULAS: Final = 6
_ROUNDS: Final = 4


def short_formulas(formulas: Sequence[str]) -> list[str]:
    """Give the formulas that are nearest to 50 tokens."""
    return sorted(formulas, key=lambda formula: abs(len(formula.split()) - SHORT))[:_SHORT_FORMULAS]


def long_formula(formulas: Sequence[str]) -> str:
    """Put formulas below each other, aligned, until there are 500 tokens.

    Arrays are left out: they would make the display taller than a page.
    """
    lines: list[str] = []
    for formula in sorted(formulas, key=lambda one: abs(len(one.split()) - SHORT)):
        if r"\begin" not in formula and formula.count(" = ") == 1 and r"\left" not in formula:
            left, _, right = formula.partition(" = ")
            if left.count("{") == left.count("}"):
                lines.append(f"{left} & = {right}")
        body = r" \\ ".join(lines)
        joined = normalize_formula(rf"\begin{{aligned}} {body} \end{{aligned}}").formula
        if len(joined.split()) >= LONG:
            return joined
    raise I2LError(f"These formulas do not make {LONG} tokens; give more.")


def measure_speed(reader: Reader, against: Reader, data: Path) -> dict[str, Any]:
    """Time both models on short formulas, and the first one on the long one."""
    formulas = choose_formulas(data)
    short, long = short_formulas(formulas), long_formula(formulas)
    *pictures, tall = _draw([*short, long])
    ours, theirs = [], []
    for _ in range(_ROUNDS + 1):  # the first round only warms up
        for picture in pictures:
            ours.append(_time(reader, picture))
            theirs.append(_time(against, picture))
    ours, theirs = ours[len(pictures) :], theirs[len(pictures) :]
    found: dict[str, Any] = {
        "short_tokens": round(float(np.mean([len(formula.split()) for formula in short]))),
        "short_s": median(ours),
        "against_s": median(theirs),
        "ratio": median(one / other for one, other in zip(ours, theirs, strict=True)),
        "long_tokens": len(long.split()),
        "long_size_px": [tall.shape[1], tall.shape[0]],
    }
    try:
        reader.read(tall)
        found["long_s"] = min(_time(reader, tall) for _ in range(3))
        found["long_read_tokens"] = len(reader.read(tall).tokens)
    except I2LError as error:
        found["long_error"] = str(error)
    return found


def _draw(formulas: Sequence[str]) -> list[Pixels]:
    renders = render_formulas([normalize_formula(formula).latex for formula in formulas])
    return [render.pixels for render in renders if render.pixels is not None]


def _time(reader: Reader, picture: Pixels) -> float:
    started = time.perf_counter()
    reader.read(picture)
    return time.perf_counter() - started
