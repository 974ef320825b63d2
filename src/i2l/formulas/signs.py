r"""Formulas that show every sign of a vocabulary equally often: alone, and in small surroundings.

In real formulas most signs are rare, and a reader that has met `\succnsim` five times takes it for another
sign, above all where it stands alone or small. Here each token of a vocabulary has its turn in every round:
after a letter, in scripts, fractions, roots and rows of matrices, doubled, with an index, and in a short real
formula where it takes the place of a sign of its class. Accents and alphabets have many letters, delimiters
tall things between them, big operators their limits, and texts words.

`fragment` names the smallest formula in which a token draws its ink: an accent needs a letter below it, a
delimiter another one. A token that canonical formulas never hold has none.
"""

import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Final

from i2l.formulas import commands
from i2l.formulas.commands import COMMANDS, FONT_SWITCHES, MATH_FONTS, SIGNATURES
from i2l.formulas.compose import WORDS, is_free
from i2l.formulas.lexer import FormulaError
from i2l.formulas.normalize import normalize_formula

# What arguments hold, by the letters of `SIGNATURES`; commands that want lengths draw nothing by themselves.
_ARGUMENTS: Final = {"m": "{ a }", "t": "{ a }", "o": "", "*": "", "L": ""}
_FRACTION: Final = r"\frac { a } { b }"
_INSIDE: Final = {  # tokens that draw only inside others
    r"\hline": r"\begin{array} { c } { a } \\ \hline { b } \\ \end{array}",
    r"\not": r"\not =",
}


def fragment(token: str) -> str | None:
    """Give the smallest canonical formula that shows a token; None if it draws nothing of its own."""
    for candidate in _candidates(token):
        try:
            result = normalize_formula(candidate)
        except FormulaError:
            continue
        own = [one for one in result.tokens if one.text == token]
        if own and (own[0].visible or token in MATH_FONTS or token in _INSIDE):
            return result.formula
    return None


def _candidates(token: str) -> Iterator[str]:
    if token in _INSIDE:
        yield _INSIDE[token]
    elif _delimiter(token, r"\left"):
        yield rf"{token} {_FRACTION} \right."
    elif _delimiter(token, r"\right"):
        yield rf"\left. {_FRACTION} {token}"
    elif token.startswith(r"\begin{"):
        end = token.replace("begin", "end", 1)
        yield rf"{token} {{ a }} & {{ b }} \\ {{ c }} & {{ d }} \\ {end}"
    elif token in MATH_FONTS:
        yield rf"{token} {{ R }}"
    elif token in SIGNATURES:
        arguments = [_ARGUMENTS.get(letter) for letter in SIGNATURES[token]]
        if None not in arguments:
            yield " ".join([token, *(argument for argument in arguments if argument)])
    elif token not in FONT_SWITCHES and token not in ("{", "}", "^", "_", "&", "~", r"\\"):
        yield token
        yield f"{token} ("  # \\big wants a delimiter


def _delimiter(token: str, side: str) -> str:
    r"""Return the delimiter after `\left` or `\right`; nothing for another token, such as an arrow."""
    rest = token.removeprefix(side)
    return "" if rest == token or rest[:1].isalpha() else rest


def drawing_tokens(vocabulary: Iterable[str]) -> dict[str, str]:
    """Give the tokens that draw something, each with its fragment."""
    found = {token: fragment(token) for token in vocabulary if not token.startswith("<") or len(token) == 1}
    return {token: formula for token, formula in found.items() if formula}


