import pytest
import torch

from i2l.config import ObjectiveConfig
from tests.model.conftest import make_batch, make_model, small_config

OPTIONS = [{}, {"init_model": False}, {"attention": "shared"}, {"beta_gate": True}, {"calstm_cells": 2}]


@pytest.mark.parametrize("changes", OPTIONS, ids=str)
def test_steps_give_what_forward_gives(changes):
    config = small_config(**changes)
    model = make_model(config)
    pixels, token_ids, lengths = make_batch(config)
    output = model(pixels, token_ids, lengths)
    memory = model.encode(pixels)
    state = model.start(memory)
    words = torch.ones(3, dtype=torch.long)
    for t in range(token_ids.shape[1]):
        logits, state, attention = model.step(memory, state, words)
        torch.testing.assert_close(logits, output.logits[:, t])
        torch.testing.assert_close(attention, output.attention[:, t])
        words = token_ids[:, t]


@pytest.mark.parametrize("changes", OPTIONS, ids=str)
def test_hypotheses_share_the_memory_of_their_image(changes):
    """Three hypotheses per image give what each gives alone."""
    config = small_config(**changes)
    model = make_model(config)
    pixels, _, _ = make_batch(config, batch=2)
    memory = model.encode(pixels)
    state = model.start(memory)
    beams = 3
    wide = {name: part.repeat_interleave(beams, 0) for name, part in state.items()}
    words = torch.arange(2 * beams) + 2
    logits, new_state, attention = model.step(memory, wide, words)
    for beam in range(beams):
        rows = torch.arange(2) * beams + beam
        alone = model.step(memory, state, words[rows])
        torch.testing.assert_close(logits[rows], alone[0])
        torch.testing.assert_close(attention[rows], alone[2])
        for name, part in alone[1].items():
            torch.testing.assert_close(new_state[name][rows], part)


def test_a_stack_of_cells_is_its_cells_one_after_the_other():
    config = small_config(calstm_cells=2)
    model = make_model(config)
    pixels, _, _ = make_batch(config)
    memory = model.encode(pixels)
    state = model.start(memory)
    inputs = torch.randn(3, config.embedding_units, dtype=torch.float64)
    result = model.cell(inputs, state, memory)
    lower, upper = model.cell.cells
    for index, cell in enumerate((lower, upper)):
        part = {name: state[f"{index}.{name}"] for name in cell.state_names}
        alone = cell(inputs, part, cell.prepare(memory["features"]))
        inputs = alone.output
    torch.testing.assert_close(result.output, alone.output)
    torch.testing.assert_close(result.attention, alone.attention)


def test_words_after_the_end_change_neither_loss_nor_gradients():
    config = small_config()
    model = make_model(config)
    pixels, token_ids, lengths = make_batch(config, steps=6)
    objective = ObjectiveConfig(alpha_penalty=0.1)
    found = []
    for extra in (0, 3):
        padded = torch.nn.functional.pad(token_ids, (0, extra))
        output = model(pixels, padded, lengths)
        loss = model.loss(output, padded, lengths, objective=objective).total
        found.append([loss, *torch.autograd.grad(loss, list(model.parameters()))])
    for short, long in zip(*found, strict=True):
        torch.testing.assert_close(short, long)


def test_dropout_acts_in_training_only():
    config = small_config(dropout=0.5)
    model = make_model(config)
    batch = make_batch(config)
    assert not torch.equal(model(*batch).logits, model(*batch).logits)
    model.eval()
    assert torch.equal(model(*batch).logits, model(*batch).logits)
    plain = make_model(small_config())
    assert torch.equal(model(*batch).logits, plain(*batch).logits)
