import json
import math

import pytest
import torch

from i2l.config import ConfigError, ObjectiveConfig
from i2l.model.calstm.config import CalstmConfig
from i2l.model.calstm.network import Recognizer
from i2l.model.config import ModelConfig, model_preset, read_model_config

BLOCKS = {
    ("nopool", 339): {
        "encoder": 3_909_632,
        "embedding": 21_696,
        "cell.attention": 18_263_632,
        "cell.stack.layers.0": 12_466_500,
        "cell.stack.layers.1": 18_010_500,
        "output": 993_789,
        "init_model": 7_569_300,
    },
    ("strips", 339): {
        "encoder": 3_909_632,
        "embedding": 21_696,
        "cell.attention": 18_247_330,
        "cell.stack.layers.0": 21_682_500,
        "cell.stack.layers.1": 18_010_500,
        "output": 1_543_677,
        "init_model": 7_569_300,
    },
    ("strips", 358): {
        "encoder": 3_909_632,
        "embedding": 22_912,
        "cell.attention": 18_247_330,
        "cell.stack.layers.0": 21_682_500,
        "cell.stack.layers.1": 18_010_500,
        "output": 1_550_498,
        "init_model": 7_569_300,
    },
}
TOTALS = {("nopool", 339): 61_235_049, ("strips", 339): 70_984_635, ("strips", 358): 70_992_672}


def count(module):
    return sum(parameter.numel() for parameter in module.parameters())


def on_meta(config, vocab_size):
    with torch.device("meta"):
        return Recognizer(config, vocab_size=vocab_size)


@pytest.mark.parametrize(("preset", "vocab_size"), list(BLOCKS))
def test_parameter_counts_are_those_of_the_authors_code(preset, vocab_size):
    model = on_meta(model_preset(preset), vocab_size)
    counted = {name: count(model.get_submodule(name)) for name in BLOCKS[preset, vocab_size]}
    assert counted == BLOCKS[preset, vocab_size]
    assert count(model) == TOTALS[preset, vocab_size]


@pytest.mark.parametrize("preset", ["nopool", "strips"])
def test_without_init_model_exactly_its_parameters_are_gone(preset):
    assert count(on_meta(model_preset(preset), 339)) - 7_569_300 == count(
        on_meta(model_preset(preset, init_model=False), 339)
    )


def test_output_units_grow_with_a_larger_vocabulary():
    assert on_meta(model_preset("nopool"), 339).output.second.out_features == 358
    assert on_meta(model_preset("nopool"), 500).output.second.out_features == 500


def test_grids_and_feature_lengths():
    nopool, strips = model_preset("nopool"), model_preset("strips")
    assert (nopool.canvas_shape, nopool.grid, nopool.feature_units) == ((130, 1090), (4, 34), 512)
    assert (strips.canvas_shape, strips.grid, strips.feature_units) == ((130, 1090), (1, 34), 2048)


def test_initial_weights_follow_glorot_over_whole_kernels():
    torch.manual_seed(0)
    config = CalstmConfig(height_px=32, width_px=64, channels=(8, 8, 8, 8, 16), lstm_units=40)
    model = Recognizer(config, vocab_size=30)
    attention_in = 2 * 16 + 40
    limits = {
        "encoder.convolutions.1.weight": 9 * 8 + 9 * 8,
        "embedding.weight": 30 + 64,
        "cell.attention.image.weight": attention_in + 256,
        "cell.attention.state.weight": attention_in + 256,
        "cell.stack.layers.0.input_kernel": (64 + 16) + 40 + 160,
        "cell.stack.layers.0.recurrent_kernel": (64 + 16) + 40 + 160,
        "cell.stack.layers.0.peepholes": 40 + 40,
        "output.first.weight": 64 + 40 + 16 + 358,
        "init_model.hidden.weight": 32 + 100,
    }
    parameters = dict(model.named_parameters())
    for name, fans in limits.items():
        limit = math.sqrt(6 / fans)
        assert 0.9 * limit < parameters[name].abs().max() <= limit, name
    for name, parameter in parameters.items():
        if name.endswith("bias"):
            assert not parameter.any(), name


def test_l2_covers_kernels_and_embedding_only():
    model = on_meta(model_preset("nopool"), 339)
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    covered = sorted(names[id(parameter)] for parameter in model.regularized_parameters())
    assert covered == sorted(
        [f"encoder.convolutions.{index}.weight" for index in range(5)]
        + [f"cell.attention.{part}.weight" for part in ("image", "state", "hidden", "score")]
        + [f"output.{part}.weight" for part in ("first", "second", "score")]
        + ["init_model.hidden.weight", *(f"init_model.parts.{index}.weight" for index in range(4))]
        + ["embedding.weight"]
    )


def test_config_survives_json():
    for config in (model_preset("strips", init_model=False, cell_clip=3.0), ObjectiveConfig(l2=0.1)):
        saved = json.loads(json.dumps(config.to_dict()))
        read = read_model_config if isinstance(config, ModelConfig) else ObjectiveConfig.from_dict
        assert read(saved) == config


@pytest.mark.parametrize(
    "make",
    [
        lambda: model_preset("vgg"),
        lambda: model_preset("nopool", size=3),
        lambda: model_preset("nopool", pool_rows=3),
        lambda: model_preset("nopool", width_px=1000),
        lambda: model_preset("nopool", attention="hard"),
        lambda: model_preset("nopool", dropout=1.0),
    ],
)
def test_bad_configs_are_refused(make):
    with pytest.raises(ConfigError):
        make()
