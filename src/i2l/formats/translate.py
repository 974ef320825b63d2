r"""LaTeX to the layout: what each command means, decided once for every format.

The formula is brought into its canonical form first, so that each construct comes in one spelling only.
"""

import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from i2l.formats import layout as to
from i2l.formats.layout import FormatError, Item, Row, Sign, Space, Word
from i2l.formulas import commands
from i2l.formulas.lexer import RawTokens
from i2l.formulas.normalize import normalize_formula, written_text
from i2l.formulas.parser import Parser
from i2l.formulas.tree import (
    Array,
    Command,
    Delimited,
    Group,
    Length,
    Node,
    Optional,
    Scripts,
    Symbol,
    Text,
)

_NOWHERE: Final = "Another format"  # that none of them can say it
_SPACES: Final = {
    **{r"\,": 1 / 6, r"\:": 2 / 9, r"\;": 5 / 18, r"\!": -1 / 6, "~": 1 / 3, "\\": 1 / 3, r"\space": 1 / 3},
    **{r"\quad": 1.0, r"\qquad": 2.0, r"\enspace": 0.5, r"\nobreakspace": 1 / 3},
    **{r"\negmedspace": -2 / 9, r"\negthickspace": -5 / 18},
}
# These say where a line may break, how tall a line is, or nothing at all.
_UNSEEN: Final = frozenset(
    [
        *(r"\/", r"\-", r"\*", r"\null", r"\strut", r"\mathstrut", r"\relax", r"\protect"),
        *(r"\allowbreak", r"\nobreak", r"\noindent", r"\nonumber", r"\notag"),
        *(r"\smallskip", r"\medskip", r"\bigskip"),
        *(r"\hfil", r"\hfill", r"\hss", r"\vss", r"\hfilneg", r"\displaylimits", r"\limits", r"\nolimits"),
        *(r"\nolinebreak", r"\expandafter", r"\centering", r"\ignorespaces", r"\unboldmath", r"\boldmath"),
    ]
)
_FONTS: Final = {
    **{r"\mathrm": "rm", r"\mathit": "it", r"\mathbf": "rm", r"\mathbb": "bb", r"\mathcal": "cal"},
    **{r"\mathfrak": "frak", r"\mathscr": "scr", r"\mathsf": "sf", r"\mathtt": "tt", r"\mathnormal": ""},
    **{r"\rm": "rm", r"\bf": "rm", r"\it": "it", r"\sl": "it", r"\sf": "sf", r"\tt": "tt", r"\cal": "cal"},
    **{r"\mit": "it", r"\em": "it", r"\normalfont": "", r"\bfseries": "rm", r"\itshape": "it"},
    **{r"\rmfamily": "rm", r"\sffamily": "sf", r"\ttfamily": "tt", r"\slshape": "it", r"\upshape": "rm"},
    **{r"\mdseries": "", r"\sc": "rm", r"\scshape": "rm"},
}
_BOLD_FONTS: Final = frozenset([r"\mathbf", r"\bf", r"\bfseries"])
_STYLES: Final = {
    r"\displaystyle": "display",
    r"\textstyle": "text",
    r"\scriptstyle": "script",
    r"\scriptscriptstyle": "scriptscript",
}
_SIZES: Final = {
    f"\\{name}{side}": size
    for size, name in enumerate(("big", "Big", "bigg", "Bigg"), start=1)
    for side in ("", "l", "r", "m")
}
_INFIXES: Final = {
    r"\atop": (False, "", ""),
    r"\brace": (False, "{", "}"),
    r"\brack": (False, "[", "]"),
}
_UNITS_PT: Final = {
    **{"pt": 1.0, "mm": 2.845, "cm": 28.45, "in": 72.27, "em": 10.0, "ex": 4.3, "mu": 10 / 18, "bp": 1.004},
    **{"sp": 1 / 65536, "dd": 1.07, "cc": 12.84, "pc": 12.0},
}
_LENGTH: Final = re.compile(r"([-+]*)(\d*[.,]?\d*)(?:true)?([a-z]{2})")
_POINTS_OF_EM: Final = 10.0
_LIMITS: Final = {
    r"\varlimsup": (r"\overline", "lim"),
    r"\varliminf": (r"\underline", "lim"),
    r"\varinjlim": (r"\underrightarrow", "lim"),
    r"\varprojlim": (r"\underleftarrow", "lim"),
}
_WORD_SPACES: Final = {
    **{"~": " ", "\\": " ", r"\,": "\u2009", r"\;": "\u2005", r"\:": "\u2005", r"\!": ""},
    **{r"\quad": "\u2003", r"\qquad": "\u2003\u2003", r"\enspace": "\u2002", r"\space": " "},
}
_LIGATURES: Final = {"---": "—", "--": "–", "``": "“", "''": "”", "`": "‘", "'": "’"}
_UNSEEN_IN_WORDS: Final = commands.SIZE_SWITCHES | {
    *(r"\/", r"\-", r"\relax", r"\protect", r"\rm", r"\normalfont", r"\rmfamily", r"\null", r"\strut")
}
_WORD_FONTS: Final = {
    **{r"\bf": ("rm", True), r"\it": ("it", False), r"\em": ("it", False), r"\sl": ("it", False)},
    **{r"\sf": ("sf", False), r"\tt": ("tt", False)},
}
_GREEK_CAPITALS: Final = frozenset(name for name in commands.GREEK if name[1].isupper())
_BRACES: Final = commands.names_of(lambda command: command.limits == "brace")
_OVERPRINT_EM: Final = -0.3  # nearer than this a slash strikes a letter out
_TAG: Final = re.compile(r"\\tag(?![A-Za-z])\*?")


