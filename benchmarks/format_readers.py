"""What a formula in a format shows, read back from what the format's own program made of it.

Every reader gives the same form: a tuple of signs and of tuples for scripts, fractions, roots, accents,
frames and tables. Two formulas with the same form show the same signs in the same places; space, the height
of fences and the size of letters are not part of it.
"""

import re
import unicodedata
from typing import Any, Final
from xml.etree import ElementTree

from i2l.formats import layout as to
from i2l.formats.layout import in_alphabet
from i2l.formats.mathml import limits_by_nature
from i2l.formats.plain import LOWERED, RAISED
from i2l.formulas.commands import SHOWN_RELATIONS

Form = tuple[Any, ...]
_BLANK = re.compile(r"[\s\u2061\u200b\u200a-\u200f\u205f\u00a0]+")
# One mark, many characters.
_MARKS = {
    "^": "hat", "ˆ": "hat", "\u0302": "hat", "ˇ": "check", "\u030c": "check", "~": "tilde", "˜": "tilde",
    "∼": "tilde", "\u0303": "tilde", "´": "acute", "\u0301": "acute", "`": "grave", "\u0300": "grave",
    "˙": "dot", ".": "dot", "\u0307": "dot", "¨": "ddot", "..": "ddot", "\u0308": "ddot", "⃛": "dddot",
    "⃜": "ddddot", "˘": "breve", "\u0306": "breve", "¯": "bar", "‾": "bar", "\u0304": "bar", "\u0305": "bar",
    "→": "vec", "\u20d7": "vec", "˚": "ring", "\u030a": "ring", "°": "ring", "_": "under",
    "\u0332": "under", "←": "left",
    "\u20d6": "left", "↔": "both", "\u20e1": "both", "⏞": "brace", "⏟": "brace", "▁": "under",
    "\u20ef": "vec", "\u20ee": "left", "\u034d": "both",
}  # fmt: skip
_SAME = {
    "∥": "‖",
    "〈": "⟨",
    "〉": "⟩",
    "⟂": "⊥",
    "·": "⋅",
    "∣": "|",
    "⊧": "⊨",
    "-": "−",
    "∕": "/",
    "―": "¯",
    "Ω": "Ω",
    "∙": "•",
}
_INTEGRALS = frozenset("∫∮∬∭⨌")
_LARGE = frozenset("∑∏∐⋂⋃⨆⋁⋀⨁⨂⨀⨄")


def characters(text: str, *, fonts: bool = False) -> list[str]:
    """Split text into the signs it shows, each with its combining marks."""
    text = _BLANK.sub("", text)
    for whole, single in (("″", "′′"), ("‴", "′′′"), ("⁗", "′′′′")):
        text = text.replace(whole, single)
    if not fonts:
        text = "".join(unicodedata.normalize("NFKC", sign) if _is_alphabet(sign) else sign for sign in text)
    signs: list[str] = []
    for sign in unicodedata.normalize("NFD", text):
        if signs and unicodedata.combining(sign):
            signs[-1] += sign
        else:
            signs.append(sign)
    return [_SAME.get(sign, sign) for sign in (unicodedata.normalize("NFC", one) for one in signs)]


def _is_alphabet(sign: str) -> bool:
    return 0x1D400 <= ord(sign) <= 0x1D7FF or sign in "ℎℬℰℱℋℐℒℳℛℯℊℴℭℌℨℂℍℕℙℚℝℤ"


