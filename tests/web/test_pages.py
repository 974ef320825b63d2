"""Whole pages: the API, and the page in Chromium by mouse, keyboard and touch."""

import io
from pathlib import Path

import pytest
from PIL import Image

from tests.pages.conftest import marked, pdf, story  # noqa: F401
from tests.web.visiting import (
    TELEPHONE,
    answer,
    answer_with,
    choose,
    expect_latex,
    token,
    transfer,
    visiting,
)

pytestmark = [pytest.mark.tex]
READING = answer_with(token("x"), latex="x^{2}")
REFUSAL = {"type": "/docs#too-large", "title": "Too large", "status": 413, "detail": "Too large. Crop it."}


@pytest.fixture(scope="module")
def picture(marked, tmp_path_factory):  # noqa: F811
    """The picture of a page."""
    path = tmp_path_factory.mktemp("page") / "page.png"
    Image.fromarray(marked.pixels).save(path)
    return path


@pytest.fixture
def visit(browser, server):
    with visiting(browser, server) as visit_page:
        yield visit_page


def give(page, picture):
    """Give a page to a server that calls it too large for one formula, and wait for its rectangles."""
    answer(page, REFUSAL, status=413)
    choose(page, picture)
    page.get_by_text("This looks like a page: pick a formula").wait_for()
    page.locator(".formula-box").first.wait_for()
    answer(page, READING)


def box_of(locator):
    frame = locator.bounding_box()
    return frame["x"], frame["y"], frame["width"], frame["height"]


def test_the_api_finds_formulas_on_a_picture_and_in_a_pdf(client, picture, pdf):  # noqa: F811
    for content, method in ((picture.read_bytes(), "picture"), (pdf, "picture and fonts")):
        answered = client.post(
            "/api/page?read=false", content=content, headers={"Content-Type": "application/octet-stream"}
        )
        found = answered.json()
        assert answered.status_code == 200, found
        assert found["method"] == method
        assert {formula["kind"] for formula in found["formulas"]} >= {"displayed"}
        assert (found["picture"] is None) == (method == "picture")
        for formula in found["formulas"]:
            left, top, right, bottom = formula["box"]
            assert 0 <= left < right <= found["width"]
            assert 0 <= top < bottom <= found["height"]


def test_the_api_says_what_is_wrong_with_a_page(client, pdf):  # noqa: F811
    def post(content, query="", kind="application/pdf"):
        return client.post(f"/api/page{query}", content=content, headers={"Content-Type": kind})

    assert post(b"%PDF-1.4").status_code == 415
    assert "damaged" in post(b"%PDF-1.4").json()["detail"]
    assert "no page 99" in post(pdf, "?page=99").json()["detail"]
    assert post(pdf, "?page=0").status_code == 422
    assert post(b"hello").status_code == 415
    empty = io.BytesIO()
    Image.new("L", (300, 200), 255).save(empty, "PNG")
    blank = post(empty.getvalue(), kind="image/png")
    assert (blank.status_code, blank.json()["formulas"]) == (200, [])


def test_by_mouse_a_rectangle_is_read_moved_resized_drawn_and_all_are_read(visit, picture):
    page = visit()
    give(page, picture)
    boxes = page.locator(".formula-box")
    number = boxes.count()
    assert number >= 5
    boxes.nth(1).click()
    row = page.locator("#page-list li")
    row.wait_for()
    assert "x^{2}" in row.inner_text()
    row.get_by_role("button", name="Copy the LaTeX of x^{2}").click()
    page.wait_for_function("() => navigator.clipboard.readText().then((text) => text === 'x^{2}')")
    boxes.nth(2).scroll_into_view_if_needed()
    x, y, width, height = box_of(boxes.nth(2))
    page.mouse.move(x + width / 2, y + height / 2)
    page.mouse.down()
    page.mouse.move(x + width / 2 + 30, y + height / 2 + 12, steps=4)
    page.mouse.up()
    moved = box_of(boxes.nth(2))
    assert moved[0] - x == pytest.approx(30, abs=2)
    assert moved[2] == pytest.approx(width, abs=2)
    page.mouse.move(moved[0] + moved[2] - 1, moved[1] + moved[3] - 1)  # its lower right corner
    page.mouse.down()
    page.mouse.move(moved[0] + moved[2] + 24, moved[1] + moved[3] + 9, steps=4)
    page.mouse.up()
    assert box_of(boxes.nth(2))[2] - moved[2] == pytest.approx(25, abs=3)
    page.locator("#pages-title").scroll_into_view_if_needed()
    x, y, *_ = box_of(page.locator("#page-paper"))
    page.mouse.move(x + 4, y + 4)
    page.mouse.down()
    page.mouse.move(x + 64, y + 34, steps=4)
    page.mouse.up()
    assert boxes.count() == number + 1
    page.get_by_role("button", name="Read all").click()
    page.get_by_text(f"{number + 1} of {number + 1} read").wait_for()
    assert row.count() == number + 1
    with page.expect_download() as download:
        page.get_by_role("button", name="Download").click()
    assert "x^{2}" in Path(download.value.path()).read_text(encoding="utf-8")


