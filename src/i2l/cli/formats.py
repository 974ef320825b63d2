"""Formats on the command line: their names, lines of text, and files; and `i2l convert`."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from i2l.errors import I2LError

if TYPE_CHECKING:
    from i2l.formats.convert import OutputFormat


def read_formats(names: str, out: Path | None) -> "list[OutputFormat]":
    """Read the names of formats; those that are files need a place to go.

    Raises:
        BadParameter: for a format that does not exist.
        I2LError: if there is no place for a file.
    """
    from i2l.formats.convert import FILE_FORMATS, choose_formats

    try:
        formats = choose_formats(names)
    except I2LError as error:
        raise typer.BadParameter(str(error)) from error
    files = [kind for kind in formats if kind in FILE_FORMATS]
    if files and out is None:
        raise I2LError(f"{files[0]} is a file: say where it goes with --out.")
    return formats


def in_formats(latex: str, tokens: Sequence[str], formats: "Sequence[OutputFormat]") -> str:
    """Write a formula in each format that is text, one a line; of several each after its name."""
    from i2l.formats.convert import TEXT_FORMATS, write_formula

    written = {
        kind: " ".join(tokens) if kind == "tokens" and tokens else write_formula(latex, kind)
        for kind in TEXT_FORMATS
        if kind in formats
    }
    if len(written) < 2:
        return "".join(written.values())
    return "\n".join(f"{kind}\t{written[kind]}" for kind in formats if kind in written)


def write_file(latex: str, kind: "OutputFormat", out: Path | None, name: str | None) -> None:
    """Write a formula as a file, if the format is one; into a folder by its name if there are several.

    Raises:
        FormatError: if the format cannot say the formula.
        MissingDependencyError: if a picture is asked for and TeX is not installed.
    """
    from i2l.files import atomic_write
    from i2l.formats.convert import FILE_FORMATS, formula_docx

    if kind not in FILE_FORMATS or out is None:
        return
    if kind == "docx":
        content = formula_docx(latex)
    else:
        from i2l.rendering.typeset import typeset_png, typeset_svg

        content = typeset_png(latex) if kind == "png" else typeset_svg(latex).encode()
    path = out.with_suffix(f".{kind}") if name is None else out / f"{Path(name).stem}.{kind}"
    with atomic_write(path, "wb") as target:
        target.write(content)


def convert(
    files: Annotated[
        list[Path] | None,
        typer.Argument(help="Files with one formula a line, plain, .xz or .gz; `-` or none: standard input."),
    ] = None,
    output: Annotated[
        str,
        typer.Option(
            "--format",
            metavar="NAME[,NAME...]",
            help="typst, mathml, omml, asciimath, unicode, latex, inline, display, brackets, equation, "
            "tokens; docx, png and svg are files and need --out.",
        ),
    ] = "typst",
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", help="Where docx, png and svg go: a file; a folder for several formulas."
        ),
    ] = None,
) -> None:
    r"""Write LaTeX in another format: one line out for one line in, empty where a format cannot say it.

    What it cannot say is named on stderr, and the exit status is 1.

    Example: `echo '\frac{a}{b}' | i2l convert --format typst` prints `frac(a, b)`
    """
    from i2l.formulas.lines import decode_line, read_lines

    formats = read_formats(output, out)
    lines = [line for path in files or [Path("-")] for line in read_lines(path)]
    failed = 0
    for number, line in enumerate(lines, start=1):
        text = ""
        try:
            latex = decode_line(line)
            text = in_formats(latex, (), formats)
            for kind in formats:
                write_file(latex, kind, out, f"{number:06d}" if len(lines) > 1 else None)
        except I2LError as error:
            failed += 1
            typer.echo(f"line {number}: {error}", err=True)
        if any(kind not in ("docx", "png", "svg") for kind in formats):
            sys.stdout.write(text + "\n")
    if failed:
        raise typer.Exit(1)
