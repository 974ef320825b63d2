"""Folders, files and archives as arXiv serves them, opened in memory: nothing is ever unpacked to the disk.

An archive may hold archives, as arXiv's monthly ones hold one for each paper. Each is a bundle of its own,
and so are the loose files around them. What is too large, too deep or damaged gets a verdict.
"""

import bz2
import gzip
import io
import lzma
import posixpath
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, Final

from i2l.errors import I2LError
from i2l.sources.bundle import Bundle, Verdict, is_source_name

MAX_FILE_BYTES: Final = 64 << 20  # of one file of TeX, or of one archive in an archive
MAX_BUNDLE_BYTES: Final = 256 << 20
MAX_FILES: Final = 20_000  # of a bundle
MAX_MEMBERS: Final = 1_000_000  # of an archive
MAX_NESTING: Final = 4
MAX_RATIO: Final = 200  # an archive that unpacks to more than this many times its size is a bomb

DAMAGED, TOO_LARGE, BOMB, LINK = "damaged", "too-large", "archive-bomb", "link"
_PACKED: Final = ((b"\x1f\x8b", "gz"), (b"\xfd7zXZ\x00", "xz"), (b"BZh", "bz2"))
_ERRORS: Final = (
    EOFError,
    OSError,
    lzma.LZMAError,
    zlib.error,
    tarfile.TarError,
    zipfile.BadZipFile,
    NotImplementedError,
    RuntimeError,  # a zip that asks for a password
    ValueError,
    OverflowError,
)


class SourceError(I2LError):
    """A source that is not there."""


class _BombError(Exception):
    """More comes out than any paper holds."""


def list_units(sources: list[Path]) -> list[Path]:
    """Cut sources into units of work: archives, files, and folders of loose files.

    A folder that holds no TeX of its own but other folders is taken to be one of papers, each a unit.

    Raises:
        SourceError: if a source is not there.
    """
    units: list[Path] = []
    for source in sources:
        if not source.exists():
            raise SourceError(f"{source} is not there; name folders, TeX files or archives of them.")
        units += _units_of(source) if source.is_dir() else [source]
    return units


def _units_of(folder: Path) -> list[Path]:
    entries = sorted(entry for entry in folder.iterdir() if not entry.is_symlink())
    folders = [entry for entry in entries if entry.is_dir()]
    if folders and not any(entry.is_file() and is_source_name(entry.name) for entry in entries):
        archives = [entry for entry in entries if entry.is_file() and _packing(entry) is not None]
        return [*archives, *(unit for each in folders for unit in _units_of(each))]
    return [folder]


def open_unit(unit: Path, name: str) -> Iterator[Bundle]:
    """Open a unit; give the bundles in it one by one, each under a name that starts with the given one."""
    if unit.is_dir():
        yield from _open_folder(unit, name)
        return
    bundle = Bundle(name)
    try:
        data = _read(unit)
    except _BombError:
        bundle.verdicts.append(Verdict(name, TOO_LARGE))
        yield bundle
        return
    except OSError as error:
        bundle.verdicts.append(Verdict(name, DAMAGED, error.strerror or ""))
        yield bundle
        return
    yield from _open_data(data, name, depth=0)


def _read(path: Path) -> bytes:
    if path.stat().st_size > MAX_BUNDLE_BYTES * 4:
        raise _BombError
    return path.read_bytes()


def _open_folder(folder: Path, name: str) -> Iterator[Bundle]:
    bundle = Bundle(name)
    size = 0
    for path in sorted(folder.rglob("*")):
        inside = path.relative_to(folder).as_posix()
        if path.is_symlink():
            bundle.links[inside] = path.readlink().as_posix()
        elif path.is_file():
            if _packing(path) is not None:
                yield from open_unit(path, bundle.label(inside))
            elif is_source_name(inside):
                size += path.stat().st_size
                if path.stat().st_size > MAX_FILE_BYTES or size > MAX_BUNDLE_BYTES:
                    bundle.verdicts.append(Verdict(bundle.label(inside), TOO_LARGE))
                else:
                    bundle.files[inside] = path.read_bytes()
    yield bundle


def _packing(path: Path) -> str | None:
    try:
        with open(path, "rb") as file:
            return _kind(file.read(512))
    except OSError:
        return None


