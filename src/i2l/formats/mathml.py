"""MathML that browsers draw (MathML Core), with the attributes beside it that Word and others read."""

from html import escape
from typing import Final

from i2l.formats import layout as to
from i2l.formats.layout import Item, Row, in_alphabet

_NAMESPACE: Final = "http://www.w3.org/1998/Math/MathML"
_APPLY: Final = "<mo>\u2061</mo>"
_PRIMES: Final = {1: "′", 2: "″", 3: "‴", 4: "⁗"}
_INTEGRALS: Final = frozenset("∫∮∬∭⨌")
_BIG_EM: Final = (0.0, 1.2, 1.8, 2.4, 3.0)
_ALIGNMENTS: Final = {"l": "left", "c": "center", "r": "right"}
_STYLES: Final = {
    "display": 'displaystyle="true" scriptlevel="0"',
    "text": 'displaystyle="false" scriptlevel="0"',
    "script": 'displaystyle="false" scriptlevel="1"',
    "scriptscript": 'displaystyle="false" scriptlevel="2"',
}
_LINES: Final = {
    "‾": "border-top:.06em solid;padding-top:.1em",
    "_": "border-bottom:.06em solid;padding-bottom:.1em",
}
# A browser that does not know menclose draws the same by its style.
_LINE: Final = "currentColor calc(50% - .03em) calc(50% + .03em),transparent calc(50% + .03em)"
_STROKES: Final = {
    "up": f"linear-gradient(to top left,transparent calc(50% - .03em),{_LINE})",
    "down": f"linear-gradient(to top right,transparent calc(50% - .03em),{_LINE})",
}
_ENCLOSED: Final = {
    "box": ("box", "border:.05em solid;padding:.2em"),
    "up": ("updiagonalstrike", f"background:{_STROKES['up']}"),
    "down": ("downdiagonalstrike", f"background:{_STROKES['down']}"),
    "cross": ("updiagonalstrike downdiagonalstrike", f"background:{_STROKES['up']},{_STROKES['down']}"),
}


def to_mathml(row: Row) -> str:
    """Write a layout as one `<math>` element, set as a display."""
    return f'<math xmlns="{_NAMESPACE}" display="block">{_row(row)}</math>'


def _row(row: Row) -> str:
    """Write the items of a row; an operator in letters keeps a distance from what it applies to."""
    written = []
    for place, item in enumerate(row.items):
        written.append(_item(item))
        base = item.base if isinstance(item, to.Scripts) else item
        if isinstance(base, to.Word) and base.role in ("operator", "limits"):
            following = row.items[place + 1] if place + 1 < len(row.items) else None
            if following is not None:
                written.append(_APPLY)
                if not _keeps_distance(following):
                    written.append('<mspace width="0.1667em"/>')
    return "".join(written)


def _keeps_distance(item: Item) -> bool:
    if isinstance(item, to.Sign):
        return item.kind != "ord"
    return isinstance(item, to.Space | to.Fenced)


def _one(item: Item) -> str:
    """Write an item as exactly one element."""
    inner = to.unwrapped(item)
    if isinstance(inner, Row) or (isinstance(inner, to.Word) and inner.role in ("operator", "limits")):
        return f"<mrow>{_row(inner)}</mrow>" if isinstance(inner, Row) else _word(inner)
    return _item(inner)


def _item(item: Item) -> str:
    match item:
        case to.Sign():
            return _sign(item)
        case to.Number(text, font, bold):
            digits = "".join(in_alphabet(digit, font or ("rm" if bold else ""), bold=bold) for digit in text)
            return f"<mn>{digits}</mn>"
        case to.Word():
            return _word(item)
        case to.Space(em):
            if em < 0:  # a width cannot be negative
                return f'<mspace style="margin-left:{em:.4g}em"/>'
            return f'<mspace width="{em:.4g}em"/>'
        case Row():
            return f"<mrow>{_row(item)}</mrow>"
        case to.Scripts():
            return _scripts(item)
        case to.Fraction():
            return _fraction(item)
        case to.Root(body, None):
            return f"<msqrt>{_row(body) if isinstance(body, Row) else _item(body)}</msqrt>"
        case to.Root(body, index):
            assert index is not None
            return f"<mroot>{_one(body)}{_one(index)}</mroot>"
        case to.Fenced():
            return _fenced(item)
        case to.Accent():
            return _accent(item)
        case to.Stretched(text):
            return f'<mo stretchy="true" minsize="2em">{text}</mo>'
        case to.Enclosed(body, how):
            notation, style = _ENCLOSED[how]
            return f'<menclose notation="{notation}" style="{style}">{_one(body)}</menclose>'
        case to.Phantom():
            return _phantom(item)
        case to.Styled(body, style):
            return f"<mstyle {_STYLES[style]}>{_row(body)}</mstyle>"
        case to.Table():
            return _table(item)


