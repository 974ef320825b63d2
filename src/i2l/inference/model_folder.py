"""A model to read with is one folder: what is in it, how it is found by name, and how it is loaded.

encoder.onnx       pixels of a window of the canvas -> memory and first state
step.onnx          memory, state, tokens -> logits, state, attention
vocab.json         the vocabulary that the output classes stand for
config.json        format, precision, the network with its limits, names, where it came from
calibration.json   what its confidence means, how its boxes are found (absent until that has been fitted)
README.md          the model card
SHA256SUMS         checksums of all of these

A model has a name if it is in the box, or if a distribution of its own has installed it: that has an entry
point of the group `i2l.models` with the name, and the package that holds a folder of this name. Nothing of
such a package is imported. Nothing here needs torch, but for loading a checkpoint in the place of a folder.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from i2l.errors import I2LError, require_extra, weights_command
from i2l.files import atomic_write, find_damage, write_checksums
from i2l.formulas.vocabulary import Vocabulary
from i2l.inference.boxes import DEFAULT_SHARE
from i2l.inference.confidence import Calibration
from i2l.inference.decoding import Backend
from i2l.model.config import Limits, ModelConfig, read_model_config

FORMAT = "i2l-model-2"
READABLE_FORMATS = ("i2l-model-1", FORMAT)  # the first had one form of config for all networks, dpi beside it
ENCODER, STEP, VOCABULARY, CONFIG, CALIBRATION, CARD = (
    "encoder.onnx",
    "step.onnx",
    "vocab.json",
    "config.json",
    "calibration.json",
    "README.md",
)
BUNDLED = Path(__file__).parent.parent / "models"  # the models in the box
PREFERRED = ("pinpoint", "nopool", "strips")  # which of them is read with if none is named
ENTRY_POINTS: Final = "i2l.models"  # the group in which distributions name models that they install
HANDWRITING: Final = "hand"  # the name of the model for handwriting
# The models outside the box, each with the folder of its distribution in `models/` of the repository.
DISTRIBUTIONS: Final = {HANDWRITING: "hand", "nopool": "paper", "strips": "paper"}


class ModelError(I2LError):
    """A model that is missing, broken or of another version."""


@dataclass(frozen=True)
class ModelFolder:
    """What a model folder says about itself."""

    path: Path
    precision: str
    config: ModelConfig
    vocabulary: Vocabulary
    calibration: Calibration | None
    memory_names: tuple[str, ...]  # inputs of every step that the encoder gives once
    state_names: tuple[str, ...]
    source: dict[str, Any]  # step, git hash and scores of the checkpoint

    @property
    def name(self) -> str:
        """What a person calls it."""
        return self.path.name


def read_model_folder(path: Path) -> ModelFolder:
    """Read all but the networks.

    Raises:
        ModelError: if something is missing, broken or of another version.
    """
    try:
        content = json.loads((path / CONFIG).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ModelError(f"{path} is not a model folder: {error}") from error
    if not isinstance(content, dict) or content.get("format") not in READABLE_FORMATS:
        found = content.get("format") if isinstance(content, dict) else None
        if (path / "weights.safetensors").is_file():
            raise ModelError(f"{path} is a checkpoint; make a model of it with: i2l export {path} -o MODEL")
        known = " and ".join(READABLE_FORMATS)
        raise ModelError(f"{path} is of format {found!r}; this version of i2l reads {known}.")
    missing = [name for name in (ENCODER, STEP, VOCABULARY) if not (path / name).is_file()]
    if missing:
        raise ModelError(f"{path} lacks {', '.join(missing)}; copy or export the model again.")
    before = {"dpi": content["dpi"]} if "dpi" in content else {}  # where the first format had it
    try:
        return ModelFolder(
            path=path,
            precision=content["precision"],
            config=read_model_config(before | content["model"]),
            vocabulary=Vocabulary.load(path / VOCABULARY),
            calibration=read_calibration(path),
            memory_names=tuple(content["memory_names"]),
            state_names=tuple(content["state_names"]),
            source=content["source"],
        )
    except (KeyError, TypeError, ValueError) as error:
        raise ModelError(
            f"{path / CONFIG} is damaged ({type(error).__name__}: {error}); copy or export the model again."
        ) from error


def check_model_folder(path: Path) -> None:
    """Compare every file of a model folder with its checksum, if the folder has checksums.

    Raises:
        ModelError: if one has changed; the message names it.
    """
    if damage := find_damage(path, (CONFIG, VOCABULARY, ENCODER, STEP, CALIBRATION, CARD)):
        raise ModelError(damage)


def read_calibration(path: Path) -> Calibration | None:
    """Read what was fitted for a model folder or a checkpoint, if that was done.

    Raises:
        CalibrationError: if the file is broken.
    """
    file = path / CALIBRATION
    return Calibration.load(file) if file.is_file() else None


def write_config(path: Path, **content: Any) -> None:  # noqa: ANN401 - JSON values
    """Write the config of a model folder."""
    with atomic_write(path / CONFIG) as file:
        json.dump({"format": FORMAT, **content}, file, indent=2, sort_keys=True)
        file.write("\n")


def bundled_models() -> list[str]:
    """List the names of the models in the box, the one to read with first."""
    names = sorted(path.parent.name for path in BUNDLED.glob(f"*/{CONFIG}"))
    return sorted(names, key=lambda name: PREFERRED.index(name) if name in PREFERRED else len(PREFERRED))


def installed_models() -> dict[str, Path]:
    """Find the models that distributions of their own have installed: the name and the folder of each."""
    from importlib.metadata import entry_points  # takes as long to load as all of the rest here
    from importlib.util import find_spec

    found: dict[str, Path] = {}
    for entry in entry_points(group=ENTRY_POINTS):
        try:
            spec = find_spec(entry.value)
        except (ImportError, ValueError):  # what is left of a package that was removed by hand
            continue
        for place in (spec and spec.submodule_search_locations) or ():
            if (Path(place) / entry.name / CONFIG).is_file():
                found.setdefault(entry.name, Path(place) / entry.name)
    return dict(sorted(found.items()))


def list_models() -> dict[str, Path]:
    """List the models that have a name here, those in the box first: the name and the folder of each."""
    return {name: BUNDLED / name for name in bundled_models()} | {
        name: path for name, path in installed_models().items() if not (BUNDLED / name).is_dir()
    }


def find_model(model: str | Path | None) -> Path:
    """Find the folder of a model: by its name, the one in the box if there is no name, or a folder.

    Raises:
        ModelError: if there is none; the message says what there is, or how to install it.
    """
    if model is None:
        bundled = bundled_models()
        if not bundled:
            raise ModelError(
                "This installation has no model in the box. Name one: --model DIR on the command "
                "line, Reader(DIR) in Python, where DIR is what `i2l export RUN -o DIR` wrote."
            )
        return BUNDLED / bundled[0]
    name, path = str(model), Path(model)
    named = list_models()
    if name in named:
        return named[name]
    if path.is_dir():
        return path
    if name in DISTRIBUTIONS:
        command = weights_command(DISTRIBUTIONS[name])
        raise ModelError(f"The model {name!r} is not installed; install it with: {command}")
    there = f"installed: {', '.join(named)}" if named else "none is installed"
    raise ModelError(f"There is no model {name!r}: neither a folder nor an installed one ({there}).")


@dataclass(frozen=True)
class LoadedModel:
    """A network and what goes with it."""

    path: Path
    backend: Backend
    config: ModelConfig
    vocabulary: Vocabulary
    calibration: Calibration | None
    handwriting: bool | None = None  # whether it was taught handwriting; None if it does not say

    @property
    def name(self) -> str:
        """What a person calls it."""
        return self.path.name

    @property
    def limits(self) -> Limits:
        """What the model can take and give, as it was saved with it."""
        return self.config.limits

    @property
    def box_share(self) -> float:
        """The share of a token's attention that its box is found by: the fitted one, if there is one."""
        fitted = self.calibration.box_share if self.calibration else None
        return DEFAULT_SHARE if fitted is None else fitted


