"""A step that is not finite is noticed, whatever kind of not finite it is."""

from types import SimpleNamespace

import pytest
import torch

from i2l.training.distributed import Processes
from i2l.training.monitor import DivergedError, RecentSteps
from i2l.training.trainer import SCALARS


def steps_with(name, value):
    """Three steps, the second of which has one value that is not finite."""
    recent = RecentSteps(data=None, processes=Processes(device="cpu"), flops=(1.0, 1.0))
    for step in (1, 2, 3):
        scalars, norm = torch.ones(len(SCALARS)), torch.tensor(1.0)
        if step == 2 and name == "gradient_norm":
            norm = torch.tensor(value)
        elif step == 2:
            scalars[SCALARS.index(name)] = value
        gradients = SimpleNamespace(scalars=scalars)
        result = SimpleNamespace(
            gradients=gradients, gradient_norm=norm, shape="a shape", indices=torch.tensor([9, 7])
        )
        recent.add(step, result)
    return recent


@pytest.mark.parametrize("name", ["loss", "gradient_norm"])
@pytest.mark.parametrize("value", [float("inf"), float("-inf"), float("nan")])
def test_what_is_not_finite_ends_the_run_and_names_its_batch(name, value):
    with pytest.raises(DivergedError, match=r"Step 2 .* training samples 7, 9\."):
        steps_with(name, value).check()


def test_finite_steps_pass():
    assert steps_with("loss", 1e30).check().shape == (3, len(SCALARS) + 1)
