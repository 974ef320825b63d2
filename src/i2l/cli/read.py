"""The commands that read: `i2l read`, `i2l page` and `i2l explain`.

`i2l read`: images or strokes in, LaTeX out, one line for each.

`i2l page`: pages, of pictures or of PDFs, in; every formula on them with its place out.

`i2l explain`: an image in, a page out that shows where the model looked for each token.
"""

import glob
import json
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

import typer

from i2l.cli.formulas import in_formats, read_formats, text_target, write_file
from i2l.config import BEAM_WIDTH, ReadingOptions
from i2l.errors import I2LError

if TYPE_CHECKING:
    from i2l.explain.explanation import Explanation
    from i2l.formats.convert import OutputFormat
    from i2l.images.open import ImageSource
    from i2l.inference.reading import Reading
    from i2l.pages.output import DocumentPlan, PageFormat
    from i2l.pages.reader import PageReading

_PAGE_UNREAD = 0.35  # share of ink that was not read, above which a picture may be a page
_PAGE_HEIGHT_PX = 600  # at the scale of the model, of a picture that was read with doubt: a dozen lines
STROKE_SUFFIXES = (".inkml", ".json")
MODEL_HELP = "A model's name, as `i2l models` lists them, or a folder."
PROGRESS_FROM_IMAGES = 8  # with fewer there is no progress bar


