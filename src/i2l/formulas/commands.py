r"""The table of LaTeX commands and environments, read from commands.txt, and the sets that follow from it.

Every fact about a command stands in one record: what arguments it takes, which picture it shares with other
names, whether it may share a TeX process, what the guard on decoding thinks of it, how it is printed and what
character and names it has in other formats. The rest of the package asks the table, or one of the sets below
it; nothing keeps a list of commands of its own. To add a command, add its line to commands.txt.

Below the table stands what follows from it for spelling: one name for what looks the same. `\le` and `\leq`
are the same sign at the same distance from its neighbours, so no reader can tell them apart; nor should a
label, a reading or a list of alternatives. The table of commands says which name is kept: the commonest one
of papers. KaTeX, MathJax and Wikipedia know further names (`\infin`, `\rarr`) that LaTeX does not draw, and
these get the name of LaTeX.

`\mathcal { L }` and `{ \cal L }` are one picture too, and which of them a label has says when its author
learnt LaTeX. A model that learns from both can only guess. Papers of im2latex-100k are older than most and
have the switch in eight cases of nine, so labels that are compared with it are given the switch.

Space and the braces of a group draw nothing, and `\left(` draws what `(` draws around small things.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, get_args, get_origin, get_type_hints

from i2l.errors import I2LError

Kind = Literal[
    # signs
    "greek",
    "letter",
    "dots",
    "column-dots",
    "binary",
    "modulo",
    "relation",
    "arrow",
    "operator",
    "named-operator",
    "operator-name",
    "delimiter",
    "punctuation",
    "text-letter",
    # what takes an argument and draws something about it
    "accent",
    "line",
    "frame",
    "fraction",
    "general-fraction",
    "slashed",
    "binomial",
    "infix",
    "stack",
    "root",
    "long-arrow",
    "box",
    "rule",
    "text-accent",
    # what says how something is set
    "alphabet",
    "font-switch",
    "size-switch",
    "style-switch",
    "class",
    "lap",
    "phantom",
    "text",
    "mover",
    "length",
    "bare-length",
    "space",
    "limits",
    "sized",
    "fence",
    "script",
    # the frame of a formula, and what is no part of it
    "rows",
    "structure",
    "row-end",
    "row-rule",
    "math-shift",
    "dropped",
    "colour",
    # names of other commands, and the rest
    "alias",
    "spelled",
    "other",
]

Sign = Literal[
    "letter",
    "binary",
    "relation",
    "arrow",
    "operator",
    "accent",
    "wide-accent",
    "brace",
    "frame",
    "stroke",
    "alphabet",
    "long-arrow",
    "common",
    "cuts",
]
Atom = Literal["ord", "large", "bin", "rel", "open", "close", "punct"]
Shape = Literal["bar", "mark", "around", "stacked", "beside", "row", "slanted"]
GuardWord = Literal["never", "braced", "words", "unseen", "unseen-alone"]
PrettyWord = Literal["spaced", "opening", "joins", "ordinary", "alone", "reaches"]
Font = Literal[
    "",
    "plain",
    "roman",
    "italic",
    "bold",
    "bold-symbols",
    "sans",
    "typewriter",
    "calligraphic",
    "script",
    "blackboard",
    "fraktur",
]


class Command(NamedTuple):
    r"""One command, or one character: all that the package knows about it."""

    name: str
    kind: Kind
    # One letter an argument. m: math, o: optional math in [ ], t: text, l: length as in 1.5em, L: optional
    # length in [ ], d: bare length as after \kern, n: a name that is not drawn, with [ ] before it or not.
    arguments: str = ""

    # The picture, and who else has it
    same_as: str = ""  # the one name that canonical formulas have for this picture
    elsewhere: bool = False  # TeX does not draw `same_as` for it: KaTeX, Wikipedia or old AMS-LaTeX mean that
    as_delimiter: str = ""  # the same after \left and \right, where more names are one
    glyph: str = ""  # another command that draws this glyph, if at another distance from its neighbours
    spelled: str = ""  # the LaTeX it stands for
    characters: str = ""  # characters beyond ASCII that are read as it
    silent: bool = False  # draws no ink itself
    # The shape of its ink. bar: wide and low; mark: small; around: encloses other ink; stacked, beside, row,
    # slanted: of several parts one above the other, side by side, in a row, in a slanted row.
    shape: frozenset[Shape] = frozenset()

    # What the parser and the canonical printer make of it
    delimiter: bool = False  # may stand after \left and \right
    pair: str = ""  # the delimiter that closes what this one opens
    script: str = ""  # _ or ^: where it puts what follows
    limits: Literal["", "display", "side", "brace"] = ""  # where scripts stand in display style, if it asks
    letters: str = ""  # of a named operator, where they are not its name
    style: int = -1  # of TeX, that it switches to: 0 display, 1 text, 2 script, 3 scriptscript
    inner_style: int = -1  # of its argument, where that is not the style it stands in
    infix: str = ""  # the command with two arguments that it is between them
    rows: str = ""  # the environment that its argument is written in
    braces: Literal["", "one", "two"] = ""  # that im2markup gives its argument whatever the author wrote
    cell: Literal["", "fills", "bare"] = ""  # a cell with it takes no braces; `fills` also pushes it aside
    font: Font = ""  # of letters in its argument, or after it; nothing where it leaves them as they are
    switch: str = ""  # the switch that im2latex has instead of this alphabet
    fixed_size: bool = False  # its words keep their size in a subscript

    # TeX
    package: str = "latex"  # that defines it; amsmath, amssymb, bm and mathrsfs count as LaTeX
    tame: bool = False  # only draws: may share a process. Signs need no word here, since TeX is asked
    manifold: bool = False  # sets its argument several times over, to choose one
    strays: bool = False  # may put ink far outside its box

    # Words of the guard on decoding. never: not in mathematics; braced: no argument without braces; words:
    # may stand among words; unseen: a picture of two symbols cannot show it; unseen-alone: one of one symbol.
    guard: frozenset[GuardWord] = frozenset()
    # Words for readable LaTeX. spaced: a space on either side; opening: a sign after it is no sum; joins: a
    # relation after it is part of the same sign; ordinary: set as a letter is; alone: braces behind it are no
    # argument; reaches: works on all that follows in its group, so that braces around it are seen.
    pretty: frozenset[PrettyWord] = frozenset()
    # Classes of signs that composed training data takes it for, and these. common: gives its place to a rare
    # sign of its class now and then; cuts: formulas are cut into parts at it.
    sign: frozenset[Sign] = frozenset()

    # Other formats
    atom: Atom = "ord"  # the class that TeX gives it, which decides the space around it
    unicode: str = ""  # what shows it, or the mark it draws; the first of `characters` where nothing is said
    combining: str = ""  # the character that puts its mark on the letter before
    in_words: bool = False  # is shown so among words too
    # The name there of its character, operator or accent. One record has the name of a character for all that
    # share it; a character without a name stands for itself.
    typst: str = ""
    asciimath: str = ""


class Environment(NamedTuple):
    r"""One environment, by the name between the braces of \begin{...}."""

    name: str
    specification: bool = False  # begins with its columns, as in {lcr}
    counted: bool = False  # begins with the number of its columns
    position: bool = False  # may begin with [t] or [b]
    becomes: str = ""  # of a display: what several lines of it are read as
    printed: str = ""  # what the canonical printer writes for it, if not its name
    cells: int = 1  # the style of its cells: 0 display, 1 text, 2 script
    aligns: bool = False  # every second cell begins at an alignment point, before a relation
    fences: str = ""  # the delimiters around its matrix, with a comma between them
    unspaced: bool = False  # TeX keeps no distance around it
    columns: int = -1  # that the guard lets a row have; 0: what it says itself; -1: it is not let through
    tame: bool = False
    package: str = "latex"
    starred: bool = False  # the package has it with a star too
    holds: Literal["", "formula", "lines"] = ""  # in a document: one formula, or several lines of them
    stand_in: str = ""  # the same by amsmath, with dots for what it holds


class TableError(I2LError):
    """A line of the table that is no record."""


def read_table(text: str) -> tuple[dict[str, Command], dict[str, Environment]]:
    """Read the records of a table by their names, in their order.

    Raises:
        TableError: for a fact or a word that there is none of, or a name that comes twice.
    """
    commands: dict[str, Command] = {}
    environments: dict[str, Environment] = {}
    shared: dict[str, Any] = {}
    of_environments = False
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.startswith(("@ ", "  ")):
            continue  # prose
        first, *facts = line.removeprefix("@").split()
        try:
            if line[0] == "@":
                of_environments = first == "environment"
                facts = facts if of_environments else [f"kind={first}", *facts]
            values = dict(_read_fact(Environment if of_environments else Command, fact) for fact in facts)
            if line[0] == "@":
                shared = values
            elif first in (environments if of_environments else commands):
                raise ValueError("the name stands in the table already")
            elif of_environments:
                environments[first] = Environment(name=first, **(shared | values))
            else:
                shown = {"unicode": values["characters"][0]} if "characters" in values else {}
                commands[first] = Command(name=first, **(shared | shown | values))
        except (TypeError, ValueError) as error:
            raise TableError(f"Line {number} of the table of commands, {line.strip()!r}: {error}.") from None
    return commands, environments


def _read_fact(record: type[Command] | type[Environment], fact: str) -> tuple[str, Any]:
    """Read `word`, `field=value` or `field=no`, which is the field's default again.

    A character that cannot be seen by itself is written by its number, as in U+0301.
    """
    field, given, value = fact.partition("=")
    if field not in _FIELDS[record]:
        raise ValueError(f"there is no fact {field!r}")
    default, choices = _FIELDS[record][field]
    if value == "no":
        return field, default
    if isinstance(default, bool) == bool(given):
        raise ValueError(f"{field!r} {'is a word by itself' if given else 'needs a value'}")
    if isinstance(default, bool):
        return field, True
    if value.startswith("U+"):
        value = chr(int(value[2:], 16))
    words = value.split(",") if isinstance(default, frozenset) else [value]
    if choices and not choices.issuperset(words):
        raise ValueError(f"{field} is one of {', '.join(sorted(filter(None, choices)))}")
    if isinstance(default, int):
        return field, int(value)
    return field, frozenset(words) if isinstance(default, frozenset) else value


def _fields(record: type[Command] | type[Environment]) -> dict[str, tuple[Any, frozenset[str]]]:
    """Return the default of each field but the name, and the words that its type allows, if it lists them."""
    fields: dict[str, tuple[Any, frozenset[str]]] = {}
    for name, hint in get_type_hints(record).items():
        inner = get_args(hint)[0] if get_origin(hint) is frozenset else hint
        choices = frozenset(get_args(inner)) if get_origin(inner) is Literal else frozenset()
        fields[name] = record._field_defaults.get(name, ""), choices
    del fields["name"]
    return fields


_FIELDS: Final = {record: _fields(record) for record in (Command, Environment)}

COMMANDS, ENVIRONMENTS = read_table(Path(__file__).with_name("commands.txt").read_text(encoding="utf-8"))


def names_of(test: Callable[[Command], object]) -> frozenset[str]:
    """Return the names of the commands that pass a test."""
    return frozenset(command.name for command in COMMANDS.values() if test(command))


_NAMES_OF_KIND: Final[dict[str, list[str]]] = {}
for _command in COMMANDS.values():
    _NAMES_OF_KIND.setdefault(_command.kind, []).append(_command.name)


def _kinds(*kinds: Kind) -> frozenset[str]:
    return frozenset(name for kind in kinds for name in _NAMES_OF_KIND.get(kind, ()))


def _signs(*words: str) -> tuple[str, ...]:
    """Return the signs of some classes, in the order of the table."""
    return tuple(command.name for command in COMMANDS.values() if not command.sign.isdisjoint(words))


# Names. Canonical formulas have one name for what looks the same.
SIGNATURES: Final = {
    command.name: command.arguments
    for command in COMMANDS.values()
    if command.arguments and command.kind not in ("dropped", "colour")
}
ALIASES: Final = {command.name: command.same_as for command in COMMANDS.values() if command.same_as}
DELIMITER_ALIASES: Final = {
    command.name: command.as_delimiter for command in COMMANDS.values() if command.as_delimiter
}
SPELLED_OUT: Final = {command.name: command.spelled for command in COMMANDS.values() if command.spelled}
CHARACTERS: Final = {
    character: command.spelled or command.name
    for command in COMMANDS.values()
    for character in command.characters
}

# Commands with an argument, by what they do to it.
NARROW_ACCENTS: Final = names_of(lambda command: command.kind == "accent" and command.braces)
WIDE_ACCENTS: Final = _kinds("accent") - NARROW_ACCENTS
LINES: Final = _kinds("line")
PHANTOMS: Final = _kinds("phantom")
FRACTIONS: Final = _kinds("fraction")
SLASHED: Final = _kinds("slashed")
BINOMIALS: Final = _kinds("binomial")
STACKS: Final = _kinds("stack")
ROOTS: Final = _kinds("root")
LONG_ARROWS: Final = _kinds("long-arrow")
BOX_MOVERS: Final = _kinds("mover")  # TeX wants a box after them, not an alphabet
TEXTS: Final = _kinds("text")
DROPPED: Final = {name: COMMANDS[name].arguments for name in _kinds("dropped", "colour")}
INFIXES: Final = {command.name: command.infix for command in COMMANDS.values() if command.infix}
ROW_COMMANDS: Final = {command.name: command.rows for command in COMMANDS.values() if command.rows}

# Fonts, sizes and styles.
MATH_FONTS: Final = _kinds("alphabet") & SIGNATURES.keys()
FONT_SWITCHES: Final = _kinds("font-switch")
SIZE_SWITCHES: Final = _kinds("size-switch")
STYLE_SWITCHES: Final = {name: COMMANDS[name].style for name in _kinds("style-switch")}
SWITCHES: Final = FONT_SWITCHES | SIZE_SWITCHES | STYLE_SWITCHES.keys()
SWITCH_OF_ALPHABET: Final = {command.name: command.switch for command in COMMANDS.values() if command.switch}
# The alphabet in which im2markup writes the words of a text command. Not of a box that draws a frame.
_ALPHABET_OF_FONT: Final = {
    **{"roman": r"\mathrm", "bold": r"\mathbf", "sans": r"\mathsf", "typewriter": r"\mathtt"}
}
TEXT_ALPHABETS: Final = {
    name: _ALPHABET_OF_FONT[COMMANDS[name].font]
    for name in TEXTS
    if COMMANDS[name].font in _ALPHABET_OF_FONT and COMMANDS[name].silent
}
FIXED_SIZE_TEXTS: Final = names_of(lambda command: command.fixed_size)

# Operators, and where their limits stand in display style: above and below, or at the side.
BIG_OPERATORS: Final = names_of(lambda command: command.limits == "display")
SIDE_OPERATORS: Final = names_of(lambda command: command.limits == "side")
LIMIT_OPERATORS: Final = _kinds("named-operator") & BIG_OPERATORS


def _letters(command: Command) -> Iterator[str]:
    """Split the name of an operator into letters, and the thin space that amsmath has in some."""
    for number, part in enumerate((command.letters or command.name[1:]).split(r"\,")):
        if number:
            yield r"\,"
        yield from part


OPERATOR_LETTERS: Final = {name: tuple(_letters(COMMANDS[name])) for name in _kinds("named-operator")}

# What draws nothing.
SPACES: Final = names_of(
    lambda command: command.silent and command.kind in ("space", "limits", "dropped")
)  # of the dropped ones those that take nothing with them
STRUCTURAL: Final = names_of(lambda command: command.silent) | {r"\left.", r"\right."}
LIMITS: Final = _kinds("limits")
MATH_SHIFTS: Final = _kinds("math-shift")  # they only say that mathematics begins or ends
SIZED: Final = _kinds("sized")
SCRIPTS: Final = {command.name: command.script for command in COMMANDS.values() if command.script}
ROW_ENDS: Final = _kinds("row-end")
ROW_RULES: Final = _kinds("row-rule")

# Signs.
GREEK: Final = _kinds("greek")
DOTS: Final = _kinds("dots")  # amsmath looks at what follows: braces around a cell that ends in one are seen
DELIMITERS: Final = names_of(lambda command: command.delimiter)
# Every sign that LaTeX, amssymb and mathtools draw. A reader should know all of them, however rare: training
# data is composed from these lists, and their order decides what a seed composes.
BINARIES: Final = _signs("binary")
RELATIONS: Final = _signs("relation")
ARROW_SIGNS: Final = _signs("arrow")
OPERATORS: Final = _signs("operator")
NARROW_ACCENT_SIGNS: Final = _signs("accent")
WIDE_ACCENT_SIGNS: Final = _signs("wide-accent")
STROKES: Final = _signs("stroke")
ACCENTS: Final = _signs("accent", "wide-accent", "brace", "frame", "stroke")
ALPHABETS: Final = _signs("alphabet")
STRETCHED_ARROWS: Final = _signs("long-arrow")
# The daggers stand in the table as binary operators; as letters they have a place before the prime.
_LETTERS: Final = [name for name in _signs("letter") if name not in BINARIES]
LETTERS: Final = (
    *_LETTERS[: _LETTERS.index(r"\prime")],
    *(name for name in _signs("letter") if name in BINARIES),
    *_LETTERS[_LETTERS.index(r"\prime") :],
)
# Pairs that can stand after \left and \right.
FENCES: Final = (
    *((command.name, command.pair) for command in COMMANDS.values() if command.pair),
    (".", "|"),
)

# Other formats. Signs are shown by a character, which has a class; marks by one alone and one that combines.
# Formulas are read without aliases, so that these need none.
_NO_SIGNS: Final = _kinds("accent", "line", "long-arrow", "alias", "spelled")
SHOWN: Final[dict[str, tuple[str, Atom]]] = {
    command.name: (command.unicode, command.atom)
    for command in COMMANDS.values()
    if command.unicode and command.name not in _NO_SIGNS
}
SHOWN_RELATIONS: Final = frozenset(character for character, atom in SHOWN.values() if atom == "rel")
SHOWN_IN_WORDS: Final = names_of(lambda command: command.in_words and command.unicode)
SHOWN_FENCES: Final = {
    name: COMMANDS[COMMANDS[name].as_delimiter or name].unicode for name in DELIMITERS if name != "."
}
# Whether a character opens or closes; a bar may do either.
SHOWN_SIDES: Final = {
    character: atom
    for character, atom in SHOWN.values()
    if atom in ("open", "close") and character not in ("|", "‖")
}
ACCENT_MARKS: Final = {
    command.name: (command.combining or command.unicode, command.unicode)
    for command in COMMANDS.values()
    if command.unicode and command.kind in ("accent", "line")
}
STRETCHED_CHARACTERS: Final = {name: COMMANDS[name].unicode for name in LONG_ARROWS if COMMANDS[name].unicode}
WORD_MARKS: Final = {
    name: COMMANDS[name].combining for name in _kinds("text-accent") if COMMANDS[name].combining
}
# What Typst and AsciiMath call characters, operators and accents.
TYPST_NAMES: Final = {COMMANDS[name].unicode: COMMANDS[name].typst for name in SHOWN if COMMANDS[name].typst}
TYPST_OPERATORS: Final = {
    COMMANDS[name].typst: "limits" if name in LIMIT_OPERATORS else "operator"
    for name in OPERATOR_LETTERS
    if COMMANDS[name].typst
}
TYPST_ACCENTS: Final = {name: COMMANDS[name].typst for name in ACCENT_MARKS if COMMANDS[name].typst}
ASCIIMATH_NAMES: Final = {
    COMMANDS[name].unicode: COMMANDS[name].asciimath for name in SHOWN if COMMANDS[name].asciimath
}
ASCIIMATH_OPERATORS: Final = frozenset(COMMANDS[name].asciimath for name in OPERATOR_LETTERS) - {""}
ASCIIMATH_ACCENTS: Final = {
    name: COMMANDS[name].asciimath for name in ACCENT_MARKS if COMMANDS[name].asciimath
}

# Environments.
MATRIX_FENCES: Final = {
    name: (fences[0], fences[1])
    for name, environment in ENVIRONMENTS.items()
    if len(fences := environment.fences.split(",")) > 1
}
CELL_STYLES: Final = {environment.name: environment.cells for environment in ENVIRONMENTS.values()}
DISPLAYS: Final = {
    environment.name: environment.becomes for environment in ENVIRONMENTS.values() if environment.becomes
}
ALIGNING: Final = frozenset(name for name, environment in ENVIRONMENTS.items() if environment.aligns)
PRINTED_ENVIRONMENTS: Final = {
    name: environment.printed for name, environment in ENVIRONMENTS.items() if environment.printed
}


def one_name(token: str) -> str:
    r"""Return the name that canonical formulas have for a raw token; `\left\lbrace` counts as one token."""
    for opening in (r"\left", r"\right"):
        if token.startswith(opening) and (delimiter := DELIMITER_ALIASES.get(token[len(opening) :])):
            return opening + delimiter
    return ALIASES.get(token, token)


def respell(formula: str) -> str:
    r"""Write `{ \cal L }` for `\mathcal { L }` and `{ \bf x }` for `\mathbf { x }`; as many tokens as before.

    Signs get their one name too, since older lists of formulas have others.

    Args:
        formula: canonical tokens joined by single spaces.
    """
    tokens = [one_name(token) for token in formula.split()]
    for place, token in enumerate(tokens[:-1]):
        if token in SWITCH_OF_ALPHABET and tokens[place + 1] == "{":
            tokens[place : place + 2] = ["{", SWITCH_OF_ALPHABET[token]]
    return " ".join(tokens)


def without_outer_space(tokens: Sequence[str]) -> Sequence[str]:
    """Leave out the space before and after a formula, which nobody sees; space alone is kept."""
    shown = [place for place, token in enumerate(tokens) if token not in SPACES]
    return tokens[shown[0] : shown[-1] + 1] if shown else tokens


_TOKEN: Final = re.compile(r"\\[A-Za-z]+\*?|\\.|\S", re.DOTALL)
_STRETCHED: Final = re.compile(r"\\(?:left|right)(?![A-Za-z])|\\[bB]igg?[lrm]?(?![A-Za-z])")
# What may stand beside a sign without a change of what is seen; a closing brace ends an exponent, and counts.
SILENT: Final = SPACES | {"{"}


@lru_cache(maxsize=4096)
def look_of(token: str) -> str:
    """Return what a token draws, in one spelling; nothing for space and for what only stretches a sign."""
    if token in SPACES:
        return ""
    return one_name(_STRETCHED.sub("", token))


def picture_of(latex: str) -> tuple[str, ...]:
    """Return what readable LaTeX draws, token by token, so that spellings of one picture are equal."""
    return tuple(filter(None, map(look_of, _TOKEN.findall(_STRETCHED.sub(" ", latex)))))
