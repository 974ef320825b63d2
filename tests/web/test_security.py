"""Who may ask: tokens, names of the server and other sites; the application without workers and sockets."""

import asyncio
import io
import logging
import re
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import httpx2
import pytest
from fastapi import Request
from PIL import Image

from i2l.errors import I2LError
from i2l.images.open import ImageError, NotAnImageError, OversizedImageError
from i2l.images.prepare import ImageTooLargeError
from i2l.web import routes, schemas, worker, workers
from i2l.web.answers import describe_failure
from i2l.web.app import create_app, run_server
from i2l.web.routes import ServeOptions
from i2l.web.security import LOOPBACK, ProblemError, check_token, require_usable_token
from i2l.web.uploads import declared_bytes, read_body
from i2l.web.worker import ReadingDesk
from tests.images.hostile import png, tiff_in_pieces

TOKEN = "secret"


def ask(requests, **options):
    """Ask the application in this process; give the answers in order."""
    app = create_app(ServeOptions(**options))

    async def ask_all():
        transport = httpx2.ASGITransport(app=app)
        async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1:8501") as client:
            return await asyncio.gather(*(client.request(*request[:2], **request[2]) for request in requests))

    try:
        return asyncio.run(ask_all())
    finally:
        app.state.server.writer.shutdown()


def get(path, *headers):
    return "GET", path, {"headers": list(headers)}


WRONG = ["", " ", "s", "secre", "secret ", " secret", "secretx", "SECRET", "secret\xe9", "x", "secret,secret"]


@pytest.mark.parametrize("given", WRONG)
def test_only_the_whole_token_opens(given):
    for authorization in (f"Bearer {given}", given, f"Basic {given}", "Bearer", "", None):
        with pytest.raises(ProblemError, match="Authorization: Bearer TOKEN"):
            check_token(authorization, TOKEN)
    check_token(f"Bearer {TOKEN}", TOKEN)
    check_token(f"bearer {TOKEN}", TOKEN)
    check_token(None, None)


def test_everything_that_costs_or_tells_asks_for_the_token():
    paths = ["/api/models", "/api/examples", "/metrics"]
    answers = ask(
        [get(path, ("Authorization", f"Bearer {said}")) for path in paths for said in ("", "secre", "x")]
        + [("POST", path, {}) for path in ("/api/read", "/api/read/batch", "/api/strokes", "/api/latex")],
        token=TOKEN,
    )
    assert {answer.status_code for answer in answers} == {401}
    assert {answer.headers["www-authenticate"] for answer in answers} == {"Bearer"}
    right = ("Authorization", f"Bearer {TOKEN}")
    answers = ask([get("/metrics", right), get("/health"), get("/")], token=TOKEN)
    assert [answer.status_code for answer in answers] == [200] * 3


@pytest.mark.parametrize("token", ["", " ", "two words", "tab\t", "newline\n", "schlüssel", "ключ", "\x7f"])
def test_a_token_that_nobody_can_send_is_refused_at_the_start(token):
    with pytest.raises(I2LError, match=r"openssl rand"):
        require_usable_token(token)
    with pytest.raises(I2LError, match=r"token"):
        create_app(ServeOptions(token=token))


@pytest.mark.parametrize("given", [["--token", ""], ["--token", "zwei worte"], None])
def test_the_command_refuses_an_empty_token(given, monkeypatch):
    from typer.testing import CliRunner

    from i2l.cli import app

    if given is None:
        monkeypatch.setenv("I2L_TOKEN", "")
    result = CliRunner().invoke(app, ["serve", "--no-browser", "--port", "0", *(given or [])])
    assert isinstance(result.exception, I2LError)
    assert "openssl rand" in str(result.exception)


HOSTS = {
    "localhost": 200,
    "LOCALHOST:8501": 200,
    "127.0.0.1:80": 200,
    "[::1]:8501": 200,
    "evillocalhost": 421,
    "evil.localhost": 421,
    "localhost.evil.com": 421,
    "evil@localhost": 421,
    "evil:x@localhost": 421,
    "localhost/x": 421,
    "localhost:80:80": 421,
    "localhost:x": 421,
    "[::1": 421,
    "::1": 421,
    "localhost ": 421,
    "": 421,
}


def test_the_name_must_be_exactly_one_that_is_known():
    answers = ask([get("/health", ("Host", host)) for host in HOSTS], hosts=LOOPBACK)
    assert {host: answer.status_code for host, answer in zip(HOSTS, answers, strict=True)} == HOSTS


@pytest.mark.parametrize("hosts", [LOOPBACK, ()])
def test_two_names_are_refused(hosts):
    for second in ("localhost", "evil.com"):
        (answer,) = ask([get("/health", ("Host", "localhost"), ("Host", second))], hosts=hosts)
        assert (answer.status_code, answer.json()["type"]) == (400, "/docs#malformed")