def scripts(base: list[Any], sub: list[Any] | None, sup: list[Any] | None, *, over: bool) -> list[Any]:
    """Attach scripts: at the side to the last sign of a base, above and below to all of it."""
    if not sub and not sup:
        return base
    below, above = (tuple(script) if script else None for script in (sub, sup))
    if not over:
        last = base[-1] if base else ""
        nested = isinstance(last, tuple) and last[0] == "scripts" and not last[4]
        if nested and (last[2] is None or below is None) and (last[3] is None or above is None):
            return [*base[:-1], ("scripts", last[1], last[2] or below, last[3] or above, False)]
        return [*base[:-1], ("scripts", last, below, above, False)]
    if above == (".", "."):  # as MathJax draws it
        above = ("¨",)
    if above is not None and below is None and len(above) == 1 and above[0] in _MARKS:
        return [accent(base, above[0], under=False)]
    if below is not None and above is None and len(below) == 1 and below[0] in _MARKS:
        return [accent(base, below[0], under=True)]
    if len(base) == 1 and isinstance(base[0], tuple) and base[0][0] == "scripts" and base[0][4]:
        inner = base[0]  # one above the other, as Word and AsciiMath nest them
        if (inner[2] is None or below is None) and (inner[3] is None or above is None):
            return [("scripts", inner[1], inner[2] or below, inner[3] or above, True)]
    return [("scripts", tuple(base), below, above, True)]


def accent(base: list[Any], mark: str, *, under: bool) -> Form:
    """Put a mark over or under something; a stroke through a letter is one with it."""
    return ("accent", _MARKS.get(mark, mark), under, tuple(base))


def table(rows: list[list[list[Any]]]) -> list[Any]:
    """Make a table; one row is no table, and empty cells at the end of a row are not seen."""
    if len(rows) < 2:
        return [sign for row in rows for cell in row for sign in cell]
    kept = []
    for row in rows:
        cells = [tuple(cell) for cell in row]
        while cells and not cells[-1]:
            cells.pop()
        kept.append(tuple(cells))
    return [("table", *kept)]


def form_of_layout(item: to.Item, *, fonts: bool = False) -> list[Any]:
    """Give the form of a layout: what every format should give back."""

    def form(inner: to.Item | None) -> list[Any]:
        return [] if inner is None else form_of_layout(inner, fonts=fonts)

    match item:
        case to.Sign(text, _, font, bold):
            plain = not fonts or (font == "rm" and not bold)
            letter = text if plain or text[0] in "ıȷ∂" else in_alphabet(text[0], font, bold=bold) + text[1:]
            return characters(letter, fonts=fonts)
        case to.Number(text, font, bold):
            digits = (in_alphabet(digit, font or "rm", bold=bold) if fonts else digit for digit in text)
            return characters("".join(digits), fonts=fonts)
        case to.Word(text, _, font, bold):
            plain = not fonts or (font == "rm" and not bold)
            letters = text if plain else "".join(in_alphabet(one, font, bold=bold) for one in text)
            return characters(letters, fonts=fonts)
        case to.Space() | to.Phantom():
            return []
        case to.Row(items):
            return [sign for inner in items for sign in form(inner)]
        case to.Scripts(base, sub, sup, placement, primes):
            above = None if sup is None and not primes else ["′"] * primes + form(sup)
            over = placement == "over" or (placement == "auto" and limits_by_nature(to.unwrapped(base)))
            below = None if sub is None else form(sub)
            return scripts(form(base), below, above, over=over)
        case to.Fraction(above, below, line, left, right):
            inner = [("fraction", tuple(form(above)), tuple(form(below)))]
            if not line:
                inner = table([[form(above)], [form(below)]])
            return [*characters(left), *inner, *characters(right)]
        case to.Root(body, index):
            return [("root", tuple(form(index)), tuple(form(body)))]
        case to.Fenced(left, parts, middles, right):
            signs = [*characters(left), *form(parts[0])]
            for middle, part in zip(middles, parts[1:], strict=True):
                signs += [*characters(middle), *form(part)]
            return [*signs, *characters(right)]
        case to.Accent(_, body, mark, _, under):
            return [accent(form(body), mark, under=under)]
        case to.Stretched(text):
            return characters(text)
        case to.Enclosed(body, how):
            return [(how, *form(body))]
        case to.Styled(body):
            return form(body)
        case to.Table(environment, rows):
            left, right = to.BUILT_IN_FENCES.get(environment, ("", ""))
            return [*left, *table([[form(cell) for cell in row] for row in rows]), *right]