def read_layout(latex: str) -> Row:
    """Read LaTeX as a layout.

    Raises:
        FormulaError: if it is not a formula.
        FormatError: if it has a command that no format can say; the error names it.
    """
    if tag := _TAG.search(latex):
        raise FormatError(_NOWHERE, tag.group())
    canonical = normalize_formula(latex).formula
    return _Translator().row(Parser(RawTokens(canonical)).parse(), _State())


@dataclass(frozen=True, slots=True)
class _State:
    """The alphabet that letters are in."""

    font: str = ""
    bold: bool = False


_PRIMES: Final = frozenset([r"\prime", "'"])


def _nodes(node: Node) -> list[Node]:
    """Give what a group holds, or the node as the only one."""
    return node.items if isinstance(node, Group) else [node]


def _is_prime_group(node: Node) -> bool:
    return isinstance(node, Group) and bool(node.items) and all(_name(item) in _PRIMES for item in node.items)


def _name(node: Node | None) -> str:
    return node.text if isinstance(node, Symbol) else node.name if isinstance(node, Command) else ""


class _Translator:
    """Turns nodes into items of a layout, each kind of node by one method."""

    def row(self, nodes: list[Node], state: _State) -> Row:
        """Read the nodes of a group; switches and infixes reach over the rest of it."""
        for place, node in enumerate(nodes):
            if (name := _name(node)) in _INFIXES:
                line, left, right = _INFIXES[name]
                above, below = self.row(nodes[:place], state), self.row(nodes[place + 1 :], state)
                return Row([to.Fraction(above, below, line, left, right)])
            if name in (r"\above", r"\overwithdelims", r"\atopwithdelims", r"\abovewithdelims"):
                raise FormatError(_NOWHERE, name)
        items: list[Item] = []
        place = 0
        while place < len(nodes):
            node = nodes[place]
            place += 1
            name = _name(node)
            if name in commands.SWITCHES:
                if name in _STYLES:
                    rest = self.row(nodes[place:], state)
                    return _tidy([*items, to.Styled(rest, _STYLES[name])])  # type: ignore[arg-type]
                state = self.switched(name, state)
            elif name in _SIZES and isinstance(node, Symbol):
                items.append(self.sized(name, nodes[place] if place < len(nodes) else None, state))
                place += 1
            elif name == r"\not" or (isinstance(node, Scripts) and _name(node.base) == r"\not"):
                item, place = self.negated(nodes, place, state)
                items.append(item)
            elif name not in _UNSEEN:
                items += _spread(self.node(node, state), grouped=isinstance(node, Group))
        return _tidy(items)

    def switched(self, name: str, state: _State) -> _State:
        """Give the state after a switch of fonts; one of sizes changes nothing that a format says."""
        if name in _FONTS:
            return _State(_FONTS[name], name in _BOLD_FONTS)
        return state

    def node(self, node: Node, state: _State) -> Item:
        """Read one node."""
        match node:
            case Symbol():
                return self.symbol(node.text, state)
            case Group(items=nodes) | Optional(items=nodes):
                return self.row(nodes, state)
            case Scripts():
                return self.scripts(node, state)
            case Command():
                return self.command(node, state)
            case Delimited():
                return self.delimited(node, state)
            case Array():
                return self.array(node, state)
            case Text(symbols=letters):
                return Row(_read_text(letters, Word("", "text"), self.inner))
            case Length():
                return Row()

    def symbol(self, text: str, state: _State) -> Item:
        """Read one sign."""
        if text.isalnum() and len(text) == 1:
            if text.isdigit():
                return to.Number(text, state.font if state.font != "it" else "", state.bold)
            return Sign(text, "ord", state.font, state.bold)
        if text in _SPACES:
            return Space(_SPACES[text])
        if text in _UNSEEN:
            return Row()
        if text in ("--", "---"):
            return Row([self.symbol("-", state) for _ in text])
        if text in commands.SHOWN:
            sign, kind = commands.SHOWN[text]
            if text in _GREEK_CAPITALS:
                return Sign(sign, "ord", state.font or "rm", state.bold)
            return Sign(sign, kind, "", state.bold and state.font != "rm")
        if text in commands.OPERATOR_LETTERS:
            letters = "".join(
                " " if letter == r"\," else letter for letter in commands.OPERATOR_LETTERS[text]
            )
            return Word(letters, "limits" if text in commands.LIMIT_OPERATORS else "operator")
        if text in _LIMITS:
            accent, word = _LIMITS[text]
            return self.accent(accent, Word(word, "limits"))
        if text == r"\bmod":
            return Row([Space(2 / 9), Word("mod", "name"), Space(2 / 9)])
        if text == r"\mod":
            return Row([Space(1.0), Word("mod", "name"), Space(1 / 3)])
        if text == r"\idotsint":
            return Row([Sign("∫", "large"), Sign("⋯"), Sign("∫", "large")])
        if text == "'":
            return to.Scripts(Row(), None, None, primes=1)
        raise FormatError(_NOWHERE, text)

    def sized(self, name: str, following: Node | None, state: _State) -> Item:
        r"""Read `\big(` and the like."""
        size = _SIZES[name]
        kind: to.Kind = {"l": "open", "r": "close", "m": "rel"}.get(name[-1], "ord")  # type: ignore[assignment]
        if isinstance(following, Group) and len(following.items) == 1:
            following = following.items[0]
        if isinstance(following, Scripts) and following.base is not None:
            return self.scripts(following, state, base=self.sized(name, following.base, state))
        delimiter = self.delimiter(_name(following), name)
        if not delimiter:
            return Row()
        if kind == "ord":
            kind = commands.SHOWN_SIDES.get(delimiter, "ord")
        return Sign(delimiter, kind, size=size)

    def delimiter(self, text: str, after: str) -> str:
        """Give the character of a delimiter; a point is none."""
        if text == ".":
            return ""
        known = commands.SHOWN_FENCES.get(text)
        if not known:
            raise FormatError(_NOWHERE, f"{after} before {text or 'nothing'}")
        return known

    def negated(self, nodes: list[Node], place: int, state: _State) -> tuple[Item, int]:
        r"""Read `\not` and the sign it strikes out, over the negative space that may stand between them."""
        if isinstance(nodes[place - 1], Scripts):
            raise FormatError(_NOWHERE, r"\not with a script")
        while place < len(nodes) and _SPACES.get(_name(nodes[place]), 0) < 0:
            place += 1
        if place == len(nodes):
            raise FormatError(_NOWHERE, r"\not before nothing")
        node = nodes[place]
        base = node.base if isinstance(node, Scripts) and node.base is not None else node
        struck = to.unwrapped(self.node(base, state))
        if isinstance(struck, Sign):
            text = unicodedata.normalize("NFC", struck.text + "\u0338")
            item: Item = replace(struck, text=text)
        else:
            item = to.Enclosed(struck, "up")
        if isinstance(node, Scripts):
            item = self.scripts(node, state, base=item)
        return item, place + 1

    def scripts(self, node: Scripts, state: _State, base: Item | None = None) -> Item:
        """Read a base with its scripts, primes counted."""
        name = _name(node.base)
        if base is None:
            base = self.node(node.base, state) if node.base is not None else Row()
        sub = self.node(node.sub, state) if node.sub is not None else None
        primes, sup = self.superscript(node.sup, state)
        placement: to.Placement = "auto"
        if node.limits is not None and node.limits.text in (r"\limits", r"\nolimits"):
            placement = "over" if node.limits.text == r"\limits" else "side"
        elif name in commands.STRETCHED_CHARACTERS or name in _BRACES:
            placement = "over"
        items = to.items_of(base)
        if len(items) > 1 and not isinstance(node.base, Group):  # a command that became several things
            scripts = to.Scripts(items[-1], sub, sup, placement, primes)
            return Row([*items[:-1], scripts])
        return to.Scripts(to.unwrapped(base), sub, sup, placement, primes)

    def superscript(self, node: Node | None, state: _State) -> tuple[int, Item | None]:
        """Count the primes a superscript begins with, and give the rest of it."""
        if node is None:
            return 0, None
        nodes = _nodes(node)
        while (
            len(nodes) == 1
            and isinstance(inner := nodes[0], Scripts)
            and inner.base is None
            and inner.sub is None
        ):
            assert inner.sup is not None  # the prime of `x^{^{\prime}}`, which nobody wants raised twice
            if _name(inner.sup) not in _PRIMES and not _is_prime_group(inner.sup):
                break
            nodes = _nodes(inner.sup)
        primes = 0
        while primes < len(nodes) and _name(nodes[primes]) in _PRIMES:
            primes += 1
        rest = nodes[primes:]
        if rest and isinstance(rest[0], Scripts) and _name(rest[0].base) == r"\prime":
            return 0, self.row(nodes, state)  # a prime with a script of its own
        return primes, self.row(rest, state) if rest else None

    def delimited(self, node: Delimited, state: _State) -> Item:
        r"""Read `\left( ... \right)` with every `\middle` in it."""
        parts: list[list[Node]] = [[]]
        middles: list[str] = []
        nodes = iter(node.items)
        for inner in nodes:
            if _name(inner) == r"\middle" or (isinstance(inner, Scripts) and _name(inner.base) == r"\middle"):
                middles.append(self.delimiter(_name(next(nodes, None)), r"\middle"))
                parts.append([])
            else:
                parts[-1].append(inner)
        left = self.delimiter(node.left.text[len(r"\left") :], r"\left")
        right = self.delimiter(node.right.text[len(r"\right") :], r"\right")
        return to.Fenced(left, [self.row(part, state) for part in parts], middles, right)

    def command(self, node: Command, state: _State) -> Item:
        """Read a command with arguments."""
        name, arguments = node.name, node.arguments
        if name in _COMMANDS:
            return _COMMANDS[name](self, node, state)
        if name in _FONTS or name in (r"\boldsymbol", r"\bm", r"\pmb"):
            return self.in_font(name, arguments[0], state)
        if name in commands.ACCENT_MARKS:
            return self.accent(name, self.node(arguments[0], state))
        if name in commands.STRETCHED_CHARACTERS:
            below = self.node(arguments[0], state) if len(arguments) == 2 else None
            arrow = to.Stretched(commands.STRETCHED_CHARACTERS[name])
            return to.Scripts(arrow, below, self.node(arguments[-1], state), "over")
        if name in commands.FRACTIONS:
            style = {"d": "display", "t": "text", "c": "display"}.get(name[1], "")
            above, below = (self.node(part, state) for part in arguments)
            return to.Fraction(above, below, style=style)
        if name in commands.BINOMIALS:
            style = {"d": "display", "t": "text"}.get(name[1], "")
            above, below = (self.node(part, state) for part in arguments)
            return to.Fraction(above, below, False, "(", ")", style)
        kind = commands.COMMANDS[name].kind if name in commands.COMMANDS else "other"
        if kind in ("class", "lap"):
            return self.node(arguments[0], state)
        if kind in ("length", "bare-length"):
            return self.space(name, arguments[0])
        if name in commands.TEXTS:
            return self.text(node)
        raise FormatError(_NOWHERE, name)

    def in_font(self, name: str, argument: Node, state: _State) -> Item:
        """Read letters in an alphabet; several upright ones in a row are a word."""
        if name in (r"\boldsymbol", r"\bm", r"\pmb"):
            return self.node(argument, replace(state, bold=True))
        inner = _State(_FONTS[name], name in _BOLD_FONTS or (state.bold and state.font != "rm"))
        nodes = _nodes(argument)
        if name in (r"\mathbb", r"\mathcal", r"\mathfrak", r"\mathscr", r"\mathnormal"):
            return self.row(nodes, inner)
        items: list[Item] = []
        letters: list[Symbol] = []
        for node in [*nodes, None]:
            if isinstance(node, Symbol) and (
                node.text in ("~", "\\") or (node.text.isalnum() and len(node.text) == 1)
            ):
                letters.append(node)
                continue
            items += self.word(letters, inner)
            letters = []
            if node is not None:
                if isinstance(node, Symbol) and node.text in commands.SWITCHES:
                    return self.row(nodes, inner)
                items += self.row([node], inner).items
        return _tidy(items)

    def word(self, letters: list[Symbol], state: _State) -> list[Item]:
        """Make one word of letters, words of text if there are spaces between them."""
        text = "".join(" " if letter.text in ("~", "\\") else letter.text for letter in letters)
        if len(text) < 2 or not any(map(str.isalpha, text)):
            return [self.symbol(letter.text, state) for letter in letters]
        if state.font == "it" and " " not in text and not state.bold:
            return [Word(text, "name", "it")]
        return [Word(text, "text" if " " in text else "name", state.font, state.bold)]

    def accent(self, name: str, body: Item) -> Item:
        """Put a mark on something."""
        combining, mark = commands.ACCENT_MARKS[name]
        wide = "accent" not in commands.COMMANDS[name].sign
        return to.Accent(name, to.unwrapped(body), mark, combining, "under" in name, wide)

    def space(self, name: str, argument: Node) -> Item:
        """Read room of a given width; vertical room is none in a row."""
        if name.rstrip("*") in (r"\vspace", r"\vskip"):
            return Row()
        assert isinstance(argument, Length)
        written = "".join(symbol.text for symbol in argument.symbols)
        match = _LENGTH.match(written)
        number = match[2].replace(",", ".") if match else ""
        if not match or match[3] not in _UNITS_PT or number in ("", "."):
            raise FormatError(_NOWHERE, f"{name}{{{written}}}")
        sign = -1 if match[1].count("-") % 2 else 1
        return Space(sign * float(number) * _UNITS_PT[match[3]] / _POINTS_OF_EM)

    def text(self, node: Command) -> Item:
        """Read words of text in the font of their command."""
        (argument,) = node.arguments
        assert isinstance(argument, Text)
        font = {r"\textit": "it", r"\emph": "it", r"\textsl": "it", r"\textsf": "sf", r"\texttt": "tt"}
        style = Word("", "text", font.get(node.name, "rm"), node.name == r"\textbf")
        words = Row(_read_text(argument.symbols, style, self.inner))
        return to.Enclosed(words, "box") if node.name == r"\fbox" else words

    def inner(self, latex: str) -> list[Item]:
        """Read a formula inside of text."""
        return self.row(Parser(RawTokens(latex)).parse(), _State()).items

    def operator(self, node: Command, state: _State) -> Item:
        r"""Read `\operatorname{...}`; what is not letters and spaces stays as it is."""
        argument = node.arguments[0]
        nodes = _nodes(argument)
        texts = [" " if _name(part) in _SPACES else _name(part) for part in nodes]
        role: str = "operator" if node.name == r"\operatorname" else "limits"
        if texts and all(len(text) == 1 and (text.isalnum() or text in " -*") for text in texts):
            return Word("".join(texts), role)  # type: ignore[arg-type]
        return self.row(nodes, _State("rm"))

    def modulus(self, node: Command, state: _State) -> Item:
        r"""Read `\pmod{n}` and `\pod{n}`."""
        word: list[Item] = [Word("mod", "name"), Space(1 / 3)] if node.name == r"\pmod" else []
        inner = to.items_of(self.node(node.arguments[0], state))
        return Row([Space(1.0), Sign("(", "open"), *word, *inner, Sign(")", "close")])

    def stack(self, node: Command, state: _State) -> Item:
        r"""Read `\stackrel`, `\overset` and `\underset`."""
        small, base = (self.node(argument, state) for argument in node.arguments)
        below = node.name == r"\underset"
        inner = to.unwrapped(base)
        if isinstance(inner, to.Scripts) and inner.placement == "over" and not inner.primes:
            if below and inner.sub is None:
                return replace(inner, sub=small)
            if not below and inner.sup is None:
                return replace(inner, sup=small)
        return to.Scripts(inner, small if below else None, None if below else small, "over")

    def root(self, node: Command, state: _State) -> Item:
        """Read a root."""
        index = self.node(node.arguments[0], state) if len(node.arguments) == 2 else None
        return to.Root(self.node(node.arguments[-1], state), index)

    def phantom(self, node: Command, state: _State) -> Item:
        """Read a phantom."""
        return to.Phantom(
            self.node(node.arguments[0], state), node.name != r"\vphantom", node.name != r"\hphantom"
        )

    def enclosed(self, node: Command, state: _State) -> Item:
        """Read a frame or a strike."""
        how = {r"\boxed": "box", r"\cancel": "up", r"\bcancel": "down", r"\xcancel": "cross"}[node.name]
        return to.Enclosed(self.node(node.arguments[0], state), how)  # type: ignore[arg-type]

    def general_fraction(self, node: Command, state: _State) -> Item:
        r"""Read `\genfrac`."""
        plain = [
            "".join(symbol.text for symbol in part.symbols) if isinstance(part, Length) else ""
            for part in node.arguments[:4]
        ]
        left, right, thickness, style = plain
        if thickness not in ("", "0pt", "0em", "0mm", "0"):
            raise FormatError(_NOWHERE, rf"\genfrac with a line of {thickness}")
        above, below = (self.node(part, state) for part in node.arguments[4:])
        fences = [self.delimiter(text, r"\genfrac") if text else "" for text in (left, right)]
        styles = {"": "", "0": "display", "1": "text"}
        if style not in styles:
            raise FormatError(_NOWHERE, rf"\genfrac in style {style}")
        return to.Fraction(above, below, not thickness, fences[0], fences[1], styles[style])

    def array(self, node: Array, state: _State) -> Item:
        """Read an environment; a table without rows is nothing."""
        if node.name not in _ENVIRONMENTS:
            raise FormatError(_NOWHERE, rf"\begin{{{node.name}}}")
        rows = [[self.row(_unbraced(cell), state) for cell in row.cells] for row in node.rows]
        width = max(map(len, rows), default=0)
        columns, lines = _columns(node, width)
        rules = {index for index, row in enumerate(node.rows) if _has_rule(row.rules)}
        if _has_rule(node.rules):
            rules.add(len(rows))
        rows = [[*row, *(Row() for _ in range(width - len(row)))] for row in rows]
        return to.Table(node.name, rows, columns, lines, rules)


