"""The page in Chromium: every way in, what is shown, and what happens when something is wrong."""

import base64
import csv
import io
import json
import re
import zipfile

import pytest
from PIL import Image

from tests.inference.conftest import draw_formula
from tests.web.conftest import png, start_server
from tests.web.visiting import (
    DESKTOP,
    FORMULA,
    LATEX,
    TELEPHONE,
    Visit,
    answer,
    answer_with,
    choose,
    expect_latex,
    fits,
    known_tokens,
    latex_of,
    token,
    transfer,
    visiting,
    write,
)

pytestmark = pytest.mark.slow


@pytest.fixture
def visit(browser, server):
    with visiting(browser, server) as visit_page:
        yield visit_page


@pytest.fixture
def page(visit):
    return visit()


@pytest.fixture(scope="module")
def picture(tmp_path_factory):
    path = tmp_path_factory.mktemp("pictures") / "formula.png"
    path.write_bytes(png(FORMULA))
    return path


@pytest.fixture(scope="module")
def screenshot(tmp_path_factory):
    """Three formulas far apart on a large white screen; (path, box of the middle one)."""
    screen = Image.new("L", (1600, 1000), 255)
    for formula, place in (("a = b", (200, 100)), (FORMULA, (700, 450)), ("b + c", (200, 800))):
        screen.paste(Image.fromarray(draw_formula(formula)), place)
    path = tmp_path_factory.mktemp("pictures") / "screenshot.png"
    screen.save(path)
    height, width = draw_formula(FORMULA).shape
    return path, (700, 450, 700 + width, 450 + height)


def find_nothing(page):
    """Let the server find no formula on any page, as on a picture that its detector makes nothing of."""

    def answer(route):
        response = route.fetch()
        route.fulfill(response=response, json={**response.json(), "formulas": []})

    page.route("**/api/page*", answer)


def region(page):
    """Left and right of what is lit up on the picture, as shares of its width; None if nothing is."""
    own = page.locator("#marks .own")
    if not own.count():
        return None
    width = page.evaluate("document.getElementById('image').naturalWidth")
    left = float(own.get_attribute("x"))
    return left / width, (left + float(own.get_attribute("width"))) / width


def copied(page):
    return page.evaluate("navigator.clipboard.readText()")


def saved(page, action):
    """What a click saves: the name of the file, and its bytes."""
    with page.expect_download() as download:
        action()
    return download.value.suggested_filename, download.value.path().read_bytes()


def test_a_file_is_picked_and_read(page, picture):
    choose(page, picture)
    expect_latex(page)
    assert page.locator("#verdict").inner_text() in ("Sure", "Check")
    assert re.match(r"\d+(\.\d)? %: of readings", page.locator("#verdict").get_attribute("title"))
    assert page.locator("#notice").is_hidden()
    assert page.locator("#preview .katex").count() == 1
    assert page.evaluate("document.activeElement.id") == "copy", "the focus is not lost with the start"
    paper, ink = page.locator("#paper").bounding_box(), page.locator("#preview .katex-html").bounding_box()
    assert paper["y"] + paper["height"] <= ink["y"], "the preview stands under the picture"
    typeset = page.evaluate(
        """() => {
          const bases = [...document.querySelectorAll('#preview .katex-base')]
            .map((base) => base.getBoundingClientRect());
          return Math.max(...bases.map((b) => b.right)) - Math.min(...bases.map((b) => b.left));
        }"""
    )
    pixels = draw_formula(FORMULA)
    columns = (pixels < 128).any(axis=0).nonzero()[0]
    width = columns[-1] + 1 - columns[0]
    zoom = page.locator("#image").bounding_box()["width"] / pixels.shape[1]
    assert typeset == pytest.approx(width * zoom, rel=0.1), "at the same scale"
    assert paper["width"] < (width + 40) * zoom, "the picture is trimmed to its ink"


def test_a_screenshot_is_pasted(page):
    transfer(page, "paste", png(FORMULA), target="document")
    expect_latex(page)
    page.locator("#latex .cm-content").focus()
    transfer(page, "paste", png("a"), target="document.querySelector('.cm-content')")
    expect_latex(page, "a")


def test_the_paste_button_takes_the_image_on_the_clipboard(page):
    page.evaluate(
        """async (data) => {
          const bytes = Uint8Array.from(atob(data), (letter) => letter.charCodeAt(0));
          const type = "image/png";
          await navigator.clipboard.write([new ClipboardItem({ [type]: new Blob([bytes], { type }) })]);
        }""",
        base64.b64encode(png(FORMULA)).decode(),
    )
    page.get_by_role("button", name="Paste", exact=True).click()
    expect_latex(page)


