"""Models that beam search can step: one run by onnxruntime on NumPy arrays, one by torch on tensors.

A model by its name or folder, ready to read: an exported one, or a checkpoint, which needs torch.
"""

import os
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import onnxruntime
from numpy.typing import NDArray

from i2l.errors import require_extra
from i2l.formulas.vocabulary import Vocabulary
from i2l.inference.boxes import DEFAULT_SHARE
from i2l.inference.confidence import Calibration
from i2l.inference.decoding import Arrays, BeamOptions, Memory, NumpyArrays, State, TorchArrays, beam_search
from i2l.inference.model_folder import (
    CONFIG,
    ENCODER,
    STEP,
    ModelError,
    ModelFolder,
    check_model_folder,
    find_model,
    read_calibration,
    read_model_folder,
)
from i2l.model.config import InkWindow, Limits, ModelConfig

if TYPE_CHECKING:
    from torch import Tensor

    from i2l.model.network import Network


# What goes before the names of inputs and outputs of the networks.
MEMORY, START, STATE, NEXT = "memory.", "start.", "state.", "next."


class Backend(Protocol):
    """A network that reads."""

    arrays: Arrays
    num_lanes: int  # threads that may read with `lane()` side by side
    batch_size: int  # images that are best read together

    def lane(self) -> "Backend":
        """Give the same network for readers that run side by side, which then take one thread each."""

    def encode(self, pixels: NDArray[np.uint8]) -> Memory:
        """Compute once per image what every step needs, from canvases (B, H + 2, W + 2)."""

    def start(self, memory: Memory) -> State:
        """Give the state before the first token."""

    def step(self, memory: Memory, state: State, token_ids: Any) -> tuple[Any, State, Any]:  # noqa: ANN401
        """Take one step for all hypotheses; see `StepModel`."""