def read(
    images: Annotated[
        list[str] | None,
        typer.Argument(
            help="Images, InkML or JSON files of strokes, folders or globs; - or none: standard input."
        ),
    ] = None,
    model: Annotated[str | None, typer.Option(help=MODEL_HELP, metavar="NAME|DIR")] = None,
    json_lines: Annotated[
        bool, typer.Option("--json", help="One JSON object a line: tokens, probabilities, boxes, time.")
    ] = False,
    output: Annotated[
        str,
        typer.Option(
            "--format",
            metavar="NAME[,NAME...]",
            help="latex, inline ($), display ($$), brackets, equation, tokens, mathml, omml, typst, "
            "asciimath, unicode; docx, png and svg are files and need --out.",
        ),
    ] = "latex",
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            help="Where docx, png and svg go: a file, or a folder if there are several. Without these, the "
            "file for what would be printed.",
        ),
    ] = None,
    n_best: Annotated[
        int, typer.Option(min=1, help="Print so many readings an image, each after its confidence.")
    ] = 1,
    names: Annotated[
        bool | None,
        typer.Option(
            "--names/--no-names",
            help="Print each reading after the name of its image; if not given, where there are several.",
        ),
    ] = None,
    beam_width: Annotated[int, typer.Option(min=1, help="Of the search; 1 is greedy.")] = BEAM_WIDTH,
    guard: Annotated[
        bool, typer.Option("--guard/--no-guard", help="Write only well-formed formulas, stop repetition.")
    ] = True,
    check: Annotated[
        bool,
        typer.Option("--check/--no-check", help="Refuse images in which nothing looks like a formula."),
    ] = True,
    scale: Annotated[
        float | None, typer.Option(help="Enlarge images by this instead of estimating it.")
    ] = None,
    region: Annotated[
        str | None,
        typer.Option(
            help="Read only this part of each image: its left and top edge, width and height, in pixels.",
            metavar="X,Y,W,H",
        ),
    ] = None,
    jobs: Annotated[int, typer.Option(min=1, help="Processes.")] = 1,
    threads: Annotated[int | None, typer.Option(min=1, help="Threads a process; all if not given.")] = None,
    clipboard: Annotated[bool, typer.Option("--clipboard", help="Read the image on the clipboard.")] = False,
    copy: Annotated[bool, typer.Option("--copy", help="Also copy the formulas to the clipboard.")] = False,
) -> None:
    """Read images of formulas and print their LaTeX, one line for one image, in order.

    Of several images the names are printed too, as `NAME: LATEX`. An image that cannot be read gives an empty
    reading, the reason on stderr, and exit status 1. A doubtful reading is printed, and stderr has a warning.
    Without --model handwriting is noticed, and read by the model for it where that is installed.

    Examples:

        i2l read formula.png

        i2l read formula.png --format typst,docx -o formula.docx

        i2l read scans/ --json --jobs 4 > readings.jsonl

        i2l read page.png --region 120,310,840,95

        i2l read formula.inkml --model hand

        xclip -selection clipboard -t image/png -o | i2l read --copy
    """
    from i2l.inference.reader import read_in_chunks
    from i2l.inference.reading import find_doubt

    formats = read_formats(output, out)
    if json_lines and output != "latex":
        raise I2LError("--json has tokens and LaTeX together; leave out --format, or leave out --json.")
    warnings.filterwarnings("ignore", module="PIL")  # what Pillow remarks about a file is in our message
    sources = _find_images(images or [])
    if clipboard:
        sources += _from_clipboard()
    sources = sources or _from_pipe()
    if not sources:
        raise I2LError("Nothing to read: name files or folders, pipe an image in, or use --clipboard.")
    if out is not None:
        _keep_pictures(sources, out, formats)
    named = len(sources) > 1 if names is None else names
    options = ReadingOptions(
        model=model,
        beam_width=max(beam_width, n_best),
        n_best=n_best,
        guard=guard,
        check=check,
        threads=threads,
    )
    readings = read_in_chunks(
        [source for _, source in sources if not _holds_strokes(source)],
        options,
        scale=scale,
        region=_parse_region(region) if region is not None else None,
        jobs=jobs,
    )
    if any(_holds_strokes(source) for _, source in sources):
        readings = _with_strokes(sources, readings, options)
    printed, failed = [], 0
    said: set[str] = set()  # notes, each of which is given once
    with text_target(out, formats) as target:
        for (name, _), reading in zip(sources, _watched(readings, len(sources)), strict=True):
            try:
                if isinstance(reading, I2LError):
                    raise reading
                text = _to_json(name, reading) if json_lines else _to_lines(reading, formats, n_best)
                for kind in formats:
                    write_file(reading.latex, kind, out, name if len(sources) > 1 else None)
                note = reading.note if reading.note not in said else None
                if warning := " ".join(filter(None, (find_doubt(reading), note))):
                    typer.echo(f"{name}: {warning}{_page_hint(name, reading)}", err=True)
                said |= {note} if note else set()
            except I2LError as error:
                failed += 1
                typer.echo(f"{name}: {error}{_page_hint(name, error)}", err=True)
                text = json.dumps({"image": name, "error": str(error)}) if json_lines else ""
            printed.append(text)
            target.write((_with_name(name, text) if named and not json_lines else text) + "\n")
            target.flush()
    if copy:
        from i2l.desktop.clipboard import copy_text

        copy_text("\n".join(printed))
    if failed:
        raise typer.Exit(1)


def _page_hint(name: str, found: "Reading | I2LError") -> str:
    """Tell about whole pages where a picture is too large for one formula, or much of it was not read."""
    from i2l.images.prepare import ImageTooLargeError

    if isinstance(found, I2LError):
        is_page = isinstance(found, ImageTooLargeError)
    else:
        is_page = found.unread > _PAGE_UNREAD or found.prepared.pixels.shape[0] > _PAGE_HEIGHT_PX
    return f" If it is a whole page, read all formulas on it with: i2l page {name}" if is_page else ""


def _holds_strokes(source: "ImageSource") -> bool:
    """Tell a file of strokes by its name, and what came through a pipe by its first bytes."""
    if isinstance(source, bytes):
        from i2l.ink.strokes import looks_like_ink

        return looks_like_ink(source)
    return isinstance(source, str) and source.lower().endswith(STROKE_SUFFIXES)