def _name(element: ElementTree.Element) -> str:
    return element.tag.rpartition("}")[2]


def form_of_mathml(element: ElementTree.Element, *, fonts: bool = False) -> list[Any]:
    """Give the form of MathML."""

    def form(inner: ElementTree.Element) -> list[Any]:
        return form_of_mathml(inner, fonts=fonts)

    name, children = _name(element), list(element)
    if name in ("mi", "mn", "mo", "mtext"):
        text = "".join(element.itertext())
        if fonts and name == "mi" and len(text) == 1 and element.get("mathvariant") != "normal":
            text = text if text in "ıȷ∂" else in_alphabet(text, "it", bold=False)
        return characters(text, fonts=fonts)
    if name in ("mspace", "mphantom"):
        return []
    if name in ("msub", "msup", "msubsup", "munder", "mover", "munderover"):
        parts = [form(child) for child in children]
        both = name in ("msubsup", "munderover")
        sub = parts[1] if both or name in ("msub", "munder") else None
        sup = parts[2] if both else parts[1] if name in ("msup", "mover") else None
        return scripts(parts[0], sub, sup, over=name in ("munder", "mover", "munderover"))
    if name == "mfrac":
        above, below = map(form, children)
        if element.get("linethickness") == "0":
            return table([[above], [below]])
        return [("fraction", tuple(above), tuple(below))]
    if name == "mroot":
        body, index = map(form, children)
        return [("root", tuple(index), tuple(body))]
    signs = [sign for child in children for sign in form(child)]
    if name == "msqrt":
        return [("root", (), tuple(signs))]
    if name == "menclose":
        names = {"box": "box", "updiagonalstrike": "up", "downdiagonalstrike": "down"}
        return [(names.get(element.get("notation", ""), "cross"), *signs)]
    if name == "mtable":
        return table([[form(cell) for cell in row] for row in children])
    if name in ("math", "mrow", "mstyle", "mpadded", "mtd", "mtr"):
        return signs
    raise ValueError(f"<{name}> is no element that we write")


_OMML_ALPHABETS = {
    "script": "cal",
    "fraktur": "frak",
    "double-struck": "bb",
    "sans-serif": "sf",
    "monospace": "tt",
}


