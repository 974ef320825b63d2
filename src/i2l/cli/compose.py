"""`i2l compose`: single formulas in, displays of several lines, matrices and rare signs out."""

import sys
from pathlib import Path
from typing import Annotated

import typer


def compose(
    files: Annotated[
        list[Path] | None,
        typer.Argument(help="Files with one formula a line, plain, .xz or .gz; `-` or none: standard input."),
    ] = None,
    count: Annotated[int, typer.Option(help="How many displays to print.", min=1)] = 1000,
    seed: Annotated[int, typer.Option(help="Another seed gives other displays.", min=0)] = 0,
    max_tokens: Annotated[int, typer.Option(help="No display is longer.", min=1)] = 600,
) -> None:
    """Put displays of several lines together from single formulas, so that a model can learn to read them.

    Prints canonical tokens, one display a line: aligned equations, arrays, cases, matrices, words between
    formulas, and every sign of amssymb in real surroundings.

    Example: `i2l compose formulas.txt --count 100000 > displays.txt`
    """
    from i2l.errors import I2LError
    from i2l.formulas.compose import Composer
    from i2l.formulas.lexer import FormulaError
    from i2l.formulas.lines import decode_line, read_lines
    from i2l.formulas.normalize import normalize_formula

    formulas = []
    for path in files or [Path("-")]:
        for line in read_lines(path):
            try:
                formulas.append(normalize_formula(decode_line(line)).formula)
            except FormulaError:  # `i2l normalize` says why
                continue
    if not formulas:
        raise I2LError("There are no formulas to compose displays from.")
    left = count
    for display in Composer(formulas, seed=seed).displays():
        try:
            canonical = normalize_formula(display)
        except FormulaError:  # a cut through the middle of something
            continue
        if len(canonical.tokens) <= max_tokens:
            sys.stdout.write(canonical.formula + "\n")
            left -= 1
        if not left:
            return
