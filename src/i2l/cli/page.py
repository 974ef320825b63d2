"""`i2l page`: whole pages in, every formula on them out, with its place."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from i2l.errors import I2LError
from i2l.inference.options import BEAM_WIDTH, ReadingOptions

if TYPE_CHECKING:
    from i2l.pages.output import PageFormat
    from i2l.pages.reader import DocumentPlan, PageReading


def page(
    files: Annotated[list[Path], typer.Argument(help="PDFs, pictures of pages, TIFFs of many pages.")],
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", help="Folder of the results; printed if not given, and then not resumable."
        ),
    ] = None,
    pages: Annotated[
        str | None,
        typer.Option(help="Which pages, such as 1-5 or 1,3,7-; all if not given.", metavar="A-B,C"),
    ] = None,
    output: Annotated[
        str, typer.Option("--format", help="json, markdown, html or csv; html needs --out.")
    ] = "json",
    model: Annotated[
        str | None, typer.Option(help="A bundled model's name, or a folder.", metavar="NAME|DIR")
    ] = None,
    beam_width: Annotated[int, typer.Option(min=1, help="Of the search; 1 is greedy.")] = BEAM_WIDTH,
    tokens: Annotated[
        bool, typer.Option("--tokens/--no-tokens", help="Say in JSON where each token is.")
    ] = True,
    jobs: Annotated[int, typer.Option(min=1, help="Processes: pages that are read side by side.")] = 1,
    threads: Annotated[int | None, typer.Option(min=1, help="Threads a process; all if not given.")] = None,
) -> None:
    """Find every formula on pages and read it: where it is, its kind, LaTeX, confidence and number.

    With --out, each page is kept as soon as it is read, and a run that was ended goes on where it was. A page
    without formulas is an empty result. A file or page that cannot be read gives its reason on stderr, and
    exit status 1.

    Examples:

        i2l page paper.pdf --format html -o formulas

        i2l page scan.tif photo.jpg --format markdown

        i2l page book.pdf --pages 20-60 --jobs 2 -o book
    """
    import warnings

    from i2l.pages.output import SUFFIXES, print_pages
    from i2l.pages.reader import plan_documents, tasks_of

    if output not in SUFFIXES:
        raise I2LError(f"There is no format {output!r}; choose one of {', '.join(SUFFIXES)}.")
    if output == "html" and out is None:
        raise I2LError("HTML shows the pages, which are files beside it; say where with -o.")
    warnings.filterwarnings("ignore", module="PIL")  # what Pillow remarks about a file is in our message
    kind = cast("PageFormat", output)
    options = ReadingOptions(model=model, beam_width=beam_width, threads=threads)
    settings = {"model": str(model or ""), "beam_width": beam_width, "tokens": tokens}
    failed = False
    plans: list[DocumentPlan] = []
    for plan in plan_documents(files, out, pages=pages, settings=settings):
        if isinstance(plan[1], I2LError):
            typer.echo(f"{plan[0]}: {plan[1]}", err=True)
            failed = True
        else:
            plans.append(plan)
    tasks = [task for plan in plans for task in tasks_of(plan, pictures=kind == "html")]
    readings = _read(tasks, options, jobs=jobs, tokens=tokens)
    if out is None:
        for plan in plans:
            done = sorted((next(readings) for _ in plan.pages), key=lambda page: page.page)
            failed |= _say_errors(done)
            print_pages(done, sys.stdout, kind, name=plan.file.name)
    else:
        for _ in readings:
            pass
        failed |= any(_assemble(plan, out, kind) for plan in plans)
    if failed:
        raise typer.Exit(1)


def _read(tasks: list[Any], options: ReadingOptions, *, jobs: int, tokens: bool) -> "Iterator[PageReading]":
    """Read pages and show on stderr how far it is."""
    from i2l.pages.reader import is_done, read_tasks

    done = sum(map(is_done, tasks))
    if done:
        typer.echo(f"{done} of {len(tasks)} pages were read before", err=True)
    for _, reading in read_tasks(tasks, options, jobs=jobs, tokens=tokens):
        done += 1
        if len(tasks) > 1:
            said = reading.error or f"{len(reading.formulas)} formulas"
            typer.echo(
                f"{done}/{len(tasks)}  {reading.file} page {reading.page}: {said}  {reading.seconds:.1f} s",
                err=True,
            )
        yield reading


def _say_errors(pages: "list[PageReading]") -> bool:
    for page in pages:
        if page.error:
            typer.echo(f"{page.file} page {page.page}: {page.error}", err=True)
    return any(page.error for page in pages)


def _assemble(plan: "DocumentPlan", out: Path, kind: "PageFormat") -> bool:
    """Write the file of a document out of its pages; say whether one of them could not be read."""
    from i2l.pages.output import output_path, pictures_from, write_pages
    from i2l.pages.reader import load_page, tasks_of

    assert plan.folder is not None
    failed = False

    def pages() -> "Iterator[PageReading]":
        nonlocal failed
        for task in tasks_of(plan, pictures=False):
            page = load_page(task)
            failed |= _say_errors([page])
            yield page

    into = output_path(out, plan.folder, kind)
    write_pages(pages(), into, kind, name=plan.file.name, pictures=pictures_from(into, plan.folder))
    typer.echo(f"wrote {into}", err=True)
    return failed
