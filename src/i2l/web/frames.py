"""How the server and its workers talk: a length, a JSON header, and then as many bytes as the header says.

JSON and not pickle: a worker opens files of strangers, and what it says back must not be able to run.
"""

import asyncio
import json
import struct
from typing import Any, BinaryIO, Final

_LENGTH: Final = struct.Struct(">I")


def pack_frame(header: dict[str, Any], blobs: list[bytes] | None = None) -> bytes:
    """Give a frame; the header gets the sizes of what follows it."""
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
