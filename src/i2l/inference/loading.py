"""A model by its name or folder, ready to read: an exported one, or a checkpoint, which needs torch."""

from dataclasses import dataclass
from pathlib import Path

from i2l.config import ModelConfig
from i2l.errors import require_extra
from i2l.formulas.vocabulary import Vocabulary
from i2l.images.scale import REFERENCE_DPI
from i2l.inference.attention_boxes import DEFAULT_SHARE
from i2l.inference.backends import Backend, OnnxBackend, TorchBackend
from i2l.inference.calibration import Calibration
from i2l.inference.model_folder import (
    CONFIG,
    ENCODER,
    check_model_folder,
    find_model,
    read_calibration,
    read_model_folder,
)


@dataclass(frozen=True)
class LoadedModel:
    """A network and what goes with it."""

    path: Path
    backend: Backend
    config: ModelConfig
    vocabulary: Vocabulary
    dpi: float  # the scale of the text it knows, as of 12 pt type
    calibration: Calibration | None

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
        device: that a checkpoint computes on.

    Raises:
        ModelError: if there is no such model, or it is broken.
        CheckpointError: if it is a checkpoint, and broken.
        MissingDependencyError: if it is a checkpoint, and torch is not installed.
    """
    path = find_model(model)
    if not (path / ENCODER).is_file() and _is_checkpoint(path):
        require_extra("torch", "train")
        from i2l.model.checkpoint import load_network

        recognizer, checkpoint = load_network(path, device=device)
        return LoadedModel(
            path=checkpoint.path,
            backend=TorchBackend(recognizer),
            config=recognizer.config,
            vocabulary=checkpoint.vocabulary,
            dpi=REFERENCE_DPI,
            calibration=read_calibration(checkpoint.path),
        )
    check_model_folder(path)
    folder = read_model_folder(path)
    return LoadedModel(
        path=path,
        backend=OnnxBackend(folder, threads=threads),
        config=folder.config,
        vocabulary=folder.vocabulary,
        dpi=folder.dpi,
        calibration=folder.calibration,
    )


def _is_checkpoint(path: Path) -> bool:
    return (path / "checkpoints").is_dir() or (
        (path / CONFIG).is_file() and (path / "weights.safetensors").is_file()
    )
