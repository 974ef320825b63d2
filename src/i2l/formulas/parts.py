"""Short formulas cut out of long ones: numerators, scripts, sides of equations, a letter with its index.

Collections of displayed formulas hold nothing shorter than about five tokens, and a model that has never seen
a letter by itself reads one as an array. People ask for a single letter often.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from i2l.formulas.commands import SWITCHES
from i2l.formulas.normalize import normalize_formula
from i2l.formulas.spelling import without_outer_space
from i2l.formulas.tokens import FormulaError

# What stands in braces after these is no formula.
_NO_FORMULA: Final = frozenset(
    {r"\begin{array}", r"\operatorname", r"\operatorname*", r"\hspace", r"\hspace*", r"\vspace", r"\kern"}
)
_RELATIONS: Final = (
    *("=", "<", ">", r"\leq", r"\geq", r"\le", r"\ge", r"\neq", r"\ne", r"\equiv", r"\sim", r"\simeq"),
    *(r"\approx", r"\cong", r"\to", r"\rightarrow", r"\Rightarrow", r"\in", r"\subset", r"\subseteq"),
)
_SEPARATORS: Final = frozenset({*_RELATIONS, ",", ";", ":", "&", r"\\", r"\quad", r"\qquad"})
_SCRIPTS: Final = frozenset("_^")


def common_parts(formulas: Iterable[str], *, max_tokens: int, min_count: int = 1) -> list[str]:
    """Give the distinct parts of canonical formulas that are formulas themselves, the most frequent first.

    Args:
        formulas: canonical tokens joined by single spaces.
        max_tokens: no part is longer.
        min_count: a part that occurs less often is left out.
    """
    counts = Counter(
        " ".join(part)
        for formula in formulas
        for part in map(without_outer_space, find_parts(formula.split()))
        if 0 < len(part) <= max_tokens
    )
    frequent = [(part, count) for part, count in counts.most_common() if count >= min_count]
    return [part for part, _ in frequent if _is_formula(part)]


def find_parts(tokens: Sequence[str]) -> Iterator[Sequence[str]]:
    """Give what could be parts: all in braces, all between separators, every symbol with its scripts."""
    for content in _contents(tokens):
        depth, piece_start, symbol_start = 0, 0, 0
        spans = {(0, len(content))}
        for place, token in enumerate(content):
            if depth == 0:
                if token in _SEPARATORS:
                    spans.add((piece_start, place))
                    piece_start = place + 1
                if token not in _SCRIPTS and (place == 0 or content[place - 1] not in _SCRIPTS):
                    spans.add((symbol_start, place))
                    symbol_start = place
            depth += (token == "{") - (token == "}")
        spans |= {(piece_start, len(content)), (symbol_start, len(content))}
        for start, end in sorted(spans):
            yield content[start:end]


def _contents(tokens: Sequence[str]) -> Iterator[Sequence[str]]:
    """Give the whole, and what is in each pair of braces."""
    yield tokens
    for start, end in _pairs(tokens):
        if start == 0 or tokens[start - 1] not in _NO_FORMULA:
            yield tokens[start + 1 : end]


def _pairs(tokens: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Give where braces open and close."""
    opened: list[int] = []
    for place, token in enumerate(tokens):
        if token == "{":
            opened.append(place)
        elif token == "}":
            yield opened.pop(), place


def _is_formula(part: str) -> bool:
    try:
        result = normalize_formula(part)
    except FormulaError:
        return False
    drawn = any(token.visible for token in result.tokens)
    return result.formula == part and drawn and _has_its_braces(part.split())


def _has_its_braces(tokens: Sequence[str]) -> bool:
    r"""Whether it has the braces it needs: `{ \cal L }` does, `{ L }` has more, and so has `{ } = 0`."""
    if tokens[0] in SWITCHES or (tokens[:2] == ["{", "}"] and tokens[2:3] not in (["^"], ["_"])):
        return False
    wrapped = (0, len(tokens) - 1) in _pairs(tokens)
    return not wrapped or tokens[1] in SWITCHES
