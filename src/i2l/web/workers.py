"""One worker process as the server sees it: started, given batches, killed, started again.

Server and worker talk in frames: a length, a JSON header, and as many bytes as the header says. JSON and not
pickle: a worker opens files of strangers, and what it says back must not be able to run.
"""

import asyncio
import contextlib
import json
import struct
import sys
from collections.abc import Mapping, Sequence
from typing import Any, BinaryIO, Final

from i2l.errors import I2LError

_LENGTH: Final = struct.Struct(">I")


def pack_frame(header: dict[str, Any], blobs: list[bytes] | None = None) -> bytes:
    """Write a frame; the header gets the sizes of what follows it."""
    text = json.dumps({**header, "sizes": [len(blob) for blob in blobs or []]}).encode()
    return b"".join((_LENGTH.pack(len(text)), text, *(blobs or [])))


def receive_frame(file: BinaryIO) -> tuple[dict[str, Any], list[bytes]] | None:
    """Wait for a frame; None if the other side has gone."""
    length = file.read(_LENGTH.size)
    if len(length) < _LENGTH.size:
        return None
    header = json.loads(file.read(*_LENGTH.unpack(length)))
    return header, [file.read(size) for size in header["sizes"]]


async def receive_header(reader: asyncio.StreamReader) -> dict[str, Any]:
    """Wait for a frame without blobs.

    Raises:
        IncompleteReadError: if the other side has gone.
    """
    (length,) = _LENGTH.unpack(await reader.readexactly(_LENGTH.size))
    header: dict[str, Any] = json.loads(await reader.readexactly(length))
    return header


_LEAVE_S: Final = 3.0  # that a worker gets to leave by itself


class WorkerError(I2LError):
    """A worker that cannot start."""


class WorkerDiedError(Exception):
    """A worker that ended while it was reading."""


class Worker:
    """A process that runs `i2l.web.worker`."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        """Prepare to start one.

        Args:
            settings: arguments of `ReadingDesk`.
        """
        self._settings = dict(settings)
        self._process: asyncio.subprocess.Process | None = None
        self.description: dict[str, Any] = {}
        self.ended: asyncio.Task[int]  # done when the process is over

    @property
    def pid(self) -> int | None:
        """The process, if there is one."""
        return self._process.pid if self._process else None

    async def start(self) -> None:
        """Start the process and wait until it has its model.

        Raises:
            WorkerError: if the model cannot be loaded.
            WorkerDiedError: if the process ended before it said so.
        """
        self._process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "i2l.web.worker", json.dumps(self._settings)),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            start_new_session=True,  # Ctrl-C is for the server, which then lets its workers finish
        )
        self.ended = asyncio.create_task(self._process.wait())
        hello = await self._receive()
        if "failed" in hello:
            await self.stop()
            raise WorkerError(hello["failed"])
        self.description = hello["ready"]

    async def read(
        self, images: Sequence[bytes], options: Sequence[Mapping[str, Any]]
    ) -> list[dict[str, Any]]:
        """Have images read; give a reading or a failure for each.

        Raises:
            WorkerDiedError: if the process ended meanwhile.
        """
        assert self._process is not None
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(pack_frame({"options": list(options)}, list(images)))
            await self._process.stdin.drain()
        except ConnectionError as error:
            raise WorkerDiedError from error
        results: list[dict[str, Any]] = (await self._receive())["results"]
        return results

    async def _receive(self) -> dict[str, Any]:
        assert self._process is not None
        assert self._process.stdout is not None
        try:
            return await receive_header(self._process.stdout)
        except (asyncio.IncompleteReadError, ConnectionError) as error:
            raise WorkerDiedError from error

    async def stop(self) -> None:
        """End the process: by closing its pipe, and if it does not leave, by force."""
        if self._process is None:
            return
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            await asyncio.wait_for(self._process.wait(), _LEAVE_S)
        except TimeoutError:
            await self.kill()

    async def kill(self) -> None:
        """End the process at once."""
        if self._process is None:
            return
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()
        await self._process.wait()
