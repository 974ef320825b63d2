"""Very short formulas: single signs, and formulas of a few, drawn at several sizes and read.

    python -m benchmarks.short
    python -m benchmarks.short --model runs/export

A reading is right if it has the signs of the formula: space around it, braces and the spelling of fonts do
not count. Text of 12 pt at 200 dpi is the model's own size; the size is estimated except in the first row.
"""

import argparse
from dataclasses import replace
from string import ascii_lowercase, ascii_uppercase, digits

from i2l.formulas.commands import respell, without_outer_space
from i2l.inference.reader import Reader
from i2l.rendering.render import render_formulas
from i2l.rendering.styles import PAPER

NAMES = (
    *("alpha", "beta", "gamma", "delta", "epsilon", "lambda", "mu", "pi", "sigma", "phi", "psi", "omega"),
    *("Gamma", "Delta", "Omega", "infty", "sum", "int", "partial", "nabla", "hbar", "emptyset", "rightarrow"),
)
SIGNS = [
    *ascii_lowercase,
    *ascii_uppercase,
    *digits,
    *(f"\\{name}" for name in NAMES),
    *"+=(",
]
FEW = [
    "x ^ { 2 }",
    "a = b",
    "f ( x )",
    "1 0",
    "x y",
    "N = 4",
    r"p \to q",
    r"\frac { 1 } { 2 }",
    r"\lambda _ { 1 }",
    r"\mathbf { R }",
    r"{ \cal L }",
    "a + b",
    "x _ { i j }",
    "e ^ { - x }",
    r"\sqrt { 2 }",
    "| x |",
    "d x",
    r"\pi / 2",
    "n !",
    r"\hat { p }",
]
SIZES = ((200, 1.0), (200, None), (110, None), (300, None))  # dpi, scale


def shown(formula: str) -> list[str]:
    """The signs of a formula."""
    words = {r"\to": r"\rightarrow", r"\mathbf": r"\bf"}  # respelling leaves a font without braces as it is
    tokens = without_outer_space(respell(formula).split())
    return [words.get(token, token) for token in tokens if token not in "{}"]


def main() -> None:
    """Draw, read and count."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--model", help="folder or bundled name; the model in the box if not given")
    reader = Reader(parser.parse_args().model)
    for name, formulas in (("one sign", SIGNS), ("a few signs", FEW)):
        for dpi, scale in SIZES:
            renders = render_formulas(formulas, style=replace(PAPER, dpi=dpi))
            readings = reader.read_many([render.pixels for render in renders], scale=scale)
            wrong = [
                f"{formula} as {reading.latex}"
                for formula, reading in zip(formulas, readings, strict=True)
                if shown(reading.formula) != shown(formula)
            ]
            size = "as it is" if scale else "estimated"
            print(
                f"{name}, {dpi} dpi, size {size}: {len(formulas) - len(wrong)} of {len(formulas)} right"
                + (f"; wrong: {', '.join(wrong)}" if wrong else "")
            )


if __name__ == "__main__":
    main()
