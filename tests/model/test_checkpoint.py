import json
import os

import pytest
import torch

from i2l.errors import I2LError
from i2l.files import write_checksums
from i2l.formulas.vocabulary import Vocabulary
from i2l.model import checkpoint as module
from i2l.model import transport
from i2l.model.calstm.config import CalstmConfig
from i2l.model.calstm.network import Recognizer
from i2l.model.checkpoint import (
    CheckpointError,
    best_checkpoint,
    checkpoint_path,
    last_checkpoint,
    list_checkpoints,
    load_network,
    prune_checkpoints,
    read_checkpoint,
    save_checkpoint,
)
from i2l.model.transport import join_checkpoint, pack_checkpoint
from tests.damage import damages

CONFIG = {"model": {"lstm_units": 4}, "objective": {}, "training": {"seed": 1}}
VOCABULARY = Vocabulary.from_formula_tokens(["a", "b", "\\frac"])


def save(path, *, step=0, metrics=None, weights=None, training_state=None):
    save_checkpoint(
        path,
        step=step,
        weights=weights or {"kernel": torch.ones(3, 4), "bias": torch.zeros(3)},
        config=CONFIG,
        vocabulary=VOCABULARY,
        metrics=metrics or {},
        training_state=training_state,
    )


def test_a_folder_rebuilds_itself(tmp_path):
    weights = {"kernel": torch.randn(3, 4), "bias": torch.randn(3)}
    state = {"optimizer": {"step": torch.tensor(3.0)}, "sampler": [1, 2, 3]}
    save(tmp_path / "c", step=5, weights=weights, metrics={"bleu": 0.5}, training_state=state)
    found = read_checkpoint(tmp_path / "c")
    assert (found.step, found.metrics, found.config) == (5, {"bleu": 0.5}, CONFIG)
    assert found.vocabulary == VOCABULARY
    loaded = found.load_weights()
    assert all(torch.equal(loaded[name], weights[name]) for name in weights)
    assert found.load_training_state() == state
    assert len(found.git_hash) >= 7


def test_a_write_that_fails_leaves_the_old_folder(tmp_path, monkeypatch):
    save(tmp_path / "c", step=1)

    def full_disk(*_):
        raise OSError("No space left on device")

    monkeypatch.setattr(module.torch, "save", full_disk)
    with pytest.raises(OSError, match="No space"):
        save(tmp_path / "c", step=2, training_state={})
    assert read_checkpoint(tmp_path / "c").step == 1
    assert os.listdir(tmp_path) == ["c"]


def test_a_folder_can_be_written_again(tmp_path):
    save(tmp_path / "c", metrics={})
    save(tmp_path / "c", metrics={"bleu": 0.25})
    assert read_checkpoint(tmp_path / "c").metrics == {"bleu": 0.25}
    assert os.listdir(tmp_path) == ["c"]


def test_last_best_and_every_nth_are_kept(tmp_path):
    bleu = {100: 0.1, 200: 0.6, 300: 0.3, 400: 0.5, 500: None, 600: 0.4}
    for step, value in bleu.items():
        save(checkpoint_path(tmp_path, step), step=step, metrics={} if value is None else {"bleu": value})
    (tmp_path / "checkpoints" / "step-00000700.123.partial").mkdir()
    assert last_checkpoint(tmp_path) == checkpoint_path(tmp_path, 600)
    assert best_checkpoint(tmp_path) == checkpoint_path(tmp_path, 200)
    assert read_checkpoint(tmp_path).step == 200  # a run folder stands for its best
    prune_checkpoints(tmp_path, keep_every=300)
    assert [path.name for path in list_checkpoints(tmp_path)] == [f"step-{s:08d}" for s in (200, 300, 600)]
    prune_checkpoints(tmp_path, keep_every=0)
    assert [path.name for path in list_checkpoints(tmp_path)] == [f"step-{s:08d}" for s in (200, 600)]


