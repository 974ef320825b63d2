"""Makes the pictures of the README from the real page, the real model and real reports: `make pictures`.

A server is started, Chromium visits it as a person would, and what it shows is kept in docs/pictures. The
reading that the start of the page plays (src/i2l/web/page/demo.json) is made here too.
"""

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page, sync_playwright

from i2l import Reader
from i2l.inference.model_folder import bundled_models

ROOT = Path(__file__).parents[1]
PICTURES = ROOT / "docs" / "pictures"
PAGE = ROOT / "src" / "i2l" / "web" / "page"
EXAMPLES = ROOT / "src" / "i2l" / "web" / "examples"
SCREEN = {"width": 1200, "height": 640}
FRAME_WIDTH_PX = 800  # of the moving picture


@contextmanager
def serving() -> Iterator[str]:
    """Run `i2l serve`; gives its address."""
    command = [sys.executable, "-m", "i2l", "serve", "--no-browser", "--port", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield next(line.split("reads at ")[1].split(" ")[0] for line in process.stdout if "reads at" in line)
    finally:
        process.terminate()
        process.wait()


def make_demo() -> None:
    """Keep the reading that the start of the page plays."""
    example = sorted(EXAMPLES.glob("*.png"))[0]
    reading = Reader().read(example).to_dict()
    tokens = [{"text": token["text"], "box": token["box"]} for token in reading["tokens"]]
    content = {"url": f"examples/{example.name}", "latex": reading["latex"], "tokens": tokens}
    (PAGE / "demo.json").write_text(json.dumps(content) + "\n")


def read_example(page: Page, place: int) -> None:
    """Take an example, and wait for its reading."""
    page.locator("#examples .card").nth(place).click()
    page.locator("#verdict").wait_for()
    page.wait_for_timeout(500)


def photograph(page: Page, path: Path) -> None:
    """Keep what a page shows, in few colours: text and formulas need no more."""
    shot = Image.open(BytesIO(page.screenshot()))
    shot.convert("RGB").quantize(128, dither=Image.Dither.NONE).save(path, optimize=True)


def film(page: Page) -> None:
    """Keep what a visit looks like: an example is read, symbols light up, another token is chosen, copied."""
    frames: list[tuple[Image.Image, int]] = []

    def shoot(duration_ms: int) -> None:
        shot = Image.open(BytesIO(page.screenshot())).convert("RGB")
        height = round(shot.height * FRAME_WIDTH_PX / shot.width)
        frames.append((shot.resize((FRAME_WIDTH_PX, height), Image.Resampling.LANCZOS), duration_ms))

    for _ in range(4):
        shoot(450)
        page.wait_for_timeout(420)
    read_example(page, 0)
    shoot(900)
    box = page.locator("#paper").bounding_box()
    assert box is not None
    for share in (0.05, 0.12, 0.35, 0.45, 0.62, 0.82, 0.93):
        page.mouse.move(box["x"] + share * box["width"], box["y"] + 0.45 * box["height"])
        page.wait_for_timeout(120)
        shoot(500)
    page.locator("#latex .cm-content").click()
    page.keyboard.press("Control+End")
    for letter in r" = \sigma":
        page.keyboard.insert_text(letter)
        shoot(130)
    shoot(600)
    page.locator("#copy").click()
    page.wait_for_timeout(100)
    shoot(1400)
    first, *others = [frame for frame, _ in frames]
    first.save(
        PICTURES / "page.webp",
        save_all=True,
        append_images=others,
        duration=[duration for _, duration in frames],
        loop=0,
        quality=70,
        method=6,
    )


def main() -> None:
    """Make all pictures."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    make_demo()
    browser_path = (
        shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    )
    with sync_playwright() as playwright, serving() as address, tempfile.TemporaryDirectory() as folder:
        browser = playwright.chromium.launch(executable_path=browser_path, args=["--no-sandbox"])
        for theme, place in (("light", 3), ("dark", 4)):
            context = browser.new_context(viewport=SCREEN, color_scheme=theme, locale="en")  # type: ignore[arg-type]
            page = context.new_page()
            page.goto(address)
            page.locator("#examples .card").first.wait_for()
            read_example(page, place)
            photograph(page, PICTURES / f"page-{theme}.png")
            context.close()
        context = browser.new_context(viewport=SCREEN, color_scheme="light", locale="en")
        context.grant_permissions(["clipboard-write"], origin=address)
        page = context.new_page()
        page.goto(address)
        page.locator("#demo-latex .lit").first.wait_for()
        film(page)
        make_reports(page, Path(folder))
        browser.close()
    for path in sorted(PICTURES.iterdir()):
        print(f"{path.relative_to(ROOT)}: {path.stat().st_size / 1000:.0f} kB")


def make_reports(page: Page, folder: Path) -> None:
    """Photograph the page of `i2l explain` and the report of `i2l evaluate` on the examples."""
    run = [sys.executable, "-m", "i2l"]
    examples = ROOT / "examples"
    subprocess.run([*run, "explain", examples / "1-paper.png", "-o", folder / "explain.html"], check=True)
    page.set_viewport_size({"width": 1100, "height": 620})
    page.goto((folder / "explain.html").as_uri())
    page.wait_for_timeout(500)
    page.mouse.move(420, 200)
    page.wait_for_timeout(300)
    photograph(page, PICTURES / "explain.png")
    labels = examples / "labels.tsv"
    report = [
        *run,
        "evaluate",
        "--model",
        bundled_models()[0],
        "--images",
        examples,
        "--labels",
        labels,
        "--out",
        folder / "report",
    ]
    subprocess.run(report, check=True)
    page.goto((folder / "report" / "report.html").as_uri())
    page.wait_for_timeout(500)
    photograph(page, PICTURES / "report.png")


if __name__ == "__main__":
    main()
