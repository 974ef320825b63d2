"""Sources of papers and books, opened in memory: folders, files, and archives as arXiv serves them.

What is opened becomes bundles: the files of one paper or book by their names. An archive may hold archives,
as arXiv's monthly ones hold one for each paper; each of them is a bundle of its own, and so are the loose
files around them. What is too large, too deep or damaged gets a verdict, and nothing is ever unpacked to the
disk. A name leads to a file of its bundle or to nothing: `..`, absolute names and links are resolved among
the names of the bundle.

A file of a bundle is read as text: its encoding is found, comments and verbatim text are taken out, and every
character of the rest knows its place in the file.
"""

import bz2
import codecs
import gzip
import io
import lzma
import posixpath
import re
import tarfile
import zipfile
import zlib
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Final, NamedTuple

from i2l.errors import I2LError

_MARKS: Final = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_DECLARED: Final = re.compile(
    rb"\\(?:usepackage|RequirePackage)\s*\[([A-Za-z0-9-]+)\]\s*\{inputenc\}|\\inputencoding\{(\w+)\}"
)
_ENCODINGS: Final = {
    "latin1": "latin-1",
    "latin2": "iso-8859-2",
    "latin9": "iso-8859-15",
    "ansinew": "cp1252",
    "applemac": "mac-roman",
    "macce": "mac-latin2",
    "koi8-r": "koi8-r",
    "cp866": "cp866",
}
_BINARY: Final = (b"%PDF", b"%!PS", b"\x89PNG", b"\xff\xd8\xff", b"GIF8", b"PK\x03\x04", b"\x7fELF")
_SNIFFED_BYTES: Final = 1 << 16
_TEX: Final = re.compile(
    rb"\\(?:documentclass|documentstyle|begin\s*\{|section|chapter|input|magnification|bye|newcommand|def\\)"
)
_VERBATIM: Final = (
    r"[bBL]?[vV]erbatim|SaveVerbatim|verbatimtab|lstlisting|minted|comment|filecontents|asy|asydef|alltt|sageblock"
    r"|sagesilent|pycode|luacode|mma(?:Cell|_cell)"
)
# One pass: what may hold a percent sign that opens no comment comes before the comment.
_LEFT_OUT: Final = re.compile(
    r"\\(?:begin\s*\{(?P<verbatim>(?:" + _VERBATIM + r")\*?)\}"
    r"|(?:verb|lstinline)\*?(?P<bar>[^A-Za-z*\s{])[^\n]{0,500}?(?P=bar)"
    r"|(?:url|path|nolinkurl)\s*\{[^{}\n]{0,2000}\})"
    r"|(?P<kept>\\.)"
    r"|%[^\n]*(?:\n[ \t]*+(?!\n))?",
    re.DOTALL,
)


def decode(data: bytes) -> str:
    """Decode a file: by its mark, as UTF-8, as what it declares, or as Western European."""
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return _lines(data.decode(encoding, errors="replace"))
    try:
        return _lines(data.decode())
    except UnicodeDecodeError:
        pass
    declared = _DECLARED.search(data)
    name = (declared[1] or declared[2]).decode() if declared else "latin1"
    encoding = _ENCODINGS.get(name, name if re.fullmatch(r"cp\d+", name) else "cp1252")
    try:
        return _lines(data.decode(encoding, errors="replace"))
    except LookupError:
        return _lines(data.decode("cp1252", errors="replace"))


