"""Where formulas come from: lists of them, what `i2l extract` wrote, and im2latex-100k as published.

Recipes: the named sets of limits that a dataset is built with.

The origins of extracted formulas: their names while a dataset is built, and the table of them in it.
"""

import hashlib
import json
import os
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from i2l.dataset.work import WorkFolder, read_part
from i2l.errors import I2LError
from i2l.files import atomic_write
from i2l.formulas.lines import read_lines

PAPER_STYLES, WORLD_STYLES, PHOTO_STYLES = "paper", "world", "photo"
TRAIN, VAL, TEST = SPLITS = ("train", "val", "test")


@dataclass(frozen=True)
class Recipe:
    """What a formula must be to stay in the dataset, and in which style it is drawn."""

    name: str
    # a training formula with a rarer token is dropped; occurrences are counted in the training split only
    min_token_count: int
    # limits of a sample, for every split; the two pixel limits are those of the model's canvas
    max_tokens: int
    max_width_px: int
    max_height_px: int
    # "paper" draws all in one style; "world" draws each sample's own style from the seed, "photo" also does,
    # three of four as a phone would photograph it
    styles: str
    # shares of a seeded split; unused where the splits are given
    val_fraction: float
    test_fraction: float


RECIPES = {
    recipe.name: recipe
    for recipe in (
        Recipe("im2latex-90k", 24, 150, 1086, 126, PAPER_STYLES, 0.05, 0.05),
        Recipe("i2l-140k", 50, 150, 1086, 126, PAPER_STYLES, 0.1, 0.1),
        # 300 dpi and 14 pt draw the same formula 1.75 times as large as the paper's style does
        Recipe("world", 24, 200, 1920, 256, WORLD_STYLES, 0.02, 0.02),
        # displays of several lines, as large as a page has them
        Recipe("displays", 24, 600, 1600, 1400, PAPER_STYLES, 0.02, 0.02),
        Recipe("world-displays", 24, 600, 2800, 2450, WORLD_STYLES, 0.02, 0.02),
        Recipe("photo", 24, 600, 2800, 2450, PHOTO_STYLES, 0.02, 0.02),
    )
}


def find_recipe(name: str) -> Recipe:
    """Give the recipe of that name.

    Raises:
        I2LError: if there is none.
    """
    if name not in RECIPES:
        raise I2LError(f"No recipe is called {name!r}; choose one of: {', '.join(RECIPES)}.")
    return RECIPES[name]


# the published names, then those of the normalised form (im2markup)
_FORMULA_FILES = ("im2latex_formulas.lst", "im2latex_formulas.norm.lst", "formulas.norm.lst", "formulas.lst")
_SPLIT_FILES = {
    TRAIN: ("im2latex_train.lst", "im2latex_train_filter.lst", "train.lst", "train_filter.lst"),
    VAL: ("im2latex_validate.lst", "im2latex_validate_filter.lst", "validate.lst", "validate_filter.lst"),
    TEST: ("im2latex_test.lst", "im2latex_test_filter.lst", "test.lst", "test_filter.lst"),
}


class InputError(I2LError):
    """Inputs that are missing or are not what they should be."""


class Origin(NamedTuple):
    """Where a formula of an extracted list stood, and the macros that were written out in it."""

    id: str
    file: str
    start: int
    end: int
    environment: str
    macros: str  # names and texts, as JSON


class Line(NamedTuple):
    """One line of an input: the formula, and where it came from if the input says so."""

    text: bytes
    origin: Origin | None = None


@dataclass(frozen=True)
class Source:
    """One input file: formulas, an extracted list of them, or, with `formulas`, lines of that file."""

    path: Path
    split: str | None  # None: to be drawn by the seed
    name: str  # what a sample's id starts with
    formulas: Path | None = None
    limit: int | None = None  # no more lines than this

    def files(self) -> list[Path]:
        """List every file this source reads."""
        return [self.path] if self.formulas is None else [self.path, self.formulas]

    @property
    def extracted(self) -> bool:
        """Whether the file is a list that `i2l extract` wrote."""
        return self.path.name.removesuffix(".xz").removesuffix(".gz").endswith(".jsonl")

    def lines(self) -> Iterator[bytes]:
        """Give the formulas one by one, without what is known of them besides; as `records` does."""
        return (record.text for record in self.records())

    def records(self) -> Iterator[Line]:
        """Give the formulas one by one, as they stand in the file, in UTF-8 if they are text at all.

        Raises:
            LinesError: if a file is missing or damaged.
            InputError: if a line names a formula that is not there, or is no object with one.
        """
        # the published list is ISO-8859-1
        formulas = None
        if self.formulas is not None:
            formulas = [line.decode("iso-8859-1").encode() for line in read_lines(self.formulas)]
        for number, line in enumerate(read_lines(self.path), start=1):
            if self.limit is not None and number > self.limit:
                return
            if formulas is not None:
                yield Line(_named_formula(formulas, line, self.path, number))
            else:
                yield _extracted_line(line, self.path, number) if self.extracted else Line(line)


class LineNames:
    """Names every line, from its number over all inputs: by its origin if it has one, else `file:line`.

    It travels to the processes of a build, so it holds nothing that cannot be pickled.
    """

    def __init__(
        self,
        *,
        names: Sequence[str],
        num_lines: Sequence[int],
        origins: Callable[[int], str | None] | None = None,
    ) -> None:
        self._names = names
        self._starts = [0, *accumulate(num_lines)]
        self._origins = origins

    def __getitem__(self, number: int) -> str:
        if self._origins is not None and (origin := self._origins(number)) is not None:
            return origin
        source = bisect_right(self._starts, number) - 1
        return f"{self._names[source]}:{number - self._starts[source] + 1}"

    def __len__(self) -> int:
        return self._starts[-1]


