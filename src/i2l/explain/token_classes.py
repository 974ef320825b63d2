"""What kind of thing a token draws: the classes that localisation is broken down by."""

from typing import Final

from i2l.formulas.commands import (
    BIG_OPERATORS,
    BINOMIALS,
    DOTS,
    FRACTIONS,
    LINES,
    NARROW_ACCENTS,
    ROOTS,
    SIDE_OPERATORS,
    WIDE_ACCENTS,
)

LETTERS, DIGITS, GREEK = "letters", "digits", "Greek letters"
OPERATORS, DELIMITERS, BIG = "operators and relations", "delimiters", "big operators"
RULES, ACCENTS, PUNCTUATION = "fractions, roots, lines", "accents", "punctuation and dots"
TOKEN_CLASSES: Final = (LETTERS, DIGITS, GREEK, OPERATORS, DELIMITERS, BIG, RULES, ACCENTS, PUNCTUATION)

_GREEK_NAMES: Final = (
    "alpha beta gamma delta epsilon varepsilon zeta eta theta vartheta iota kappa lambda mu nu xi pi varpi"
    " rho varrho sigma varsigma tau upsilon phi varphi chi psi omega"
    " Gamma Delta Theta Lambda Xi Pi Sigma Upsilon Phi Psi Omega"
)
_DELIMITER_NAMES: Final = (
    "{ } | langle rangle lbrace rbrace lbrack rbrack lfloor rfloor lceil rceil vert Vert lvert rvert lVert"
    " rVert"
)
_GREEK: Final = frozenset(f"\\{name}" for name in _GREEK_NAMES.split())
_DELIMITERS: Final = frozenset("()[]|") | {f"\\{name}" for name in _DELIMITER_NAMES.split()}
_PUNCTUATION: Final = frozenset(",.;:!?'") | {r"\prime", r"\colon", r"\ddots", r"\vdots"} | DOTS
_RULES: Final = FRACTIONS | ROOTS | LINES | BINOMIALS | {r"\hline"}
_ACCENTS: Final = NARROW_ACCENTS | WIDE_ACCENTS
_BIG: Final = BIG_OPERATORS | SIDE_OPERATORS


def token_class(token: str) -> str:
    """Give the class of a visible token; what is in no other class is an operator or relation."""
    if len(token) == 1 and token.isalpha():
        return LETTERS
    if token.isdigit():
        return DIGITS
    if token in _DELIMITERS or _is_sized_delimiter(token):
        return DELIMITERS
    for members, name in (
        (_GREEK, GREEK),
        (_BIG, BIG),
        (_RULES, RULES),
        (_ACCENTS, ACCENTS),
        (_PUNCTUATION, PUNCTUATION),
    ):
        if token in members:
            return name
    return OPERATORS


def _is_sized_delimiter(token: str) -> bool:
    """Whether it is a delimiter glued to its command: `\\left(`, `\\right\\rangle`, but not `\\leftarrow`."""
    for command in (r"\left", r"\right"):
        if token.startswith(command) and len(token) > len(command):
            return not token[len(command)].isalpha()
    return False