def _with_strokes(
    sources: "list[tuple[str, ImageSource]]",
    readings: "Iterator[Reading | I2LError]",
    options: ReadingOptions,
) -> "Iterator[Reading | I2LError]":
    """Put readings of strokes between those of images."""
    from i2l.inference.reader import Reader

    reader = Reader.from_options(options)
    for _, source in sources:
        if not _holds_strokes(source):
            yield next(readings)
            continue
        try:
            yield reader.read_strokes(source)  # type: ignore[arg-type] # a path or bytes
        except I2LError as error:
            yield error


def _keep_pictures(
    sources: "list[tuple[str, ImageSource]]", out: Path, formats: "list[OutputFormat]"
) -> None:
    """Refuse to write over a picture that is to be read.

    Raises:
        I2LError: if a file that would be written is one of them.
    """
    given = {Path(source).resolve() for _, source in sources if isinstance(source, str)}
    files = [out] if len(sources) == 1 else [out / Path(name).name for name, _ in sources]
    written = [out, *(file.with_suffix(f".{kind}") for file in files for kind in formats)]
    if lost := [path for path in written if path.resolve() in given]:
        raise I2LError(f"{lost[0]} is a picture to read, and would be written over: choose another --out.")


def _find_images(names: list[str]) -> "list[tuple[str, ImageSource]]":
    """Return each image with its name: files as they are, folders sorted, globs as Python expands them."""
    found: list[tuple[str, ImageSource]] = []
    for name in names:
        path = Path(name)
        if name == "-":
            found.append(("-", _read_stdin()))
        elif path.is_dir():
            from i2l.images.open import images_in

            found += [(str(file), str(file)) for file in images_in(path)]
        elif not path.exists() and glob.has_magic(name):
            matches = sorted(glob.glob(name, recursive=True))
            if not matches:
                raise I2LError(f"No file matches {name}.")
            found += [(match, match) for match in matches]
        else:
            found.append((name, name))
    return found


def _read_stdin() -> bytes:
    from i2l.images.open import MAX_FILE_BYTES

    return sys.stdin.buffer.read(MAX_FILE_BYTES + 1)


def _from_pipe() -> "list[tuple[str, ImageSource]]":
    """Return the image on standard input, if something other than a person is there, and not silent."""
    content = b"" if sys.stdin is None or sys.stdin.isatty() else _read_stdin()
    return [("-", content)] if content else []


def _parse_region(text: str) -> tuple[float, float, float, float]:
    """Turn X,Y,W,H into left, top, right and bottom.

    Raises:
        I2LError: if these are not four numbers.
    """
    try:
        left, top, width, height = map(float, text.split(","))
    except ValueError:
        raise I2LError(f"--region is X,Y,W,H in pixels, such as 100,250,640,90; not {text}.") from None
    return left, top, left + width, top + height


def _with_name(name: str, text: str) -> str:
    return "\n".join(f"{name}: {line}".rstrip() for line in text.split("\n"))


def _from_clipboard() -> "list[tuple[str, ImageSource]]":
    from i2l.desktop.clipboard import paste_image

    pasted = paste_image()
    return [(name, name) for name in pasted] if isinstance(pasted, list) else [("clipboard", pasted)]


def _watched(readings: "Iterator[Reading | I2LError]", total: int) -> "Iterator[Reading | I2LError]":
    """Show progress on stderr if there are many and a person watches."""
    if total < PROGRESS_FROM_IMAGES or not sys.stderr.isatty():
        yield from readings
        return
    from rich.console import Console
    from rich.progress import track

    yield from track(readings, "reading", total=total, console=Console(stderr=True), transient=True)


def _to_lines(reading: "Reading", formats: "list[OutputFormat]", n_best: int) -> str:
    """Write a reading, or the best of them, each in every format that is text."""
    if n_best == 1:
        return in_formats(reading.latex, reading.tokens, formats)
    found = [(reading.confidence, reading.latex, reading.tokens)]
    found += [(other.confidence, other.latex, other.tokens) for other in reading.alternatives[: n_best - 1]]
    return "\n".join(
        f"{confidence:.4f}\t{line}"
        for confidence, latex, tokens in found
        for line in in_formats(latex, tokens, formats).split("\n")
    )


