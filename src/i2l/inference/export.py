"""A checkpoint to a model folder that reads without torch; what it computes is compared before it is kept."""

import contextlib
import logging
import os
import shutil
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast, get_args

import torch
from torch import Tensor, nn
from torch.export import Dim

from i2l.errors import I2LError, require_extra
from i2l.files import write_checksums
from i2l.images.canvas import WHITE
from i2l.inference.backends import MEMORY, NEXT, START, STATE, OnnxBackend
from i2l.inference.calibration import Calibration
from i2l.inference.model_card import write_model_card
from i2l.inference.model_folder import (
    CALIBRATION,
    ENCODER,
    STEP,
    VOCABULARY,
    read_calibration,
    read_model_folder,
    write_config,
)
from i2l.inference.parity import ParityResult, check_parity
from i2l.inference.quantize import quantize_matrices, store_float16
from i2l.model.checkpoint import Checkpoint, load_network
from i2l.model.network import Network
from i2l.model.pinpoint import Pinpoint
from i2l.model.recognizer import Recognizer

Precision = Literal["float32", "float16", "int8"]
OPSET = 18


class ExportError(I2LError):
    """An export that cannot be made, or that does not compute what the checkpoint computes."""


@dataclass(frozen=True)
class ExportResult:
    """What was written."""

    path: Path
    size_bytes: int
    parity: ParityResult


class _Encoder(nn.Module):
    """Pixels of a window, and where each location finds its features, to memory and first state."""

    def __init__(self, model: Recognizer) -> None:
        super().__init__()
        self.model = model
        canvas = torch.full((1, *model.config.canvas_shape), WHITE, dtype=torch.uint8)
        self.register_buffer("blank", model.encoder(canvas).flatten(1, 2))

    def forward(self, pixels: Tensor, cells: Tensor) -> tuple[Tensor, ...]:
        window = self.model.encoder(pixels).flatten(1, 2)
        blank: Tensor = self.blank  # type: ignore[assignment]
        features = torch.cat([window, blank.expand(window.shape[0], -1, -1)], dim=1)[:, cells]
        memory = self.model.cell.prepare(features)
        state = self.model.start(memory)
        return (*memory.values(), *(state[name] for name in self.model.state_names))


class _PartEncoder(nn.Module):
    """Pixels of a part of the canvas, and the number of each of its cells, to memory and first state."""

    def __init__(self, model: Pinpoint) -> None:
        super().__init__()
        self.model = model

    def forward(self, pixels: Tensor, cells: Tensor) -> tuple[Tensor, ...]:
        memory = self.model.remember(pixels, cells)
        state = self.model.start(memory)
        return (*memory.values(), *(state[name] for name in self.model.state_names))


class _Step(nn.Module):
    """One step, with images and hypotheses as two dimensions."""

    def __init__(self, model: Network, memory_names: list[str]) -> None:
        super().__init__()
        self.model = model
        self.memory_names = memory_names

    def forward(self, token_ids: Tensor, memory: list[Tensor], state: list[Tensor]) -> tuple[Tensor, ...]:
        names = self.model.state_names
        logits, new_state, attention = self.model.step(
            dict(zip(self.memory_names, memory, strict=True)),
            {name: part.flatten(0, 1) for name, part in zip(names, state, strict=True)},
            token_ids.flatten(),
        )
        outputs = (logits, attention, *(new_state[name] for name in names))
        return tuple(output.reshape(*token_ids.shape, *output.shape[1:]) for output in outputs)


