"""What a run tells while it lasts, and to whom: files, terminal, and who wants to know where the time goes.

`RecentSteps` keeps the steps since the last row of the log on the device, reads them all at once, and checks
that they are finite. `Monitor` writes rows to RUN/metrics.jsonl, one JSON object a row, and to TensorBoard; a
resumed run first forgets the rows after its checkpoint, so every step appears once. `Display` shows a person
a live bar on a terminal, or plain lines in a log. `training_flops` counts how much arithmetic a model asks
for, to say how much of the device's peak a run uses. `profile_steps` says where the time of a step goes; a
captured graph runs as one piece, so only the engines "plain" and "fast" show the phases inside it.
"""

import json
import math
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn
from torch import Tensor
from torch.nn.functional import pad
from torch.profiler import ProfilerActivity, profile
from torch.utils.flop_counter import FlopCounterMode

from i2l.errors import I2LError, require_extra
from i2l.files import atomic_write
from i2l.model.config import ModelConfig
from i2l.training.device_split import ResidentSplit
from i2l.training.distributed import Processes
from i2l.training.trainer import SCALARS, StepResult, Trainer
from i2l.training.validation import score_formulas

METRICS_FILE = "metrics.jsonl"


class Monitor:
    """Writes rows of scalars, and pictures, of one run."""

    def __init__(self, run: Path, *, step: int) -> None:
        """Open the run's files to go on after ``step``."""
        tensorboard = require_extra("torch.utils.tensorboard", "train")
        self._writer = tensorboard.SummaryWriter(run / "tensorboard", purge_step=step + 1)
        path = run / METRICS_FILE
        rows = read_rows(path)
        with atomic_write(path) as file:
            for row in rows:
                if row["step"] <= step:
                    file.write(json.dumps(row) + "\n")
        self._file = path.open("a", encoding="utf-8")

    def write(self, kind: str, step: int, scalars: Mapping[str, float]) -> None:
        """Write one row; ``kind``, such as "train", is the first part of its TensorBoard tags."""
        row: dict[str, Any] = {"kind": kind, "step": step}
        row |= {name: value if math.isfinite(value) else str(value) for name, value in scalars.items()}
        self._file.write(json.dumps(row) + "\n")
        self._file.flush()
        for name, value in scalars.items():
            self._writer.add_scalar(f"{kind}/{name}", value, step)
        self._writer.flush()

    def write_picture(self, name: str, step: int, pixels: NDArray[np.uint8]) -> None:
        """Add a grey picture (H, W) to TensorBoard."""
        self._writer.add_image(name, pixels, step, dataformats="HW")

    def close(self) -> None:
        """Flush and close the files."""
        self._file.close()
        self._writer.close()


def read_rows(path: Path) -> list[dict[str, Any]]:
    """Read the rows of a metrics file; a last line cut short by a kill is left out."""
    rows = []
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else []:
        try:
            rows.append(json.loads(line))
        except ValueError:
            break
    return rows


SCALAR_FORMATS = {  # of the scalars that a person is shown, in this order
    "loss": "{:.4f}",
    "bleu": "{:.4f}",
    "edit_distance": "{:.4f}",
    "exact_match": "{:.1%}",
    "token_accuracy": "{:.1%}",
    "learning_rate": "{:.2e}",
    "gradient_norm": "{:.2f}",
    "images_per_s": "{:,.0f}",
    "tokens_per_s": "{:,.0f}",
    "model_flop_utilisation": "{:.1%}",
    "memory_gib": "{:.1f}",
}
BAR_SCALARS = ("loss", "token_accuracy", "images_per_s")  # what fits beside the bar


