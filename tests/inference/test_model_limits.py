"""Longest formula, canvas and scale are saved with a model, and who asks for more is told so at the door."""

import dataclasses

import numpy as np
import pytest
import torch

from i2l.config import ConfigError
from i2l.errors import I2LError
from i2l.images.prepare import MAX_SHRINK, REFERENCE_DPI, ImageTooLargeError
from i2l.inference.export import ExportError, export_model
from i2l.inference.model_folder import find_model, read_model_folder
from i2l.inference.reader import Reader
from i2l.model.checkpoint import load_network
from i2l.model.config import model_preset
from tests.inference.conftest import CONFIG, draw_formula

TINY = {
    "height_px": 64,
    "width_px": 64,
    "channels": (2, 2, 2, 4),
    "depths": (0, 0, 0, 0),
    "decoder_units": 24,
    "decoder_layers": 1,
}


def test_every_form_of_a_model_has_the_same_limits(checkpoint, exported):
    network, _ = load_network(checkpoint)
    limits = CONFIG.limits
    assert network.config.limits == limits
    assert read_model_folder(exported["int8"]).config.limits == limits
    assert Reader(checkpoint).model.limits == Reader(exported["float32"]).model.limits == limits
    assert (limits.max_tokens, limits.max_steps, limits.canvas_shape) == (150, 171, (66, 194))
    assert (limits.dpi, limits.max_shrink) == (REFERENCE_DPI, MAX_SHRINK)


def test_the_model_in_the_box_says_its_limits():
    limits = read_model_folder(find_model("pinpoint")).config.limits
    assert (limits.max_tokens, limits.max_steps, limits.canvas_shape) == (600, 621, (1410, 1602))
    assert limits.dpi == 200


def test_no_reader_is_asked_for_more_tokens_than_its_model_writes(checkpoint, exported):
    for path in (checkpoint, exported["int8"]):
        Reader(path, max_tokens=170)
        with pytest.raises(I2LError, match="at most 170 tokens; max_tokens is 171"):
            Reader(path, max_tokens=171)


@torch.no_grad()
def test_the_longest_formula_is_as_long_as_the_config_says():
    """The places of the decoder once ended after 1,024 tokens, whatever the model was told."""
    config = model_preset("pinpoint", max_tokens=1100, extra_tokens=7, **TINY)
    network = config.build(vocab_size=5).eval()
    pixels = torch.full((1, *config.canvas_shape), 255, dtype=torch.uint8)
    pixels[:, 20:30, 20:30] = 0
    memory = network.encode(pixels)
    state = network.start(memory)
    state = {name: part.repeat(1, 1, config.max_steps, 1) for name, part in state.items()}
    logits, _, _ = network.step(memory, state, torch.tensor([2]))  # the last of all steps
    assert config.max_steps == 1108
    assert logits.isfinite().all()


def test_a_model_is_not_exported_as_one_of_another_scale(checkpoint, tmp_path):
    with pytest.raises(ExportError, match=r"at 200 dpi, not 150.*--set model\.dpi=150"):
        export_model(checkpoint, tmp_path / "model", dpi=150)
    assert not (tmp_path / "model").exists()


def test_limits_that_make_no_sense_are_refused():
    wrong = {"dpi": 0, "max_shrink": 1.5, "scale_step": 0.5, "extra_tokens": -1, "max_tokens": 0}
    for name, value in wrong.items():
        with pytest.raises(ConfigError, match=name):
            model_preset("nopool", **{name: value})


def test_a_reader_prepares_pictures_as_the_limits_of_its_model_say(checkpoint, monkeypatch):
    monkeypatch.setattr("i2l.images.prepare.FEW_PIECES", 0)  # a few are looked at in sizes of their own
    reader = Reader(checkpoint)
    picture = draw_formula("a + b + c = x")
    usual = reader.prepare(picture)[-1]
    config = dataclasses.replace(CONFIG, dpi=60.0, scale_step=1.5)
    reader.model = dataclasses.replace(reader.model, config=config)
    forms = reader.prepare(picture)
    assert forms[-1].scale < 0.4 * usual.scale
    own, *scales = sorted((form.scale for form in forms), key=lambda scale: scale != 1)
    assert own == 1, "it was trained on images of one size"
    scales = sorted(scales)
    assert scales[-1] / scales[0] == pytest.approx(1.5**2)
    wide = np.tile(picture, (1, 2))
    config = dataclasses.replace(CONFIG, max_shrink=0.1)
    reader.model = dataclasses.replace(reader.model, config=config)
    assert reader.prepare(wide)
    reader.model = dataclasses.replace(reader.model, config=dataclasses.replace(CONFIG, max_shrink=1.0))
    with pytest.raises(ImageTooLargeError):
        reader.prepare(wide)
