"""Many images, one reading each, in order: in batches, and by several processes if asked."""

import multiprocessing
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Any

from i2l.errors import I2LError
from i2l.images.open import ImageSource
from i2l.inference.backends import OnnxBackend, available_threads
from i2l.inference.reader import Reader
from i2l.inference.reading import Reading

CHUNK = 16  # images that a process takes at a time, at least; those of about one size are read together

_reader: Reader | None = None  # of a worker process


def read_all(
    sources: Sequence[ImageSource],
    options: Mapping[str, Any],
    *,
    scale: float | None = None,
    jobs: int = 1,
) -> Iterator[Reading | I2LError]:
    """Read images one chunk after the other; an image that cannot be read gives its error.

    Args:
        sources: the images.
        options: arguments of `Reader`, model included.
        scale: as in `Reader.read`, for all of them.
        jobs: processes.

    Raises:
        I2LError: if the model cannot be loaded, or a process died.
    """
    lanes = options.get("threads") or available_threads() if jobs <= 1 else 1
    size = max(CHUNK, OnnxBackend.batch_size * lanes)  # a batch or more for each lane
    chunks = [sources[first : first + size] for first in range(0, len(sources), size)]
    if jobs <= 1 or len(chunks) <= 1:
        reader = Reader(**options)
        for chunk in chunks:
            yield from reader.read_many(chunk, scale=scale, errors="return")
        return
    options = {**options, "threads": options.get("threads") or max(1, available_threads() // jobs)}
    Reader(**options)  # an error with the model is said once, and here
    spawn = multiprocessing.get_context("spawn")  # fork would copy the threads' locks of onnxruntime
    with ProcessPoolExecutor(jobs, mp_context=spawn, initializer=_start, initargs=(options,)) as pool:
        try:
            for readings in pool.map(_read, chunks, [scale] * len(chunks)):
                yield from readings
        except BrokenProcessPool as error:
            raise I2LError("A process that was reading died; try fewer --jobs.") from error


def _start(options: Mapping[str, Any]) -> None:
    global _reader
    _reader = Reader(**options)


def _read(chunk: Sequence[ImageSource], scale: float | None) -> list[Reading | I2LError]:
    assert _reader is not None
    return _reader.read_many(chunk, scale=scale, errors="return")
