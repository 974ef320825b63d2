"""What a dataset is built from, and within which limits.

A source is one input file. It holds formulas to render (a plain list, a list that `i2l extract` wrote, or
lines of im2latex-100k as published), labels of pictures that exist already, or inks with their labels. Each
source has its own split, its own macros and its own name, with which the ids of its samples start. A recipe
is a named set of limits.

The origins of extracted formulas (file, place, environment, macros) travel with the build, and become a table
in the dataset.
"""

import hashlib
import json
import os
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import accumulate, islice
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from i2l.dataset.work import WorkFolder, read_part
from i2l.errors import I2LError
from i2l.files import atomic_write
from i2l.formulas.lexer import read_lines
from i2l.ink.bank import ink_latex
from i2l.ink.strokes import Ink, read_inks

PAPER_STYLES, WORLD_STYLES, CLEAN_STYLES, UNICODE_STYLES = "paper", "world", "clean", "unicode"
PHOTO_STYLES, HAND_STYLES = "photo", "hand"
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
    # "paper" draws all in one style; "world" draws a style for each sample from the seed; so do "clean",
    # without blemishes, "unicode", in OpenType fonts, and "photo", three of four as a phone would photograph
    # it; "hand" writes formulas with the symbols of inks
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
        Recipe("clean", 24, 600, 2800, 2450, CLEAN_STYLES, 0.02, 0.02),
        Recipe("unicode", 24, 600, 2800, 2450, UNICODE_STYLES, 0.02, 0.02),
        Recipe("photo", 24, 600, 2800, 2450, PHOTO_STYLES, 0.02, 0.02),
        # handwriting, at the scale that models know it; people write a third wider than print
        Recipe("hand", 10, 120, 1560, 600, HAND_STYLES, 0.02, 0.02),
    )
}


