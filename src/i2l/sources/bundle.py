"""The files of one paper or book by their names, whether they lie in a folder or in an archive.

TeX only ever sees names, and a name leads to a file of the bundle or to nothing: `..`, absolute names and
links are resolved among the names, never on the disk.
"""

import posixpath
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from i2l.sources.texts import CleanText, clean, decode, looks_like_tex

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
        """Give the name that a file has in the output."""
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
            if len(data) > 200 or not _LINK.fullmatch(data):
                return name
            target = posixpath.join(posixpath.dirname(name), data.decode("utf-8", errors="replace").strip())
            if posixpath.normpath(target) not in self.files:
                return name
            name = target
        return None

    def text(self, name: str) -> CleanText:
        """Give a file as text; decoded once."""
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
