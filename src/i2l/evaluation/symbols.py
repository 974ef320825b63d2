"""The symbols that a formula draws: one for each visible token, named by what it looks like, with its box.

Two symbols have one name if they draw the same glyph: `\\to` and `\\rightarrow`, `\\left(` and `(`, `1` and
`\\mathrm { 1 }`. Unlike in UniMERNet's CDM, glyphs that only resemble each other (`\\epsilon` and
`\\varepsilon`, `\\hat` and `\\widehat`, `\\dot` and a full stop) keep their names; a bold x is no plain x.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from i2l.formulas.tokens import Token

Box = tuple[int, int, int, int]  # left, top, right, bottom in pixels, half-open

# Groups set off by two spaces or more; the first name stands for its group.
_SAME_GLYPH: Final = r"""
    \leq \le        \geq \ge        \neq \ne \not=      \rightarrow \to     \leftarrow \gets
    \wedge \land    \vee \lor       \neg \lnot          * \ast              \prime '
    | \mid \vert \lvert \rvert      \| \Vert \lVert \rVert \parallel        \} \rbrace
    \{ \lbrace \begin{cases}
    [ \lbrack       ] \rbrack       \dagger \dag        \ddagger \ddag      \ni \owns       : \colon
    \cdot \cdotp    \ldots \dots \dotsc                 \cdots \dotsb \dotsm \dotsi
    / \slash        \Longleftrightarrow \iff            \Longrightarrow \implies
"""
NAMES: Final = {
    other: names[0]
    for names in (group.split() for group in re.split(r"\s{2,}", _SAME_GLYPH.strip()))
    for other in names[1:]
}
_ANGLES: Final = {"<": r"\langle", ">": r"\rangle"}  # as delimiters

_FONTS: Final = {
    "roman": r"\mathrm \rm \operatorname \operatorname* \mbox \hbox \text \textrm \textnormal \textup \fbox",
    "bold": r"\mathbf \bf \textbf",
    "bold symbols": r"\boldsymbol \bm \pmb \boldmath",
    "italic": r"\mathit \it \textit \emph",
    "calligraphic": r"\mathcal \cal",
    "script": r"\mathscr",
    "blackboard": r"\mathbb",
    "fraktur": r"\mathfrak",
    "sans": r"\mathsf \sf \textsf",
    "typewriter": r"\mathtt \tt \texttt",
    "": r"\mathnormal \mit \unboldmath",
}
FONT_OF: Final = {command: font for font, commands in _FONTS.items() for command in commands.split()}
_SWITCHES: Final = {r"\rm", r"\bf", r"\it", r"\sf", r"\tt", r"\cal", r"\mit", r"\boldmath", r"\unboldmath"}
_CAPITAL_GREEK: Final = {
    f"\\{name}"
    for name in ("Gamma", "Delta", "Theta", "Lambda", "Xi", "Pi", "Sigma", "Upsilon", "Phi", "Psi", "Omega")
}


@dataclass(frozen=True)
class Symbol:
    """A symbol on the page."""

    name: str
    box: Box | None  # None if the renderer did not find it
    fixed_size: bool  # a letter or digit: its height tells the size it is set in


def find_symbols(tokens: Sequence[Token], boxes: Sequence[Box | None] | None) -> list[Symbol]:
    """The symbols of a formula, in the order of its tokens."""
    symbols: list[Symbol] = []
    fonts = [""]
    argument: str | None = None  # the font of the argument that comes next
    for index, (text, _, _, visible) in enumerate(tokens):
        font = fonts[-1] if argument is None else argument
        if text == "{":
            fonts.append(font)
        elif text == "}" and len(fonts) > 1:
            fonts.pop()
        elif visible:
            box = None if boxes is None else boxes[index]
            symbols.append(Symbol(_name(text, font), box, fixed_size=len(text) == 1 and text.isalnum()))
        argument = FONT_OF.get(text)
        if text in _SWITCHES:
            fonts[-1], argument = FONT_OF[text], None
    return _join_negations(symbols)


def _join_negations(symbols: Sequence[Symbol]) -> list[Symbol]:
    """`\\not =` as the one symbol that `\\neq` is."""
    joined: list[Symbol] = []
    for symbol in symbols:
        if joined and joined[-1].name == r"\not":
            box = _union(joined.pop().box, symbol.box)
            symbol = Symbol(_name(rf"\not{symbol.name}", ""), box, fixed_size=False)  # noqa: PLW2901
        joined.append(symbol)
    return joined


def _union(first: Box | None, second: Box | None) -> Box | None:
    if first is None or second is None:
        return first or second
    (left, top, right, bottom), (left2, top2, right2, bottom2) = first, second
    return min(left, left2), min(top, top2), max(right, right2), max(bottom, bottom2)


def _name(text: str, font: str) -> str:
    for prefix in (r"\left", r"\right"):
        if text.startswith(prefix) and (rest := text.removeprefix(prefix)) and not rest[0].isalpha():
            text = _ANGLES.get(rest, rest)
    text = NAMES.get(text, text)
    if text.isdigit() or text in _CAPITAL_GREEK:
        font = "" if font == "roman" else font
    elif not (len(text) == 1 and text.isalpha()):
        font = font if font == "bold symbols" else ""
    return f"{text} {font}" if font else text
