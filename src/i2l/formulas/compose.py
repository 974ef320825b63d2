"""Formulas made from formulas: displays of several lines, matrices, cases, words and rare signs; short parts.

Lists of formulas hold few displays of several lines, and most signs of amssymb hardly ever. Real formulas are
cut at their relations and set under each other as authors do it, their parts become entries of matrices, and
rare signs take the place of common ones of their class. Neighbours in a list mostly come from one paper, so
lines of one display look as if they belonged together. The same seed gives the same displays.

Collections of displayed formulas hold nothing shorter than about five tokens, and a model that has never seen
a letter by itself reads one as an array. People ask for a single letter often, so short formulas are cut out
of long ones: numerators, scripts, sides of equations, a letter with its index.
"""

import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from i2l.formulas import commands
from i2l.formulas.commands import SWITCHES, without_outer_space
from i2l.formulas.lexer import FormulaError
from i2l.formulas.normalize import normalize_formula

# What stands in braces after these is no formula.
_NO_FORMULA: Final = frozenset(
    {r"\begin{array}", r"\operatorname", r"\operatorname*", r"\hspace", r"\hspace*", r"\vspace", r"\kern"}
)
_CUTS: Final = commands.names_of(lambda command: "cuts" in command.sign)
# Lists of formulas from before there was one name for a sign have the others too.
_SEPARATORS: Final = _CUTS | {name for name, kept in commands.ALIASES.items() if kept in _CUTS}
_SCRIPTS: Final = frozenset("_^")


def common_parts(formulas: Iterable[str], *, max_tokens: int, min_count: int = 1) -> list[str]:
    """Return the distinct parts of canonical formulas that are formulas themselves, the most frequent first.

    Args:
        formulas: canonical tokens joined by single spaces.
        max_tokens: no part is longer.
        min_count: a part that occurs less often is left out.
    """
    counts = Counter(
        " ".join(part)
        for formula in formulas
        for part in map(without_outer_space, find_parts(formula.split()))
        if 0 < len(part) <= max_tokens
    )
    frequent = [(part, count) for part, count in counts.most_common() if count >= min_count]
    return [part for part, _ in frequent if _is_formula(part)]


def find_parts(tokens: Sequence[str]) -> Iterator[Sequence[str]]:
    """Find what could be parts: all in braces, all between separators, every symbol with its scripts."""
    for content in _contents(tokens):
        depth, piece_start, symbol_start = 0, 0, 0
        spans = {(0, len(content))}
        for place, token in enumerate(content):
            if depth == 0:
                if token in _SEPARATORS:
                    spans.add((piece_start, place))
                    piece_start = place + 1
                if token not in _SCRIPTS and (place == 0 or content[place - 1] not in _SCRIPTS):
                    spans.add((symbol_start, place))
                    symbol_start = place
            depth += (token == "{") - (token == "}")
        spans |= {(piece_start, len(content)), (symbol_start, len(content))}
        for start, end in sorted(spans):
            yield content[start:end]


def _contents(tokens: Sequence[str]) -> Iterator[Sequence[str]]:
    """Yield the whole, and what is in each pair of braces."""
    yield tokens
    for start, end in _pairs(tokens):
        if start == 0 or tokens[start - 1] not in _NO_FORMULA:
            yield tokens[start + 1 : end]


