"""Localisation as a table for the terminal."""

from rich.console import Console
from rich.table import Table

from i2l.explain.localization import METRICS, LocalizationResult, format_metric


def print_localization(result: LocalizationResult, console: Console) -> None:
    """Print the model's scores with the baselines beside them."""
    title = f"Where it looked: {result.num_tokens:,} tokens of {result.num_samples:,} samples"
    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    table.add_column("")
    for number, scores in enumerate(result.systems):
        table.add_column(scores.label, justify="right", style="dim" if number else "bold")
    for key, label in METRICS.items():
        table.add_row(label, *(format_metric(key, scores.figures[key].value) for scores in result.systems))
    console.print()
    console.print(table)