_COMMANDS: Final[dict[str, Callable[[_Translator, Command, _State], Item]]] = {
    **dict.fromkeys((r"\operatorname", r"\operatorname*", r"\operatornamewithlimits"), _Translator.operator),
    **dict.fromkeys((r"\pmod", r"\pod"), _Translator.modulus),
    **dict.fromkeys(commands.STACKS, _Translator.stack),
    **dict.fromkeys(commands.PHANTOMS, _Translator.phantom),
    **dict.fromkeys((r"\boxed", r"\cancel", r"\bcancel", r"\xcancel"), _Translator.enclosed),
    r"\sqrt": _Translator.root,
    r"\genfrac": _Translator.general_fraction,
}
_ENVIRONMENTS: Final = frozenset(
    [
        "array",
        "matrix",
        "smallmatrix",
        "cases",
        "dcases",
        "rcases",
        "aligned",
        "alignedat",
        "gathered",
        "split",
        "substack",
        "subarray",
    ]
)


def _unbraced(cell: list[Node]) -> list[Node]:
    """Leave out the braces that the canonical form puts around a cell."""
    return cell[0].items if len(cell) == 1 and isinstance(cell[0], Group) else cell


def _columns(node: Array, width: int) -> tuple[list[str], set[int]]:
    """Give how each column is aligned, and which have a rule before them."""
    if node.columns is None or node.name == "alignedat":
        if node.name in to.ALIGNED:
            return ["rl"[index % 2] for index in range(width)], set()
        return [("l" if node.name in to.BUILT_IN_FENCES else "c") for _ in range(width)], set()
    columns: list[str] = []
    lines: set[int] = set()
    depth = 0
    for place, symbol in enumerate(node.columns):
        depth += (symbol.text == "{") - (symbol.text == "}")
        if depth or symbol.text in "}~@!":
            if symbol.text in ("@", "!") and not depth:
                _check_between(node.columns[place + 1 :])
            continue
        if symbol.text == "|":
            lines.add(len(columns))
        elif symbol.text in ("l", "c", "r"):
            columns.append(symbol.text)
        else:
            raise FormatError(_NOWHERE, f"the column {symbol.text!r} of an array")
    columns += ["c"] * (width - len(columns))
    return columns[:width], {line for line in lines if line <= width}


