r"""The bank of symbols: every symbol of the training inks, by what it is and who wrote it.

A formula is written with one person's symbols as far as that person wrote them, then with another's. Signs
that no ink has are drawn from a table of simple strokes below, print-like but with the wobble of a hand; what
is in neither is said to be missing.

Ink shows less than print: not whether a parenthesis came after \left, nor how wide a space is, nor upright
letters. `written_tokens` leaves that out of a formula, so that labels say what a reader can see, and
`label_tokens` gives the sequence that the field of handwriting compares, with \sin for one symbol.
"""

import io
import random
import re
import zipfile
import zlib
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from i2l.files import atomic_write
from i2l.formulas.commands import (
    FRACTIONS,
    ROOTS,
    SIGNATURES,
    SIZE_SWITCHES,
    SIZED,
    SPACES,
    STYLE_SWITCHES,
    one_name,
)
from i2l.formulas.expansion import Macros
from i2l.formulas.lexer import FormulaError, Token
from i2l.formulas.normalize import NormalizeResult, normalize_formula
from i2l.ink.pens import Lines
from i2l.ink.strokes import Ink, InkError, Points, Symbol

_CORNER: Final = 1.2  # radians
_FEW_POINTS: Final = 4  # a stroke of the table with more is a curve ...
_ANGULAR: Final = ("W", r"\star")  # ... but for these
BANK_VERSION: Final = 2  # of the file, and of what a seed picks out of it
BAR, ROOT, SIGN = "bar", "root", "sign"  # how a symbol is brought to the size of its place
WORDS: Final = frozenset({r"\sin", r"\cos", r"\tan", r"\log", r"\lim"})  # that inks have as one symbol
_STRIPPED: Final = ("\\left", "\\right")
_PLAIN_FONTS: Final = frozenset(
    {
        r"\mathrm",
        r"\mathit",
        r"\mathnormal",
        r"\textrm",
        r"\textnormal",
        r"\text",
        r"\mbox",
        r"\hbox",
        r"\textit",
    }
    | {r"\mathord", r"\mathop", r"\mathbin", r"\mathrel", r"\mathopen", r"\mathclose", r"\vtop"}
    | {r"\rm", r"\it", r"\limits", r"\nolimits"}
)
# What canonical tokens are called in inks; all other tokens have the same name there.
_IN_INKS: Final = {
    "<": r"\lt",
    ">": r"\gt",
    r"\to": r"\rightarrow",
    r"\longrightarrow": r"\rightarrow",
    r"\dots": r"\ldots",
    r"\cdots": r"\ldots",
    r"\dotsb": r"\ldots",
    r"\dotsc": r"\ldots",
    r"\dotso": r"\ldots",
    "'": r"\prime",
    r"\lbrack": "[",
    r"\rbrack": "]",
    r"\lbrace": r"\{",
    r"\rbrace": r"\}",
    r"\vert": "|",
    r"\lvert": "|",
    r"\rvert": "|",
    r"\mid": "|",
    r"\cdot": ".",
    r"\overline": "-",
    r"\underline": "-",
    r"\bar": "-",
    r"\slash": "/",
    r"\Sigma": r"\sum",
    r"\varnothing": r"\emptyset",
    r"\varepsilon": r"\epsilon",
    r"\ast": "*",
    r"\dagger": r"\dag",
    r"\lnot": r"\neg",
    r"\land": r"\wedge",
    r"\lor": r"\vee",
    r"\lVert": r"\|",
    r"\rVert": r"\|",
    r"\Vert": r"\|",
    r"\widehat": r"\hat",
    r"\widetilde": r"\tilde",
    r"\overrightarrow": r"\vec",
    r"\leqslant": r"\leq",
    r"\geqslant": r"\geq",
}
_BARS: Final = FRACTIONS | {"-", r"\overline", r"\underline", r"\bar"}
# Those of them that a label counts as one, too; space is no part of it.
_IN_LABELS: Final = {"~": ""} | {
    name: _IN_INKS[name]
    for name in (
        r"\dots",
        r"\cdots",
        r"\dotsb",
        r"\dotsc",
        r"\lbrack",
        r"\rbrack",
        r"\lbrace",
        r"\rbrace",
        r"\vert",
        r"\lvert",
        r"\rvert",
        r"\mid",
        r"\leqslant",
        r"\geqslant",
    )
}

