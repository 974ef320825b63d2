"""The server itself: uvicorn around the application, until it is told to stop."""

import asyncio
import contextlib
import ipaddress
import math
import socket
import webbrowser
from typing import Final
from urllib.parse import quote

import uvicorn

from i2l.errors import I2LError
from i2l.web.app import create_app
from i2l.web.connections import LimitedProtocol
from i2l.web.log_limits import limit_logs, log_loop_error
from i2l.web.security import LOOPBACK
from i2l.web.server_state import ServeOptions

_BACKLOG: Final = 128  # connections that wait to be accepted; asyncio tries as many at a time


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
            backlog=_BACKLOG,
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
    """Give a host as it stands in an address that can be opened."""
    if is_loopback(host):
        return "localhost" if host == "localhost" else "127.0.0.1" if ":" not in host else f"[{host}]"
    return {"0.0.0.0": socket.gethostname(), "::": socket.gethostname()}.get(host, host)