def test_wrong_checkpoints_say_what_is_wrong(tmp_path):
    save(tmp_path / "c")
    found = read_checkpoint(tmp_path / "c")
    with pytest.raises(CheckpointError, match=r"id 3 is 'a' here and 'aa' there"):
        found.require_vocabulary(Vocabulary.from_formula_tokens(["aa", "b", "\\frac"]))
    with pytest.raises(CheckpointError, match="5 and 6 tokens; one is longer"):
        found.require_vocabulary(Vocabulary.from_formula_tokens(["a", "b", "\\frac", "c"]))
    found.require_vocabulary(VOCABULARY)
    with pytest.raises(CheckpointError, match="weights only"):
        found.load_training_state()
    config = json.loads((tmp_path / "c" / "config.json").read_text())
    (tmp_path / "c" / "SHA256SUMS").unlink()
    (tmp_path / "c" / "config.json").write_text(json.dumps(config | {"format": "i2l-checkpoint-99"}))
    with pytest.raises(
        CheckpointError, match=r"i2l-checkpoint-99.*reads i2l-checkpoint-1 and i2l-checkpoint-2"
    ):
        read_checkpoint(tmp_path / "c")
    with pytest.raises(CheckpointError, match="is not a checkpoint"):
        read_checkpoint(tmp_path)
    with pytest.raises(CheckpointError, match="no checkpoint yet"):
        best_checkpoint(tmp_path)


def test_a_model_is_rebuilt(tmp_path):
    config = CalstmConfig(
        height_px=32,
        width_px=64,
        channels=(2, 2, 3, 3, 4),
        attention_units=(5, 4),
        lstm_units=6,
        init_units=3,
    )
    model = Recognizer(config, vocab_size=len(VOCABULARY))
    save_checkpoint(
        tmp_path / "c",
        step=0,
        weights=model.state_dict(),
        config=CONFIG | {"model": config.to_dict()},
        vocabulary=VOCABULARY,
        metrics={},
        training_state=None,
    )
    rebuilt, _ = load_network(tmp_path / "c")
    assert rebuilt.config == config
    for a, b in zip(model.parameters(), rebuilt.parameters(), strict=True):
        assert torch.equal(a, b)
    save(tmp_path / "d")
    with pytest.raises(CheckpointError, match="not those of its model"):
        load_network(tmp_path / "d")


@pytest.mark.parametrize("precision", ["bfloat16", "int8"])
def test_packed_weights_come_back(tmp_path, precision):
    weights = {
        "kernel": torch.randn(64, 50) * torch.logspace(-3, 2, 64)[:, None],
        "convolution": torch.randn(8, 4, 3, 3),
        "bias": torch.randn(7),
        "zeros": torch.zeros(3, 2),
    }
    save(checkpoint_path(tmp_path, 9), step=9, weights=weights, metrics={"bleu": 0.5})
    parts = pack_checkpoint(tmp_path, tmp_path / "packed", precision=precision, max_part_bytes=1000)
    assert len(parts) > 3
    assert max(path.stat().st_size for path in parts) <= 1000
    join_checkpoint(tmp_path / "packed", tmp_path / "joined")
    joined = read_checkpoint(tmp_path / "joined")
    assert (joined.step, joined.metrics, joined.vocabulary) == (9, {"bleu": 0.5}, VOCABULARY)
    assert joined.git_hash == read_checkpoint(tmp_path).git_hash
    for name, weight in joined.load_weights().items():
        assert weight.dtype == torch.float32
        rows, expected = weight.flatten(1) if weight.ndim > 1 else weight, weights[name]
        if weight.ndim == 1:
            assert torch.equal(weight, expected)
        elif precision == "bfloat16":
            assert torch.equal(weight, expected.bfloat16().float())
        else:
            largest = expected.flatten(1).abs().amax(dim=1, keepdim=True)
            assert ((rows - expected.flatten(1)).abs() <= largest / 254 * 1.0001).all()
    for name in damages(tmp_path / "packed"):
        with pytest.raises(CheckpointError, match=rf"{name} is damaged|SHA256SUMS"):
            join_checkpoint(tmp_path / "packed", tmp_path / "again")
    parts[1].unlink()
    with pytest.raises(CheckpointError, match="missing or damaged"):
        join_checkpoint(tmp_path / "packed", tmp_path / "again")
    assert not (tmp_path / "again").exists()


def use(path):
    """Read all that a checkpoint has."""
    found = read_checkpoint(path)
    found.load_weights()
    found.load_training_state()


