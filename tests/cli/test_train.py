import os
import subprocess
import sys
from dataclasses import replace

import pytest
from typer.testing import CliRunner

from i2l.cli import app
from i2l.config import ConfigError
from i2l.dataset.sources import RECIPES, text_sources
from i2l.errors import I2LError
from i2l.model.checkpoint import load_network, read_checkpoint
from tests.dataset.conftest import fake_tex, small_build  # noqa: F401 - fixtures

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


def test_a_world_dataset_in_pixel_form_trains_and_says_what_it_leaves_out(small_build, tmp_path):  # noqa: F811
    lines = [f"{a} + {b} ^ {c}" for a in "abx" for b in "aby" for c in "xy"] + ["W + a", "W + b", "W + x"]
    (tmp_path / "formulas.txt").write_text("\n".join(lines))
    recipe = replace(RECIPES["world"], min_token_count=1, val_fraction=0.2, test_fraction=0.0)
    small_build(text_sources([tmp_path / "formulas.txt"]), out="data", recipe=recipe)
    settings = [part for setting in SMALL for part in ("--set", setting)]
    command = ["train", "--data", str(tmp_path / "data"), "--out", str(tmp_path / "run"), "--device", "cpu"]
    result = CliRunner().invoke(app, [*command, "--max-steps", "1", "--batch-size", "4", *settings])
    assert result.exit_code == 0, result.exception
    assert "Left out of training: " in result.stderr
    assert "too large for the model at its scale" in result.stderr
    assert "finished after 1 steps" in result.stdout


@pytest.mark.slow
@pytest.mark.tex
def test_from_formulas_to_a_model_by_two_processes(tmp_path):
    formulas = [f"{a} + {b} ^ {c}\n" for a in "abxy" for b in "abxy" for c in "abxy"]
    (tmp_path / "formulas.txt").write_text("".join(formulas))
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    i2l = [sys.executable, "-m", "i2l"]
    build = ["build", "--formulas", str(tmp_path / "formulas.txt"), "--out", str(tmp_path / "data")]
    subprocess.run([*i2l, *build, "--val-fraction", "0.2"], check=True, env=environment)
    settings = [part for setting in SMALL for part in ("--set", setting)]
    train = ["train", "--data", str(tmp_path / "data"), "--out", str(tmp_path / "run"), "--device", "cpu"]
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    done = subprocess.run(
        [
            *torchrun,
            "-m",
            "i2l",
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
