"""The transformer: step by step as all at once, the same on any part of the canvas, near the ink only."""

import numpy as np
import pytest
import torch

from i2l.config import ConfigError, ObjectiveConfig
from i2l.images.prepare import FAINT, FRAME_PX, place_on_canvas
from i2l.model.config import model_preset
from i2l.model.network import guidance_loss, placement_loss
from i2l.model.pinpoint.config import PinpointConfig
from i2l.model.pinpoint.network import HALVING_KERNEL, convolution, first_halving

SMALL = {
    "height_px": 48,
    "width_px": 96,
    "channels": (8, 8, 16),
    "depths": (0, 1, 1),
    "decoder_units": 32,
    "decoder_layers": 2,
    "decoder_heads": 2,
    "dropout": 0.0,
}


def make_model(**changes):
    torch.manual_seed(0)
    config = model_preset("pinpoint", **(SMALL | changes))
    return config.build(vocab_size=11).double().eval()


def make_pixels(model, sizes=((20, 60), (9, 13))):
    random = np.random.default_rng(1)
    images = [random.integers(0, 256, size).astype(np.uint8) for size in sizes]
    return torch.from_numpy(place_on_canvas(images, canvas_shape=model.config.canvas_shape))


TARGETS = torch.tensor([[3, 5, 7, 2, 0], [4, 4, 0, 0, 0]])


def decode(model, pixels, hypotheses=1):
    memory = model.encode(pixels)
    state = {name: part.repeat_interleave(hypotheses, 0) for name, part in model.start(memory).items()}
    inputs = torch.cat([torch.ones_like(TARGETS[:, :1]), TARGETS[:, :-1]], dim=1)[: len(pixels)]
    all_logits, all_attention = [], []
    for token_ids in inputs.repeat_interleave(hypotheses, 0).unbind(1):
        logits, state, attention = model.step(memory, state, token_ids)
        all_logits.append(logits)
        all_attention.append(attention)
    return torch.stack(all_logits, 1), torch.stack(all_attention, 1)


@torch.no_grad()
def test_steps_give_what_the_whole_formula_gives():
    model = make_model()
    pixels = make_pixels(model)
    output = model(pixels, TARGETS, torch.tensor([5, 3]))
    logits, attention = decode(model, pixels)
    torch.testing.assert_close(logits, output.logits, rtol=0, atol=1e-10)
    torch.testing.assert_close(attention, output.attention, rtol=0, atol=1e-10)
    torch.testing.assert_close(attention.sum((2, 3)), torch.ones(2, 5, dtype=torch.float64))


@torch.no_grad()
def test_a_reading_depends_neither_on_the_batch_nor_on_other_hypotheses():
    model = make_model()
    pixels = make_pixels(model)
    together, _ = decode(model, pixels)
    alone, _ = decode(model, pixels[:1])
    torch.testing.assert_close(alone, together[:1], rtol=0, atol=1e-10)
    many, _ = decode(model, pixels, hypotheses=3)
    torch.testing.assert_close(many[::3], together, rtol=0, atol=1e-10)
    torch.testing.assert_close(many[1::3], together, rtol=0, atol=1e-10)


@torch.no_grad()
def test_a_word_does_not_see_later_ones():
    model = make_model()
    pixels = make_pixels(model)
    changed = TARGETS.clone()
    changed[:, 2:] = 9
    lengths = torch.tensor([5, 5])
    one, other = model(pixels, TARGETS, lengths), model(pixels, changed, lengths)
    torch.testing.assert_close(one.logits[:, :3], other.logits[:, :3], rtol=0, atol=0)
    assert not torch.allclose(one.logits[:, 3:], other.logits[:, 3:])


@torch.no_grad()
def test_attention_lies_on_cells_near_ink():
    model = make_model()
    pixels = make_pixels(model, sizes=((9, 13),))
    _, attention = decode(model, pixels)
    near = torch.nn.functional.max_pool2d((pixels[:, 1:-1, 1:-1] < FAINT).double(), 16, 8, 4)
    assert near.shape[1:] == attention.shape[2:]
    assert (attention[:, :, near[0] == 0] < 1e-10).all()


def test_white_paper_is_read_without_accident():
    model = make_model()
    pixels = torch.full((1, *model.config.canvas_shape), 255, dtype=torch.uint8)
    with torch.no_grad():
        logits, attention = decode(model, pixels)
    assert logits.isfinite().all()
    assert attention.isfinite().all()


def test_all_weights_learn():
    model = make_model().train()
    pixels = make_pixels(model)
    output = model(pixels, TARGETS, torch.tensor([5, 3]))
    model.loss(output, TARGETS, torch.tensor([5, 3]), objective=ObjectiveConfig(l2=0)).total.backward()
    idle = [name for name, parameter in model.named_parameters() if not parameter.grad.abs().sum()]
    assert idle == []


