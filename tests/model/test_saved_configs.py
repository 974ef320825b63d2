"""Configs in the form of before, which mixed the settings of both networks, still give the same models."""

import dataclasses
import json
import shutil

import pytest

from i2l.config import ConfigError
from i2l.files import write_checksums
from i2l.inference.model_folder import ModelError, find_model, read_model_folder
from i2l.model.calstm.config import CalstmConfig
from i2l.model.config import NETWORKS, model_preset, network_class, presets, read_model_config
from i2l.model.pinpoint.config import PinpointConfig
from i2l.training.settings import resolve_config

# The model section of a checkpoint of the first format, defaults of its time.
MIXED = {
    "network": "calstm",
    "height_px": 128,
    "width_px": 1088,
    "max_tokens": 150,
    "channels": [64, 128, 256, 512, 512],
    "pool_rows": 1,
    "pool_columns": 1,
    "attention": "full",
    "attention_units": [256, 128],
    "beta_gate": False,
    "embedding_units": 64,
    "lstm_layers": 2,
    "lstm_units": 1500,
    "lstm_skip": False,
    "cell_clip": None,
    "calstm_cells": 1,
    "init_model": True,
    "init_units": 100,
    "output_units": 358,
    "dropout": 0.0,
    "depths": [0, 2, 3, 1],
    "reach_px": 4,
    "decoder_units": 384,
    "decoder_layers": 4,
    "decoder_heads": 6,
    "decoder_shared_heads": 2,
}
MIXED_PINPOINT = MIXED | {
    "network": "transformer",
    "height_px": 1408,
    "width_px": 1600,
    "max_tokens": 600,
    "channels": [32, 64, 128, 256],
    "dropout": 0.1,
}


def without(fields, *names):
    return {name: value for name, value in fields.items() if name not in names}


def test_the_mixed_form_is_read():
    assert read_model_config(MIXED) == model_preset("nopool")
    assert read_model_config(MIXED | {"pool_rows": 4}) == model_preset("strips")
    assert read_model_config(MIXED_PINPOINT) == model_preset("pinpoint")
    changed = read_model_config(MIXED_PINPOINT | {"decoder_units": 48, "reach_px": 2})
    assert changed == PinpointConfig(decoder_units=48, reach_px=2)


def test_what_did_not_exist_yet_had_its_default():
    newer = {"network", "max_tokens", "calstm_cells"}
    foreign = set(MIXED) - set(CalstmConfig().to_dict())
    oldest = without(MIXED, *newer, *foreign)
    assert read_model_config(oldest) == model_preset("nopool")
    assert read_model_config(without(MIXED_PINPOINT, "max_tokens")).max_tokens == 150


@pytest.mark.parametrize("name", ["nopool", "strips", "pinpoint"])
def test_the_new_form_has_the_settings_of_one_network(name):
    saved = json.loads(json.dumps(model_preset(name).to_dict()))
    kind = network_class(saved["network"])
    assert set(saved) == {"network", *(field.name for field in dataclasses.fields(kind))}
    assert read_model_config(saved) == model_preset(name)


def test_every_network_of_the_list_says_its_name():
    for name in NETWORKS:
        assert network_class(name).network == name
        assert network_class(name).presets
    assert list(presets()) == ["nopool", "strips", "pinpoint"]


def test_settings_of_another_network_are_refused():
    with pytest.raises(ConfigError, match="no field lstm_units"):
        model_preset("pinpoint", lstm_units=3)
    with pytest.raises(ConfigError, match="no field decoder_units"):
        read_model_config({"network": "calstm", "decoder_units": 3})
    with pytest.raises(ConfigError, match="no network 'vgg'"):
        read_model_config({"network": "vgg"})
    with pytest.raises(ConfigError, match=r"Unknown settings: model.lstm_units"):
        resolve_config(preset="pinpoint", changes={"model": {"lstm_units": 3}})
    with pytest.raises(ConfigError, match=r"model\.network is one of calstm, pinpoint"):
        resolve_config(changes={"model": {"network": "vgg"}})


def test_the_config_file_of_an_old_run_is_taken_again(tmp_path):
    for fields, preset in ((MIXED, "nopool"), (MIXED_PINPOINT, "pinpoint")):
        file = tmp_path / "config.toml"
        lines = [f"{name} = {json.dumps(value)}" for name, value in fields.items() if value is not None]
        file.write_text("[model]\n" + "\n".join(lines))
        assert resolve_config(file=file).model == model_preset(preset)


def test_a_model_folder_of_the_first_format_is_read(tmp_path):
    """The scale of its text stood beside the network then."""
    now = find_model("pinpoint")
    folder = tmp_path / "old"
    shutil.copytree(now, folder)
    content = json.loads((folder / "config.json").read_text())
    old = content | {"format": "i2l-model-1", "dpi": 180.0, "model": MIXED_PINPOINT}
    (folder / "config.json").write_text(json.dumps(old))
    write_checksums(folder)
    read = read_model_folder(folder)
    assert read.config == dataclasses.replace(model_preset("pinpoint"), dpi=180.0)
    (folder / "config.json").write_text(json.dumps(old | {"format": "i2l-model-99"}))
    with pytest.raises(ModelError, match="i2l-model-99"):
        read_model_folder(folder)
