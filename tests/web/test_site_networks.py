"""The networks of the static site give the numbers of those in the wheel, to the last bit."""

import json

import numpy as np
import onnx
import onnxruntime
import pytest
from PIL import Image

from i2l import Reader
from i2l.inference.model_folder import ENCODER, STEP, find_model
from recipes.site_networks import FLOAT, MIN_PLANES, optimize_network, write_in_planes
from tests.web.site import ROOT

LEVELS = onnxruntime.GraphOptimizationLevel


@pytest.fixture(scope="module")
def networks():
    return {name: optimize_network(find_model(None) / name) for name in (ENCODER, STEP)}


def session(model, level):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = level
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def numbers(encoder, step):
    """What comes out for two pictures: of the encoder, and of five steps, some with two hypotheses each."""
    reader = Reader(threads=1)
    backend = reader.model.backend
    backend._encoder, backend._step = encoder, step
    with Image.open(ROOT / "examples" / "6-sans.png") as image:
        pixels = np.asarray(image.convert("L"))[:120, :300]
    canvas = np.full((2, *(size + 2 for size in reader.model.limits.canvas_shape)), 255, np.uint8)
    canvas[0, 40 : 40 + len(pixels), 60 : 60 + pixels.shape[1]] = pixels
    canvas[1, 80:120, 60:200] = pixels[:40, 80:220]
    memory = backend.encode(canvas)
    found, state, tokens = [*memory.values()], backend.start(memory), np.array([1, 1])
    for number in range(5):
        logits, state, attention = backend.step(memory, state, tokens)
        found += [logits, attention, *state.values()]
        tokens = logits.argmax(axis=1)
        if number == 2:
            state = {name: value.repeat(2, axis=0) for name, value in state.items()}
            tokens = np.array([tokens[0], 7, tokens[1], 9])
    return found


def test_same_bits(networks):
    ours = numbers(
        *(session(networks[name].SerializeToString(), LEVELS.ORT_DISABLE_ALL) for name in (ENCODER, STEP))
    )
    theirs = numbers(
        *(session(find_model(None) / name, LEVELS.ORT_ENABLE_EXTENDED) for name in (ENCODER, STEP))
    )
    assert len(ours) == len(theirs)
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(one, other)


def test_large_functions_are_hardly_called(networks):
    """A browser optimises what is called often, which takes longest for the largest functions."""
    large = {
        name: sum(node.op_type in ("Cast", "ScatterElements") for node in model.graph.node)
        for name, model in networks.items()
    }
    assert large == {ENCODER: 2, STEP: 0}


def test_planes_can_be_put_together(networks):
    model = networks[ENCODER]
    places, _, content = write_in_planes(model).partition(b"\n")
    whole = bytearray(content)
    for start, end in json.loads(places):
        whole[start:end] = np.frombuffer(content[start:end], np.uint8).reshape(4, -1).T.tobytes()
    large = [
        one for one in model.graph.initializer if one.data_type == FLOAT and len(one.raw_data) > MIN_PLANES
    ]
    assert len(json.loads(places)) == len(large) > 0
    assert onnx.load_from_string(bytes(whole)) == model
