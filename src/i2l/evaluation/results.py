"""The results of an evaluation: as `results.json`, and as tables for the terminal.

`results.json` has all scores, what they were measured on and with, and the counts that later comparisons of
two readers need.
"""

import hashlib
import importlib.metadata
import json
import platform
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from i2l import __version__
from i2l.errors import I2LError
from i2l.evaluation.breakdown import Blocks, Confusion, SubsetScores, TokenScores
from i2l.evaluation.scores import (
    FIGURES,
    Columns,
    Difference,
    Figure,
    Interval,
    available_figures,
    format_interval,
    format_score,
    paired_bootstrap,
)
from i2l.files import atomic_write
from i2l.rendering.sandbox import tex_path

FORMAT: Final = "i2l-evaluation-1"
_NUM_PLACES: Final = 20  # of a fault that are named
_PACKAGES: Final = ("numpy", "pillow", "pypdfium2", "rapidfuzz", "sacrebleu", "scipy", "torch", "onnxruntime")


class ResultsError(I2LError):
    """Results that cannot be read, or not be compared."""


@dataclass(frozen=True)
class Curve:
    """Headline scores against a disturbance."""

    name: str  # of what was changed
    points: list[SubsetScores]  # labelled with its strength


@dataclass(frozen=True)
class EvaluationResult:
    """Everything that is known about one reader on one set of samples."""

    # What was compared
    source: dict[str, Any]
    options: dict[str, Any]
    faults: dict[str, list[str]]  # kind -> places; what was wrong with the input
    # Each sample
    names: list[str]
    targets: list[list[str]]
    predictions: list[list[str]]
    blocks: list[Blocks]  # where the tokens differ
    columns: Columns
    prediction_reasons: list[str | None]  # why a prediction has no render; empty if nothing was rendered
    messages: list[str]  # TeX's words about it
    # Scores
    figures: dict[str, Interval]
    by_length: list[SubsetScores]
    by_construct: list[SubsetScores]
    by_token: list[TokenScores]
    confusions: list[Confusion]
    curves: list[Curve] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.names)


@dataclass(frozen=True)
class StoredResult:
    """What a comparison needs of a file of results."""

    path: Path
    names: list[str]
    targets: list[str]
    columns: Columns


def save_results(result: EvaluationResult, path: Path) -> None:
    """Write the results as JSON."""
    faults = {
        kind: {"count": len(places), "places": places[:_NUM_PLACES]} for kind, places in result.faults.items()
    }
    content = {
        "format": FORMAT,
        "versions": package_versions() | ({"pdftex": tex_version()} if result.options["render"] else {}),
        "source": result.source,
        "options": result.options,
        "num_samples": len(result),
        "faults": faults,
        "figures": {key: asdict(interval) for key, interval in result.figures.items()},
        "by_length": [asdict(scores) for scores in result.by_length],
        "by_construct": [asdict(scores) for scores in result.by_construct],
        "by_token": [asdict(scores) for scores in result.by_token],
        "confusions": [asdict(confusion) for confusion in result.confusions],
        "curves": [asdict(curve) for curve in result.curves],
        "samples": {
            "name": result.names,
            "target": [" ".join(tokens) for tokens in result.targets],
            "prediction": [" ".join(tokens) for tokens in result.predictions],
            "render_failure": result.prediction_reasons,
            "message": result.messages,
            "counts": {name: _numbers(column) for name, column in result.columns.items()},
        },
    }
    with atomic_write(path) as file:
        json.dump(content, file, ensure_ascii=False, separators=(",", ":"))
        file.write("\n")


def _numbers(column: Iterable[float]) -> list[float]:
    """Whole numbers without their point: a third of the size."""
    return [int(value) if value == int(value) else float(value) for value in column]


def load_results(path: Path) -> StoredResult:
    """Read what `save_results` wrote; a folder stands for the `results.json` in it.

    Raises:
        ResultsError: if it is missing or something else.
    """
    file = path / "results.json" if path.is_dir() else path
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ResultsError(f"{file} is not a file of results: {error}") from error
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise ResultsError(f"{file} is not a file of results of this version ({FORMAT}); evaluate again.")
    samples = content["samples"]
    columns = {name: np.array(values, dtype=np.float64) for name, values in samples["counts"].items()}
    return StoredResult(file, samples["name"], samples["target"], columns)


def compare_results(first: StoredResult, second: StoredResult, *, rounds: int) -> dict[str, Difference]:
    """Test whether two readers differ, score by score, on the samples that both have read.

    Raises:
        ResultsError: if they were not given the same samples.
    """
    if first.names != second.names or first.targets != second.targets:
        at = next(
            (
                f"sample {name} of the first, {other} of the second"
                for name, other, target, other_target in zip(
                    first.names, second.names, first.targets, second.targets, strict=False
                )
                if (name, target) != (other, other_target)
            ),
            f"{len(first.names)} samples and {len(second.names)}",
        )
        raise ResultsError(
            f"{first.path} and {second.path} are not about the same targets ({at}). "
            "Evaluate both on the same files, with the same options."
        )
    common = {name: first.columns[name] for name in first.columns.keys() & second.columns.keys()}
    return paired_bootstrap(first.columns, second.columns, available_figures(common), rounds=rounds)


