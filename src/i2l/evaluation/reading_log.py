"""What a model has read so far, on disk: a reading that was interrupted goes on where it was.

One JSON object a line: first model and options, then the readings, each under the hash of its image. A file
of another model or other options is begun anew; a line cut off by a kill is read again.
"""

import hashlib
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar

from i2l.errors import I2LError
from i2l.evaluation.image_match import Pixels
from i2l.evaluation.run import Progress

_SLICE: Final = 256  # images between two writes

Source = TypeVar("Source", Pixels, Path, Pixels | Path)
Readings = list[str | I2LError]


class ReadingLog:
    """Readings of one model with one set of options."""

    def __init__(self, path: Path, *, reader: dict[str, Any]) -> None:
        """Open a log, with what an earlier run left in it if that had the same ``reader``."""
        self._path = path
        self._known: dict[str, dict[str, str]] = {}
        lines = path.read_bytes().splitlines() if path.is_file() else []
        head = json.dumps({"reader": reader}, sort_keys=True)
        if not lines or lines[0].decode("utf-8", "replace") != head:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(head + "\n", encoding="utf-8")
            return
        for line in lines[1:]:
            try:
                entry = json.loads(line)
                self._known[entry.pop("image")] = entry
            except (ValueError, KeyError):
                continue

    def read(
        self,
        images: Sequence[Source],
        read: Callable[[Sequence[Source]], Sequence[str | I2LError]],
        *,
        kind: str,
        progress: Progress | None = None,
    ) -> Readings:
        """Give the readings of images, having those read that are new; ``kind`` says how they are read."""
        keys = [f"{kind} {_hash(image)}" for image in images]
        new = {key: image for key, image in zip(keys, images, strict=True) if key not in self._known}
        waiting = sorted(new, key=lambda key: _width(new[key]))  # so that a batch has images of one size
        with self._path.open("a", encoding="utf-8") as file:
            for start in range(0, len(waiting), _SLICE):
                part = waiting[start : start + _SLICE]
                for key, found in zip(part, read([new[key] for key in part]), strict=True):
                    entry = {"error": str(found)} if isinstance(found, I2LError) else {"formula": found}
                    self._known[key] = entry
                    file.write(json.dumps({"image": key, **entry}) + "\n")
                file.flush()
                if progress:
                    progress("reading", len(images) - len(waiting) + start + len(part), len(images))
        return [_reading(self._known[key]) for key in keys]


def _reading(entry: dict[str, str]) -> str | I2LError:
    return I2LError(entry["error"]) if "error" in entry else entry["formula"]


def _hash(image: Pixels | Path) -> str:
    if not isinstance(image, Path):
        return hashlib.sha256(repr(image.shape).encode() + image.tobytes()).hexdigest()
    try:
        with image.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return f"unreadable {image.name}"


def _width(image: Pixels | Path) -> int:
    return 0 if isinstance(image, Path) else int(image.shape[1])
