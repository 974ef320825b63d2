"""Pages to their formulas: found, read, and said where they stand; one page, a file, or many files.

    reader = PageReader()
    for page in reader.read("paper.pdf", pages="1-3"):
        for formula in page.formulas:
            print(formula.kind, formula.box, formula.latex, formula.confidence, formula.number)

A page is opened and made straight (`i2l.pages.document`), its formulas are found (`i2l.pages.find`), and each
is read by the `Reader` that reads single formulas, all of a page together. Many files are read side by side
in processes; every page that is done is a file, so that a run that was ended goes on where it was.
"""

import json
import math
import multiprocessing
import re
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from i2l.errors import I2LError
from i2l.files import atomic_write, file_checksum
from i2l.images.open import ImageSource, open_image
from i2l.images.prepare import ImageTooLargeError
from i2l.inference.options import ReadingOptions
from i2l.inference.reader import Reader
from i2l.inference.reading import Reading
from i2l.pages.document import MAX_PAGES, PageError, PageFile, PagePicture, corners_on, straighten
from i2l.pages.find import DETECTOR_FOLDER, Box, Detector, FoundPage, PageInk, reduce_page

PICTURE, FONTS = "picture", "picture and fonts"  # the ways in which formulas are found
_MODEL_SYMBOL_PX: Final = 14.4  # height of small letters at the scale that a model knows, at 200 dpi
_REFERENCE_DPI: Final = 200.0
_MARGIN: Final = 0.6  # of paper around a formula, in heights of small letters
_MAX_FORMULAS: Final = 2_000  # of a page
_FORMAT: Final = "i2l-page-1"


class PageToken(NamedTuple):
    """A token of a formula, how sure the model was of it, and where it is on the page."""

    text: str
    probability: float
    box: tuple[float, float, float, float] | None


@dataclass(frozen=True)
class PageFormula:
    """A formula of a page. Boxes are left, top, right, bottom in pixels of the page as it was given."""

    kind: str  # displayed or inline
    box: tuple[float, float, float, float]
    score: float  # how sure the detector is that it is a formula
    latex: str  # empty if it could not be read, or was not to be read
    confidence: float  # that all of the LaTeX is right
    number: str | None = None  # of a display, as printed, such as "(3.14)"
    number_box: tuple[float, float, float, float] | None = None
    corners: tuple[tuple[float, float], ...] | None = None  # where the page lay askew
    tokens: tuple[PageToken, ...] = ()
    error: str | None = None  # why it could not be read


@dataclass(frozen=True)
class PageReading:
    """A page, read: its formulas in reading order."""

    file: str
    page: int  # from 1
    width: int  # in pixels, of the page as it was given, or drawn from a PDF
    height: int
    dpi: float | None  # at which a PDF was drawn; None for pictures
    method: str  # how formulas were found: "picture", or "picture and fonts" of a PDF that was born digital
    straightened: bool
    formulas: tuple[PageFormula, ...]
    seconds: float
    error: str | None = None  # why the page could not be read

    def to_dict(self) -> dict[str, Any]:
        """Return the page as JSON values."""
        return {"format": _FORMAT, **asdict(self)}

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> "PageReading":
        """Build the page from decoded JSON.

        Raises:
            PageError: if this is no such page.
        """
        try:
            given = dict(fields)
            if given.pop("format") != _FORMAT:
                raise KeyError("format")
            formulas = [
                PageFormula(**{**formula, "tokens": tuple(PageToken(*token) for token in formula["tokens"])})
                for formula in given.pop("formulas")
            ]
            return cls(**given, formulas=tuple(formulas))
        except (KeyError, TypeError) as error:
            raise PageError(f"This is not a page that was read here: {error}.") from error


