"""`i2l normalize`: formulas in, canonical tokens out, one line for one line."""

import json
import sys
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer


def normalize(
    files: Annotated[
        list[Path] | None,
        typer.Argument(help="Files with one formula a line, plain, .xz or .gz; `-` or none: standard input."),
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option(help="Write a JSON line for each rejected formula: file, line, reason, position."),
    ] = None,
    macros: Annotated[
        Path | None, typer.Option(help=r"A preamble whose simple `\newcommand` and `\def` are written out.")
    ] = None,
    pretty: Annotated[
        bool, typer.Option("--pretty", help="Print LaTeX for people instead of tokens.")
    ] = False,
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit with 1 if any formula was rejected.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No summary.")] = False,
) -> None:
    r"""Turn formulas into canonical tokens: one line out for one line in, empty where a formula is rejected.

    Example: `echo '{a \over b}' | i2l normalize` prints `{ \frac { a } { b } }`
    """
    from i2l.files import atomic_write
    from i2l.formulas.expansion import Macros
    from i2l.formulas.lexer import FormulaError
    from i2l.formulas.lines import decode_line, read_lines
    from i2l.formulas.normalize import normalize_formula
    from i2l.formulas.pretty import pretty_formula

    known = Macros.load(macros) if macros else None
    reasons: Counter[str] = Counter()
    total = 0
    with ExitStack() as stack:
        rejected = stack.enter_context(atomic_write(report)) if report else None
        for path in files or [Path("-")]:
            for number, line in enumerate(read_lines(path), start=1):
                total += 1
                try:
                    formula = normalize_formula(decode_line(line), macros=known).formula
                    printed = pretty_formula(formula) if pretty else formula
                except FormulaError as error:
                    printed = ""
                    reasons[error.reason] += 1
                    if rejected:
                        entry = {
                            "file": str(path),
                            "line": number,
                            "reason": error.reason,
                            "position": error.position,
                            "detail": error.detail,
                        }
                        rejected.write(json.dumps(entry) + "\n")
                sys.stdout.write(printed + "\n")
    sys.stdout.flush()
    if not quiet:
        num_rejected = sum(reasons.values())
        typer.echo(
            f"{total - num_rejected} of {total} formulas normalised, {num_rejected} rejected", err=True
        )
        for reason, count in reasons.most_common():
            typer.echo(f"{count:8}  {reason}", err=True)
    if strict and reasons:
        raise typer.Exit(1)
