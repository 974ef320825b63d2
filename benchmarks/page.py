"""`python -m benchmarks.page [--pictures FOLDER]`: how quick the page is, by Chromium's own tracing.

Measured are the bytes of the first load, the seconds until the page can be used, the frames that Chromium
drew and dropped while the mouse goes over 500 tokens at up to sixty a second, and the milliseconds of
processor time that their handlers and a frame took on the main thread, which has 16. The machine's load is
said with it: on a busy one frames are late that are not the page's fault. With --pictures, every state of the
page is photographed at four sizes, light and dark, to be looked at. Answers are made up, as in the tests of
the page; the server is a real one.
"""

import argparse
import json
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, sync_playwright

from recipes.pictures import serving
from tests.web.test_page_looks import CASES, SIZES, open_at, picture_of, pieces, show
from tests.web.visiting import Visit, answer, answer_with, expect_latex, token, transfer

FRAME_MS = 1000 / 60
NUM_MOVES = 500
CATEGORIES = ["cc", "benchmark", "toplevel", "devtools.timeline", "disabled-by-default-devtools.timeline"]
# A bad picture has no reading but a problem, and the way out of it.
PROBLEM = {"type": "/docs#not-a-formula", "status": 422, "detail": "Nothing here looks like a formula."}


@contextmanager
def opened_browser() -> Iterator[tuple[Browser, str]]:
    """Start the server and a browser without a window."""
    path = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    with sync_playwright() as driver, serving() as address:
        browser = driver.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser, address
        browser.close()


def measure_load(browser: Browser, address: str) -> dict[str, float]:
    """Open the page as for the first time, five times; the seconds are the median."""
    seconds, sizes = [], {}
    for _ in range(5):
        context = browser.new_context(viewport={"width": 1366, "height": 768}, locale="en")
        page = context.new_page()
        page.on("response", lambda response: sizes.update({response.url: response}))
        page.goto(address)
        page.wait_for_function("() => document.body.dataset.ready")
        seconds.append(page.evaluate("performance.now()") / 1000)
        page.wait_for_load_state("networkidle")
        total = sum(len(response.body()) for response in sizes.values())
        sizes.clear()
        context.close()
    return {"first_load_kB": round(total / 1000), "interactive_s": round(statistics.median(seconds), 3)}


def show_many_tokens(page: Page) -> list[tuple[float, float]]:
    """Have the page show a reading of over 500 tokens; gives the middles of those in sight."""
    latex = " + ".join(f"x_{{{n}}}" for n in range(84))
    tokens = [token(text, 0.97, [10 + n, 10, 14 + n, 20]) for n, text in enumerate(pieces(latex))]
    answer(page, answer_with(*tokens, latex=latex, ink=(10, 10, 700, 30), size=(720, 40)))
    transfer(page, "paste", picture_of(720, 40), target="document")
    expect_latex(page, latex)
    page.locator("#inspect summary").click()
    page.locator("#tokens").scroll_into_view_if_needed()
    middles = page.evaluate(
        """() => [...document.querySelectorAll("#tokens .token")].map((chip) => chip.getBoundingClientRect())
          .filter(({ top, bottom }) => top > 0 && bottom < innerHeight)
          .map(({ left, top, width, height }) => [left + width / 2, top + height / 2])"""
    )
    return [(x, y) for x, y in middles]


def measure_hover(browser: Browser, address: str) -> dict[str, Any]:
    """Go over the tokens with the mouse, sixty a second, while Chromium traces its frames."""
    visit = Visit(browser, address, viewport={"width": 1366, "height": 768})
    places = show_many_tokens(visit.page)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "trace.json")
        browser.start_tracing(page=visit.page, path=path, categories=CATEGORIES)
        began = time.perf_counter()
        for move in range(NUM_MOVES):
            visit.page.mouse.move(*places[move % len(places)])
            time.sleep(max(0.0, began + (move + 1) * FRAME_MS / 1000 - time.perf_counter()))
        took_s = time.perf_counter() - began
        browser.stop_tracing()
        events = json.loads(path.read_text())["traceEvents"]
    visit.context.close()
    shown: dict[bool, set[int]] = {True: set(), False: set()}  # the frames that were shown, and that were not
    for event in events:
        if event.get("name") == "PipelineReporter" and event.get("ph") == "b":
            reporter = event["args"]["frame_reporter"]
            if reporter["state"] != "STATE_NO_UPDATE_DESIRED":
                shown["PRESENTED" in reporter["state"]].add(reporter["frame_sequence"])
    handled = [
        event.get("tdur", 0) / 1000
        for event in events
        if event.get("name") == "EventDispatch"
        and event.get("args", {}).get("data", {}).get("type") in ("pointerover", "pointermove", "mousemove")
    ]
    frames = sorted(
        event["tdur"] / 1000
        for event in events
        if event.get("name") == "ProxyMain::BeginMainFrame" and event.get("tdur")
    )
    return {
        "tokens_in_sight": len(places),
        "moves_a_second": round(NUM_MOVES / took_s, 1),
        "frames_drawn_a_second": round(len(shown[True]) / took_s, 1),
        "frames_dropped": len(shown[False] - shown[True]),
        "handlers_ms_a_move": round(sum(handled) / NUM_MOVES, 2),
        "frame_ms_median": round(statistics.median(frames), 1),
        "frame_ms_p95": round(frames[int(0.95 * len(frames))], 1),
    }


def photograph(browser: Browser, address: str, folder: Path) -> None:
    """Keep what every state looks like at every size, light and dark."""
    folder.mkdir(parents=True, exist_ok=True)
    for width, height in SIZES:
        for theme in ("light", "dark"):
            visits: list[Visit] = []

            def visit(*, opened: list[Visit] = visits, **options: Any) -> Page:  # noqa: ANN401 - of Playwright
                opened.append(Visit(browser, address, **options))
                return opened[-1].page

            page = open_at(visit, width, height, theme)
            page.screenshot(path=folder / f"{width}-{theme}-start.png")
            for name in CASES:
                show(page, name)
                page.wait_for_timeout(400)
                page.screenshot(path=folder / f"{width}-{theme}-{name}.png")
            answer(page, PROBLEM, status=422)
            transfer(page, "paste", picture_of(500, 300), target="document")
            page.get_by_text("drag over the picture").wait_for()
            page.wait_for_timeout(300)
            page.screenshot(path=folder / f"{width}-{theme}-bad.png")
            visits[0].close()


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pictures", type=Path, help="Photograph every state into this folder.")
    options = parser.parse_args()
    with opened_browser() as (browser, address):
        figures = measure_load(browser, address) | measure_hover(browser, address)
        print(json.dumps(figures | {"load": round(os.getloadavg()[0], 1), "cores": os.cpu_count()}))
        if options.pictures:
            photograph(browser, address, options.pictures)


if __name__ == "__main__":
    main()