class PageReader:
    """Reads whole pages. It keeps no state between calls: threads may share one."""

    def __init__(
        self,
        reader: Reader | None = None,
        *,
        model: str | Path | None = None,
        detector: Path = DETECTOR_FOLDER,
        threads: int | None = None,
        tokens: bool = True,
    ) -> None:
        """Load the model that finds formulas and the one that reads them.

        Args:
            reader: that reads each formula; one is made if None.
            model: of that reader, as in `Reader`.
            detector: folder of the model that finds formulas.
            threads: of one call; all processors if None.
            tokens: say where each token of a formula is.

        Raises:
            I2LError: if a model is not there or damaged.
        """
        reader = reader or Reader(model, threads=threads)
        # That these are formulas has been decided, and what finds them was taught print.
        self._reader = reader.with_options(check=False, handwriting=False)
        self._detector = Detector(detector, threads=threads)
        self._tokens = tokens

    def read(self, source: Path | str | bytes, *, pages: str | None = None) -> Iterator[PageReading]:
        """Read the pages of a file one by one: a PDF, a picture, or a TIFF of many pages.

        Args:
            source: path of the file, or its content.
            pages: which of them, such as "1-5,8"; all if None.

        Raises:
            PageError: if the file cannot be opened. A page that cannot be read has its error with it.
        """
        given = source if isinstance(source, bytes) else Path(source)
        with PageFile(given) as file:
            for number in choose_pages(pages, file.num_pages, file.name):
                yield self.read_page_of(file, number)

    def read_page_of(self, file: PageFile, number: int, *, read: bool = True) -> PageReading:
        """Read one page of an open file; what is wrong with it is said in the result."""
        started = time.perf_counter()
        try:
            return self._read(file.page(number), file.name, number, started, read)
        except PageError as error:
            return PageReading(
                *(file.name, number, 0, 0, None, PICTURE, False, (), time.perf_counter() - started),
                error=str(error),
            )

    def read_page(self, source: ImageSource, *, read: bool = True) -> PageReading:
        """Read the picture of a page: a path, a file or its bytes, an array, or an open image.

        Args:
            source: the picture.
            read: read the formulas too; else they are only found.

        Raises:
            ImageError: if there is no picture in it.
        """
        started = time.perf_counter()
        return self._read(straighten(open_image(source)), "picture", 1, started, read)

    def _read(self, picture: PagePicture, name: str, number: int, started: float, read: bool) -> PageReading:
        width, height = picture.size_px
        method = PICTURE if picture.hints is None else FONTS
        page = PageReading(
            name, number, width, height, picture.dpi, method, picture.to_given is not None, (), 0.0
        )
        ink, hints, reduced = reduce_page(picture.image, picture.hints)
        if ink is not None:
            found = self._detector.find_in(ink, hints)
            page = replace(page, formulas=self._formulas(picture, ink, found, reduced, read))
        return replace(page, seconds=time.perf_counter() - started)

    def _formulas(
        self, picture: PagePicture, ink: PageInk, found: FoundPage, reduced: int, read: bool
    ) -> tuple[PageFormula, ...]:
        placed = _Placed(picture, reduced)
        formulas = found.formulas[:_MAX_FORMULAS]
        numbers = [
            (formula, number.box)
            for number, formula in zip(found.numbers, found.number_of, strict=True)
            if 0 <= formula < len(formulas)
        ]
        boxes = [formula.box for formula in formulas]
        readings = self._read_boxes(ink, [*boxes, *(box for _, box in numbers)]) if read else []
        labels: dict[int, list[tuple[str, Box]]] = {}
        for (owner, box), reading in zip(numbers, readings[len(boxes) :], strict=False):
            labels.setdefault(owner, []).append((_label(reading), box))
        result: list[PageFormula] = []
        for index, formula in enumerate(formulas):
            label = labels.get(index, [])
            one = PageFormula(
                formula.kind,
                placed.box(formula.box),
                round(formula.score, 4),
                latex="",
                confidence=0.0,
                number=", ".join(text for text, _ in label if text) or None,
                number_box=placed.box(label[0][1]) if label else None,
                corners=placed.corners(formula.box),
            )
            result.append(self._with_reading(one, readings[index], formula.box, ink, placed) if read else one)
        return tuple(result)

    def _with_reading(
        self, formula: PageFormula, reading: Reading | I2LError, box: Box, ink: PageInk, placed: "_Placed"
    ) -> PageFormula:
        if isinstance(reading, ImageTooLargeError):
            return self._by_rows(formula, box, ink, reading)
        if isinstance(reading, I2LError):
            return replace(formula, error=str(reading))
        tokens: list[PageToken] = []
        if self._tokens:
            margin = _margin_px(ink)
            for text, probability, own in zip(
                reading.tokens, reading.token_probabilities, reading.boxes, strict=True
            ):
                on_page = None
                if own is not None:
                    left, top = box[0] - margin, box[1] - margin
                    on_page = placed.box((own[0] + left, own[1] + top, own[2] + left, own[3] + top))
                tokens.append(PageToken(text, round(float(probability), 4), on_page))
        return replace(
            formula, latex=reading.latex, confidence=round(float(reading.confidence), 4), tokens=tuple(tokens)
        )

    def _by_rows(
        self, formula: PageFormula, box: Box, ink: PageInk, error: ImageTooLargeError
    ) -> PageFormula:
        """Read a display that is too large for the model in parts: its lines, several at a time."""
        parts = _split_rows(ink, box)
        if len(parts) < 2:
            return replace(formula, error=str(error))
        readings = self._read_boxes(ink, parts)
        if any(isinstance(reading, I2LError) for reading in readings):
            return replace(formula, error=str(error))
        lines = [reading.latex for reading in readings if isinstance(reading, Reading)]
        confidence = math.prod(reading.confidence for reading in readings if isinstance(reading, Reading))
        joined = r" \\ ".join(
            re.sub(r"^\\begin\{\w+\}|\\end\{\w+\}$", "", line).replace("&", "") for line in lines
        )
        return replace(
            formula, latex=rf"\begin{{gathered}} {joined} \end{{gathered}}", confidence=round(confidence, 4)
        )

    def _read_boxes(self, ink: PageInk, boxes: Sequence[Box]) -> list[Reading | I2LError]:
        """Read boxes of a page together, at the scale of the type of the page."""
        if not boxes:
            return []
        margin = _margin_px(ink)
        scale = _MODEL_SYMBOL_PX / ink.symbol_px * self._reader.model.limits.dpi / _REFERENCE_DPI
        crops = [_crop(ink.ink, box, margin) for box in boxes]
        return self._reader.read_many(crops, scale=scale, errors="return")