# Signs that inks of CROHME lack: strokes of points x,y in hundredths of the sign's box, `|` lifts the pen.
_DRAWN: Final = r"""
D 8,2 8,98|0,2 60,6 98,40 94,70 60,96 2,98
J 20,2 98,2|64,2 66,70 50,96 20,96 2,74
K 8,0 8,100|96,2 10,58|34,44 98,98
O 56,2 20,8 2,46 14,88 50,98 86,84 98,46 82,10 52,2
Q 54,2 18,8 2,46 14,82 50,90 86,78 98,42 82,8 50,2|58,66 98,100
U 4,0 4,64 24,96 62,96 88,70 94,2|92,30 96,98
W 0,2 24,98 50,22 74,98 100,0
Z 4,4 96,4 4,96 98,96|24,50 78,50
\delta 80,6 40,2 30,18 70,50 78,74 54,98 22,90 14,64 40,44 66,52
\epsilon 92,12 50,2 20,16 26,42 66,48|30,46 6,66 14,90 52,98 96,84
\zeta 30,2 78,10 24,40 8,70 40,86 74,92 60,100 40,98
\eta 2,22 16,6 22,20 22,66|22,30 52,6 78,12 82,40 82,100
\iota 40,2 34,70 52,98 80,84
\kappa 10,2 10,98|90,6 14,56|40,44 92,98
\nu 2,4 16,6 34,98 84,40 96,2
\xi 86,4 40,2 26,18 44,32 80,34|50,34 12,48 16,64 56,70|40,70 4,82 40,92 78,96 60,100
\rho 6,100 14,30 48,2 88,18 94,48 60,72 20,62
\tau 2,22 24,4 98,6|52,8 46,80 62,98 80,90
\upsilon 2,14 18,4 20,60 46,96 80,76 92,20 80,2
\varphi 30,10 6,26 10,56 50,66 86,54 94,24 70,4 52,26 46,100
\chi 4,6 22,8 76,96 96,94|92,4 8,98
\psi 2,16 16,8 20,46 48,62 80,50 96,8|62,0 42,100
\omega 16,8 2,44 16,92 40,88 50,50 60,88 84,92 98,44 80,6
\vartheta 4,46 22,30 30,60 34,90 60,98 80,50 70,6 50,4 44,30 60,48 98,40
\Gamma 12,2 12,98|10,4 92,4 92,20
\Lambda 2,98 50,2 98,98
\Omega 2,96 30,96 30,84 6,56 14,18 50,2 86,18 94,56 70,84 70,96 98,96
\Phi 50,0 50,100|50,20 12,28 4,54 20,76 52,82 86,72 96,48 82,26 52,20
\Psi 2,16 16,16 22,52 50,66 78,52 86,16 98,14|50,0 50,100
\Pi 0,6 100,6|18,6 18,98|82,6 82,98
\prod 0,6 100,6|18,6 18,98|82,6 82,98
\coprod 0,96 100,96|18,2 18,96|82,2 82,96
\Theta 52,2 18,10 2,48 16,88 50,98 86,86 98,46 82,10 52,2|26,50 74,50
\Xi 4,4 96,4|22,50 78,50|2,96 98,96
\partial 30,10 60,2 88,22 92,60 64,94 24,96 6,72 24,48 64,46 90,60
\nabla 2,4 98,4 50,98 2,4
\cup 2,0 4,60 30,98 70,98 96,60 98,0
\cap 2,100 4,40 30,2 70,2 96,40 98,100
\subset 98,4 40,6 4,30 4,70 40,94 98,96
\supset 2,4 60,6 96,30 96,70 60,94 2,96
\subseteq 96,2 40,4 6,24 6,50 40,72 96,74|4,98 98,98
\supseteq 4,2 60,4 94,24 94,50 60,72 4,74|2,98 96,98
\notin 96,14 40,16 6,40 6,62 40,86 96,88|8,50 90,50|78,0 26,100
\emptyset 52,14 20,22 8,52 24,82 52,88 82,76 92,48 78,20 50,14|92,0 8,100
\equiv 2,4 98,4|2,50 98,50|2,96 98,96
\approx 2,30 24,4 50,24 76,38 98,10|2,90 24,64 50,84 76,98 98,70
\sim 2,80 24,10 50,46 76,90 98,20
\simeq 2,48 24,6 50,28 76,54 98,10|2,98 98,98
\cong 2,36 24,4 50,20 76,40 98,8|2,68 98,68|2,98 98,98
\propto 98,16 70,10 40,84 14,92 2,50 14,8 40,16 70,88 98,84
\ll 46,2 2,50 46,98|98,2 54,50 98,98
\gg 2,2 46,50 2,98|54,2 98,50 54,98
\mp 4,4 96,4|4,62 96,62|50,30 50,98
\circ 52,4 14,16 4,52 20,90 52,98 88,82 96,48 82,14 50,4
\bullet 50,30 36,40 36,62 52,72 68,60 66,40 50,32 44,50 58,56
\star 50,2 22,96 98,36 4,36 78,98 50,4
* 50,2 50,98|8,26 92,76|92,24 8,78
\oplus 52,2 16,12 2,50 16,88 50,98 86,86 98,48 84,12 50,2|50,2 50,98|2,50 98,50
\otimes 52,2 16,12 2,50 16,88 50,98 86,86 98,48 84,12 50,2|18,18 82,82|82,18 18,82
\wedge 2,98 50,2 98,98
\vee 2,2 50,98 98,2
\neg 2,10 96,10 96,96
\perp 50,0 50,98|2,98 98,98
\parallel 14,0 10,100|90,0 86,100
\| 14,0 10,100|90,0 86,100
\langle 92,0 8,50 92,100
\rangle 8,0 92,50 8,100
\lceil 96,2 10,2 8,100
\rceil 4,2 90,2 92,100
\lfloor 8,0 8,98 96,98
\rfloor 92,0 92,98 4,98
\leftarrow 98,50 2,50|24,4 2,50 24,96
\leftrightarrow 2,50 98,50|18,4 2,50 18,96|82,4 98,50 82,96
\Rightarrow 2,30 84,30|2,70 84,70|68,2 98,50 68,98
\Leftrightarrow 12,30 88,30|12,70 88,70|26,2 2,50 26,98|74,2 98,50 74,98
\Leftarrow 98,30 16,30|98,70 16,70|32,2 2,50 32,98
\mapsto 4,10 4,90|4,50 98,50|78,6 98,50 78,94
\uparrow 50,100 50,2|4,26 50,2 96,26
\downarrow 50,0 50,98|4,74 50,98 96,74
\ell 6,88 44,76 86,30 76,4 48,14 38,60 52,96 90,86
\hbar 30,2 8,98|14,60 50,40 78,50 70,80 84,98|8,30 66,14
\hat 2,96 50,4 98,96
\tilde 2,80 24,12 50,46 76,88 98,20
\vec 2,50 98,50|72,4 98,50 72,96
\dot 48,46 56,54
\ddot 8,46 16,54|86,46 94,54
\check 2,4 50,96 98,4
: 44,10 56,14|44,86 56,92
; 48,8 60,14|56,80 30,100
? 8,24 30,4 76,4 90,26 50,54 50,72|48,94 56,98
\setminus 4,0 96,100
\backslash 4,0 96,100
\iint 60,4 46,0 36,14 26,86 14,100 0,94|98,4 86,0 76,14 66,86 54,100 40,94
\oint 96,6 76,0 58,14 42,86 24,100 4,94|52,34 26,42 24,60 48,68 74,60 76,42 52,34
\bigcup 2,0 4,70 30,98 70,98 96,70 98,0
\bigcap 2,100 4,30 30,2 70,2 96,30 98,100
\triangle 50,4 4,96 96,96 50,4
\angle 92,4 4,96 98,96
\dag 50,0 50,100|8,28 92,28
\prec 96,2 60,40 4,50 60,60 96,98
\succ 4,2 40,40 96,50 40,60 4,98
\aleph 6,4 96,96|16,30 4,60 10,98|84,4 96,30 66,60
\Re 10,96 40,40 20,10 10,40|30,8 80,10 84,36 44,48 70,94 98,90
\Im 90,14 50,4 14,20 50,40 60,70 40,94 6,84
\% 88,4 10,98|18,6 4,24 18,44 32,24 18,6|82,58 68,76 82,96 96,76 82,58
"""


