"""The static site in Chromium and in Debian's Firefox: it reads as Python does, alone and offline."""

import base64
import gzip
import io
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from filelock import FileLock
from PIL import Image

from i2l import Reader
from i2l.errors import I2LError
from i2l.formats.convert import TEXT_FORMATS, write_formula
from tests.web.firefox import Firefox
from tests.web.site import ROOT, FileServer, copy_site, node

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(600),
]  # a machine that does other things too takes its time

EXAMPLES = sorted((ROOT / "examples").glob("*.png"))
START_MS = 180_000
READ = """async (data) => {
  const { readImage } = await import("./api.js");
  const bytes = Uint8Array.from(atob(data), (letter) => letter.charCodeAt(0));
  try { return await readImage(new Blob([bytes]), {}); } catch (error) { return { failed: error.message }; }
}"""
LATEX = 'return [...document.querySelectorAll("#latex .cm-line")].map((line) => line.textContent).join("\\n")'

TOKENS = """const found = [...document.querySelectorAll("#tokens .token")].map((one) => one.textContent);
  return found.length && found"""


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The folder that `make site` makes; once for all processes of a run."""
    root = tmp_path_factory.getbasetemp()
    root = root.parent if os.environ.get("PYTEST_XDIST_WORKER") else root
    out = root / "site"
    environment = {**os.environ, "PATH": f"{Path(node()[0]).parent}:{os.environ['PATH']}"}
    with FileLock(root / "site.lock"):
        if not (out / "service-worker.js").exists():
            command = [sys.executable, "-m", "recipes.site", out]
            subprocess.run(command, check=True, capture_output=True, env=environment, cwd=ROOT)
    return out


@pytest.fixture(scope="module")
def reader():
    return Reader(n_best=2)


class SiteVisit:
    """The site, served under a path and opened in Chromium."""

    def __init__(self, browser, folder):
        self.folder = folder
        self.server = FileServer(folder.parents[1])
        self.address = f"{self.server.address}/projects/formulas/"
        self.context = browser.new_context(locale="en", viewport={"width": 1366, "height": 768})
        self.page = self.context.new_page()
        self.page.set_default_timeout(60_000)
        self.errors = []
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("console", lambda said: self.errors.append(said.text) if said.type == "error" else None)

    def open(self):
        self.page.goto(self.address)
        self.wait()

    def wait(self):
        self.page.locator('body[data-reader="ready"]').wait_for(timeout=START_MS)

    def wait_until_kept(self):
        """Wait until the service worker has everything and answers for the page."""
        self.page.evaluate("() => navigator.serviceWorker.ready.then(() => null)")
        self.page.wait_for_timeout(200)

    def close(self):
        self.context.close()
        self.server.stop()


@pytest.fixture
def visit(browser, site, tmp_path):
    opened = SiteVisit(browser, copy_site(site, tmp_path))
    yield opened
    opened.close()
    assert [said for said in opened.errors if "ERR_" not in said and "fetching the script" not in said] == []


def picture_bytes(image, kind="PNG", **options):
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


def other_pictures():
    """Pictures of other kinds and files than the examples are."""
    small = Image.open(EXAMPLES[1])  # a formula that is read surely: near a tie, last digits decide
    tinted = Image.merge(
        "RGB", [small.point(lambda value, low=low: low + value * (255 - low) // 255) for low in (20, 60, 140)]
    )
    clear = Image.new("RGBA", small.size, (0, 0, 0, 0))
    clear.putalpha(small.point(lambda value: 255 - value))
    return {
        "palette": picture_bytes(tinted.quantize(9)),
        "transparent": picture_bytes(clear),
        "large": picture_bytes(small.resize((small.width * 5, small.height * 5), Image.Resampling.BICUBIC)),
        "jpeg": picture_bytes(tinted, "JPEG", quality=95),
        "turned": picture_bytes(
            tinted.transpose(Image.Transpose.ROTATE_90),
            "JPEG",
            quality=95,
            exif=b"Exif\0\0MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0\0\0\0\0",
        ),
        "empty": picture_bytes(Image.new("L", (80, 40), 255)),
        "broken": picture_bytes(small)[:200],
        "text": b"This is no picture.",
    }


def read_in_python(reader, data):
    try:
        return reader.read(data).to_dict()
    except I2LError as error:
        return {"failed": str(error)}


def check_reading(name, ours, theirs):
    assert "failed" not in ours or "failed" in theirs, (name, ours)
    if "failed" in theirs:
        assert "failed" in ours, name
        return
    assert [token["text"] for token in ours["tokens"]] == [token["text"] for token in theirs["tokens"]], name
    assert ours["latex"] == theirs["latex"], name
    assert ours["confidence"] == pytest.approx(theirs["confidence"], abs=0.01), name
    for one, other in zip(ours["tokens"], theirs["tokens"], strict=True):
        assert one["box"] == (other["box"] and pytest.approx(other["box"], abs=1)), (name, one)


def test_reads_as_python_does_without_a_network(visit, reader):
    visit.open()
    assert visit.page.locator("#api").is_hidden()
    assert visit.page.locator("#write").is_hidden()
    assert "nothing leaves" in visit.page.locator("#privacy").inner_text()
    assert ".pdf" not in visit.page.locator("#file").get_attribute("accept")
    for name in ("page.pdf", "formula.tiff"):
        visit.page.locator("#file").set_input_files(
            {"name": name, "mimeType": "", "buffer": b"II*\0" if name.endswith("tiff") else b"%PDF-1.7"}
        )
        visit.page.locator("#notice", has_text="read by i2l serve").wait_for()
        visit.page.locator("#dismiss").click()
    visit.wait_until_kept()
    visit.server.stop()
    visit.context.set_offline(True)
    asked = []
    visit.context.on("request", lambda request: asked.append(request.url))
    pictures = {path.name: path.read_bytes() for path in EXAMPLES} | other_pictures()
    for name, data in pictures.items():
        ours = visit.page.evaluate(READ, base64.b64encode(data).decode())
        check_reading(name, ours, read_in_python(reader, data))
    formula = r"\frac{a}{b} + \sqrt{x^{2}}"
    for name in TEXT_FORMATS:
        ours = visit.page.evaluate(
            """async ([latex, name]) => {
              const { convert } = await import("./api.js");
              return (await convert(latex, { name, text: true })).text();
            }""",
            [formula, name],
        )
        assert ours == write_formula(formula, name), name
    assert asked == []


def test_second_visit_is_offline_and_has_threads(visit):
    visit.open()
    assert visit.page.evaluate("crossOriginIsolated") is False
    visit.wait_until_kept()
    visit.server.stop()
    visit.page.reload()
    visit.wait()
    assert visit.page.evaluate("crossOriginIsolated") is True
    visit.page.locator("#examples .card").first.click()
    visit.page.locator("#verdict").wait_for()
    assert r"\zeta(s)" in visit.page.locator("#latex .cm-line").first.text_content()


def test_newer_version_is_offered(visit, tmp_path):
    visit.open()
    visit.wait_until_kept()
    visit.page.reload()
    visit.wait()
    folder = tmp_path / "projects" / "formulas"
    words = folder / "words" / "en.json"
    words.write_text(words.read_text().replace("Picture of a formula in, LaTeX out", "A newer page"))
    worker = folder / "service-worker.js"
    worker.write_text(re.sub(r'VERSION = "\w+"', 'VERSION = "newer"', worker.read_text()))
    visit.page.evaluate("async () => { await (await navigator.serviceWorker.ready).update(); }")
    visit.page.locator("#notice", has_text="newer version").wait_for()
    assert visit.page.locator("#hero-title").inner_text() == "Picture of a formula in, LaTeX out"
    visit.page.get_by_role("button", name="Use it now").click()
    visit.page.locator("#hero-title", has_text="A newer page").wait_for()
    names = visit.page.evaluate("async () => { await navigator.serviceWorker.ready; return caches.keys(); }")
    assert [name for name in names if not name.endswith("newer")] == []


def test_shared_picture_is_read(visit):
    visit.open()
    visit.wait_until_kept()
    data = base64.b64encode(EXAMPLES[5].read_bytes()).decode()
    visit.page.evaluate(
        """async (data) => {
          const form = new FormData(), bytes = Uint8Array.from(atob(data), (letter) => letter.charCodeAt(0));
          form.append("picture", new Blob([bytes], { type: "image/png" }), "shared.png");
          await fetch("share", { method: "POST", body: form, redirect: "manual" });
        }""",
        data,
    )
    visit.page.goto(f"{visit.address}?shared")
    visit.page.locator("#verdict").wait_for(timeout=START_MS)
    assert r"\sqrt{a^{2} + b^{2}}" in visit.page.locator("#latex .cm-line").first.text_content()
    assert visit.page.url == visit.address, "a reload does not read it again"


def test_says_which_file_is_missing(visit):
    """The reader starts in several threads: what one of them misses ends in a sentence, not in waiting."""
    missing = visit.folder / "reader" / "ort-wasm-simd-threaded.wasm.gz"
    missing.unlink()
    visit.page.goto(visit.address)
    visit.page.locator('body[data-reader="failed"]').wait_for(timeout=START_MS)
    visit.page.locator("#file").set_input_files(EXAMPLES[0])
    visit.page.locator("#notice", has_text="ort-wasm-simd-threaded.wasm cannot be loaded (404)").wait_for()
    visit.errors.clear()  # the browser says so too


def test_can_be_installed(site):
    manifest = json.loads((site / "manifest.webmanifest").read_text())
    assert manifest["start_url"] == "./"
    assert manifest["share_target"]["params"]["files"]
    for icon in manifest["icons"]:
        if icon["type"] == "image/png":
            with Image.open(site / icon["src"]) as image:
                assert "x".join(map(str, image.size)) == icon["sizes"]
    listed = re.search(r"new Set\(\[(.*)\]\)", (site / "service-worker.js").read_text())
    there = {path.relative_to(site).as_posix() for path in site.rglob("*") if path.is_file()}
    assert set(json.loads(f"[{listed[1]}]")) == (there - {"index.html", "service-worker.js"}) | {""}


def test_weighs_no_more_than_thirty_megabytes(site):
    text = (".js", ".mjs", ".css", ".json", ".html", ".svg", ".webmanifest")
    weight = 0
    for path in site.rglob("*"):
        if path.is_file():
            content = path.read_bytes()
            weight += len(gzip.compress(content) if path.suffix in text else content)
    assert weight < 30e6


def test_firefox_reads_as_python_does_without_a_network(site, reader, tmp_path):
    if shutil.which("firefox-esr") is None:
        pytest.skip("no Firefox: apt-get install firefox-esr")
    (tmp_path / "profile").mkdir()
    server = FileServer(copy_site(site, tmp_path).parents[1])
    firefox = Firefox(tmp_path / "profile")
    try:
        firefox.open(f"{server.address}/projects/formulas/")
        assert firefox.wait("return document.body.dataset.reader", seconds=180) == "ready"
        firefox.wait("return navigator.serviceWorker.controller && true")
        server.stop()
        photo = tmp_path / "photo.jpg"
        photo.write_bytes(other_pictures()["jpeg"])
        for path in (*EXAMPLES[::2], photo):
            firefox.choose_file("#file", path)
            firefox.wait('return !document.getElementById("verdict").hidden')
            theirs = reader.read(path)
            assert firefox.run(LATEX) == theirs.latex, path.name
            firefox.run('document.getElementById("inspect").open = true')
            tokens = firefox.wait(TOKENS)
            assert tokens == list(theirs.tokens), path.name
            share = int(firefox.run('return document.getElementById("verdict").title').partition("%")[0])
            assert share == pytest.approx(100 * theirs.confidence, abs=1.5), path.name
            firefox.run('document.getElementById("new").click()')
        firefox.open(f"{server.address}/projects/formulas/")  # out of what the browser keeps
        assert firefox.wait("return document.body.dataset.reader", seconds=180) == "ready"
        assert firefox.run("return crossOriginIsolated")
    finally:
        firefox.stop()
        server.stop()
