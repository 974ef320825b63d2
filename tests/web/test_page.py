"""The page in Chromium: every way in, what is shown, and what happens when something is wrong."""

import base64
import re

import numpy as np
import pytest
from PIL import Image

from tests.inference.conftest import draw_formula
from tests.web.conftest import png, start_server

pytestmark = pytest.mark.slow

FORMULA = "x ^ { 2 } = y"
LATEX = "x^{2} = y"
DESKTOP = {"viewport": {"width": 1180, "height": 900}}
TELEPHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}


class Visit:
    """A page that was opened, and what the browser complained about."""

    def __init__(self, browser, address, **options):
        self.context = browser.new_context(**{**DESKTOP, **options})
        self.context.grant_permissions(["clipboard-read", "clipboard-write"], origin=address)
        self.page = self.context.new_page()
        self.page.set_default_timeout(15_000)
        self.errors = []
        self.foreign = []
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("console", self._listen)
        self.page.on("request", lambda request: self._look(request.url, address))
        self.page.goto(address)
        self.page.wait_for_selector("#examples .card", state="attached")

    def _listen(self, message):
        if message.type == "error" and "Failed to load resource" not in message.text:
            self.errors.append(message.text)

    def _look(self, url, address):
        if not url.startswith((address, "blob:", "data:")):
            self.foreign.append(url)

    def close(self):
        self.context.close()
        assert not self.errors
        assert not self.foreign


@pytest.fixture
def visit(browser, server):
    opened = []

    def visit_page(**options):
        opened.append(Visit(browser, server.address, **options))
        return opened[-1].page

    yield visit_page
    for one in opened:
        one.close()


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


def choose(page, path):
    with page.expect_file_chooser() as chooser:
        page.get_by_role("button", name="Choose a file").click()
    chooser.value.set_files(path)


def expect_latex(page, latex=LATEX):
    page.wait_for_function("latex => document.getElementById('latex').value === latex", arg=latex)


def transfer(page, kind, data, name="formula.png", mime="image/png", target="document.body"):
    """Paste or drop a file as the browser would."""
    page.evaluate(
        f"""([kind, data, name, type]) => {{
          const bytes = Uint8Array.from(atob(data), (letter) => letter.charCodeAt(0));
          const transfer = new DataTransfer();
          transfer.items.add(new File([bytes], name, {{ type }}));
          const options = {{ bubbles: true, cancelable: true }};
          const event = kind === "paste"
            ? new ClipboardEvent(kind, {{ ...options, clipboardData: transfer }})
            : new DragEvent(kind, {{ ...options, dataTransfer: transfer }});
          {target}.dispatchEvent(event);
        }}""",
        [kind, base64.b64encode(data).decode(), name, mime],
    )


def lit(page):
    return page.locator("#tokens .lit").all_inner_texts()


def region(page):
    """Left and right of what is lit up on the image, as shares of its width; None if nothing is."""
    own = page.locator("#marks .own")
    if not own.count():
        return None
    width = page.evaluate("document.getElementById('image').naturalWidth")
    left = float(own.get_attribute("x"))
    return left / width, (left + float(own.get_attribute("width"))) / width


def copied(page):
    return page.evaluate("navigator.clipboard.readText()")


def fits(page):
    return page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_a_file_is_picked_and_read(page, picture):
    choose(page, picture)
    expect_latex(page)
    assert page.locator("#tokens .token").all_inner_texts() == FORMULA.split(" ")
    assert re.match(r"\d\d % sure · ", page.locator("#outcome").inner_text())
    assert page.locator("#notice").is_hidden()
    assert page.locator("#preview .katex").count() == 1
    image, ink = page.locator("#image").bounding_box(), page.locator("#preview .katex-html").bounding_box()
    assert image["y"] + image["height"] <= ink["y"], "the preview stands under the image"
    typeset = page.evaluate(
        """() => {
          const bases = [...document.querySelectorAll('#preview .katex-base')]
            .map((base) => base.getBoundingClientRect());
          return Math.max(...bases.map((b) => b.right)) - Math.min(...bases.map((b) => b.left));
        }"""
    )
    pixels = draw_formula(FORMULA)
    columns = (pixels < 128).any(axis=0).nonzero()[0]
    wanted = (columns[-1] + 1 - columns[0]) * image["width"] / pixels.shape[1]
    assert typeset == pytest.approx(wanted, rel=0.1), "at the same scale"


