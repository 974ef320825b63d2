"""Connections that are slow, long, many or wrong, against uvicorn with our limits around an application."""

import asyncio
import contextlib
import json
import logging
import socket
import threading
import time

import pytest
import uvicorn

from i2l.web import connections
from i2l.web.connections import ConnectionLimits, LimitedProtocol, RateLimit, log_loop_error

GET = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"


async def application(scope, receive, send):
    """Answer with how many bytes came; /slow answers late, /endless writes much, /early does not read."""
    body = 0
    while scope["path"] != "/early":
        message = await receive()
        if message["type"] == "http.disconnect":
            return
        body += len(message["body"])
        if not message["more_body"]:
            break
    if scope["path"] == "/slow":
        await asyncio.sleep(1)
    answer = str(body).encode()
    pieces = 4000 if scope["path"] == "/endless" else 0
    length = str(len(answer) + (pieces << 16)).encode()
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", length)]})
    for _ in range(pieces):
        await send({"type": "http.response.body", "body": bytes(1 << 16), "more_body": True})
    await send({"type": "http.response.body", "body": answer})


@contextlib.contextmanager
def serving(**limits):
    """Serve in a thread; give the port, and the protocol, which knows its connections."""
    protocol = LimitedProtocol.with_limits(ConnectionLimits(**limits))
    listener = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(
        application, http=protocol, ws="none", lifespan="off", log_config=None, timeout_graceful_shutdown=1
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=lambda: asyncio.run(server.serve(sockets=[listener])))
    thread.start()
    try:
        yield listener.getsockname()[1], server.server_state.connections
    finally:
        server.should_exit = True
        thread.join()
        listener.close()


def connect(port):
    return socket.create_connection(("127.0.0.1", port), timeout=10)


def receive(connection):
    """Read until the other side closes."""
    said = b""
    with contextlib.suppress(ConnectionError):
        while piece := connection.recv(1 << 16):
            said += piece
    return said


def ask(port, request, *, pieces=()):
    """Send a request, then pieces until nobody listens; give the status and the body of the answer."""
    with connect(port) as connection:
        connection.sendall(request)
        with contextlib.suppress(ConnectionError):
            for piece in pieces:
                connection.sendall(piece)
        head, _, body = receive(connection).partition(b"\r\n\r\n")
    return int(head.split()[1]) if head else None, body


def close(request):
    return request.replace(b"\r\n", b"\r\nConnection: close\r\n", 1)


LONG_HEADS = {
    "one header": b"GET / HTTP/1.1\r\nHost: a\r\nX: " + b"x" * 40_000,
    "one header, whole": b"GET / HTTP/1.1\r\nHost: a\r\nX: " + b"x" * 40_000 + b"\r\n\r\n",
    "an address": b"GET /" + b"x" * 40_000 + b" HTTP/1.1\r\n",
    "many headers": b"GET / HTTP/1.1\r\nHost: a\r\n" + b"X: y\r\n" * 200,
    "a name": b"GET / HTTP/1.1\r\n" + b"x" * 40_000,
    "trailers": b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n" + b"X: y\r\n" * 200,
}


@pytest.mark.parametrize("name", LONG_HEADS)
def test_a_long_head_is_refused(name):
    with serving() as (port, _):
        status, body = ask(port, LONG_HEADS[name])
    if name == "trailers":  # the request is being answered by then
        assert status in (None, 200, 431)
    else:
        assert (status, json.loads(body)["type"]) == (431, "/docs#long-head")


@pytest.mark.parametrize(
    "start", [b"GET / HTTP/1.1\r\nX: ", LONG_HEADS["trailers"][:70] + b"0\r\nX: "], ids=["head", "trailer"]
)
def test_an_endless_head_is_cut_off(start):
    sent = 0

    def endless():
        nonlocal sent
        while sent < 100 << 20:
            sent += 1 << 20
            yield b"x" * (1 << 20)

    with serving() as (port, connections):
        ask(port, start, pieces=endless())
        assert sent < 20 << 20, "the rest was not wanted"
        wait_until(lambda: not connections)


def wait_until(condition, *, seconds=20):
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, "not in time"
        time.sleep(0.02)


