"""How samples are written down: their styles, images and boxes, and the files that readers get.

Those files are Parquet shards and, in the compact form, files of vector pages. A layout says which kept lines
go to which file. It lies in the work folder, one small table a file, so that any process or machine can write
any of them; lines stay in input order. The columns of a shard carry the description that Hugging Face's
`datasets` reads.
"""

import hashlib
import io
import json
import lzma
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from PIL import Image

from i2l.dataset.sources import (
    CLEAN_STYLES,
    HAND_STYLES,
    PAPER_STYLES,
    PHOTO_STYLES,
    UNICODE_STYLES,
    WORLD_STYLES,
    LineNames,
)
from i2l.dataset.work import BuildError, WorkFolder, read_part, write_part
from i2l.files import atomic_write
from i2l.formulas.normalize import normalize_formula
from i2l.ink.hand import HAND_PREFIX, style_of_hand
from i2l.rendering.rasterize import Box, Pixels
from i2l.rendering.styles import (
    FONTS,
    PAPER,
    UNICODE_FONTS,
    Photo,
    Style,
    clean_style,
    photo_style,
    unicode_style,
    world_style,
)
from i2l.rendering.tex import check_font, compile_formulas

PAPER_TEXT = "paper"
PICTURE_TEXT = "picture"  # instead of a style: the sample was not rendered, and its scale is not known


def style_text(style: Style) -> str:
    """Write a style down: `paper`, or JSON of what differs from it."""
    if style == PAPER:
        return PAPER_TEXT
    values = _differing(style, PAPER)
    if style.photo is not None:
        values["photo"] = _differing(style.photo, Photo())
    return json.dumps(values)


def _differing(value: Style | Photo, usual: Style | Photo) -> dict[str, object]:
    values, others = asdict(value), asdict(usual)
    return {name: value for name, value in values.items() if value != others[name]}


def style_from_text(text: str) -> Style:
    """Read what `style_text` wrote, or what a seed of handwriting means; a picture has no style."""
    return style_of_hand(text) if text.startswith(HAND_PREFIX) else _stored_style(text)


@cache
def _stored_style(text: str) -> Style:
    if text == PAPER_TEXT:
        return PAPER
    values = json.loads(text)
    if "photo" in values:
        values["photo"] = Photo(**values["photo"])
    return Style(**values)


def encode_png(pixels: Pixels) -> bytes:
    """Pack an image; the bytes depend on nothing but the pixels and the versions of Pillow and zlib."""
    file = io.BytesIO()
    # level 4 packs within 3 % of level 6 and takes 0.56 ms instead of 0.78 for a formula at 200 dpi
    Image.fromarray(pixels).save(file, format="png", compress_level=4)
    return file.getvalue()


def styles_of_lines(kind: str, *, seed: int, lines: Sequence[int]) -> list[Style]:
    """Choose the style of each line: the paper's, or one drawn from the seed and the line's number.

    Lines that follow each other share what TeX sees of it, in blocks, so that few processes draw them.
    """
    if kind in (PAPER_STYLES, HAND_STYLES):  # a hand takes its layout from the paper's style
        return [PAPER] * len(lines)
    return [_DRAWN[kind]((seed << 32) + line) for line in lines]


def _mixed_style(seed: int) -> Style:
    """Draw a style of the recipe `photo`: three photographs for each clean image."""
    return world_style(seed) if seed % 4 == 0 else photo_style(seed)


_DRAWN: Final = {
    WORLD_STYLES: world_style,
    CLEAN_STYLES: clean_style,
    UNICODE_STYLES: unicode_style,
    PHOTO_STYLES: _mixed_style,
}


def check_styles(kind: str) -> None:
    """Draw a letter in every font the lines may get, so that a missing one is noticed before the work.

    Raises:
        TexError: if the packages of a font are not installed.
    """
    fonts = {
        PAPER_STYLES: (PAPER.font,),
        HAND_STYLES: (PAPER.font,),
        UNICODE_STYLES: tuple(UNICODE_FONTS)[:1],
    }
    for font in fonts.get(kind, FONTS):
        check_font(font)


def align_boxes(formula: str, latex: str, boxes: list[Box | None]) -> list[Box | None] | None:
    """Return the boxes of the canonical tokens; the renderer found those of the formula as TeX sees it.

    Text and lengths are written in one piece for TeX, and such a formula can normalise to other braces. The
    tokens that draw are the same; where they are not, there are no boxes.
    """
    if formula == latex:
        return boxes
    tokens = normalize_formula(formula).tokens
    drawn = [pair for pair in zip(normalize_formula(latex).tokens, boxes, strict=True) if pair[0].visible]
    if [token.text for token in tokens if token.visible] != [token.text for token, _ in drawn]:
        return None
    places = iter(drawn)
    return [next(places)[1] if token.visible else None for token in tokens]


