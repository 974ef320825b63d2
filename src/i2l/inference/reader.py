"""Images to LaTeX, in Python: `Reader` reads one image, or many in batches, threads and processes.

    reader = Reader()
    reading = reader.read("formula.png")
    print(reading.latex, reading.confidence)

`read_strokes` reads what was written on a tablet, or what InkML holds: it is drawn, and then read as images
are. An image is prepared (`i2l.images.prepare`), searched (`i2l.inference.policy`) and made a reading
(`i2l.inference.reading`); this module hands many of them through these three.

A reader that was given no model notices handwriting. Strokes are read by the model for handwriting, where it
is installed. A picture is read by the model for print first; only what that reads with doubt, and what looks
written by hand, goes to the other model too, and the surer reading of the two is kept.
"""

import contextlib
import copy
import math
import multiprocessing
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Final, Literal, Protocol, TypeVar, overload

from PIL import Image

from i2l.config import BEAM_WIDTH, ReadingOptions
from i2l.errors import I2LError
from i2l.images.ink import looks_written
from i2l.images.open import ImageSource, ImageSources, list_sources
from i2l.images.prepare import (
    REFERENCE_DPI,
    Box,
    ImageTooLargeError,
    NotAFormulaError,
    PreparedImage,
    prepare_image,
)
from i2l.inference.decoding import Backend
from i2l.inference.model_folder import HANDWRITING, LoadedModel, list_models, load_model
from i2l.inference.policy import SURE_PROBABILITY, Attempt, SearchPolicy
from i2l.inference.reading import DOUBTFUL_CONFIDENCE, Reading, ReadingAssembly, choose
from i2l.ink.strokes import Ink, StrokeSource, take_ink
from i2l.model.config import Limits

_OTHER_IS_HERE: Final = f"The model {HANDWRITING!r} reads handwriting."
_OTHER_IS_MISSING: Final = "The model for handwriting is not installed: `i2l models` has the command for it."
CHUNK_IMAGES: Final = 16  # that are taken at a time, at least; those of about one size are read together
_HOPELESS_CONFIDENCE: Final = 0.05  # below it print is as good as not read
_TELLING_TOKENS: Final = 3  # that are read in what print refuses and what does not look written, at least
_OTHER_SCALES: Final = (0.93, 1.07, 0.87, 1.15)  # at which what is in doubt is read too, the likeliest first
_READ_AGAIN_TOKENS: Final = 250  # more take seconds, and of five that were read again none was put right
_UNSURE_LOG_PROB: Final = math.log(SURE_PROBABILITY)
_LEAST_ZOOM: Final = 0.4  # strokes that must be drawn smaller than this to fit are no one formula
_BATCH_PIXELS: Final = 600_000  # of a batch; one with more takes hundreds of megabytes and is read alone

T = TypeVar("T")
R = TypeVar("R")
_Asked = tuple[ImageSource, float | None, Box | None]  # what a caller asked for: image, scale and region


