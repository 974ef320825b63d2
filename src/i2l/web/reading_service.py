"""From a request to readings: body, queue, time limit, and what to do when the client leaves."""

import asyncio
import uuid
from collections.abc import Sequence
from typing import Any

from starlette.requests import Request

from i2l.web.batching import Batcher
from i2l.web.metrics import Metrics
from i2l.web.problems import ProblemError
from i2l.web.schemas import ReadOptions

_OPTIONS = tuple(ReadOptions.model_fields)


class ClientLeftError(Exception):
    """Nobody waits for the answer any more."""


class ReadingService:
    """Has images read, for as long as somebody waits for them."""

    def __init__(self, batcher: Batcher, *, timeout_s: float, metrics: Metrics) -> None:
        """Serve readings.

        Args:
            batcher: that has the workers.
            timeout_s: for all images of a request.
            metrics: to count in.
        """
        self._batcher = batcher
        self._timeout_s = timeout_s
        self._metrics = metrics

    async def read(
        self, request: Request, images: Sequence[bytes], options: ReadOptions
    ) -> list[dict[str, Any] | ProblemError]:
        """Read images; give a reading or a problem for each.

        Raises:
            ProblemError: if the server is busy, or it took too long.
            ClientLeftError: if the client has left.
        """
        answers = await self._batcher.submit(images, {name: getattr(options, name) for name in _OPTIONS})
        everything = asyncio.create_task(_until_all(answers))
        leaving = asyncio.create_task(_until_left(request))
        first: set[asyncio.Future[Any]] = {everything, leaving}
        try:
            done, _ = await asyncio.wait(first, timeout=self._timeout_s, return_when=asyncio.FIRST_COMPLETED)
        finally:
            leaving.cancel()
            everything.cancel()  # takes those that still wait out of the queue; nothing if all are done
        if everything in done:
            return [self._finish(result) for result in everything.result()]
        outcome = "left" if leaving in done else "timeout"
        self._metrics.images.labels(outcome).inc(len(images))
        if leaving in done:
            raise ClientLeftError
        raise ProblemError(
            "timeout",
            f"Not read within {self._timeout_s:g} s. Try again, or crop to one formula.",
            headers={"Retry-After": "5"},
        )

    def _finish(self, result: dict[str, Any]) -> dict[str, Any] | ProblemError:
        if "reading" not in result:
            self._metrics.images.labels(result["kind"]).inc()
            return ProblemError(result["kind"], result["detail"])
        self._metrics.images.labels("read").inc()
        reading: dict[str, Any] = result["reading"]
        width, height = reading["size"]
        return {
            "request_id": uuid.uuid4().hex,
            **reading,
            "latex_styled": reading["latex"],
            "text": f"\\( {reading['latex']} \\)",
            "image_width": width,
            "image_height": height,
        }


async def _until_all(answers: Sequence[asyncio.Future[dict[str, Any]]]) -> list[dict[str, Any]]:
    return await asyncio.gather(*answers)


async def _until_left(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
