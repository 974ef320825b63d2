"""The Triton kernels against their torch counterparts: on a GPU, or by Triton's interpreter without one."""

import os

import pytest
import torch

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
if DEVICE == "cpu":
    os.environ["TRITON_INTERPRET"] = "1"  # read when Triton is imported
pytest.importorskip("triton")

from i2l.model.calstm import encoder, triton_kernels, unrolled  # noqa: E402
from i2l.model.calstm.unrolled import AttentionWeights  # noqa: E402

TOLERANCE = {"rtol": 1e-4, "atol": 2e-5}


def on_device(value):
    if isinstance(value, torch.Tensor):
        return value.to(DEVICE)
    if isinstance(value, AttentionWeights):
        return AttentionWeights(*(on_device(part) for part in vars(value).values()))
    return value


def check(found, expected):
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one.cpu().to(other.dtype), other, **TOLERANCE)


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)


@pytest.mark.parametrize("channels", [5, 130])
def test_pool_and_paste(channels):
    raw, bias, background = (
        torch.randn(2, 6, 10, channels),
        torch.randn(channels),
        torch.randn(7, 9, channels),
    )
    expected = encoder.pool_and_paste(raw, bias, background, 3, 1)
    found = triton_kernels.pool_and_paste(*map(on_device, (raw, bias, background)), 3, 1)
    check(found, expected)
    grad = torch.randn_like(expected[0])
    arguments = (grad, *expected)
    check(
        triton_kernels.pool_and_paste_backward(*map(on_device, arguments), 3, 1),
        encoder.pool_and_paste_backward(*arguments, 3, 1),
    )


@pytest.mark.parametrize("margins", [(3, 3, 1, 1), (1, 3, 3, 1)])
def test_first_layer(margins):
    pixels = torch.randint(0, 256, (2, 8, 12), dtype=torch.uint8)
    kernel, bias = torch.randn(6, 1, 3, 3), torch.randn(6)
    height, width = (8 + margins[2] + margins[3] - 2) // 2, (12 + margins[0] + margins[1] - 2) // 2
    background = torch.randn(height + 3, width + 4, 6)
    expected = encoder.first_layer(pixels, kernel, bias, background, margins, 2, 1)
    found = triton_kernels.first_layer(*map(on_device, (pixels, kernel, bias, background)), margins, 2, 1)
    check(found, expected)
    arguments = (torch.randn_like(expected[0]), *expected, pixels)
    check(
        triton_kernels.first_layer_backward(*map(on_device, arguments), margins, 2, 1),
        encoder.first_layer_backward(*arguments, margins, 2, 1),
    )


def attention_weights(first, second, locations):
    hidden, score = torch.randn(first, second) / 4, torch.randn(locations, second) / 4
    return AttentionWeights(hidden, torch.randn(second), score, torch.randn(locations))


@pytest.mark.parametrize("penalty", [False, True])
@pytest.mark.parametrize("sizes", [(3, 40, 24, 17, 12), (2, 256, 136, 136, 512), (2, 256, 128, 34, 2048)])
def test_attention(sizes, penalty):
    batch, first, second, locations, units = sizes
    weights = attention_weights(first, second, locations)
    features = torch.randn(batch, locations, units)
    sums, prepared = torch.randn(batch, first), torch.randn(batch, first)

    def room(device):
        shapes = {"first": first, "second": second, "scores": locations, "context": units}
        made = {f"out_{name}": torch.empty(batch, width, device=device) for name, width in shapes.items()}
        made["out_normalizer"] = torch.empty(batch, device=device)
        return made

    expected, found = room("cpu"), room(DEVICE)
    unrolled.attention_forward(sums, prepared, weights, features, **expected)
    given = map(on_device, (sums, prepared, weights, features))
    triton_kernels.attention_forward(*given, **found)
    check([found[name] for name in expected], expected.values())

    trace = {name.removeprefix("out_"): value for name, value in expected.items()}
    grads = torch.randn(batch, units + 3)[:, 3:], torch.randn(batch, units)
    by_attention = torch.randn(batch, locations) if penalty else None
    wanted, made = room("cpu"), room(DEVICE)
    for out in (wanted, made):
        del out["out_normalizer"]
    unrolled.attention_backward(*grads, by_attention, weights, features, **trace, **wanted)
    order = ["context", "scores", "second", "first"]
    triton_kernels.attention_backward(
        *map(on_device, (*grads, by_attention, weights, features)),
        tuple(on_device(trace[name]) for name in ("context", "first", "second", "scores", "normalizer")),
        tuple(made[f"out_{name}"] for name in order),
    )
    check([made[name] for name in wanted], wanted.values())


@pytest.mark.parametrize("clip", [None, 0.4])
def test_lstm(clip):
    batch, units, steps = 3, 300, 4
    sums, bias, peepholes = torch.randn(batch, 4 * units), torch.randn(4 * units), torch.randn(3, units)
    cell = torch.randn(batch, units)

    def room(device):
        wide = torch.zeros(batch, 2 * units + 5, device=device)
        return {
            "out_cell": torch.empty(batch, units, device=device),
            "out_hidden": wide[:, :units],
            "out_upward": wide[:, -units:],
        }

    expected, found = room("cpu"), room(DEVICE)
    unrolled.lstm_forward(sums, bias, peepholes, cell, clip, **expected)
    triton_kernels.lstm_forward(*map(on_device, (sums, bias, peepholes, cell)), clip, **found)
    check(found.values(), expected.values())

    for recurrent in (None, torch.randn(batch, units)):
        above, grad_cell = torch.randn(batch, units + 7)[:, 2 : units + 2], torch.randn(batch, units)
        device_cell, out = on_device(grad_cell.clone()), torch.empty(batch, 4 * units)
        device_out = on_device(torch.empty(batch, 4 * units))
        given = (sums, bias, peepholes, cell)
        triton_kernels.lstm_backward(
            on_device(above), on_device(recurrent), device_cell, *map(on_device, given), clip, device_out
        )
        unrolled.lstm_backward(above, recurrent, grad_cell, *given, clip, out_sums=out)
        check([device_cell, device_out], [grad_cell, out])

    grad_sums, cells = torch.randn(steps, batch, 4 * units), torch.randn(steps + 1, batch, units)
    check(
        triton_kernels.lstm_sums_backward(on_device(grad_sums), on_device(cells)),
        unrolled.lstm_sums_backward(grad_sums, cells),
    )