def form_of_omml(element: ElementTree.Element, *, fonts: bool = False) -> list[Any]:
    """Give the form of Office Math."""

    def part(name: str) -> list[Any]:
        found = element.find(f"{{*}}{name}")
        return [] if found is None else form_of_omml(found, fonts=fonts)

    def value(name: str, otherwise: str = "") -> str:
        found = element.find(f"{{*}}{_name(element)}Pr/{{*}}{name}")
        return otherwise if found is None else next(iter(found.attrib.values()))

    name = _name(element)
    if name == "r":
        return _omml_run(element, fonts=fonts)
    if name in ("sSub", "sSup", "sSubSup", "sPre"):
        sub = part("sub") if name != "sSup" else None
        sup = part("sup") if name != "sSub" else None
        if name == "sPre":
            return [*scripts([], sub or None, sup or None, over=False), *part("e")]
        return scripts(part("e"), sub, sup, over=False)
    if name in ("limLow", "limUpp"):
        limit = part("lim")
        return scripts(part("e"), *((limit, None) if name == "limLow" else (None, limit)), over=True)
    if name == "nary":
        sub, sup = (None if value(f"{side}Hide") == "1" else part(side) for side in ("sub", "sup"))
        sign = characters(value("chr", "∫"))
        return [*scripts(sign, sub, sup, over=value("limLoc") == "undOvr"), *part("e")]
    if name == "f":
        if value("type") == "noBar":
            return table([[part("num")], [part("den")]])
        return [("fraction", tuple(part("num")), tuple(part("den")))]
    if name == "rad":
        return [("root", tuple(part("deg")), tuple(part("e")))]
    if name == "d":
        inner = [form_of_omml(child, fonts=fonts) for child in element.findall("{*}e")]
        signs = list(inner[0])
        for more in inner[1:]:
            signs += [*characters(value("sepChr", "|")), *more]
        return [*characters(value("begChr", "(")), *signs, *characters(value("endChr", ")"))]
    if name == "acc":
        return [accent(part("e"), value("chr", "\u0302"), under=False)]
    if name == "bar":
        under = value("pos", "bot") == "bot"
        return [accent(part("e"), "_" if under else "‾", under=under)]
    if name == "groupChr":
        mark, under = value("chr", "⏟"), value("pos", "bot") == "bot"
        if mark in "⏞⏟" or value("vertJc"):
            return [accent(part("e"), mark, under=under)]
        return scripts(characters(mark), *((None, part("e")) if under else (part("e"), None)), over=True)
    if name == "borderBox":
        up, down = (value(strike) == "1" for strike in ("strikeBLTR", "strikeTLBR"))
        return [("cross" if up and down else "up" if up else "down" if down else "box", *part("e"))]
    if name == "phant":
        return []
    if name == "m":
        rows = [[form_of_omml(cell, fonts=fonts) for cell in row] for row in element.findall("{*}mr")]
        return table(rows)
    if name == "eqArr":
        rows = [form_of_omml(row, fonts=fonts) for row in element.findall("{*}e")]
        return table([_parted(row, "&") for row in rows])
    if name in ("oMath", "oMathPara", "e", "sub", "sup", "num", "den", "deg", "lim", "fName", "func"):
        return [sign for child in element for sign in form_of_omml(child, fonts=fonts)]
    if name.endswith("Pr"):
        return []
    raise ValueError(f"<m:{name}> is no element that we write")


def _omml_run(element: ElementTree.Element, *, fonts: bool) -> list[Any]:
    text = "".join(part.text or "" for part in element.findall("{*}t"))
    if not fonts:
        return characters(text)
    alphabet = next((next(iter(one.attrib.values())) for one in element.findall("{*}rPr/{*}scr")), "")
    style = next((next(iter(one.attrib.values())) for one in element.findall("{*}rPr/{*}sty")), "")
    normal = element.find("{*}rPr/{*}nor") is not None
    font = _OMML_ALPHABETS.get(alphabet) or (
        "rm" if style in ("p", "b") or normal else "it" if style == "i" else ""
    )
    bold = style in ("b", "bi") or element.find("{*}rPr/{*}b") is not None
    if normal and element.find("{*}rPr/{*}i") is not None:
        font = "it"
    written = "".join(
        one
        if one in "ıȷ∂" or (one.isdigit() and not bold and font in ("", "it", "rm"))
        else in_alphabet(one, font, bold=bold)
        for one in text
    )
    return characters(written, fonts=True)


def _parted(signs: list[Any], separator: str) -> list[list[Any]]:
    parts: list[list[Any]] = [[]]
    for sign in signs:
        if sign == separator:
            parts.append([])
        else:
            parts[-1].append(sign)
    return parts


_BREAK, _POINT = ("break",), ("point",)


