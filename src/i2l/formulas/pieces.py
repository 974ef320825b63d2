"""TeX source cut into the pieces that macros work on, each with its place, and read one by one."""

import re
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

# A name may hold @, as in the files where authors define macros; an author's formula has no such name.
_PIECE: Final = re.compile(r"\\[A-Za-z@]+|\\.|#+[1-9]?|%[^\n]*|\s+|.", re.DOTALL)
_PLAIN_PIECE: Final = re.compile(r"\\[A-Za-z]+|\\.|#+[1-9]?|%[^\n]*|\s+|.", re.DOTALL)
_MAX_ARGUMENT: Final = 20_000  # pieces; who has more has lost a closing brace


class Piece(NamedTuple):
    """A command, a character, a run of white space or a parameter like `#1`."""

    text: str
    start: int  # where it came from in the author's formula
    end: int
    frozen: bool = False  # a command that no macro may replace: it has TeX's own meaning


def is_word(text: str) -> bool:
    r"""Tell whether a piece is a command made of letters, which swallows the white space behind it."""
    return len(text) > 1 and text[0] == "\\" and (text[1].isalpha() or text[1] == "@")


def cut(source: str, position: int = 0, *, at_letter: bool = False) -> Iterator[Piece]:
    """Cut a source into pieces, from a position on, as they are asked for."""
    pattern = _PIECE if at_letter else _PLAIN_PIECE
    for match in pattern.finditer(source, position):
        yield Piece(match.group(), match.start(), match.end())


def cut_body(source: str) -> tuple[str, ...]:
    """Cut the text of a macro as TeX stores it: no comments, one space for many, none behind a name."""
    texts: list[str] = []
    for match in _PIECE.finditer(source):
        text = match.group()
        if text[0] == "%" or (text.isspace() and texts and is_word(texts[-1])):
            continue
        texts.append(" " if text.isspace() else text)
    return tuple(texts)


def join(texts: Iterable[str]) -> str:
    """Write texts one behind the other, with a space where a name would swallow the letter behind it."""
    written: list[str] = []
    after_word = False
    for text in texts:
        if after_word and (text[:1].isalpha() or text[:1] == "@"):
            written.append(" ")
        written.append(text)
        after_word = is_word(text) if text else after_word
    return "".join(written)


class Reader:
    """A source read piece by piece; what was read, or what stands for it, can be put back."""

    def __init__(self, pieces: Iterator[Piece], start: int = 0) -> None:
        self._ahead = pieces
        self._back: list[Piece] = []
        self._end = start

    @property
    def position(self) -> int:
        """Where in the source the next piece starts, as long as nothing but its own pieces was put back."""
        return self._back[-1].start if self._back else self._end

    def pop(self) -> Piece | None:
        """Take the next piece; None at the end."""
        if self._back:
            return self._back.pop()
        piece = next(self._ahead, None)
        if piece is not None:
            self._end = piece.end
        return piece

    def push(self, pieces: Iterable[Piece]) -> None:
        """Put pieces in front of what is left to read."""
        self._back.extend(reversed(list(pieces)))

    def num_waiting(self) -> int:
        """Count the pieces that were put back and not read again."""
        return len(self._back)

    def skip_space(self) -> list[Piece]:
        """Take white space and comments, if they are next."""
        skipped: list[Piece] = []
        while (piece := self.pop()) is not None:
            if not (piece.text.isspace() or piece.text[0] == "%"):
                self.push([piece])
                break
            skipped.append(piece)
        return skipped

    def peek(self) -> Piece | None:
        """Look at the next piece, white space included."""
        piece = self.pop()
        if piece is not None:
            self.push([piece])
        return piece

    def argument(self) -> list[Piece] | None:
        """Take a group without its braces, or a single piece; None if there is no argument."""
        self.skip_space()
        piece = self.pop()
        if piece is None or piece.text == "}":
            if piece is not None:
                self.push([piece])
            return None
        return [piece] if piece.text != "{" else self.group()

    def group(self) -> list[Piece] | None:
        """Take what is left of a group whose opening brace was read, without its closing brace."""
        depth = 1
        taken: list[Piece] = []
        while (piece := self.pop()) is not None:
            depth += (piece.text == "{") - (piece.text == "}")
            if depth == 0:
                return taken
            taken.append(piece)
            if len(taken) > _MAX_ARGUMENT:
                break
        return None

    def optional(self, opening: str = "[", closing: str = "]") -> list[Piece] | None:
        """Take what stands in brackets, if they are next; else leave everything where it was."""
        skipped = self.skip_space()
        piece = self.pop()
        if piece is None or piece.text != opening:
            self.push([*skipped, piece] if piece is not None else skipped)
            return None
        found = self.until((closing,))
        if found is None:
            self.push([*skipped, piece])
        return found

    def until(self, delimiter: tuple[str, ...]) -> list[Piece] | None:
        """Take everything up to a delimiter outside of braces; if it never comes, put all of it back."""
        depth = 0
        taken: list[Piece] = []
        size = len(delimiter)
        while (piece := self.pop()) is not None:
            taken.append(piece)
            depth += (piece.text == "{") - (piece.text == "}")
            if depth < 0 or len(taken) > _MAX_ARGUMENT:
                break
            if depth == (piece.text == "{") and tuple(each.text for each in taken[-size:]) == delimiter:
                del taken[-size:]
                if len(taken) > 1 and taken[0].text == "{" and _closes_at_end(taken):
                    return taken[1:-1]
                return taken
        self.push(taken)
        return None


def _closes_at_end(pieces: list[Piece]) -> bool:
    depth = 0
    for index, piece in enumerate(pieces):
        depth += (piece.text == "{") - (piece.text == "}")
        if depth == 0:
            return index == len(pieces) - 1
    return False
