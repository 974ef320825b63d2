"""Rendering both sides: compile rates, pictures that cannot be, and formulas that only look alike."""

import pytest

from i2l.evaluation.visual import compare_images, prepare_formula

pytestmark = pytest.mark.tex

PAIRS = {
    "same": (r"\frac { a } { b }", r"\frac { a } { b }"),
    "other tokens": (r"\mathrm { 1 } + x", r"1 + x"),
    "spacing": (r"a + b = c", r"a + b \; = c"),
    "wrong": (r"x _ { i } + y", r"x _ { j } + y"),
    "inserted": (r"a = b", r"a = b + c + d"),
    "undefined command": (r"a + b", r"a + \undefinedcommand b"),
    "open group": (r"a + b", r"{ a + b"),
    "open argument": (r"a + b", r"\frac { a } { b"),
    "draws nothing": (r"a + b", r"\, { }"),
    "no prediction": (r"a + b", ""),
    "bad target, same": (r"a \badcommand", r"a \badcommand"),
    "bad target, other": (r"a \badcommand", r"a"),
}


@pytest.fixture(scope="module")
def samples():
    pairs = [tuple(prepare_formula(side, canonical=False) for side in pair) for pair in PAIRS.values()]
    return dict(zip(PAIRS, compare_images(pairs), strict=True))


def verdicts(sample):
    counts = sample.counts
    return tuple(counts[name] for name in ("strict_match", "tolerant_match", "expression_right"))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("same", (1, 1, 1)),
        ("other tokens", (1, 1, 1)),
        ("spacing", (0, 1, 1)),
        ("wrong", (0, 0, 0)),
        ("inserted", (0, 0, 0)),
        ("undefined command", (0, 0, 0)),
        ("draws nothing", (0, 0, 0)),
        ("no prediction", (0, 0, 0)),
        ("bad target, same", (1, 1, 1)),
        ("bad target, other", (0, 0, 0)),
    ],
)
def test_verdicts(samples, name, expected):
    assert verdicts(samples[name]) == expected


def test_only_ours_sees_insertions(samples):
    counts = samples["inserted"].counts
    assert counts["im2markup_match"] == counts["im2markup_match_no_spaces"] == 1
    assert counts["character_f1"] == pytest.approx(2 * 3 / (3 + 7))


@pytest.mark.parametrize(
    ("name", "page_appeared", "compiles"),
    [
        ("same", 1, 1),
        ("undefined command", 1, 0),
        ("open group", 1, 0),
        ("open argument", 0, 0),  # swallows the end of the document
        ("draws nothing", 1, 1),
        ("no prediction", 0, 0),
    ],
)
def test_compile_rates_are_two(samples, name, page_appeared, compiles):
    counts = samples[name].counts
    assert (counts["page_appeared"], counts["compiles"]) == (page_appeared, compiles)


def test_failures_carry_the_words_of_tex(samples):
    assert samples["undefined command"].prediction_reason == "tex-error"
    assert r"\undefinedcommand" in samples["undefined command"].message
    assert samples["same"].prediction_reason is None


def test_a_bad_target_is_left_out_only_where_im2markup_does(samples):
    counts = samples["bad target, other"].counts
    assert counts["target_renders"] == counts["image_widths"] == counts["im2markup_match"] == 0
    assert samples["bad target, other"].target_reason == "tex-error"


def test_a_missing_prediction_costs_the_width_of_its_target(samples):
    counts = samples["no prediction"].counts
    assert counts["image_edits"] == counts["image_widths"] > 0


def test_pictures_are_kept_once(samples):
    assert samples["same"].target_png
    assert not samples["same"].prediction_png
    assert samples["wrong"].prediction_png
    assert samples["wrong"].difference.blocks
    assert samples["same"].difference is None
