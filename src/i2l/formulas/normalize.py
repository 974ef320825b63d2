"""A formula as its author wrote it to canonical tokens."""

from dataclasses import dataclass
from functools import cached_property

from i2l.formulas.canonical import CanonicalPrinter
from i2l.formulas.lexer import RawTokens
from i2l.formulas.parser import Parser
from i2l.formulas.tokens import FormulaError, Token


@dataclass(frozen=True)
class NormalizeResult:
    """The canonical tokens of one formula."""

    tokens: list[Token]
    written: dict[int, str]  # tokens that LaTeX must see otherwise than after one space

    @cached_property
    def formula(self) -> str:
        """The tokens joined by single spaces: what is stored, learnt and compared."""
        return " ".join([token.text for token in self.tokens])

    @cached_property
    def latex(self) -> str:
        """The same for TeX: lengths and text in one piece, where a space would count."""
        if not self.written:
            return self.formula
        written = self.written
        return "".join(
            [written.get(index) or f" {token.text}" for index, token in enumerate(self.tokens)]
        ).lstrip()


def normalize_formula(source: str) -> NormalizeResult:
    """Parse a formula and print it in canonical tokens.

    Raises:
        FormulaError: if it is not a formula; the error has the reason and the position.
    """
    raw = RawTokens(source)
    if len(raw.texts) == 1:
        raise FormulaError("empty", 0)
    items = Parser(raw).parse()
    printer = CanonicalPrinter(spaced=raw.spaced)
    printer.items(items, 0)
    if not printer.tokens:
        raise FormulaError("empty", 0)
    return NormalizeResult(printer.tokens, printer.written)
