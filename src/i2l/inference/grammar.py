"""Which tokens may come next: the grammar of canonical tokens as an automaton, and the guards made of it.

The automaton takes one token at a time. Its state is a stack of frames, each a short tuple that says what is
open and what it still waits for. Before a frame is pushed, the one below takes the form it will have once the
new one is closed; so closing is a pop. Whatever the automaton accepts, `normalize_formula` accepts; and TeX,
but for what depends on meaning. Every state knows the shortest way to the end of the formula.

A `FormulaGuard` follows every hypothesis of a search with a state of its own. It lets only those tokens
through that keep the formula well-formed. Where a hypothesis repeats itself, or few steps are left, only the
shortest way to the end is open.
"""

import re
from collections.abc import Callable, Collection, Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from i2l.formulas import commands
from i2l.formulas.commands import DELIMITERS
from i2l.formulas.vocabulary import Vocabulary

# Environments and how many columns a row may have; "array" and "subarray" say it themselves.
ENVIRONMENTS: Final = {
    name: environment.columns
    for name, environment in commands.ENVIRONMENTS.items()
    if environment.columns >= 0
}
LEFT: Final = r"\left"  # owner of a list between \left and \right
# A length while it is being written, its digits as 0. More digits TeX would not take.
_NUMBER: Final = r"-?(0{1,3}(\.0{0,3})?|\.0{1,3})"
_BEFORE_UNIT: Final = r"-?0{0,3}(\.0{0,3})?"
_LENGTH: Final = re.compile(rf"{_BEFORE_UNIT}|{_NUMBER}([pmcieb]|pt|mm|cm|in|em|ex|bp)")
_MU_LENGTH: Final = re.compile(rf"{_BEFORE_UNIT}|{_NUMBER}(m|mu)")
_SECOND_LETTER: Final = {"p": "t", "m": "m", "c": "m", "i": "n", "e": "m", "b": "p"}


class Items(NamedTuple):
    """A list of atoms, and what may still be attached to the last of them."""

    owner: str  # what the list stands in: top { \left [ lines $ or the name of an environment
    base: bool = False  # there is an atom before this place
    sub: bool = False  # which has a subscript
    sup: bool = False
    operator: bool = False  # and takes \limits
    infix: bool = False  # an \atop has been read in this list
    columns: int = 0  # in an environment: of a row
    left: int = 0  # columns that may still be opened in this row
    rows: bool = False  # a row has been read
    fresh: bool = False  # nothing of this row has been read

    @property
    def filled(self) -> bool:
        """The list is not empty."""
        return self.base or self.sub or self.sup


class Arguments(NamedTuple):
    """Arguments that a command waits for, a letter each: as in `commands`, and these.

    s  script, in braces      D  delimiter                B  lines of \\substack
    P  place in [ ]           C  column specification
    """

    letters: str
    mu: bool = False  # lengths are in mu


class Text(NamedTuple):
    """Words in text mode, up to the closing brace."""


class Columns(NamedTuple):
    """A column specification, up to its closing brace."""

    number: int = 0


class Place(NamedTuple):
    """The [ t ] after \\begin{array}."""

    known: bool = False


class Length(NamedTuple):
    """A length such as - 1 . 5 e m."""

    closer: str
    mu: bool = False
    text: str = ""  # what has been read, its digits as 0

    @property
    def whole(self) -> bool:
        """The unit has been read."""
        return self.text[-2:-1].isalpha()

    @property
    def rest(self) -> str:
        """The shortest way to write it to its end."""
        if self.whole:
            return self.closer
        if self.text[-1:].isalpha():
            return ("u" if self.mu else _SECOND_LETTER[self.text[-1]]) + self.closer
        return ("" if "0" in self.text else "0") + ("mu" if self.mu else "pt") + self.closer

    def after(self, token: str) -> "Length | None":
        """The length with a token added, or None if it were no length."""
        added = self._replace(text=self.text + ("0" if len(token) == 1 and token.isdigit() else token))
        return added if (_MU_LENGTH if self.mu else _LENGTH).fullmatch(added.text) else None


Frame = Items | Arguments | Text | Columns | Place | Length

_ARGUMENT_COST: Final = {"m": 2, "s": 2, "t": 2, "B": 2, "l": 5, "d": 3, "D": 1, "C": 3}


class State(NamedTuple):
    """A stack of frames, the top first."""

    frame: Frame
    below: "State | None"
    depth: int
    cost: int  # tokens that the shortest way to the end needs, eos included

    def replace(self, frame: Frame) -> "State":
        """Put another frame in the place of the top one."""
        return push(frame, self.below)