def test_text_is_pasted_as_text_and_elsewhere_explained(page, picture):
    choose(page, picture)
    expect_latex(page)
    page.evaluate("navigator.clipboard.writeText('+ 1')")
    page.locator("#latex .cm-content").focus()
    page.keyboard.press("Control+End")
    page.keyboard.press("Control+V")
    expect_latex(page, f"{LATEX}+ 1")
    page.locator("#boxes").focus()
    page.keyboard.press("Control+V")
    assert "no image on the clipboard" in page.locator("#notice").inner_text()


def test_an_image_is_dropped(page):
    transfer(page, "dragenter", png(FORMULA))
    assert page.locator("#drop").is_visible()
    transfer(page, "drop", png(FORMULA))
    assert page.locator("#drop").is_hidden()
    expect_latex(page)


def test_examples_are_read(page):
    cards = page.locator("#examples .card")
    assert cards.count() >= 4
    cards.nth(2).click()
    page.wait_for_function(
        """() => !document.getElementById('verdict').hidden || !document.getElementById('notice').hidden
          || document.body.dataset.view === 'pages'"""  # the model here is small: it may be offered as a page
    )
    widths = page.locator("#main img:visible").evaluate_all("images => images.map(one => one.naturalWidth)")
    assert max(widths) > 100


def test_the_start_shows_what_it_does(page):
    """The picture and its LaTeX light up together, symbol after symbol."""
    places = set()
    for _ in range(3):
        page.locator("#demo-latex .lit").first.wait_for()
        places.add(page.locator("#demo-latex .lit").first.inner_text())
        page.wait_for_timeout(500)
    assert len(places) > 1


def drag(page, start, end):
    page.mouse.move(*start)
    page.mouse.down()
    page.mouse.move(*[(a + b) / 2 for a, b in zip(start, end, strict=True)])
    page.mouse.move(*end)
    page.mouse.up()


def test_a_part_of_a_large_screenshot_is_read(page, screenshot):
    path, (left, top, right, bottom) = screenshot
    find_nothing(page)
    choose(page, path)
    page.locator("#notice").wait_for()
    assert "drag over the picture" in page.locator("#notice").inner_text()
    assert page.locator("#latex").is_hidden()
    frame = page.locator("#image").bounding_box()
    zoom = frame["width"] / 1600
    wide = (right - left) / 2
    at = [(frame["x"] + x * zoom, frame["y"] + y * zoom) for x, y in ((left, top), (right - wide, bottom))]
    drag(page, *at)
    selection = page.locator("#selection")
    assert selection.is_visible(), "the frame stays, to be corrected"
    before = selection.bounding_box()
    handle = page.locator("#selection .handle.e").bounding_box()
    middle = (handle["x"] + handle["width"] / 2, handle["y"] + handle["height"] / 2)
    drag(page, middle, (middle[0] + wide * zoom, middle[1]))
    after = selection.bounding_box()
    assert after["width"] == pytest.approx(before["width"] + wide * zoom, abs=3)
    assert after["x"] == pytest.approx(before["x"], abs=2)
    inside = (after["x"] + after["width"] / 2, after["y"] + after["height"] / 2)
    drag(page, inside, (inside[0] + 30, inside[1] + 20))
    moved = selection.bounding_box()
    assert (moved["x"] - after["x"], moved["y"] - after["y"]) == pytest.approx((30, 20), abs=2)
    assert moved["width"] == pytest.approx(after["width"], abs=2)
    drag(page, (inside[0] + 30, inside[1] + 20), inside)
    page.get_by_role("button", name="Read this part").click()
    expect_latex(page)
    assert page.locator("#image").evaluate("image => image.naturalWidth") == pytest.approx(
        right - left, abs=5
    )
    page.get_by_role("button", name="Whole picture").click()
    page.wait_for_function("() => document.getElementById('image').naturalWidth === 1600")


def test_the_screen_is_captured_and_a_part_chosen(page):
    page.evaluate(
        """() => {
          navigator.mediaDevices.getDisplayMedia = async () => {
            const canvas = Object.assign(document.createElement("canvas"), { width: 400, height: 300 });
            canvas.getContext("2d").fillRect(0, 0, 100, 100);
            return canvas.captureStream(10);
          };
        }"""
    )
    page.get_by_role("button", name="Capture the screen").click()
    page.locator("#selection").wait_for()
    assert page.locator("#read-part").is_visible()
    assert page.locator("#image").evaluate("image => image.naturalWidth") == 400