def _sign(sign: to.Sign, *, more: str = "") -> str:
    """Write one sign: a letter as an identifier, anything else as an operator."""
    text = sign.text
    if sign.size:
        size = f"{_BIG_EM[sign.size]}em"
        form = {"open": ' form="prefix"', "close": ' form="postfix"'}.get(sign.kind, "")
        return f'<mo{form} stretchy="true" minsize="{size}" maxsize="{size}">{escape(text)}</mo>'
    if sign.kind == "ord" and (text[0].isalpha() or text[0] in "∂∇∞∅ℵ℘ℏ℧∀∃∄∠∡∢⊤⊥□◇■⧫★△▿▴▾♣♢♡♠♭♮♯§¶"):
        upright = sign.font == "rm" and not sign.bold
        letter = (
            text if upright or text[0] in "ıȷ" else in_alphabet(text[0], sign.font, bold=sign.bold) + text[1:]
        )
        if not upright and letter == in_alphabet(text[0], "it", bold=False) and len(text) == 1:
            letter = text  # a browser slants a lone letter by itself
        elif upright or (letter == text and not text[0].isalnum() and text[0] != "∂"):
            more += ' mathvariant="normal"'
        return f"<mi{more}>{escape(letter)}</mi>"
    if sign.bold:
        more += ' style="font-weight:bold"'
    if sign.kind == "ord":
        more += ' lspace="0" rspace="0"'
    if sign.kind in ("open", "close", "ord"):
        more += ' stretchy="false"'
    if sign.kind in ("open", "close") and text in "|‖!?":
        more += f' form="{"prefix" if sign.kind == "open" else "postfix"}"'
    return f"<mo{more}>{escape(text)}</mo>"


def _word(word: to.Word) -> str:
    font = "" if word.font == "rm" and not word.bold else word.font
    text = word.text
    if font or word.bold:
        text = "".join(in_alphabet(letter, font or "rm", bold=word.bold) for letter in text)
    if word.role == "text":
        outer = text.strip(" ")
        start = text.index(outer) if outer else len(text)
        spaced = "\u00a0" * start + outer + "\u00a0" * (len(text) - start - len(outer))
        return f"<mtext>{escape(spaced)}</mtext>"
    if word.role == "limits":
        return f'<mo lspace="0" rspace="0" movablelimits="true">{escape(text)}</mo>'
    variant = ' mathvariant="normal"' if len(text) == 1 else ""
    return f"<mi{variant}>{escape(text)}</mi>"


def limits_by_nature(base: Item) -> bool:
    """Whether scripts stand under and over a base in a display without being told to."""
    if isinstance(base, to.Sign):
        return base.kind == "large" and base.text not in _INTEGRALS
    if isinstance(base, to.Accent):
        return limits_by_nature(base.body)
    return isinstance(base, to.Word) and base.role == "limits"


def _scripts(node: to.Scripts) -> str:
    over = node.placement == "over" or (node.placement == "auto" and limits_by_nature(node.base))
    base = _one(node.base)
    if isinstance(node.base, to.Sign) and node.base.kind == "large" and node.placement == "over":
        base = _sign(node.base, more=' movablelimits="false"')
    sup = _superscript(node)
    sub = None if node.sub is None else _one(node.sub)
    name = (
        "m"
        + ("under" if over else "sub") * (sub is not None)
        + ("over" if over else "sup") * (sup is not None)
    )
    return f"<{name}>{base}{sub or ''}{sup or ''}</{name}>" if name != "m" else base


def _superscript(node: to.Scripts) -> str | None:
    if not node.primes:
        return None if node.sup is None else _one(node.sup)
    primes = f"<mo>{_PRIMES.get(node.primes, '′' * node.primes)}</mo>"
    if node.sup is None:
        return primes
    return f"<mrow>{primes}{''.join(map(_item, to.items_of(node.sup)))}</mrow>"