def _to_json(name: str, reading: "Reading") -> str:
    return json.dumps({"image": name, **reading.to_dict()})


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
    model: Annotated[str | None, typer.Option(help=MODEL_HELP, metavar="NAME|DIR")] = None,
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

    from i2l.pages.output import SUFFIXES, plan_documents, print_pages, tasks_of

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
    from i2l.pages.output import is_done, read_tasks

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
    from i2l.pages.output import load_page, output_path, pictures_from, tasks_of, write_pages

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


FORMATS = (".html", ".gif", ".png", ".svg")


def explain(
    image: Annotated[Path, typer.Argument(help="The image of a formula.")],
    out: Annotated[
        Path,
        typer.Option(
            "--out",
            "-o",
            help="FILE.html: a page to explore. FILE.gif: the scan. FILE.png: a panel for each token. "
            "FILE.svg: all boxes.",
        ),
    ] = Path("explained.html"),
    model: Annotated[str | None, typer.Option(help=MODEL_HELP, metavar="NAME|DIR")] = None,
    boxes: Annotated[
        bool, typer.Option("--boxes", help="In a PNG: all boxes on the image instead of the panels.")
    ] = False,
    spread: Annotated[
        Literal["nearest", "field", "bilinear", "gaussian"],
        typer.Option(
            help="How a cell's attention is drawn in PNG and GIF: on its own part of the image, on all that "
            "it sees, or fading out."
        ),
    ] = "bilinear",
    canvas: Annotated[
        bool,
        typer.Option(
            "--canvas",
            help="Show what the model read instead of the file: the prepared image, with the white around it "
            "that the model can look at too.",
        ),
    ] = False,
    share: Annotated[
        float | None,
        typer.Option(
            min=0.05, max=1, help="Of a token's attention that its box holds; as fitted if not given."
        ),
    ] = None,
    beam_width: Annotated[int, typer.Option(min=1, help="Of the search; 1 is greedy.")] = BEAM_WIDTH,
    guard: Annotated[
        bool, typer.Option("--guard/--no-guard", help="Write only well-formed formulas, stop repetition.")
    ] = True,
    scale: Annotated[
        float | None, typer.Option(help="Enlarge the image by this instead of estimating it.")
    ] = None,
) -> None:
    """Read an image and show, token by token, where the model looked.

    Prints the LaTeX, and on stderr the name of the file that it wrote.

    Examples:

        i2l explain formula.png -o formula.html

        i2l explain formula.png -o boxes.svg
    """
    if out.suffix.lower() not in FORMATS:
        raise I2LError(f"Cannot write {out}: its name must end in {', '.join(FORMATS)}.")
    from i2l.explain.explanation import explain_image
    from i2l.files import atomic_write
    from i2l.inference.reader import Reader

    reader = Reader.from_options(ReadingOptions(model=model, beam_width=beam_width, guard=guard))
    explanation = explain_image(reader, image, title=image.name, scale=scale, share=share)
    if canvas:
        explanation = explanation.on_canvas()
    content = _draw(explanation, out.suffix.lower(), boxes, spread)
    with atomic_write(out, "wb") as file:
        file.write(content)
    typer.echo(explanation.latex)
    typer.echo(f"Written: {out}", err=True)


def _draw(
    explanation: "Explanation",
    kind: str,
    boxes: bool,
    spread: Literal["nearest", "field", "bilinear", "gaussian"],
) -> bytes:
    import io

    from i2l.explain.drawings import boxes_picture, boxes_svg, contact_sheet, explanation_page, scan_gif

    if kind == ".html":
        return explanation_page(explanation).encode()
    if kind == ".svg":
        return boxes_svg(explanation).encode()
    if kind == ".gif":
        return scan_gif(explanation, spread=spread)
    picture = boxes_picture(explanation) if boxes else contact_sheet(explanation, spread=spread)
    buffer = io.BytesIO()
    picture.save(buffer, "png", optimize=True)
    return buffer.getvalue()
