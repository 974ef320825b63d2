"""`i2l build`: lists of formulas or labelled pictures in, a dataset folder out."""

from collections import Counter
from dataclasses import replace
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

import typer


class _Published(StrEnum):
    IM2LATEX_100K = "im2latex-100k"


def build(
    out: Annotated[Path, typer.Option(help="Folder of the dataset; it appears when all of it is there.")],
    formulas: Annotated[
        list[Path] | None,
        typer.Option(help="File with one formula a line, plain, .xz or .gz. May be repeated."),
    ] = None,
    more_formulas: Annotated[
        list[Path] | None,
        typer.Argument(metavar="FILES", help="More such files; with --from, one folder.", show_default=False),
    ] = None,
    images: Annotated[
        list[Path] | None,
        typer.Option(help="Folder of pictures that exist already; each needs its --labels. May be repeated."),
    ] = None,
    labels: Annotated[
        list[Path] | None, typer.Option(help="File of picture names, tabs and formulas, for --images.")
    ] = None,
    recipe: Annotated[str, typer.Option(help="im2latex-90k, i2l-140k, world or photo.")] = "im2latex-90k",
    min_token_count: Annotated[
        int | None,
        typer.Option(min=1, help="Drop training formulas with rarer tokens; default: the recipe's."),
    ] = None,
    val: Annotated[
        Path | None,
        typer.Option(help="Formulas (with --images alone: labels) to validate on; then all others train."),
    ] = None,
    test: Annotated[Path | None, typer.Option(help="Formulas or labels to test on; likewise.")] = None,
    val_fraction: Annotated[
        float | None, typer.Option(help="Share drawn for val if no split is given; default: the recipe's.")
    ] = None,
    test_fraction: Annotated[float | None, typer.Option(help="Share drawn for test; likewise.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of the drawn splits, and of the drawn styles.")] = 0,
    published: Annotated[
        _Published | None,
        typer.Option("--from", help="Read a published dataset as it is, from the folder FILES."),
    ] = None,
    macros: Annotated[
        list[Path] | None,
        typer.Option(
            help=r"Preamble whose `\newcommand` and `\def` are written out: one for all, or one a file."
        ),
    ] = None,
    limit: Annotated[
        int | None, typer.Option(min=1, help="Read no more lines to train on than this.")
    ] = None,
    compact: Annotated[
        bool, typer.Option("--compact", help="Store vector pages, drawn when read: a thirtieth of the size.")
    ] = False,
    boxes: Annotated[
        bool | None,
        typer.Option("--boxes/--no-boxes", help="Store the box of every token; default: not if compact."),
    ] = None,
    engine: Annotated[Literal["local", "ray"], typer.Option(help="Who does the work.")] = "local",
    address: Annotated[
        str | None, typer.Option(help="Of a Ray cluster; default: one started on this machine.")
    ] = None,
    jobs: Annotated[int | None, typer.Option(min=1, help="Processes; default: one for each core.")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress, no summary.")] = False,
) -> None:
    """Normalise, render, filter and split formulas into a dataset of Parquet shards, with a report.

    Every line gets a verdict, in OUT/verdicts.parquet. Killed at any moment, the same command goes on.

    Examples:

        i2l build --formulas a.txt b.txt.xz --out data/mine --recipe im2latex-90k

        i2l build --formulas train.txt --val val.txt --test test.txt --out data/official

        i2l build --from im2latex-100k downloads/im2latex --out data/90k

        i2l build --images photos --labels labels.tsv --out data/photos --recipe photo
    """
    from i2l.errors import I2LError, require_extra

    for module in ("pyarrow", "pypdfium2"):
        require_extra(module, "data")
    from i2l.dataset.build import BuildOptions, EngineOptions, build_dataset
    from i2l.dataset.sources import find_recipe, im2latex_sources, picture_sources, text_sources

    paths = [*(formulas or []), *(more_formulas or [])]
    pictures = bool(images or labels)
    if published is not None:
        if len(paths) != 1 or formulas or pictures or val or test or macros:
            raise I2LError(
                f"Name the folder of the dataset, and nothing else: i2l build --from {published.value} DIR"
            )
        sources = im2latex_sources(paths[0], limit=limit)
    elif paths and pictures:
        if val or test or len(macros or []) > 1:
            raise I2LError(
                "With both --formulas and --images, splits are drawn by the seed, and one file of macros "
                "is for all; leave out --val and --test, or build two datasets and train on both."
            )
        sources = text_sources(paths, macros=macros or (), limit=limit)
        sources += picture_sources(images or [], labels or [], macros=macros or (), limit=limit)
    else:
        describe = (
            partial(picture_sources, images or [], labels or []) if pictures else partial(text_sources, paths)
        )
        sources = describe(val=val, test=test, macros=macros or (), limit=limit)
    chosen = find_recipe(recipe)
    chosen = replace(
        chosen,
        min_token_count=chosen.min_token_count if min_token_count is None else min_token_count,
        val_fraction=chosen.val_fraction if val_fraction is None else val_fraction,
        test_fraction=chosen.test_fraction if test_fraction is None else test_fraction,
    )
    options = BuildOptions(
        recipe=chosen,
        seed=seed,
        compact=compact,
        boxes=not compact if boxes is None else boxes,
    )
    workers = EngineOptions(name=engine, jobs=jobs, address=address)
    try:
        dataset = build_dataset(sources, out=out, options=options, engine=workers, quiet=quiet)
    except KeyboardInterrupt:
        typer.echo("Stopped. The same command goes on.", err=True)
        raise typer.Exit(130) from None
    if not quiet:
        _print_summary(dataset.card, out)


def _print_summary(card: dict[str, Any], out: Path) -> None:
    totals: Counter[str] = Counter()
    for verdicts in card["verdicts"].values():
        totals.update(verdicts)
    splits = ", ".join(f"{name} {split['num_samples']:,}" for name, split in card["splits"].items())
    typer.echo(f"{out}: {card['num_kept']:,} samples of {card['num_given']:,} lines ({splits})")
    for verdict, count in totals.most_common():
        typer.echo(f"{count:10,}  {verdict}")
    typer.echo(f"Look at {out / 'report.html'}")
