r"""Formulas as schoolbooks and worksheets print them, and arrays as papers have them, drawn by chance.

Lists of formulas come from papers and an encyclopedia. What people photograph is often something else: sums
under each other, long division, functions by cases, systems after a brace, items with their number before
them, angles, percents, units and boxes around results. These are made up here from numbers and letters. Some
kinds are of papers, and rare in composed displays all the same: problems of optimisation, long chains of
arrows, diagrams, and arrays in text style from real formulas, one in another too.

What is written on boards and in exercise books is different again: determinants and matrices of small
numbers, vectors by their coordinates, ratios, derivatives with primes, limits, integrals between bounds,
means with a bar, steps of a proof. `BoardComposer` makes these up. The same seed gives the same formulas.
"""

import random
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from i2l.formulas.compose import RELATIONS, Composer, cut
from i2l.formulas.lines import (
    BRACKETS,
    COMPARISONS,
    CURRENCIES,
    GAPS,
    ROW_END,
    Lines,
    roman,
    rows_of,
    spelled,
)

_BELOW: Final = ("<", r"\leq")
_STEPS: Final = (r"\sim", r"\to", "+", "-", "=", r"\Rightarrow")
_MATRIX_POWERS: Final = ("T", "- 1", r"\top", "2")
_CONDITIONS: Final = ("if", "if", "for", "when", "where", "otherwise", "else")
# Of boards.
_CAPITALS: Final = "ABCDEFGHKLMNPQRSTUVXYZ"
_BOARD_FENCES: Final = (("(", ")"), ("(", ")"), ("[", "]"), ("[", "]"), ("|", "|"), ("|", "|"))
_FUNCTIONS: Final = (r"\sin", r"\cos", r"\tan", r"\ln", r"\log")
_JOINTS: Final = ("", "+", "-", r"\cdot", "=")
_FACTORS: Final = (r"\lambda", "k", "2", "3")
_PROOF_STEPS: Final = (r"\Rightarrow", r"\therefore", r"\because", r"\Leftrightarrow")
_COMPARISONS: Final = ("<", ">", "=", r"\leq", r"\geq")
_BOUNDS: Final = (("0", "1"), ("a", "b"), ("0", r"\pi"), ("1", "e"), ("- 1", "1"), ("0", r"\infty"))
_GOALS: Final = ("0", "1", "2", "3", r"\infty", "a", "0 ^ { + }", r"- \infty", r"\frac { 1 } { 2 }")
_UNDER: Final = ("n !", "n ^ { 2 }", "2 ^ { n }", "n")
_POWERS: Final = ("2", "3", "n", "- 1")


