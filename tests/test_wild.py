"""The benchmark of what lies beyond clean single formulas: its samples are what it says they are."""

import json
from dataclasses import replace
from types import SimpleNamespace

import pytest

from benchmarks.results.wild_tables import publish_wild
from benchmarks.wild.boxes import measure_places
from benchmarks.wild.calibration import measure_calibration
from benchmarks.wild.canonical import compare_pages, set_pages
from benchmarks.wild.displays import count_rows, read_displays
from benchmarks.wild.judging import Judged, Sample, balanced, judge_texts, mean_interval, rows, wilson
from benchmarks.wild.tokens import CONTEXTS
from i2l.formulas.normalize import normalize_formula
from i2l.formulas.signs import drawing_tokens, fragment
from i2l.rendering.render import render_formulas
from i2l.rendering.styles import PAPER


def test_any_first_part_of_the_samples_is_balanced():
    pairs = list(balanced(10, 4))
    assert sorted(pairs) == [(number, condition) for number in range(10) for condition in range(4)]
    assert sorted(number for number, _ in balanced(10, 4, limit=20)) == sorted([*range(10)] * 2)
    shown = [condition for _, condition in balanced(10, 4, limit=10)]
    assert max(map(shown.count, range(4))) - min(map(shown.count, range(4))) <= 1


def test_wilson_interval():
    assert wilson(0, 12).low == 0
    assert wilson(0, 12).high == pytest.approx(0.2425, abs=1e-4)  # 1.96^2 / (12 + 1.96^2)
    assert wilson(50, 100).low == pytest.approx(0.4038, abs=1e-4)
    assert wilson(12, 12).high == pytest.approx(1)


def test_means_are_weighted():
    assert mean_interval([1, 0, 6], [1, 0, 9]).value == pytest.approx(0.7)


def test_displays_that_were_extracted(tmp_path):
    path = tmp_path / "book.jsonl"
    found = [
        {"latex": r"\begin{align}a &= b \\ &= c \label{eq:one}\end{align}", "environment": "align"},
        {"latex": r"\begin{align*}a &= b \\ &= c\end{align*}", "environment": "align*"},
        {"latex": r"a = b", "environment": r"\["},
        {"latex": "{", "environment": "equation"},
    ]
    path.write_text("\n".join(map(json.dumps, found)))
    displays, left_out = read_displays(path)
    assert [(one.environment, one.rows) for one in displays] == [("align", 2), (r"\[", 1)]
    assert displays[0].source == r"\begin{align*}a &= b \\ &= c \end{align*}"
    assert displays[1].source.startswith(r"\begin{equation*}")
    assert left_out == {"seen before": 1, "not parsed": 1}


@pytest.mark.parametrize(
    ("formula", "count"),
    [
        ("a", 1),
        (r"\begin{matrix} a \\ b \end{matrix} + \begin{matrix} a \\ b \\ c \end{matrix}", 3),
        (r"\begin{aligned} a &= \begin{matrix} a \\ b \\ c \end{matrix} \\ &= b \end{aligned}", 3),
        (r"\sum_{\substack{a\\b}} c", 1),
    ],
)
def test_rows_are_counted(formula, count):
    assert count_rows(normalize_formula(formula).formula.split()) == count


@pytest.mark.parametrize(
    "token", ["a", r"\alpha", r"\hat", r"\frac", r"\left(", r"\right]", r"\mathbb", r"\hline"]
)
def test_a_token_is_shown_by_its_fragment(token):
    found = fragment(token)
    assert found is not None
    assert token in found.split()


def test_tokens_that_draw_nothing_are_left_out():
    vocabulary = ["<bos>", "{", "^", r"\quad", r"\mathrm", "<", "x", r"\begin{array}", r"\\", r"\left."]
    assert list(drawing_tokens(vocabulary)) == [r"\mathrm", "<", "x"]


def test_contexts_hold_the_fragment():
    assert len(CONTEXTS) == 7
    for context in CONTEXTS.values():
        assert r"\div" in context.format(r"\div").split()


