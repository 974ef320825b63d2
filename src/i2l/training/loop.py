"""The loop of a run: step after step, with a look at the clock, the log, validations and checkpoints."""

import signal
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import torch

from i2l.formulas.vocabulary import Vocabulary
from i2l.model.checkpoint import Checkpoint, checkpoint_path, prune_checkpoints, save_checkpoint
from i2l.training.distributed import Processes
from i2l.training.monitor import Display, Monitor, RecentSteps, format_scalars, peak_flops
from i2l.training.settings import RunConfig
from i2l.training.trainer import Trainer
from i2l.training.validation import Validator, attention_picture

STEPS_IN_FLIGHT = 8  # enough to keep the device busy; more would let the wall-clock schedule run ahead of it
NUM_PICTURES = 4
PICTURE_STEPS = 24


@dataclass(frozen=True)
class TrainResult:
    """How a run, or this part of it, ended."""

    step: int
    finished: bool  # its limits are reached; otherwise the same command goes on
    metrics: dict[str, Any]  # of the last validation; empty before the first


class StopRequest:
    """Turns the first SIGINT or SIGTERM into a wish to stop; a second one ends the process as usual."""

    def __init__(self) -> None:
        self.received: str | None = None
        self._previous: dict[int, Any] = {}

    def __enter__(self) -> "StopRequest":
        for number in (signal.SIGINT, signal.SIGTERM):
            self._previous[number] = signal.signal(number, self._receive)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)

    def _receive(self, number: int, _frame: FrameType | None) -> None:
        self.received = signal.Signals(number).name
        signal.signal(number, self._previous[number])


class Loop:
    """Runs a trainer until its limits, its deadline or a signal, and writes what it learns on the way."""

    def __init__(
        self,
        trainer: Trainer,
        *,
        run: Path,
        config: RunConfig,
        vocabulary: Vocabulary,
        recent: RecentSteps,
        validator: Validator | None,
        processes: Processes,
        display: Display,
        monitor: Monitor | None,
        resumed: Checkpoint | None,
    ) -> None:
        """Take all parts of the run, and the checkpoint it goes on from; the first process has a monitor."""
        self._trainer = trainer
        self._run = run
        self._config = config
        self._vocabulary = vocabulary
        self._recent = recent
        self._validator = validator
        self._processes = processes
        self._display = display
        self._monitor = monitor
        self._metrics = resumed.metrics if resumed else {}
        self._validated_step = resumed.step if resumed and resumed.metrics else -1
        self._saved_step = resumed.step if resumed else -1
        self._peak = peak_flops(processes.device)

    def go(self, *, deadline_s: float | None, on_first_step: Callable[[], None]) -> TrainResult:
        """Train.

        Args:
            deadline_s: of `time.monotonic`; then the run is saved and left unfinished.
            on_first_step: called when the device has finished the first step.

        Raises:
            DivergedError: if a loss or gradient is not finite; nothing is saved after that step.
        """
        trainer, started_s = self._trainer, time.perf_counter() - self._trainer.elapsed_s
        in_flight: deque[torch.cuda.Event] = deque()
        first = True
        with StopRequest() as stop:
            while trainer.progress < 1:
                late = deadline_s is not None and time.monotonic() >= deadline_s
                reason = "the time is up" if late else stop.received
                trainer.elapsed_s, reason = self._processes.agree((time.perf_counter() - started_s, reason))
                if reason or trainer.progress >= 1:
                    break
                self._recent.add(trainer.step_count + 1, trainer.step())
                if self._processes.device.type == "cuda":
                    in_flight.append(torch.cuda.current_stream().record_event())
                    if len(in_flight) > STEPS_IN_FLIGHT:
                        in_flight.popleft().synchronize()
                if first:
                    self._recent.check()
                    on_first_step()
                    first = False
                self._after_step()
            finished = trainer.progress >= 1
            if finished and self._validated_step < trainer.step_count and self._validator:
                self._validate()
                self._save()
            elif self._saved_step < trainer.step_count:
                self._save()
        if not finished:
            self._display.note(f"Stopped at step {trainer.step_count:,}: {reason}. The same command goes on.")
        return TrainResult(trainer.step_count, finished, self._metrics)

    def _after_step(self) -> None:
        training, step = self._config.training, self._trainer.step_count
        if step % training.log_every == 0:
            self._log()
        epoch_ends = self._trainer.sampler.state.position == 0
        due = step % training.validate_every == 0 if training.validate_every else epoch_ends
        if due and self._validator:
            self._validate()
            self._save()
        elif training.checkpoint_every and step % training.checkpoint_every == 0:
            self._save()

    def _log(self) -> None:
        trainer, scalars = self._trainer, self._recent.read()
        if self._peak:
            scalars["model_flop_utilisation"] = scalars["model_tflops"] * 1e12 / self._peak
        if self._processes.device.type == "cuda":
            scalars["memory_gib"] = torch.cuda.max_memory_allocated() / 2**30
        scalars |= {"epochs": trainer.sampler.epochs, "elapsed_s": trainer.elapsed_s}
        if self._monitor:
            self._monitor.write("train", trainer.step_count, scalars)
        done = trainer.progress
        self._display.step(
            step=trainer.step_count,
            epochs=trainer.sampler.epochs,
            done=done,
            time_left_s=trainer.elapsed_s * (1 - done) / done if done else None,
            scalars=scalars,
        )

    def _validate(self) -> None:
        """Read the validation split with the averaged weights; the last decoder's scores choose the best."""
        assert self._validator
        self._recent.check()
        trainer, model = self._trainer, self._trainer.model
        with self._paused(), trainer.average.swapped_in() if trainer.average else nullcontext():
            model.eval()
            started_s = time.perf_counter()
            scores = {name: asdict(result) for name, result in self._validator(model).items()}
            seconds = time.perf_counter() - started_s
            for name, score in scores.items():
                if self._monitor:
                    self._monitor.write(f"validation/{name}", trainer.step_count, score)
                self._display.note(
                    f"validation at step {trainer.step_count:,}, {name}: {format_scalars(score)} "
                    f"({score['num_formulas']:,} formulas)"
                )
                self._metrics = {**score, "decoder": name, "decoders": scores, "seconds": seconds}
            self._write_pictures()
            model.train()
        self._validated_step = trainer.step_count

    def _write_pictures(self) -> None:
        assert self._validator
        if self._monitor is None:
            return
        data = self._validator.data
        for number, index in enumerate(self._validator.indices[:NUM_PICTURES].tolist()):
            picture = attention_picture(self._trainer.model, data, index, max_steps=PICTURE_STEPS)
            self._monitor.write_picture(f"attention/{number}", self._trainer.step_count, picture)

    def _save(self) -> None:
        """Write a checkpoint, after a look that all steps before it were finite."""
        self._recent.check()
        trainer, started_s = self._trainer, time.perf_counter()
        with self._paused():
            state = trainer.state()
            if self._processes.is_first:
                path = checkpoint_path(self._run, trainer.step_count)
                save_checkpoint(
                    path,
                    step=trainer.step_count,
                    weights=trainer.weights(),
                    config=self._config.to_dict(),
                    vocabulary=self._vocabulary,
                    metrics=self._metrics if self._validated_step == trainer.step_count else {},
                    training_state=state,
                )
                prune_checkpoints(self._run, keep_every=self._config.training.keep_every)
                self._display.note(f"saved {path.name} ({time.perf_counter() - started_s:.1f} s)")
        self._saved_step = trainer.step_count

    @contextmanager
    def _paused(self) -> Iterator[None]:
        started_s = time.perf_counter()
        yield
        self._recent.pause(time.perf_counter() - started_s)
