"""The text that TeX typesets of one document: where each character came from, and what was defined where."""

from bisect import bisect_right
from dataclasses import dataclass, field
from typing import NamedTuple

from i2l.formulas.definitions import Definition
from i2l.sources.texts import CleanText


class Event(NamedTuple):
    """A definition, and from which character of the document's text on it counts."""

    position: int
    definition: Definition


class Place(NamedTuple):
    """Where a piece of the document's text came from: a file from a place on, or a macro called there."""

    file: str
    text: CleanText
    offset: int  # of the piece in the file's clean text
    call_end: int | None  # for a macro: where its call ends, so that the piece has no places of its own


@dataclass
class Document:
    """What TeX typesets of one root file, in order."""

    text: str
    starts: list[int]
    places: list[Place]
    events: list[Event]
    body_start: int = 0  # where \\begin{document} stands
    files: set[str] = field(default_factory=set)

    def locate(self, start: int, end: int) -> tuple[str, int, int]:
        """Give the file and the span in it of a span of the text; it ends in the file where it starts."""
        file, first = self._place(start, opening=True)
        other, last = self._place(max(start, end - 1), opening=False)
        return file, first, last if other == file and last > first else first

    def _place(self, position: int, *, opening: bool) -> tuple[str, int]:
        index = max(0, bisect_right(self.starts, position) - 1)
        place = self.places[index]
        if place.call_end is not None:
            return place.file, place.text.place(place.offset if opening else place.call_end - 1) + (
                not opening
            )
        inside = place.offset + position - self.starts[index]
        return place.file, place.text.place(inside) + (not opening)