# Left, top, right, bottom in pixels, half-open. Not a list of fixed size: versions of pyarrow that are in use
# refuse to read those from Parquet where some are null.
BOX = pa.list_(pa.int16())
BOXES = pa.list_(BOX)  # one entry per token, null where the token draws nothing
IMAGE = pa.struct([("bytes", pa.binary()), ("path", pa.string())])

_TEXT = {"dtype": "string", "_type": "Value"}
_INT16 = {"dtype": "int16", "_type": "Value"}
_INT32 = {"dtype": "int32", "_type": "Value"}
# "Sequence" is the old name of "List"; every version of `datasets` reads it
_BOXES = {"feature": {"feature": _INT16, "_type": "Sequence"}, "_type": "Sequence"}

_COLUMNS: dict[str, tuple[pa.DataType, dict[str, Any]]] = {
    "id": (pa.string(), _TEXT),  # file:line of the input
    "image": (IMAGE, {"_type": "Image"}),  # PNG, 8-bit grey, cropped to ink; or a picture's own file
    "pages": (pa.string(), _TEXT),  # a file of vector pages, relative to the dataset
    "page": (pa.int32(), _INT32),
    "ink": (pa.int32(), _INT32),  # its number in the bank; null for a formula written with the bank's symbols
    "formula": (pa.string(), _TEXT),  # canonical tokens joined by single spaces
    "tokens": (pa.list_(pa.string()), {"feature": _TEXT, "_type": "Sequence"}),
    "width": (pa.int16(), _INT16),
    "height": (pa.int16(), _INT16),
    "boxes": (BOXES, _BOXES),
    "style": (pa.string(), _TEXT),
}
PIXEL_COLUMNS = ("id", "image", "formula", "tokens", "width", "height", "boxes", "style")
HAND_COLUMNS = ("id", "ink", "formula", "width", "height", "boxes", "style")
COMPACT_COLUMNS = ("id", "pages", "page", "formula", "width", "height", "boxes", "style")


def shard_schema(*, compact: bool, boxes: bool, hand: bool = False) -> pa.Schema:
    """Return the Arrow schema of a shard; without boxes the column is left out.

    The compact form of handwriting needs its boxes: symbols of the bank are drawn where they say.
    """
    columns = PIXEL_COLUMNS if not compact else HAND_COLUMNS if hand else COMPACT_COLUMNS
    names = [name for name in columns if boxes or name != "boxes"]
    features = {name: _COLUMNS[name][1] for name in names}
    metadata = {"huggingface": json.dumps({"info": {"features": features}})}
    return pa.schema([(name, _COLUMNS[name][0]) for name in names], metadata=metadata)


ROWS_PER_SHARD = 10_000
ROWS_PER_GROUP = 500  # of images: reading one costs a group, about 2 MB
PICTURES_PER_GROUP = 50  # of pictures, which may be photographs of some MB each
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
    pictures: bool  # whether any sample was not rendered
    hand: bool = False  # whether formulas are written by hand


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
    schema = shard_schema(compact=options.compact, boxes=options.boxes, hand=options.hand)
    path = options.folder.result / layout.schema.metadata[b"file"].decode()
    # With one group a shard and level 19 the text of a sample takes 28 bytes; with 500 rows a group, 47.
    level = 19 if options.compact else 3
    group = ROWS_PER_SHARD if options.compact else ROWS_PER_GROUP
    if options.pictures:
        group = PICTURES_PER_GROUP
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
        **{name: table[name] for name in ("ink", "formula", "width", "height", "boxes", "style")},
    }
    if not options.compact:
        images = table["image"].combine_chunks()
        if options.pictures:
            images = _with_pictures(options, images, lines)
        columns["image"] = pa.StructArray.from_arrays(
            [images, pa.nulls(len(images), pa.string())], fields=list(IMAGE)
        )
    return pa.table([columns[name] for name in schema.names], schema=schema)


def _with_pictures(options: ShardOptions, images: pa.Array, lines: Lines) -> pa.Array:
    """Fill in the samples that were not rendered: the bytes of their pictures, just as the files hold them.

    Raises:
        BuildError: if a picture has changed since the build began.
    """
    filled = images.to_pylist()
    places = iter(range(len(filled)))
    for part, rows in _by_part(lines, options.part_lines):
        paths = read_part(options.folder.part("lines", part))["picture"].take(rows).to_pylist()
        digests = read_part(options.folder.part("normalized", part))["sha256"].take(rows).to_pylist()
        for path, digest in zip(paths, digests, strict=True):
            place = next(places)
            if path is not None:
                filled[place] = _read_picture(Path(path), digest)
    return pa.array(filled, pa.binary())


def _read_picture(path: Path, digest: str) -> bytes:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise BuildError(f"{path} cannot be read any more: {error.strerror}. Put it back.") from error
    if hashlib.sha256(content).hexdigest() != digest:
        raise BuildError(f"{path} has changed since the build began; put it back, or build anew.")
    return content
