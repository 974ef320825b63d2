"""An exported model, run by onnxruntime on NumPy arrays; torch is not needed.

Only the part of the canvas around the ink is encoded, as the rest is known beforehand. For the paper's
networks: a cell whose receptive field holds no ink has the features of a blank canvas. So the encoder is run
on the part of the canvas that holds the other cells and one more cell (or pooled group of cells) on each
side: those feel the zero padding at the edge of the part, and are not used. The result is that of the whole
canvas.
"""

import math
import os
import threading
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import onnxruntime
from numpy.typing import NDArray

from i2l.config import ModelConfig
from i2l.images.prepare import FAINT, FRAME_PX, WHITE
from i2l.inference.decoding import Arrays, Memory, NumpyArrays, State
from i2l.inference.model_folder import ENCODER, STEP, ModelError, ModelFolder

# What goes before the names of inputs and outputs of the networks.
MEMORY, START, STATE, NEXT = "memory.", "start.", "state.", "next."
# Of a transformer: is ink near, and which cell of the canvas is it.
NEAR, CELLS = MEMORY + "near", MEMORY + "cells"


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
        """Return the same network for readers that run side by side, which then take one thread each."""
        if self.num_lanes == 1:
            return self
        with self._loading:
            if self._lane is None:
                self._lane = OnnxBackend(self._folder, threads=1)
        return self._lane

    def encode(self, pixels: NDArray[np.uint8]) -> Memory:
        """Compute once per image what every step needs, from canvases (B, H + 2, W + 2)."""
        if self._folder.config.network != "transformer":
            return self._encode_window(pixels)
        # Each in a window of its own: one around all of them would be mostly blank.
        memories = [self._encode_window(pixels[index : index + 1]) for index in range(len(pixels))]
        return _join_near_cells(memories, num_cells=math.prod(self._folder.config.grid))

    def _encode_window(self, pixels: NDArray[np.uint8]) -> Memory:
        window = find_window(pixels, self._folder.config)
        part = np.ascontiguousarray(pixels[:, window.rows, window.columns])
        names = [MEMORY + name for name in self._folder.memory_names]
        names += [START + name for name in self._folder.state_names]
        values = self._encoder.run(names, {"pixels": part, "cells": window.cells})
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


def _join_near_cells(memories: Sequence[Memory], *, num_cells: int) -> Memory:
    """Make one memory of those of single images, of cells near ink only, which no step looks beyond.

    Images with fewer of them are filled up with far cells, all zeros.
    """
    near = [np.flatnonzero(memory[NEAR][0]) for memory in memories]
    longest = max(1, *map(len, near))
    joined: Memory = {}
    for name, first in memories[0].items():
        parts = [memory[name] for memory in memories]
        if name.startswith(START):
            joined[name] = np.concatenate(parts)
            continue
        axis = first.ndim // 2  # (B, N) or (B, heads, N, units)
        value = np.zeros((len(parts), *first.shape[1:axis], longest, *first.shape[axis + 1 :]), first.dtype)
        for index, (part, places) in enumerate(zip(parts, near, strict=True)):
            value[index].swapaxes(0, axis - 1)[: len(places)] = part[0].swapaxes(0, axis - 1)[places]
            if name == CELLS:  # of a cell that it does not have: attention is put there, and that of another
                others = np.setdiff1d(np.arange(num_cells), part[0][places])
                value[index, len(places) :] = others[: longest - len(places)]
        joined[name] = value
    return joined


@dataclass(frozen=True)
class InkWindow:
    """Which pixels to encode, and where each location of the grid finds its features."""

    rows: slice  # of the canvas, frame included
    columns: slice
    # (L,): a cell of the window, or behind all of those one of the blank canvas; of a transformer, the number
    # on the canvas of each cell of the window
    cells: NDArray[np.int64]


def find_window(pixels: NDArray[np.uint8], config: ModelConfig) -> InkWindow:
    """Find the window of canvases that are encoded together, (B, H + 2, W + 2)."""
    darkest = pixels.min(axis=0)[FRAME_PX:-FRAME_PX, FRAME_PX:-FRAME_PX]
    if config.network == "transformer":
        return _find_part(darkest < FAINT, config)
    ink: NDArray[np.bool_] = darkest < WHITE
    needed, taken, parts = [], [], []
    for axis, (cells, pool) in enumerate(
        zip(config.encoder_grid, (config.pool_rows, config.pool_columns), strict=True)
    ):
        cell_px = ink.shape[axis] // cells
        first, last = _touched_cells(np.flatnonzero(ink.any(axis=1 - axis)), cell_px)
        group_px = pool * cell_px
        groups = cells // pool
        inner = max(first // pool, 0), min(last // pool + 1, groups)  # half-open
        outer = max(inner[0] - 1, 0), min(inner[1] + 1, groups)
        needed.append(inner)
        taken.append(outer)
        parts.append(slice(outer[0] * group_px, outer[1] * group_px + 2 * FRAME_PX))
    return InkWindow(rows=parts[0], columns=parts[1], cells=_cell_index(config.grid, needed, taken))


def _find_part(ink: NDArray[np.bool_], config: ModelConfig) -> InkWindow:
    """Find the cells near ink; a transformer has no others, and reads no frame."""
    cell_px, spans = config.cell_px, []
    for axis, cells in enumerate(config.grid):
        places = np.flatnonzero(ink.any(axis=1 - axis))
        first, last = (int(places[0]), int(places[-1])) if len(places) else (0, 0)
        spans.append(config.near_cells(first, last, num_cells=cells))
    (top, bottom), (left, right) = spans
    numbers = np.arange(top, bottom)[:, None] * config.grid[1] + np.arange(left, right)
    return InkWindow(
        rows=slice(FRAME_PX + top * cell_px, FRAME_PX + bottom * cell_px),
        columns=slice(FRAME_PX + left * cell_px, FRAME_PX + right * cell_px),
        cells=numbers.reshape(-1),
    )


def _touched_cells(places: NDArray[np.intp], cell_px: int) -> tuple[int, int]:
    """Return the first and last cell whose receptive field holds ink, from its places along one axis.

    Five times a convolution of 3 and a pooling of 2 make a field of 94 pixels, 31 on each side of the cell.
    """
    if not len(places):
        return 0, 0
    margin_px = cell_px - 1
    return int(-(-(places[0] - 2 * margin_px) // cell_px)), int((places[-1] + margin_px) // cell_px)


def _cell_index(
    grid: tuple[int, int], needed: list[tuple[int, int]], taken: list[tuple[int, int]]
) -> NDArray[np.int64]:
    (top, bottom), (left, right) = needed
    heights, widths = (last - first for first, last in taken)
    cells = heights * widths + np.arange(grid[0] * grid[1]).reshape(grid)
    rows = np.arange(top, bottom)[:, None] - taken[0][0]
    columns = np.arange(left, right)[None, :] - taken[1][0]
    cells[top:bottom, left:right] = rows * widths + columns
    index: NDArray[np.int64] = cells.reshape(-1)
    return index
