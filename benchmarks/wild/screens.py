"""Part `screens`: formulas as web pages show them, in Chromium, light and dark, at three scales.

KaTeX comes with the package. MathJax is looked for in a folder that npm has filled; without it its fonts are
left out:

    npm install mathjax@4 @mathjax/mathjax-tex-font @mathjax/mathjax-stix2-font @mathjax/mathjax-termes-font

Screenshots are kept in a cache, so that a second run only reads. To train on such pictures, of other formulas
(one a line), in letters of any size and in more colours:

    python -m benchmarks.wild.screens FORMULAS --into FOLDER --mathjax node_modules --seed 1
    i2l build --images FOLDER --labels FOLDER/labels.tsv --out DATA --recipe world-displays
"""

import argparse
import hashlib
import io
import json
import mimetypes
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from PIL import Image

import i2l.web
from benchmarks.wild.judging import (
    Judged,
    Row,
    Sample,
    balanced,
    judge,
    read_samples,
    show_progress,
    summarize,
)
from i2l.files import atomic_write
from i2l.formulas.lexer import FormulaError
from i2l.formulas.normalize import normalize_formula
from i2l.inference.reader import Reader
from i2l.pages.marked import mathjax_settings

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page, Route

FORMULAS: Final = 200
SCALES: Final = (1.0, 1.5, 2.0)
THEMES: Final = {"light": ("#ffffff", "#111111"), "dark": ("#1e1e1e", "#e6e6e6")}
_MORE_THEMES: Final = {
    "white": ("#ffffff", "#000000"),
    "grey": ("#f6f8fa", "#24292f"),
    "sepia": ("#f4ecd8", "#3b2f23"),
    "blue": ("#ffffff", "#1f3a8a"),
    "black": ("#000000", "#ffffff"),
    "night": ("#0d1117", "#c9d1d9"),
}
_MORE_SCALES: Final = (1.0, 1.0, 1.25, 1.5, 2.0)
_SIZES_PX: Final = (13, 14, 15, 16, 16, 17, 18, 20, 22)
MATHJAX_FONTS: Final = ("mathjax-tex", "mathjax-stix2", "mathjax-termes")
FONTS: Final = ("katex", *MATHJAX_FONTS)
_HOST: Final = "http://pages.invalid/"  # every request is answered from the disk
_TOGETHER: Final = 60  # formulas on one page: a screenshot may not be taller than 16,384 pixels
_KATEX: Final = Path(i2l.web.__file__).parent / "page" / "katex"
_STYLE: Final = (
    "body {{ margin: 0; background: {paper}; color: {ink}; font: {size_px}px serif }} "
    "div {{ white-space: nowrap; width: max-content; padding: 14px 18px }} "
    ".katex-display, mjx-container {{ margin: 0 !important }}"
)
_DRAW_KATEX: Final = """formulas => formulas.map((formula, number) => {
  const place = document.body.appendChild(document.createElement("div"));
  try { katex.render(formula, place, {displayMode: true, throwOnError: true, strict: false}); return true }
  catch (error) { return false }
})"""
_DRAW_MATHJAX: Final = """async formulas => {
  const drawn = [];
  for (const formula of formulas) {
    const place = document.body.appendChild(document.createElement("div"));
    try { place.appendChild(await MathJax.tex2chtmlPromise(formula, {display: true})); }
    catch (error) { place.textContent = "?"; drawn.push(false); continue }
    drawn.push(!place.querySelector("mjx-merror"));
  }
  MathJax.startup.document.clear();
  MathJax.startup.document.updateDocument();
  return drawn;
}"""
_BOXES: Final = """() => document.fonts.ready.then(() => [...document.querySelectorAll("body > div")].map(
  place => { const box = place.getBoundingClientRect();
             return [box.left, box.top + scrollY, box.right, box.bottom + scrollY] }))"""


@dataclass(frozen=True)
class Condition:
    """How a formula is shown."""

    font: str
    scale: float
    theme: str
    size_px: int = 16  # of the letters, before scaling

    @property
    def name(self) -> str:
        """The condition as a name of a folder."""
        return f"{self.font}-{self.scale:g}x-{self.theme}"


CONDITIONS: Final = tuple(
    Condition(font, scale, theme) for font in FONTS for scale in SCALES for theme in THEMES
)


