import pytest

from i2l.config import ConfigError, TrainConfig
from i2l.training.settings import parse_changes, resolve_config


def test_flags_win_over_the_file_and_the_file_over_the_preset(tmp_path):
    file = tmp_path / "run.yaml"
    file.write_text(
        "preset: strips\nmodel: {lstm_units: 64, init_units: 7}\n"
        "training: {learning_rate: 1e-3, length_classes: [10, 20]}\n"
    )
    config = resolve_config(file=file, changes={"model": {"lstm_units": 32}})
    assert (config.model.pool_rows, config.model.lstm_units, config.model.init_units) == (4, 32, 7)
    assert (config.training.learning_rate, config.training.length_classes) == (1e-3, (10, 20))
    assert resolve_config(preset="nopool", file=file).model.pool_rows == 1


def test_toml_and_the_saved_file_give_the_same(tmp_path):
    file = tmp_path / "run.toml"
    file.write_text(
        "[objective]\nlabel_smoothing = 0.1\n[training]\nbatch_size = 8\nlength_classes = [32, 64]\n"
    )
    config = resolve_config(file=file)
    assert config.objective.label_smoothing == 0.1
    config.save(tmp_path / "again.yaml")
    assert resolve_config(file=tmp_path / "again.yaml") == config


def test_the_defaults_are_the_papers():
    config = resolve_config()
    training = config.training
    assert (training.optimizer, training.learning_rate, training.beta1, training.beta2) == (
        "adam",
        1e-4,
        0.5,
        0.9,
    )
    assert (training.epsilon, training.batch_size, training.precision) == (1e-8, 56, "float32")
    assert training.length_classes == (28, 35, 41, 48, 55, 64, 75, 88, 105, 150)
    assert (config.objective.l2, config.objective.label_smoothing, training.clip_norm) == (5e-5, 0, 0)


def test_assignments():
    assert parse_changes(
        ["training.beta1=0.9", "training.optimizer=adamw", "model.init_model=false", "model.channels=[1, 2]"]
    ) == {
        "training": {"beta1": 0.9, "optimizer": "adamw"},
        "model": {"init_model": False, "channels": [1, 2]},
    }
    assert resolve_config(changes=parse_changes(["model.cell_clip=3.0"])).model.cell_clip == 3.0
    assert resolve_config(changes=parse_changes(["model.cell_clip=none"])).model.cell_clip is None
    with pytest.raises(ConfigError, match=r"section.field=value"):
        parse_changes(["beta1=0.9"])


def test_every_unknown_or_ill_typed_field_is_named():
    with pytest.raises(ConfigError) as error:
        resolve_config(
            changes={
                "training": {"lerning_rate": 1, "batch_size": 1.5, "optimizer": "sgd", "seed": True},
                "model": {"depth": 3},
                "data": {"x": 1},
            }
        )
    for name in (
        "training.lerning_rate",
        "Did you mean training.learning_rate?",
        "model.depth",
        "data",
        "training.batch_size = 1.5",
        "training.optimizer = 'sgd'",
        "training.seed = True",
    ):
        assert name in str(error.value)


@pytest.mark.parametrize(
    ("name", "text"), [("a.yaml", "a: [1"), ("a.toml", "a = ["), ("a.json", "{}"), ("b.yaml", "3")]
)
def test_bad_files_say_so(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    with pytest.raises(ConfigError, match=name):
        resolve_config(file=tmp_path / name)
    with pytest.raises(ConfigError, match="missing"):
        resolve_config(file=tmp_path / "missing.yaml")


def test_all_that_is_wrong_with_a_config_is_said():
    with pytest.raises(ConfigError, match=r"batch_size.*length_classes must rise.*cosine needs max_steps"):
        TrainConfig(batch_size=0, length_classes=(3, 3), schedule="cosine")


def test_a_list_of_texts_is_a_setting():
    config = resolve_config(changes={"training": {"emphasis": ["hepth2003=3"]}})
    assert config.training.emphasis == ("hepth2003=3",)