def test_a_screenshot_is_pasted(page):
    transfer(page, "paste", png(FORMULA), target="document")
    expect_latex(page)
    page.evaluate("document.getElementById('latex').focus()")
    transfer(page, "paste", png("a"), target="document.getElementById('latex')")
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
    page.locator("#latex").focus()
    page.keyboard.press("End")
    page.keyboard.press("Control+V")
    assert page.locator("#latex").input_value() == f"{LATEX}+ 1"
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
        "() => document.querySelector('#tokens .token') || !document.getElementById('notice').hidden"
    )
    assert page.locator("#image").evaluate("image => image.naturalWidth") > 100


def test_a_part_of_a_large_screenshot_is_read(page, screenshot):
    path, (left, top, right, bottom) = screenshot
    choose(page, path)
    page.locator("#notice").wait_for()
    assert "drag over the image" in page.locator("#notice").inner_text()
    assert page.locator("#latex").is_hidden()
    frame = page.locator("#image").bounding_box()
    zoom = frame["width"] / 1600
    page.mouse.move(frame["x"] + left * zoom, frame["y"] + top * zoom)
    page.mouse.down()
    page.mouse.move(frame["x"] + right * zoom, frame["y"] + bottom * zoom, steps=3)
    assert page.locator("#selection").is_visible()
    page.mouse.up()
    expect_latex(page)
    assert page.locator("#image").evaluate("image => image.naturalWidth") == pytest.approx(
        right - left, abs=3
    )
    page.get_by_role("button", name="Whole image").click()
    page.wait_for_function("() => document.getElementById('image').naturalWidth === 1600")


@pytest.fixture
def known(page):
    """Readings whose boxes are those of the letters: the small model looks at all of them at once."""
    pixels = draw_formula(FORMULA) < 128
    columns = np.flatnonzero(np.diff(pixels.any(axis=0), prepend=0, append=0)).reshape(-1, 2)
    boxes = []
    for left, right in columns.tolist():
        rows = np.flatnonzero(pixels[:, left:right].any(axis=1))
        boxes.append([left, int(rows[0]), right, int(rows[-1]) + 1])
    assert len(boxes) == 4
    drawn = iter(boxes)
    tokens = [
        {"text": text, "probability": 0.99, "box": None if text in "^{}" else next(drawn), "alternatives": []}
        for text in FORMULA.split(" ")
    ]
    page.route("**/api/read?*", lambda route: route.fulfill(json=answer_with(*tokens)))
    return tokens


def test_pointing_at_a_token_lights_its_region(page, picture, known):
    choose(page, picture)
    tokens = page.locator("#tokens .token")
    width = draw_formula(FORMULA).shape[1]
    for index, token in enumerate(known):
        tokens.nth(index).hover()
        assert page.locator("#here b").inner_text() == token["text"]
        left, _, right, _ = token["box"] or known[3]["box"]  # a brace draws nothing: its group lights up
        assert region(page) == pytest.approx((left / width, right / width), abs=0.02)
    page.mouse.move(5, 5)
    assert region(page) is None
    page.locator("#boxes").check()
    assert page.locator("#marks .box").count() == 4


def test_pointing_at_the_image_lights_the_token(page, picture, known):
    choose(page, picture)
    page.locator("#tokens .token").first.wait_for()
    frame = page.locator("#image").bounding_box()
    zoom = frame["width"] / draw_formula(FORMULA).shape[1]
    for token in filter(lambda token: token["box"], known):
        left, top, right, bottom = token["box"]
        page.mouse.move(frame["x"] + (left + right) / 2 * zoom, frame["y"] + (top + bottom) / 2 * zoom)
        assert lit(page) == [token["text"]]
        assert region(page) is not None
    page.mouse.down()
    page.mouse.up()
    assert page.locator("#choices").is_visible()
    page.keyboard.press("Escape")
    page.mouse.move(5, 5)
    assert lit(page) == []