@pytest.fixture
def known(page):
    tokens = known_tokens()
    assert sum(one["box"] is not None for one in tokens) == 4
    height, width = draw_formula(FORMULA).shape
    answer(page, answer_with(*tokens, latex=LATEX, ink=(0, 0, width, height), size=(width, height)))
    return tokens


def test_pointing_lights_picture_latex_and_token(page, picture, known):
    choose(page, picture)
    expect_latex(page)
    page.locator("#inspect summary").click()
    tokens = page.locator("#tokens .token")
    tokens.last.wait_for()  # the list is filled when it opens, an event later
    assert tokens.all_inner_texts() == FORMULA.split(" ")
    width = draw_formula(FORMULA).shape[1]
    for index, one in enumerate(known):
        tokens.nth(index).hover()
        assert page.locator("#here b").inner_text() == one["text"]
        assert page.locator("#latex .lit").all_inner_texts() == [one["text"]]
        left, _, right, _ = one["box"] or known[3]["box"]  # a brace draws nothing: its group lights up
        assert region(page) == pytest.approx((left / width, right / width), abs=0.02)
    page.mouse.move(5, 5)
    assert region(page) is None
    frame = page.locator("#image").bounding_box()
    zoom = frame["width"] / width
    for one in filter(lambda token: token["box"], known):
        left, top, right, bottom = one["box"]
        page.mouse.move(frame["x"] + (left + right) / 2 * zoom, frame["y"] + (top + bottom) / 2 * zoom)
        assert page.locator("#tokens .lit").all_inner_texts() == [one["text"]]
        assert page.locator("#latex .lit").all_inner_texts() == [one["text"]]
    page.mouse.down()
    page.mouse.up()
    assert page.locator("#menu").is_visible()
    page.keyboard.press("Escape")
    page.mouse.move(5, 5)
    assert page.locator("#tokens .lit").count() == 0
    line = page.locator("#latex .cm-line").bounding_box()
    page.mouse.move(line["x"] + 16, line["y"] + line["height"] / 2)
    assert page.locator("#tokens .lit").all_inner_texts() == ["x"]
    page.locator("#boxes").click()
    assert page.locator("#marks .box").count() == 4


def test_another_token_is_an_edit_like_any_other(page, picture):
    """Hand edits stay, undo and redo go through every kind of change, and there is a way back."""
    two = token("2", 0.6, [20, 10, 26, 16], z=0.3, **{"\\alpha": 0.1})
    answer(
        page,
        answer_with(
            token("x", box=[10, 10, 20, 30]),
            token("^"),
            token("{"),
            two,
            token("}"),
            token("a"),
            latex="x^{2}a",
        ),
    )
    choose(page, picture)
    expect_latex(page, "x^{2}a")
    assert page.locator("#undo").is_disabled()
    page.locator("#latex .cm-content").focus()
    page.keyboard.press("Control+Home")
    page.keyboard.insert_text("y+")
    page.locator("#latex .doubt").click()
    menu = page.locator("#menu")
    assert menu.locator("code").all_inner_texts() == ["2", "z", "\\alpha"]
    menu.get_by_text("\\alpha").click()
    expect_latex(page, "y+x^{\\alpha}a")
    page.locator("#latex .cm-content").focus()
    page.keyboard.press("Control+End")
    page.keyboard.insert_text("=1")
    expect_latex(page, "y+x^{\\alpha}a=1")
    page.locator("#inspect summary").click()
    chip = page.locator("#tokens .token").nth(3)
    assert chip.inner_text() == "\\alpha"
    chip.click()
    menu.get_by_text("z", exact=True).click()
    for text in ("y+x^{z}a=1", "y+x^{\\alpha}a=1", "y+x^{\\alpha}a", "y+x^{2}a", "x^{2}a"):
        expect_latex(page, text)
        if page.locator("#undo").is_enabled():
            page.locator("#undo").click()
    assert page.locator("#latex .doubt").count() == 1, "what was doubtful is so again"
    for _ in range(4):
        page.locator("#redo").click()
    expect_latex(page, "y+x^{z}a=1")
    page.get_by_role("button", name="Back to the reading").click()
    expect_latex(page, "x^{2}a")
    assert page.locator("#revert").is_disabled()
    page.locator("#undo").click()
    expect_latex(page, "y+x^{z}a=1")


