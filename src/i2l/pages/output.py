"""Many pages of many files: read side by side, each kept as soon as it is done, and written down together.

Every page that is done is a file, so that a run that was ended goes on where it was. All of them become JSON
for programs, Markdown and CSV for people, or HTML to look at, written page by page: a book needs no more
memory than its largest page. The HTML shows every
page with its formulas outlined: hovering shows the reading typeset, by the browser's own MathML, and a click
copies its LaTeX. It needs no network and runs one small script of its own.
"""

import csv
import ctypes
import io
import json
import multiprocessing
import os
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import IO, Any, Final, Literal, NamedTuple

from markupsafe import Markup
from PIL import Image

from i2l.config import ReadingOptions
from i2l.errors import I2LError
from i2l.files import atomic_write, file_checksum
from i2l.formats.convert import FormatError, write_formula
from i2l.formulas.lexer import FormulaError
from i2l.html import fill_template, page_file
from i2l.inference.reader import Reader
from i2l.pages.document import PageError, PageFile
from i2l.pages.reader import PICTURE, PageFormula, PageReader, PageReading, choose_pages

PageFormat = Literal["json", "markdown", "html", "csv"]
SUFFIXES: Final[dict[str, str]] = {"json": ".json", "markdown": ".md", "html": ".html", "csv": ".csv"}
CSV_COLUMNS: Final = (
    *("file", "page", "formula", "kind", "number", "left", "top", "right", "bottom"),
    *("score", "confidence", "latex", "error"),
)


def write_pages(
    pages: Iterable[PageReading], into: Path, output: PageFormat, *, name: str, pictures: str | None = None
) -> None:
    """Write the pages of a file; it appears under its name only when it is whole.

    Args:
        pages: in their order.
        into: the file to write.
        output: its format.
        name: of the file that was read.
        pictures: for HTML, the folder of the pages' pictures, as seen from the file.
    """
    with atomic_write(into) as file:
        print_pages(pages, file, output, name=name, pictures=pictures)


def print_pages(
    pages: Iterable[PageReading], file: IO[str], output: PageFormat, *, name: str, pictures: str | None = None
) -> None:
    """Write pages to an open file; arguments as in `write_pages`.

    Raises:
        I2LError: if there is no such format, or HTML has no pictures.
    """
    if output == "html" and pictures is None:
        raise I2LError("HTML shows the pages, which are files beside it; say where with -o.")
    if output == "html":
        parts = _html_parts(pages, name, pictures or "")
    elif output == "json":
        parts = _json_parts(pages, name)
    elif output == "markdown":
        parts = _markdown_parts(pages, name)
    elif output == "csv":
        parts = _csv_parts(pages)
    else:
        raise I2LError(f"There is no format {output!r}; choose one of {', '.join(SUFFIXES)}.")
    for part in parts:
        file.write(part)


def _json_parts(pages: Iterable[PageReading], name: str) -> Iterator[str]:
    yield f'{{"file": {json.dumps(name)}, "pages": ['
    for index, page in enumerate(pages):
        yield (",\n" if index else "\n") + json.dumps(page.to_dict(), ensure_ascii=False)
    yield "\n]}\n"


def _markdown_parts(pages: Iterable[PageReading], name: str) -> Iterator[str]:
    yield f"# Formulas of {_plain(name)}\n"
    for page in pages:
        yield f"\n## Page {page.page}\n"
        if page.error:
            yield f"\n{_plain(page.error)}\n"
        inline: list[str] = []
        for formula in page.formulas:
            if formula.kind == "inline":
                inline.append(_in_dollars(formula))
                continue
            if inline:
                yield f"\n{', '.join(inline)}\n"
                inline = []
            tag = f" \\tag*{{{formula.number}}}" if formula.number else ""
            yield f"\n$$\n{formula.latex}{tag}\n$$\n" if formula.latex else f"\n*{_unread(formula)}*\n"
        if inline:
            yield f"\n{', '.join(inline)}\n"


def _in_dollars(formula: PageFormula) -> str:
    return f"${formula.latex}$" if formula.latex else f"*{_unread(formula)}*"


def _unread(formula: PageFormula) -> str:
    left, top, right, bottom = formula.box
    where = f"{left:g}, {top:g} to {right:g}, {bottom:g}"
    return f"a formula that could not be read, from {where}"


def _plain(text: str) -> str:
    return (
        text.replace("\\", "\\\\")
        .replace("*", "\\*")
        .replace("_", "\\_")
        .replace("<", "&lt;")
        .replace("\n", " ")
    )


def _csv_parts(pages: Iterable[PageReading]) -> Iterator[str]:
    yield _csv_line(CSV_COLUMNS)
    for page in pages:
        if page.error:
            yield _csv_line([page.file, page.page, *[""] * (len(CSV_COLUMNS) - 3), page.error])
        for index, formula in enumerate(page.formulas, 1):
            yield _csv_line(
                [
                    *(page.file, page.page, index, formula.kind, formula.number or "", *formula.box),
                    *(formula.score, formula.confidence, formula.latex, formula.error or ""),
                ]
            )