def form_of_typst(content: Any, *, whole: bool = True) -> list[Any]:  # noqa: ANN401 - JSON
    """Give the form of the tree that Typst itself makes of a formula (its query leaves out fonts)."""
    if content is None:
        return []
    name = content["func"]
    if name in ("sequence", "equation", "styled", "lr", "mid", "class", "box", "hide"):
        if name == "hide":
            return []
        children = content.get("children") or [content.get("body") or content.get("child")]
        signs = [sign for child in children for sign in form_of_typst(child, whole=False)]
        if name == "box":
            return [("box", *signs)]
        return _typst_lines(signs) if whole else signs
    if name in ("symbol", "text"):
        return characters(content["text"])
    if name in ("space", "h"):
        return []
    if name == "linebreak":
        return [_BREAK]
    if name == "align-point":
        return [] if whole else [_POINT]
    if name == "primes":
        return ["′"] * content["count"]
    if name in ("limits", "scripts", "stretch"):
        return form_of_typst(content["body"])
    if name == "op":
        return form_of_typst(content["text"])
    if name == "attach":
        return _typst_attached(content)
    if name == "frac":
        return [("fraction", tuple(form_of_typst(content["num"])), tuple(form_of_typst(content["denom"])))]
    if name == "binom":
        (below,) = content["lower"]
        return ["(", *table([[form_of_typst(content["upper"])], [form_of_typst(below)]]), ")"]
    if name == "root":
        return [
            ("root", tuple(form_of_typst(content.get("index"))), tuple(form_of_typst(content["radicand"])))
        ]
    if name == "accent":
        return [accent(form_of_typst(content["base"]), content["accent"], under=False)]
    if name in ("overline", "underline"):
        return [
            accent(form_of_typst(content["body"]), "‾" if name == "overline" else "_", under=name[0] == "u")
        ]
    if name in ("overbrace", "underbrace"):
        under = name[0] == "u"
        braced = [accent(form_of_typst(content["body"]), "⏟", under=under)]
        note = form_of_typst(content["annotation"]) if content.get("annotation") else None
        return scripts(braced, *((note, None) if under else (None, note)), over=True)
    if name == "cancel":
        how = "cross" if content.get("cross") else "down" if content.get("inverted") else "up"
        return [(how, *form_of_typst(content["body"]))]
    if name == "mat":
        fences = content.get("delim") or ["(", ")"]
        rows = [
            [_without_points(form_of_typst(cell, whole=False)) for cell in row] for row in content["rows"]
        ]
        return [*characters(fences[0] or ""), *table(rows), *characters(fences[1] or "")]
    if name == "cases":
        rows = [_typst_case(form_of_typst(row, whole=False)) for row in content["children"]]
        return [*table(rows), "}"] if content.get("reverse") else ["{", *table(rows)]
    raise ValueError(f"{name} is nothing that we write")


def _typst_attached(content: dict[str, Any]) -> list[Any]:
    base = content["base"]
    signs = form_of_typst(base)
    sub = form_of_typst(content["b"]) if "b" in content else None
    sup = form_of_typst(content.get("tr")) + form_of_typst(content.get("t"))
    inner = base
    while inner["func"] in ("styled", "accent", "overline", "underline"):
        inner = inner.get("child") or inner.get("base") or inner.get("body")
    over = base["func"] == "limits" or base["func"] in ("overbrace", "underbrace", "stretch")
    if base["func"] != "scripts":
        text = inner.get("text")
        over |= inner["func"] == "symbol" and (text in _LARGE or _is_relation(text))
        over |= inner["func"] == "op" and bool(inner.get("limits"))
    return scripts(signs, sub, sup if "t" in content or "tr" in content else None, over=over)


def _is_relation(text: str) -> bool:
    return text in SHOWN_RELATIONS


def _typst_lines(signs: list[Any]) -> list[Any]:
    if _BREAK not in signs:
        return _without_points(signs)
    rows = [_parted(line, _POINT) for line in _parted(signs, _BREAK)]  # type: ignore[arg-type]
    return table(rows)


def _typst_case(signs: list[Any]) -> list[list[Any]]:
    if _POINT not in signs:
        return [signs]
    return [cell for place, cell in enumerate(_parted(signs, _POINT)) if place % 2]  # type: ignore[arg-type]


def _without_points(signs: list[Any]) -> list[Any]:
    return [sign for sign in signs if sign != _POINT]


