"""Pictures of pages whose formulas are known to the pixel, out of marked PDFs and out of a browser.

In a PDF that `i2l.pages.corpus` has had TeX set, every formula has a colour of its own. In Chromium a page is
drawn twice: as a person sees it, and with each formula in another colour than its neighbours. Either says
exactly which pixels are whose ink. The picture that is kept is grey, with all of that ink drawn alike.
"""

import html
import io
import itertools
import json
import mimetypes
import random
import re
from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from shutil import which
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from i2l.errors import require_extra
from i2l.extraction.document import Found
from i2l.files import atomic_write
from i2l.images.ink import extract_ink
from i2l.pages.corpus import (
    MARKED_RED,
    NUMBER_KEY,
    PLACE,
    WORDS,
    Look,
    Part,
    Story,
    compose_document,
    draw_look,
    draw_stories,
)
from i2l.pages.gather import DISPLAYED, INLINE, KINDS, NUMBER
from i2l.pages.variety import Strangers, part_of, vary_story
from i2l.rendering.rasterize import open_pdf
from i2l.rendering.sandbox import run_tex

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page, Playwright, Route
    from pypdfium2 import PdfDocument


@dataclass(frozen=True)
class MarkedBox:
    """A formula, or the part of it in one line, on a page: its ink's box in pixels, and what it says."""

    kind: str
    box: tuple[int, int, int, int]  # left, top, right, bottom, half-open
    baseline_px: float
    latex: str = ""
    whole: bool = True  # all of the formula is in this box


@dataclass(frozen=True)
class MarkedPage:
    """A page as a picture, the class of every pixel of ink, and the boxes of its formulas."""

    pixels: NDArray[np.uint8]  # grey, 255 is white
    classes: NDArray[np.uint8]  # 0: no formula's ink; else the kind's place, from 1
    boxes: list[MarkedBox]
    dpi: int
    look: str  # class, font and size, in words


class _Stroke(NamedTuple):
    """An object of a page that a mark colours: where it starts, and which room it takes, in points."""

    key: int
    x: float
    y: float
    box: tuple[float, float, float, float]  # left, bottom, right, top


def mark_pages(
    pdf: bytes, formulas: Sequence[tuple[str, str]], size_pt: float, dpis: Iterator[int], look: str = ""
) -> Iterator[MarkedPage]:
    """Draw the pages of a marked document, and find the boxes of its formulas.

    Args:
        pdf: the document.
        formulas: environment and LaTeX behind each mark, from 1.
        size_pt: of its type.
        dpis: resolution of each page.
        look: what it was set in, in words.
    """
    with open_pdf(pdf) as document:
        drawn = [_draw_page(document, number, next(dpis)) for number in range(len(document))]
    pages_of: dict[int, int] = {}
    for _, keys, _, _ in drawn:
        for key in np.unique(keys):
            pages_of[int(key)] = pages_of.get(int(key), 0) + 1
    for pixels, keys, strokes, dpi in drawn:
        boxes: list[MarkedBox] = []
        classes = np.zeros(keys.shape, np.uint8)
        for key, lines in _pieces(strokes, size_pt).items():
            mask = keys == key
            environment, latex = ("", "") if key == NUMBER_KEY else formulas[key - 1]
            inline = Found(0, 0, 0, 0, environment).inline
            kind = NUMBER if key == NUMBER_KEY else INLINE if inline else DISPLAYED
            classes[mask] = KINDS.index(kind) + 1
            whole = [[stroke for line in lines for stroke in line]]
            pieces = whole if kind == DISPLAYED else lines
            alone = len(pieces) == 1 and pages_of.get(key) == 1
            for box, baseline in _ink_boxes(mask, pieces, dpi, pixels.shape[0]):
                boxes.append(MarkedBox(kind, box, baseline, latex, alone))
        yield MarkedPage(pixels, classes, boxes, dpi, look)


