"""Results on disk and the comparison of two of them."""

import io
import json

import pytest
from rich.console import Console

from i2l.evaluation.compare import EvaluationOptions, Pairs, evaluate_pairs
from i2l.evaluation.results import ResultsError, compare_results, load_results, print_results, save_results

TARGETS = [f"x _ {{ {number} }} + y" for number in range(40)]
TEXT_ONLY = EvaluationOptions(render=False, rounds=50, jobs=1)


def evaluated(predictions, targets=TARGETS, faults=None):
    pairs = Pairs([str(number) for number in range(len(targets))], targets, predictions, faults or {})
    return evaluate_pairs(pairs, options=TEXT_ONLY, source={"title": "test"}).result


def test_results_say_what_they_are_about(tmp_path):
    result = evaluated([*TARGETS[:-2], "", "x ^ { broken"], faults={"missing": ["38"]})
    save_results(result, tmp_path / "results.json")
    content = json.loads((tmp_path / "results.json").read_text())
    assert content["num_samples"] == 40
    assert content["options"]["canonical"] is True
    assert content["source"].keys() == {"title", "date"}
    assert content["source"]["title"] == "test"
    assert {"i2l", "python", "sacrebleu", "rapidfuzz"} <= set(content["versions"])
    assert content["faults"]["missing"] == {"count": 1, "places": ["38"]}
    assert content["faults"]["unparsed prediction"]["places"] == ["39"]
    assert content["figures"]["exact_match"]["value"] == pytest.approx(38 / 40)
    assert content["figures"]["exact_match"]["low"] < 38 / 40 < content["figures"]["exact_match"]["high"]
    assert "tolerant_match" not in content["figures"]
    assert len(content["samples"]["prediction"]) == 40


def test_comparison_of_stored_results(tmp_path):
    worse = ["x + y"] * 20 + TARGETS[20:]
    for name, predictions in (("a", worse), ("b", TARGETS)):
        save_results(evaluated(predictions), tmp_path / name / "results.json")
    first, second = load_results(tmp_path / "a"), load_results(tmp_path / "b" / "results.json")
    difference = compare_results(first, second, rounds=200)["exact_match"]
    assert (difference.first, difference.second) == (0.5, 1.0)
    assert difference.interval.low > 0
    assert difference.p_value < 0.05
    assert compare_results(first, first, rounds=50)["bleu_moses"].p_value == 1


def test_results_about_other_samples_are_not_compared(tmp_path):
    for name, targets in (("a", TARGETS), ("b", [*TARGETS[:-1], "z"]), ("c", TARGETS[:-1])):
        save_results(evaluated(targets, targets), tmp_path / name / "results.json")
    first = load_results(tmp_path / "a")
    with pytest.raises(ResultsError, match="sample 39"):
        compare_results(first, load_results(tmp_path / "b"), rounds=10)
    with pytest.raises(ResultsError, match="40 samples and 39"):
        compare_results(first, load_results(tmp_path / "c"), rounds=10)


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"format": "other"}'])
def test_other_files_are_refused(tmp_path, content):
    (tmp_path / "results.json").write_text(content)
    with pytest.raises(ResultsError):
        load_results(tmp_path)


def test_canonical_tokens_or_the_text_as_it_is():
    pairs = Pairs(["1"], [r"\frac { a } { b }"], [r"\frac{a}{b}"])
    canonical = evaluate_pairs(pairs, options=TEXT_ONLY, source={}).result
    as_is = evaluate_pairs(
        pairs, options=EvaluationOptions(canonical=False, render=False, rounds=10, jobs=1), source={}
    ).result
    assert canonical.figures["exact_match"].value == 1
    assert as_is.figures["exact_match"].value == 0
    assert as_is.predictions == [[r"\frac{a}{b}"]]


def test_processes_change_nothing():
    targets = [f"x _ {{ {number} }}" for number in range(450)]
    pairs = Pairs(targets, targets, [target.replace("1", "l") for target in targets])
    one = evaluate_pairs(pairs, options=TEXT_ONLY, source={}).result
    two = evaluate_pairs(pairs, options=EvaluationOptions(render=False, rounds=50, jobs=2), source={}).result
    assert one.figures == two.figures
    assert one.predictions == two.predictions


def test_printed_tables_have_every_label_and_stand_under_their_heads():
    result = evaluated([*TARGETS[:-2], "", "x"])
    console = Console(width=200, file=io.StringIO(), color_system=None)
    print_results(result, console)
    lines = [line.rstrip() for line in console.file.getvalue().splitlines()]
    heads = [number for number, line in enumerate(lines) if line.lstrip().startswith("Samples")]
    assert heads
    for number in heads:
        head, first = lines[number], lines[number + 1]
        end = head.index("Samples") + len("Samples")
        label, count = first[:end].rsplit(None, 1)
        assert label.strip(), first
        assert count.isdigit(), first