class Unit(NamedTuple):
    """What is written in one go: a symbol or a word, for which tokens, and how it fills its place."""

    label: str
    tokens: tuple[int, ...]  # positions of the tokens that it draws
    kind: str


def written_tokens(tokens: Sequence[str]) -> list[str]:
    r"""Leave out of canonical tokens what ink does not show: \left, spaces, sizes, fonts, idle braces."""
    kept: list[str] = []
    closing: list[bool] = []  # of each open brace, whether it is kept
    skipped = False  # whether a font was left out just now, so that its braces go too
    for position, token in enumerate(tokens):
        text = _without_side(token)
        if text == "{":
            closing.append(not skipped)
            if not skipped:
                kept.append(text)
        elif text == "}":
            if not closing or closing.pop():
                kept.append(text)
        elif text in _PLAIN_FONTS:
            word = "\\" + "".join(_group_after(tokens, position))
            skipped = word not in WORDS
            if not skipped:  # someone wrote \mathrm{log}
                kept.append(r"\operatorname*" if word == r"\lim" else r"\operatorname")
            continue
        elif text and text not in SPACES and text not in SIZED and not _is_switch(text):
            text = _IN_LABELS.get(text, text)
            if text == "'":
                kept += ["^", "{", r"\prime", "}"]
            elif text:
                kept.append(text)
        skipped = False
    return _Regrouping(kept).tokens()


