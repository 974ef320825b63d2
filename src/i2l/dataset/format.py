"""The dataset on disk, for everyone who reads it: one interface to both forms.

A dataset is a folder: `dataset.json` (what is in it, how it was made, checksums), `vocab.json`,
`data/SPLIT-*.parquet`, in the compact form `pages/*.pdf.xz`, and for people `README.md`, `report.html` and
`verdicts.parquet`. `dataset.json` is written last and the folder appears as a whole, so one that opens is
complete.

Many images are decoded by several processes into one flat buffer. The sizes are known beforehand, so every
sample has its place in the buffer before any is decoded; the workers write there through a shared file, and
no pixels are sent between processes.
"""

import io
import json
import lzma
import multiprocessing
import multiprocessing.connection
import os
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from itertools import groupby
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

from i2l.dataset.shards import PICTURE_TEXT, style_from_text
from i2l.dataset.sources import file_sha256
from i2l.errors import I2LError
from i2l.files import find_damage
from i2l.formulas.normalize import normalize_formula
from i2l.formulas.vocabulary import Vocabulary
from i2l.images.open import ImageError, open_image
from i2l.ink.bank import Bank
from i2l.ink.hand import HAND_PREFIX, draw_formula, draw_written_ink, write_ink
from i2l.ink.strokes import InkError
from i2l.rendering.rasterize import Pixels
from i2l.rendering.render import draw_pages

FORMAT = "i2l-dataset-1"
BANK_FILE = "ink/bank.npz"  # of handwriting: the inks, and the symbols that formulas are written with
CARD_FILE = "dataset.json"
VOCABULARY_FILE = "vocab.json"
VERDICTS_FILE = "verdicts.parquet"

Box = tuple[int, int, int, int]  # left, top, right, bottom in pixels, half-open

T = TypeVar("T")

ZOOM_ROOM_PX = 3  # by so much a side may differ from what it was, times the zoom
SAMPLES_PER_TASK = 500
MIN_SAMPLES_FOR_PROCESSES = 2_000  # below, starting them takes longer than the work


class DatasetError(I2LError):
    """A dataset that cannot be read."""


@dataclass(frozen=True)
class StoredSamples:
    """Samples that lie in one file, in the order of their places there."""

    file: Path
    places: npt.NDArray[np.int32]  # rows of a Parquet shard, or pages of a file of vector pages
    styles: list[str]  # what they are drawn with: pages when read, pixels when they were stored
    shapes: npt.NDArray[np.int32]  # height, width
    offsets: npt.NDArray[np.int64]  # where the pixels go

    def split(self, size: int) -> "Iterator[StoredSamples]":
        """Cut into pieces of at most `size` samples."""
        for start in range(0, len(self.places), size):
            piece = slice(start, start + size)
            yield StoredSamples(
                self.file, self.places[piece], self.styles[piece], self.shapes[piece], self.offsets[piece]
            )


@dataclass(frozen=True)
class PixelBuffer:
    """The pixels of many samples, one after another, row by row."""

    data: Pixels  # flat
    offsets: npt.NDArray[np.int64]  # where each sample starts, and the end; there may be gaps
    shapes: npt.NDArray[np.int32]  # height, width

    def __len__(self) -> int:
        return len(self.shapes)

    def __getitem__(self, index: int) -> Pixels:
        height, width = self.shapes[index]
        start = self.offsets[index]
        return self.data[start : start + height * width].reshape(height, width)