class _PlainReader:
    """Reads plain text back: the grammar that `i2l.formats.plain` writes."""

    RAISED: Final = {raised: sign for sign, raised in RAISED.items()}
    LOWERED: Final = {lowered: sign for sign, lowered in LOWERED.items()}

    def __init__(self, text: str) -> None:
        self.text = text
        self.place = 0

    def peek(self) -> str:
        return self.text[self.place : self.place + 1]

    def take(self) -> str:
        self.place += 1
        return self.text[self.place - 1]

    def until(self, closers: str) -> list[Any]:
        signs: list[Any] = []
        while self.peek() and not (closers and self.peek() in closers):
            if self.peek() == " ":
                self.place += 1
                continue
            if self.peek() == "/":
                self.place += 1
                above = self.ungrouped(signs.pop()) if signs else ["?"]
                below = self.operand()
                signs.append(("fraction", tuple(above), tuple(below)))
                continue
            signs.append(self.scripted())
        return signs

    @staticmethod
    def ungrouped(sign: Any) -> list[Any]:  # noqa: ANN401
        return list(sign[1]) if isinstance(sign, tuple) and sign[0] == "group" else [sign]

    def operand(self) -> list[Any]:
        if self.peek() == "(":
            self.place += 1
            inner = self.flat(self.until(")"))
            self.place += 1
            return inner
        return self.flat([self.atom()])

    def flat(self, signs: list[Any]) -> list[Any]:
        out: list[Any] = []
        for sign in signs:
            if isinstance(sign, tuple) and sign[0] == "group":
                out += ["(", *sign[1], *sign[2:]]
            elif isinstance(sign, tuple) and sign[0] == "several":
                out += sign[1:]
            else:
                out.append(sign)
        return out

    def rows(self) -> list[Any]:
        rows: list[list[list[Any]]] = [[]]
        self.place += 1
        while True:
            rows[-1].append(self.flat(self.until("&@)")))
            closer = self.take()
            if closer == ")":
                return table(rows)
            if closer == "@":
                rows.append([])

    def atom(self) -> Any:  # noqa: ANN401
        sign = self.take()
        if sign == "\\" and self.peek() == "_":
            return self.take()
        if sign in "■█":
            return ("several", *self.rows())
        if sign in "√∛∜":
            if sign == "√" and self.peek() == "(":
                self.place += 1
                inner = self.flat(self.until("&)"))
                if self.take() == "&":
                    body = self.flat(self.until(")"))
                    self.place += 1
                    return ("root", tuple(inner), tuple(body))
                return ("root", (), tuple(inner))
            index = {"√": (), "∛": ("3",), "∜": ("4",)}[sign]
            return ("root", index, tuple(self.operand()))
        if sign in "¯▁⏞⏟▭╱╲╳" and self.peek() == "(":
            body = self.operand()
            if sign in "▭╱╲╳":
                return ({"▭": "box", "╱": "up", "╲": "down", "╳": "cross"}[sign], *body)
            return accent(body, sign, under=sign in "▁⏟")
        if sign in "(〖" and self.is_closed(sign):
            inner = self.flat(self.until("〗" if sign == "〖" else ")"))
            self.place += 1
            mark = self.marks()
            if mark:
                return accent(inner, mark, under=unicodedata.combining(mark) == 220)
            return ("several", *inner) if sign == "〖" else ("group", tuple(inner), ")")
        if sign.isdigit() and sign not in self.RAISED and sign not in self.LOWERED:
            while (
                self.peek().isdigit() and self.peek() not in self.RAISED and self.peek() not in self.LOWERED
            ):
                sign += self.take()
                if self.peek() == "." and self.text[self.place + 1 : self.place + 2].isdigit():
                    sign += self.take()
            if mark := self.marks():
                return ("several", *characters(sign[:-1]), accent([sign[-1]], mark, under=False))
            return ("several", *characters(sign))
        mark = self.marks()
        if mark == "\u0338":
            return ("several", *characters(sign + mark))
        found = characters(sign)
        if mark:
            return accent(found, mark, under=unicodedata.combining(mark) == 220)
        return found[0] if len(found) == 1 else ("several", *found)

    def is_closed(self, sign: str) -> bool:
        """Whether a bracket that was just taken has its partner."""
        closer, depth = {"(": ")", "〖": "〗"}[sign], 1
        for one in self.text[self.place :]:
            depth += (one == sign) - (one == closer)
            if not depth:
                return True
        return False

    def marks(self) -> str:
        return self.take() if self.peek() and unicodedata.combining(self.peek()) else ""

    def scripted(self) -> Any:  # noqa: ANN401
        if self.peek() in self.RAISED or self.peek() in self.LOWERED or self.peek() in "_^┬┴′″‴⁗":
            base: Any = ("several",)
        else:
            base = self.atom()
        sub: list[Any] | None = None
        sup: list[Any] | None = None
        over = False
        while sign := self.peek():
            if sign in "′″‴⁗":
                sup = (sup or []) + characters(self.take())
            elif sign in self.RAISED:
                sup = (sup or []) + characters(self.run(self.RAISED))
            elif sign in self.LOWERED and sub is None:
                sub = characters(self.run(self.LOWERED))
            elif sign in "_┬" and sub is None:
                over |= self.take() == "┬"
                sub = self.operand()
            elif sign in "^┴":
                over |= self.take() == "┴"
                sup = (sup or []) + self.operand()
            else:
                break
        if sub is None and sup is None:
            return base
        signs = self.flat([base])
        if len(signs) == 1 and isinstance(signs[0], tuple) and signs[0][:2] == ("accent", "brace"):
            over = True
        return ("several", *scripts(signs, sub, sup, over=over))

    def run(self, table: dict[str, str]) -> str:
        text = ""
        while self.peek() and self.peek() in table:
            text += table[self.take()]
        return text


