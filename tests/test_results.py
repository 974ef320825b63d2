"""The published results: small, complete, and the pages are what follows from them."""

import gzip
import json
import re
import shutil
from functools import partial
from pathlib import Path

import pytest

from benchmarks import diagrams
from benchmarks.results import left_out, mistakes, store
from benchmarks.results.add import publishable, reduce_curve
from benchmarks.results.curves import draw_curves
from benchmarks.results.page import TABLES, fill_page, render_pages
from benchmarks.results.store import load_runs
from i2l.evaluation.scores import FIGURE_BY_KEY, text_columns

RUNS = [*load_runs(), *load_runs(store.HEPTH)]


def test_pages_are_up_to_date() -> None:
    for path, text in render_pages().items():
        assert path.read_text(encoding="utf-8") == text, (
            f"{path.name} is not what results/ says; run: python -m benchmarks.results"
        )


def test_diagrams_are_up_to_date() -> None:
    for name, text in diagrams.drawings().items():
        assert (diagrams.FOLDER / name).read_text(encoding="utf-8") == text, (
            f"{name} is not what the configuration says; run: python -m benchmarks.diagrams"
        )


def test_results_are_small() -> None:
    size = sum(path.stat().st_size for path in store.FOLDER.rglob("*") if path.is_file())
    assert size < 9_000_000


@pytest.mark.parametrize("run", RUNS, ids=lambda run: str(run.path.relative_to(store.FOLDER)))
def test_every_run_is_complete(run: store.Run) -> None:
    samples = run.settings["data"]["num_samples"]
    for split in ("test", "val"):
        part = run.part(split)
        assert part is not None
        search, readings = run.readings(split)
        assert part["search"] == search
        assert part["num_samples"] == len(readings) == samples[split]
    found = run.part("mistakes")
    assert found is not None
    assert sum(level["samples"] for level in found["levels"].values()) == samples["val"]
    exact = found["levels"].get("exact", {"samples": 0})["samples"] / samples["val"]
    assert exact == pytest.approx(run.figures("val")["exact_match"].value, abs=1e-5)
    edits = run.counts["edits_per_token"].mean()
    assert edits == pytest.approx(run.figures()["edit_distance"].value, abs=1e-5)


@pytest.mark.parametrize("run", RUNS, ids=lambda run: str(run.path.relative_to(store.FOLDER)))
def test_nothing_of_the_data_is_published(run: store.Run) -> None:
    for path in run.path.glob("*.json"):
        content = json.loads(path.read_text(encoding="utf-8"))
        assert not content.keys() & {"source", "samples"} or path.name == "mistakes.json"
        longest = max(map(len, re.findall(r'"((?:[^"\\\\]|\\\\.)*)"', path.read_text(encoding="utf-8"))))
        assert longest < 120  # names and tokens, no formulas


def test_formulas_left_out_count_as_empty_readings() -> None:
    """The scores over the whole split are those of all pairs, the ones left out with nothing read."""
    targets = [["a", "+", "b", "=", "c", "d"], ["x", "^", "{", "2", "}", "y"], ["q"] * 7, ["r"] * 4]
    readings = [["a", "+", "b", "=", "c"], ["x", "^", "{", "3", "}"], [], []]
    keys = ("bleu_moses", "edit_distance", "exact_match")

    def scores(count: int) -> dict[str, float]:
        sums = {
            name: values.sum() for name, values in text_columns(targets[:count], readings[:count]).items()
        }
        return {key: float(FIGURE_BY_KEY[key].compute(sums)) for key in keys}

    read = scores(2) | dict.fromkeys(("im2markup_match_no_spaces", "strict_match", "compiles"), 0.5)
    whole = left_out._with_empty(read, 10, 2, {"num_lines": 4, "num_tokens": 11})
    assert {key: whole[key] for key in keys} == pytest.approx(scores(4))
    assert whole["strict_match"] == 0.25


def test_left_out_formulas_and_read_ones_are_the_split() -> None:
    counted = store.Run(store.FOLDER).part("left_out")
    assert counted is not None
    num_read = {run.settings["data"]["num_samples"]["test"] for run in RUNS}
    assert num_read == {counted["num_lines"] - sum(counted["reasons"].values())}


def test_a_page_without_runs_says_so() -> None:
    page = "<!-- table: localization -->\nold\n<!-- end -->"
    filled = fill_page(page, {name: partial(make, []) for name, make in TABLES.items()})
    assert filled == "<!-- table: localization -->\n\nNot measured yet.\n\n<!-- end -->"
    assert "Learning curves" in draw_curves([])
    assert {"bars", "test-scores", "verdicts"} <= TABLES.keys()


def test_a_run_without_init_model_is_set_beside_its_like(tmp_path: Path) -> None:
    for name, source in (("nopool", "nopool"), ("nopool-no-init", "nopool-first")):
        shutil.copytree(store.FOLDER / source, tmp_path / name)
    row = next(line for line in TABLES["init-model"](load_runs(tmp_path)).splitlines() if "NOPOOL" in line)
    with_init, without = (load_runs(tmp_path)[n].figures()["bleu_moses"].value for n in (0, 1))
    assert f"{100 * with_init:.2f} % | {100 * without:.2f} %" in row
    assert f"{100 * (with_init - without):+.2f} (" in row


