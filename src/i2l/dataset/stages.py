"""The stages of a build that run part by part, and the engines that run them.

Each stage reads files of the work folder and writes one: `normalize_part` normalises the formulas of a part,
`picture_part` renders them, or opens the pictures that show them already.

Engines run the parts of a stage: local processes, or Ray Data. The parts do not know which.

A build shows its progress on stderr: one bar a stage, with its rate and the time left.
"""

import json
import logging
import multiprocessing
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from i2l import rendering
from i2l.dataset.format import BANK_FILE, end_with_parent, load_bank
from i2l.dataset.shards import BOXES, PICTURE_TEXT, align_boxes, encode_png, style_text, styles_of_lines
from i2l.dataset.sources import HAND_STYLES, SPLITS, TRAIN, InputError, Recipe, file_sha256
from i2l.dataset.verdicts import (
    BAD_LABEL,
    BAD_PICTURE,
    EARLY_REASONS,
    EMPTY,
    NO_HAND,
    NO_INK,
    NO_PICTURE,
    REJECTED,
    TOO_HIGH,
    TOO_LONG,
    TOO_WIDE,
    hash64,
    loose_key,
)
from i2l.dataset.work import BuildError, WorkFolder, read_part, write_part
from i2l.errors import I2LError, require_extra
from i2l.formulas.expansion import Macros
from i2l.formulas.lexer import FormulaError, decode_line
from i2l.formulas.normalize import normalize_formula
from i2l.images.open import EmptyImageError, ImageError, open_image
from i2l.images.prepare import FRAME_PX, ImageTooLargeError, prepare_image
from i2l.ink.bank import formula_units, layout_formula, written_formula
from i2l.ink.hand import (
    HAND_PREFIX,
    draw_formula,
    draw_written_ink,
    ink_token_boxes,
    match_symbols,
    missing_sign,
    write_formula,
    write_ink,
)
from i2l.rendering.rasterize import Box
from i2l.rendering.render import RenderResult, render_formulas
from i2l.rendering.styles import PAPER, Style

LINES = pa.schema(
    [
        ("source", pa.int32()),  # position in the sources
        ("split", pa.uint8()),
        ("text", pa.binary()),
        ("name", pa.string()),  # null where the line's number gives it
        ("picture", pa.string()),  # path of the picture; null if the formula is to be rendered
        ("fault", pa.string()),  # what is wrong with a line of labels, or empty
        ("ink", pa.int32()),  # the number of its ink in the bank; null if it has none
        ("copy", pa.int16()),  # of an ink that is drawn several times
    ]
)
NORMALIZED = pa.schema(
    [
        ("reason", pa.uint8()),  # position in EARLY_REASONS
        ("message", pa.string()),
        ("formula", pa.string()),  # what is stored and learnt
        ("latex", pa.string()),  # the same as TeX must see it
        ("num_tokens", pa.int32()),
        ("fingerprint", pa.uint64()),  # equal for equal samples: of pictures, their content counts too
        ("key", pa.uint64()),  # equal for formulas that look alike
        ("draw", pa.uint64()),  # decides the split
        ("sha256", pa.string()),  # of the picture; null if the formula is to be rendered
    ]
)
SELECTED = pa.schema([("split", pa.uint8()), ("reason", pa.uint8()), ("other", pa.int64())])
RENDERED = pa.schema(
    [
        ("row", pa.int32()),  # position in the part
        ("reason", pa.string()),  # null: kept so far
        ("message", pa.string()),
        ("image", pa.binary()),  # null for a picture, which is read from its own file
        ("width", pa.int16()),
        ("height", pa.int16()),
        ("boxes", BOXES),
        ("style", pa.string()),
        ("look", pa.string()),  # what TeX sees of the style
        ("ink", pa.int32()),  # the number of its ink in the bank; null if it has none
    ]
)


