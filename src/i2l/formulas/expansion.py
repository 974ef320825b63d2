"""What TeX does before it typesets: macros are replaced and conditions decided, until only drawing is left.

The commands of TeX and of common packages that decide what a macro stands for are followed as far as the
formulas of papers need it: conditions, optional arguments and stars, a look at the next piece, names that are
put together. All others are left in the formula for TeX. Every character of the result knows where in the
source it came from.
"""

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from i2l.formulas.commands import STYLE_SWITCHES
from i2l.formulas.lexer import MAX_CHARACTERS, FormulaError
from i2l.formulas.macros import (
    NO_VALUE,
    TRUE,
    Macro,
    MacroError,
    Parameter,
    Piece,
    Reader,
    cut,
    cut_body,
    fill,
    is_word,
    read_arguments,
    read_preamble,
)

MAX_EXPANSIONS: Final = 2_000
_MAX_PUSHED: Final = 300_000  # pieces that all macros of a formula stand for

_DROPPED: Final = frozenset(
    [r"\xspace", r"\protect", r"\relax", r"\ignorespaces", r"\unskip", r"\leavevmode", r"\noexpand", r"\fi"]
)
_CONDITIONS_OF_PACKAGES: Final = frozenset(
    [
        r"\iff",
        r"\ifthenelse",
        r"\ifstrempty",
        r"\ifblank",
        r"\ifstrequal",
        r"\ifdef",
        r"\ifundef",
        r"\ifdefempty",
    ]
)
_UNDEFINED: Final = frozenset([r"\undefined", r"\@undefined"])


def opens_condition(text: str) -> bool:
    r"""Tell whether a command is closed by \fi."""
    return text.startswith(r"\if") and text not in _CONDITIONS_OF_PACKAGES and not text.startswith(r"\If")


class Gullet:
    """One formula on its way through its macros."""

    def __init__(self, definitions: dict[str, Macro], reader: Reader, *, inline: bool = False) -> None:
        self.definitions = definitions
        self.reader = reader
        self.inline = inline
        self.used: dict[str, Macro] = {}
        self.written: list[Piece] = []
        self._expansions = self._num_pushed = 0

    def run(self) -> list[Piece]:
        """Replace macros until none is left.

        Raises:
            FormulaError: for a macro that lacks an argument, or that never stops growing.
        """
        while (piece := self.reader.pop()) is not None:
            if not self.step(piece):
                self.written.append(piece)
        return self.written

    def step(self, piece: Piece) -> bool:
        """Replace a piece by what it stands for; False if it stands for itself."""
        text = piece.text
        if text[0] != "\\" or piece.frozen:
            return False
        macro = self.definitions.get(text) or _BUILT_IN.get(text)
        if macro is not None:
            self.call(piece, macro)
            return True
        action = _ACTIONS.get(text)
        if action is None:
            return self._drop(piece)
        self._count(piece)
        action(self, piece)
        return True

    def call(self, piece: Piece, macro: Macro) -> None:
        """Put what a macro stands for in front of what is left to read."""
        self._count(piece)
        if piece.text in self.definitions:
            self.used[piece.text] = macro
        arguments = read_arguments(macro, self.reader, piece)
        if is_word(piece.text) and not macro.parameters:
            self.reader.skip_space()
        filled = fill(macro, arguments, piece)
        self._num_pushed += len(filled)
        self.reader.push(filled)

    def _count(self, piece: Piece) -> None:
        self._expansions += 1
        too_long = self.reader.num_waiting() + len(self.written) > MAX_CHARACTERS
        if self._expansions > MAX_EXPANSIONS or self._num_pushed > _MAX_PUSHED or too_long:
            raise FormulaError("macro never ends", piece.start, piece.text)

    def _drop(self, piece: Piece) -> bool:
        if piece.text == r"\else":  # of a condition that was true
            self.skip_branch(stop_at_else=False)
            return True
        if piece.text not in _DROPPED:
            return False
        self.reader.skip_space()
        return True

    def arguments(self, count: int, piece: Piece) -> list[list[Piece]]:
        """Read that many arguments of a command.

        Raises:
            FormulaError: if one is missing.
        """
        found = []
        for _ in range(count):
            argument = self.reader.argument()
            if argument is None:
                raise FormulaError("macro without its argument", piece.start, piece.text)
            found.append(argument)
        return found

    def take(self, piece: Piece) -> Piece:
        """Take the next piece.

        Raises:
            FormulaError: if there is none.
        """
        taken = self.reader.pop()
        if taken is None:
            raise FormulaError("macro without its argument", piece.start, piece.text)
        return taken

    def skip_branch(self, *, stop_at_else: bool) -> None:
        r"""Pass over the branch of a condition that does not hold, up to \else or \fi of its own."""
        depth = 0
        while (piece := self.reader.pop()) is not None:
            if depth == 0 and (piece.text == r"\fi" or (stop_at_else and piece.text == r"\else")):
                self.reader.skip_space()
                return
            depth += opens_condition(piece.text) - (piece.text == r"\fi")

    def decide(self, holds: bool) -> None:
        r"""Go on in the right branch of a condition that is closed by \fi."""
        if not holds:
            self.skip_branch(stop_at_else=True)

    def unexpandable(self, piece: Piece) -> Piece:
        """Take the next piece that no macro replaces."""
        while True:
            taken = self.take(piece)
            if taken.text == r"\relax" or taken.frozen or not self.step(taken):
                return taken

    def style(self) -> int:
        """Say in which style the next piece is set: 0 display, 1 text, 2 script, 3 script of a script."""
        scripts = depth = 0
        adjacent = (
            True  # nothing stands between the next piece, or the brace around it, and the one looked at
        )
        for piece in reversed(self.written):
            text = piece.text
            if text.isspace():
                continue
            if depth == 0 and text in STYLE_SWITCHES:
                return min(3, STYLE_SWITCHES[text] + scripts)
            if adjacent and text in "^_":
                scripts += 1
            adjacent = text == "{" and depth == 0
            depth = max(0, depth + (text == "}") - (text == "{"))
        return min(3, 1 + scripts) if scripts else int(self.inline)


