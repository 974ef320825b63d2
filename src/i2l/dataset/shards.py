"""Write what readers get: Parquet shards, and in the compact form files of vector pages.

The layout says which kept lines go to which file. It lies in the work folder, one small table a file, so that
any process or machine can write any of them. Lines stay in input order.
"""

import lzma
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from i2l.dataset.draw import style_from_text
from i2l.dataset.schema import IMAGE, shard_schema
from i2l.dataset.sources import LineNames
from i2l.dataset.work import BuildError, WorkFolder, read_part, write_part
from i2l.files import atomic_write
from i2l.images.tex import compile_formulas

ROWS_PER_SHARD = 10_000
ROWS_PER_GROUP = 500  # of images: reading one costs a group, about 2 MB
# Each file of pages embeds its fonts, which do not pack: with 20,000 pages a file a formula takes 128 bytes,
# with 5,000 it takes 180. To read one sample the file is unpacked: 0.4 s.
PAGES_PER_FILE = 25_000

Lines = npt.NDArray[np.int64]  # numbers of kept lines over all inputs


@dataclass(frozen=True)
class ShardOptions:
    """What writing a file depends on, besides the files of the work folder."""

    folder: WorkFolder
    part_lines: int
    names: LineNames
    compact: bool
    boxes: bool


def lay_out_shards(
    folder: WorkFolder, lines: Mapping[str, Lines], pages: Mapping[str, pa.Table]
) -> list[str]:
    """Cut every split into shards; `pages` has the columns of the compact form, row by row."""
    files: list[str] = []
    for split, numbers in lines.items():
        table = pa.table({"line": numbers})
        for column in pages[split].column_names if split in pages else ():
            table = table.append_column(column, pages[split][column])
        starts = range(0, len(numbers), ROWS_PER_SHARD)
        for index, start in enumerate(starts):
            name = f"data/{split}-{index:05d}-of-{len(starts):05d}.parquet"
            shard = table.slice(start, ROWS_PER_SHARD).replace_schema_metadata({"file": name})
            write_part(folder.part("shards", len(files)), shard)
            files.append(name)
    return files


def lay_out_pages(
    folder: WorkFolder,
    lines: Mapping[str, Lines],
    *,
    looks: Sequence[str],
    looks_of: Mapping[str, Sequence[int]],
) -> tuple[list[str], dict[str, pa.Table]]:
    """Put lines of one split and one look (what TeX sees of their style) together in files of pages.

    Returns:
        The names of the files, and for each split the file and page of each of its lines.
    """
    files: list[str] = []
    tables = {}
    for split, numbers in lines.items():
        owners = np.zeros(len(numbers), dtype=np.int32)
        places = np.zeros(len(numbers), dtype=np.int32)
        first = len(files)
        look_of = np.asarray(looks_of[split])
        for look in np.unique(look_of):
            rows = np.flatnonzero(look_of == look)
            for start in range(0, len(rows), PAGES_PER_FILE):
                chosen = rows[start : start + PAGES_PER_FILE]
                name = f"pages/{split}-{len(files) - first:05d}.pdf.xz"
                owners[chosen], places[chosen] = len(files), np.arange(len(chosen))
                metadata = {"file": name, "look": looks[look]}
                table = pa.table({"line": numbers[chosen]}).replace_schema_metadata(metadata)
                write_part(folder.part("pages", len(files)), table)
                files.append(name)
        tables[split] = pa.table({"pages": pa.array(files).take(pa.array(owners)), "page": places})
    return files, tables


# How Parquet names what a column of lists holds: options go by that name, and others are silently ignored.
_LEAVES = {"boxes": "boxes.list.element.list.element", "tokens": "tokens.list.element"}


def write_shard(options: ShardOptions, index: int) -> None:
    """Write one Parquet file of the layout."""
    layout = read_part(options.folder.part("shards", index))
    schema = shard_schema(compact=options.compact, boxes=options.boxes)
    path = options.folder.result / layout.schema.metadata[b"file"].decode()
    # With one group a shard and level 19 the text of a sample takes 28 bytes; with 500 rows a group, 47.
    group, level = (ROWS_PER_SHARD, 19) if options.compact else (ROWS_PER_GROUP, 3)
    packed = [_LEAVES.get(name, name) for name in schema.names if name != "image"]  # PNG is packed as it is
    with (
        atomic_write(path, "wb") as file,
        pq.ParquetWriter(
            file,
            schema,
            compression=dict.fromkeys(packed, "zstd"),
            compression_level=dict.fromkeys(packed, level),
            use_dictionary=["pages", "style", _LEAVES["tokens"]],
        ) as writer,
    ):
        for start in range(0, len(layout), group):
            writer.write_table(_shard_rows(options, layout.slice(start, group), schema))


def write_pages(options: ShardOptions, index: int) -> None:
    """Compile the formulas of one file of pages, and pack it.

    Raises:
        BuildError: if a formula that was rendered before fails now.
    """
    layout = read_part(options.folder.part("pages", index))
    metadata = layout.schema.metadata
    formulas = [
        formula
        for part, rows in _by_part(layout["line"].to_numpy(), options.part_lines)
        for formula in read_part(options.folder.part("normalized", part))["latex"].take(rows).to_pylist()
    ]
    batch = compile_formulas(formulas, style=style_from_text(metadata[b"look"].decode()))
    for page, verdict in enumerate(batch.formulas):
        if verdict.page != page:
            name = options.names[layout["line"][page].as_py()]
            raise BuildError(f"{name} compiled before, but not now: {verdict.message}")
    with atomic_write(options.folder.result / metadata[b"file"].decode(), "wb") as file:
        file.write(lzma.compress(batch.pdf, preset=6))


def _by_part(lines: Lines, part_lines: int) -> Iterator[tuple[int, npt.NDArray[np.int64]]]:
    """Group line numbers, which rise, by part: the part, and the rows in it."""
    parts = lines // part_lines
    for group in np.split(np.arange(len(lines)), np.flatnonzero(np.diff(parts)) + 1):
        yield int(parts[group[0]]), lines[group] % part_lines


def _shard_rows(options: ShardOptions, layout: pa.Table, schema: pa.Schema) -> pa.Table:
    lines = layout["line"].to_numpy()
    pieces = []
    for part, rows in _by_part(lines, options.part_lines):
        rendered = read_part(options.folder.part("rendered", part))
        rendered = rendered.take(np.searchsorted(rendered["row"].to_numpy(), rows))
        formulas = read_part(options.folder.part("normalized", part))["formula"].take(rows)
        pieces.append(rendered.append_column("formula", formulas))
    table = pa.concat_tables(pieces)
    columns = {
        "id": pa.array([options.names[line] for line in lines.tolist()]),
        "tokens": pc.split_pattern(table["formula"], " "),
        **{name: layout[name] for name in layout.column_names},
        **{name: table[name] for name in ("formula", "width", "height", "boxes", "style")},
    }
    if not options.compact:
        images = table["image"].combine_chunks()
        columns["image"] = pa.StructArray.from_arrays(
            [images, pa.nulls(len(images), pa.string())], fields=list(IMAGE)
        )
    return pa.table([columns[name] for name in schema.names], schema=schema)
