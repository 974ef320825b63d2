"""What a connection may cost before anybody has shown a token: bytes of a head, time, places, lines of log.

uvicorn reads heads of any length for as long as a client likes, from as many clients as there are file
handles. `LimitedProtocol` is its protocol with an end to each of these. Places are given up by those who keep
the server waiting longest: a client that sends its request at once is answered, however many others have
sent half of one. Of one kind of message only a few a minute are written to the log, so strangers cannot fill
it.
"""

import asyncio
import json
import logging
import socket
import sys
import time
from asyncio import TimerHandle, Transport
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final, Self

from uvicorn import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from i2l.web.security import ProblemError

if sys.platform != "win32":
    import resource

_SPARE_HANDLES: Final = 64  # for files, pipes of workers and the server itself
_RETRY: Final = {"Retry-After": "1"}
_LINGER_S: Final = 1.0  # until a client that was refused is cut off, so that it can read why


@dataclass(frozen=True, kw_only=True)
class ConnectionLimits:
    """What one connection, and all of them together, may cost."""

    max_connections: int = 512
    max_head_bytes: int = 32 << 10  # of a request line with all headers; also of trailers after a body
    max_headers: int = 100
    max_pipelined: int = 8  # requests that are sent before the first is answered
    wait_s: float = 10.0  # for a whole head, from the connection or the last answer; for reading an answer

    @property
    def connections(self) -> int:
        """How many connections there may be: fewer where the system gives few file handles."""
        if sys.platform == "win32":
            return self.max_connections
        handles, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        if handles == resource.RLIM_INFINITY:
            return self.max_connections
        return max(8, min(self.max_connections, handles - _SPARE_HANDLES))