class SchoolComposer:
    """Makes formulas up, with a seed; arrays of papers are cut from a list of canonical formulas."""

    def __init__(self, formulas: Sequence[str], *, seed: int) -> None:
        """Take canonical formulas: tokens joined by single spaces.

        Raises:
            ValueError: if there are none.
        """
        self.composer = Composer(formulas, seed=seed)
        self.chance = self.composer.chance
        self.lines = Lines(self.chance)

    def formulas(self) -> Iterator[str]:
        """Yield formulas without end. Some do not parse where a real one was cut: normalise, and go on."""
        makers, weights = zip(*_KINDS, strict=True)
        while True:
            # every token set off by one space: so written, braces are taken as they are
            yield " ".join(self.chance.choices(makers, weights)[0](self).split())

    def condition(self, x: str) -> str:
        """Draw where a case holds."""
        chance = self.chance
        low, high = self.lines.signed(), self.lines.signed()
        said = chance.choice(
            [
                f"{x} {chance.choice(COMPARISONS)} {low}",
                f"{x} {chance.choice(COMPARISONS)} {low}",
                f"{low} {chance.choice(_BELOW)} {x} {chance.choice(_BELOW)} {high}",
                f"{x} = {low}",
                rf"{x} \neq {low}",
                rf"{x} \in [ {low} , {high} )",
            ]
        )
        word = chance.choice(_CONDITIONS)
        if chance.random() < 0.5:
            return said
        return roman(word) if word in ("otherwise", "else") else rf"\mathrm {{ {spelled(word)} ~ }} {said}"

    # Numbers under each other

    def column_sum(self) -> str:
        """Write a sum, difference or product of numbers under each other, with its line."""
        chance = self.chance
        sign = chance.choice(["+", "+", "+", "-", "-", r"\times"])
        count = chance.choice([2, 2, 3, 4]) if sign == "+" else 2
        places = chance.choice([0, 0, 0, 1, 2, 2])
        length = chance.randint(2, 5)
        values = [chance.randrange(10 ** (length - chance.choice([0, 0, 1]))) + 1 for _ in range(count)]
        values = sorted(values, reverse=True) if sign == "-" or chance.random() < 0.5 else values
        result = {"+": sum(values), "-": values[0] - values[-1]}.get(sign, values[0] * values[-1])
        currency = f"{chance.choice(CURRENCIES)} " if chance.random() < 0.25 else ""

        def written(value: int, places: int = places) -> str:
            text = f"{value / 10**places:.{places}f}" if places else str(value)
            return currency + " ".join(text)

        total = written(result, places * 2 if sign == r"\times" else places)
        total = chance.choice([total, total, "", "", "?"])
        lines = [written(value) for value in values]
        columns = chance.random() < 0.3
        gap = chance.choice([r"\ ", r"\ ", r"\,", "", r"\;", r"\quad"])
        signs = [
            sign if number and (number == count - 1 or chance.random() < 0.3) else ""
            for number in range(count)
        ]
        rows = [
            f"{one} & {line}" if columns else f"{one} {gap if one else ''} {line}"
            for one, line in zip(signs, lines, strict=True)
        ]
        if chance.random() < 0.15 and not columns:
            rows[-1] = rf"\underline {{ {{ {rows[-1]} }} }}"
            return rows_of("r", [*rows, total] if total else rows)
        bottom = rf"\\ \hline {'& ' if columns and total else ''}{total}"
        return rows_of("rr" if columns else "r", [*rows[:-1], f"{rows[-1]} {bottom}"])

    def long_division(self) -> str:
        """Write a long division, often with its quotient above, seldom with a step below."""
        chance = self.chance
        divisor, quotient = (
            chance.randrange(2, chance.choice([10, 10, 100])),
            chance.randrange(2, 10 ** chance.randint(1, 4)),
        )
        value = divisor * quotient + chance.choice([0, 0, chance.randrange(divisor)])
        by, dividend = " ".join(str(divisor)), " ".join(str(value))
        if chance.random() < 0.2:
            by, dividend = self.lines.number(), self.lines.number()
        inner = rf"\overline {{ {{ ) {dividend} }} }}"
        gap = chance.choice(["", "", r"\,"])
        line = f"{by} {gap} {inner}"
        kind = chance.random()
        above = " ".join(str(quotient))
        if kind < 0.5:
            return line
        if kind < 0.7:
            return rows_of("r", [above, line])
        if kind < 0.85:
            first = " ".join(str(divisor * int(str(quotient)[0])))
            step = chance.choice(
                [
                    first,
                    f"- {first}",
                    rf"\underline {{ {{ - {first} }} }}",
                    rf"\underline {{ {{ {first} }} }}",
                ]
            )
            return rows_of("r", [above, line, step, chance.choice(["0", self.lines.digits(2)])])
        rest = chance.choice(
            ["", rf" \ \mathrm {{ R }} \ {self.lines.digits(1)}", rf" \ldots {self.lines.digits(1)}"]
        )
        return rf"{dividend} \div {by} = {above}{rest}"

    # After a brace

    def cases(self) -> str:
        """Write a function by cases with elementary values and conditions."""
        chance = self.chance
        x = self.lines.variable()
        head = chance.choice(
            [f"f ( {x} ) =", f"{chance.choice('fghuFy')} ( {x} ) =", f"| {x} | =", "y =", ""]
        )
        layout = chance.choice(["ll", "ll", "ll", "l", "rl", "lr", "cc", "cl"])
        comma = chance.choice([" ,", " ,", ""])
        rows = []
        for _ in range(chance.choice([2, 2, 2, 3, 3, 4])):
            middle = " & " if len(layout) == 2 else chance.choice([r" \quad ", r" \ ", r" \ "])
            rows.append(f"{self.lines.polynomial(x)}{comma}{middle}{self.condition(x)}")
        if len(layout) == 2 and chance.random() < 0.15:
            return rf"{head} \begin{{cases}} {ROW_END.join(rows)} \end{{cases}}"
        ending = chance.choice(["", "", " ."])
        return rf"{head} \left\{{ {rows_of(layout, rows)} \right.{ending}".strip()

    def system(self) -> str:
        """Write equations or inequalities after a brace, or without one."""
        chance = self.chance
        names = chance.choice(["x y", "x y", "x y z", "a b c", "x _ { 1 } x _ { 2 } x _ { 3 }", "p q"])
        unknowns = names.split(" x _ ") if "_" in names else names.split()
        unknowns = [f"x _ {one}" if one.startswith("{") else one for one in unknowns]
        layout = chance.choice(["l", "l", "l", "r", "rcl", "rl", "columns", "c"])
        relation = chance.choice(["=", "=", "=", *COMPARISONS])
        rows = []
        for _ in range(chance.choice([2, 2, 3, len(unknowns)])):
            cells = []
            for number, unknown in enumerate(unknowns):
                sign = chance.choice(["+", "-"]) if number else chance.choice(["", "", "-"])
                cells += [sign, f"{self.lines.factor()} {unknown}".strip()]
            right = self.lines.signed()
            row = " ".join(filter(None, cells))
            rows.append(
                {
                    "columns": " & ".join([f"{cells[0]} {cells[1]}".strip(), *cells[2:], relation, right]),
                    "rcl": f"{row} & {relation} & {right}",
                    "rl": f"{row} & {relation} {right}",
                }.get(layout, f"{row} {relation} {right}")
            )
        if layout == "columns":
            layout = "r" + "cr" * (len(unknowns) - 1) + "cr"
        body = rows_of(layout, rows)
        return rf"\left\{{ {body} \right." if chance.random() < 0.8 else body

    # Lines

    def line(self) -> str:
        """Write one line of a worksheet."""
        return self.lines.line()

    def item(self) -> str:
        """Write a line with the number or the letter of its item before it."""
        chance = self.chance
        letter, number = chance.choice("abcdefghi"), " ".join(str(chance.randint(1, 40)))
        label = chance.choice(
            [
                rf"\mathrm {{ {letter} ) }}",
                rf"\mathrm {{ ( {letter} ) }}",
                f"( {letter} )",
                f"{letter} )",
                f"( {number} )",
                f"{number} .",
                f"{number} .",
                f"{number} )",
                rf"\mathbf {{ {number} . }}",
                rf"\mathrm {{ {chance.choice(['i', 'i i', 'i i i', 'i v'])} ) }}",
                rf"\mathrm {{ Q {number} . }}",
                r"\therefore",
                r"\because",
                r"\Rightarrow",
                r"\bullet",
            ]
        )
        asked = chance.choice([self.lines.line, self.lines.line, self.system, self.cases])()
        return f"{label} {chance.choice(GAPS)} {asked}"

    def marked(self) -> str:
        """Write a line that ends in a result in a frame, or the steps of a solution under each other."""
        chance = self.chance
        if chance.random() < 0.45:
            return chance.choice(
                [
                    rf"\boxed {{ {self.lines.line()} }}",
                    rf"{self.lines.variable()} = \boxed {{ {self.lines.signed()} }}",
                    rf"\therefore \ {self.lines.line()}",
                    rf"{self.lines.line()} {chance.choice(GAPS)} \checkmark",
                    rf"{self.lines.digits(2)} + \boxed {{ \ }} = {self.lines.digits(2)}",
                    rf"{self.lines.digits(2)} \bigcirc {self.lines.digits(2)}",
                ]
            )
        x = self.lines.variable()
        layout = chance.choice(["rcl", "rl", "rl", "l", "r", "aligned"])
        rows: list[str] = []
        for _ in range(chance.choice([2, 3, 3, 4, 5])):
            left, right = (
                self.lines.polynomial(x),
                chance.choice([self.lines.signed(), self.lines.polynomial(x)]),
            )
            left = "" if rows and chance.random() < 0.4 and layout != "l" else left
            rows.append(
                {
                    "rcl": f"{left} & = & {right}",
                    "rl": f"{left} & = {right}",
                    "aligned": f"{left} & {{ }} = {right}",
                }.get(layout, f"{left} = {right}")
            )
        if layout == "aligned":
            return rf"\begin{{aligned}} {ROW_END.join(rows)} \end{{aligned}}"
        return rows_of(layout, rows)

    # Arrays and arrows of papers

    def matrix(self, most: int = 4) -> str:
        """Write a matrix whose columns stand left, right or centred, seldom with a line in it."""
        chance = self.chance
        count, columns = chance.randint(1, most), chance.randint(1, most)
        layout = chance.choice(["c", "r", "l", "r"]) * columns
        if chance.random() < 0.2:
            layout = "".join(chance.choice("lcr") for _ in range(columns))
        if columns > 2 and chance.random() < 0.2:
            layout = f"{layout[:-1]}|{layout[-1]}"
        entry = chance.choice(
            [self.lines.signed, self.lines.signed, self.composer.entry, self.lines.fraction]
        )
        rows = [" & ".join(entry() for _ in range(columns)) for _ in range(count + (count == columns == 1))]
        left, right = chance.choice(BRACKETS)
        return rf"\left{left} {rows_of(layout, rows)} \right{right}"

    def matrices(self) -> str:
        """Write matrices in a line, with steps of elimination between them now and then."""
        chance = self.chance
        name = chance.choice("ABCMPTX")
        step = rf"R _ {{ 2 }} {chance.choice(['-', '+'])} {self.lines.digits(1)} R _ {{ 1 }}"
        return chance.choice(
            [
                f"{name} = {self.matrix()}",
                f"{self.matrix(3)} {self.matrix(3)} = {self.matrix(3)}",
                rf"{self.matrix()} \xrightarrow {{ {step} }} {self.matrix()}",
                rf"{self.matrix()} {chance.choice(_STEPS)} {self.matrix()}",
                rf"\det {self.matrix(3)} = {self.lines.signed()}",
                rf"{name} ^ {{ - 1 }} = \frac {{ 1 }} {{ {self.lines.digits(2)} }} {self.matrix(3)}",
                rf"{self.matrix(3)} ^ {{ {chance.choice(_MATRIX_POWERS)} }}",
                rf"{name} = {self.lines.digits(1)} {self.matrix(3)} {chance.choice('+-')} {self.matrix(3)}",
            ]
        )

    def optimisation(self) -> str:
        """Write a problem of optimisation: words in the left column, constraints in an array of their own."""
        chance = self.chance
        goal = chance.choice(
            ["Minimise", "Minimize", "Maximise", "Maximize", "minimise", "maximize", "min", "max"]
        )
        under = rf" _ {{ {self.lines.variable()} }}" if chance.random() < 0.3 else ""
        bound = chance.choice(["subject to", "subject to", "s.t.", "such that", "Subject to"])
        constraints = [self.constraint() for _ in range(chance.choice([1, 2, 2, 3, 4]))]
        objective = chance.choice(
            [
                r"c ^ { T } x",
                self.lines.polynomial(),
                rf"\sum _ {{ i = 1 }} ^ {{ n }} {chance.choice('cwf')} _ {{ i }} x _ {{ i }}",
                " ".join(self.composer.neighbours(1, max_tokens=25)[0]),
                rf"z = {self.lines.factor()} x + {self.lines.factor()} y",
            ]
        )
        first = f"{roman(goal)}{under}"
        kind = chance.random()
        if kind < 0.45:
            inner = rows_of("l", constraints)
            held = rf"\left\{{ {inner} \right." if chance.random() < 0.8 else inner
            return rows_of(
                chance.choice(["rl", "rl", "ll"]), [f"{first} & {objective}", f"{roman(bound)} & {held}"]
            )
        rows = [f"{first} & {objective}", f"{roman(bound)} & {constraints[0]}"]
        rows += [f"& {one}" for one in constraints[1:]]
        if kind < 0.85:
            return rows_of(chance.choice(["rl", "rl", "ll", "lr"]), rows)
        rows = [row.replace("& ", "& { } ", 1) for row in rows]
        return rf"\begin{{aligned}} {ROW_END.join(rows)} \end{{aligned}}"

    def constraint(self) -> str:
        """Draw a constraint, seldom with the range of its index."""
        chance = self.chance
        sign = chance.choice(["=", *COMPARISONS[2:], *COMPARISONS[2:]])
        letter = chance.choice("ijk")
        over = rf", \ {letter} = 1 , \ldots , {chance.choice('nmNK')}" if chance.random() < 0.4 else ""
        return chance.choice(
            [
                f"{self.lines.linear()} {sign} {self.lines.digits(2)}",
                f"{self.lines.factor()} x + {self.lines.factor()} y {sign} {self.lines.digits(2)}",
                f"{chance.choice('ghx')} _ {{ {letter} }} {chance.choice(['', '( x )'])} {sign} 0 {over}",
                rf"\sum _ {{ {letter} }} x _ {{ {letter} }} {sign} {chance.choice(['1', 'b', 'K'])}",
                f"A x {sign} b",
                r"x , y \geq 0",
                " ".join(self.composer.neighbours(1, max_tokens=20)[0]),
            ]
        )

    def chain(self) -> str:
        """Write a long chain of arrows with something above them, or a diagram of two rows."""
        chance = self.chance
        name, over = chance.choice("ABCEFGHKMPSVX"), chance.choice(["f", "g", "d", r"\partial", r"\phi", "h"])
        arrow = chance.choice(
            [r"\xrightarrow"] * 4 + [r"\xleftarrow", r"\stackrel", r"\xmapsto", r"\longrightarrow", r"\to"]
        )
        index = chance.choice(["_", "_", "^"])

        def step(number: int) -> str:
            said = chance.choice(
                [f"{over} _ {{ {number} }}"] * 6 + [over, rf"{over} ^ {{ \prime }}", self.lines.digits(1)]
            )
            if arrow == r"\stackrel":
                return rf"\stackrel {{ {said} }} {{ \to }}"
            return rf"{arrow} {{ {said} }}" if arrow.startswith(r"\x") else arrow

        if chance.random() < 0.25:
            a, b, c, d = chance.sample("ABCDEFGHMNXY", 4)
            down = chance.choice([r"\downarrow", r"\downarrow", rf"\downarrow {over}", rf"{over} \downarrow"])
            rows = [f"{a} & {step(1)} & {b}", f"{down} & & {down}", f"{c} & {step(2)} & {d}"]
            return rows_of("ccc", rows)
        first = chance.randrange(2)
        objects = [f"{name} {index} {{ {first + number} }}" for number in range(chance.randint(2, 7))]
        if chance.random() < 0.3:
            objects = [*"ABCDEFGH"[: len(objects)]]
        if chance.random() < 0.3:
            objects = ["0", *objects, "0"]
        if chance.random() < 0.25:
            objects.append(r"\cdots")
        written = objects[0]
        for number, one in enumerate(objects[1:]):
            written += f" {step(number)} {one}"
        return written

    def real_rows(self) -> str:
        """Write real formulas in an array in text style, cut before their relation; often a single one."""
        chance = self.chance
        layout = chance.choice(["rl", "rl", "rl", "rcl", "rcl", "lcl", "ll", "l", "r", "c"])
        count = 1 if chance.random() < 0.45 else chance.choice([2, 2, 3, 4, 5])
        group = chance.choice(["", "", "{ } "])
        rows: list[str] = []
        for formula in self.composer.neighbours(count, max_tokens=70):
            left, right = cut(formula, RELATIONS)
            if rows and chance.random() < 0.3 and right:
                left = []
            if len(layout) == 1 or not right:
                cells = [" ".join(formula)]
            elif len(layout) == 3:
                cells = [" ".join(left), right[0], " ".join(right[1:])]
            else:
                cells = [" ".join(left), f"{group}{' '.join(right)}"]
            cells[-1] += self.composer.ending()
            rows.append(" & ".join([*cells, *[""] * (len(layout) - len(cells))]))
        body = rows_of(layout, rows)
        left_brace = count > 1 and layout in ("l", "ll", "rl") and chance.random() < 0.3
        return rf"\left\{{ {body} \right." if left_brace else body

    def nested(self) -> str:
        """Write arrays in an array: systems side by side, blocks of a matrix, columns of matrices."""
        chance = self.chance
        inside = chance.choice([self.system, self.cases, lambda: self.matrix(3), self.real_rows])
        rows, columns = chance.choice([(1, 2), (2, 1), (2, 2), (2, 1), (3, 1), (1, 3)])
        cells = [
            [inside() if chance.random() < 0.75 else self.lines.line() for _ in range(columns)]
            for _ in range(rows)
        ]
        layout = chance.choice("lcr") * columns
        body = rows_of(layout, [" & ".join(row) for row in cells])
        left, right = chance.choice([*BRACKETS, ("", ""), ("", ""), ("", ""), (r"\{", ".")])
        return rf"\left{left} {body} \right{right}" if left else body