def _lines(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


def looks_like_tex(data: bytes, *, sure: bool = False) -> bool:
    """Tell whether bytes are TeX; with `sure` they are unless they are something else for certain."""
    head = data[:_SNIFFED_BYTES]
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return True
    if head.startswith(_BINARY) or b"\0" in head:
        return False
    return sure or bool(_TEX.search(head))


@dataclass(frozen=True)
class CleanText:
    """A text without what TeX does not typeset, and where each of its characters stood in the file."""

    text: str
    starts: list[int]  # the first characters of the runs that were kept, in this text ...
    places: list[int]  # ... and in the file

    def place(self, position: int) -> int:
        """Return the place in the file of a character of this text."""
        run = max(0, bisect_right(self.starts, position) - 1)
        return self.places[run] + position - self.starts[run] if self.starts else position


def clean(text: str) -> CleanText:
    """Leave out comments and verbatim text."""
    kept: list[str] = []
    starts: list[int] = []
    places: list[int] = []
    length = position = 0
    search_from = 0
    endless: set[str] = set()  # verbatim text that nothing closes is text like any other
    while match := _LEFT_OUT.search(text, search_from):
        end = match.end()
        name = match["verbatim"]
        if name:
            closing = -1 if name in endless else text.find(f"\\end{{{name}}}", end)
            if closing < 0:
                endless.add(name)
            end = closing + len(name) + 6
        search_from = match.end()
        if match["kept"] or (name and end < search_from):
            continue
        kept.append(text[position : match.start()])
        starts.append(length)
        places.append(position)
        length += match.start() - position
        position = search_from = end
    kept.append(text[position:])
    starts.append(length)
    places.append(position)
    return CleanText("".join(kept), starts, places)


TEX_SUFFIXES: Final = (".tex", ".ltx", ".latex")
STYLE_SUFFIXES: Final = (".sty", ".cls", ".def", ".clo", ".cfg", ".tikz")
_SNIFFED_SUFFIXES: Final = ("", ".txt", ".revtex", ".inc", ".latex209", ".ams")
_ROOT: Final = re.compile(r"\\document(?:class|style)\b|\\begin\s*\{document\}|\\magnification\b|\\bye\b")
_LINK: Final = re.compile(rb"[^\n\r\0{}\\%]{1,200}\n?")
_MAX_LINKS: Final = 8


def is_source_name(name: str) -> bool:
    """Tell by its name whether a file may be TeX; papers of arXiv are files like `0704.0001` too."""
    suffix = posixpath.splitext(name)[1].lower()
    return suffix in TEX_SUFFIXES + STYLE_SUFFIXES + _SNIFFED_SUFFIXES or suffix[1:].isdecimal()


class Verdict(NamedTuple):
    """What became of a file or of a formula that is not in the output."""

    file: str
    verdict: str
    message: str = ""
    span: tuple[int, int] | None = None


@dataclass
class Bundle:
    """The files of one source."""

    name: str  # what the name of each file starts with in the output
    files: dict[str, bytes] = field(default_factory=dict)
    links: dict[str, str] = field(default_factory=dict)
    verdicts: list[Verdict] = field(default_factory=list)
    alone: bool = False  # one file that was given by itself: it must be TeX
    _texts: dict[str, CleanText] = field(default_factory=dict)

    def label(self, name: str) -> str:
        """Return the name that a file has in the output."""
        return f"{self.name}/{name}" if self.name else name

    def find(self, name: str) -> str | None:
        """Resolve a name, through links too, to that of a file of this bundle."""
        for _ in range(_MAX_LINKS):
            name = posixpath.normpath(name.replace("\\", "/").strip().strip('"'))
            if name in self.links:
                name = posixpath.join(posixpath.dirname(name), self.links[name])
                continue
            data = self.files.get(name)
            if data is None:
                return None
            # A link that was checked out on a system without links is a file that holds a name.
            if not _LINK.fullmatch(data):
                return name
            target = posixpath.join(posixpath.dirname(name), data.decode("utf-8", errors="replace").strip())
            if posixpath.normpath(target) not in self.files:
                return name
            name = target
        return None

    def text(self, name: str) -> CleanText:
        """Return a file as text, which is decoded once."""
        if name not in self._texts:
            self._texts[name] = clean(decode(self.files[name]))
        return self._texts[name]

    def forget(self) -> None:
        """Drop the texts that were decoded."""
        self._texts.clear()

    def tex_names(self) -> list[str]:
        """List the files that are TeX: those with its suffixes, and others that look like it."""
        names = []
        for name, data in sorted(self.files.items()):
            suffix = posixpath.splitext(name)[1].lower()
            if suffix in STYLE_SUFFIXES or self.find(name) != name:
                continue
            if looks_like_tex(data, sure=suffix in TEX_SUFFIXES):
                names.append(name)
            elif suffix in TEX_SUFFIXES or self.alone:
                self.verdicts.append(Verdict(self.label(name), "not-tex"))
        return names

    def is_root(self, name: str) -> bool:
        """Tell whether a file is a document of its own."""
        return bool(_ROOT.search(self.text(name).text))


def find_input(bundle: Bundle, name: str, folders: Iterable[str], suffixes: Iterable[str]) -> str | None:
    """Look for a file as TeX does: in each folder, with each suffix and as it is."""
    if not name or len(name) > 500:
        return None
    for folder in folders:
        for suffix in (*suffixes, ""):
            found = bundle.find(posixpath.join(folder, name + suffix))
            if found is not None:
                return found
    return None


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
    """Open a unit and yield its bundles one by one, each under a name that starts with the given one."""
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
            if length > MAX_FILE_BYTES or size + length > MAX_BUNDLE_BYTES:
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
    """Return the name of a member inside its archive, or None for one that leads out of it."""
    plain = posixpath.normpath(name.replace("\\", "/"))
    if plain.startswith(("/", "../")) or plain in ("..", ".") or "\0" in plain or plain[1:2] == ":":
        return None
    return plain
