"""One checkpoint is one folder that rebuilds itself: weights, config, vocabulary, metrics, training state.

A run keeps its checkpoints as RUN/checkpoints/step-00001000. A folder appears under that name whole or not at
all; the last one is the one with the most steps, the best one has the highest validation BLEU in its metrics.

    weights.safetensors   float32, the ones to read with (averaged, if the run averages its weights)
    config.json           format, step, git hash, and the sections model, objective and training
    vocab.json            the vocabulary that the output classes stand for
    metrics.json          scores of these weights on the validation split; empty if they were not validated
    training.pt           what resuming needs beyond the weights; absent in a checkpoint that only reads
    SHA256SUMS            checksums of all of these, compared whenever one is read
"""

import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save
from torch import Tensor

from i2l import __version__
from i2l.errors import I2LError
from i2l.files import atomic_write, find_damage, write_checksums
from i2l.formulas.vocabulary import Vocabulary
from i2l.model.config import read_model_config
from i2l.model.network import Network

FORMAT = "i2l-checkpoint-2"
READABLE_FORMATS = ("i2l-checkpoint-1", FORMAT)  # the first had one form of config for all networks
WEIGHTS, CONFIG, VOCABULARY, METRICS, TRAINING = (
    "weights.safetensors",
    "config.json",
    "vocab.json",
    "metrics.json",
    "training.pt",
)


class CheckpointError(I2LError):
    """A checkpoint that is missing, broken, or of another version or vocabulary."""


@dataclass(frozen=True)
class Checkpoint:
    """What a checkpoint folder says about itself; the tensors are read by `load_weights`."""

    path: Path
    step: int
    git_hash: str
    config: dict[str, dict[str, Any]]  # sections model, objective, training
    vocabulary: Vocabulary
    metrics: dict[str, Any]

    def load_weights(self) -> dict[str, Tensor]:
        """Read the weights.

        Raises:
            CheckpointError: if the file is missing or broken.
        """
        _require_whole(self.path, WEIGHTS)
        try:
            weights: dict[str, Tensor] = load_file(self.path / WEIGHTS)
        except (OSError, SafetensorError) as error:
            raise CheckpointError(f"Cannot read the weights of {self.path}: {error}") from error
        return weights

    def load_training_state(self) -> dict[str, Any]:
        """Read what resuming needs.

        Raises:
            CheckpointError: if this checkpoint carries no training state, or a broken one.
        """
        _require_whole(self.path, TRAINING)
        path = self.path / TRAINING
        if not path.is_file():
            raise CheckpointError(f"{self.path} carries weights only; training cannot go on from it.")
        try:
            state: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
        except Exception as error:  # torch, pickle and zipfile each have their own for a damaged file
            reason = str(error).partition("\n")[0]
            raise CheckpointError(
                f"Cannot read {path} ({type(error).__name__}: {reason}); go on from another checkpoint."
            ) from error
        return state

    def require_vocabulary(self, vocabulary: Vocabulary, *, grown: bool = False) -> None:
        """Refuse to go on with data of another vocabulary; one that has ``grown`` may have more tokens.

        Raises:
            CheckpointError: if the vocabularies differ; the message says where.
        """
        if self.vocabulary == vocabulary or (grown and self.vocabulary.begins(vocabulary)):
            return
        pairs = enumerate(zip(self.vocabulary.tokens, vocabulary.tokens, strict=False))
        place = next(
            (f"id {i} is {a!r} here and {b!r} there" for i, (a, b) in pairs if a != b), "one is longer"
        )
        raise CheckpointError(
            f"{self.path} was trained with another vocabulary than this dataset's "
            f"({len(self.vocabulary)} and {len(vocabulary)} tokens; {place}). "
            "Use its own dataset, or start a new run."
        )


