"""AsciiMath: the notation of ASCIIMathML and MathJax, by the names both know.

Tokens are set apart by spaces, since letters that touch may spell a name. Arguments stand in parentheses,
which the reader takes away; so a bracket without its partner is written as text, where it takes none of them.
"""

from typing import Final

from i2l.formats import layout as to
from i2l.formats.layout import FormatError, Item, Row
from i2l.formats.mathml import limits_by_nature
from i2l.formulas.commands import ASCIIMATH_ACCENTS, ASCIIMATH_NAMES, ASCIIMATH_OPERATORS

_NAME: Final = "AsciiMath"
_NOTHING: Final = "{::}"


_FONTS: Final = {"bb": "bbb", "cal": "cc", "scr": "cc", "frak": "fr", "sf": "sf", "tt": "tt"}
_LIMITED: Final = frozenset(["lim", "min", "max"])
_LARGE: Final = frozenset("∑∏⋃⋂⋀⋁")
_OPENING: Final = {"(": "(", "[": "[", "{": "{", "⟨": "(:", "|": "|:", "": "{:"}
_CLOSING: Final = {")": ")", "]": "]", "}": "}", "⟩": ":)", "|": ":|", "": ":}"}
_WHOLE: Final = {("⌊", "⌋"): "floor", ("⌈", "⌉"): "ceil", ("‖", "‖"): "norm", ("|", "|"): "abs"}


def to_asciimath(row: Row) -> str:
    """Write a layout as AsciiMath, without the backquotes around it.

    Raises:
        FormatError: for what AsciiMath cannot say.
    """
    return _row(row)


def _row(row: Row) -> str:
    """Write items side by side."""
    partners = _partners(row.items)
    pieces: list[str] = []
    starts: dict[int, int] = {}  # of each opening bracket, among the pieces
    for place, item in enumerate(row.items):
        written = _item(item, paired=place in partners)
        if not written:
            continue
        previous = row.items[place - 1] if place else None
        if isinstance(item, to.Fraction) and _takes_argument(previous):
            written = (
                f"{{: {written} :}}"  # else only what is above the line would be the function's argument
            )
        if partners.get(place, place) > place:
            starts[place] = len(pieces)
        elif partners.get(place, place) < place:
            start = starts[partners[place]] + 1
            pieces[start:] = [_no_matrix(" ".join(pieces[start:]))]
        pieces.append(written)
    return " ".join(filter(None, pieces))


def _no_matrix(body: str) -> str:
    """Keep brackets in brackets, such as `((1, 0))`, from being taken for the rows of a matrix."""
    rows = body[:1] in ("(", "[") and body[-1:] in (")", "]") and "," in body
    return f"{body} {_NOTHING}" if rows else body


def _takes_argument(item: Item | None) -> bool:
    base = item.base if isinstance(item, to.Scripts) else item
    if isinstance(base, to.Sign):
        return base.text in ("f", "g")
    return isinstance(base, to.Word)


def _group(item: Item) -> str:
    """Write an argument, in parentheses that the reader takes away."""
    body = _no_matrix(_row(Row(to.items_of(item)))) or _NOTHING
    return f"( {body} )" if body[0] == ":" or body[-1] == ":" else f"({body})"  # `(:` is an angle bracket


def _item(item: Item, *, paired: bool = True) -> str:
    match item:
        case to.Sign():
            return _sign(item, paired=paired)
        case to.Number(text, font, bold):
            return _in_font(text, font, bold)
        case to.Word():
            return _word(item)
        case to.Space(em):
            return _space(em)
        case Row():
            return f"{{: {_row(item)} :}}"
        case to.Scripts():
            return _scripts(item, paired=paired)
        case to.Fraction():
            return _fraction(item)
        case to.Root(body, index):
            return f"sqrt{_group(body)}" if index is None else f"root{_group(index)}{_group(body)}"
        case to.Fenced():
            return _fenced(item)
        case to.Accent():
            return _accent(item)
        case to.Stretched(text):
            return ASCIIMATH_NAMES.get(text, text)
        case to.Enclosed(body, how):
            if how != "up":
                names = {"box": r"a frame (\boxed)", "down": r"\bcancel", "cross": r"\xcancel"}
                raise FormatError(_NAME, names[how])
            return f"cancel{_group(body)}"
        case to.Phantom(_, width):
            return "\\ " if width else ""
        case to.Styled(body):
            return _row(body)
        case to.Table():
            fences = to.BUILT_IN_FENCES.get(item.environment, ("", ""))
            return _table(item, *fences)


def _sign(sign: to.Sign, *, paired: bool) -> str:
    text = sign.text
    if text in "()[]{}⟨⟩" and not paired:
        return f'"{text}"'
    if text == "|":
        return ":|:"
    if text in '"@`_^':
        return "”" if text == '"' else f'"{text}"'  # AsciiMath has other uses for these
    if "\u0338" in text and sign.kind == "ord":
        return f"cancel({_in_font(ASCIIMATH_NAMES.get(text[0], text[0]), sign.font, sign.bold)})"
    return _in_font(ASCIIMATH_NAMES.get(text, text), sign.font, sign.bold, letter=text.isascii())


def _in_font(written: str, font: str, bold: bool, *, letter: bool = True) -> str:
    if font in _FONTS:
        written = f"{_FONTS[font]}({written})"
    elif font == "rm" and letter and written.isalpha() and not bold:
        return f'"{written}"'
    return f"bb({written})" if bold else written


def _word(word: to.Word) -> str:
    name = word.text.replace(" ", "")
    if word.role in ("operator", "limits") and name in ASCIIMATH_OPERATORS:
        return name
    text = word.text.replace('"', "”")
    return _in_font(f'"{text}"', "" if word.font == "it" else word.font, word.bold, letter=False)


