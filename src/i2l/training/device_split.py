"""A split of a dataset that lives on the device: one flat buffer of pixels, one of token ids.

Batches are gathered there, with no loader processes and nothing to wait for. 226,000 formulas at 200 dpi are
about 8 GB, which is little beside the 139 GiB of the GPU this was written for.
"""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import pad

from i2l.dataset.format import PixelBuffer
from i2l.errors import I2LError
from i2l.formulas.commands import respell
from i2l.formulas.vocabulary import Vocabulary
from i2l.images.prepare import FRAME_PX, WHITE
from i2l.model.network import Window
from i2l.training.augment import Augmentation, View, gather_view

CHUNK_BYTES = 2**28  # copied to the device at a time


class DataError(I2LError):
    """Samples that this model cannot be trained or judged on."""


class Split(Protocol):
    """What is read of a dataset's split; `i2l.dataset.format` has it."""

    @property
    def formulas(self) -> Sequence[str]:
        """Canonical tokens, joined by single spaces."""

    @property
    def ids(self) -> Sequence[str]:
        """Where each sample comes from."""

    @property
    def sizes(self) -> NDArray[np.integer]:
        """Height and width of each image, (N, 2)."""

    @property
    def left_out(self) -> Sequence[str]:
        """The ids of samples that the model cannot read; they are not among the others."""

    def load_all(self, *, jobs: int | None) -> PixelBuffer:
        """The pixels of all images, by so many processes."""

    def token_boxes(self) -> NDArray[np.int16] | None:
        """The boxes of all tokens of all samples, (sum of tokens, 4), if they are known."""


