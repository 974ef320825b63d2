"""The queue and its loops, with workers that are played: who is read with whom, what becomes of others."""

import asyncio
from types import SimpleNamespace

import pytest

from i2l.web.batching import (
    MAX_ATTEMPTS,
    Batcher,
    ClientLeftError,
    Metrics,
    ReadingService,
    _until_left,
)
from i2l.web.schemas import ReadOptions
from i2l.web.security import ProblemError
from i2l.web.workers import WorkerDiedError, WorkerError


class PlayedWorker:
    """Reads when it is told to; an image `kill` ends it, `hang` keeps it busy for ever."""

    def __init__(self):
        self.batches = []
        self.go = asyncio.Event()
        self.go.set()
        self.starts = 0
        self.failing_starts = 0
        self.description = {"name": "played"}

    async def start(self):
        self.starts += 1
        if self.failing_starts:
            self.failing_starts -= 1
            raise WorkerDiedError
        self.ended = asyncio.get_running_loop().create_future()

    async def read(self, images, options):
        self.batches.append([image.decode() for image in images])
        await self.go.wait()
        if b"kill" in images:
            self.ended.set_result(-9)
            raise WorkerDiedError
        if b"hang" in images:
            await asyncio.Event().wait()
        return [{"reading": image.decode()} for image in images]

    async def kill(self):
        if not self.ended.done():
            self.ended.set_result(-9)

    async def stop(self):
        await self.kill()


def play(scene, *, num_workers=1, **options):
    """Run a scene with a batcher and its workers."""

    async def run():
        workers = [PlayedWorker() for _ in range(num_workers)]
        settings = {"max_batch": 4, "queue_size": 10, "timeout_s": 5.0, "metrics": Metrics(), **options}
        batcher = Batcher(workers, **settings)
        await batcher.start()
        try:
            await asyncio.wait_for(scene(batcher, *workers), 10)
        finally:
            await batcher.stop()

    asyncio.run(run())


async def ask(batcher, *images):
    return await batcher.submit([image.encode() for image in images], {})


async def answers(futures):
    return [result.get("reading") or result["kind"] for result in await asyncio.gather(*futures)]


async def settle():
    for _ in range(20):
        await asyncio.sleep(0)


def test_the_first_goes_at_once_and_those_that_wait_go_together():
    async def scene(batcher, worker):
        worker.go.clear()
        futures = await ask(batcher, "a")
        await settle()
        assert worker.batches == [["a"]]
        for name in "bcdefg":
            futures += await ask(batcher, name)
        worker.go.set()
        assert await answers(futures) == list("abcdefg")
        assert worker.batches == [["a"], list("bcde"), list("fg")]

    play(scene)


def test_what_a_client_left_in_the_queue_is_not_read():
    async def leave():
        return {"type": "http.disconnect"}

    async def scene(batcher, worker):
        worker.go.clear()
        first = await ask(batcher, "a")
        await settle()
        service = ReadingService(batcher, timeout_s=5.0, metrics=Metrics())
        with pytest.raises(ClientLeftError):
            await service.read(SimpleNamespace(receive=leave), [b"b"], ReadOptions())
        worker.go.set()
        assert await answers([*first, *await ask(batcher, "c")]) == ["a", "c"]
        assert worker.batches == [["a"], ["c"]]

    play(scene)


def test_without_batching_each_goes_alone():
    async def scene(batcher, worker):
        assert await answers(await ask(batcher, "a", "b", "c")) == ["a", "b", "c"]
        assert worker.batches == [["a"], ["b"], ["c"]]

    play(scene, max_batch=1)


def test_idle_workers_share_what_is_there():
    async def scene(batcher, *workers):
        await settle()
        assert await answers(await ask(batcher, "a", "b", "c", "d")) == list("abcd")
        assert sorted(len(worker.batches[0]) for worker in workers) == [2, 2]

    play(scene, num_workers=2)


