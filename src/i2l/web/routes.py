"""The routes of the API, each a few lines around what it calls.

They share a `ServerState`: the options that the server was started with, its queue, its limits.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, TypeVar

from fastapi import APIRouter, Depends, Query, Request
from pydantic import BaseModel
from starlette.responses import JSONResponse, Response

from i2l import __version__
from i2l.formats.convert import formats_here
from i2l.formulas.lexer import FormulaError
from i2l.formulas.pretty import readable_formula
from i2l.inference.model_folder import list_models, read_model_folder
from i2l.web import schemas
from i2l.web.answers import convert_formula, list_formats
from i2l.web.batching import Batcher, Metrics, ReadingService
from i2l.web.connections import ConnectionLimits
from i2l.web.security import ProblemError, check_token
from i2l.web.uploads import (
    UploadBudget,
    declared_bytes,
    given_strokes,
    one_image,
    one_page,
    parse_json,
    read_body,
    several_images,
)

PAGE = Path(str(files("i2l.web").joinpath("page")))
EXAMPLES = Path(str(files("i2l.web").joinpath("examples")))


@dataclass(frozen=True, kw_only=True)
class ServeOptions:
    """How to serve."""

    # What reads
    model: str | None = None
    workers: int = 1
    threads: int | None = None  # of each worker

    # Under load
    max_batch: int = 32  # images that are read together; 1 is no batching
    queue_size: int = 128  # images that may wait
    timeout_s: float = 30.0  # for a request

    # Limits
    max_upload_bytes: int = 20_000_000
    max_pixels: int = 25_000_000
    max_buffered_bytes: int = 256_000_000  # of all uploads together
    connections: ConnectionLimits = field(default_factory=ConnectionLimits)

    # Who may ask
    token: str | None = None
    hosts: tuple[str, ...] = ()  # names that the server goes by; any if empty
    origins: tuple[str, ...] = ()  # other sites that may ask (CORS)


@dataclass(frozen=True)
class ServerState:
    """What the routes share."""

    options: ServeOptions
    batcher: Batcher
    service: ReadingService
    budget: UploadBudget
    metrics: Metrics
    writer: ThreadPoolExecutor  # one thread that writes formulas


MAX_FORMULA_BYTES = 256_000
MAX_STROKES_BYTES = 2 << 20
BATCH_UPLOADS = 4  # a request with several images may be so many times as long as one image

Result = TypeVar("Result")


def _state(request: Request) -> ServerState:
    state: ServerState = request.app.state.server
    return state


def _authorize(request: Request) -> None:
    check_token(request.headers.get("authorization"), _state(request).options.token)


def _problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    schema = {"schema": {"$ref": "#/components/schemas/ProblemModel"}}
    return {
        status: {"description": description, "content": {"application/problem+json": schema}}
        for status, description in {
            400: "The body cannot be understood",
            401: "A token is needed",
            403: "Another site may not ask",
            408: "The upload took too long",
            413: "The file, its pixels, or the formula for this model is too large; a part of it may be read",
            415: "Not an image, or no strokes",
            421: "Unknown host",
            422: "No formula found, or a wrong option",
            500: "The reader failed",
            503: "Busy, or not ready; Retry-After says when to come back",
            504: "Reading took too long",
        }.items()
        if status in statuses
    }


def _body(model: type[schemas.ReadOptions], field: str, schema: dict[str, Any]) -> dict[str, Any]:
    """Describe the three ways to send an image: a form, JSON, or the file itself."""
    given = schemas.PageOptions if model is schemas.PageRequest else schemas.ReadOptions
    options = given.model_json_schema()["properties"]
    form = {
        "type": "object",
        "properties": {field: schema, **options},
        "required": [field],
        "additionalProperties": False,
    }
    content: dict[str, Any] = {
        "multipart/form-data": {"schema": form},
        "application/json": {"schema": model.model_json_schema()},
    }
    if model is schemas.PageRequest:
        content["application/pdf"] = {"schema": {"type": "string", "format": "binary", "minLength": 1}}
    if field == "file":
        content["image/png"] = {"schema": {"type": "string", "format": "binary", "minLength": 1}}
    return {"requestBody": {"required": True, "content": content}}


def _json_body(model: type[BaseModel]) -> dict[str, Any]:
    """Describe a body that is JSON and nothing else."""
    content = {"application/json": {"schema": model.model_json_schema()}}
    return {"requestBody": {"required": True, "content": content}}


async def _write(request: Request, writing: Callable[[], Result], wrong: str) -> Result:
    """Call what writes a formula, in a thread, since a long one takes a second; one thread for all.

    Raises:
        ProblemError: if there is no formula; it begins with the given words.
    """
    try:
        return await asyncio.get_running_loop().run_in_executor(_state(request).writer, writing)
    except FormulaError as error:
        raise ProblemError("invalid-request", f"{wrong}: {error}") from error


@asynccontextmanager
async def _uploaded(request: Request, *, max_bytes: int) -> AsyncIterator[bytes]:
    """Read the body of a request, whose bytes count until it is answered."""
    state = _state(request)
    size = declared_bytes(request, max_bytes=max_bytes)
    with state.budget.upload() as take:
        yield await read_body(request, max_bytes=size, timeout_s=state.options.timeout_s, take=take)


async def _read_one(
    request: Request,
    options: schemas.ReadOptions,
    find: Callable[[Request, bytes, Any], Awaitable[tuple[bytes, schemas.ReadOptions]]],
    *,
    max_bytes: int | None = None,
) -> Response:
    """Read the one thing that a request brings.

    Args:
        request: that brings it.
        options: that came in the address.
        find: finds it in the body, with the options that came there.
        max_bytes: of the body; those of an image if None, and never more.
    """
    state = _state(request)
    limit = state.options.max_upload_bytes
    async with _uploaded(request, max_bytes=limit if max_bytes is None else min(limit, max_bytes)) as body:
        found, options = await find(request, body, options)
        (result,) = await state.service.read(request, [found], options)
    if isinstance(result, ProblemError):
        raise result
    return JSONResponse(result)


_FILE = {"type": "string", "format": "binary", "description": "The image."}
_FILES = {"type": "array", "items": _FILE, "minItems": 1, "maxItems": schemas.MAX_IMAGES}
_ALWAYS = (401, 403, 421)
Options = Annotated[schemas.ReadOptions, Query()]

status_router = APIRouter(tags=["status"])
api_router = APIRouter(
    prefix="/api", tags=["reading"], dependencies=[Depends(_authorize)], responses=_problems(*_ALWAYS)
)


@api_router.post(
    "/read",
    response_model=schemas.ReadingModel,
    responses=_problems(400, 408, 413, 415, 422, 500, 503, 504),
    openapi_extra=_body(schemas.ReadRequest, "file", _FILE),
)
async def read(request: Request, options: Options) -> Response:
    """Read one image.

    Send it as the body itself, in a form as `file`, or in JSON as `src`; options go where the image goes, or
    into the query.
    """
    return await _read_one(request, options, one_image)


@api_router.post(
    "/read/batch",
    response_model=schemas.BatchResult,
    responses=_problems(400, 408, 413, 415, 422, 500, 503, 504),
    openapi_extra=_body(schemas.BatchRequest, "files", _FILES),
)
async def read_batch(request: Request, options: Options) -> Response:
    """Read several images: as a form with `files`, or as JSON with `images`; the answers come in their order.

    An image that cannot be read gets a problem in its place.
    """
    state = _state(request)
    async with _uploaded(request, max_bytes=BATCH_UPLOADS * state.options.max_upload_bytes) as body:
        images, options = await several_images(request, body, options)
        sound = [image for image in images if isinstance(image, bytes)]
        results = iter(await state.service.read(request, sound, options) if sound else [])
    found = [image if isinstance(image, ProblemError) else next(results) for image in images]
    return JSONResponse(
        {"readings": [one.to_dict() if isinstance(one, ProblemError) else one for one in found]}
    )


@api_router.post(
    "/page",
    response_model=schemas.PageModel,
    responses=_problems(400, 408, 413, 415, 422, 500, 503, 504),
    openapi_extra=_body(schemas.PageRequest, "file", _FILE),
)
async def read_page(request: Request, options: Annotated[schemas.PageOptions, Query()]) -> Response:
    """Find and read every formula on a page: of a picture, a PDF, or a TIFF of many pages.

    One page a request, so that progress can be shown: `page` says which, `num_pages` how many there are.
    """
    return await _read_one(request, options, one_page)


@api_router.post(
    "/strokes",
    response_model=schemas.StrokesReading,
    responses=_problems(400, 408, 413, 415, 422, 500, 503, 504),
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {
                "application/json": {"schema": schemas.StrokesRequest.model_json_schema()},
                "application/inkml+xml": {"schema": {"type": "string", "minLength": 1}},
            },
        }
    },
)
async def strokes(request: Request, options: Options) -> Response:
    """Read a formula that was written by hand: its strokes as JSON, or InkML."""
    return await _read_one(request, options, given_strokes, max_bytes=MAX_STROKES_BYTES)


@api_router.post(
    "/latex",
    response_model=schemas.FormulaResult,
    responses=_problems(400, 408, 413, 422),
    openapi_extra=_json_body(schemas.FormulaRequest),
)
async def latex(request: Request) -> dict[str, str]:
    """Write canonical tokens as a person would, for instance after one of them was exchanged."""
    async with _uploaded(request, max_bytes=MAX_FORMULA_BYTES) as body:
        formula = parse_json(body, schemas.FormulaRequest)
    writing = partial(readable_formula, " ".join(formula.tokens))
    return {"latex": await _write(request, writing, "These tokens are not a formula")}


@api_router.post(
    "/convert",
    response_model=schemas.ConvertResult,
    responses=_problems(400, 408, 413, 422),
    openapi_extra=_json_body(schemas.ConvertRequest),
)
async def convert(request: Request) -> dict[str, Any]:
    """Write LaTeX in other formats, for instance after it was edited.

    A format that cannot say the formula has no value but an error, which names the command.
    """
    async with _uploaded(request, max_bytes=MAX_FORMULA_BYTES) as body:
        wanted = parse_json(body, schemas.ConvertRequest)
    writing = partial(convert_formula, wanted.latex, wanted.formats)
    return {"data": await _write(request, writing, "This is not a formula")}


@api_router.get("/formats", response_model=schemas.FormatList)
async def formats() -> dict[str, Any]:
    """List the formats that `/api/convert` writes here, in the order in which a menu would show them."""
    return {"formats": list_formats(formats_here())}


@api_router.get("/models", response_model=schemas.ModelList, response_model_exclude_none=True)
async def models(request: Request) -> dict[str, Any]:
    """Describe the model that reads here, and the others that a request may name."""
    loaded = _state(request).batcher.description
    others = [
        {
            "name": name,
            "loaded": False,
            "handwriting": bool(read_model_folder(path).source.get("handwriting")),
        }
        for name, path in list_models().items()
        if name != loaded["name"]
    ]
    return {"models": [{**loaded, "loaded": True}, *others]}


@api_router.get("/examples", response_model=list[schemas.Example])
async def examples() -> list[dict[str, str]]:
    """List pictures to try."""
    return [
        {"name": path.stem.partition("-")[2].replace("-", " ").capitalize(), "url": f"/examples/{path.name}"}
        for path in sorted(EXAMPLES.glob("*.png"))
    ]


@status_router.get("/health", response_model=schemas.Status)
async def health() -> dict[str, str]:
    """Say that the server runs."""
    return {"status": "ok", "version": __version__}


@status_router.get("/ready", response_model=schemas.Status, responses=_problems(503))
async def ready(request: Request) -> dict[str, str]:
    """Say whether a worker can read."""
    if not _state(request).batcher.ready:
        raise ProblemError("busy", "No worker is ready; one is being started.", headers={"Retry-After": "2"})
    return {"status": "ready", "version": __version__}


@status_router.get(
    "/metrics",
    dependencies=[Depends(_authorize)],
    response_class=Response,
    responses={200: {"content": {"text/plain": {}}}, **_problems(401)},
)
async def metrics(request: Request) -> Response:
    """Return the counters, for Prometheus."""
    return Response(_state(request).metrics.render(), media_type="text/plain; version=0.0.4")
