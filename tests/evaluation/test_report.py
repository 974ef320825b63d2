"""The report, read by a real browser from disk without network."""

import re
import shutil
import subprocess
from dataclasses import replace

import numpy as np
import pytest

from i2l.evaluation.breakdown import SubsetScores
from i2l.evaluation.gallery import sample_category
from i2l.evaluation.pairs import Pairs
from i2l.evaluation.report import write_report
from i2l.evaluation.results import Curve
from i2l.evaluation.run import EvaluationOptions, evaluate_pairs

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
needs_browser = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium: apt-get install chromium")

PAIRS = [
    (r"\frac { a } { b } + \sqrt { c }", r"\frac { a } { b } + \sqrt { c }"),  # right
    (r"x _ { i } ^ { 2 } = < y >", r"x _ { j } ^ { 2 } = < y >"),  # wrong
    (r"\mathrm { 1 } + x", "1 + x"),  # other tokens
    (r"a + b", r"a + \nosuchcommand </script> b"),  # does not compile
    (r"\sum _ { n } a _ { n } \leq 1", ""),  # does not compile either: there is nothing
]
CATEGORIES = ["right", "wrong", "otherwise", "failed", "failed"]


@pytest.fixture(scope="module")
def evaluation():
    pairs = Pairs(
        [f"{number}.png" for number in range(len(PAIRS))],
        [target for target, _ in PAIRS],
        [prediction for _, prediction in PAIRS],
        {"missing": ["4.png"]},
    )
    options = EvaluationOptions(rounds=20, processes=1)
    return evaluate_pairs(pairs, options=options, source={"title": "<a test>"})


def browse(path, script=""):
    """The page's elements after ``script`` has run, and what the console said."""
    page = path.with_name("driven.html")
    page.write_text(path.read_text().replace("</body>", f"<script>{script}</script></body>"))
    done = subprocess.run(
        [
            CHROMIUM,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--host-resolver-rules=MAP * ~NOTFOUND",
            "--enable-logging=stderr",
            f"--user-data-dir={path.parent / 'profile'}",
            "--virtual-time-budget=4000",
            "--dump-dom",
            page.as_uri(),
        ],
        check=True,
        capture_output=True,
        text=True,
        timeout=120,
    )
    console = [line for line in done.stderr.splitlines() if ":CONSOLE" in line]
    return done.stdout, console


@pytest.mark.tex
def test_categories(evaluation):
    assert [sample_category(evaluation.result, index) for index in range(len(PAIRS))] == CATEGORIES


@pytest.mark.tex
def test_page_asks_for_nothing(evaluation, tmp_path):
    write_report(evaluation.result, tmp_path / "report.html", visuals=evaluation.visuals)
    text = (tmp_path / "report.html").read_text()
    links = set(re.findall(r"https?://[^\"' ]+", text))
    assert links == {"http://www.w3.org/2000/svg"}  # the name of a format, not an address
    assert not re.search(r"(?:src|href)=\"(?!data:)", text)
    assert "@" not in re.sub(r"@media|<script.*?</script>", "", text, flags=re.DOTALL)
    assert "<a test>" not in text


@pytest.mark.tex
@needs_browser
@pytest.mark.slow
def test_browser_shows_every_category(evaluation, tmp_path):
    scores = evaluation.result.by_length[0].figures
    points = [SubsetScores(label, 5, scores) for label in ("0.5", "1", "2")]
    result = replace(evaluation.result, curves=[Curve("scale", points)])
    path = tmp_path / "report.html"
    inputs = [b"", evaluation.visuals[0].target_png, b"", b"", b""]
    write_report(result, path, visuals=evaluation.visuals, inputs=inputs)
    dom, console = browse(path)
    assert console == []
    cards = dom[dom.index('id="cards"') : dom.index('id="gallery-index"')]
    assert cards.count('class="card"') == 1  # the wrong one comes first
    assert cards.count("<img") == 3  # image, target, prediction
    width, height = re.search(r'<canvas width="(\d+)" height="(\d+)"', cards).groups()
    assert int(width) > 50
    assert int(height) > 10
    assert '<span class="missing">i</span><span class="added">j</span>' in cards
    assert "Disturbed: scale" in dom
    assert "1</b> missing" in dom

    dom, console = browse(path, "document.querySelectorAll('#tabs button')[1].click()")
    assert console == []
    cards = dom[dom.index('id="cards"') : dom.index('id="gallery-index"')]
    assert cards.count('class="card"') == 2
    assert r"Undefined control sequence \nosuchcommand" in cards
    assert "no prediction" in cards


@pytest.mark.tex
@needs_browser
@pytest.mark.slow
def test_five_thousand_samples_open_and_are_small(evaluation, tmp_path):
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
    dom, console = browse(path, "document.getElementById('next').click()")
    assert console == []
    assert "page 2 of 100, 1000 samples" in dom
    cards = dom[dom.index('id="cards"') : dom.index('id="gallery-index"')]
    assert cards.count('class="card"') == 10
    assert cards.count("<img") == 30
    assert "shown without images" in dom