class _Placed:
    """Where boxes of the straight page lie on the given one."""

    def __init__(self, picture: PagePicture, reduced: int) -> None:
        self._matrix, self._reduced = picture.to_given, reduced
        self._size = picture.size_px

    def box(self, box: Sequence[float]) -> tuple[float, float, float, float]:
        """Return the box around a box, within the page."""
        left, top, right, bottom = (side * self._reduced for side in box)
        if self._matrix is not None:
            points = corners_on(self._matrix, (left, top, right, bottom))  # type: ignore[arg-type]
            left, right = min(x for x, _ in points), max(x for x, _ in points)
            top, bottom = min(y for _, y in points), max(y for _, y in points)
        width, height = self._size
        left, right = (min(max(x, 0.0), float(width)) for x in (left, right))
        top, bottom = (min(max(y, 0.0), float(height)) for y in (top, bottom))
        return round(left, 1), round(top, 1), round(right, 1), round(bottom, 1)

    def corners(self, box: Box) -> tuple[tuple[float, float], ...] | None:
        """Return the corners of a box on a page that lay askew."""
        if self._matrix is None:
            return None
        scaled = tuple(side * self._reduced for side in box)
        return tuple((round(x, 1), round(y, 1)) for x, y in corners_on(self._matrix, scaled))  # type: ignore[arg-type]


def _margin_px(ink: PageInk) -> int:
    return max(2, round(_MARGIN * ink.symbol_px))


def _crop(ink: NDArray[np.uint8], box: Box, margin: int) -> NDArray[np.uint8]:
    """Cut a formula out of ink, as dark on white with some paper around it."""
    left, top, right, bottom = box
    crop = np.full((bottom - top + 2 * margin, right - left + 2 * margin), 255, np.uint8)
    crop[margin:-margin, margin:-margin] = 255 - ink[top:bottom, left:right]
    return crop


def _split_rows(ink: PageInk, box: Box) -> list[Box]:
    """Cut a display into its lines, at rows without ink that are high enough."""
    left, top, right, bottom = box
    filled = (ink.ink[top:bottom, left:right] > 60).any(axis=1)
    edges = np.flatnonzero(np.diff(np.concatenate([[False], filled, [False]]).astype(np.int8)))
    runs = [[int(edges[place]), int(edges[place + 1])] for place in range(0, len(edges), 2)]
    lines: list[list[int]] = []
    for run in runs:
        if lines and run[0] - lines[-1][1] < 0.7 * ink.symbol_px:
            lines[-1][1] = run[1]
        else:
            lines.append(run)
    return [(left, top + first, right, top + last) for first, last in lines]


def _label(reading: Reading | I2LError) -> str:
    """Write an equation number as it is printed."""
    if isinstance(reading, I2LError):
        return ""
    return re.sub(r"\\[A-Za-z]+|[\s{}~\\]", "", reading.latex)


def choose_pages(wanted: str | None, num_pages: int, name: str = "the file") -> list[int]:
    """Turn a choice such as "1-5,8" into numbers of pages, in rising order; all if None.

    Raises:
        PageError: if this is no choice of pages, or none of them is there.
    """
    if wanted is None:
        return list(range(1, num_pages + 1))
    chosen: set[int] = set()
    for part in wanted.split(","):
        match = re.fullmatch(r"\s*(\d{1,9})?\s*(-)?\s*(\d{1,9})?\s*", part)
        if match is None or not (match[1] or match[3]) or (match[2] is None and match[3]):
            raise PageError(f"Pages are given as 1-5 or 1,3,7-; {wanted!r} is neither.")
        first = int(match[1] or 1)
        last = int(match[3]) if match[3] else num_pages if match[2] else first
        chosen |= set(range(max(1, first), min(last, num_pages, MAX_PAGES) + 1))
    if not chosen:
        raise PageError(f"{name} has {num_pages} pages, and none of those that were asked for ({wanted}).")
    return sorted(chosen)


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


def _save_picture(file: PageFile, task: PageTask) -> None:
    """Keep the page as it was given, to be looked at."""
    assert task.picture is not None
    try:
        picture = file.page(task.number)
    except PageError:
        image = Image.new("L", (300, 40), 255)
    else:
        image = picture.given or picture.image
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


def count_formulas(pages: Iterable[PageReading]) -> tuple[int, int]:
    """Return how many displayed and inline formulas there are."""
    kinds = [formula.kind for page in pages for formula in page.formulas]
    return kinds.count("displayed"), kinds.count("inline")