class _Item(NamedTuple):
    """A sign with its arguments, and the scripts at it, by their mark."""

    base: list[str]
    scripts: dict[str, list[str]]


class _Regrouping:
    """Tokens with braces around arguments, scripts and cells, and nowhere else."""

    def __init__(self, tokens: Sequence[str]) -> None:
        self._given = tokens
        self._position = 0

    def tokens(self) -> list[str]:
        """Return all of them."""
        parts: list[str] = []
        while self._next() is not None:
            parts += _spelled(self._items())
            if self._next() == "}":  # one too many
                parts.append(self._take())
        return parts

    def _next(self) -> str | None:
        return self._given[self._position] if self._position < len(self._given) else None

    def _take(self) -> str:
        self._position += 1
        return self._given[self._position - 1]

    def _items(self) -> list[_Item]:
        """Read up to a closing brace or bracket that is not opened here, or to the end."""
        items: list[_Item] = []
        while (text := self._next()) not in (None, "}"):
            before = self._given[self._position - 1] if self._position else ""
            if text in ("_", "^", r"\prime"):
                self._add_script(items, "^" if text == r"\prime" else text)
            elif text == "{" and before in ("&", r"\\"):
                items.append(_Item(["{", *_spelled(self._inside()), "}"], {}))
            elif text == "{":
                items += self._opened(self._inside())
            else:
                items.append(_Item(self._sign(), {}))
        return items

    def _add_script(self, items: list[_Item], mark: str) -> None:
        script = [self._take()] if self._next() == r"\prime" else self._script()
        if not items:
            items.append(_Item([], {}))
        items[-1].scripts[mark] = items[-1].scripts.get(mark, []) + script

    def _script(self) -> list[str]:
        mark, script = self._take(), self._argument()
        while script[:2] == [mark, "{"] or script[:4] == ["{", "}", mark, "{"]:  # x ^ { ^ { \prime } }
            inner = script[script.index(mark) + 1 :]
            if _end_of_group(inner) != len(inner):
                break
            script = inner[1:-1]
        return script

    def _opened(self, inside: list[_Item]) -> list[_Item]:
        """Take the braces off a group, unless its last sign has such a script already, or it is empty."""
        following = self._next()
        if following not in ("_", "^", r"\prime"):
            return inside
        if not inside:
            return [_Item(["{", "}"], {})]
        mark = "^" if following == r"\prime" else following
        if mark in inside[-1].scripts:
            return [_Item(["{", *_spelled(inside), "}"], {})]
        return inside

    def _sign(self) -> list[str]:
        text = self._take()
        if text in (r"\operatorname", r"\operatorname*") or text.startswith(r"\begin"):
            parts = [text, *self._as_it_is()]
            if text.startswith(r"\begin") and self._next() == "{":
                parts += ["{", *_spelled(self._inside()), "}"]
            return parts
        parts = [text]
        for kind in SIGNATURES.get(text, ""):
            if kind == "o" and self._next() == "[":
                while self._next() not in (None, "]"):
                    parts.append(self._take())
                parts += [self._take()] if self._next() else []
            elif kind in "mt" and self._next() is not None:
                parts += ["{", *self._argument(), "}"]
        return parts

    def _argument(self) -> list[str]:
        if self._next() == "{":
            return _spelled(self._inside())
        return self._sign() if self._next() not in (None, "}") else []

    def _inside(self) -> list[_Item]:
        """Read a group, and leave its braces out."""
        self._take()
        items = self._items()
        if self._next() == "}":
            self._take()
        return items

    def _as_it_is(self) -> list[str]:
        rest = self._given[self._position :]
        end = _end_of_group(rest)
        self._position += end
        return list(rest[:end])