MAX_SIDE_PX = int(np.iinfo(np.int16).max)  # of a picture: the columns of a shard hold no larger number


@dataclass(frozen=True)
class StageOptions:
    """What the work on a part depends on, besides the files of the stages before it."""

    folder: WorkFolder
    recipe: Recipe
    seed: int
    part_lines: int
    boxes: bool
    compact: bool
    macros: Sequence[Macros | None]  # of each source


def normalize_part(options: StageOptions, index: int) -> None:
    """Normalise the lines of a part, and hash what the rules over all lines compare."""
    lines = read_part(options.folder.part("lines", index)).to_pylist()
    rows = [_normalize(line, options) for line in lines]
    write_part(options.folder.part("normalized", index), pa.Table.from_pylist(rows, schema=NORMALIZED))


def _normalize(line: dict[str, Any], options: StageOptions) -> dict[str, object]:
    """Normalise one line; the row has a reason if the line is already out."""
    if line["fault"]:
        return _rejected(BAD_LABEL, line["fault"])
    if not line["text"].strip():
        return _rejected(EMPTY, "an empty line")
    by_hand = options.recipe.styles == HAND_STYLES
    macros = options.macros[line["source"]]
    try:
        text = decode_line(line["text"])
        normalized = (written_formula if by_hand else normalize_formula)(text, macros=macros)
        latex = layout_formula(text, macros=macros) if by_hand else normalized.latex
    except FormulaError as error:
        # a comment alone is an empty formula
        return _rejected(EMPTY if error.reason == EMPTY else REJECTED, str(error))
    num_tokens = len(normalized.tokens)
    row = {"formula": normalized.formula, "latex": latex, "num_tokens": num_tokens}
    if num_tokens > options.recipe.max_tokens:
        return row | _rejected(TOO_LONG, f"{num_tokens} tokens, at most {options.recipe.max_tokens}")
    digest = None
    if line["picture"] is not None:
        try:
            digest = file_sha256(Path(line["picture"]))
        except InputError as error:
            return row | _rejected(NO_PICTURE, str(error))
    elif line["ink"] is not None:
        digest = line["name"]
    key = loose_key(normalized.tokens)
    hashes = {
        # the same formula in another hand is another sample
        "fingerprint": hash64(normalized.formula if digest is None else f"{digest} {normalized.formula}"),
        "key": hash64(key),
        "draw": hash64(f"{options.seed} {key}"),
    }
    return row | hashes | {"reason": 0, "sha256": None if line["picture"] is None else digest}


def _rejected(reason: str, message: str) -> dict[str, object]:
    return {"reason": EARLY_REASONS.index(reason), "message": message}


def picture_part(options: StageOptions, index: int) -> None:
    """Render the formulas of a part that are still in, or open their pictures; count the training tokens.

    Raises:
        OSError: if there is no room for TeX's files.
    """
    folder = options.folder
    selected = read_part(folder.part("selected", index))
    rows = np.flatnonzero(selected["reason"].to_numpy() == 0)
    normalized = read_part(folder.part("normalized", index)).take(rows)
    pictures = read_part(folder.part("lines", index))["picture"].take(rows).to_pylist()
    formulas = normalized["formula"].to_pylist()
    drawn = np.flatnonzero([picture is None for picture in pictures])
    render = _write_rows if options.recipe.styles == HAND_STYLES else _render_rows
    pictured: dict[int, dict[str, object]] = dict(
        zip(drawn.tolist(), render(normalized.take(drawn), rows[drawn], options, index), strict=True)
    )
    for place, picture in enumerate(pictures):
        if picture is not None:
            pictured[place] = _picture_row(Path(picture), options.recipe)
    trains = selected["split"].to_numpy()[rows] == SPLITS.index(TRAIN)
    counts: Counter[str] = Counter()
    for place in range(len(rows)):
        if trains[place] and pictured[place]["reason"] is None:
            counts.update(formulas[place].split())
    table = pa.Table.from_pylist(
        [{"row": int(row)} | pictured[place] for place, row in enumerate(rows)], schema=RENDERED
    )
    table = table.replace_schema_metadata({"token_counts": json.dumps(counts, sort_keys=True)})
    write_part(folder.part("rendered", index), table)


