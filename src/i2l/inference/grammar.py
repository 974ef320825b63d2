"""The grammar of canonical tokens as an automaton: which tokens may come next, one token at a time.

A state is a stack of frames, each a short tuple that says what is open and what it still waits for. Before a
frame is pushed, the one below takes the form it will have once the new one is closed; so closing is a pop.
Whatever the automaton accepts, `normalize_formula` accepts; and TeX, but for what depends on meaning.
"""

from typing import Final

from i2l.formulas import commands
from i2l.formulas.environments import ROW_COMMANDS
from i2l.formulas.parser import DELIMITERS, INFIXES, SKIPPED
from i2l.inference.grammar_frames import (
    ENVIRONMENTS,
    LEFT,
    Arguments,
    Columns,
    Frame,
    Items,
    Length,
    Place,
    State,
    Text,
    push,
)

MAX_DEPTH = 25  # frames; the deepest of 45,000 real formulas has 12, and the parser allows about 30


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split(" "))


START: Final = push(Items("top"), None)
SCRIPTS: Final = {"_": "_", "^": "^", "'": "^", r"\sb": "_", r"\sp": "^"}
LIMITS: Final = _words(r"\limits \nolimits \displaylimits")
OPERATORS: Final = commands.BIG_OPERATORS | commands.SIDE_OPERATORS | _words(r"\overbrace \underbrace")
SIZED: Final = frozenset(
    rf"\{size}{side}" for size in ("big", "Big", "bigg", "Bigg") for side in ("", "l", "r", "m")
)
TEXT_LETTERS: Final = _words(r"\ss \o \O \ae \AE \oe \OE \aa \AA \l \L \i \j")
TEXT_ACCENTS: Final = _words(
    r"""\' \` \" \^ \~ \= \. \c \d \v \b \u \H \r \k"""
)  # TeX takes them in text mode only
TEXT_COMMANDS: Final = (
    _words(r"\ \, \: \; \! \- \/ \& \% \# \$ \_ \{ \} \quad \qquad \enspace \thinspace \ldots \dots")
    | TEXT_LETTERS
    | TEXT_ACCENTS
    | commands.SIZE_SWITCHES
    | (commands.FONT_SWITCHES - _words(r"\boldmath \unboldmath \mit \cal"))
)
# Never canonical, or beyond this grammar: boxes, pictures, rules inside a row.
FORBIDDEN: Final = (
    frozenset(commands.DROPPED)
    | frozenset(commands.COLORS)
    | (frozenset(ROW_COMMANDS) - {r"\substack"})
    | frozenset(INFIXES)
    | SKIPPED
    | TEXT_ACCENTS
    | _words(
        r"% # \left \right \begin \end \cr \crcr \buildrel \cline \noalign \multicolumn \omit \span \put"
    )
    | _words(r"\circle \line \unitlength \setlength \linethickness \thicklines \vline \hdashline \ref")
    | {name for name, letters in commands.SIGNATURES.items() if letters not in _words("m mm om t l d")}
)
# What cannot be an argument without braces: TeX would take the name alone.
NOT_BARE: Final = (
    FORBIDDEN
    | frozenset(commands.SIGNATURES)
    | frozenset(SCRIPTS)
    | frozenset(commands.STYLE_SWITCHES)
    | commands.FONT_SWITCHES
    | commands.SIZE_SWITCHES
    | commands.SPACES
    | LIMITS
    | OPERATORS
    | SIZED
    | _words(r"& \\ [ ] } \middle \hline \substack \not \atop \mod \bmod")
)


def advance(state: State, token: str) -> State | None:
    """Give the state after a token, or None where the token may not stand."""
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
    if token in SCRIPTS:
        return _script(state, items, token)
    if token in LIMITS:
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
    """Give the state after an atom has been read, or will have been."""
    return state.replace(_after_atom(items, operator=operator))


def _script(state: State, items: Items, token: str) -> State | None:
    """Below before above, each once; only what has no base may be the other way round, and bare."""
    mark = SCRIPTS[token]
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
    placed = state.replace(items._replace(fresh=False))
    return push(Place(), placed) if items.owner in ("aligned", "gathered") else None


def _begin(state: State, items: Items, name: str) -> State | None:
    if name not in ENVIRONMENTS or items.owner == "[":
        return None
    columns = ENVIRONMENTS[name]
    body = push(Items(name, columns=columns, left=max(columns - 1, 0), fresh=True), _atom(state, items))
    return body if columns else push(Arguments("PC" if name == "array" else "C"), body)


def _command(state: State, items: Items, token: str) -> State | None:
    """Read a symbol, or a command and what it waits for."""
    after = _atom(state, items, operator=token in OPERATORS)
    if token in SIZED:
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
