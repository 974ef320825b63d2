"""A network that the package has never heard of trains, is exported and reads, with one line in the list."""

import json

import pytest

from i2l.config import ConfigError
from i2l.inference.export import export_model
from i2l.inference.reader import Reader
from i2l.model.checkpoint import last_checkpoint, load_network
from i2l.model.config import NETWORKS, model_preset, presets
from i2l.training.run import TrainOptions, train
from i2l.training.settings import resolve_config


@pytest.fixture(autouse=True)
def the_one_line(monkeypatch):
    monkeypatch.setitem(NETWORKS, "toy", "tests.model.toy_network:ToyConfig")


def test_it_trains_is_exported_and_reads(dataset, tmp_path):
    changes = {
        "model": {"units": 10},
        "training": {"batch_size": 8, "length_classes": [8, 16], "window_step": 2, "max_steps": 2},
    }
    config = resolve_config(preset="toy", changes=changes)
    for engine in ("plain", "fast"):
        changes["training"]["engine"] = engine
        config = resolve_config(preset="toy", changes=changes)
        result = train(dataset, out=tmp_path / engine, config=config, options=TrainOptions(device="cpu"))
        assert result.step == 2
    again = resolve_config(file=tmp_path / "fast" / "config.yaml")
    assert again == config
    checkpoint = last_checkpoint(tmp_path / "fast")
    network, _ = load_network(checkpoint)
    assert network.config == config.model
    exported = export_model(checkpoint, tmp_path / "model", precision="int8")
    assert exported.parity.logits < 0.1
    assert json.loads((exported.path / "config.json").read_text())["model"]["network"] == "toy"
    assert "a toy of 10 units" in (exported.path / "README.md").read_text()
    pictures = dataset.split("train").images[:3]
    for path in (checkpoint, exported.path):
        reader = Reader(path, beam_width=2, check=False, threads=1)
        assert reader.model.limits == config.model.limits
        readings = reader.read_many(pictures, scale=1)
        assert [reading.attention.shape[1:] for reading in readings] == [(4, 12)] * 3
        assert all(len(reading.tokens) <= 16 + 20 for reading in readings)


def test_its_presets_are_among_the_others_and_its_settings_are_its_own():
    assert {"nopool", "strips", "pinpoint", "toy", "toy-wide"} <= set(presets())
    assert model_preset("toy-wide").units == 24
    assert resolve_config(changes={"model": {"network": "toy", "units": 5}}).model.units == 5
    with pytest.raises(ConfigError, match=r"Unknown settings: model.lstm_units"):
        resolve_config(preset="toy", changes={"model": {"lstm_units": 8}})