def _if_next(gullet: Gullet, piece: Piece) -> None:
    gullet.reader.skip_space()
    wanted = gullet.take(piece)
    yes, no = gullet.arguments(2, piece)
    skipped = gullet.reader.skip_space()
    following = gullet.reader.peek()
    text = following.text if following else ""
    same = text == wanted.text or (wanted.text == r"\bgroup" and text == "{")
    if not same:
        gullet.reader.push(skipped)
    gullet.reader.push(yes if same else no)


def _if_star(gullet: Gullet, piece: Piece) -> None:
    yes, no = gullet.arguments(2, piece)
    following = gullet.reader.peek()
    starred = following is not None and following.text == "*"
    if starred:
        gullet.reader.pop()
    gullet.reader.push(yes if starred else no)


def _expand_after(gullet: Gullet, piece: Piece) -> None:
    first, second = gullet.take(piece), gullet.take(piece)
    if not gullet.step(second):
        gullet.reader.push([second])
    gullet.reader.push([first])


def _name(gullet: Gullet, piece: Piece) -> None:
    letters = []
    while (part := gullet.unexpandable(piece)).text != r"\endcsname":
        letters.append(part.text)
    name = "\\" + "".join(letters)
    known = name in gullet.definitions or is_word(name)
    gullet.reader.push([Piece(name, piece.start, piece.end)] if known else [])


def _detokenize(gullet: Gullet, piece: Piece) -> None:
    (argument,) = gullet.arguments(1, piece)
    letters = "".join(part.text for part in argument)
    gullet.reader.push(Piece(letter, piece.start, piece.end, frozen=True) for letter in letters)


def _if_same_meaning(gullet: Gullet, piece: Piece) -> None:
    first, second = gullet.take(piece).text, gullet.take(piece).text
    meanings = [
        None if text in _UNDEFINED else gullet.definitions.get(text) or _BUILT_IN.get(text) or text
        for text in (first, second)
    ]
    if None in meanings:  # a name that no paper defined and TeX does not know is not told from one it knows
        meanings = [None if text not in gullet.definitions else text for text in (first, second)]
    gullet.decide(meanings[0] == meanings[1])


def _if_same_letter(gullet: Gullet, piece: Piece) -> None:
    first, second = gullet.unexpandable(piece).text, gullet.unexpandable(piece).text
    both_names = len(first) > 1 and len(second) > 1
    gullet.decide(both_names or first == second)


def _choice(condition: Callable[[list[Piece]], bool]) -> Callable[[Gullet, Piece], None]:
    """Make a command with three arguments: what to test, and what to write if it holds or not."""

    def act(gullet: Gullet, piece: Piece) -> None:
        tested, yes, no = gullet.arguments(3, piece)
        gullet.reader.push(yes if condition(tested) else no)

    return act


def _one_sided(condition: Callable[[list[Piece]], bool], wanted: bool) -> Callable[[Gullet, Piece], None]:
    def act(gullet: Gullet, piece: Piece) -> None:
        tested, text = gullet.arguments(2, piece)
        gullet.reader.push(text if condition(tested) is wanted else [])

    return act


def _is_missing(pieces: Sequence[Piece]) -> bool:
    return [piece.text for piece in pieces] == [NO_VALUE]


def _is_given(pieces: Sequence[Piece]) -> bool:
    return not _is_missing(pieces)


def _is_true(pieces: Sequence[Piece]) -> bool:
    return [piece.text for piece in pieces] == [TRUE]


def _is_blank(pieces: Sequence[Piece]) -> bool:
    return all(piece.text.isspace() for piece in pieces)


def _if_then_else(gullet: Gullet, piece: Piece) -> None:
    tested, yes, no = gullet.arguments(3, piece)
    inner = Reader(iter(part for part in tested if not part.text.isspace()))
    command = inner.pop()
    sides = [inner.argument(), inner.argument()]
    if command is None or command.text not in (r"\equal", r"\isequivalentto") or None in sides:
        raise FormulaError("condition that is not understood", piece.start, piece.text)
    first, second = ("".join(part.text for part in side or ()).strip() for side in sides)
    gullet.reader.push(yes if first == second else no)