def test_a_token_inside_a_word_is_exchanged_by_the_server(page, picture):
    letters = [token(letter, l=0.3) if letter == "i" else token(letter) for letter in "sin"]
    tokens = [token("\\operatorname"), token("{"), *letters, token("}"), token("x")]
    answer(page, answer_with(*tokens, latex="\\sin x"))
    choose(page, picture)
    expect_latex(page, "\\sin x")
    page.locator("#latex .doubt").click()
    page.locator("#menu").get_by_text("l", exact=True).click()
    expect_latex(page, "\\operatorname{sln} x")
    page.locator("#undo").click()
    expect_latex(page, "\\sin x")


def test_a_token_that_leaves_no_formula_is_refused(page, picture):
    tokens = [token("x"), token("^", _=0.3), token("{"), token("2"), token("}")]
    answer(page, answer_with(*tokens, latex="x^{2}"))
    choose(page, picture)
    expect_latex(page, "x^{2}")
    page.locator("#latex .cm-content").focus()
    page.keyboard.press("Control+End")
    page.keyboard.insert_text("_{1}")
    page.locator("#latex .doubt").click()
    page.locator("#menu").get_by_text("_", exact=True).click()
    page.get_by_text("cannot stand there").wait_for()
    expect_latex(page, "x^{2}_{1}")


def test_doubt_is_marked_where_it_would_change_the_picture(page, picture):
    doubtful = token("2", 0.4, [10, 10, 20, 20], z=0.4)
    check = token("y", 0.8, [20, 10, 30, 20], v=0.12)
    spelling = token("a", 0.4, [30, 10, 40, 20])  # of what it might be as well, all draws the same
    answer(page, answer_with(doubtful, check, spelling, confidence=0.3, unread=0.153))
    choose(page, picture)
    expect_latex(page, "2ya")
    assert page.locator("#latex .doubt").all_inner_texts() == ["2", "y"]
    assert page.locator("#latex .doubtful").all_inner_texts() == ["2"]
    assert page.locator("#marks .doubt").count() == 2
    assert page.locator("#verdict").inner_text() == "Doubtful"
    assert "15 % of the ink was not read" in page.locator("#outcome").inner_text()
    page.locator("#inspect summary").click()
    assert "has alternatives" in page.locator("#tokens .token").first.get_attribute("aria-label")


def test_other_readings_are_other_pictures(page, picture):
    others = [("{x}^{2}", 0.2), ("x^{z}", 0.15), ("x^{Z}", 0.004)]  # the same, another, too improbable
    tokens = [token(text) for text in ["x", "^", "{", "2", "}"]]
    answer(page, answer_with(*tokens, latex="x^{2}", alternatives=others, confidence=0.6))
    choose(page, picture)
    expect_latex(page, "x^{2}")
    readings = page.locator("#readings .reading")
    assert readings.evaluate_all("all => all.map(one => one.dataset.latex)") == ["x^{2}", "x^{z}"]
    assert readings.nth(0).locator(".share").inner_text() == "60 %"
    page.locator("#latex .cm-content").focus()
    page.keyboard.press("Control+End")
    page.keyboard.insert_text("+1")
    readings.nth(1).click()
    expect_latex(page, "x^{z}")
    assert readings.nth(1).get_attribute("aria-checked") == "true"
    page.locator("#undo").click()
    expect_latex(page, "x^{2}+1")
    answer(page, answer_with(*tokens, latex="x^{2}"))
    choose(page, picture)
    expect_latex(page, "x^{2}")
    assert page.locator("#others").is_hidden()


def test_live_preview_and_mistakes_at_their_place(page, picture):
    choose(page, picture)
    expect_latex(page)
    write(page, r"\frac{a}{b}")
    assert page.locator("#preview .mfrac").count() == 1
    assert page.locator("#mistake").inner_text() == ""
    write(page, r"\frac{a}{b} + \foo c")
    assert "Undefined control sequence: \\foo" in page.locator("#mistake").inner_text()
    assert page.locator("#latex .mistake").all_inner_texts() == ["\\foo"]
    assert page.locator("#preview .mfrac").count() == 1, "the last picture stays, dimmed"
    assert page.locator("#preview.stale").count() == 1
    page.evaluate("dispatchEvent(new Event('resize'))")
    assert page.locator("#preview .mfrac").count() == 1, "and stays when everything finds its place anew"
    write(page, r"\frac{a}{")
    assert page.locator("#latex .mistake").count() == 1
    assert page.locator("#mistake").inner_text()
    write(page, r"\vec{a}\boxed{b}")
    assert page.locator("#mistake").inner_text() == ""


