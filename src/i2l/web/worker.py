"""A process that reads: images and strokes come in on stdin, readings go out on stdout, several at a time.

It knows nothing of HTTP. Files of strangers are decoded here and not in the server: whatever a damaged file
does to a decoder, it does to a process that can be replaced.
"""

import base64
import io
import json
import os
import signal
import sys
import warnings
from collections import defaultdict
from collections.abc import Sequence
from typing import Any, BinaryIO, Final

from PIL import Image

from i2l.config import ReadingOptions
from i2l.errors import I2LError
from i2l.images.open import ImageError, NotAnImageError, OversizedImageError, check_strips
from i2l.inference.model_folder import list_models
from i2l.inference.reader import Reader
from i2l.inference.reading import Reading
from i2l.ink.strokes import looks_like_ink
from i2l.pages.document import PageError, PageFile
from i2l.pages.reader import PageReader
from i2l.web.answers import UnknownModelError, describe_failure, describe_reading, logger
from i2l.web.connections import limit_logs
from i2l.web.workers import pack_frame, receive_frame

FORMATS: Final = ("PNG", "JPEG", "GIF", "WEBP", "BMP", "TIFF", "AVIF")  # of the dozens that Pillow opens

Item = tuple[bytes, dict[str, Any]]  # the bytes of a file, and the options of its request


class ReadingDesk:
    """Reads batches with one model, or with the one that a request names, whatever the options of each."""

    def __init__(self, *, model: str | None, threads: int | None, max_pixels: int) -> None:
        """Load the model.

        Args:
            model: as in `Reader`.
            threads: as in `Reader`.
            max_pixels: of an image.

        Raises:
            ModelError: if there is no such model, or it is broken.
        """
        self._reader = Reader.from_options(ReadingOptions(model=model, threads=threads))
        self._named: dict[str, Reader] = {}  # by the name of the model, loaded when a request names it
        self._pages: dict[str | None, PageReader] = {}
        self._threads = threads
        self._max_pixels = max_pixels

    def describe(self) -> dict[str, Any]:
        """Say which model this is."""
        model = self._reader.model
        height, width = model.config.canvas_shape
        return {
            "name": model.name,
            "canvas": [width, height],
            "vocabulary": len(model.vocabulary),
            "calibrated": model.calibration is not None,
            "handwriting": bool(model.handwriting),
        }

    def _reader_named(self, name: str | None) -> Reader:
        """Return the reader that a request names, or the one of the server; a stranger can name no folder.

        Raises:
            UnknownModelError: if no model has this name here.
            ModelError: if it is broken.
        """
        if name is None:
            return self._reader
        if name not in self._named:
            if name == self._reader.model.name:
                self._named[name] = self._reader.with_options(handwriting=False)
            elif name in list_models():
                self._named[name] = Reader.from_options(ReadingOptions(model=name, threads=self._threads))
            else:
                raise UnknownModelError(f"No model is called {name!r} here; /api/models lists all.")
        return self._named[name]

    def _reader_for(self, options: dict[str, Any]) -> Reader:
        """Return the reader that reads as a request asks; errors as in `_reader_named`."""
        n_best = options["n_best"]
        return self._reader_named(options.get("model")).with_options(
            beam_width=max(options["beam"], n_best), n_best=n_best, guard=options["guard"]
        )

    def _pages_for(self, options: dict[str, Any]) -> PageReader:
        """Return what reads pages as a request asks; what finds formulas is loaded when a page comes."""
        name = options.get("model")
        if name not in self._pages:
            self._pages[name] = PageReader(self._reader_named(name), threads=self._threads)
        return self._pages[name]

    def read(self, items: Sequence[Item]) -> list[dict[str, Any]]:
        """Read images; those with the same options go through the network together."""
        results: list[dict[str, Any]] = [{} for _ in items]
        groups: dict[tuple[Any, ...], list[int]] = defaultdict(list)
        for index, (data, options) in enumerate(items):
            if "page" in options:
                results[index] = self._read_page(data, options)
                continue
            if looks_like_ink(data):
                results[index] = self._read_strokes(data, options)
                continue
            names = ("model", "beam", "n_best", "guard", "scale")
            groups[tuple(options.get(name) for name in names)].append(index)
        for indices in groups.values():
            group = [items[index] for index in indices]
            try:
                reader = self._reader_for(group[0][1])
                found = self._read_group(reader, group, group[0][1]["scale"])
            except I2LError as error:  # there is no such model
                found = [describe_failure(error)] * len(group)
            for index, result in zip(indices, found, strict=True):
                results[index] = result
        return results

    def _read_page(self, data: bytes, options: dict[str, Any]) -> dict[str, Any]:
        """Find and read the formulas of one page of a file."""
        try:
            if not data.startswith(b"%PDF"):
                check_image(data, max_pixels=self._max_pixels)
            with PageFile(data) as file:
                read = self._pages_for(options).read_page_of(file, options["page"], read=options["read"])
                if read.error:
                    return {"kind": "not-an-image", "detail": read.error}
                content = read.to_dict() | {"num_pages": file.num_pages, "picture": None}
                if file.is_pdf:
                    content["picture"] = _data_url(file, options["page"])
        except PageError as error:
            return {"kind": "not-an-image", "detail": str(error)}
        except Exception as error:
            return describe_failure(error)
        return {"reading": content}

    def _read_strokes(self, data: bytes, options: dict[str, Any]) -> dict[str, Any]:
        """Read one formula that was written by hand."""
        try:
            reading = self._reader_for(options).read_strokes(data)
        except Exception as error:  # whatever it is, it is said, and the next one is read
            return describe_failure(error)
        return {"reading": describe_reading(reading, options["formats"])}

    def _read_group(self, reader: Reader, items: list[Item], scale: float | None) -> list[dict[str, Any]]:
        results: list[dict[str, Any]] = [{} for _ in items]
        sound = []
        for index, (data, _) in enumerate(items):
            try:
                check_image(data, max_pixels=self._max_pixels)
                sound.append(index)
            except ImageError as error:
                results[index] = describe_failure(error)
        try:
            found = reader.read_many([items[index][0] for index in sound], scale=scale, errors="return")
        except Exception as error:  # one of them; each by itself will tell which
            if len(sound) == 1:
                results[sound[0]] = describe_failure(error)
                return results
            for index in sound:
                (results[index],) = self._read_group(reader, [items[index]], scale)
            return results
        for index, reading in zip(sound, found, strict=True):
            results[index] = (
                {"reading": describe_reading(reading, items[index][1]["formats"])}
                if isinstance(reading, Reading)
                else describe_failure(reading)
            )
        return results


