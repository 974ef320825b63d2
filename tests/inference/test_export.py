"""The exported networks: equal to torch, deterministic, without torch, and unmoved by hostile files."""

import json
import os
import subprocess
import sys
import time

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from PIL import Image

from i2l.config import ObjectiveConfig, TrainConfig
from i2l.errors import I2LError
from i2l.formulas.vocabulary import Vocabulary
from i2l.images.prepare import place_on_canvas
from i2l.inference import export
from i2l.inference.confidence import Calibration
from i2l.inference.decoding import BeamOptions, NumpyArrays, beam_search
from i2l.inference.export import ExportError, ParityError, check_parity, export_model
from i2l.inference.model_folder import ModelError, read_model_folder, update_model_card
from i2l.inference.onnx_backend import OnnxBackend, session_options
from i2l.inference.reader import Reader
from i2l.model.calstm.network import Recognizer
from i2l.model.checkpoint import load_network, save_checkpoint
from i2l.model.config import model_preset
from tests.images.hostile import hostile_file
from tests.inference.conftest import CONFIG, FORMULAS, draw_formula
from tests.inference.toy import log_softmax, plain_beam_search

pytestmark = pytest.mark.slow


def scribbles(count, shape, *, seed=0):
    """Ink of any size and place that fits."""
    random = np.random.default_rng(seed)
    for _ in range(count):
        height, width = (int(random.integers(4, size - 1)) for size in shape)
        ink = random.integers(0, 256, (height, width)).astype(np.uint8)
        yield np.where(random.random((height, width)) < 0.3, ink, 255).astype(np.uint8)


def torch_loop(model, canvas, *, width, max_steps):
    """Read one canvas with torch, one hypothesis at a time."""
    with torch.inference_mode():
        memory = model.encode(torch.from_numpy(canvas[None]))

        def step(state, token):
            logits, new_state, _ = model.step(memory, state, torch.tensor([token]))
            return log_softmax(logits[0].numpy()), new_state

        return plain_beam_search(step, model.start(memory), width=width, max_steps=max_steps)


def compare(model, folder, pictures, *, width, max_steps):
    backend = OnnxBackend(read_model_folder(folder), threads=1)
    canvases = place_on_canvas(list(pictures), canvas_shape=model.config.canvas_shape)
    found = beam_search(
        backend,
        backend.encode(canvases),
        arrays=NumpyArrays(),
        options=BeamOptions(width=width, max_steps=max_steps),
    )
    for canvas, (best,) in zip(canvases, found, strict=True):
        tokens, log_prob, score = torch_loop(model, canvas, width=width, max_steps=max_steps)[0]
        assert best.token_ids == tokens
        assert best.score == pytest.approx(score, abs=1e-4)
        assert best.log_prob == pytest.approx(log_prob, abs=1e-3)


def test_the_search_on_onnx_is_the_torch_loop(checkpoint, exported):
    model, _ = load_network(checkpoint)
    pictures = scribbles(200, CONFIG.canvas_shape)
    compare(model, exported["float32"], pictures, width=4, max_steps=25)


@pytest.mark.parametrize("preset", ["nopool", "strips", "pinpoint"])
def test_the_search_on_onnx_is_the_torch_loop_for_the_presets(preset, tmp_path):
    """Random weights, made larger so that the tokens depend on the image."""
    torch.manual_seed(0)
    config = model_preset(preset)
    model = config.build(vocab_size=60)
    with torch.no_grad():
        output = model.decoder.score if preset == "pinpoint" else model.output
        for parameter in output.parameters():
            parameter.mul_(4)
    vocabulary = Vocabulary.from_formula_tokens([f"t{index}" for index in range(58)])
    settings = {"objective": ObjectiveConfig().to_dict(), "training": TrainConfig().to_dict()}
    save_checkpoint(
        tmp_path / "checkpoint",
        step=0,
        weights=model.state_dict(),
        config={"model": config.to_dict(), **settings},
        vocabulary=vocabulary,
        metrics={},
        training_state=None,
    )
    result = export_model(tmp_path / "checkpoint", tmp_path / "model")
    assert result.parity.logits < 1e-4
    compare(model.eval(), result.path, scribbles(3, (128, 1088), seed=3), width=3, max_steps=6)