def _render_rows(
    normalized: pa.Table, rows: npt.NDArray[np.int64], options: StageOptions, index: int
) -> list[dict[str, object]]:
    """Render formulas, each in the style that the number of its line over all inputs gives."""
    if not len(rows):
        return []
    numbers = (index * options.part_lines + rows).tolist()
    styles = styles_of_lines(options.recipe.styles, seed=options.seed, lines=numbers)
    results = render_formulas(normalized["latex"].to_pylist(), style=styles, boxes=options.boxes)
    formulas = normalized["formula"].to_pylist()
    return [
        _rendered_row(formula, result, style, options)
        for formula, result, style in zip(formulas, results, styles, strict=True)
    ]


INKS_FILE = "inks.npz"  # of the work folder: all inks of the inputs, with the symbols of all of them


def _write_rows(
    normalized: pa.Table, rows: npt.NDArray[np.int64], options: StageOptions, index: int
) -> list[dict[str, object]]:
    """Write formulas by hand, each as the number of its line decides, or draw the ink that shows it."""
    if not len(rows):
        return []
    folder = options.folder
    lines = read_part(folder.part("lines", index)).take(rows)
    selected = read_part(folder.part("selected", index)).take(rows)
    trains = selected["split"].to_numpy() == SPLITS.index(TRAIN)
    formulas = normalized["latex"].to_pylist()
    distinct = list(dict.fromkeys(formulas))  # copies of an ink share one layout
    rendered = dict(zip(distinct, render_formulas(distinct, style=PAPER, boxes=True), strict=True))
    results = [rendered[latex] for latex in formulas]
    written = []
    for place, (formula, result) in enumerate(zip(normalized["formula"].to_pylist(), results, strict=True)):
        boxes = result.boxes and _laid_out(formula, result.formula, result.boxes)
        ink, copy = lines["ink"][place].as_py(), lines["copy"][place].as_py()
        plain = ink is not None and (copy == 0 or not trains[place])
        seed = 0 if plain else (options.seed << 32) + index * options.part_lines + int(rows[place]) + 1
        written.append(_written_row(formula, result, boxes, ink, seed, options))
    return written


def _laid_out(formula: str, layout: str, boxes: list[Box | None]) -> list[Box | None] | None:
    """Return the boxes of the tokens of a formula, of which TeX saw the layout: both draw the same signs."""
    drawn = [box for token, box in zip(normalize_formula(layout).tokens, boxes, strict=True) if token.visible]
    tokens = normalize_formula(formula).tokens
    if len(drawn) != sum(token.visible for token in tokens):
        return None
    places = iter(drawn)
    return [next(places) if token.visible else None for token in tokens]


