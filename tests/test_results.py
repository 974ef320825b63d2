"""The published results: small, complete, and the pages are what follows from them."""

import gzip
import json
from pathlib import Path

import pytest

from benchmarks.results import mistakes, store
from benchmarks.results.curves import draw_curves
from benchmarks.results.page import TABLES, fill_page, render_pages
from benchmarks.results.store import load_runs

RUNS = load_runs()


def test_pages_are_up_to_date() -> None:
    for path, text in render_pages().items():
        assert path.read_text(encoding="utf-8") == text, (
            f"{path.name} is not what results/ says; run: python -m benchmarks.results"
        )


def test_results_are_small() -> None:
    size = sum(path.stat().st_size for path in store.FOLDER.rglob("*") if path.is_file())
    assert size < 5_000_000


@pytest.mark.parametrize("run", RUNS, ids=lambda run: run.name)
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
    exact = found["levels"]["exact"]["samples"] / samples["val"]
    assert exact == pytest.approx(run.figures("val")["exact_match"].value, abs=1e-5)
    edits = run.counts["edits_per_token"].mean()
    assert edits == pytest.approx(run.figures()["edit_distance"].value, abs=1e-5)


@pytest.mark.parametrize("run", RUNS, ids=lambda run: run.name)
def test_nothing_of_the_data_is_published(run: store.Run) -> None:
    for path in run.path.glob("*.json"):
        text = path.read_text(encoding="utf-8")
        assert '"target":' not in text
        assert "/" not in json.loads(text).get("source", "")


def test_a_page_without_runs_says_so() -> None:
    page = "<!-- table: localization -->\nold\n<!-- end -->"
    assert fill_page(page, []) == "<!-- table: localization -->\n\nNot measured yet.\n\n<!-- end -->"
    assert "Learning curves" in draw_curves([])
    assert {"bars", "test-scores", "verdicts"} <= TABLES.keys()


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
