"""How long a definition holds: to the end of the group that it stands in, as in TeX."""

import re
from collections import Counter
from collections.abc import Sequence
from typing import Final

_EDGE: Final = re.compile(
    r"\\(?:(begin|end)\s*\{([^{}]*)\}|(bgroup|begingroup|egroup|endgroup)(?![A-Za-z@])|.)|([{}])", re.DOTALL
)
_OPENING: Final = frozenset(["{", "bgroup", "begingroup"])


def scope_ends(text: str, positions: Sequence[int]) -> list[int]:
    """Say for each position, in rising order, where the group around it ends, or the whole text."""
    ends = [len(text)] * len(positions)
    groups: list[tuple[str, list[int]]] = []  # what opened each group, and which positions stand in it
    names: Counter[str] = Counter()  # of the environments that are open
    waiting = num_open = 0
    for match in _EDGE.finditer(text):
        while waiting < len(positions) and positions[waiting] <= match.start():
            if groups:
                groups[-1][1].append(waiting)
                num_open += 1
            waiting += 1
        if waiting == len(positions) and not num_open:
            break
        edge, environment, command, brace = match.groups()
        closed = None
        if edge == "begin":
            groups.append((environment, []))
            names[environment] += 1
        elif (brace or command) in _OPENING:
            groups.append(("{", []))
        elif edge == "end" and names[environment]:
            closed = environment
        elif (brace or command) and groups and groups[-1][0] == "{":
            closed = "{"
        while closed is not None:
            opened, members = groups.pop()
            names[opened] -= 1
            num_open -= len(members)
            for member in members:
                ends[member] = match.start()
            if opened == closed:
                closed = None
    return ends