def package_versions() -> dict[str, str]:
    """The versions of all that can change a score."""
    versions = {"i2l": __version__, "python": platform.python_version()}
    for package in _PACKAGES:
        try:
            versions[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return versions


def tex_version() -> str:
    """The first line that pdflatex says about itself.

    Raises:
        MissingDependencyError: if it is not installed.
    """
    done = subprocess.run([tex_path(), "--version"], check=True, capture_output=True, text=True)
    return done.stdout.partition("\n")[0]


def hash_files(paths: Iterable[Path]) -> str:
    """One SHA-256 over the contents of files, in the order of their names."""
    total = hashlib.sha256()
    for path in sorted(paths):
        with path.open("rb") as file:
            total.update(path.name.encode() + b"\0" + hashlib.file_digest(file, "sha256").digest())
    return total.hexdigest()


def describe_file(path: Path) -> Mapping[str, str]:
    """Name and hash of a file, as results keep them."""
    with path.open("rb") as file:
        return {"path": str(path), "sha256": hashlib.file_digest(file, "sha256").hexdigest()}


_GROUPS: Final = {"text": "Tokens", "image": "Pictures", "compile": "LaTeX"}
_SIGNIFICANT: Final = 0.05
_NUM_SHOWN: Final = 5


def print_results(result: EvaluationResult, console: Console) -> None:
    """Print the scores, where they come from, and what was wrong with the input."""
    table = Table(title=f"{len(result):,} samples", title_justify="left", box=None, pad_edge=False)
    table.add_column("Score")
    table.add_column("Value", justify="right", style="bold")
    table.add_column("95 % interval", justify="right", style="dim")
    for group, title in _GROUPS.items():
        figures = [figure for figure in FIGURES if figure.group == group and figure.key in result.figures]
        if figures:
            table.add_row(f"[bold cyan]{title}[/]")
        for figure in figures:
            interval = result.figures[figure.key]
            table.add_row(
                f"  {figure.label}", format_score(figure, interval.value), format_interval(figure, interval)
            )
    console.print(table)
    for title, subsets in (("By length", result.by_length), ("By construct", result.by_construct)):
        console.print()
        console.print(_subset_table(title, subsets))
    for curve in result.curves:
        console.print()
        console.print(_subset_table(curve.name, curve.points))
    print_faults(result, console)


def print_faults(result: EvaluationResult, console: Console) -> None:
    """Print what was wrong with the input; every count is in the scores already."""
    for kind, places in result.faults.items():
        shown = ", ".join(places[:_NUM_SHOWN]) + (", ..." if len(places) > _NUM_SHOWN else "")
        console.print(f"[yellow]{len(places):,} × {kind}[/]: {escape(shown)}", soft_wrap=True)


def _subset_table(title: str, subsets: Sequence[SubsetScores]) -> Table:
    table = Table(title=f"{title}, shares in %", title_justify="left", box=None, pad_edge=False)
    figures = [figure for figure in FIGURES if subsets and figure.key in subsets[0].figures]
    table.add_column("", no_wrap=True)
    table.add_column("Samples", justify="right", style="dim")
    for figure in figures:
        table.add_column(figure.short, justify="right")
    for subset in subsets:
        scores = [_compact(figure, subset.figures[figure.key].value) for figure in figures]
        table.add_row(subset.label, f"{subset.num_samples:,}", *scores)
    return table


def _compact(figure: Figure, value: float) -> str:
    return f"{100 * value:.1f}" if figure.higher_is_better else f"{value:.3f}"


def print_differences(
    differences: Mapping[str, Difference], console: Console, *, names: tuple[str, str]
) -> None:
    """Print a comparison; a difference that chance alone would seldom make is bold."""
    table = Table(title="Paired bootstrap test", title_justify="left", box=None, pad_edge=False)
    table.add_column("Score")
    for head in (*names, "Difference", "95 % interval", "p"):
        table.add_column(head, justify="right", overflow="fold")
    for figure in FIGURES:
        if figure.key in differences:
            table.add_row(*_difference_row(figure, differences[figure.key]))
    console.print(table)


def _difference_row(figure: Figure, difference: Difference) -> list[str]:
    change = difference.interval
    sure = difference.p_value < _SIGNIFICANT and change.value != 0
    better = (change.value > 0) == figure.higher_is_better
    colour = ("bold green" if better else "bold red") if sure else "dim"
    sign = "+" if change.value > 0 else ""
    return [
        figure.label,
        format_score(figure, difference.first),
        format_score(figure, difference.second),
        f"[{colour}]{sign}{format_score(figure, change.value)}[/]",
        format_interval(figure, change),
        f"{difference.p_value:.3f}",
    ]
