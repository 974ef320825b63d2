"""Whole pages: boxes that are known, formulas that are found, and files of every kind."""

import csv
import hashlib
import io
import itertools
import json
import os
import pickle
import random
import re
import signal
import subprocess
import sys
import time
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from PIL import Image
from typer.testing import CliRunner

from benchmarks.pages import match, moved
from i2l.cli import app
from i2l.cli.read import _PAGE_UNREAD, _page_hint
from i2l.config import ReadingOptions
from i2l.errors import I2LError
from i2l.files import find_damage
from i2l.pages import document
from i2l.pages.corpus import Part, compose_document, draw_look
from i2l.pages.document import MAX_PAGES, PageError, PageFile
from i2l.pages.find import DETECTOR_FILE, DETECTOR_FOLDER, reduce_page, symbol_height
from i2l.pages.gather import DISPLAYED, INLINE, NUMBER, PageInk
from i2l.pages.marked import WebDrawer, WebPage, compose_web_page, mark_pages
from i2l.pages.order import Found, reading_order
from i2l.pages.output import (
    PageTask,
    _claim,
    _read_in_processes,
    _save_picture,
    plan_documents,
    print_pages,
    read_tasks,
    tasks_of,
)
from i2l.pages.reader import (
    PICTURE,
    PageFormula,
    PageReader,
    PageReading,
    _quarter_turn,
    choose_pages,
    straighten,
)
from i2l.pages.variety import vary_story
from tests.pages.conftest import set_story

needs_tex = pytest.mark.tex


@pytest.fixture(scope="module")
def reader():
    return PageReader(threads=1)


def only_finds(reader, source):
    """Find the formulas of the first page of a file without reading them."""
    with PageFile(source) as file:
        return reader.read_page_of(file, 1, read=False)


def blank_pdf(pages=1, width=595, height=842, content=""):
    """A PDF by hand, with the same content on all pages, or a list of what is on each."""
    contents = [content] * pages if isinstance(content, str) else content
    pages = len(contents)
    objects = ["<< /Type /Catalog /Pages 2 0 R >>"]
    kids = " ".join(f"{3 + 2 * index} 0 R" for index in range(pages))
    objects.append(f"<< /Type /Pages /Count {pages} /Kids [{kids}] >>")
    for index, content in enumerate(contents):
        objects.append(
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 {width} {height}] /Contents {4 + 2 * index} 0 R >>"
        )
        objects.append(f"<< /Length {len(content)} >>\nstream\n{content}\nendstream")
    body = "%PDF-1.4\n"
    places = []
    for number, text in enumerate(objects, 1):
        places.append(len(body))
        body += f"{number} 0 obj\n{text}\nendobj\n"
    table = "".join(f"{place:010d} 00000 n \n" for place in places)
    head = f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n"
    tail = f"trailer << /Size {len(objects) + 1} /Root 1 0 R >>\nstartxref\n{len(body)}\n%%EOF\n"
    return (body + head + table + tail).encode()


def test_the_detector_in_the_box_is_whole_and_small():
    assert (DETECTOR_FOLDER / DETECTOR_FILE).stat().st_size <= 8_000_000
    assert find_damage(DETECTOR_FOLDER, [DETECTOR_FILE, "README.md"]) is None


@needs_tex
def test_marks_give_every_formula_its_own_ink(marked):
    kinds = [box.kind for box in marked.boxes]
    assert kinds.count(DISPLAYED) >= 3
    assert kinds.count(NUMBER) >= kinds.count(DISPLAYED)
    assert kinds.count(INLINE) >= 6
    covered = np.zeros(marked.classes.shape, bool)
    for box in marked.boxes:
        left, top, right, bottom = box.box
        part = marked.classes[top:bottom, left:right]
        kind = [INLINE, DISPLAYED, NUMBER].index(box.kind) + 1
        edges = (part[0], part[-1], part[:, 0], part[:, -1])
        assert all((edge == kind).any() for edge in edges), "a box is as small as its ink"
        covered[top:bottom, left:right] = True
    assert not marked.classes[~covered].any()
    integral = next(box for box in marked.boxes if "int" in box.latex and box.kind == DISPLAYED)
    assert "R_{n}(x)" in integral.latex


@needs_tex
def test_formulas_are_found(marked, detector):
    found = detector.find(Image.fromarray(marked.pixels))
    truth = [box.box for box in marked.boxes if box.kind == DISPLAYED]
    mine = [item.box for item in found.formulas if item.kind == DISPLAYED]
    assert len(match(truth, mine, 0.5)) == len(truth) == len(mine)
    heights = [item.box[1] for item in found.formulas if item.kind == DISPLAYED]
    assert heights == sorted(heights)


