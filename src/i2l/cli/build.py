"""The commands that make data, in order: `i2l extract`, `i2l render` and `i2l build`.

`i2l extract`: TeX sources in, a list of formulas with their origin out.

`i2l render`: formulas in, pictures out.

`i2l build`: lists of formulas or labelled pictures in, a dataset folder out.
"""

from collections import Counter
from dataclasses import replace
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

if TYPE_CHECKING:
    from PIL.Image import Image

    from i2l.rendering.render import RenderResult
    from i2l.rendering.styles import Style

# Who does the work, for what is done to millions of formulas.
_Engine = Annotated[Literal["local", "ray"], typer.Option(help="Who does the work.")]
_Address = Annotated[str | None, typer.Option(help="Of a Ray cluster; default: one started on this machine.")]
_Jobs = Annotated[int | None, typer.Option(min=1, help="Processes; default: one for each core.")]
_Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress, no summary.")]


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
    engine: _Engine = "local",
    address: _Address = None,
    jobs: _Jobs = None,
    quiet: _Quiet = False,
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


def render(
    formulas: Annotated[
        list[str] | None, typer.Argument(help="LaTeX, as it would stand in a display.")
    ] = None,
    out: Annotated[
        Path, typer.Option("--out", "-o", help="The PNG file; for several formulas a folder.")
    ] = Path("formula.png"),
    file: Annotated[
        Path | None, typer.Option("--formulas", help="A file with one formula a line, plain, .xz or .gz.")
    ] = None,
    style: Annotated[
        Literal["paper", "world", "clean", "unicode", "photo"],
        typer.Option(
            help="`paper`: 12 pt, 200 dpi, cropped; `world`: fonts, sizes and damage by seed; `clean`: the "
            "same without damage; `unicode`: as `world`, in OpenType fonts, by LuaLaTeX; `photo`: "
            "photographed, by seed."
        ),
    ] = "paper",
    seed: Annotated[int, typer.Option(help="Of the first formula's style; the next has the next.")] = 0,
    dpi: Annotated[int | None, typer.Option(min=20, max=2400, help="Instead of the style's own.")] = None,
    boxes: Annotated[
        bool, typer.Option("--boxes", help="Enlarge the picture and outline every token on it.")
    ] = False,
    jobs: Annotated[int, typer.Option(min=1, help="Processes.")] = 1,
) -> None:
    r"""Draw formulas with TeX.

    Example: `i2l render 'x^2 + \frac{a}{b}' -o x.png`; with `--boxes` to see where each token is.
    """
    from i2l.errors import I2LError
    from i2l.files import atomic_write
    from i2l.formulas.lexer import decode_line, read_lines
    from i2l.rendering.render import render_formulas

    formulas = list(formulas or []) + ([decode_line(line) for line in read_lines(file)] if file else [])
    if not formulas:
        raise I2LError("Nothing to draw: give a formula, or a file of them with --formulas.")
    single = len(formulas) == 1 and file is None
    if single and out.suffix.lower() != ".png":
        raise I2LError(f"Cannot write {out}: its name must end in .png.")
    styles = [_style(style, seed + number, dpi) for number in range(len(formulas))]
    results = render_formulas(formulas, style=styles, boxes=boxes, jobs=jobs)
    num_failed = 0
    for number, result in enumerate(results, start=1):
        where = "" if single else f"formula {number}: "
        if result.pixels is None:
            num_failed += 1
            typer.echo(f"error: {where}{result.reason}: {result.message}", err=True)
            continue
        if boxes and result.boxes is None:
            typer.echo(f"warning: {where}the ink could not be told apart by token: no boxes", err=True)
        with atomic_write(out if single else out / f"{number:06d}.png", "wb") as target:
            _picture(result, boxes).save(target, format="png")
    if num_failed < len(results):
        typer.echo(f"Written: {out}", err=True)
    if num_failed:
        raise typer.Exit(1)


def _style(name: str, seed: int, dpi: int | None) -> "Style":
    from dataclasses import replace

    from i2l.rendering.styles import PAPER, clean_style, photo_style, unicode_style, world_style

    drawn = {"world": world_style, "clean": clean_style, "unicode": unicode_style, "photo": photo_style}
    style = drawn[name](seed) if name in drawn else PAPER
    return style if dpi is None else replace(style, dpi=dpi)


def _picture(result: "RenderResult", boxes: bool) -> "Image":
    from PIL.Image import fromarray

    from i2l.rendering.render import draw_boxes

    assert result.pixels is not None
    return draw_boxes(result.pixels, result.boxes or []) if boxes else fromarray(result.pixels)


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
    inks: Annotated[
        list[Path] | None,
        typer.Option(
            help="Handwriting with labels, for the recipe hand: JSON lines, or a folder of InkML. "
            "May be repeated."
        ),
    ] = None,
    ink_copies: Annotated[
        int, typer.Option(min=1, help="Draw each ink to train on so often, another way every time.")
    ] = 1,
    recipe: Annotated[
        str,
        typer.Option(
            help="im2latex-90k, i2l-140k, displays, world, world-displays, clean, unicode, photo or hand."
        ),
    ] = "im2latex-90k",
    min_token_count: Annotated[
        int | None,
        typer.Option(min=1, help="Drop training formulas with rarer tokens; default: the recipe's."),
    ] = None,
    val: Annotated[
        Path | None,
        typer.Option(
            help="Formulas (with --images alone: labels; with --inks: inks) to validate on; "
            "then all others train."
        ),
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
    engine: _Engine = "local",
    address: _Address = None,
    jobs: _Jobs = None,
    quiet: _Quiet = False,
) -> None:
    """Normalise, render, filter and split formulas into a dataset of Parquet shards, with a report.

    Every line gets a verdict, in OUT/verdicts.parquet. Killed at any moment, the same command goes on.

    Examples:

        i2l build --formulas a.txt b.txt.xz --out data/mine --recipe im2latex-90k

        i2l build --formulas train.txt --val val.txt --test test.txt --out data/official

        i2l build --from im2latex-100k downloads/im2latex --out data/90k

        i2l build --images photos --labels labels.tsv --out data/photos --recipe photo

        i2l build --inks train.jsonl.xz --val val.jsonl.xz --formulas a.txt --recipe hand --out data/hand
    """
    from i2l.errors import I2LError, require_extra

    for module in ("pyarrow", "pypdfium2"):
        require_extra(module, "data")
    from i2l.dataset.build import BuildOptions, EngineOptions, build_dataset
    from i2l.dataset.sources import (
        find_recipe,
        im2latex_sources,
        ink_sources,
        picture_sources,
        text_sources,
    )

    paths = [*(formulas or []), *(more_formulas or [])]
    pictures = bool(images or labels)
    if published is not None:
        if len(paths) != 1 or formulas or pictures or inks or val or test or macros:
            raise I2LError(
                f"Name the folder of the dataset, and nothing else: i2l build --from {published.value} DIR"
            )
        sources = im2latex_sources(paths[0], limit=limit)
    elif inks and pictures:
        raise I2LError("Pictures and inks are two datasets; build both, and train on both.")
    elif inks or recipe == "hand":
        sources = ink_sources(
            inks or [], paths, copies=ink_copies, val=val, test=test, macros=macros or (), limit=limit
        )
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
        boxes=bool(inks) or not compact if boxes is None else boxes,
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
