"""`i2l parts`: formulas in, the short formulas that they are made of out."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer


def parts(
    files: Annotated[
        list[Path] | None,
        typer.Argument(help="Files with one formula a line, plain, .xz or .gz; `-` or none: standard input."),
    ] = None,
    max_tokens: Annotated[int, typer.Option(help="No part is longer.", min=1)] = 8,
    min_count: Annotated[int, typer.Option(help="Leave out what occurs less often.", min=1)] = 2,
    vocabulary: Annotated[
        Path | None, typer.Option(help="A vocab.json: leave out what has other tokens, so that a model fits.")
    ] = None,
) -> None:
    """Cut short formulas out of long ones, so that a model can also learn to read a single letter.

    Prints each part once, in canonical tokens, the most frequent first.

    Example: `i2l parts formulas.txt --max-tokens 4 > short.txt`
    """
    from i2l.formulas.compose import common_parts
    from i2l.formulas.lexer import FormulaError
    from i2l.formulas.lines import decode_line, read_lines
    from i2l.formulas.normalize import normalize_formula
    from i2l.formulas.vocabulary import Vocabulary

    known = frozenset(Vocabulary.load(vocabulary).tokens) if vocabulary else None

    def canonical() -> Iterator[str]:
        for path in files or [Path("-")]:
            for line in read_lines(path):
                try:
                    yield normalize_formula(decode_line(line)).formula
                except FormulaError:  # `i2l normalize` says why
                    continue

    for part in common_parts(canonical(), max_tokens=max_tokens, min_count=min_count):
        if known is None or known.issuperset(part.split()):
            sys.stdout.write(part + "\n")
