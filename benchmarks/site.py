"""The static site against Python, picture by picture: the same tokens, confidence and boxes?

    make site
    python -m benchmarks.site build/site PICTURE_OR_FOLDER... [--most 500] [--kept compared.jsonl]

Chromium opens the site from a server of its own, under a path, and is then cut off from the network. Every
picture is read there and by `Reader(n_best=2)`, which is how the page reads. With --kept, every comparison is
written to a file, and a run that was stopped goes on behind the last one. Times are said beside those of
Python with two threads on the same pictures in the same minutes, since a machine is rarely quiet; the load is
said too.

    python -m benchmarks.site build/site PICTURE --cold 5 [--against OTHER_SITE]

A cold start is that of a new browser which has the files from a server on this computer, up to the first
reading: when each step was done, and how many seconds it took of all processors, and on Linux of the one that
the reader's own thread had. Another site is started in turn with it, so that both have the same neighbours.
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

from playwright.sync_api import Browser, Page, Playwright, sync_playwright

from i2l import Reader
from i2l.errors import I2LError
from i2l.images.open import images_in

CLOSE = 1e-3  # confidences that count as the same
READ = """async (data) => {
  const { readImage } = await import("./api.js");
  const bytes = Uint8Array.from(atob(data), (letter) => letter.charCodeAt(0));
  try { return await readImage(new Blob([bytes]), {}); } catch (error) { return { failed: error.message }; }
}"""

MARKS = """performance.getEntriesByType("mark")
  .map(({ name, startTime }) => [name, performance.timeOrigin + startTime])"""


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
        try:
            yield f"http://127.0.0.1:{server.server_port}/{folder.name}/"
        finally:  # or the process would never end
            server.shutdown()
            thread.join()


def launch(playwright: Playwright) -> Browser:
    """Start a browser."""
    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
    return playwright.chromium.launch(executable_path=shutil.which("chromium"), args=arguments)


def open_site(browser: Browser, address: str) -> Page:
    """Open the site, and wait until it can read."""
    page = browser.new_context(locale="en").new_page()
    page.goto(address)
    page.locator('body[data-reader="ready"]').wait_for(timeout=180_000)
    return page


def processor_seconds(browser: Browser) -> tuple[float, float]:
    """Sum up the seconds of the processors that a browser has had: all processes, and the busiest worker.

    The second is zero where there is no /proc, which has the threads of a process.
    """
    processes = browser.new_browser_cdp_session().send("SystemInfo.getProcessInfo")["processInfo"]
    workers = [0.0]
    for process in processes:
        for path in Path(f"/proc/{process['id']}/task").glob("*/stat"):
            try:
                name, _, numbers = path.read_text().partition("(")[2].rpartition(") ")
            except OSError:  # a thread that has ended meanwhile
                continue
            if name.startswith("DedicatedWorker"):
                user, system = numbers.split()[11:13]
                workers.append((int(user) + int(system)) / os.sysconf("SC_CLK_TCK"))
    return sum(float(process["cpuTime"]) for process in processes), max(workers)


def cold_start(playwright: Playwright, address: str, picture: Path) -> dict[str, float]:
    """Open the page in a new browser and read a picture; give the seconds at which each step was done."""
    browser = launch(playwright)
    page = browser.new_context(locale="en").new_page()
    page.goto("about:blank")
    page.wait_for_timeout(500)
    (before, _), started = processor_seconds(browser), time.perf_counter()
    page.goto(address)
    page.locator("#file").set_input_files(picture)
    page.locator("#verdict").wait_for(timeout=180_000)
    seconds = time.perf_counter() - started
    processors, worker = processor_seconds(browser)
    steps = {"first reading": seconds, "of all processors": processors - before, "of the reader's": worker}
    origin = page.evaluate("performance.timeOrigin")
    for worker in page.workers:
        steps |= {name: (at - origin) / 1000 for name, at in worker.evaluate(MARKS)}
    browser.close()
    return steps


def tell_cold_starts(playwright: Playwright, addresses: list[str], picture: Path, count: int) -> None:
    """Start sites from cold, in turn, and say the median of each step."""
    starts: dict[str, list[dict[str, float]]] = {address: [] for address in addresses}
    for _ in range(count):
        for address, found in starts.items():
            found.append(cold_start(playwright, address, picture))
    for address, found in starts.items():
        print(f"cold start of {address}: median of {count}, load {os.getloadavg()[0]:.1f}")
        names = [name for name in found[0] if all(name in one for one in found)]
        for seconds, name in sorted((statistics.median(one[name] for one in found), name) for name in names):
            print(f"  {seconds:6.2f} s  {name}", flush=True)


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


def compare_one(page: Page, reader: Reader, path: Path) -> dict[str, Any]:
    """Read a picture both ways, and tell how the readings differ."""
    started = time.perf_counter()
    try:
        theirs = reader.read(path).to_dict()
    except I2LError as error:
        theirs = {"failed": str(error)}
    python_s = time.perf_counter() - started
    ours = page.evaluate(READ, base64.b64encode(path.read_bytes()).decode())
    found: dict[str, Any] = {"name": str(path)}
    if "failed" in ours or "failed" in theirs:
        found["same"] = ours.get("failed") == theirs.get("failed")
        return found | {"refused": [ours.get("failed"), theirs.get("failed")]}
    found["same"], found["confidence"], found["boxes_px"] = differences(ours, theirs)
    if not found["same"]:
        found["latex"] = [ours["latex"], theirs["latex"]]
    return found | {"tokens": len(theirs["tokens"]), "seconds": ours["seconds"], "python_s": python_s}


def compare(page: Page, reader: Reader, paths: list[Path], kept: Path | None) -> list[dict[str, Any]]:
    """Compare pictures, but those that a file has already; new ones are added to it."""
    found = [json.loads(line) for line in kept.read_text().splitlines()] if kept and kept.exists() else []
    done = {one["name"] for one in found}
    for path in paths:
        if str(path) in done:
            continue
        one = compare_one(page, reader, path)
        found.append(one)
        if kept:
            with kept.open("a") as file:
                file.write(json.dumps(one) + "\n")
        if not one["same"] or one.get("confidence", 0) > CLOSE or one.get("boxes_px", 0) > 1:
            print(json.dumps(one), flush=True)
        if len(found) % 25 == 0:
            same = sum(one["same"] for one in found)
            print(f"{len(found)}: {same} the same; load {os.getloadavg()[0]:.1f}", flush=True)
    return found


def tell(found: list[dict[str, Any]]) -> None:
    """Say how comparisons ended."""
    print(f"{sum(one['same'] for one in found)} of {len(found)} have the same tokens, or the same refusal")
    read = [one for one in found if "seconds" in one]
    if not read:
        return
    apart = [one["confidence"] for one in read if one["same"]]
    close = sum(one <= CLOSE for one in apart)
    print(f"confidence: {close} of {len(apart)} within {CLOSE}, at most {max(apart):.4f} apart", end="; ")
    print(f"boxes at most {max(one['boxes_px'] for one in read):.1f} px apart")
    about = [one for one in read if 40 <= one["tokens"] <= 60]
    for name, some in (("all", read), ("40 to 60 tokens", about)):
        if some:
            ours_s, python_s = (
                statistics.median(one[key] for one in some) for key in ("seconds", "python_s")
            )
            print(f"{name} ({len(some)}): median {ours_s:.2f} s here, {python_s:.2f} s in Python")
    ratio = statistics.median(one["seconds"] / one["python_s"] for one in read)
    print(f"median ratio {ratio:.1f}; load {os.getloadavg()[0]:.1f}")


def main() -> None:
    """Parse the arguments, measure, print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("site", type=Path)
    parser.add_argument("pictures", type=Path, nargs="+")
    parser.add_argument("--most", type=int, default=500)
    parser.add_argument("--kept", type=Path, help="where comparisons are kept, to go on with them later")
    parser.add_argument(
        "--first-visit", action="store_true", help="read with one thread, as a first visit does"
    )
    parser.add_argument(
        "--cold", type=int, default=0, help="measure so many cold starts, and compare nothing"
    )
    parser.add_argument("--against", type=Path, help="another site, whose cold starts are measured in turn")
    options = parser.parse_args()
    paths = [one for path in options.pictures for one in (images_in(path) if path.is_dir() else [path])]
    step = max(1, len(paths) // options.most)
    paths = paths[::step][: options.most]
    with contextlib.ExitStack() as stack:
        sites = [options.site, *([options.against] if options.against else [])]
        addresses = [stack.enter_context(serving(site.resolve())) for site in sites]
        playwright = stack.enter_context(sync_playwright())
        if options.cold:
            tell_cold_starts(playwright, addresses, paths[0], options.cold)
            return
        browser = launch(playwright)
        page = open_site(browser, addresses[0])
        if not options.first_visit:
            threaded(page, addresses[0])
        page.context.set_offline(True)
        print(f"several threads: {page.evaluate('crossOriginIsolated')}", flush=True)
        tell(compare(page, Reader(n_best=2, threads=2), paths, options.kept))
        browser.close()


if __name__ == "__main__":
    main()
