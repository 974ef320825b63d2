"""The macros of a preamble or a paper, written out in a formula; every character knows where it came from."""

import re
from pathlib import Path
from typing import Final, NamedTuple

from i2l.formulas.definitions import read_preamble
from i2l.formulas.gullet import Gullet
from i2l.formulas.macro import Macro
from i2l.formulas.macro import MacroError as MacroError
from i2l.formulas.pieces import Piece, Reader, cut, is_word

_NAME: Final = re.compile(r"\\(?:[A-Za-z]+|[^A-Za-z])")


class Expansion(NamedTuple):
    """A source with its macros written out; spans[i] is where in the original character i came from."""

    source: str
    spans: list[tuple[int, int]]
    used: dict[str, Macro]  # the macros that were written out


class Macros:
    """Commands and what they stand for."""

    def __init__(self, definitions: dict[str, Macro]) -> None:
        self.definitions = definitions

    @classmethod
    def load(cls, path: Path) -> "Macros":
        """Read a preamble file.

        Raises:
            MacroError: if the file cannot be read, or a definition in it is cut off.
        """
        try:
            return cls.parse(path.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError) as error:
            raise MacroError(f"Cannot read the macros {path}: {error}") from error

    @classmethod
    def parse(cls, preamble: str) -> "Macros":
        r"""Read every \newcommand, \def, \let, \DeclareMathOperator and their like; skip the rest.

        Raises:
            MacroError: if a definition is cut off.
        """
        return cls(read_preamble(preamble))

    def expand(self, source: str, *, inline: bool = False) -> Expansion:
        """Write out the macros of a formula, those inside macros too.

        Args:
            source: the formula as its author wrote it.
            inline: it stands in a line of text, which decides what a macro with several sizes draws.

        Raises:
            FormulaError: for a macro that lacks an argument, or that never stops growing.
        """
        if self.definitions.keys().isdisjoint(_NAME.findall(source)):
            return Expansion(source, [(place, place + 1) for place in range(len(source))], {})
        gullet = Gullet(self.definitions, Reader(cut(source)), inline=inline)
        pieces = gullet.run()
        written: list[str] = []
        spans: list[tuple[int, int]] = []
        after: Piece | None = None
        for piece in pieces:
            if after and piece.text[0].isalpha():  # a name would swallow the letter
                written.append(" ")
                spans.append((after.start, after.end))
            written.append(piece.text)
            if piece.end - piece.start == len(piece.text):
                spans.extend((place, place + 1) for place in range(piece.start, piece.end))
            else:
                spans.extend([(piece.start, piece.end)] * len(piece.text))
            after = piece if is_word(piece.text) else None
        return Expansion("".join(written), spans, gullet.used)