def _check_between(following: list[Symbol]) -> None:
    """Refuse what `@{...}` draws between columns; room it may leave."""
    depth = 0
    for symbol in following:
        depth += (symbol.text == "{") - (symbol.text == "}")
        if not depth:
            return
        if symbol.text != "{" and symbol.text not in _SPACES and symbol.text not in _UNSEEN:
            raise FormatError(_NOWHERE, "@{...} in the columns of an array")


def _has_rule(rules: list[Node]) -> bool:
    for rule in rules:
        if _name(rule) in (r"\cline", r"\noalign"):
            raise FormatError(_NOWHERE, _name(rule))
    return any(_name(rule) in (r"\hline", r"\hdashline") for rule in rules)


def _spread(item: Item, *, grouped: bool) -> list[Item]:
    """Give the items of a row one by one, but keep a group together that sets an operator as a letter is."""
    items = to.items_of(item)
    if not grouped or not items:
        return items
    if len(items) == 1 and isinstance(items[0], Sign) and items[0].kind != "ord":
        return [replace(items[0], kind="ord")]
    outer = (items[0], items[-1])
    return (
        [item]
        if any(isinstance(one, Sign) and one.kind in ("bin", "rel", "punct") for one in outer)
        else items
    )


def _tidy(items: list[Item]) -> Row:
    """Put digits together to numbers, also those before a digit with a script; flatten rows of nothing."""
    tidy: list[Item] = []
    for item in items:
        last = tidy[-1] if tidy else None
        if isinstance(item, Row) and not item.items:
            continue
        number = item.base if isinstance(item, to.Scripts) else item
        if isinstance(number, to.Number) and _continues(last, number):
            if isinstance(last, Sign):  # the decimal point
                tidy.pop()
                last = tidy[-1]
                number = replace(number, text="." + number.text)
            assert isinstance(last, to.Number)
            number = replace(number, text=last.text + number.text)
            tidy[-1] = replace(item, base=number) if isinstance(item, to.Scripts) else number
            continue
        if _is_point(item) and isinstance(last, to.Number):
            tidy.append(Sign(".", "punct"))  # until a digit follows
            continue
        tidy.append(item)
    return Row(_struck([Sign(".") if item == Sign(".", "punct") else item for item in tidy]))