def load_model(
    model: str | Path | None = None, *, threads: int | None = None, device: str = "cpu"
) -> LoadedModel:
    """Load a model.

    Args:
        model: the name of one in the box, a folder that `i2l export` wrote, or a checkpoint or run folder;
            the model in the box if None.
        threads: that an exported model computes with; all processors if None.
        device: that a checkpoint computes on, as torch names it; "auto" takes a GPU if there is one.

    Raises:
        ModelError: if there is no such model, or it is broken.
        CheckpointError: if it is a checkpoint, and broken.
        MissingDependencyError: if it is a checkpoint, and torch is not installed.
    """
    path = find_model(model)
    if not (path / ENCODER).is_file() and _is_checkpoint(path):
        torch = require_extra("torch", "train")
        from i2l.inference.torch_backend import TorchBackend
        from i2l.model.checkpoint import load_network

        if device == "auto":
            device = "cuda" if torch.cuda.is_available() else "cpu"
        network, checkpoint = load_network(path, device=device)
        return LoadedModel(
            path=checkpoint.path,
            backend=TorchBackend(network),
            config=network.config,
            vocabulary=checkpoint.vocabulary,
            calibration=read_calibration(checkpoint.path),
        )
    from i2l.inference.onnx_backend import OnnxBackend

    check_model_folder(path)
    folder = read_model_folder(path)
    return LoadedModel(
        path=path,
        backend=OnnxBackend(folder, threads=threads),
        config=folder.config,
        vocabulary=folder.vocabulary,
        calibration=folder.calibration,
        handwriting=bool(folder.source.get("handwriting")),
    )


def _is_checkpoint(path: Path) -> bool:
    return (path / "checkpoints").is_dir() or (
        (path / CONFIG).is_file() and (path / "weights.safetensors").is_file()
    )


_CONFIDENCE_LINE: Final = "- Confidence: "


def update_model_card(path: Path) -> None:
    """Have the card of a folder, if there is one, say how the model is calibrated now; renew its checksum."""
    card = path / CARD
    if card.is_file():
        lines = card.read_text(encoding="utf-8").split("\n")
        changed = [
            confidence_line(read_calibration(path)) if line.startswith(_CONFIDENCE_LINE) else line
            for line in lines
        ]
        with atomic_write(card) as file:
            file.write("\n".join(changed))
    write_checksums(path, (CALIBRATION, CARD))


def confidence_line(calibration: Calibration | None) -> str:
    """Say in a line of the card what the confidence of a model rests on."""
    if calibration is None:
        return f"{_CONFIDENCE_LINE}not calibrated: the probability that the model itself gives its reading."
    kinds = (
        ", ".join(f"{kind.name} {kind.num_samples}" for kind in calibration.kinds) or "the validation split"
    )
    return (
        f"{_CONFIDENCE_LINE}calibrated on {calibration.num_samples} readings ({kinds}); expected "
        f"calibration error {calibration.error:.3f}."
    )