def push(frame: Frame, below: State | None) -> State:
    """Put a frame on top."""
    if below is None:
        return State(frame, None, 1, _cost(frame))
    return State(frame, below, below.depth + 1, below.cost + _cost(frame))


def _cost(frame: Frame) -> int:
    """Count the tokens that `closing_token` will give for a frame."""
    match frame:
        case Items(owner="top"):
            return 1 if frame.filled else 3
        case Items(owner=owner):
            return 1 if owner not in ENVIRONMENTS or (frame.fresh and frame.rows) else 2
        case Arguments(letters=letters):
            return sum(_ARGUMENT_COST.get(letter, 0) for letter in letters)
        case Text():
            return 1
        case Columns(number=number):
            return 1 if number else 2
        case Place(known=known):
            return 1 if known else 2
        case Length():
            return len(frame.rest)


def closing_token(state: State, rights: Sequence[str]) -> str:
    """Return the token that leads to the end of the formula by the shortest way; "" for the end itself.

    Args:
        state: of the automaton.
        rights: the \\right tokens of the vocabulary, best first.

    Raises:
        IndexError: if a \\left is open and there is no \\right.
    """
    frame = state.frame
    match frame:
        case Items(owner="top"):
            return "" if frame.filled else "{"
        case Items(owner=owner) if owner in ENVIRONMENTS:
            return rf"\end{{{owner}}}" if frame.fresh and frame.rows else "\\\\"
        case Items(owner=owner):
            return {"{": "}", "lines": "}", "[": "]", "$": "$"}.get(owner) or rights[0]
        case Arguments(letters=letters):
            return {"d": "0", "D": ")"}.get(letters.lstrip("oP")[0], "{")
        case Text():
            return "}"
        case Columns(number=number):
            return "}" if number else "c"
        case Place(known=known):
            return "]" if known else "t"
        case Length():
            return frame.rest[0]


MAX_DEPTH = 25  # frames; the deepest of 45,000 real formulas has 12, and the parser allows about 30


def _guarded_as(*words: str) -> frozenset[str]:
    return commands.names_of(lambda command: not command.guard.isdisjoint(words))


START: Final = push(Items("top"), None)
# What takes \limits: operators, and braces over and under something.
OPERATORS: Final = commands.names_of(lambda command: command.limits)
TEXT_COMMANDS: Final = _guarded_as("words")
_SIGNATURES: Final = frozenset({"", "m", "mm", "om", "t", "l", "d"})  # that this grammar can follow
# Never canonical, or beyond this grammar: boxes, pictures, rules inside a row.
FORBIDDEN: Final = (
    _guarded_as("never")
    | commands.DROPPED.keys()
    | {name for name, letters in commands.SIGNATURES.items() if letters not in _SIGNATURES}
)
# What cannot be an argument without braces: TeX would take the name alone.
NOT_BARE: Final = (
    FORBIDDEN
    | commands.SIGNATURES.keys()
    | commands.SCRIPTS.keys()
    | commands.SWITCHES
    | commands.SPACES
    | commands.LIMITS
    | OPERATORS
    | commands.SIZED
    | _guarded_as("braced")
)


def advance(state: State, token: str) -> State | None:
    """Return the state after a token, or None where the token may not stand."""
    frame = state.frame
    match frame:
        case Items():
            return _in_items(state, frame, token)
        case Arguments():
            return _in_arguments(state, frame, token)
        case Text():
            return _in_text(state, token)
        case Columns(number=number):
            return _in_columns(state, number, token)
        case Place(known=known):
            if known:
                return state.below if token == "]" else None
            return state.replace(Place(known=True)) if token in ("t", "b", "c") else None
        case Length():
            return _in_length(state, frame, token)


def may_end(state: State) -> bool:
    """Tell whether the formula may end here."""
    return isinstance(state.frame, Items) and state.frame.owner == "top" and state.frame.filled


def is_right(token: str) -> bool:
    """Tell whether a token closes a \\left."""
    return token.startswith(r"\right") and token[6:] in DELIMITERS


def _is_left(token: str) -> bool:
    return token.startswith(r"\left") and token[5:] in DELIMITERS


def _is_symbol(token: str) -> bool:
    return token != "}" and not is_right(token) and not token.startswith(r"\end{")


