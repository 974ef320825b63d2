"""Office Math (OMML), the formulas of Word, and the smallest Word document that holds one or several."""

import io
import re
import zipfile
from collections.abc import Iterable
from dataclasses import replace
from html import escape
from typing import Final

from i2l.formats import layout as to
from i2l.formats.layout import FormatError, Item, Row
from i2l.formats.mathml import limits_by_nature

_NAME: Final = "Word"
_MATH: Final = "http://schemas.openxmlformats.org/officeDocument/2006/math"
_WORD: Final = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
_NAMESPACES: Final = f'xmlns:m="{_MATH}" xmlns:w="{_WORD}"'
_FONT: Final = '<w:rPr><w:rFonts w:ascii="Cambria Math" w:hAnsi="Cambria Math"/></w:rPr>'
_RUN: Final = f'<m:r>{_FONT}<m:t xml:space="preserve">'
_ALIKE: Final = re.compile(f"({_RUN})((?:[^<]*</m:t></m:r>{_RUN})+[^<]*)</m:t></m:r>")
_BETWEEN: Final = re.compile(f"</m:t></m:r>{_RUN}")
_SCRIPTS: Final = {
    **{"cal": "script", "scr": "script", "frak": "fraktur", "bb": "double-struck", "sf": "sans-serif"},
    "tt": "monospace",
}
_UPRIGHT: Final = frozenset(["rm", "bb", "cal", "scr", "frak", "sf", "tt"])
_PRIMES: Final = {1: "′", 2: "″", 3: "‴", 4: "⁗"}
_SPACES: Final = (
    (0.05, "\u200a"), (1 / 6, "\u2009"), (2 / 9, "\u205f"), (5 / 18, "\u2005"), (1 / 3, "\u2004"),
    (0.5, "\u2002"), (1.0, "\u2003"),
)  # fmt: skip
_NEGLIGIBLE_EM: Final = -0.5  # negative room up to this is a nicety, more of it prints signs over each other
_NO_WIDTH: Final = "\u200b"  # Word shows an empty place as a dotted box
_COLUMNS: Final = {"l": "left", "c": "center", "r": "right"}
_PAIRS: Final = {"(": ")", "[": "]"}
_LINES: Final = {"‾": "top", "_": "bot"}


def to_omml(row: Row) -> str:
    """Write a layout as one `<m:oMath>` element.

    Raises:
        FormatError: for what Word cannot say.
    """
    return f"<m:oMath {_NAMESPACES}>{_formula(row)}</m:oMath>"


def write_docx(formulas: Iterable[Row]) -> bytes:
    """Write a Word document with each formula as a display of its own.

    Raises:
        FormatError: for what Word cannot say.
    """
    displays = "".join(
        f"<w:p><m:oMathPara><m:oMath>{_formula(row)}</m:oMath></m:oMathPara></w:p>" for row in formulas
    )
    parts = {
        "[Content_Types].xml": '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
        '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        '<Default Extension="xml" ContentType="application/xml"/>'
        '<Override PartName="/word/document.xml" ContentType='
        '"application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"/></Types>',
        "_rels/.rels": '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">'
        '<Relationship Id="rId1" Target="word/document.xml" Type='
        '"http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument"/></Relationships>',
        "word/document.xml": f"<w:document {_NAMESPACES}><w:body>{displays}<w:sectPr/></w:body></w:document>",
    }
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            entry = zipfile.ZipInfo(name)  # of a fixed date, so that the same formula gives the same bytes
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, f'<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n{content}')
    return file.getvalue()


def _formula(row: Row) -> str:
    """Write a formula, signs that look alike in one run."""
    return _ALIKE.sub(lambda runs: runs[1] + _BETWEEN.sub("", runs[2]) + "</m:t></m:r>", _row(row))


def _element(name: str, *parts: str, properties: dict[str, str] | None = None) -> str:
    """Write an element with its properties (`namePr`) before its parts."""
    inner = "".join(f'<m:{key} m:val="{escape(value)}"/>' for key, value in (properties or {}).items())
    head = f"<m:{name}Pr>{inner}</m:{name}Pr>" if inner else ""
    return f"<m:{name}>{head}{''.join(parts)}</m:{name}>"


