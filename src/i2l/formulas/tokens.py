"""What a canonical token is, and the error that a formula we cannot read gets."""

from typing import NamedTuple

from i2l.errors import I2LError


class Token(NamedTuple):
    """One canonical token, and where in its source it came from."""

    text: str
    start: int  # span in the source string, start <= end; empty where the token has no text of its own there
    end: int
    visible: bool  # draws ink itself: a letter, a fraction bar, a root sign; not `{`, `^`, `\,`, `\mathrm`


class FormulaError(I2LError):
    """A formula that cannot be normalised: why, and at which character of the source."""

    def __init__(self, reason: str, position: int, detail: str = "") -> None:
        super().__init__(f"{reason} at character {position}" + (f": {detail}" if detail else ""))
        self.reason = reason
        self.position = position
        self.detail = detail
