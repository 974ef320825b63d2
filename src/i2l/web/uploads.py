"""The images or strokes of a request: as the body, in a form, or in JSON; not on the disk, not unlimited."""

import asyncio
import base64
import binascii
import json
import re
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final, TypeVar

from pydantic import BaseModel, ValidationError
from starlette.datastructures import UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import ClientDisconnect, Request

from i2l.ink.strokes import looks_like_ink
from i2l.web.schemas import (
    MAX_IMAGES,
    BatchRequest,
    PageOptions,
    PageRequest,
    ReadOptions,
    ReadRequest,
    StrokesRequest,
)
from i2l.web.security import ProblemError

_DATA_URL: Final = re.compile(r"data:[\w.+-]+/[\w.+-]+;base64,", re.ASCII)
_FORM_OVERHEAD_BYTES: Final = 64 << 10
_HEADS: Final = (b"\x89PNG", b"\xff\xd8\xff", b"GIF8", b"RIFF", b"BM", b"II*\0", b"MM\0*")
_ANOTHER_KIND: Final = {
    b"%PDF": "This is a PDF; ask /api/page for the formulas on its pages.",
    b"<": "This is text (SVG or HTML?); give a picture of the formula, such as a screenshot.",
}

_INKML: Final = ("application/inkml+xml", "application/xml", "text/xml")

Content = TypeVar("Content", bound=BaseModel)
Input = TypeVar("Input", bytes, str)
Options = TypeVar("Options", bound=ReadOptions)


class UploadBudget:
    """The bytes that all uploads together may hold: memory stays bounded whatever arrives.

    What counts is what has arrived: a client that only says that much will come takes nothing from others.
    """

    def __init__(self, total_bytes: int) -> None:
        self._left_bytes = total_bytes

    @contextmanager
    def upload(self) -> Iterator[Callable[[int], None]]:
        """Yield a function that takes bytes out of the budget until the request is answered.

        The function raises ProblemError if there are not as many left.
        """
        taken = 0

        def take(size_bytes: int) -> None:
            nonlocal taken
            if size_bytes > self._left_bytes:
                raise ProblemError(
                    "busy",
                    "Too many uploads at once. Try again.",
                    headers={"Retry-After": "1", "Connection": "close"},  # the rest of the upload is not read
                )
            self._left_bytes -= size_bytes
            taken += size_bytes

        try:
            yield take
        finally:
            self._left_bytes += taken


def declared_bytes(request: Request, *, max_bytes: int) -> int:
    """Say how long the body may be at most; JSON may be longer, as it holds base64.

    Raises:
        ProblemError: if that is too long, or not said as a number.
    """
    limit = max_bytes + _FORM_OVERHEAD_BYTES
    if _content_type(request) == "application/json":
        limit = max_bytes * 4 // 3 + _FORM_OVERHEAD_BYTES
    length = request.headers.get("content-length")
    if length is None:
        return limit
    if not (length.isascii() and length.isdigit()):
        raise ProblemError("malformed", "Content-Length is not a number.")
    if int(length) > limit:
        raise _too_large(max_bytes)
    return int(length)


async def read_body(
    request: Request, *, max_bytes: int, timeout_s: float, take: Callable[[int], None]
) -> bytes:
    """Read the body, and stop as soon as it is too long.

    Args:
        request: whose body it is.
        max_bytes: that it may have.
        timeout_s: until all of it must be here.
        take: is told of each piece, and may refuse it; see `UploadBudget`.

    Raises:
        ProblemError: if it is too long, or takes too long.
    """
    body = bytearray()  # not a list: a client may send byte by byte
    try:
        async with asyncio.timeout(timeout_s):
            async for chunk in request.stream():
                if len(body) + len(chunk) > max_bytes:
                    raise _too_large(max_bytes)
                take(len(chunk))
                body += chunk
    except TimeoutError as error:
        raise ProblemError("upload-timeout", f"The image was not here after {timeout_s:g} s.") from error
    except ClientDisconnect as error:
        raise ProblemError("malformed", "The upload was broken off.") from error
    return bytes(body)


async def one_image(request: Request, body: bytes, query: ReadOptions) -> tuple[bytes, ReadOptions]:
    """Read the image of a request and its options.

    Raises:
        ProblemError: if there is no image in it, or an option is wrong.
    """
    return await _one_file(request, body, query, ReadRequest, check_kind)


async def one_page(request: Request, body: bytes, query: PageOptions) -> tuple[bytes, PageOptions]:
    """Read the file of a request, a picture or a PDF, and its options.

    Raises:
        ProblemError: if there is no file in it, or an option is wrong.
    """
    return await _one_file(request, body, query, PageRequest, _check_page, "application/pdf")


async def _one_file(
    request: Request,
    body: bytes,
    query: Options,
    model: type[Any],
    check: Callable[[bytes], bytes],
    *others: str,
) -> tuple[bytes, Options]:
    """Read the one file of a request: in JSON, in a form, or as the body itself.

    Args:
        request: whose body it is.
        body: all of it.
        query: options that came in the address.
        model: of the JSON.
        check: refuses files that are of no use here.
        others: kinds of bodies that are such files, beside images.
    """
    kind = _content_type(request)
    if kind == "application/json":
        content = parse_json(body, model, query)
        return check(_decode_base64(content.src)), content
    if kind == "multipart/form-data":
        files, options = await _from_form(request, body, query)
        if len(files) != 1:
            raise ProblemError(
                "invalid-request", f"Give one file, in the field 'file'; there are {len(files)}."
            )
        return check(files[0]), options
    if kind.startswith("image/") or kind in ("application/octet-stream", *others):
        return check(body), query
    raise _unknown_kind(kind)


