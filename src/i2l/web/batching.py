"""From requests to readings: a bounded queue, batches for the workers, time limits, and counters of all that.

Requests that wait together are read together, but nobody waits for company: a worker that is free takes what
is there, up to a full batch, and while it reads, the next ones gather. A worker that dies gives its batch
back; its images are then read one by one, so that one which kills workers takes nobody with it. A request
whose client leaves is dropped. The counters are for Prometheus.
"""

import asyncio
import contextlib
import math
import time
import uuid
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from starlette.requests import Request

from i2l.web.schemas import ReadOptions
from i2l.web.security import ProblemError
from i2l.web.workers import Worker, WorkerDiedError, WorkerError

_SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)


class Metrics:
    """All counters of one server."""

    def __init__(self) -> None:
        own = self._registry = CollectorRegistry()
        self.requests = Counter("i2l_requests", "Requests answered.", ["path", "status"], registry=own)
        self.request_seconds = Histogram(
            "i2l_request_seconds", "Until the answer.", ["path"], buckets=_SECONDS, registry=own
        )
        self.images = Counter("i2l_images", "Images by what became of them.", ["outcome"], registry=own)
        self.batch_seconds = Histogram(
            "i2l_batch_seconds", "That a worker took for a batch.", buckets=_SECONDS, registry=own
        )
        self.batch_size = Histogram(
            "i2l_batch_size", "Images that were read together.", buckets=(1, 2, 4, 8, 16, 32), registry=own
        )
        self.waiting = Gauge("i2l_images_waiting", "Images in the queue.", registry=own)
        self.workers = Gauge("i2l_workers_ready", "Workers that can read.", registry=own)
        self.restarts = Counter("i2l_worker_restarts", "Workers that were replaced.", registry=own)

    def render(self) -> bytes:
        """Write the text that Prometheus reads."""
        return generate_latest(self._registry)


MAX_ATTEMPTS: Final = 3  # the first with others, then alone
_SLOWEST_RESTART_S: Final = 5.0
_MAX_EXPECTED_SHARE: Final = 0.5  # of the time limit: who would wait longer is turned away at once
_BATCH_SHARE: Final = 0.2  # of the time limit, that a batch may take
_SMOOTHING: Final = 0.2  # of the running mean of seconds an image


@dataclass(eq=False)
class _Waiting:
    """An image that somebody waits for."""

    image: bytes
    options: Mapping[str, Any]
    answer: asyncio.Future[dict[str, Any]]
    attempts: int = 0


