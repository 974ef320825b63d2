"""Every recipe trains on im2latex-100k as it was published, in miniature: a stranger has no other list."""

import json
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from i2l.cli import app
from i2l.config import ObjectiveConfig, TrainConfig
from i2l.model.checkpoint import read_checkpoint

RECIPES = sorted(Path(__file__).parents[2].joinpath("recipes").glob("*.yaml"))
PRESETS = {"world": "pinpoint", "displays": "pinpoint", "hand": "pinpoint"}
SMALL_NETWORK = {
    "nopool": ["height_px=128", "width_px=320", "channels=[4,4,4,4,4]", "lstm_units=8", "output_units=8"],
    "pinpoint": ["height_px=128", "width_px=640", "channels=[4,4,4,8]", "depths=[0,1,1,1]",
                 "decoder_units=48", "decoder_layers=1"],
}  # fmt: skip


def invoke(*arguments):
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == 0, (arguments, result.output, result.exception)


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    """A dataset of im2latex-100k's published files, of which there are four with a few lines."""
    folder = tmp_path_factory.mktemp("im2latex")
    formulas = [f"{a}{n} {sign} {b}" for a in "abc" for b in "xyz" for sign in "+-" for n in ("", "^2")]
    folder.joinpath("im2latex_formulas.lst").write_text("\n".join(formulas))
    for name, numbers in (("train", range(28)), ("validate", range(28, 32)), ("test", range(32, 36))):
        lines = "".join(f"{number} 00{number:08x} basic\n" for number in numbers)
        folder.joinpath(f"im2latex_{name}.lst").write_text(lines)
    out = folder / "built"
    invoke(
        "build", "--from", "im2latex-100k", folder, "--out", out, "--min-token-count", 1, "--jobs", 1, "-q"
    )
    return out


@pytest.mark.tex
@pytest.mark.slow
@pytest.mark.parametrize("recipe", RECIPES, ids=lambda path: path.stem)
def test_a_recipe_runs_on_the_published_data(published, recipe, tmp_path):
    preset = PRESETS.get(recipe.stem, "nopool")
    small = [] if recipe.stem == "smoke" else [f"model.{setting}" for setting in SMALL_NETWORK[preset]]
    small += [
        "training.batch_size=4",
        "training.engine=plain",
        "training.validate_every=0",
        "training.warmup_steps=0",
    ]
    settings = [word for setting in small for word in ("--set", setting)]
    run = tmp_path / "run"
    invoke("train", "--data", published, "--preset", preset, "--out", run, "--config", recipe,
           "--device", "cpu", "--max-epochs", 1, "--max-steps", 1, *settings)  # fmt: skip
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    assert any("bleu" in key for line in lines for key in line), "it is validated too"
    assert read_checkpoint(run).step == 1


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda path: path.stem)
def test_a_recipe_names_no_list(recipe):
    assert "emphasis" not in yaml.safe_load(recipe.read_text()).get("training", {})


def test_the_paper_s_recipe_is_the_paper_s_training():
    """What stands in it is a default, which is the paper's, or concerns speed, the end or validation."""
    recipe = yaml.safe_load(next(path for path in RECIPES if path.stem == "paper").read_text())
    speed = {"precision", "window_step", "min_shape_batches"}
    ours = {name for name, value in recipe["training"].items() if value != getattr(TrainConfig(), name)}
    assert ours == speed | {"max_epochs", "beam_width"}
    assert set(recipe) == {"objective", "training"}
    assert all(value == getattr(ObjectiveConfig(), name) for name, value in recipe["objective"].items())