def _check_page(file: bytes) -> bytes:
    return file if file.startswith(b"%PDF") else check_kind(file)


async def several_images(
    request: Request, body: bytes, query: ReadOptions
) -> tuple[list[bytes | ProblemError], ReadOptions]:
    """Read the images of a request, or what is wrong with one, and the options for all of them.

    Raises:
        ProblemError: if there is no image at all, or an option is wrong.
    """
    kind = _content_type(request)
    if kind == "application/json":
        content = parse_json(body, BatchRequest, query)
        return [_checked(_from_base64, source) for source in content.images], content
    if kind == "multipart/form-data":
        images, options = await _from_form(request, body, query)
        if not images:
            raise ProblemError("invalid-request", "Give files, each in a field 'files'.")
        return [_checked(check_kind, image) for image in images], options
    raise _unknown_kind(kind)


async def given_strokes(request: Request, body: bytes, query: ReadOptions) -> tuple[bytes, ReadOptions]:
    """Give the strokes of a request, still as they were sent, and its options.

    Raises:
        ProblemError: if it holds neither JSON with strokes nor InkML, or an option is wrong.
    """
    kind = _content_type(request)
    if kind == "application/json":
        return body, parse_json(body, StrokesRequest, query)
    if kind in _INKML and looks_like_ink(body):
        return body, query
    if kind in _INKML:
        raise ProblemError("not-an-image", f"The body is not InkML, though {kind} says so.")
    raise ProblemError(
        "not-an-image",
        f"The body is {kind or 'of no type'}; send JSON with strokes, or InkML as {_INKML[0]}.",
    )


def _checked(check: Callable[[Input], bytes], image: Input) -> bytes | ProblemError:
    try:
        return check(image)
    except ProblemError as problem:
        return problem


def check_kind(image: bytes) -> bytes:
    """Look at the first bytes and give the image: what is of no format that is read here goes no further.

    Raises:
        ProblemError: if it is not an image.
    """
    if not image:
        raise ProblemError("not-an-image", "The file is empty.")
    for head, said in _ANOTHER_KIND.items():
        if image.startswith(head):
            raise ProblemError("not-an-image", said)
    if not image.startswith(_HEADS) and image[4:8] != b"ftyp":
        raise ProblemError(
            "not-an-image", "This is not an image. Give PNG, JPEG, GIF, WebP, BMP, TIFF or AVIF."
        )
    return image


def _content_type(request: Request) -> str:
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def parse_json(body: bytes, model: type[Content], query: ReadOptions | None = None) -> Content:
    """Read a JSON body; what it says goes before what the query says.

    Raises:
        ProblemError: if it is not JSON, or not as described.
    """
    try:
        content = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise ProblemError("malformed", f"The body is not JSON: {error}.") from error
    if not isinstance(content, dict):
        raise ProblemError("invalid-request", "The body must be a JSON object.")
    return _validate(model, (query.model_dump(exclude_unset=True) if query else {}) | content, strict=True)


def _validate(model: type[Content], content: dict[str, Any], *, strict: bool = False) -> Content:
    try:
        return model.model_validate(content, strict=strict)
    except ValidationError as error:
        said = "; ".join(
            f"{'.'.join(map(str, entry['loc'])) or 'body'}: {entry['msg']}" for entry in error.errors()[:5]
        )
        raise ProblemError("invalid-request", said) from error


def _from_base64(source: str) -> bytes:
    return check_kind(_decode_base64(source))


def _decode_base64(source: str) -> bytes:
    if source.startswith(("http:", "https:", "file:")):
        raise ProblemError("invalid-request", "Addresses are not fetched; send the image itself, in base64.")
    found = _DATA_URL.match(source)
    try:
        return base64.b64decode(source[found.end() if found else 0 :], validate=True)
    except (binascii.Error, ValueError) as error:
        raise ProblemError("malformed", f"The image is not in base64: {error}.") from error


class _InMemoryParser(MultiPartParser):
    spool_max_size = 1 << 40  # nothing of a request is written to the disk


async def _from_form(request: Request, body: bytes, query: Options) -> tuple[list[bytes], Options]:
    async def whole() -> AsyncGenerator[bytes, None]:
        yield body

    try:
        form = await _InMemoryParser(request.headers, whole(), max_files=MAX_IMAGES, max_fields=20).parse()
    except MultiPartException as error:
        raise ProblemError("malformed", f"The form cannot be understood: {error.message}") from error
    images, fields = [], query.model_dump(exclude_unset=True)
    for name, value in form.multi_items():
        if isinstance(value, UploadFile):
            images.append(await value.read())
        elif name == "formats":
            fields.setdefault(name, []).append(value)
        else:
            fields[name] = value
    return images, _validate(type(query), fields)


def _too_large(max_bytes: int) -> ProblemError:
    return ProblemError(
        "too-large",
        f"The limit is {max_bytes / 1e6:g} MB. Crop the formula out of the image.",
        headers={"Connection": "close"},  # the rest of the upload is not read
    )


def _unknown_kind(kind: str) -> ProblemError:
    return ProblemError(
        "not-an-image",
        f"The body is {kind or 'of no type'}; send an image, a form with a file, or JSON with base64.",
    )