class ResidentSplit:
    """Pixels and token ids of all samples of a split, on a device."""

    def __init__(
        self,
        split: Split,
        *,
        vocabulary: Vocabulary,
        canvas_shape: tuple[int, int],
        device: torch.device,
        jobs: int | None = None,
        spelling: str = "written",
        boxes: bool = False,
        unknown_tokens: bool = False,
    ) -> None:
        """Decode a whole split and copy it to the device.

        Args:
            split: the samples.
            vocabulary: gives the token ids.
            canvas_shape: height and width that images are placed on, with its frame of one pixel.
            device: where the samples shall live.
            jobs: processes that decode; all cores if None.
            spelling: of the labels, as in `TrainConfig`.
            boxes: load those of the tokens too.
            unknown_tokens: give tokens outside the vocabulary the id after its last, which no prediction can
                match; for judging, never for training.

        Raises:
            DataError: if an image is larger than the canvas inside its frame, or boxes are asked for and
                there are none.
            UnknownTokenError: for a token outside the vocabulary, unless ``unknown_tokens``.
        """
        self.canvas_shape = canvas_shape
        self.ids = split.ids
        self.left_out = split.left_out
        self.sizes = np.asarray(split.sizes, dtype=np.int64)
        self._check_sizes()
        self.lengths = np.zeros(len(self.sizes), dtype=np.int64)  # eos included
        buffer = split.load_all(jobs=jobs)
        self._pixels = torch.full((len(buffer.data) + 1,), WHITE, dtype=torch.uint8, device=device)
        for first in range(0, len(buffer.data), CHUNK_BYTES):
            chunk = torch.from_numpy(buffer.data[first : first + CHUNK_BYTES])
            self._pixels[first : first + len(chunk)].copy_(chunk)
        self._starts = torch.from_numpy(buffer.offsets[:-1]).to(device)
        self._sizes = torch.from_numpy(self.sizes).to(device)
        formulas = [respell(f) for f in split.formulas] if spelling == "im2latex" else split.formulas
        self._load_tokens(formulas, vocabulary, unknown_tokens, device)
        if boxes:
            self._load_boxes(split.token_boxes(), device)

    def __len__(self) -> int:
        return len(self.sizes)

    def view(self, indices: Tensor, window: Window, augmentation: Augmentation) -> View:
        """Cut a window's view of samples, each changed by chance: (B,) to uint8 (B, height, width)."""
        return gather_view(
            self._pixels,
            self._starts[indices],
            self._sizes[indices],
            window=window,
            canvas_shape=self.canvas_shape,
            num_tokens=self._lengths[indices] - 1,
            augmentation=augmentation,
        )

    def windows(self, indices: Tensor, window: Window) -> Tensor:
        """Cut a window's view of samples centred on white canvases: (B,) to uint8 (B, height, width)."""
        return self.view(indices, window, Augmentation()).pixels

    def canvases(self, indices: Tensor) -> Tensor:
        """Place samples centred on whole white canvases, with their frame: (B,) to uint8 (B, H, W)."""
        height, width = (size - 2 * FRAME_PX for size in self.canvas_shape)
        area = self.windows(indices, Window(height, width, 0, 0))
        return pad(area, (FRAME_PX,) * 4, value=WHITE)

    def targets(self, indices: Tensor, *, num_tokens: int) -> tuple[Tensor, Tensor]:
        """Return token ids (B, num_tokens), ended and padded with eos, and their lengths (B,) with eos."""
        places = self._token_places(indices, num_tokens)
        return torch.take(self._token_ids, places).long(), self._lengths[indices]

    def boxes(self, indices: Tensor, *, num_tokens: int) -> Tensor:
        """Return the boxes of the tokens in their images, (B, num_tokens, 4); empty ones where unknown."""
        boxes: Tensor = self._boxes[self._token_places(indices, num_tokens)].float()
        return boxes

    def _token_places(self, indices: Tensor, num_tokens: int) -> Tensor:
        """Find where the tokens of samples lie in the buffers, (B, num_tokens): at eos behind the last."""
        steps = torch.arange(num_tokens, device=indices.device)
        inside = steps < self._lengths[indices, None]
        return torch.where(inside, self._token_starts[indices, None] + steps, 0)

    def _check_sizes(self) -> None:
        inner = np.array(self.canvas_shape) - 2 * FRAME_PX
        too_large = (self.sizes > inner).any(axis=1)
        if too_large.any():
            raise DataError(
                f"{too_large.sum()} images are larger than the model's {inner[0]} x {inner[1]} px (height x "
                "width); build the dataset with that limit, or train a model with a larger canvas."
            )

    def _load_tokens(
        self, formulas: Sequence[str], vocabulary: Vocabulary, unknown_tokens: bool, device: torch.device
    ) -> None:
        if unknown_tokens:
            ids = dict(zip(vocabulary.tokens, range(len(vocabulary)), strict=True))
            encoded = [[ids.get(t, len(vocabulary)) for t in formula.split()] for formula in formulas]
        else:
            encoded = [vocabulary.encode(formula.split()) for formula in formulas]
        self.lengths[:] = [len(token_ids) + 1 for token_ids in encoded]
        starts = 1 + np.concatenate([[0], self.lengths.cumsum()])  # the first id of the buffer is eos
        flat = np.zeros(starts[-1], dtype=np.int32)
        for start, token_ids in zip(starts[:-1], encoded, strict=True):
            flat[start : start + len(token_ids)] = token_ids
        self._token_ids = torch.from_numpy(flat).to(device)
        self._token_starts = torch.from_numpy(starts[:-1]).to(device)
        self._lengths = torch.from_numpy(self.lengths).to(device)

    def _load_boxes(self, boxes: NDArray[np.int16] | None, device: torch.device) -> None:
        """Put boxes where the token ids are: eos has none."""
        if boxes is None:
            raise DataError(
                "objective.guidance and objective.placement need the boxes of tokens, and no dataset here "
                "has them; build one with --boxes, or leave both out."
            )
        starts = self._token_starts.cpu().numpy()
        first = np.concatenate([[0], np.cumsum(self.lengths - 1)[:-1]])
        rows = np.arange(len(boxes)) + np.repeat(starts - first, self.lengths - 1)
        table = np.zeros((len(self._token_ids), 4), dtype=np.int16)
        table[rows] = boxes
        self._boxes = torch.from_numpy(table).to(device)
