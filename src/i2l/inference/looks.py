r"""What a formula looks like, as far as its text tells: which spellings are one picture.

Space and the braces of a group draw nothing, `\left(` draws what `(` draws around small things, and a sign
has one name (`i2l.formulas.aliases`).
"""

import re
from functools import lru_cache
from typing import Final

from i2l.formulas.aliases import one_name
from i2l.formulas.commands import SPACES

_TOKEN: Final = re.compile(r"\\[A-Za-z]+\*?|\\.|\S", re.DOTALL)
_STRETCHED: Final = re.compile(r"\\(?:left|right)(?![A-Za-z])|\\[bB]igg?[lrm]?(?![A-Za-z])")
# What may stand beside a sign without a change of what is seen; a closing brace ends an exponent, and counts.
SILENT: Final = SPACES | {"{"}


@lru_cache(maxsize=4096)
def look_of(token: str) -> str:
    """Give what a token draws, in one spelling; nothing if it is space or stretches what follows."""
    if token in SPACES:
        return ""
    return one_name(_STRETCHED.sub("", token))


def picture_of(latex: str) -> tuple[str, ...]:
    """Give what readable LaTeX draws, so that spellings of one picture are equal."""
    return tuple(filter(None, map(look_of, _TOKEN.findall(_STRETCHED.sub(" ", latex)))))
