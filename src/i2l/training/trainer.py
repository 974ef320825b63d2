"""One step of training, and all that it changes: weights, optimiser, average, order and random numbers.

`GradientStep` is the part of a step that runs on the device: one batch in, its gradients and scalars out.
Three engines compute the same: "plain" is the network as it is written down, "fast" its fast path, "graph"
the fast path captured once per shape as a CUDA graph and replayed, so that thousands of small kernels cost
one launch. `Trainer` holds everything that a step changes, and saves and resumes it.

The optimiser goes from gradients to new weights: learning-rate schedule, clipping, Adam or AdamW, weight
averaging. Nothing in it waits for the device: norms and scales stay tensors, the learning rate is the only
number that comes from the host.
"""

import dataclasses
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.profiler import record_function

from i2l.config import ObjectiveConfig
from i2l.errors import I2LError
from i2l.model.checkpoint import Checkpoint, CheckpointError
from i2l.model.network import Network, step_mask
from i2l.training.augment import Augmentation, View, boxes_in_cells
from i2l.training.batches import BatchShape, Sampler, SamplerState
from i2l.training.device_split import ResidentSplit
from i2l.training.distributed import Processes
from i2l.training.settings import RunConfig, read_section

AVERAGE_WARMUP = 10  # the average forgets its random start: decay (1 + n) / (10 + n) for the first updates


def scheduled_learning_rate(
    *, peak: float, schedule: str, warmup_steps: int, final_fraction: float, step: int, progress: float
) -> float:
    """Return the learning rate of one step.

    Args:
        peak: the rate after warm-up.
        schedule: "constant", or "cosine" from the peak down to ``final_fraction`` of it.
        warmup_steps: the rate rises linearly over this many steps.
        final_fraction: where the cosine ends, as a share of the peak.
        step: steps done before this one.
        progress: share of the run that is done, 0 .. 1, by steps or by wall-clock, whichever is further.
    """
    warmup = min(1.0, (step + 1) / (warmup_steps + 1))
    if schedule == "constant":
        return peak * warmup
    cosine = 0.5 * (1 + math.cos(math.pi * min(1.0, progress)))
    return peak * warmup * (final_fraction + (1 - final_fraction) * cosine)


class FlatGradients:
    """All gradients as views of one float32 buffer, at fixed addresses.

    One memset clears them, one reduction gives their norm, one all-reduce joins the processes, and captured
    CUDA graphs may write to them for as long as the run lasts.
    """

    def __init__(self, parameters: Sequence[nn.Parameter]) -> None:
        sizes = [parameter.numel() for parameter in parameters]
        self.buffer = torch.zeros(sum(sizes), device=parameters[0].device)
        start = 0
        for parameter, size in zip(parameters, sizes, strict=True):
            parameter.grad = self.buffer[start : start + size].view_as(parameter)
            start += size

    def clip(self, max_norm: float) -> Tensor:
        """Scale the gradients down to ``max_norm`` (0: leave them); return the norm they had, a scalar."""
        norm: Tensor = torch.linalg.vector_norm(self.buffer)
        if max_norm:
            self.buffer.mul_((max_norm / norm).clamp(max=1.0))
        return norm


def build_optimizer(
    *,
    regularized: Iterable[nn.Parameter],
    free: Iterable[nn.Parameter],
    kind: str,
    beta1: float,
    beta2: float,
    epsilon: float,
    weight_decay: float,
) -> torch.optim.Optimizer:
    """Build "adam" or "adamw"; with the latter the ``regularized`` parameters decay by ``weight_decay``.

    The paper's L2 term is not here: it is part of the objective.
    """
    optimizer: type[torch.optim.Adam] = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW}[kind]
    decay = {"adam": 0.0, "adamw": weight_decay}[kind]
    groups: list[dict[str, Any]] = [
        {"params": list(regularized), "weight_decay": decay},
        {"params": list(free), "weight_decay": 0.0},
    ]
    return optimizer(groups, lr=0.0, betas=(beta1, beta2), eps=epsilon, fused=True)


def set_learning_rate(optimizer: torch.optim.Optimizer, learning_rate: float) -> None:
    """Set the learning rate of every parameter group."""
    for group in optimizer.param_groups:
        group["lr"] = learning_rate