def _written_row(
    formula: str,
    result: RenderResult,
    boxes: list[Box | None] | None,
    ink: int | None,
    seed: int,
    options: StageOptions,
) -> dict[str, object]:
    """Write or draw one formula; one that TeX cannot draw has no layout, and no picture to compare with."""
    if result.pixels is None:
        reason = NO_INK if result.reason == rendering.EMPTY else result.reason
        return {"reason": reason, "message": result.message}
    tokens = normalize_formula(formula).tokens
    bank = load_bank(options.folder.result / BANK_FILE)
    if ink is not None:
        known = load_bank(options.folder.path / INKS_FILE).ink(ink)
        drawn, shape = write_ink(known, bank=bank, seed=seed)
        pixels = None if options.compact else draw_written_ink(drawn, shape, seed=seed)
        units = formula_units(tokens)
        if boxes is not None:
            found = (s and drawn.symbols[known.symbols.index(s)] for s in match_symbols(known, units, boxes))
            boxes = ink_token_boxes(drawn, list(found), units, len(tokens), printed=boxes, seed=seed)
    elif boxes is None:
        return {"reason": NO_HAND, "message": "the places of its signs are not known"}
    elif (missing := missing_sign(tokens, bank)) is not None:
        return {"reason": NO_HAND, "message": f"no ink has {missing}"}
    else:
        boxes, shape = write_formula(tokens, boxes, bank=bank, seed=seed)
        pixels = None if options.compact else draw_formula(tokens, boxes, shape, bank=bank, seed=seed)
    row = _size_row(shape[0], shape[1], options.recipe)
    return row or {
        "reason": None,
        "image": None if pixels is None else encode_png(pixels),
        "width": shape[1],
        "height": shape[0],
        "boxes": boxes,
        "style": f"{HAND_PREFIX}{seed}",
        "look": HAND_STYLES,
        "ink": ink,
    }


def _size_row(height: int, width: int, limits: Recipe) -> dict[str, object]:
    """Return the verdict on a picture that is too large for the recipe; nothing if it is not."""
    if width > limits.max_width_px:
        return {"reason": TOO_WIDE, "message": f"{width} px wide, at most {limits.max_width_px}"}
    if height > limits.max_height_px:
        return {"reason": TOO_HIGH, "message": f"{height} px high, at most {limits.max_height_px}"}
    return {}


def _rendered_row(
    formula: str, result: RenderResult, style: Style, options: StageOptions
) -> dict[str, object]:
    reason, message = result.reason, result.message
    if result.pixels is None:
        return {"reason": NO_INK if reason == rendering.EMPTY else reason, "message": message}
    height, width = result.pixels.shape
    return _size_row(height, width, options.recipe) or {
        "reason": None,
        "image": None if options.compact else encode_png(result.pixels),
        "width": width,
        "height": height,
        "boxes": result.boxes and align_boxes(formula, result.formula, result.boxes),
        "style": style_text(style),
        "look": style_text(style.tex_part()),
    }


def _picture_row(path: Path, recipe: Recipe) -> dict[str, object]:
    """Open a picture and prepare it as a reader would, to see that it shows something that fits the recipe.

    The limits hold for the formula at the scale of the model, not for the pixels of a photograph.
    """
    try:
        image = open_image(path)
        canvas_shape = (recipe.max_height_px + 2 * FRAME_PX, recipe.max_width_px + 2 * FRAME_PX)
        prepare_image(image, canvas_shape=canvas_shape, check=False)
    except ImageTooLargeError as error:
        return {"reason": rendering.TOO_LARGE, "message": str(error)}
    except EmptyImageError as error:
        return {"reason": NO_INK, "message": str(error)}
    except ImageError as error:
        return {"reason": BAD_PICTURE, "message": str(error)}
    if max(image.size) > MAX_SIDE_PX:
        return {"reason": TOO_WIDE, "message": f"{max(image.size):,} px, at most {MAX_SIDE_PX:,}"}
    return {
        "reason": None,
        "width": image.width,
        "height": image.height,
        "style": PICTURE_TEXT,
        "look": PICTURE_TEXT,
    }


Job = Callable[[int], None]
INTERRUPT_S = 0.5


class Engine(Protocol):
    """Runs a task for each of many numbers, in any order, and names each number as it is done."""

    def run(self, task: Job, parts: Sequence[int]) -> Iterator[int]:
        """Yield the number of every finished part; the first failure is raised."""