@pytest.mark.parametrize("precision", ["float32", "float16", "int8", "int4"])
def test_every_precision_reads(exported, precision):
    reader = Reader(exported[precision], threads=1)
    readings = reader.read_many([draw_formula(formula) for formula in FORMULAS], scale=1)
    assert [reading.formula for reading in readings] == FORMULAS


def test_smaller_networks(exported):
    sizes = {name: sum(file.stat().st_size for file in path.iterdir()) for name, path in exported.items()}
    assert sizes["float16"] < 0.7 * sizes["float32"]
    assert sizes["int8"] < 0.6 * sizes["float32"]
    assert sizes["int4"] < sizes["int8"]


@pytest.mark.parametrize("precision", ["float32", "int8", "int4"])
def test_a_batch_does_not_change_a_reading(exported, precision):
    reader = Reader(exported[precision], threads=1)
    pictures = [draw_formula(formula) for formula in FORMULAS]
    for picture, reading in zip(pictures, reader.read_many(pictures, scale=1), strict=True):
        alone = reader.read(picture, scale=1)
        assert alone.tokens == reading.tokens
        assert alone.log_prob == pytest.approx(reading.log_prob, abs=1e-4)


@pytest.mark.parametrize("precision", ["float32", "int8", "int4"])
def test_deterministic(exported, precision):
    """The same bytes in ten runs, with one thread and with four."""
    pictures = [draw_formula(formula) for formula in FORMULAS[3:]]
    outputs = set()
    for threads in (1, 4):
        reader = Reader(exported[precision], threads=threads)
        for _ in range(10):
            readings = [{**r.to_dict(), "seconds": 0} for r in reader.read_many(pictures, scale=1)]
            outputs.add(json.dumps([readings, [r.log_prob for r in reader.read_many(pictures, scale=1)]]))
    assert len(outputs) == 1


def test_reading_needs_no_torch(exported, tmp_path):
    Image.fromarray(draw_formula("x ^ { 2 } = y")).save(tmp_path / "a.png")
    code = (
        "import sys; sys.modules.update(dict.fromkeys(['torch', 'onnx', 'scipy', 'pyarrow', 'pypdfium2']));"
        "import i2l; reader = i2l.Reader(sys.argv[1]);"
        "print(reader.read(sys.argv[2], scale=1).latex)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(exported["int8"]), str(tmp_path / "a.png")],
        check=True,
        capture_output=True,
        text=True,
    )
    assert done.stdout == "x^{2} = y\n"


@pytest.mark.filterwarnings("ignore")  # Pillow has remarks about some of them
def test_two_thousand_hostile_files(exported):
    """An answer or a clear error each, in bounded time and memory."""
    import resource

    reader = Reader(exported["float32"], threads=1, beam_width=2, max_tokens=12)
    answers, errors, slowest = 0, [], 0.0
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for first in range(0, 2000, 50):
        started = time.monotonic()
        for result in reader.read_many(map(hostile_file, range(first, first + 50)), errors="return"):
            if isinstance(result, I2LError):
                errors.append(str(result))
            else:
                answers += 1
        slowest = max(slowest, (time.monotonic() - started) / 50)
    assert answers + len(errors) == 2000
    assert min(answers, len(errors)) > 100
    assert all(10 < len(error) < 500 for error in errors)
    assert slowest < 2
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 2**20  # KiB


def test_a_network_that_differs_is_not_kept(checkpoint, exported, tmp_path, monkeypatch):
    model, _ = load_network(checkpoint)
    for name in (
        "cell.attention.state.weight",
        "cell.stack.layers.1.recurrent_kernel",
        "init_model.parts.3.bias",
    ):
        changed = {**model.state_dict()}
        changed[name] = changed[name] * 1.2 + 0.02
        other = Recognizer(model.config, vocab_size=model.vocab_size)
        other.load_state_dict(changed)
        with pytest.raises(ParityError, match="differs from the checkpoint"):
            check_parity(
                other.eval(), OnnxBackend(read_model_folder(exported["float32"])), precision="float32"
            )
    monkeypatch.setattr(
        export, "_to_onnx", lambda module, *_, **__: _load(exported["float32"], type(module).__name__)
    )
    monkeypatch.setattr(export, "load_network", lambda path: (other.eval(), load_network(path)[1]))
    with pytest.raises(ParityError):
        export_model(checkpoint, tmp_path / "model")
    assert os.listdir(tmp_path) == []