def _draw_page(
    document: "PdfDocument", number: int, dpi: int
) -> tuple[NDArray[np.uint8], NDArray[np.int32], list[_Stroke], int]:
    """Return the grey picture of a page, the mark of every pixel of ink, and the marked objects."""
    from ctypes import byref, c_float, c_uint

    raw = require_extra("pypdfium2.raw", "data")
    page = document[number]
    plain = page.render(
        scale=dpi / 72,
        optimize_mode=None,
        no_smoothtext=True,
        no_smoothpath=True,
        no_smoothimage=True,
        rev_byteorder=True,
    )
    colours = np.asarray(plain.to_numpy())[:, :, :3].astype(np.int32)
    keys = np.where(colours[:, :, 0] == MARKED_RED, colours[:, :, 1] * 256 + colours[:, :, 2], 0)
    strokes: list[_Stroke] = []
    red, green, blue, alpha = c_uint(), c_uint(), c_uint(), c_uint()
    left, bottom, right, top = c_float(), c_float(), c_float(), c_float()
    matrix = raw.FS_MATRIX()
    for index in range(raw.FPDFPage_CountObjects(page)):
        item = raw.FPDFPage_GetObject(page, index)
        raw.FPDFPageObj_GetFillColor(item, byref(red), byref(green), byref(blue), byref(alpha))
        if red.value != MARKED_RED or alpha.value != 255:
            continue
        raw.FPDFPageObj_GetBounds(item, byref(left), byref(bottom), byref(right), byref(top))
        box = left.value, bottom.value, right.value, top.value
        raw.FPDFPageObj_GetMatrix(item, byref(matrix))
        text = raw.FPDFPageObj_GetType(item) == raw.FPDF_PAGEOBJ_TEXT
        x, y = (matrix.e, matrix.f) if text else box[:2]
        strokes.append(_Stroke(green.value * 256 + blue.value, x, y, box))
        raw.FPDFPageObj_SetFillColor(item, 0, 0, 0, 255)
        raw.FPDFPageObj_SetStrokeColor(item, 0, 0, 0, 255)
    pixels = np.asarray(page.render(scale=dpi / 72, grayscale=True).to_numpy()).copy()
    page.close()
    return pixels, _spread(keys.astype(np.int32), pixels), strokes, dpi


def _spread(keys: NDArray[np.int32], pixels: NDArray[np.uint8]) -> NDArray[np.int32]:
    """Give the soft rims of marked strokes, which the hard drawing does not have, the mark beside them."""
    for axis, step in ((0, 1), (0, -1), (1, 1), (1, -1)):
        beside = np.roll(keys, step, axis)
        keys = np.where((keys == 0) & (pixels < 215) & (beside > 0), beside, keys)
    return keys


def _pieces(strokes: Sequence[_Stroke], size_pt: float) -> dict[int, list[list[_Stroke]]]:
    """Cut the objects of each mark where TeX began a new line; numbers that are not neighbours are apart."""
    found: dict[int, list[list[_Stroke]]] = {}
    for given in strokes:
        low, high = given.box[1], given.box[3]
        hangs = high < given.y + 0.1 * size_pt and low < given.y - 0.5 * size_pt  # from its point, as a sum
        stroke = given._replace(y=(low + high) / 2 - 0.25 * size_pt) if hangs else given
        pieces = found.setdefault(stroke.key, [[]])
        if pieces[-1]:
            before = pieces[-1][-1]
            back = before.x - stroke.x > 2 * size_pt and before.y - stroke.y > 0.7 * size_pt
            column = stroke.y - before.y > 6 * size_pt and stroke.x - before.x > 4 * size_pt
            apart = stroke.key == NUMBER_KEY and (
                abs(before.y - stroke.y) > 2 or abs(before.box[2] - stroke.box[0]) > size_pt
            )
            if back or column or apart:
                pieces.append([])
        pieces[-1].append(stroke)
    return found


def _ink_boxes(
    mask: NDArray[np.bool_], pieces: list[list[_Stroke]], dpi: int, height: int
) -> Iterator[tuple[tuple[int, int, int, int], float]]:
    """Return the box of the ink of each piece, and its baseline, in pixels."""
    scale = dpi / 72
    for piece in pieces:
        left = int(min(stroke.box[0] for stroke in piece) * scale) - 3
        right = int(max(stroke.box[2] for stroke in piece) * scale) + 4
        top = height - int(max(stroke.box[3] for stroke in piece) * scale) - 4
        bottom = height - int(min(stroke.box[1] for stroke in piece) * scale) + 3
        left, top = max(0, left), max(0, top)
        box = _trimmed(mask[top:bottom, left:right], left, top)
        if box is not None:
            yield box, height - piece[0].y * scale