class Batcher:
    """Hands images to workers in batches."""

    def __init__(
        self,
        workers: Sequence[Worker],
        *,
        max_batch: int,
        queue_size: int,
        timeout_s: float,
        metrics: Metrics,
    ) -> None:
        """Prepare; `start` starts.

        Args:
            workers: that read.
            max_batch: images that are read together; 1 is no batching.
            queue_size: images that may wait.
            timeout_s: for a batch; a worker that takes longer is replaced.
            metrics: to count in.
        """
        self._workers = workers
        self._max_batch = max_batch
        self._queue_size = queue_size
        self._timeout_s = timeout_s
        self._metrics = metrics
        self._queue: deque[_Waiting] = deque()
        self._arrival = asyncio.Condition()
        self._idle = 0
        self._with_workers = 0  # images that are being read
        self._ready: set[Worker] = set()
        self._seconds_an_image = 0.0
        self._loops: list[asyncio.Task[None]] = []

    @property
    def ready(self) -> bool:
        """Whether a worker can read."""
        return bool(self._ready)

    @property
    def description(self) -> dict[str, Any]:
        """What the workers say about their model."""
        return self._workers[0].description

    async def start(self) -> None:
        """Start all workers, unless they run.

        Raises:
            WorkerError: if the model cannot be loaded.
        """
        if self._loops:
            return
        try:
            await asyncio.gather(*(worker.start() for worker in self._workers))
        except WorkerDiedError as error:
            raise WorkerError("A worker ended while it loaded the model; is there enough memory?") from error
        except OSError as error:
            raise WorkerError(f"Cannot start a worker: {error}") from error
        for worker in self._workers:
            self._set_ready(worker, True)
            self._loops.append(asyncio.create_task(self._serve(worker)))

    async def stop(self) -> None:
        """Stop all workers; nothing waits any more by then."""
        for loop in self._loops:
            loop.cancel()
        await asyncio.gather(*self._loops, return_exceptions=True)
        await asyncio.gather(*(worker.stop() for worker in self._workers))

    async def submit(
        self, images: Sequence[bytes], options: Mapping[str, Any]
    ) -> list[asyncio.Future[dict[str, Any]]]:
        """Put images into the queue, all or none; cancel what is returned to take them out again.

        Raises:
            ProblemError: if there is no room.
        """
        self._drop_cancelled()
        no_room = len(self._queue) + len(images) > self._queue_size
        if no_room or self._expected_s() > _MAX_EXPECTED_SHARE * self._timeout_s:
            raise ProblemError(
                "busy",
                f"{len(self._queue)} images wait already. Try again in a moment, or with fewer at once.",
                headers={"Retry-After": str(self._retry_after_s())},
            )
        loop = asyncio.get_running_loop()
        entries = [_Waiting(image, options, loop.create_future()) for image in images]
        self._queue.extend(entries)
        self._metrics.waiting.set(len(self._queue))
        async with self._arrival:
            self._arrival.notify_all()
        return [entry.answer for entry in entries]

    def _expected_s(self) -> float:
        """Estimate how long until all that waits is read: 0 if nothing waits, or nothing was read yet."""
        ahead = len(self._queue) + self._with_workers
        return self._seconds_an_image * ahead / max(1, len(self._ready))

    def _retry_after_s(self) -> int:
        return max(1, min(60, math.ceil(self._expected_s() / 2)))

    def _drop_cancelled(self) -> None:
        """Forget those whose client has left."""
        self._queue = deque(entry for entry in self._queue if not entry.answer.done())
        self._metrics.waiting.set(len(self._queue))

    def _set_ready(self, worker: Worker, ready: bool) -> None:
        (self._ready.add if ready else self._ready.discard)(worker)
        self._metrics.workers.set(len(self._ready))

    async def _serve(self, worker: Worker) -> None:
        """Read with one worker, for ever."""
        while True:
            batch = await self._take_while(worker)
            if not batch:
                await self._replace(worker)
                continue
            started = time.monotonic()
            self._with_workers += len(batch)
            try:
                results = await asyncio.wait_for(
                    worker.read([entry.image for entry in batch], [dict(entry.options) for entry in batch]),
                    self._timeout_s,
                )
            except WorkerDiedError:
                self._give_back(batch)
                await self._replace(worker)
                continue
            except TimeoutError:
                self._seconds_an_image = max(self._seconds_an_image, self._timeout_s / len(batch))
                for entry in batch:
                    _answer(entry, {"kind": "timeout", "detail": "The limit is over; crop to one formula."})
                await self._replace(worker)
                continue
            finally:
                self._with_workers -= len(batch)
            seconds = time.monotonic() - started
            self._metrics.batch_seconds.observe(seconds)
            self._metrics.batch_size.observe(len(batch))
            smoothing = _SMOOTHING if self._seconds_an_image else 1.0
            self._seconds_an_image += smoothing * (seconds / len(batch) - self._seconds_an_image)
            for entry, result in zip(batch, results, strict=True):
                _answer(entry, result)

    async def _take_while(self, worker: Worker) -> list[_Waiting]:
        """Take images as soon as there are some; none if the worker ends before."""
        take = asyncio.create_task(self._take())
        try:
            await asyncio.wait({take, worker.ended}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            take.cancel()
            await asyncio.wait({take})
        if take.cancelled():
            return []
        if worker.ended.done():
            self._queue.extendleft(reversed(take.result()))
            return []
        return take.result()

    async def _take(self) -> list[_Waiting]:
        """Wait for images and take a share of them: of what is there, other idle workers get as much."""
        async with self._arrival:
            self._idle += 1
            try:
                while True:
                    self._drop_cancelled()
                    if self._queue:
                        break
                    await self._arrival.wait()
                count = min(self._largest_batch(), math.ceil(len(self._queue) / self._idle))
                batch = [self._queue.popleft()]
                while (
                    self._queue and len(batch) < count and not (batch[0].attempts or self._queue[0].attempts)
                ):
                    batch.append(self._queue.popleft())
            finally:
                self._idle -= 1
        self._metrics.waiting.set(len(self._queue))
        return batch

    def _largest_batch(self) -> int:
        """Say how many images to read together: as many as allowed, unless that takes too long."""
        if not self._seconds_an_image:
            return self._max_batch
        in_time = int(_BATCH_SHARE * self._timeout_s / self._seconds_an_image)
        return max(1, min(self._max_batch, in_time))

    def _give_back(self, batch: Sequence[_Waiting]) -> None:
        """Put the batch of a worker that died back in front."""
        for entry in reversed(batch):
            entry.attempts += 1
            if entry.attempts < MAX_ATTEMPTS:
                self._queue.appendleft(entry)
            else:
                _answer(entry, {"kind": "reader-failed", "detail": "Reading this image ended the reader."})

    async def _replace(self, worker: Worker) -> None:
        """Start a worker again, however often it takes."""
        self._set_ready(worker, False)
        pause_s = 0.1
        while True:
            self._metrics.restarts.inc()
            with contextlib.suppress(WorkerDiedError, WorkerError, OSError):
                await worker.kill()
                await worker.start()
                break
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, _SLOWEST_RESTART_S)
        self._set_ready(worker, True)


def _answer(entry: _Waiting, result: dict[str, Any]) -> None:
    if not entry.answer.done():
        entry.answer.set_result(result)


_SOURCES = frozenset({"src", "images", "strokes"})  # in a request: no options


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
        answers = await self._batcher.submit(images, options.model_dump(exclude=set(_SOURCES)))
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
        if "page" in result["reading"]:
            return {"request_id": uuid.uuid4().hex, **result["reading"]}
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
