"""One or more datasets as a model sees them: prepared, one vocabulary, samples one after the other."""

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt

from i2l.dataset.format import DatasetReader, Split
from i2l.dataset.pixels import PixelBuffer
from i2l.dataset.prepared import PreparedSplit, open_split
from i2l.dataset.recipes import TRAIN
from i2l.formulas.aliases import one_name
from i2l.formulas.vocabulary import SPECIAL_TOKENS, Vocabulary


class JoinedDataset:
    """Datasets to train one model on: all of their training splits, and the first of each other split."""

    def __init__(
        self, paths: Sequence[Path], *, canvas_shape: tuple[int, int], vocabulary: Vocabulary | None = None
    ) -> None:
        """Open the datasets.

        Args:
            paths: their folders.
            canvas_shape: of the model, frame included.
            vocabulary: of the model; the tokens of all of the datasets if None.

        Raises:
            DatasetError: if one is not a dataset.
        """
        self._readers = [DatasetReader(path) for path in paths]
        self._canvas_shape = canvas_shape
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
            open_split(reader, name, canvas_shape=self._canvas_shape, jobs=jobs) for reader in having
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
        """Give the pixels of the samples; those of the others are gaps between them."""
        buffer = self._split.load_all(jobs=jobs)
        return PixelBuffer(buffer.data, np.append(buffer.offsets[self._kept], buffer.offsets[-1]), self.sizes)

    def token_boxes(self) -> npt.NDArray[np.int16] | None:
        """Give the boxes of all tokens of the samples."""
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
        """Give the pixels of all samples."""
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
        """Give the boxes of all tokens; empty ones for a part that has none."""
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