def available_threads() -> int:
    """Count the processors that this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


class OnnxBackend:
    """An exported model. Needs no torch; may be used by several threads at once."""

    batch_size = 4  # eight take as long each, sixteen longer: they wait for the longest formula

    def __init__(self, folder: ModelFolder, *, threads: int | None = None) -> None:
        """Load the networks.

        Args:
            folder: the model.
            threads: of one call; all processors if None. The result does not depend on it.

        Raises:
            ModelError: if onnxruntime cannot load a network.
        """
        self.arrays: Arrays = NumpyArrays()
        self._folder = folder
        self._lane: OnnxBackend | None = None  # loaded when it is first asked for
        self._loading = threading.Lock()
        options = onnxruntime.SessionOptions()
        self.num_lanes = threads or available_threads()
        options.intra_op_num_threads = self.num_lanes
        options.inter_op_num_threads = 1
        options.log_severity_level = 3
        # Threads wait awake within a call, which is a third faster than waking them for each of hundreds of
        # small operations, and sleep between calls: another session or process may need the processor.
        options.add_session_config_entry("session.force_spinning_stop", "1")
        try:
            self._encoder, self._step = (
                onnxruntime.InferenceSession(folder.path / name, options, providers=["CPUExecutionProvider"])
                for name in (ENCODER, STEP)
            )
        except Exception as error:  # onnxruntime has no base class for its errors
            raise ModelError(f"onnxruntime cannot load {folder.path}: {error}") from error

    def lane(self) -> "OnnxBackend":
        """Give the same network for readers that run side by side, which then take one thread each."""
        if self.num_lanes == 1:
            return self
        with self._loading:
            if self._lane is None:
                self._lane = OnnxBackend(self._folder, threads=1)
        return self._lane

    def encode(self, pixels: NDArray[np.uint8]) -> Memory:
        """Compute once per image what every step needs, from canvases (B, H + 2, W + 2)."""
        config, memory_names = self._folder.config, self._folder.memory_names
        encoded = [self._encode_window(pixels, window) for window in config.find_windows(pixels)]
        memory = config.join_memories(
            [{name: one[MEMORY + name] for name in memory_names} for one in encoded]
        )
        starts = [START + name for name in self._folder.state_names]
        joined = {MEMORY + name: value for name, value in memory.items()}
        return joined | {name: np.concatenate([one[name] for one in encoded]) for name in starts}

    def _encode_window(self, pixels: NDArray[np.uint8], window: InkWindow) -> Memory:
        part = np.ascontiguousarray(pixels[window.images, window.rows, window.columns])
        names = [MEMORY + name for name in self._folder.memory_names]
        names += [START + name for name in self._folder.state_names]
        values = self._encoder.run(names, {"pixels": part, "cells": window.cells})
        return dict(zip(names, values, strict=True))

    def start(self, memory: Memory) -> State:
        """Give the state before the first token."""
        return {name: memory[START + name] for name in self._folder.state_names}

    def step(
        self, memory: Memory, state: State, token_ids: NDArray[np.int64]
    ) -> tuple[NDArray[np.float32], State, NDArray[np.float32]]:
        """Take one step for all hypotheses; see `StepModel`."""
        feeds = {MEMORY + name: memory[MEMORY + name] for name in self._folder.memory_names}
        num_images = len(next(iter(feeds.values())))
        feeds["token_ids"] = token_ids.reshape(num_images, -1)
        for name, value in state.items():
            feeds[STATE + name] = value.reshape(num_images, -1, *value.shape[1:])
        outputs = ["logits", "attention", *(NEXT + name for name in state)]
        logits, attention, *values = self._step.run(outputs, feeds)
        rows = len(token_ids)
        new_state = {
            name: value.reshape(rows, *value.shape[2:]) for name, value in zip(state, values, strict=True)
        }
        return logits.reshape(rows, -1), new_state, attention.reshape(rows, *attention.shape[2:])


class TorchBackend:
    """A checkpoint, or a model in training, on its own device."""

    batch_size = 32

    def __init__(self, model: "Network") -> None:
        self._model = model
        self._device = next(model.parameters()).device
        self.num_lanes = 1  # torch has threads of its own, or there is one device
        self.arrays: Arrays = TorchArrays(self._device)

    def lane(self) -> "TorchBackend":
        """Give itself: there are no lanes."""
        return self

    def encode(self, pixels: NDArray[np.uint8]) -> Memory:
        """Compute once per image what every step needs, from canvases (B, H + 2, W + 2)."""
        import torch

        with torch.inference_mode():
            return self._model.encode(torch.from_numpy(pixels).to(self._device))

    def start(self, memory: Memory) -> State:
        """Give the state before the first token."""
        import torch

        with torch.inference_mode():
            return self._model.start(memory)

    def step(self, memory: Memory, state: State, token_ids: "Tensor") -> "tuple[Tensor, State, Tensor]":
        """Take one step for all hypotheses; see `StepModel`."""
        import torch

        with torch.inference_mode():
            return self._model.step(memory, state, token_ids)


def beam_decoder(*, width: int = 10) -> "Callable[[Network, Tensor, int], Tensor]":
    """Give a decoder for validation during training: the same search, on the device of the model."""

    def decode(model: "Network", pixels: "Tensor", max_tokens: int) -> "Tensor":
        import torch

        options = BeamOptions(width=width, max_steps=max_tokens, keep_attention=False)
        with torch.no_grad():
            found = beam_search(
                model, model.encode(pixels), arrays=TorchArrays(pixels.device), options=options
            )
        token_ids = torch.zeros(len(found), max_tokens, dtype=torch.int64)  # eos, which is the padding too
        for row, (best,) in zip(token_ids, found, strict=True):
            row[: len(best.token_ids)] = torch.tensor(best.token_ids)
        return token_ids.to(pixels.device)

    return decode


@dataclass(frozen=True)
class LoadedModel:
    """A network and what goes with it."""

    path: Path
    backend: Backend
    config: ModelConfig
    vocabulary: Vocabulary
    calibration: Calibration | None

    @property
    def limits(self) -> Limits:
        """What the model can take and give, as it was saved with it."""
        return self.config.limits

    @property
    def dpi(self) -> float:
        """The scale of the text it knows, as of 12 pt type."""
        return self.config.dpi

    @property
    def box_share(self) -> float:
        """The share of a token's attention that its box is found by: the fitted one, if there is one."""
        fitted = self.calibration.box_share if self.calibration else None
        return DEFAULT_SHARE if fitted is None else fitted


def load_model(
    model: str | Path | None = None, *, threads: int | None = None, device: str = "cpu"
) -> LoadedModel:
    """Load a model.

    Args:
        model: the name of one in the box, a folder that `i2l export` wrote, or a checkpoint or run folder;
            the model in the box if None.
        threads: that an exported model computes with; all processors if None.
        device: that a checkpoint computes on.

    Raises:
        ModelError: if there is no such model, or it is broken.
        CheckpointError: if it is a checkpoint, and broken.
        MissingDependencyError: if it is a checkpoint, and torch is not installed.
    """
    path = find_model(model)
    if not (path / ENCODER).is_file() and _is_checkpoint(path):
        require_extra("torch", "train")
        from i2l.model.checkpoint import load_network

        recognizer, checkpoint = load_network(path, device=device)
        return LoadedModel(
            path=checkpoint.path,
            backend=TorchBackend(recognizer),
            config=recognizer.config,
            vocabulary=checkpoint.vocabulary,
            calibration=read_calibration(checkpoint.path),
        )
    check_model_folder(path)
    folder = read_model_folder(path)
    return LoadedModel(
        path=path,
        backend=OnnxBackend(folder, threads=threads),
        config=folder.config,
        vocabulary=folder.vocabulary,
        calibration=folder.calibration,
    )


def _is_checkpoint(path: Path) -> bool:
    return (path / "checkpoints").is_dir() or (
        (path / CONFIG).is_file() and (path / "weights.safetensors").is_file()
    )