def test_copy_in_every_format_that_the_server_lists(page, picture):
    choose(page, picture)
    expect_latex(page)
    page.get_by_role("button", name="Copy LaTeX").click()
    page.get_by_role("button", name="Copied").wait_for()
    assert copied(page) == LATEX
    write(page, f"{LATEX}+1")
    formats = page.evaluate("async () => (await (await fetch('api/formats')).json()).formats")
    expected = {
        "latex": f"{LATEX}+1",
        "inline": f"${LATEX}+1$",
        "display": f"$${LATEX}+1$$",
        "mathml": '<math xmlns="http://www.w3.org/1998/Math/MathML"',
        "tokens": f"{FORMULA} + 1",
    }
    assert {one["name"] for one in formats} >= set(expected)
    page.locator("#copy-as").click()
    assert page.locator("#menu button").count() >= len(expected)
    page.keyboard.press("Escape")
    assert page.evaluate("document.activeElement.id") == "copy-as"
    labels = json.loads(page.evaluate("async () => await (await fetch('words/en.json')).text()"))
    for name, begin in expected.items():
        page.evaluate("navigator.clipboard.writeText('')")
        page.locator("#copy-as").click()
        page.locator("#menu").get_by_text(labels[f"format.{name}"], exact=True).click()
        page.wait_for_function(
            "async (begin) => (await navigator.clipboard.readText()).startsWith(begin)", arg=begin
        )
    page.locator("#save-as").click()
    name, content = saved(page, page.locator("#menu").get_by_text("MathML, for Word").click)
    assert name == "formula.mml"
    assert content.startswith(b"<math")
    for label, start in (("SVG picture", b"<svg"), ("PNG picture", b"\x89PNG")):
        page.locator("#save-as").click()
        name, content = saved(page, page.locator("#menu").get_by_text(label).click)
        assert name == f"formula.{label[:3].lower()}"
        assert content.startswith(start)


def test_an_unknown_format_of_the_server_appears(visit, picture):
    page = visit()
    formats = [
        {"name": "braille", "text": True, "media_type": "text/plain", "extension": "brl"},
        {"name": "morse", "text": False, "media_type": "audio/wav", "extension": "wav"},
    ]
    page.route("**/api/formats", lambda route: route.fulfill(json={"formats": formats}))
    page.route(
        "**/api/convert", lambda route: route.fulfill(json={"data": [{"type": "braille", "value": "⠠⠭"}]})
    )
    page.reload()
    page.wait_for_selector("#examples .card", state="attached")
    choose(page, picture)
    expect_latex(page)
    page.locator("#save-as").click()
    assert page.locator("#menu .format span:first-child").all_inner_texts() == ["braille", "morse"]
    page.keyboard.press("Escape")
    page.locator("#copy-as").click()
    assert page.locator("#menu .format span:first-child").all_inner_texts() == ["braille"]
    page.locator("#menu button").click()
    page.get_by_role("button", name="Copied").wait_for()
    assert copied(page) == "⠠⠭"


def test_keys_copy_where_nothing_is_selected(page, picture):
    choose(page, picture)
    expect_latex(page)
    page.keyboard.press("Control+C")
    page.get_by_role("button", name="Copied").wait_for()
    assert copied(page) == LATEX


def test_readings_are_kept_in_the_browser(page, picture):
    choose(page, picture)
    expect_latex(page)
    page.locator("#history .card").wait_for()
    write(page, "x + 1")
    page.wait_for_timeout(100)
    page.reload()
    card = page.locator("#history .card")
    card.wait_for()
    assert "x + 1" in card.inner_text()
    page.route("**/api/read?*", lambda route: route.abort())  # nothing is asked again
    card.click()
    expect_latex(page, "x + 1")
    page.locator("#undo").click()
    expect_latex(page)
    page.locator("#inspect summary").click()
    page.locator("#tokens .token").nth(0).hover()
    assert region(page) is not None
    page.once("dialog", lambda dialog: dialog.accept())
    page.get_by_role("button", name="Clear").click()
    card.wait_for(state="detached")
    assert page.locator("#past").is_hidden()


