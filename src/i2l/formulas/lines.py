r"""Lines of a worksheet, made up by chance from numbers and letters: equations, fractions, angles, units.

What they say need not be true; they look as what is printed for schools looks.
"""

import random
from collections.abc import Sequence
from typing import Final

from i2l.formulas.compose import cut

_VARIABLES: Final = "xxxyzabntk"
_ANGLES: Final = (r"\theta", r"\alpha", r"\beta", r"\lambda", r"\phi")
_UNITS: Final = "cm m km mm kg g mg s min h L mL N J W V mol Pa"
_POWERED: Final = ("cm", "m", "km", "mm")
_FUNCTIONS: Final = (r"\sin", r"\cos", r"\tan", r"\cot", r"\sec", r"\csc")
_OPERATIONS: Final = ("+", "-", r"\times", r"\div", r"\cdot")
_ALIKE: Final = (r"\cong", r"\sim")
_LIE: Final = (r"\parallel", r"\perp", "=", r"\cong")
_AREAS: Final = (r"\pi r ^ { 2 }", r"\frac { 1 } { 2 } b h", r"\frac { a + b } { 2 } h")
_SINES: Final = (
    "0",
    "1",
    r"\frac { \sqrt { 3 } } { 2 }",
    r"\frac { 1 } { 2 }",
    r"\frac { \sqrt { 2 } } { 2 }",
)
COMPARISONS: Final = ("<", ">", r"\leq", r"\geq")
CURRENCIES: Final = (r"\$", r"\$", r"\$", r"\pounds", r"\yen")
BRACKETS: Final = (("[", "]"), ("[", "]"), ("(", ")"), ("(", ")"), ("|", "|"))
GAPS: Final = (r"\ ", r"\ ", r"\quad", r"\;", r"\,", "~", r"\qquad", "")
ROW_END: Final = r" \\ "


def spelled(words: str) -> str:
    """Write words letter by letter, with ties between them."""
    return " ~ ".join(" ".join(word) for word in words.split())


def roman(words: str) -> str:
    """Write words in upright letters."""
    return rf"\mathrm {{ {spelled(words)} }}"


def rows_of(layout: str, rows: Sequence[str]) -> str:
    """Write rows in an array."""
    return rf"\begin{{array}} {{ {' '.join(layout)} }} {ROW_END.join(map(_begun, rows))} \end{{array}}"


def _begun(row: str) -> str:
    """Put braces around a first cell that begins with a bracket, which would be read as a length."""
    if not row.startswith("["):
        return row
    first, rest = cut(row.split(), frozenset("&"))
    return " ".join(["{", *first, "}", *rest])


