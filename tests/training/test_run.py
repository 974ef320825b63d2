import json
import re
import signal
import time
from types import SimpleNamespace

import pytest
import torch

from i2l.model.checkpoint import (
    CheckpointError,
    last_checkpoint,
    list_checkpoints,
    load_network,
    read_checkpoint,
)
from i2l.training import loop
from i2l.training.monitor import DivergedError, read_rows
from i2l.training.run import RunError, TrainOptions, train
from i2l.training.settings import resolve_config
from i2l.training.trainer import Trainer
from i2l.training.validation import ScoreResult, Validator
from tests.training.conftest import MemoryDataset, MemorySplit, make_dataset, small_config

CPU = TrainOptions(device="cpu")


def final_weights(run):
    return read_checkpoint(last_checkpoint(run)).load_weights()


def assert_same_weights(run, other):
    first, second = final_weights(run), final_weights(other)
    assert all(torch.equal(first[name], second[name]) for name in first)


def memorise(run, *, max_steps, **settings):
    """Learn 64 formulas by heart, and validate on them."""
    settings = {
        "batch_size": 16,
        "beta1": 0.9,
        "clip_norm": 1.0,
        "schedule": "cosine",
        "warmup_steps": 20,
        "max_steps": max_steps,
        "log_every": 100,
        "validate_every": max_steps,
    } | settings
    return train(make_dataset(64, num_validation=64), out=run, config=small_config(**settings), options=CPU)


@pytest.mark.slow
def test_64_formulas_are_memorised(tmp_path):
    result = memorise(
        tmp_path / "run",
        model={"lstm_units": 128, "init_units": 48},
        learning_rate=4e-3,
        beta2=0.99,
        max_steps=600,
    )
    assert result.finished
    assert result.metrics["exact_match"] == 1.0
    assert result.metrics["bleu"] == 1.0
    assert result.metrics["num_formulas"] == 64


SMALL_TRANSFORMER = {
    "network": "transformer",
    "height_px": 48,
    "width_px": 96,
    "channels": [8, 16, 32],
    "depths": [0, 1, 1],
    "decoder_units": 64,
    "decoder_layers": 2,
    "decoder_heads": 4,
}


@pytest.mark.slow
def test_the_transformer_memorises_too(tmp_path):
    """With images of other places, sizes and weights in every step."""
    result = memorise(
        tmp_path / "run",
        model=SMALL_TRANSFORMER,
        learning_rate=3e-3,
        optimizer="adamw",
        beta2=0.98,
        max_steps=1200,
        window_step=2,
        shift_px=3,
        zoom=0.1,
        weight=0.2,
    )
    assert result.metrics["exact_match"] > 0.9


def test_a_run_leaves_all_it_knows(tmp_path, dataset, capsys):
    run = tmp_path / "run"
    config = small_config(max_epochs=2, ema_decay=0.9, checkpoint_every=5, keep_every=10)
    result = train(dataset, out=run, config=config, options=CPU)
    assert (result.step, result.finished) == (16, True)
    assert resolve_config(file=run / "config.yaml") == config
    rows = read_rows(run / "metrics.jsonl")
    kinds = [(row["kind"], row["step"]) for row in rows]
    assert kinds == [
        ("train", 5),
        ("validation/greedy", 8),
        ("train", 10),
        ("train", 15),
        ("validation/greedy", 16),
    ]
    assert {"loss", "gradient_norm", "images_per_s", "tokens_per_s", "ase", "aae"} <= set(rows[0])
    assert 0 <= rows[0]["teacher_forced_bleu"] <= 1
    assert rows[0]["loss"] > rows[3]["loss"]
    assert 16 in [read_checkpoint(path).step for path in list_checkpoints(run)]
    model, checkpoint = load_network(run)
    assert checkpoint.metrics["bleu"] == max(row["bleu"] for row in rows if "bleu" in row)
    assert json.loads((checkpoint.path / "config.json").read_text())["model"]["lstm_units"] == 64
    assert next(model.parameters()).dtype == torch.float32
    shown = capsys.readouterr().err
    assert "64 training samples in 8 batches of up to 8" in shown
    assert "first step" in shown
    assert "validation at step 16, greedy: bleu" in shown


