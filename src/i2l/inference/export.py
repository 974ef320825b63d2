"""From a checkpoint to a model folder that reads without torch.

`export_model` traces the network, makes it smaller if asked (weights stored as float16, or matrices as int8
or int4 with products in whole numbers), compares what it computes with the checkpoint, where a difference is
an error and never a skip, and writes the model card: what the model is, how good it is, how to read with it.

int8 keeps a scale for each column of a matrix and gives every row of activations its own scale, so that an
image does not get coarser levels from others in its batch. Rows as long as a whole image are cut into
blocks with scales of their own: one bright cell would leave the others few levels. Both sides of the product
are uint8 around 128: that is exact on every processor, where the faster mix of uint8 and int8 saturates on
those without VNNI. Large kernels of convolutions, and tables of words, are stored as int8 too, and turned
back into float32 once, on loading. Small kernels come first in a network, where an error goes through all
that follows: they stay in 16 bits.

int4 is for networks that are too large in int8. Its large matrices have four bits a weight and a scale for
every 128 of them, and onnxruntime's own operator MatMulNBits multiplies by them. Smaller matrices are those
of int8, and so are kernels.
"""

import contextlib
import logging
import os
import shutil
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.export import Dim

from i2l.errors import I2LError, require_extra
from i2l.files import atomic_write, write_checksums
from i2l.formulas.vocabulary import Vocabulary
from i2l.images.prepare import place_on_canvas
from i2l.inference.confidence import Calibration
from i2l.inference.decoding import Backend
from i2l.inference.model_folder import (
    CALIBRATION,
    CARD,
    CONFIG,
    ENCODER,
    STEP,
    VOCABULARY,
    ModelFolder,
    confidence_line,
    read_calibration,
    read_model_folder,
    write_config,
)
from i2l.inference.onnx_backend import MEMORY, NEXT, START, STATE, OnnxBackend
from i2l.inference.torch_backend import TorchBackend
from i2l.model.checkpoint import Checkpoint, load_network
from i2l.model.network import Network

Precision = Literal["float32", "float16", "int8", "int4"]
OPSET = 18


@dataclass(frozen=True)
class ParityResult:
    """The largest relative differences that were found."""

    logits: float
    attention: float
    tolerance: float


class ExportError(I2LError):
    """An export that cannot be made, or that does not compute what the checkpoint computes."""


