"""Attention belongs to the printed hypothesis: given its tokens, the model looks at the same places."""

import numpy as np
import pytest
import torch

from i2l.explain.explanation import find_alternatives, replay_tokens
from i2l.formulas.vocabulary import Vocabulary
from i2l.inference.decoding import BeamOptions, beam_search
from i2l.inference.torch_backend import TorchBackend
from i2l.model.calstm.config import CalstmConfig
from i2l.model.calstm.network import Recognizer

GRIDS = {"nopool": 1, "strips": 2}


def small_model(pool_rows):
    """Weights far from zero, so that hypotheses differ in what they look at."""
    config = CalstmConfig(
        height_px=64,
        width_px=160,
        channels=(4, 4, 4, 4, 4),
        pool_rows=pool_rows,
        lstm_units=24,
        attention_units=(16, 16),
        output_units=16,
        init_units=8,
        embedding_units=8,
    )
    torch.manual_seed(1)
    model = Recognizer(config, vocab_size=12).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(3)
    return config, model


@pytest.mark.parametrize("pool_rows", GRIDS.values(), ids=GRIDS.keys())
def test_the_winners_attention_is_that_of_its_tokens(pool_rows):
    config, model = small_model(pool_rows)
    canvases = np.random.default_rng(0).integers(0, 256, (6, *config.canvas_shape), np.uint8)
    backend = TorchBackend(model)
    found = beam_search(
        backend,
        backend.encode(canvases),
        arrays=backend.arrays,
        options=BeamOptions(width=5, max_steps=20, n_best=5, length_penalty=0.5),
    )
    switched = 0
    for rank in (0, 1):
        readings = [hypotheses[rank] for hypotheses in found]
        replays = replay_tokens(backend, canvases, [reading.token_ids for reading in readings])
        for reading, replay in zip(readings, replays, strict=True):
            steps = len(reading.token_log_probs)
            assert replay.attention.shape == (len(reading.token_ids) + 1, *config.grid)
            np.testing.assert_allclose(replay.attention[:steps], reading.attention, atol=1e-4)
            targets = [*reading.token_ids, Vocabulary.eos_id][:steps]
            np.testing.assert_allclose(
                replay.log_probs[np.arange(steps), targets], reading.token_log_probs, atol=1e-4
            )
            np.testing.assert_allclose(replay.attention.sum((1, 2)), 1, atol=1e-5)
        lengths = [min(len(a[0].attention), len(a[1].attention)) for a in found]
        switched += sum(
            np.abs(a[0].attention[:n] - a[1].attention[:n]).max() > 1e-2
            for a, n in zip(found, lengths, strict=True)
        )
    assert switched, "another hypothesis must look elsewhere, or this test could not fail"


def test_alternatives_are_the_likeliest_others():
    vocabulary = Vocabulary(["<eos>", "<bos>", "a", "b", "c"])
    log_probs = np.log(
        np.array([[0.1, 0.3, 0.05, 0.5, 0.05], [0.6, 0.0, 0.2, 0.15, 0.05]], np.float32) + 1e-30
    )
    found = find_alternatives(log_probs, [3, 0], vocabulary, count=2)
    assert [[token for token, _ in step] for step in found] == [["<eos>", "a"], ["a", "b"]]
    assert found[1][0][1] == pytest.approx(0.2)
