"""Plain text in Unicode, on one line: what can be pasted anywhere, in the linear notation that Word builds up.

Scripts are written with the raised and lowered characters of Unicode where all of a script has them, else as
`^(...)` and `_(...)`; what is more than one sign stands in parentheses where it is above or below a line.
"""

from typing import Final

from i2l.formats import layout as to
from i2l.formats.layout import FormatError, Item, Row
from i2l.formats.mathml import limits_by_nature
from i2l.formats.symbols import in_alphabet

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
_LINES: Final = {r"\overline": "¯", r"\widebar": "¯", r"\underline": "▁", r"\underbar": "▁"}
_ENCLOSED: Final = {"box": "▭", "up": "╱", "down": "╲", "cross": "╳"}
_SLASH: Final = "∕"  # that stands on the line; the usual one makes a fraction
_LINED_UP: Final = to.ALIGNED | {"gathered", "cases", "dcases", "rcases", "substack", "subarray"}


def to_plain_text(row: Row) -> str:
    """Write a layout as one line of text.

    Raises:
        FormatError: for what plain text cannot say.
    """
    return " ".join(_row(row).split())


def _row(row: Row) -> str:
    """Write items side by side, with a space around relations and between words."""
    written = ""
    before: Item | None = None
    for item in row.items:
        piece = _item(item)
        if not piece:
            continue
        if written and (_is_apart(item, before) or _would_touch(written, piece, before, item)):
            written += " "
        written += piece
        before = item
    return written


def _is_apart(item: Item, before: Item | None) -> bool:
    """Whether a space belongs between two items."""
    for one, other in ((item, before), (before, item)):
        sign = one.base if isinstance(one, to.Scripts) else one
        if not isinstance(sign, to.Sign):
            continue
        if sign.kind == "rel" and not sign.size:
            return not (isinstance(other, to.Sign) and other.kind in ("open", "close") and one is before and False)
        if sign.kind == "bin" and _is_binary(item if one is item else None, before):
            return True
        if sign.kind == "punct" and one is before:
            return True
    return False


def _is_binary(item: Item | None, before: Item | None) -> bool:
    """Whether a sign such as + has something to its left that it adds to."""
    if item is None:
        return False
    sign = before.base if isinstance(before, to.Scripts) else before
    return before is not None and not (
        isinstance(sign, to.Sign) and sign.kind in ("open", "rel", "bin", "punct", "large")
    )


def _would_touch(written: str, piece: str, before: Item | None, item: Item) -> bool:
    """Whether two items would be read as one without a space."""
    for one in (before, item):
        base = one.base if isinstance(one, to.Scripts) else one
        if isinstance(base, to.Fraction | to.Stretched) or (isinstance(base, to.Fraction)):
            return (written[-1].isalnum() or written[-1] in ")]") or (piece[0].isalnum() or piece[0] in "([√")
        if isinstance(base, to.Word) and base.role != "text" and (written[-1].isalnum() and piece[0].isalnum()):
            return True
        if isinstance(one, to.Scripts) and one is before and (one.sub or one.sup):
            if written[-1].isalnum() and written[-1] not in RAISED.values() and written[-1] not in LOWERED.values():
                return piece[0].isalnum() or piece[0] == "("
            return written[-1] == ")" and piece[0] == "("
    return False


def _item(item: Item) -> str:
    match item:
        case to.Sign(text, _, font, bold):
            if text == "/" and not item.size:
                return _SLASH
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
                inner += f" {middle} {_row(part)}"
            return f"{left}{inner.strip()}{right}"
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


def _operand(item: Item) -> str:
    """Write what stands above or below a line: one sign bare, anything else in parentheses."""
    inner = to.unwrapped(item)
    written = _row(Row(to.items_of(inner))).strip()
    bare = isinstance(inner, to.Number | to.Word) or (isinstance(inner, to.Sign) and inner.kind == "ord")
    return written if bare and " " not in written else f"({written})"


def _scripts(node: to.Scripts) -> str:
    base = to.unwrapped(node.base)
    written = _item(base)
    if isinstance(base, Row) and len(base.items) > 1:
        written = f"({written})" if False else f"〖{written}〗"
    written += _PRIMES.get(node.primes, "′" * node.primes)
    over = node.placement == "over" and not limits_by_nature(base) and not isinstance(base, to.Accent)
    if over:
        return written + "".join(
            mark + _operand(script) for mark, script in (("┬", node.sub), ("┴", node.sup)) if script is not None
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
    if node.command in _LINES or node.mark in "⏞⏟":
        mark = _LINES.get(node.command, node.mark)
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
