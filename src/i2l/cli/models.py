"""The commands that make models, and the one that lists them: `i2l train`, `export`, `calibrate`, `models`.

`i2l train`: a dataset folder in, a run folder with checkpoints and curves out.

`i2l export`: a checkpoint in, a model folder out that reads without torch.

`i2l calibrate`: a model and validation data in, what its confidence means stored with the model.

`i2l models`: the models that have a name here, and how those are installed that could have one.
"""

import os
import time
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

STARTED_S = time.monotonic()  # when the process started, or nearly: this file is read first


def train(
    data: Annotated[
        list[Path], typer.Option(help="Folder that `i2l build` wrote. May be repeated: all train together.")
    ],
    out: Annotated[Path, typer.Option(help="Folder of the run; if it holds one, that run goes on.")],
    preset: Annotated[str | None, typer.Option(help="Model: nopool (default), strips or pinpoint.")] = None,
    config: Annotated[
        Path | None, typer.Option(help="YAML or TOML file with sections model, objective, training.")
    ] = None,
    batch_size: Annotated[int | None, typer.Option(help="Samples a step, over all processes.")] = None,
    learning_rate: Annotated[float | None, typer.Option(help="After warm-up.")] = None,
    max_steps: Annotated[int | None, typer.Option(help="The run ends after so many steps.")] = None,
    max_epochs: Annotated[int | None, typer.Option(help="... or epochs.")] = None,
    budget_minutes: Annotated[
        float | None, typer.Option(help="... or minutes of training, all parts together.")
    ] = None,
    precision: Annotated[str | None, typer.Option(help="float32 or bfloat16.")] = None,
    seed: Annotated[int | None, typer.Option(help="Of weights and order.")] = None,
    beam_width: Annotated[
        int | None, typer.Option(help="Validate by beam search too, and choose the best by it.")
    ] = None,
    changes: Annotated[
        list[str] | None,
        typer.Option("--set", help="Any field of the config: section.field=value. May be repeated."),
    ] = None,
    max_minutes: Annotated[
        float | None, typer.Option(help="Save and stop this call after so long; the same command goes on.")
    ] = None,
    start_from: Annotated[
        Path | None, typer.Option(help="Checkpoint whose weights a new run begins with.")
    ] = None,
    vocabulary: Annotated[
        Path | None,
        typer.Option(help="vocab.json; samples with other tokens are left out. Default: all of the data's."),
    ] = None,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    profile: Annotated[bool, typer.Option("--profile", help="Show where the time of a step goes.")] = False,
) -> None:
    """Train a model.

    Settings come from the preset, then the file, then the flags; later ones win, and all are written to
    RUN/config.yaml under their names. Ctrl-C saves and stops; the same command goes on.

    Examples:

        i2l train --data data/90k --preset nopool --out runs/nopool

        i2l train --data data/90k --out runs/fast --config recipes/fast.yaml --set training.ema_decay=0.999

        torchrun --nproc-per-node 8 -m i2l train --data data/90k --out runs/nopool8 --batch-size 448
    """
    from i2l.errors import require_extra

    require_extra("torch", "train")
    from i2l.dataset.model_view import JoinedDataset
    from i2l.formulas.vocabulary import Vocabulary
    from i2l.inference.torch_backend import beam_decoder
    from i2l.training.run import TrainOptions
    from i2l.training.run import train as run_training
    from i2l.training.settings import parse_changes, resolve_config
    from i2l.training.validation import Decode, greedy_decode

    settings = parse_changes(changes or [])
    flags: dict[str, Any] = {
        "batch_size": batch_size,
        "learning_rate": learning_rate,
        "max_steps": max_steps,
        "max_epochs": max_epochs,
        "budget_minutes": budget_minutes,
        "precision": precision,
        "seed": seed,
        "beam_width": beam_width,
    }
    settings["training"] = settings.get("training", {}) | {k: v for k, v in flags.items() if v is not None}
    resolved = resolve_config(preset=preset, file=config, changes=settings)
    decoders: dict[str, Decode] = {"greedy": greedy_decode}
    if width := resolved.training.beam_width:
        decoders[f"beam{width}"] = beam_decoder(width=width)
    result = run_training(
        JoinedDataset(
            data,
            canvas_shape=resolved.model.canvas_shape,
            dpi=resolved.model.dpi,
            vocabulary=Vocabulary.load(vocabulary) if vocabulary else None,
        ),
        out=out,
        config=resolved,
        options=TrainOptions(device=device, max_minutes=max_minutes, start_from=start_from, profile=profile),
        decoders=decoders,
        started_s=STARTED_S,
    )
    if result.finished:
        score = f", validation BLEU {result.metrics['bleu']:.4f}" if result.metrics else ""
        typer.echo(f"{out}: finished after {result.step:,} steps{score}")


def export(
    run: Annotated[Path, typer.Argument(help="A run (its best checkpoint is taken) or a checkpoint folder.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The model folder to write.", metavar="MODEL")],
    precision: Annotated[
        Literal["float32", "float16", "int8", "int4"],
        typer.Option(
            help="float16 halves the size; int8 quarters it and reads fastest; int4 halves that again."
        ),
    ] = "float32",
    dpi: Annotated[
        float | None,
        typer.Option(help="Refuse a model that was not trained on 12 pt type at this many dots an inch."),
    ] = None,
    calibration: Annotated[
        Path | None, typer.Option(help="calibration.json that was fitted on its validation split.")
    ] = None,
    handwriting: Annotated[
        bool, typer.Option("--handwriting", help="Note that the model was taught handwriting.")
    ] = False,
    licence: Annotated[
        str, typer.Option(help="Licence of the weights, where the data asks for one; noted on the card.")
    ] = "",
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
    result = export_model(
        run,
        out,
        precision=precision,
        dpi=dpi,
        calibration=fitted,
        handwriting=handwriting,
        licence=licence,
    )
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


def models() -> None:
    """List the models that can be named: where each is, what it reads, its size and its licence.

    Those that are known and not installed come last, each with the command that installs it.

    Example:

        i2l models
    """
    from i2l.errors import weights_command
    from i2l.inference.model_folder import BUNDLED, DISTRIBUTIONS, list_models, read_model_folder

    there = list_models()
    for name, path in there.items():
        source = read_model_folder(path).source
        where, licence = ("in the box", "MIT") if path.parent == BUNDLED else ("installed", "not stated")
        licence = source.get("licence") or licence
        size_mb = sum(file.stat().st_size for file in path.iterdir()) / 1e6
        reads = "handwriting" if source.get("handwriting") else "print"
        typer.echo(f"{name:10} {where:10}  reads {reads}, {size_mb:.0f} MB, licence: {licence}")
    for name, folder in DISTRIBUTIONS.items():
        if name not in there:
            typer.echo(f"{name:10} not here    install it with: {weights_command(folder)}")
