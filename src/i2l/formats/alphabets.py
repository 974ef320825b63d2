"""Letters and digits in the alphabets of mathematics, as Unicode has them."""

from typing import Final

# Where each alphabet starts: capitals, small letters, digits, capital Greek, small Greek.
_ALPHABETS: Final[dict[tuple[str, bool], tuple[int, int, int, int, int]]] = {
    ("", False): (0x1D434, 0x1D44E, 0, 0, 0x1D6FC),  # the italic of mathematics; Greek capitals stand upright
    ("", True): (0x1D468, 0x1D482, 0x1D7CE, 0x1D6A8, 0x1D736),
    ("rm", True): (0x1D400, 0x1D41A, 0x1D7CE, 0x1D6A8, 0x1D6C2),
    ("it", False): (0x1D434, 0x1D44E, 0, 0x1D6E2, 0x1D6FC),
    ("it", True): (0x1D468, 0x1D482, 0x1D7CE, 0x1D71C, 0x1D736),
    ("cal", False): (0x1D49C, 0x1D4B6, 0, 0, 0),
    ("cal", True): (0x1D4D0, 0x1D4EA, 0, 0, 0),
    ("frak", False): (0x1D504, 0x1D51E, 0, 0, 0),
    ("frak", True): (0x1D56C, 0x1D586, 0, 0, 0),
    ("bb", False): (0x1D538, 0x1D552, 0x1D7D8, 0, 0),
    ("bb", True): (0x1D538, 0x1D552, 0x1D7D8, 0, 0),
    ("sf", False): (0x1D5A0, 0x1D5BA, 0x1D7E2, 0, 0),
    ("sf", True): (0x1D5D4, 0x1D5EE, 0x1D7EC, 0, 0),
    ("tt", False): (0x1D670, 0x1D68A, 0x1D7F6, 0, 0),
    ("tt", True): (0x1D670, 0x1D68A, 0x1D7F6, 0, 0),
}
# Letters that Unicode had before it had the alphabets.
_OLDER: Final = dict(zip("𝑕𝒝𝒠𝒡𝒣𝒤𝒧𝒨𝒭𝒺𝒼𝓄𝔆𝔋𝔌𝔕𝔝𝔺𝔿𝕅𝕇𝕈𝕉𝕑", "ℎℬℰℱℋℐℒℳℛℯℊℴℭℌℑℜℨℂℍℕℙℚℝℤ", strict=True))
_GREEK_VARIANTS: Final = {"∂": 25, "ϵ": 26, "ϑ": 27, "ϰ": 28, "ϕ": 29, "ϱ": 30, "ϖ": 31}


def in_alphabet(sign: str, font: str, *, bold: bool) -> str:
    """Give a letter or digit as the character of a mathematical alphabet; what has none there stays as it is.

    Args:
        sign: one character.
        font: "" for the usual italic, or rm, it, cal, scr, frak, bb, sf, tt.
        bold: whether it is bold.
    """
    starts = _ALPHABETS.get(("cal" if font == "scr" else font, bold))
    if starts is None:
        return sign
    capitals, small, digits, greek_capitals, greek = starts
    code = 0
    if "A" <= sign <= "Z":
        code = capitals + ord(sign) - ord("A")
    elif "a" <= sign <= "z":
        code = small + ord(sign) - ord("a")
    elif "0" <= sign <= "9" and digits:
        code = digits + ord(sign) - ord("0")
    elif "Α" <= sign <= "Ω" and greek_capitals:
        code = greek_capitals + ord(sign) - ord("Α")
    elif greek and "α" <= sign <= "ω":
        code = greek + ord(sign) - ord("α")
    elif greek and sign in _GREEK_VARIANTS and (sign != "∂" or bold):
        code = greek + _GREEK_VARIANTS[sign]
    elif sign == "∇" and bold and greek_capitals:
        code = greek_capitals + 25
    return _OLDER.get(chr(code), chr(code)) if code else sign
