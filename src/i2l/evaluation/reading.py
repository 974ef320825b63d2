"""Has a model read many images: a dataset's as they are, by the paper's search; pictures as `Reader` does."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from i2l.errors import I2LError
from i2l.evaluation.image_match import Pixels
from i2l.evaluation.results import hash_files
from i2l.files import CHECKSUMS
from i2l.images.canvas import FRAME_PX, place_on_canvas
from i2l.images.open import ImageSource
from i2l.inference.decoding import BeamOptions, Hypothesis, beam_search
from i2l.inference.guards import FormulaGuard
from i2l.inference.reader import Reader

# Files of a model that change no reading.
_NO_PART: Final = {"training.pt", "metrics.json", "README.md", "calibration.json", CHECKSUMS}


@dataclass(frozen=True)
class ReadOptions:
    """How a model reads."""

    beam_width: int = 10
    length_penalty: float = 1.0
    guard: bool = False  # only formulas that are well-formed
    batch_size: int = 32
    device: str = "auto"  # of a checkpoint: auto, cpu or cuda; an exported model runs on the CPU


class BatchReader:
    """A model, and how it reads."""

    def __init__(self, model: Path, options: ReadOptions) -> None:
        """Load an exported model, or a checkpoint (which needs torch).

        Raises:
            I2LError: if there is none, it is broken, or torch is needed and not installed.
        """
        self._reader = Reader(
            model,
            beam_width=options.beam_width,
            guard=options.guard,
            device=_choose_device(options.device),
        )
        self.model = self._reader.model
        self._guard = FormulaGuard(self.model.vocabulary) if options.guard else None
        self._beam = BeamOptions(
            width=options.beam_width,
            length_penalty=options.length_penalty,
            max_steps=self.model.config.max_steps,
            keep_attention=False,
        )
        self.options = options
        self.path = self.model.path

    def describe(self) -> dict[str, Any]:
        """Where the model is, and a hash of all that makes it read as it does."""
        files = [path for path in self.path.iterdir() if path.is_file() and path.name not in _NO_PART]
        return {"path": str(self.path), "sha256": hash_files(files)}

    def fits(self, pixels: Pixels) -> bool:
        """Whether the canvas has room for an image."""
        height, width = (side - 2 * FRAME_PX for side in self.model.config.canvas_shape)
        return bool(pixels.shape[0] <= height and pixels.shape[1] <= width)

    def read(self, images: Sequence[Pixels]) -> list[str]:
        """Read images, grey and cropped to their ink, into canonical tokens; one too large gives nothing."""
        readable = [index for index, pixels in enumerate(images) if self.fits(pixels)]
        readings = [""] * len(images)
        found = self._search([images[index] for index in readable])
        for index, hypothesis in zip(readable, found, strict=True):
            readings[index] = self._formula(hypothesis)
        return readings

    def read_pictures(self, pictures: Sequence[ImageSource]) -> list[str | I2LError]:
        """Read pictures of any kind and scale as `Reader` does; an error stands for what cannot be read."""
        readings = self._reader.read_many(pictures, errors="return")
        return [reading if isinstance(reading, I2LError) else reading.formula for reading in readings]

    def _formula(self, hypothesis: Hypothesis) -> str:
        return " ".join(self.model.vocabulary.decode(hypothesis.token_ids))

    def _search(self, images: Sequence[Pixels]) -> list[Hypothesis]:
        order = sorted(range(len(images)), key=lambda index: images[index].shape[::-1])  # alike ones together
        found: dict[int, Hypothesis] = {}
        backend, canvas_shape = self.model.backend, self.model.config.canvas_shape
        for start in range(0, len(order), self.options.batch_size):
            batch = order[start : start + self.options.batch_size]
            canvases = place_on_canvas([images[index] for index in batch], canvas_shape=canvas_shape)
            results = beam_search(
                backend,
                backend.encode(canvases),
                arrays=backend.arrays,
                options=self._beam,
                guard=self._guard,
            )
            found |= {index: hypotheses[0] for index, hypotheses in zip(batch, results, strict=True)}
        return [found[index] for index in range(len(images))]


def _choose_device(device: str) -> str:
    if device != "auto":
        return device
    try:
        import torch
    except ModuleNotFoundError:
        return "cpu"
    return "cuda" if torch.cuda.is_available() else "cpu"