def _in_items(state: State, items: Items, token: str) -> State | None:
    if _closes(items, token):
        return state.below
    if token in FORBIDDEN:
        return None
    if token in commands.SCRIPTS:
        return _script(state, items, token)
    if token in commands.LIMITS:
        return state.replace(items._replace(operator=False)) if items.operator else None
    if token == r"\hline":
        return state if items.owner == "array" and items.fresh else None
    if token in ("&", "\\\\"):
        return _break(state, items, token)
    if token == "[" and items.fresh:
        return _bracket_in_row(state, items)
    if token == r"\atop":
        return None if items.infix else state.replace(_after_atom(items)._replace(infix=True))
    if token == r"\middle":
        return push(Arguments("D"), _atom(state, items)) if items.owner == LEFT else None
    if _is_left(token):
        return None if items.owner == "[" else push(Items(LEFT), _atom(state, items))
    if token.startswith(r"\begin{"):
        return _begin(state, items, token[7:-1])
    if token == "{":
        return push(Items("{"), _atom(state, items))
    return _command(state, items, token)


def _closes(items: Items, token: str) -> bool:
    """Tell whether a token closes the list."""
    owner = items.owner
    if owner in ENVIRONMENTS:
        return items.fresh and items.rows and token == rf"\end{{{owner}}}"
    if owner == LEFT:
        return is_right(token)
    return token == {"{": "}", "lines": "}", "[": "]", "$": "$"}.get(owner)


def _after_atom(items: Items, *, operator: bool = False) -> Items:
    return items._replace(base=True, sub=False, sup=False, operator=operator, fresh=False)


def _atom(state: State, items: Items, *, operator: bool = False) -> State:
    """Return the state after an atom has been read, or will have been."""
    return state.replace(_after_atom(items, operator=operator))


def _script(state: State, items: Items, token: str) -> State | None:
    """Below before above, each once; only what has no base may be the other way round, and bare."""
    mark = commands.SCRIPTS[token]
    if (items.sub if mark == "_" else items.sup) or (mark == "_" and items.sup and items.base):
        return None
    attached = items._replace(operator=False, fresh=False)
    attached = attached._replace(sub=True) if mark == "_" else attached._replace(sup=True)
    if token == "'":
        return state.replace(attached._replace(base=True))
    bare = not items.filled or token[0] == "\\"
    return push(Arguments("m" if bare else "s"), state.replace(attached))


def _break(state: State, items: Items, token: str) -> State | None:
    if items.owner == "lines":
        return state.replace(Items("lines")) if token == "\\\\" else None
    if items.owner not in ENVIRONMENTS:
        return None
    clean = Items(items.owner, columns=items.columns, rows=items.rows)
    if token == "&":
        return state.replace(clean._replace(left=items.left - 1)) if items.left else None
    return state.replace(clean._replace(left=items.columns - 1, rows=True, fresh=True))


def _bracket_in_row(state: State, items: Items) -> State | None:
    """At the start of a row `[` opens the gap that `\\\\` asks for, or the place of the whole box."""
    if items.rows:
        return push(Length("]"), state)
    environment = commands.ENVIRONMENTS[items.owner]
    if environment.specification or not environment.position:  # an array has its place before its columns
        return None
    return push(Place(), state.replace(items._replace(fresh=False)))


def _begin(state: State, items: Items, name: str) -> State | None:
    if name not in ENVIRONMENTS or items.owner == "[":
        return None
    columns = ENVIRONMENTS[name]
    body = push(Items(name, columns=columns, left=max(columns - 1, 0), fresh=True), _atom(state, items))
    if columns:
        return body
    return push(Arguments("PC" if commands.ENVIRONMENTS[name].position else "C"), body)


def _command(state: State, items: Items, token: str) -> State | None:
    """Read a symbol, or a command and what it waits for."""
    after = _atom(state, items, operator=token in OPERATORS)
    if token in commands.SIZED:
        return push(Arguments("D"), after)
    if token == r"\substack":
        return push(Arguments("B"), after)
    letters = commands.SIGNATURES.get(token)
    if letters is None:
        return after if _is_symbol(token) else None
    if "o" in letters and items.owner == "[":
        return None
    return push(Arguments(letters, mu=token in (r"\mkern", r"\mskip")), after)


