"""The interpreter of the static site: Pyodide's WebAssembly, made so that Chromium optimises it once.

Its largest function is the loop that interprets Python. It has many indirect calls, and calls small functions
that have more of them. Chromium guesses whom an indirect call means, copies small functions into the large
one, and throws all of it away at the first call that means another one. Optimising the loop takes a processor
a third of a second; during the first reading it was done four times, and between them Python ran unoptimised.

Here the loop makes its indirect calls through functions that do nothing else, and whatever it calls is too
large to be copied: functions are filled up with instructions that do nothing.
"""

from collections.abc import Iterator
from typing import Final

TYPES, IMPORTS, FUNCTIONS, CODE = 1, 2, 3, 10  # numbers of sections
CALL, CALL_INDIRECT, LOCAL_GET, END, NOP = 0x10, 0x11, 0x20, 0x0B, 0x01
FUNCTION_TYPE, I32 = 0x60, 0x7F
_HEAD: Final = 8  # bytes before the first section
_TOO_LARGE: Final = (
    501  # bytes of a function that is not copied into others (V8's --wasm-inlining-max-size is 500)
)

# What follows an instruction: so many numbers. Types of blocks and of references are numbers too.
_NUM_OPERANDS: Final = {
    **dict.fromkeys((0x02, 0x03, 0x04, 0x06, 0x07, 0x08, 0x09, 0x0C, 0x0D, CALL, 0x12, 0x18), 1),
    **dict.fromkeys((*range(LOCAL_GET, 0x27), 0x3F, 0x40, 0x41, 0x42, 0xD0, 0xD2), 1),
    **dict.fromkeys((CALL_INDIRECT, 0x13, *range(0x28, 0x3F)), 2),
}
_TABLE_OF_BRANCHES, _LONG = 0x0E, 0xFC  # a list and one more; an instruction whose number follows
_FLOATS: Final = {0x43: 4, 0x44: 8}  # so many bytes follow
_NUM_OPERANDS_LONG: Final = {**dict.fromkeys(range(8), 0), 8: 2, 9: 1, 10: 2, 11: 1, 12: 2, 13: 1, 14: 2}
_UNKNOWN: Final = frozenset((0x1C, 0x1F, *range(0xD3, 0x100))) - {_LONG}


def read_number(code: bytes, place: int) -> tuple[int, int]:
    """Read a number, without its sign; return it and the place behind it."""
    value = shift = 0
    while True:
        byte = code[place]
        place += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, place


def write_number(value: int) -> bytes:
    """Write a number that is not negative."""
    return bytes((value,)) if value < 128 else bytes((value & 127 | 128,)) + write_number(value >> 7)


def _filled_up(body: bytes) -> bytes:
    return body[:-1] + bytes((NOP,)) * (_TOO_LARGE - len(body)) + body[-1:]


def _with_length(content: bytes) -> bytes:
    return write_number(len(content)) + content


def _skip(code: bytes, place: int, count: int) -> int:
    for _ in range(count):
        _, place = read_number(code, place)
    return place


def instructions(body: bytes) -> Iterator[tuple[int, int, int]]:
    """Yield the instructions of a function's body: what each is, where it begins and where it ends.

    Raises:
        ValueError: if there is one that is not known here.
    """
    count, place = read_number(body, 0)
    place = _skip(body, place, 2 * count)  # its local variables
    while place < len(body):
        start, what = place, body[place]
        place += 1
        if what in _UNKNOWN:
            raise ValueError(f"unknown instruction {what:#x} in WebAssembly")
        if what == _TABLE_OF_BRANCHES:
            count, place = read_number(body, place)
            place = _skip(body, place, count + 1)
        elif what == _LONG:
            number, place = read_number(body, place)
            place = _skip(body, place, _NUM_OPERANDS_LONG[number])
        else:
            place = _skip(body, place + _FLOATS.get(what, 0), _NUM_OPERANDS.get(what, 0))
        yield what, start, place