Maker = Callable[[SchoolComposer], str]
_KINDS: Final[tuple[tuple[Maker, float], ...]] = (
    (SchoolComposer.column_sum, 8),
    (SchoolComposer.long_division, 4),
    (SchoolComposer.cases, 9),
    (SchoolComposer.system, 9),
    (SchoolComposer.line, 24),
    (SchoolComposer.item, 9),
    (SchoolComposer.marked, 6),
    (SchoolComposer.matrices, 7),
    (SchoolComposer.optimisation, 6),
    (SchoolComposer.chain, 4),
    (SchoolComposer.real_rows, 10),
    (SchoolComposer.nested, 4),
)


class BoardComposer:
    """Makes formulas of lessons up, with a seed."""

    def __init__(self, *, seed: int) -> None:
        self.chance = random.Random(seed)
        self.lines = Lines(self.chance)

    def formulas(self) -> Iterator[str]:
        """Yield formulas without end."""
        makers, weights = zip(*_BOARD_KINDS, strict=True)
        while True:
            yield " ".join(self.chance.choices(makers, weights)[0](self).split())

    def entry(self) -> str:
        """Draw an entry of a matrix or a coordinate."""
        chance = self.chance
        letter = chance.choice("abcdxyzmnk")
        return chance.choice(
            [self.lines.signed()] * 5
            + [letter, f"{letter} _ {{ {chance.choice('12n')} {chance.choice('123')} }}", self.lines.linear()]
        )

    def function(self, x: str = "x") -> str:
        """Draw a function of a variable."""
        chance, lines = self.chance, self.lines
        argument = chance.choice([x, f"{lines.factor()} {x}", f"( {lines.linear(x)} )"])
        return chance.choice(
            [
                lines.polynomial(x),
                f"{chance.choice('fghF')} ( {x} )",
                f"{chance.choice(_FUNCTIONS)} {argument}",
                f"e ^ {{ {chance.choice(['', '- '])} {lines.factor()} {x} }}",
                rf"{x} ^ {{ {chance.choice(_POWERS)} }} {chance.choice(_FUNCTIONS)} {x}",
                rf"\frac {{ {lines.linear(x)} }} {{ {lines.polynomial(x)} }}",
                rf"\sqrt {{ {lines.polynomial(x)} }}",
            ]
        )

    def matrix(self) -> str:
        """Write a matrix, a determinant or a column."""
        chance = self.chance
        rows = chance.choice([2, 2, 2, 3, 3, 4])
        columns = chance.choice([rows, rows, rows, 1, 2, 3])
        left, right = chance.choice(_BOARD_FENCES)
        if left == "|":
            columns = rows
        small = chance.random() < 0.6  # digits alone, which stand close
        cells = [
            [self.lines.digits(1) if small else self.entry() for _ in range(columns)] for _ in range(rows)
        ]
        body = ROW_END.join(" & ".join(row) for row in cells)
        return rf"\left{left} \begin{{matrix}} {body} \end{{matrix}} \right{right}"

    def matrices(self) -> str:
        """Write a line with matrices."""
        chance, name = self.chance, self.chance.choice(_CAPITALS)
        one = self.matrix()
        return chance.choice(
            [
                one,
                f"{name} = {one}",
                f"{name} = {one}",
                rf"\det {one}",
                f"{one} = {self.lines.signed()}",
                f"{one} {chance.choice(_JOINTS)} {self.matrix()}",
                rf"{name} ^ {{ {chance.choice(['- 1', 'T', '2'])} }} = {one}",
                rf"{chance.choice(_FACTORS)} {one}",
                rf"\vec {{ {chance.choice('abuvwx')} }} = {one}",
            ]
        )

    def vector(self) -> str:
        """Write vectors by their names and coordinates."""
        chance, lines = self.chance, self.lines
        a, b, c = chance.sample("abcuvwxyzpqrnFEB", 3)
        arrow = chance.choice([r"\vec", r"\vec", r"\vec", r"\overrightarrow"])
        one, two, three = (f"{arrow} {{ {name} }}" for name in (a, b, c))
        start, end, last = chance.sample(_CAPITALS, 3)
        way = rf"\overrightarrow {{ {start} {end} }}"
        place = " , ".join(self.entry() for _ in range(chance.choice([2, 3, 3])))
        dot = chance.choice([r"\cdot", r"\times"])
        return chance.choice(
            [
                f"{one} = ( {place} )",
                f"{one} = ( {place} )",
                f"{way} = ( {place} )",
                f"{one} {dot} {two} = {lines.signed()}",
                f"{one} {dot} {two} = | {one} | | {two} | \\cos \\theta",
                f"| {one} | = \\sqrt {{ {lines.digits(2)} }}",
                f"{one} + {two} = {three}",
                f"{way} = {one} - {two}",
                rf"{way} + \overrightarrow {{ {end} {last} }} = \overrightarrow {{ {start} {last} }}",
                rf"{one} = {lines.factor()} \hat {{ i }} + {lines.factor()} \hat {{ j }} - \hat {{ k }}",
                r"\vec { F } = m \vec { a }",
                f"{one} = {lines.signed()} {two} + {lines.factor()} {three}",
                f"{one} \\perp {two}",
            ]
        )

    def ratio(self) -> str:
        """Write ratios and divisions."""
        chance, lines = self.chance, self.lines
        x = lines.variable()
        a, b, c, d = (chance.choice([lines.digits(2), lines.number(), lines.fraction()]) for _ in range(4))
        start, end, third, fourth = chance.sample(_CAPITALS, 4)
        return chance.choice(
            [
                f"{a} : {b} = {c} : {d}",
                f"{a} : {b} = {c} : {x}",
                f"{lines.fraction()} = {lines.digits(1)} : {x}",
                f"{x} : {a} = {lines.fraction()}",
                f"a : b : c = {lines.digits(1)} : {lines.digits(1)} : {lines.digits(1)}",
                f"{start} {end} : {third} {fourth} = {lines.digits(1)} : {lines.digits(1)}",
                rf"{a} \div {b} = {c}",
                rf"{lines.digits(3)} \div {x} = {lines.digits(2)} \cdots \cdots {lines.digits(1)}",
                rf"{lines.digits(3)} \div {lines.digits(1)} = {lines.digits(2)} \cdots {lines.digits(1)}",
                rf"\frac {{ {start} {end} }} {{ {third} {fourth} }} = {lines.fraction()}",
            ]
        )

    def calculus(self) -> str:
        """Write derivatives, limits, integrals and sums."""
        chance, lines = self.chance, self.lines
        f = chance.choice("fghyF")
        prime = chance.choice([r"^ { \prime }", r"^ { \prime }", r"^ { \prime \prime }"])
        low, high = chance.choice(_BOUNDS)
        goal = chance.choice(_GOALS)
        inner, last = self.function(), chance.choice(["n", r"\infty", "m"])
        within = chance.choice([inner, rf"\left( {inner} \right)"])
        term = rf"\frac {{ {lines.linear('n')} }} {{ {chance.choice(_UNDER)} }}"
        return chance.choice(
            [
                f"{f} {prime} ( x ) = {self.function()}",
                f"y {prime} {chance.choice('+-')} {lines.term('y')} = "
                f"{chance.choice(['0', self.function()])}",
                f"( {self.function()} ) ^ {{ \\prime }} = {self.function()}",
                rf"\frac {{ d {f} }} {{ d x }} = {self.function()}",
                rf"\frac {{ \partial {f} }} {{ \partial {chance.choice('xyzt')} }} = {self.function()}",
                rf"\lim _ {{ x \to {goal} }} {within}",
                rf"\lim _ {{ n \to \infty }} {term} = {lines.signed()}",
                rf"\int {self.function()} \, d x",
                rf"{chance.choice('IAFS')} = \int _ {{ {low} }} ^ {{ {high} }} {self.function()} \, d x",
                rf"\int _ {{ {low} }} ^ {{ {high} }} {self.function()} \, d x = {lines.fraction()}",
                rf"\left. {self.function()} \right| _ {{ {low} }} ^ {{ {high} }}",
                rf"\left[ {self.function()} \right] _ {{ {low} }} ^ {{ {high} }}",
                rf"\sum _ {{ {chance.choice('nki')} = {chance.choice('01')} }} ^ {{ {last} }} {term}",
            ]
        )

    def line(self) -> str:
        """Write a step of an exercise."""
        chance, lines = self.chance, self.lines
        index = chance.choice("12")
        mean = chance.choice([r"\bar", r"\overline", r"\hat"])
        brackets = f"{lines.digits(1)} ( {lines.linear('x')} )"
        power = chance.choice(_POWERS[:3])
        words = chance.choice([lines.equation, lines.arithmetic, lines.trigonometry])()
        points = " ".join(chance.sample(_CAPITALS, 2))
        return chance.choice(
            [
                words,
                words,
                rf"{chance.choice(_PROOF_STEPS)} {words}",
                f"{chance.choice('WSPVETyx')} _ {{ {index} }} = {lines.polynomial('x')}",
                f"{chance.choice('WSPVETQy')} = {lines.polynomial('x')}",
                f"{lines.polynomial('x')} = {brackets} - [ {lines.digits(2)} + {brackets} ]",
                rf"{mean} {{ {chance.choice('xyzXpA')} }} = {lines.fraction()}",
                rf"\overline {{ {points} }} = {lines.number()}",
                rf"{chance.choice('zw')} \overline {{ {chance.choice('zw')} }} = {lines.digits(2)}",
                rf"\left( {lines.fraction()} - {lines.fraction()} \right) ^ {{ {power} }}",
                rf"[ {lines.fraction()} ] ^ {{ 2 }} = {lines.fraction()}",
                f"( {lines.signed()} + {lines.digits(1)} ) ^ {{ 2 }} + "
                f"( {lines.linear()} ) ^ {{ 2 }} = {power}",
            ]
        )

    def system(self) -> str:
        """Write two or three lines after a brace."""
        chance, lines = self.chance, self.lines
        x, y = chance.choice([("x", "y"), ("a", "b"), ("x", "z"), ("m", "n")])
        rows = []
        for _ in range(chance.choice([2, 2, 2, 3])):
            row = f"{lines.factor()} {x} {chance.choice('+-')} {lines.factor()} {y} = {lines.signed()}"
            rows.append(chance.choice([row, row, row, lines.equation()]))
        if chance.random() < 0.3:
            rows = [
                f"{lines.polynomial(x)} & {x} {chance.choice(_COMPARISONS)} {lines.signed()}" for _ in rows
            ]
            return rf"f ( {x} ) = \begin{{cases}} {ROW_END.join(rows)} \end{{cases}}"
        return rf"\begin{{cases}} {ROW_END.join(rows)} \end{{cases}}"


BoardMaker = Callable[[BoardComposer], str]
_BOARD_KINDS: Final[tuple[tuple[BoardMaker, float], ...]] = (
    (BoardComposer.matrices, 24),
    (BoardComposer.vector, 16),
    (BoardComposer.ratio, 10),
    (BoardComposer.calculus, 22),
    (BoardComposer.line, 18),
    (BoardComposer.system, 10),
)