_LOWER: Final = "abcdefghijklmnopqrstuvwxyz"
_UPPER: Final = _LOWER.upper()
_GREEK: Final = tuple(name for name in commands.LETTERS if name in commands.GREEK)
_NAMES: Final = tuple(" ".join(letters) for letters in commands.OPERATOR_LETTERS.values())
_RELATIONS: Final = ("=", "=", "<", ">", r"\leq", r"\geq", r"\sim", r"\equiv", r"\in", r"\to", r"\approx")
_BINARIES: Final = ("+", "+", "-", "-", r"\cdot", r"\times", r"\pm")
# Several commands write the same words; these are one for each font.
_TEXTS: Final = (r"\text", r"\textbf", r"\textit", r"\textsf", r"\texttt")
_ROWS: Final = ("array", "aligned", "gathered", "matrix", "smallmatrix", "cases")
_BETWEEN_ONLY: Final = ("relation", "arrow", "binary")
_LETTER_LIKE: Final = ("greek", "letter", "dots")
_NAMED: Final = (r"\operatorname", r"\operatorname*")
_MAX_TOKENS: Final = 24  # of a real formula in which a sign takes another's place
_ATTEMPTS: Final = 20
# Alphabets of capitals only.
_OF_CAPITALS: Final = (r"\mathbb", r"\mathcal", r"\mathscr")


def can_be_shown(token: str) -> bool:
    r"""Tell whether a token is worth its turn: it draws, TeX knows it, and no other name draws the same.

    `\mid` differs from `|` by the space around it, and has its turn between letters; `\dotsc` and `\lvert` do
    not differ from `\ldots` and `|` there, and have none.
    """
    if token in _INSIDE or token in _TEXTS or token in _NAMED:
        return True
    if token.startswith(r"\begin{"):
        return token[7:-1] in _ROWS
    command = COMMANDS.get(token)
    if command is None:
        single = len(token) == 1 and token.isalnum()
        delimiter = _delimiter(token, r"\left") or _delimiter(token, r"\right")
        return single or (bool(delimiter) and fragment(token) is not None)
    if command.package == "stmaryrd" or command.same_as or token in ("~", "&"):
        return False
    if command.kind in ("stack", "sized", "rows", "text-accent", "fraction"):
        return command.kind != "fraction" or token != r"\genfrac"
    if command.kind in ("accent", "alphabet", "dots") and not command.sign:
        return False
    if command.glyph and command.kind not in _BETWEEN_ONLY:
        return False
    if command.kind == "other":
        return len(token) == 1
    return fragment(token) is not None


Surrounding = Callable[["SignComposer", str], str]