class Reader:
    """Reads images of formulas. It keeps no state between calls: threads may share one."""

    model: LoadedModel
    options: ReadingOptions

    def __init__(
        self,
        model: str | Path | None = None,
        *,
        beam_width: int = BEAM_WIDTH,
        n_best: int = 1,
        guard: bool = True,
        check: bool = True,
        max_tokens: int | None = None,
        threads: int | None = None,
        batch_size: int | None = None,
        device: str = "cpu",
        handwriting: bool = True,
    ) -> None:
        """Load a model.

        Args:
            model: the name of an installed one (`i2l models` lists them), a folder that `i2l export` wrote,
                or a checkpoint (which needs torch); if None the model in the box, and for handwriting the
                model for that, if it is installed.
            beam_width: hypotheses that are followed at once; 1 is greedy.
            n_best: readings that the search makes certain; those written the same way are one.
            guard: write only what is a formula, and stop repetition.
            check: refuse a picture in which nothing looks like a formula.
            max_tokens: longest formula; as long as the model can write if None.
            threads: of one call; all processors if None. The result does not depend on it.
            batch_size: images that a thread of `read_many` reads together; what suits the model if None.
            device: of a checkpoint, as torch names it, or "auto"; an exported model runs on the CPU.
            handwriting: notice handwriting, unless a model was named.

        Raises:
            ModelError: if there is no such model, or it is broken.
            I2LError: if a value is out of range.
        """
        self._load(
            ReadingOptions(
                model=model,
                beam_width=beam_width,
                n_best=n_best,
                guard=guard,
                check=check,
                max_tokens=max_tokens,
                threads=threads,
                batch_size=batch_size,
                device=device,
                handwriting=handwriting,
            )
        )

    @classmethod
    def from_options(cls, options: ReadingOptions) -> "Reader":
        """Load the model that options name; errors as for a new reader."""
        reader = cls.__new__(cls)
        reader._load(options)
        return reader

    def _load(self, options: ReadingOptions) -> None:
        _check_options(options)
        self._other = _OtherReader(options)
        self.model = load_model(options.model, threads=options.threads, device=options.device)
        limit = self.model.limits.max_steps
        if options.max_tokens is not None and options.max_tokens >= limit:
            raise I2LError(
                f"This model writes at most {limit - 1} tokens; max_tokens is {options.max_tokens}."
            )
        self.options = options
        self._policy = SearchPolicy(self.model, options)
        self._assembly = ReadingAssembly(self.model)
        self._knows_scales = not self.model.handwriting and not self.model.limits.one_scale
        self._batch_size = options.batch_size or self.model.backend.batch_size
        self._large = threading.Lock()  # held by whoever reads a large batch

    def with_options(
        self,
        *,
        beam_width: int | None = None,
        n_best: int | None = None,
        guard: bool | None = None,
        check: bool | None = None,
        handwriting: bool | None = None,
    ) -> "Reader":
        """Return a reader that shares the loaded model and searches another way; what is None stays as it is.

        Raises:
            I2LError: if there are more readings to make certain than hypotheses.
        """
        own = self.options
        other = copy.copy(self)
        other.options = replace(
            own,
            beam_width=own.beam_width if beam_width is None else beam_width,
            n_best=own.n_best if n_best is None else n_best,
            guard=own.guard if guard is None else guard,
            check=own.check if check is None else check,
            handwriting=own.handwriting if handwriting is None else handwriting,
        )
        _check_options(other.options)
        other._policy = self._policy.with_options(other.options)
        return other

    def read(self, source: ImageSource, *, scale: float | None = None, region: Box | None = None) -> Reading:
        """Read one image: a path, a file or its bytes, an array, or an open image.

        Args:
            source: the image.
            scale: pixels of the model for one of the image; estimated if None.
            region: the part of the image to read, in its pixels: left, top, right, bottom. Boxes and sizes
                are those of the whole image all the same. All of it is read if None.

        Raises:
            ImageError: if it cannot be read; the message says why and what to do.
        """
        started = time.perf_counter()
        forms = self.prepare(source, scale=scale, region=region)
        (reading,) = self._read_batch([forms], [(source, scale, region)], self.model.backend)
        if isinstance(reading, I2LError):
            raise reading
        return replace(reading, seconds=time.perf_counter() - started)

    def read_strokes(self, source: StrokeSource) -> Reading:
        """Read what was written by hand: InkML or JSON as a path or content, an `Ink`, or a list of strokes.

        Boxes and sizes are in the units of the strokes. Where the model for handwriting is not installed, the
        note of the reading says so.

        Args:
            source: the strokes; in a list, each is a list of points x and y, y growing downwards.

        Raises:
            InkError: if there are no strokes in it; the message says why and what to do.
            ImageError: if the formula is too large for the model, or makes no sense to one that was taught
                handwriting.
        """
        started = time.perf_counter()
        ink = take_ink(source)
        other = self._reader_of_handwriting() if self._notices_handwriting else None
        reader = other if isinstance(other, Reader) else self
        taught = reader.model.handwriting is not False
        # Strokes are no shades nor grain: where print makes no sense of them, the note says why.
        (reading,) = reader._search(
            [[reader.prepare_strokes(ink)]], reader.model.backend, check=reader.options.check and taught
        )
        if not taught:
            reading = _with_note(reading, reader._print_note("Read", other))
        if isinstance(reading, I2LError):
            raise reading
        return replace(reading, seconds=time.perf_counter() - started)

    def prepare_strokes(self, ink: Ink) -> PreparedImage:
        """Draw ink with a plain pen at the model's scale; the places of the image are those of the strokes.

        Raises:
            InkError: if it cannot be drawn.
            ImageError: if it is too large for the model.
        """
        from i2l.ink.pens import draw_ink  # pictures are read without what draws

        limits = self.model.limits
        zoom = limits.dpi / REFERENCE_DPI
        pixels, scale, (left, top) = draw_ink(ink, zoom=zoom)
        room = min(most / side for most, side in zip(limits.canvas_shape, pixels.shape, strict=True))
        if room < 1:  # its symbols are not as small as they were taken for, or there are too many of them
            pixels, scale, (left, top) = draw_ink(ink, zoom=zoom * max(0.97 * room, _LEAST_ZOOM))
        height, width = pixels.shape
        size = math.ceil(width / scale), math.ceil(height / scale)
        return _rescale(PreparedImage(pixels, scale, left, top, size), 1.0, limits)

    def that_read(self, reading: Reading) -> "Reader":
        """Return the reader whose model made a reading of this one: itself, or the reader of handwriting."""
        if reading.model != self.model.name and self._notices_handwriting:
            other = self._reader_of_handwriting()
            return other if isinstance(other, Reader) else self
        return self

    @property
    def _notices_handwriting(self) -> bool:
        return self.options.handwriting and self.options.model is None and not self.model.handwriting

    def _reader_of_handwriting(self) -> "Reader | str":
        """Return the reader of handwriting with the options of this one, or a sentence why there is none."""
        found = self._other.get()
        if isinstance(found, str):
            return found
        own = self.options
        return found.with_options(
            beam_width=own.beam_width, n_best=own.n_best, guard=own.guard, check=own.check
        )

    def _print_note(self, read: str, why: "Reader | str | None") -> str:
        """Say that handwriting was read by a model for print, and what would help."""
        here = HANDWRITING in list_models()
        helps = why if isinstance(why, str) else _OTHER_IS_HERE if here else _OTHER_IS_MISSING
        return (
            f"{read} by {self.model.name}, a model for print that was never taught handwriting, so most of "
            f"it may be wrong. {helps}"
        )

    @overload
    def read_many(
        self,
        sources: ImageSources,
        *,
        scale: float | None = ...,
        region: Box | None = ...,
        errors: Literal["raise"] = ...,
    ) -> list[Reading]: ...

    @overload
    def read_many(
        self,
        sources: ImageSources,
        *,
        scale: float | None = ...,
        region: Box | None = ...,
        errors: Literal["return"],
    ) -> list[Reading | I2LError]: ...

    def read_many(
        self,
        sources: ImageSources,
        *,
        scale: float | None = None,
        region: Box | None = None,
        errors: Literal["raise", "return"] = "raise",
    ) -> list[Reading] | list[Reading | I2LError]:
        """Read many images, those of about one size together; the readings come in the order of the images.

        Args:
            sources: the images, each as in `read`; or the path of a folder, for all images in it.
            scale: as in `read`, for all of them.
            region: as in `read`, for all of them.
            errors: "return" puts the error in the place of a reading, "raise" stops at the first one.

        Raises:
            ImageError: for the first image that cannot be read, unless errors are returned.
            I2LError: if errors is neither of the two, or the sources are one image.
        """
        if errors not in ("raise", "return"):
            raise I2LError(f'errors is "raise" or "return", not {errors!r}.')
        return self._read_listed(list_sources(sources), scale, region, stop=errors == "raise")

    def prepare(
        self, source: ImageSource, *, scale: float | None = None, region: Box | None = None
    ) -> list[PreparedImage]:
        """Turn an image into what the model reads; several forms if the scale is in doubt.

        Raises:
            ImageError: if there is no formula in it.
        """
        limits = self.model.limits
        return prepare_image(
            source,
            canvas_shape=limits.canvas_shape,
            dpi=limits.dpi,
            max_shrink=limits.max_shrink,
            scale_step=limits.scale_step,
            typeset=not self.model.handwriting,
            as_it_is=limits.one_scale,
            scale=scale,
            check=self.options.check,
            region=region,
        )

    def _read_listed(
        self, sources: Sequence[ImageSource], scale: float | None, region: Box | None, *, stop: bool
    ) -> list[Reading | I2LError]:
        """Read images in batches, in as many threads as there are batches for; `stop` raises the first error.

        Batches side by side with one thread each take less than one after the other with all threads.
        """
        backend = self.model.backend
        lanes = min(backend.num_lanes, math.ceil(len(sources) / self._batch_size))
        if lanes <= 1:
            return self._read_batches(sources, scale, region, stop, backend, run=map)
        with ThreadPoolExecutor(lanes) as pool:
            return self._read_batches(sources, scale, region, stop, backend.lane(), run=pool.map)

    def _read_batches(
        self,
        sources: Sequence[ImageSource],
        scale: float | None,
        region: Box | None,
        stop: bool,
        backend: Backend,
        *,
        run: "_Map",
    ) -> list[Reading | I2LError]:
        """Prepare images and read them in batches of about one size, the same ones whoever runs them."""

        def try_to_prepare(source: ImageSource) -> list[PreparedImage] | I2LError:
            try:
                return self.prepare(source, scale=scale, region=region)
            except I2LError as error:
                return error

        results: list[Reading | I2LError | None] = []
        forms: dict[int, list[PreparedImage]] = {}
        # An open image is read from its file when it is first looked at, which two threads must not do.
        serial = any(isinstance(source, Image.Image) for source in sources)
        for index, prepared in enumerate((map if serial else run)(try_to_prepare, sources)):
            if isinstance(prepared, I2LError):
                if stop:
                    raise prepared
                results.append(prepared)
            else:
                forms[index] = prepared
                results.append(None)
        order = sorted(forms, key=lambda index: (forms[index][-1].pixels.shape[::-1], index), reverse=True)
        batches: list[list[int]] = []
        room = 0
        for index in order:
            room -= forms[index][-1].pixels.size
            if not batches or len(batches[-1]) == self._batch_size or room < 0:
                batches.append([])
                room = _BATCH_PIXELS - forms[index][-1].pixels.size
            batches[-1].append(index)
        found = run(
            lambda batch: self._read_batch(
                [forms[index] for index in batch],
                [(sources[index], scale, region) for index in batch],
                backend,
            ),
            batches,
        )
        for batch, readings in zip(batches, found, strict=True):
            for index, reading in zip(batch, readings, strict=True):
                if stop and isinstance(reading, I2LError):
                    raise reading
                results[index] = reading
        return results  # type: ignore[return-value] # every place is filled

    def _read_batch(
        self, forms: Sequence[list[PreparedImage]], asked: Sequence[_Asked], backend: Backend
    ) -> list[Reading | NotAFormulaError]:
        """Read images; those that look written by hand, and were read with doubt, by the other model too.

        Where print makes nothing of an image that does not look written, the other model is asked as well,
        and believed if it is sure, and if it reads more than a letter where print refuses the image.
        """
        notices = self._notices_handwriting
        results = self._search(forms, backend, check=self.options.check)
        if not notices:
            return results
        wanted = {  # of each image that the other model reads, how sure it must be
            place: 0.0 if written else DOUBTFUL_CONFIDENCE
            for place, result in enumerate(results)
            if (isinstance(result, NotAFormulaError) or result.confidence < DOUBTFUL_CONFIDENCE)
            and (
                (written := looks_written(forms[place][-1].pixels))
                or isinstance(result, NotAFormulaError)
                or result.confidence < _HOPELESS_CONFIDENCE
            )
        }
        if not wanted:
            return results
        other = self._reader_of_handwriting()
        if isinstance(other, str):
            note = self._print_note("This looks like handwriting, read", other)
            for place, least in wanted.items():
                results[place] = results[place] if least else _with_note(results[place], note)
            return results
        handed = {place: self._hand_over(forms[place], asked[place], other) for place in wanted}
        handed = {place: images for place, images in handed.items() if images}
        found = other._search(
            list(handed.values()),
            other.model.backend if backend is self.model.backend else other.model.backend.lane(),
            check=other.options.check,
        )
        for place, reading in zip(handed, found, strict=True):
            first = results[place]
            least = (
                wanted[place] if isinstance(first, NotAFormulaError) else max(wanted[place], first.confidence)
            )
            few = isinstance(first, NotAFormulaError) and wanted[place] > 0  # a texture may pass for a letter
            if isinstance(reading, Reading) and reading.confidence >= least:
                results[place] = first if few and len(reading.tokens) < _TELLING_TOKENS else reading
        return results

    def _hand_over(self, images: list[PreparedImage], asked: _Asked, other: "Reader") -> list[PreparedImage]:
        """Give the forms of an image as another reader's model reads them, but for those too large for it.

        A model of another scale gets the image prepared anew, as it shows more than the forms that are here;
        they must do if it came from a stream, which is at its end.
        """
        own, others = self.model.limits, other.model.limits
        if (own.canvas_shape, own.dpi) == (others.canvas_shape, others.dpi):
            return images
        source, scale, region = asked
        with contextlib.suppress(I2LError):
            return other.prepare(source, scale=scale and scale * others.dpi / own.dpi, region=region)
        handed = []
        for image in images:
            with contextlib.suppress(ImageTooLargeError):
                handed.append(_rescale(image, others.dpi / own.dpi, others))
        return handed

    def _search(
        self, forms: Sequence[list[PreparedImage]], backend: Backend, *, check: bool
    ) -> list[Reading | NotAFormulaError]:
        """Search in images and make readings of what was found; with a check, nonsense is an error."""
        large = sum(images[-1].pixels.size for images in forms) > _BATCH_PIXELS
        with self._large if large else nullcontext():
            attempts = self._policy.search(forms, backend)
            readings = self._assembly.assemble(attempts, check=check)
            if not self._knows_scales or self.options.beam_width == 1:
                return readings
            for place, reading in enumerate(readings):
                if isinstance(reading, NotAFormulaError) or len(reading.tokens) > _READ_AGAIN_TOKENS:
                    continue
                if reading.left_over or reading.evidence.lowest < _UNSURE_LOG_PROB:
                    readings[place] = self._settle(attempts[place], reading, backend, check=check)
            return readings

    def _settle(self, first: Attempt, reading: Reading, backend: Backend, *, check: bool) -> Reading:
        """Read what is in doubt at other scales too, until it is settled; return the best reading."""
        weighed = [self._assembly.weigh(first)]
        best, settled = choose(weighed)
        for factor in _OTHER_SCALES:
            if settled:
                break
            with contextlib.suppress(I2LError):  # as it is, it may just fit on the canvas
                image = _rescale(first.ink.image, factor, self.model.limits)
                weighed.append(self._assembly.weigh(self._policy.look_again(image, backend)))
            best, settled = choose(weighed)
        if best.ink is not first.ink:
            best = self._policy.widen(best, backend)
        (result,) = self._assembly.assemble([best], check=check)
        return result if isinstance(result, Reading) else reading