def _load(folder, kind):
    import onnx

    return onnx.load(folder / ("step.onnx" if kind == "_Step" else "encoder.onnx"))


def test_folders_that_are_not_ours_are_not_replaced(checkpoint, tmp_path):
    with pytest.raises(ModelError, match="not a model folder"):
        export_model(checkpoint, tmp_path)
    with pytest.raises(ExportError, match="precision"):
        export_model(checkpoint, tmp_path / "model", precision="int2")


def test_a_model_folder_explains_itself(exported):
    folder = read_model_folder(exported["int8"])
    assert folder.precision == "int8"
    assert folder.config == CONFIG
    card = (folder.path / "README.md").read_text()
    assert "Weights in int8" in card
    assert "BLEU-4 | 1" in card
    for name in ("encoder.onnx", "step.onnx"):
        content = (folder.path / name).read_bytes()
        assert b"site-packages" not in content, "no paths of the machine that exported it"


def test_calibrated_confidence(exported, tmp_path):
    import shutil

    model = shutil.copytree(exported["float32"], tmp_path / "model")
    fitted = Calibration((0.0, 1.0), (0.0, 0.5), error=0.01, num_samples=100, box_share=0.3)
    fitted.save(model / "calibration.json")
    update_model_card(model)
    picture = draw_formula("a = b")
    plain, calibrated = (Reader(path).read(picture, scale=1) for path in (exported["float32"], model))
    assert calibrated.confidence == pytest.approx(plain.confidence / 2)
    assert "error 0.010" in (model / "README.md").read_text()


def test_a_broken_model_says_so(exported, tmp_path):
    import shutil

    model = shutil.copytree(exported["float32"], tmp_path / "model")
    (model / "step.onnx").write_bytes(b"nonsense")
    with pytest.raises(ModelError, match=r"step\.onnx is damaged"):
        Reader(model)
    (model / "SHA256SUMS").unlink()  # as of an earlier version
    with pytest.raises(ModelError, match="onnxruntime cannot load"):
        Reader(model)
    (model / "step.onnx").unlink()
    with pytest.raises(ModelError, match=r"lacks step\.onnx"):
        Reader(model)


def unpack_blocks(packed, scales, length):
    """The matrix (N, length) that `quantize_blocks` wrote, in float64."""
    nibbles = np.stack([packed & 15, packed >> 4], axis=-1).reshape(len(packed), -1, 128)
    values = (nibbles.astype(np.float64) - 8) * scales.reshape(len(packed), -1, 1)
    return values.reshape(len(packed), -1)[:, :length]


@given(
    arrays(np.float32, st.tuples(st.integers(1, 4), st.integers(1, 300)), elements=st.floats(-9, 9, width=32))
)
def test_four_bits_are_no_further_off_than_plain_rounding(matrix):
    from i2l.inference.export import quantize_blocks

    found = unpack_blocks(*quantize_blocks(matrix), matrix.shape[1])
    for row, kept in zip(matrix, found, strict=True):
        for start in range(0, len(row), 128):
            block = row[start : start + 128].astype(np.float64)
            largest = block[np.abs(block).argmax()]
            scale = float(np.float16(largest / -8)) or 1.0
            plain = np.clip(np.rint(block / scale), -8, 7) * scale
            ours = kept[start : start + 128]
            assert np.square(ours - block).sum() <= np.square(plain - block).sum() * 1.001 + 1e-9
            assert np.abs(ours[block == 0]).max(initial=0) == 0