class Display:
    """Shows notes, steps and validations on stderr; silent in all processes but the first."""

    def __init__(self, *, quiet: bool) -> None:
        self._console = Console(stderr=True, quiet=quiet, highlight=False, soft_wrap=True)
        self._progress = Progress(
            BarColumn(bar_width=24),
            TaskProgressColumn(),
            TextColumn("{task.description}"),
            console=self._console,
            disable=quiet or not self._console.is_terminal,
            refresh_per_second=4,
        )
        self._task = self._progress.add_task("", total=1.0)

    def start(self) -> None:
        """Show the bar."""
        self._progress.start()

    def stop(self) -> None:
        """Take the bar away; what was printed stays."""
        self._progress.stop()

    def note(self, text: str) -> None:
        """Print a line that stays."""
        self._console.print(text, markup=False)

    def step(
        self,
        *,
        step: int,
        epochs: float,
        done: float,
        time_left_s: float | None,
        scalars: Mapping[str, float],
    ) -> None:
        """Show where the run stands; in a log this is one line."""
        left = "" if time_left_s is None else f"  {format_duration(time_left_s)} left"
        if self._progress.disable:
            self.note(f"step {step:,}  epoch {epochs:.2f}  {format_scalars(scalars)}{left}")
        else:
            brief = format_scalars({name: scalars[name] for name in BAR_SCALARS if name in scalars})
            self._progress.update(self._task, completed=done, description=f"step {step:,}  {brief}{left}")


def format_scalars(scalars: Mapping[str, float]) -> str:
    """Write the scalars that have a format, in its order, as ``name value`` pairs."""
    return "  ".join(
        f"{name.replace('_per_s', '/s').replace('_', ' ')} {form.format(scalars[name])}"
        for name, form in SCALAR_FORMATS.items()
        if name in scalars
    )


def format_duration(seconds: float) -> str:
    """Write seconds as m:ss or h:mm:ss."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


# Dense bfloat16 peaks by the vendors' datasheets, by a part of the device's name.
PEAK_FLOPS = {"H200": 989e12, "H100": 989e12, "A100": 312e12, "L40S": 362e12, "RTX 4090": 165e12}
TRAINING_FACTOR = 3  # the backward pass has two products for each one of the forward pass


def training_flops(config: ModelConfig, *, vocab_size: int) -> tuple[float, float]:
    """Count the floating-point operations of training, per image and per step of the decoder.

    Counted on the plain model with the whole canvas; what a faster path leaves out still counts as done.
    """
    with torch.device("meta"):
        model = config.build(vocab_size=vocab_size)
    counts = []
    for num_tokens in (1, 2):
        pixels = torch.zeros((1, *config.canvas_shape), dtype=torch.uint8, device="meta")
        token_ids = torch.zeros((1, num_tokens), dtype=torch.long, device="meta")
        with FlopCounterMode(display=False) as counter, torch.no_grad():
            model(pixels, token_ids, torch.tensor([num_tokens], device="meta"))
        counts.append(TRAINING_FACTOR * counter.get_total_flops())
    per_token = counts[1] - counts[0]
    return counts[0] - per_token, per_token


def peak_flops(device: torch.device) -> float | None:
    """Return the peak of this device, or None if it is not known."""
    if device.type != "cuda":
        return None
    name = torch.cuda.get_device_name(device)
    return next((peak for part, peak in PEAK_FLOPS.items() if part in name), None)


SCORED_STEPS = 10  # the last ones of a row; all of them would cost a GPU some percent of its time


class DivergedError(I2LError):
    """A loss or gradient that is no longer a number."""


class RecentSteps:
    """Collects steps, and turns them into one row of scalars."""

    def __init__(self, *, data: ResidentSplit, processes: Processes, flops: tuple[float, float]) -> None:
        """Take the training data, and the operations per image and per token."""
        self._data = data
        self._processes = processes
        self._flops = flops
        self._steps: list[tuple[int, StepResult]] = []
        self._rows: list[Tensor] = []
        self._started_s = time.perf_counter()
        self._paused_s = 0.0

    def add(self, step: int, result: StepResult) -> None:
        """Take in a step."""
        self._steps.append((step, result))
        self._rows.append(torch.cat([result.gradients.scalars, result.gradient_norm.view(1)]))

    def pause(self, seconds: float) -> None:
        """Leave out time that was not spent on steps."""
        self._paused_s += seconds

    def check(self) -> Tensor:
        """Wait for the device and return the scalars of all steps, (steps, scalars), on the host.

        Raises:
            DivergedError: if any is not finite; the message names step and samples.
        """
        if not self._rows:
            return torch.zeros(0, len(SCALARS) + 1)
        rows = torch.stack(self._rows)
        self._processes.average(rows)
        rows = rows.cpu()
        bad = (~rows.isfinite()).any(dim=1).nonzero()
        if len(bad):
            step, result = self._steps[int(bad[0])]
            loss, norm = rows[int(bad[0]), SCALARS.index("loss")].item(), rows[int(bad[0]), -1].item()
            raise DivergedError(
                f"Step {step} has loss {loss} and gradient norm {norm}; its batch ({result.shape}) holds the "
                f"training samples {', '.join(map(str, sorted(result.indices.tolist())))}."
            )
        return rows

    def read(self) -> dict[str, float]:
        """Return the row of scalars of these steps, and start anew.

        Raises:
            DivergedError: as `check`.
        """
        rows = self.check()
        seconds = max(time.perf_counter() - self._started_s - self._paused_s, 1e-9)
        scalars = dict(zip((*SCALARS, "gradient_norm"), rows.mean(dim=0).tolist(), strict=True))
        losses = rows[:, SCALARS.index("loss")]
        scalars |= {"loss_min": losses.min().item(), "loss_max": losses.max().item()}
        scalars["learning_rate"] = self._steps[-1][1].learning_rate
        scalars |= self._speed(seconds) | self._teacher_forced_scores()
        self._steps.clear()
        self._rows.clear()
        self._started_s, self._paused_s = time.perf_counter(), 0.0
        return scalars

    def _speed(self, seconds: float) -> dict[str, float]:
        num_images = sum(len(result.indices) for _, result in self._steps)
        num_tokens = sum(int(self._data.lengths[result.indices].sum()) for _, result in self._steps)
        flops = self._flops[0] * num_images + self._flops[1] * num_tokens
        return {
            "images_per_s": num_images / seconds,
            "tokens_per_s": num_tokens / seconds,
            "seconds_per_100_steps": 100 * seconds / len(self._steps),
            "model_tflops": flops / seconds / self._processes.count / 1e12,
        }

    def _teacher_forced_scores(self) -> dict[str, float]:
        """The paper's training scores: each token chosen with the true ones before it, so they flatter."""
        results = [result for _, result in self._steps[-SCORED_STEPS:]]
        width = max(result.shape.num_tokens for result in results)
        predicted = [
            pad(result.gradients.predicted, (0, width - result.shape.num_tokens)) for result in results
        ]
        targets = [self._data.targets(result.share, num_tokens=width)[0] for result in results]
        scores = score_formulas(torch.cat(predicted), torch.cat(targets))
        return {
            "teacher_forced_bleu": scores.bleu,
            "teacher_forced_edit_distance": scores.edit_distance,
            "teacher_forced_exact_match": scores.exact_match,
            "teacher_forced_length_ratio": scores.length_ratio,
        }