def choose_formulas(data: Path, count: int = FORMULAS) -> list[str]:
    """Choose formulas of the validation split, spread over it."""
    lines = (data / "eval" / "im2latex_val.norm.txt").read_text(encoding="utf-8").splitlines()
    chosen = []
    for line in lines[:: max(1, len(lines) // count)]:
        try:
            chosen.append(normalize_formula(line).formula)
        except FormulaError:
            continue
    return chosen[:count]


def screens_folder(formulas: Sequence[str], cache: Path) -> Path:
    """Give the folder of the cache for these formulas."""
    return cache / f"screens-{hashlib.sha256(repr(list(formulas)).encode()).hexdigest()[:12]}"


def take_screenshots(formulas: Sequence[str], folder: Path, mathjax: Path | None) -> list[Condition]:
    """Fill a folder with the screenshots that it lacks; give the conditions that it has."""
    conditions = [one for one in CONDITIONS if one.font == "katex" or mathjax is not None]
    missing = [one for one in conditions if not (folder / one.name / "done.json").is_file()]
    if missing:
        from playwright.sync_api import sync_playwright

        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=_find_chromium())
            for condition in missing:
                show_progress(f"screens: drawing {condition.name}")
                _draw_condition(browser, condition, formulas, folder / condition.name, mathjax)
            browser.close()
    return conditions


def _find_chromium() -> str | None:
    """Give the system's Chromium, if there is one; else playwright uses its own."""
    from shutil import which

    return which("chromium") or which("chromium-browser")


def _draw_condition(
    browser: "Browser", condition: Condition, formulas: Sequence[str], folder: Path, mathjax: Path | None
) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    context = browser.new_context(
        device_scale_factor=condition.scale, viewport={"width": 2400, "height": 900}
    )
    not_drawn = []
    for start in range(0, len(formulas), _TOGETHER):
        batch = [normalize_formula(formula).latex for formula in formulas[start : start + _TOGETHER]]
        page = context.new_page()
        page.route("**/*", lambda route: _answer(route, mathjax))
        for number, image in _draw_page(page, condition, batch):
            if image is None:
                not_drawn.append(start + number)
            else:
                image.save(folder / f"{start + number:04}.png")
        page.close()
    context.close()
    (folder / "done.json").write_text(json.dumps({"not_drawn": not_drawn}), encoding="utf-8")


def _answer(route: "Route", mathjax: Path | None) -> None:
    """Answer a request of a page with a file of KaTeX or MathJax, or with an empty page."""
    name = route.request.url.removeprefix(_HOST)
    if not name:
        route.fulfill(body="<!doctype html><meta charset=utf-8><body>", content_type="text/html")
        return
    folder, _, path = name.partition("/")
    root = _KATEX if folder == "katex" else mathjax
    file = root / path if root else None
    if file is None or not file.is_file():
        route.fulfill(status=404)
        return
    kind = mimetypes.guess_type(file.name)[0] or "application/octet-stream"
    route.fulfill(body=file.read_bytes(), content_type=kind, headers={"Access-Control-Allow-Origin": "*"})


def _draw_page(
    page: "Page", condition: Condition, formulas: Sequence[str]
) -> Iterator[tuple[int, Image.Image | None]]:
    page.goto(_HOST)
    paper, ink = {**THEMES, **_MORE_THEMES}[condition.theme]
    page.add_style_tag(content=_STYLE.format(paper=paper, ink=ink, size_px=condition.size_px))
    if condition.font == "katex":
        page.add_style_tag(url=f"{_HOST}katex/katex.min.css")
        page.add_script_tag(url=f"{_HOST}katex/katex.min.js")
        drawn = page.evaluate(_DRAW_KATEX, formulas)
    else:
        settings = mathjax_settings(condition.font, f"{_HOST}mathjax") | {"chtml": {"displayAlign": "left"}}
        page.evaluate("settings => { window.MathJax = settings }", settings)
        page.add_script_tag(url=f"{_HOST}mathjax/mathjax/tex-chtml-nofont.js")
        page.evaluate("() => MathJax.startup.promise")
        drawn = page.evaluate(_DRAW_MATHJAX, formulas)
    boxes = page.evaluate(_BOXES)
    page.wait_for_timeout(300)  # fonts have come, and are now painted
    whole = Image.open(io.BytesIO(page.screenshot(full_page=True))).convert("RGB")
    for number, (good, box) in enumerate(zip(drawn, boxes, strict=True)):
        corners = tuple(round(side * condition.scale) for side in box)
        inside = corners[2] <= whole.width + 1 and corners[3] <= whole.height + 1  # rounded edges
        yield number, whole.crop(corners) if good and inside else None


def draw_to_train(formulas: Sequence[str], folder: Path, mathjax: Path | None, *, seed: int) -> int:
    """Draw formulas, a page of them in one look each, and write their labels; give how many there are."""
    from playwright.sync_api import sync_playwright

    fonts = ["katex"]
    if mathjax is not None:
        fonts += sorted(found.name.removesuffix("-font") for found in (mathjax / "@mathjax").glob("*-font"))
    source = random.Random(seed)
    themes = [*THEMES, *_MORE_THEMES]
    labels = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=_find_chromium())
        for start in range(0, len(formulas), _TOGETHER):
            condition = Condition(
                *(source.choice(values) for values in (fonts, _MORE_SCALES, themes, _SIZES_PX))
            )
            part, name = formulas[start : start + _TOGETHER], f"{start // _TOGETHER:05}"
            if not (folder / name / "done.json").is_file():
                _draw_condition(browser, condition, part, folder / name, mathjax)
                show_progress(f"screens: {start + len(part)} of {len(formulas)} drawn")
            labels += [
                f"{name}/{number:04}.png\t{formula}"
                for number, formula in enumerate(part)
                if (folder / name / f"{number:04}.png").is_file()
            ]
        browser.close()
    with atomic_write(folder / "labels.tsv") as file:
        file.writelines(f"{label}\n" for label in labels)
    return len(labels)