def test_the_history_is_searched_exported_and_forgotten_one_by_one(page):
    for text in ("a", "b", "a + b"):
        answer(page, answer_with(token(text), latex=text))
        transfer(page, "paste", png("a"), target="document")
        expect_latex(page, text)
    cards = page.locator("#history .card")
    page.wait_for_function("() => document.querySelectorAll('#history .card').length === 3")
    page.locator("#search").fill("a+b")
    page.wait_for_function("() => document.querySelectorAll('#history .card').length === 1")
    page.locator("#search").fill("nothing")
    page.locator("#past-none").wait_for()
    page.locator("#search").fill("")
    page.wait_for_function("() => document.querySelectorAll('#history .card').length === 3")
    assert cards.locator(".name").all_inner_texts() == ["a + b", "b", "a"]
    name, content = saved(page, page.locator("[data-past=jsonl]").click)
    assert name == "readings.jsonl"
    lines = [json.loads(line) for line in content.decode().splitlines()]
    assert [line["latex"] for line in lines] == ["a + b", "b", "a"]
    name, content = saved(page, page.locator("[data-past=zip]").click)
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        assert archive.testzip() is None
        names = archive.namelist()
        assert len([one for one in names if one.startswith("latex/")]) == 3
        pictures = [one for one in names if one.startswith("pictures/")]
        assert len(pictures) == len(set(pictures)) == 3
        Image.open(io.BytesIO(archive.read(pictures[0]))).verify()
    page.locator(".past-card").nth(1).hover()
    page.locator(".past-card .remove").nth(1).click()
    page.wait_for_function("() => document.querySelectorAll('#history .card').length === 2")
    assert cards.locator(".name").all_inner_texts() == ["a + b", "a"]


def test_several_files_become_a_table(page, picture, tmp_path):
    bad = tmp_path / "bad.png"
    bad.write_bytes(b"hello")
    other = tmp_path / "=other,1.png"
    other.write_bytes(png("a"))
    choose(page, picture, bad, other)
    page.get_by_text("3 of 3 read · 1 without a formula").wait_for()
    rows = page.locator("#rows tr")
    assert rows.count() == 3
    assert rows.nth(0).locator("code").inner_text() == LATEX
    assert rows.nth(0).locator(".verdict").inner_text() in ("Sure", "Check")
    assert rows.nth(0).locator(".c-typeset .katex").count() == 1
    assert rows.nth(1).locator(".error").inner_text()
    rows.nth(2).get_by_role("button", name="Copy the LaTeX").click()
    page.wait_for_function("async () => (await navigator.clipboard.readText()) === 'a'")
    page.get_by_role("button", name="Copy all").click()
    page.wait_for_function(f"async () => (await navigator.clipboard.readText()) === '{LATEX}\\na'")
    rows.nth(0).get_by_role("button", name="Open").click()
    expect_latex(page)
    write(page, "x + 1")
    page.get_by_role("button", name="Back to the table").click()
    assert rows.nth(0).locator("code").inner_text() == "x + 1"
    name, content = saved(page, page.locator("[data-export=csv]").click)
    assert name == "formulas.csv"
    table = list(csv.reader(io.StringIO(content.decode("utf-8-sig"))))
    assert table[0] == ["name", "latex", "confidence", "error"]
    assert [row[:2] for row in table[1:]] == [
        ["formula.png", "x + 1"],
        ["bad.png", ""],
        [" =other,1.png", "a"],
    ]
    assert table[2][3]
    _, content = saved(page, page.locator("[data-export=zip]").click)
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        assert archive.testzip() is None
        assert archive.read("latex/formula.tex") == b"x + 1\n"
        assert archive.read("pictures/bad.png") == b"hello"
    transfer(page, "drop", png(FORMULA))  # more of them
    page.get_by_text("4 of 4 read").wait_for()