def _spelled(items: Sequence[_Item]) -> list[str]:
    parts: list[str] = []
    for base, scripts in items:
        parts += base or (["{", "}"] if scripts else [])
        for mark in sorted(scripts, key="_^".index):
            parts += [mark, "{", *scripts[mark], "}"]
    return parts


def _end_of_group(tokens: Sequence[str]) -> int:
    """Say how many tokens the group has that begins here; none if no group does."""
    depth = 0
    for place, token in enumerate(tokens):
        depth += (token == "{") - (token == "}")
        if depth == 0:
            return place + 1 if token == "}" else 0
    return len(tokens)


def _group_after(tokens: Sequence[str], position: int) -> Sequence[str]:
    """Return what stands in the braces after a token; nothing if there are none."""
    if tokens[position + 1 : position + 2] != ["{"] or "}" not in tokens[position:]:
        return []
    return tokens[position + 2 : tokens.index("}", position)]


def _without_side(token: str) -> str:
    for side in _STRIPPED:
        rest = token.removeprefix(side)
        if rest != token and rest and not rest[0].isalpha():
            return "" if rest == "." else one_name(rest)
    return token


def _is_switch(text: str) -> bool:
    return text in SIZE_SWITCHES or text in STYLE_SWITCHES or text == "\\"


_MAX_BRACES: Final = 3  # closing ones too many, of which some labels have one
_GLUED: Final = re.compile(r"\\([lg]t)(?=[A-Za-z])")  # annotators wrote \ltN


def written_formula(latex: str, *, macros: Macros | None = None) -> NormalizeResult:
    """Normalise the label of an ink, as its annotator wrote it, to what its ink shows.

    Raises:
        FormulaError: if it is no formula.
    """
    text = latex.strip()
    for mark in ("$$", "$"):
        if len(text) > 2 * len(mark) and text.startswith(mark) and text.endswith(mark):
            text = text[len(mark) : -len(mark)]
    text = _GLUED.sub(r"\\\1 ", text)
    first = _normalized(text, macros)
    return normalize_formula(" ".join(written_tokens([token.text for token in first.tokens])))


def ink_latex(ink: Ink) -> str:
    r"""Return the label of an ink; where it spells log in letters and the ink has \log as a symbol, that."""
    text = ink.latex
    for word in sorted({symbol.label for symbol in ink.symbols} & WORDS):
        if word not in text:
            letters = r"(?<!\\)" + r"\s*".join(word[1:])
            text = re.sub(letters, lambda _, word=word: f"{word} ", text)  # type: ignore[misc]
    return text


def _normalized(text: str, macros: Macros | None) -> NormalizeResult:
    """Normalise a label, without closing braces that nothing opened."""
    for _ in range(_MAX_BRACES):
        try:
            return normalize_formula(text, macros=macros)
        except FormulaError as error:
            if error.reason != "unmatched brace" or text[error.position : error.position + 1] != "}":
                raise
            text = text[: error.position] + text[error.position + 1 :]
    return normalize_formula(text, macros=macros)


def label_tokens(tokens: Sequence[str]) -> list[str]:
    r"""Return the sequence of labels that the field of handwriting compares: one for \sin, one for a sign."""
    words = written_tokens(tokens)
    labels: list[str] = []
    position = 0
    while position < len(words):
        text = words[position]
        if text in (r"\operatorname", r"\operatorname*") and words[position + 1 : position + 2] == ["{"]:
            end = words.index("}", position) if "}" in words[position:] else len(words)
            labels.append("\\" + "".join(words[position + 2 : end]))
            position = end + 1
            continue
        labels.append({r"\to": r"\rightarrow", "<": r"\lt", ">": r"\gt"}.get(text, text))
        position += 1
    return labels


