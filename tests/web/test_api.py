"""The API over HTTP: three ways to send an image, every option, and a problem for all that is wrong."""

import base64
import io
import json
import re
import socket

import httpx2
import numpy as np
import pytest
from PIL import Image
from pydantic import ValidationError

from i2l.inference.reader import Reader
from i2l.web.app import create_app
from i2l.web.batching import Metrics
from i2l.web.routes import PAGE, ServeOptions
from i2l.web.schemas import PageOptions
from tests.images.hostile import png as png_by_hand
from tests.kept import assert_text_kept
from tests.web.conftest import png

IMAGE = png("x ^ { 2 } = y")


def post(client, **content):
    return client.post("/api/read", **content)


def as_raw(image, **options):
    return {"content": image, "headers": {"Content-Type": "image/png"}, "params": options}


def without_chance(reading):
    return {name: value for name, value in reading.items() if name not in ("seconds", "request_id")}


def test_every_way_to_send_an_image_gives_the_same(client, model):
    source = base64.b64encode(IMAGE).decode()
    answers = [
        post(client, **as_raw(IMAGE)),
        post(client, content=IMAGE, headers={"Content-Type": "application/octet-stream"}),
        post(client, files={"file": IMAGE}),
        post(client, json={"src": source}),
        post(client, json={"src": f"data:image/png;base64,{source}"}),
    ]
    assert [answer.status_code for answer in answers] == [200] * 5
    readings = [without_chance(answer.json()) for answer in answers]
    assert all(reading == readings[0] for reading in readings)
    expected = without_chance(Reader(model).read(IMAGE).to_dict())
    assert {name: readings[0][name] for name in expected} == expected, "as i2l read --json"
    assert readings[0]["latex_styled"] == readings[0]["latex"] == "x^{2} = y"
    assert readings[0]["text"] == r"\( x^{2} = y \)"
    assert [readings[0]["image_width"], readings[0]["image_height"]] == expected["size"]


def test_options_in_the_query_a_form_and_json(client):
    options = {"n_best": 3, "formats": ["inline", "mathml"], "scale": 1, "beam": 5}
    source = base64.b64encode(IMAGE).decode()
    answers = [
        post(client, **as_raw(IMAGE, **options)),
        post(client, files={"file": IMAGE}, data=options),
        post(client, files={"file": IMAGE}, params=options),
        post(client, json={"src": source, **options}),
        post(client, **as_raw(IMAGE, **{**options, "formats": "inline, mathml"})),
    ]
    for reading in (answer.json() for answer in answers):
        assert len(reading["alternatives"]) >= 2
        assert [entry["type"] for entry in reading["data"]] == ["inline", "mathml"]
        assert reading["data"][0]["value"] == "$x^{2} = y$"
        assert reading["data"][1]["value"].startswith("<math")
        assert any(token["alternatives"] for token in reading["tokens"])
    greedy = post(client, **as_raw(IMAGE, beam=1, guard=False)).json()
    assert (greedy["latex"], greedy["alternatives"]) == ("x^{2} = y", [])


def test_the_ink_and_the_boxes_lie_on_the_image(client):
    reading = post(client, **as_raw(IMAGE)).json()
    pixels = np.asarray(Image.open(io.BytesIO(IMAGE)))
    rows, columns = np.nonzero(pixels < 128)
    left, top, right, bottom = reading["ink"]
    assert abs(left - columns.min()) <= 2
    assert abs(bottom - rows.max() - 1) <= 2
    for token in filter(lambda token: token["box"], reading["tokens"]):
        assert left <= token["box"][0] < token["box"][2] <= right
        assert top <= token["box"][1] < token["box"][3] <= bottom


