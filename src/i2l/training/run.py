"""A dataset and a config become a run folder; the same call again goes on where the last one stopped.

RUN/config.yaml      the resolved config; `--config` takes it again
RUN/metrics.jsonl    every logged row
RUN/tensorboard/     the same as curves, with pictures of the attention
RUN/checkpoints/     the last, the best, and every Nth
"""

import os
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Protocol

import torch

from i2l.errors import I2LError
from i2l.formulas.vocabulary import Vocabulary
from i2l.model.checkpoint import Checkpoint, last_checkpoint, read_checkpoint
from i2l.training.augment import Augmentation
from i2l.training.batches import BatchLimits, Sampler, SamplerState, classify_samples, emphasized
from i2l.training.device_split import ResidentSplit, Split
from i2l.training.distributed import Processes
from i2l.training.loop import Loop, TrainResult
from i2l.training.monitor import Display, DivergedError, Monitor, RecentSteps, profile_steps, training_flops
from i2l.training.settings import RunConfig
from i2l.training.trainer import (
    CapturedSteps,
    FlatGradients,
    GradientStep,
    Trainer,
    changed_settings,
    choose_engine,
)
from i2l.training.validation import Decode, Validator, greedy_decode

CONFIG_FILE = "config.yaml"


class RunError(I2LError):
    """A run that cannot start."""


class Dataset(Protocol):
    """What is read of a dataset; `i2l.dataset.format` has it."""

    @property
    def vocabulary(self) -> Vocabulary:
        """The vocabulary of its formulas."""

    @property
    def splits(self) -> Sequence[str]:
        """The names of its splits."""

    def split(self, name: str, *, jobs: int | None) -> Split:
        """Open one of them, with so many processes if that takes work."""


@dataclass(frozen=True)
class TrainOptions:
    """How this call runs; the result does not depend on it."""

    device: str = "auto"
    max_minutes: float | None = None  # counted from the start of the process
    start_from: Path | None = None  # a checkpoint whose weights a new run begins with
    profile: bool = False


class PhaseTimer:
    """Says how long each phase of the start took."""

    def __init__(self, started_s: float) -> None:
        self._started_s = self._last_s = started_s
        self._phases: list[str] = []

    def done(self, phase: str) -> None:
        """End a phase."""
        now_s = time.monotonic()
        self._phases.append(f"{phase} {now_s - self._last_s:.1f} s")
        self._last_s = now_s

    def __str__(self) -> str:
        return f"Start: {', '.join(self._phases)}; {self._last_s - self._started_s:.1f} s in all."


def train(
    dataset: Dataset,
    *,
    out: Path,
    config: RunConfig,
    options: TrainOptions | None = None,
    decoders: Mapping[str, Decode] | None = None,
    started_s: float | None = None,
) -> TrainResult:
    """Train a model into the folder ``out``, or go on with the run that is there.

    Args:
        dataset: has the splits "train" and, if the run shall be validated, "val".
        out: the run's folder.
        config: all that decides the result.
        options: how this call runs.
        decoders: by name, what validation reads with; the last one chooses the best. Greedy if None.
        started_s: when the process started, of `time.monotonic`.

    Raises:
        I2LError: if the run cannot start or go on, or if it diverges; the message says what to do.
    """
    options = options or TrainOptions()
    timer = PhaseTimer(started_s or time.monotonic())
    deadline_s = (started_s or time.monotonic()) + 60 * options.max_minutes if options.max_minutes else None
    processes = Processes(device=options.device)
    display = Display(quiet=not processes.is_first)
    timer.done("imports and device")
    try:
        resumed = _open_run(out, dataset.vocabulary, processes)
        data = _load(
            dataset,
            "train",
            config,
            processes,
            spelling=config.training.spelling,
            boxes=config.objective.wants_boxes,
        )
        validator = _build_validator(dataset, config, processes, decoders or {"greedy": greedy_decode})
        timer.done("dataset")
        trainer = build_trainer(data, config=config, vocab_size=len(dataset.vocabulary), processes=processes)
        if resumed:
            trainer.resume(resumed)
        elif options.start_from:
            source = read_checkpoint(options.start_from)
            source.require_vocabulary(dataset.vocabulary, grown=True)
            trainer.start_from(source)
        timer.done("model")
        if options.profile:
            display.note(profile_steps(trainer, device=processes.device))
            return TrainResult(trainer.step_count, finished=False, metrics={})
        if processes.is_first:
            config.save(out / CONFIG_FILE)
        monitor = Monitor(out, step=trainer.step_count) if processes.is_first else None
        _introduce(display, trainer, data, validator, resumed, config, processes)
        flops = training_flops(config.model, vocab_size=len(dataset.vocabulary))
        loop = Loop(
            trainer,
            run=out,
            config=config,
            vocabulary=dataset.vocabulary,
            recent=RecentSteps(data=data, processes=processes, flops=flops),
            validator=validator,
            processes=processes,
            display=display,
            monitor=monitor,
            resumed=resumed,
        )
        timer.done("log")
        display.start()
        try:
            return loop.go(deadline_s=deadline_s, on_first_step=_first_step(timer, display))
        except DivergedError as error:
            good = last_checkpoint(out)
            raise DivergedError(
                f"{error} The run stopped; its last good checkpoint is {good or 'not there yet'}. Try "
                "a lower learning rate, --set training.clip_norm=1, or --precision float32."
            ) from error
        finally:
            display.stop()
            if monitor:
                monitor.close()
    finally:
        processes.close()