def formula_units(tokens: Sequence[Token]) -> list[Unit]:
    r"""Group the tokens that draw into what a hand writes in one go: \sin is one, others are alone."""
    units: list[Unit] = []
    position = 0
    while position < len(tokens):
        token = tokens[position]
        if token.text in (r"\operatorname", r"\operatorname*"):
            end = position + 1
            while end < len(tokens) and tokens[end].text != "}":
                end += 1
            letters = tuple(i for i in range(position + 1, end) if tokens[i].visible)
            if "\\" + "".join(tokens[i].text for i in letters) in WORDS:
                units.append(Unit("\\" + "".join(tokens[i].text for i in letters), letters, SIGN))
                position = end + 1
                continue
        if token.visible:
            units.append(_unit(token.text, position))
        position += 1
    return units


def _unit(text: str, position: int) -> Unit:
    name = _without_side(text) or text
    if name in _BARS:
        return Unit("-", (position,), BAR)
    kind = ROOT if name in ROOTS else SIGN
    return Unit(r"\sqrt" if kind == ROOT else _IN_INKS.get(name, name), (position,), kind)


def writer_of(ink: Ink) -> str:
    """Name who wrote an ink: as the file says, or by what its name has in common with others of its sheet."""
    return ink.writer or re.sub(r"[-_][A-Za-z]*[-_]?\d+$", "", ink.name)


class Shape(NamedTuple):
    """The strokes of a symbol in a box of width and height 1, and how wide it is for its height."""

    points: Points
    owners: NDArray[np.int64]
    aspect: float