def test_another_token_is_chosen(page, picture):
    choose(page, picture)
    expect_latex(page)
    token = page.locator("#tokens .token").nth(3)
    token.click()
    menu = page.locator("#choices")
    assert menu.is_visible()
    shares = [float(re.sub(r"[^\d.]", "", share)) for share in menu.locator(".share").all_inner_texts()]
    assert shares == sorted(shares, reverse=True)
    assert "<eos>" not in menu.inner_text()
    other = menu.locator("button").nth(1)
    text = other.locator("span").first.inner_text()
    other.click()
    page.wait_for_function(
        "text => document.querySelectorAll('#tokens .token')[3].textContent === text", arg=text
    )
    latex = page.locator("#latex").input_value()
    assert latex != LATEX
    assert text in latex
    assert menu.is_hidden()
    token.click()
    menu.get_by_text("2", exact=True).click()
    expect_latex(page)


def test_doubt_has_a_colour_and_a_mark(page, picture):
    choose(page, picture)
    expect_latex(page)
    doubts = page.locator("#tokens .token").evaluate_all(
        "chips => chips.map(chip => Number(chip.style.getPropertyValue('--doubt')))"
    )
    assert all(0 < doubt < 0.2 for doubt in doubts)
    assert page.locator("#marks .unsure").count() == 0
    unsure = {
        "text": "2",
        "probability": 0.4,
        "box": [10, 10, 20, 20],
        "alternatives": [{"text": "z", "probability": 0.3}],
    }
    page.route("**/api/read?*", lambda route: route.fulfill(json=answer_with(unsure)))
    choose(page, picture)
    expect_latex(page, "2")
    assert page.locator("#marks .unsure").count() == 1
    assert "has alternatives" in page.locator("#tokens .token").get_attribute("aria-label")
    assert page.locator("#outcome").evaluate("line => line.classList.contains('doubtful')")
    assert "ink" not in page.locator("#outcome").inner_text()
    page.unroute("**/api/read?*")
    page.route("**/api/read?*", lambda route: route.fulfill(json=answer_with(unsure) | {"unread": 0.153}))
    choose(page, picture)
    page.locator("#outcome", has_text="15 % of the ink not read").wait_for()


def answer_with(*tokens):
    latex = "".join(token["text"] for token in tokens)
    return {
        "request_id": latex,
        "latex": latex,
        "confidence": 0.4,
        "tokens": list(tokens),
        "alternatives": [{"latex": "z", "confidence": 0.3}],
        "finished": True,
        "seconds": 0.1,
        "ink": [10, 10, 50, 30],
    }


def test_other_readings_and_live_preview(page, picture):
    choose(page, picture)
    expect_latex(page)
    readings = page.locator("#readings .reading")
    assert readings.count() >= 2
    readings.nth(1).click()
    assert page.locator("#latex").input_value() != LATEX
    assert readings.nth(1).get_attribute("aria-checked") == "true"
    page.locator("#latex").fill(r"\frac{a}{b}")
    assert page.locator("#preview .mfrac").count() == 1
    assert page.locator("#mistake").inner_text() == ""
    page.locator("#latex").fill(r"\frac{a}{")
    assert "expected" in page.locator("#mistake").inner_text()
    readings.nth(0).click()
    expect_latex(page)


@pytest.mark.parametrize(
    ("button", "expected"),
    [
        ("Copy LaTeX", LATEX),
        ("$$ … $$", f"$${LATEX}$$"),
        ("$ … $", f"${LATEX}$"),
        ("MathML", '<math xmlns="http://www.w3.org/1998/Math/MathML" display="block"><mrow><msup><mi>x</mi>'),
    ],
)
def test_copy(page, picture, button, expected):
    choose(page, picture)
    expect_latex(page)
    page.get_by_role("button", name=button, exact=True).click()
    page.get_by_role("button", name="Copied").wait_for()
    assert copied(page).startswith(expected)
    assert "annotation" not in copied(page)


def test_readings_are_kept_in_the_browser(page, picture):
    choose(page, picture)
    expect_latex(page)
    page.locator("#history .card").wait_for()
    page.locator("#latex").fill("x + 1")
    page.reload()
    card = page.locator("#history .card")
    assert card.count() == 1
    assert "x + 1" in card.inner_text()
    page.route("**/api/read?*", lambda route: route.abort())  # nothing is asked again
    card.click()
    expect_latex(page, "x + 1")
    page.locator("#tokens .token").nth(0).hover()
    assert region(page) is not None
    page.get_by_role("button", name="Clear").click()
    assert page.locator("#history .card").count() == 0
    assert page.evaluate("localStorage.length") == 0