def _part(name: str, item: Item | None) -> str:
    inner = "" if item is None else _row(Row(to.items_of(item)))
    return f"<m:{name}>{inner}</m:{name}>"


def _base(item: Item) -> str:
    """Write the base of something; an empty one as a sign without width."""
    return f"<m:e>{_row(Row(to.items_of(item))) or _run(_NO_WIDTH)}</m:e>"


def _run(text: str, *, font: str = "", bold: bool = False, plain: bool = False, normal: bool = False) -> str:
    properties = ""
    if normal:
        properties = "<m:nor/>"
        weight = "<w:b/>" if bold else ""
        slant = "<w:i/>" if font == "it" else ""
        look = _FONT.replace("</w:rPr>", f"{weight}{slant}</w:rPr>")
        return f'<m:r><m:rPr>{properties}</m:rPr>{look}<m:t xml:space="preserve">{escape(text)}</m:t></m:r>'
    if font in _SCRIPTS:
        properties += f'<m:scr m:val="{_SCRIPTS[font]}"/>'
    if bold or plain or font:
        upright = plain or font in _UPRIGHT
        properties += f'<m:sty m:val="{("b" if upright else "bi") if bold else ("p" if upright else "i")}"/>'
    head = f"<m:rPr>{properties}</m:rPr>" if properties else ""
    return f'<m:r>{head}{_FONT}<m:t xml:space="preserve">{escape(text)}</m:t></m:r>'


def _row(row: Row) -> str:
    """Write items side by side; a large operator, a function and a prescript take what follows them along."""
    written = []
    place = 0
    items = _with_pairs(row.items)
    while place < len(items):
        item = items[place]
        place += 1
        base = to.unwrapped(item.base) if isinstance(item, to.Scripts) else item
        if isinstance(base, to.Sign) and base.kind == "large" and not _has_primes(item):
            end = _end_of_operand(items, place)
            written.append(_nary(base, item, Row(items[place:end])))
            place = end
        elif isinstance(base, to.Word) and base.role in ("operator", "limits") and place < len(items):
            end = place + 1
            while end < len(items) and isinstance(items[end - 1], to.Space):
                end += 1
            name = f"<m:fName>{_item(item)}</m:fName>"
            written.append(f"<m:func>{name}<m:e>{_row(Row(items[place:end]))}</m:e></m:func>")
            place = end
        elif (
            isinstance(item, to.Scripts) and to.is_blank(item.base) and place < len(items) and not item.primes
        ):
            sub, sup = (script or Row() for script in (item.sub, item.sup))
            parts = [
                f"<m:{name}>{_row(Row(to.items_of(script))) or _run(_NO_WIDTH)}</m:{name}>"
                for name, script in (("sub", sub), ("sup", sup))
            ]
            written.append(f"<m:sPre>{''.join(parts)}<m:e>{_item(items[place])}</m:e></m:sPre>")
            place += 1
        else:
            written.append(_item(item))
    return "".join(written)


def _with_pairs(items: list[Item]) -> list[Item]:
    """Find the brackets that carry an exponent or an index, and put what they enclose under it with them.

    So Word itself keeps `(a+b)²`. LibreOffice needs it: a closing bracket alone ends the formula there.
    """
    found: list[Item] = []
    opened: list[int] = []  # where brackets stand that are not closed yet
    for item in items:
        sign = item.base if isinstance(item, to.Scripts) else item
        found.append(item)
        if not isinstance(sign, to.Sign) or sign.size or sign.font or sign.bold:
            continue
        if sign is item and sign.text in _PAIRS:
            opened.append(len(found) - 1)
        elif sign.text in _PAIRS.values() and opened:
            start = opened.pop()
            opener = found[start]
            if isinstance(item, to.Scripts) and isinstance(opener, to.Sign):
                inner = Row(found[start + 1 : -1])
                pair = to.Fenced(opener.text, [inner], [], sign.text, grows=False)
                found[start:] = [replace(item, base=pair)]
    return found


