"""The commands that make a model ready for use: `i2l export` and `i2l calibrate`.

`i2l export`: a checkpoint in, a model folder out that reads without torch.

`i2l calibrate`: a model and validation data in, what its confidence means stored with the model.
"""

import os
from pathlib import Path
from typing import Annotated, Literal

import typer


def export(
    run: Annotated[Path, typer.Argument(help="A run (its best checkpoint is taken) or a checkpoint folder.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The model folder to write.", metavar="MODEL")],
    precision: Annotated[
        Literal["float32", "float16", "int8"],
        typer.Option(help="float16 halves the size; int8 quarters it and reads fastest."),
    ] = "float32",
    dpi: Annotated[
        float | None,
        typer.Option(help="Refuse a model that was not trained on 12 pt type at this many dots an inch."),
    ] = None,
    calibration: Annotated[
        Path | None, typer.Option(help="calibration.json that was fitted on its validation split.")
    ] = None,
) -> None:
    """Make a model folder of a training run: ONNX networks, vocabulary, config and model card.

    What the networks compute is compared with the checkpoint; if it differs, nothing is written.

    Example:

        i2l export runs/nopool -o models/nopool --precision int8
    """
    from i2l.errors import require_extra

    require_extra("torch", "train")
    require_extra("onnx", "train")
    from i2l.inference.confidence import Calibration
    from i2l.inference.export import export_model

    fitted = Calibration.load(calibration) if calibration else None
    result = export_model(run, out, precision=precision, dpi=dpi, calibration=fitted)
    typer.echo(
        f"{result.path}: {result.size_bytes / 1e6:.1f} MB, differs from the checkpoint by "
        f"{result.parity.logits:.1e} in logits and {result.parity.attention:.1e} in attention "
        f"(allowed: {result.parity.tolerance:.0e})"
    )


def calibrate(
    model: Annotated[Path, typer.Argument(help="Model folder, checkpoint or run; it is stored there.")],
    data: Annotated[
        list[Path],
        typer.Option(help="Folder that `i2l build` wrote, of one kind of pictures. May be repeated."),
    ],
    split: Annotated[str, typer.Option(help="Split of the datasets, not the training one.")] = "val",
    limit: Annotated[
        int, typer.Option(help="Only the first so many samples of each; 0 for all.", min=0)
    ] = 2000,
    jobs: Annotated[int, typer.Option(help="Processes to load images with.", min=1)] = os.cpu_count() or 1,
) -> None:
    """Fit what a model's confidence means: of the readings given p, the share that is right should be p.

    All kinds of pictures count the same: give those that it will be used for, clean print, other styles,
    photographs, displays of several lines. Where there are boxes, the share of attention that a token's box
    holds is fitted too.

    Example:

        i2l calibrate models/nopool --data data/90k --data data/world --data data/photo --limit 400
    """
    from i2l.errors import require_extra

    for module in ("rapidfuzz", "scipy"):
        require_extra(module, "evaluate")
    from i2l.evaluation.compare import EvaluationProgress
    from i2l.explain.model_fit import fit_model
    from i2l.inference.model_folder import CALIBRATION, update_model_card
    from i2l.inference.reader import Reader

    reader = Reader(model)
    with EvaluationProgress() as progress:
        fit = fit_model(reader, data=data, split=split, limit=limit, jobs=jobs, progress=progress)
    path = reader.model.path / CALIBRATION
    fit.calibration.save(path)
    update_model_card(reader.model.path)
    boxes = (
        f"; boxes hold {fit.boxes.share:.0%} of attention, IoU {fit.boxes.mean_iou:.2f}" if fit.boxes else ""
    )
    if fit.left_out:
        shown = ", ".join(fit.left_out[:3]) + (", ..." if len(fit.left_out) > 3 else "")
        typer.echo(f"Left out, as this model cannot read them: {len(fit.left_out):,} ({shown})", err=True)
    for kind in fit.calibration.kinds:
        typer.echo(
            f"{kind.name}: {kind.num_samples} readings, {kind.share_right:.1%} right; "
            f"expected calibration error {kind.error:.3f}"
        )
    typer.echo(
        f"{path}: {fit.calibration.num_samples} readings, {fit.share_right:.1%} right; expected calibration "
        f"error {fit.calibration.error:.3f} (was {fit.error_before:.3f}){boxes}"
    )
