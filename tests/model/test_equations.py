"""Each equation of the paper against its transcription in NumPy (equations.py)."""

import numpy as np
import pytest
import torch

from i2l.config import ObjectiveConfig
from tests.model import equations
from tests.model.conftest import make_batch, make_model, small_config

VARIANTS = {
    "nopool": {},
    "strips": {"pool_rows": 2},
    "columns": {"pool_columns": 3},
    "no-init": {"init_model": False},
    "one-layer": {"lstm_layers": 1},
    "three-layers-skip": {"lstm_layers": 3, "lstm_skip": True},
    "shared-attention": {"attention": "shared"},
    "beta-gate": {"beta_gate": True},
    "cell-clip": {"cell_clip": 0.2},
    "no-output-skips": {"output_skips": False},
}


@pytest.mark.parametrize("changes", VARIANTS.values(), ids=VARIANTS)
def test_logits_and_attention(changes):
    config = small_config(**changes)
    model = make_model(config)
    pixels, token_ids, lengths = make_batch(config, batch=2)
    output = model(pixels, token_ids, lengths)
    w = equations.weights(model)
    for index in range(2):
        logits, attention = equations.read(w, config, pixels[index].numpy(), token_ids[index].tolist())
        np.testing.assert_allclose(output.logits[index].detach(), logits, rtol=0, atol=1e-12)
        np.testing.assert_allclose(output.attention[index].detach(), attention, rtol=0, atol=1e-12)


def test_features_lie_row_by_row():
    config = small_config(pool_rows=2, pool_columns=3)
    model = make_model(config)
    pixels, _, _ = make_batch(config, batch=1)
    features = model.encode(pixels)["features"][0].detach()
    np.testing.assert_allclose(
        features, equations.encode(equations.weights(model), config, pixels[0].numpy()), atol=1e-12
    )


@pytest.mark.parametrize(
    "objective",
    [
        ObjectiveConfig(),
        ObjectiveConfig(l2=0.01, alpha_penalty=0.3, ase_target=7.0),
        ObjectiveConfig(l2=0, label_smoothing=0.1),
    ],
)
def test_objective(objective):
    config = small_config()
    model = make_model(config)
    pixels, token_ids, lengths = make_batch(config, batch=4)
    output = model(pixels, token_ids, lengths)
    result = model.loss(output, token_ids, lengths, objective=objective)
    expected = equations.objective(
        output.logits.detach().numpy(),
        output.attention.detach().numpy(),
        token_ids.tolist(),
        lengths.tolist(),
        [parameter.detach().numpy() for parameter in model.regularized_parameters()],
        objective,
    )
    for name, value in expected.items():
        assert getattr(result, name).item() == pytest.approx(value, rel=1e-12), name


def test_attention_errors_reach_0_and_100():
    from i2l.model.network import attention_errors

    lengths = torch.tensor([4, 4])
    attention = torch.zeros(2, 6, 2, 2)
    attention[0, :, 0, 0] = 1  # always the same location
    attention[1] = 0.25  # all alike
    ase, aae = attention_errors(attention, lengths)
    torch.testing.assert_close(ase, torch.tensor([100.0, 0.0]))
    torch.testing.assert_close(aae, torch.tensor([100.0, 0.0]))
