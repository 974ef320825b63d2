"""Smaller networks: weights stored as float16, or matrices as int8 with products in whole numbers.

int8 keeps a scale for each column of a matrix and gives every row of activations its own scale, so that an
image does not get coarser levels from others in its batch. Rows as long as a whole image are cut into
blocks with scales of their own: one bright cell would leave the others few levels. Both sides of the product
are uint8 around 128: that is exact on every processor, where the faster mix of uint8 and int8 saturates on
those without VNNI.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from i2l.errors import require_extra

LEVELS = 127
ZERO = 128
MIN_SIZE = 1 << 12  # weights; smaller ones are not worth it
BLOCK = 512  # of a long row
LONG = 1 << 13  # NOPOOL, trained: attention off by 13 % with one scale a row of 69,632, by 2 % with blocks


def store_float16(model: Any) -> None:  # noqa: ANN401 - onnx.ModelProto
    """Store the weights as float16, in place; they are turned back into float32 once, on loading."""
    numpy_helper = require_extra("onnx.numpy_helper", "train")
    helper = require_extra("onnx.helper", "train")
    graph = model.graph
    casts = []
    for tensor in graph.initializer:
        weights = numpy_helper.to_array(tensor)
        if weights.dtype == np.float32 and weights.size >= MIN_SIZE:
            name = tensor.name
            tensor.CopyFrom(numpy_helper.from_array(weights.astype(np.float16), f"{name}.float16"))
            casts.append(helper.make_node("Cast", [f"{name}.float16"], [name], to=1))
    _prepend(graph, casts)


def quantize_matrices(model: Any) -> None:  # noqa: ANN401 - onnx.ModelProto
    """Turn products with a constant matrix into products of whole numbers, in place."""
    numpy_helper = require_extra("onnx.numpy_helper", "train")
    graph = model.graph
    weights = {tensor.name: tensor for tensor in graph.initializer}
    rewriter = _Rewriter()
    for node in graph.node:
        matrix = weights.get(node.input[1]) if node.op_type in ("MatMul", "Gemm") else None
        if matrix is None or np.prod(matrix.dims) < MIN_SIZE:
            rewriter.nodes.append(node)
            continue
        values = numpy_helper.to_array(matrix)
        if any(attribute.name == "transB" and attribute.i for attribute in node.attribute):
            values = values.T
        rewriter.product(node, values)
    nodes = list(rewriter.nodes)
    del graph.node[:]
    graph.node.extend(nodes)
    graph.initializer.extend(rewriter.constants)
    used = {name for node in graph.node for name in node.input}
    kept = [tensor for tensor in graph.initializer if tensor.name in used]
    del graph.initializer[:]
    graph.initializer.extend(kept)


def quantize_columns(matrix: NDArray[np.float32]) -> tuple[NDArray[np.uint8], NDArray[np.float32]]:
    """Give a matrix, or each of several, as uint8 around 128, and the scale of each column."""
    scales = np.maximum(np.abs(matrix).max(axis=-2, keepdims=True), np.float32(1e-30)) / np.float32(LEVELS)
    return (np.rint(matrix / scales) + ZERO).astype(np.uint8), scales.astype(np.float32)


class _Rewriter:
    """Collects the nodes and constants of the new graph."""

    def __init__(self) -> None:
        self._helper = require_extra("onnx.helper", "train")
        self._numpy_helper = require_extra("onnx.numpy_helper", "train")
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self._quantized: set[str] = set()  # activations
        self._constant("int8.levels", np.float32(LEVELS))
        self._constant("int8.tiny", np.float32(1e-30))
        self._constant("int8.offset", np.float32(ZERO))
        self._constant("int8.zero", np.uint8(ZERO))
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
        blocks = len(matrix) // BLOCK if len(matrix) >= LONG and len(matrix) % BLOCK == 0 else 0
        if blocks:
            activations = self._cut(activations, blocks)
            matrix = matrix.reshape(blocks, BLOCK, -1)
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
            self._constant(f"{cut}.shape", np.array([0, blocks, 1, BLOCK], np.int64))
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