def test_shared_boxes_and_overlap():
    reading = SimpleNamespace(
        tokens=("a", "b", "^", "{", "c", "}", "d"),
        boxes=((0, 0, 2, 2), (0, 0, 2, 2), None, None, (4, 0, 6, 2), None, None),
    )
    true = [(0, 0, 2, 2), (2, 0, 4, 2), None, None, (4, 0, 6, 4), None, (9, 0, 10, 2)]
    found = measure_places(reading, list(reading.tokens), true)
    assert (found.shared, found.visible) == (2, 4)
    assert (found.overlap, found.compared) == (pytest.approx(1 + 0 + 0.5 + 0), 4)


def test_calibration_leaves_out_refusals_handwriting_and_boxes():
    def judged(right, confidence, group="print", error=""):
        return Judged(group, "", "", "", right, float(right), confidence, error)

    found = measure_calibration(
        {
            "wild": [judged(True, 0.95), judged(False, 0.95), judged(False, 0.99, "hand")],
            "screens": [judged(False, 0.3), judged(False, 0.0, error="too large")],
            "boxes": [judged(False, 0.99)],
        }
    )
    everything, wild, screens = found
    assert (everything.samples, wild.samples, screens.samples) == (3, 2, 1)
    assert everything.figures["wrong_but_sure"].value == 0.5
    assert wild.figures["calibration_error"].value == pytest.approx(0.5)


def test_nothing_of_the_data_is_published(tmp_path):
    measured, published = tmp_path / "out.json", tmp_path / "wild.json"
    part = {"rows": [{"label": "print"}], "readings": [{"reference": "secret"}], "seconds": 1.0}
    measured.write_text(json.dumps({"model": "/home/me/models/new", "parts": {"wild": part}}))
    publish_wild(measured, published)
    text = published.read_text()
    assert "secret" not in text
    assert json.loads(text) == {
        "model": "new",
        "parts": {"wild": {"rows": [{"label": "print"}], "seconds": 1.0}},
    }


@pytest.mark.tex
def test_readings_are_judged_by_their_pictures():
    samples = [Sample("print", str(number), b"", r"\frac { a } { b } \leq 1") for number in range(3)]
    judged = judge_texts(samples, [r"{ \frac { a } { b } } \le 1", r"\frac { a } { c } \leq 1", ""])
    assert [one.right for one in judged] == [True, False, False]
    assert 0.7 < judged[1].f1 < 1
    (row,) = rows(judged)
    assert row.figures["expression_rate"].value == pytest.approx(1 / 3)


@pytest.mark.tex
def test_a_reading_that_draws_the_same_picture_in_its_own_font_is_right():
    times = replace(PAPER, font="times")  # which has one shape for two epsilons, and two for the two thetas
    epsilon, theta = (one.pixels for one in render_formulas([r"a + \epsilon", r"a + \theta"], style=times))
    samples = [
        Sample("times", "epsilon", epsilon, r"a + \epsilon", times),
        Sample("times", "theta", theta, r"a + \theta", times),
        Sample("unknown", "epsilon", epsilon, r"a + \epsilon"),
    ]
    judged = judge_texts(samples, [r"a + \varepsilon", r"a + \vartheta", r"a + \varepsilon"])
    assert [one.right for one in judged] == [True, False, False]
    assert [one.own_font for one in judged] == [True, False, False]
    assert [row.notes for row in rows(judged)] == ["1 right in their own font alone", ""]


@pytest.mark.tex
def test_canonical_forms_are_compared_by_their_glyphs():
    pages = set_pages(
        [
            r"\begin{align*} a &= \frac{b}{2} \\ &= c \end{align*}",
            r"\begin{equation*} \begin{aligned} a &= \frac{b}{2} \\ &= c \end{aligned} \end{equation*}",
            r"\begin{equation*} \begin{aligned} a &= \frac{b}{2} \\ = c \end{aligned} \end{equation*}",
            r"\begin{equation*} \begin{aligned} a &= \frac{b}{2} \\ &= d \end{aligned} \end{equation*}",
        ]
    )
    same, moved, other = (compare_pages(pages[0], page) for page in pages[1:])
    assert same == ""
    assert moved.startswith("places")
    assert other.startswith("glyphs")