def _is_slash(item: Item | None) -> bool:
    return isinstance(item, Sign) and item.text == "/"


def _struck(items: list[Item]) -> list[Item]:
    """Read a stroke printed over a letter, as `D` and `/` with negative room between them, as one sign."""
    struck: list[Item] = []
    place = 0
    while place < len(items):
        item = items[place]
        end = place + 1
        room = 0.0
        while end < len(items) and isinstance(space := items[end], Space):
            room += space.em
            end += 1
        following = items[end] if end < len(items) else None
        scripts = following if isinstance(following, to.Scripts) and _is_slash(following.base) else None
        if room < _OVERPRINT_EM and (_is_slash(item) or _is_slash(following) or scripts is not None):
            slashed = following if _is_slash(item) else replace(scripts, base=item) if scripts else item
            bare = slashed.base if isinstance(slashed, to.Scripts) else slashed
            if isinstance(bare, Sign) and bare.kind == "ord" and bare.text != "/":
                sign: Item = replace(bare, text=bare.text + "\u0338")
                struck.append(replace(slashed, base=sign) if isinstance(slashed, to.Scripts) else sign)
                place = end + 1
                continue
        struck.append(item)
        place += 1
    return struck


def _is_point(item: Item) -> bool:
    return isinstance(item, Sign) and item.text == "." and not item.size


