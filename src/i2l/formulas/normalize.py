"""A formula as its author wrote it becomes canonical tokens: lexed, parsed, and printed in one way."""

from dataclasses import dataclass
from functools import cached_property

from i2l.formulas.canonical import CanonicalPrinter
from i2l.formulas.expansion import Macros
from i2l.formulas.lexer import FormulaError, RawTokens, Token
from i2l.formulas.parser import Parser


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


def normalize_formula(source: str, *, macros: Macros | None = None) -> NormalizeResult:
    """Parse a formula, its macros written out, and print it in canonical tokens.

    Raises:
        FormulaError: if it is not a formula; the error has the reason and the position.
    """
    if macros is None:
        return _normalize(source)
    expansion = macros.expand(source)
    spans = [*expansion.spans, (len(source), len(source))]
    try:
        result = _normalize(expansion.source)
    except FormulaError as error:
        position = spans[min(error.position, len(spans) - 1)][0]
        raise FormulaError(error.reason, position, error.detail) from None
    tokens = [
        token._replace(
            start=spans[token.start][0], end=spans[max(token.start, token.end - 1)][token.end > token.start]
        )
        for token in result.tokens
    ]
    return NormalizeResult(tokens, result.written)


def _normalize(source: str) -> NormalizeResult:
    raw = RawTokens(source)
    items = Parser(raw).parse()
    printer = CanonicalPrinter(spaced=raw.spaced)
    printer.items(items, 0)
    if not printer.tokens:
        raise FormulaError("empty", 0)
    return NormalizeResult(printer.tokens, printer.written)
