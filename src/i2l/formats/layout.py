"""What a formula shows, free of LaTeX: signs, words, scripts, fractions, roots, fences and tables.

Every printer prints this layout, so what a command means is decided once, in `i2l.formats.translate`. Letters
and digits in the alphabets of mathematics are what Unicode has for them.
"""

from dataclasses import dataclass, field
from typing import Final, Literal

from i2l.errors import I2LError

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


Kind = Literal["ord", "large", "bin", "rel", "open", "close", "punct"]
Placement = Literal["auto", "over", "side"]


class FormatError(I2LError):
    """A formula that a format cannot say; the message names the command or construct."""

    def __init__(self, format_name: str, construct: str) -> None:
        super().__init__(f"{format_name} cannot say {construct}; take another format, or leave it out.")
        self.format_name = format_name
        self.construct = construct


@dataclass(slots=True)
class Sign:
    """One character, in one alphabet."""

    text: str
    kind: Kind = "ord"
    font: str = ""  # "" is the usual one of mathematics; else rm, it, cal, scr, frak, bb, sf, tt
    bold: bool = False
    size: int = 0  # 1 to 4 for \\big to \\Bigg


@dataclass(slots=True)
class Number:
    """Digits that belong together, with a decimal point or not."""

    text: str
    font: str = ""
    bold: bool = False


@dataclass(slots=True)
class Word:
    """Several letters in one: an operator such as sin, a name, or words of text with their spaces."""

    text: str
    role: Literal["operator", "limits", "name", "text"] = "name"  # limits: an operator with scripts below
    font: str = "rm"
    bold: bool = False


@dataclass(slots=True)
class Space:
    """Empty room of a width in em; negative moves back."""

    em: float


@dataclass(slots=True)
class Row:
    """Items side by side."""

    items: "list[Item]" = field(default_factory=list)


@dataclass(slots=True)
class Scripts:
    """A base with what stands below and above; `over` puts it right under and over the base."""

    base: "Item"
    sub: "Item | None"
    sup: "Item | None"
    placement: Placement = "auto"
    primes: int = 0  # before what `sup` has


@dataclass(slots=True)
class Fraction:
    """One thing over another, with a line between them or not, perhaps in fences (a binomial)."""

    above: "Item"
    below: "Item"
    line: bool = True
    left: str = ""
    right: str = ""
    style: str = ""  # display or text where that is forced


@dataclass(slots=True)
class Root:
    """A root, with the number of its degree or not."""

    body: "Item"
    index: "Item | None"


@dataclass(slots=True)
class Fenced:
    """Items between delimiters as tall as they are; the delimiters between them are as tall too."""

    left: str  # a character, or nothing
    parts: list[Row]
    middles: list[str]
    right: str
    grows: bool = True  # False only where a printer itself has found a pair of brackets as low as letters


@dataclass(slots=True)
class Accent:
    """A mark over or under something; a wide one stretches."""

    command: str
    body: "Item"
    mark: str  # as it stands alone
    combining: str
    under: bool
    wide: bool


@dataclass(slots=True)
class Stretched:
    """An arrow as long as what stands over it."""

    text: str


@dataclass(slots=True)
class Enclosed:
    """Something in a frame, or struck out."""

    body: "Item"
    how: Literal["box", "up", "down", "cross"]


@dataclass(slots=True)
class Phantom:
    """The room something would take: all of it, its width or its height."""

    body: "Item"
    width: bool
    height: bool


@dataclass(slots=True)
class Styled:
    """Something set in the size of a display, of text, or of a script."""

    body: Row
    style: Literal["display", "text", "script", "scriptscript"]


@dataclass(slots=True)
class Table:
    """Rows of cells."""

    environment: str  # array, matrix, smallmatrix, cases, rcases, aligned, gathered, substack
    rows: list[list[Row]]
    columns: list[str]  # l, c or r of each column
    lines_before: set[int] = field(default_factory=set)  # columns with a vertical rule before them
    rules_above: set[int] = field(default_factory=set)  # rows with a horizontal rule above them

    @property
    def has_rules(self) -> bool:
        """Whether any rule is drawn."""
        return bool(self.lines_before or self.rules_above)


Item = (
    Sign
    | Number
    | Word
    | Space
    | Row
    | Scripts
    | Fraction
    | Root
    | Fenced
    | Accent
    | Stretched
    | Enclosed
    | Phantom
    | Styled
    | Table
)

# A fence that formats have to draw for an environment that has it built in.
BUILT_IN_FENCES = {"cases": ("{", ""), "dcases": ("{", ""), "rcases": ("", "}")}
ALIGNED = frozenset(["aligned", "alignedat", "split", "eqnarray"])
SMALL = frozenset(["smallmatrix", "substack", "subarray"])


def unwrapped(item: Item) -> Item:
    """Give the one item of a row that has one, or the item itself."""
    while isinstance(item, Row) and len(item.items) == 1:
        item = item.items[0]
    return item


def items_of(item: Item) -> list[Item]:
    """Give the items of a row, or the item as the only one."""
    return item.items if isinstance(item, Row) else [item]


def is_blank(item: Item) -> bool:
    """Whether nothing of it is seen."""
    return isinstance(item, Space) or (isinstance(item, Row) and all(map(is_blank, item.items)))