def load_screens(
    formulas: Sequence[str], conditions: Sequence[Condition], folder: Path, *, limit: int | None
) -> list[Sample]:
    """Give the screenshots that are there, balanced over the conditions."""
    samples = []
    for number, place in balanced(len(formulas), len(conditions), limit=limit):
        name = f"{conditions[place].name}/{number:04}.png"
        if (folder / name).is_file():
            samples.append(Sample(conditions[place].name, name, folder / name, formulas[number]))
    return samples


def measure_screens(
    reader: Reader, data: Path, cache: Path, mathjax: Path | None, *, limit: int | None
) -> tuple[list[Row], list[Judged]]:
    """Read the screenshots; a row for all, and for each font, scale and theme."""
    formulas = choose_formulas(data)
    folder = screens_folder(formulas, cache)
    conditions = take_screenshots(formulas, folder, mathjax)
    samples = load_screens(formulas, conditions, folder, limit=limit)
    judged = judge(samples, read_samples(reader, samples, part="screens"))
    by_name = {condition.name: condition for condition in conditions}
    table = [summarize("all", judged)]
    for label in (
        *dict.fromkeys(one.font for one in conditions),
        *(f"{scale:g}x" for scale in SCALES),
        *THEMES,
    ):
        members = [one for one in judged if label in _labels(by_name[one.group])]
        table += [summarize(label, members)] if members else []
    return table, judged


def _labels(condition: Condition) -> tuple[str, str, str]:
    return condition.font, f"{condition.scale:g}x", condition.theme


def main() -> None:
    """Draw the formulas of a file, to train on them."""
    parser = argparse.ArgumentParser(description="Draw formulas as web pages show them, to train on them.")
    parser.add_argument("formulas", type=Path, help="one a line")
    parser.add_argument("--into", type=Path, required=True, help="folder of the pictures and of labels.tsv")
    parser.add_argument("--mathjax", type=Path, help="node_modules with MathJax; else KaTeX alone")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    formulas = []
    for line in options.formulas.read_text(encoding="utf-8").splitlines():
        try:
            formulas.append(normalize_formula(line).formula)
        except FormulaError:
            continue
    drawn = draw_to_train(formulas, options.into, options.mathjax, seed=options.seed)
    show_progress(f"screens: {drawn} of {len(formulas)} formulas drawn")


if __name__ == "__main__":
    main()