def text_sources(
    formulas: Sequence[Path], *, val: Path | None = None, test: Path | None = None, limit: int | None = None
) -> list[Source]:
    """Describe lists of formulas; with `val` or `test` given, all of `formulas` is for training.

    The limit counts lines of `formulas`, over all these files.

    Raises:
        InputError: if there is no file, or a file is given twice.
        LinesError: if a file is missing or damaged; it is read here only where a limit is set.
    """
    if not formulas:
        raise InputError("No formulas are given; name one or more files with --formulas.")
    pool = None if val is None and test is None else TRAIN
    given = [(path, pool) for path in formulas]
    given += [(path, split) for path, split in ((val, VAL), (test, TEST)) if path is not None]
    names = distinct_names([path for path, _ in given])
    sources = []
    for (path, split), name in zip(given, names, strict=True):
        if limit is not None and split == pool:
            sources.append(Source(path=path, split=split, name=name, limit=limit))
            limit -= sum(1 for _ in sources[-1].lines())
        else:
            sources.append(Source(path=path, split=split, name=name))
    return sources


def im2latex_sources(folder: Path, *, limit: int | None = None) -> list[Source]:
    """Describe the im2latex-100k dataset in a folder: its formula list and its three split lists.

    The limit counts lines of the training split.

    Raises:
        InputError: if one of the lists is not there.
    """
    formulas = _first_existing(folder, _FORMULA_FILES)
    paths = {split: _first_existing(folder, names) for split, names in _SPLIT_FILES.items()}
    limits = {TRAIN: limit}
    return [
        Source(path=path, split=split, name=path.name, formulas=formulas, limit=limits.get(split))
        for split, path in paths.items()
    ]


def file_sha256(path: Path) -> str:
    """Give the hex SHA-256 of a file.

    Raises:
        InputError: if it cannot be read.
    """
    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise InputError(f"Cannot read {path}: {error.strerror}.") from error


def _named_formula(formulas: list[bytes], line: bytes, path: Path, number: int) -> bytes:
    """Look up a line of a split list: `index image renderer` as published, `image index` in im2markup."""
    fields = line.decode("iso-8859-1").split()
    index = {2: fields[-1:], 3: fields[:1]}.get(len(fields), [""])[0]
    if not index.isdecimal() or int(index) >= len(formulas):
        raise InputError(
            f"{path}, line {number}: {line!r} names none of the {len(formulas)} formulas of the list."
        )
    return formulas[int(index)]


def _extracted_line(line: bytes, path: Path, number: int) -> Line:
    """Read one object of an extracted list."""
    try:
        row = json.loads(line)
        start, end = row["span"]
        place = f"{row['file']}:{start:d}-{end:d}"
        macros = json.dumps(row.get("macros", {}), sort_keys=True)
        origin = Origin(place, row["file"], start, end, row.get("environment", ""), macros)
        return Line(row["latex"].replace("\n", " ").encode(errors="replace"), origin)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(
            f"{path}, line {number} is not an object with latex, file and span, as `i2l extract` writes them."
        ) from error


def _first_existing(folder: Path, names: Sequence[str]) -> Path:
    for name in names:
        if (folder / name).is_file():
            return folder / name
    raise InputError(f"{folder} is not im2latex-100k: it holds none of {', '.join(names)}.")


def distinct_names(paths: Sequence[Path]) -> list[str]:
    """Give each file its name, with as many parent folders as it takes to tell the files apart."""
    full = [Path(os.path.abspath(path)) for path in paths]
    if len(set(full)) < len(full):
        raise InputError("An input file is given twice.")
    parts = 1
    while len({path.parts[-parts:] for path in full}) < len(full):
        parts += 1
    return ["/".join(path.parts[-parts:]) for path in full]


ORIGINS_FILE = "origins.parquet"
_SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("file", pa.string()),
        ("start", pa.int64()),  # of the formula in its file, in characters
        ("end", pa.int64()),
        ("environment", pa.string()),
        ("macros", pa.string()),  # those that were written out, as JSON
    ]
)
_ROWS_AT_ONCE = 10_000


@contextmanager
def origins_writer(folder: Path, sources: Sequence[Source]) -> Iterator[Callable[[Origin], None]]:
    """Write the origins of all lines that have one into a dataset; no file if no source has any."""
    if not any(source.extracted for source in sources):
        yield lambda _: None
        return
    rows: list[Origin] = []
    with (
        atomic_write(folder / ORIGINS_FILE, "wb") as file,
        pq.ParquetWriter(file, _SCHEMA, compression="zstd") as writer,
    ):

        def write(origin: Origin | None) -> None:
            if origin is not None:
                rows.append(origin)
            if rows and (origin is None or len(rows) == _ROWS_AT_ONCE):
                writer.write_table(pa.Table.from_pylist([row._asdict() for row in rows], schema=_SCHEMA))
                rows.clear()

        yield write
        write(None)


class StoredNames:
    """Looks the names of lines up in the parts of the work folder; the last part stays open."""

    def __init__(self, folder: WorkFolder, *, part_lines: int) -> None:
        self._folder = folder
        self._part_lines = part_lines
        self._part = -1
        self._names: list[str | None] = []

    def __call__(self, number: int) -> str | None:
        """Give the name of a line; None if its number gives it."""
        part, row = divmod(number, self._part_lines)
        if part != self._part:
            self._names = read_part(self._folder.part("lines", part))["name"].to_pylist()
            self._part = part
        return self._names[row]
