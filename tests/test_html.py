"""Pages show what they are given as text, whatever it is: no formula and no name becomes markup."""

import re
from pathlib import Path

import pytest
from markupsafe import Markup

from i2l.dataset.sources import text_sources
from i2l.evaluation.compare import EvaluationOptions, Pairs, evaluate_pairs
from i2l.evaluation.report import write_report
from i2l.explain.drawings import boxes_svg, explanation_page
from i2l.explain.localization_report import report_localization
from i2l.html import bar_chart, fill_template, histogram, interval_chart, line_chart
from tests.dataset.conftest import fake_tex, small_build  # noqa: F401 - fixtures
from tests.explain.readings import make_explanation
from tests.explain.test_localization import FIELD, sample

EVIL = "</script><script>alert(1)</script>"
TEMPLATES = sorted((Path(__file__).parents[1] / "src" / "i2l").glob("*/page/*.html"))


def scripts(page):
    return re.findall(r"<script[^>]*>", page)


def test_the_report_of_a_dataset(small_build, tmp_path):  # noqa: F811
    formulas = [f"x + {a} < {b}" for a in "abcdef" for b in "abcdef"]
    for name in ("a.txt", "<script>alert(2)<.txt"):
        (tmp_path / name).write_text("\n".join([*formulas, r"\frac{<script>alert(3)"]))
    lists = [tmp_path / "a.txt", tmp_path / "<script>alert(2)<.txt"]
    page = (small_build(text_sources(lists)).path / "report.html").read_text()
    assert scripts(page) == []
    assert "&lt;script&gt;alert(2)" in page
    assert "x + a &lt; a" in page


def test_the_report_of_an_evaluation(tmp_path):
    pairs = Pairs([f"{EVIL}.png", "two.png"], [f"a {EVIL} b", "x"], [f"a c {EVIL}", EVIL], {EVIL: [EVIL] * 9})
    options = EvaluationOptions(rounds=10, jobs=1, render=False, canonical=False)
    evaluation = evaluate_pairs(pairs, options=options, source={"title": EVIL, EVIL: {"model": EVIL}})
    write_report(evaluation.result, tmp_path / "report.html", sections=[Markup("<h2>more</h2>")])
    page = (tmp_path / "report.html").read_text()
    assert scripts(page) == [
        '<script type="application/json" id="gallery-index">',
        '<script type="application/json" id="gallery-0">',
        "<script>",
    ]
    assert EVIL not in page
    assert "<h2>more</h2>" in page


def test_the_section_on_localisation():
    report = report_localization([sample(name=EVIL)], field=FIELD, share=0.99, rounds=10)
    assert scripts(report.section) == []
    assert "&lt;script&gt;alert(1)" in report.section


def test_the_page_of_an_explanation():
    tokens = ["a", "^", "{", EVIL, "}", "+", "<b>&"]
    explanation = make_explanation(tokens=tokens)
    assert scripts(explanation_page(explanation)) == [
        '<script type="application/json" id="data">',
        "<script>",
    ]
    assert EVIL not in explanation_page(explanation)
    assert scripts(boxes_svg(explanation)) == []


def test_charts_escape_their_labels():
    class Score:
        value, low, high = 0.5, 0.4, 0.6

    charts = [
        bar_chart({EVIL: 1}),
        histogram({1: 1}, limit=3, num_bins=3, unit=EVIL),
        interval_chart([(EVIL, 1, Score())]),
        line_chart([EVIL], [(EVIL, [Score()])], caption=EVIL),
    ]
    for chart in charts:
        assert scripts(chart) == []
        assert "&lt;script&gt;" in chart


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda path: path.parts[-3])
def test_no_template_turns_escaping_off(template):
    text = template.read_text()
    if "{{" in text:
        assert not re.search(r"\|\s*safe|autoescape|\{%\s*raw", text)


def test_a_template_must_get_all_it_asks_for():
    with pytest.raises(Exception, match="undefined"):
        fill_template("i2l.explain", "explain.html", title="x")