def test_whatever_is_damaged_is_named(tmp_path):
    """A byte that was flipped in the weights, or two tokens that changed places, used to go unnoticed."""
    save(tmp_path / "c", metrics={"bleu": 0.5}, training_state={"optimizer": {"step": torch.tensor(3.0)}})
    use(tmp_path / "c")
    count = 0
    for name in damages(tmp_path / "c"):
        count += 1
        with pytest.raises(CheckpointError, match=rf"{name}|SHA256SUMS") as caught:
            use(tmp_path / "c")
        assert name in str(caught.value) or name == "SHA256SUMS"
        assert "\n" not in str(caught.value)
    assert count == 24
    use(tmp_path / "c")
    reversed_tokens = Vocabulary((*VOCABULARY.tokens[:2], *VOCABULARY.tokens[:1:-1]))
    reversed_tokens.save(tmp_path / "c" / "vocab.json")
    with pytest.raises(CheckpointError, match=r"vocab\.json is damaged"):
        read_checkpoint(tmp_path / "c")


def test_a_folder_of_an_earlier_version_opens_and_says_in_one_sentence_what_is_broken(tmp_path):
    save(tmp_path / "c", training_state={"step": torch.tensor(3.0)})
    (tmp_path / "c" / "SHA256SUMS").unlink()
    use(tmp_path / "c")
    for name in ("config.json", "metrics.json", "weights.safetensors", "training.pt", "vocab.json"):
        content = (tmp_path / "c" / name).read_bytes()
        for cut in (content[: len(content) // 2], b"", b"{}"):
            (tmp_path / "c" / name).write_bytes(cut)
            if (name, cut) == ("metrics.json", b"{}"):
                continue
            with pytest.raises(I2LError) as caught:
                use(tmp_path / "c")
            assert "\n" not in str(caught.value)
        (tmp_path / "c" / name).write_bytes(content)


class Evil:
    """What runs when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (open, (str(self.path), "w"))


def test_a_training_state_cannot_run_anything(tmp_path):
    save(tmp_path / "c", training_state={})
    torch.save({"optimizer": Evil(tmp_path / "ran")}, tmp_path / "c" / "training.pt")
    write_checksums(tmp_path / "c")
    with pytest.raises(CheckpointError, match=r"Cannot read .*training\.pt"):
        read_checkpoint(tmp_path / "c").load_training_state()
    assert not (tmp_path / "ran").exists()


def test_everything_is_on_the_disk_before_it_gets_its_name(tmp_path, monkeypatch):
    """A machine that loses power must not find a folder under its name with files that are not there yet."""
    happened = []
    fsync, rename = os.fsync, type(tmp_path).rename

    def note_fsync(descriptor):
        happened.append(os.path.basename(os.readlink(f"/proc/self/fd/{descriptor}")))
        fsync(descriptor)

    def note_rename(self, target):
        happened.append("renamed")
        return rename(self, target)

    monkeypatch.setattr(module.os, "fsync", note_fsync)
    monkeypatch.setattr(type(tmp_path), "rename", note_rename)
    save(tmp_path / "c", training_state={"a": 1})
    before, after = happened[: happened.index("renamed")], happened[happened.index("renamed") :]
    files = {"weights.safetensors", "config.json", "vocab.json", "metrics.json", "training.pt", "SHA256SUMS"}
    assert {name for name in before if not name.endswith(".partial")} >= files
    assert before[-1].startswith("c.")
    assert before[-1].endswith(".partial"), "the folder after its files"
    assert after == ["renamed", tmp_path.name]


def test_a_checkpoint_is_packed_and_joined_by_command(tmp_path, monkeypatch, capsys):
    weights = {"kernel": torch.randn(30, 4), "bias": torch.randn(3)}
    save(tmp_path / "c", step=3, weights=weights)

    def run(*arguments):
        monkeypatch.setattr("sys.argv", ["transport", *map(str, arguments)])
        transport.main()
        return capsys.readouterr().out.splitlines()

    for given, precision in (([], "bfloat16"), (["--precision", "int8"], "int8")):
        packed = tmp_path / precision
        said = run("pack", tmp_path / "c", packed, *given)
        assert [line.split("  ")[1] for line in said] == [
            f"{path.stat().st_size:,} bytes"
            for path in pack_checkpoint(tmp_path / "c", tmp_path / "again" / precision, precision=precision)
        ]
        assert run("join", packed, tmp_path / f"{precision} joined") == [
            str(tmp_path / f"{precision} joined")
        ]
        joined = read_checkpoint(tmp_path / f"{precision} joined").load_weights()["kernel"]
        assert torch.equal(joined, weights["kernel"].bfloat16().float()) is (precision == "bfloat16")
