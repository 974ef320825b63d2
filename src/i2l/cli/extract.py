"""`i2l extract`: TeX sources in, a list of formulas with their origin out."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

import typer


def extract(
    sources: Annotated[
        list[Path],
        typer.Argument(
            help="Folders, TeX files, or archives of them: .gz, .tar, .tar.gz, .xz, .zip, nested."
        ),
    ],
    out: Annotated[
        Path,
        typer.Option("--out", "-o", help="The list: .jsonl, .jsonl.xz or .jsonl.gz, one formula a line."),
    ],
    inline: Annotated[
        int | None,
        typer.Option(min=1, help="Take inline formulas too, of at least so many characters; default: none."),
    ] = None,
    rows: Annotated[
        bool, typer.Option("--rows", help="Every row of a display as a formula of its own.")
    ] = False,
    environment: Annotated[
        list[str] | None, typer.Option(help="Only formulas of this environment. May be repeated.")
    ] = None,
    min_characters: Annotated[int | None, typer.Option(min=1, help="Leave out shorter formulas.")] = None,
    max_characters: Annotated[int | None, typer.Option(min=1, help="Leave out longer ones.")] = None,
    min_tokens: Annotated[int | None, typer.Option(min=1, help="Leave out those of fewer tokens.")] = None,
    references: Annotated[
        bool | None, typer.Option("--references/--no-references", help="Keep those that cite or refer.")
    ] = None,
    unique: Annotated[bool | None, typer.Option("--unique/--repeated", help="Each formula once.")] = None,
    sample: Annotated[float | None, typer.Option(min=0, max=1, help="Draw this share of them.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of the draw.")] = 0,
    original: Annotated[
        bool,
        typer.Option("--original", help="The choices of the paper's own list; other options change them."),
    ] = False,
    engine: Annotated[Literal["local", "ray"], typer.Option(help="Who does the work.")] = "local",
    address: Annotated[
        str | None, typer.Option(help="Of a Ray cluster; default: one started on this machine.")
    ] = None,
    jobs: Annotated[int | None, typer.Option(min=1, help="Processes; default: one for each core.")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress, no summary.")] = False,
) -> None:
    """Find every formula of TeX sources, its macros written out, with its file, place and environment.

    What is not taken gets a verdict in OUT.verdicts.jsonl. `i2l build` reads the list as it is.

    Examples:

        i2l extract paper.tar.gz book/ -o formulas.jsonl --inline 8

        i2l build --formulas formulas.jsonl --out data/mine
    """
    from i2l.errors import require_extra

    require_extra("pyarrow", "data")
    from i2l.dataset.build import EngineOptions
    from i2l.dataset.extract import KEPT, ExtractOptions, extract_formulas, verdicts_path
    from i2l.extraction.harvest import ORIGINAL, FormulaFilters, HarvestOptions

    chosen = {
        "environments": tuple(environment) if environment else None,
        "min_characters": min_characters,
        "max_characters": max_characters,
        "min_tokens": min_tokens,
        "references": references,
        "unique": unique,
        "sample": sample,
        "seed": seed,
    }
    filters = replace(
        ORIGINAL if original else FormulaFilters(),
        **{name: value for name, value in chosen.items() if value is not None},  # type: ignore[arg-type]
    )
    options = ExtractOptions(harvest=HarvestOptions(min_inline=inline, rows=rows), filters=filters)
    workers = EngineOptions(name=engine, jobs=jobs, address=address)
    try:
        counts = extract_formulas(sources, out=out, options=options, engine=workers, quiet=quiet)
    except KeyboardInterrupt:
        typer.echo("Stopped. The same command goes on.", err=True)
        raise typer.Exit(130) from None
    if not quiet:
        typer.echo(f"{out}: {counts.pop(KEPT, 0):,} formulas")
        for verdict, count in counts.most_common():
            typer.echo(f"{count:10,}  {verdict}")
        typer.echo(f"What was left out, and why: {verdicts_path(out)}")
