"""Weights between two checkpoints: shared rows are mixed, new tokens keep theirs."""

import pytest
import torch

from i2l.model.average import average_weights
from i2l.model.checkpoint import CheckpointError


def test_shared_rows_are_mixed_and_new_ones_stay():
    later = {"a": torch.tensor([[1.0], [3.0], [5.0]]), "b": torch.tensor([2.0])}
    earlier = {"a": torch.tensor([[0.0], [1.0]]), "b": torch.tensor([0.0])}
    mixed = average_weights(later, earlier, share=0.75)
    assert mixed["a"].tolist() == [[0.75], [2.5], [5.0]]
    assert mixed["b"].tolist() == [1.5]


def test_other_networks_are_refused():
    with pytest.raises(CheckpointError, match="different networks"):
        average_weights({"a": torch.zeros(1)}, {"b": torch.zeros(1)}, share=0.5)
    with pytest.raises(CheckpointError, match="another shape of a"):
        average_weights({"a": torch.zeros(2, 2)}, {"a": torch.zeros(2, 3)}, share=0.5)