@needs_tex
@pytest.mark.parametrize("turn", [90, 180, 270])
def test_a_page_that_lies_or_stands_on_its_head_is_turned_upright(marked, turn):
    page = Image.fromarray(marked.pixels)
    turned = straighten(page.rotate(turn, expand=True))
    assert turned.image.size == page.size
    same = np.abs(np.asarray(turned.image).astype(int) - marked.pixels.astype(int))
    assert same.mean() < 3


@needs_tex
@pytest.mark.parametrize("angle", [-4.0, 2.5])
def test_a_page_that_leans_is_levelled_and_boxes_lie_on_the_given_picture(marked, reader, angle):
    page = Image.fromarray(marked.pixels)
    leaning = page.rotate(angle, Image.Resampling.BICUBIC, fillcolor=255)
    read = reader.read_page(leaning, read=False)
    assert read.straightened
    cos, sin = np.cos(np.radians(angle)), np.sin(np.radians(angle))
    x, y = page.width / 2, page.height / 2
    matrix = np.array([[cos, sin, x - cos * x - sin * y], [-sin, cos, y + sin * x - cos * y], [0, 0, 1]])
    truth = [moved(box.box, matrix) for box in marked.boxes if box.kind == DISPLAYED]
    mine = [formula.box for formula in read.formulas if formula.kind == DISPLAYED]
    assert len(match(truth, mine, 0.5)) >= len(truth) - 1
    assert all(formula.corners is not None for formula in read.formulas)


def test_a_page_of_few_letters_is_not_put_on_its_head():
    """Symbols of a matrix that hang below the line: a third of those that stick out stand above it."""
    pieces = [(20 * x, 60 * y, 20 * x + 9, 60 * y + 10) for y in range(6) for x in range(40) if x % 3]
    tall = [(20 * x, 60 * y, 20 * x + 9, 60 * y + 15) for y in range(4) for x in range(0, 40, 3)]
    tall += [(20 * x, 60 * y - 5, 20 * x + 9, 60 * y + 10) for y in (4, 5) for x in range(0, 40, 3)]
    ink = PageInk(np.zeros((400, 820), np.uint8), np.array(pieces + tall, np.int64), 10.0)
    assert _quarter_turn(ink) == 0


@pytest.mark.parametrize("seed", [34, 275])
def test_a_page_of_a_few_letters_is_not_laid_on_its_side(seed):
    """A number, a display and a line of text, as on the last page of a story: columns look like rows."""
    source = np.random.default_rng(seed)
    pieces = []
    for baseline, left, count in ((88, 130, 1), (170, 130, 4), (170, 370, 20), (206, 150, 18)):
        right = left
        for _ in range(count):
            width, up, down = (
                int(source.integers(4, 14)),
                int(source.choice([4, 9, 9, 13, 14])),
                int(source.choice([0, 0, 0, 4])),
            )
            pieces.append((right, baseline - up, right + width, baseline + down))
            right += width + 3
    boxes = np.array(pieces, np.int64)
    symbol_px = symbol_height(boxes)
    assert symbol_px is not None
    assert _quarter_turn(PageInk(np.zeros((1209, 936), np.uint8), boxes, symbol_px)) == 0


@needs_tex
def test_a_straight_page_stays_as_it_is(marked):
    page = Image.fromarray(marked.pixels)
    assert straighten(page).image is page


@needs_tex
def test_pdf_says_by_which_way_formulas_were_found(pdf, reader):
    read = only_finds(reader, pdf)
    assert read.method == "picture and fonts"
    assert read.dpi == 200
    assert any(formula.kind == DISPLAYED for formula in read.formulas)


def test_a_thin_stroke_between_two_pixels_is_ink_where_type_is_small():
    page = np.full((60, 120), 255, np.uint8)
    for left in range(20, 100, 8):
        page[30:37, left : left + 5] = 0
    page[27:40, 12:14] = 170  # a bar, half of which is in either column
    found, _, _ = reduce_page(Image.fromarray(page), None)
    assert found.pieces[:, 0].min() == 12


def runs_of(*glyphs):
    """Formulas of a line: each glyph is text, left, right, and m (of formulas), i(talic), b(old), s(mall)."""
    line = [
        document._Glyph(
            text,
            7.0 if "s" in font else 10.0,
            (left, 0, right, 8),
            "m" in font or document._is_sign_of_formulas(text),
            "b" in font,
            "i" in font,
        )
        for text, left, right, font in glyphs
    ]
    return [(left, right) for left, _, right, _ in document._runs(document._with_leaning_letters(line))]


