"""The typed tree between the parser and the printers. Every node knows its place in the source."""

from dataclasses import dataclass, field, replace


@dataclass(slots=True)
class Symbol:
    """One token that stands for itself."""

    text: str
    start: int
    end: int


@dataclass(slots=True)
class Group:
    """Items in braces."""

    items: "list[Node]"
    start: int
    end: int


@dataclass(slots=True)
class Optional:
    """Items in square brackets."""

    items: "list[Node]"
    start: int
    end: int


@dataclass(slots=True)
class Scripts:
    """A base with what is below and above it; the base is missing where a formula starts with a script."""

    base: "Node | None"
    sub: "Node | None"
    sup: "Node | None"
    limits: Symbol | None
    start: int
    end: int


@dataclass(slots=True)
class Length:
    """The characters of a length such as 1.5em, in braces, in brackets or bare."""

    symbols: list[Symbol]
    bracket: str  # "{", "[" or "" for a bare one
    start: int
    end: int


@dataclass(slots=True)
class Text:
    """The characters and commands of an argument set in text mode; a space is the symbol `~`."""

    symbols: list[Symbol]
    start: int
    end: int


@dataclass(slots=True)
class Command:
    """A command with the arguments its signature asks for; end is that of its last argument."""

    name: str
    arguments: "list[Node]"
    start: int
    name_end: int
    end: int


@dataclass(slots=True)
class Delimited:
    """What stands between \\left and \\right, each with its delimiter in one symbol."""

    left: Symbol
    items: "list[Node]"
    right: Symbol
    start: int
    end: int


@dataclass(slots=True)
class Row:
    """One row of an array: rules above it, its cells, and the gap that its `\\\\` asks for."""

    rules: "list[Node]" = field(default_factory=list)
    cells: "list[list[Node]]" = field(default_factory=list)
    breaks: list[Symbol] = field(default_factory=list)  # the `&` after each cell but the last, then the `\\`
    gap: Length | None = None


@dataclass(slots=True)
class Array:
    """An environment of rows and cells."""

    begin: Symbol
    name: str
    position: Optional | None
    columns: list[Symbol] | None
    rows: list[Row]
    rules: "list[Node]"  # after the last row
    closing: Symbol
    start: int
    end: int


Node = Symbol | Group | Optional | Scripts | Length | Text | Command | Delimited | Array


def put_before(base: Node, items: list[Node]) -> list[Node]:
    """Put a node before items, as the base of the scripts that they may start with."""
    first = items[0] if items else None
    if isinstance(first, Scripts) and first.base is None:
        return [replace(first, base=base), *items[1:]]
    return [base, *items]


def is_lone_prime(node: Node) -> bool:
    """Tell the superscript of a bare `'` from a written `^{\\prime}`: it is one character long."""
    return isinstance(node, Group) and len(node.items) == 1 and node.end - node.start == 1
