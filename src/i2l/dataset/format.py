"""The dataset on disk, for everyone who reads it: one interface to both forms.

A dataset is a folder: `dataset.json` (what is in it, how it was made, checksums), `vocab.json`,
`data/SPLIT-*.parquet`, in the compact form `pages/*.pdf.xz`, and for people `README.md`, `report.html` and
`verdicts.parquet`. `dataset.json` is written last and the folder appears as a whole, so one that opens is
complete.
"""

import json
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from i2l.dataset.pixels import (
    DatasetError,
    PixelBuffer,
    StoredSamples,
    load_pixels,
    pixel_offsets,
)
from i2l.dataset.sources import file_sha256
from i2l.files import find_damage
from i2l.formulas.vocabulary import Vocabulary
from i2l.images.rasterize import Pixels

FORMAT = "i2l-dataset-1"
CARD_FILE = "dataset.json"
VOCABULARY_FILE = "vocab.json"
VERDICTS_FILE = "verdicts.parquet"

Box = tuple[int, int, int, int]  # left, top, right, bottom in pixels, half-open


class DatasetReader:
    """Opens a dataset; its splits read what they are asked for."""

    def __init__(self, path: Path | str) -> None:
        """Read the card.

        Raises:
            DatasetError: if there is no dataset of this version.
        """
        self.path = Path(path)
        self._require_whole(CARD_FILE)
        try:
            self.card: dict[str, Any] = json.loads((self.path / CARD_FILE).read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise DatasetError(f"{self.path} is not a dataset made by `i2l build`: {error}") from error
        if self.card.get("format") != FORMAT:
            raise DatasetError(f"{self.path} is not a dataset of this version ({FORMAT}); build it again.")

    @property
    def splits(self) -> tuple[str, ...]:
        """Names of the splits that have samples."""
        return tuple(self.card["splits"])

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """The tokens of the training split."""
        self._require_whole(VOCABULARY_FILE)
        return Vocabulary.load(self.path / VOCABULARY_FILE)

    def split(self, name: str) -> "Split":
        """Open a split.

        Raises:
            DatasetError: if the dataset has no such split, or lacks files of it, or one has changed.
        """
        if name not in self.splits:
            raise DatasetError(f"{self.path} has no split {name!r}; it has: {', '.join(self.splits)}.")
        files = self.card["splits"][name]["files"]
        for file in files:
            if (self.path / file).is_file():
                self._compare(file)
        return Split(self.path, files)

    def verify(self) -> None:
        """Compare every file with its checksum in the card.

        Raises:
            DatasetError: if a file is missing or has changed.
        """
        for name in self.card["sha256"]:
            self._compare(name)
        self._require_whole(CARD_FILE, *self.card["sha256"])

    def _compare(self, name: str) -> None:
        path = self.path / name
        if not path.is_file() or file_sha256(path) != self.card["sha256"][name]:
            raise DatasetError(f"{path} is missing or damaged; build or copy the dataset again.")

    def _require_whole(self, *names: str) -> None:
        if damage := find_damage(self.path, names):
            raise DatasetError(damage)


class Split:
    """The samples of one split, by their number: columns as a whole, pixels and boxes on demand."""

    left_out: Sequence[str] = ()  # of a split as it is stored, nothing is
    left_out_formulas: Sequence[str] = ()

    def __init__(self, root: Path, files: Sequence[str]) -> None:
        self._root = root
        self._files = [root / file for file in files]
        missing = [str(file) for file in self._files if not file.is_file()]
        if missing:
            raise DatasetError(f"Files of the dataset are missing: {', '.join(missing)}.")
        self._schema = pq.read_schema(self._files[0])

    def __len__(self) -> int:
        return len(self.sizes)

    @cached_property
    def formulas(self) -> list[str]:
        """Canonical tokens joined by single spaces, of each sample."""
        return self._strings("formula")

    @cached_property
    def ids(self) -> list[str]:
        """`file:line` of the input, of each sample."""
        return self._strings("id")

    @cached_property
    def styles(self) -> list[str]:
        """What each sample was drawn with."""
        return self._strings("style")

    @cached_property
    def sizes(self) -> npt.NDArray[np.int32]:
        """Height and width of each image, (N, 2)."""
        columns = [self._column(name).to_numpy() for name in ("height", "width")]
        return np.stack(columns, axis=1).astype(np.int32)

    @cached_property
    def num_tokens(self) -> npt.NDArray[np.int64]:
        """How many tokens each formula has."""
        return np.array([formula.count(" ") + 1 for formula in self.formulas], dtype=np.int64)

    def boxes(self, indices: Sequence[int]) -> list[list[Box | None] | None]:
        """Give the boxes of each token of some samples; None for a sample or token without."""
        if self._boxes is None:
            return [None] * len(indices)
        picked = self._boxes.take(pa.array(indices, pa.int64())).to_pylist()
        return [boxes and [box and tuple(box) for box in boxes] for boxes in picked]

    def token_boxes(self) -> npt.NDArray[np.int16] | None:
        """Give the boxes of all tokens of all samples, (sum of tokens, 4); empty for a token without one."""
        if self._boxes is None:
            return None
        starts = np.concatenate([[0], np.cumsum(self.num_tokens)])
        table = np.zeros((starts[-1], 4), dtype=np.int16)
        samples = self._boxes.combine_chunks()
        known = np.flatnonzero(samples.is_valid().to_numpy(zero_copy_only=False))
        lists = samples.drop_null()
        boxes = lists.flatten()
        filled = boxes.is_valid().to_numpy(zero_copy_only=False)
        rows = np.concatenate([np.arange(starts[i], starts[i + 1]) for i in known]) if len(known) else known
        table[rows[filled]] = boxes.flatten().to_numpy(zero_copy_only=False).reshape(-1, 4)
        return table

    def pixels(self, indices: Sequence[int], *, jobs: int | None = None) -> list[Pixels]:
        """Give the grey images of some samples, (height, width) each, 255 = white; thousands in parallel."""
        buffer = self._load(np.asarray(indices, dtype=np.int64), jobs)
        return [buffer[index] for index in range(len(buffer))]

    def load_all(self, *, jobs: int | None = None) -> PixelBuffer:
        """Decode every image of the split into one flat buffer, on all cores unless `jobs` says otherwise."""
        return self._load(np.arange(len(self)), jobs)

    @cached_property
    def _boxes(self) -> pa.ChunkedArray | None:
        return self._column("boxes") if "boxes" in self._schema.names else None

    @cached_property
    def _places(self) -> tuple[list[Path], npt.NDArray[np.int32], npt.NDArray[np.int32]]:
        """The files that hold pixels, and for each sample which of them and where in it."""
        if "page" in self._schema.names:
            names = self._column("pages").combine_chunks().dictionary_encode()
            files = [self._root / name for name in names.dictionary.to_pylist()]
            return files, names.indices.to_numpy(), self._column("page").to_numpy()
        lengths = [pq.read_metadata(file).num_rows for file in self._files]
        owners = np.repeat(np.arange(len(lengths), dtype=np.int32), lengths)
        rows = [np.arange(length, dtype=np.int32) for length in lengths]
        return self._files, owners, np.concatenate(rows)

    def _load(self, indices: npt.NDArray[np.int64], jobs: int | None) -> PixelBuffer:
        shapes = self.sizes[indices]
        stored = self.stored(indices, pixel_offsets(shapes))
        return load_pixels(stored, shapes, jobs=jobs)

    def stored(self, indices: npt.NDArray[np.int64], offsets: npt.NDArray[np.int64]) -> list[StoredSamples]:
        """Say which files hold the pixels of some samples, with where in a buffer each shall go."""
        files, owners, places = self._places
        shapes = self.sizes[indices]
        stored = []
        for number in np.unique(owners[indices]):
            positions = np.flatnonzero(owners[indices] == number)
            positions = positions[np.argsort(places[indices[positions]], kind="stable")]
            samples = indices[positions]
            styles = [self.styles[index] for index in samples]
            stored.append(
                StoredSamples(files[number], places[samples], styles, shapes[positions], offsets[positions])
            )
        return stored

    def _column(self, name: str) -> pa.ChunkedArray:
        tables = []
        for file in self._files:
            try:
                tables.append(pq.read_table(file, columns=[name]))
            except (OSError, pa.ArrowException) as error:
                raise DatasetError(
                    f"{file} is damaged ({error}); copy or build the dataset again."
                ) from error
        return pa.concat_tables(tables)[name]

    def _strings(self, name: str) -> list[str]:
        return self._column(name).to_pylist()  # type: ignore[no-any-return]
