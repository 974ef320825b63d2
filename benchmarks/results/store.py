"""`results/`: one folder a run, small files, nothing of the data but numbers and what the model wrote.

`results/hepth/` has the runs on a training set of im2latex-90k's size and kind, in folders of the same form.

run.json            settings, data, hardware, minutes
curve.json          losses and validation scores by minutes
test.json, val.json scores of `i2l evaluate` with intervals and breakdowns
counts.json.gz      for every test sample the counts that scores are made of, for paired comparisons
mistakes.json       what was mistaken, by kind
*.txt.gz            readings, one a line, in the order of the dataset
localization.json, real.json, sweep.json, reread.json   where they were measured
"""

import gzip
import io
import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from i2l.evaluation.scores import FIGURE_BY_KEY, Figure, Interval
from i2l.files import atomic_write

FOLDER: Final = Path(__file__).parents[2] / "results"
HEPTH: Final = FOLDER / "hepth"
EXAMPLES: Final = FOLDER / "examples.json"  # short pairs of target and reading that docs/errors.md shows
# Others follow by name.
ORDER: Final = (
    "nopool-first",
    "nopool",
    "nopool-no-init",
    "nopool-paper-optimizer",
    "strips-first",
    "strips",
)
# How names end: of a run that was done again, and of variants of another run.
FIRST: Final = "-first"
VARIANTS: Final = ("-no-init", "-paper-optimizer")

# Scores that runs are compared by, and the counts they need.
COMPARED: Final[tuple[Figure, ...]] = tuple(
    FIGURE_BY_KEY[key]
    for key in (
        "bleu_moses",
        "edit_distance",
        "edit_accuracy",
        "exact_match",
        "im2markup_match_no_spaces",
        "tolerant_match",
        "strict_match",
        "character_f1",
        "compiles",
    )
)
COUNTS: Final = sorted({column for figure in COMPARED for column in figure.columns})


@dataclass(frozen=True)
class Run:
    """One folder."""

    path: Path

    @property
    def name(self) -> str:
        """As the folder is called."""
        return self.path.name

    @cached_property
    def settings(self) -> dict[str, Any]:
        """What is in run.json."""
        content = self.part("run")
        assert content is not None
        return content

    @property
    def is_variant(self) -> bool:
        """Whether it is another run but for one thing."""
        return self.name.endswith(VARIANTS)

    @property
    def is_latest(self) -> bool:
        """Whether it is the run that its model is judged by."""
        return not self.is_variant and not self.name.endswith(FIRST)

    @property
    def title(self) -> str:
        """As tables call it."""
        return str(self.settings["title"])

    @cached_property
    def curve(self) -> dict[str, Any]:
        """Training and validation by minutes."""
        content = self.part("curve")
        assert content is not None
        return content

    def part(self, name: str) -> dict[str, Any] | None:
        """A JSON file of the folder, if it is there."""
        path = self.path / f"{name}.json"
        return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None

    def figures(self, part: str = "test") -> dict[str, Interval]:
        """The scores of a part with their intervals; empty if it was not measured."""
        content = self.part(part)
        return {key: Interval(**value) for key, value in content["figures"].items()} if content else {}

    @cached_property
    def counts(self) -> dict[str, npt.NDArray[np.float64]]:
        """For every test sample, what `COMPARED` is made of."""
        content = json.loads(gzip.decompress((self.path / "counts.json.gz").read_bytes()))
        return {name: np.array(values, dtype=np.float64) for name, values in content.items()}

    def readings(self, split: str) -> tuple[str, list[str]]:
        """How a split was read, and what was read; the widest search there is."""
        for search in ("beam10", "greedy"):
            path = self.path / f"{split}.{search}.txt.gz"
            if path.is_file():
                return search, read_lines(path)
        return "", []


def load_runs(folder: Path = FOLDER) -> list[Run]:
    """All runs, in the order of the tables."""
    found = [Run(path) for path in folder.iterdir() if (path / "run.json").is_file()]
    rank = {name: place for place, name in enumerate(ORDER)}
    return sorted(found, key=lambda run: (rank.get(run.name, len(rank)), run.name))


def read_lines(path: Path) -> list[str]:
    """The lines of a text, compressed or not."""
    content = path.read_bytes()
    text = (gzip.decompress(content) if path.suffix == ".gz" else content).decode("utf-8")
    return text.removesuffix("\n").split("\n")


def write_json(path: Path, content: object) -> None:
    """Write JSON that a person can read; a .gz without a date, so that the same content is the same file."""
    if path.suffix == ".gz":
        write_compressed(path, json.dumps(content, separators=(",", ":")) + "\n")
        return
    with atomic_write(path) as file:
        json.dump(content, file, ensure_ascii=False, indent=1)
        file.write("\n")


def write_compressed(path: Path, text: str) -> None:
    """Write a compressed text, the same bytes for the same text."""
    buffer = io.BytesIO()
    with gzip.GzipFile(fileobj=buffer, mode="wb", compresslevel=9, mtime=0) as file:
        file.write(text.encode("utf-8"))
    path.write_bytes(buffer.getvalue())