def _data_url(file: PageFile, number: int) -> str:
    """Give a page of a PDF as it was drawn, since a browser cannot draw it."""
    held = io.BytesIO()
    file.page(number).image.convert("L").save(held, "PNG")
    return "data:image/png;base64," + base64.b64encode(held.getvalue()).decode()


def check_image(data: bytes, *, max_pixels: int) -> None:
    """Look at the head of a file, before anything is decoded.

    Raises:
        NotAnImageError: if it is of no format that is read here.
        OversizedImageError: if it has too many pixels.
    """
    try:
        check_strips(io.BytesIO(data))
        with Image.open(io.BytesIO(data), formats=FORMATS) as image:
            width, height = image.size
    except OversizedImageError:
        raise
    except Image.DecompressionBombError as error:
        raise OversizedImageError(
            f"The image is far too large ({error}). Crop the formula out of it."
        ) from error
    except Exception as error:  # each of Pillow's plugins fails in its own way on a damaged file
        raise NotAnImageError(
            f"This is not an image that can be read here, or it is damaged. Give one of {', '.join(FORMATS)}."
        ) from error
    if width * height > max_pixels:
        raise OversizedImageError(
            f"The image has {width:,} x {height:,} pixels; the limit is {max_pixels / 1e6:,.0f} million. "
            "Crop the formula out of it."
        )


def main() -> None:
    """Serve frames until the server closes the pipe; see `i2l.web.workers`."""
    warnings.filterwarnings("ignore", module="PIL")
    limit_logs(logger.name)
    if hasattr(signal, "SIGPIPE"):  # not on Windows
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # who answers a server that has gone ends quietly
    out: BinaryIO = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever prints, prints to the log
    try:
        desk = ReadingDesk(**json.loads(sys.argv[1]))
        hello: dict[str, Any] = {"ready": desk.describe()}
    except I2LError as error:
        hello = {"failed": str(error)}
    _send(out, hello)
    while "ready" in hello and (frame := receive_frame(sys.stdin.buffer)) is not None:
        header, images = frame
        _send(out, {"results": desk.read(list(zip(images, header["options"], strict=True)))})


def _send(out: BinaryIO, header: dict[str, Any]) -> None:
    out.write(pack_frame(header))
    out.flush()


if __name__ == "__main__":
    main()
