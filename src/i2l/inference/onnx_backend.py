"""An exported model, run by onnxruntime on NumPy arrays; torch is not needed.

Only the part of the canvas around the ink is encoded; which one that is, the config of the network says.
"""

import os
import threading

import numpy as np
import onnxruntime
from numpy.typing import NDArray

from i2l.inference.decoding import Arrays, Memory, NumpyArrays, State
from i2l.inference.model_folder import ENCODER, STEP, ModelError, ModelFolder
from i2l.model.config import InkWindow

# What goes before the names of inputs and outputs of the networks.
MEMORY, START, STATE, NEXT = "memory.", "start.", "state.", "next."


def available_threads() -> int:
    """Count the processors that this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def session_options(threads: int) -> onnxruntime.SessionOptions:
    """Say how networks are run."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    options.enable_mem_pattern = False  # a plan for every size of an image would be kept
    # Threads wait awake within a call, which is a third faster than waking them for each of hundreds of
    # small operations, and sleep between calls: another session or process may need the processor.
    options.add_session_config_entry("session.force_spinning_stop", "1")
    # Weights in eight bits are turned into floats once, on loading, and not for every image.
    options.add_session_config_entry("session.disable_quant_qdq", "1")
    return options


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
        self._once = onnxruntime.RunOptions()  # images have many sizes: room for the largest is not kept
        self._once.add_run_config_entry("memory.enable_memory_arena_shrinkage", "cpu:0")
        self.num_lanes = threads or available_threads()
        options = session_options(self.num_lanes)
        try:
            self._encoder, self._step = (
                onnxruntime.InferenceSession(folder.path / name, options, providers=["CPUExecutionProvider"])
                for name in (ENCODER, STEP)
            )
        except Exception as error:  # onnxruntime has no base class for its errors
            raise ModelError(f"onnxruntime cannot load {folder.path}: {error}") from error

    def lane(self) -> "OnnxBackend":
        """Return the same network for readers that run side by side, which then take one thread each."""
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
        values = self._encoder.run(names, {"pixels": part, "cells": window.cells}, self._once)
        return dict(zip(names, values, strict=True))

    def start(self, memory: Memory) -> State:
        """Return the state before the first token."""
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
