import copy

import pytest
import torch
from torch import nn

from i2l.training.trainer import (
    FlatGradients,
    WeightAverage,
    build_optimizer,
    scheduled_learning_rate,
    set_learning_rate,
)


def rate(step, progress, **changes):
    settings = {"peak": 2.0, "schedule": "cosine", "warmup_steps": 3, "final_fraction": 0.1} | changes
    return scheduled_learning_rate(step=step, progress=progress, **settings)


def test_schedule():
    assert [rate(step, 0.0) for step in range(5)] == [0.5, 1.0, 1.5, 2.0, 2.0]
    assert rate(99, 0.5) == pytest.approx(1.1)
    assert rate(99, 1.0) == rate(99, 1.7) == pytest.approx(0.2)
    assert rate(99, 0.7, schedule="constant") == rate(0, 0.0, schedule="constant", warmup_steps=0) == 2.0


def model_and_batch():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2)), torch.randn(5, 3)


def optimizer_for(model, *, kind):
    return build_optimizer(
        regularized=[p for p in model.parameters() if p.ndim > 1],
        free=[p for p in model.parameters() if p.ndim == 1],
        kind=kind,
        beta1=0.5,
        beta2=0.9,
        epsilon=1e-8,
        weight_decay=0.2,
    )


def test_adam_is_torch_adam_with_the_papers_betas():
    model, batch = model_and_batch()
    plain = copy.deepcopy(model)
    ours, theirs = optimizer_for(model, kind="adam"), torch.optim.Adam(plain.parameters(), 0.01, (0.5, 0.9))
    gradients = FlatGradients(list(model.parameters()))
    for _ in range(3):
        gradients.buffer.zero_()
        model(batch).square().mean().backward()
        set_learning_rate(ours, 0.01)
        ours.step()
        theirs.zero_grad()
        plain(batch).square().mean().backward()
        theirs.step()
    for a, b in zip(model.parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-6)


def test_adamw_decays_the_regularized_weights_only():
    model, _ = model_and_batch()
    before = copy.deepcopy(model)
    FlatGradients(list(model.parameters()))
    optimizer = optimizer_for(model, kind="adamw")
    set_learning_rate(optimizer, 0.5)
    optimizer.step()
    for a, b in zip(model.parameters(), before.parameters(), strict=True):
        torch.testing.assert_close(a, b * (0.9 if a.ndim > 1 else 1.0))


def test_gradients_are_views_and_clip_like_torch():
    model, batch = model_and_batch()
    plain = copy.deepcopy(model)
    gradients = FlatGradients(list(model.parameters()))
    for each in (model, plain):
        (9 * each(batch)).square().sum().backward()
    expected = nn.utils.clip_grad_norm_(plain.parameters(), 1.0)
    torch.testing.assert_close(gradients.clip(1.0), expected)
    for a, b in zip(model.parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(a.grad, b.grad, rtol=1e-4, atol=1e-7)
    untouched = gradients.buffer.clone()
    gradients.clip(0.0)
    gradients.clip(100.0)
    assert torch.equal(gradients.buffer, untouched)


def test_weight_average_swaps_and_goes_on():
    model, _ = model_and_batch()
    weight = model[0].weight
    average = WeightAverage(list(model.parameters()), decay=0.9)
    expected, values = weight.detach().clone(), []
    for number in range(1, 60):
        with torch.no_grad():
            weight.add_(1.0)
        average.update()
        decay = min(0.9, (1 + number) / (10 + number))
        expected = decay * expected + (1 - decay) * weight.detach()
        values.append(weight.detach().clone())
    with average.swapped_in():
        torch.testing.assert_close(weight.detach(), expected, rtol=1e-5, atol=1e-4)
    assert torch.equal(weight, values[-1])
    other = WeightAverage(list(copy.deepcopy(model).parameters()), decay=0.9)
    other.load(average.averages, average.num_updates)
    assert torch.equal(other.averages[0], average.averages[0])
    assert other.num_updates == 59