@pytest.mark.parametrize(
    ("origin", "status"),
    [
        ("http://localhost:8501", 415),  # it may ask, and has sent nothing
        ("http://LOCALHOST:8501", 415),
        ("http://localhost:8502", 403),
        ("http://localhost", 403),
        ("http://localhost:85010", 403),
        ("http://localhost:8501.evil.com", 403),
        ("ftp://localhost:8501", 403),
        ("null", 403),
        ("", 403),
    ],
)
def test_another_port_is_another_site(origin, status):
    headers = [("Host", "localhost:8501"), ("Origin", origin)]
    (answer,) = ask([("POST", "/api/read", {"headers": headers})], hosts=LOOPBACK)
    assert answer.status_code == status


def test_writing_a_formula_holds_nobody_up(monkeypatch):
    def slowly(_):
        time.sleep(0.5)
        return "x"

    monkeypatch.setattr(routes, "readable_formula", slowly)
    done = []

    async def note(scope, receive, send):
        await app(scope, receive, send)
        done.append(scope["path"])

    app = create_app(ServeOptions())

    async def ask_both():
        transport = httpx2.ASGITransport(app=note)
        async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            latex = asyncio.create_task(client.post("/api/latex", json={"tokens": ["x"]}))
            await asyncio.sleep(0.1)
            await client.get("/health")
            assert (await latex).json() == {"latex": "x"}

    asyncio.run(ask_both())
    app.state.server.writer.shutdown()
    assert done == ["/health", "/api/latex"]


def test_a_worker_that_does_not_leave_is_ended(monkeypatch):
    monkeypatch.setattr(workers, "_LEAVE_S", 0.2)

    async def stop_one():
        one = workers.Worker({})
        one._process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", "import time; time.sleep(60)", stdin=subprocess.PIPE
        )
        async with asyncio.timeout(20):
            await one.stop()
        return one._process.returncode

    assert asyncio.run(stop_one()) == -9


class BrokenReader:
    """A reader with a bug."""

    def __init__(self, error):
        self.error = error

    def with_options(self, **_):
        return self

    def read_many(self, *_, **__):
        raise self.error


def test_an_unexpected_error_in_a_worker_is_logged_with_its_traceback(monkeypatch, caplog):
    broken = BrokenReader(ZeroDivisionError("who divides?"))
    monkeypatch.setattr(worker.Reader, "from_options", lambda options: broken)
    monkeypatch.setattr(worker, "check_image", lambda *_, **__: None)
    options = {"beam": 1, "n_best": 1, "guard": True, "scale": None, "formats": []}
    desk = ReadingDesk(model=None, threads=1, max_pixels=1)
    with caplog.at_level(logging.ERROR):
        results = desk.read([(b"one", options), (b"two", options)])
    assert [result["kind"] for result in results] == ["reader-failed"] * 2
    assert "who divides?" not in str(results)
    assert "Traceback" in caplog.text
    assert "who divides?" in caplog.text
    assert "in read_many" in caplog.text


def test_a_formula_that_is_too_large_is_an_image_error_and_413(monkeypatch):
    assert issubclass(ImageTooLargeError, ImageError)
    failure = describe_failure(ImageTooLargeError("The formula is too large."))
    assert failure == {"kind": "too-large", "detail": "The formula is too large."}
    assert ProblemError(failure["kind"], "").status == 413
    assert describe_failure(I2LError("no"))["kind"] == "not-a-formula"


@pytest.mark.parametrize(("kind", "longest"), [("image/png", 3_000), ("application/json", 4_000)])
def test_what_goes_around_a_file_may_be_64_kibibytes(kind, longest):
    def declared(length):
        headers = [(b"content-type", kind.encode()), (b"content-length", str(length).encode())]
        return declared_bytes(Request({"type": "http", "headers": headers}), max_bytes=3_000)

    assert declared(longest + 65_536) == longest + 65_536
    with pytest.raises(ProblemError):
        declared(longest + 65_537)


def test_a_body_of_unknown_length_is_read_up_to_the_limit_and_no_further():
    def read(*chunks):
        left = [*chunks, b""]

        async def receive():
            return {"type": "http.request", "body": left.pop(0), "more_body": bool(left)}

        request = Request({"type": "http", "headers": []}, receive)
        return asyncio.run(read_body(request, max_bytes=10, timeout_s=60, take=taken.append))

    taken = []
    assert read(b"12345", b"67890") == b"1234567890"
    assert sum(taken) == 10
    for chunks in ((b"12345", b"678901"), (b"12345678901",)):
        taken = []
        with pytest.raises(ProblemError) as refused:
            read(*chunks)
        assert refused.value.kind == "too-large"
        assert sum(taken) <= 10


