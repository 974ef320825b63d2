"""A formula with a mark in front of the ink of every token, so that the page tells which token drew what.

TeX draws in its own order: a fraction's bar after the numerator, a sum's sign after its upper limit. So a
token that draws and takes arguments is marked before itself and again at the end of each argument: whatever
it draws between or after them comes right after such a mark.
"""

from typing import Final

from i2l.formulas.commands import SIGNATURES
from i2l.formulas.normalize import NormalizeResult
from i2l.formulas.tokens import Token

NO_TOKEN: Final = 99_999  # ink that belongs to no token
_SCRIPTS: Final = frozenset(("_", "^", r"\sb", r"\sp"))
# Accents of text that authors use in math; the table of commands leaves what they stand on beside them.
_TEXT_ACCENTS: Final = dict.fromkeys([rf"\{name}" for name in "bcdtuvH'`^\"~=."], "m")
_BIG: Final = frozenset(
    rf"\{size}{side}" for size in ("big", "Big", "bigg", "Bigg") for side in ("", "l", "r", "m")
) | {r"\middle"}
_KEEP_BASE: Final = frozenset((r"\limits", r"\nolimits", r"\displaylimits"))
_WITH_COLUMNS: Final = frozenset((r"\begin{array}", r"\begin{tabular}", r"\begin{subarray}"))
_BETWEEN_ROWS: Final = frozenset((r"\hline", r"\cline"))
_CLOSERS: Final = {"{": "}", "[": "]"}


def mark_tokens(formula: NormalizeResult) -> str:
    """Write a formula for TeX with marks; `i2l.images.pdf_ink` finds them on the page."""
    marker = _Marker(formula.tokens, formula.written)
    marker.items(until=None)
    return "".join(marker.pieces)


class _Marker:
    """Walks the tokens once and collects what TeX is to see."""

    def __init__(self, tokens: list[Token], written: dict[int, str]) -> None:
        self.tokens = tokens
        self.written = written
        self.position = 0
        self.pieces: list[str] = []

    def peek(self) -> str:
        return self.tokens[self.position].text if self.position < len(self.tokens) else ""

    def mark(self, token: int | None) -> None:
        if token is not None:
            self.pieces.append(rf"\itltoken{{{token}}}")

    def copy(self) -> None:
        """Write the next token as it is."""
        text = self.tokens[self.position].text
        spaced = " \\ " if text == "\\" else f" {text}"  # a backslash alone is a space
        self.pieces.append(self.written.get(self.position) or spaced)
        self.position += 1

    def copy_verbatim(self) -> None:
        """Write a whole group or bracket without marks: a length, a count."""
        depth = 0
        while self.position < len(self.tokens):
            depth += (self.peek() in _CLOSERS) - (self.peek() in ("}", "]"))
            self.copy()
            if depth <= 0:
                return

    def items(self, *, until: str | None) -> None:
        """Write items up to a closing token, which is left."""
        base: int | None = None
        while self.position < len(self.tokens) and self.peek() != until:
            if self.peek() in _SCRIPTS:
                self.copy()
                self.argument(owner=base)
            elif self.peek() in _KEEP_BASE:
                self.copy()
            else:
                base = self.item()

    def item(self) -> int | None:
        """Write one item with its arguments; give the token that draws it, if it is one token."""
        index = self.position
        token = self.tokens[index]
        owner = index if token.visible else None
        if token.text == "{":
            self.group(owner=None)
            return None
        if token.text in _BIG and index + 1 < len(self.tokens):
            following = index + 1
            self.mark(following if self.tokens[following].visible else None)
            self.copy()
            self.copy()
            return following
        if token.text in _BETWEEN_ROWS:
            self.pieces.append(rf"\noalign{{\itltoken{{{index}}}}}")
            self.copy()
            if token.text == r"\cline":
                self.copy_verbatim()
            return None
        if token.text == r"\multicolumn":
            self.copy()
            self.copy_verbatim()
            self.columns()
            self.argument(owner=None)
            return None
        self.mark(NO_TOKEN if token.text == r"\rule" else owner)
        self.copy()
        if token.text in _WITH_COLUMNS:
            if self.peek() == "[":
                self.copy_verbatim()
            self.columns()
        else:
            self.arguments(SIGNATURES.get(token.text) or _TEXT_ACCENTS.get(token.text, ""), owner)
        return owner

    def arguments(self, signature: str, owner: int | None) -> None:
        for kind in signature:
            if kind in "mt":
                self.argument(owner=owner)
            elif kind == "o" and self.peek() == "[":
                self.bracket(owner)
            elif (kind == "l" and self.peek() == "{") or (kind == "L" and self.peek() == "["):
                self.copy_verbatim()

    def group(self, *, owner: int | None) -> None:
        self.copy()
        self.items(until="}")
        self.mark(owner)
        if self.position < len(self.tokens):
            self.copy()

    def bracket(self, owner: int | None) -> None:
        self.copy()
        self.items(until="]")
        self.mark(owner)
        if self.position < len(self.tokens):
            self.copy()

    def argument(self, *, owner: int | None) -> None:
        """Write an argument; one without braces gets them, or the mark would be taken for it."""
        if self.peek() == "{":
            self.group(owner=owner)
        elif self.position < len(self.tokens):
            self.pieces.append("{")
            self.item()
            self.mark(owner)
            self.pieces.append("}")

    def columns(self) -> None:
        """Write a column specification, its bars as marked rules: their place is not read off this page."""
        if self.peek() != "{":
            return
        self.copy()
        while self.position < len(self.tokens) and self.peek() != "}":
            if self.peek() == "|":
                self.pieces.append("@{")
                while self.peek() == "|":
                    self.pieces.append(rf"\itltoken{{{self.position}}}\vrule")
                    self.position += 1
                self.pieces.append("}")
            elif self.peek() == "{":
                self.copy_verbatim()
            else:
                self.copy()
        if self.position < len(self.tokens):
            self.copy()
