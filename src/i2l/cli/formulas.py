"""The commands that turn formulas into formulas: `i2l normalize`, `parts`, `compose` and `convert`.

`i2l normalize`: formulas in, canonical tokens out, one line for one line.

`i2l parts`: formulas in, the short formulas that they are made of out.

`i2l compose`: single formulas in, displays of several lines, matrices and rare signs out.

`i2l convert`: LaTeX in, any other format out; how formats are named and written serves `i2l read` too.
"""

import json
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated

import typer

from i2l.errors import I2LError

if TYPE_CHECKING:
    from i2l.formats.convert import OutputFormat


_MOST_UNFIT = 10_000  # composed formulas in a row, before `i2l compose` gives up


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
    from i2l.formulas.lexer import FormulaError, decode_line, read_lines
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
    from i2l.formulas.lexer import FormulaError, decode_line, read_lines
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


def compose(
    files: Annotated[
        list[Path] | None,
        typer.Argument(help="Files with one formula a line, plain, .xz or .gz; `-` or none: standard input."),
    ] = None,
    count: Annotated[int, typer.Option(help="How many displays to print.", min=1)] = 1000,
    seed: Annotated[int, typer.Option(help="Another seed gives other displays.", min=0)] = 0,
    max_tokens: Annotated[int, typer.Option(help="No display is longer.", min=1)] = 600,
    letters: Annotated[
        bool, typer.Option("--letters", help="Print the formulas alone, with other letters and digits.")
    ] = False,
    school: Annotated[
        bool,
        typer.Option(
            "--school", help="Print what schoolbooks have: column sums, systems, angles, units; and arrays."
        ),
    ] = False,
    board: Annotated[
        bool,
        typer.Option(
            "--board",
            help="Print what is written on boards: matrices, vectors, ratios, limits; no files are needed.",
        ),
    ] = False,
    physics: Annotated[
        bool,
        typer.Option(
            "--physics", help="Print displays with vectors, averages, states and frames, as physicists write."
        ),
    ] = False,
    signs: Annotated[
        bool,
        typer.Option(
            "--signs",
            help="Print short formulas that show every sign of --vocabulary, each equally often.",
        ),
    ] = False,
    vocabulary: Annotated[
        Path | None, typer.Option(help="A vocab.json: leave out what has other tokens, so that a model fits.")
    ] = None,
) -> None:
    """Put displays of several lines together from single formulas, so that a model can learn to read them.

    Prints canonical tokens, one display a line: aligned equations, arrays, cases, matrices, words between
    formulas, and every sign of amssymb in real surroundings.

    Examples:

        i2l compose formulas.txt --count 100000 > displays.txt

        i2l compose formulas.txt --signs --vocabulary vocab.json > signs.txt
    """
    from i2l.formulas.compose import Composer, physics_displays
    from i2l.formulas.lexer import FormulaError, decode_line, read_lines
    from i2l.formulas.normalize import normalize_formula
    from i2l.formulas.school import BoardComposer, SchoolComposer
    from i2l.formulas.signs import SignComposer
    from i2l.formulas.vocabulary import Vocabulary

    if letters + school + board + physics + signs > 1:
        raise typer.BadParameter("choose one of --letters, --school, --board, --physics and --signs.")
    if signs and not vocabulary:
        raise typer.BadParameter("--signs shows the signs of a vocabulary: name its file with --vocabulary.")
    known = frozenset(Vocabulary.load(vocabulary).tokens) if vocabulary else None
    formulas = []
    for path in files or ([] if board else [Path("-")]):
        for line in read_lines(path):
            try:
                formulas.append(normalize_formula(decode_line(line)).formula)
            except FormulaError:  # `i2l normalize` says why
                continue
    if not formulas and not board:
        raise I2LError("There are no formulas to compose displays from.")
    left, unfit = count, 0
    if signs:
        try:
            displays = SignComposer(known or (), formulas, seed=seed).formulas()
        except ValueError as error:
            raise I2LError(f"There is nothing to show: {error}.") from error
    elif board:
        displays = BoardComposer(seed=seed).formulas()
    elif school:
        displays = SchoolComposer(formulas, seed=seed).formulas()
    elif physics:
        displays = physics_displays(formulas, seed=seed)
    else:
        composer = Composer(formulas, seed=seed)
        displays = composer.variants() if letters else composer.displays()
    for display in displays:
        try:
            canonical = normalize_formula(display)
        except FormulaError:  # a cut through the middle of something
            continue
        if len(canonical.tokens) <= max_tokens and (
            known is None or known.issuperset(canonical.formula.split())
        ):
            sys.stdout.write(canonical.formula + "\n")
            left, unfit = left - 1, 0
        else:
            unfit += 1
        if not left:
            return
        if unfit == _MOST_UNFIT:
            raise I2LError(
                f"The last {unfit} had other tokens or too many: see --vocabulary and --max-tokens."
            )


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
        MissingDependencyError: if a picture is asked for and Typst is not installed.
    """
    from i2l.files import atomic_write
    from i2l.formats.convert import FILE_FORMATS, Formula

    if kind not in FILE_FORMATS or out is None:
        return
    written = Formula(latex).write(kind)
    content = written.encode() if isinstance(written, str) else written
    path = out.with_suffix(f".{kind}") if name is None else out / f"{Path(name).stem}.{kind}"
    with atomic_write(path, "wb") as target:
        target.write(content)


@contextmanager
def text_target(out: Path | None, formats: "Sequence[OutputFormat]") -> Iterator[IO[str]]:
    """Give what text is written to: the file that was asked for, if nothing else goes there, or stdout."""
    from i2l.files import atomic_write
    from i2l.formats.convert import FILE_FORMATS

    if out is None or any(kind in FILE_FORMATS for kind in formats):
        yield sys.stdout
    else:
        with atomic_write(out) as file:
            yield file


def convert(
    formulas: Annotated[
        list[str] | None,
        typer.Argument(
            help="LaTeX, or files with one formula a line, plain, .xz or .gz; `-` or none: standard input.",
        ),
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
            "--out",
            "-o",
            help="Where docx, png and svg go: a file; a folder for several formulas. Without these, the file "
            "for the text.",
        ),
    ] = None,
) -> None:
    r"""Write LaTeX in another format: one line out for one line in, empty where a format cannot say it.

    What it cannot say is named on stderr, and the exit status is 1.

    Examples:

        i2l convert '\frac{a}{b}'

        i2l convert formulas.txt --format mathml -o formulas.mathml
    """
    from i2l.formats.convert import FILE_FORMATS
    from i2l.formulas.lexer import decode_line

    formats = read_formats(output, out)
    lines = [line for formula in formulas or ["-"] for line in _lines_of(formula)]
    failed = 0
    with text_target(out, formats) as target:
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
            if any(kind not in FILE_FORMATS for kind in formats):
                target.write(text + "\n")
    if failed:
        raise typer.Exit(1)


def _lines_of(formula: str) -> Iterator[bytes]:
    """Return the lines of a file, if there is one or the name is one of a file, else the LaTeX itself."""
    from i2l.formulas.lexer import read_lines

    path = Path(formula)
    if formula == "-" or path.suffix in (".txt", ".tex", ".xz", ".gz") or path.is_file():
        yield from read_lines(path)
    else:
        yield formula.encode()
