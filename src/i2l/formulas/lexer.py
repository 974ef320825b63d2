"""LaTeX source to raw tokens with their places in it, and files of formulas as a stream of lines.

White space is left out; the words of text commands look it up in the source. Characters beyond ASCII, and
names that stand for several tokens, are written out here as the table of commands says.

Files have one formula a line, plain or packed; there is a bound on what one line may take.
"""

import gzip
import lzma
import re
import sys
import zlib
from collections.abc import Iterator
from contextlib import nullcontext
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

from i2l.errors import I2LError
from i2l.formulas.commands import CHARACTERS, SPELLED_OUT, one_name


class Token(NamedTuple):
    """One canonical token, and where in its source it came from."""

    text: str
    start: int  # span in the source string, start <= end; empty where the token has no text of its own there
    end: int
    visible: bool  # draws ink itself: a letter, a fraction bar, a root sign; not `{`, `^`, `\,`, `\mathrm`


class FormulaError(I2LError):
    """A formula that cannot be normalised: why, and at which character of the source."""

    def __init__(self, reason: str, position: int, detail: str = "") -> None:
        super().__init__(f"{reason} at character {position}" + (f": {detail}" if detail else ""))
        self.reason = reason
        self.position = position
        self.detail = detail


MAX_CHARACTERS = 100_000  # a formula of a printed page has hundreds

_TOKEN = re.compile(
    r"\\(?:left|right)(?![A-Za-z])\s*(?:\\[A-Za-z]+|\\[^A-Za-z]|[^\s{}\\])"  # \left( is one token
    r"|\\(?:begin|end)\s*\{\s*[A-Za-z]+\*?\s*\}"
    r"|\\(?:operatorname|hspace|vspace|tag)\s*\*"
    r"|\\[A-Za-z]+"
    r"|\\[^A-Za-z]"
    r"|---?"
    r"|%.*"
    r"|\s+"
    r"|.",
    re.DOTALL,
)
_GLUED = re.compile(r"\\(?:left|right|begin|end|operatorname|hspace|vspace|tag)(?![A-Za-z])")
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1f\x7f]")


class RawTokens:
    """The tokens of one source: texts, starts and ends in step, closed by an empty text at the end."""

    __slots__ = ("ends", "source", "spaced", "starts", "texts")

    def __init__(self, source: str) -> None:
        """Split the source.

        Raises:
            FormulaError: for a source that is too long or holds characters no formula has.
        """
        if len(source) > MAX_CHARACTERS:
            raise FormulaError("too long", MAX_CHARACTERS, f"{len(source)} characters")
        if control := _CONTROL.search(source):
            raise FormulaError("control character", control.start(), repr(control.group()))
        if (lost := source.find("[object Object]")) >= 0:
            raise FormulaError("root index lost by im2markup", lost, "[object Object]")
        self.source = source
        pieces = _TOKEN.findall(source)
        ends = list(accumulate(map(len, pieces)))
        kept = [
            (piece, end - len(piece), end)
            for piece, end in zip(pieces, ends, strict=True)
            if not (piece[0] == "%" or piece.isspace())
        ]
        if not source.isascii() or not SPELLED_OUT.keys().isdisjoint(pieces):
            kept = _spell_out(kept)
        if r"\not" in pieces:
            kept = _join_not_equal(kept)
        texts = [piece for piece, _, _ in kept]
        # Every token set off by one space: the form we print, in which spaces and inner braces say nothing.
        self.spaced = " ".join(["\\" if text == "\\ " else text for text in texts]) == source.strip(" ")
        for index, text in enumerate(texts):
            if len(text) > 1 and text[0] == "\\":
                if text[1].isspace():
                    texts[index] = "\\"  # control space, whatever the space
                else:
                    texts[index] = one_name("".join(text.split()) if _GLUED.match(text) else text)
        self.texts = [*texts, ""]
        self.starts = [*(start for _, start, _ in kept), len(source)]
        self.ends = [*(end for _, _, end in kept), len(source)]


def _join_not_equal(pieces: list[tuple[str, int, int]]) -> list[tuple[str, int, int]]:
    r"""Write `\not =`, which is how LaTeX defines `\neq`, as that one sign."""
    joined: list[tuple[str, int, int]] = []
    for piece, start, end in pieces:
        if piece == "=" and joined and joined[-1][0] == r"\not":
            joined[-1] = (r"\neq", joined[-1][1], end)
        else:
            joined.append((piece, start, end))
    return joined


def _spell_out(pieces: list[tuple[str, int, int]]) -> list[tuple[str, int, int]]:
    spelled: list[tuple[str, int, int]] = []
    for piece, start, end in pieces:
        written = CHARACTERS.get(piece) or SPELLED_OUT.get(piece)
        if written is not None:
            spelled.extend((part, start, end) for part in _TOKEN.findall(written))
        elif piece.isascii():
            spelled.append((piece, start, end))
        else:
            raise FormulaError("unknown character", start, repr(piece))
    return spelled


_LIMIT = 4 * MAX_CHARACTERS + 2  # no longer line is a formula, in UTF-8 or any other encoding
_DAMAGED = (EOFError, lzma.LZMAError, zlib.error, gzip.BadGzipFile)


class LinesError(I2LError):
    """A file of formulas that cannot be read."""


def read_lines(path: Path) -> Iterator[bytes]:
    r"""Read the lines of a file (`-` is standard input; .xz and .gz are unpacked), split at \n alone.

    A line too long to be a formula is cut, and the rest of it passed over.

    Raises:
        LinesError: if the file is missing or damaged; the message has the last good line.
    """
    number = 0
    try:
        with _open(path) as file:
            while line := file.readline(_LIMIT):
                end = line[-1:]
                while end != b"\n" and (rest := file.readline(_LIMIT)):
                    end = rest[-1:]
                yield line.removesuffix(b"\n").removesuffix(b"\r")
                number += 1
    except _DAMAGED as error:
        raise LinesError(f"{path} is damaged after line {number} ({error}); get the file again.") from error
    except OSError as error:
        raise LinesError(f"Cannot read {path}: {error.strerror}.") from error


def decode_line(line: bytes) -> str:
    """Decode one line.

    Raises:
        FormulaError: if it is not UTF-8.
    """
    try:
        return line.decode()
    except UnicodeDecodeError as error:
        raise FormulaError("not UTF-8", error.start, repr(line[error.start : error.end])) from None


def _open(path: Path) -> Any:  # noqa: ANN401 - a context manager over IO[bytes], of four kinds
    if str(path) == "-":
        return nullcontext(sys.stdin.buffer)
    openers: dict[str, Any] = {".xz": lzma.open, ".gz": gzip.open}
    return openers.get(path.suffix, open)(path, "rb")
