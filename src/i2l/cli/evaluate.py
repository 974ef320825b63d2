"""`i2l evaluate`: predictions or a model in, every score of the field and a report out."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rich.console import Console

    from i2l.evaluation.compare import EvaluationOptions, EvaluationProgress
    from i2l.evaluation.judge import BatchReader, Samples, Trial
    from i2l.explain.localization_report import LocalizationReport


def evaluate(
    predictions: Annotated[
        Path | None, typer.Option(help="Formulas of any reader, one a line, or name, tab and formula.")
    ] = None,
    references: Annotated[Path | None, typer.Option(help="What they should be, in the same form.")] = None,
    model: Annotated[
        Path | None, typer.Option(help="Model folder, checkpoint or run, or an installed model's name.")
    ] = None,
    data: Annotated[Path | None, typer.Option(help="Dataset for the model to read.")] = None,
    split: Annotated[str, typer.Option(help="Split of the dataset.")] = "val",
    images: Annotated[Path | None, typer.Option(help="... or a folder of images ...")] = None,
    labels: Annotated[Path | None, typer.Option(help="... with a file of names, tabs and formulas.")] = None,
    out: Annotated[Path, typer.Option(help="Folder for results.json and report.html.")] = Path("evaluation"),
    compare: Annotated[
        tuple[Path, Path] | None,
        typer.Option(help="Test two results.json (or their folders) against each other; reads nothing else."),
    ] = None,
    sweep: Annotated[
        list[str] | None,
        typer.Option(help="Have the model read the targets disturbed: scale=0.4:2.5, blur=0:3, font=all."),
    ] = None,
    sweep_samples: Annotated[int, typer.Option(help="Samples of a sweep; 0 for all.", min=0)] = 500,
    limit: Annotated[int, typer.Option(help="Only the first so many samples; 0 for all.", min=0)] = 0,
    localization: Annotated[
        bool,
        typer.Option(
            "--localization",
            help="Measure attention against the dataset's boxes; needs a --model and --data.",
        ),
    ] = False,
    as_is: Annotated[
        bool,
        typer.Option("--as-is", help="Compare text as it stands, split at spaces; else in canonical tokens."),
    ] = False,
    text_only: Annotated[bool, typer.Option("--text-only", help="Render nothing; needs no TeX.")] = False,
    beam_width: Annotated[int, typer.Option(help="Of the model's search; 1 is greedy.", min=1)] = 10,
    guard: Annotated[
        bool, typer.Option("--guard/--no-guard", help="Write only well-formed formulas, stop repetition.")
    ] = True,
    batch_size: Annotated[
        int, typer.Option(help="Images of a dataset that the model reads at once.", min=1)
    ] = 32,
    device: Annotated[str, typer.Option(help="Of a checkpoint: auto, cpu or cuda.")] = "auto",
    rounds: Annotated[int, typer.Option(help="Resamplings for the intervals.", min=10)] = 1000,
    jobs: Annotated[int, typer.Option(help="Processes.", min=1)] = os.cpu_count() or 1,
) -> None:
    """Score a reader by every definition in use, with intervals, and show where it fails.

    Examples:

        i2l evaluate --predictions pix2tex.tsv --references labels.tsv --out results/pix2tex

        i2l evaluate --model runs/nopool --data data/90k --out results/nopool --sweep scale=0.4:2.5

        i2l evaluate --compare results/pix2tex results/nopool
    """
    from rich.console import Console

    from i2l.errors import require_extra

    console = Console()
    for module in ("sacrebleu", "rapidfuzz", "scipy"):
        require_extra(module, "evaluate")
    if compare is not None:
        _compare(compare, rounds, console)
        return
    from i2l.evaluation.compare import EvaluationOptions, EvaluationProgress

    # The formulas of a dataset are canonical, and so are the tokens of a model that was trained on such.
    options = EvaluationOptions(
        canonical=not as_is and data is None, render=not text_only, rounds=rounds, jobs=jobs
    )
    localized = None
    if localization:
        if model is None or data is None:
            raise typer.BadParameter("--localization needs a --model and --data.")
        from i2l.explain.localization_report import require_boxes

        require_boxes(data, split)
    with EvaluationProgress() as progress:
        if model is not None:
            from i2l.config import ReadingOptions
            from i2l.evaluation.judge import BatchReader

            reader = BatchReader(
                ReadingOptions(
                    model=model, beam_width=beam_width, guard=guard, batch_size=batch_size, device=device
                )
            )
            samples = _find_samples(reader, data, split, images, labels, limit, jobs)
            trial = _try_model(reader, samples, out, sweep or [], sweep_samples, options, progress)
            if localization and data is not None:
                localized = _localize(reader, data, split, trial, progress, console)
        elif predictions is not None and references is not None and not sweep:
            trial = _score_files(predictions, references, options, progress)
        else:
            raise typer.BadParameter(
                "Give --predictions and --references; or --model with --data, or with --images and --labels"
                " (only a model can --sweep); or --compare."
            )
    _write(trial, localized, out, console)


def _find_samples(
    reader: "BatchReader",
    data: Path | None,
    split: str,
    images: Path | None,
    labels: Path | None,
    limit: int,
    jobs: int,
) -> "Samples":
    from i2l.evaluation.judge import find_pictures, load_split

    if data is not None:
        limits = reader.model.limits
        return load_split(
            data, split, canvas_shape=limits.canvas_shape, dpi=limits.dpi, limit=limit, jobs=jobs
        )
    if images is not None and labels is not None:
        return find_pictures(images, labels, limit=limit)
    raise typer.BadParameter("A --model needs --data, or --images and --labels.")


def _compare(paths: tuple[Path, Path], rounds: int, console: "Console") -> None:
    from i2l.evaluation.results import compare_results, load_results, print_differences

    first, second = (load_results(path) for path in paths)
    differences = compare_results(first, second, rounds=rounds)
    print_differences(differences, console, names=(str(paths[0]), str(paths[1])))


def _score_files(
    predictions: Path, references: Path, options: "EvaluationOptions", progress: "EvaluationProgress"
) -> "Trial":
    from i2l.evaluation.compare import evaluate_pairs, pair_files
    from i2l.evaluation.judge import Trial
    from i2l.evaluation.results import describe_file

    pairs = pair_files(references, predictions)
    source = {
        "title": predictions.name,
        "predictions": describe_file(predictions),
        "references": describe_file(references),
    }
    return Trial(evaluate_pairs(pairs, options=options, source=source, progress=progress), inputs=[])


def _try_model(
    reader: "BatchReader",
    samples: "Samples",
    out: Path,
    sweeps: list[str],
    sweep_samples: int,
    options: "EvaluationOptions",
    progress: "EvaluationProgress",
) -> "Trial":
    from i2l.evaluation.judge import parse_sweep, try_model

    return try_model(
        reader,
        samples,
        out=out,
        options=options,
        sweeps=[parse_sweep(sweep) for sweep in sweeps],
        sweep_samples=sweep_samples,
        progress=progress,
    )


def _localize(
    reader: "BatchReader",
    data: Path,
    split: str,
    trial: "Trial",
    progress: "EvaluationProgress",
    console: "Console",
) -> "LocalizationReport | None":
    """Measure attention; if that cannot be done, say why: the other scores are worth keeping."""
    from rich.markup import escape

    from i2l.explain.localization import LocalizationError
    from i2l.explain.localization_report import localize_model

    result = trial.evaluation.result
    try:
        return localize_model(
            reader,
            data=data,
            split=split,
            readings=[" ".join(tokens) for tokens in result.predictions],
            rounds=result.options["rounds"],
            jobs=result.options["jobs"],
            progress=progress,
        )
    except LocalizationError as error:
        console.print(f"[yellow]No localisation:[/] {escape(str(error))}", soft_wrap=True)
        return None


def _write(trial: "Trial", localized: "LocalizationReport | None", out: Path, console: "Console") -> None:
    from i2l.evaluation.report import write_report
    from i2l.evaluation.results import print_results, save_results

    result = trial.evaluation.result
    save_results(result, out / "results.json")
    write_report(
        result,
        out / "report.html",
        visuals=trial.evaluation.visuals,
        inputs=trial.inputs,
        sections=[localized.section] if localized else [],
    )
    print_results(result, console)
    written = [out / "results.json", out / "report.html"]
    if localized:
        from i2l.explain.localization_report import print_localization, save_localization

        save_localization(localized, out / "localization.json", source=result.source)
        print_localization(localized.result, console)
        written.append(out / "localization.json")
    console.print(f"\nWritten: {', '.join(map(str, written))}", soft_wrap=True, markup=False)