class Bank:
    """Inks, and the symbols of those that are for training. `save` and `load` keep it as one file."""

    def __init__(self, arrays: Mapping[str, NDArray[np.generic]]) -> None:
        self._arrays = dict(arrays)
        self._points = np.cumsum(self._arrays["steps"].astype(np.int32), axis=0)
        self._stroke_ends = np.concatenate([[0], np.cumsum(self._arrays["stroke_sizes"].astype(np.int64))])
        self._ink_ends = np.concatenate([[0], np.cumsum(self._arrays["ink_sizes"].astype(np.int64))])
        self._symbol_ends = np.concatenate([[0], np.cumsum(self._arrays["symbol_sizes"].astype(np.int64))])
        self.labels = [str(label) for label in self._arrays["labels"]]

    @classmethod
    def of(cls, inks: Iterable[Ink], *, trains: Sequence[bool] | None = None) -> "Bank":
        """Make a bank of inks; `trains` says of each whether its symbols may be used to write formulas."""
        strokes: list[Points] = []
        ink_sizes, writers, symbols = [], [], []
        for number, ink in enumerate(inks):
            for symbol in ink.symbols:
                if trains is None or trains[number]:
                    symbols.append((symbol.label, number, [len(strokes) + s for s in symbol.strokes]))
            strokes += _whole(ink)
            ink_sizes.append(len(ink.strokes))
            writers.append(writer_of(ink))
        labels = sorted({label for label, _, _ in symbols})
        names = sorted(set(writers))
        points = np.concatenate([np.zeros((0, 2)), *strokes]).astype(np.int32)
        return cls(
            {
                "version": np.array([BANK_VERSION]),
                "steps": np.diff(points, axis=0, prepend=np.zeros((1, 2), np.int32)).astype(np.int16),
                "stroke_sizes": np.array([len(stroke) for stroke in strokes], np.int32),
                "ink_sizes": np.array(ink_sizes, np.int32),
                "ink_writers": np.array([names.index(writer) for writer in writers], np.int32),
                "labels": np.array(labels, dtype=np.str_),
                "symbol_labels": np.array([labels.index(label) for label, _, _ in symbols], np.int16),
                "symbol_inks": np.array([ink for _, ink, _ in symbols], np.int32),
                "symbol_sizes": np.array([len(numbers) for _, _, numbers in symbols], np.int16),
                "symbol_strokes": np.array([n for _, _, numbers in symbols for n in numbers], np.int32),
            }
        )

    def restricted(self, trains: Sequence[bool]) -> "Bank":
        """Return a bank of the same inks that writes with the symbols of some of them only."""
        kept = np.asarray(trains, dtype=bool)[self._arrays["symbol_inks"]]
        strokes = np.repeat(kept, self._arrays["symbol_sizes"].astype(np.int64))
        names = ("symbol_labels", "symbol_inks", "symbol_sizes")
        return Bank(
            self._arrays
            | {name: self._arrays[name][kept] for name in names}
            | {"symbol_strokes": self._arrays["symbol_strokes"][strokes]}
        )

    def save(self, path: Path) -> None:
        """Write the file; the same inks give the same bytes."""
        with atomic_write(path, "wb") as file:
            np.savez_compressed(file, **self._arrays)  # type: ignore[arg-type]

    @classmethod
    def load(cls, path: Path) -> "Bank":
        """Read a file that `save` wrote.

        Raises:
            InkError: if it is missing, damaged or of another version.
        """
        try:
            with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as arrays:
                bank = cls({name: arrays[name] for name in arrays.files})
                version = int(bank._arrays["version"][0])
        except (OSError, ValueError, KeyError, IndexError, EOFError, zipfile.BadZipFile, zlib.error) as error:
            raise InkError(f"{path} is not a bank of inks, or is damaged: {error}") from error
        if version != BANK_VERSION:
            raise InkError(f"{path} is of version {version}; this version of i2l reads {BANK_VERSION}.")
        return bank

    def __len__(self) -> int:
        return len(self._ink_ends) - 1

    @property
    def num_symbols(self) -> int:
        """How many symbols there are to write with."""
        return len(self._symbol_ends) - 1

    def strokes(self, ink: int) -> list[Points]:
        """Return the strokes of an ink."""
        return [self._stroke(n) for n in range(int(self._ink_ends[ink]), int(self._ink_ends[ink + 1]))]

    def _stroke(self, number: int) -> Points:
        start, end = self._stroke_ends[number : number + 2]
        return self._points[start:end].astype(np.float64)

    def shape(self, symbol: int) -> Shape:
        """Return a symbol, brought to a box of size 1."""
        start, end = self._symbol_ends[symbol : symbol + 2]
        numbers = self._arrays["symbol_strokes"][start:end]
        lines = Lines.of([self._stroke(int(number)) for number in numbers])
        return unit_shape(lines.points, lines.owners)

    def ink(self, number: int) -> Ink:
        """Return an ink with the symbols that are known of it."""
        labels = [
            self.labels[self._arrays["symbol_labels"][symbol]]
            for symbol in self._symbols_of_inks.get(number, ())
        ]
        groups = self.groups(number)
        symbols = tuple(Symbol(label, tuple(group)) for label, group in zip(labels, groups, strict=True))
        return Ink(tuple(self.strokes(number)), symbols=symbols)

    def groups(self, ink: int) -> list[list[int]]:
        """Return for each known symbol of an ink the numbers of its strokes in the ink."""
        first = int(self._ink_ends[ink])
        return [
            (self._arrays["symbol_strokes"][slice(*self._symbol_ends[symbol : symbol + 2])] - first).tolist()
            for symbol in self._symbols_of_inks.get(ink, ())
        ]

    @cached_property
    def _symbols_of_inks(self) -> dict[int, list[int]]:
        found: dict[int, list[int]] = {}
        for symbol, ink in enumerate(self._arrays["symbol_inks"].tolist()):
            found.setdefault(ink, []).append(symbol)
        return found

    @cached_property
    def _by_writer(self) -> list[dict[str, list[int]]]:
        """The symbols of each writer, by label, without those of an odd shape."""
        found: list[dict[str, list[int]]] = [{} for _ in range(int(self._arrays["ink_writers"].max()) + 1)]
        owners = self._arrays["ink_writers"][self._arrays["symbol_inks"]].tolist()
        for label, members in self.by_label.items():
            for symbol in members:
                found[owners[symbol]].setdefault(label, []).append(symbol)
        return [symbols for symbols in found if symbols]

    @cached_property
    def by_label(self) -> dict[str, list[int]]:
        """The symbols of each label, without those whose shape is far from what is usual: mostly mistakes."""
        if not self.num_symbols:
            return {}
        low = np.minimum.reduceat(self._points, self._stroke_ends[:-1], axis=0)
        high = np.maximum.reduceat(self._points, self._stroke_ends[:-1], axis=0)
        numbers, starts = self._arrays["symbol_strokes"], self._symbol_ends[:-1]
        sizes = np.maximum.reduceat(high[numbers], starts) - np.minimum.reduceat(low[numbers], starts)
        sizes = np.maximum(sizes, np.maximum(0.02 * sizes.max(axis=1, keepdims=True), 1e-9))
        aspects = np.log(sizes[:, 0] / sizes[:, 1])
        found = {}
        for number, label in enumerate(self.labels):
            members = np.flatnonzero(self._arrays["symbol_labels"] == number)
            if not len(members):
                continue
            middle = np.median(aspects[members])
            spread = max(float(np.median(np.abs(aspects[members] - middle))), 0.1)
            usual = members[np.abs(aspects[members] - middle) <= 4 * spread]
            if len(usual):
                found[label] = usual.tolist()
        return found

    def writes(self, label: str) -> bool:
        """Tell whether a symbol of this label can be written."""
        return label in self.by_label or label in drawn_signs()

    def pick(self, labels: Sequence[str], source: random.Random) -> list[int | None]:
        """Choose a symbol for each label, of one writer if possible; None for one that is drawn by the table.

        Raises:
            KeyError: for a label that cannot be written.
        """
        writers = [self._by_writer[int(source.random() * len(self._by_writer))] for _ in range(6)]
        writers.sort(key=lambda symbols: -sum(label in symbols for label in set(labels)))
        if source.random() < 0.3:  # the one who wrote most is not always the one who writes
            writers = writers[1:] + writers[:1]
        last: dict[str, int] = {}
        picked: list[int | None] = []
        for label in labels:
            chance, place = source.random(), source.random()
            if label not in self.by_label:
                drawn_signs()[label]
                picked.append(None)
                continue
            if label not in last or chance > 0.4:
                members = next((s[label] for s in writers if label in s), self.by_label[label])
                last[label] = members[int(place * len(members))]
            picked.append(last[label])
        return picked