def test_several_images_in_order_with_a_bad_one_among_them(client):
    images = [png("a"), b"nonsense", IMAGE, png("b + c")]
    form = client.post("/api/read/batch", files=[("files", image) for image in images]).json()["readings"]
    sources = [base64.b64encode(image).decode() for image in images]
    as_json = client.post("/api/read/batch", json={"images": sources}).json()["readings"]
    for readings in (form, as_json):
        assert [reading.get("latex") for reading in readings] == ["a", None, "x^{2} = y", "b + c"]
        assert (readings[1]["status"], readings[1]["type"]) == (415, "/docs#not-an-image")
    assert client.post("/api/read/batch", files={"other": ("a", "")}).status_code == 200
    assert client.post("/api/read/batch", data={"beam": "3"}).status_code == 415
    assert client.post("/api/read/batch", json={"images": []}).status_code == 422
    assert client.post("/api/read/batch", json={"images": ["AAAA"] * 33}).status_code == 422


def blank():
    file = io.BytesIO()
    Image.new("L", (200, 80), 255).save(file, "PNG")
    return file.getvalue()


BAD = {
    "nothing": (as_raw(b""), 415, "empty"),
    "text": (as_raw(b"hello there"), 415, "PNG"),
    "pdf": (as_raw(b"%PDF-1.7"), 415, "PDF"),
    "svg": (as_raw(b"<svg/>"), 415, "SVG"),
    "another format of Pillow": (as_raw(b"P5\n9 9\n255\n" + bytes(81)), 415, "PNG"),
    "cut off": (as_raw(IMAGE[:60]), 415, "damaged"),
    "blank": (as_raw(blank()), 422, ""),
    "a bomb": (as_raw(png_by_hand(50_000, 50_000, b"\0" * 1000)), 413, "Crop"),
    "many pixels": (as_raw(png_by_hand(6_000, 6_000, b"\0" * 1000)), 413, "limit is 25 million"),
    "many bytes": (as_raw(IMAGE + bytes(20_100_000)), 413, "20 MB"),
    "no type": ({"content": IMAGE}, 415, "send an image"),
    "a page": ({"content": b"x", "headers": {"Content-Type": "text/html"}}, 415, "text/html"),
    "no json": ({"content": b"{", "headers": {"Content-Type": "application/json"}}, 400, "JSON"),
    "deep json": ({"content": b"[" * 99_999, "headers": {"Content-Type": "application/json"}}, 400, "JSON"),
    "a list": ({"json": []}, 422, "object"),
    "no image": ({"json": {}}, 422, "src"),
    "an address": ({"json": {"src": "http://example.com/a.png"}}, 422, "not fetched"),
    "no base64": ({"json": {"src": "!!"}}, 400, "base64"),
    "unknown option": (as_raw(IMAGE, colour="red"), 422, "colour"),
    "unknown field": ({"files": {"file": IMAGE}, "data": {"colour": "red"}}, 422, "colour"),
    "huge beam": (as_raw(IMAGE, beam=1000), 422, "beam"),
    "scale 0": (as_raw(IMAGE, scale=0), 422, "scale"),
    "scale nan": (as_raw(IMAGE, scale="nan"), 422, "scale"),
    "no such format": (as_raw(IMAGE, formats="docx"), 422, "formats"),
    "two files": ({"files": [("file", IMAGE), ("file", IMAGE)]}, 422, "one file"),
    "no file": ({"files": {"file": (None, "text")}}, 422, ""),
    "no form": ({"content": b"x", "headers": {"Content-Type": "multipart/form-data"}}, 400, "boundary"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_wrong_is_said_as_a_problem(client, name):
    request, status, said = BAD[name]
    answer = post(client, **request)
    problem = answer.json()
    assert answer.headers["content-type"] == "application/problem+json"
    assert (answer.status_code, problem["status"]) == (status, status), problem
    assert said in problem["detail"]
    assert problem["title"]
    assert problem["type"].startswith("/docs#")


def test_an_endless_upload_is_stopped(client):
    sent = 0

    def endless():
        nonlocal sent
        while sent < 10**9:
            sent += 1 << 20
            yield b"\x89PNG" + bytes((1 << 20) - 4)

    answer = post(client, content=endless(), headers={"Content-Type": "image/png"})
    assert answer.status_code == 413
    assert sent < 10**8


def test_an_image_in_pieces_of_a_few_bytes(client):
    def pieces():
        for start in range(0, len(IMAGE), 7):
            yield IMAGE[start : start + 7]

    answer = post(client, content=pieces(), headers={"Content-Type": "image/png"})
    assert answer.json()["latex"] == "x^{2} = y"


@pytest.mark.parametrize("path", ["/api/read", "/api/read/batch"])
@pytest.mark.parametrize("kind", ["files", "data"])
def test_a_form_of_a_thousand_parts_is_refused(client, path, kind):
    one = {
        "files": 'Content-Disposition: form-data; name="file"; filename="a"',
        "data": 'Content-Disposition: form-data; name="a"',
    }
    parts = "".join(f"--b\r\n{one[kind]}\r\n\r\nx\r\n" for _ in range(1000)) + "--b--\r\n"
    headers = {"Content-Type": "multipart/form-data; boundary=b"}
    answer = client.post(path, content=parts.encode(), headers=headers)
    assert (answer.status_code, answer.json()["type"]) == (400, "/docs#malformed")
    assert "Too many" in answer.json()["detail"]


def test_a_part_with_an_endless_head_is_refused(client):
    body = b"--b\r\nContent-Disposition: form-data; name=" + b"x" * 1_000_000
    headers = {"Content-Type": "multipart/form-data; boundary=b"}
    assert client.post("/api/read", content=body, headers=headers).status_code in (400, 422)


def test_a_formula_too_large_for_the_model_is_too_large(client):
    """Not a wrong request: the same picture would be read by a model with a larger canvas."""
    wide = np.full((200, 6000), 255, np.uint8)
    for left in range(20, 5900, 40):
        wide[60:140, left : left + 6] = 0
        wide[60:66, left : left + 24] = 0
    file = io.BytesIO()
    Image.fromarray(wide).save(file, "PNG")
    answer = post(client, **as_raw(file.getvalue(), scale=1))
    assert (answer.status_code, answer.json()["type"]) == (413, "/docs#too-large")
    assert "Crop" in answer.json()["detail"]


@pytest.mark.parametrize(
    "method_and_path", ["GET /nothing", "GET /../pyproject.toml", "DELETE /api/read", "GET /api/read"]
)
def test_other_errors_are_problems_too(client, method_and_path):
    method, path = method_and_path.split(" ")
    answer = client.request(method, path)
    assert answer.status_code in (404, 405)
    assert answer.json()["status"] == answer.status_code
    assert answer.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize("path", ["read", "read/batch", "latex"])
@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_a_wrong_method_is_told_the_right_one(client, method, path):
    answer = client.request(method, f"/api/{path}")
    assert (answer.status_code, answer.headers["allow"]) == (405, "POST")
    assert f"Use POST instead of {method}" in answer.json()["detail"]


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_an_unknown_call_is_told_where_all_are(client, method):
    answer = client.request(method, "/api/reed")
    assert answer.status_code == 404
    for path in re.findall(r"/[\w.]+", answer.json()["detail"]):
        assert client.get(path).status_code == 200
    assert "/openapi.json" in answer.json()["detail"]


def test_tokens_to_latex(client):
    tokens = ["x", "_", "{", "2", "}", "\\operatorname", "{", "s", "i", "n", "}"]
    assert client.post("/api/latex", json={"tokens": tokens}).json() == {"latex": r"x_{2}\sin"}
    wrong = client.post("/api/latex", json={"tokens": ["{", "x"]})
    assert (wrong.status_code, wrong.json()["type"]) == (422, "/docs#invalid-request")


def test_of_many_mistakes_the_first_five_are_named(client):
    tokens = ["x", *range(9)]
    said = client.post("/api/latex", json={"tokens": tokens}).json()["detail"]
    assert re.findall(r"tokens\.(\d+):", said) == ["1", "2", "3", "4", "5"]


def test_pages_have_numbers_that_documents_have():
    assert PageOptions(page=100_000).page == 100_000
    for page in (0, 100_001):
        with pytest.raises(ValidationError):
            PageOptions(page=page)


def test_convert(client):
    """Edited LaTeX in every format; what a format cannot say has its reason in the place of the value."""
    wanted = ["typst", "mathml", "unicode", "docx", "png", "svg"]
    answer = client.post("/api/convert", json={"latex": r"\frac{a}{b}", "formats": wanted}).json()["data"]
    assert [entry["type"] for entry in answer] == wanted
    assert [entry["error"] for entry in answer] == [None] * 6
    assert answer[0]["value"] == "frac(a, b)"
    assert base64.b64decode(answer[3]["value"]).startswith(b"PK")
    assert base64.b64decode(answer[4]["value"]).startswith(b"\x89PNG")
    assert answer[5]["value"].startswith("<svg")
    ruled = {"latex": r"\begin{array}{c} a \\ \hline b \end{array}", "formats": ["omml", "mathml"]}
    refused, said = client.post("/api/convert", json=ruled).json()["data"]
    assert refused["value"] is None
    assert "Word cannot say a rule" in refused["error"]
    assert said["value"].startswith("<math")
    wrong = client.post("/api/convert", json={"latex": "{x", "formats": ["typst"]})
    assert (wrong.status_code, wrong.json()["type"]) == (422, "/docs#invalid-request")
    assert client.post("/api/convert", json={"latex": "x", "formats": ["word"]}).status_code == 422


def test_status_models_examples_and_metrics(client):
    assert client.get("/health").json()["status"] == "ok"
    assert client.get("/ready").json()["status"] == "ready"
    first, *_ = client.get("/api/models").json()["models"]
    assert first == {
        "name": "float32",
        "loaded": True,
        "canvas": [194, 66],
        "vocabulary": 14,
        "calibrated": False,
        "handwriting": False,
    }
    examples = client.get("/api/examples").json()
    assert len(examples) >= 4
    for example in examples:
        assert Image.open(io.BytesIO(client.get(example["url"]).content)).width > 100
    post(client, **as_raw(IMAGE))
    metrics = client.get("/metrics")
    assert metrics.headers["content-type"].startswith("text/plain; version=0.0.4")
    assert re.search(r'i2l_requests_total\{path="/api/read",status="200"\} [1-9]', metrics.text)
    assert re.search(r"i2l_batch_size_count [1-9]", metrics.text)
    assert "i2l_workers_ready 1.0" in metrics.text


def test_the_description_has_examples(client):
    schema = client.get("/openapi.json").json()
    assert set(schema["paths"]["/api/read"]["post"]["requestBody"]["content"]) == {
        "application/json",
        "multipart/form-data",
        "image/png",
    }
    assert schema["paths"]["/api/read"]["post"]["requestBody"]["required"], "there is nothing to read without"
    assert schema["components"]["schemas"]["ReadingModel"]["examples"]
    assert schema["components"]["schemas"]["ProblemModel"]["examples"]
    assert client.get("/docs").text.startswith("<!doctype html>")


def test_every_status_that_a_request_may_end_in_is_described():
    """All may be refused, all that take a body may be sent a bad one, and what is read may find no reader."""
    operations = {
        (path, method): {int(status) for status in operation["responses"]}
        for path, operations in create_app(ServeOptions()).openapi()["paths"].items()
        for method, operation in operations.items()
    }
    assert len(operations) > 8
    for (path, method), statuses in operations.items():
        wanted = {200}
        if path.startswith("/api/"):
            wanted |= {401, 403, 421}
        if method == "post":
            wanted |= {400, 408, 413, 422}
        if method == "post" and path not in ("/api/convert", "/api/latex"):
            wanted |= {415, 500, 503, 504}
        assert wanted <= statuses, path


def test_the_largest_batch_is_counted_below_the_last_limit():
    metrics, largest = Metrics(), ServeOptions().max_batch
    metrics.batch_size.observe(largest)
    buckets = dict(re.findall(r'i2l_batch_size_bucket\{le="([^"]+)"\} (\S+)', metrics.render().decode()))
    assert buckets[f"{largest:.1f}"] == "1.0"
    assert list(buckets)[-2:] == [f"{largest:.1f}", "+Inf"]


def test_headers(client):
    for path in ("/", "/main.js", "/api/models", "/health", "/nothing"):
        headers = client.get(path).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "http" not in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["x-frame-options"] == "DENY"
        assert headers["referrer-policy"] == "no-referrer"
        assert "server" not in headers
        assert "access-control-allow-origin" not in headers
    assert client.get("/api/models").headers["cache-control"] == "no-store"


def test_other_sites_and_other_names_are_turned_away(client, server):
    for origin in ("https://example.com", "null", f"http://localhost:{server.port + 1}"):
        answer = post(client, content=IMAGE, headers={"Content-Type": "image/png", "Origin": origin})
        assert (answer.status_code, answer.json()["type"]) == (403, "/docs#foreign-origin")
    own = post(client, content=IMAGE, headers={"Content-Type": "image/png", "Origin": server.address})
    assert own.status_code == 200
    for host in ("example.com", "127.0.0.1.example.com", "[", ""):
        answer = client.get("/api/models", headers={"Host": host})
        assert answer.status_code in (400, 421)
    assert client.get("/api/models", headers={"Host": f"localhost:{server.port}"}).status_code == 200


def test_nothing_in_the_page_comes_from_elsewhere():
    for path in [*PAGE.glob("*.*"), PAGE / "katex" / "katex.min.css"]:
        found = re.findall(r"(?:https?:)?//[\w.-]+\.\w+", path.read_text())
        assert {"http://www.w3.org"} >= set(found), path
    assert (PAGE / "katex" / "LICENSE").read_text().startswith("The MIT License")
    wanted = re.findall(r"url\(fonts/([\w-]+\.woff2)\)", (PAGE / "katex" / "katex.min.css").read_text())
    assert set(wanted) == {path.name for path in (PAGE / "katex" / "fonts").iterdir()}


def test_a_number_that_is_too_long_is_no_crash(client, server):
    with socket.create_connection(("127.0.0.1", server.port)) as connection:
        head = (
            f"POST /api/read HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nContent-Length: {'9' * 30}\r\n\r\n"
        )
        connection.sendall(head.encode())
        assert connection.recv(20).split()[1] in (b"400", b"413")


def test_every_format_that_is_listed_is_written(client):
    formats = client.get("/api/formats").json()["formats"]
    names = [one["name"] for one in formats]
    assert {"latex", "inline", "display", "mathml", "tokens"} <= set(names)
    data = client.post("/api/convert", json={"latex": "x^{2}", "formats": names}).json()["data"]
    assert [one["type"] for one in data] == names
    for described, written in zip(formats, data, strict=True):
        assert written["value"], described
        assert described["extension"].isalnum()
        if not described["text"]:
            base64.b64decode(written["value"], validate=True)


STROKES = [[[0, 12], [12, 30], [24, 48]], [[24, 12], [12, 30], [0, 48]]]
INKML = "<ink><trace>0 12, 12 30, 24 48</trace><trace>24 12, 12 30, 0 48</trace></ink>"


def test_strokes_are_read_however_they_are_sent(client):
    xml = {"Content-Type": "application/inkml+xml"}
    answers = [
        client.post("/api/strokes", json={"strokes": STROKES, "beam": 1}),
        client.post("/api/strokes?beam=1", content=INKML, headers=xml),
        client.post(
            "/api/strokes",
            json={
                "strokes": {"strokes": {"x": [[0, 12, 24], [24, 12, 0]], "y": [[12, 30, 48]] * 2}},
                "beam": 1,
            },
        ),
    ]
    assert [answer.status_code for answer in answers] == [200] * 3, answers[0].text
    readings = [without_chance(answer.json()) for answer in answers]
    assert readings[0] == readings[1] == readings[2]
    assert "never taught handwriting" in readings[0]["note"]
    assert readings[0]["tokens"]


def test_a_request_names_a_model_that_is_installed_and_no_folder(several, model):
    with httpx2.Client(base_url=several.address, timeout=60) as client:
        listed = client.get("/api/models").json()["models"]
        assert [(one["name"], one["loaded"], one["handwriting"]) for one in listed] == [
            ("pinpoint", True, False),
            ("hand", False, True),
            ("small", False, False),
        ]
        named = post(client, **as_raw(IMAGE, model="small", beam=1, scale=1)).json()
        assert (named["model"], named["latex"], named["note"]) == ("small", "x^{2} = y", None)
        assert post(client, **as_raw(IMAGE, beam=1)).json()["model"] == "pinpoint"
        for name in ("large", str(model), "../models/pinpoint", ""):
            for path in ("/api/read", "/api/page", "/api/read/batch"):
                body = {"images" if "batch" in path else "src": None}
                source = base64.b64encode(IMAGE).decode()
                body = {key: [source] if key == "images" else source for key in body}
                answer = client.post(path, json={**body, "model": name}).json()
                (problem,) = answer["readings"] if "batch" in path else [answer]
                assert (problem["status"], problem["type"]) == (422, "/docs#invalid-request"), problem
                assert "/api/models" in problem["detail"]
        for name, expected in ((None, "hand"), ("pinpoint", "pinpoint"), ("hand", "hand")):
            written = client.post("/api/strokes", json={"strokes": STROKES, "beam": 1, "model": name}).json()
            assert written["model"] == expected
            assert (written["note"] is None) == (expected == "hand")


@pytest.mark.parametrize(
    ("content", "kind", "status", "said"),
    [
        ('{"strokes": []}', "application/json", 422, "no strokes"),
        ('{"strokes": 5}', "application/json", 422, "strokes"),
        ('{"strokes": [[[1, NaN]]]}', "application/json", 422, "not a number"),
        ('{"strokes": [[["a", "b"]]]}', "application/json", 422, "no number"),
        ('{"strokes": [[[1, 1]]], "colour": 1}', "application/json", 422, "colour"),
        ("[[[1, 1]]]", "application/json", 422, "JSON object"),
        ("<ink>", "application/inkml+xml", 422, "damaged"),
        ("<!DOCTYPE ink [<!ENTITY a 'b'>]><ink/>", "application/xml", 422, "document type"),
        ("<svg/>", "application/xml", 415, "InkML"),
        ("\x1f", "application/inkml+xml", 415, "is not InkML, though"),
        ("1 2", "text/plain", 415, "InkML"),
    ],
)
def test_what_is_no_ink_gets_a_problem(client, content, kind, status, said):
    answer = client.post("/api/strokes", content=content, headers={"Content-Type": kind})
    assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json")
    assert said in answer.json()["detail"]


def test_a_long_drawing_is_too_large(client):
    answer = client.post(
        "/api/strokes", content=b"[" * (3 << 20), headers={"Content-Type": "application/xml"}
    )
    assert answer.status_code == 413


LIMITS = ("default", "const", "enum", "pattern", "format", "required", "minimum", "maximum")
LIMITS += ("exclusiveMinimum", "exclusiveMaximum", "minItems", "maxItems", "minLength", "maxLength")


def limits_in(described, path=""):
    """Every limit and default of a description, with the way to it; libraries word the rest their own way."""
    for key, value in described.items() if isinstance(described, dict) else enumerate(described):
        if key in LIMITS and not (isinstance(value, dict) and path.endswith("properties/")):
            yield f"{path}{key} = {json.dumps(value)}"
        elif isinstance(value, dict | list) and key not in ("examples", "example"):
            yield from limits_in(value, f"{path}{key}/")


def test_the_api_has_the_limits_and_defaults_that_it_had():
    described = create_app(ServeOptions()).openapi()
    lines = [f"{path} {method}" for path, each in described["paths"].items() for method in each]
    assert_text_kept("api_limits", lines + list(limits_in(described)))
