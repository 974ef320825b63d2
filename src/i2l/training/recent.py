"""The steps since the last row of the log: kept on the device, read at once, checked to be finite."""

import time

import torch
from torch import Tensor
from torch.nn.functional import pad

from i2l.errors import I2LError
from i2l.training.distributed import Processes
from i2l.training.gradients import SCALARS
from i2l.training.resident import ResidentSplit
from i2l.training.scores import score_formulas
from i2l.training.trainer import StepResult

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
        """Wait for the device and give the scalars of all steps, (steps, scalars), on the host.

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
        """Give the row of scalars of these steps, and start anew.

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
