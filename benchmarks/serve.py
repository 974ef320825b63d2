"""Serving under load: 64 clients for 60 seconds, with requests read together and one by one, in one run.

    python -m benchmarks.serve
    python -m benchmarks.serve --model runs/export --images scans/ --workers 2

Two servers run, alike but for --max-batch, and are asked in turn, a slice of time each: whatever else the
machine does meanwhile happens to both. Clients wait for their answer and ask again, after a 503 as late as it
says.
"""

import argparse
import asyncio
import json
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from i2l.web.routes import EXAMPLES

SLICES = 4  # that each server gets


@dataclass
class Tally:
    """What the clients of one server saw."""

    seconds: float = 0.0
    statuses: Counter[int] = field(default_factory=Counter)
    waits_s: list[float] = field(default_factory=list)

    @property
    def rate(self) -> float:
        """Images read a second."""
        return self.statuses[200] / self.seconds

    def line(self) -> str:
        """Say it in one line."""
        p50, p95, p99 = np.percentile(self.waits_s, (50, 95, 99)) if self.waits_s else (0.0, 0.0, 0.0)
        others = {status: count for status, count in self.statuses.items() if status != 200}
        return (
            f"{self.rate:6.2f} images/s, {self.statuses[200]} read, others {others or 'none'}, "
            f"wait {p50:.2f} s (95 %: {p95:.2f}, 99 %: {p99:.2f})"
        )


class RunningServer:
    """An `i2l serve` of its own."""

    def __init__(self, arguments: Sequence[str]) -> None:
        command = [sys.executable, "-m", "i2l", "serve", "--no-browser", "--port", "0", *arguments]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not (found := re.search(r"http://127.0.0.1:(\d+)", line)):
            raise SystemExit(f"The server did not start: {line}")
        self.port = int(found[1])

    def stop(self) -> None:
        """Ask it to end."""
        self._process.terminate()
        self._process.wait()


async def ask(port: int, images: Sequence[bytes], number: int, until: float, tally: Tally) -> None:
    """Be one client, on one connection; plain sockets, so that little of the machine goes to asking."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    while time.monotonic() < until:
        image = images[number % len(images)]
        number += 1
        head = (
            f"POST /api/read HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: image/png\r\n"
            f"Content-Length: {len(image)}\r\n\r\n"
        )
        started = time.monotonic()
        writer.write(head.encode() + image)
        answer = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        body = await reader.readexactly(int(answer.split("content-length: ")[1].split("\r\n")[0]))
        status = int(answer.split()[1])
        tally.statuses[status] += 1
        if status == 200:
            tally.waits_s.append(time.monotonic() - started)
            json.loads(body)
        elif status == 503:
            retry_after_s = int(answer.split("retry-after: ")[1].split("\r\n")[0])
            writer.close()  # the server would not keep it open as long
            await asyncio.sleep(max(0.0, min(retry_after_s, until - time.monotonic())))
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.close()


async def load(port: int, images: Sequence[bytes], *, clients: int, seconds: float, tally: Tally) -> None:
    """Let clients ask for a time, and wait for their last answers."""
    started = time.monotonic()
    await asyncio.gather(*(ask(port, images, number, started + seconds, tally) for number in range(clients)))
    tally.seconds += time.monotonic() - started


async def mean_batch(port: int) -> float:
    """Ask a server how many images it read together, on average."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
    text = (await reader.read()).decode()
    writer.close()
    total, count = (float(text.split(f"\ni2l_batch_size_{name} ")[1].split()[0]) for name in ("sum", "count"))
    return total / max(1, count)


def run(
    arguments: Sequence[str], images: Sequence[bytes], *, clients: int, seconds: float, max_batch: int
) -> tuple[Tally, Tally]:
    """Ask both servers in turn; give what their clients saw, batching first."""
    servers = [RunningServer([*arguments, "--max-batch", str(size)]) for size in (max_batch, 1)]
    tallies = Tally(), Tally()
    try:
        for server in servers:
            asyncio.run(load(server.port, images, clients=2, seconds=1, tally=Tally()))
        for _ in range(SLICES):
            for server, tally in zip(servers, tallies, strict=True):
                asyncio.run(load(server.port, images, clients=clients, seconds=seconds / SLICES, tally=tally))
        for server, tally, name in zip(servers, tallies, ("batching", "one by one"), strict=True):
            together = asyncio.run(mean_batch(server.port))
            print(f"{name:10} {tally.line()}, {together:.1f} together", flush=True)
    finally:
        for server in servers:
            server.stop()
    return tallies


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--model", help="folder or bundled name; the model in the box if not given")
    parser.add_argument("--images", type=Path, default=EXAMPLES, help="folder with PNG files")
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=60, help="for each server")
    parser.add_argument("--max-batch", type=int, default=32)
    parser.add_argument("--workers", type=int, default=1)
    options = parser.parse_args()
    images = [path.read_bytes() for path in sorted(options.images.glob("*.png"))]
    arguments = ["--workers", str(options.workers)]
    if options.model:
        arguments += ["--model", options.model]
    print(
        f"{options.clients} clients, {options.seconds:g} s each, {len(images)} images, "
        f"{options.workers} workers"
    )
    batched, single = run(
        arguments,
        images,
        clients=options.clients,
        seconds=options.seconds,
        max_batch=options.max_batch,
    )
    print(f"batching reads {batched.rate / single.rate:.2f} times as many (wanted: 2)")


if __name__ == "__main__":
    main()
