"""Which formulas of a paper go into the list: the choices of the original's first step, each an option."""

import re
from dataclasses import dataclass
from typing import Final

from i2l.sources.harvest import Formula

_REFERENCES: Final = re.compile(r"\\(?:label|cite[a-z]*|ref|eqref|pageref|footnote)(?![A-Za-z])|(?<!\\)%")
_WORD: Final = re.compile(r"\\(?:[A-Za-z]+|.)|[^\s\\]", re.DOTALL)


@dataclass(frozen=True)
class FormulaFilters:
    """What a formula must be like; the default takes all."""

    environments: tuple[str, ...] = ()  # none: any; a star counts as none
    min_characters: int = 1
    max_characters: int | None = None
    min_tokens: int = 1
    references: bool = True  # formulas that cite or refer to something are taken too
    unique: bool = False  # a formula is taken once, however often it occurs
    sample: float = 1.0  # the share of formulas that is drawn ...
    seed: int = 0  # ... by a hash of the formula and this

    def reason(self, formula: Formula) -> str | None:
        """Say why a formula is left out; None if it is not."""
        if self.environments and formula.environment.rstrip("*") not in self.environments:
            return "other-environment"
        length = len(formula.latex)
        if length < self.min_characters:
            return "too-short"
        if self.max_characters is not None and length > self.max_characters:
            return "too-long"
        if self.min_tokens > 1 and len(_WORD.findall(formula.latex)) < self.min_tokens:
            return "too-short"
        if not self.references and _REFERENCES.search(formula.latex):
            return "reference"
        return None


# Bodies of `equation`, more than 40 and fewer than 1,024 characters and more than three tokens long, each
# once, without labels, citations and references; one in five was drawn.
ORIGINAL: Final = FormulaFilters(
    environments=("equation",),
    min_characters=41,
    max_characters=1023,
    min_tokens=4,
    references=False,
    unique=True,
    sample=0.2,
)
