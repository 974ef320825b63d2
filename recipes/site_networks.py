"""The networks of the static site: those of the wheel, made ready for the browser.

The numbers that come out of them are the same to the last bit. onnxruntime optimises the graphs here, once,
instead of at every start; operations whose functions are large are written as others; the files are arranged
to pack well.
"""

import json
import tempfile
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
import onnx
import onnx.helper
import onnx.numpy_helper
import onnx.shape_inference
import onnxruntime

from i2l.inference.export import INT8_ZERO

MIN_PLANES: Final = 4096  # bytes of a matrix, for planes to be worth it
BOOL, FLOAT, INT64, UINT8 = (
    onnx.TensorProto.DataType.Value(name) for name in ("BOOL", "FLOAT", "INT64", "UINT8")
)


def optimize_network(path: Path) -> onnx.ModelProto:
    """Optimise a network as far as that holds for any processor."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    options.log_severity_level = 3
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / path.name
        options.optimized_model_filepath = str(out)
        onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        model = onnx.load(out)
    _Rewriter(model).rewrite()
    return model


class _Rewriter:
    """Writes casts, and what scatters elements, as other operations.

    onnxruntime's function for casts knows every pair of kinds: half a megabyte of WebAssembly. Called often,
    it is optimised by the browser, which takes a processor nearly a second during the first reading. The
    function that scatters elements takes half as long; the one that scatters by whole addresses is so much
    smaller that it is not optimised in this time.
    """

    def __init__(self, model: onnx.ModelProto) -> None:
        self._graph = model.graph
        typed = onnx.shape_inference.infer_shapes(model).graph
        self._kinds = {one.name: one.type.tensor_type.elem_type for one in (*typed.input, *typed.value_info)}
        self._makers = {output: node for node in self._graph.node for output in node.output}
        self._constants = {tensor.name: tensor for tensor in self._graph.initializer}
        self._nodes: list[onnx.NodeProto] = []

    def rewrite(self) -> None:
        """Rewrite the graph, and leave out what nothing takes any more."""
        for node in self._graph.node:
            if node.op_type == "Cast":
                self._write_cast(node)
            elif node.op_type == "Mul" and self._is_product(node.input[0]):
                self._write_scaled_product(node)
            elif node.op_type == "ScatterElements":
                self._write_scatter(node)
            else:
                self._nodes.append(node)
        needed = {output.name for output in self._graph.output}
        kept = []
        for node in reversed(self._nodes):
            if needed.intersection(node.output):
                kept.append(node)
                needed.update(node.input)
        constants = [tensor for name, tensor in self._constants.items() if name in needed]
        del self._graph.node[:], self._graph.initializer[:]
        self._graph.node.extend(reversed(kept))
        self._graph.initializer.extend(constants)

    def _constant(self, value: npt.ArrayLike, kind: npt.DTypeLike) -> str:
        name = f"site.{value}.{np.dtype(kind)}"
        return self._named_constant(name, np.asarray(value, kind))

    def _named_constant(self, name: str, value: npt.NDArray[np.generic]) -> str:
        self._constants[name] = onnx.numpy_helper.from_array(value, name)
        return name

    def _write(self, operation: str, inputs: list[str], output: str, **attributes: int) -> str:
        self._nodes.append(onnx.helper.make_node(operation, inputs, [output], **attributes))
        return output

    def _write_cast(self, cast: onnx.NodeProto) -> None:
        source, output, wanted = cast.input[0], cast.output[0], cast.attribute[0].i
        kind, maker = self._kinds.get(source), self._makers.get(source)
        if (
            wanted == UINT8
            and maker
            and maker.op_type == "Add"
            and self._makers[maker.input[0]].op_type == "Round"
        ):
            # A number is rounded, shifted and cast.
            assert onnx.numpy_helper.to_array(self._constants[maker.input[1]]) == INT8_ZERO
            (rounded,) = self._makers[maker.input[0]].input
            constants = [self._constant(1, np.float32), self._constant(INT8_ZERO, np.uint8)]
            self._write("QuantizeLinear", [rounded, *constants], output)
        elif kind == UINT8 and wanted == FLOAT:
            self._write("DequantizeLinear", [source, self._constant(1, np.float32)], output)
        elif kind == BOOL:
            number = onnx.helper.tensor_dtype_to_np_dtype(wanted)
            self._write("Where", [source, self._constant(1, number), self._constant(0, number)], output)
        elif kind == INT64 and wanted == BOOL:
            self._write("Equal", [source, self._constant(0, np.int64)], f"{output}.not")
            self._write("Not", [f"{output}.not"], output)
        else:
            self._nodes.append(cast)

    def _is_product(self, name: str) -> bool:
        """Tell whether this is a product of whole numbers that was cast."""
        maker = self._makers.get(name)
        return bool(
            maker and maker.op_type == "Cast" and self._makers[maker.input[0]].op_type == "MatMulInteger"
        )

    def _write_scaled_product(self, node: onnx.NodeProto) -> None:
        """Write the cast of a product, and its multiplication with the scale of each column, as one."""
        product, scales = self._makers[node.input[0]].input[0], node.input[1]
        values = onnx.numpy_helper.to_array(self._constants[scales])
        assert values.size == values.shape[-1]
        flat = self._named_constant(f"{scales}.flat", values.reshape(-1))
        self._write("DequantizeLinear", [product, flat], node.output[0], axis=-1)

    def _write_scatter(self, node: onnx.NodeProto) -> None:
        """Write what scatters along the last axis as one that scatters in a line of all elements."""
        data, index, updates = node.input
        (output,) = node.output
        (axis,) = [attribute.i for attribute in node.attribute if attribute.name == "axis"]

        def write(operation: str, inputs: list[str], name: str, **attributes: int) -> str:
            return self._write(operation, inputs, f"{output}.{name}", **attributes)

        zero, line = self._constant(0, np.int64), self._constant([-1], np.int64)
        width = write("Squeeze", [write("Shape", [data], "last", start=axis, end=axis + 1)], "width")
        starts = write("Range", [zero, write("Size", [data], "size"), width], "starts")  # of each row
        rows = write("Shape", [updates], "leading", start=0, end=axis)
        rows = write("Concat", [rows, self._constant([1], np.int64)], "rows", axis=0)
        places = write("Add", [index, write("Reshape", [starts, rows], "offsets")], "places")
        flat = [
            write("Reshape", [data, line], "data"),
            write("Reshape", [places, self._constant([-1, 1], np.int64)], "column"),
            write("Reshape", [updates, line], "updates"),
        ]
        shape = write("Shape", [data], "shape")
        self._write("Reshape", [write("ScatterND", flat, "flat"), shape], output)


def write_in_planes(model: onnx.ModelProto) -> bytes:
    """Write a network so that it packs well.

    Of its large matrices of floats all first bytes lie together, then all second ones, and so on. Of weights
    that were stored in 16 bits, two of these four planes are nearly empty. The first line says where these
    matrices are; unpack.js puts them together again.
    """
    content = bytearray(model.SerializeToString(deterministic=True))
    places, start = [], 0
    for tensor in model.graph.initializer:
        if tensor.data_type == FLOAT and len(tensor.raw_data) > MIN_PLANES:
            start = content.index(tensor.raw_data, start)
            end = start + len(tensor.raw_data)
            content[start:end] = np.frombuffer(tensor.raw_data, np.uint8).reshape(-1, 4).T.tobytes()
            places.append([start, end])
            start = end
    return json.dumps(places).encode() + b"\n" + bytes(content)