def test_a_head_of_just_the_limit_is_waited_for():
    with serving(max_head_bytes=1000) as (port, _), connect(port) as connection:
        start = b"GET / HTTP/1.1\r\nHost: "
        connection.sendall(start + b"a" * (1000 - len(start)))
        connection.settimeout(0.3)
        with pytest.raises(TimeoutError):
            connection.recv(1)
        connection.settimeout(10)
        connection.sendall(b"a")
        assert receive(connection).startswith(b"HTTP/1.1 431")


def test_who_has_gone_is_forgotten():
    """Else it would be sent away in the place of one who is there, and more would be there than may be."""
    with serving(max_connections=8) as (port, connections), contextlib.ExitStack() as opened:
        connect(port).close()
        wait_until(lambda: not connections)
        for _ in range(8):
            opened.enter_context(connect(port)).sendall(GET.replace(b"/ ", b"/slow ", 1))
        wait_until(lambda: sum(one.cycle is not None for one in list(connections)) == 8)
        assert ask(port, GET)[0] == 503


def test_ordinary_heads_and_bodies_pass():
    headers = b"".join(b"X-%d: %s\r\n" % (number, b"y" * 200) for number in range(90))
    with serving() as (port, _):
        assert ask(port, close(GET.replace(b"\r\n\r\n", b"\r\n" + headers + b"\r\n"))) == (200, b"0")
        chunks = b"".join(b"1\r\nx\r\n" for _ in range(50_000)) + b"0\r\nA: b\r\n\r\n"
        head = close(b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n")
        status, body = ask(port, head + chunks)
        assert (status, body) == (200, b"50000"), "chunks are no head, however many"


def test_who_does_not_finish_a_head_is_cut_off():
    with serving(wait_s=0.5) as (port, connections), connect(port) as silent, connect(port) as slow:
        started = time.monotonic()
        slow.sendall(b"GET / HTTP/1.1\r\n")
        while time.monotonic() - started < 20:  # a header every now and then does not help
            try:
                slow.sendall(b"X: y\r\n")
            except ConnectionError:
                break
            time.sleep(0.05)
        assert time.monotonic() - started < 10
        assert receive(silent) == b""
        wait_until(lambda: not connections)


def test_who_does_not_finish_a_body_that_nobody_reads_is_cut_off():
    with serving(wait_s=0.5) as (port, connections), connect(port) as slow:
        slow.sendall(b"POST /early HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n")
        assert slow.recv(12) == b"HTTP/1.1 200"
        with contextlib.suppress(ConnectionError):
            for _ in range(400):
                slow.sendall(b"x")
                time.sleep(0.05)
        wait_until(lambda: not connections)


def test_who_does_not_read_the_answer_is_cut_off():
    with serving(wait_s=0.5) as (port, connections), connect(port) as deaf:
        deaf.sendall(GET.replace(b"/ ", b"/endless ", 1))
        wait_until(lambda: connections)
        wait_until(lambda: not connections)


def test_a_request_may_take_longer_than_a_head():
    with serving(wait_s=0.3) as (port, _):
        assert ask(port, close(GET.replace(b"/ ", b"/slow ", 1))) == (200, b"0")


def test_half_requests_make_room_for_whole_ones():
    with serving(max_connections=20, wait_s=60) as (port, connections), contextlib.ExitStack() as stack:
        known = stack.enter_context(connect(port))
        known.sendall(GET)
        assert known.recv(12) == b"HTTP/1.1 200"
        half = [stack.enter_context(connect(port)) for _ in range(60)]
        for connection in half:
            with contextlib.suppress(ConnectionError):
                connection.sendall(b"GET / HTTP/1.1\r\n")
        for _ in range(10):
            assert ask(port, close(GET)) == (200, b"0")
        wait_until(lambda: len(connections) <= 20)
        assert receive(half[0]) == b"", "those who wait longest go"
        half[-1].sendall(b"Host: a\r\nConnection: close\r\n\r\n")
        assert b"200 OK" in receive(half[-1]), "those who came last stay"
        known.sendall(close(GET))
        assert b"200 OK" in receive(known), "who has asked before stays too"


def test_requests_that_are_being_answered_keep_their_place():
    with serving(max_connections=8) as (port, _), contextlib.ExitStack() as stack:
        busy = [stack.enter_context(connect(port)) for _ in range(8)]
        for connection in busy:
            connection.sendall(close(GET.replace(b"/ ", b"/slow ", 1)))
        time.sleep(0.3)
        status, body = ask(port, GET)
        assert (status, json.loads(body)["type"]) == (503, "/docs#busy")
        assert all(b"200 OK" in receive(connection) for connection in busy)


def test_pipelined_requests():
    with serving() as (port, _):
        with connect(port) as connection:
            connection.sendall(GET * 5 + close(GET))
            assert receive(connection).count(b"200 OK") == 6
        with connect(port) as connection:
            connection.sendall(GET * 3000)
            assert receive(connection).count(b"200 OK") < 3000, "not as many as anybody likes"


def test_what_is_no_request_is_a_problem():
    with serving() as (port, _):
        for nonsense in (
            b"\x16\x03\x01\x02\x00\x01",
            b"hello\r\n\r\n",
            b"GET / HTTP/9.9\r\n\r\n",
            b"\0" * 99,
        ):
            status, body = ask(port, nonsense)
            assert (status, json.loads(body)["type"]) == (400, "/docs#malformed")


def test_a_kept_connection_does_not_wait_for_receipts():
    with serving() as (port, connections), connect(port) as connection:
        connection.sendall(GET)
        assert connection.recv(12) == b"HTTP/1.1 200"
        (held,) = connections
        accepted = held.transport.get_extra_info("socket")
        assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_few_file_handles_are_few_connections(monkeypatch):
    import resource

    limits = ConnectionLimits()
    for handles, expected in ((100, 36), (20, 8), (65536, 512), (resource.RLIM_INFINITY, 512)):
        monkeypatch.setattr(resource, "getrlimit", lambda _, handles=handles: (handles, handles))
        assert limits.connections == expected


def records(caplog):
    return [record.getMessage() for record in caplog.records]


def test_a_log_line_comes_a_few_times_a_minute(caplog):
    now = [0.0]
    logger = logging.getLogger("i2l.test-of-limits")
    limit = RateLimit(per_period=3, period_s=60, clock=lambda: now[0])
    logger.addFilter(limit)
    try:
        for number in range(1000):
            logger.warning("Number %d is wrong", number)
            logger.warning("Another thing")
        assert len(records(caplog)) == 6
        assert records(caplog)[-1] == "Another thing" or records(caplog)[-2] == "Another thing"
        now[0] = 61
        caplog.clear()
        logger.warning("Number %d is wrong", 1)
        assert records(caplog) == ["Number 1 is wrong (and 997 more of these before)"]
        for number in range(3000):
            logger.warning(f"Kind {number}")
        assert len(limit._seen) <= 1000
    finally:
        logger.removeFilter(limit)


def test_no_file_handles_left_is_one_line(caplog):
    loop = asyncio.new_event_loop()
    try:
        error = OSError(24, "Too many open files")
        log_loop_error(loop, {"message": "socket.accept() out of system resource", "exception": error})
        assert records(caplog) == [
            "No connection can be accepted: [Errno 24] Too many open files. Raise `ulimit -n`."
        ]
        assert caplog.records[0].exc_info is None
        log_loop_error(loop, {"message": "something else", "exception": ValueError("x")})
        assert caplog.records[1].exc_info
    finally:
        loop.close()


@pytest.mark.parametrize(
    ("handles", "platform", "allowed"),
    [
        (1024, "linux", 512),
        (577, "linux", 512),
        (576, "linux", 512),
        (575, "linux", 511),
        (73, "linux", 9),
        (71, "linux", 8),
        (-1, "linux", 512),
        (100, "win32", 512),
    ],
)
def test_there_are_as_many_connections_as_the_system_has_handles_for(handles, platform, allowed, monkeypatch):
    monkeypatch.setattr(connections.sys, "platform", platform)
    monkeypatch.setattr(connections.resource, "getrlimit", lambda _: (handles, handles))
    assert ConnectionLimits().connections == allowed