def save_checkpoint(
    path: Path,
    *,
    step: int,
    weights: Mapping[str, Tensor],
    config: Mapping[str, Mapping[str, Any]],
    vocabulary: Vocabulary,
    metrics: Mapping[str, Any],
    training_state: Mapping[str, Any] | None,
) -> None:
    """Write a checkpoint folder: into a folder beside it, flushed to the disk, then renamed."""
    partial = path.with_name(f"{path.name}.{os.getpid()}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    try:
        content = save({name: weight.contiguous().cpu() for name, weight in weights.items()})
        (partial / WEIGHTS).write_bytes(content)
        head = {"format": FORMAT, "i2l": __version__, "git_hash": git_hash(), "step": step}
        _write_json(partial / CONFIG, {**head, **config})
        vocabulary.save(partial / VOCABULARY)
        _write_json(partial / METRICS, dict(metrics))
        if training_state is not None:
            torch.save(dict(training_state), partial / TRAINING)
        write_checksums(partial)
        for file in partial.iterdir():
            _flush(file)
        _flush(partial)
        if path.exists():
            replaced = path.with_name(f"{path.name}.replaced.partial")
            shutil.rmtree(replaced, ignore_errors=True)
            path.rename(replaced)
            partial.rename(path)
            shutil.rmtree(replaced)
        else:
            partial.rename(path)
        _flush(path.parent)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def read_checkpoint(path: Path) -> Checkpoint:
    """Read a checkpoint folder, or the best checkpoint of a run folder; the tensors stay on the disk.

    Raises:
        CheckpointError: if it is missing, broken or of another version.
    """
    if not (path / CONFIG).is_file() and (path / "checkpoints").is_dir():
        path = best_checkpoint(path)
    _require_whole(path, CONFIG, METRICS, VOCABULARY)
    try:
        config = json.loads((path / CONFIG).read_text(encoding="utf-8"))
        metrics = json.loads((path / METRICS).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise CheckpointError(f"{path} is not a checkpoint: {error}") from error
    if not isinstance(config, dict) or config.get("format") not in READABLE_FORMATS:
        found = config.get("format") if isinstance(config, dict) else None
        raise CheckpointError(
            f"{path} is of format {found!r}; this version of i2l reads {' and '.join(READABLE_FORMATS)}. "
            "Read it with the version that wrote it, or train again."
        )
    try:
        return Checkpoint(
            path=path,
            step=config["step"],
            git_hash=config["git_hash"],
            config={name: config[name] for name in ("model", "objective", "training")},
            vocabulary=Vocabulary.load(path / VOCABULARY),
            metrics=metrics,
        )
    except KeyError as error:
        raise CheckpointError(f"{path / CONFIG} is damaged: it lacks {error}.") from error


def load_network(path: Path, *, device: torch.device | str = "cpu") -> tuple[Network, Checkpoint]:
    """Rebuild the model of a checkpoint, or of the best checkpoint of a run, ready to read.

    Raises:
        CheckpointError: if it is missing, broken or of another version.
    """
    checkpoint = read_checkpoint(path)
    config = read_model_config(checkpoint.config["model"])
    model = config.build(vocab_size=len(checkpoint.vocabulary))
    try:
        model.load_state_dict(checkpoint.load_weights())
    except RuntimeError as error:
        raise CheckpointError(
            f"The weights of {checkpoint.path} are not those of its model: {error}"
        ) from error
    return model.to(device).eval(), checkpoint


def list_checkpoints(run: Path) -> list[Path]:
    """List the checkpoint folders of a run, oldest first."""
    return sorted(path for path in (run / "checkpoints").glob("step-*") if path.suffix != ".partial")


def last_checkpoint(run: Path) -> Path | None:
    """Return the checkpoint with the most steps, or None before the first."""
    return max(list_checkpoints(run), default=None)


def best_checkpoint(run: Path) -> Path:
    """Find the checkpoint with the highest validation BLEU; the last one if none was validated.

    Raises:
        CheckpointError: if the run has no checkpoint.
    """
    paths = list_checkpoints(run)
    if not paths:
        raise CheckpointError(f"{run} holds no checkpoint yet.")
    return max(paths, key=lambda path: (read_checkpoint(path).metrics.get("bleu", -1.0), path))


def prune_checkpoints(run: Path, *, keep_every: int) -> None:
    """Delete all checkpoints but the last, the best, and those whose step is a multiple of ``keep_every``."""
    paths = list_checkpoints(run)
    kept = {paths[-1], best_checkpoint(run)} if paths else set()
    for path in paths:
        step = int(path.name.removeprefix("step-"))
        if path not in kept and not (keep_every and step % keep_every == 0):
            shutil.rmtree(path)


def checkpoint_path(run: Path, step: int) -> Path:
    """Return the folder of the checkpoint of a step."""
    return run / "checkpoints" / f"step-{step:08d}"


def git_hash() -> str:
    """Return the commit this code was run from, with "-dirty" after local changes, or "unknown"."""
    try:
        done = subprocess.run(
            ["git", "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"],
            cwd=Path(__file__).parent,
            check=False,
            capture_output=True,
            text=True,
            timeout=10,
        )
    except (OSError, subprocess.TimeoutExpired):
        return "unknown"
    return done.stdout.strip() or "unknown"


def _require_whole(path: Path, *names: str) -> None:
    if damage := find_damage(path, names):
        raise CheckpointError(damage)


def _write_json(path: Path, content: Mapping[str, Any]) -> None:
    with atomic_write(path) as file:
        json.dump(content, file, indent=2, sort_keys=True)
        file.write("\n")


def _flush(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
