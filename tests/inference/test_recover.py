"""Weights come back out of the model in the box, and what they make reads as it does."""

import sys
from pathlib import Path

import pytest

from i2l.errors import I2LError
from i2l.inference import recover
from i2l.inference.model_folder import find_model
from i2l.inference.reader import Reader

EXAMPLE = Path(__file__).parents[2] / "examples" / "2-times-small.png"


@pytest.mark.slow
def test_a_recovered_checkpoint_reads_as_the_model_does(tmp_path, monkeypatch):
    model = find_model(None)
    monkeypatch.setattr(sys, "argv", ["recover", str(model), str(tmp_path / "checkpoint")])
    recover.main()
    readers = Reader(model, beam_width=1), Reader(tmp_path / "checkpoint", beam_width=1)
    first, second = (reader.read(EXAMPLE) for reader in readers)
    assert first.tokens == second.tokens
    assert first.log_prob == pytest.approx(second.log_prob, abs=0.05)  # confidence is calibrated, or not


def test_four_bits_are_too_few_to_go_on_from(exported):
    with pytest.raises(I2LError, match="four bits a weight"):
        recover.recover_weights(sorted(exported["int4"].glob("*.onnx")))


def test_kernels_in_eight_bits_come_back(tmp_path):
    import numpy as np
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    from i2l.inference.export import store_int8

    kernels = np.random.default_rng(0).normal(size=(128, 128, 3, 3)).astype(np.float32)
    places = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in "xy"]
    node = helper.make_node("Conv", ["x", f"{recover.PREFIX}look.weight"], ["y"])
    stored = numpy_helper.from_array(kernels, f"{recover.PREFIX}look.weight")
    network = helper.make_model(helper.make_graph([node], "convolution", places[:1], places[1:], [stored]))
    store_int8(network)
    onnx.save(network, tmp_path / "encoder.onnx")
    weights = recover.recover_weights([tmp_path / "encoder.onnx"])
    assert set(weights) == {"look.weight"}
    assert np.square(weights["look.weight"] - kernels).mean() < 1e-4 * np.square(kernels).mean()