class Module:
    """A module of WebAssembly, as far as functions are concerned."""

    def __init__(self, content: bytes) -> None:
        self._head, self._sections = content[:_HEAD], list[tuple[int, bytes]]()
        place = _HEAD
        while place < len(content):
            kind = content[place]
            length, start = read_number(content, place + 1)
            place = start + length
            self._sections.append((kind, content[start:place]))
        sections = dict(self._sections)
        self.types = list(_split_types(sections[TYPES]))
        self.function_types = _read_numbers(sections[FUNCTIONS])
        self.num_imported = _count_imported_functions(sections[IMPORTS])
        self.bodies = list(_split_bodies(sections[CODE]))

    def write(self) -> bytes:
        """Write the module."""
        changed = {
            TYPES: write_number(len(self.types)) + b"".join(self.types),
            FUNCTIONS: b"".join(map(write_number, (len(self.function_types), *self.function_types))),
            CODE: write_number(len(self.bodies)) + b"".join(map(_with_length, self.bodies)),
        }
        return self._head + b"".join(
            bytes((kind,)) + _with_length(changed.get(kind, content)) for kind, content in self._sections
        )

    def fill_up(self, function: int) -> None:
        """Make a function, by the number by which it is called, too large to be copied; imported ones are."""
        place = function - self.num_imported
        if place >= 0:
            self.bodies[place] = _filled_up(self.bodies[place])

    def add_caller(self, kind: int, table: int) -> int:
        """Add a function that takes what an indirect call of this type takes, and makes the call.

        Returns:
            The number by which it is called.
        """
        num_taken, start = read_number(self.types[kind], 1)
        end = start + num_taken
        taken, given = self.types[kind][start:end], self.types[kind][end:]
        signature = bytes((FUNCTION_TYPE,)) + _with_length(taken + bytes((I32,))) + given
        if signature not in self.types:
            self.types.append(signature)
        gets = b"".join(bytes((LOCAL_GET,)) + write_number(local) for local in range(num_taken + 1))
        call = bytes((CALL_INDIRECT,)) + write_number(kind) + write_number(table)
        self.function_types.append(self.types.index(signature))
        self.bodies.append(_filled_up(bytes((0,)) + gets + call + bytes((END,))))
        return self.num_imported + len(self.bodies) - 1


def prevent_guesses(content: bytes) -> bytes:
    """Change the largest function of a module, and those that it calls, so that nothing in it is guessed."""
    module = Module(content)
    place, body = max(enumerate(module.bodies), key=lambda one: len(one[1]))
    callers: dict[tuple[int, int], int] = {}  # by type and table
    parts, copied = [], 0
    for what, start, end in instructions(body):
        if what == CALL:
            module.fill_up(read_number(body, start + 1)[0])
        elif what == CALL_INDIRECT:
            kind, behind = read_number(body, start + 1)
            table, _ = read_number(body, behind)
            if (kind, table) not in callers:
                callers[kind, table] = module.add_caller(kind, table)
            parts += [body[copied:start], bytes((CALL,)), write_number(callers[kind, table])]
            copied = end
    module.bodies[place] = b"".join((*parts, body[copied:]))
    return module.write()


def _read_numbers(section: bytes) -> list[int]:
    count, place = read_number(section, 0)
    numbers = []
    for _ in range(count):
        number, place = read_number(section, place)
        numbers.append(number)
    return numbers


def _split_types(section: bytes) -> Iterator[bytes]:
    count, place = read_number(section, 0)
    for _ in range(count):
        start = place
        if section[start] != FUNCTION_TYPE:
            raise ValueError(f"unknown type {section[start]:#x} in WebAssembly")
        place += 1
        for _ in ("taken", "given"):
            length, place = read_number(section, place)
            place += length
        yield section[start:place]


def _split_bodies(section: bytes) -> Iterator[bytes]:
    count, place = read_number(section, 0)
    for _ in range(count):
        length, place = read_number(section, place)
        yield section[place : place + length]
        place += length


def _count_imported_functions(section: bytes) -> int:
    count, place = read_number(section, 0)
    functions = 0
    for _ in range(count):
        for _ in ("module", "name"):
            length, place = read_number(section, place)
            place += length
        kind, place = section[place], place + 1
        functions += kind == 0
        if kind in (1, 2):  # a table, which has a type first, or a memory: its limits
            place += kind == 1
            place = _skip(section, place, 2 + section[place] % 2)
        else:  # a function's type; a global's type, and whether it changes; a kind and type of exceptions
            place = _skip(section, place, {0: 1, 3: 2, 4: 2}[kind])
    return functions