def _trimmed(marked: NDArray[np.bool_], left: int, top: int) -> tuple[int, int, int, int] | None:
    """Return the box of the marked pixels of a part whose corner lies at (left, top); None if none are."""
    rows, columns = np.flatnonzero(marked.any(axis=1)), np.flatnonzero(marked.any(axis=0))
    if not len(rows):
        return None
    return left + int(columns[0]), top + int(rows[0]), left + int(columns[-1]) + 1, top + int(rows[-1]) + 1


DPI_RANGE: Final = (80, 250)
_CPU_S: Final = 40


class MarkedDocument(NamedTuple):
    """A document whose formulas are marked, and what stands behind each mark, from 1."""

    pdf: bytes
    formulas: list[tuple[str, str]]  # environment, LaTeX
    look: Look


def make_documents(
    sources: Sequence[Path],
    *,
    classes: Sequence[str],
    seed: int,
    varied: bool = False,
    others: Strangers | None = None,
) -> Iterator[MarkedDocument]:
    """Set the prose of TeX sources in documents of many looks, without end.

    Args:
        sources: folders, files or archives of TeX sources.
        classes: the document classes to choose from.
        seed: of all choices.
        varied: change the stories as `vary_story` does.
        others: formulas of other authors, for varied stories.

    Raises:
        I2LError: if there is no prose in the sources.
    """
    source = random.Random(seed)
    for drawn in draw_stories(sources, source):
        look = draw_look(source, classes)
        story, first, gap = drawn, source.randrange(max(1, len(drawn.parts) - 30)), None
        if varied:
            story, first = vary_story(part_of(drawn, first), source, others), 0
            gap = source.choice([None, 5.0, 8.0, 12.0])
        text, _, marked = compose_document(story, first, look, source, row_gap_pt=gap)
        result = run_tex(text, trusted=False, cpu_s=_CPU_S)
        if result.pdf:
            yield MarkedDocument(result.pdf, [story.formulas[number] for number in marked], look)


def make_pages(
    sources: Sequence[Path],
    *,
    classes: Sequence[str],
    seed: int = 0,
    dpi: int | None = None,
    varied: bool = False,
    others: Strangers | None = None,
) -> Iterator[MarkedPage]:
    """Set the prose of TeX sources in pages, as `make_documents` does; of one resolution, or of any."""
    source = random.Random(seed)

    def draw_dpi() -> Iterator[int]:
        while True:
            low, high = DPI_RANGE
            yield dpi or round(low * (high / low) ** source.random())

    for document in make_documents(sources, classes=classes, seed=seed, varied=varied, others=others):
        look = document.look
        pages = mark_pages(document.pdf, document.formulas, look.size_pt, draw_dpi(), str(look))
        try:
            drawn = list(pages)
        except RuntimeError:  # pdfium cannot open what TeX left when it gave up
            continue
        yield from drawn


def write_pages(pages: Iterator[MarkedPage], folder: Path, count: int) -> None:
    """Write pages as pictures with their classes and boxes; what is there already counts.

    Every page is `NUMBER.png`, `NUMBER.classes.png` and `NUMBER.json`, the last of which is written last.
    """
    folder.mkdir(parents=True, exist_ok=True)
    number = len(list(folder.glob("*.json")))
    while number < count:
        page = next(pages)
        if not page.boxes and number % 20:
            continue
        Image.fromarray(page.pixels).save(folder / f"{number:06d}.png", compress_level=1)
        Image.fromarray(page.classes).save(folder / f"{number:06d}.classes.png", compress_level=1)
        with atomic_write(folder / f"{number:06d}.json") as file:
            json.dump(
                {"dpi": page.dpi, "look": page.look, "boxes": [asdict(box) for box in page.boxes]}, file
            )
        number += 1


