"""The page in Chromium, by mouse and by keyboard."""

import pytest

from i2l.explain.drawings import explanation_page
from tests.explain.readings import SYMBOLS, TOKENS, make_explanation

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "explain.html"
    path.write_text(explanation_page(make_explanation(zoom=3)), encoding="utf-8")
    return path.as_uri()


@pytest.fixture
def page(browser, address):
    context = browser.new_context(viewport={"width": 1100, "height": 800})
    opened = context.new_page()
    errors = []
    opened.on("pageerror", lambda error: errors.append(str(error)))
    opened.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
    opened.on(
        "request", lambda request: errors.append(request.url) if request.url.startswith("http") else None
    )
    opened.goto(address)
    yield opened
    assert not errors
    context.close()


def selected(page):
    return page.locator("#tokens [aria-selected=true]").all_inner_texts()


def shown(page):
    return page.locator("#detail h2").inner_text()


def heat(page, x, y):
    """How opaque attention is at a place of the image, as a share of its size."""
    return page.evaluate(
        """([x, y]) => {
          const heat = document.getElementById("heat"), image = document.getElementById("image");
          const margin = (heat.width - image.naturalWidth) / 2;
          const place = [margin + x * image.naturalWidth, margin + y * image.naturalHeight].map(Math.round);
          return heat.getContext("2d").getImageData(...place, 1, 1).data[3];
        }""",
        [x, y],
    )


def middle(symbol):
    left, top, right, bottom = SYMBOLS[symbol]
    return (left + right) / 2 / 240, (top + bottom) / 2 / 48


def point_at(page, symbol):
    frame = page.locator("#paper").bounding_box()
    x, y = middle(symbol)
    page.mouse.move(frame["x"] + x * frame["width"], frame["y"] + y * frame["height"])


def test_arrow_keys_go_through_the_tokens_and_show_their_region(page):
    assert page.locator("#tokens [role=option]").all_inner_texts() == [*TOKENS, "end"]
    assert (selected(page), shown(page)) == (["a"], "a")
    assert heat(page, *middle(0)) > 100
    assert heat(page, *middle(5)) < 60
    for _ in range(5):
        page.keyboard.press("ArrowRight")
    assert (selected(page), shown(page)) == (["+"], "+")
    assert heat(page, *middle(5)) > 100
    assert heat(page, *middle(0)) < 60
    box = page.locator("#marks .own")
    assert [float(box.get_attribute(side)) / 3 for side in ("x", "y")] == list(SYMBOLS[5][:2])
    page.keyboard.press("End")
    assert selected(page) == ["end"]
    page.keyboard.press("ArrowRight")
    assert selected(page) == ["end"]
    page.keyboard.press("Home")
    page.keyboard.press("ArrowLeft")
    assert selected(page) == ["a"]


def test_tab_reaches_everything_and_focus_follows_the_token(page):
    reached = []
    for _ in range(9):
        page.keyboard.press("Tab")
        reached.append(
            page.evaluate("document.activeElement.id || document.activeElement.getAttribute('role')")
        )
    assert reached == ["copy", "previous", "play", "next", "pace", "spread", "field", "boxes", "option"]
    page.keyboard.press("ArrowRight")
    assert page.evaluate("document.activeElement.textContent") == selected(page)[0] == "^"
    outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"


def test_pointing_at_a_token_shows_its_region_and_leaving_goes_back(page):
    page.locator("#tokens [role=option]").nth(5).hover()
    assert (selected(page), shown(page)) == (["a"], "+")
    assert heat(page, *middle(5)) > 100
    page.mouse.move(5, 5)
    assert shown(page) == "a"
    page.locator("#tokens [role=option]").nth(3).click()
    page.mouse.move(5, 5)
    assert (selected(page), shown(page)) == (["2"], "2")


def test_pointing_at_the_image_shows_what_was_read_there(page):
    point_at(page, 5)
    assert shown(page) == "+"
    assert page.locator("#here b").all_inner_texts()[0] == "+"
    lit = page.locator("#tokens [role=option]").evaluate_all(
        "options => options.filter(o => o.style.getPropertyValue('--here')).map(o => o.textContent)"
    )
    assert lit == ["+"]
    page.mouse.down()
    page.mouse.up()
    assert selected(page) == ["+"]
    page.mouse.move(5, 5)
    assert page.locator("#here").inner_text().startswith("Point at the image")


def test_play_scans_to_the_end_and_pauses(page):
    page.locator("#pace").fill("10")
    page.locator("#play").click()
    assert page.locator("#play").get_attribute("aria-pressed") == "true"
    page.wait_for_function("document.querySelector('#tokens [aria-selected=true]').textContent === '2'")
    page.locator("#play").click()
    assert page.locator("#play").inner_text() == "Play"
    stopped = selected(page)
    page.wait_for_timeout(400)
    assert selected(page) == stopped
    page.locator("#latex").click()
    page.keyboard.press("Space")
    page.wait_for_function("document.querySelector('#tokens [aria-selected=true]').textContent === 'end'")
    page.wait_for_function("document.getElementById('play').textContent === 'Play'")


def test_probability_and_alternatives(page):
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    rows = page.locator("#detail tbody tr").evaluate_all(
        "rows => rows.map(row => [row.cells[0].textContent, row.cells[2].textContent])"
    )
    assert rows == [["2", "60 %"], ["z", "30 %"], ["Z", "5.0 %"]]
    doubts = page.locator("#tokens [role=option]").evaluate_all(
        "options => options.map(option => Number(option.style.getPropertyValue('--doubt')))"
    )
    assert max(range(len(doubts)), key=doubts.__getitem__) == 3


def test_what_is_drawn_can_be_chosen(page):
    page.locator("#boxes").check()
    assert page.locator("#marks .box").count() == len(SYMBOLS)
    page.locator("#field").check()
    width = float(page.locator("#marks .field").get_attribute("width"))
    assert width == pytest.approx(3 * 94)
    page.locator("#spread").select_option("none")
    assert heat(page, *middle(0)) == 0
    page.locator("#spread").select_option("cells")
    assert heat(page, *middle(0)) > 100


def test_text_is_text_and_the_page_fits_a_telephone(browser, address):
    context = browser.new_context(viewport={"width": 390, "height": 700}, color_scheme="dark")
    page = context.new_page()
    page.goto(address)
    assert page.title() == "a <formula>.png"
    assert page.locator("#latex").inner_text() == "a^{2} + <b>&"
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    background, ink = page.evaluate(
        "[getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color]"
    )
    assert background == "rgb(20, 24, 31)"
    assert ink == "rgb(230, 233, 239)"
    context.close()
