"""Which constructs a formula has: what one asks when a score is low."""

from collections.abc import Sequence
from typing import Final

from i2l.formulas.commands import (
    BIG_OPERATORS,
    BINOMIALS,
    FONT_SWITCHES,
    FRACTIONS,
    LINES,
    MATH_FONTS,
    NARROW_ACCENTS,
    OPERATOR_LETTERS,
    ROOTS,
    SIDE_OPERATORS,
    TEXTS,
    WIDE_ACCENTS,
)

_NAMED_OPERATORS: Final = {r"\operatorname", r"\operatorname*"}
_WORDS: Final = {r"\mathrm", *_NAMED_OPERATORS, *TEXTS}
_CONSTRUCTS: Final[dict[str, frozenset[str]]] = {
    "scripts": frozenset("_^"),
    "fractions": FRACTIONS | BINOMIALS,
    "roots": ROOTS,
    "big operators": (BIG_OPERATORS | SIDE_OPERATORS) - _NAMED_OPERATORS - OPERATOR_LETTERS.keys(),
    "accents": NARROW_ACCENTS | WIDE_ACCENTS | LINES,
    "fonts": MATH_FONTS | FONT_SWITCHES,
}
CONSTRUCTS: Final = (*_CONSTRUCTS, "fences", "matrices and arrays", "words", "none of these")


def find_constructs(tokens: Sequence[str]) -> list[str]:
    """The constructs that a formula has, by name, in the order of CONSTRUCTS."""
    present = set(tokens)
    found = [name for name, commands in _CONSTRUCTS.items() if present & commands]
    if any(token.startswith(r"\left") and not token[5:6].isalpha() for token in present):
        found.append("fences")
    if any(token.startswith(r"\begin{") for token in present):
        found.append("matrices and arrays")
    if present & _WORDS and _has_word(tokens):
        found.append("words")
    return found or ["none of these"]


def _has_word(tokens: Sequence[str]) -> bool:
    """Whether a roman argument has two letters in a row: `\\mathrm { i f }`, not `\\mathrm { d } x`."""
    return any(
        token in _WORDS
        and len(tokens) > index + 3
        and tokens[index + 1] == "{"
        and all(len(letter) == 1 and letter.isalpha() for letter in tokens[index + 2 : index + 4])
        for index, token in enumerate(tokens)
    )
