r"""What ink shows of a formula, and the bank of symbols that it is written with.

Ink shows less than print: not whether a parenthesis came after \left, nor how wide a space is, nor upright
letters, nor to which side the columns of a matrix stand. `written_tokens` leaves that out of a formula, so
that labels say what a reader can see, and `label_tokens` gives the sequence that the field of handwriting
compares, with \sin for one symbol. What it leaves out TeX still sees when it lays a formula out
(`layout_formula`): brackets that grow, and spaces.

A formula is written with one person's symbols as far as that person wrote them, then with another's. Signs
that no ink has are drawn from the table of pens, print-like but with the wobble of a hand; what is in neither
is said to be missing.
"""

import io
import random
import re
import zipfile
import zlib
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from i2l.files import atomic_write
from i2l.formulas.commands import (
    ENVIRONMENTS,
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
from i2l.formulas.pretty import stretch_fences
from i2l.ink.pens import Lines, drawn_signs
from i2l.ink.strokes import Ink, InkError, Points, Symbol

BANK_VERSION: Final = 3  # of the file, and of what a seed picks out of it
BAR, ROOT, ARROW, SIGN = "bar", "root", "arrow", "sign"  # how a symbol is brought to the size of its place
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
    r"\colon": ":",
    r"\begin{cases}": r"\{",
    r"\Longrightarrow": r"\Rightarrow",
    r"\Longleftarrow": r"\Leftarrow",
    r"\Longleftrightarrow": r"\Leftrightarrow",
    r"\longleftarrow": r"\leftarrow",
    r"\longleftrightarrow": r"\leftrightarrow",
    r"\longmapsto": r"\mapsto",
    r"\bigoplus": r"\oplus",
    r"\bigotimes": r"\otimes",
    r"\bigwedge": r"\wedge",
    r"\bigvee": r"\vee",
    r"\Box": r"\square",
    r"\bigtriangleup": r"\triangle",
    r"\imath": r"\iota",
    r"\leqslant": r"\leq",
    r"\geqslant": r"\geq",
}
_BARS: Final = FRACTIONS | {"-", r"\overline", r"\underline", r"\bar", r"\hline"}
_ARROWS: Final = {
    r"\vec": r"\rightarrow",
    r"\overrightarrow": r"\rightarrow",
    r"\overleftarrow": r"\leftarrow",
}
# Those of them that a label counts as one, too; space is no part of it.
_IN_LABELS: Final = {"~": "", r"\dotsb": r"\cdots"} | {
    name: _IN_INKS[name]
    for name in (
        r"\dots",
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


class Unit(NamedTuple):
    """What is written in one go: a symbol or a word, for which tokens, and how it fills its place."""

    label: str
    tokens: tuple[int, ...]  # positions of the tokens that it draws
    kind: str


def written_tokens(tokens: Sequence[str]) -> list[str]:
    r"""Leave out of canonical tokens what ink does not show: \left, spaces, sizes, fonts, idle braces."""
    return _with_one_accent(_Regrouping(_shown(_with_one_table(tokens), sides=False)).tokens())


_WIDE_ACCENTS: Final = {
    r"\vec": r"\overrightarrow",
    r"\bar": r"\overline",
    r"\hat": r"\widehat",
    r"\tilde": r"\widetilde",
}
_NARROW_ACCENTS: Final = {wide: narrow for narrow, wide in _WIDE_ACCENTS.items()}


def _with_one_accent(tokens: Sequence[str]) -> list[str]:
    r"""Name accents for one letter or for more, by what they stand above: \bar or \overline."""
    found = list(tokens)
    for place, token in enumerate(found):
        if token in _WIDE_ACCENTS or token in _NARROW_ACCENTS:
            single = _end_of_group(found[place + 1 :]) == 3  # a sign in braces
            found[place] = (_NARROW_ACCENTS if single else _WIDE_ACCENTS).get(token, token)
    return found


def _shown(tokens: Sequence[str], *, sides: bool) -> list[str]:
    r"""Leave out fonts, and what brackets and spaces say beyond the sign that they are, unless it is kept."""
    kept: list[str] = []
    closing: list[bool] = []  # of each open brace, whether it is kept
    skipped = False  # whether a font was left out just now, so that its braces go too
    for position, token in enumerate(tokens):
        text = token if sides else _without_side(token)
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
        elif sides and (text in SPACES or text == "~"):
            kept.append(text)
        elif text and text not in SPACES and text not in SIZED and not _is_switch(text):
            text = _IN_LABELS.get(text, text)
            if text == "'":
                kept += ["^", "{", r"\prime", "}"]
            elif text:
                kept.append(text)
        skipped = False
    return kept


_FENCES: Final = frozenset(
    rf"\left{sign}" for sign in ("(", "[", "|", r"\|", r"\vert", r"\Vert", r"\lvert", r"\lVert")
)
_BRACES: Final = frozenset([r"\left\{", r"\left\lbrace"])
_MOST_CASES: Final = 2  # columns, which is what \begin{cases} has


def _with_one_table(tokens: Sequence[str]) -> list[str]:
    r"""Give arrays that look alike in ink one name: cases after a brace alone, matrices within brackets.

    Where the columns of an array stand can be seen in print; who writes by hand has no such thing in mind.
    """
    found = list(tokens)
    for start in range(len(found) - 1, -1, -1):  # the inner ones first
        if found[start] not in (r"\begin{array}", r"\begin{matrix}"):
            continue
        end = _end_of_table(found, start)
        if end is None:
            continue
        first = start + 1 + (_end_of_group(found[start + 1 :]) if found[start] == r"\begin{array}" else 0)
        layout = found[start + 2 : first - 1]
        if not set(layout) <= set("lcr"):  # lines between columns are ink
            continue
        before, after = found[start - 1] if start else "", found[end + 1] if end + 1 < len(found) else ""
        if before in _BRACES and after == r"\right." and _columns(found[first:end]) <= _MOST_CASES:
            found[start - 1 : end + 2] = [r"\begin{cases}", *found[first:end], r"\end{cases}"]
        elif before in _FENCES or not set(layout) - {"c"}:
            found[start : end + 1] = [r"\begin{matrix}", *found[first:end], r"\end{matrix}"]
    return found


def _end_of_table(tokens: Sequence[str], start: int) -> int | None:
    """Find where the table ends that begins at a place."""
    name, depth = tokens[start].removeprefix(r"\begin"), 0
    for place in range(start, len(tokens)):
        depth += (tokens[place] == rf"\begin{name}") - (tokens[place] == rf"\end{name}")
        if depth == 0:
            return place
    return None


def _columns(body: Sequence[str]) -> int:
    """Count the columns of a table, without those of tables in it."""
    most, here, depth = 1, 1, 0
    for token in body:
        depth += (token == "{" or token.startswith(r"\begin")) - (token == "}" or token.startswith(r"\end"))
        here = 1 if token == r"\\" and not depth else here + (token == "&" and not depth)
        most = max(most, here)
    return most


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
            environment = ENVIRONMENTS.get(text.removeprefix(r"\begin{").removesuffix("}"))
            plain = environment is None or environment.specification or environment.counted
            parts = [text, *(self._as_it_is() if plain else ())]
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
    first = _normalized(_bare(latex), macros)
    return normalize_formula(" ".join(written_tokens([token.text for token in first.tokens])))


def _bare(latex: str) -> str:
    """Take the marks of mathematics off a label."""
    text = latex.strip()
    for mark in ("$$", "$"):
        if len(text) > 2 * len(mark) and text.startswith(mark) and text.endswith(mark):
            text = text[len(mark) : -len(mark)]
    return _GLUED.sub(r"\\\1 ", text)


def layout_formula(latex: str, *, macros: Macros | None = None) -> str:
    r"""Return the same formula as TeX is to lay it out: brackets as tall as what they hold, spaces as given.

    What it draws is what `written_formula` draws, one token after the other.
    """
    written = written_formula(latex, macros=macros)
    tokens = [token.text for token in _normalized(_bare(latex), macros).tokens]
    try:
        spaced = normalize_formula(" ".join(stretch_fences(_Regrouping(_shown(tokens, sides=True)).tokens())))
    except FormulaError:
        spaced = written
    if _labels(spaced) == _labels(written):
        return spaced.latex
    return normalize_formula(" ".join(stretch_fences(written.formula.split()))).latex


def _labels(formula: NormalizeResult) -> list[str]:
    return [unit.label for unit in formula_units(formula.tokens)]


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


_OF_THE_FIELD: Final = {r"\to": r"\rightarrow", "<": r"\lt", ">": r"\gt", r"\cdots": r"\ldots"}


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
        labels.append(_OF_THE_FIELD.get(text, text))
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
    if name in _ARROWS:
        return Unit(_ARROWS[name], (position,), ARROW)
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
