"""The report, read by a real browser from disk without network."""

import re
from dataclasses import replace

import numpy as np
import pytest

from i2l.evaluation.breakdown import SubsetScores
from i2l.evaluation.compare import EvaluationOptions, Pairs, evaluate_pairs
from i2l.evaluation.judge import gallery_inputs
from i2l.evaluation.report import sample_category, write_report
from i2l.evaluation.results import Curve

pytestmark = pytest.mark.tex

PAIRS = [
    (r"\frac { a } { b } + \sqrt { c }", r"\frac { a } { b } + \sqrt { c }"),  # right
    (r"x _ { i } ^ { 2 } = < y >", r"x _ { j } ^ { 2 } = < y >"),  # wrong
    (r"\mathrm { 1 } + x", "1 + x"),  # other tokens
    (r"a + b", r"a + \nosuchcommand </script> b"),  # does not compile
    (r"\sum _ { n } a _ { n } \leq 1", ""),  # does not compile either: there is nothing
]
COLOURS = """() => {
  const canvas = document.querySelector(".card canvas");
  const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  const found = new Set();
  for (let at = 0; at < data.length; at += 4) found.add(data.slice(at, at + 3).join(","));
  return [...found];
}"""
CATEGORIES = ["right", "wrong", "otherwise", "failed", "failed"]


@pytest.fixture(scope="module")
def evaluation():
    pairs = Pairs(
        [f"{number}.png" for number in range(len(PAIRS))],
        [target for target, _ in PAIRS],
        [prediction for _, prediction in PAIRS],
        {"missing": ["4.png"]},
    )
    options = EvaluationOptions(rounds=20, jobs=1)
    return evaluate_pairs(pairs, options=options, source={"title": "<a test>"})


@pytest.fixture
def opened(browser):
    """Opens a file, and fails if it asks for anything else or if a script complains."""
    page = browser.new_page()
    complaints = []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("request", lambda asked: complaints.append(asked.url) if asked.url.startswith("http") else None)

    def open_page(path):
        page.goto(path.as_uri())
        return page

    yield open_page
    page.close()
    assert complaints == []


def test_categories(evaluation):
    assert [sample_category(evaluation.result, index) for index in range(len(PAIRS))] == CATEGORIES


def test_page_asks_for_nothing(evaluation, tmp_path):
    write_report(evaluation.result, tmp_path / "report.html", visuals=evaluation.visuals)
    text = (tmp_path / "report.html").read_text()
    links = set(re.findall(r"https?://[^\"' ]+", text))
    assert links == {"http://www.w3.org/2000/svg"}  # the name of a format, not an address
    assert not re.search(r"(?:src|href)=\"(?!data:)", text)
    assert "@" not in re.sub(r"@media|<script.*?</script>", "", text, flags=re.DOTALL)
    assert "<a test>" not in text


@pytest.mark.slow
def test_browser_shows_every_category(evaluation, opened, tmp_path):
    scores = evaluation.result.by_length[0].figures
    points = [SubsetScores(label, 5, scores) for label in ("0.5", "1", "2")]
    result = replace(evaluation.result, curves=[Curve("scale", points)])
    inputs = gallery_inputs([np.full((20, 40), 128, dtype=np.uint8)] * len(PAIRS), evaluation.visuals)
    write_report(result, tmp_path / "report.html", visuals=evaluation.visuals, inputs=inputs)
    page = opened(tmp_path / "report.html")
    cards = page.locator(".card")
    assert cards.count() == 1  # the wrong one comes first
    assert cards.locator("img").count() == 3  # image, target, prediction
    assert page.evaluate("[...document.querySelectorAll('.card img')].every(image => image.naturalWidth > 0)")
    page.wait_for_function("document.querySelector('.card canvas').height > 10")
    colours = page.evaluate(COLOURS)
    assert {"255,255,255", "40,40,40", "214,32,39", "20,90,220"} == set(colours)
    assert cards.locator(".missing").inner_text() == "i"
    assert cards.locator(".added").inner_text() == "j"
    assert page.get_by_text("Disturbed: scale").count() == 1
    assert page.get_by_text("missing: 4.png").count() == 1

    page.get_by_role("tab", name="Did not compile (2)").click()
    assert cards.count() == 2
    assert r"\nosuchcommand" in cards.first.locator(".message").inner_text()
    assert "no prediction" in cards.last.inner_text()
    page.get_by_role("tab", name="Right, but other tokens (1)").click()
    assert "the same picture" in cards.first.inner_text()
    page.locator("#find").fill("nosuchtoken")
    assert cards.count() == 0
    page.locator("#find").fill(r"\mathrm")
    assert cards.count() == 1


@pytest.mark.slow
def test_five_thousand_samples_open_and_are_small(evaluation, opened, tmp_path):
    copies = 1000
    few = evaluation.result
    number = copies * len(few)
    result = replace(
        few,
        names=[str(index) for index in range(number)],
        targets=[["x"] * 60] * number,  # as many tokens as an average formula has
        predictions=[["x"] * 59 + ["y"]] * number,
        blocks=[[(59, 60, 59, 60)]] * number,
        columns={name: np.tile(column, copies) for name, column in few.columns.items()},
        messages=few.messages * copies,
    )
    # Three different pictures each, none smaller than an average one (1 kB).
    visual = evaluation.visuals[1]
    visual = replace(
        visual,
        target_png=visual.target_png.ljust(1400, b"\0"),
        prediction_png=visual.prediction_png.ljust(1400, b"\0"),
    )
    path = tmp_path / "report.html"
    write_report(result, path, visuals=[visual] * number, inputs=[visual.target_png] * number)
    assert path.stat().st_size < 30_000_000
    page = opened(path)
    page.get_by_role("button", name="›").click()
    assert page.locator("#where").inner_text() == "page 2 of 100, 1000 samples"
    page.keyboard.press("ArrowRight")
    assert page.locator("#where").inner_text().startswith("page 3")
    assert page.locator(".card").count() == 10
    assert page.locator(".card img").count() == 30
    assert page.get_by_text("shown without images").count() == 1
