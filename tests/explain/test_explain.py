"""From a file to its explanation: places survive cropping and scaling; the command writes every format."""

import json

import numpy as np
import pytest
import torch
from PIL import Image
from typer.testing import CliRunner

from i2l.explain.attention import Placement
from i2l.explain.explanation import explain_image
from i2l.formulas.vocabulary import Vocabulary
from i2l.images.prepare import place_on_canvas, prepare_image
from i2l.inference.boxes import attention_boxes, find_ink
from i2l.inference.reader import Reader
from i2l.model.calstm.config import CalstmConfig
from i2l.model.calstm.network import Recognizer
from i2l.model.checkpoint import save_checkpoint

CONFIG = CalstmConfig(
    height_px=64,
    width_px=320,
    channels=(4, 4, 4, 4, 4),
    lstm_units=16,
    attention_units=(16, 16),
    output_units=16,
    init_units=8,
    embedding_units=8,
    max_tokens=30,  # it never ends by itself
)


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    """A model that knows nothing, as a checkpoint."""
    torch.manual_seed(0)
    vocabulary = Vocabulary.from_formula_tokens(["a", "b", "+", "{", "}", "^", "2", r"\alpha"])
    path = tmp_path_factory.mktemp("model") / "step-00000000"
    save_checkpoint(
        path,
        step=0,
        weights=Recognizer(CONFIG, vocab_size=len(vocabulary)).state_dict(),
        config={"model": CONFIG.to_dict(), "objective": {}, "training": {}},
        vocabulary=vocabulary,
        metrics={},
        training_state=None,
    )
    return path


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    """White symbols on black, with a margin."""
    pixels = np.zeros((70, 260), np.uint8)
    for left in (30, 80, 130, 180):
        pixels[20:42, left : left + 18] = 255
        pixels[26:36, left + 5 : left + 13] = 0
    path = tmp_path_factory.mktemp("image") / "formula.png"
    Image.fromarray(pixels).save(path)
    return path


@pytest.mark.parametrize("scale", [1.0, 0.5, 1.4])
def test_boxes_find_their_way_back_to_the_file(file, scale):
    (prepared,) = prepare_image(file, canvas_shape=CONFIG.canvas_shape, scale=scale)
    placement = Placement.prepared(prepared, canvas_shape=CONFIG.canvas_shape)
    assert (placement.height_px, placement.width_px) == (70, 260)
    canvas = place_on_canvas([prepared.pixels], canvas_shape=CONFIG.canvas_shape)[0]
    field = CONFIG.receptive_field()
    for left in (30, 80, 130, 180):
        x, y, _, _ = placement.to_canvas((left + 9, 31, left + 9, 31))  # the middle
        attention = np.zeros((1, *field.grid))
        attention[0, int(y - 1) // 32, int(x - 1) // 32] = 1
        (box,) = attention_boxes(attention, field=field, ink=find_ink(canvas), share=0.9)
        assert placement.to_image(box) == pytest.approx((left, 20, left + 18, 42), abs=1.5 / scale)


def test_explanation_agrees_with_the_reading(checkpoint, file):
    reader = Reader(checkpoint, beam_width=4, max_tokens=12)
    reading = reader.read(file)
    explanation = explain_image(reader, file, title="formula")
    tokens = explanation.tokens[: len(reading.tokens)]
    assert [token.text for token in tokens] == list(reading.tokens)
    np.testing.assert_allclose(explanation.attention[: len(tokens)], reading.attention, atol=1e-4)
    np.testing.assert_allclose(
        [token.probability for token in tokens], reading.token_probabilities, atol=1e-4
    )
    assert explanation.latex == reading.latex
    for token, box in zip(tokens, reading.boxes, strict=True):
        assert token.box == (box and pytest.approx(box))
    assert explanation.image.size == (260, 70)
    for token in tokens:
        assert token.text not in [other for other, _ in token.alternatives]
        assert token.probability + sum(share for _, share in token.alternatives) <= 1 + 1e-5


@pytest.mark.parametrize(
    ("name", "options", "start"),
    [
        ("x.html", [], b"<!doctype html>"),
        ("x.gif", ["--spread", "gaussian"], b"GIF89a"),
        ("x.png", [], b"\x89PNG"),
        ("boxes.png", ["--boxes"], b"\x89PNG"),
        ("x.svg", [], b"<svg"),
        ("canvas.png", ["--canvas", "--spread", "nearest"], b"\x89PNG"),
    ],
)
def test_command_writes_every_format(checkpoint, file, tmp_path, name, options, start):
    from i2l.cli import app

    out = tmp_path / "made" / name
    command = ["explain", str(file), "-o", str(out), "--model", str(checkpoint), "--beam", "2", *options]
    result = CliRunner().invoke(app, command, catch_exceptions=False)
    assert result.exit_code == 0
    assert result.stdout.count("\n") == 1  # the LaTeX
    assert result.stderr == f"Written: {out}\n"
    content = out.read_bytes()
    assert content.startswith(start)
    if name == "canvas.png":
        with Image.open(out) as sheet:
            assert sheet.width == 4 * (360 + 20), "panels as wide as they get"
            height = round(66 * 360 / 322) + 23 + 20  # those of the canvas, not of the file
            assert sheet.height % height == 0
    if name == "x.html":
        assert len(content) < 500_000
        data = content.split(b'id="data">')[1].split(b"</script>")[0]
        assert json.loads(data)["grid"]["columns"] == 10


def test_other_formats_are_refused_before_any_work(tmp_path):
    from i2l.cli import app
    from i2l.errors import I2LError

    with pytest.raises(I2LError, match=r"\.html, \.gif, \.png, \.svg"):
        CliRunner().invoke(app, ["explain", "no.png", "-o", "x.pdf"], catch_exceptions=False)