_HOST: Final = "http://pages.invalid/"  # every request is answered from the disk
_KATEX: Final = Path(__file__).parent.parent / "web" / "page" / "katex"
_PAINT_MS: Final = 120  # between the fonts' coming and their being painted
_CSS_DPI: Final = 96
_MARGINS_PX: Final = (-4.0, -3.0, 4.0, 3.0)  # around the room of a formula, in which its ink may still lie
_MIN_MARKED: Final = 36  # of 255: less ink has no colour that could be told
_MAX_PAGE_PX: Final = 9_000_000
# The three bits of a colour say which of red, green and blue its ink takes away. Black, 7, is text.
_COLOURS: Final = {INLINE: (1, 2, 4), DISPLAYED: (3, 5), NUMBER: (6,)}
_DRAW_KATEX: Final = """formulas => document.querySelectorAll(".f").forEach(place => {
  const [latex, display] = formulas[place.dataset.key];
  try { katex.render(latex, place, {displayMode: display, throwOnError: true, strict: false}) }
  catch (error) { place.className = "failed" }
})"""
_DRAW_MATHJAX: Final = """async formulas => {
  for (const place of document.querySelectorAll(".f")) {
    const [latex, display] = formulas[place.dataset.key];
    try { place.appendChild(await MathJax.tex2chtmlPromise(latex, {display})) }
    catch (error) { place.className = "failed" }
    if (place.querySelector("mjx-merror")) place.className = "failed";
  }
  MathJax.startup.document.clear();
  MathJax.startup.document.updateDocument();
}"""
# Gives [place, kind, key, baseline, left, top, right, bottom] of every formula, or of its part in one line.
# Displays that could not be drawn, or are wider than their column, go; so do their numbers.
_PLACES: Final = """async () => {
  await document.fonts.ready;
  for (const row of document.querySelectorAll(".row")) {
    const formula = row.querySelector(".f"), drawn = formula && formula.firstElementChild;
    const room = formula && formula.getBoundingClientRect();
    const sticksOut = one => one.getBoundingClientRect().left < room.left
      || one.getBoundingClientRect().right > room.right;
    if (!drawn || [...drawn.querySelectorAll(".base, mjx-math")].some(sticksOut)) row.remove();
  }
  for (const failed of document.querySelectorAll(".failed")) failed.remove();
  const places = [];
  const add = (index, kind, key, baseline, boxes) => places.push([index, kind, key, baseline + scrollY,
    Math.min(...boxes.map(box => box.left)), Math.min(...boxes.map(box => box.top)) + scrollY,
    Math.max(...boxes.map(box => box.right)), Math.max(...boxes.map(box => box.bottom)) + scrollY]);
  for (const [index, place] of [...document.querySelectorAll(".f, .number")].entries()) {
    const key = Number(place.dataset.key ?? -1), box = place.getBoundingClientRect();
    if (place.matches(".number")) { add(index, "number", -1, box.bottom, [box]); continue }
    if (place.matches(".row *")) { add(index, "displayed", key, box.bottom, [box]); continue }
    const lines = new Map();
    for (const base of place.querySelectorAll(".base")) {
      const strut = base.querySelector(".strut"), depth = getComputedStyle(strut).verticalAlign;
      const baseline = strut.getBoundingClientRect().bottom + (parseFloat(depth) || 0);
      const line = Math.round(baseline / 4);
      const near = [line - 1, line, line + 1].find(one => lines.has(one)) ?? line;
      if (!lines.has(near)) lines.set(near, [baseline, []]);
      lines.get(near)[1].push(base.getBoundingClientRect());
    }
    for (const [baseline, boxes] of lines.values()) add(index, "inline", key, baseline, boxes);
    if (!lines.size) {
      const mark = document.createElement("span");
      mark.style.cssText = "display: inline-block; width: 0; height: 0";
      place.style.whiteSpace = "nowrap";
      place.prepend(mark);
      const baseline = mark.getBoundingClientRect().bottom;
      mark.remove();
      const drawn = place.querySelector("mjx-math") ?? place;
      add(index, "inline", key, baseline, [drawn.getBoundingClientRect()]);
    }
  }
  return places;
}"""
_MARK: Final = """colours => {
  const style = document.createElement("style");
  style.textContent = `* { background: transparent !important; color: #000 !important; opacity: 1 !important }
    html { background: #fff !important }` + [1, 2, 3, 4, 5, 6].map(bits => {
      const name = "c" + bits, colour = [1, 2, 4].map(bit => bits & bit ? 0 : 255).join(",");
      return `.${name}, .${name} * { color: rgb(${colour}) !important;
        border-color: rgb(${colour}) !important }`;
    }).join(" ");
  document.head.append(style);
  const count = {inline: 0, displayed: 0, number: 0};
  return [...document.querySelectorAll(".f, .number")].map(place => {
    const kind = place.matches(".number") ? "number" : place.matches(".row *") ? "displayed" : "inline";
    const bits = colours[kind][count[kind]++ % colours[kind].length];
    place.classList.add("c" + bits);
    return bits;
  });
}"""


