"""A checkpoint carries the scores of its own step, or none, and what is needed to go on."""

from types import SimpleNamespace

import torch

from i2l.model.checkpoint import list_checkpoints, read_checkpoint
from i2l.training.batches import SamplerState
from i2l.training.monitor import read_rows
from i2l.training.run import TrainOptions, train
from i2l.training.trainer import Trainer
from tests.training.conftest import small_config


def test_a_checkpoint_without_a_validation_has_no_scores(tmp_path, dataset):
    config = small_config(max_steps=6, validate_every=3, checkpoint_every=1, keep_every=1)
    train(dataset, out=tmp_path / "run", config=config, options=TrainOptions(device="cpu"))
    saved = {c.step: c.metrics for c in map(read_checkpoint, list_checkpoints(tmp_path / "run"))}
    assert sorted(saved) == [1, 2, 3, 4, 5, 6]
    assert [step for step, metrics in saved.items() if metrics] == [3, 6]
    for row in read_rows(tmp_path / "run" / "metrics.jsonl"):
        if row["kind"].startswith("validation"):
            assert saved[row["step"]]["edit_distance"] == row["edit_distance"]


def test_what_a_gpu_began_goes_on_without_one(monkeypatch):
    """The random numbers of the processor are those of the checkpoint; there is no GPU to give its own to."""
    model = torch.nn.Linear(2, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    went_to = []
    trainer = SimpleNamespace(
        _check=lambda checkpoint: None,
        sampler=SimpleNamespace(batches_per_epoch=3, go_to=went_to.append),
        model=model,
        average=None,
        _optimizer=optimizer,
        _processes=SimpleNamespace(count=1, rank=0, device=torch.device("cpu")),
    )
    torch.manual_seed(5)
    state = {
        "batches_per_epoch": 3,
        "own_weights": None,
        "optimizer": optimizer.state_dict(),
        "sampler": {"seed": 4, "epoch": 1, "position": 2},
        "elapsed_s": 7.5,
        "random": [{"cpu": torch.get_rng_state(), "cuda": torch.zeros(16, dtype=torch.uint8)}],
    }
    expected = torch.rand(3)
    weights = {name: torch.full_like(value, 0.5) for name, value in model.state_dict().items()}
    checkpoint = SimpleNamespace(
        path="c", step=40, load_weights=lambda: weights, load_training_state=lambda: state
    )
    given = []
    monkeypatch.setattr(torch.cuda, "set_rng_state", lambda *state: given.append(state))
    Trainer.resume(trainer, checkpoint)
    assert given == []
    assert torch.equal(torch.rand(3), expected)
    assert (trainer.step_count, trainer.elapsed_s, went_to) == (40, 7.5, [SamplerState(4, 1, 2)])
    assert torch.equal(model.weight, weights["weight"])