def _in_arguments(state: State, frame: Arguments, token: str) -> State | None:
    letter, rest = frame.letters[0], frame.letters[1:]
    below = state.replace(frame._replace(letters=rest)) if rest else state.below
    assert below is not None
    if letter in "oP":
        opened: Frame = Items("[") if letter == "o" else Place()
        return push(opened, below) if token == "[" else advance(below, token)
    if letter == "D":
        return below if token in DELIMITERS else None
    if letter == "d":
        return advance(push(Length("", mu=frame.mu), below), token)
    if token == "{":
        inner: dict[str, Frame] = {"t": Text(), "l": Length("}"), "C": Columns(), "B": Items("lines")}
        return push(inner.get(letter, Items("{")), below)
    if letter == "t":
        return below if len(token) == 1 and token.isalnum() else None
    if letter != "m" or token in NOT_BARE or _is_left(token) or token.startswith(r"\begin{"):
        return None
    return below if _is_symbol(token) else None


def _in_text(state: State, token: str) -> State | None:
    if token == "}":
        return state.below
    if token == "{":
        return push(Text(), state)
    if token == "$":
        return push(Items("$"), state)
    if token in commands.TEXTS and token not in FORBIDDEN:
        return push(Arguments("t"), state)
    return state if token in TEXT_COMMANDS or (len(token) == 1 and token not in "_^&#%") else None


def _in_columns(state: State, number: int, token: str) -> State | None:
    if token == "@":
        return push(Arguments("s"), state)
    if token in ("l", "c", "r", "|"):
        return state.replace(Columns(number + (token != "|")))
    if token != "}" or not number:
        return None
    body = state.below  # the environment learns how many columns it has
    assert body is not None
    assert isinstance(body.frame, Items)
    return body.replace(body.frame._replace(columns=number, left=number - 1))


def _in_length(state: State, length: Length, token: str) -> State | None:
    if length.whole:
        return state.below if token == length.closer else None
    after = length.after(token)
    if after is None:
        return None
    return state.below if after.whole and not length.closer else state.replace(after)


# The same up to 24 tokens, four times or more and over 48 tokens: 6 of 45,000 real formulas do that.
MAX_PERIOD: Final = 24
MIN_REPEATS: Final = 4
MIN_REPEATED_TOKENS: Final = 48
SPARE_STEPS: Final = 6  # one token may ask for this many more to close what it opens


# What a picture of one or two symbols cannot show: the size they are set in, an alphabet that looks like the
# plain one, a table around them. A model that has seen such labels would write them now and then.
UNSEEN: Final = _guarded_as("unseen") | {rf"\begin{{{name}}}" for name in ENVIRONMENTS}
# Of one symbol: space, scripts, and a weight or upright form that nothing beside it shows.
UNSEEN_ALONE: Final = UNSEEN | _guarded_as("unseen-alone") | commands.SPACES


class GuardState(NamedTuple):
    """What a guard knows about one hypothesis."""

    grammar: State
    recent: tuple[int, ...] = ()  # the last tokens, newest first
    repeated: tuple[int, ...] = (0,) * MAX_PERIOD  # for each period, how many of the last tokens repeat

    @property
    def loops(self) -> bool:
        """Whether the hypothesis has only been repeating itself for long."""
        possible = max(self.repeated) >= MIN_REPEATED_TOKENS - MAX_PERIOD
        return possible and any(
            run + period >= max(MIN_REPEATED_TOKENS, MIN_REPEATS * period)
            for period, run in enumerate(self.repeated, start=1)
        )


def guards_of_few(vocabulary: Vocabulary) -> dict[int | str, "FormulaGuard"]:
    """Return the guards of pictures with one symbol and with two, which can show less than others."""
    return {
        1: FormulaGuard(vocabulary, without=UNSEEN_ALONE),
        2: FormulaGuard(vocabulary, without=UNSEEN),
    }


def guards_of_shapes(vocabulary: Vocabulary) -> dict[int | str, "FormulaGuard"]:
    """Return the guards of handwriting that is nothing but a bar, or some dots, by `CanvasInk.shape`."""
    words = vocabulary.tokens[Vocabulary.bos_id + 1 :]
    none: frozenset[str] = frozenset()
    shapes: dict[str, frozenset[str]] = {
        name: command.shape for name, command in commands.COMMANDS.items() if not command.arguments
    }

    def guard(test: Callable[[frozenset[str]], object]) -> FormulaGuard:
        return _SignGuard(vocabulary, without={word for word in words if not test(shapes.get(word, none))})

    return {
        "bar": guard(lambda shape: shape == {"bar"}),
        "dot": guard(lambda shape: shape == {"mark"}),
        "two dots": guard(lambda shape: shape == {"mark", "stacked"}),
        "three dots": guard(lambda shape: shape >= {"mark", "row"}),
    }


