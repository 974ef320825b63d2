"""A server under siege: ordinary clients beside half requests that stay open and heads that do not end.

    python -m benchmarks.siege

Sixteen clients read the examples of the page one after the other. Meanwhile a thousand connections send half
a request and wait, coming back whenever they are cut off, and others send 100 MB of headers. Reported are the
answers of the ordinary clients, the memory of all processes of the server, its log, and what /health takes on
a connection that is kept.
"""

import argparse
import asyncio
import contextlib
import re
import resource
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.serve import Tally, ask
from i2l.web.routes import EXAMPLES

HALF = b"POST /api/read HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: image/png\r\nX-Slow: "
LONG = b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Long: "
PIECE = b"x" * (1 << 16)


@dataclass
class Besiegers:
    """What those who do not mean well have done."""

    half_requests: int = 0  # that were opened
    header_bytes: int = 0  # that were sent


@dataclass
class BesiegedServer:
    """An `i2l serve` of its own, with its log in a file."""

    process: subprocess.Popen[bytes]
    log: Path
    port: int

    def memory_mb(self) -> float:
        """Give the most memory that its processes have had, all together."""
        children = subprocess.run(
            ["ps", "-o", "pid=", "--ppid", str(self.process.pid)], capture_output=True, text=True, check=False
        ).stdout.split()
        peaks = []
        for pid in (self.process.pid, *map(int, children)):
            with contextlib.suppress(OSError):
                status = Path(f"/proc/{pid}/status").read_text()
                peaks.append(int(status.split("VmHWM:")[1].split()[0]) / 1024)
        return sum(peaks)


@contextlib.contextmanager
def besieged_server(arguments: Sequence[str]) -> Iterator[BesiegedServer]:
    """Start a server, and stop it."""
    command = [sys.executable, "-m", "i2l", "serve", "--no-browser", "--port", "0", *arguments]
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        with log.open("wb") as file:
            process = subprocess.Popen(command, stdout=file, stderr=file)
        try:
            while not (found := re.search(r"http://127.0.0.1:(\d+)", log.read_text())):
                if process.poll() is not None:
                    raise SystemExit(f"The server did not start: {log.read_text()}")
                time.sleep(0.1)
            yield BesiegedServer(process, log, int(found[1]))
        finally:
            process.terminate()
            process.wait()


@contextlib.asynccontextmanager
async def connected(port: int) -> AsyncIterator[asyncio.StreamWriter]:
    """Open a connection, and leave nothing of it."""
    _, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        yield writer
    finally:
        writer.transport.abort()


async def send_half(port: int, until: float, besiegers: Besiegers) -> None:
    """Send half a request and a byte every now and then; come back when cut off."""
    while time.monotonic() < until:
        with contextlib.suppress(OSError):
            async with connected(port) as writer:
                besiegers.half_requests += 1
                writer.write(HALF)
                while time.monotonic() < until and not writer.transport.is_closing():
                    await asyncio.sleep(0.5)
                    writer.write(b"x")
        await asyncio.sleep(0.1)


async def send_headers(port: int, until: float, total_bytes: int, besiegers: Besiegers) -> None:
    """Send heads that do not end, on as many connections as it takes."""
    while besiegers.header_bytes < total_bytes and time.monotonic() < until:
        with contextlib.suppress(OSError):
            async with connected(port) as writer:
                writer.write(LONG)
                for _ in range(1000):
                    if writer.transport.is_closing() or time.monotonic() >= until:
                        break
                    writer.write(PIECE)
                    besiegers.header_bytes += len(PIECE)
                    async with asyncio.timeout(2):
                        await writer.drain()


async def besiege(
    port: int,
    images: Sequence[bytes],
    *,
    clients: int = 16,
    half_requests: int = 1000,
    header_bytes: int = 100_000_000,
    seconds: float = 20,
) -> tuple[Tally, Besiegers]:
    """Let all of them ask for a time; give what the ordinary clients saw, and what the others did."""
    tally, besiegers = Tally(), Besiegers()
    started = time.monotonic()
    until = started + seconds
    hostile = [
        *(asyncio.create_task(send_half(port, until, besiegers)) for _ in range(half_requests)),
        *(asyncio.create_task(send_headers(port, until, header_bytes, besiegers)) for _ in range(4)),
    ]
    await asyncio.sleep(min(2.0, seconds / 4))  # they come first
    await asyncio.gather(*(ask(port, images, number, until, tally) for number in range(clients)))
    tally.seconds = time.monotonic() - started
    for task in hostile:
        task.cancel()
    await asyncio.gather(*hostile, return_exceptions=True)
    await asyncio.sleep(0.5)  # until the last connections are closed
    return tally, besiegers


def health_ms(port: int, *, count: int = 200) -> tuple[float, float]:
    """Give the first decile and the median of the time of /health on a kept connection, in milliseconds."""
    request = b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    times = []
    with socket.create_connection(("127.0.0.1", port)) as connection:
        for _ in range(count):
            started = time.perf_counter()
            connection.sendall(request)
            answer = b""
            while b"}" not in answer:
                answer += connection.recv(4096)
            times.append(time.perf_counter() - started)
    decile, median = np.percentile(times, (10, 50)) * 1000
    return float(decile), float(median)


def allow_connections(count: int) -> None:
    """Raise the limit of file handles of this process, which has both ends of none but one of each."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(count, most), most))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--model", help="folder or bundled name; the model in the box if not given")
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--half-requests", type=int, default=1000)
    parser.add_argument("--header-bytes", type=int, default=100_000_000)
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--timeout", type=float, default=30, help="of the server; more on a busy machine")
    options = parser.parse_args()
    images = [path.read_bytes() for path in sorted(EXAMPLES.glob("*.png"))]
    allow_connections(4096)
    model = ["--model", options.model] if options.model else []
    with besieged_server([*model, "--timeout", str(options.timeout)]) as server:
        decile, median = health_ms(server.port)
        print(f"/health on a kept connection: {median:.2f} ms (a tenth takes under {decile:.2f})")
        for half, header_bytes in ((0, 0), (options.half_requests, options.header_bytes)):
            tally, besiegers = asyncio.run(
                besiege(
                    server.port,
                    images,
                    clients=options.clients,
                    half_requests=half,
                    header_bytes=header_bytes,
                    seconds=options.seconds,
                )
            )
            print(f"beside {besiegers}: {tally.line()}", flush=True)
        print(
            f"memory {server.memory_mb():.0f} MB at most (wanted: under 500), "
            f"log {server.log.stat().st_size:,} bytes (wanted: under 1,000,000)"
        )


if __name__ == "__main__":
    main()