class WebPage(NamedTuple):
    """A page to be drawn by a browser: its body and style, and how it is looked at."""

    body: str  # `.f` are formulas, with their key; those in a `.row` are displays; `.number` are numbers
    style: str
    formulas: list[tuple[str, bool]]  # LaTeX by its key, and whether it is displayed
    engine: str  # katex, or the font of MathJax
    width_px: int  # of the window, as CSS counts pixels
    scale: float  # pixels of the picture for one of CSS
    look: str


class WebDrawer:
    """A browser that draws web pages with known formulas: a context, since it stays open meanwhile."""

    def __init__(self, modules: Path | None = None, *, browser: "Browser | None" = None) -> None:
        """Start Chromium.

        Args:
            modules: a folder that npm has filled with MathJax and fonts; without it only KaTeX draws.
            browser: one that runs already, and is left running.

        Raises:
            MissingDependencyError: if playwright is not installed.
        """
        self._modules = modules
        self._playwright: Playwright | None = None
        if browser is None:
            self._playwright = require_extra("playwright.sync_api", "dev").sync_playwright().start()
            browser = self._playwright.chromium.launch(
                executable_path=which("chromium") or which("chromium-browser"), args=["--disable-lcd-text"]
            )
        self._browser = browser

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._playwright is not None:
            self._browser.close()
            self._playwright.stop()

    def draw(self, page: WebPage, *, levelled: bool) -> MarkedPage | None:
        """Draw a page, and find the boxes of its formulas; None if it came out too large.

        Args:
            page: what to draw.
            levelled: make the ink black and the paper white, as training wants it.
        """
        context = self._browser.new_context(
            device_scale_factor=page.scale, viewport={"width": page.width_px, "height": 800}
        )
        try:
            shown = context.new_page()
            shown.route("**/*", self._answer)
            shown.goto(_HOST)
            self._typeset(shown, page)
            places = shown.evaluate(_PLACES)
            shown.wait_for_timeout(_PAINT_MS)
            height = shown.evaluate("document.documentElement.scrollHeight")
            if page.width_px * height * page.scale**2 > _MAX_PAGE_PX:
                return None
            seen = _screenshot(shown).convert("L")
            bits = shown.evaluate(_MARK, {kind: list(codes) for kind, codes in _COLOURS.items()})
            marked = np.asarray(_screenshot(shown).convert("RGB"))
        finally:
            context.close()
        pixels = np.asarray(seen)
        if levelled:
            pixels = 255 - extract_ink(seen)
        codes = _read_colours(marked)
        classes = np.zeros(codes.shape, np.uint8)
        for kind, colours in _COLOURS.items():
            classes[np.isin(codes, colours)] = KINDS.index(kind) + 1
        boxes = list(_web_boxes(places, bits, codes, page))
        return MarkedPage(pixels, classes, boxes, round(_CSS_DPI * page.scale), page.look)

    def _typeset(self, shown: "Page", page: WebPage) -> None:
        shown.add_style_tag(content=page.style)
        shown.evaluate("body => { document.body.innerHTML = body }", page.body)
        if page.engine == "katex":
            shown.add_style_tag(url=f"{_HOST}katex/katex.min.css")
            shown.add_script_tag(url=f"{_HOST}katex/katex.min.js")
            shown.evaluate(_DRAW_KATEX, page.formulas)
        else:
            settings = mathjax_settings(page.engine, f"{_HOST}modules")
            settings["output"]["linebreaks"] = {"inline": False}
            shown.evaluate("settings => { window.MathJax = settings }", settings)
            shown.add_script_tag(url=f"{_HOST}modules/mathjax/tex-chtml-nofont.js")
            shown.evaluate("() => MathJax.startup.promise")
            shown.evaluate(_DRAW_MATHJAX, page.formulas)

    def _answer(self, route: "Route") -> None:
        """Answer a request of a page with a file of KaTeX, of MathJax or of a font, or with an empty page."""
        name = route.request.url.removeprefix(_HOST)
        if not name:
            route.fulfill(body="<!doctype html><meta charset=utf-8><body>", content_type="text/html")
            return
        folder, _, path = name.partition("/")
        root = _KATEX if folder == "katex" else self._modules
        file = root / path if root else None
        if file is None or not file.is_file():
            route.fulfill(status=404)
            return
        kind = mimetypes.guess_type(file.name)[0] or "application/octet-stream"
        route.fulfill(body=file.read_bytes(), content_type=kind)


