"""Plain text in Unicode, on one line, to be pasted anywhere: the linear notation that Word builds up.

Scripts are written with the raised and lowered characters of Unicode where all of a script has them, else as
`^(...)` and `_(...)`; what is more than one sign stands in parentheses where it is above or below a line.
"""

import re
from typing import Final

from i2l.formats import layout as to
from i2l.formats.layout import FormatError, Item, Row, in_alphabet
from i2l.formats.mathml import limits_by_nature

_NAME: Final = "Plain text"
RAISED: Final = dict(
    zip(
        "0123456789+−=()abcdefghijklmnoprstuvwxyzABDEGHIJKLMNOPRTUVWβγδφχ",
        "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁼⁽⁾ᵃᵇᶜᵈᵉᶠᵍʰⁱʲᵏˡᵐⁿᵒᵖʳˢᵗᵘᵛʷˣʸᶻᴬᴮᴰᴱᴳᴴᴵᴶᴷᴸᴹᴺᴼᴾᴿᵀᵁⱽᵂᵝᵞᵟᵠᵡ",
        strict=True,
    )
)
LOWERED: Final = dict(
    zip("0123456789+−=()aehijklmnoprstuvxβγρφχ", "₀₁₂₃₄₅₆₇₈₉₊₋₌₍₎ₐₑₕᵢⱼₖₗₘₙₒₚᵣₛₜᵤᵥₓᵦᵧᵨᵩᵪ", strict=True)
)
_PRIMES: Final = {1: "′", 2: "″", 3: "‴", 4: "⁗"}
_ROOTS: Final = {"2": "√", "3": "∛", "4": "∜"}
_LINES: Final = {"‾": "¯", "_": "▁"}
_ENCLOSED: Final = {"box": "▭", "up": "╱", "down": "╲", "cross": "╳"}
_AFTER_OPENING: Final = re.compile(r"(?<=[(\[{⟨]) +")
_BEFORE_CLOSING: Final = re.compile(r" +(?=[)\]}⟩,;])")
_FUNCTION_BRACKET: Final = re.compile(r"(?<=[^\W\d_])([^\W\d_]) \(")
_SPACES: Final = re.compile(" {2,}")
_SLASH: Final = "∕"  # that stands on the line; the usual one makes a fraction
_LINED_UP: Final = to.ALIGNED | {"gathered", "cases", "dcases", "rcases", "substack", "subarray"}


def to_plain_text(row: Row) -> str:
    """Write a layout as one line of text.

    Raises:
        FormatError: for what plain text cannot say.
    """
    return _row(row)


def _row(row: Row) -> str:
    """Write items side by side, with a space around relations, fractions and words."""
    written = ""
    before: Item | None = None
    for item in row.items:
        piece = _item(item)
        base = item.base if isinstance(item, to.Scripts) else item
        if isinstance(base, to.Sign) and (base.kind == "rel" or (base.kind == "bin" and _adds(before))):
            piece = f" {piece} "
        elif isinstance(base, to.Sign) and base.kind == "punct":
            piece = f"{piece} "
        elif isinstance(base, to.Fraction | to.Stretched) or (
            isinstance(base, to.Word) and base.role != "text"
        ):
            piece = f" {piece} "
        if piece:
            written += piece
            before = item
    return _close(written)


def _close(written: str) -> str:
    """Take away spaces inside of brackets, and before a bracket that belongs to a function."""
    inside = _AFTER_OPENING.sub("", _BEFORE_CLOSING.sub("", written))
    return _FUNCTION_BRACKET.sub(r"\1(", _SPACES.sub(" ", inside)).strip(" ")


def _adds(before: Item | None) -> bool:
    """Whether a sign such as + has something to its left that it adds to."""
    sign = before.base if isinstance(before, to.Scripts) else before
    return before is not None and not (
        isinstance(sign, to.Sign) and sign.kind in ("open", "rel", "bin", "punct", "large")
    )


