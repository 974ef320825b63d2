"""`i2l export`: a checkpoint in, a model folder out that reads without torch."""

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
