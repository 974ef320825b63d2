"""A TeX file as text: bytes of any encoding decoded, comments and verbatim text taken out, places kept."""

import codecs
import re
from bisect import bisect_right
from dataclasses import dataclass
from typing import Final

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
        """Give the place in the file of a character of this text."""
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