class WeightAverage:
    """An exponential moving average of the weights, swapped in for validation and for the checkpoint."""

    def __init__(self, parameters: Sequence[nn.Parameter], *, decay: float) -> None:
        self._weights = [parameter.data for parameter in parameters]
        self._decay = decay
        self.averages = [weight.clone() for weight in self._weights]
        self.num_updates = 0

    def update(self) -> None:
        """Take in the present weights."""
        self.num_updates += 1
        decay = min(self._decay, (1 + self.num_updates) / (AVERAGE_WARMUP + self.num_updates))
        torch._foreach_lerp_(self.averages, self._weights, 1 - decay)

    @contextmanager
    def swapped_in(self) -> Iterator[None]:
        """Let the model hold the averages inside the block, and its own weights again after it."""
        self._swap()
        try:
            yield
        finally:
            self._swap()

    def _swap(self) -> None:
        for weight, average in zip(self._weights, self.averages, strict=True):
            kept = weight.clone()
            weight.copy_(average)
            average.copy_(kept)

    def load(self, averages: Sequence[Tensor], num_updates: int) -> None:
        """Go on from saved averages."""
        for own, saved in zip(self.averages, averages, strict=True):
            own.copy_(saved)
        self.num_updates = num_updates


SCALARS = ("objective", "loss", "regularization", "alpha_penalty", "ase", "aae", "token_accuracy")


class EngineError(I2LError):
    """An engine that this device cannot run."""


@dataclass(frozen=True)
class GradientResult:
    """What a step says beside its gradients; read it later, so that the device is not waited for."""

    scalars: Tensor  # one value for each of SCALARS
    predicted: Tensor  # (B, T), the likeliest token given the true ones before it; eos after the end


def choose_engine(engine: str, device: torch.device) -> str:
    """Resolve "auto": graphs on a GPU, the plain model on a CPU.

    Raises:
        EngineError: if the device has no such engine.
    """
    if engine == "auto":
        return "graph" if device.type == "cuda" else "plain"
    if engine == "graph" and device.type != "cuda":
        raise EngineError("The engine 'graph' needs a GPU; use 'fast' or 'plain'.")
    return engine


class GradientStep:
    """Fills the gradients of a model's parameters with those of a batch."""

    def __init__(
        self,
        *,
        model: Network,
        gradients: FlatGradients,
        data: ResidentSplit,
        objective: ObjectiveConfig,
        precision: str,
        fast: bool,
        augmentation: Augmentation,
    ) -> None:
        self._model = model
        self._gradients = gradients
        self._data = data
        self._objective = objective
        self._precision = precision
        self._fast = fast
        self._augmentation = augmentation

    def __call__(self, indices: Tensor, shape: BatchShape) -> GradientResult:
        """Compute the gradients of the samples at ``indices`` (B,), on the device."""
        self._gradients.buffer.zero_()
        with record_function("i2l: gather"):
            token_ids, lengths = self._data.targets(indices, num_tokens=shape.num_tokens)
            view = self._data.view(indices, shape.window, self._augmentation)
        with record_function("i2l: forward"):
            output = self._model.training_pass(
                view.pixels,
                token_ids,
                lengths,
                window=shape.window,
                precision=self._precision,
                fast=self._fast,
            )
            boxes = self._boxes(indices, view, shape.num_tokens) if self._objective.wants_boxes else None
            result = self._model.loss(output, token_ids, lengths, objective=self._objective, boxes=boxes)
        with record_function("i2l: backward"):
            torch.autograd.backward(result.total)
        with record_function("i2l: scalars"), torch.no_grad():
            mask = step_mask(lengths, shape.num_tokens)
            predicted = output.logits.argmax(dim=2) * mask
            parts = (
                result.total,
                result.log_loss,
                result.regularization,
                result.alpha_penalty,
                result.ase,
                result.aae,
                ((predicted == token_ids) & mask).sum() / lengths.sum(),
            )
            return GradientResult(torch.stack([part.detach().float() for part in parts]), predicted)

    def _boxes(self, indices: Tensor, view: View, num_tokens: int) -> Tensor:
        boxes = self._data.boxes(indices, num_tokens=num_tokens)
        return boxes_in_cells(boxes, view, cell_px=self._model.config.cell_px)


@dataclass(frozen=True)
class _CapturedStep:
    graph: torch.cuda.CUDAGraph
    indices: Tensor  # what the graph reads
    result: GradientResult  # what it writes