class DatasetReader:
    """Opens a dataset; its splits read what they are asked for."""

    def __init__(self, path: Path | str) -> None:
        """Read the card.

        Raises:
            DatasetError: if there is no dataset of this version.
        """
        self.path = Path(path)
        self._require_whole(CARD_FILE)
        try:
            self.card: dict[str, Any] = json.loads((self.path / CARD_FILE).read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise DatasetError(f"{self.path} is not a dataset made by `i2l build`: {error}") from error
        if self.card.get("format") != FORMAT:
            raise DatasetError(f"{self.path} is not a dataset of this version ({FORMAT}); build it again.")

    @property
    def splits(self) -> tuple[str, ...]:
        """Names of the splits that have samples."""
        return tuple(self.card["splits"])

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """The tokens of the training split."""
        self._require_whole(VOCABULARY_FILE)
        return Vocabulary.load(self.path / VOCABULARY_FILE)

    def split(self, name: str) -> "Split":
        """Open a split.

        Raises:
            DatasetError: if the dataset has no such split, or lacks files of it, or one has changed.
        """
        if name not in self.splits:
            raise DatasetError(f"{self.path} has no split {name!r}; it has: {', '.join(self.splits)}.")
        files = self.card["splits"][name]["files"]
        for file in files:
            if (self.path / file).is_file():
                self._compare(file)
        return Split(self.path, files)

    def verify(self) -> None:
        """Compare every file with its checksum in the card.

        Raises:
            DatasetError: if a file is missing or has changed.
        """
        for name in self.card["sha256"]:
            self._compare(name)
        self._require_whole(CARD_FILE, *self.card["sha256"])

    def _compare(self, name: str) -> None:
        path = self.path / name
        if not path.is_file() or file_sha256(path) != self.card["sha256"][name]:
            raise DatasetError(f"{path} is missing or damaged; build or copy the dataset again.")

    def _require_whole(self, *names: str) -> None:
        if damage := find_damage(self.path, names):
            raise DatasetError(damage)


class Split:
    """The samples of one split, by their number: columns as a whole, pixels and boxes on demand."""

    left_out: Sequence[str] = ()  # of a split as it is stored, nothing is
    left_out_formulas: Sequence[str] = ()

    def __init__(self, root: Path, files: Sequence[str]) -> None:
        self._root = root
        self._files = [root / file for file in files]
        missing = [str(file) for file in self._files if not file.is_file()]
        if missing:
            raise DatasetError(f"Files of the dataset are missing: {', '.join(missing)}.")
        self._schema = pq.read_schema(self._files[0])

    def __len__(self) -> int:
        return len(self.sizes)

    @cached_property
    def formulas(self) -> list[str]:
        """Canonical tokens joined by single spaces, of each sample."""
        return self._strings("formula")

    @cached_property
    def ids(self) -> list[str]:
        """`file:line` of the input, of each sample."""
        return self._strings("id")

    @cached_property
    def styles(self) -> list[str]:
        """What each sample was drawn with."""
        return self._strings("style")

    @cached_property
    def sizes(self) -> npt.NDArray[np.int32]:
        """Height and width of each image, (N, 2)."""
        columns = [self._column(name).to_numpy() for name in ("height", "width")]
        return np.stack(columns, axis=1).astype(np.int32)

    @cached_property
    def num_tokens(self) -> npt.NDArray[np.int64]:
        """How many tokens each formula has."""
        return np.array([formula.count(" ") + 1 for formula in self.formulas], dtype=np.int64)

    def boxes(self, indices: Sequence[int]) -> list[list[Box | None] | None]:
        """Return the boxes of each token of some samples; None for a sample or token without."""
        if self._boxes is None:
            return [None] * len(indices)
        picked = self._boxes.take(pa.array(indices, pa.int64())).to_pylist()
        return [boxes and [box and tuple(box) for box in boxes] for boxes in picked]

    def token_boxes(self) -> npt.NDArray[np.int16] | None:
        """Return the boxes of all tokens of all samples, (sum of tokens, 4); empty where a token has none."""
        if self._boxes is None:
            return None
        starts = np.concatenate([[0], np.cumsum(self.num_tokens)])
        table = np.zeros((starts[-1], 4), dtype=np.int16)
        samples = self._boxes.combine_chunks()
        known = np.flatnonzero(samples.is_valid().to_numpy(zero_copy_only=False))
        lists = samples.drop_null()
        boxes = lists.flatten()
        filled = boxes.is_valid().to_numpy(zero_copy_only=False)
        rows = np.concatenate([np.arange(starts[i], starts[i + 1]) for i in known]) if len(known) else known
        table[rows[filled]] = boxes.flatten().to_numpy(zero_copy_only=False).reshape(-1, 4)
        return table

    def pixels(self, indices: Sequence[int], *, jobs: int | None = None) -> list[Pixels]:
        """Decode some samples to grey images, (height, width) each, 255 = white; thousands in parallel."""
        buffer = self._load(np.asarray(indices, dtype=np.int64), jobs)
        return [buffer[index] for index in range(len(buffer))]

    def load_all(self, *, jobs: int | None = None) -> PixelBuffer:
        """Decode every image of the split into one flat buffer, on all cores unless `jobs` says otherwise."""
        return self._load(np.arange(len(self)), jobs)

    @cached_property
    def _boxes(self) -> pa.ChunkedArray | None:
        return self._column("boxes") if "boxes" in self._schema.names else None

    @cached_property
    def _places(self) -> tuple[list[Path], npt.NDArray[np.int32], npt.NDArray[np.int32]]:
        """The files that hold pixels, and for each sample which of them and where in it."""
        if "page" in self._schema.names:
            names = self._column("pages").combine_chunks().dictionary_encode()
            files = [self._root / name for name in names.dictionary.to_pylist()]
            return files, names.indices.to_numpy(), self._column("page").to_numpy()
        lengths = [pq.read_metadata(file).num_rows for file in self._files]
        owners = np.repeat(np.arange(len(lengths), dtype=np.int32), lengths)
        rows = [np.arange(length, dtype=np.int32) for length in lengths]
        return self._files, owners, np.concatenate(rows)

    def _load(self, indices: npt.NDArray[np.int64], jobs: int | None) -> PixelBuffer:
        shapes = self.sizes[indices]
        stored = self.stored(indices, pixel_offsets(shapes))
        return load_pixels(stored, shapes, jobs=jobs)

    def stored(self, indices: npt.NDArray[np.int64], offsets: npt.NDArray[np.int64]) -> list[StoredSamples]:
        """Say which files hold the pixels of some samples, with where in a buffer each shall go."""
        files, owners, places = self._places
        shapes = self.sizes[indices]
        stored = []
        for number in np.unique(owners[indices]):
            positions = np.flatnonzero(owners[indices] == number)
            positions = positions[np.argsort(places[indices[positions]], kind="stable")]
            samples = indices[positions]
            styles = [self.styles[index] for index in samples]
            stored.append(
                StoredSamples(files[number], places[samples], styles, shapes[positions], offsets[positions])
            )
        return stored

    def _column(self, name: str) -> pa.ChunkedArray:
        tables = []
        for file in self._files:
            try:
                tables.append(pq.read_table(file, columns=[name]))
            except (OSError, pa.ArrowException) as error:
                raise DatasetError(
                    f"{file} is damaged ({error}); copy or build the dataset again."
                ) from error
        return pa.concat_tables(tables)[name]

    def _strings(self, name: str) -> list[str]:
        return self._column(name).to_pylist()  # type: ignore[no-any-return]


def decode(samples: StoredSamples) -> Iterator[Pixels]:
    """Yield the samples as grey pixels, 255 = white, one by one; as `decode_stored` does."""
    for image in decode_stored(samples):
        yield _grey(image) if isinstance(image, Image.Image) else image


def decode_stored(samples: StoredSamples, *, zoom: float = 1.0) -> Iterator[Pixels | Image.Image]:
    """Yield the samples as they are stored: rendered ones as grey pixels, pictures in their colours.

    Handwriting of which only the strokes are stored is drawn so many times as large as the dataset says.

    Raises:
        DatasetError: if the file is damaged, or they are not of the size that the dataset says.
    """
    strokes = _holds_strokes(samples.file)
    zoom = zoom if strokes else 1.0
    try:
        images: Iterator[Pixels | Image.Image | None]
        if strokes:
            images = _draw_written(samples, zoom)
        else:
            images = _read_images(samples) if samples.file.suffix == ".parquet" else _draw_pages(samples)
        for place, shape, image in zip(samples.places, samples.shapes, images, strict=True):
            if image is None or not _has_shape(image, shape, zoom):
                raise DatasetError(
                    f"Sample {place} of {samples.file} is not {shape[0]} x {shape[1]} px. If the file is "
                    "whole (see verify), another rasteriser built the dataset: build it again."
                )
            yield image
    except (OSError, EOFError, ImageError, InkError, lzma.LZMAError, pa.ArrowException) as error:
        raise DatasetError(
            f"{samples.file} is damaged ({error}); copy or build the dataset again."
        ) from error


def drawn_zoom(samples: StoredSamples, zoom: float) -> float:
    """Return the zoom that samples are drawn with if this one is asked for: 1 unless strokes are stored."""
    return zoom if _holds_strokes(samples.file) else 1.0


def _holds_strokes(file: Path) -> bool:
    """Tell whether a file holds strokes instead of images; one that cannot be read is found damaged later."""
    try:
        return file.suffix == ".parquet" and "image" not in pq.read_schema(file).names
    except (OSError, pa.ArrowException):
        return False


def _has_shape(image: Pixels | Image.Image, shape: npt.NDArray[np.int32], zoom: float) -> bool:
    """Tell whether an image has this height and width, times the zoom that it was drawn with."""
    found = np.array(image.size[::-1] if isinstance(image, Image.Image) else image.shape)
    return bool((np.abs(found - shape * zoom) <= (0 if zoom == 1 else ZOOM_ROOM_PX)).all())


def _grey(image: Image.Image) -> Pixels:
    """Convert a picture to grey, on white where it is transparent."""
    if image.mode in ("LA", "PA", "RGBA") or "transparency" in image.info:
        image = image.convert("RGBA")
        white = Image.new("RGBA", image.size, "white")
        image = Image.alpha_composite(white, image)
    return np.asarray(image.convert("L"))


def load_pixels(
    files: Sequence[StoredSamples], shapes: npt.NDArray[np.int32], *, jobs: int | None
) -> PixelBuffer:
    """Decode samples of many files into one buffer; processes as in `fill_buffer`.

    Raises:
        DatasetError: if a file is damaged, or memory or the room for temporary files does not suffice.
    """
    offsets = pixel_offsets(shapes)
    data, _ = fill_buffer(int(offsets[-1]), files, fill_pixels, jobs=jobs)
    return PixelBuffer(data, offsets, shapes)


def fill_buffer(
    num_pixels: int,
    files: Sequence[StoredSamples],
    fill: Callable[[Pixels, StoredSamples], T],
    *,
    jobs: int | None,
) -> tuple[Pixels, list[tuple[StoredSamples, T]]]:
    """Let ``fill`` write samples to their places in a buffer, with several processes if there are many.

    Args:
        num_pixels: size of the buffer.
        files: the samples, with their places.
        fill: writes some of them.
        jobs: processes; one for each core if None.

    Returns:
        The buffer, and what ``fill`` gave for each piece of the samples.

    Raises:
        DatasetError: if memory or the room for temporary files does not suffice.
    """
    num_samples = sum(len(samples.places) for samples in files)
    jobs = (jobs or os.cpu_count() or 1) if num_samples >= MIN_SAMPLES_FOR_PROCESSES else 1
    if jobs == 1:
        data = np.empty(num_pixels, dtype=np.uint8)
        return data, [(samples, fill(data, samples)) for samples in files]
    folder = tempfile.gettempdir()
    if shutil.disk_usage(folder).free < num_pixels:
        raise DatasetError(
            f"{num_pixels / 1e9:.1f} GB of pixels do not fit into {folder}; set TMPDIR to a larger disk."
        )
    with tempfile.NamedTemporaryFile(prefix="i2l-pixels-", dir=folder) as file:
        os.truncate(file.name, num_pixels)
        data = np.memmap(file.name, dtype=np.uint8, mode="r+", shape=(num_pixels,))
        tasks = [piece for samples in files for piece in samples.split(SAMPLES_PER_TASK)]
        spawn = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(jobs, mp_context=spawn, initializer=end_with_parent) as pool:
            try:
                filled = list(pool.map(partial(_fill_file, Path(file.name), fill), tasks))
            except BrokenProcessPool as error:
                raise DatasetError(
                    "A process that decodes images was killed, probably for want of memory; use fewer jobs."
                ) from error
    # the file is gone from its folder; its pages live on in the buffer
    return data, list(zip(tasks, filled, strict=True))


def end_with_parent() -> None:
    """See to it that a worker process does not outlive the one that started it, however that ends."""
    parent = multiprocessing.parent_process()
    assert parent is not None  # this runs in a worker

    def wait() -> None:
        multiprocessing.connection.wait([parent.sentinel])
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()


def pixel_offsets(shapes: npt.NDArray[np.int32]) -> npt.NDArray[np.int64]:
    """Compute where each sample starts in a flat buffer, and where the last one ends."""
    return np.concatenate([[0], np.cumsum(shapes.astype(np.int64).prod(axis=1))])


def _fill_file(path: Path, fill: Callable[[Pixels, StoredSamples], T], samples: StoredSamples) -> T:
    return fill(np.memmap(path, dtype=np.uint8, mode="r+"), samples)


def fill_pixels(data: Pixels, samples: StoredSamples) -> None:
    """Write samples to their places, as they are."""
    for offset, pixels in zip(samples.offsets, decode(samples), strict=True):
        data[offset : offset + pixels.size] = pixels.ravel()


def _read_images(samples: StoredSamples) -> Iterator[Pixels | Image.Image]:
    file = pq.ParquetFile(samples.file)
    sizes = [file.metadata.row_group(group).num_rows for group in range(file.num_row_groups)]
    starts = np.concatenate([[0], np.cumsum(sizes)])
    groups = np.searchsorted(starts, samples.places, side="right") - 1
    for group, members in groupby(range(len(groups)), key=groups.__getitem__):
        images = file.read_row_group(group, columns=["image"])["image"]
        for member in members:
            image = images[int(samples.places[member] - starts[group])]["bytes"].as_buffer()
            if samples.styles[member] == PICTURE_TEXT:
                yield open_image(image.to_pybytes())
            else:
                yield np.asarray(Image.open(io.BytesIO(image)))


@lru_cache(maxsize=2)
def load_bank(path: Path) -> Bank:
    """Load a bank of inks, once in a process."""
    return Bank.load(path)


def _draw_written(samples: StoredSamples, zoom: float) -> Iterator[Pixels]:
    """Draw samples of handwriting: inks of the bank, or formulas written with its symbols."""
    bank = load_bank(samples.file.parent.parent / BANK_FILE)
    table = pq.read_table(samples.file, columns=["ink", "formula", "boxes"]).take(pa.array(samples.places))
    for row, style, shape in zip(table.to_pylist(), samples.styles, samples.shapes.tolist(), strict=True):
        seed = int(style.removeprefix(HAND_PREFIX))
        size = (shape[0], shape[1])
        if row["ink"] is not None:
            ink, _ = write_ink(bank.ink(row["ink"]), bank=bank, seed=seed)
            yield draw_written_ink(ink, size, seed=seed, zoom=zoom)
        else:
            boxes = [box and tuple(box) for box in row["boxes"]]
            tokens = normalize_formula(row["formula"]).tokens
            yield draw_formula(tokens, boxes, size, bank=bank, seed=seed, zoom=zoom)


@lru_cache(maxsize=1)
def _unpack(file: Path) -> bytes:
    return lzma.decompress(file.read_bytes())


def _draw_pages(samples: StoredSamples) -> Iterator[Pixels | None]:
    styles = map(style_from_text, samples.styles)
    for image in draw_pages(_unpack(samples.file), samples.places.tolist(), styles):
        yield image.pixels
