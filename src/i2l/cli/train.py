"""`i2l train`: a dataset folder in, a run folder with checkpoints and curves out."""

import time
from pathlib import Path
from typing import Annotated, Any

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