def _csv_line(values: Iterable[Any]) -> str:
    held = io.StringIO()
    csv.writer(held).writerow([_harmless(value) for value in values])
    return held.getvalue()


def _harmless(value: Any) -> Any:  # noqa: ANN401 - a cell of any type
    """Keep a spreadsheet from taking LaTeX such as `=1+1` for a sum of its own."""
    return f"'{value}" if isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t", "\r") else value


def _html_parts(pages: Iterable[PageReading], name: str, pictures: str) -> Iterator[str]:
    yield fill_template("i2l.pages", "head.html", name=name, style=page_file("i2l.pages", "pages.css"))
    for page in pages:
        shown = [_shown(formula, page) for formula in page.formulas]
        yield fill_template("i2l.pages", "page.html", page=page, formulas=shown, pictures=pictures)
    yield fill_template("i2l.pages", "foot.html", script=page_file("i2l.pages", "pages.js"))


def _shown(formula: PageFormula, page: PageReading) -> dict[str, Any]:
    """Give what the template needs of a formula: its place in shares of the page, and its reading typeset."""
    left, top, right, bottom = formula.box
    width, height = max(page.width, 1), max(page.height, 1)
    return {
        "formula": formula,
        "left": 100 * left / width,
        "top": 100 * top / height,
        "width": 100 * (right - left) / width,
        "height": 100 * (bottom - top) / height,
        "mathml": _typeset(formula.latex),
    }


def _typeset(latex: str) -> Markup | None:
    """Write a formula in MathML, which our own writer has escaped; None if it cannot be said in it."""
    if not latex:
        return None
    try:
        return Markup(write_formula(latex, "mathml"))
    except (FormatError, FormulaError, RecursionError):
        return None


def output_path(out: Path, folder: Path, output: PageFormat) -> Path:
    """Return where the file of a document goes: beside the folder of its pages."""
    return out / (folder.name.removesuffix(".pages") + SUFFIXES[output])


def pictures_from(into: Path, folder: Path) -> str:
    """Return the folder of pictures as a page sees it that is written into a file."""
    from urllib.parse import quote

    return quote(Path(os.path.relpath(folder, into.parent)).as_posix())


class PageTask(NamedTuple):
    """A page to be read, and where its result goes."""

    file: Path
    number: int
    result: Path | None  # a JSON file
    picture: Path | None  # the page to be looked at, if that is wanted


class DocumentPlan(NamedTuple):
    """A file, the pages of it that are wanted, and the folder of their results."""

    file: Path
    pages: list[int]
    folder: Path | None


def plan_documents(
    files: Sequence[Path], out: Path | None, *, pages: str | None, settings: dict[str, Any]
) -> Iterator[DocumentPlan | tuple[Path, PageError]]:
    """Look into each file for its pages; a file that cannot be opened comes with its error.

    Args:
        files: PDFs and pictures.
        out: folder of all results; None if nothing is kept.
        pages: which of the pages, as in `choose_pages`.
        settings: whatever the results depend on; results of other settings are not taken up.
    """
    stems: dict[str, int] = {}
    for file in files:
        try:
            with PageFile(file) as opened:
                chosen = choose_pages(pages, opened.num_pages, opened.name)
        except PageError as error:
            yield file, error
            continue
        folder = None
        if out is not None:
            stems[file.stem] = stems.get(file.stem, 0) + 1
            again = f"-{stems[file.stem]}" if stems[file.stem] > 1 else ""
            folder = out / f"{file.stem}{again}.pages"
            _claim(folder, {**settings, "file": file.name, "sha256": file_checksum(file)})
        yield DocumentPlan(file, chosen, folder)


def _claim(folder: Path, about: dict[str, Any]) -> None:
    """Make a folder for the results of one file; results of another file, or settings, are thrown away."""
    note = folder / "about.json"
    try:
        if json.loads(note.read_text(encoding="utf-8")) == about:
            return
    except (OSError, ValueError):
        pass
    for old in [*folder.glob("[0-9]*.json"), *folder.glob("[0-9]*.webp")]:
        old.unlink()
    with atomic_write(note) as file:
        json.dump(about, file)


def tasks_of(plan: DocumentPlan, *, pictures: bool) -> list[PageTask]:
    """List the pages of a file as tasks."""
    if plan.folder is None:
        return [PageTask(plan.file, number, None, None) for number in plan.pages]
    return [
        PageTask(
            plan.file,
            number,
            plan.folder / f"{number:05d}.json",
            plan.folder / f"{number:05d}.webp" if pictures else None,
        )
        for number in plan.pages
    ]


def is_done(task: PageTask) -> bool:
    """Tell whether a page has been read before."""
    return (
        task.result is not None and task.result.is_file() and (task.picture is None or task.picture.is_file())
    )