class SignComposer:
    """Shows the tokens of a vocabulary in turns, with a seed."""

    def __init__(self, vocabulary: Iterable[str], formulas: Iterable[str] = (), *, seed: int) -> None:
        """Take the tokens to show, and canonical formulas in which they take the place of others.

        Raises:
            ValueError: if no token of the vocabulary draws anything.
        """
        self.known = frozenset(vocabulary)
        self.shown = tuple(sorted(token for token in self.known if can_be_shown(token)))
        if not self.shown:
            raise ValueError("no token of the vocabulary draws anything")
        self.chance = random.Random(seed)
        self.plain = tuple(token for token in self.shown if _class_of(token) == "letter")
        self.places: dict[str, list[tuple[Sequence[str], int]]] = {}
        for formula in formulas:
            tokens = formula.split()
            if len(tokens) <= _MAX_TOKENS and self.known.issuperset(tokens):
                for place, token in enumerate(tokens):
                    kind = _class_of(token)
                    if kind and (kind not in ("letter", "digit") or is_free(tokens, place)):
                        self.places.setdefault(kind, []).append((tokens, place))

    def formulas(self) -> Iterator[str]:
        """Yield canonical formulas without end: in each round every token of the vocabulary has its turn."""
        while True:
            round_of_tokens = list(self.shown)
            self.chance.shuffle(round_of_tokens)
            found = [formula for token in round_of_tokens for formula in islice(self.showing(token), 1)]
            if not found:
                return
            yield from found

    def showing(self, token: str) -> Iterator[str]:
        """Yield canonical formulas that show a token, as many as some attempts give."""
        for _ in range(_ATTEMPTS):
            try:
                # every token set off by one space: so written, braces are taken as they are
                formula = normalize_formula(" ".join(self.surrounded(token).split())).formula
            except FormulaError:
                continue
            tokens = formula.split()
            if token in tokens and self.known.issuperset(tokens):
                yield formula

    def surrounded(self, token: str) -> str:
        """Draw a formula in which the token should be seen."""
        chance, kind = self.chance, _class_of(token)
        if kind in self.places and chance.random() < 0.25:
            tokens, place = chance.choice(self.places[kind])
            if kind != "alphabet" or _fits(token, tokens[place + 1 : place + 4]):
                return " ".join([*tokens[:place], token, *tokens[place + 1 :]])
        part = self.part(token)
        command = COMMANDS.get(token)
        if command and command.glyph:  # elsewhere another sign looks the same
            return f"{self.letter()} {part} {self.letter()}"
        ways, weights = zip(*self.surroundings(part), strict=True)
        return str(chance.choices(ways, weights)[0](self, part))

    # What stands around

    def surroundings(self, part: str) -> "Sequence[tuple[Surrounding, float]]":
        """Return what may stand around a part: rows are large, and what has scripts takes no more of them."""
        if r"\begin{" in part:
            return _AROUND_ROWS
        return _SURROUNDINGS[:-3] if any(f" {script} {{" in part for script in "_^") else _SURROUNDINGS

    def letter(self) -> str:
        """Draw a letter or a digit, and seldom a sign that is set as a letter is."""
        kind = self.chance.random()
        if kind < 0.45:
            return self.chance.choice(_LOWER)
        if kind < 0.65:
            return self.chance.choice(_UPPER)
        if kind < 0.8:
            return self.chance.choice(_GREEK)
        if kind < 0.95 or not self.plain:
            return self.chance.choice("0123456789")
        return self.chance.choice(self.plain)

    def small(self) -> str:
        """Draw something small: a letter, one with an index or an exponent, a number, a sum."""
        chance = self.chance
        kind = chance.random()
        if kind < 0.45:
            return self.letter()
        if kind < 0.65:
            return f"{self.letter()} {chance.choice('_^')} {{ {self.letter()} }}"
        if kind < 0.8:
            return " ".join(str(chance.randrange(2, 1000)))
        return f"{self.letter()} {chance.choice(_BINARIES)} {self.letter()}"

    def tall(self) -> str:
        """Draw something that stretches a delimiter."""
        a, b, c, d = (self.small() for _ in range(4))
        return self.chance.choice(
            [
                rf"\frac {{ {a} }} {{ {b} }}",
                rf"\frac {{ {a} }} {{ {b} }}",
                rf"\frac {{ {a} }} {{ {b} }} {self.chance.choice(_BINARIES)} {c}",
                rf"{c} - \frac {{ {a} }} {{ {b} }}",
                rf"\sum _ {{ {self.letter()} }} {a}",
                rf"\begin{{matrix}} {a} & {b} \\ {c} & {d} \end{{matrix}}",
                rf"\begin{{matrix}} {a} \\ {b} \end{{matrix}}",
                rf"{self.letter()} ^ {{ {self.letter()} }}",
            ]
        )

    def words(self) -> str:
        """Draw words, seldom with signs among them, or a few letters that are no word."""
        chance = self.chance
        if chance.random() < 0.3:
            word = "".join(chance.choice(_LOWER) for _ in range(chance.randint(2, 7)))
            return " ".join(word.capitalize() if chance.random() < 0.3 else word)
        text = chance.choice(WORDS)
        text = text.capitalize() if chance.random() < 0.3 else text
        return " ~ ".join(" ".join(word) for word in text.split())

    # The token with what it needs

    def part(self, token: str) -> str:
        """Draw the token with its arguments, its partner or its limits."""
        command = COMMANDS.get(token)
        if token == r"\not":
            return rf"\not {self.chance.choice(_RELATIONS[5:-2])}"
        if token == r"\hline" or token.startswith(r"\begin{"):
            return self.rows(token)
        if token in MATH_FONTS or token in _NAMED or token in _TEXTS:
            return self.lettered(token)
        if command is None:
            return self.stretched(token) if token.startswith("\\") else token
        if command.kind == "operator" or token in commands.BIG_OPERATORS:
            return self.limited(token)
        if command.kind == "sized":
            return self.sized(token)
        if command.kind == "text-accent" or token in ("'", '"', "`", "@"):
            mark = f"{token} {self.chance.choice('aeouhdt')}" if command.kind == "text-accent" else token
            return rf"\text {{ {self.words()} {mark} {self.words()} }}"
        if command.atom in ("open", "close"):
            return self.bracketed(token)
        return self.with_arguments(token) if token in SIGNATURES or command.rows else token

    def with_arguments(self, token: str) -> str:
        """Fill the arguments of a command."""
        chance, kind = self.chance, COMMANDS[token].kind
        if kind == "accent" and token in commands.NARROW_ACCENTS:
            one = chance.choice([self.letter(), self.letter(), chance.choice(_UPPER), r"\imath", r"\ell"])
            font = chance.choice([r"\mathbf", r"\mathcal"])
            return (
                rf"{token} {{ {font} {{ {chance.choice(_UPPER)} }} }}"
                if chance.random() < 0.1
                else (rf"{token} {{ {one} }}")
            )
        if kind in ("accent", "line", "frame"):
            wide = " ".join(self.letter() for _ in range(chance.choice([1, 2, 2, 3])))
            inside = chance.choice([wide, wide, self.small(), f"{self.small()} {chance.choice(_BINARIES)} x"])
            said = rf" {'_' if 'under' in token else '^'} {{ {self.small()} }}"
            inside = f"{{ {inside} }}" if kind == "line" else inside
            return rf"{token} {{ {inside} }}{said if 'brace' in token and chance.random() < 0.6 else ''}"
        if kind == "stack":
            base = chance.choice(
                _RELATIONS if token == r"\stackrel" else [self.letter(), r"\sum", "=", "A B"]
            )
            return rf"{token} {{ {self.small()} }} {{ {base} }}"
        if COMMANDS[token].rows:
            rows = r" \\ ".join(self.small() for _ in range(chance.choice([2, 2, 3])))
            operator = chance.choice([r"\sum", r"\prod", r"\bigcup"])
            return rf"{operator} _ {{ {token} {{ {rows} }} }} {self.small()}"
        given = [token]
        for letter in SIGNATURES[token]:
            if letter in "mt":
                given.append(f"{{ {self.small()} }}")
            elif letter == "o" and chance.random() < 0.3:
                given.append(f"[ {self.letter()} ]")
        formula = " ".join(given)
        return f"{self.letter()} {formula} {self.letter()}" if kind == "long-arrow" else formula

    def lettered(self, token: str) -> str:
        """Write letters in an alphabet, the name of an operator, or words."""
        chance = self.chance
        if token in _NAMED:
            limit = rf" _ {{ {self.small()} }}" if token.endswith("*") and chance.random() < 0.7 else ""
            name = chance.choice(_NAMES) if chance.random() < 0.7 else " ".join(chance.sample(_LOWER, 3))
            return rf"{token} {{ {name} }}{limit}"
        if token in _TEXTS:
            ending = chance.choice([" , ~", " :", " .", " ~", "", ""])
            return rf"{token} {{ {self.words()} ~ {self.words()}{ending} }}"
        if token in _OF_CAPITALS:
            return rf"{token} {{ {' '.join(chance.choices(_UPPER, k=chance.choice([1, 1, 1, 2])))} }}"
        if token == r"\boldsymbol":
            bold = chance.choice([*_GREEK, *_LOWER, r"\nabla", r"\ell", "0"])
            return rf"{token} {{ {bold} }}"
        alone = token != r"\mathit"  # a single letter is italic anyway
        if alone and chance.random() < 0.6:
            return rf"{token} {{ {chance.choice(_UPPER + _LOWER + '0123456789')} }}"
        return rf"{token} {{ {self.words()} }}"

    def stretched(self, token: str) -> str:
        """Put a stretched delimiter and another one around something tall."""
        chance = self.chance
        opens = bool(_delimiter(token, r"\left"))
        own = _delimiter(token, r"\left" if opens else r"\right")
        partners = [pair[opens] for pair in commands.FENCES if pair[not opens] == own]
        partners = [other for other in partners if (r"\right" if opens else r"\left") + other in self.known]
        other = chance.choice(partners) if partners and chance.random() < 0.6 else "."
        if chance.random() < 0.1:
            other = chance.choice("([|)]")
        left, right = (own, other) if opens else (other, own)
        middle = rf" \middle | {self.small()}" if r"\middle" in self.known and chance.random() < 0.05 else ""
        script = rf" {chance.choice('_^')} {{ {self.letter()} }}" if chance.random() < 0.2 else ""
        return rf"\left{left} {self.tall()}{middle} \right{right}{script}"

    def sized(self, token: str) -> str:
        r"""Put brackets in a size around something: `\bigl ( x \bigr )`."""
        left, right = self.chance.choice(commands.FENCES[:5])
        if token[-1] in "lr":
            return rf"{token[:-1]}l {left} {self.small()} {token[:-1]}r {right}"
        sign = self.chance.choice(["|", "/", r"\|"])
        return (
            rf"{token} {left} {self.small()} {token} {right}"
            if self.chance.random() < 0.6
            else (rf"{self.letter()} {token} {sign} {self.letter()}")
        )

    def bracketed(self, token: str) -> str:
        """Write a bracket alone, or with its partner around something small."""
        pairs = [pair for pair in commands.FENCES if token in pair]
        if not pairs or self.chance.random() < 0.35:
            return token
        inside = f"{self.small()} {self.chance.choice([',', '|', '+'])} {self.small()}"
        return f"{pairs[0][0]} {self.chance.choice([self.small(), inside])} {pairs[0][1]}"

    def limited(self, token: str) -> str:
        """Write a big operator with limits or without, and with something behind it."""
        chance = self.chance
        if chance.random() < 0.3:
            return token
        start = chance.choice([f"{self.letter()} = {self.letter()}", self.letter(), self.small()])
        end = chance.choice([self.letter(), r"\infty", "n"])
        lower, upper = f" _ {{ {start} }}", f" ^ {{ {end} }}"
        limits = chance.choice([lower, lower + upper, lower + upper, upper])
        return f"{token}{limits} {chance.choice(['', self.small(), self.tall()])}"

    def rows(self, token: str) -> str:
        """Write rows of small things in an environment, or with lines between them."""
        chance = self.chance
        name = token[7:-1] if token.startswith(r"\begin{") else "array"
        columns = {"aligned": 2, "gathered": 1, "cases": 2}.get(name, chance.randint(1, 4))
        rows = []
        for _ in range(chance.choice([1, 2, 2, 3, 3, 4]) + (token == r"\hline")):
            cells = [self.small() for _ in range(columns)]
            if name == "aligned":
                cells[1] = f"{{ }} {chance.choice(_RELATIONS)} {cells[1]}"
            rows.append(" & ".join(cells))
        line = chance.randrange(1, len(rows)) if token == r"\hline" else 0
        body = " ".join(
            ("" if number == 0 else r"\\ \hline " if number == line else r"\\ ") + row
            for number, row in enumerate(rows)
        )
        layout = (
            rf" {{ {' '.join(chance.choice('lcr') for _ in range(columns))} }}" if name == "array" else ""
        )
        formula = rf"\begin{{{name}}}{layout} {body} \end{{{name}}}"
        if name in ("array", "matrix") and chance.random() < 0.6:
            left, right = chance.choice([*commands.FENCES[:3], ("|", "|"), (r"\{", ".")])
            return rf"\left{left} {formula} \right{right}"
        return formula