def test_a_run_in_pieces_ends_like_one_in_a_whole(tmp_path, dataset):
    settings = {"ema_decay": 0.9, "schedule": "cosine", "checkpoint_every": 100}
    model = {"dropout": 0.1}  # random numbers must go on too
    whole, pieces = tmp_path / "whole", tmp_path / "pieces"
    train(dataset, out=whole, config=small_config(model=model, max_steps=12, **settings), options=CPU)

    class Interrupt(loop.Display):
        """Sends this process a signal at the fifth step, as Ctrl-C does."""

        def step(self, *, step, **rest):
            if step == 5:
                signal.raise_signal(signal.SIGINT)

    config = small_config(model=model, max_steps=12, **settings)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("i2l.training.run.Display", Interrupt)
        result = train(dataset, out=pieces, config=config, options=CPU)
    assert (result.step, result.finished) == (5, False)
    result = train(dataset, out=pieces, config=config, options=CPU)
    assert (result.step, result.finished) == (12, True)
    assert_same_weights(whole, pieces)
    # Nothing is left to do, and nothing is done.
    assert train(dataset, out=pieces, config=config, options=CPU).finished
    assert [row["step"] for row in read_rows(pieces / "metrics.jsonl")].count(12) == 1


def test_the_deadline_saves_and_stops(tmp_path, dataset):
    config = small_config(budget_minutes=60)
    options = TrainOptions(device="cpu", max_minutes=0.5)
    result = train(
        dataset, out=tmp_path / "run", config=config, options=options, started_s=time.monotonic() - 29
    )
    assert not result.finished
    assert last_checkpoint(tmp_path / "run")
    assert result.step > 0


def test_a_budget_ends_the_run(tmp_path, dataset):
    config = small_config(budget_minutes=2 / 60, schedule="cosine", validation_samples=2)
    result = train(dataset, out=tmp_path / "run", config=config, options=CPU)
    assert result.finished
    assert result.metrics["num_formulas"] == 2


def test_a_loss_that_is_not_a_number_stops_the_run(tmp_path, dataset, capsys):
    run = tmp_path / "run"
    settings = {"checkpoint_every": 3, "log_every": 10}
    train(dataset, out=run, config=small_config(max_steps=3, **settings), options=CPU)
    good = final_weights(run)
    config = small_config(max_steps=50, learning_rate=1e38, **settings)
    with pytest.raises(DivergedError, match=r"Step 5 has loss nan") as error:
        train(dataset, out=run, config=config, options=CPU)
    assert "training.learning_rate was 0.0001, is now 1e+38" in capsys.readouterr().err
    assert re.search(r"holds the training samples (\d+, ){7}\d+\.", str(error.value))
    assert "step-00000003" in str(error.value)
    assert all(torch.equal(weight, good[name]) for name, weight in final_weights(run).items())


def test_a_run_from_before_a_setting_existed_goes_on(tmp_path, dataset):
    run = tmp_path / "run"
    train(dataset, out=run, config=small_config(max_steps=2), options=CPU)
    file = last_checkpoint(run) / "config.json"
    content = json.loads(file.read_text())
    for section, name in (("model", "network"), ("model", "dpi"), ("training", "emphasis")):
        del content[section][name]
    content["model"] |= {"depths": [0, 2, 3, 1], "decoder_units": 384}  # once all networks had one form
    file.write_text(json.dumps(content))
    (file.parent / "SHA256SUMS").unlink()
    assert train(dataset, out=run, config=small_config(max_steps=4), options=CPU).step == 4
    emphasis = small_config(max_steps=6, emphasis=["memory=2"])
    with pytest.raises(CheckpointError, match=r"training\.emphasis was"):
        train(dataset, out=run, config=emphasis, options=CPU)


