"""Files of formulas, one a line, plain or packed, read as a stream with a bound on what one line may take."""

import gzip
import lzma
import sys
import zlib
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from i2l.errors import I2LError
from i2l.formulas.lexer import MAX_CHARACTERS, FormulaError

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