def load_page(task: PageTask) -> PageReading:
    """Load the result of a page that is done.

    Raises:
        PageError: if the file is damaged.
    """
    assert task.result is not None
    try:
        return PageReading.from_dict(json.loads(task.result.read_text(encoding="utf-8")))
    except (OSError, ValueError) as error:
        raise PageError(f"{task.result} is damaged: {error}. Delete it and run again.") from error


class _Desk:
    """Reads tasks in one process; the file of the last one stays open."""

    def __init__(self, options: ReadingOptions, tokens: bool) -> None:
        _give_memory_back()
        self._reader = PageReader(Reader.from_options(options), threads=options.threads, tokens=tokens)
        self._open: tuple[Path, PageFile] | None = None

    def read(self, task: PageTask) -> PageReading:
        if self._open is None or self._open[0] != task.file:
            if self._open is not None:
                self._open[1].close()
            self._open = task.file, PageFile(task.file)
        file = self._open[1]
        page = self._reader.read_page_of(file, task.number)
        if task.picture is not None:
            _save_picture(file, task)
        if task.result is not None:  # last: a page with a result is done
            with atomic_write(task.result) as out:
                json.dump(page.to_dict(), out, ensure_ascii=False)
        return page


_SHOWN_PX: Final = 1400
_M_MMAP_THRESHOLD, _MAPPED_BYTES = -3, 256 << 10


def _give_memory_back() -> None:
    """Have the C library give arrays back to the system as soon as they are freed.

    Without this it keeps what one page took, in pieces too small for what the next page needs: after a
    hundred pages a gigabyte. Other libraries than that of GNU have no such setting, and no such habit.
    """
    with suppress(OSError, AttributeError, TypeError):
        ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, _MAPPED_BYTES)


def _save_picture(file: PageFile, task: PageTask) -> None:
    """Keep the page as it was given, to be looked at."""
    assert task.picture is not None
    try:
        image = file.page(task.number).image
    except PageError:
        image = Image.new("L", (300, 40), 255)
    image = image if image.mode in ("L", "RGB") else image.convert("RGB")
    image.thumbnail((_SHOWN_PX, 4 * _SHOWN_PX))
    with atomic_write(task.picture, "wb") as out:
        image.save(out, "WEBP", quality=80)


def read_tasks(
    tasks: Sequence[PageTask], options: ReadingOptions, *, jobs: int = 1, tokens: bool = True
) -> Iterator[tuple[PageTask, PageReading]]:
    """Read pages, as they get done; those that are done already are not read again, and not yielded.

    Args:
        tasks: the pages.
        options: how to read, model included.
        jobs: processes.
        tokens: say where each token is.

    Raises:
        I2LError: if a model cannot be loaded.
    """
    left = [task for task in tasks if not is_done(task)]
    if not left:
        return
    if jobs == 1:
        desk = _Desk(options, tokens)
        for task in left:
            yield task, desk.read(task)
        return
    from i2l.inference.onnx_backend import available_threads

    options = replace(options, threads=options.threads or max(1, available_threads() // jobs))
    lost: list[PageTask] = []
    yield from _read_in_processes(left, options, tokens, jobs, lost)
    for task in lost:  # each by itself: whichever ends its process again is to blame
        unlucky: list[PageTask] = []
        yield from _read_in_processes([task], options, tokens, 1, unlucky)
        if unlucky:
            yield task, _lost_page(task)


def _read_in_processes(
    tasks: Sequence[PageTask], options: ReadingOptions, tokens: bool, jobs: int, lost: list[PageTask]
) -> Iterator[tuple[PageTask, PageReading]]:
    """Have processes read pages; those that were being read when a process died are put on a list."""
    spawn = multiprocessing.get_context("spawn")  # fork would copy the threads' locks of onnxruntime
    with ProcessPoolExecutor(
        jobs, mp_context=spawn, initializer=_start_process, initargs=(options, tokens)
    ) as pool:
        waiting = iter(tasks)
        running: dict[Any, PageTask] = {}
        broken = False
        while True:
            while not broken and len(running) < 2 * jobs and (task := next(waiting, None)) is not None:
                running[pool.submit(_read_in_process, task)] = task
            if not running:
                break
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                task = running.pop(future)
                try:
                    yield task, future.result()
                except BrokenProcessPool:
                    broken = True
                    lost.append(task)
        lost += waiting


def _lost_page(task: PageTask) -> PageReading:
    said = f"Page {task.number} of {task.file.name} ended the process that read it; it may be damaged."
    return PageReading(task.file.name, task.number, 0, 0, None, PICTURE, False, (), 0.0, error=said)


_desk_of_process: _Desk | None = None


def _start_process(options: ReadingOptions, tokens: bool) -> None:
    global _desk_of_process
    _desk_of_process = _Desk(options, tokens)


def _read_in_process(task: PageTask) -> PageReading:
    assert _desk_of_process is not None
    return _desk_of_process.read(task)
