"""Files that are either whole or absent, and folders that know what their files held when they were written.

A file is written beside its target, then renamed over it. A folder gets a list of checksums that
`sha256sum -c SHA256SUMS` reads too; a folder of an earlier version has none, and is not checked. Configs that
are saved in such folders are dataclasses that turn into JSON and back.
"""

import dataclasses
import hashlib
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Final, Self

from i2l.errors import I2LError

CHECKSUMS: Final = "SHA256SUMS"
_LINE: Final = re.compile(r"([0-9a-f]{64})  (.+)")


@contextmanager
def atomic_write(path: Path, mode: str = "w") -> Iterator[IO[Any]]:
    """Open ``path`` for writing; it appears under its name only if the block ends without an error."""
    partial = path.with_name(f"{path.name}.{os.getpid()}.partial")
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with open(partial, mode, encoding=None if "b" in mode else "utf-8") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, path)
    except OSError as error:
        if error.filename == str(partial):  # name the file that was asked for
            error.filename, error.filename2 = str(path), None
        raise
    finally:
        partial.unlink(missing_ok=True)


def file_checksum(path: Path) -> str:
    """Give the SHA-256 of a file in hex: 16 MB take 9 ms of one processor, so no cheaper sum is needed."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_checksums(folder: Path, names: Iterable[str] | None = None) -> None:
    """Write the checksums of all files of a folder, or renew those of some that have been written again.

    Only names of a folder that has checksums are renewed: the others would look as if they had been checked.
    """
    if names is None:
        paths = [path for path in folder.rglob("*") if path.is_file() and path.name != CHECKSUMS]
        sums = {path.relative_to(folder).as_posix(): file_checksum(path) for path in paths}
    elif (folder / CHECKSUMS).is_file():
        there = {name for name in names if (folder / name).is_file()}
        sums = _read_checksums(folder) | {name: file_checksum(folder / name) for name in there}
    else:
        return
    with atomic_write(folder / CHECKSUMS) as file:
        file.writelines(f"{sums[name]}  {name}\n" for name in sorted(sums))


def find_damage(folder: Path, names: Iterable[str]) -> str | None:
    """Compare files that are about to be used with their checksums.

    Args:
        folder: that has the files.
        names: of the files; one that is neither there nor has a checksum is left out.

    Returns:
        A sentence that names the first file that is not as it was written; None if all are, or if the folder
        has no checksums.
    """
    if not (folder / CHECKSUMS).is_file():
        return None
    try:
        sums = _read_checksums(folder)
        for name in names:
            path = folder / name
            if path.is_file() and name not in sums:
                return f"{folder / CHECKSUMS} is damaged: it lacks {name}. Copy the folder again."
            if name in sums and not path.is_file():
                return f"{path} is missing. Copy or write the folder again."
            if name in sums and file_checksum(path) != sums[name]:
                return (
                    f"{path} is damaged: its content is not the one that {CHECKSUMS} was written for. "
                    f"Copy or write the folder again; if you changed the file yourself, delete {CHECKSUMS}."
                )
    except (OSError, ValueError) as error:
        return f"{folder / CHECKSUMS} cannot be compared with the files: {error}"
    return None


def _read_checksums(folder: Path) -> dict[str, str]:
    text = (folder / CHECKSUMS).read_text(encoding="utf-8")
    found = [_LINE.fullmatch(line) for line in text.removesuffix("\n").split("\n")]
    if not text.endswith("\n") or None in found:
        raise ValueError(f"{CHECKSUMS} is damaged; copy the folder again.")
    return {line[2]: line[1] for line in found if line}


class ConfigError(I2LError):
    """A configuration that cannot be used."""


class JsonConfig:
    """A frozen dataclass that turns into a JSON object and back."""

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as JSON values."""
        return dataclasses.asdict(self)  # type: ignore[call-overload, no-any-return]

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Self:
        """Build the configuration from decoded JSON; lists become tuples.

        Raises:
            ConfigError: for a field that does not exist, or a value that the class refuses.
        """
        known = {field.name for field in dataclasses.fields(cls)}  # type: ignore[arg-type]
        unknown = sorted(set(fields) - known)
        if unknown:
            raise ConfigError(f"{cls.__name__} has no field {', '.join(unknown)}; it has {sorted(known)}.")
        return cls(**{name: tuple(v) if isinstance(v, list) else v for name, v in fields.items()})