class LimitedProtocol(HttpToolsProtocol):
    """One connection, kept within the limits; `with_limits` gives the class for a server."""

    limits = ConnectionLimits()
    waiting: "dict[LimitedProtocol, None]"  # those whose request is not here yet, the longest first

    @classmethod
    def with_limits(cls, limits: ConnectionLimits) -> type[Self]:
        """Make the protocol of one server, whose connections know of each other."""
        return type(cls.__name__, (cls,), {"limits": limits, "waiting": {}})

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._refusal: ProblemError | None = None  # why the parser was stopped
        self._refused = False
        self._got_on = False  # while data is parsed: whether more than a piece of a head came of it
        self._head_bytes = 0  # that came since the parser last got on
        self._num_headers = 0
        self._deadline: TimerHandle | None = None

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]
        """Take a place; if there is none, take that of another who has not sent a request yet."""
        super().connection_made(transport)
        # An answer is written in two pieces, and the second would wait for the client's receipt of the first.
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if len(self.connections) > self.limits.connections:
            if not self.waiting:
                self._refuse(
                    ProblemError("busy", "Too many connections. Try again.", headers=_RETRY), linger_s=0
                )
                return
            longest = next(iter(self.waiting))
            next((other for other in self.waiting if other.cycle is None), longest).cut_off()
        self._wait_for_request()

    def connection_lost(self, exc: Exception | None) -> None:
        """Give up the place, so that another connection can have it."""
        self._stop_waiting()
        self.waiting.pop(self, None)
        super().connection_lost(exc)

    def cut_off(self) -> None:
        """End the connection at once, with nothing said."""
        self.waiting.pop(self, None)
        self.connections.discard(self)  # its place is free now; `connection_lost` comes in the next turn
        self.transport.abort()

    def data_received(self, data: bytes) -> None:
        """Parse what came, and count what it was only kept for."""
        self._got_on = False
        super().data_received(data)
        self._head_bytes = 0 if self._got_on else self._head_bytes + len(data)
        if self._head_bytes > self.limits.max_head_bytes and not self._refused:
            self._refuse(self._too_long())

    def on_message_begin(self) -> None:
        """Begin to count the headers of another request."""
        self._num_headers = 0
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header, or a trailer after a body in chunks, unless there are too many."""
        self._num_headers += 1
        if self._num_headers > self.limits.max_headers:
            self._stop_parser(self._too_long())
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Begin to answer, if this may be answered."""
        self._got_on = True
        head_bytes = len(self.url) + sum(len(name) + len(value) for name, value in self.headers)
        if head_bytes > self.limits.max_head_bytes:
            self._stop_parser(self._too_long())
        if len(self.pipeline) >= self.limits.max_pipelined:
            self._stop_parser(ProblemError("malformed", "Too many requests at once; wait for answers."))
        self._stop_waiting()
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Take a piece of a body."""
        self._got_on = True
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Keep the place until the request is answered: all of it is here."""
        self._got_on = True
        if not self._is_idle:
            self.waiting.pop(self, None)
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Wait for the next request."""
        super().on_response_complete()
        if not self.pipeline and not self.transport.is_closing():
            self._wait_for_request()

    def pause_writing(self) -> None:
        """Wait for a client that does not read its answer, but not for ever."""
        self._set_deadline()
        super().pause_writing()

    def resume_writing(self) -> None:
        """Go on with the answer, or with waiting if that was all of it."""
        if self._is_idle:
            self._set_deadline()
        else:
            self._stop_waiting()
        super().resume_writing()

    def send_400_response(self, msg: str) -> None:
        """Say what the parser was stopped for; uvicorn calls this when it was."""
        self._refuse(self._refusal or ProblemError("malformed", msg))

    @property
    def _is_idle(self) -> bool:
        """Whether no request is being answered."""
        return self.cycle is None or self.cycle.response_complete

    def _wait_for_request(self) -> None:
        self.waiting.pop(self, None)
        self.waiting[self] = None
        self._set_deadline()

    def _set_deadline(self) -> None:
        self._stop_waiting()
        self._deadline = self.loop.call_later(self.limits.wait_s, self.cut_off)

    def _stop_waiting(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _stop_parser(self, problem: ProblemError) -> None:
        """Have the parser raise, so that uvicorn calls `send_400_response`."""
        self._refusal = problem
        raise problem

    def _too_long(self) -> ProblemError:
        return ProblemError(
            "long-head",
            f"The limits are {self.limits.max_head_bytes >> 10} KiB and {self.limits.max_headers} headers.",
        )

    def _refuse(self, problem: ProblemError, *, linger_s: float = _LINGER_S) -> None:
        """Answer, listen to nothing more, and close when the client had time to read the answer."""
        if not self._is_idle:  # an answer would get between the lines of another one
            self.cut_off()
            return
        self._refused = True
        body = json.dumps(problem.to_dict()).encode()
        lines = [
            f"HTTP/1.1 {problem.status} {HTTPStatus(problem.status).phrase}",
            "content-type: application/problem+json",
            f"content-length: {len(body)}",
            "connection: close",
            *(f"{name.lower()}: {value}" for name, value in problem.headers.items()),
        ]
        self.transport.write("\r\n".join((*lines, "", "")).encode() + body)
        self._stop_waiting()
        if linger_s:
            self.transport.write_eof()
            self.transport.pause_reading()
            self._deadline = self.loop.call_later(linger_s, self.cut_off)
        else:
            self.transport.close()


PERIOD_S: Final = 60.0
PER_PERIOD: Final = 5
_MAX_KINDS: Final = 1000

logger = logging.getLogger("i2l.web")


class RateLimit(logging.Filter):
    """Lets the first messages of each kind through, and says later how many were left out.

    The kind is the message before its arguments are filled in.
    """

    def __init__(
        self,
        *,
        per_period: int = PER_PERIOD,
        period_s: float = PERIOD_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Limit a logger, by `addFilter`.

        Args:
            per_period: messages of a kind that are written.
            period_s: after that many seconds as many again.
            clock: gives seconds.
        """
        super().__init__()
        self._per_period = per_period
        self._period_s = period_s
        self._clock = clock
        self._seen: dict[str, tuple[float, int]] = {}  # when the period of a kind began, and its messages

    def filter(self, record: logging.LogRecord) -> bool:
        """Say whether a message is written."""
        kind, now = str(record.msg), self._clock()
        began, count = self._seen.get(kind, (now, 0))
        if now - began >= self._period_s:
            if count > self._per_period:
                record.msg = f"{record.msg} (and {count - self._per_period} more of these before)"
            began, count = now, 0
        if len(self._seen) >= _MAX_KINDS:
            self._seen.clear()
        self._seen[kind] = began, count + 1
        return count < self._per_period


def limit_logs(*names: str) -> None:
    """Limit these loggers."""
    for name in names:
        logging.getLogger(name).addFilter(RateLimit())


def log_loop_error(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Log what went wrong in the event loop: in one line if there are no file handles left.

    asyncio itself stops accepting connections for a second then, and says so once for each that waits.
    """
    if "out of system resource" in str(context.get("message")):
        logger.warning("No connection can be accepted: %s. Raise `ulimit -n`.", context.get("exception"))
    else:
        loop.default_exception_handler(context)