def _fraction(node: to.Fraction) -> str:
    thickness = "" if node.line else ' linethickness="0"'
    written = f"<mfrac{thickness}>{_one(node.above)}{_one(node.below)}</mfrac>"
    if node.left or node.right:
        written = f"<mrow>{_fence(node.left, 'prefix')}{written}{_fence(node.right, 'postfix')}</mrow>"
    return f"<mstyle {_STYLES[node.style]}>{written}</mstyle>" if node.style else written


def _fence(text: str, form: str) -> str:
    return f'<mo form="{form}" fence="true" stretchy="true">{escape(text)}</mo>' if text else ""


def _fenced(node: to.Fenced) -> str:
    written = _fence(node.left, "prefix") + _row(node.parts[0])
    for middle, part in zip(node.middles, node.parts[1:], strict=True):
        written += (
            f'<mo form="infix" fence="true" stretchy="true" lspace="0.1em" rspace="0.1em">'
            f"{escape(middle)}</mo>" + _row(part)
        )
    return f"<mrow>{written}{_fence(node.right, 'postfix')}</mrow>"


def _accent(node: to.Accent) -> str:
    """Write a mark over or under something.

    Browsers do not stretch a line, so they draw a border; the mark, unseen there, is for other readers.
    """
    body, style = _one(node.body), ""
    if node.mark in _LINES:
        body, style = f'<mrow style="{_LINES[node.mark]}">{body}</mrow>', ' style="opacity:0"'
    text = node.combining if node.mark == "^" and node.wide else node.mark
    mark = f'<mo stretchy="{"true" if node.wide else "false"}"{style}>{escape(text)}</mo>'
    if node.under:
        return f'<munder accentunder="true">{body}{mark}</munder>'
    return f'<mover accent="true">{body}{mark}</mover>'


def _phantom(node: to.Phantom) -> str:
    written = f"<mphantom>{_one(node.body)}</mphantom>"
    if not node.width:
        return f'<mpadded width="0">{written}</mpadded>'
    return written if node.height else f'<mpadded height="0" depth="0">{written}</mpadded>'


def _table(table: to.Table) -> str:
    """Write a table; alignment and rules both as attributes and as the style that browsers follow."""
    rows = []
    for number, row in enumerate(table.rows):
        cells = [_cell(table, number, index, cell) for index, cell in enumerate(row)]
        rows.append(f"<mtr>{''.join(cells)}</mtr>")
    aligned = table.environment in to.ALIGNED
    attributes = f' columnalign="{" ".join(_ALIGNMENTS[column] for column in table.columns)}"'
    if aligned or table.environment in ("gathered", "dcases"):
        attributes += ' displaystyle="true"'
    elif table.environment in to.SMALL:
        attributes += ' displaystyle="false" scriptlevel="1" rowspacing="0.1em"'
    if aligned:
        attributes += ' columnspacing="0em 2em"'
    width = len(table.columns)
    if any(inner := [index in table.lines_before for index in range(1, width)]):
        attributes += f' columnlines="{" ".join("solid" if line else "none" for line in inner)}"'
    if any(lines := [index in table.rules_above for index in range(1, len(rows))]):
        attributes += f' rowlines="{" ".join("solid" if line else "none" for line in lines)}"'
    written = f"<mtable{attributes}>{''.join(rows)}</mtable>"
    left, right = to.BUILT_IN_FENCES.get(table.environment, ("", ""))
    if left or right:
        return f"<mrow>{_fence(left, 'prefix')}{written}{_fence(right, 'postfix')}</mrow>"
    return written


def _cell(table: to.Table, number: int, index: int, cell: Row) -> str:
    style = []
    if table.columns[index] != "c":
        style.append(f"text-align:{_ALIGNMENTS[table.columns[index]]}")
    if table.environment in to.ALIGNED:
        style.append("padding-left:0" if index % 2 else "padding-right:0")
    for side, there in (
        ("left", index in table.lines_before),
        ("right", index + 1 == len(table.columns) and index + 1 in table.lines_before),
        ("top", number in table.rules_above),
        ("bottom", number + 1 == len(table.rows) and number + 1 in table.rules_above),
    ):
        if there:
            style.append(f"border-{side}:.05em solid")
    attribute = f' style="{";".join(style)}"' if style else ""
    return f"<mtd{attribute}>{_row(cell)}</mtd>"