def test_by_keyboard_alone(page):
    """An example is read, a token exchanged, the picture cropped, the formula copied: no mouse is touched."""
    page.route("**/examples/*.png", lambda route: route.fulfill(body=png(FORMULA), content_type="image/png"))

    def tab_to(selector, limit=40, keys="Tab"):
        for _ in range(limit):
            page.keyboard.press(keys)
            if page.evaluate("selector => document.activeElement.matches(selector)", selector):
                outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
                assert outline == "solid", "what has the focus can be seen"
                return
        raise AssertionError(f"{selector} is out of reach")

    tab_to("#examples .card")
    page.keyboard.press("Enter")
    expect_latex(page)
    assert page.evaluate("document.activeElement.id") == "copy"
    tab_to("#inspect summary")
    page.keyboard.press("Enter")
    tab_to("#tokens .token")
    page.keyboard.press("End")
    assert page.evaluate("document.activeElement.textContent") == "y"
    assert region(page) is not None
    for _ in range(3):
        page.keyboard.press("ArrowLeft")
    page.keyboard.press("Enter")
    assert page.locator("#menu").is_visible()
    page.keyboard.press("Escape")
    assert page.locator("#menu").is_hidden()
    assert page.evaluate("document.activeElement.textContent") == "2"
    page.keyboard.press("Enter")
    page.keyboard.press("Enter")  # the likeliest other one
    page.wait_for_function(
        "latex => document.querySelector('#latex .cm-line').textContent !== latex", arg=LATEX
    )
    tab_to("#copy", keys="Shift+Tab")
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Copied").wait_for()
    assert copied(page) == latex_of(page)
    page.locator("#crop").focus()
    page.keyboard.press("Enter")
    before = page.locator("#selection").bounding_box()
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Shift+ArrowRight")
    after = page.locator("#selection").bounding_box()
    assert after["x"] < before["x"]
    assert after["width"] > before["width"]
    with page.expect_response("**/api/read?*"):
        page.keyboard.press("Enter")
    assert page.locator("#selection").is_hidden()


def test_themes(visit, picture):
    page = visit(color_scheme="dark")
    choose(page, picture)
    expect_latex(page)
    shade = "(name) => getComputedStyle(document.querySelector(name)).backgroundColor"
    assert page.evaluate(shade, "body") == "rgb(14, 18, 23)"
    assert page.evaluate(shade, "#sheet") == "rgb(27, 33, 43)", "no glaring white sheet"
    assert "invert" in page.evaluate("getComputedStyle(document.getElementById('image')).filter")
    page.locator("#theme").click()
    assert page.evaluate(shade, "#sheet") == "rgb(255, 255, 255)"
    assert page.evaluate("getComputedStyle(document.getElementById('image')).filter") == "none"
    page.reload()
    assert page.evaluate("document.documentElement.dataset.theme") == "light", "the choice is kept"


LANGUAGES = {
    "en": "Copy LaTeX",
    "zh": "复制 LaTeX",
    "de": "LaTeX kopieren",
    "fr": "Copier le LaTeX",
    "es": "Copiar LaTeX",
}


def test_languages(visit, server):
    page = visit(locale="de-AT")
    for language, copy in LANGUAGES.items():
        page.locator("#language").select_option(language)
        page.wait_for_function("language => document.documentElement.lang === language", arg=language)
        assert page.locator("#copy").text_content() == copy
        words = page.evaluate("async (name) => (await fetch(`words/${name}.json`)).json()", language)
        english = page.evaluate("async () => (await fetch('words/en.json')).json()")
        assert {key for key in words if not key.startswith("problem.")} == set(english)
        holes = {key: re.findall(r"\{\w+\}", text) for key, text in english.items()}
        assert {key: sorted(re.findall(r"\{\w+\}", words[key])) for key in english} == {
            key: sorted(names) for key, names in holes.items()
        }
        said = page.evaluate(
            """() => [...document.querySelectorAll("*")].flatMap((element) => Object.entries(element.dataset)
              .filter(([name]) => name.startsWith("say")).map(([, key]) => key))"""
        )
        assert set(said) <= set(words), "every word that the page says is in the file"
    page.reload()
    page.wait_for_function("() => document.documentElement.lang === 'es'")


