"""Under load, and when things die: `i2l serve` as a process, asked over HTTP by many at once."""

import asyncio
import contextlib
import json
import os
import resource
import select
import signal
import socket
import subprocess
import sys
import time

import httpx2
import pytest

from benchmarks.siege import allow_connections, besiege, besieged_server
from i2l.errors import I2LError
from i2l.web.security import ProblemError
from i2l.web.uploads import UploadBudget
from tests.inference.conftest import FORMULAS
from tests.web.conftest import png, start_server, wait_until

IMAGES = {formula.replace(" ", ""): png(formula) for formula in FORMULAS}
HEADERS = {"Content-Type": "image/png"}


async def load(address, *, clients, seconds, meanwhile=None):
    """Let clients ask one after the other; give how often each status came, and the wrong readings."""
    statuses, wrong = {}, []
    until = time.monotonic() + seconds
    limits = httpx2.Limits(max_connections=clients)
    async with httpx2.AsyncClient(base_url=address, timeout=60, limits=limits) as client:

        async def ask(number):
            formulas = list(IMAGES)
            while time.monotonic() < until:
                formula = formulas[number % len(formulas)]
                number += 1
                answer = await client.post("/api/read", content=IMAGES[formula], headers=HEADERS)
                statuses[answer.status_code] = statuses.get(answer.status_code, 0) + 1
                if answer.status_code == 200 and answer.json()["latex"].replace(" ", "") != formula:
                    wrong.append((formula, answer.json()["latex"]))
                elif answer.status_code == 503:
                    await asyncio.sleep(float(answer.headers["Retry-After"]))

        async def disturb():
            if meanwhile:
                await meanwhile()

        await asyncio.gather(disturb(), *(ask(number) for number in range(clients)))
    return statuses, wrong


@pytest.mark.slow
def test_64_clients_and_workers_that_are_killed(model):
    server = start_server(model, "--workers", "2", "--timeout", "120")  # a busy machine turns nobody away
    pids = server.worker_pids()
    assert len(pids) == 2

    async def kill():
        await asyncio.sleep(1)
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
            await asyncio.sleep(0.5)

    try:
        statuses, wrong = asyncio.run(load(server.address, clients=64, seconds=6, meanwhile=kill))
        assert set(statuses) == {200}, statuses
        assert statuses[200] >= 64, "each client was answered"
        assert not wrong
        assert server.metric("i2l_worker_restarts_total") == 2
        assert server.metric("i2l_images_total") / server.metric("i2l_batch_size_count") > 3, "read together"
        wait_until(lambda: server.metric("i2l_workers_ready") == 2)
        assert not set(server.worker_pids()) & set(pids)
    finally:
        server.stop()
    assert not any("Traceback" in line for line in server.log)


@pytest.mark.slow
def test_a_full_queue_is_said_and_everything_else_read(model):
    server = start_server(model, "--queue", "4", "--max-batch", "2")
    try:
        statuses, wrong = asyncio.run(load(server.address, clients=32, seconds=3))
        assert set(statuses) == {200, 503}
        assert not wrong
    finally:
        server.stop()


@pytest.mark.slow
def test_who_leaves_is_not_read(model):
    server = start_server(model, "--max-batch", "1")
    try:
        os.kill(server.worker_pids()[0], signal.SIGSTOP)  # nothing is read meanwhile
        waiting = [connect(server) for _ in range(5)]
        wait_until(lambda: server.metric("i2l_images_waiting") == 4)
        for connection in waiting:
            connection.close()
        wait_until(lambda: server.metric('i2l_images_total{outcome="left"}') == 5)
        os.kill(server.worker_pids()[0], signal.SIGCONT)
        answer = httpx2.post(f"{server.address}/api/read", content=IMAGES["a"], headers=HEADERS)
        assert answer.json()["latex"] == "a"
        assert server.metric("i2l_batch_size_count") == 2, "the one that was being read, and the last"
    finally:
        server.stop()
    assert len(server.log) == 1, server.log


def connect(server):
    connection = socket.create_connection(("127.0.0.1", server.port))
    image = IMAGES["a"]
    connection.sendall(
        f"POST /api/read HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nContent-Type: image/png\r\n"
        f"Content-Length: {len(image)}\r\n\r\n".encode()
        + image
    )
    return connection