def _has_primes(item: Item) -> bool:
    return isinstance(item, to.Scripts) and item.primes > 0


def _end_of_operand(items: list[Item], start: int) -> int:
    """Find where what a large operator works on ends: before a relation, a sign or the end of its bracket."""
    depth = 0
    for place in range(start, len(items)):
        item = items[place]
        sign = item.base if isinstance(item, to.Scripts) else item
        if isinstance(sign, to.Sign):
            depth += (sign.kind == "open") - (sign.kind == "close" and sign.text not in "!?")
            if depth < 0 or (not depth and sign.kind in ("rel", "punct")):
                return place
            if not depth and place > start and sign.text in "+−±∓":
                return place
        if isinstance(item, Row | to.Styled):
            return place + 1
    return len(items)


def _nary(sign: to.Sign, item: Item, operand: Row) -> str:
    scripts = item if isinstance(item, to.Scripts) else to.Scripts(sign, None, None)
    over = scripts.placement == "over" or (scripts.placement == "auto" and limits_by_nature(sign))
    properties = {"chr": sign.text, "limLoc": "undOvr" if over else "subSup"}
    for name, script in (("subHide", scripts.sub), ("supHide", scripts.sup)):
        if script is None:
            properties[name] = "1"
    parts = (_part("sub", scripts.sub), _part("sup", scripts.sup), _base(operand))
    return _element("nary", *parts, properties=properties)


def _item(item: Item) -> str:
    match item:
        case to.Sign(text, kind, font, bold):
            if kind == "large":
                return _nary(item, item, Row())
            letter = text[0].isalpha()
            return _run(text, font=font, bold=bold, plain=bold and not letter)
        case to.Number(text, font, bold):
            return _run(text, font=font, bold=bold)
        case to.Word():
            if item.role == "text":
                return _run(item.text, font=item.font, bold=item.bold, normal=True)
            return _run(item.text, font=item.font, bold=item.bold)
        case to.Space(em):
            return _space(em)
        case Row():
            return _row(item)
        case to.Scripts():
            return _scripts(item)
        case to.Fraction():
            return _fraction(item)
        case to.Root(body, index):
            properties = {"degHide": "1"} if index is None else {}
            return _element("rad", _part("deg", index), _base(body), properties=properties)
        case to.Fenced(left, parts, middles, right, grows):
            return _fenced(left, [_base(part) for part in parts], middles, right, grows=grows)
        case to.Accent():
            return _accent(item)
        case to.Stretched(text):
            return _run(text)
        case to.Enclosed(body, how):
            hidden = {} if how == "box" else {f"hide{side}": "1" for side in ("Top", "Bot", "Left", "Right")}
            strikes = {"up": ("strikeBLTR",), "down": ("strikeTLBR",), "cross": ("strikeBLTR", "strikeTLBR")}
            properties = hidden | dict.fromkeys(strikes.get(how, ()), "1")
            return _element("borderBox", _base(body), properties=properties)
        case to.Phantom(body, width, height):
            properties = {"show": "0"}
            if not width:
                properties["zeroWid"] = "1"
            if not height:
                properties |= {"zeroAsc": "1", "zeroDesc": "1"}
            return _element("phant", _base(body), properties=properties)
        case to.Styled(body):
            return _row(body)
        case to.Table():
            return _table(item)


def _space(em: float) -> str:
    if em <= _NEGLIGIBLE_EM:
        raise FormatError(_NAME, "negative space")
    if em <= 0:
        return ""
    text = "\u2003" * int(em + 1e-6)
    rest = em - len(text)
    if rest > 0.02:
        text += min(_SPACES, key=lambda space: abs(space[0] - rest))[1]
    return _run(text, plain=True)


