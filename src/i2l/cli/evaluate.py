"""`i2l evaluate`: predictions or a model in, every score of the field and a report out."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rich.console import Console

    from i2l.evaluation.run import EvaluationOptions


def evaluate(
    predictions: Annotated[
        Path | None, typer.Option(help="Formulas of any reader, one a line, or NAME<tab>FORMULA.")
    ] = None,
    references: Annotated[Path | None, typer.Option(help="What they should be, in the same form.")] = None,
    out: Annotated[Path, typer.Option(help="Folder for results.json and report.html.")] = Path("evaluation"),
    compare: Annotated[
        tuple[Path, Path] | None,
        typer.Option(help="Test two results.json (or their folders) against each other; reads nothing else."),
    ] = None,
    as_is: Annotated[
        bool,
        typer.Option(
            "--as-is", help="Compare the text as it stands, split at spaces; else in canonical tokens."
        ),
    ] = False,
    text_only: Annotated[bool, typer.Option("--text-only", help="Render nothing; needs no TeX.")] = False,
    rounds: Annotated[int, typer.Option(help="Resamplings for the intervals.", min=10)] = 1000,
    processes: Annotated[int, typer.Option(help="At once.", min=1)] = os.cpu_count() or 1,
) -> None:
    """Score a reader by every definition in use, with intervals, and show where it fails.

    Examples:

        i2l evaluate --predictions pix2tex.txt --references targets.txt --out results/pix2tex

        i2l evaluate --compare results/pix2tex results/ours
    """
    from rich.console import Console

    from i2l.errors import require_extra

    console = Console()
    for module in ("sacrebleu", "rapidfuzz", "scipy"):
        require_extra(module, "evaluate")
    if compare is not None:
        _compare(compare, rounds, console)
        return
    from i2l.evaluation.run import EvaluationOptions

    options = EvaluationOptions(canonical=not as_is, render=not text_only, rounds=rounds, processes=processes)
    if predictions is None or references is None:
        raise typer.BadParameter("Give --predictions and --references, or --compare.")
    _evaluate_files(predictions, references, out, options, console)


def _compare(paths: tuple[Path, Path], rounds: int, console: "Console") -> None:
    from i2l.evaluation.results import compare_results, load_results
    from i2l.evaluation.terminal import print_differences

    first, second = (load_results(path) for path in paths)
    differences = compare_results(first, second, rounds=rounds)
    print_differences(differences, console, names=(str(paths[0]), str(paths[1])))


def _evaluate_files(
    predictions: Path, references: Path, out: Path, options: "EvaluationOptions", console: "Console"
) -> None:
    from i2l.evaluation.pairs import pair_files
    from i2l.evaluation.progress import EvaluationProgress
    from i2l.evaluation.report import write_report
    from i2l.evaluation.results import describe_file, save_results
    from i2l.evaluation.run import evaluate_pairs
    from i2l.evaluation.terminal import print_results

    pairs = pair_files(references, predictions)
    source = {
        "title": predictions.name,
        "predictions": describe_file(predictions),
        "references": describe_file(references),
    }
    with EvaluationProgress() as progress:
        evaluation = evaluate_pairs(pairs, options=options, source=source, progress=progress)
    save_results(evaluation.result, out / "results.json")
    write_report(evaluation.result, out / "report.html", visuals=evaluation.visuals)
    print_results(evaluation.result, console)
    console.print(f"\nWritten: {out / 'results.json'}, {out / 'report.html'}", soft_wrap=True)
