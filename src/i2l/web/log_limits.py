"""A log that strangers cannot fill: of one kind of message only a few a minute are written."""

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Any, Final

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