def test_fonts_show_inline_formulas():
    word = [("o", 0, 4, ""), ("r", 5, 8, "")]
    assert runs_of(*word, ("x", 12, 17, "m"), ("=", 24, 29, ""), ("2", 36, 40, ""), (".", 41, 42, "")) == [
        (12, 40)
    ], "gaps around signs are stretched"
    assert runs_of(*word, ("k", 12, 16, "m"), ("-", 17, 19, ""), ("t", 20, 22, ""), ("h", 23, 26, "")) == [
        (12, 16)
    ], "a hyphen is no minus"
    assert runs_of(("\u2022", 0, 4, "m"), *word) == [], "a bullet is no formula"
    assert runs_of(("T", 0, 5, "i"), ("n", 6, 9, "is"), ("i", 20, 22, ""), ("s", 23, 26, "")) == [(0, 9)]
    assert runs_of(*[(letter, 5 * place, 5 * place + 4, "i") for place, letter in enumerate("word")]) == []
    name = [("d", 0, 4, ""), ("e", 5, 8, ""), ("g", 9, 12, ""), ("P", 15, 20, "m")]
    assert runs_of(*name) == [(0, 20)]


def test_the_words_behind_a_scan_are_not_believed():
    """A page that a picture covers is a scan; what a search finds in it may be a machine's guess."""
    picture = Image.fromarray(np.full((60, 40), 200, np.uint8))
    held = io.BytesIO()
    picture.save(held, "PDF")
    pdfium = pytest.importorskip("pypdfium2")
    assert document._is_scan(pdfium.PdfDocument(held.getvalue())[0])
    assert not document._is_scan(pdfium.PdfDocument(blank_pdf())[0])


def spelled(word, left, font=""):
    """The glyphs of a word, each four wide and one from the next."""
    return [(letter, left + 5 * place, left + 5 * place + 4, font) for place, letter in enumerate(word)]


def test_fonts_show_names_vectors_accents_and_greek():
    assert runs_of(*spelled("of", 0), ("\u03a3", 14, 19, ""), ("0", 20, 23, "s"), *spelled("is", 28)) == [
        (14, 23)
    ]
    assert runs_of(*spelled("Art", 0), ("K", 15, 19, "ms")) == [(0, 19)], "no word has a script"
    assert runs_of(*spelled("Div", 0), ("(", 15, 17, ""), ("X", 18, 22, "m"), (")", 23, 25, "")) == [(0, 25)]
    assert runs_of(*spelled("see", 0), ("(", 18, 20, ""), ("X", 21, 25, "m"), (")", 26, 28, "")) == [(21, 25)]
    vector = [("v", 12, 16, "b"), ("\u02c6", 12, 16, "b")]
    assert runs_of(*spelled("of", 0), *vector, *spelled("is", 22)) == [(12, 16)], (
        "an accent goes with its letter"
    )
    assert runs_of(*spelled("bold", 0, "b"), ("a", 23, 27, "b"), *spelled("word", 31, "b")) == []
    assert runs_of(("f", 0, 4, "m"), (":", 9, 10, ""), ("A", 16, 20, "m")) == [(0, 20)], (
        "a map is one formula"
    )
    assert runs_of(("x", 0, 4, "m"), (".", 5, 6, ""), ("A", 10, 14, "m")) == [(0, 4), (10, 14)], (
        "a stop parts"
    )


def test_italics_are_words_or_formulas():
    phrase = [*spelled("let", 0, "i"), ("X", 19, 23, "i"), *spelled("be", 27, "i"), ("a", 41, 45, "i")]
    assert runs_of(*phrase, *spelled("set", 50, "i")) == [(19, 23)], "a letter that is no word"
    assert (
        runs_of(
            *spelled("so", 0), ("i", 14, 16, "i"), (".", 17, 18, "i"), ("e", 19, 22, "i"), (".", 23, 24, "")
        )
        == []
    )


@needs_tex
def test_the_label_of_an_item_is_no_part_of_the_formula_that_begins_it(story):
    parts = [
        Part("item", f"\x01{number}\x02 is the formula of this item, and some words follow it.")
        for number in (0, 1)
    ]
    pdf, formulas, look = set_story(
        replace(story, parts=parts, formulas=[("$", "x + y"), ("$", "x + y + z")]), font="latin-modern"
    )
    page = next(mark_pages(pdf, formulas, look.size_pt, iter([150])))
    short, long = (box.box[2] - box.box[0] for box in page.boxes)
    assert short < 0.75 * long
    assert all(box.box[2] - box.box[0] < 0.14 * page.pixels.shape[1] for box in page.boxes), (
        "labels stand before"
    )


@needs_tex
def test_a_formula_that_begins_with_a_large_operator_stands_on_the_line(story):
    parts = [Part("text", "word " * number + "\x010\x02 and \x011\x02 go on.") for number in range(1, 30)]
    formulas = [("$", r"a + b + c = \sum_{i} x_i"), ("$", r"\sum_{i} x_i")]
    pdf, formulas, look = set_story(replace(story, parts=parts, formulas=formulas), font="latin-modern")
    page = next(mark_pages(pdf, formulas, look.size_pt, itertools.repeat(150)))
    em = look.size_pt * 150 / 72
    for box in page.boxes:
        assert box.box[3] - box.box[1] < 2 * em, "what TeX broke over two lines is in two boxes"
        assert box.box[3] - 1.1 * em < box.baseline_px < box.box[3] + 2, box