def _if_equal(gullet: Gullet, piece: Piece) -> None:
    first, second, yes, no = gullet.arguments(4, piece)
    gullet.reader.push(yes if [p.text for p in first] == [p.text for p in second] else no)


def _math_choice(gullet: Gullet, piece: Piece) -> None:
    choices = gullet.arguments(4, piece)
    gullet.reader.push(choices[gullet.style()])


def _always(holds: bool) -> Callable[[Gullet, Piece], None]:
    return lambda gullet, _: gullet.decide(holds)


def _not_understood(_: Gullet, piece: Piece) -> None:
    raise FormulaError("condition that is not understood", piece.start, piece.text)


_ACTIONS: Final[dict[str, Callable[[Gullet, Piece], None]]] = {
    r"\@ifnextchar": _if_next,
    r"\kernel@ifnextchar": _if_next,
    r"\new@ifnextchar": _if_next,
    r"\@ifstar": _if_star,
    r"\expandafter": _expand_after,
    r"\csname": _name,
    r"\detokenize": _detokenize,
    r"\ifx": _if_same_meaning,
    r"\if": _if_same_letter,
    r"\ifcat": _not_understood,
    r"\ifnum": _not_understood,
    r"\ifdim": _not_understood,
    r"\ifmmode": _always(True),
    r"\iftrue": _always(True),
    r"\iffalse": _always(False),
    r"\ifstrempty": _choice(_is_blank),
    r"\ifblank": _choice(_is_blank),
    r"\ifstrequal": _if_equal,
    r"\ifthenelse": _if_then_else,
    r"\IfNoValueTF": _choice(_is_missing),
    r"\IfNoValueT": _one_sided(_is_missing, True),
    r"\IfNoValueF": _one_sided(_is_missing, False),
    r"\IfValueTF": _choice(_is_given),
    r"\IfValueT": _one_sided(_is_given, True),
    r"\IfValueF": _one_sided(_is_given, False),
    r"\IfBooleanTF": _choice(_is_true),
    r"\IfBooleanT": _one_sided(_is_true, True),
    r"\IfBooleanF": _one_sided(_is_true, False),
    r"\mathchoice": _math_choice,
}


def _plain(count: int, body: str) -> Macro:
    return Macro(parameters=(Parameter("m"),) * count, body=cut_body(body))


_BUILT_IN: Final = {
    r"\@firstoftwo": _plain(2, "#1"),
    r"\@secondoftwo": _plain(2, "#2"),
    r"\@firstofone": _plain(1, "#1"),
    r"\@gobble": _plain(1, ""),
    r"\@empty": _plain(0, ""),
    r"\ensuremath@": _plain(1, "#1"),
}


_NAME: Final = re.compile(r"\\(?:[A-Za-z]+|[^A-Za-z])")


class Expansion(NamedTuple):
    """A source with its macros written out; spans[i] is where in the original character i came from."""

    source: str
    spans: list[tuple[int, int]]
    used: dict[str, Macro]  # the macros that were written out


class Macros:
    """Commands and what they stand for."""

    def __init__(self, definitions: dict[str, Macro]) -> None:
        self.definitions = definitions

    @classmethod
    def load(cls, path: Path) -> "Macros":
        """Read a preamble file.

        Raises:
            MacroError: if the file cannot be read, or a definition in it is cut off.
        """
        try:
            return cls.parse(path.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError) as error:
            raise MacroError(f"Cannot read the macros {path}: {error}") from error

    @classmethod
    def parse(cls, preamble: str) -> "Macros":
        r"""Read every \newcommand, \def, \let, \DeclareMathOperator and their like; skip the rest.

        Raises:
            MacroError: if a definition is cut off.
        """
        return cls(read_preamble(preamble))

    def expand(self, source: str, *, inline: bool = False) -> Expansion:
        """Write out the macros of a formula, those inside macros too.

        Args:
            source: the formula as its author wrote it.
            inline: it stands in a line of text, which decides what a macro with several sizes draws.

        Raises:
            FormulaError: for a macro that lacks an argument, or that never stops growing.
        """
        if self.definitions.keys().isdisjoint(_NAME.findall(source)):
            return Expansion(source, [(place, place + 1) for place in range(len(source))], {})
        gullet = Gullet(self.definitions, Reader(cut(source)), inline=inline)
        pieces = gullet.run()
        written: list[str] = []
        spans: list[tuple[int, int]] = []
        after: Piece | None = None
        for piece in pieces:
            if after and piece.text[0].isalpha():  # a name would swallow the letter
                written.append(" ")
                spans.append((after.start, after.end))
            written.append(piece.text)
            if piece.end - piece.start == len(piece.text):
                spans.extend((place, place + 1) for place in range(piece.start, piece.end))
            else:
                spans.extend([(piece.start, piece.end)] * len(piece.text))
            after = piece if is_word(piece.text) else None
        return Expansion("".join(written), spans, gullet.used)