def test_a_full_queue_says_when_to_come_back():
    async def scene(batcher, worker):
        worker.go.clear()
        futures = await ask(batcher, "a")
        await settle()
        futures += await ask(batcher, *"bcdefghij")
        with pytest.raises(ProblemError) as caught:
            await ask(batcher, "k", "l")
        assert (caught.value.status, caught.value.kind) == (503, "busy")
        assert 1 <= int(caught.value.headers["Retry-After"]) <= 60
        futures += await ask(batcher, "k")
        worker.go.set()
        assert await answers(futures) == list("abcdefghijk")

    play(scene)


def test_who_would_wait_too_long_is_turned_away_at_once():
    async def scene(batcher, worker):
        worker.go.clear()
        first = await ask(batcher, "a")  # before anything was read nobody knows how long it takes
        await settle()
        await asyncio.sleep(0.2)
        worker.go.set()
        await answers(first)
        worker.go.clear()
        futures = await ask(batcher, "b")
        await settle()
        futures += await ask(batcher, "c", "d")  # 0.2 s each
        with pytest.raises(ProblemError) as caught:
            await ask(batcher, "f")
        assert caught.value.status == 503
        worker.go.set()
        assert await answers(futures) == list("bcd")
        assert worker.batches == [["a"], ["b"], ["c"], ["d"]], "together they would take too long"

    play(scene, timeout_s=1.0)


def test_who_leaves_is_not_read_and_makes_room():
    async def scene(batcher, worker):
        worker.go.clear()
        first = await ask(batcher, "a")
        await settle()
        leaving = await ask(batcher, *"bcdefghijk")
        for future in leaving:
            future.cancel()
        staying = await ask(batcher, "z")
        worker.go.set()
        assert await answers(first + staying) == ["a", "z"]
        assert worker.batches == [["a"], ["z"]]

    play(scene)


def test_the_batch_of_a_worker_that_dies_is_read_one_by_one():
    async def scene(batcher, worker):
        worker.go.clear()
        first = await ask(batcher, "0")
        await settle()
        futures = await ask(batcher, "a", "kill", "b")
        worker.go.set()
        assert await answers(first + futures) == ["0", "a", "reader-failed", "b"]
        assert worker.batches[:2] == [["0"], ["a", "kill", "b"]]
        assert all(len(batch) == 1 for batch in worker.batches[2:])
        assert worker.batches.count(["kill"]) == MAX_ATTEMPTS - 1
        assert worker.starts == 1 + MAX_ATTEMPTS
        assert batcher.ready

    play(scene)


def test_a_worker_that_takes_too_long_is_replaced():
    async def scene(batcher, worker):
        assert await answers(await ask(batcher, "hang")) == ["timeout"]
        assert await answers(await ask(batcher, "a")) == ["a"]
        assert worker.starts == 2

    play(scene, timeout_s=0.1)


def test_a_worker_that_dies_while_it_waits_is_replaced():
    async def scene(batcher, worker):
        await settle()
        worker.failing_starts = 2
        worker.ended.set_result(-9)
        await settle()
        assert not batcher.ready
        futures = await ask(batcher, "a")
        assert await answers(futures) == ["a"]
        assert worker.starts == 4
        assert worker.batches == [["a"]]

    play(scene)


def test_a_model_that_cannot_be_loaded():
    async def scene():
        worker = PlayedWorker()
        worker.failing_starts = 1
        batcher = Batcher([worker], max_batch=1, queue_size=1, timeout_s=1, metrics=Metrics())
        with pytest.raises(WorkerError, match="memory"):
            await batcher.start()

    asyncio.run(scene())


def test_who_is_there_has_not_left():
    """The rest of a request may still come; only the end of the connection counts."""
    said = iter(["http.request", "http.request", "http.disconnect", "http.request"])

    class Request:
        async def receive(self):
            return {"type": next(said)}

    asyncio.run(_until_left(Request()))
    assert list(said) == ["http.request"]
