"""Text arguments: which words look the same as a math alphabet, and how text is written back to LaTeX."""

from i2l.formulas.tree import Symbol

_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789~()")


def plain_letters(symbols: list[Symbol], alphabet: str) -> bool:
    """Tell whether words set as a math alphabet give the picture of the text."""
    return all(symbol.text in _LETTERS for symbol in symbols)


def written_text(symbols: list[Symbol]) -> list[str]:
    """Give what LaTeX must see for each symbol of a text: spaces back, and one after a command's name."""
    written = []
    after_name = False
    for symbol in symbols:
        text = symbol.text
        if text == "~":
            written.append("~" if after_name else " ")
        elif text == "\\":
            written.append("\\ ")
        else:
            written.append(f" {text}" if after_name and text[0].isalnum() else text)
        after_name = len(text) > 1 and text[0] == "\\" and text[-1].isalpha()
    return written