def test_products_with_four_bits_are_those_of_the_matrix_that_was_kept():
    import onnxruntime
    from onnx import TensorProto, helper, numpy_helper

    random = np.random.default_rng(0)
    rows, matrix = (random.normal(size=(n, 1500)).astype(np.float32) for n in (7, 300))
    bias = random.normal(size=300).astype(np.float32)
    nodes = {
        "Gemm": (helper.make_node("Gemm", ["x", "w", "b"], ["y"], transB=1), matrix),
        "MatMul": (helper.make_node("MatMul", ["x", "w"], ["y"]), matrix.T),
    }
    for kind, (node, stored) in nodes.items():
        graph = helper.make_graph(
            [node],
            "product",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 1500])],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 300])],
            [
                numpy_helper.from_array(np.ascontiguousarray(stored), "w"),
                numpy_helper.from_array(bias, "b"),
            ],
        )
        network = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
        export.quantize_large_matrices(network)
        assert network.ByteSize() < 0.6 * matrix.size
        assert network.graph.node[0].op_type == "MatMulNBits"
        assert {t.name for t in network.graph.initializer} == {"w.int4", "w.scales"} | (
            {"b"} if kind == "Gemm" else set()
        )
        session = onnxruntime.InferenceSession(
            network.SerializeToString(), providers=["CPUExecutionProvider"]
        )
        (found,) = session.run(["y"], {"x": rows})
        kept = unpack_blocks(*export.quantize_blocks(matrix), 1500)
        expected = rows.astype(np.float64) @ kept.T + (bias if kind == "Gemm" else 0)
        assert np.sqrt(np.square(found - expected).mean() / np.square(expected).mean()) < 0.01


def convolution(kernels):
    """A network that only looks with kernels."""
    from onnx import TensorProto, helper, numpy_helper

    graph = helper.make_graph(
        [helper.make_node("Conv", ["x", "w"], ["y"])],
        "convolution",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, kernels.shape[1], 9, 9])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, len(kernels), 7, 7])],
        [numpy_helper.from_array(kernels.astype(np.float32), "w")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)


def test_large_kernels_are_stored_in_eight_bits_and_small_ones_are_not():
    import onnxruntime

    random = np.random.default_rng(0)
    kernels = random.normal(size=(128, 128, 3, 3)) * np.geomspace(0.01, 10, 128)[:, None, None, None]
    image = random.normal(size=(1, 128, 9, 9)).astype(np.float32)
    network = convolution(kernels)
    run = [network.SerializeToString()]
    export.store_int8(network)
    run.append(network.SerializeToString())
    assert len(run[1]) < 0.3 * len(run[0])
    before, after = (
        onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"]).run(["y"], {"x": image})[0]
        for content in run
    )
    off = np.sqrt(np.square(after - before).mean(axis=(0, 2, 3)) / np.square(before).mean(axis=(0, 2, 3)))
    assert off.max() < 0.02, "each kernel has a scale of its own"
    small = convolution(kernels[:, :64])
    whole = small.SerializeToString()
    export.store_int8(small)
    assert small.SerializeToString() == whole, "an error in the first layers goes through all others"


def test_kernels_in_eight_bits_are_turned_into_floats_once(tmp_path):
    """They were turned into floats for every image."""
    import onnx
    import onnxruntime

    network = convolution(np.random.default_rng(0).normal(size=(128, 128, 3, 3)))
    export.store_int8(network)
    options = session_options(1)
    options.optimized_model_filepath = str(tmp_path / "loaded.onnx")
    onnxruntime.InferenceSession(network.SerializeToString(), options, providers=["CPUExecutionProvider"])
    left = {node.op_type for node in onnx.load(tmp_path / "loaded.onnx").graph.node}
    assert "DequantizeLinear" not in left
    assert any("Conv" in name for name in left)


def test_long_rows_keep_their_precision():
    """One large value must not cost the others their levels; nor may threads change the sum."""
    import onnx
    import onnxruntime
    from onnx import TensorProto, helper, numpy_helper

    from i2l.inference.export import quantize_matrices

    random = np.random.default_rng(0)
    length = 136 * 512  # NOPOOL's features of an image
    rows = random.normal(size=(3, length)).astype(np.float32)
    rows[:, 5] = 200
    matrix = random.normal(size=(256, length)).astype(np.float32)
    matrix[:, 5] = 0  # what is large need not matter
    bias = random.normal(size=256).astype(np.float32)
    graph = helper.make_graph(
        [helper.make_node("Gemm", ["x", "w", "b"], ["y"], transB=1)],
        "product",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", length])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 256])],
        [numpy_helper.from_array(matrix, "w"), numpy_helper.from_array(bias, "b")],
    )
    network = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    quantize_matrices(network)
    onnx.checker.check_model(network)
    results = []
    for threads in (1, 2, 4):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        session = onnxruntime.InferenceSession(
            network.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
        results.append(session.run(["y"], {"x": rows})[0])
    expected = rows @ matrix.T + bias
    assert (results[0] - expected).std() < 0.2 * expected.std()  # 0.04; 0.45 with one scale a row
    assert len({result.tobytes() for result in results}) == 1