class FormulaGuard:
    """Lets through what is a formula and comes to an end. Safe to share between threads."""

    def __init__(self, vocabulary: Vocabulary, *, without: Collection[str] = ()) -> None:
        """Take the vocabulary, and tokens that are let through nowhere."""
        self._tokens = vocabulary.tokens
        self._without = [index for index, token in enumerate(vocabulary.tokens) if token in without]
        self._ids = {token: index for index, token in enumerate(vocabulary.tokens)}
        rights = sorted((token for token in self._tokens if is_right(token)), key=lambda t: t != r"\right.")
        self._rights = rights
        # a dotless letter with a dot is a letter
        self._dotless = [self._ids[token] for token in (r"\imath", r"\jmath") if token in self._ids]
        self._dot = self._ids.get("{"), self._ids.get(r"\dot")
        self._masks: dict[object, NDArray[np.bool_]] = {}

    def start(self) -> GuardState:
        """Return the state before the first token."""
        return GuardState(START)

    def advance(self, state: GuardState, token_id: int) -> GuardState:
        """Return the state after a token that `allowed` let through."""
        grammar = advance(state.grammar, self._tokens[token_id])
        assert grammar is not None
        repeated = tuple(
            run + 1 if token_id == before else 0
            for run, before in zip(state.repeated, state.recent, strict=False)
        )
        return GuardState(
            grammar,
            (token_id, *state.recent[: MAX_PERIOD - 1]),
            repeated + (0,) * (MAX_PERIOD - len(repeated)),
        )

    def allowed(self, states: Sequence[GuardState], *, steps_left: int) -> NDArray[np.bool_]:
        """Tell for each state which tokens may come next: (N, K).

        Args:
            states: of N hypotheses.
            steps_left: tokens that may still be written, eos included.
        """
        return np.stack([self._mask(state, steps_left) for state in states])

    def _mask(self, state: GuardState, steps_left: int) -> NDArray[np.bool_]:
        grammar = state.grammar
        closing = state.loops or steps_left <= grammar.cost + SPARE_STEPS
        deep = grammar.depth >= MAX_DEPTH
        dotted = state.recent[:2] == self._dot
        key = (type(grammar.frame), grammar.frame, closing, deep, dotted)  # equal frames may be of two kinds
        mask = self._masks.get(key)
        if mask is None:
            mask = self._closing_mask(grammar) if closing else self._full_mask(grammar, deep=deep)
            self._masks[key] = mask = _all_but(mask, self._dotless) if dotted else mask
        return mask

    def _closing_mask(self, state: State) -> NDArray[np.bool_]:
        if not self._can_close(state, 1):  # an empty formula is filled with braces, which may be missing
            return self._full_mask(state, deep=True)
        token = closing_token(state, self._rights)
        mask = np.zeros(len(self._tokens), np.bool_)
        mask[self._ids[token] if token else Vocabulary.eos_id] = True
        return mask

    def _full_mask(self, state: State, *, deep: bool) -> NDArray[np.bool_]:
        mask = np.zeros(len(self._tokens), np.bool_)
        mask[Vocabulary.eos_id] = may_end(state)
        for token_id in range(Vocabulary.bos_id + 1, len(self._tokens)):
            after = advance(state, self._tokens[token_id])
            if after is not None and not (deep and after.depth > state.depth):
                mask[token_id] = self._can_close(after, state.depth)
        return _all_but(mask, self._without)

    def _can_close(self, state: State, depth: int) -> bool:
        """Tell whether all above a depth can be closed with this vocabulary."""
        while state.depth > depth or not isinstance(state.frame, Items) or not state.frame.filled:
            if isinstance(state.frame, Items) and state.frame.owner == LEFT and not self._rights:
                return False
            closer = closing_token(state, self._rights)
            after = advance(state, closer) if closer in self._ids else None
            if after is None:
                return False
            state = after
        return True


class _SignGuard(FormulaGuard):
    """Lets one token through, and then the end."""

    def _mask(self, state: GuardState, steps_left: int) -> NDArray[np.bool_]:
        if not state.recent:
            return super()._mask(state, steps_left)
        mask = np.zeros(len(self._tokens), np.bool_)
        mask[Vocabulary.eos_id] = True
        return mask


def _all_but(mask: NDArray[np.bool_], without: list[int]) -> NDArray[np.bool_]:
    """Take some tokens away, unless nothing would be left."""
    rest = mask.copy()
    rest[without] = False
    return rest if rest.any() else mask