@pytest.mark.slow
def test_what_takes_too_long_ends_and_the_worker_is_replaced(model):
    server = start_server(model, "--timeout", "1.5")
    try:
        os.kill(server.worker_pids()[0], signal.SIGSTOP)
        answer = httpx2.post(f"{server.address}/api/read", content=IMAGES["a"], headers=HEADERS, timeout=10)
        assert (answer.status_code, answer.json()["type"]) == (504, "/docs#timeout")
        wait_until(
            lambda: server.metric("i2l_workers_ready") == 1 and server.metric("i2l_worker_restarts_total")
        )
        answer = httpx2.post(f"{server.address}/api/read", content=IMAGES["a"], headers=HEADERS, timeout=10)
        assert answer.json()["latex"] == "a"
        slow = connect_slowly(server)
        assert slow.split()[1] == b"408"
    finally:
        server.stop()


def connect_slowly(server):
    """Promise an image and send half of it."""
    with socket.create_connection(("127.0.0.1", server.port)) as connection:
        head = f"POST /api/read HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nContent-Type: image/png\r\n"
        connection.sendall(f"{head}Content-Length: 5000\r\n\r\n".encode() + b"\x89PNG")
        return connection.recv(100)


@pytest.mark.slow
def test_a_dead_worker_is_noticed_without_a_request_and_the_end_is_graceful(model):
    server = start_server(model)
    (pid,) = server.worker_pids()
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: server.metric("i2l_worker_restarts_total") == 1 and server.metric("i2l_workers_ready"))
    (pid,) = server.worker_pids()
    os.kill(pid, signal.SIGSTOP)
    connection = connect(server)
    wait_until(lambda: server.metric("i2l_images_waiting") == 0)
    server.process.send_signal(signal.SIGTERM)
    time.sleep(0.3)
    os.kill(pid, signal.SIGCONT)
    with connection:
        assert connection.recv(12) == b"HTTP/1.1 200"
    assert server.stop() in (0, -signal.SIGTERM)
    wait_until(lambda: not os.path.exists(f"/proc/{pid}"))


@pytest.mark.slow
def test_a_token_other_sites_and_no_torch(model, tmp_path):
    """A server with a token and CORS, in a Python that has no torch, and whose disk must stay untouched."""
    (tmp_path / "torch.py").write_text("raise ModuleNotFoundError('torch', name='torch')")
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    server = start_server(
        *(model, "--allow-origin", "https://example.com", "--allow-host", "127.0.0.1"),
        PYTHONPATH=str(tmp_path),
        TMPDIR=str(scratch),
        I2L_TOKEN="secret",
    )
    try:
        with httpx2.Client(base_url=server.address, timeout=30) as client:
            for path in ("/api/models", "/metrics"):
                for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": "secret"}):
                    answer = client.get(path, headers=headers)
                    assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer")
            assert client.get("/health").status_code == client.get("/").status_code == 200
            headers = {"Authorization": "Bearer secret", "Origin": "https://example.com"}
            big = IMAGES["a"] + bytes(3_000_000)
            answer = client.post("/api/read", files={"file": big}, headers=headers)
            assert answer.json()["latex"] == "a"
            assert answer.headers["access-control-allow-origin"] == "https://example.com"
            asked = {"Origin": "https://example.com", "Access-Control-Request-Method": "POST"}
            assert client.options("/api/read", headers=asked).status_code == 200
            answer = client.post("/api/read", headers={**headers, "Origin": "https://example.org"})
            assert answer.status_code == 403
            assert client.get("/health", headers={"Host": "localhost"}).status_code == 421
        assert {path.name for path in scratch.iterdir()} <= {".ses"}, "onnxruntime's, when it is imported"
    finally:
        server.stop()


def test_uploads_share_a_budget():
    budget = UploadBudget(100)
    with budget.upload() as take:
        take(30)
        take(30)
        with budget.upload() as take_more:
            take_more(20)
            with pytest.raises(ProblemError) as caught:
                take_more(30)
        assert (caught.value.status, caught.value.headers["Retry-After"]) == (503, "1")
        with budget.upload() as take_more:
            take_more(40)
    with budget.upload() as take:
        take(100)


def test_who_only_says_that_much_will_come_shuts_nobody_out(server):
    """Thirteen clients that declared 20 MB each were enough."""
    head = (
        f"POST /api/read HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nContent-Type: image/png\r\n"
        "Content-Length: 20000000\r\n\r\n"
    )
    with contextlib.ExitStack() as stack:
        for _ in range(20):
            idle = stack.enter_context(socket.create_connection(("127.0.0.1", server.port)))
            idle.sendall(head.encode() + b"\x89PNG")
        answer = httpx2.post(f"{server.address}/api/read", content=IMAGES["a"], headers=HEADERS, timeout=30)
    assert (answer.status_code, answer.json().get("latex")) == (200, "a")