def form_of_plain(text: str) -> list[Any]:
    """Give the form of plain text."""
    reader = _PlainReader(text)
    return reader.flat(reader.until(""))


def without_limits(form: Any) -> Any:  # noqa: ANN401
    """Forget whether scripts stand below a word or a large operator, which plain text does not show."""
    if not isinstance(form, tuple | list):
        return form
    if form and form[0] == "scripts" and len(form) == 5 and form[4] and isinstance(form[1], tuple):
        base = [without_limits(sign) for sign in form[1]]
        letters = base[0][3] if isinstance(base[0], tuple) and base[0][:2] != ("accent", "brace") else base
        if letters and all(isinstance(sign, str) and (sign.isalpha() or sign in _LARGE) for sign in letters):
            rest = tuple(without_limits(part) for part in form[2:4])
            return ("several", *base[:-1], ("scripts", base[-1], *rest, False))
    flat: list[Any] = []
    for part in form:
        changed = without_limits(part)
        if isinstance(changed, tuple) and changed and changed[0] == "several":
            flat += changed[1:]
        else:
            flat.append(changed)
    return type(form)(flat)


def as_asciimath_shows(form: Any) -> Any:  # noqa: ANN401
    """Give a form as AsciiMath shows it: primes on the line, dots one by one, its own two epsilons."""
    if isinstance(form, str):
        if "\u0338" in unicodedata.normalize("NFD", form) and (form[0].isalpha() or form[0] in "∂∇"):
            return ("up", *as_asciimath_shows(form[0]))
        return {"ϵ": "ε", "ε": "ɛ"}.get(form, form)
    if not isinstance(form, tuple | list):
        return form
    if form and form[0] == "scripts" and form[2] is None and form[3] and set(form[3]) == {"′"}:
        base = form[1] if isinstance(form[1], tuple) and form[4] else (form[1],)
        return ("several", *map(as_asciimath_shows, base), *form[3])
    if form and form[0] == "scripts" and not form[4]:
        base = as_asciimath_shows(form[1])
        if isinstance(base, tuple) and base[0] == "several":
            return ("several", *base[1:-1], ("scripts", base[-1], *map(as_asciimath_shows, form[2:])))
    flat: list[Any] = []
    for part in form:
        changed = as_asciimath_shows(part)
        if isinstance(changed, tuple) and changed and changed[0] == "several":
            flat += changed[1:]
        elif changed == "…":
            flat += [".", ".", "."]
        else:
            flat.append(changed)
    return type(form)(flat)
