"""Pixels of many samples at once: several processes decode into one flat buffer.

The sizes are known beforehand, so every sample has its place in the buffer before any is decoded; the
workers write there through a shared file, and no pixels are sent between processes.
"""

import io
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
from functools import lru_cache, partial
from itertools import groupby
from pathlib import Path
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

from i2l.dataset.draw import style_from_text
from i2l.errors import I2LError
from i2l.images.rasterize import Pixels
from i2l.images.render import draw_pages

T = TypeVar("T")

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


def decode(samples: StoredSamples) -> Iterator[Pixels]:
    """Give the pixels of the samples, one by one.

    Raises:
        DatasetError: if the file is damaged, or they are not of the size that the dataset says.
    """
    read = _read_images if samples.file.suffix == ".parquet" else _draw_pages
    try:
        for place, shape, pixels in zip(samples.places, samples.shapes, read(samples), strict=True):
            if pixels is None or pixels.shape != tuple(shape):
                raise DatasetError(
                    f"Sample {place} of {samples.file} is not {shape[0]} x {shape[1]} px. If the file is "
                    "whole (see verify), another rasteriser built the dataset: build it again."
                )
            yield pixels
    except (OSError, EOFError, lzma.LZMAError, pa.ArrowException) as error:
        raise DatasetError(
            f"{samples.file} is damaged ({error}); copy or build the dataset again."
        ) from error


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
    """Give where each sample starts in a flat buffer, and where the last one ends."""
    return np.concatenate([[0], np.cumsum(shapes.astype(np.int64).prod(axis=1))])


def _fill_file(path: Path, fill: Callable[[Pixels, StoredSamples], T], samples: StoredSamples) -> T:
    return fill(np.memmap(path, dtype=np.uint8, mode="r+"), samples)


def fill_pixels(data: Pixels, samples: StoredSamples) -> None:
    """Write samples to their places, as they are."""
    for offset, pixels in zip(samples.offsets, decode(samples), strict=True):
        data[offset : offset + pixels.size] = pixels.ravel()


def _read_images(samples: StoredSamples) -> Iterator[Pixels]:
    file = pq.ParquetFile(samples.file)
    sizes = [file.metadata.row_group(group).num_rows for group in range(file.num_row_groups)]
    starts = np.concatenate([[0], np.cumsum(sizes)])
    groups = np.searchsorted(starts, samples.places, side="right") - 1
    for group, members in groupby(range(len(groups)), key=groups.__getitem__):
        images = file.read_row_group(group, columns=["image"])["image"]
        for member in members:
            image = images[int(samples.places[member] - starts[group])]["bytes"].as_buffer()
            yield np.asarray(Image.open(io.BytesIO(image)))


@lru_cache(maxsize=1)
def _unpack(file: Path) -> bytes:
    return lzma.decompress(file.read_bytes())


def _draw_pages(samples: StoredSamples) -> Iterator[Pixels | None]:
    styles = map(style_from_text, samples.styles)
    for image in draw_pages(_unpack(samples.file), samples.places.tolist(), styles):
        yield image.pixels
