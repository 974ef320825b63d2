"""A batch may be as large as its limits, and no larger."""

import pytest

from i2l.model.network import Window
from i2l.training.batches import BatchLimits

WINDOW = Window(top_px=0, left_px=0, height_px=10, width_px=20)


@pytest.mark.parametrize(
    ("limits", "samples"),
    [
        (BatchLimits(8), 8),
        (BatchLimits(8, pixels=8 * 200), 8),
        (BatchLimits(8, pixels=8 * 200 - 1), 4),
        (BatchLimits(8, tokens=8 * 5), 8),
        (BatchLimits(8, tokens=8 * 5 - 1), 4),
        (BatchLimits(8, pixels=1, tokens=1), 1),
        (BatchLimits(8, pixels=1, multiple=2), 2),
        (BatchLimits(6, pixels=1), 3),
    ],
)
def test_batches_are_halved_until_they_are_within_their_limits(limits, samples):
    assert limits.num_samples(WINDOW, 5) == samples
