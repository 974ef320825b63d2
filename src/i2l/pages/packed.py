"""Pages with known formulas, packed: a few kilobytes each, so that they can be carried to where is trained.

TeX draws a letter alike wherever it stands. So the pieces of ink of many pages are kept once each, in sixteen
shades, and every page is a list of pieces and places, all of it packed by xz. A page that was unpacked is one
byte a pixel, which holds the shade, whose ink it is, and the region that the pixel lies in.
"""

import json
import lzma
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from i2l.errors import I2LError
from i2l.files import atomic_write
from i2l.images.ink import find_runs, ink_bounds
from i2l.images.open import EmptyImageError
from i2l.pages.find import symbol_height
from i2l.pages.gather import DISPLAYED, INLINE, KINDS, NUMBER

SUFFIX: Final = ".pages.xz"
SHADES: Final = 15  # full ink
OWNER_SHIFT, REGION_SHIFT = 4, 6  # of the bits of a pixel above those of its shade
_DARK_SHADE: Final = 7  # ink at least this dark makes letters
_FAINTEST: Final = 2  # what is fainter is paper
_SHADE_OF: Final = np.array(
    [shade if shade >= _FAINTEST else 0 for shade in ((255 - grey + 8) // 17 for grey in range(256))],
    np.uint8,
)
_PAGES_PER_FILE: Final = 150
_MARGIN: Final = 3.0  # of paper that is kept around the ink, in heights of small letters
_NARROWEST: Final = 0.35  # of a region, in heights of small letters
_ORDER: Final = (DISPLAYED, INLINE, NUMBER)  # in which regions are drawn, one over the other


class PackedPage(NamedTuple):
    """A page to train with: its pixels as the module says, and the height of its small letters."""

    pixels: NDArray[np.uint8]
    symbol_px: float


@dataclass(frozen=True)
class _Pieces:
    """The pieces of ink of a page: which, whose, and where."""

    keys: NDArray[np.int32]
    owners: NDArray[np.uint8]
    lefts: NDArray[np.int32]
    tops: NDArray[np.int32]


class _Packer:
    """Gathers pages, and keeps each piece of ink once."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, int, bytes], int] = {}
        self._dark: list[tuple[int, int, int, int]] = []
        self.pages: list[dict[str, Any]] = []
        self._pieces: list[_Pieces] = []

    def add(self, pixels: NDArray[np.uint8], classes: NDArray[np.uint8], boxes: list[dict[str, Any]]) -> bool:
        """Add a page, without the paper around its ink; False if it has no letters."""
        shades = _SHADE_OF[pixels]
        try:
            left, top, right, bottom = ink_bounds(shades)
        except EmptyImageError:
            return False
        shades, classes = shades[top:bottom, left:right], classes[top:bottom, left:right]
        values = np.where(shades > 0, shades | (classes << np.uint8(OWNER_SHIFT)), np.uint8(0))
        keys, owners, places, heights = self._cut(values, *find_runs(values > 0))
        symbol_px = symbol_height(heights)
        if symbol_px is None:
            return False
        margin = round(_MARGIN * symbol_px)
        left, top, right, bottom = left - margin, top - margin, right + margin, bottom + margin
        self.pages.append(
            {
                "size": [right - left, bottom - top],
                "symbol_px": round(symbol_px, 2),
                "pieces": len(keys),
                "boxes": [
                    [KINDS.index(box["kind"])]
                    + [value - start for value, start in zip(box["box"], (left, top) * 2, strict=True)]
                    + [round(box["baseline_px"] - top, 1)]
                    for box in boxes
                ],
            }
        )
        self._pieces.append(_Pieces(keys, owners, places[:, 0] + margin, places[:, 1] + margin))
        return True

    def _cut(
        self, values: NDArray[np.uint8], runs: NDArray[np.int64], group: NDArray[np.int64]
    ) -> tuple[NDArray[np.int32], NDArray[np.uint8], NDArray[np.int32], NDArray[np.int64]]:
        """Return key, owner and place of each piece, and the boxes of its dark part."""
        lengths = runs[:, 2] - runs[:, 0]
        starts = runs[:, 1] * values.shape[1] + runs[:, 0]
        offsets = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        labels = np.zeros(values.shape, np.int32)
        labels.reshape(-1)[np.repeat(starts, lengths) + offsets] = np.repeat(group + 1, lengths)
        count = int(group.max()) + 1
        corners, ends = np.full((count, 2), values.size), np.zeros((count, 2), np.int64)
        np.minimum.at(corners, group, runs[:, :2])
        np.maximum.at(ends, group, runs[:, 2:])
        keys, owners = np.zeros(count, np.int32), np.zeros(count, np.uint8)
        dark = np.zeros((count, 4), np.int64)
        for number in range(count):
            (left, top), (right, bottom) = corners[number].tolist(), ends[number].tolist()
            part = values[top:bottom, left:right]
            piece = np.where(labels[top:bottom, left:right] == number + 1, part, 0).astype(np.uint8)
            inked = piece[piece > 0]
            owner = int(inked[0]) >> OWNER_SHIFT
            if int(inked.min()) >> OWNER_SHIFT == int(inked.max()) >> OWNER_SHIFT:
                owners[number] = owner
                piece &= SHADES
            # else pieces of two owners touch, and the piece itself says whose it is
            key = piece.shape[0], piece.shape[1], piece.tobytes()
            if key not in self._known:
                self._known[key] = len(self._known)
                self._dark.append(_dark_box(piece))
            keys[number] = self._known[key]
            dark[number] = self._dark[keys[number]]
        return keys, owners, corners.astype(np.int32), dark

    def write(self, path: Path) -> None:
        """Write the pages to a file."""
        shapes = np.array([key[:2] for key in self._known], np.uint16).reshape(-1, 2)
        columns = [
            shapes.tobytes(),
            b"".join(key[2] for key in self._known),
            *(
                np.concatenate([np.zeros(0, kind), *parts]).tobytes()
                for kind, parts in (
                    (np.int32, [page.keys for page in self._pieces]),
                    (np.uint8, [page.owners for page in self._pieces]),
                    (np.int16, [_steps(page.lefts) for page in self._pieces]),
                    (np.int16, [_steps(page.tops) for page in self._pieces]),
                )
            ),
        ]
        head = json.dumps({"pages": self.pages, "columns": [len(column) for column in columns]}).encode()
        filters = [{"id": lzma.FILTER_LZMA2, "preset": 6, "pb": 0, "dict_size": 1 << 24}]
        data = len(head).to_bytes(8, "little") + head + b"".join(columns)
        with atomic_write(path, "wb") as file:
            file.write(lzma.compress(data, filters=filters))


def _dark_box(piece: NDArray[np.uint8]) -> tuple[int, int, int, int]:
    """Return the box of what is dark in a piece; nothing if it is faint."""
    rows, columns = np.nonzero(piece & SHADES >= _DARK_SHADE)
    if not len(rows):
        return 0, 0, 0, 0
    return int(columns.min()), int(rows.min()), int(columns.max()) + 1, int(rows.max()) + 1


def _steps(places: NDArray[np.int32]) -> NDArray[np.int16]:
    return np.diff(places, prepend=0).astype(np.int16)


def pack_pages(folders: Sequence[Path], into: Path, *, pages_per_file: int = _PAGES_PER_FILE) -> int:
    """Pack the pages that `i2l.pages.marked` has written to folders; return how many there are.

    Args:
        folders: of pages. Those of one folder share their pieces of ink, best if all are of one resolution.
        into: a folder for the files, each named after its first page; what is there already is kept.
        pages_per_file: at most.
    """
    into.mkdir(parents=True, exist_ok=True)
    count = 0
    for folder in folders:
        paths = sorted(folder.glob("*.json"))
        for first in range(0, len(paths), pages_per_file):
            file = into / f"{folder.name}-{first:06d}{SUFFIX}"
            if file.exists():
                continue
            packer = _Packer()
            for path in paths[first : first + pages_per_file]:
                pixels, classes = (
                    np.asarray(Image.open(path.with_suffix(suffix))) for suffix in (".png", ".classes.png")
                )
                count += packer.add(pixels, classes, json.loads(path.read_text())["boxes"])
            packer.write(file)
    return count


def list_packed(folder: Path) -> list[Path]:
    """List the files of packed pages in a folder.

    Raises:
        I2LError: if there are none.
    """
    found = sorted(folder.glob(f"*{SUFFIX}"))
    if not found:
        raise I2LError(
            f"There are no packed pages in {folder}; make them with: python -m i2l.pages.train pack."
        )
    return found


def unpack_pages(path: Path) -> Iterator[PackedPage]:
    """Unpack the pages of a file, one after the other.

    Raises:
        I2LError: if the file is damaged.
    """
    try:
        data = lzma.decompress(path.read_bytes())
        size = int.from_bytes(data[:8], "little")
        head = json.loads(data[8 : 8 + size])
    except (OSError, lzma.LZMAError, ValueError) as error:
        raise I2LError(f"{path} is damaged; pack the pages again.") from error
    parts = []
    start = 8 + size
    for length, kind in zip(
        head["columns"], (np.uint16, np.uint8, np.int32, np.uint8, np.int16, np.int16), strict=True
    ):
        parts.append(np.frombuffer(data[start : start + length], kind))
        start += length
    shapes = parts[0].reshape(-1, 2).astype(np.int64)
    ends = np.cumsum(shapes.prod(axis=1))
    pieces = [
        parts[1][end - rows * columns : end].reshape(rows, columns)
        for end, (rows, columns) in zip(ends.tolist(), shapes.tolist(), strict=True)
    ]
    first = 0
    for about in head["pages"]:
        last = first + about["pieces"]
        keys, owners, lefts, tops = (part[first:last] for part in parts[2:])
        lefts, tops = np.cumsum(lefts, dtype=np.int64), np.cumsum(tops, dtype=np.int64)
        width, height = about["size"]
        pixels = _draw_regions(about["boxes"], width, height, about["symbol_px"])
        for key, owner, left, top in zip(
            keys.tolist(), owners.tolist(), lefts.tolist(), tops.tolist(), strict=True
        ):
            piece = pieces[key]
            part = pixels[top : top + piece.shape[0], left : left + piece.shape[1]]
            part |= np.where(piece > 0, piece | (owner << OWNER_SHIFT), 0).astype(np.uint8)
        yield PackedPage(pixels, about["symbol_px"])
        first = last


def _draw_regions(boxes: list[list[float]], width: int, height: int, symbol_px: float) -> NDArray[np.uint8]:
    """Draw the regions of formulas; of inline ones only the height of small letters is drawn."""
    pixels = np.zeros((height, width), np.uint8)
    for kind in _ORDER:
        for index, left, upper, right, lower, baseline in boxes:
            if KINDS[int(index)] != kind:
                continue
            top, bottom = (baseline - symbol_px, baseline) if kind == INLINE else (upper, lower)
            wider = max(0.0, _NARROWEST * symbol_px - (right - left)) / 2
            x0, x1 = max(0, round(left - wider)), max(0, round(right + wider))
            y0, y1 = max(0, round(top)), max(0, round(bottom))
            pixels[y0:y1, x0:x1] = (int(index) + 1) << REGION_SHIFT
    return pixels