class CapturedSteps:
    """Does as the `GradientStep` it captures, by one CUDA graph per shape; the graphs share their memory."""

    def __init__(self, compute: GradientStep) -> None:
        self._compute = compute
        self._stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        self._pool = torch.cuda.graph_pool_handle()
        self._captured: dict[BatchShape, _CapturedStep] = {}

    def __call__(self, indices: Tensor, shape: BatchShape) -> GradientResult:
        """Compute the gradients of the samples at ``indices`` (B,), on the device."""
        if shape not in self._captured:
            self._captured[shape] = self._capture(indices, shape)
        captured = self._captured[shape]
        captured.indices.copy_(indices)
        captured.graph.replay()
        # The next graph may write where this one keeps its result.
        return GradientResult(captured.result.scalars.clone(), captured.result.predicted.clone())

    def _capture(self, indices: Tensor, shape: BatchShape) -> _CapturedStep:
        own_indices = indices.clone()
        self._stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self._stream):
            self._compute(own_indices, shape)  # kernels are compiled and planned outside the graph
        torch.cuda.current_stream().wait_stream(self._stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=self._pool, stream=self._stream, capture_error_mode="thread_local"):
            result = self._compute(own_indices, shape)
        return _CapturedStep(graph, own_indices, result)


ORDER_FIELDS = (
    *("seed", "batch_size", "batch_pixels", "batch_tokens", "length_classes", "window_step"),
    *("min_shape_batches", "emphasis"),
)


@dataclasses.dataclass(frozen=True)
class StepResult:
    """What one step did; the tensors are on the device and not waited for."""

    shape: BatchShape
    indices: NDArray[np.int64]  # of all processes
    share: Tensor  # of this process, on the device
    learning_rate: float
    gradient_norm: Tensor
    gradients: GradientResult