def _scripts(node: to.Scripts) -> str:
    """Write scripts at the side, or above and below."""
    base = to.unwrapped(node.base)
    sup: Item | None = node.sup
    if node.primes:
        prime = to.Sign(_PRIMES.get(node.primes, "′" * node.primes))
        sup = Row([prime, *(to.items_of(sup) if sup is not None else [])])
    if node.placement == "over" or (node.placement == "auto" and limits_by_nature(base)):
        if isinstance(base, to.Stretched):
            return _stretched(base.text, node.sub, sup)
        written = _base(base)
        if node.sub is not None:
            written = f"<m:e><m:limLow>{written}{_part('lim', node.sub)}</m:limLow></m:e>"
        if sup is not None:
            written = f"<m:e><m:limUpp>{written}{_part('lim', sup)}</m:limUpp></m:e>"
        return written.removeprefix("<m:e>").removesuffix("</m:e>")
    name = "s" + "Sub" * (node.sub is not None) + "Sup" * (sup is not None)
    if name == "s":
        return _item(base)
    parts = [_part(part, script) for part, script in (("sub", node.sub), ("sup", sup)) if script is not None]
    return f"<m:{name}>{_base(base)}{''.join(parts)}</m:{name}>"


def _stretched(arrow: str, sub: Item | None, sup: Item | None) -> str:
    """Write an arrow as long as what stands above it, or below if nothing is above."""
    above = sup is not None and not to.is_blank(sup)
    properties = {"chr": arrow} if above else {"chr": arrow, "pos": "top"}
    group = _element("groupChr", _base((sup if above else sub) or Row()), properties=properties)
    if above and sub is not None and not to.is_blank(sub):
        return f"<m:limLow><m:e>{group}</m:e>{_part('lim', sub)}</m:limLow>"
    return group


def _fraction(node: to.Fraction) -> str:
    properties = {} if node.line else {"type": "noBar"}
    written = _element("f", _part("num", node.above), _part("den", node.below), properties=properties)
    if node.left or node.right:
        return _fenced(node.left, [f"<m:e>{written}</m:e>"], [], node.right)
    return written


def _fenced(left: str, parts: list[str], middles: list[str], right: str, *, grows: bool = True) -> str:
    if len(set(middles)) > 1:
        raise FormatError(_NAME, r"different signs after \middle between one pair of delimiters")
    properties = {"begChr": left}
    if middles:
        properties["sepChr"] = middles[0]
    properties["endChr"] = right
    if not grows:
        properties["grow"] = "0"
    return _element("d", *parts, properties=properties)


def _accent(node: to.Accent) -> str:
    if node.mark in _LINES:
        return _element("bar", _base(node.body), properties={"pos": _LINES[node.mark]})
    if node.mark in "⏞⏟" or node.under:
        place = {"pos": "bot", "vertJc": "top"} if node.under else {"pos": "top", "vertJc": "bot"}
        return _element("groupChr", _base(node.body), properties={"chr": node.mark, **place})
    return _element("acc", _base(node.body), properties={"chr": node.combining})


def _table(table: to.Table) -> str:
    if table.has_rules:
        raise FormatError(_NAME, "a rule in a table (\\hline or |)")
    lines = table.environment in to.ALIGNED | {"gathered", "substack", "subarray"}
    if lines and not any(_has_ampersand(cell) for row in table.rows for cell in row):
        rows = [
            f"<m:e>{_run('&', plain=True).join(map(_row, row)) or _run(_NO_WIDTH)}</m:e>"
            for row in table.rows
        ]
        written = f"<m:eqArr>{''.join(rows)}</m:eqArr>"
    else:
        columns = "".join(
            f'<m:mc><m:mcPr><m:count m:val="1"/><m:mcJc m:val="{_COLUMNS[column]}"/></m:mcPr></m:mc>'
            for column in table.columns
        )
        rows = [f"<m:mr>{''.join(map(_base, row))}</m:mr>" for row in table.rows]
        written = f"<m:m><m:mPr><m:mcs>{columns}</m:mcs></m:mPr>{''.join(rows)}</m:m>"
    left, right = to.BUILT_IN_FENCES.get(table.environment, ("", ""))
    return _fenced(left, [f"<m:e>{written}</m:e>"], [], right) if left or right else written


def _has_ampersand(row: Row) -> bool:
    """Whether a literal `&` is shown, which an array of equations would take for an alignment."""
    return "&amp;" in _row(row)