def build_trainer(
    data: ResidentSplit, *, config: RunConfig, vocab_size: int, processes: Processes
) -> Trainer:
    """Build model, order and optimiser of a run from its config; the same in every process.

    Raises:
        RunError: if the batch cannot be shared evenly.
    """
    training = config.training
    if training.batch_size % processes.count:
        raise RunError(f"A batch of {training.batch_size} cannot be shared by {processes.count} processes.")
    classes = classify_samples(
        lengths=data.lengths,
        sizes=data.sizes,
        length_classes=training.length_classes,
        window_step=training.window_step,
        min_batches=training.min_shape_batches,
        batch=BatchLimits(
            training.batch_size, training.batch_pixels, training.batch_tokens, multiple=processes.count
        ),
        model=config.model,
    )
    torch.manual_seed(training.seed)
    model = config.model.build(vocab_size=vocab_size).to(processes.device)
    torch.manual_seed(training.seed + 1 + processes.rank)  # for dropout
    sampler = Sampler(
        classes=classes.classes,
        larger=classes.larger,
        batch_sizes=[shape.num_samples for shape in classes.shapes],
        state=SamplerState(seed=training.seed),
        times=emphasized(data.ids, training.emphasis),
    )
    gradients = FlatGradients(list(model.parameters()))
    engine = choose_engine(training.engine, processes.device)
    torch.backends.cudnn.benchmark = training.autotune
    # Who trains in bfloat16 wants float32 products, as in validation, on the tensor cores too (TF32).
    torch.set_float32_matmul_precision("high" if training.precision == "bfloat16" else "highest")
    compute = GradientStep(
        model=model,
        gradients=gradients,
        data=data,
        objective=config.objective,
        precision=training.precision,
        fast=engine != "plain",
        augmentation=Augmentation(**{f.name: getattr(training, f.name) for f in fields(Augmentation)}),
    )
    return Trainer(
        config=config,
        model=model,
        gradients=gradients,
        sampler=sampler,
        shapes=classes.shapes,
        compute_gradients=CapturedSteps(compute) if engine == "graph" else compute,
        processes=processes,
    )


def _open_run(out: Path, vocabulary: Vocabulary, processes: Processes) -> Checkpoint | None:
    """Find the checkpoint to go on from; leave no half-written one behind.

    Raises:
        RunError: if ``out`` is a folder of something else.
    """
    last = last_checkpoint(out)
    if last is None and out.exists() and any(out.iterdir()) and not (out / CONFIG_FILE).exists():
        raise RunError(f"{out} holds files that are not a run; choose another --out.")
    if processes.is_first:
        for partial in (out / "checkpoints").glob("*.partial"):
            shutil.rmtree(partial)
    if last is None:
        return None
    checkpoint = read_checkpoint(last)
    checkpoint.require_vocabulary(vocabulary)
    return checkpoint


def _load(
    dataset: Dataset,
    name: str,
    config: RunConfig,
    processes: Processes,
    *,
    spelling: str = "written",
    boxes: bool = False,
    unknown_tokens: bool = False,
) -> ResidentSplit:
    jobs = max(1, (os.cpu_count() or 1) // processes.count_here)
    return ResidentSplit(
        dataset.split(name, jobs=jobs),
        vocabulary=dataset.vocabulary,
        canvas_shape=config.model.canvas_shape,
        device=processes.device,
        jobs=jobs,
        spelling=spelling,
        boxes=boxes,
        unknown_tokens=unknown_tokens,
    )


def _build_validator(
    dataset: Dataset, config: RunConfig, processes: Processes, decoders: Mapping[str, Decode]
) -> Validator | None:
    if "val" not in dataset.splits:
        return None
    return Validator(
        _load(dataset, "val", config, processes, unknown_tokens=True),
        decoders=decoders,
        processes=processes,
        max_tokens=config.model.max_steps,
        num_samples=config.training.validation_samples,
    )


def _introduce(
    display: Display,
    trainer: Trainer,
    data: ResidentSplit,
    validator: Validator | None,
    resumed: Checkpoint | None,
    config: RunConfig,
    processes: Processes,
) -> None:
    num_weights = sum(parameter.numel() for parameter in trainer.model.parameters())
    order = trainer.sampler
    display.note(
        f"{len(data):,} training samples in {order.batches_per_epoch:,} batches of up to "
        f"{config.training.batch_size}, {order.num_shapes} shapes; "
        f"{num_weights:,} weights; {processes.count} x {processes.device}"
    )
    for name, split in (("training", data), ("validation", validator.data if validator else None)):
        if split and split.left_out:
            display.note(
                f"Left out of {name}: {len(split.left_out):,} samples that are too large for the model at "
                f"its scale, or show nothing ({', '.join(split.left_out[:3])}, ...)."
            )
    if resumed:
        display.note(f"Going on from {resumed.path}, step {resumed.step:,}.")
        for text in changed_settings(resumed, config).values():
            display.note(f"Changed: {text}.")


def _first_step(timer: PhaseTimer, display: Display) -> Callable[[], None]:
    def report() -> None:
        timer.done("first step")
        display.note(str(timer))

    return report
