"""Formula to image: TeX in a sandbox, pages to pixels, styles, and the box of every token. No torch here."""

from typing import Final

# Why a formula has no picture. These are the only reasons that a `RenderResult` can carry.
TEX_ERROR: Final = "tex-error"  # TeX does not accept the formula
TIMEOUT: Final = "timeout"  # TeX was not done in time
TOO_LARGE: Final = "too-large"  # the formula, its page, or what TeX wrote is beyond the limits
REFUSED: Final = "refused"  # the formula uses a command that could harm the machine
EMPTY: Final = "empty"  # the formula draws nothing