def _kind(head: bytes) -> str | None:
    """Tell by the first bytes how something is packed."""
    for mark, kind in _PACKED:
        if head.startswith(mark):
            return kind
    if head.startswith(b"PK\x03\x04"):
        return "zip"
    if head[257:262] == b"ustar":
        return "tar"
    return None


def _open_data(data: bytes, name: str, *, depth: int) -> Iterator[Bundle]:
    """Open an archive or a single file, whatever it is packed in."""
    bundle = Bundle(name)
    try:
        kind = _kind(data[:512])
        for _ in range(MAX_NESTING):
            if kind in ("gz", "xz", "bz2"):
                data = _unpack(data, kind)
                kind = _kind(data[:512])
        if kind in ("tar", "zip"):
            yield from _open_members(bundle, data, kind, depth)
        elif kind is not None:
            bundle.verdicts.append(Verdict(name, BOMB, "packed too many times"))
        else:
            bundle = Bundle(posixpath.dirname(name))
            bundle.files[posixpath.basename(name)] = data
            bundle.alone = True
    except _BombError as error:
        bundle.verdicts.append(Verdict(name, BOMB, str(error)))
    except _ERRORS as error:
        bundle.verdicts.append(Verdict(name, DAMAGED, str(error)))
    yield bundle


def _unpack(data: bytes, kind: str) -> bytes:
    openers: dict[str, Any] = {"gz": gzip.open, "xz": lzma.open, "bz2": bz2.open}
    with openers[kind](io.BytesIO(data), "rb") as file:
        return _read_bounded(file, min(MAX_BUNDLE_BYTES, max(1 << 20, MAX_RATIO * len(data))))


def _read_bounded(file: IO[bytes], limit: int) -> bytes:
    data = file.read(limit + 1)
    if len(data) > limit:
        raise _BombError(f"unpacks to more than {limit} bytes")
    return data


def _open_members(bundle: Bundle, data: bytes, kind: str, depth: int) -> Iterator[Bundle]:
    """Take in the plain files of an archive, and open the archives in it."""
    size = 0
    members = _tar_members if kind == "tar" else _zip_members
    for number, (raw_name, link, length, file) in enumerate(members(data)):
        if number >= MAX_MEMBERS or len(bundle.files) >= MAX_FILES:
            raise _BombError(f"holds more than {number} files")
        name = _safe_name(raw_name)
        if name is None:
            bundle.verdicts.append(Verdict(f"{bundle.name}/{raw_name}"[:300], "unsafe-name"))
        elif link is not None:
            bundle.links[name] = link
        elif file is not None:
            nested = name.lower().endswith((".gz", ".tar", ".tgz", ".xz", ".bz2", ".zip"))
            if not nested and not is_source_name(name):
                continue
            if length > MAX_FILE_BYTES or size > MAX_BUNDLE_BYTES:
                bundle.verdicts.append(Verdict(bundle.label(name), TOO_LARGE))
                continue
            content = _read_bounded(file, MAX_FILE_BYTES)
            if nested and _kind(content[:512]) is not None:
                if depth < MAX_NESTING:
                    yield from _open_data(content, bundle.label(name), depth=depth + 1)
                else:
                    bundle.verdicts.append(Verdict(bundle.label(name), BOMB, "archives inside each other"))
            else:
                size += len(content)
                bundle.files[name] = content


_Member = tuple[str, str | None, int, IO[bytes] | None]


def _tar_members(data: bytes) -> Iterator[_Member]:
    with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as archive:
        for member in archive:
            if member.issym() or member.islnk():
                target = member.linkname
                if member.islnk():  # named from the root of the archive
                    target = posixpath.relpath(target, posixpath.dirname(member.name) or ".")
                yield member.name, target, 0, None
            elif member.isfile() and not member.issparse():
                yield member.name, None, member.size, archive.extractfile(member)


def _zip_members(data: bytes) -> Iterator[_Member]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        for member in archive.infolist():
            if not member.is_dir():
                with archive.open(member) as file:
                    yield member.filename, None, member.file_size, file


def _safe_name(name: str) -> str | None:
    """Give the name of a member inside its archive; None for one that leads out of it."""
    plain = posixpath.normpath(name.replace("\\", "/"))
    if plain.startswith(("/", "../")) or plain in ("..", ".") or "\0" in plain or plain[1:2] == ":":
        return None
    return plain