class _OtherReader:
    """The reader of handwriting that stands behind a reader of print; loaded when it is first needed."""

    def __init__(self, options: ReadingOptions) -> None:
        self._options = replace(options, model=HANDWRITING)
        self._lock = threading.Lock()
        self._reader: Reader | None = None

    def get(self) -> Reader | str:
        """Return the reader, or a sentence why there is none."""
        with self._lock:
            if self._reader is None:
                if HANDWRITING not in list_models():
                    return _OTHER_IS_MISSING
                try:
                    self._reader = Reader.from_options(self._options)
                except I2LError as error:
                    return f"The model for handwriting cannot be used: {error}"
            return self._reader


def _with_note(result: Reading | NotAFormulaError, note: str) -> Reading | NotAFormulaError:
    """Give a reading a note; an error says it in its message."""
    if isinstance(result, Reading):
        return replace(result, note=note)
    return NotAFormulaError(f"{result} {note}")


def _rescale(image: PreparedImage, factor: float, limits: Limits) -> PreparedImage:
    """Make an image larger or smaller for a model, and smaller still if its canvas has not enough room.

    Raises:
        ImageTooLargeError: if it is too large for the model.
    """
    (fitted,) = prepare_image(
        image.pixels,
        canvas_shape=limits.canvas_shape,
        dpi=limits.dpi,
        max_shrink=limits.max_shrink,
        scale=factor,
        check=False,
    )
    return PreparedImage(
        pixels=fitted.pixels,
        scale=fitted.scale * image.scale,
        left_px=fitted.left_px / image.scale + image.left_px,
        top_px=fitted.top_px / image.scale + image.top_px,
        file_size_px=image.file_size_px,
    )


