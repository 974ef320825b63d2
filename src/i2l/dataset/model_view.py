"""Splits as a model will see them: every image prepared as those of users are, at the model's scale.

`i2l.images.prepare` prepares them, the same code that reading uses. For a rendered sample it is told the
scale, which its style gives; that of a picture it estimates, as it does for those of users. Images in the
paper's style come out as they went in. Training, evaluation and calibration all open splits by `open_split`;
training puts several datasets together by `JoinedDataset`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from pathlib import Path

import numpy as np
import numpy.typing as npt

from i2l.dataset.format import (
    Box,
    DatasetError,
    DatasetReader,
    PixelBuffer,
    Split,
    StoredSamples,
    decode_stored,
    drawn_zoom,
    fill_buffer,
    pixel_offsets,
)
from i2l.dataset.shards import PAPER_TEXT, PICTURE_TEXT, style_from_text
from i2l.dataset.sources import TRAIN
from i2l.formulas.commands import one_name
from i2l.formulas.vocabulary import SPECIAL_TOKENS, Vocabulary
from i2l.images.open import ImageError, ImageSource
from i2l.images.prepare import FRAME_PX, REFERENCE_DPI, prepare_image
from i2l.ink.hand import HAND_PREFIX
from i2l.rendering.rasterize import Pixels, ink_box
from i2l.rendering.styles import PAPER

ROOM_PX = 4  # more than the scale says, for rounding


@dataclass(frozen=True)
class Preparation:
    """What became of an image: its shape (no rows: it cannot be read), and where in the old one it lay."""

    height: int = 0
    width: int = 0
    scale: float = 1.0
    left_px: float = 0.0
    top_px: float = 0.0

    def move(self, box: Box) -> Box:
        """Compute where a box of the old image lies in the new one."""
        left, top, right, bottom = (
            round((value - corner) * self.scale)
            for value, corner in zip(box, (self.left_px, self.top_px) * 2, strict=True)
        )
        return left, top, right, bottom


def open_split(
    dataset: DatasetReader,
    name: str,
    *,
    canvas_shape: tuple[int, int],
    dpi: float = REFERENCE_DPI,
    limit: int = 0,
    jobs: int | None = None,
) -> "Split | PreparedSplit":
    """Open a split for a model: prepared, unless all of it is in the paper's style, which needs nothing.

    Args:
        dataset: that has it.
        name: of the split.
        canvas_shape: of the model, frame included.
        dpi: of 12 pt type as the model knows it.
        limit: prepare only the first so many samples, if not 0; a split that needs nothing is given whole.
        jobs: processes that prepare; all cores if None.

    Raises:
        DatasetError: if there is no such split, or the model can read nothing of it.
    """
    split = dataset.split(name)
    if dpi == PAPER.dpi and set(split.styles[: limit or None]) == {PAPER_TEXT}:
        return split
    prepared = PreparedSplit(split, canvas_shape=canvas_shape, dpi=dpi, limit=limit, jobs=jobs)
    if not len(prepared):
        raise DatasetError(
            f"Of {dataset.path} this model can read no sample of {name!r}: "
            f"{', '.join(prepared.left_out[:3])} and all others are too large for it, or show nothing."
        )
    return prepared


class PreparedSplit:
    """The samples of a split that a model can read, as it reads them; ready once they are loaded."""

    def __init__(
        self,
        split: Split,
        *,
        canvas_shape: tuple[int, int],
        dpi: float = REFERENCE_DPI,
        limit: int = 0,
        jobs: int | None = None,
    ) -> None:
        """Draw and prepare all images.

        Args:
            split: the samples as they were drawn.
            canvas_shape: of the model, frame included; what does not fit there at its scale is left out.
            dpi: of 12 pt type as the model knows it.
            limit: take only the first so many samples, if not 0.
            jobs: processes; all cores if None.
        """
        styles = split.styles[: limit or None]
        pictures = np.array([style == PICTURE_TEXT for style in styles])
        scales = np.array([_scale(style, dpi) or 1.0 for style in styles])
        room = np.ceil(split.sizes[: len(scales)] * scales[:, None]).astype(np.int32) + ROOM_PX
        room[pictures] = canvas_shape  # the scale of a picture is found when it is opened
        offsets = pixel_offsets(room)
        indices = np.arange(len(room))
        numbers = dict(zip(offsets[:-1].tolist(), indices, strict=True))
        self._data, pieces = fill_buffer(
            int(offsets[-1]),
            split.stored(indices, offsets[:-1]),
            partial(_fill_prepared, canvas_shape, dpi),
            jobs=jobs,
        )
        done = [Preparation()] * len(room)
        for samples, prepared in pieces:
            for offset, preparation in zip(samples.offsets.tolist(), prepared, strict=True):
                done[numbers[offset]] = preparation
        self._kept = np.array([index for index in indices if done[index].height], dtype=np.int64)
        self._left_out = [index for index in indices.tolist() if not done[index].height]
        self._done = [done[index] for index in self._kept]
        self._offsets = np.append(offsets[self._kept], offsets[-1])
        self._split = split
        self.sizes = np.array([(one.height, one.width) for one in self._done], dtype=np.int32).reshape(-1, 2)
        if pictures.any():
            self._close_gaps()

    def _close_gaps(self) -> None:
        """Move the images together: a picture has had the room of a whole canvas, and takes far less."""
        sizes = self.sizes.astype(np.int64).prod(axis=1)
        starts = self._offsets[:-1]
        pieces = [self._data[start : start + size] for start, size in zip(starts, sizes, strict=True)]
        self._data = np.concatenate(pieces) if pieces else np.empty(0, dtype=np.uint8)
        self._offsets = pixel_offsets(self.sizes)

    def __len__(self) -> int:
        return len(self._kept)

    @property
    def left_out(self) -> list[str]:
        """The ids of samples that are too large for the model, or show nothing."""
        return [self._split.ids[index] for index in self._left_out]

    @property
    def left_out_formulas(self) -> list[str]:
        """What these samples show."""
        return [self._split.formulas[index] for index in self._left_out]

    @property
    def formulas(self) -> list[str]:
        """Canonical tokens joined by single spaces, of each sample."""
        return [self._split.formulas[index] for index in self._kept]

    @property
    def ids(self) -> list[str]:
        """`file:line` of the input, of each sample."""
        return [self._split.ids[index] for index in self._kept]

    @property
    def num_tokens(self) -> npt.NDArray[np.int64]:
        """How many tokens each formula has."""
        return self._split.num_tokens[self._kept]

    def load_all(self, *, jobs: int | None = None) -> PixelBuffer:
        """Return the prepared images."""
        return PixelBuffer(self._data, self._offsets, self.sizes)

    def pixels(self, indices: Sequence[int], *, jobs: int | None = None) -> list[Pixels]:
        """Return the prepared images of some samples."""
        images = self.load_all()
        return [images[index] for index in indices]

    def boxes(self, indices: Sequence[int]) -> list[list[Box | None] | None]:
        """Return the boxes of each token of some samples in the prepared images, as `Split.boxes`."""
        stored = self._split.boxes([int(self._kept[index]) for index in indices])
        return [
            boxes and [box and self._done[index].move(box) for box in boxes]
            for index, boxes in zip(indices, stored, strict=True)
        ]

    def token_boxes(self) -> npt.NDArray[np.int16] | None:
        """Return the boxes of all tokens of all samples in the prepared images, as `Split.token_boxes`."""
        boxes = self._split.token_boxes()
        if boxes is None:
            return None
        counts = self._split.num_tokens
        starts = np.cumsum(counts) - counts
        rows = np.concatenate([np.arange(starts[i], starts[i] + counts[i]) for i in self._kept])
        corners = np.array([(one.left_px, one.top_px) * 2 for one in self._done])
        scales = np.array([one.scale for one in self._done])
        repeats = self.num_tokens
        chosen = boxes[rows]
        moved = (chosen - corners.repeat(repeats, axis=0)) * scales.repeat(repeats)[:, None]
        empty = (chosen[:, 2] <= chosen[:, 0])[:, None]
        return np.where(empty, 0, np.round(moved)).astype(np.int16)


@cache
def _scale(style_text: str, dpi: float) -> float | None:
    """Compute the scale of a rendered sample from its style; None for a picture, which says nothing of it."""
    if style_text == PICTURE_TEXT:
        return None
    if style_text.startswith(HAND_PREFIX):  # written at the scale of the paper's style, whatever the look
        return dpi / PAPER.dpi
    style = style_from_text(style_text)
    return dpi * PAPER.size_pt / (style.dpi * style.size_pt)


def _fill_prepared(
    canvas_shape: tuple[int, int], dpi: float, data: Pixels, samples: StoredSamples
) -> list[Preparation]:
    """Prepare samples and write them to their places."""
    done = []
    zoom = drawn_zoom(samples, dpi / PAPER.dpi)
    images = decode_stored(samples, zoom=zoom)
    for offset, image, style in zip(samples.offsets, images, samples.styles, strict=True):
        scale = _scale(style, dpi) if zoom == 1 else 1.0  # or it was drawn at the model's scale
        if scale == 1 and isinstance(image, np.ndarray) and _is_clean(style):
            preparation, prepared = _cropped(image, canvas_shape)
        else:
            preparation, prepared = _prepare(image, scale, canvas_shape)
        if zoom != 1:
            left_px, top_px = preparation.left_px / zoom, preparation.top_px / zoom
            preparation = replace(preparation, scale=preparation.scale * zoom, left_px=left_px, top_px=top_px)
        data[offset : offset + prepared.size] = prepared.ravel()
        done.append(preparation)
    return done


def _is_clean(style_text: str) -> bool:
    """Tell whether a sample is black on white at the scale of models, which preparing leaves as it is."""
    return style_from_text(style_text) == PAPER


def _cropped(image: Pixels, canvas_shape: tuple[int, int]) -> tuple[Preparation, Pixels]:
    """Crop clean pixels to their ink, as preparing does; what does not fit on the canvas is no image."""
    box = ink_box(image)
    if box is None:
        return Preparation(), np.empty(0, dtype=np.uint8)
    left, top, right, bottom = box
    if bottom - top > canvas_shape[0] - 2 * FRAME_PX or right - left > canvas_shape[1] - 2 * FRAME_PX:
        return Preparation(), np.empty(0, dtype=np.uint8)
    return Preparation(bottom - top, right - left, 1.0, left, top), image[top:bottom, left:right]


def _prepare(
    source: ImageSource, scale: float | None, canvas_shape: tuple[int, int]
) -> tuple[Preparation, Pixels]:
    """Prepare one sample; of the scales that a picture could be read at, the estimated one comes last."""
    nothing = Preparation(), np.empty(0, dtype=np.uint8)
    try:
        image = prepare_image(source, canvas_shape=canvas_shape, scale=scale, check=scale is not None)[-1]
    except ImageError:
        return nothing
    if scale is not None and image.scale != scale:  # it was made smaller to fit
        return nothing
    height, width = image.pixels.shape
    return Preparation(height, width, image.scale, image.left_px, image.top_px), image.pixels


class JoinedDataset:
    """Datasets to train one model on: all of their training splits, and the first of each other split."""

    def __init__(
        self,
        paths: Sequence[Path],
        *,
        canvas_shape: tuple[int, int],
        dpi: float = REFERENCE_DPI,
        vocabulary: Vocabulary | None = None,
    ) -> None:
        """Open the datasets.

        Args:
            paths: their folders.
            canvas_shape: of the model, frame included.
            dpi: of 12 pt type as the model knows it.
            vocabulary: of the model; the tokens of all of the datasets if None.

        Raises:
            DatasetError: if one is not a dataset.
        """
        self._readers = [DatasetReader(path) for path in paths]
        self._canvas_shape = canvas_shape
        self._dpi = dpi
        self._vocabulary = vocabulary

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """The tokens of all of them, or those that were given."""
        if self._vocabulary is not None:
            return self._vocabulary
        if len(self._readers) == 1:
            return self._readers[0].vocabulary
        tokens = {token for reader in self._readers for token in reader.vocabulary.tokens}
        return Vocabulary.from_formula_tokens(tokens - set(SPECIAL_TOKENS))

    @property
    def splits(self) -> tuple[str, ...]:
        """Names of the splits that any of them has."""
        return tuple(dict.fromkeys(name for reader in self._readers for name in reader.splits))

    def split(self, name: str, *, jobs: int | None = None) -> "Samples":
        """Open a split: of all datasets if it is the training split, else of the first that has it.

        Samples of the training split that a given vocabulary cannot write are left out.

        Images that must be prepared are, by so many processes; one for each core if None.
        """
        having = [reader for reader in self._readers if name in reader.splits]
        if name != TRAIN:
            having = having[:1]
        parts: list[Samples] = [
            open_split(reader, name, canvas_shape=self._canvas_shape, dpi=self._dpi, jobs=jobs)
            for reader in having
        ]
        if self._vocabulary is not None and name == TRAIN:
            parts = [KnownSplit(part, self._vocabulary) for part in parts]
        return parts[0] if len(parts) == 1 else JoinedSplit(parts)


class KnownSplit:
    """The samples of a split whose tokens are all in a vocabulary, by whatever name."""

    def __init__(self, split: "Samples", vocabulary: Vocabulary) -> None:
        known = frozenset(vocabulary.tokens)
        formulas, ids = split.formulas, split.ids  # asked for once: a prepared split puts them together anew
        kept = [known.issuperset(map(one_name, formula.split())) for formula in formulas]
        self._split = split
        self._kept = np.flatnonzero(kept)
        self.formulas: list[str] = [formulas[index] for index in self._kept]
        self.ids: list[str] = [ids[index] for index in self._kept]
        self.sizes: npt.NDArray[np.int32] = split.sizes[self._kept]
        self.num_tokens: npt.NDArray[np.int64] = split.num_tokens[self._kept]
        unknown = np.flatnonzero(~np.array(kept))
        self.left_out: list[str] = [*split.left_out, *(ids[index] for index in unknown)]

    def load_all(self, *, jobs: int | None = None) -> PixelBuffer:
        """Return the pixels of the samples; those of the others are gaps between them."""
        buffer = self._split.load_all(jobs=jobs)
        return PixelBuffer(buffer.data, np.append(buffer.offsets[self._kept], buffer.offsets[-1]), self.sizes)

    def token_boxes(self) -> npt.NDArray[np.int16] | None:
        """Return the boxes of all tokens of the samples."""
        boxes = self._split.token_boxes()
        if boxes is None:
            return None
        ends = np.cumsum(self._split.num_tokens)
        return np.concatenate(
            [boxes[end - count : end] for end, count in zip(ends[self._kept], self.num_tokens, strict=True)]
        )


class JoinedSplit:
    """The samples of several splits, one split after the other."""

    def __init__(self, parts: "Sequence[Samples]") -> None:
        self._parts = parts
        self.formulas: list[str] = [formula for part in parts for formula in part.formulas]
        self.ids: list[str] = [sample_id for part in parts for sample_id in part.ids]
        self.sizes: npt.NDArray[np.int32] = np.concatenate([part.sizes for part in parts])
        self.num_tokens: npt.NDArray[np.int64] = np.concatenate([part.num_tokens for part in parts])
        self.left_out: list[str] = [sample_id for part in parts for sample_id in part.left_out]

    def load_all(self, *, jobs: int | None = None) -> PixelBuffer:
        """Return the pixels of all samples, one split after the other."""
        buffers = [part.load_all(jobs=jobs) for part in self._parts]
        ends = np.cumsum([len(buffer.data) for buffer in buffers])
        starts = ends - [len(buffer.data) for buffer in buffers]
        offsets = [buffer.offsets[:-1] + start for buffer, start in zip(buffers, starts, strict=True)]
        return PixelBuffer(
            np.concatenate([buffer.data for buffer in buffers]),
            np.concatenate([*offsets, ends[-1:]]),
            self.sizes,
        )

    def token_boxes(self) -> npt.NDArray[np.int16] | None:
        """Return the boxes of all tokens; empty ones for a part that has none."""
        tables = [part.token_boxes() for part in self._parts]
        if all(table is None for table in tables):
            return None
        return np.concatenate(
            [
                np.zeros((part.num_tokens.sum(), 4), np.int16) if table is None else table
                for part, table in zip(self._parts, tables, strict=True)
            ]
        )


Samples = Split | PreparedSplit | KnownSplit | JoinedSplit
