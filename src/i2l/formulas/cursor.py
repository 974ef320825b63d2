"""A place in the raw tokens of one source, and what is read there without the grammar: lengths and text."""

import re

from i2l.formulas.lexer import RawTokens
from i2l.formulas.tokens import FormulaError
from i2l.formulas.tree import Length, Symbol, Text

_LENGTH = re.compile(
    r"\s*=?(?:\s*[-+])*(?:\s*[\d.,])*\s*(?:t\s*r\s*u\s*e\s*)?"
    r"(?:p\s*t|m\s*m|c\s*m|i\s*n|e\s*m|e\s*x|m\s*u|b\s*p|s\s*p|d\s*d|c\s*c|p\s*c|\\[A-Za-z]+)"
)
_GAP = re.compile(r"\s*\*?\s*\[([-+.,\d\sa-z]*|[-+.,\d\s]*\\[A-Za-z]+\s*)\]")
_TEXT_TOKEN = re.compile(r"\\[A-Za-z]+\s*|\\[^A-Za-z]|\s+|.", re.DOTALL)


class Cursor:
    """The current token, and methods that each read one thing and move past it."""

    __slots__ = ("ends", "index", "source", "spaced", "starts", "texts")

    def __init__(self, raw: RawTokens) -> None:
        self.source = raw.source
        self.spaced = raw.spaced
        self.texts = raw.texts
        self.starts = raw.starts
        self.ends = raw.ends
        self.index = 0

    def error(self, reason: str) -> FormulaError:
        """Make the error for the current token."""
        return FormulaError(reason, self.starts[self.index], self.texts[self.index][:40])

    def take(self) -> Symbol:
        """Read one token as it is."""
        index = self.index
        if not self.texts[index]:
            raise self.error("missing argument")
        self.index = index + 1
        return Symbol(self.texts[index], self.starts[index], self.ends[index])

    def take_until(self, position: int) -> list[Symbol]:
        """Read the tokens that start before a position of the source, broken into characters."""
        symbols = []
        while self.starts[self.index] < position and self.texts[self.index]:
            symbols.append(self.take())
        return _characters(symbols)

    def raw_group(self) -> list[Symbol]:
        """Read the tokens of `{ ... }` without looking into them."""
        opening = self.take()
        symbols: list[Symbol] = []
        depth = 1
        while True:
            if not self.texts[self.index]:
                raise FormulaError("unmatched brace", opening.start, "{")
            symbol = self.take()
            depth += (symbol.text == "{") - (symbol.text == "}")
            if not depth:
                return symbols
            symbols.append(symbol)

    def length(self, bracket: str = "{") -> Length:
        """Read a length in braces or brackets."""
        start = self.starts[self.index]
        if bracket == "{" and self.texts[self.index] not in ("{", "}", "&", ""):
            symbols = [self.take()]
        elif self.texts[self.index] != bracket:
            raise self.error("missing length")
        elif bracket == "{":
            symbols = self.raw_group()
        else:
            self.index += 1
            symbols = []
            while self.texts[self.index] not in ("]", ""):
                symbols.append(self.take())
            if not self.texts[self.index]:
                raise FormulaError("unmatched bracket", start, "[")
            self.index += 1
        return Length(_characters(symbols), bracket, start, self.ends[self.index - 1])

    def bare_length(self) -> Length:
        """Read a length that no braces hold, as after \\kern."""
        start = self.ends[self.index - 1]
        match = _LENGTH.match(self.source, start)
        if not match:
            raise self.error("missing length")
        return Length(self.take_until(match.end()), "", start, match.end())

    def gap(self) -> Length | None:
        """Read the `[2pt]` that may follow `\\\\`."""
        start = self.ends[self.index - 1]
        match = _GAP.match(self.source, start)
        if not match:
            return None
        inner = [symbol for symbol in self.take_until(match.end()) if symbol.text not in "[]*"]
        return Length(inner, "[", start, match.end()) if inner else None

    def text(self) -> Text:
        """Read an argument set in text mode, where spaces count; each run of them becomes the symbol `~`."""
        start = self.starts[self.index]
        if self.texts[self.index] != "{":
            if not self.texts[self.index] or self.texts[self.index] in "}&":
                raise self.error("missing argument")
            return Text([self.take()], start, self.ends[self.index - 1])
        symbols = self.raw_group()
        end = self.ends[self.index - 1]
        if self.spaced or not symbols:
            spaces = [] if self.spaced or end - start <= 2 else [Symbol("~", start + 1, end - 1)]
            return Text(_characters(symbols) or spaces, start, end)
        return Text(_text_symbols(self.source, start + 1, end - 1), start, end)


def _characters(symbols: list[Symbol]) -> list[Symbol]:
    """Break `--` and the like into single characters."""
    characters = []
    for symbol in symbols:
        if symbol.text[0] == "\\" or len(symbol.text) == 1:
            characters.append(symbol)
        else:
            start = symbol.start
            characters += [Symbol(c, start + k, start + k + 1) for k, c in enumerate(symbol.text)]
    return characters


def _text_symbols(source: str, start: int, end: int) -> list[Symbol]:
    symbols = []
    for match in _TEXT_TOKEN.finditer(source, start, end):
        piece = match.group()
        if piece == "%":
            break
        if piece.isspace():
            piece = "~"
        elif piece[0] == "\\":
            piece = "\\" if piece[1:].isspace() else piece.rstrip()
        elif not piece.isascii():
            raise FormulaError("unknown character", match.start(), repr(piece))
        symbols.append(Symbol(piece, match.start(), match.end()))
    return symbols