def find_recipe(name: str) -> Recipe:
    """Look up a recipe by its name.

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
    """One line of an input: the formula, and what else the input says about it."""

    text: bytes
    name: str | None = None  # the id of its sample; None if the number of the line gives it
    origin: Origin | None = None  # of an extracted formula
    picture: str | None = None  # the path of the picture that shows the formula; None if it is to be rendered
    fault: str = ""  # what is wrong with a line of labels
    ink: Ink | None = None  # the strokes that show the formula
    copy: int = 0  # of an ink that is drawn several times: which time this is


@dataclass(frozen=True)
class Source:
    """One input file, with all that the build must know of it."""

    path: Path
    split: str | None  # None: to be drawn by the seed
    name: str  # what a sample's id starts with
    formulas: Path | None = None  # the list of which `path` names lines, as in im2latex-100k
    pictures: Path | None = None  # the folder whose pictures `path` labels, NAME<tab>FORMULA a line
    macros: Path | None = None  # a preamble whose definitions are written out in the formulas
    limit: int | None = None  # no more lines than this
    copies: int = 0  # of a file or folder of inks: how often each is drawn; 0: it holds no inks

    def files(self) -> list[Path]:
        """List the files of formulas, labels or inks that this source reads."""
        if self.path.is_dir():
            return sorted(self.path.rglob("*.inkml"))
        return [self.path] if self.formulas is None else [self.path, self.formulas]

    @property
    def extracted(self) -> bool:
        """Whether the file is a list that `i2l extract` wrote."""
        name = self.path.name.removesuffix(".xz").removesuffix(".gz")
        return not self.copies and name.endswith(".jsonl")

    @property
    def names_lines(self) -> bool:
        """Whether samples are named by what the input says, and not by the numbers of its lines."""
        return self.extracted or self.pictures is not None or self.copies > 0

    def lines(self) -> Iterator[Line]:
        """Yield the lines one by one, as they stand in the file, in UTF-8 if they are text at all.

        Raises:
            LinesError: if a file is missing or damaged.
            InputError: if a line names a formula that is not there, or is no object with one.
        """
        if self.copies:
            return _ink_lines(islice(read_inks(self.path), self.limit), self.name, self.copies)
        lines = islice(read_lines(self.path), self.limit)
        if self.formulas is not None:
            return _published_lines(lines, self.path, self.formulas)
        if self.pictures is not None:
            return _labelled_lines(lines, self.pictures, self.name)
        if self.extracted:
            return (_extracted_line(line, self.path, number) for number, line in enumerate(lines, start=1))
        return (Line(line) for line in lines)


class LineNames:
    """Names every line, from its number over all inputs: by its own name if it has one, else `file:line`.

    It travels to the processes of a build, so it holds nothing that cannot be pickled.
    """

    def __init__(
        self,
        *,
        names: Sequence[str],
        num_lines: Sequence[int],
        own_names: Callable[[int], str | None] | None = None,
    ) -> None:
        self.num_lines = num_lines  # of each source
        self._names = names
        self._starts = [0, *accumulate(num_lines)]
        self._own_names = own_names

    def source_of(self, number: int) -> int:
        """Return the position of the source that the line is from."""
        return bisect_right(self._starts, number) - 1

    def __getitem__(self, number: int) -> str:
        if self._own_names is not None and (name := self._own_names(number)) is not None:
            return name
        source = self.source_of(number)
        return f"{self._names[source]}:{number - self._starts[source] + 1}"

    def __len__(self) -> int:
        return self._starts[-1]


def _splits(val: Path | None, test: Path | None) -> tuple[str | None, list[tuple[Path, str]]]:
    """Return the split of all other data, None if it is to be drawn, and the data that has one of its own."""
    held_back = [(path, split) for path, split in ((val, VAL), (test, TEST)) if path is not None]
    return TRAIN if held_back else None, held_back


def text_sources(
    formulas: Sequence[Path],
    *,
    val: Path | None = None,
    test: Path | None = None,
    macros: Sequence[Path] = (),
    limit: int | None = None,
) -> list[Source]:
    """Describe lists of formulas; with `val` or `test` given, all of `formulas` is for training.

    Args:
        formulas: the lists.
        val: a list to validate on.
        test: a list to test on.
        macros: preambles: none, one for all, or one for each of `formulas`; then val and test have none.
        limit: how many lines of `formulas` are read, over all these files.

    Raises:
        InputError: if there is no file, a file is given twice, or the preambles do not match the lists.
        LinesError: if a file is missing or damaged; it is read here only where a limit is set.
    """
    if not formulas:
        raise InputError("No formulas are given; name one or more files with --formulas.")
    pool, held_back = _splits(val, test)
    given = [(path, pool) for path in formulas]
    given += held_back
    preambles = _preambles(macros, num_lists=len(formulas), num_sources=len(given))
    names = distinct_names([path for path, _ in given])
    sources = []
    for (path, split), name, preamble in zip(given, names, preambles, strict=True):
        source = Source(path=path, split=split, name=name, macros=preamble)
        if limit is not None and split == pool:
            source = replace(source, limit=limit)
            limit -= sum(1 for _ in source.lines())
        sources.append(source)
    return sources


def picture_sources(
    folders: Sequence[Path],
    labels: Sequence[Path],
    *,
    val: Path | None = None,
    test: Path | None = None,
    macros: Sequence[Path] = (),
    limit: int | None = None,
) -> list[Source]:
    """Describe folders of pictures, each with its file of labels, NAME<tab>FORMULA a line.

    Args:
        folders: of pictures.
        labels: one file for each folder.
        val: labels of pictures of the last folder to validate on; then all of `labels` is for training.
        test: labels of pictures of the last folder to test on; likewise.
        macros: preambles, as in `text_sources`.
        limit: how many lines are read of each of `labels`.

    Raises:
        InputError: if a folder lacks labels or does not exist, or the preambles do not match the files.
    """
    if len(folders) != len(labels) or not folders:
        raise InputError("Give every --images its --labels, in the same order.")
    for folder in folders:
        if not folder.is_dir():
            raise InputError(f"There is no folder {folder}.")
    pool, held_back = _splits(val, test)
    given = [(path, folder, pool) for path, folder in zip(labels, folders, strict=True)]
    given += [(path, folders[-1], split) for path, split in held_back]
    preambles = _preambles(macros, num_lists=len(labels), num_sources=len(given))
    names = distinct_names([path for path, _, _ in given])
    return [
        Source(
            path=path,
            split=split,
            name=name,
            pictures=folder,
            macros=preamble,
            limit=limit if split == pool else None,
        )
        for (path, folder, split), name, preamble in zip(given, names, preambles, strict=True)
    ]


def ink_sources(
    inks: Sequence[Path],
    formulas: Sequence[Path] = (),
    *,
    copies: int = 1,
    val: Path | None = None,
    test: Path | None = None,
    macros: Sequence[Path] = (),
    limit: int | None = None,
) -> list[Source]:
    """Describe inks with their labels, and lists of formulas to write with the symbols of these inks.

    Args:
        inks: files of one JSON object a line, or folders of InkML.
        formulas: lists of formulas.
        copies: how often each ink to train on is drawn, another way every time but the first.
        val: inks to validate on; then all of `inks` and `formulas` is for training.
        test: inks to test on; likewise.
        macros: preambles for the lists of formulas: none, or one for all.
        limit: how many lines are read of each list of formulas, and how many of each file of inks.

    Raises:
        InputError: if there are no inks, or a file is given twice.
    """
    if not inks:
        raise InputError("The recipe hand writes with the symbols of inks; name some with --inks.")
    if missing := [path for path in (*inks, val, test) if path is not None and not path.exists()]:
        raise InputError(f"There is no file or folder {missing[0]}.")
    pool, held_back = _splits(val, test)
    given: list[tuple[Path, str | None, int]] = [(path, pool, copies) for path in inks]
    given += [(path, split, 1) for path, split in held_back]
    given += [(path, pool, 0) for path in formulas]
    names = distinct_names([path for path, _, _ in given])
    return [
        Source(
            path=path,
            split=split,
            name=name,
            copies=times,
            macros=None if times or not macros else macros[0],
            limit=limit if split == pool else None,
        )
        for (path, split, times), name in zip(given, names, strict=True)
    ]


def _ink_lines(inks: Iterator[Ink], name: str, copies: int) -> Iterator[Line]:
    for number, ink in enumerate(inks, start=1):
        label = ink_latex(ink).replace("\n", " ").encode(errors="replace")
        for copy in range(copies):
            own = f"{name}:{ink.name or number}" + (f"#{copy + 1}" if copy else "")
            yield Line(label, name=own, ink=ink, copy=copy)


def _preambles(macros: Sequence[Path], *, num_lists: int, num_sources: int) -> list[Path | None]:
    """Hand the preambles out to the sources: none, one for all, or one for each list to train on."""
    if len(macros) > 1:
        if len(macros) != num_lists:
            raise InputError(
                f"{len(macros)} files of macros for {num_lists} inputs; give one for all, or one for each."
            )
        return [*macros, *[None] * (num_sources - num_lists)]
    return [macros[0] if macros else None] * num_sources


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
    """Return the hex SHA-256 of a file.

    Raises:
        InputError: if it cannot be read.
    """
    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise InputError(f"Cannot read {path}: {error.strerror}.") from error


def pictures_sha256(source: Source) -> str | None:
    """Return one hex SHA-256 over all pictures that a source names; None if it renders its formulas."""
    if source.pictures is None:
        return None
    whole = hashlib.sha256()
    for line in source.lines():
        path = Path(line.picture or "")
        whole.update((file_sha256(path) if path.is_file() else "missing").encode())
    return whole.hexdigest()


def _published_lines(lines: Iterator[bytes], path: Path, formulas: Path) -> Iterator[Line]:
    """Yield the formulas that the lines name; the published list of formulas is in ISO-8859-1."""
    known = [line.decode("iso-8859-1").encode() for line in read_lines(formulas)]
    for number, line in enumerate(lines, start=1):
        yield Line(_named_formula(known, line, path, number))


def _named_formula(formulas: list[bytes], line: bytes, path: Path, number: int) -> bytes:
    """Look up a line of a split list: `index image renderer` as published, `image index` in im2markup."""
    fields = line.decode("iso-8859-1").split()
    index = {2: fields[-1:], 3: fields[:1]}.get(len(fields), [""])[0]
    if not index.isdecimal() or int(index) >= len(formulas):
        raise InputError(
            f"{path}, line {number}: {line!r} names none of the {len(formulas)} formulas of the list."
        )
    return formulas[int(index)]


def _labelled_lines(lines: Iterator[bytes], folder: Path, name: str) -> Iterator[Line]:
    """Yield the lines of a file of labels; a line that names no picture of the folder says why."""
    root = folder.resolve()
    named: dict[str, int] = {}
    for number, line in enumerate(lines, start=1):
        title, tab, text = line.partition(b"\t")
        picture = title.decode(errors="replace").strip()
        if not line.strip():
            yield Line(b"")
        elif not tab or not picture:
            yield Line(text, fault="the line is not NAME<tab>FORMULA")
        elif not (root / picture).resolve().is_relative_to(root):
            yield Line(text, fault="the name leads out of the folder of pictures")
        elif picture in named:
            yield Line(text, fault=f"line {named[picture]} has labelled this picture")
        else:
            named[picture] = number
            yield Line(text, name=f"{name}:{picture}", picture=str(root / picture))


def _extracted_line(line: bytes, path: Path, number: int) -> Line:
    """Read one object of an extracted list."""
    try:
        row = json.loads(line)
        start, end = row["span"]
        place = f"{row['file']}:{start:d}-{end:d}"
        macros = json.dumps(row.get("macros", {}), sort_keys=True)
        origin = Origin(place, row["file"], start, end, row.get("environment", ""), macros)
        return Line(row["latex"].replace("\n", " ").encode(errors="replace"), name=place, origin=origin)
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
    """Name each file, with as many parent folders as it takes to tell the files apart.

    Raises:
        InputError: if a file is given twice.
    """
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
    """Looks the own names of lines up in the parts of the work folder; the last part stays open."""

    def __init__(self, folder: WorkFolder, *, part_lines: int) -> None:
        self._folder = folder
        self._part_lines = part_lines
        self._part = -1
        self._names: list[str | None] = []

    def __call__(self, number: int) -> str | None:
        """Return the name of a line; None if its number gives it."""
        part, row = divmod(number, self._part_lines)
        if part != self._part:
            self._names = read_part(self._folder.part("lines", part))["name"].to_pylist()
            self._part = part
        return self._names[row]
