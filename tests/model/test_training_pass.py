"""The fast path against the plain one: forward in float32, gradients against float64."""

import copy

import pytest
import torch

from i2l.config import ObjectiveConfig
from i2l.model.calstm.network import Recognizer, fast_forward, unrolls
from i2l.model.calstm.unrolled import aligned
from i2l.model.config import model_preset
from i2l.model.network import Window, crop_window
from tests.model.conftest import make_batch, make_model, small_config

OBJECTIVE = ObjectiveConfig(alpha_penalty=0.01)
VARIANTS = {
    "nopool": {},
    "strips": {"pool_rows": 4},
    "nopool-no-init": {"init_model": False},
    "strips-no-init": {"pool_rows": 4, "init_model": False},
    "one-layer": {"lstm_layers": 1},
    "three-layers": {"lstm_layers": 3},
    "clipped": {"cell_clip": 0.2},
    "no-output-skips": {"output_skips": False},
    "aligned-units": {"lstm_units": 16, "embedding_units": 8},
}
UNCOVERED = {
    "shared": {"attention": "shared"},
    "beta": {"beta_gate": True},
    "skip": {"lstm_skip": True},
    "stacked": {"calstm_cells": 2},
}
AREA = {"height_px": 128, "width_px": 160}
WINDOW = Window(height_px=128, width_px=96, top_px=0, left_px=32)


def losses(model, pixels, token_ids, lengths, *, fast, objective=OBJECTIVE):
    """Output, loss and gradients by one of the two ways."""
    dtype = model.embedding.weight.dtype
    if fast:
        crop = crop_window(pixels, WINDOW)
        output = fast_forward(model, crop, token_ids, window=WINDOW, dtype=dtype)
    else:
        output = model(pixels, token_ids, lengths)
    loss = model.loss(output, token_ids, lengths, objective=objective).total
    return output, loss, torch.autograd.grad(loss, list(model.parameters()))


def relative(found, expected):
    """Size of the difference; a gradient below 1e-6 counts as zero: that of a shift before a softmax is."""
    found, expected = found.double(), expected.double()
    return ((found - expected).norm() / expected.norm().clamp(min=1e-6)).item()


@pytest.mark.parametrize("changes", (VARIANTS | UNCOVERED).values(), ids=(VARIANTS | UNCOVERED))
def test_float64_agrees_to_rounding(changes):
    config = small_config(**AREA, **changes)
    assert unrolls(config) == (changes in list(VARIANTS.values()))
    model = make_model(config)
    batch = make_batch(config, batch=4, steps=7)
    plain, fast = (losses(model, *batch, fast=fast) for fast in (False, True))
    torch.testing.assert_close(fast[0].logits, plain[0].logits, rtol=0, atol=1e-12)
    torch.testing.assert_close(fast[0].attention, plain[0].attention, rtol=0, atol=1e-12)
    for (name, _), one, other in zip(model.named_parameters(), fast[2], plain[2], strict=True):
        assert relative(one, other) < 1e-10, name


@pytest.mark.parametrize("changes", VARIANTS.values(), ids=VARIANTS)
def test_float32_forward_to_1e_5_and_gradients_to_1e_4_of_float64(changes):
    config = small_config(**AREA, **changes)
    batch = make_batch(config, batch=4, steps=12)
    exact = losses(make_model(config), *batch, fast=False)
    model = make_model(config).float()
    plain = model(*batch)
    output, _, gradients = losses(model, *batch, fast=True)
    torch.testing.assert_close(output.logits, plain.logits, rtol=0, atol=1e-5)
    torch.testing.assert_close(output.attention, plain.attention, rtol=0, atol=1e-5)
    for (name, _), one, other in zip(model.named_parameters(), gradients, exact[2], strict=True):
        assert relative(one, other) < 1e-4, name


def test_without_alpha_penalty_attention_has_no_gradient_of_its_own():
    config = small_config(**AREA)
    model = make_model(config)
    batch = make_batch(config)
    plain, fast = (losses(model, *batch, fast=fast, objective=ObjectiveConfig()) for fast in (False, True))
    for one, other in zip(fast[2], plain[2], strict=True):
        assert relative(one, other) < 1e-10


def test_bfloat16_stays_near():
    config = small_config(**AREA)
    model = make_model(config, scale=1.0).float()
    pixels, token_ids, lengths = make_batch(config, batch=4, steps=12)
    plain = model(pixels, token_ids, lengths)
    crop = crop_window(pixels, WINDOW)
    fast = fast_forward(model, crop, token_ids, window=WINDOW, dtype=torch.bfloat16)
    assert (fast.logits - plain.logits).abs().max() < 0.05
    model.loss(fast, token_ids, lengths, objective=OBJECTIVE).total.backward()
    assert all(parameter.grad.dtype == torch.float32 for parameter in model.parameters())


@pytest.mark.slow
@pytest.mark.parametrize("init_model", [True, False])
@pytest.mark.parametrize("preset", ["nopool", "strips"])
def test_full_size_presets(preset, init_model):
    """The real networks: float32 fast against float64 plain, forward 1e-5 and gradients 1e-4."""
    config = model_preset(preset, init_model=init_model)
    torch.manual_seed(0)
    model = Recognizer(config, vocab_size=339)
    exact = copy.deepcopy(model).double()
    window = Window(height_px=64, width_px=64, top_px=32, left_px=512)
    pixels = torch.full((1, *config.canvas_shape), 255, dtype=torch.uint8)
    crop_window(pixels, window).random_(0, 256)
    token_ids = torch.tensor([[5, 0]])
    lengths = torch.tensor([2])
    expected = exact(pixels, token_ids, lengths)
    exact.loss(expected, token_ids, lengths, objective=OBJECTIVE).total.backward()
    crop = crop_window(pixels, window)
    found = fast_forward(model, crop, token_ids, window=window, dtype=torch.float32)
    model.loss(found, token_ids, lengths, objective=OBJECTIVE).total.backward()
    torch.testing.assert_close(found.logits.double(), expected.logits, rtol=0, atol=1e-5)
    torch.testing.assert_close(found.attention.double(), expected.attention, rtol=0, atol=1e-5)
    for (name, one), other in zip(model.named_parameters(), exact.parameters(), strict=True):
        assert relative(one.grad, other.grad) < 1e-4, name


@pytest.mark.parametrize("layers", [1, 3])
def test_dropout_falls_on_the_same_places(monkeypatch, layers):
    """Both ways get the same factors: on what every layer hands upwards, never on the recurrence."""
    config = small_config(**AREA, lstm_layers=layers, dropout=0.5)
    model = make_model(config)
    batch = make_batch(config, batch=4, steps=7)
    units = aligned(config.lstm_units)
    factors = 2.0 * torch.rand(layers, 7, 4, units, dtype=torch.float64).gt(0.5)
    one_by_one = iter(factors[layer, t] for t in range(7) for layer in range(layers))

    def drop(inputs, p=0.5, training=True, inplace=False):
        if inputs.dim() == 2:  # the plain loop
            return inputs * next(one_by_one)[:, : inputs.shape[1]]
        return inputs * (factors[-1] if inputs.dim() == 3 else factors[:-1])

    monkeypatch.setattr(torch.nn.functional, "dropout", drop)
    plain, fast = (losses(model, *batch, fast=fast) for fast in (False, True))
    assert next(one_by_one, None) is None
    torch.testing.assert_close(fast[0].logits, plain[0].logits, rtol=0, atol=1e-12)
    for (name, _), one, other in zip(model.named_parameters(), fast[2], plain[2], strict=True):
        assert relative(one, other) < 1e-10, name