def export_model(
    checkpoint: Path,
    out: Path,
    *,
    precision: Precision = "float32",
    dpi: float = 200.0,
    calibration: Calibration | None = None,
) -> ExportResult:
    """Write the model folder of a checkpoint, or of the best checkpoint of a run.

    The folder appears under its name only if the networks in it compute what the checkpoint computes.

    Args:
        checkpoint: a checkpoint or run folder.
        out: the folder to write; one that is there is replaced if it is a model folder.
        precision: of the weights.
        dpi: the scale of the text that the model was trained on, as of 12 pt type.
        calibration: of its confidence; if None, what `i2l calibrate` left in the checkpoint, if anything.

    Raises:
        ExportError: if the folder may not be replaced, or the parity check fails.
        CheckpointError: if there is no such checkpoint.
    """
    if precision not in get_args(Precision):
        raise ExportError(f"precision must be one of {', '.join(get_args(Precision))}, not {precision!r}.")
    if out.exists():
        read_model_folder(out)  # anything else is not ours to replace
    model, source = load_network(checkpoint)
    partial = out.with_name(f"{out.name}.{os.getpid()}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    try:
        _write_folder(partial, model, source, precision=precision, dpi=dpi)
        calibration = calibration or read_calibration(source.path)
        if calibration is not None:
            calibration.save(partial / CALIBRATION)
        parity = check_parity(model, OnnxBackend(read_model_folder(partial)), precision=precision)
        write_model_card(read_model_folder(partial), parity, name=out.name)
        write_checksums(partial)
        if out.exists():
            shutil.rmtree(out)
        partial.rename(out)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    size = sum(file.stat().st_size for file in out.iterdir())
    return ExportResult(path=out, size_bytes=size, parity=parity)


def _write_folder(
    folder: Path, model: Network, source: Checkpoint, *, precision: Precision, dpi: float
) -> None:
    example = _example(model)
    memory, state, state_names = example.memory, example.state, model.state_names
    encoder = _to_onnx(
        _PartEncoder(model) if isinstance(model, Pinpoint) else _Encoder(cast(Recognizer, model)),
        (example.pixels, example.cells),
        inputs=["pixels", "cells"],
        outputs=[*(MEMORY + name for name in memory), *(START + name for name in state_names)],
        shapes=example.encoder_shapes,
    )
    images, hypotheses = Dim("images"), Dim("hypotheses")
    step = _to_onnx(
        _Step(model, list(memory)),
        (
            torch.zeros(2, 3, dtype=torch.int64),
            list(memory.values()),
            [state[name] for name in state_names],
        ),
        inputs=["token_ids", *(MEMORY + name for name in memory), *(STATE + name for name in state_names)],
        outputs=["logits", "attention", *(NEXT + name for name in state_names)],
        shapes=(
            {0: images, 1: hypotheses},
            [{0: images} | example.memory_shapes.get(name, {}) for name in memory],
            [{0: images, 1: hypotheses} | example.state_shape] * len(state),
        ),
    )
    onnx = require_extra("onnx", "train")
    for name, network in ((ENCODER, encoder), (STEP, step)):
        if precision == "int8":
            quantize_matrices(network)
        if precision != "float32":
            store_float16(network)
        onnx.save(network, folder / name)
    source.vocabulary.save(folder / VOCABULARY)
    write_config(
        folder,
        precision=precision,
        model=model.config.to_dict(),
        dpi=dpi,
        memory_names=list(memory),
        state_names=state_names,
        source={"step": source.step, "git_hash": source.git_hash, "metrics": source.metrics},
    )


@dataclass(frozen=True)
class _Example:
    """What the networks are traced with, and which of its dimensions vary beside images and hypotheses."""

    pixels: Tensor
    cells: Tensor
    memory: dict[str, Tensor]
    state: dict[str, Tensor]  # of three hypotheses an image
    encoder_shapes: Any
    memory_shapes: dict[str, dict[int, Any]]
    state_shape: dict[int, Any]


@torch.no_grad()
def _example(model: Network) -> _Example:
    if isinstance(model, Pinpoint):
        cell_px = model.config.cell_px
        pixels = torch.full((2, 3 * cell_px, 5 * cell_px), WHITE, dtype=torch.uint8)
        cells = torch.arange(15)
        memory = model.remember(pixels, cells)
        rows, columns = Dim("rows", max=512), Dim("columns", max=4096)
        encoder_shapes: Any = ({0: Dim.DYNAMIC, 1: cell_px * rows, 2: cell_px * columns}, {0: Dim.DYNAMIC})
        many = Dim("cells")
        memory_shapes = {name: {2 if part.dim() == 4 else 1: many} for name, part in memory.items()}
        state_shape = {3: Dim("steps")}
    else:
        pixels = torch.full((2, *model.config.canvas_shape), WHITE, dtype=torch.uint8)
        memory = model.encode(pixels)
        cells = torch.arange(memory["features"].shape[1])
        encoder_shapes = ({0: Dim.DYNAMIC, 1: Dim.DYNAMIC, 2: Dim.DYNAMIC}, None)
        memory_shapes, state_shape = {}, {}
    state = {
        name: part.unsqueeze(1).repeat(1, 3, *[1] * (part.dim() - 1))
        for name, part in model.start(memory).items()
    }
    if state_shape:  # as after some steps: a size of one would be taken for a fixed one
        state = {name: part.repeat(1, 1, 1, 4, 1) for name, part in state.items()}
    return _Example(pixels, cells, memory, state, encoder_shapes, memory_shapes, state_shape)


def _to_onnx(
    module: nn.Module,
    example: tuple[Any, ...],
    *,
    inputs: list[str],
    outputs: list[str],
    shapes: Any,  # noqa: ANN401 - as torch.export takes them
) -> Any:  # noqa: ANN401 - onnx.ModelProto
    require_extra("onnxscript", "train")
    with _quiet(), torch.no_grad():
        program = torch.onnx.export(
            module.eval(),
            example,
            input_names=inputs,
            output_names=outputs,
            dynamic_shapes=shapes,
            opset_version=OPSET,
            dynamo=True,
            external_data=False,
            verbose=False,
        )
    assert program is not None
    network = program.model_proto
    _strip(network)
    return network


def _strip(network: Any) -> None:  # noqa: ANN401 - onnx.ModelProto
    """Remove the exporter's notes: they hold stack traces, with the paths of this machine."""
    del network.metadata_props[:]
    network.doc_string = ""
    graph = network.graph
    for part in (graph, *graph.node, *graph.input, *graph.output, *graph.initializer, *graph.value_info):
        del part.metadata_props[:]
        part.doc_string = ""
    del graph.value_info[:]  # onnxruntime infers shapes itself


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keep the exporter's remarks to itself: they are about torchvision and about names of dimensions."""
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)
