"""Text arguments: which words look the same as a math alphabet, and how text is written back to LaTeX.

What is safe was found by comparing pixels of `\\text{...}` and `\\mathrm{...}` for every character in every
place: punctuation comes from other fonts in math, a last letter with an italic correction moves what follows,
spaces keep their size in a subscript, and a single letter has its scripts at other heights than a box.
"""

from i2l.formulas.tree import Scripts, Symbol

_ALPHANUMERIC = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789")
_SPACES = frozenset(("~", "\\", r"\quad", r"\qquad"))
_SAFE = {
    r"\mathrm": _ALPHANUMERIC | frozenset("()[]"),
    r"\mathbf": _ALPHANUMERIC,
    r"\mathsf": _ALPHANUMERIC,
    r"\mathtt": _ALPHANUMERIC,
}
_ITALIC_CORRECTED = {
    r"\mathrm": frozenset("fgvwyVWY"),
    r"\mathbf": frozenset("fgvwyVWY"),
    r"\mathsf": frozenset("fgrvwyVWY"),
    r"\mathtt": frozenset(),
}
_LOW = frozenset("aceimnorstuxz")  # single letters whose scripts stand where those of a box do ...
_DESCENDING = frozenset("gjpqyQ")  # ... and those whose subscript does not


def plain_letters(symbols: list[Symbol], alphabet: str, style: int, scripts: Scripts | None) -> bool:
    """Tell whether words in a math alphabet give the picture of the text, in a style and under scripts."""
    safe, corrected = _SAFE[alphabet], _ITALIC_CORRECTED[alphabet]
    spaces = alphabet == r"\mathrm" and style < 2
    previous = ""
    for symbol in symbols:
        text = symbol.text
        if text in _SPACES:
            if not spaces or previous in corrected:
                return False
        elif text not in safe:
            return False
        previous = text
    if previous in corrected:
        return False
    if scripts is not None and len(symbols) == 1:
        if scripts.sup is not None and not (previous in _LOW or previous.isdigit()):
            return False
        if scripts.sub is not None and previous in _DESCENDING:
            return False
    return True


def written_text(symbols: list[Symbol], tie: str = " ") -> list[str]:
    """Give what LaTeX must see for each symbol of a text: spaces back, and one after a command's name."""
    written: list[str] = []
    after_name = after_space = False
    for symbol in symbols:
        text = symbol.text
        if text == "~":
            written.append("~" if after_name or after_space else tie)  # TeX drops a space after either
        elif text == "\\":
            written.append("\\ ")
        else:
            written.append(f" {text}" if after_name and text[0].isalnum() else text)
        after_name = len(text) > 1 and text[0] == "\\" and text[-1].isalpha()
        after_space = text in ("~", "\\")
    return written