def _class_of(token: str) -> str:
    """Return the class of signs that a token may take the place of; nothing where it takes none."""
    if len(token) == 1 and token.isalnum():
        return "digit" if token.isdigit() else "letter"
    command = COMMANDS.get(token)
    if command is None or command.glyph:
        return ""
    if command.kind in _LETTER_LIKE and command.sign:
        return "letter"
    if command.kind in ("relation", "arrow"):
        return "relation"
    if command.kind == "accent":
        return "narrow accent" if token in commands.NARROW_ACCENT_SIGNS else "wide accent"
    if command.kind in ("binary", "operator", "alphabet", "long-arrow", "binomial"):
        return command.kind
    return ""


def _fits(alphabet: str, argument: Sequence[str]) -> bool:
    """Tell whether an alphabet may take the place of another before these tokens."""
    if len(argument) < 3 or argument[0] != "{":
        return False
    single = argument[2] == "}"  # which is italic anyway
    return (
        single and argument[1].isupper() if alphabet in _OF_CAPITALS else alphabet != r"\mathit" or not single
    )


def _alone(composer: SignComposer, part: str) -> str:
    del composer
    return part


def _rows_around(composer: SignComposer, part: str) -> str:
    chance = composer.chance
    cells = [composer.small() for _ in range(chance.choice([2, 3, 4]))]
    cells[chance.randrange(len(cells))] = part
    half = (len(cells) + 1) // 2
    rows = [cells[:half], cells[half:] + [composer.letter()] * (len(cells) % 2)]
    body = r" \\ ".join(" & ".join(f"{{ {cell} }}" for cell in row) for row in rows)
    formula = rf"\begin{{matrix}} {body} \end{{matrix}}"
    return rf"\left( {formula} \right)" if chance.random() < 0.5 else formula