def mathjax_settings(font: str, modules: str) -> dict[str, Any]:
    """Return settings with which MathJax typesets when it is told to, from an address with its modules."""
    return {
        "loader": {"paths": {"mathjax": f"{modules}/mathjax", "fonts": f"{modules}/@mathjax"}},
        "output": {"font": font, "fontPath": f"{modules}/@mathjax/%%FONT%%-font"},
        "options": {
            "enableMenu": False,
            "enableEnrichment": False,
            "enableSpeech": False,
            "enableBraille": False,
        },
        "startup": {"typeset": False},
        "tex": {"packages": {"[-]": ["noundefined"]}},  # else it writes the names of commands it lacks
    }


def _screenshot(shown: "Page") -> Image.Image:
    return Image.open(io.BytesIO(shown.screenshot(full_page=True)))


def _read_colours(marked: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return for each pixel the bits of its colour; 0 where there is no ink, 7 for text."""
    taken = 255 - marked.astype(np.int16)
    most = taken.max(axis=2)
    bits = (taken * 2 > most[:, :, None]) @ np.array([1, 2, 4])
    codes: NDArray[np.uint8] = np.where(most >= _MIN_MARKED, bits, 0).astype(np.uint8)
    return codes


def _web_boxes(
    places: list[list[Any]], bits: list[int], codes: NDArray[np.uint8], page: WebPage
) -> Iterator[MarkedBox]:
    """Trim the rooms that formulas take in a browser to their ink."""
    lines = Counter(place[0] for place in places)
    for index, kind, key, baseline, *sides in places:
        left, top, right, bottom = (
            max(0, int((side + margin) * page.scale)) for side, margin in zip(sides, _MARGINS_PX, strict=True)
        )
        box = _trimmed(codes[top:bottom, left:right] == bits[index], left, top)
        if box is not None:
            latex = page.formulas[key][0] if key >= 0 else ""
            yield MarkedBox(kind, box, baseline * page.scale, latex, lines[index] == 1)


WEB_ENGINES: Final = ("katex", "katex", "mathjax-tex", "mathjax-stix2", "mathjax-termes", "mathjax-newcm")
_WEB_FONTS: Final = {  # as npm names them, with what stands in for them where they are not there
    "arimo": "sans-serif", "tinos": "serif", "gelasio": "serif", "roboto": "sans-serif", "lora": "serif",
    "open-sans": "sans-serif", "merriweather": "serif", "source-serif-4": "serif", "inter": "sans-serif",
    "lato": "sans-serif", "noto-serif": "serif", "crimson-text": "serif", "alegreya": "serif",
}  # fmt: skip
_WEB_SYSTEM_FONTS: Final = (
    "DejaVu Sans",
    "DejaVu Serif",
    "Latin Modern Roman",
    "Bitstream Charter",
    "Utopia",
)
_WEB_ROOM: Final = (700, 2_400)  # of a page: its characters, and some for every display
_DISPLAY_ROOM: Final = 150
_WEB_THEMES: Final = (  # paper, ink, links, boxes
    ("#ffffff", "#111111", "#0645ad", "#f4f4f8"), ("#ffffff", "#333333", "#c0392b", "#eef6ff"),
    ("#fffff8", "#111111", "#111111", "#f0efe0"), ("#fdf6e3", "#657b83", "#268bd2", "#eee8d5"),
    ("#1e1e1e", "#e6e6e6", "#8ab4f8", "#2a2d34"), ("#0d1117", "#c9d1d9", "#58a6ff", "#161b22"),
)  # fmt: skip


def _draw_style(source: random.Random) -> tuple[str, str]:
    """Choose how a web page looks; return its CSS, and what stands out in words."""
    font = source.choice([*_WEB_FONTS, *_WEB_SYSTEM_FONTS])
    faces = "".join(
        f"@font-face {{ font-family: '{font}'; font-weight: {weight}; font-style: {style}; src: "
        f"url(modules/@fontsource/{font}/files/{font}-latin-{weight}-{style}.woff2) }} "
        for weight in (400, 700)
        for style in ("normal", "italic")
        if font in _WEB_FONTS
    )
    paper, ink, link, box = source.choice(_WEB_THEMES)
    size, columns = source.choice([13, 14, 15, 16, 16, 17, 18, 20]), 2 if source.random() < 0.2 else 1
    margin = source.randint(8, 60)
    css = (
        faces
        + f"""
body {{ margin: 0; padding: {source.randint(0, 30)}px {margin}px; background: {paper}; color: {ink};
  font: {size}px/{source.choice([1.2, 1.4, 1.5, 1.6, 1.8])} '{font}', {_WEB_FONTS.get(font, "serif")};
  text-align: {source.choice(["left", "justify"])} }}
main {{ column-count: {columns}; column-gap: 36px }}
h2 {{ font-size: {source.uniform(1.1, 1.8):.2f}em; font-weight: {source.choice([400, 700])} }}
a {{ color: {link} }}
.katex {{ font-size: {source.choice([1.0, 1.1, 1.21])}em }}
mjx-container {{ font-size: {source.choice([90, 100, 108])}% !important }}
.row {{ display: flex; align-items: center; break-inside: avoid; margin: {source.uniform(0.5, 1.6):.2f}em 0 }}
.row .f {{ flex: 1; min-width: 0; text-align: {source.choice(["center", "center", "center", "left"])};
  padding-left: {source.choice([0, 0, 2])}em }}
.row .number {{ order: {source.choice([1, 1, 1, -1])} }}
.katex-display, mjx-container {{ margin: 0 !important; text-align: inherit !important }}
.katex-display > .katex {{ text-align: inherit !important }}
.box {{ background: {box}; border-left: 4px solid {link}; padding: 4px 14px; break-inside: avoid }}
nav {{ background: {box}; padding: 6px; margin-bottom: 12px; font-size: 90% }} nav a {{ margin-right: 18px }}
pre, code {{ font: 90% 'DejaVu Sans Mono', monospace; background: {box} }}
td, th {{ border: 1px solid {ink}; padding: 2px 9px }} table {{ border-collapse: collapse }}"""
    )
    return css, f"{font} {size}px {columns}col{' dark' if paper < '#8' else ''}"


def compose_web_page(story: Story, source: random.Random, engine: str) -> WebPage:
    """Write a story, or as much of it as a page takes, as a web page."""
    css, words = _draw_style(source)
    writer = _WebWriter(story, source)
    room = source.randint(*_WEB_ROOM)
    body: list[str] = []
    if source.random() < 0.5:
        links = "".join(f"<a>{source.choice(WORDS).title()}</a>" for _ in range(5))
        body.append(f"<nav><b>{story.parts[0].text[:20] if story.parts else ''}</b> {links}</nav>")
    body.append("<main>")
    for part in story.parts:
        body.append(writer.write(part))
        room -= _DISPLAY_ROOM if part.kind == "displayed" else len(part.text)
        if room < 0:
            break
    body.append("</main>")
    scale = source.choice([1.0, 1.0, 1.25, 1.5, 2.0])
    width = source.randint(520, 1280 if scale < 1.5 else 900)
    return WebPage(
        "".join(body), css, writer.formulas, engine, width, scale, f"web {engine} {words} {scale:g}x"
    )


_TEX_MARKUP: Final = re.compile(
    r"\\(emph|textit|textbf|texttt|textsc|textsf)\{([^{}]*)\}|\\(ldots|dots|S)\{\}|\\([%&#_{}$])|``|''|---?|~|[{}]"
)
_TAGS: Final = {
    "emph": "em",
    "textit": "i",
    "textbf": "b",
    "texttt": "code",
    "textsc": "span",
    "textsf": "span",
}


class _WebWriter:
    """Writes the parts of a story as HTML, and keeps the formulas of it by their keys."""

    def __init__(self, story: Story, source: random.Random) -> None:
        self._story, self._source = story, source
        self._numbered = source.choice([0.0, 0.3, 1.0])
        self._count = itertools.count(1)
        self._chapter = source.choice(["", "", "2.", "A."])
        self.formulas: list[tuple[str, bool]] = []

    def write(self, part: Part) -> str:
        """Write a part, and now and then a table or a listing after it."""
        if part.kind == "displayed":
            return self._display(int(part.text[1:-1]))
        text = self._prose(part.text)
        if part.kind == "heading":
            return f"<h2>{text}</h2>"
        if part.kind == "item":
            return f"<li>{text}</li>"
        name = "div class=box" if part.leaning and self._source.random() < 0.5 else "p"
        text = f"<i>{text}</i>" if part.leaning and self._source.random() < 0.4 else text
        return f"<{name}>{text}</{name.split()[0]}>{self._extra() if self._source.random() < 0.05 else ''}"

    def _prose(self, text: str) -> str:
        pieces = []
        last = 0
        for place in PLACE.finditer(text):
            pieces += [self._words(text[last : place.start()]), self._inline(int(place[1]))]
            last = place.end()
        return "".join([*pieces, self._words(text[last:])])

    def _words(self, text: str) -> str:
        def put(match: re.Match[str]) -> str:
            if match[1]:
                return f"<{_TAGS[match[1]]}>{_TEX_MARKUP.sub(put, match[2])}</{_TAGS[match[1]]}>"
            if match[3] or match[4]:
                return match[4] or {"S": "\u00a7"}.get(match[3], "\u2026")
            return {"``": "\u201c", "''": "\u201d", "--": "\u2013", "---": "\u2014", "~": "\u00a0"}.get(
                match[0], ""
            )

        words = _TEX_MARKUP.sub(put, html.escape(text, quote=False))
        if self._source.random() < 0.2:
            words = re.sub(r"\b([a-z]{5,9} [a-z]{3,9})\b", r"<a>\1</a>", words, count=1)
        return words

    def _key(self, latex: str, displayed: bool) -> int:
        self.formulas.append((latex, displayed))
        return len(self.formulas) - 1

    def _inline(self, formula: int) -> str:
        return f"<span class=f data-key={self._key(self._story.formulas[formula][1], False)}></span>"

    def _display(self, formula: int) -> str:
        latex = re.sub(
            r"\\(begin|end)\{(equation|multline|eqnarray)\*?\}", "", self._story.formulas[formula][1]
        )
        latex = re.sub(r"\\(begin|end)\{(align|gather|alignat|flalign)\*?\}", r"\\\1{\2*}", latex)
        number = ""
        if self._source.random() < self._numbered:
            number = f"<span class=number>({self._chapter}{next(self._count)})</span>"
        return f"<div class=row><div class=f data-key={self._key(latex, True)}></div>{number}</div>"

    def _extra(self) -> str:
        source = self._source
        word = source.choice(WORDS)
        if source.random() < 0.5:
            return (
                f"<pre>def {word}(x, n=3):\n    y = x[0] + {word}(n - 1)\n    return y ** 2 / (n + 1)</pre>"
            )
        rows = "".join(
            f"<tr><td>{source.choice(WORDS)}<td>{source.uniform(0, 99):.2f}<td>{source.randint(0, 999)}"
            for _ in range(4)
        )
        return f"<table>{rows}</table>"


def make_web_pages(
    sources: Sequence[Path],
    *,
    seed: int,
    modules: Path | None = None,
    levelled: bool = True,
    others: Strangers | None = None,
) -> Generator[MarkedPage, None, None]:
    """Write the prose of TeX sources as web pages of many looks, without end, and draw them in Chromium.

    It is to be closed, which ends the browser.

    Args:
        sources: folders, files or archives of TeX sources.
        seed: of all choices.
        modules: a folder that npm has filled with MathJax and fonts; without it there are KaTeX and the
            fonts of the system.
        levelled: make the ink black and the paper white, as training wants it.
        others: formulas of other authors, which come into pages to train with.

    Raises:
        I2LError: if there is no prose in the sources.
    """
    source = random.Random(seed)
    with WebDrawer(modules) as drawer:
        for story in draw_stories(sources, source):
            part = part_of(story, source.randrange(max(1, len(story.parts) - 12)))
            if levelled:  # to be trained with
                part = vary_story(part, source, others)
            engine = source.choice(WEB_ENGINES) if modules else "katex"
            page = drawer.draw(compose_web_page(part, source, engine), levelled=levelled)
            if page is not None:
                yield page