def _continues(last: Item | None, number: to.Number) -> bool:
    if isinstance(last, Sign):
        return last == Sign(".", "punct") and not number.bold and not number.font
    return isinstance(last, to.Number) and (last.font, last.bold) == (number.font, number.bold)


def _read_text(letters: list[Symbol], style: Word, formula: Callable[[str], list[Item]]) -> list[Item]:
    """Read text as words, each in the style of a given one, and the formulas between dollars in it.

    Args:
        letters: the characters and commands of the text.
        style: a word in the font of the text.
        formula: reads LaTeX.

    Raises:
        FormatError: for a command that text in another format cannot have.
    """
    dollars = [place for place, letter in enumerate(letters) if letter.text == "$"]
    if len(dollars) > 1:
        first, second = dollars[:2]
        latex = "".join(written_text(letters[first + 1 : second]))
        before, after = letters[:first], letters[second + 1 :]
        return [*_words(before, style), *formula(latex), *_read_text(after, style, formula)]
    return _words(letters, style)


def _words(letters: list[Symbol], style: Word) -> list[Item]:
    text = ""
    mark = ""
    place = 0
    if letters and letters[0].text in _WORD_FONTS and not any(letter.text == "{" for letter in letters):
        font, bold = _WORD_FONTS[letters[0].text]
        style, place = replace(style, font=font, bold=bold), 1
    while place < len(letters):
        letter = letters[place].text
        place += 1
        if letter in commands.WORD_MARKS:
            mark += commands.WORD_MARKS[letter]
            continue
        if letter in "{}":
            continue
        piece = _piece(letter)
        if letter in "-`'" and piece:
            while place < len(letters) and piece + letters[place].text in _LIGATURES and len(piece) < 3:
                piece += letters[place].text
                place += 1
            piece = _LIGATURES.get(piece, piece)
        if mark and piece:
            piece = unicodedata.normalize("NFC", {"ı": "i", "ȷ": "j"}.get(piece, piece) + mark)
            mark = ""
        text += piece
    return [replace(style, text=text)] if text else []


def _piece(letter: str) -> str:
    if letter in _UNSEEN_IN_WORDS:
        return ""
    if letter in _WORD_SPACES:
        return _WORD_SPACES[letter]
    if len(letter) == 1 and letter != "$":
        return letter
    if letter in commands.SHOWN and letter[1:2].isalpha() is (letter in commands.SHOWN_IN_WORDS):
        return commands.SHOWN[letter][0]
    raise FormatError(_NOWHERE, "a formula inside of text" if letter == "$" else f"{letter} in text")
