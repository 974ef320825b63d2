"""A formula of either side, made ready for comparing: its tokens, and what TeX is given."""

from dataclasses import dataclass

from i2l.formulas.lexer import RawTokens
from i2l.formulas.normalize import NormalizeResult, normalize_formula
from i2l.formulas.tokens import FormulaError, Token


@dataclass(frozen=True)
class PreparedFormula:
    """The two forms in which a formula is compared."""

    tokens: list[str]  # for the text scores
    latex: str  # for the image scores; empty if there is nothing to draw
    symbols: list[Token] | None  # the canonical tokens of what is drawn; None if it cannot be parsed

    @property
    def parsed(self) -> bool:
        """Whether it is a formula to us; nothing at all is not the fault of its writer."""
        return self.symbols is not None or not self.latex


def prepare_formula(formula: str, *, canonical: bool) -> PreparedFormula:
    """Prepare a formula as read from a file or from a model.

    Args:
        formula: LaTeX, or tokens with spaces between them.
        canonical: compare the text in canonical tokens; else split at its spaces and compare as it is. What
            cannot be parsed is split by the lexer, or at its spaces if even that fails.
    """
    try:
        normalized = normalize_formula(formula)
    except FormulaError:
        return PreparedFormula(_raw_tokens(formula) if canonical else formula.split(), formula.strip(), None)
    tokens = normalized.formula.split() if canonical else formula.split()
    return PreparedFormula(tokens, normalized.latex, _drawn_tokens(normalized))


def _drawn_tokens(normalized: NormalizeResult) -> list[Token]:
    """Give the tokens that the renderer has boxes for: those of the LaTeX that TeX is given.

    It can have fewer of them, with the same symbols: `\\text { ~ i ~ f ~ }` is `\\text { i f }` there.
    """
    if normalized.latex == normalized.formula:
        return normalized.tokens
    try:
        return normalize_formula(normalized.latex).tokens
    except FormulaError:  # the renderer finds no boxes then
        return normalized.tokens


def _raw_tokens(formula: str) -> list[str]:
    try:
        return [token for token in RawTokens(formula).texts if token]
    except FormulaError:
        return formula.split()