def _whole(ink: Ink) -> list[Points]:
    """Bring an ink to whole numbers, its longest side 2000, as the inks of CROHME are kept here."""
    left, top, right, bottom = ink.bounds
    longest = max(right - left, bottom - top, 1e-9)
    if all(np.array_equal(stroke, np.rint(stroke)) for stroke in ink.strokes) and 500 <= longest <= 30_000:
        return [np.rint(stroke - np.rint((left, top))) for stroke in ink.strokes]
    return [np.rint((stroke - (left, top)) * (2000 / longest)) for stroke in ink.strokes]


def unit_shape(points: Points, owners: NDArray[np.int64]) -> Shape:
    """Bring strokes to a box of size 1, and remember how wide they were for their height."""
    low = points.min(axis=0)
    size = points.max(axis=0) - low
    larger = max(float(size.max()), 1e-9)
    size = np.maximum(size, 0.02 * larger)  # a straight line has no height, and keeps none
    return Shape((points - low) / size, owners, float(size[0] / size[1]))


@lru_cache(maxsize=1)
def drawn_signs() -> dict[str, Lines]:
    """Return the signs of the table, by their names."""
    signs = {}
    for line in _DRAWN.strip().splitlines():
        name, _, text = line.partition(" ")
        strokes = [
            np.array([[float(value) for value in point.split(",")] for point in stroke.split()]) / 100
            for stroke in text.split("|")
        ]
        signs[name] = Lines.of(
            [_with_corners(s) if len(s) <= _FEW_POINTS or name in _ANGULAR else s for s in strokes]
        )
    return signs


def _with_corners(stroke: Points) -> Points:
    """Repeat the points at which a line turns sharply: pens cut corners, but not where they halt."""
    steps = np.diff(stroke, axis=0)
    angles = np.arctan2(steps[:, 1], steps[:, 0])
    turns = np.abs((np.diff(angles) + np.pi) % (2 * np.pi) - np.pi)
    times = np.ones(len(stroke), dtype=np.int64)
    times[1:-1][turns > _CORNER] = 3
    return np.repeat(stroke, times, axis=0)
