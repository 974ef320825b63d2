"""How long a definition holds: to the end of the group that it stands in, as in TeX."""

import re
from collections.abc import Sequence
from typing import Final

_EDGE: Final = re.compile(
    r"\\(?:(begin|end)\s*\{([^{}]*)\}|(bgroup|begingroup|egroup|endgroup)(?![A-Za-z@])|.)|([{}])", re.DOTALL
)
_OPENING: Final = frozenset(["{", "bgroup", "begingroup"])


def scope_ends(text: str, positions: Sequence[int]) -> list[int]:
    """Give for each position, in rising order, where the group around it ends; the text's end if there is none."""
    ends = [len(text)] * len(positions)
    if not positions:
        return ends
    groups: list[tuple[str, list[int]]] = []  # what opened each group, and which positions stand in it
    waiting = 0
    for match in _EDGE.finditer(text):
        while waiting < len(positions) and positions[waiting] <= match.start():
            if groups:
                groups[-1][1].append(waiting)
            waiting += 1
        if waiting == len(positions) and not any(members for _, members in groups):
            break
        edge, environment, command, brace = match.groups()
        if edge == "begin":
            groups.append((environment, []))
        elif edge == "end":
            if any(opened == environment for opened, _ in groups):
                while _close(groups, match.start(), ends) != environment:
                    pass
        elif (brace or command) in _OPENING:
            groups.append(("{", []))
        elif (brace or command) and groups and groups[-1][0] == "{":
            _close(groups, match.start(), ends)
    return ends


def _close(groups: list[tuple[str, list[int]]], position: int, ends: list[int]) -> str:
    opened, members = groups.pop()
    for member in members:
        ends[member] = position
    return opened