def _space(em: float) -> str:
    if em <= -0.5:
        raise FormatError(_NAME, "negative space")
    return "" if em < 0.2 else "\\ " if em < 0.75 else "quad" if em < 1.5 else "qquad"


def _scripts(node: to.Scripts, *, paired: bool) -> str:
    base = to.unwrapped(node.base)
    sup = node.sup
    if node.primes and (node.sub is None and sup is None):
        written = (not to.is_blank(base) and _item(base, paired=paired)) or _NOTHING
        return written + "'" * node.primes
    if node.primes:
        sup = Row([*([to.Sign("′")] * node.primes), *(to.items_of(sup) if sup is not None else [])])
    natural = _has_limits(base)
    over = node.placement == "over" or (node.placement == "auto" and limits_by_nature(base))
    if over and not natural:
        written = _item(base, paired=paired) or _NOTHING
        if node.sub is not None:
            written = f"underset{_group(node.sub)}({written})"
        return written if sup is None else f"overset{_group(sup)}({written})"
    written = (not to.is_blank(base) and _item(base, paired=paired)) or _NOTHING
    if (natural and not over) or isinstance(base, to.Scripts | to.Fraction):
        written = f"{{: {written} :}}"
    if written[-1] in "_^":
        written += " "  # these spell other signs if they touch
    if node.sub is not None:
        written += f"_{_group(node.sub)}"
    return written if sup is None else f"{written}^{_group(sup)}"


def _has_limits(base: Item) -> bool:
    """Whether AsciiMath puts the scripts of a base under and over it."""
    if isinstance(base, to.Accent):
        return base.mark in "⏞⏟"
    if isinstance(base, to.Word):
        return base.role == "limits" and base.text in _LIMITED
    return isinstance(base, to.Sign) and base.text in _LARGE


def _fraction(node: to.Fraction) -> str:
    if not node.line:
        rows = [[Row(to.items_of(node.above))], [Row(to.items_of(node.below))]]
        return _table(to.Table("matrix", rows, ["c"]), node.left, node.right)
    written = f"{_group(node.above)}/{_group(node.below)}"
    if node.left or node.right:
        return f"{_OPENING[node.left]} {written} {_CLOSING[node.right]}"
    return written


def _fenced(node: to.Fenced) -> str:
    inner = to.unwrapped(node.parts[0])
    if isinstance(inner, to.Table) and len(node.parts) == 1 and inner.environment not in to.BUILT_IN_FENCES:
        return _table(inner, node.left, node.right)
    body = _row(node.parts[0])
    for middle, part in zip(node.middles, node.parts[1:], strict=True):
        body += f" {_sign(to.Sign(middle), paired=False) if middle else ''} {_row(part)}"
    return _between(node.left, _no_matrix(body) or _NOTHING, node.right)


def _between(left: str, body: str, right: str) -> str:
    """Write fences around a body; those that AsciiMath does not stretch stand inside of unseen ones."""
    if (left, right) in _WHOLE:
        return f"{_WHOLE[left, right]}({body})"
    opening, closing = _OPENING.get(left), _CLOSING.get(right)
    if opening is None:
        opening, body = "{:", f"{_sign(to.Sign(left), paired=False)} {body}"
    if closing is None:
        closing, body = ":}", f"{body} {_sign(to.Sign(right), paired=False)}"
    return f"{opening} {body} {closing}"


def _accent(node: to.Accent) -> str:
    if node.command in ASCIIMATH_ACCENTS:
        return f"{ASCIIMATH_ACCENTS[node.command]}{_group(node.body)}"
    mark = ASCIIMATH_NAMES.get(node.mark, node.mark)
    return f"{'underset' if node.under else 'overset'}({mark}){_group(node.body)}"


def _table(table: to.Table, left: str, right: str) -> str:
    """Write rows in brackets; a single row is no table to AsciiMath, so its cells stand side by side."""
    if table.has_rules:
        raise FormatError(_NAME, "a rule in a table (\\hline or |)")
    if len(table.rows) < 2:
        return _between(
            left, " quad ".join(_row(cell) for row in table.rows for cell in row) or _NOTHING, right
        )
    rows = [f"[{','.join(map(_cell, row))}]" for row in table.rows]
    if (left, right) in _WHOLE:
        opening, closing = {"‖": ("{:", ":}"), "|": ("|:", ":|")}.get(left, ("{:", ":}"))
        if opening == "{:":
            return f"{_WHOLE[left, right]}({{:{','.join(rows)}:}})"
        return f"{opening}{','.join(rows)}{closing}"
    opening, closing = _OPENING.get(left, ""), _CLOSING.get(right, "")
    if not opening or not closing:
        return _between(left, f"{{:{','.join(rows)}:}}", right)
    return f"{opening}{','.join(rows)}{closing}"


def _cell(cell: Row) -> str:
    written = _row(cell)
    commas = any(isinstance(item, to.Sign) and item.text == "," for item in cell.items)
    return f"{{: {_no_matrix(written)} :}}" if commas else written


def _partners(items: list[Item]) -> dict[int, int]:
    """Give for each bracket the place of its partner in the same row, if it has one."""
    partners: dict[int, int] = {}
    opened: list[int] = []
    for place, item in enumerate(items):
        sign = item.base if isinstance(item, to.Scripts) else item
        if not isinstance(sign, to.Sign) or sign.text not in "()[]{}⟨⟩":
            continue
        if sign.text in "([{⟨" and sign is item:
            opened.append(place)
        elif sign.text in ")]}⟩" and opened:
            start = opened.pop()
            partners |= {start: place, place: start}
    return partners
