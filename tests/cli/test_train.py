import os
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from i2l.cli import app
from i2l.config import ConfigError
from i2l.errors import I2LError
from i2l.model.checkpoint import load_network, read_checkpoint

SMALL = [
    "model.height_px=96",
    "model.width_px=128",
    "model.channels=[4, 4, 4, 4, 4]",
    "model.lstm_units=8",
    "training.length_classes=[10]",
    "training.log_every=1",
    "training.validate_every=2",
]


def test_settings_that_do_not_exist_are_named(tmp_path):
    command = ["train", "--data", str(tmp_path), "--out", str(tmp_path / "run"), "--set", "training.pace=3"]
    result = CliRunner().invoke(app, [*command, "--set", "model.size=1"])
    assert isinstance(result.exception, ConfigError)
    assert "training.pace" in str(result.exception)
    assert "model.size" in str(result.exception)
    assert not (tmp_path / "run").exists()


def test_a_folder_that_is_no_dataset_is_named(tmp_path):
    result = CliRunner().invoke(app, ["train", "--data", str(tmp_path), "--out", str(tmp_path / "run")])
    assert isinstance(result.exception, I2LError)
    assert str(tmp_path) in str(result.exception)


@pytest.mark.slow
@pytest.mark.tex
def test_from_formulas_to_a_model_by_two_processes(tmp_path):
    formulas = [f"{a} + {b} ^ {c}\n" for a in "abxy" for b in "abxy" for c in "abxy"]
    (tmp_path / "formulas.txt").write_text("".join(formulas))
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    i2l = [sys.executable, "-m", "i2l.cli"]
    build = ["build", "--formulas", str(tmp_path / "formulas.txt"), "--out", str(tmp_path / "data")]
    subprocess.run([*i2l, *build, "--val-fraction", "0.2"], check=True, env=environment)
    settings = [part for setting in SMALL for part in ("--set", setting)]
    train = ["train", "--data", str(tmp_path / "data"), "--out", str(tmp_path / "run"), "--device", "cpu"]
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    done = subprocess.run(
        [
            *torchrun,
            "-m",
            "i2l.cli",
            *train,
            "--batch-size",
            "8",
            "--max-steps",
            "3",
            "--beam-width",
            "2",
            *settings,
        ],
        check=True,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert "2 x cpu" in done.stderr
    assert "finished after 3 steps" in done.stdout
    model, checkpoint = load_network(tmp_path / "run")
    assert checkpoint.metrics["num_formulas"] > 0
    assert checkpoint.metrics["decoder"] == "beam2"
    assert set(checkpoint.metrics["decoders"]) == {"greedy", "beam2"}
    assert model.config.lstm_units == 8
    # One process goes on with what two began.
    subprocess.run(
        [*i2l, *train, "--batch-size", "8", "--max-steps", "4", *settings], check=True, env=environment
    )
    last = max((tmp_path / "run" / "checkpoints").iterdir())
    assert read_checkpoint(last).step == 4
