r"""One spelling for what looks the same, and which spellings are one picture.

`\le` and `\leq` are the same sign at the same distance from its neighbours, so no reader can tell them apart;
nor should a label, a reading or a list of alternatives. The table of commands says which name is kept: the
commonest one of papers. KaTeX, MathJax and Wikipedia know further names (`\infin`, `\rarr`) that LaTeX does
not draw, and these get the name of LaTeX.

`\mathcal { L }` and `{ \cal L }` are one picture too, and which of them a label has says when its author
learnt LaTeX. A model that learns from both can only guess. Papers of im2latex-100k are older than most and
have the switch in eight cases of nine, so labels that are compared with it are given the switch.

Space and the braces of a group draw nothing, and `\left(` draws what `(` draws around small things.
"""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from i2l.formulas.commands import ALIASES, DELIMITER_ALIASES, SPACES, SWITCH_OF_ALPHABET


def one_name(token: str) -> str:
    r"""Return the name that canonical formulas have for a raw token; `\left\lbrace` counts as one token."""
    for opening in (r"\left", r"\right"):
        if token.startswith(opening) and (delimiter := DELIMITER_ALIASES.get(token[len(opening) :])):
            return opening + delimiter
    return ALIASES.get(token, token)


def respell(formula: str) -> str:
    r"""Write `{ \cal L }` for `\mathcal { L }` and `{ \bf x }` for `\mathbf { x }`; as many tokens as before.

    Signs get their one name too, since older lists of formulas have others.

    Args:
        formula: canonical tokens joined by single spaces.
    """
    tokens = [one_name(token) for token in formula.split()]
    for place, token in enumerate(tokens[:-1]):
        if token in SWITCH_OF_ALPHABET and tokens[place + 1] == "{":
            tokens[place : place + 2] = ["{", SWITCH_OF_ALPHABET[token]]
    return " ".join(tokens)


def without_outer_space(tokens: Sequence[str]) -> Sequence[str]:
    """Leave out the space before and after a formula, which nobody sees; space alone is kept."""
    shown = [place for place, token in enumerate(tokens) if token not in SPACES]
    return tokens[shown[0] : shown[-1] + 1] if shown else tokens


_TOKEN: Final = re.compile(r"\\[A-Za-z]+\*?|\\.|\S", re.DOTALL)
_STRETCHED: Final = re.compile(r"\\(?:left|right)(?![A-Za-z])|\\[bB]igg?[lrm]?(?![A-Za-z])")
# What may stand beside a sign without a change of what is seen; a closing brace ends an exponent, and counts.
SILENT: Final = SPACES | {"{"}


@lru_cache(maxsize=4096)
def look_of(token: str) -> str:
    """Return what a token draws, in one spelling; nothing for space and for what only stretches a sign."""
    if token in SPACES:
        return ""
    return one_name(_STRETCHED.sub("", token))


def picture_of(latex: str) -> tuple[str, ...]:
    """Return what readable LaTeX draws, token by token, so that spellings of one picture are equal."""
    return tuple(filter(None, map(look_of, _TOKEN.findall(_STRETCHED.sub(" ", latex)))))
