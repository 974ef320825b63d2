"""A checkpoint carries the scores of its own step, or none."""

from i2l.model.checkpoint import list_checkpoints, read_checkpoint
from i2l.training.monitor import read_rows
from i2l.training.run import TrainOptions, train
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