class _Map(Protocol):
    """What `map` does, here or in several threads."""

    def __call__(self, function: Callable[[T], R], items: Iterable[T], /) -> Iterator[R]: ...


def _check_options(options: ReadingOptions) -> None:
    """Refuse options that no reader can follow.

    Raises:
        I2LError: if a number is too small, or there are more readings to make certain than hypotheses.
    """
    numbers = (options.beam_width, options.n_best, options.max_tokens or 1, options.batch_size or 1)
    if min(numbers) < 1 or options.n_best > options.beam_width:
        raise I2LError(
            "beam_width, n_best, max_tokens and batch_size are at least 1, n_best at most the beam."
        )


def read_in_chunks(
    sources: Sequence[ImageSource],
    options: ReadingOptions,
    *,
    scale: float | None = None,
    region: Box | None = None,
    jobs: int = 1,
) -> Iterator[Reading | I2LError]:
    """Read images one chunk after the other, in order; an image that cannot be read gives its error.

    Args:
        sources: the images.
        options: how to read, model included.
        scale: as in `Reader.read`, for all of them.
        region: as in `Reader.read`, for all of them.
        jobs: processes.

    Raises:
        I2LError: if the model cannot be loaded, or a process died.
    """
    if jobs > 1 and len(sources) > CHUNK_IMAGES:
        yield from _read_in_processes(sources, options, scale, region, jobs)
        return
    reader = Reader.from_options(options)
    # A batch or more for each lane.
    size = max(CHUNK_IMAGES, reader.model.backend.batch_size * reader.model.backend.num_lanes)
    for first in range(0, len(sources), size):
        yield from reader._read_listed(sources[first : first + size], scale, region, stop=False)