def test_more_uploads_than_there_is_memory_for(server):
    """Nineteen megabytes each, all but a little of it sent: one too many is refused, small ones are read."""
    head = (
        f"POST /api/read HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nContent-Type: image/png\r\n"
        "Content-Length: 19500000\r\n\r\n"
    )
    with contextlib.ExitStack() as stack:
        waiting = []
        for _ in range(14):
            waiting.append(stack.enter_context(socket.create_connection(("127.0.0.1", server.port))))
            with contextlib.suppress(ConnectionError):
                waiting[-1].sendall(head.encode() + bytes(19_000_000))
        refused, _, _ = select.select(waiting, [], [], 25)
        assert len(refused) == 1
        assert read_one(server) == 200


def read_one(server):
    url = f"{server.address}/api/read"
    return httpx2.post(url, content=IMAGES["a"], headers=HEADERS, timeout=60).status_code


@pytest.mark.slow
def test_a_siege(model):
    """1,000 half requests that come back and 100 MB of headers beside 16 ordinary clients."""
    allow_connections(4096)
    with besieged_server(["--model", str(model), "--threads", "1", "--timeout", "120"]) as server:
        images = list(IMAGES.values())
        tally, besiegers = asyncio.run(besiege(server.port, images, seconds=20))
        assert besiegers.half_requests >= 1000
        assert set(tally.statuses) == {200}, tally.statuses
        assert tally.statuses[200] >= 16
        assert server.memory_mb() < 500
        assert server.log.stat().st_size < 100_000


@pytest.mark.slow
def test_no_file_handles_left_and_more_again(model):
    """Accepting fails for a while; the log stays short, and then everything goes on."""
    server = start_server(model)
    pid = server.process.pid
    limits = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    try:
        httpx2.get(f"{server.address}/health")
        used = len(os.listdir(f"/proc/{pid}/fd"))
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (used, limits[1]))
        with contextlib.ExitStack() as stack:
            for _ in range(60):  # as many as may wait to be accepted
                waiting = stack.enter_context(socket.create_connection(("127.0.0.1", server.port)))
                waiting.sendall(b"GET /health HTTP/1.1\r\n")
            time.sleep(3)
            resource.prlimit(pid, resource.RLIMIT_NOFILE, limits)
            assert httpx2.get(f"{server.address}/health", timeout=30).status_code == 200
    finally:
        server.stop()
    log = "".join(server.log)
    assert "No connection can be accepted" in log
    assert "Traceback" not in log
    assert len(log) < 2000


def serve(*arguments):
    command = [sys.executable, "-m", "i2l", "serve", "--no-browser", *map(str, arguments)]
    return subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)


def test_what_is_wrong_at_the_start_is_one_sentence(model, tmp_path):
    missing = serve("--model", tmp_path / "nothing")
    assert missing.returncode == 1
    assert "There is no model" in missing.stderr
    with socket.create_server(("127.0.0.1", 0)) as taken:
        busy = serve("--model", model, "--port", taken.getsockname()[1])
    assert busy.returncode == 1
    assert "choose another --port" in busy.stderr
    (tmp_path / "broken").mkdir()
    for name in ("config.json", "vocab.json"):
        (tmp_path / "broken" / name).write_bytes((model / name).read_bytes())
    for name in ("encoder.onnx", "step.onnx"):
        (tmp_path / "broken" / name).write_bytes(b"broken")
    broken = serve("--model", tmp_path / "broken", "--port", 0)
    assert broken.returncode == 1
    assert "onnxruntime cannot load" in broken.stderr
    assert "Traceback" not in missing.stderr + busy.stderr + broken.stderr


def test_a_worker_whose_server_has_gone_ends_quietly(tmp_path):
    """As after Ctrl-C while it loads its model."""
    settings = {"model": str(tmp_path / "nothing"), "threads": 1, "max_pixels": 1}
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "i2l.web.worker", json.dumps(settings)]
    ended = subprocess.run(command, check=False, stdout=writing, stderr=subprocess.PIPE, timeout=60)
    os.close(writing)
    assert ended.returncode == -signal.SIGPIPE
    assert ended.stderr == b""


def test_the_server_and_its_workers_load_no_torch():
    code = "import sys, i2l.web.app, i2l.web.worker; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert not set(loaded.split()) & {"torch", "onnx", "scipy", "pyarrow", "pypdfium2", "ray"}


def test_a_missing_extra_is_said(monkeypatch):
    from i2l.cli.apps import serve as command

    monkeypatch.setitem(sys.modules, "uvicorn", None)
    with pytest.raises(I2LError, match=r"\[serve\]"):
        command()