def test_by_keyboard_alone(page):
    """An example is read, a token exchanged, the image cropped, the formula copied: no mouse is touched."""
    page.route("**/examples/*.png", lambda route: route.fulfill(body=png(FORMULA), content_type="image/png"))

    def tab_to(selector, limit=40):
        for _ in range(limit):
            page.keyboard.press("Tab")
            if page.evaluate("selector => document.activeElement.matches(selector)", selector):
                outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
                assert outline == "solid", "what has the focus can be seen"
                return
        raise AssertionError(f"{selector} is out of reach")

    tab_to("#examples .card")
    page.keyboard.press("Enter")
    expect_latex(page)
    tab_to("#tokens .token")
    page.keyboard.press("End")
    assert page.evaluate("document.activeElement.textContent") == "y"
    assert region(page) is not None
    for _ in range(3):
        page.keyboard.press("ArrowLeft")
    page.keyboard.press("Enter")
    assert page.locator("#choices").is_visible()
    page.keyboard.press("Escape")
    assert page.locator("#choices").is_hidden()
    assert page.evaluate("document.activeElement.textContent") == "2"
    page.keyboard.press("Enter")
    page.keyboard.press("Enter")  # the likeliest other one
    page.wait_for_function("latex => document.getElementById('latex').value !== latex", arg=LATEX)
    tab_to("[data-copy=latex]")
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Copied").wait_for()
    assert copied(page) == page.locator("#latex").input_value()
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


def test_dark(visit, picture):
    page = visit(color_scheme="dark")
    choose(page, picture)
    expect_latex(page)
    colours = page.evaluate(
        "[getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color]"
    )
    assert colours == ["rgb(20, 24, 31)", "rgb(230, 233, 239)"]
    assert (
        page.evaluate("getComputedStyle(document.getElementById('sheet')).backgroundColor")
        == "rgb(255, 255, 255)"
    )


def test_on_a_telephone(visit, picture, screenshot):
    page = visit(**TELEPHONE)
    assert fits(page)
    choose(page, picture)
    expect_latex(page)
    assert fits(page)
    page.locator("#tokens .token").nth(3).tap()
    box = page.locator("#choices").bounding_box()
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= 390
    page.locator("#choices button").nth(1).tap()
    page.wait_for_function("latex => document.getElementById('latex').value !== latex", arg=LATEX)
    heights = page.locator("button:visible").evaluate_all(
        "all => all.map(b => b.getBoundingClientRect().height)"
    )
    assert min(heights) >= 24
    choose(page, screenshot[0])
    page.locator("#notice").wait_for()
    assert fits(page)


def test_a_bad_file_is_explained_and_the_next_one_is_read(page, picture):
    transfer(page, "drop", b"hello", name="notes.txt", mime="text/plain")
    page.locator("#notice").wait_for()
    assert "not an image" in page.locator("#notice").inner_text()
    assert page.locator("#result").is_hidden()
    transfer(page, "drop", b"%PDF-1.4", name="paper.pdf", mime="application/pdf")
    page.get_by_text("This is a PDF").wait_for()
    transfer(page, "drop", png(FORMULA)[:80], name="broken.png")
    page.get_by_text("damaged").wait_for()
    choose(page, picture)
    expect_latex(page)
    assert page.locator("#notice").is_hidden()


def test_text_from_the_server_is_text(page, picture):
    evil = {"text": "<img src=x onerror=alert(1)>", "probability": 0.5, "box": None, "alternatives": []}
    page.route("**/api/read?*", lambda route: route.fulfill(json=answer_with(evil)))
    choose(page, picture)
    page.locator("#tokens .token").wait_for()
    assert page.locator("#tokens .token").inner_text() == evil["text"]
    assert page.locator("#tokens img, #preview img, #history img[src=x]").count() == 0


def test_a_busy_server_is_asked_again(page, picture):
    answers = iter([503, 503])

    def answer(route):
        status = next(answers, None)
        problem = {"status": status, "detail": "busy"}
        if status is None:
            route.continue_()
        else:
            route.fulfill(status=status, json=problem, headers={"Retry-After": "1"})

    page.route("**/api/read?*", answer)
    choose(page, picture)
    page.get_by_text("The server is busy").wait_for()
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
