"""LaTeX source to raw tokens with their places in it.

White space is left out; the words of text commands look it up in the source. Characters beyond ASCII, and
names that stand for several tokens, are written out here as the table of commands says.
"""

import re
from itertools import accumulate
from typing import NamedTuple

from i2l.errors import I2LError
from i2l.formulas.commands import CHARACTERS, SPELLED_OUT
from i2l.formulas.spelling import one_name


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
