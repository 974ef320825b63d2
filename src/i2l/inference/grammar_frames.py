"""What can be open while a formula is written, what each still waits for, and the shortest way to its end."""

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

# Environments and how many columns a row may have; "array" and "subarray" say it themselves.
ENVIRONMENTS: Final = {
    "array": 0,
    "subarray": 0,
    "matrix": 10,
    "smallmatrix": 10,
    "cases": 2,
    "aligned": 20,
    "split": 2,
    "gathered": 1,
}
LEFT: Final = r"\left"  # owner of a list between \left and \right
# A length while it is being written, its digits as 0. More digits TeX would not take.
_NUMBER: Final = r"-?(0{1,3}(\.0{0,3})?|\.0{1,3})"
_BEFORE_UNIT: Final = r"-?0{0,3}(\.0{0,3})?"
_LENGTH: Final = re.compile(rf"{_BEFORE_UNIT}|{_NUMBER}([pmcieb]|pt|mm|cm|in|em|ex|bp)")
_MU_LENGTH: Final = re.compile(rf"{_BEFORE_UNIT}|{_NUMBER}(m|mu)")
_SECOND_LETTER: Final = {"p": "t", "m": "m", "c": "m", "i": "n", "e": "m", "b": "p"}


class Items(NamedTuple):
    """A list of atoms, and what may still be attached to the last of them."""

    owner: str  # what the list stands in: top { \left [ lines $ or the name of an environment
    base: bool = False  # there is an atom before this place
    sub: bool = False  # which has a subscript
    sup: bool = False
    operator: bool = False  # and takes \limits
    infix: bool = False  # an \atop has been read in this list
    columns: int = 0  # in an environment: of a row
    left: int = 0  # columns that may still be opened in this row
    rows: bool = False  # a row has been read
    fresh: bool = False  # nothing of this row has been read

    @property
    def filled(self) -> bool:
        """The list is not empty."""
        return self.base or self.sub or self.sup


class Arguments(NamedTuple):
    """Arguments that a command waits for, a letter each: as in `commands`, and these.

    s  script, in braces      D  delimiter                B  lines of \\substack
    P  place in [ ]           C  column specification
    """

    letters: str
    mu: bool = False  # lengths are in mu


class Text(NamedTuple):
    """Words in text mode, up to the closing brace."""


class Columns(NamedTuple):
    """A column specification, up to its closing brace."""

    number: int = 0


class Place(NamedTuple):
    """The [ t ] after \\begin{array}."""

    known: bool = False


class Length(NamedTuple):
    """A length such as - 1 . 5 e m."""

    closer: str
    mu: bool = False
    text: str = ""  # what has been read, its digits as 0

    @property
    def whole(self) -> bool:
        """The unit has been read."""
        return self.text[-2:-1].isalpha()

    @property
    def rest(self) -> str:
        """The shortest way to write it to its end."""
        if self.whole:
            return self.closer
        if self.text[-1:].isalpha():
            return ("u" if self.mu else _SECOND_LETTER[self.text[-1]]) + self.closer
        return ("" if "0" in self.text else "0") + ("mu" if self.mu else "pt") + self.closer

    def after(self, token: str) -> "Length | None":
        """The length with a token added, or None if it were no length."""
        added = self._replace(text=self.text + ("0" if len(token) == 1 and token.isdigit() else token))
        return added if (_MU_LENGTH if self.mu else _LENGTH).fullmatch(added.text) else None


Frame = Items | Arguments | Text | Columns | Place | Length

_ARGUMENT_COST: Final = {"m": 2, "s": 2, "t": 2, "B": 2, "l": 5, "d": 3, "D": 1, "C": 3}


class State(NamedTuple):
    """A stack of frames, the top first."""

    frame: Frame
    below: "State | None"
    depth: int
    cost: int  # tokens that the shortest way to the end needs, eos included

    def replace(self, frame: Frame) -> "State":
        """Put another frame in the place of the top one."""
        return push(frame, self.below)


def push(frame: Frame, below: State | None) -> State:
    """Put a frame on top."""
    if below is None:
        return State(frame, None, 1, _cost(frame))
    return State(frame, below, below.depth + 1, below.cost + _cost(frame))


def _cost(frame: Frame) -> int:
    """Count the tokens that `closing_token` will give for a frame."""
    match frame:
        case Items(owner="top"):
            return 1 if frame.filled else 3
        case Items(owner=owner):
            return 1 if owner not in ENVIRONMENTS or (frame.fresh and frame.rows) else 2
        case Arguments(letters=letters):
            return sum(_ARGUMENT_COST.get(letter, 0) for letter in letters)
        case Text():
            return 1
        case Columns(number=number):
            return 1 if number else 2
        case Place(known=known):
            return 1 if known else 2
        case Length():
            return len(frame.rest)


def closing_token(state: State, rights: Sequence[str]) -> str:
    """Give the token that leads to the end of the formula by the shortest way; "" for the end itself.

    Args:
        state: of the automaton.
        rights: the \\right tokens of the vocabulary, best first.

    Raises:
        IndexError: if a \\left is open and there is no \\right.
    """
    frame = state.frame
    match frame:
        case Items(owner="top"):
            return "" if frame.filled else "{"
        case Items(owner=owner) if owner in ENVIRONMENTS:
            return rf"\end{{{owner}}}" if frame.fresh and frame.rows else "\\\\"
        case Items(owner=owner):
            return {"{": "}", "lines": "}", "[": "]", "$": "$"}.get(owner) or rights[0]
        case Arguments(letters=letters):
            return {"d": "0", "D": ")"}.get(letters.lstrip("oP")[0], "{")
        case Text():
            return "}"
        case Columns(number=number):
            return "}" if number else "c"
        case Place(known=known):
            return "]" if known else "t"
        case Length():
            return frame.rest[0]
