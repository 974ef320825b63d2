import json

import numpy as np

from i2l.training.monitor import Monitor, read_rows


def test_rows_survive_and_a_resumed_run_shows_each_step_once(tmp_path):
    monitor = Monitor(tmp_path, step=0)
    for step in (1, 2, 3):
        monitor.write("train", step, {"loss": 1 / step})
    monitor.close()
    with open(tmp_path / "metrics.jsonl", "a") as file:
        file.write('{"kind": "train", "st')  # killed in the middle of a row
    monitor = Monitor(tmp_path, step=2)
    monitor.write("train", 3, {"loss": 0.25, "edit_distance": float("nan")})
    monitor.write_picture("attention/0", 3, np.zeros((4, 6), dtype=np.uint8))
    monitor.close()
    rows = read_rows(tmp_path / "metrics.jsonl")
    assert [row["step"] for row in rows] == [1, 2, 3]
    assert rows[2] == {"kind": "train", "step": 3, "loss": 0.25, "edit_distance": "nan"}


def test_tensorboard_holds_the_same_scalars(tmp_path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    monitor = Monitor(tmp_path, step=0)
    monitor.write("validation/greedy", 7, {"bleu": 0.5})
    monitor.close()
    events = EventAccumulator(str(tmp_path / "tensorboard")).Reload()
    assert [(event.step, event.value) for event in events.Scalars("validation/greedy/bleu")] == [(7, 0.5)]
    json.loads((tmp_path / "metrics.jsonl").read_text())