@pytest.mark.parametrize("ema_decay", [0.0, 0.9])
def test_the_weights_that_are_judged_are_those_that_are_saved(tmp_path, dataset, monkeypatch, ema_decay):
    judged = []

    def judge(_, model):
        judged.append({name: weight.clone() for name, weight in model.state_dict().items()})
        return {"greedy": ScoreResult(0.5, 0.5, 0.5, 1.0, 1)}

    modes = []
    step = Trainer.step
    monkeypatch.setattr(Trainer, "step", lambda one: modes.append(one.model.training) or step(one))
    monkeypatch.setattr(Validator, "__call__", judge)
    train(dataset, out=tmp_path, config=small_config(max_steps=3, ema_decay=ema_decay, validate_every=1))
    assert modes == [True] * 3, "with dropout, also after it was judged"
    saved = final_weights(tmp_path)
    assert len(judged) == 3
    assert all(torch.equal(judged[-1][name], weight) for name, weight in saved.items())


@pytest.mark.parametrize("ema_decay", [0.0, 0.9])
def test_a_new_run_begins_with_the_weights_of_another(tmp_path, dataset, ema_decay):
    first = small_config(max_steps=4)
    train(dataset, out=tmp_path / "first", config=first)
    weights = read_checkpoint(tmp_path / "first").load_weights()
    options = TrainOptions(start_from=tmp_path / "first")
    still = small_config(max_steps=1, learning_rate=0.0, ema_decay=ema_decay)
    train(dataset, out=tmp_path / "second", config=still, options=options)
    begun = read_checkpoint(tmp_path / "second")
    assert begun.step == 1
    for name, weight in begun.load_weights().items():
        assert torch.equal(weight, weights[name])
    # one of another size, and one of another kind, whose weights have other names
    for number, model in enumerate(({"lstm_units": 32}, SMALL_TRANSFORMER)):
        with pytest.raises(CheckpointError, match="another network"):
            train(
                dataset,
                out=tmp_path / f"other-{number}",
                config=small_config(model, max_steps=1),
                options=options,
            )


@pytest.mark.parametrize("model", [{}, SMALL_TRANSFORMER], ids=["calstm", "pinpoint"])
def test_a_new_run_may_have_a_larger_vocabulary(tmp_path, dataset, model):
    train(dataset, out=tmp_path / "first", config=small_config(model, max_steps=2))
    first = read_checkpoint(tmp_path / "first")
    grown = Grown(dataset, dataset.vocabulary.grown(["\\new", "\\newer"]))
    still = small_config(model, max_steps=1, learning_rate=0.0)
    train(grown, out=tmp_path / "second", config=still, options=TrainOptions(start_from=tmp_path / "first"))
    second = read_checkpoint(tmp_path / "second")
    assert len(second.vocabulary) == len(first.vocabulary) + 2
    before, after = first.load_weights(), second.load_weights()
    longer = [name for name in before if before[name].shape != after[name].shape]
    assert longer
    for name, weight in before.items():
        assert torch.equal(after[name][: len(weight)] if name in longer else after[name], weight)