@dataclass(frozen=True)
class ExportResult:
    """What was written."""

    path: Path
    size_bytes: int
    parity: ParityResult


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
    dpi: float | None = None,
    calibration: Calibration | None = None,
    handwriting: bool = False,
    licence: str = "",
) -> ExportResult:
    """Write the model folder of a checkpoint, or of the best checkpoint of a run.

    The folder appears under its name only if the networks in it compute what the checkpoint computes.

    Args:
        checkpoint: a checkpoint or run folder.
        out: the folder to write; one that is there is replaced if it is a model folder.
        precision: of the weights.
        dpi: the scale of the text that the model is expected to know, as of 12 pt type; if it was trained at
            another one, nothing is exported.
        calibration: of its confidence; if None, what `i2l calibrate` left in the checkpoint, if anything.
        handwriting: whether it was taught handwriting; readers of strokes say so if a model was not.
        licence: of the weights, where the data asks for one; it stands in the config and on the card.

    Raises:
        ExportError: if the folder may not be replaced, if the model knows another scale, or if what is
            exported does not compute what the checkpoint computes.
        CheckpointError: if there is no such checkpoint.
    """
    if precision not in get_args(Precision):
        raise ExportError(f"precision must be one of {', '.join(get_args(Precision))}, not {precision!r}.")
    if out.exists():
        read_model_folder(out)  # anything else is not ours to replace
    model, source = load_network(checkpoint)
    trained = model.config.limits.dpi
    if dpi is not None and dpi != trained:
        raise ExportError(
            f"{source.path} was trained on text of 12 pt at {trained:g} dpi, not {dpi:g}. Leave --dpi out, "
            f"or train a model with --set model.dpi={dpi:g}."
        )
    partial = out.with_name(f"{out.name}.{os.getpid()}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    try:
        said = {"handwriting": True} if handwriting else {}
        _write_folder(
            partial, model, source, precision=precision, said=said | ({"licence": licence} if licence else {})
        )
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
    folder: Path, model: Network, source: Checkpoint, *, precision: Precision, said: dict[str, Any]
) -> None:
    example = model.export_example()
    memory, state_names = example.memory, model.state_names
    state = {  # of three hypotheses an image
        name: part.unsqueeze(1).repeat(1, 3, *[1] * (part.dim() - 1)) for name, part in example.state.items()
    }
    encoder = _to_onnx(
        model.export_encoder(),
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
        if precision == "int4":
            quantize_large_matrices(network)
        if precision in ("int8", "int4"):
            quantize_matrices(network)
            store_int8(network)
        if precision != "float32":
            store_float16(network)
        onnx.save(network, folder / name)
    source.vocabulary.save(folder / VOCABULARY)
    write_config(
        folder,
        precision=precision,
        model=model.config.to_dict(),
        memory_names=list(memory),
        state_names=state_names,
        source={"step": source.step, "git_hash": source.git_hash, "metrics": source.metrics} | said,
    )


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


# Root mean square of the difference over that of what is compared, logits taken from their mean.
# On the presets with random weights: float32 5e-6, float16 4e-4, int8 2e-2, int4 1e-1.
TOLERANCES: Final = {"float32": 1e-4, "float16": 1e-2, "int8": 1e-1, "int4": 3e-1}
PARITY_STEPS = 6
PARITY_SIZES_PX = ((20, 30), (60, 400), (128, 1088))  # height and width of the ink; cut to the canvas


class ParityError(I2LError):
    """The exported network does not compute what the checkpoint computes."""


def check_parity(model: Network, backend: Backend, *, precision: str) -> ParityResult:
    """Compare an exported network with its torch model: several windows, batches and numbers of hypotheses.

    Raises:
        ParityError: if they differ by more than the precision explains.
    """
    tolerance = TOLERANCES[precision]
    height, width = model.config.canvas_shape
    sizes = [(min(rows, height - 2), min(columns, width - 2)) for rows, columns in PARITY_SIZES_PX]
    random = np.random.default_rng(0)
    images = [random.integers(0, 256, size).astype(np.uint8) for size in sizes]
    batches = [*([image] for image in images), images]
    found = [0.0, 0.0]
    for hypotheses, batch in enumerate(batches, start=1):
        pixels = place_on_canvas(batch, canvas_shape=(height, width))
        tokens = random.integers(2, model.vocab_size, (PARITY_STEPS, len(batch) * hypotheses))
        expected = _run(TorchBackend(model), pixels, tokens, hypotheses)
        computed = _run(backend, pixels, tokens, hypotheses)
        found = [
            max(old, _difference(*pair))
            for old, pair in zip(found, zip(expected, computed, strict=True), strict=True)
        ]
    if not max(found) <= tolerance:  # not a number is a difference too
        raise ParityError(
            f"The exported {precision} network differs from the checkpoint: {found[0]:.1e} in logits and "
            f"{found[1]:.1e} in attention, where {tolerance:.0e} is allowed. It was not kept."
        )
    return ParityResult(logits=found[0], attention=found[1], tolerance=tolerance)


def _run(
    backend: Backend, pixels: NDArray[np.uint8], tokens: NDArray[np.int64], hypotheses: int
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Feed the same tokens, and return the logits of all steps, from their mean, and the attention."""
    arrays = backend.arrays
    memory = backend.encode(pixels)
    rows = arrays.integers(np.arange(len(pixels)).repeat(hypotheses))
    state = {name: part[rows] for name, part in backend.start(memory).items()}
    inputs = np.concatenate([np.full_like(tokens[:1], Vocabulary.bos_id), tokens])
    all_logits, all_attention = [], []
    for token_ids in inputs:
        logits, state, attention = backend.step(memory, state, arrays.integers(token_ids))
        all_logits.append(arrays.numpy(logits))
        all_attention.append(arrays.numpy(attention))
    stacked = np.stack(all_logits)
    return stacked - stacked.mean(axis=2, keepdims=True), np.stack(all_attention)


def _difference(expected: NDArray[Any], computed: NDArray[Any]) -> float:
    return float(np.sqrt(np.square(expected - computed).mean() / np.square(expected).mean()))


SCALES: Final = ".scales"  # how names of scales end
INT4_ZERO = 8  # what stands for zero; the numbers go from -8 to 7
INT4_BLOCK_WEIGHTS = 128  # that share a scale
INT4_MIN_WEIGHTS = 1 << 17  # smaller matrices are worth eight bits
INT4_SHARES = np.linspace(1.0, 0.6, 9)  # of a block's largest weight, that the -8 may stand for
ONNXRUNTIME_DOMAIN: Final = "com.microsoft"  # the operators that onnxruntime has beyond the standard
INT8_LEVELS = 127  # on either side of zero
INT8_ZERO = 128  # what stands for zero
INT8_MIN_WEIGHTS = (
    1 << 17
)  # of kernels; the box: attention off by 7.4 % with none in eight bits, 6.9 so, 9.6 with all
MIN_WEIGHTS = 1 << 12  # smaller tensors are not worth it
BLOCK_WEIGHTS = 512  # of a long row
LONG_ROW_WEIGHTS = (
    1 << 13
)  # NOPOOL, trained: attention off by 13 % with one scale a row of 69,632, by 2 % with blocks


def store_float16(model: Any) -> None:  # noqa: ANN401 - onnx.ModelProto
    """Store the weights as float16, in place; they are turned back into float32 once, on loading."""
    numpy_helper = require_extra("onnx.numpy_helper", "train")
    helper = require_extra("onnx.helper", "train")
    graph = model.graph
    casts = []
    for tensor in graph.initializer:
        weights = numpy_helper.to_array(tensor)
        if weights.dtype == np.float32 and weights.size >= MIN_WEIGHTS:
            name = tensor.name
            tensor.CopyFrom(numpy_helper.from_array(weights.astype(np.float16), f"{name}.float16"))
            casts.append(helper.make_node("Cast", [f"{name}.float16"], [name], to=1))
    _prepend(graph, casts)


def store_int8(model: Any) -> None:  # noqa: ANN401 - onnx.ModelProto
    """Store what is left of large weights as int8, in place, each kernel or row with its own scale.

    They are turned back into float32 once, on loading.
    """
    numpy_helper = require_extra("onnx.numpy_helper", "train")
    helper = require_extra("onnx.helper", "train")
    graph = model.graph
    nodes = []
    for tensor in list(graph.initializer):
        weights = numpy_helper.to_array(tensor)
        name = tensor.name
        worth_it = weights.dtype == np.float32 and weights.ndim > 1 and weights.size >= INT8_MIN_WEIGHTS
        if not worth_it or name.endswith(SCALES):
            continue
        columns, scales = quantize_columns(weights.reshape(len(weights), -1).T)
        whole = (columns.T.astype(np.int16) - INT8_ZERO).astype(np.int8).reshape(weights.shape)
        tensor.CopyFrom(numpy_helper.from_array(whole, f"{name}.int8"))
        graph.initializer.append(numpy_helper.from_array(scales.reshape(-1), f"{name}{SCALES}"))
        nodes.append(
            helper.make_node("DequantizeLinear", [f"{name}.int8", f"{name}{SCALES}"], [name], axis=0)
        )
    _prepend(graph, nodes)


def quantize_large_matrices(model: Any) -> None:  # noqa: ANN401 - onnx.ModelProto
    """Turn products with a large constant matrix into products with four bits a weight, in place."""
    helper = require_extra("onnx.helper", "train")
    numpy_helper = require_extra("onnx.numpy_helper", "train")
    graph = model.graph
    nodes, constants = [], []
    for node, matrix in _products(graph, min_weights=INT4_MIN_WEIGHTS):
        if matrix is None:
            nodes.append(node)
            continue
        packed, scales = quantize_blocks(matrix.T)
        (activations, name), output, bias = node.input[:2], node.output[0], list(node.input[2:])
        constants += [
            numpy_helper.from_array(packed, f"{name}.int4"),
            numpy_helper.from_array(scales, f"{name}{SCALES}"),
        ]
        result = f"{output}.product" if bias else output
        nodes.append(
            helper.make_node(
                "MatMulNBits",
                [activations, f"{name}.int4", f"{name}{SCALES}"],
                [result],
                domain=ONNXRUNTIME_DOMAIN,
                K=len(matrix),
                N=matrix.shape[1],
                bits=4,
                block_size=INT4_BLOCK_WEIGHTS,
                accuracy_level=4,  # activations as int8, with a scale for each block of a row
            )
        )
        if bias:
            nodes.append(helper.make_node("Add", [result, *bias], [output]))
    model.opset_import.append(helper.make_opsetid(ONNXRUNTIME_DOMAIN, 1))
    _replace_nodes(graph, nodes, constants)


def quantize_blocks(matrix: NDArray[np.float32]) -> tuple[NDArray[np.uint8], NDArray[np.float32]]:
    """Quantise the rows of a matrix (N, K) to four bits, as MatMulNBits takes them.

    Each block of a row is whole numbers from -8 to 7 times a scale. The largest weight gets the -8, and of
    several scales, from that on downwards, the one with the least squared error is taken: to cut off an
    outlier may be better than to have coarse steps for all others.

    Returns:
        The numbers plus 8, two in a byte, (N, blocks, 64), and the scales, (N * blocks,).
    """
    rows, length = matrix.shape
    blocks = -(-length // INT4_BLOCK_WEIGHTS)
    padded = np.zeros((rows, blocks * INT4_BLOCK_WEIGHTS), np.float32)
    padded[:, :length] = matrix
    values = padded.reshape(rows * blocks, INT4_BLOCK_WEIGHTS)
    largest = np.take_along_axis(values, np.abs(values).argmax(axis=1)[:, None], axis=1)
    best = np.zeros(values.shape, np.int8)
    scales = np.ones((len(values), 1), np.float32)
    least = np.full((len(values), 1), np.inf, np.float32)
    for share in INT4_SHARES:
        scale = (largest * np.float32(share / -INT4_ZERO)).astype(np.float16).astype(np.float32)
        scale[scale == 0] = 1.0
        whole = np.clip(np.rint(values / scale), -INT4_ZERO, INT4_ZERO - 1)
        error = np.square(whole * scale - values).sum(axis=1, keepdims=True)
        better = error < least
        least, scales = np.where(better, error, least), np.where(better, scale, scales)
        best[better[:, 0]] = whole[better[:, 0]].astype(np.int8)
    nibbles = (best + INT4_ZERO).astype(np.uint8).reshape(rows, blocks, INT4_BLOCK_WEIGHTS)
    return (nibbles[..., ::2] | nibbles[..., 1::2] << 4).astype(np.uint8), scales.reshape(-1)


def quantize_matrices(model: Any) -> None:  # noqa: ANN401 - onnx.ModelProto
    """Turn products with a constant matrix into products of whole numbers, in place."""
    rewriter = _Rewriter()
    for node, matrix in _products(model.graph, min_weights=MIN_WEIGHTS):
        if matrix is None:
            rewriter.nodes.append(node)
        else:
            rewriter.product(node, matrix)
    _replace_nodes(model.graph, rewriter.nodes, rewriter.constants)


def _products(
    graph: Any,  # noqa: ANN401 - onnx.GraphProto
    *,
    min_weights: int,
) -> Iterator[tuple[Any, NDArray[np.float32] | None]]:
    """Go through the nodes, each with the constant matrix (K, N) it multiplies by if that is large enough."""
    numpy_helper = require_extra("onnx.numpy_helper", "train")
    weights = {tensor.name: tensor for tensor in graph.initializer}
    for node in graph.node:
        matrix = weights.get(node.input[1]) if node.op_type in ("MatMul", "Gemm") else None
        if matrix is None or np.prod(matrix.dims) < min_weights:
            yield node, None
            continue
        values = numpy_helper.to_array(matrix)
        transposed = any(attribute.name == "transB" and attribute.i for attribute in node.attribute)
        yield node, values.T if transposed else values


def _replace_nodes(graph: Any, nodes: list[Any], constants: list[Any]) -> None:  # noqa: ANN401 - onnx.GraphProto
    """Give a graph other nodes and more constants, and drop the constants that nobody uses any more."""
    kept = list(nodes)
    del graph.node[:]
    graph.node.extend(kept)
    used = {name for node in graph.node for name in node.input}
    tensors = [tensor for tensor in (*graph.initializer, *constants) if tensor.name in used]
    del graph.initializer[:]
    graph.initializer.extend(tensors)


def quantize_columns(matrix: NDArray[np.float32]) -> tuple[NDArray[np.uint8], NDArray[np.float32]]:
    """Quantise a matrix, or each of several, to uint8 around 128, with a scale for each column."""
    largest = np.maximum(np.abs(matrix).max(axis=-2, keepdims=True), np.float32(1e-30))
    scales = largest / np.float32(INT8_LEVELS)
    return (np.rint(matrix / scales) + INT8_ZERO).astype(np.uint8), scales.astype(np.float32)


class _Rewriter:
    """Collects the nodes and constants of the new graph."""

    def __init__(self) -> None:
        self._helper = require_extra("onnx.helper", "train")
        self._numpy_helper = require_extra("onnx.numpy_helper", "train")
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self._quantized: set[str] = set()  # activations
        self._constant("int8.levels", np.float32(INT8_LEVELS))
        self._constant("int8.tiny", np.float32(1e-30))
        self._constant("int8.offset", np.float32(INT8_ZERO))
        self._constant("int8.zero", np.uint8(INT8_ZERO))
        self._constant("int8.axis", np.array([-1], np.int64))
        self._constant("int8.flat", np.array([0, -1], np.int64))

    def _constant(self, name: str, value: Any) -> None:  # noqa: ANN401 - an array or a NumPy scalar
        self.constants.append(self._numpy_helper.from_array(np.asarray(value), name))

    def _node(self, operation: str, inputs: list[str], output: str, **attributes: int) -> None:
        self.nodes.append(self._helper.make_node(operation, inputs, [output], **attributes))

    def product(self, node: Any, matrix: NDArray[np.float32]) -> None:  # noqa: ANN401 - onnx.NodeProto
        """Replace one product, with its bias if it has one."""
        activations, name, output = node.input[0], node.input[1], node.output[0]
        bias = list(node.input[2:])
        cut = len(matrix) >= LONG_ROW_WEIGHTS and len(matrix) % BLOCK_WEIGHTS == 0
        blocks = len(matrix) // BLOCK_WEIGHTS if cut else 0
        if blocks:
            activations = self._cut(activations, blocks)
            matrix = matrix.reshape(blocks, BLOCK_WEIGHTS, -1)
        columns, scales = quantize_columns(matrix)
        self._constant(f"{name}.int8", np.ascontiguousarray(columns))
        self._constant(f"{name}.scales", scales)
        self._rows(activations)
        self._node(
            "MatMulInteger",
            [f"{activations}.int8", f"{name}.int8", "int8.zero", "int8.zero"],
            f"{output}.whole",
        )
        self._node("Cast", [f"{output}.whole"], f"{output}.float", to=1)
        self._node("Mul", [f"{output}.float", f"{name}.scales"], f"{output}.columns")
        result = f"{output}.product" if bias else output
        product = f"{output}.blocks" if blocks else result
        self._node("Mul", [f"{output}.columns", f"{activations}.scale"], product)
        if blocks:
            self._sum_blocks(product, blocks, result)
        if bias:
            self._node("Add", [result, *bias], output)

    def _cut(self, name: str, blocks: int) -> str:
        """Cut rows (B, K) into blocks, (B, blocks, 1, K / blocks)."""
        cut = f"{name}.cut"
        if cut not in self._quantized:
            self._constant(f"{cut}.shape", np.array([0, blocks, 1, BLOCK_WEIGHTS], np.int64))
            self._node("Reshape", [name, f"{cut}.shape"], cut)
        return cut

    def _sum_blocks(self, name: str, blocks: int, output: str) -> None:
        """Add up (B, blocks, 1, N) to (B, N).

        As a product with ones: with another number of threads ReduceSum adds in another order.
        """
        self._constant(f"{name}.shape", np.array([0, blocks, -1], np.int64))
        self._constant(f"{name}.ones", np.ones((1, blocks), np.float32))
        self._node("Reshape", [name, f"{name}.shape"], f"{name}.flat")
        self._node("MatMul", [f"{name}.ones", f"{name}.flat"], f"{name}.sum")
        self._node("Reshape", [f"{name}.sum", "int8.flat"], output)

    def _rows(self, name: str) -> None:
        """Quantise activations, each row by its own largest value."""
        if name in self._quantized:
            return
        self._quantized.add(name)
        self._node("Abs", [name], f"{name}.abs")
        self._node("ReduceMax", [f"{name}.abs", "int8.axis"], f"{name}.max", keepdims=1)
        self._node("Max", [f"{name}.max", "int8.tiny"], f"{name}.range")
        self._node("Div", [f"{name}.range", "int8.levels"], f"{name}.scale")
        self._node("Div", [name, f"{name}.scale"], f"{name}.scaled")
        self._node("Round", [f"{name}.scaled"], f"{name}.round")
        self._node("Add", [f"{name}.round", "int8.offset"], f"{name}.shifted")
        self._node("Cast", [f"{name}.shifted"], f"{name}.int8", to=2)


def _prepend(graph: Any, nodes: list[Any]) -> None:  # noqa: ANN401 - onnx.GraphProto
    rest = list(graph.node)
    del graph.node[:]
    graph.node.extend([*nodes, *rest])


_NAMES = {"bleu": "BLEU-4", "edit_distance": "edit distance", "exact": "exact match"}


def write_model_card(folder: ModelFolder, parity: ParityResult, *, name: str) -> None:
    """Write the card of a model folder that is whole otherwise."""
    config, num_tokens = folder.config, len(folder.vocabulary)
    grid = " x ".join(map(str, config.grid))
    written = folder.source.get("handwriting")
    size_mb = sum((folder.path / part).stat().st_size for part in (ENCODER, STEP)) / 1e6
    scores = [
        f"| {_NAMES.get(key, key)} | {value:.4g} |"
        for key, value in sorted(folder.source["metrics"].items())
        if isinstance(value, int | float) and not isinstance(value, bool)
    ]
    lines = [
        f"# {name}",
        "",
        f"Reads the image of a {'handwritten' if written else 'printed'} formula and writes its LaTeX "
        "(I2L, Singh 2018).",
        "",
        "```",
        f"i2l read {'formula.inkml' if written else 'formula.png'} --model {name}",
        "```",
        "",
        f"- Network: canvas of {config.width_px} x {config.height_px} pixels, attention over {grid} "
        f"locations, {config.description}, {num_tokens} tokens.",
        f"- Text of 12 pt at {config.dpi:g} dpi; images of other sizes are scaled to that.",
        f"- Weights in {folder.precision}, {size_mb:.1f} MB; logits differ from the checkpoint's by "
        f"{parity.logits:.1e} (relative), attention by {parity.attention:.1e}.",
        confidence_line(folder.calibration),
        f"- From step {folder.source['step']} of a run of commit {folder.source['git_hash']}.",
        f"- All settings are in {CONFIG}.",
        *([f"- Licence of the weights: {folder.source['licence']}"] if folder.source.get("licence") else []),
        "",
    ]
    if scores:
        lines += ["| validation | |", "|---|---|", *scores, ""]
    with atomic_write(folder.path / CARD) as file:
        file.write("\n".join(lines))