# The last three give the sign scripts of its own.
_SURROUNDINGS: Final[tuple[tuple[Surrounding, float], ...]] = (
    (_alone, 5),
    (lambda one, part: f"{one.letter()} {part}", 2.5),
    (lambda one, part: f"{part} {one.letter()}", 1.5),
    (lambda one, part: f"{one.letter()} {part} {one.letter()}", 3),
    (lambda one, part: f"{one.small()} {part} {one.small()}", 1.5),
    (lambda one, part: f"{one.letter()} _ {{ {part} }}", 2),
    (lambda one, part: f"{one.letter()} ^ {{ {part} }}", 2),
    (lambda one, part: f"{one.letter()} _ {{ {one.letter()} {part} }}", 0.7),
    (lambda one, part: f"{one.letter()} ^ {{ {part} {one.letter()} }}", 0.7),
    (lambda one, part: f"{one.letter()} _ {{ {part} }} ^ {{ {one.letter()} }}", 0.7),
    (lambda one, part: rf"\frac {{ {part} }} {{ {one.small()} }}", 1.2),
    (lambda one, part: rf"\frac {{ {one.small()} }} {{ {part} }}", 1.2),
    (lambda one, part: rf"\frac {{ {one.letter()} {part} {one.letter()} }} {{ {one.small()} }}", 0.6),
    (lambda one, part: f"{part} {part}", 2),
    (lambda one, part: f"{part} {one.letter()} {part}", 0.5),
    (lambda one, part: rf"\sqrt {{ {part} }}", 0.7),
    (lambda one, part: rf"\sqrt {{ {one.letter()} {part} {one.letter()} }}", 0.5),
    (lambda one, part: f"( {part} )", 0.7),
    (lambda one, part: f"( {one.letter()} {part} {one.letter()} )", 0.7),
    (lambda one, part: f"{one.letter()} ( {part} , {one.letter()} )", 0.5),
    (lambda one, part: f"{one.small()} {one.chance.choice(_RELATIONS)} {part}", 1),
    (lambda one, part: f"{part} {one.chance.choice(_RELATIONS)} {one.small()}", 1),
    (lambda one, part: f"{one.small()} {one.chance.choice(_BINARIES)} {part} {one.letter()}", 1),
    (lambda one, part: f"{part} , {one.letter()}", 0.5),
    (lambda one, part: f"{part} {one.chance.choice(one.plain or _GREEK)}", 1),
    (_rows_around, 1.2),
    (lambda one, part: f"{part} _ {{ {one.small()} }}", 1.5),
    (lambda one, part: f"{part} ^ {{ {one.small()} }}", 1.2),
    (lambda one, part: f"{part} _ {{ {one.letter()} }} ^ {{ {one.letter()} }}", 0.7),
)
_AROUND_ROWS: Final[tuple[tuple[Surrounding, float], ...]] = (
    (_alone, 4),
    (lambda one, part: f"{one.letter()} = {part}", 3),
    (lambda one, part: f"{part} {one.letter()}", 1),
    (lambda one, part: f"{one.small()} {one.chance.choice(_RELATIONS)} {part}", 2),
    (lambda one, part: f"{part} {one.chance.choice(_RELATIONS)} {one.small()}", 2),
)