def _pairs(tokens: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Yield the places where a pair of braces opens and closes."""
    opened: list[int] = []
    for place, token in enumerate(tokens):
        if token == "{":
            opened.append(place)
        elif token == "}":
            yield opened.pop(), place


def _is_formula(part: str) -> bool:
    try:
        result = normalize_formula(part)
    except FormulaError:
        return False
    drawn = any(token.visible for token in result.tokens)
    return result.formula == part and drawn and _has_its_braces(part.split())


def _has_its_braces(tokens: Sequence[str]) -> bool:
    r"""Tell whether a part has only braces it needs: `{ \cal L }` does; `{ L }` and `{ } = 0` have more."""
    if tokens[0] in SWITCHES or (tokens[:2] == ["{", "}"] and tokens[2:3] not in (["^"], ["_"])):
        return False
    wrapped = (0, len(tokens) - 1) in _pairs(tokens)
    return not wrapped or tokens[1] in SWITCHES


RELATIONS: Final = frozenset({*commands.RELATIONS, *commands.ARROW_SIGNS}) - {
    ":",
    r"\mid",
    r"\parallel",
    r"\in",
}
BINARIES: Final = frozenset("+-") | {r"\pm", r"\mp"}


def _list(text: str) -> tuple[str, ...]:
    return tuple(" ".join(item.split()) for item in text.split(","))


WORDS: Final = _list(
    """
    for all, for some, for every, if, if and only if, otherwise, and, or, where, with, such that, when,
    since, then, hence, so that, subject to, minimize, maximize, const, almost surely, as, by
    definition, in, on, for, is even, is odd, odd, even, else, not defined, at least, at most, by
    induction, by symmetry, provided that, respectively, the number of, converges to, is prime, with
    probability one, let, we have, which gives, in general, that is, up to, modulo, independent of, for
    large, near, inside, outside, on the boundary
    """
)
_SUBSCRIPT_WORDS: Final = _list(
    "max, min, eff, tot, in, out, loc, ext, int, total, kin, pot, ideal, obs, free, left, right, new, old"
)

_OPERATIONS: Final = BINARIES | {r"\times", r"\div", "/"}
_COMPARISONS: Final = frozenset({"=", "<", ">", r"\leq", r"\geq", r"\neq", r"\ne"})
_STAYS: Final = (0.3, 0.8)  # the chance of a letter or digit, and of a sign, to stay what it is
_EXCHANGED: Final[tuple[Callable[[str], bool], ...]] = (  # a token becomes another one of its kind
    lambda token: (len(token) == 1 and token.islower()) or token in commands.GREEK,
    lambda token: len(token) == 1 and token.isupper(),
    lambda token: len(token) == 1 and token.isdigit(),
    lambda token: token in _OPERATIONS,
    lambda token: token in _COMPARISONS,
)


def _fixed_places(tokens: Sequence[str]) -> set[int]:
    """Find what stands in braces after a command whose argument is a word or a length, not a formula."""
    return {
        place
        for start, end in _pairs(tokens)
        if start and tokens[start - 1] in _NO_FORMULA | commands.MATH_FONTS
        for place in range(start, end)
    }


Tokens = Sequence[str]
Maker = Callable[["Composer"], str]


class Composer:
    """Draws displays from formulas."""

    def __init__(self, formulas: Sequence[str], *, seed: int) -> None:
        """Take canonical formulas, tokens joined by single spaces, in the order of their papers."""
        if not formulas:
            raise ValueError("There are no formulas to compose displays from.")
        tokens = (formula.split() for formula in formulas)
        self.formulas = [_without_end(formula) for formula in tokens if r"\\" not in formula] or [["x"]]
        self.chance = random.Random(f"compose {seed}")

    def displays(self) -> Iterator[str]:
        """Compose one display after the other, without end."""
        kinds, weights = zip(*_KINDS, strict=True)
        while True:
            display = self.chance.choices(kinds, weights)[0](self)
            if self.chance.random() < 0.5:
                display = self.with_rare_signs(display)
            if self.chance.random() < 0.05:  # as in a line of text: small operators, limits at their side
                display = rf"\textstyle {display}"
            yield display

    def variants(self) -> Iterator[str]:
        """Give formulas of the list with other letters and digits, now and then another sign, without end.

        Letters that are common in the list are taken more often; in half of the formulas a letter becomes
        the same one everywhere. Words and names of operators stay.
        """
        counts = Counter(token for formula in self.formulas for token in formula)
        kinds = [[token for token in counts if is_kind(token)] for is_kind in _EXCHANGED]
        pools = {token: (pool, [counts[one] ** 0.6 for one in pool]) for pool in kinds for token in pool}
        while True:
            formula = self.chance.choice(self.formulas)
            same: dict[str, str] | None = {} if self.chance.random() < 0.5 else None
            fixed = _fixed_places(formula)
            written = []
            for place, token in enumerate(formula):
                stays = _STAYS[token in _OPERATIONS | _COMPARISONS]
                if place in fixed or token not in pools or self.chance.random() < stays:
                    written.append(token)
                    continue
                pool, weights = pools[token]
                other = self.chance.choices(pool, weights)[0]
                written.append(other if same is None else same.setdefault(token, other))
            if written != formula:
                yield " ".join(written)

    # Parts of formulas

    def neighbours(self, count: int, *, max_tokens: int) -> list[list[str]]:
        """Draw formulas that stand next to each other in the list, leaving out those that are too long."""
        start = self.chance.randrange(len(self.formulas))
        found: list[list[str]] = []
        for step in range(20 * count):
            tokens = self.formulas[(start + step) % len(self.formulas)]
            if len(tokens) <= max_tokens:
                found.append(tokens)
                if len(found) == count:
                    break
        return found or [["x"]]

    def entry(self) -> str:
        """Draw something short that could stand in a matrix."""
        kind = self.chance.random()
        if kind < 0.25:
            return self.chance.choice(["0", "1", "0", "1", "- 1", "2", "3"])
        if kind < 0.35:
            return f"{self.chance.choice(['', '- '])}{' '.join(str(self.chance.randrange(1000)))}"
        if kind < 0.5:
            letter, index = self.chance.choice("abcmxyuvw"), self.chance.choice("12345ijkn")
            return f"{letter} _ {{ {index} {self.chance.choice('123ijk')} }}"
        pieces = _pieces(self.neighbours(1, max_tokens=60)[0])
        fitting = [piece for piece in pieces if 1 <= len(piece) <= 12]
        return " ".join(self.chance.choice(fitting)) if fitting else "x"

    def words(self) -> str:
        """Draw words as they stand between formulas."""
        letters = " ~ ".join(" ".join(word) for word in self.chance.choice(WORDS).split())
        return rf"\mathrm {{ ~ {letters} ~ }}"

    def condition(self) -> str:
        """Draw the condition of a case: words, a formula, or both."""
        formula = " ".join(self.neighbours(1, max_tokens=25)[0])
        kind = self.chance.random()
        if kind < 0.15:
            return self.words()
        return formula if kind < 0.4 else f"{self.words()} {formula}"

    def number_of_rows(self, most: int = 9) -> int:
        """Draw a number of rows, two or three most often."""
        rows = 2
        while rows < most and self.chance.random() < 0.55:
            rows += 1
        return rows

    # Kinds of displays

    def aligned(self) -> str:
        """Write equations under each other, aligned at their relations."""
        chained, columns = self.chance.random() < 0.5, 1 + (self.chance.random() < 0.12)
        rows = []
        for number, formula in enumerate(self.neighbours(self.number_of_rows(), max_tokens=90 // columns)):
            cells = []
            for part in [formula, *self.neighbours(columns - 1, max_tokens=40)] if columns > 1 else [formula]:
                left, right = cut(part, RELATIONS)
                if not right:
                    left, right = cut(part, BINARIES)
                if number and chained and self.chance.random() < 0.9:
                    left = []
                # the empty group keeps the distance that a relation has to what stands before it
                cells += [" ".join(left), "{ } " + (" ".join(right) or f"= {' '.join(left)}")]
            rows.append(" & ".join(cells) + self.ending())
        if self.chance.random() < 0.1:
            rows = [rf"{row} & & {self.words()}" for row in rows]
        return rf"\begin{{aligned}} {_joined(rows)} \end{{aligned}}"

    def ending(self) -> str:
        """Draw what stands at the end of a line: often nothing, else a comma or a full stop."""
        return self.chance.choice(["", "", "", " ,", " .", " ;", r" \, ,"])

    def gathered(self) -> str:
        """Write formulas centred under each other."""
        rows = [
            " ".join(formula) + self.ending()
            for formula in self.neighbours(self.number_of_rows(6), max_tokens=90)
        ]
        return rf"\begin{{gathered}} {_joined(rows)} \end{{gathered}}"

    def stacked(self) -> str:
        """Write formulas in an array, often after a brace, in two or three columns or in one."""
        layout = self.chance.choice(["l", "l", "c", "rcl", "ll", "rl", "rl", "rl", "lcl", "r"])
        style = self.chance.choice([r"\displaystyle", "", "", ""])
        rows = []
        number = 1 if layout in ("l", "r", "rl") and self.chance.random() < 0.3 else self.number_of_rows(7)
        for formula in self.neighbours(number, max_tokens=70):
            left, right = cut(formula, RELATIONS)
            if len(layout) == 1 or not right:
                cells = [" ".join(formula), *[""] * (len(layout) - 1)]
            elif len(layout) == 3:
                cells = [" ".join(left), right[0], " ".join(right[1:])]
            elif layout == "rl":
                cells = [" ".join(left), f"{{ }} {' '.join(right)}"]
            else:
                cells = [f"{' '.join(formula)} ,", self.condition()]
            rows.append(" & ".join(f"{style} {cell}" if cell else "" for cell in cells))
        body = rf"\begin{{array}} {{ {' '.join(layout)} }} {_joined(rows)} \end{{array}}"
        opening, closing = self.chance.choice(
            [(r"\{", "."), (r"\{", "."), (".", r"\}"), ("[", "]"), ("", ""), ("", "")]
        )
        return rf"\left{opening} {body} \right{closing}" if opening and number > 1 else body

    def cases(self) -> str:
        """Write a function defined by cases."""
        head = " ".join(cut(self.neighbours(1, max_tokens=40)[0], RELATIONS)[0]) or "f ( x )"
        rows = [
            f"{' '.join(value)} {self.chance.choice([',', ''])} & {self.condition()}"
            for value in self.neighbours(self.number_of_rows(5), max_tokens=40)
        ]
        return rf"{head} = \begin{{cases}} {_joined(rows)} \end{{cases}}{self.ending()}"

    def matrix(self) -> str:
        """Write a matrix, sometimes ruled, sometimes with dots."""
        chance = self.chance
        rows, columns = chance.randint(1, 6), chance.randint(1, 7)
        if rows == columns == 1:
            rows = 2
        simple = chance.random() < 0.4
        cells = [
            [chance.choice("0011abcx2-") if simple else self.entry() for _ in range(columns)]
            for _ in range(rows)
        ]
        cells = [[cell.replace("-", "- 1") for cell in row] for row in cells] if simple else cells
        if rows > 2 and columns > 2 and chance.random() < 0.35:
            row, column = rows - 2, columns - 2
            cells[row] = [r"\vdots"] * columns
            for line in cells:
                line[column] = r"\cdots"
            cells[row][column] = r"\ddots"
        body = _joined([" & ".join(row) for row in cells])
        name = "matrix"
        if chance.random() < 0.2:
            layout = "".join(chance.choice(["c", "c", "c", "r", "l"]) for _ in range(columns))
            if columns > 1 and chance.random() < 0.5:
                layout = layout[:-1] + "|" + layout[-1]
            name, body = "array", f"{{ {' '.join(layout)} }} {body}"
            if rows > 1 and chance.random() < 0.3:
                body = body.replace(r"\\", r"\\ \hline", 1)
        elif chance.random() < 0.1:
            name = "smallmatrix"
        body = rf"\begin{{{name}}} {body} \end{{{name}}}"
        left, right = chance.choices([*commands.MATRIX_FENCES.values(), ("", "")], [8, 8, 1, 3, 1, 1])[0]
        return rf"\left{left} {body} \right{right}" if left else body

    def matrices(self) -> str:
        """Write a formula with matrices in it."""
        chance = self.chance
        pieces = []
        if chance.random() < 0.6:
            head = cut(self.neighbours(1, max_tokens=40)[0], RELATIONS)[0]
            pieces.append(f"{' '.join(head) or 'A'} =")
        for _ in range(chance.choice([1, 1, 2, 2, 3])):
            pieces.append(self.matrix())
            if chance.random() < 0.3:
                pieces.append(chance.choice(["=", "+", r"\cdot", r"\to", r"\otimes"]))
        if chance.random() < 0.3:
            pieces.append(" ".join(self.neighbours(1, max_tokens=30)[0]))
        return " ".join(pieces) + self.ending()

    def sentence(self) -> str:
        """Write formulas in a line with words or space between them."""
        between = self.chance.choice(
            [r", \quad", r"\qquad", r"\quad \mathrm { a n d } \quad", ",", r"\quad", r", \;"]
        )
        formulas = [
            " ".join(formula) for formula in self.neighbours(self.chance.randint(2, 3), max_tokens=60)
        ]
        if self.chance.random() < 0.4:
            formulas.append(f"{self.words()} {' '.join(self.neighbours(1, max_tokens=25)[0])}")
        return f" {between} ".join(formulas) + self.ending()

    def explained(self) -> str:
        """Write a formula of which a part has a brace, a frame or a stroke, or an arrow with words above."""
        chance = self.chance
        formula = self.neighbours(1, max_tokens=80)[0]
        pieces = _pieces(formula)
        part = " ".join(chance.choice(pieces)) if pieces else "x"
        said = self.words() if chance.random() < 0.5 else self.entry()
        letters = " ".join(chance.choice(_SUBSCRIPT_WORDS))
        word = rf"\mathrm {{ {letters} }}"
        marked = chance.choice(
            [
                rf"\underbrace {{ {part} }} _ {{ {said} }}",
                rf"\overbrace {{ {part} }} ^ {{ {said} }}",
                rf"\boxed {{ {part} }}",
                rf"{chance.choice(commands.STROKES)} {{ {part} }}",
                rf"A {chance.choice(commands.STRETCHED_ARROWS)} {{ {self.entry()} }} B",
                rf"A {chance.choice(commands.STRETCHED_ARROWS[:3])} [ {self.entry()} ] "
                rf"{{ {self.words()} }} B",
                rf"\sum _ {{ \substack {{ {self.entry()} \\ {self.entry()} }} }} {part}",
                rf"E _ {{ {word} }} = {part}",
                rf"\overset {{ {self.entry()} }} {{ = }} {part}",
                rf"\underset {{ {self.entry()} }} {{ \operatorname* {{ {letters} }} }} {part}",
                rf"\sqrt [ {chance.choice('3456nmk')} ] {{ {part} }}",
                rf"\binom {{ {self.entry()} }} {{ {self.entry()} }} {part}",
            ]
        )
        rest = " ".join(self.neighbours(1, max_tokens=30)[0])
        return chance.choice([marked, f"{marked} = {rest}", f"{rest} = {marked}"])

    # Rare signs

    def with_rare_signs(self, display: str) -> str:
        """Put rare signs in the place of common ones of their class, or around letters."""
        chance = self.chance
        tokens = display.split()
        out: list[str] = []
        for place, token in enumerate(tokens):
            after = tokens[place + 1] if place + 1 < len(tokens) else ""
            if chance.random() > 0.06:
                out.append(token)
            elif token in _COMMON_RELATIONS and after != "}":
                out.append(
                    chance.choice(commands.RELATIONS if chance.random() < 0.6 else commands.ARROW_SIGNS)
                )
            elif token in _COMMON_BINARIES:
                out.append(chance.choice(commands.BINARIES))
            elif token in _COMMON_OPERATORS:
                out.append(chance.choice(commands.OPERATORS))
            elif token in _GREEK or (len(token) == 1 and token.isalpha() and is_free(tokens, place)):
                out.append(self._rare_letter(token))
            else:
                out.append(token)
        return " ".join(out)

    def _rare_letter(self, letter: str) -> str:
        kind = self.chance.random()
        if kind < 0.55 or len(letter) > 1:
            return self.chance.choice(commands.LETTERS)
        if kind < 0.75:
            return rf"{self.chance.choice(commands.NARROW_ACCENT_SIGNS)} {{ {letter} }}"
        if kind < 0.8:
            wide = self.chance.choice(commands.WIDE_ACCENT_SIGNS)
            return rf"{wide} {{ {letter} {self.chance.choice('ABCabcxyz')} }}"
        alphabet = self.chance.choice(commands.ALPHABETS)
        capital = alphabet in (r"\mathbb", r"\mathcal", r"\mathscr")
        return rf"{alphabet} {{ {letter.upper() if capital else letter} }}"


def _common(*words: str) -> frozenset[str]:
    return commands.names_of(lambda c: "common" in c.sign and not c.sign.isdisjoint(words))


_COMMON_RELATIONS: Final = _common("relation", "arrow")
_COMMON_BINARIES: Final = _common("binary")
_COMMON_OPERATORS: Final = _common("operator")
# The capital omega is never replaced: it was left out once, and a seed is to compose what it always has.
_GREEK: Final = commands.GREEK - {r"\Omega"}
_KINDS: Final[tuple[tuple[Maker, float], ...]] = (
    (Composer.aligned, 32),
    (Composer.gathered, 10),
    (Composer.stacked, 14),
    (Composer.cases, 9),
    (Composer.matrices, 20),
    (Composer.sentence, 7),
    (Composer.explained, 8),
)


# Physics

_VECTORS: Final = (r"\mathbf {{ {} }}", r"\mathbf {{ {} }}", r"\boldsymbol {{ {} }}", r"\vec {{ {} }}")
_OVER_VECTORS: Final = (r"\hat", r"\hat", r"\dot", r"\tilde", r"\bar", r"\ddot")
_AROUND: Final = (  # what stands around an average, a size or an operator, and its chance
    ((r"\left\langle", r"\right\rangle"), 5),
    ((r"\langle", r"\rangle"), 3),
    ((r"\left|", r"\right|"), 2),
    ((r"\left\|", r"\right\|"), 1),
    ((r"\left|", r"\right\rangle"), 2),
    ((r"\left\langle", r"\right|"), 1),
    ((r"\left[", r"\right]"), 2),
)
_NABLAS: Final = (
    r"\nabla",
    r"\boldsymbol { \nabla }",
    r"\boldsymbol { \nabla } \cdot",
    r"\boldsymbol { \nabla } \times",
)
_TWINS: Final = {r"\epsilon": r"\varepsilon", r"\phi": r"\varphi"}
_FORMULAS_OF_ONE_PAPER: Final = 30


def physics_displays(formulas: Sequence[str], *, seed: int) -> Iterator[str]:
    """Compose displays in the notation of physics, without end, and single formulas between them.

    Some letters are vectors, bold or with an arrow, with hats and dots on them; nablas are bold; averages,
    states and sizes stand between delimiters as tall as they are; results have a frame.

    Args:
        formulas: canonical, tokens joined by single spaces, in the order of their papers.
        seed: of all choices.
    """
    chance = random.Random(f"physics {seed}")
    dressed: list[str] = []
    for start in range(0, len(formulas), _FORMULAS_OF_ONE_PAPER):
        notation = _Notation(chance)
        dressed += [
            " ".join(notation.dress(formula.split()))
            for formula in formulas[start : start + _FORMULAS_OF_ONE_PAPER]
        ]
    displays = Composer(dressed, seed=seed).displays()
    while True:
        display = chance.choice(dressed) if chance.random() < 0.4 else next(displays)
        yield rf"\boxed {{ {display} }}" if chance.random() < 0.12 else display


class _Notation:
    """What the formulas of one paper have in common."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._form = chance.choice(_VECTORS)
        self._letters = set(
            chance.sample("abcdefgijklmnpqrstuvwxyzABCDEFGHIJKLMPQRSTUVX", chance.randint(4, 16))
        )
        self._greek = set(chance.sample(sorted(_GREEK), chance.randint(0, 5)))
        self._nabla = chance.choice(_NABLAS[:2])
        self._twins = {one: other for one, other in _TWINS.items() if chance.random() < 0.5}

    def dress(self, tokens: Tokens) -> list[str]:
        """Write a formula in this notation."""
        chance, out = self._chance, list[str]()
        fixed = _fixed_places(tokens)
        for place, token in enumerate(tokens):
            switched = place > 0 and tokens[place - 1] in SWITCHES
            if place in fixed or switched or token not in self._letters | self._greek | {r"\nabla"}:
                out.append(self._twins.get(token, token))
            elif token == r"\nabla":
                out.append(self._nabla)
            elif token in self._greek or is_free(tokens, place):
                out.append(self._vector(token))
            else:
                out.append(token)
        return " ".join(self._with_delimiters(out) if chance.random() < 0.35 else out).split()

    def _vector(self, token: str) -> str:
        form = r"\boldsymbol {{ {} }}" if token in _GREEK else self._form
        vector, kind = form.format(token), self._chance.random()
        if kind < 0.15:
            return rf"{self._chance.choice(_OVER_VECTORS)} {{ {vector} }}"
        return f"{self._chance.choice(_NABLAS)} {vector}" if 0.15 < kind < 0.2 else vector

    def _with_delimiters(self, tokens: list[str]) -> list[str]:
        """Put delimiters around a piece of a formula, sometimes with its own exponent or a zero below."""
        pieces = [_without_end(piece) for piece in _pieces(" ".join(tokens).split())]
        pieces = [piece for piece in pieces if all(piece.count(a) == piece.count(b) for a, b in ("()", "[]"))]
        if not pieces:
            return tokens
        piece, text = " ".join(self._chance.choice(pieces)), " ".join(tokens)
        kinds, chances = zip(*_AROUND, strict=True)
        left, right = self._chance.choices(kinds, chances)[0]
        script = self._chance.choice(["", "", "", " ^ { 2 }", " _ { 0 }"])
        around = f"{left} {piece} {right}{script}"
        if self._chance.random() < 0.12:
            below = self._chance.choice(["0", "1", "= 0", r"\neq 0", "A", r"\to 0"])
            around = rf"\underbrace {{ {piece} }} _ {{ {below} }}"
        before, _, after = f" {text} ".partition(f" {piece} ")
        return [before, around, after]


def _joined(rows: Sequence[str]) -> str:
    return r" \\ ".join(rows)


def _without_end(tokens: list[str]) -> list[str]:
    """Leave out the full stop or comma that ends a formula."""
    while len(tokens) > 1 and tokens[-1] in (".", ",", ";", r"\,", r"\;", r"\quad", "~"):
        tokens = tokens[:-1]
    return tokens


def _depths(tokens: Tokens) -> Iterator[tuple[int, str, int]]:
    """Yield each place, its token, and how deep it stands in braces, delimiters and environments."""
    depth = 0
    for place, token in enumerate(tokens):
        if token in ("}", "]") or token.startswith((r"\right", r"\end{")):
            depth -= token != r"\rightarrow" and not token.startswith((r"\righth", r"\rightl", r"\rights"))
        yield place, token, depth
        if token in ("{", "[") or (token.startswith((r"\left", r"\begin{")) and not token[5:6].isalpha()):
            depth += 1


def cut(tokens: Tokens, at: frozenset[str]) -> tuple[list[str], list[str]]:
    """Cut a formula before its first relation outside all braces; the second part is empty if it has none."""
    for place, token, depth in _depths(tokens):
        if depth == 0 and token in at:
            return list(tokens[:place]), list(tokens[place:])
    return list(tokens), []


def _pieces(tokens: Tokens) -> list[list[str]]:
    """Return the parts between relations and signs at the outermost level."""
    pieces: list[list[str]] = [[]]
    for _, token, depth in _depths(tokens):
        if depth == 0 and (
            token in RELATIONS or token in BINARIES or token in (",", r"\quad", r"\qquad", "&")
        ):
            pieces.append([])
        else:
            pieces[-1].append(token)
    return [piece for piece in pieces if piece and piece[0] not in ("^", "_", "}", ")")]


def is_free(tokens: Tokens, place: int) -> bool:
    r"""Tell whether a letter stands by itself, not in a word such as `\mathrm { m a x }` or a layout."""
    around = (*tokens[max(place - 1, 0) : place], *tokens[place + 1 : place + 2])
    return not any(token.isalpha() and len(token) == 1 for token in around) and not (
        place > 1
        and tokens[place - 1] == "{"
        and tokens[place - 2].startswith((r"\math", r"\begin{", r"\oper", r"\text"))
    )
