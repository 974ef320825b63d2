r"""One spelling for what looks the same: the old font switches instead of the commands with an argument, and
no space around a formula.

`\mathcal { L }` and `{ \cal L }` are the same picture, and which of them a label has says when its author
learnt LaTeX. A model that learns from both can only guess; im2latex-100k, whose papers are older than most,
has the switch in eight cases of nine, so that is the spelling which labels to be compared with it are given.
"""

from collections.abc import Sequence

from i2l.formulas.aliases import one_name
from i2l.formulas.commands import SPACES

SWITCHES = {r"\mathcal": r"\cal", r"\mathbf": r"\bf"}


def respell(formula: str) -> str:
    r"""Write `{ \cal L }` for `\mathcal { L }` and `{ \bf x }` for `\mathbf { x }`; as many tokens as before.

    Signs get the one name that `i2l.formulas.aliases` has for them, also in lists from before that table.

    Args:
        formula: canonical tokens joined by single spaces.
    """
    tokens = [one_name(token) for token in formula.split()]
    for place, token in enumerate(tokens[:-1]):
        if token in SWITCHES and tokens[place + 1] == "{":
            tokens[place : place + 2] = ["{", SWITCHES[token]]
    return " ".join(tokens)


def without_outer_space(tokens: Sequence[str]) -> Sequence[str]:
    """Leave out the space before and after a formula, which nobody sees; not if there is nothing else."""
    shown = [place for place, token in enumerate(tokens) if token not in SPACES]
    return tokens[shown[0] : shown[-1] + 1] if shown else tokens
