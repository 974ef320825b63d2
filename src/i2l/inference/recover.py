"""Weights out of an exported model, so that training can go on from a model that came without a checkpoint.

    python -m i2l.inference.recover MODEL CHECKPOINT

An exported network keeps the names of its weights, but for matrices in eight bits: such a one is recognised
by the bias that is added to its product. What eight bits rounded away stays lost. Of a network in four bits
nothing is recovered: too little is left to go on from.
"""

import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from i2l.errors import I2LError, require_extra
from i2l.inference.export import INT8_ZERO, ONNXRUNTIME_DOMAIN, SCALES

Weights = dict[str, NDArray[np.float32]]
PREFIX = "model."


def recover_weights(files: list[Path]) -> Weights:
    """Read the weights of the networks in ONNX files, by their names in torch.

    Raises:
        I2LError: if they are in four bits.
    """
    onnx = require_extra("onnx", "train")
    weights: Weights = {}
    for file in files:
        graph = onnx.load(str(file)).graph
        if any(node.domain == ONNXRUNTIME_DOMAIN for node in graph.node):
            raise I2LError(f"{file} has four bits a weight: too little is left in it to train on from.")
        weights |= _weights_of(graph)
    return weights


def _weights_of(graph: Any) -> Weights:  # noqa: ANN401 - onnx.GraphProto
    to_array = require_extra("onnx.numpy_helper", "train").to_array
    stored = {tensor.name: to_array(tensor) for tensor in graph.initializer}
    users: dict[str, list[Any]] = {}
    for node in graph.node:
        for name in node.input:
            users.setdefault(name, []).append(node)
    weights: Weights = {}
    for name, values in stored.items():
        if name.startswith(PREFIX) and name.endswith(".int8"):  # a kernel
            whole = name.removesuffix(".int8")
            scales = stored[f"{whole}{SCALES}"].reshape(-1, *[1] * (values.ndim - 1))
            weights[whole.removeprefix(PREFIX)] = values.astype(np.float32) * scales
        elif name.startswith(PREFIX) and not name.endswith(SCALES):
            weights[name.removeprefix(PREFIX).removesuffix(".float16")] = values.astype(np.float32)
        elif name.endswith(".int8") and f"{name[:-5]}{SCALES}" in stored:
            matrix = (values.astype(np.float32) - INT8_ZERO) * stored[f"{name[:-5]}{SCALES}"]
            weights[_name_of_matrix(name, users, stored)] = np.ascontiguousarray(matrix.T)
    return weights


def _name_of_matrix(name: str, users: dict[str, list[Any]], stored: dict[str, Any]) -> str:
    """Follow the product with a matrix to the addition of its bias."""
    while True:
        (node,) = users[name]
        if node.op_type == "Add":
            (bias,) = (operand for operand in node.input if operand in stored)
            return str(bias).removeprefix(PREFIX).removesuffix("bias") + "weight"
        name = node.output[0]


def main() -> None:
    """Write a checkpoint from a model's folder."""
    import torch

    from i2l.config import ObjectiveConfig, TrainConfig
    from i2l.inference.model_folder import read_model_folder
    from i2l.model.checkpoint import save_checkpoint

    folder, out = Path(sys.argv[1]), Path(sys.argv[2])
    model = read_model_folder(folder)
    weights = {
        name: torch.from_numpy(values.copy())
        for name, values in recover_weights(sorted(folder.glob("*.onnx"))).items()
    }
    network = model.config.build(vocab_size=len(model.vocabulary))
    own = network.state_dict()
    network.load_state_dict({name: weights[name].reshape(own[name].shape) for name in own})
    save_checkpoint(
        out,
        step=0,
        weights=network.state_dict(),
        config={
            "model": model.config.to_dict(),
            "objective": ObjectiveConfig().to_dict(),
            "training": TrainConfig().to_dict(),
        },
        vocabulary=model.vocabulary,
        metrics={},
        training_state=None,
    )


if __name__ == "__main__":
    main()