def _read_in_processes(
    sources: Sequence[ImageSource],
    options: ReadingOptions,
    scale: float | None,
    region: Box | None,
    jobs: int,
) -> Iterator[Reading | I2LError]:
    """Have processes read chunks of images; arguments and errors as in `read_in_chunks`."""
    from i2l.inference.onnx_backend import available_threads

    options = replace(options, threads=options.threads or max(1, available_threads() // jobs))
    Reader.from_options(options)  # an error with the model is said once, and here
    chunks = [sources[first : first + CHUNK_IMAGES] for first in range(0, len(sources), CHUNK_IMAGES)]
    spawn = multiprocessing.get_context("spawn")  # fork would copy the threads' locks of onnxruntime
    with ProcessPoolExecutor(jobs, mp_context=spawn, initializer=_start_process, initargs=(options,)) as pool:
        try:
            for readings in pool.map(_read_in_process, chunks, [scale] * len(chunks), [region] * len(chunks)):
                yield from readings
        except BrokenProcessPool as error:
            raise I2LError("A process that was reading died; try fewer --jobs.") from error


_reader_of_process: Reader | None = None


def _start_process(options: ReadingOptions) -> None:
    global _reader_of_process
    _reader_of_process = Reader.from_options(options)


def _read_in_process(
    sources: Sequence[ImageSource], scale: float | None, region: Box | None
) -> list[Reading | I2LError]:
    assert _reader_of_process is not None
    return _reader_of_process._read_listed(sources, scale, region, stop=False)
