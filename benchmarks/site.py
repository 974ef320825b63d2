"""The static site against Python, picture by picture: the same tokens, confidence and boxes?

    make site
    python -m benchmarks.site build/site PICTURE_OR_FOLDER... [--most 500]

Chromium opens the site from a server of its own, under a path, and is then cut off from the network. Every
picture is read there and by `Reader(n_best=2)`, which is how the page reads. Times are said beside those of
Python with two threads on the same pictures in the same minutes, since a machine is rarely quiet; the load is
said too. A cold start is that of a new browser which has the files from a server on this computer.
"""

import argparse
import base64
import contextlib
import functools
import http.server
import json
import os
import shutil
import statistics
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, sync_playwright

from i2l import Reader
from i2l.errors import I2LError
from i2l.images.open import images_in

READ = """async (data) => {
  const { readImage } = await import("./api.js");
  const bytes = Uint8Array.from(atob(data), (letter) => letter.charCodeAt(0));
  try { return await readImage(new Blob([bytes]), {}); } catch (error) { return { failed: error.message }; }
}"""


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Serves files, and says nothing."""

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@contextlib.contextmanager
def serving(folder: Path) -> Iterator[str]:
    """Serve the folder above a site; gives the address of the site, which is under a path."""
    handler = functools.partial(Quiet, directory=str(folder.parent))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/{folder.name}/"
        server.shutdown()
        thread.join()


def open_site(browser: Browser, address: str) -> Page:
    """Open the site, and wait until it can read."""
    page = browser.new_context(locale="en").new_page()
    page.goto(address)
    page.locator('body[data-reader="ready"]').wait_for(timeout=180_000)
    return page


def cold_start(browser: Browser, address: str, picture: Path) -> float:
    """Measure from opening the page in a new profile to the first reading."""
    started = time.perf_counter()
    page = browser.new_context(locale="en").new_page()
    page.goto(address)
    page.locator("#file").set_input_files(picture)
    page.locator("#verdict").wait_for(timeout=180_000)
    seconds = time.perf_counter() - started
    page.context.close()
    return seconds


def threaded(page: Page, address: str) -> None:
    """Open the page once more from what its service worker keeps, with threads."""
    page.evaluate("() => navigator.serviceWorker.ready.then(() => null)")
    page.goto(address)
    page.locator('body[data-reader="ready"]').wait_for(timeout=180_000)


def differences(ours: dict[str, Any], theirs: dict[str, Any]) -> tuple[bool, float, float]:
    """Compare two readings: whether the tokens are the same, and how far confidence and boxes are apart."""
    tokens = [[token["text"] for token in one["tokens"]] for one in (ours, theirs)]
    apart = abs(ours["confidence"] - theirs["confidence"])
    if tokens[0] != tokens[1]:
        return False, apart, 0.0
    boxes = 0.0
    for first, second in zip(ours["tokens"], theirs["tokens"], strict=True):
        if (first["box"] is None) != (second["box"] is None):
            return True, apart, float("inf")
        edges = zip(first["box"] or (), second["box"] or (), strict=True)
        boxes = max([boxes, *(abs(one - other) for one, other in edges)])
    return True, apart, boxes


def compare(page: Page, reader: Reader, paths: list[Path]) -> None:
    """Read pictures both ways, and say how they differ."""
    same, confidences, edges, ratios, seconds = 0, [], [], [], []
    for number, path in enumerate(paths, start=1):
        started = time.perf_counter()
        try:
            theirs = reader.read(path).to_dict()
        except I2LError as error:
            theirs = {"failed": str(error)}
        python_s = time.perf_counter() - started
        ours = page.evaluate(READ, base64.b64encode(path.read_bytes()).decode())
        if "failed" in ours or "failed" in theirs:
            equal = ours.get("failed") == theirs.get("failed")
            same += equal
            if not equal:
                print(f"{path.name}: {ours.get('failed')} | {theirs.get('failed')}", flush=True)
            continue
        equal, confidence, boxes = differences(ours, theirs)
        same += equal
        confidences.append(confidence)
        edges.append(boxes)
        seconds.append((len(theirs["tokens"]), ours["seconds"], python_s))
        ratios.append(ours["seconds"] / python_s)
        if not equal or confidence > 1e-3 or boxes > 1:
            said = f"confidence {confidence:.4f} apart, boxes {boxes:.1f} px"
            print(f"{path.name}: {'same' if equal else 'other'} tokens, {said}", flush=True)
            if not equal:
                print(f"  {ours['latex']}\n  {theirs['latex']}", flush=True)
        if number % 25 == 0:
            print(f"{number}: {same} the same; load {os.getloadavg()[0]:.1f}", flush=True)
    print(f"{same} of {len(paths)} have the same tokens, or the same refusal")
    if confidences:
        print(f"confidence is at most {max(confidences):.4f} apart, boxes {max(edges):.1f} px")
        about = [one for one in seconds if 40 <= one[0] <= 60]
        for name, some in (("all", seconds), ("40 to 60 tokens", about)):
            if some:
                ours_s, python_s = (statistics.median(one[place] for one in some) for place in (1, 2))
                print(f"{name} ({len(some)}): median {ours_s:.2f} s here, {python_s:.2f} s in Python")
        print(f"median ratio {statistics.median(ratios):.1f}; load {os.getloadavg()[0]:.1f}")


def main() -> None:
    """Parse the arguments, measure, print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("site", type=Path)
    parser.add_argument("pictures", type=Path, nargs="+")
    parser.add_argument("--most", type=int, default=500)
    parser.add_argument("--cold", type=int, default=3, help="how many cold starts are measured")
    options = parser.parse_args()
    paths = [one for path in options.pictures for one in (images_in(path) if path.is_dir() else [path])]
    step = max(1, len(paths) // options.most)
    paths = paths[::step][: options.most]
    reader = Reader(n_best=2, threads=2)
    with serving(options.site.resolve()) as address, sync_playwright() as playwright:
        arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=arguments)
        starts = [cold_start(browser, address, paths[0]) for _ in range(options.cold)]
        if starts:
            said = json.dumps([round(one, 2) for one in starts])
            print(f"cold start to the first reading: {said} s; load {os.getloadavg()[0]:.1f}", flush=True)
        page = open_site(browser, address)
        threaded(page, address)
        page.context.set_offline(True)
        print(f"several threads: {page.evaluate('crossOriginIsolated')}", flush=True)
        compare(page, reader, paths)
        browser.close()


if __name__ == "__main__":
    main()