@pytest.mark.parametrize(
    ("token", "browser", "opened"),
    [(None, True, ""), ("a+b?c", True, "/#token=a%2Bb%3Fc"), (None, False, None)],
)
def test_the_browser_is_shown_the_page_with_its_token(monkeypatch, capsys, token, browser, opened):
    async def nothing(*_, **__):
        pass

    shown = []
    monkeypatch.setattr("i2l.web.batching.Batcher.start", nothing)
    monkeypatch.setattr("uvicorn.Server.serve", nothing)
    monkeypatch.setattr("webbrowser.open", shown.append)
    # in a thread of its own, as one that drives a browser has an event loop already
    with ThreadPoolExecutor(1) as pool:
        pool.submit(
            run_server, ServeOptions(token=token), host="127.0.0.1", port=0, open_browser=browser
        ).result()
    (address,) = re.findall(r"reads at (http://127\.0\.0\.1:\d+) ", capsys.readouterr().out)
    assert shown == ([] if opened is None else [address + opened])


def test_examples_of_the_description_are_answers_that_could_be_given():
    def numbers(value):
        for name, part in value.items() if isinstance(value, dict) else ():
            yield from ([part] if name in ("probability", "confidence", "unread") else numbers(part))
        for part in value if isinstance(value, list) else ():
            yield from numbers(part)

    (example,) = schemas.ReadingModel.model_config["json_schema_extra"]["examples"]
    answer = schemas.ReadingModel.model_validate(example)
    assert all(0 <= number <= 1 for number in numbers(example))
    assert (answer.image_width, answer.image_height) == tuple(answer.size)
    left, top, right, bottom = answer.ink
    assert 0 <= left < right <= answer.image_width
    assert 0 <= top < bottom <= answer.image_height
    for token in answer.tokens:
        assert left <= token.box[0] < token.box[2] <= right
        assert top <= token.box[1] < token.box[3] <= bottom


@pytest.mark.parametrize(
    ("processors", "given", "threads"),
    [(1, "", 1), (8, "", 8), (8, "--workers 3", 2), (2, "--workers 4", 1), (8, "--threads 5", 5)],
)
def test_processors_are_shared_among_the_workers(processors, given, threads, monkeypatch):
    from typer.testing import CliRunner

    from i2l.cli import app

    started = []
    monkeypatch.setattr("i2l.inference.onnx_backend.available_threads", lambda: processors)
    monkeypatch.setattr("i2l.web.app.run_server", lambda options, **_: started.append(options))
    options = ["--max-upload", "1.5", "--max-pixels", "0.25"]
    result = CliRunner().invoke(app, ["serve", "--no-browser", *options, *given.split()])
    assert result.exit_code == 0, result.output
    assert started[0].threads == threads
    assert (started[0].max_upload_bytes, started[0].max_pixels) == (1_500_000, 250_000)
    result = CliRunner().invoke(app, ["serve", "--no-browser", "--host", "0.0.0.0"])
    assert "Anyone who reaches 0.0.0.0" in result.output
    assert (started[0].hosts, started[1].hosts) == (LOOPBACK, ())


def test_a_picture_in_a_million_pieces_is_refused_before_it_is_opened():
    with pytest.raises(OversizedImageError, match="pieces"):
        worker.check_image(tiff_in_pieces(1_000_000), max_pixels=10**9)
    with pytest.raises(OversizedImageError, match="pixels"):
        worker.check_image(png(30, 20, bytes(31) * 20), max_pixels=599)
    worker.check_image(png(30, 20, bytes(31) * 20), max_pixels=600)


@pytest.mark.parametrize("kind", ["PPM", "TGA", "ICO", "JPEG2000"])
def test_only_formats_that_are_named_reach_a_decoder(kind):
    file = io.BytesIO()
    Image.new("RGB", (16, 16)).save(file, kind)
    with pytest.raises(NotAnImageError, match="Give one of PNG"):
        worker.check_image(file.getvalue(), max_pixels=10**6)


def test_strangers_make_no_new_names_in_the_counters():
    app = create_app(ServeOptions())

    async def ask_twice():
        transport = httpx2.ASGITransport(app=app)
        async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1:8501") as client:
            return [(await client.get(path)).status_code for path in ("/made-up", "/health")]

    try:
        assert asyncio.run(ask_twice()) == [404, 200]
        counted = app.state.server.metrics.render().decode()
    finally:
        app.state.server.writer.shutdown()
    assert 'path="page",status="404"' in counted
    assert 'path="/health",status="200"' in counted
    assert "made-up" not in counted