def _item(item: Item) -> str:
    match item:
        case to.Sign(text, _, font, bold):
            if text in ("/", "_"):
                return _SLASH if text == "/" else r"\_"
            plain = not bold and font in ("", "rm", "it")
            return text if plain else in_alphabet(text[0], font, bold=bold) + text[1:]
        case to.Number(text, font, bold):
            return "".join(in_alphabet(digit, font or "rm", bold=bold) for digit in text)
        case to.Word(text, _, font, bold):
            plain = not bold and font in ("", "rm", "it")
            return text if plain else "".join(in_alphabet(letter, font, bold=bold) for letter in text)
        case to.Space(em):
            if em <= -0.5:
                raise FormatError(_NAME, "negative space")
            return " " if em > 0.2 else ""
        case Row():
            return _row(item)
        case to.Scripts():
            return _scripts(item)
        case to.Fraction():
            return _fraction(item)
        case to.Root():
            return _root(item)
        case to.Fenced(left, parts, middles, right):
            inner = _row(parts[0])
            for middle, part in zip(middles, parts[1:], strict=True):
                inner += f" {_fence(middle)} {_row(part)}"
            return _fence(left) + inner + _fence(right)
        case to.Accent():
            return _accent(item)
        case to.Stretched(text):
            return text
        case to.Enclosed(body, how):
            return f"{_ENCLOSED[how]}({_row(Row(to.items_of(body)))})"
        case to.Phantom(_, width):
            return " " if width else ""
        case to.Styled(body):
            return _row(body)
        case to.Table():
            return _table(item)


def _fence(text: str) -> str:
    return _SLASH if text == "/" else text


def _operand(item: Item) -> str:
    """Write what stands above or below a line: one sign bare, anything else in parentheses."""
    inner = to.unwrapped(item)
    written = _row(Row(to.items_of(inner)))
    bare = isinstance(inner, to.Number) or (isinstance(inner, to.Sign) and inner.text not in "()〖〗")
    return written if bare and " " not in written else f"({written})"


def _scripts(node: to.Scripts) -> str:
    base = to.unwrapped(node.base)
    written = _item(base)
    if isinstance(base, to.Scripts | to.Fraction) or (isinstance(base, Row) and len(base.items) > 1):
        written = f"〖{written}〗"
    if not written:
        written = " "  # so that the script does not go to what stands before
    written += _PRIMES.get(node.primes, "′" * node.primes)
    over = node.placement == "over" and not limits_by_nature(base) and not isinstance(base, to.Accent)
    if over:
        return written + "".join(
            mark + _operand(script)
            for mark, script in (("┬", node.sub), ("┴", node.sup))
            if script is not None
        )
    small = [
        (script, _in_characters(script, characters))
        for script, characters in ((node.sub, LOWERED), (node.sup, RAISED))
        if script is not None
    ]
    if all(characters for _, characters in small):
        return written + "".join(characters for _, characters in small)
    for mark, script in (("_", node.sub), ("^", node.sup)):
        if script is not None:
            written += mark + _operand(script)
    return written


def _in_characters(script: Item, characters: dict[str, str]) -> str:
    """Write a script in raised or lowered characters, or nothing where one is missing."""
    items = to.items_of(script)
    if not all(isinstance(item, to.Sign | to.Number) and not item.bold and item.font == "" for item in items):
        return ""
    text = "".join(item.text for item in items if isinstance(item, to.Sign | to.Number))
    return "".join(characters.get(letter, "\0") for letter in text) if set(text) <= characters.keys() else ""


def _fraction(node: to.Fraction) -> str:
    if node.line:
        return f"{node.left}{_operand(node.above)}/{_operand(node.below)}{node.right}"
    above, below = (_row(Row(to.items_of(part))).strip() for part in (node.above, node.below))
    return f"{node.left}█({above}@{below}){node.right}"


def _root(node: to.Root) -> str:
    if node.index is None:
        return f"√{_operand(node.body)}"
    index = _row(Row(to.items_of(node.index))).strip()
    if index in _ROOTS:
        return f"{_ROOTS[index]}{_operand(node.body)}"
    return f"√({index}&{_row(Row(to.items_of(node.body))).strip()})"


def _accent(node: to.Accent) -> str:
    body = to.unwrapped(node.body)
    if node.mark in _LINES or node.mark in "⏞⏟":
        mark = _LINES.get(node.mark, node.mark)
        return f"{mark}({_row(Row(to.items_of(body))).strip()})"
    written = _item(body)
    single = isinstance(body, to.Sign) or (isinstance(body, to.Number | to.Word) and len(body.text) == 1)
    return f"{written}{node.combining}" if single else f"({written}){node.combining}"


def _table(table: to.Table) -> str:
    if table.has_rules:
        raise FormatError(_NAME, "a rule in a table (\\hline or |)")
    rows = []
    for row in table.rows:
        cells = [_row(cell).strip() for cell in row]
        if any("&" in cell and "(" not in cell for cell in cells):
            raise FormatError(_NAME, r"\& in a table")
        rows.append("&".join(cells))
    left, right = to.BUILT_IN_FENCES.get(table.environment, ("", ""))
    mark = "█" if table.environment in _LINED_UP else "■"
    return f"{left}{mark}({'@'.join(rows)}){right}"
