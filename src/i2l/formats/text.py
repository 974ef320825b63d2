r"""The text of `\text{...}` and its like: letters with their accents, and formulas between dollars."""

import unicodedata
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from i2l.formats import symbols
from i2l.formats.layout import FormatError, Item, Word
from i2l.formulas.commands import SIZE_SWITCHES
from i2l.formulas.normalize import written_text
from i2l.formulas.tree import Symbol

_MARKS: Final = {
    **{r"\'": "\u0301", r"\`": "\u0300", r"\^": "\u0302", r"\"": "\u0308", r"\~": "\u0303", r"\=": "\u0304"},
    **{r"\.": "\u0307", r"\u": "\u0306", r"\v": "\u030c", r"\H": "\u030b", r"\c": "\u0327", r"\d": "\u0323"},
    **{r"\b": "\u0331", r"\k": "\u0328", r"\r": "\u030a"},
}
_SPACES: Final = {"~": " ", "\\": " ", r"\,": "\u2009", r"\;": "\u2005", r"\:": "\u2005", r"\!": ""}
_WIDE: Final = {r"\quad": "\u2003", r"\qquad": "\u2003\u2003", r"\enspace": "\u2002", r"\space": " "}
_LIGATURES: Final = {"---": "—", "--": "–", "``": "“", "''": "”", "`": "‘", "'": "’"}
_UNSEEN: Final = SIZE_SWITCHES | {
    *(r"\/", r"\-", r"\relax", r"\protect", r"\rm", r"\normalfont", r"\rmfamily", r"\null", r"\strut")
}
_FONTS: Final = {
    **{r"\bf": ("rm", True), r"\it": ("it", False), r"\em": ("it", False), r"\sl": ("it", False)},
    **{r"\sf": ("sf", False), r"\tt": ("tt", False)},
}


def read_text(letters: list[Symbol], style: Word, formula: Callable[[str], list[Item]]) -> list[Item]:
    """Read text as words, each in the style of a given one, and the formulas between dollars in it.

    Args:
        letters: the characters and commands of the text.
        style: a word in the font of the text.
        formula: reads LaTeX.

    Raises:
        FormatError: for a command that text in another format cannot have.
    """
    dollars = [place for place, letter in enumerate(letters) if letter.text == "$"]
    if len(dollars) > 1:
        first, second = dollars[:2]
        latex = "".join(written_text(letters[first + 1 : second]))
        before, after = letters[:first], letters[second + 1 :]
        return [*_words(before, style), *formula(latex), *read_text(after, style, formula)]
    return _words(letters, style)


def _words(letters: list[Symbol], style: Word) -> list[Item]:
    text = ""
    mark = ""
    place = 0
    if letters and letters[0].text in _FONTS and not any(letter.text == "{" for letter in letters):
        font, bold = _FONTS[letters[0].text]
        style, place = replace(style, font=font, bold=bold), 1
    while place < len(letters):
        letter = letters[place].text
        place += 1
        if letter in _MARKS:
            mark += _MARKS[letter]
            continue
        if letter in "{}":
            continue
        piece = _piece(letter)
        if letter in "-`'" and piece:
            while place < len(letters) and piece + letters[place].text in _LIGATURES and len(piece) < 3:
                piece += letters[place].text
                place += 1
            piece = _LIGATURES.get(piece, piece)
        if mark and piece:
            piece = unicodedata.normalize("NFC", {"ı": "i", "ȷ": "j"}.get(piece, piece) + mark)
            mark = ""
        text += piece
    return [replace(style, text=text)] if text else []


def _piece(letter: str) -> str:
    if letter in _UNSEEN:
        return ""
    if letter in _SPACES or letter in _WIDE:
        return (_SPACES | _WIDE)[letter]
    if len(letter) == 1 and letter != "$":
        return letter
    if letter in symbols.SIGNS and letter[1:2].isalpha() is (letter in symbols.TEXT_SIGNS):
        return symbols.SIGNS[letter][0]
    if letter in (r"\$", r"\%", r"\#", r"\&", r"\_", r"\{", r"\}"):
        return letter[1:]
    raise FormatError("Another format", "a formula inside of text" if letter == "$" else f"{letter} in text")