def test_a_varied_story_keeps_its_formulas_and_gains_what_is_none(story):
    varied = [vary_story(story, random.Random(seed)) for seed in range(12)]
    assert all(len(one.formulas) == len(story.formulas) for one in varied)
    latex = " ".join(text for one in varied for _, text in one.formulas)
    assert r"\mathbf{" in latex
    assert r"\begin{align" in latex, "names of environments stay"
    assert r"\frac" in latex, "names of commands stay"
    words = [sum(len(part.text.split()) for part in one.parts) for one in varied]
    assert max(words) > sum(len(part.text.split()) for part in story.parts)


def test_web_pages_are_written_with_every_formula_and_no_markup_of_tex(story):
    page = compose_web_page(replace(story, parts=story.parts[:6]), random.Random(5), "katex")
    keys = re.findall(r"data-key=(\d+)", page.body)
    assert keys == [str(number) for number in range(len(page.formulas))]
    assert {shown for _, shown in page.formulas} == {True, False}
    assert not set("\\\x01") & set(page.body)
    assert all("equation" not in latex for latex, _ in page.formulas)


@pytest.mark.slow
def test_a_browser_gives_every_formula_its_own_ink(story, browser):
    style = (
        "body { background: #222; color: #eee; font: 16px serif } .row { display: flex } .row .f { flex: 1 }"
    )
    body = (
        "<p>The number <span class=f data-key=0></span> and <span class=f data-key=1></span> in words.</p>"
        "<div class=row><div class=f data-key=2></div><span class=number>(1)</span></div>"
        "<div class=row><div class=f data-key=3></div></div>"
    )
    formulas = [("x^2", False), (r"\hat{y}", False), (r"\frac{a}{b}", True), (r"\undefined", True)]
    page = WebPage(body, style, formulas, "katex", 600, 1.5, "web")
    with WebDrawer(browser=browser) as drawer:
        drawn = drawer.draw(page, levelled=True)
        dark = drawer.draw(page, levelled=False)
    assert [box.kind for box in drawn.boxes] == [INLINE, INLINE, DISPLAYED, NUMBER], (
        "what cannot be drawn goes"
    )
    assert [box.latex for box in drawn.boxes] == ["x^2", r"\hat{y}", r"\frac{a}{b}", ""]
    assert drawn.pixels[0, 0] == 255
    assert dark.pixels[0, 0] < 60
    for box in drawn.boxes:
        left, top, right, bottom = box.box
        kinds = drawn.classes[top:bottom, left:right]
        assert (drawn.pixels[top:bottom, left:right] < 128).any()
        assert set(np.unique(kinds)) == {0, (INLINE, DISPLAYED, NUMBER).index(box.kind) + 1}
    first, second = drawn.boxes[:2]
    assert first.box[2] < second.box[0]
    assert first.baseline_px == pytest.approx(second.baseline_px, abs=2)
    assert first.box[3] == pytest.approx(first.baseline_px, abs=2)


@needs_tex
@pytest.mark.slow
def test_displays_and_their_numbers_are_read(pdf):
    page = next(iter(PageReader(threads=1).read(pdf, pages="1")))
    displays = [formula for formula in page.formulas if formula.kind == DISPLAYED]
    assert any(r"\int_{a}^{x}" in formula.latex for formula in displays)
    assert "(1)" in [formula.number for formula in displays]
    for formula in displays:
        boxes = np.array([token.box for token in formula.tokens if token.box])
        around = [*boxes[:, :2].min(axis=0), *boxes[:, 2:].max(axis=0)]
        assert around == pytest.approx(formula.box, abs=3), "together, the tokens are their formula"
    written = json.dumps(page.to_dict())
    assert json.dumps(PageReading.from_dict(json.loads(written)).to_dict()) == written


def test_reading_order_goes_down_columns():
    text = np.array([(x, y, x + 180, y + 8) for x in (20, 240) for y in range(20, 600, 20)], np.int64)
    boxes = [(240, 100, 300, 108), (20, 300, 80, 308), (20, 60, 80, 68), (100, 300, 160, 308)]
    found = [Found(INLINE, box, 1.0) for box in boxes]
    ordered = [found.index(item) for item in reading_order(list(found), text, 8.0)]
    assert ordered == [2, 1, 3, 0]