def test_guidance_pulls_attention_onto_the_box():
    attention = torch.full((1, 3, 2, 2), 0.25, requires_grad=True)
    boxes = torch.tensor([[[0, 0, 1, 1], [1, 0, 2, 2], [0, 0, 0, 0]]]).float()
    loss = guidance_loss(attention, boxes)
    assert loss.item() == pytest.approx(-(np.log(0.25) + np.log(0.5)) / 2)
    loss.backward()
    assert attention.grad[0, 0, 0, 0] < 0
    assert attention.grad[0, 2].abs().sum() == 0
    assert guidance_loss(attention, torch.zeros_like(boxes)).item() == 0


def test_placement_is_the_way_from_the_peak_to_the_middle_half_of_the_box_in_cells():
    attention = torch.zeros(1, 3, 4, 6)
    attention[0, :, 1, 2], attention[0, :, 1, 3], attention[0, :, 3, 5] = 0.5, 0.25, 0.25  # the last is far
    attention.requires_grad_()  # the peak is at (2.5 + 1 / 3, 1.5)
    boxes = torch.tensor([[[2, 1, 4, 2], [3, 1.6, 5, 2.0], [0, 0, 0, 0]]]).float()
    loss = placement_loss(attention, boxes)
    assert loss.item() == pytest.approx((0 + (3.5 - 2.5 - 1 / 3) + (1.7 - 1.5)) / 2)  # two have a box
    loss.backward()
    assert attention.grad[0, [0, 2]].abs().sum() == 0  # within the middle of its box, and without a box
    assert attention.grad[0, 1, 1, 3] < attention.grad[0, 1, 1, 2]  # more on the right makes it less
    assert attention.grad[0, 1, 3, 5] == 0  # what is looked at elsewhere moves no peak
    assert placement_loss(attention, torch.zeros_like(boxes)).item() == 0


def test_placement_tells_the_halves_of_a_cell_apart():
    """A thin bar below the middle of its cell is reached by a share of attention on the cell below."""
    bar = torch.tensor([[[0.0, 0.8, 4.0, 0.9]]])
    scores = torch.zeros(2, requires_grad=True)
    for _ in range(200):
        shares = scores.softmax(dim=0)
        attention = shares[None, None, :, None].expand(1, 1, 2, 4) / 4
        loss = placement_loss(attention, bar)
        (slope,) = torch.autograd.grad(loss, scores)
        scores = (scores - slope).detach().requires_grad_()
    assert loss.item() < 0.02
    assert scores.softmax(dim=0)[1].item() == pytest.approx(0.35, abs=0.07)


def test_what_does_not_fit_together_is_refused():
    with pytest.raises(ConfigError, match="as many depths"):
        PinpointConfig(channels=(4, 4, 4, 4, 4))
    with pytest.raises(ConfigError, match="decoder_units"):
        model_preset("pinpoint", decoder_units=390)


def test_the_first_halving_as_a_product_is_the_convolution():
    torch.manual_seed(0)
    layer = convolution(1, 5, kernel=HALVING_KERNEL, stride=2)
    with torch.no_grad():
        layer.bias.normal_()
    ink = torch.rand(3, 1, 32, 64)
    assert torch.allclose(first_halving(layer, ink), layer(ink), atol=1e-6)


@torch.no_grad()
def test_hidden_words_are_hidden_in_training_only():
    model, plain = make_model(word_dropout=0.5), make_model()
    pixels, lengths = make_pixels(model), torch.tensor([5, 3])
    assert torch.equal(model(pixels, TARGETS, lengths).logits, plain(pixels, TARGETS, lengths).logits)
    model.train(), plain.train()
    first, second = (model(pixels, TARGETS, lengths).logits for _ in range(2))
    assert not torch.equal(first, second)
    assert torch.equal(plain(pixels, TARGETS, lengths).logits, plain(pixels, TARGETS, lengths).logits)
    blind = make_model(word_dropout=0.999999).train()
    other = TARGETS.flip(1)
    assert torch.equal(blind(pixels, TARGETS, lengths).logits, blind(pixels, other, lengths).logits)
    with pytest.raises(ConfigError, match="word_dropout"):
        model_preset("pinpoint", word_dropout=1.0)


def test_a_canvas_without_ink_is_seen_by_one_cell():
    model = make_model()
    white = torch.full((2, *model.config.canvas_shape), 255, dtype=torch.uint8)
    memory = model.encode(white)
    assert memory["cells"].tolist() == [[0], [0]]
    logits, attention = decode(model, white)
    assert torch.isfinite(logits).all()
    assert attention.sum(dim=(2, 3) if attention.ndim == 4 else 2).allclose(torch.ones(2, 5).double())


def test_cells_are_those_near_the_first_and_the_last_dark_pixel():
    """One dark pixel is enough, wherever it is."""
    model = make_model()
    rows, columns = model.config.grid
    for y, x in [(0, 0), (7, 8), (15, 16), (16, 31), (47, 95), (23, 64)]:
        pixels = torch.full((1, *model.config.canvas_shape), 255, dtype=torch.uint8)
        pixels[0, y + FRAME_PX, x + FRAME_PX] = 0
        top, bottom = model.config.near_cells(y, y, num_cells=rows)
        left, right = model.config.near_cells(x, x, num_cells=columns)
        near = [row * columns + column for row in range(top, bottom) for column in range(left, right)]
        assert model.encode(pixels)["cells"].tolist() == [near]
