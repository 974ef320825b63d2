"""Part `wild`: pictures that other projects show or test with, by their kind."""

from pathlib import Path
from typing import Final

from benchmarks.wild.judging import Judged, Row, Sample, judge, judge_texts, read_samples, rows
from i2l.evaluation.compare import pair_files, read_targets
from i2l.inference.reader import Reader

KINDS: Final = ("print", "lines", "screen", "photo", "hand")


def load_pictures(folder: Path, *, limit: int | None = None) -> list[Sample]:
    """Find the pictures of a folder with `images/`, `labels.tsv` and `kinds.tsv`."""
    kinds = dict(line.split("\t") for line in (folder / "kinds.tsv").read_text("utf-8").splitlines())
    labels = read_targets(folder / "labels.tsv")
    named = list(zip(labels.names or [], labels.formulas, strict=True))[:limit]
    return [Sample(kinds[name], name, folder / "images" / name, formula) for name, formula in named]


def measure_pictures(reader: Reader, data: Path, *, limit: int | None) -> tuple[list[Row], list[Judged]]:
    """Read the pictures of `wild`."""
    samples = load_pictures(data / "wild", limit=limit)
    judged = judge(samples, read_samples(reader, samples, part="wild"))
    return rows(judged, KINDS), judged


def judge_predictions(data: Path, predictions: Path) -> tuple[list[Row], list[Judged]]:
    """Judge what another system read in the pictures: lines of a name, a tab and a formula."""
    samples = load_pictures(data / "wild")
    texts = pair_files(data / "wild" / "labels.tsv", predictions).predictions
    judged = judge_texts(samples, texts)
    return rows(judged, KINDS), judged