def test_by_keyboard_a_rectangle_is_read_moved_resized_and_taken_away(visit, picture):
    page = visit()
    give(page, picture)
    boxes = page.locator(".formula-box")
    number = boxes.count()
    first = boxes.first
    assert first.evaluate("(box) => box === document.activeElement"), "the first one has the focus"
    x, _, width, _ = box_of(first)
    page.keyboard.press("ArrowRight")
    assert box_of(first)[0] > x
    page.keyboard.press("Shift+ArrowRight")
    assert box_of(first)[2] > width
    page.keyboard.press("Enter")
    page.locator("#page-list li").wait_for()
    page.keyboard.press("Tab")
    page.keyboard.press("Delete")
    assert boxes.count() == number - 1


def find(page, *boxes):
    """Let the server find formulas in these places of any picture."""

    def answer_boxes(route):
        formulas = [{"box": list(box), "kind": "displayed", "number": None} for box in boxes]
        response = route.fetch()
        route.fulfill(response=response, json={**response.json(), "formulas": formulas})

    page.unroute("**/api/page*")
    page.route("**/api/page*", answer_boxes)


@pytest.mark.parametrize(
    ("boxes", "offered"),
    [
        ([(100, 100, 400, 140), (100, 500, 400, 540)], True),
        ([(100, 100, 400, 540)], False),  # one high formula
        ([(100, 100, 400, 140), (100, 200, 400, 240), (500, 110, 900, 240)], False),  # lines of one
        ([(100, 500, 400, 540), (500, 90, 900, 460), (100, 100, 400, 140)], False),  # all beside a high one
    ],
)
def test_formulas_far_apart_are_a_page_however_sure_their_reading_is(visit, tmp_path, boxes, offered):
    """Whether a large screenshot was offered as a page was a matter of how sure the model happened to be."""
    Image.new("L", (1000, 800), 255).save(tmp_path / "screen.png")
    page = visit()
    answer(page, answer_with(token("x"), latex="x^{2}", size=(1000, 800), scale=1.0, confidence=0.97))
    find(page, *boxes)
    choose(page, tmp_path / "screen.png")
    if offered:
        page.get_by_text("This looks like a page: pick a formula").wait_for()
        assert page.locator(".formula-box").count() == len(boxes)
    else:
        expect_latex(page, "x^{2}")


def test_a_small_picture_is_not_looked_through_for_pages(visit, tmp_path):
    Image.new("L", (1000, 500), 255).save(tmp_path / "screen.png")
    page = visit()
    answer(page, answer_with(token("x"), latex="x^{2}", size=(1000, 500), scale=1.0, confidence=0.97))
    find(page, (100, 100, 400, 140), (100, 400, 400, 440))
    choose(page, tmp_path / "screen.png")
    expect_latex(page, "x^{2}")


def test_by_touch_a_rectangle_is_read(visit, picture):
    page = visit(**TELEPHONE)
    give(page, picture)
    page.locator(".formula-box").first.tap()
    page.locator("#page-list li").wait_for()
    assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")


def test_a_pdf_is_shown_as_a_page(visit, pdf):  # noqa: F811
    page = visit()
    transfer(page, "drop", pdf, name="paper.pdf", mime="application/pdf")
    page.locator(".formula-box").first.wait_for()
    assert page.locator("#page-paper img").evaluate("(image) => image.naturalWidth") > 1000
