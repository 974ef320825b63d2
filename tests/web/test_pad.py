"""The pad on the page and its switch of models: a formula is written, read when the hand rests, erased."""

from functools import partial

import pytest

from tests.web.conftest import png
from tests.web.visiting import FORMULA, expect_latex, transfer, visiting

pytestmark = pytest.mark.slow


@pytest.fixture
def page(browser, server):
    """The page where a model for handwriting is the only one, whatever is installed here."""
    with visiting(browser, server) as visit_page:
        page = visit_page()
        for taught in (False, True):
            models = {"models": [{"name": "a", "loaded": True, "handwriting": taught}]}
            page.unroute("**/api/models")
            page.route("**/api/models", partial(answer, models))
            page.reload()
            page.wait_for_load_state("networkidle")
            assert page.locator("#write").is_visible() == taught
        yield page


def answer(content, route):
    """Answer a request of the page with this content instead of asking the server."""
    route.fulfill(json=content)


def stroke(page, *places):
    """Draw a line through places of the pad."""
    frame = page.locator("#pad-sheet").bounding_box()
    for number, (x, y) in enumerate(places):
        page.mouse.move(frame["x"] + x, frame["y"] + y, steps=4)
        if number == 0:
            page.mouse.down()
    page.mouse.up()


def inked(page):
    """How many pixels of the pad have ink."""
    return page.evaluate(
        """() => { const sheet = document.getElementById("pad-sheet");
          const { data } = sheet.getContext("2d").getImageData(0, 0, sheet.width, sheet.height);
          return data.filter((value, index) => index % 4 === 3 && value > 100).length; }"""
    )


def test_what_is_written_is_read_and_can_be_taken_back(page):
    asked = []
    page.on("request", lambda request: "api/strokes" in request.url and asked.append(request.post_data_json))
    assert page.locator("#pad").is_hidden()
    page.locator("#write").click()
    stroke(page, (100, 60), (160, 140))
    stroke(page, (160, 60), (100, 140))
    page.wait_for_selector("#result:not(.waiting) #verdict:not([hidden])")
    assert len(asked) == 1, "both strokes together, after a rest"
    first, second = asked[0]["strokes"]
    assert len(first) >= 4
    assert first[0] == [12, 12], "the picture begins a margin before the ink"
    assert second[0][0] == pytest.approx(72, abs=1)
    assert "never taught handwriting" in page.locator("#notice").text_content()
    both = inked(page)
    page.locator("#pad-undo").click()
    assert 0 < inked(page) < both
    stroke(page, (160, 60), (100, 140))
    page.locator("#pad-erase").click()
    stroke(page, (95, 100), (110, 70), (128, 98))
    assert inked(page) == 0, "the eraser takes whole strokes, and both cross there"
    page.locator("#pad-undo").click()
    assert inked(page) > 0
    page.locator("#pad-clear").click()
    assert inked(page) == 0
    page.locator("#pad-close").click()
    assert page.locator("#pad").is_hidden()


def test_a_model_is_chosen_where_there_are_several(browser, several):
    with visiting(browser, several) as visit_page:
        page = visit_page()
        page.wait_for_selector("#write:not([hidden])")
        choice = page.locator("#model")
        assert choice.locator("option").all_text_contents() == ["Automatic", "pinpoint", "hand", "small"]
        asked = []
        page.on("request", lambda request: "api/read" in request.url and asked.append(request.url))
        transfer(page, "paste", png(FORMULA))
        page.wait_for_selector("#result:not(.waiting) #verdict:not([hidden])")
        choice.select_option("small")
        expect_latex(page)
        assert [("model=" in url, "model=small" in url) for url in asked] == [(False, False), (True, True)]
