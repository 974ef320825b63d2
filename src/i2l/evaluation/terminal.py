"""Scores as tables for the terminal."""

from collections.abc import Mapping, Sequence
from typing import Final

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from i2l.evaluation.bootstrap import Difference
from i2l.evaluation.breakdown import SubsetScores
from i2l.evaluation.figures import FIGURES, Figure, format_interval, format_score
from i2l.evaluation.results import EvaluationResult

_GROUPS: Final = {"text": "Tokens", "image": "Pictures", "compile": "LaTeX"}
_SIGNIFICANT: Final = 0.05
_NUM_PLACES: Final = 5


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
        shown = ", ".join(places[:_NUM_PLACES]) + (", ..." if len(places) > _NUM_PLACES else "")
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