class LocalEngine:
    """Processes of this machine; with one job, this process itself."""

    def __init__(self, *, jobs: int, scratch: Path) -> None:
        self.jobs = jobs
        self.scratch = scratch

    def run(self, task: Job, parts: Sequence[int]) -> Iterator[int]:
        """Run the task for each part.

        Raises:
            BuildError: if a worker process dies.
        """
        if self.jobs == 1 or len(parts) < 2:
            for part in parts:
                task(part)
                yield part
            return
        with ProcessPoolExecutor(
            max_workers=min(self.jobs, len(parts)),
            mp_context=multiprocessing.get_context("spawn"),  # safe whatever threads the caller has
            initializer=_start_worker,
            initargs=(str(self.scratch),),
        ) as pool:
            futures = {pool.submit(task, part): part for part in parts}
            try:
                for future in as_completed(futures):
                    future.result()
                    yield futures[future]
            except BrokenProcessPool as error:
                time.sleep(INTERRUPT_S)  # Ctrl-C may have ended a worker before it reaches this process
                raise BuildError(
                    "A worker process was killed, probably for want of memory; "
                    "repeat the command to go on, with fewer --jobs if it happens again."
                ) from error
            finally:
                pool.shutdown(wait=True, cancel_futures=True)


class RayEngine:
    """Ray Data on one machine or a cluster whose nodes share the file system of the output folder."""

    def __init__(self, *, address: str | None, jobs: int | None) -> None:
        self._ray = require_extra("ray", "cluster")
        require_extra("ray.data", "cluster")
        if not self._ray.is_initialized():
            self._ray.init(
                address=address or "local",
                num_cpus=jobs if address is None else None,
                include_dashboard=False if address is None else None,
                log_to_driver=False,
                logging_level=logging.WARNING,
            )
        logging.getLogger("ray.data").setLevel(logging.ERROR)
        self._ray.data.DataContext.get_current().enable_progress_bars = False  # we have our own

    def run(self, task: Job, parts: Sequence[int]) -> Iterator[int]:
        """Run the task for each part, one Ray task a part; Ray repeats those of a lost node.

        Raises:
            BuildError: if a task fails.
        """

        def run_row(row: dict[str, Any]) -> dict[str, Any]:
            # An expected error travels as a row: Ray would wrap it in pages of its own.
            try:
                task(row["item"])
            except (I2LError, OSError) as error:
                return row | {"error": str(error)}
            return row | {"error": ""}

        if parts:
            dataset = self._ray.data.from_items(list(parts), override_num_blocks=len(parts))
            for row in dataset.map(run_row).iter_rows():
                if row["error"]:
                    raise BuildError(f"On a node of the cluster: {row['error']}")
                yield row["item"]


def _start_worker(scratch: str) -> None:
    """Keep temporary files in the work folder; end at once with Ctrl-C, or when the build itself is killed.

    At once: the same Ctrl-C reaches TeX, and a worker that lived on would call the formula a failure. In the
    background of a script, where Ctrl-C is ignored, it stays so.
    """
    tempfile.tempdir = scratch
    if signal.getsignal(signal.SIGINT) != signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    end_with_parent()


Advance = Callable[[int], None]


class _Rate(ProgressColumn):
    """What is done in a second, such as `512 lines/s`."""

    def render(self, task: Task) -> Text:
        elapsed_s = task.finished_time or task.elapsed
        done = task.completed - task.fields["done"]
        return Text(f"{done / elapsed_s:,.0f} {task.fields['unit']}/s" if done and elapsed_s else "")


class BuildProgress:
    """Shows the stages of a build, or nothing if quiet."""

    def __init__(self, *, quiet: bool) -> None:
        self._progress = Progress(
            TextColumn("{task.description:<10}"),
            BarColumn(),
            MofNCompleteColumn(),
            _Rate(),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            disable=quiet,
        )

    @contextmanager
    def stage(self, name: str, *, total: int, unit: str, done: int = 0) -> Iterator[Advance]:
        """Show a bar; `done` is what an earlier run has left, and does not count in the rate."""
        task = self._progress.add_task(name, total=total, completed=done, unit=unit, done=done)
        yield lambda amount: self._progress.advance(task, amount)

    def __enter__(self) -> "BuildProgress":
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()