def test_the_runs_of_the_smaller_set_stand_under_the_authors() -> None:
    """The rows of results/hepth/ are in tables of their own, and no table of the other runs has them."""
    runs = load_runs()
    assert {run.name for run in load_runs(store.HEPTH)} >= {"nopool", "strips", "strips-no-init"}
    rows = TABLES["hepth-scores"](runs).splitlines()
    assert ["the authors" in row for row in rows[2:4]] == [True, True]
    assert len(rows) == 4 + len(load_runs(store.HEPTH))
    assert "91,618" not in TABLES["settings"](runs)
    assert "STRIPS minus STRIPS without init" in TABLES["hepth-differences"](runs)


def test_a_curve_has_the_minutes_of_its_validations() -> None:
    train = {
        "kind": "train",
        "loss": 1.0,
        "token_accuracy": 0.5,
        "teacher_forced_bleu": 0.5,
        "learning_rate": 1e-4,
        "images_per_s": 100.0,
    }
    seen = {
        "kind": "validation/greedy",
        "bleu": 0.8,
        "edit_distance": 0.1,
        "exact_match": 0,
        "num_formulas": 9,
    }
    rows = [train | {"step": 100, "elapsed_s": 60.0}, seen | {"step": 150}]
    rows.append(train | {"step": 200, "elapsed_s": 180.0})
    curve = reduce_curve(rows)
    assert curve["train"]["minutes"] == [1, 3]
    assert [(row["minutes"], row["search"]) for row in curve["validation"]] == [(2, "greedy")]


def test_results_are_published_without_formulas() -> None:
    results = {
        "format": "f",
        "versions": {},
        "options": {"processes": 2, "rounds": 10},
        "num_samples": 6,
        "figures": {"x": {"value": 0.123456789, "low": 0.0, "high": 1.0}},
        "by_length": [],
        "by_construct": [],
        "curves": [],
        "by_token": [],
        "confusions": [{"target": "a", "prediction": "b", "count": 2, "samples": ["7"]}],
        "faults": {"missing": {"count": 1, "places": ["7"]}},
        "samples": {"target": ["x"] * 6, "counts": {"edits_per_token": [0.0, 9.0, 9.0, 9.0, 9.0, 9.0]}},
    }
    kept = publishable(results)
    assert "samples" not in kept
    assert kept["faults"] == {"missing": 1}
    assert kept["options"] == {"rounds": 10}
    assert kept["figures"]["x"]["value"] == 0.123457
    assert kept["edit_distance_without_worst"]["value"] == 0


def test_files_do_not_depend_on_the_hour(tmp_path: Path) -> None:
    store.write_json(tmp_path / "a.json.gz", {"x": [1, 2]})
    data = (tmp_path / "a.json.gz").read_bytes()
    assert data[4:8] == bytes(4)  # no date
    assert json.loads(gzip.decompress(data)) == {"x": [1, 2]}


def sort(target: str, reading: str) -> tuple[str, dict[str, int]]:
    """The level of one sample, and its edits by kind."""
    counts = {key: [0] for key in ("strict_match", "tolerant_match", "expression_right", "compiles")}
    found = mistakes.count_mistakes([target.split()], [reading.split()], counts)
    return next(iter(found["levels"])), {kind: n for kind, n in found["edits"].items() if n}


@pytest.mark.parametrize(
    ("target", "reading", "level", "edits"),
    [
        (r"a + b", r"a + b", "exact", {}),
        (r"a \, b", r"a \quad b", "spaces", {"spaces": 1}),
        (r"{ a } _ { i } \; .", r"a _ { i } .", "braces", {"spaces": 1, "braces": 2}),
        (r"{ \cal L }", r"\mathcal { L }", "fonts", {"fonts": 2}),
        (r"\left( x \right)", r"( x )", "delimiters", {"delimiters": 2}),
        (r"\left. x \right|", r"x |", "delimiters", {"delimiters": 2}),
        (r"x \to y", r"x \rightarrow y", "names", {"names": 1}),
        (r"x + y", r"x - y", "signs", {"symbol": 1}),
        (r"x + y", r"x", "signs", {"missing": 2}),
        (r"x", r"x + y", "signs", {"extra": 2}),
        (r"x = . . .", r"x = \ldots", "signs", {"rewritten": 3}),
        (r"a & b", r"a b", "signs", {"layout": 1}),
        (r"a ^ b", r"a _ b", "signs", {"scripts": 1}),
        (r"x", "x" + " ~" * 170, "runaway", {"runaway": 170}),
    ],
)
def test_mistakes_are_sorted(target: str, reading: str, level: str, edits: dict[str, int]) -> None:
    assert sort(target, reading) == (level, edits)