WARM_STEPS = 5
PROFILED_STEPS = 10
NUM_OPERATIONS = 20


def profile_steps(trainer: Trainer, *, device: torch.device) -> str:
    """Run some steps, and return tables of phases and operations. The trainer is used up."""
    for _ in range(WARM_STEPS):
        trainer.step()
    _wait(device)
    started_s = time.perf_counter()
    num_images = sum(len(trainer.step().indices) for _ in range(PROFILED_STEPS))
    _wait(device)
    seconds = time.perf_counter() - started_s
    activities = [ProfilerActivity.CPU] + [ProfilerActivity.CUDA] * (device.type == "cuda")
    with profile(activities=activities) as profiler:
        for _ in range(PROFILED_STEPS):
            trainer.step()
        _wait(device)
    events = profiler.key_averages()
    on_device = device.type == "cuda"
    lines = [
        f"{1000 * seconds / PROFILED_STEPS:.1f} ms a step, {num_images / seconds:,.0f} images/s "
        "(without the profiler); phases, with it, ms a step:"
    ]
    for event in events:
        if event.key.startswith("i2l: ") and event.device_type.name == "CPU":
            phase_us = event.device_time_total if on_device else event.cpu_time_total
            lines.append(f"  {event.key.removeprefix('i2l: '):<10} {phase_us / 1000 / PROFILED_STEPS:9.2f}")
    sort_by = "self_device_time_total" if on_device else "self_cpu_time_total"
    table = events.table(sort_by=sort_by, row_limit=NUM_OPERATIONS, max_name_column_width=60)
    return "\n".join([*lines, table])


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