def test_on_a_telephone(visit, picture, screenshot):
    page = visit(**TELEPHONE)
    assert fits(page)
    assert page.get_by_role("button", name="Take a photo").is_visible()
    find_nothing(page)
    choose(page, picture)
    expect_latex(page)
    assert fits(page)
    page.locator("#inspect summary").tap()
    page.locator("#tokens .token").nth(3).tap()
    box = page.locator("#menu").bounding_box()
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= 390
    page.locator("#menu button").nth(1).tap()
    page.wait_for_function(
        "latex => document.querySelector('#latex .cm-line').textContent !== latex", arg=LATEX
    )
    heights = page.locator("button:visible").evaluate_all(
        "all => all.map(b => b.getBoundingClientRect().height)"
    )
    assert min(heights) >= 24
    choose(page, screenshot[0])
    page.locator("#notice").wait_for()
    assert fits(page)
    page.locator("#crop").tap()
    before = page.locator("#selection").bounding_box()
    handle = page.locator("#selection .handle.se").bounding_box()
    page.evaluate(
        """([x, y]) => {
          const target = document.querySelector("#selection .handle.se");
          const finger = { bubbles: true, cancelable: true, pointerId: 7, pointerType: "touch", button: 0 };
          const touch = (kind, off, element) => element.dispatchEvent(
            new PointerEvent(kind, { ...finger, clientX: x + off, clientY: y + off }));
          HTMLElement.prototype.setPointerCapture = () => {}; // there is no such finger
          touch("pointerdown", 0, target);
          touch("pointermove", -20, document.getElementById("paper"));
          touch("pointerup", -20, document.getElementById("paper"));
        }""",
        [handle["x"] + handle["width"] / 2, handle["y"] + handle["height"] / 2],
    )
    after = page.locator("#selection").bounding_box()
    assert before["width"] - after["width"] == pytest.approx(20, abs=2)
    assert before["height"] - after["height"] == pytest.approx(20, abs=2)


def test_a_bad_file_is_explained_and_the_next_one_is_read(page, picture):
    transfer(page, "drop", b"hello", name="notes.txt", mime="text/plain")
    page.locator("#notice").wait_for()
    assert "not an image" in page.locator("#notice").inner_text()
    assert page.locator("#result").is_hidden()
    transfer(page, "drop", b"%PDF-1.4", name="paper.pdf", mime="application/pdf")
    page.get_by_text("no PDF reader could open it").wait_for()
    transfer(page, "drop", png(FORMULA)[:80], name="broken.png")
    page.get_by_text("damaged").wait_for()
    choose(page, picture)
    expect_latex(page)
    assert page.locator("#notice").is_hidden()


def test_text_from_the_server_is_text(page, picture):
    evil = token("<img src=x onerror=alert(1)>")
    answer(page, answer_with(evil))
    choose(page, picture)
    page.locator("#inspect summary").click()
    page.locator("#tokens .token").wait_for()
    assert page.locator("#tokens .token").inner_text() == evil["text"]
    assert page.locator("#tokens img, #preview img, #history img[src=x]").count() == 0


def test_a_busy_server_is_asked_again(page, picture):
    answers = iter([503, 503])

    def be_busy(route):
        status = next(answers, None)
        problem = {"status": status, "detail": "busy"}
        if status is None:
            route.continue_()
        else:
            route.fulfill(status=status, json=problem, headers={"Retry-After": "1"})

    page.route("**/api/read?*", be_busy)
    choose(page, picture)
    page.get_by_text("The server is busy, waiting").wait_for()
    expect_latex(page)


def test_the_server_goes_away_and_comes_back(browser, model, picture):
    server = start_server(model)
    one = Visit(browser, server.address)
    page = one.page
    try:
        server.stop()
        choose(page, picture)
        page.locator("#notice").wait_for()
        assert "does not answer" in page.locator("#notice").inner_text()
        assert page.locator("#image").is_visible()
        server = start_server(model, port=server.port)
        expect_latex(page)
        assert page.locator("#notice").is_hidden()
    finally:
        server.stop()
        one.close()


def test_a_token_is_asked_for_and_kept(browser, model, picture):
    server = start_server(model, I2L_TOKEN="secret")
    context = browser.new_context(**DESKTOP)
    page = context.new_page()
    try:
        page.goto(server.address)
        page.get_by_text("asks for a token").wait_for()
        page.get_by_label("Token", exact=True).fill("secret")
        page.keyboard.press("Enter")
        page.wait_for_selector("#examples .card")
        choose(page, picture)
        expect_latex(page)
        other = context.new_page()
        other.goto(f"{server.address}/#token=secret")
        other.wait_for_selector("#examples .card")
        assert "secret" not in other.url
    finally:
        context.close()
        assert server.stop() in (0, -15)


def test_the_page_of_the_api(browser, server):
    context = browser.new_context(**TELEPHONE)
    page = context.new_page()
    errors = []
    page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
    page.goto(f"{server.address}/docs")
    page.locator(".operation").first.wait_for()
    assert page.locator(".operation h2").first.inner_text() == "POST/api/read"
    line = page.locator(".operation pre").first.inner_text().splitlines()[0]
    assert line == f"curl -F file=@formula.png {server.address}/api/read"
    assert fits(page)
    context.close()
    assert not errors
