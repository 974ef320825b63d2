"""The origins of extracted formulas: their names while a dataset is built, and the table of them in it."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from i2l.dataset.sources import Origin, Source
from i2l.dataset.work import WorkFolder, read_part
from i2l.files import atomic_write

ORIGINS_FILE = "origins.parquet"
_SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("file", pa.string()),
        ("start", pa.int64()),  # of the formula in its file, in characters
        ("end", pa.int64()),
        ("environment", pa.string()),
        ("macros", pa.string()),  # those that were written out, as JSON
    ]
)
_ROWS_AT_ONCE = 10_000


@contextmanager
def origins_writer(folder: Path, sources: Sequence[Source]) -> Iterator[Callable[[Origin], None]]:
    """Write the origins of all lines that have one into a dataset; no file if no source has any."""
    if not any(source.extracted for source in sources):
        yield lambda _: None
        return
    rows: list[Origin] = []
    with (
        atomic_write(folder / ORIGINS_FILE, "wb") as file,
        pq.ParquetWriter(file, _SCHEMA, compression="zstd") as writer,
    ):

        def write(origin: Origin | None) -> None:
            if origin is not None:
                rows.append(origin)
            if rows and (origin is None or len(rows) == _ROWS_AT_ONCE):
                writer.write_table(pa.Table.from_pylist([row._asdict() for row in rows], schema=_SCHEMA))
                rows.clear()

        yield write
        write(None)


class StoredNames:
    """Looks the names of lines up in the parts of the work folder; the last part stays open."""

    def __init__(self, folder: WorkFolder, *, part_lines: int) -> None:
        self._folder = folder
        self._part_lines = part_lines
        self._part = -1
        self._names: list[str | None] = []

    def __call__(self, number: int) -> str | None:
        """Give the name of a line; None if its number gives it."""
        part, row = divmod(number, self._part_lines)
        if part != self._part:
            self._names = read_part(self._folder.part("lines", part))["name"].to_pylist()
            self._part = part
        return self._names[row]