@pytest.mark.parametrize(
    ("wanted", "pages"),
    [(None, [1, 2, 3, 4]), ("2", [2]), ("1-3", [1, 2, 3]), ("3-", [3, 4]), ("-2", [1, 2]), ("4,1", [1, 4])],
)
def test_pages_are_chosen(wanted, pages):
    assert choose_pages(wanted, 4) == pages


@pytest.mark.parametrize("wanted", ["", "x", "1-2-3", "5-9", "0", "1,,2", "-"])
def test_a_wrong_choice_of_pages_is_said(wanted):
    with pytest.raises(PageError):
        choose_pages(wanted, 4)


def test_a_page_without_formulas_is_an_empty_result(reader, tmp_path):
    path = tmp_path / "blank.pdf"
    path.write_bytes(blank_pdf())
    page = next(reader.read(path))
    assert page.error is None
    assert page.formulas == ()
    assert reader.read_page(Image.new("RGB", (400, 600), "white")).formulas == ()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "empty"),
        (b"%PDF-1.4", "damaged"),
        (b"hello", "not an image"),
        (blank_pdf(width=28_346, height=28_346), "m; cut out"),
        (blank_pdf(pages=MAX_PAGES + 1, width=100, height=100), "the limit is 5,000"),
    ],
    ids=["empty", "damaged", "text", "ten metres", "too many pages"],
)
def test_what_cannot_be_read_is_said(content, said, reader):
    with pytest.raises(PageError, match=said):  # noqa: PT012 - opening and drawing are two places
        page = only_finds(reader, content)
        raise PageError(page.error or "read")


def test_an_encrypted_pdf_is_said():
    content = blank_pdf().replace(
        b"/Root 1 0 R",
        b"/Root 1 0 R /Encrypt << /Filter /Standard /V 1 /R 2 /P -4 /O <"
        + b"28" * 32
        + b"> /U <"
        + b"41" * 32
        + b"> >> /ID [<"
        + b"00" * 16
        + b"> <"
        + b"00" * 16
        + b">]",
    )
    with pytest.raises(PageError, match="encrypted"):
        PageFile(content)


@pytest.mark.slow
def test_a_page_that_takes_for_ever_is_said_and_the_rest_is_read(monkeypatch, reader, tmp_path):
    slow = "[1 1] 0 d 0.1 w 0 0 m 100 842 300 0 595 842 c S\n" * 50_000
    large = "0 0 m 595 842 l S\n" * 3_000_000
    path = tmp_path / "hard.pdf"
    path.write_bytes(blank_pdf(content=["", slow, "", large, ""]))
    monkeypatch.setattr(document, "MAX_DRAWING_S", 5.0)
    errors = [page.error for page in reader.read(path)]
    assert errors[0] is errors[2] is errors[4] is None
    assert errors[1] == "Page 2 of hard.pdf takes more than 5 s to draw; save it as a picture first."
    assert errors[3].startswith("Page 4 of hard.pdf ")
    assert "needs more than 512 MiB" in errors[3] or "takes more than 5 s" in errors[3]


def test_the_process_that_draws_has_limited_memory():
    code = """
import resource
from i2l.pages import document
kinds = resource.RLIMIT_DATA, resource.RLIMIT_CORE
document._Pdf.limits = lambda _: [resource.getrlimit(kind)[0] for kind in kinds]
document.draw_for()
"""
    asked = pickle.dumps(("limits",))
    done = subprocess.run([sys.executable, "-c", code], input=asked, capture_output=True, check=True)
    assert pickle.loads(done.stdout) == (None, [document.MAX_DRAWING_BYTES, 0])


def test_a_process_that_draws_is_kept_for_the_next_file_and_lost_ones_are_replaced():
    with PageFile(blank_pdf()) as file:
        file.page(1)
        drawer = file._drawer
    with PageFile(blank_pdf(2)) as file:
        assert file._drawer is drawer
        drawer._process.kill()
        with pytest.raises(PageError, match="needs more"):
            file.page(1)
        assert file.page(2).image.size == (1653, 2339)
        assert file._drawer is not drawer


