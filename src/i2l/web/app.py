"""The application and the server around it.

`create_app` wires routes, queue, workers and limits together; `serve` runs it by uvicorn until it is told to
stop.
"""

import asyncio
import contextlib
import ipaddress
import math
import socket
import time
import webbrowser
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Any, Final
from urllib.parse import quote

import uvicorn
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import FileResponse, Response
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from i2l import __version__
from i2l.errors import I2LError
from i2l.web.batching import Batcher, ClientLeftError, Metrics, ReadingService
from i2l.web.connections import LimitedProtocol, limit_logs, log_loop_error
from i2l.web.routes import EXAMPLES, PAGE, ServeOptions, ServerState, api_router, status_router
from i2l.web.security import (
    LOOPBACK,
    ProblemError,
    SecurityMiddleware,
    plain_problem,
    problem_response,
    require_usable_token,
)
from i2l.web.uploads import UploadBudget
from i2l.web.workers import Worker

_CLIENT_LEFT_STATUS = 499  # nginx's number for a client that left; no one sees it but the metrics


def create_app(options: ServeOptions) -> FastAPI:
    """Make the application; its workers start and stop with it.

    Raises:
        I2LError: if the token cannot be used.
    """
    if options.token is not None:
        require_usable_token(options.token)
    metrics = Metrics()
    writer = ThreadPoolExecutor(1, thread_name_prefix="latex")
    settings = {
        "model": options.model,
        "threads": options.threads,
        "max_pixels": options.max_pixels,
    }
    batcher = Batcher(
        [Worker(settings) for _ in range(options.workers)],
        max_batch=options.max_batch,
        queue_size=options.queue_size,
        timeout_s=options.timeout_s,
        metrics=metrics,
    )

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        await batcher.start()
        try:
            yield
        finally:
            await batcher.stop()
            writer.shutdown(cancel_futures=True)

    app = FastAPI(
        title="I2L",
        version=__version__,
        summary="Images of formulas in, LaTeX out, and where every symbol was read.",
        lifespan=lifespan,
        docs_url=None,  # FastAPI's own page comes from a CDN; ours is in page/
        redoc_url=None,
        redirect_slashes=False,  # the address it would send to loses a proxy's https
    )
    app.state.server = ServerState(
        options=options,
        batcher=batcher,
        service=ReadingService(batcher, timeout_s=options.timeout_s, metrics=metrics),
        budget=UploadBudget(options.max_buffered_bytes),
        metrics=metrics,
        writer=writer,
    )
    app.include_router(status_router)
    app.include_router(api_router)
    _add_pages(app)
    _add_problems(app)
    if options.origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=list(options.origins),
            allow_methods=["GET", "POST"],
            allow_headers=["Authorization", "Content-Type"],
            expose_headers=["Retry-After"],
        )
    app.add_middleware(SecurityMiddleware, hosts=options.hosts, origins=options.origins)
    app.add_middleware(MetricsMiddleware, metrics=metrics)
    return app


def _add_pages(app: FastAPI) -> None:
    @app.get("/docs", include_in_schema=False)
    async def docs() -> FileResponse:
        return FileResponse(PAGE / "docs.html")

    app.mount("/examples", StaticFiles(directory=EXAMPLES))
    pages = StaticFiles(directory=PAGE, html=True)

    async def serve_page(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"].startswith("/api/"):
            raise HTTPException(404, "There is no such call; /docs and /openapi.json list all.")
        await pages(scope, receive, send)

    app.router.default = serve_page  # a mount would take what a route refuses for its method


def _add_problems(app: FastAPI) -> None:
    """Make every error problem+json."""

    @app.exception_handler(ProblemError)
    async def on_problem(_: Request, problem: ProblemError) -> Response:
        return problem.response()

    @app.exception_handler(ClientLeftError)
    async def on_left(_: Request, __: ClientLeftError) -> Response:
        return Response(status_code=_CLIENT_LEFT_STATUS)

    @app.exception_handler(RequestValidationError)
    async def on_invalid(_: Request, error: RequestValidationError) -> Response:
        said = [
            {"where": ".".join(map(str, entry["loc"])), "message": entry["msg"]} for entry in error.errors()
        ]
        detail = "; ".join(f"{entry['where']}: {entry['message']}" for entry in said[:5])
        return problem_response({**ProblemError("invalid-request", detail).to_dict(), "errors": said})

    @app.exception_handler(HTTPException)
    async def on_http_error(request: Request, error: HTTPException) -> Response:
        detail = error.detail
        if allowed := (error.headers or {}).get("Allow"):
            detail = f"Use {allowed} instead of {request.method}; /docs and /openapi.json say how."
        return problem_response(plain_problem(error.status_code, detail), error.headers)

    @app.exception_handler(Exception)
    async def on_bug(_: Request, error: Exception) -> Response:
        detail = f"{type(error).__name__} in the server; this is a bug, and the log says more."
        return problem_response(ProblemError("reader-failed", detail).to_dict())


class MetricsMiddleware:
    """Counts answers by path and status, and their time."""

    def __init__(self, app: ASGIApp, *, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request and count it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = time.monotonic()
        status = 500

        async def send_and_look(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, send_and_look)
        finally:
            route: Any = scope.get("route")
            path = getattr(route, "path", "") or "page"  # of the route, so that strangers make no new labels
            self._metrics.requests.labels(path, str(status)).inc()
            self._metrics.request_seconds.labels(path).observe(time.monotonic() - started)


_BACKLOG_CONNECTIONS: Final = 128  # connections that wait to be accepted; asyncio tries as many at a time


def is_loopback(host: str) -> bool:
    """Say whether only this computer can reach a host."""
    if host in LOOPBACK:
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def run_server(options: ServeOptions, *, host: str, port: int, open_browser: bool) -> None:
    """Serve until Ctrl-C or SIGTERM; requests that are being answered still are.

    Raises:
        I2LError: if the port is taken, or no worker can start.
    """
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_run(options, host=host, port=port, open_browser=open_browser))


async def _run(options: ServeOptions, *, host: str, port: int, open_browser: bool) -> None:
    try:
        listener = socket.create_server(
            (host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET
        )
    except OSError as error:
        raise I2LError(
            f"Cannot listen at {host}:{port} ({error.strerror}); choose another --port."
        ) from error
    with listener:
        app = create_app(options)
        # Before the server, so that a model that cannot be loaded is said in one sentence.
        await app.state.server.batcher.start()
        config = uvicorn.Config(
            app,
            http=LimitedProtocol.with_limits(options.connections),
            ws="none",
            backlog=_BACKLOG_CONNECTIONS,
            timeout_keep_alive=math.ceil(options.connections.wait_s),
            log_level="warning",
            server_header=False,
            timeout_graceful_shutdown=math.ceil(options.timeout_s),
        )
        limit_logs("uvicorn.error", "asyncio", "i2l.web")
        asyncio.get_running_loop().set_exception_handler(log_loop_error)
        address = f"http://{_written(host)}:{listener.getsockname()[1]}"
        print(f"I2L reads at {address} (API: {address}/docs). Ctrl-C stops it.", flush=True)
        if open_browser:
            webbrowser.open(f"{address}/#token={quote(options.token)}" if options.token else address)
        await uvicorn.Server(config).serve(sockets=[listener])


def _written(host: str) -> str:
    """Write a host as it stands in an address that can be opened."""
    if is_loopback(host):
        return "localhost" if host == "localhost" else "127.0.0.1" if ":" not in host else f"[{host}]"
    return {"0.0.0.0": socket.gethostname(), "::": socket.gethostname()}.get(host, host)