class Lines:
    """Makes up lines, and the numbers and letters that they are made of."""

    def __init__(self, chance: random.Random) -> None:
        """Take what they are drawn with."""
        self.chance = chance

    # Numbers and small parts

    def digits(self, most: int = 4) -> str:
        """Draw a whole number of some digits."""
        length = self.chance.randint(1, most)
        return " ".join(str(self.chance.randrange(1 if length == 1 else 10 ** (length - 1), 10**length)))

    def number(self) -> str:
        """Draw a number: whole, seldom with decimals or a comma between its thousands."""
        kind = self.chance.random()
        if kind < 0.65:
            return self.digits(3)
        if kind < 0.9:
            return f"{self.digits(3)} . {self.digits(2)}"
        comma = self.chance.choice([",", "{ , }"])
        return f"{self.digits(2)} {comma} {' '.join(f'{self.chance.randrange(1000):03}')}"

    def signed(self) -> str:
        """Draw a small number, often with a minus."""
        size = self.chance.choice(["0", "1", self.digits(1), self.digits(2)])
        return size if size == "0" or self.chance.random() < 0.65 else f"- {size}"

    def factor(self) -> str:
        """Draw what stands before a letter: nothing, or a small number that is not one."""
        return str(self.chance.choice(["", *"23456789"]))

    def variable(self) -> str:
        """Draw a letter for an unknown, seldom a Greek one."""
        return self.chance.choice(_VARIABLES) if self.chance.random() < 0.9 else self.chance.choice(_ANGLES)

    def fraction(self) -> str:
        """Draw a simple fraction."""
        chance = self.chance
        over = chance.choice([self.digits(1), self.digits(2), self.variable(), self.linear()])
        under = chance.choice(
            [self.digits(1), self.digits(2), self.digits(1), self.variable(), self.linear()]
        )
        return rf"\frac {{ {over} }} {{ {under} }}"

    def term(self, variable: str) -> str:
        """Draw a multiple of a variable, often of a power of it."""
        chance = self.chance
        factor = chance.choice(["", self.factor(), self.factor(), " ".join(str(chance.randrange(10, 99)))])
        if chance.random() < 0.08:
            factor = rf"\frac {{ {self.digits(1)} }} {{ {self.digits(1)} }}"
        power = chance.choice(["", "", "", " ^ { 2 }", " ^ { 2 }", " ^ { 3 }"])
        return f"{factor} {variable}{power}".strip()

    def linear(self, variable: str | None = None) -> str:
        """Draw a sum of a multiple of a variable and a number."""
        x = variable or self.variable()
        return f"{self.factor()} {x} {self.chance.choice('+-')} {self.digits(2)}".strip()

    def polynomial(self, variable: str | None = None) -> str:
        """Draw an elementary expression in one variable."""
        chance = self.chance
        x = variable or self.variable()
        kind = chance.random()
        if kind < 0.55:
            terms = [self.term(x) for _ in range(chance.choice([1, 1, 2, 2, 3]))]
            terms += [self.digits(2)] * (chance.random() < 0.7)
            return chance.choice(["", "", "- "]) + f" {chance.choice('+-')} ".join(terms)
        brackets = f"( {self.linear(x)} )"
        return chance.choice(
            [
                f"{self.factor()} {brackets}",
                f"{brackets} ( {self.linear(x)} )",
                f"{brackets} ^ {{ {chance.choice('23')} }}",
                self.fraction(),
                rf"\sqrt {{ {self.linear(x)} }}",
                rf"\left| {self.linear(x)} \right|",
                f"| {self.linear(x)} |",
                f"{self.digits(1)} ^ {{ {x} }}",
                self.mixed(),
                rf"\frac {{ {self.linear(x)} }} {{ {self.digits(1)} }}",
                self.signed(),
                x,
            ]
        )

    def mixed(self) -> str:
        """Draw a mixed number."""
        under = self.chance.randint(2, 16)
        over = self.chance.randrange(1, under)
        part = rf"\frac {{ {' '.join(str(over))} }} {{ {' '.join(str(under))} }}"
        return f"{self.digits(1)} {part}"

    def unit(self) -> str:
        """Draw a unit in upright letters."""
        chance = self.chance
        name = chance.choice(_UNITS.split())
        if chance.random() < 0.25:
            return rf"\mathrm {{ {spelled(chance.choice(_POWERED))} }} ^ {{ {chance.choice('23')} }}"
        if chance.random() < 0.2:
            return rf"\mathrm {{ {spelled(name)} / {chance.choice('sh')} }}"
        return roman(name)

    # Lines

    def equation(self) -> str:
        """Write an equation or an inequality."""
        chance = self.chance
        x = self.variable()
        left, right = self.polynomial(x), chance.choice([self.signed(), self.polynomial(x)])
        return chance.choice(
            [
                f"{left} = {right}",
                f"{left} = {right}",
                f"{left} {chance.choice(COMPARISONS)} {right}",
                f"{self.signed()} < {self.linear(x)} {chance.choice(COMPARISONS[::2])} {self.digits(2)}",
                f"{chance.choice('fgh')} ( {x} ) = {left}",
                f"y = {left}",
                r"x = \frac { - b \pm \sqrt { b ^ { 2 } - 4 a c } } { 2 a }",
                rf"x _ {{ 1 , 2 }} = \frac {{ {right} \pm \sqrt {{ {self.digits(2)} }} }} {{ 2 }}",
                f"{x} _ {{ 1 }} = {self.signed()} , {chance.choice(GAPS)} {x} _ {{ 2 }} = {self.signed()}",
                rf"\left| {self.linear(x)} \right| {chance.choice(['=', *COMPARISONS])} {self.digits(1)}",
                rf"\log _ {{ {self.digits(1)} }} {chance.choice([x, f'( {left} )'])} = {self.digits(1)}",
            ]
        )

    def arithmetic(self) -> str:
        """Write numbers: fractions, mixed ones, percents, ratios, roots and powers."""
        chance = self.chance
        a, b, c, d = (self.number() for _ in range(4))
        e, f, g = (self.digits(2) for _ in range(3))
        sign, share = chance.choice(_OPERATIONS), chance.choice([roman("of"), r"\times"])
        equals = chance.choice(["", " =", f" = {c}", " = ?", r" = \_ \_"])
        money = chance.choice(CURRENCIES)
        return chance.choice(
            [
                f"{a} {sign} {b}{equals}",
                f"{self.mixed()} {sign} {self.mixed()}{equals}",
                rf"\frac {{ {a} }} {{ {b} }} {sign} \frac {{ {c} }} {{ {d} }}",
                rf"\frac {{ {self.digits(1)} }} {{ {self.digits(1)} }} {sign} {self.mixed()}{equals}",
                rf"{a} \% \ {share} \ {b}{equals}",
                rf"\frac {{ {a} }} {{ {b} }} \times 1 0 0 \% = {c} \%",
                rf"{a} \% = \frac {{ {a} }} {{ 1 0 0 }}",
                f"{self.digits(2)} : {self.digits(2)} = {self.digits(2)} : {chance.choice(['x', e])}",
                f"{money} {a} {chance.choice(['+', '-'])} {money} {b} = {money} {c}",
                rf"\sqrt {{ {self.digits(3)} }} = {self.digits(2)}",
                rf"\sqrt [ 3 ] {{ {self.digits(3)} }}",
                rf"{a} \times 1 0 ^ {{ {self.signed()} }}{equals}",
                rf"( {e} {chance.choice('+-')} {f} ) {sign} {g}{equals}",
                rf"{a} \approx {b}",
                rf"\frac {{ \cancel {{ {e} }} }} {{ \cancel {{ {f} }} }} = {self.digits(1)}",
                rf"\frac {{ {self.digits(1)} \cancel {{ x }} }} {{ \cancel {{ x }} {self.digits(1)} }}",
                rf"{self.digits(1)} ! = {self.digits(3)}",
                rf"0 . \overline {{ {{ {self.digits(2)} }} }} = {self.fraction()}",
            ]
        )

    def geometry(self) -> str:
        """Write angles, triangles, lengths and vectors."""
        chance = self.chance
        points = chance.sample("ABCDEFGHKLMNOPQRSTXYZ", 6)
        one, two = " ".join(points[:3]), " ".join(points[3:])
        pair, other, last = (" ".join(points[place : place + 2]) for place in (0, 2, 4))
        degrees = rf"{self.digits(2)} {chance.choice(['', '. ' + self.digits(1)])} ^ {{ \circ }}"
        degrees = degrees if chance.random() < 0.7 else rf"( {self.linear()} ) ^ {{ \circ }}"
        over = chance.choice([r"\overline", r"\overrightarrow", r"\overleftrightarrow"])
        first, second = (
            f"{{ {{ {ends} }} }}" if over == r"\overline" else f"{{ {ends} }}" for ends in (pair, other)
        )
        small = chance.sample("abcuvwijr", 3)
        arrow = chance.choice([r"\vec", r"\vec", r"\overrightarrow", r"\mathbf"])
        return chance.choice(
            [
                rf"\angle {one} = {degrees}",
                rf"\mathrm {{ m }} \angle {one} = {degrees}",
                rf"\angle {points[0]} + \angle {points[1]} = {degrees}",
                rf"\angle {chance.choice('1234')} {chance.choice(_ALIKE)} \angle {chance.choice('5678')}",
                rf"\triangle {one} {chance.choice(_ALIKE)} \triangle {two}",
                rf"{pair} {chance.choice(_LIE)} {other}",
                rf"{over} {first} {chance.choice(_LIE)} {over} {second}",
                rf"{pair} = {self.number()} \ {self.unit()}",
                rf"\frac {{ {pair} }} {{ {other} }} = \frac {{ {self.digits(2)} }} {{ {self.digits(2)} }}",
                rf"\vec {{ {small[0]} }} + \overrightarrow {{ {other} }} = \overrightarrow {{ {last} }}",
                rf"\overrightarrow {{ {pair} }} = ( {self.signed()} , {self.signed()} )",
                rf"{arrow} {{ {small[0]} }} = {self.column_vector()}",
                rf"{arrow} {{ {small[0]} }} \cdot {arrow} {{ {small[1]} }} = {self.signed()}",
                rf"| {arrow} {{ {small[0]} }} | = \sqrt {{ {self.digits(2)} }}",
                rf"\left| \overrightarrow {{ {pair} }} \right| = {self.digits(1)}",
                rf"{arrow} {{ {small[0]} }} = {self.factor()} \vec {{ i }} - {self.factor()} \vec {{ j }}",
                rf"{arrow} {{ {small[0]} }} = {arrow} {{ {small[1]} }} + t {arrow} {{ {small[2]} }}",
                rf"{points[0]} ( {self.signed()} , {self.signed()} )",
                r"V = \frac { 4 } { 3 } \pi r ^ { 3 }",
                rf"A = {chance.choice(_AREAS)} = {self.number()} {self.unit()}",
                rf"\overset {{ \frown }} {{ {pair} }} = {degrees}",
            ]
        )

    def column_vector(self) -> str:
        """Write a vector as a column of numbers."""
        rows = [self.signed() for _ in range(self.chance.choice([2, 2, 3]))]
        left, right = self.chance.choice(BRACKETS[:4])
        return rf"\left{left} {rows_of(self.chance.choice('crl'), rows)} \right{right}"

    def trigonometry(self) -> str:
        """Write simple trigonometry."""
        chance = self.chance
        f, g = chance.sample(_FUNCTIONS[:4], 2)
        a = chance.choice([r"\theta", r"\alpha", "x", "A", r"\beta", f"{self.digits(1)} x"])
        angle = chance.choice(["C", r"\gamma"])
        given = rf"{self.digits(2)} ^ {{ \circ }}"
        radians = rf"\frac {{ {self.factor()} \pi }} {{ {self.digits(1)} }}"
        return chance.choice(
            [
                rf"{f} {given} = {self.fraction()}",
                rf"{f} ^ {{ 2 }} {a} + {g} ^ {{ 2 }} {a} = 1",
                rf"{f} ( {given} - {a} ) = {g} {a}",
                rf"{f} {radians} = {chance.choice(_SINES)}",
                rf"{f} {a} = \frac {{ {g} {a} }} {{ {chance.choice(_FUNCTIONS)} {a} }}",
                rf"{a} = {f} ^ {{ - 1 }} \left( {self.fraction()} \right)",
                rf"y = {self.factor()} {f} ( {self.factor()} x + {radians} )",
                r"\frac { a } { \sin A } = \frac { b } { \sin B }",
                rf"c ^ {{ 2 }} = a ^ {{ 2 }} + b ^ {{ 2 }} - 2 a b \cos {angle}",
                rf"\lim _ {{ {a} \to 0 }} \frac {{ {f} {a} }} {{ {a} }} = 1",
            ]
        )

    def quantity(self) -> str:
        """Write a quantity with its unit, and often how it was found."""
        chance = self.chance
        name = chance.choice("vatsmFEPWTVIRdhlcp")
        gap = chance.choice([r"\ ", r"\,", "~", "", r"\;"])
        value, per, other = (f"{self.number()} {gap} {self.unit()}" for _ in range(3))
        index = chance.choice(["0", "1", "2", roman("max"), roman("av")])
        return chance.choice(
            [
                f"{name} = {value}",
                f"{name} = {value}",
                rf"{name} = \frac {{ {value} }} {{ {per} }} = {other}",
                rf"{name} = {self.number()} \times {self.number()} = {value}",
                f"{value} = {other}",
                rf"{name} _ {{ {index} }} \approx {value}",
                rf"{self.number()} ^ {{ \circ }} \mathrm {{ {chance.choice('CF')} }}",
            ]
        )

    def line(self) -> str:
        """Write one line of a worksheet."""
        return self.chance.choice(
            [self.equation, self.equation, self.arithmetic, self.geometry, self.trigonometry, self.quantity]
        )()