@pytest.mark.slow
def test_large_formulas_are_read_within_memory():
    code = """
import numpy as np
from i2l import Reader
page = np.full((1200, 1200), 255, np.uint8)
page[::40, ::7] = 0
reader = Reader(threads=2, beam_width=1, max_tokens=4, check=False)
reader.read_many([page[: 1200 - size] for size in range(5)], scale=1.0, errors="return")
peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))  # of this process alone
print(int(peak.split()[1]) // 1024)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 600, "one after the other; side by side they take 760 MiB"


def test_folders_and_missing_files_are_said(tmp_path):
    with pytest.raises(PageError, match="not a file"):
        PageFile(tmp_path)
    with pytest.raises(PageError, match="No such file"):
        PageFile(tmp_path / "none.pdf")


def test_every_page_of_a_tiff_is_within_the_limit(monkeypatch):
    file = io.BytesIO()
    pages = [Image.new("L", size, 255) for size in ((80, 60), (60, 80), (81, 60))]
    pages[0].save(file, "TIFF", save_all=True, append_images=pages[1:])
    monkeypatch.setattr(document, "MAX_PIXELS", 80 * 60)
    with PageFile(file.getvalue()) as opened:
        assert opened.page(2).image.size == (60, 80)
        with pytest.raises(PageError, match="page 3 has 81 x 60 pixels"):
            opened.page(3)


def test_a_tiff_has_pages(tmp_path, reader):
    path = tmp_path / "two.tif"
    Image.new("L", (80, 60), 255).save(path, save_all=True, append_images=[Image.new("L", (90, 60), 255)])
    assert [(page.page, page.width) for page in reader.read(path)] == [(1, 80), (2, 90)]


def hostile_files(pdf, number):
    """Damaged, cut, doubled and nonsensical files, each from a seed."""
    picture = io.BytesIO()
    Image.effect_noise((200, 150), 80).save(picture, "PNG")
    tiff = io.BytesIO()
    Image.new("L", (80, 60), 255).save(tiff, "TIFF", save_all=True, append_images=[Image.new("L", (90, 60))])
    seeds = [pdf, blank_pdf(2), blank_pdf(content="q " * 5000), picture.getvalue(), tiff.getvalue()]
    numbers = [b"0", b"-1", b"99999999999", b"1e38", b"NaN", b"/Kids", b"<<", b">>", b"[", b"endobj"]
    for index in range(number):
        source = random.Random(index)
        data = bytearray(seeds[index % len(seeds)])
        for _ in range(source.randint(1, 12)):
            place = source.randrange(len(data))
            action = source.randrange(4)
            if action == 0:
                data[place] = source.randrange(256)
            elif action == 1:
                del data[place : place + source.randint(1, 200)]
            elif action == 2:
                data[place:place] = source.choice(numbers)
            else:
                data[place:place] = data[place : place + source.randint(1, 500)]
            data = data or bytearray(b"%PDF-")
        yield bytes(data)


@needs_tex
@pytest.mark.slow
def test_three_hundred_hostile_files_are_read_or_refused_with_a_word(pdf, reader):
    said = []
    for index, content in enumerate(hostile_files(pdf, 300)):
        try:
            if index % 25 == 0:
                said.append(only_finds(reader, content).error or "read")
                continue
            with PageFile(content) as file:
                file.page(1)
            said.append("read")
        except PageError as error:
            said.append(str(error))
    assert len(said) == 300
    assert all(said)
    assert 20 < said.count("read") < 290, "some are read and some are refused, or the damage is none"


def page_reading(**changes):
    formula = PageFormula("displayed", (10.0, 20.0, 110.0, 60.0), 0.98, r"=x<y\&\frac{1}{2}", 0.9, "(3)")
    inline = PageFormula("inline", (10.0, 80.0, 30.0, 90.0), 0.9, "", 0.0, error="too large")
    values = {"file": "a<b>.pdf", "page": 1, "width": 600, "height": 800, "dpi": 200.0, "method": "picture"}
    page = PageReading(**values, straightened=False, formulas=(formula, inline), seconds=1.0)
    return PageReading(**{**page.__dict__, **changes})


def printed(kind, **changes):
    held = io.StringIO()
    print_pages([page_reading(**changes)], held, kind, name="a<b>.pdf", pictures="a.pages")
    return held.getvalue()


def test_what_was_read_is_written_in_each_format():
    assert json.loads(printed("json"))["pages"][0]["formulas"][0]["number"] == "(3)"
    assert "\\tag*{(3)}" in printed("markdown")
    rows = list(csv.DictReader(io.StringIO(printed("csv"))))
    assert rows[0]["latex"].startswith("'="), "a spreadsheet must not reckon with it"
    assert (rows[0]["left"], rows[1]["error"]) == ("10.0", "too large")
    for first in "=+-@\t\r":
        assert printed("csv", file=f"{first}a").splitlines()[1].lstrip('"').startswith("'")
    html = printed("html")
    assert "a&lt;b&gt;.pdf" in html
    assert "<b>" not in html
    assert 'data-latex="=x&lt;y' in html
    assert "No formulas on this page" in printed("html", formulas=())
    for kind in ("json", "markdown", "csv", "html"):
        assert "could not" in printed(kind, error="This page could not be drawn.", formulas=())
    with pytest.raises(I2LError, match="no format"):
        printed("pdf")


def run_page(*arguments, **options):
    return subprocess.Popen(
        [sys.executable, "-m", "i2l", "page", *map(str, arguments), "--threads", "1"],
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=dict(os.environ),
        **options,
    )


@needs_tex
@pytest.mark.slow
def test_a_run_that_was_killed_goes_on_where_it_was(pdf, tmp_path):
    book = tmp_path / "book.tif"
    with PageFile(pdf) as file:
        page = file.page(1).image
    page = page.reduce(2)
    page.save(book, save_all=True, append_images=[page, page])
    out = tmp_path / "out"
    process = run_page(book, "-o", out, "--format", "html")
    first = out / "book.pages" / "00001.json"
    for _ in range(2400):
        if first.exists() or process.poll() is not None:
            break
        time.sleep(0.05)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    assert first.exists()
    assert not (out / "book.html").exists()
    stamp = first.stat().st_mtime_ns
    again = run_page(book, "-o", out, "--format", "html")
    _, said = again.communicate(timeout=300)
    assert again.returncode == 0, said
    assert "were read before" in said
    assert first.stat().st_mtime_ns == stamp
    assert (out / "book.html").read_text().count("<section") == 3
    assert not list(out.rglob("*.partial"))


@needs_tex
@pytest.mark.slow
def test_pages_side_by_side_are_the_same(pdf, tmp_path):
    path = tmp_path / "paper.pdf"
    path.write_bytes(pdf)
    results = []
    for jobs in (1, 2):
        plans = list(plan_documents([path, path], tmp_path / str(jobs), pages="1", settings={}))
        tasks = [task for plan in plans for task in tasks_of(plan, pictures=False)]
        read = dict(read_tasks(tasks, ReadingOptions(threads=1), jobs=jobs, tokens=False))
        results.append([[formula.latex for formula in read[task].formulas] for task in tasks])
    assert results[0] == results[1]
    assert results[0][0] == results[0][1]


def test_the_command_says_what_is_wrong_and_reads_the_rest(tmp_path):
    (tmp_path / "blank.pdf").write_bytes(blank_pdf())
    (tmp_path / "bad.pdf").write_bytes(b"%PDF-1.4 nothing")
    process = run_page(tmp_path / "bad.pdf", tmp_path / "blank.pdf", "--format", "csv")
    out, said = process.communicate(timeout=120)
    assert process.returncode == 1
    assert "bad.pdf is damaged" in said
    assert out.splitlines() == [
        "file,page,formula,kind,number,left,top,right,bottom,score,confidence,latex,error"
    ]


def test_results_belong_to_the_content_of_a_file_and_to_one_file(tmp_path):
    files = [tmp_path / folder / "a.pdf" for folder in "xy"]
    for number, file in enumerate(files, start=1):
        file.parent.mkdir()
        file.write_bytes(blank_pdf(number))

    def plan():
        plans = plan_documents(files, tmp_path / "out", pages=None, settings={})
        return [tasks_of(one, pictures=False)[0].result for one in plans]

    first, second = results = plan()
    assert first.parent != second.parent
    for result in results:
        result.write_text("{}")
    assert [result.exists() for result in plan()] == [True, True]
    files[0].write_bytes(blank_pdf(3))
    assert [result.exists() for result in plan()] == [False, True]


def test_pages_that_wait_when_a_process_dies_are_lost_too(monkeypatch):
    class BrokenPool:
        def __init__(self, *_, **__):
            pass

        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

        def submit(self, *_):
            future = Future()
            future.set_exception(BrokenProcessPool())
            return future

    monkeypatch.setattr("i2l.pages.output.ProcessPoolExecutor", BrokenPool)
    tasks = [PageTask(Path("a.pdf"), number, None, None) for number in range(1, 8)]
    lost = []
    assert list(_read_in_processes(tasks, ReadingOptions(), False, 1, lost)) == []
    assert sorted(task.number for task in lost) == [1, 2, 3, 4, 5, 6, 7]


def test_pages_that_were_read_side_by_side_are_printed_in_their_order(tmp_path, monkeypatch):
    def read_backwards(tasks, *_, **__):
        for task in reversed(tasks):
            yield task, PageReading(task.file.name, task.number, 1, 1, None, PICTURE, False, (), 0.0)

    monkeypatch.setattr("i2l.pages.output.read_tasks", read_backwards)
    (tmp_path / "blank.pdf").write_bytes(blank_pdf(3))
    result = CliRunner().invoke(app, ["page", str(tmp_path / "blank.pdf"), "--jobs", "2"])
    assert [page["page"] for page in json.loads(result.stdout)["pages"]] == [1, 2, 3]


def test_reading_a_page_as_one_formula_tells_about_pages(tmp_path):
    page = np.full((1800, 1200), 255, np.uint8)
    for top in range(60, 1740, 40):
        for left in range(60, 1140, 30):
            page[top : top + 16, left : left + 4] = 0
            page[top : top + 4, left : left + 14] = 0
    Image.fromarray(page).save(tmp_path / "page.png")
    done = subprocess.run(
        [sys.executable, "-m", "i2l", "read", "--no-check", str(tmp_path / "page.png")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "i2l page" in done.stderr


@pytest.mark.parametrize("mode", ["L", "RGB", "RGBA", "1"])
def test_the_picture_of_a_page_is_kept_to_be_looked_at(tmp_path, mode):
    Image.new(mode, (2800, 1000)).save(tmp_path / "scan.png")
    task = PageTask(tmp_path / "scan.png", 1, None, tmp_path / "page.webp")
    with PageFile(task.file) as file:
        _save_picture(file, task)
    with Image.open(tmp_path / "page.webp") as kept:
        assert (kept.format, kept.size) == ("WEBP", (1400, 500))


@pytest.mark.parametrize(
    ("unread", "height", "told"),
    [(0.0, 600, False), (0.0, 601, True), (_PAGE_UNREAD, 60, False), (0.9, 60, True)],
)
def test_whole_pages_are_told_by_their_height_and_by_what_was_not_read(unread, height, told):
    found = SimpleNamespace(unread=unread, prepared=SimpleNamespace(pixels=np.zeros((height, 10), np.uint8)))
    assert bool(_page_hint("scan.png", found)) == told


def test_a_seed_writes_the_same_documents_in_every_version(story):
    """What the detector was trained on can be made again: tables, lists and numbers come from seeds."""
    texts = []
    for seed in range(120):
        source = random.Random(seed)
        look = draw_look(source, ["article", "amsart", "beamer"])
        texts += [repr(look), compose_document(story, 0, look, source)[0].partition(r"\begin{document}")[2]]
    assert hashlib.sha256("".join(texts).encode()).hexdigest()[:16] == "058018ad05bcccf5"


def test_pages_that_were_read_are_kept_for_the_same_file_and_settings_only(tmp_path):
    page = tmp_path / "00001.json"
    for about, kept in (({"beam": 5}, False), ({"beam": 5}, True), ({"beam": 1}, False), ({"beam": 1}, True)):
        page.write_text("{}")
        _claim(tmp_path, about)
        assert page.exists() == kept, about


def test_a_document_has_a_size_that_its_class_knows(story):
    sizes = {"article": {10, 11, 12}, "extarticle": {9}, "amsart": {8, 9, 10, 11, 12}}
    found = set()
    for seed in range(60):
        source = random.Random(seed)
        look = draw_look(source, ["article", "amsart"])
        text = compose_document(story, 0, look, source)[0]
        size, name = re.match(r"\\documentclass\[(\d+)pt[^]]*\]\{(\w+)\}", text).groups()
        assert int(size) in sizes[name], (size, name)
        found.add(name)
    assert "extarticle" in found


def test_a_formula_is_found_without_torch_and_tex(tmp_path):
    code = "import sys; import i2l.pages.reader; assert not {'torch', 'pypdfium2'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(__file__).parents[2])


@needs_tex
@pytest.mark.slow
def test_the_detector_learns_goes_on_and_is_exported(story, marked, tmp_path, capsys):
    from i2l.pages.find import Detector
    from i2l.pages.marked import write_pages
    from i2l.pages.packed import pack_pages
    from i2l.pages.train import CHECKPOINT, SYMBOL_PX, export, train

    write_pages(iter([marked] * 2), tmp_path / "pages", 2)
    assert pack_pages([tmp_path / "pages"], tmp_path / "packed") == 2
    options = {"batch": 1, "rate": 1e-3, "device": "cpu", "crop_px": 128}
    train(tmp_path / "packed", tmp_path / "run", minutes=0.02, **options)
    saved = torch.load(tmp_path / "run" / CHECKPOINT, weights_only=True)
    assert saved["step"] > 0
    train(tmp_path / "packed", tmp_path / "run", minutes=0.02, **options)
    later = torch.load(tmp_path / "run" / CHECKPOINT, weights_only=True)
    assert later["step"] > saved["step"]
    assert later["minutes"] > saved["minutes"] > 0
    assert not torch.equal(later["network"]["head.weight"], saved["network"]["head.weight"])
    assert all(path.stat().st_size < 15 << 20 for path in (tmp_path / "run").iterdir())
    export(tmp_path / "run", tmp_path / "model")
    detector = Detector(tmp_path / "model", threads=1)
    detector.find(Image.fromarray(marked.pixels))
    page = PageInk(np.zeros((120, 240), np.uint8), np.zeros((0, 4), np.int64), 2 * SYMBOL_PX)
    assert detector.look(page).shape == (8, 32, 64), "the model says at which scale it looks"
    (tmp_path / "model" / DETECTOR_FILE).write_bytes(b"damaged")
    with pytest.raises(I2LError, match="damaged"):
        Detector(tmp_path / "model")
