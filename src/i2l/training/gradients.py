"""One batch in, its gradients and scalars out: the part of a step that runs on the device.

Three engines compute the same: "plain" is the model as the paper writes it, "fast" the model's fast path,
"graph" the fast path captured once per shape as a CUDA graph and replayed, so that thousands of small
kernels cost one launch.
"""

import contextlib
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.profiler import record_function

from i2l.config import ObjectiveConfig
from i2l.errors import I2LError
from i2l.model.canvas import place_window
from i2l.model.fast import fast_forward
from i2l.model.network import Network, NetworkOutput
from i2l.model.objective import step_mask
from i2l.model.pinpoint import Pinpoint
from i2l.model.recognizer import Recognizer
from i2l.training.augment import Augmentation, View, cover_cells
from i2l.training.optimizer import FlatGradients
from i2l.training.resident import ResidentSplit
from i2l.training.shapes import BatchShape

SCALARS = ("objective", "loss", "regularization", "alpha_penalty", "ase", "aae", "token_accuracy")


class EngineError(I2LError):
    """An engine that this device cannot run."""


@dataclass(frozen=True)
class GradientResult:
    """What a step says beside its gradients; read it later, so that the device is not waited for."""

    scalars: Tensor  # one value for each of SCALARS
    predicted: Tensor  # (B, T), the likeliest token given the true ones before it; eos after the end


def autocast(device: torch.device, precision: str) -> contextlib.AbstractContextManager[object]:
    """Let matrix products and convolutions run in the precision of the config."""
    if precision == "float32":
        return contextlib.nullcontext()
    # Each weight is used once a step, and a cache of casts must not outlive the graph that made them.
    return torch.autocast(device.type, dtype=getattr(torch, precision), cache_enabled=False)


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
            output = self._forward(view.pixels, token_ids, lengths, shape)
            covered = self._covered(indices, view, shape.num_tokens) if self._objective.guidance else None
            result = self._model.loss(output, token_ids, lengths, objective=self._objective, covered=covered)
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

    def _forward(
        self, pixels: Tensor, token_ids: Tensor, lengths: Tensor, shape: BatchShape
    ) -> NetworkOutput:
        if isinstance(self._model, Pinpoint):
            with autocast(pixels.device, self._precision):
                return self._model.read_part(pixels, token_ids)
        assert isinstance(self._model, Recognizer)
        if self._fast:
            dtype: torch.dtype = getattr(torch, self._precision)
            return fast_forward(self._model, pixels, token_ids, window=shape.window, dtype=dtype)
        with autocast(pixels.device, self._precision):
            canvases = place_window(pixels, shape.window, canvas_shape=self._data.canvas_shape)
            output: NetworkOutput = self._model(canvases, token_ids, lengths)
        return output

    def _covered(self, indices: Tensor, view: View, num_tokens: int) -> Tensor:
        boxes = self._data.boxes(indices, num_tokens=num_tokens)
        return cover_cells(boxes, view, cell_px=self._model.config.cell_px)


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