def test_a_new_run_may_have_more_blocks(tmp_path, dataset):
    depths = SMALL_TRANSFORMER["depths"]
    train(dataset, out=tmp_path / "first", config=small_config(SMALL_TRANSFORMER, max_steps=2))
    larger = {**SMALL_TRANSFORMER, "depths": (*depths[:-1], depths[-1] + 2)}
    still = small_config(larger, max_steps=1, learning_rate=0.0)
    train(dataset, out=tmp_path / "second", config=still, options=TrainOptions(start_from=tmp_path / "first"))
    (first, _), (second, _) = (load_network(tmp_path / name) for name in ("first", "second"))
    pixels = torch.randint(0, 256, (2, *first.config.canvas_shape), dtype=torch.uint8)
    token_ids, lengths = torch.randint(2, first.vocab_size, (2, 5)), torch.tensor([5, 5])
    before, after = (network.eval()(pixels, token_ids, lengths).logits for network in (first, second))
    assert len(second.state_dict()) > len(first.state_dict())
    assert torch.allclose(before, after, atol=1e-6)
    block = second.encoder.stages[-1][-1]
    assert block.look.weight.any()
    assert not block.mix.weight.any(), "it looks, but adds nothing yet"
    # a smaller one cannot begin with the weights of a larger one
    with pytest.raises(CheckpointError, match="another network"):
        train(
            dataset,
            out=tmp_path / "third",
            config=small_config(SMALL_TRANSFORMER, max_steps=1),
            options=TrainOptions(start_from=tmp_path / "second"),
        )


class Grown:
    """A dataset with another vocabulary."""

    def __init__(self, dataset, vocabulary):
        self._dataset, self.vocabulary = dataset, vocabulary
        self.splits = dataset.splits

    def split(self, name, *, jobs):
        return self._dataset.split(name, jobs=jobs)


def test_resuming_something_else_says_what_differs(tmp_path, dataset):
    run = tmp_path / "run"
    train(dataset, out=run, config=small_config(max_steps=2), options=CPU)
    with pytest.raises(CheckpointError, match=r"model.lstm_units was 64, is now 32"):
        train(dataset, out=run, config=small_config(model={"lstm_units": 32}, max_steps=4), options=CPU)
    with pytest.raises(CheckpointError, match=r"training.batch_size was 8, is now 4"):
        train(dataset, out=run, config=small_config(max_steps=4, batch_size=4), options=CPU)
    with pytest.raises(CheckpointError, match="another vocabulary"):
        train(make_dataset(5), out=run, config=small_config(max_steps=4, batch_size=2), options=CPU)
    fewer = MemoryDataset(dataset.vocabulary, {"train": dataset.split("val")})
    with pytest.raises(CheckpointError, match="another dataset"):
        train(fewer, out=run, config=small_config(max_steps=4), options=CPU)
    other = tmp_path / "other"
    other.mkdir()
    (other / "thesis.tex").write_text("")
    with pytest.raises(RunError, match="not a run"):
        train(dataset, out=other, config=small_config(max_steps=2), options=CPU)


def test_a_validation_formula_may_hold_a_token_that_was_never_trained(tmp_path, dataset):
    validation = dataset.split("val")
    strange = MemorySplit([r"\never \seen", *validation.formulas[1:]], validation.images)
    mixed = MemoryDataset(dataset.vocabulary, {"train": dataset.split("train"), "val": strange})
    result = train(mixed, out=tmp_path / "run", config=small_config(max_steps=2), options=CPU)
    assert result.metrics["num_formulas"] == len(validation.formulas)


def test_a_run_without_validation_split(tmp_path, dataset):
    only_train = MemoryDataset(dataset.vocabulary, {"train": dataset.split("train")})
    result = train(only_train, out=tmp_path / "run", config=small_config(max_steps=9), options=CPU)
    assert result.finished
    assert result.metrics == {}


@pytest.mark.slow
def test_profile_shows_phases(tmp_path, dataset, capsys):
    options = TrainOptions(device="cpu", profile=True)
    train(dataset, out=tmp_path / "run", config=small_config(), options=options)
    shown = capsys.readouterr().err
    for phase in ("images/s", "gather", "forward", "backward", "update", "aten::"):
        assert phase in shown
    assert not (tmp_path / "run").exists()


def test_what_is_no_training_does_not_count_for_its_speed():
    paused = []
    running = SimpleNamespace(_recent=SimpleNamespace(pause=paused.append))
    with loop.Loop._paused(running):
        time.sleep(0.05)
    assert len(paused) == 1
    assert 0.05 <= paused[0] < 30