class Trainer:
    """Everything that a step changes, and that a checkpoint must hold."""

    def __init__(
        self,
        *,
        config: RunConfig,
        model: Network,
        gradients: FlatGradients,
        sampler: Sampler,
        shapes: list[BatchShape],
        compute_gradients: Callable[[Tensor, BatchShape], GradientResult],
        processes: Processes,
    ) -> None:
        self.model = model
        self.sampler = sampler
        self.step_count = 0
        self.elapsed_s = 0.0
        self._config = config
        self._shapes = shapes
        self._compute_gradients = compute_gradients
        self._processes = processes
        self._gradients = gradients
        parameters = list(model.parameters())
        training = config.training
        regularized = model.regularized_parameters()
        kept_free = {id(parameter) for parameter in regularized}
        self._optimizer = build_optimizer(
            regularized=regularized,
            free=[parameter for parameter in parameters if id(parameter) not in kept_free],
            kind=training.optimizer,
            beta1=training.beta1,
            beta2=training.beta2,
            epsilon=training.epsilon,
            weight_decay=training.weight_decay,
        )
        self.average = WeightAverage(parameters, decay=training.ema_decay) if training.ema_decay else None

    @property
    def progress(self) -> float:
        """The share of the run that is done, by the limit that is nearest; 0 without limits."""
        training = self._config.training
        return max(
            self.step_count / training.max_steps if training.max_steps else 0.0,
            self.sampler.epochs / training.max_epochs if training.max_epochs else 0.0,
            self.elapsed_s / (60 * training.budget_minutes) if training.budget_minutes else 0.0,
        )

    def step(self) -> StepResult:
        """Take one step. Does not wait for the device."""
        training = self._config.training
        batch = self.sampler.next_batch()
        share = batch.indices[self._processes.rank :: self._processes.count]
        indices = torch.from_numpy(share).to(self._processes.device, non_blocking=True)
        shape = self._shapes[batch.shape]
        computed = self._compute_gradients(indices, shape)
        with record_function("i2l: update"):
            self._processes.average(self._gradients.buffer)
            norm = self._gradients.clip(training.clip_norm)
            learning_rate = scheduled_learning_rate(
                peak=training.learning_rate,
                schedule=training.schedule,
                warmup_steps=training.warmup_steps,
                final_fraction=training.final_fraction,
                step=self.step_count,
                progress=self.progress,
            )
            set_learning_rate(self._optimizer, learning_rate)
            self._optimizer.step()
            if self.average is not None:
                self.average.update()
        self.step_count += 1
        return StepResult(shape, batch.indices, indices, learning_rate, norm, computed)

    def weights(self) -> dict[str, Tensor]:
        """Return the weights to read with: the averaged ones, if the run averages."""
        weights: dict[str, Tensor] = dict(self.model.state_dict())
        if self.average is not None:
            names = [name for name, _ in self.model.named_parameters()]
            weights |= zip(names, self.average.averages, strict=True)
        return weights

    def state(self) -> dict[str, Any]:
        """Return what resuming needs beside `weights`; every process must call this."""
        random = {"cpu": torch.get_rng_state()}
        if self._processes.device.type == "cuda":
            random["cuda"] = torch.cuda.get_rng_state(self._processes.device)
        return {
            "elapsed_s": self.elapsed_s,
            "sampler": dataclasses.asdict(self.sampler.state),
            "batches_per_epoch": self.sampler.batches_per_epoch,
            "random": self._processes.gather(random),
            "optimizer": self._optimizer.state_dict(),
            "average_updates": self.average.num_updates if self.average is not None else 0,
            # With an average, the weights file holds the average, and the model's own weights are here.
            "own_weights": self.model.state_dict() if self.average is not None else None,
        }

    def resume(self, checkpoint: Checkpoint) -> None:
        """Go on where a checkpoint stands.

        Raises:
            CheckpointError: if it is one of another model, or of another order of samples.
        """
        self._check(checkpoint)
        weights, state = checkpoint.load_weights(), checkpoint.load_training_state()
        if state["batches_per_epoch"] != self.sampler.batches_per_epoch:
            raise CheckpointError(
                f"{checkpoint.path} was trained on another dataset ({state['batches_per_epoch']} batches an "
                f"epoch, here {self.sampler.batches_per_epoch}). Use that one, or start a new run."
            )
        self.model.load_state_dict(state["own_weights"] or weights)
        if self.average is not None:
            averages = [weights[name] for name, _ in self.model.named_parameters()]
            self.average.load(averages, state["average_updates"])
        self._optimizer.load_state_dict(state["optimizer"])
        self.sampler.go_to(SamplerState(**state["sampler"]))
        self.step_count, self.elapsed_s = checkpoint.step, state["elapsed_s"]
        if len(state["random"]) == self._processes.count:
            random = state["random"][self._processes.rank]
            torch.set_rng_state(random["cpu"])
            if self._processes.device.type == "cuda" and "cuda" in random:
                torch.cuda.set_rng_state(random["cuda"], self._processes.device)

    def start_from(self, checkpoint: Checkpoint) -> None:
        """Begin a new run with the weights of a checkpoint of the same network, or of a smaller one.

        Where the vocabulary has grown since, tokens that are new begin as they would in a new network. Layers
        that the checkpoint lacks begin so that they change nothing, where the network knows how.

        Raises:
            CheckpointError: if it is one of another network.
        """
        own = self.model.state_dict()
        weights = {
            name: _with_more_rows(weight, own.get(name), num_rows=len(checkpoint.vocabulary))
            for name, weight in checkpoint.load_weights().items()
        }
        weights |= self.model.idle_weights(own.keys() - weights.keys())
        try:
            self.model.load_state_dict(weights)
        except RuntimeError as error:
            raise CheckpointError(f"{checkpoint.path} has weights of another network: {error}") from error
        if self.average is not None:
            self.average.load([weights[name] for name, _ in self.model.named_parameters()], 0)

    def _check(self, checkpoint: Checkpoint) -> None:
        fixed = [f"model.{name}" for name in self._config.model.to_dict()]
        fixed += [f"training.{name}" for name in ORDER_FIELDS]
        changed = [text for name, text in changed_settings(checkpoint, self._config).items() if name in fixed]
        if changed:
            raise CheckpointError(
                f"{checkpoint.path} cannot go on with these settings: {'; '.join(changed)}. "
                "Restore them, or start a new run with another --out."
            )


def _with_more_rows(weight: Tensor, own: Tensor | None, *, num_rows: int) -> Tensor:
    """Extend a weight that has a row for each token by the network's own rows of new tokens."""
    if own is None or len(weight.shape) == 0 or len(weight) != num_rows or own.shape[1:] != weight.shape[1:]:
        return weight
    return torch.cat([weight.to(own.device), own[num_rows:]])


def changed_settings(checkpoint: Checkpoint, config: RunConfig) -> dict[str, str]:
    """Describe each setting that is not as the checkpoint has it, by its name.

    One that did not exist yet when the checkpoint was written had its default then.
    """
    changed = {}
    for section, fields in config.to_dict().items():
        earlier = read_section(section, checkpoint.config[section]).to_dict()
        for name, now in fields.items():
            before = earlier.get(name)  # None: a setting of another network
            if before != now:
                changed[f"{section}.{name}"] = f"{section}.{name} was {before}, is now {now}"
    return changed
