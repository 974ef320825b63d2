"""Ink as files hold it: strokes with their labels, out of InkML in all its variants or out of JSON, and back.

InkML is a standard of the W3C with room for variants. CROHME writes bare coordinates and one group of traces
a symbol, MathWriting adds times and keeps its label in an annotation, and others name channels in any order,
write differences instead of places, and cut strokes into views of traces. JSON is what web pages send: lists
of points, objects with x and y, or the nested form that Mathpix has.

Files of strangers are expected here. Whatever is wrong with one, it gets an `InkError` that says so, within
limits on bytes, depth, elements and points; entities and document types are refused before they expand.
"""

import json
import math
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from xml.parsers import expat
from xml.sax.saxutils import escape

import numpy as np
from numpy.typing import NDArray

from i2l.errors import I2LError
from i2l.files import atomic_write

MAX_FILE_BYTES: Final = 16 << 20
MAX_STROKES: Final = 5_000
MAX_POINTS: Final = 200_000
MAX_DEPTH: Final = 64  # of elements in elements, or of lists in lists
MAX_ELEMENTS: Final = 100_000
MAX_VALUE: Final = 1e9  # of a coordinate; larger ones are damage
_GZIP: Final = b"\x1f\x8b"
SUFFIXES: Final = (".inkml", ".json")  # of files that hold strokes

Points = NDArray[np.float64]  # (N, 2): x and y, which grows downwards


class InkError(I2LError):
    """Ink that cannot be read; the message says why and what to do."""


@dataclass(frozen=True)
class Symbol:
    """A written symbol: what it is, and the numbers of the strokes that it is made of."""

    label: str
    strokes: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Ink:
    """Strokes in the order they were written, and what the file says about them."""

    strokes: tuple[Points, ...]
    latex: str = ""  # the whole formula, where the file has it
    symbols: tuple[Symbol, ...] = ()
    name: str = ""
    writer: str = ""

    @property
    def bounds(self) -> tuple[float, float, float, float]:
        """Left, top, right and bottom of all points."""
        points = np.concatenate(self.strokes)
        left, top = points.min(axis=0)
        right, bottom = points.max(axis=0)
        return float(left), float(top), float(right), float(bottom)

    def to_dict(self) -> dict[str, Any]:
        """Return the ink as JSON values; `read_ink` takes them again."""
        return {
            "id": self.name,
            "writer": self.writer,
            "latex": self.latex,
            "strokes": [stroke.tolist() for stroke in self.strokes],
            "symbols": [[symbol.label, list(symbol.strokes)] for symbol in self.symbols],
        }


def open_ink(path: Path) -> Ink:
    """Read one file of strokes, InkML or JSON.

    Raises:
        InkError: if it cannot be read, is too large, or holds no strokes.
    """
    try:
        with open(path, "rb") as file:
            content = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise InkError(f"Cannot read {path}: {error.strerror}.") from error
    except ValueError as error:  # a zero byte, or half a character, which no name of a file has
        raise InkError(f"Cannot read {str(path)!a}: this is no name of a file.") from error
    return read_ink(content, name=path.stem)


def read_ink(content: bytes | str, *, name: str = "") -> Ink:
    """Read strokes out of the content of a file: InkML if it begins as XML does, else JSON.

    Raises:
        InkError: if the content is neither, is too large, or holds no strokes.
    """
    data = content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content
    if len(data) > MAX_FILE_BYTES:
        raise InkError(
            f"The file has more than {MAX_FILE_BYTES >> 20} MiB; strokes of a formula are far less."
        )
    head = data.lstrip(b"\xef\xbb\xbf\xff\xfe\x00 \t\r\n")[:1]
    if not head:
        raise InkError("The file is empty; give InkML, or strokes as JSON.")
    if data.startswith(_GZIP):
        raise InkError("The file is packed by gzip; unpack it, and give the InkML or JSON in it.")
    if head == b"<":
        return _parse_inkml(data, name, encoding="UTF-8" if isinstance(content, str) else _encoding(data))
    return _parse_json(data, name)


StrokeSource = (
    Ink
    | bytes
    | bytearray
    | memoryview
    | str
    | os.PathLike[str]
    | Sequence[Any]
    | Mapping[str, Any]
    | NDArray[Any]
)


def take_ink(source: StrokeSource) -> Ink:
    """Make ink of whatever holds strokes: a path, the content of a file, JSON values, or arrays of points.

    Raises:
        InkError: if there are no strokes in it.
    """
    if isinstance(source, Ink):
        return source
    if isinstance(source, bytes | bytearray | memoryview):
        return read_ink(bytes(source))
    if isinstance(source, str) and source.lstrip("\ufeff \t\r\n")[:1] in ("<", "{", "["):
        return read_ink(source)
    if isinstance(source, str | os.PathLike):
        return open_ink(Path(source))
    if isinstance(source, Mapping | np.ndarray):
        return ink_from_json(_as_json(source))
    if isinstance(source, Sequence):
        return ink_from_json(_as_json(list(source)))
    raise InkError(f"Strokes are a list of lists of points, InkML, or a path; not {type(source).__name__}.")


def _as_json(value: object, depth: int = 0) -> object:
    """Turn arrays, their numbers and tuples, at any depth, into the values that JSON has."""
    if depth > MAX_DEPTH:
        raise InkError("The lists are nested too deeply to be strokes.")
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, Mapping):
        return {key: _as_json(inner, depth + 1) for key, inner in value.items()}
    return [_as_json(inner, depth + 1) for inner in value] if isinstance(value, list | tuple) else value


def looks_like_ink(content: bytes) -> bool:
    """Tell from the first bytes whether a file is InkML or JSON, and not a picture."""
    head = content[:2_000].lstrip(b"\xef\xbb\xbf\xff\xfe\x00 \t\r\n")
    if head[:1] in (b"{", b"["):
        return True
    return head[:1] == b"<" and (b"ink" in head.replace(b"\x00", b"").lower())


def read_inks(path: Path) -> Iterator[Ink]:
    """Read many inks: a folder of InkML files, or a file of one JSON object a line, plain, .gz or .xz.

    Raises:
        InkError: if there are none, or one cannot be read; the message names it.
    """
    if path.is_dir():
        files = sorted(path.rglob("*.inkml"))
        if not files:
            raise InkError(f"{path} holds no InkML files.")
        for file in files:
            try:
                yield open_ink(file)
            except InkError as error:
                raise InkError(f"{file}: {error}") from error
        return
    from i2l.formulas.lexer import read_lines

    for number, line in enumerate(read_lines(path), start=1):
        try:
            yield read_ink(line, name=f"{path.name}:{number}")
        except InkError as error:
            raise InkError(f"{path}, line {number}: {error}") from error


# --- JSON -----------------------------------------------------------------------------------------------


def _parse_json(data: bytes, name: str) -> Ink:
    try:
        value = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise InkError(f"This is neither InkML nor JSON: {str(error)[:100]}.") from error
    try:
        return ink_from_json(value, name=name)
    except RecursionError as error:
        raise InkError("The JSON is nested too deeply to be strokes.") from error


def ink_from_json(value: object, *, name: str = "") -> Ink:
    """Make ink of JSON values: a list of strokes, or an object whose `strokes` are such a list.

    A stroke is a list of points, or an object with `points`, or with lists `x` and `y`. A point is [x, y] and
    maybe more numbers, or an object with x and y. Mathpix's {"strokes": {"strokes": {"x": [[...]],
    "y": [[...]]}}} is read too.

    Raises:
        InkError: if it is anything else, or holds no strokes.
    """
    outer: Mapping[str, Any] = value if isinstance(value, Mapping) else {}
    inner: object = value
    for _ in range(3):
        if isinstance(inner, Mapping) and "strokes" in inner:
            inner = inner["strokes"]
    if isinstance(inner, Mapping) and {"x", "y"} <= inner.keys():
        inner = _columns_to_strokes(inner["x"], inner["y"])
    if not isinstance(inner, list):
        raise InkError('Strokes are a list of lists of points, or an object {"strokes": [...]}.')
    if len(inner) > MAX_STROKES:
        raise InkError(f"There are {len(inner):,} strokes; at most {MAX_STROKES:,} are read.")
    strokes: list[Points] = []
    left = MAX_POINTS
    for number, stroke in enumerate(inner):
        strokes.append(_json_stroke(stroke, number, left))
        left -= len(strokes[-1])
    kept, symbols = _without_empty(strokes, _json_symbols(outer.get("symbols"), len(strokes)))
    return _finish(
        kept,
        latex=_text(outer.get("latex")),
        symbols=symbols,
        name=_text(outer.get("id")) or name,
        writer=_text(outer.get("writer")),
    )


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _columns_to_strokes(xs: object, ys: object) -> list[dict[str, object]]:
    if not isinstance(xs, list) or not isinstance(ys, list) or len(xs) != len(ys):
        raise InkError("x and y must be lists of the same length, with one list a stroke.")
    return [{"x": x, "y": y} for x, y in zip(xs, ys, strict=True)]


def _json_stroke(stroke: object, number: int, room: int) -> Points:
    if isinstance(stroke, Mapping):
        stroke = stroke.get("points", stroke)
    if isinstance(stroke, list) and len(stroke) <= room and (plain := _number_table(stroke)) is not None:
        return plain
    if isinstance(stroke, Mapping):
        xs, ys = stroke.get("x"), stroke.get("y")
        if not isinstance(xs, list) or not isinstance(ys, list) or len(xs) != len(ys):
            raise InkError(f"Stroke {number + 1} has no lists x and y of the same length.")
        pairs: list[tuple[object, object]] = list(zip(xs, ys, strict=True))
    elif isinstance(stroke, list):
        pairs = [_json_point(point, number) for point in stroke[: room + 1]]
    else:
        raise InkError(f"Stroke {number + 1} is not a list of points.")
    if len(pairs) > room:
        raise InkError(f"There are more than {MAX_POINTS:,} points; a formula has some hundreds.")
    if not all(type(value) in (int, float) for pair in pairs for value in pair):
        raise InkError(f"Stroke {number + 1} holds something that is no number.")
    try:
        return np.array(pairs, dtype=np.float64).reshape(-1, 2)
    except OverflowError as error:  # a whole number beyond what a float can be
        raise InkError(f"Stroke {number + 1} holds a number that is far too large.") from error


def _number_table(stroke: list[object]) -> Points | None:
    """Read the usual form at once, lists of as many numbers each; None where there is anything else."""
    try:
        table = np.array(stroke)
    except (ValueError, OverflowError):
        return None
    if table.ndim != 2 or table.shape[1] < 2 or table.dtype.kind not in "iuf":
        return None
    return table[:, :2].astype(np.float64)


def _json_point(point: object, number: int) -> tuple[object, object]:
    if isinstance(point, Mapping) and {"x", "y"} <= point.keys():
        return point["x"], point["y"]
    if isinstance(point, list) and len(point) >= 2:
        return point[0], point[1]
    raise InkError(f"Stroke {number + 1} has a point that is neither [x, y] nor an object with x and y.")


def _json_symbols(value: object, num_strokes: int) -> list[Symbol]:
    if not isinstance(value, list):
        return []
    symbols = []
    for entry in value:
        if not (isinstance(entry, list) and len(entry) == 2 and isinstance(entry[0], str)):
            raise InkError("Symbols are written as [label, [numbers of strokes]].")
        numbers = entry[1]
        if not isinstance(numbers, list) or not all(type(n) is int and 0 <= n < num_strokes for n in numbers):
            raise InkError(f"The symbol {entry[0][:40]!r} names a stroke that is not there.")
        symbols.append(Symbol(entry[0], tuple(numbers)))
    return symbols


# --- InkML ----------------------------------------------------------------------------------------------

_LABELS: Final = ("normalizedlabel", "truth", "label", "latex", "expectedtruth")  # the first that is there
_DECLARED: Final = re.compile(rb"""(?:\xef\xbb\xbf)?\s*<\?xml[^>]{0,80}?encoding\s*=\s*["']([\w.-]+)""")
_VALUE: Final = re.compile(
    r"\s*([!'\"]?)\s*(?:(#[0-9A-Fa-f]+|[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)|([*?TF]))"
)


@dataclass(frozen=True)
class _Format:
    """The channels of a trace: where x and y stand among them, and which way they grow."""

    x: int = 0
    y: int = 1
    x_sign: float = 1.0
    y_sign: float = 1.0


@dataclass
class _Element:
    """One open element of the file."""

    tag: str
    attributes: dict[str, str]
    text: list[str] = field(default_factory=list)
    channels: list[dict[str, str]] = field(default_factory=list)  # of a trace format
    group: "_Group | None" = None


@dataclass
class _Group:
    """A group of traces: its label, and the ids of the traces in it."""

    label: str = ""
    traces: list[str] = field(default_factory=list)
    nested: bool = False  # whether it holds other groups, so that its label is not one of a symbol


class _InkMLReader:
    """Follows the elements of an InkML file."""

    def __init__(self) -> None:
        self.open: list[_Element] = []
        self.num_elements = 0
        self.num_points = 0
        self.annotations: dict[str, str] = {}
        self.formats: dict[str, _Format] = {}
        self.contexts: dict[str, str] = {}  # of a context its format
        self.format = _Format()
        self.strokes: dict[str, list[Points]] = {}  # the pieces of each
        self.continued: dict[str, str] = {}  # of a trace that goes on with another the id of the first piece
        self.hidden: set[str] = set()  # traces of a lifted pen, and those in definitions
        self.groups: list[_Group] = []
        self.root = ""

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        self.num_elements += 1
        if len(self.open) >= MAX_DEPTH or self.num_elements > MAX_ELEMENTS:
            raise InkError("The file is nested too deeply, or has far too many elements, to be a formula.")
        name = tag.rpartition(":")[2]
        element = _Element(name, {key.rpartition(":")[2]: value for key, value in attributes.items()})
        if not self.open:
            self.root = name
        if name == "traceGroup":
            for outer in reversed(self.open):
                if outer.group is not None:
                    outer.group.nested = True
                    break
            element.group = _Group()
            self.groups.append(element.group)
        elif name == "channel" and not self._inside("intermittentChannels"):
            for outer in reversed(self.open):
                if outer.tag == "traceFormat":
                    outer.channels.append(element.attributes)
                    break
        self.open.append(element)

    def characters(self, text: str) -> None:
        if self.open and self.open[-1].tag in ("trace", "annotation"):
            self.open[-1].text.append(text)

    def end(self, _tag: str) -> None:
        element = self.open.pop()
        if element.tag == "trace":
            self._trace(element)
        elif element.tag == "traceView":
            self._view(element)
        elif element.tag == "traceFormat":
            self._trace_format(element)
        elif element.tag == "context" and "traceFormatRef" in element.attributes:
            reference = element.attributes["traceFormatRef"].lstrip("#")
            self.contexts[element.attributes.get("id", "")] = reference
            self.format = self.formats.get(reference, self.format)
        elif element.tag == "annotation":
            self._annotation(element)

    def refuse_entities(self, *_: object) -> None:
        raise InkError(
            "The file declares a document type or entities, which InkML has no use for; remove them."
        )

    def _inside(self, tag: str) -> bool:
        return any(element.tag == tag for element in self.open)

    def _group(self) -> _Group | None:
        return next((element.group for element in reversed(self.open) if element.group is not None), None)

    def _annotation(self, element: _Element) -> None:
        kind, text = element.attributes.get("type", "").lower(), "".join(element.text).strip()
        group = self._group()
        if group is not None and self.open[-1].group is group:
            if kind in ("truth", "label"):
                group.label = text
        elif group is None and not self._inside("trace"):
            self.annotations.setdefault(kind, text)

    def _trace_format(self, element: _Element) -> None:
        names = [channel.get("name", "").upper() for channel in element.channels]
        if not names:
            return
        if "X" not in names or "Y" not in names:
            raise InkError("The file's trace format has no channels X and Y, so there is nothing to draw.")
        signs = [-1.0 if channel.get("orientation") == "-ve" else 1.0 for channel in element.channels]
        x, y = names.index("X"), names.index("Y")
        found = _Format(x, y, signs[x], signs[y])
        self.formats[element.attributes.get("id", "")] = found
        if not self._inside("definitions"):
            self.format = found

    def _format_of(self, element: _Element) -> _Format:
        reference = element.attributes.get("contextRef", "").lstrip("#")
        return self.formats.get(self.contexts.get(reference, ""), self.format)

    def _trace(self, element: _Element) -> None:
        attributes = element.attributes
        points = _trace_points("".join(element.text), self._format_of(element), MAX_POINTS - self.num_points)
        self.num_points += len(points)
        prior = attributes.get("priorRef", "").lstrip("#")
        prior = self.continued.get(prior, prior)
        if attributes.get("continuation") in ("middle", "end") and prior in self.strokes:
            name = prior
            self.strokes[name].append(points)
            if "id" in attributes:
                self.continued[attributes["id"]] = name
        else:
            name = attributes.get("id") or f"trace {len(self.strokes)}"
            if name in self.strokes:
                name = f"{name} again {len(self.strokes)}"
            self.strokes[name] = [points]
        if len(self.strokes) > MAX_STROKES:
            raise InkError(f"There are more than {MAX_STROKES:,} strokes; a formula has some dozens.")
        if attributes.get("type") in ("penUp", "hover"):
            self.hidden.add(name)
        group = self._group()
        if group is not None:
            group.traces.append(name)

    def _view(self, element: _Element) -> None:
        reference = element.attributes.get("traceDataRef", "").rpartition("#")[2]
        group = self._group()
        if group is not None and reference:
            group.traces.append(self.continued.get(reference, reference))

    def finish(self, name: str) -> Ink:
        if self.root not in ("ink", "inkml"):
            raise InkError(f"This is XML, but not InkML: it begins with <{self.root[:40]}>.")
        numbers: dict[str, int] = {}
        strokes: list[Points] = []
        for key, pieces in self.strokes.items():
            points = np.concatenate(pieces)
            if key not in self.hidden and len(points):
                numbers[key] = len(strokes)
                strokes.append(points)
        symbols = [
            Symbol(group.label, tuple(dict.fromkeys(numbers[key] for key in group.traces if key in numbers)))
            for group in self.groups
            if group.label and not group.nested
        ]
        latex = next((self.annotations[kind] for kind in _LABELS if self.annotations.get(kind)), "")
        return _finish(
            strokes,
            latex=latex,
            symbols=[symbol for symbol in symbols if symbol.strokes],
            name=self.annotations.get("ui") or name,
            writer=self.annotations.get("writer", ""),
        )


def _encoding(data: bytes) -> str | None:
    """Name the encoding that the first bytes show, whatever the file says; None where it must say so itself.

    Programs often write one and declare another, as text is put together before it is saved.
    """
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "UTF-16"
    declared = _DECLARED.match(data)
    return "UTF-8" if declared and declared[1].lower().startswith(b"utf") else None


def _parse_inkml(data: bytes, name: str, *, encoding: str | None) -> Ink:
    reader = _InkMLReader()
    parser = expat.ParserCreate(encoding)
    parser.buffer_text = True
    parser.StartElementHandler = reader.start
    parser.EndElementHandler = reader.end
    parser.CharacterDataHandler = reader.characters
    parser.StartDoctypeDeclHandler = reader.refuse_entities
    parser.EntityDeclHandler = reader.refuse_entities
    try:
        parser.Parse(data, True)
    except expat.ExpatError as error:
        raise InkError(f"The InkML is damaged: {error}.") from error
    except (LookupError, ValueError) as error:  # of an encoding that Python does not have
        raise InkError(
            f"The InkML is in an encoding that cannot be read; save it as UTF-8: {str(error)[:100]}."
        ) from error
    return reader.finish(name)


def _trace_points(text: str, layout: _Format, room: int) -> Points:
    """Read the points of a trace, which may be places, differences, or differences of differences."""
    rows = [row for row in text.split(",") if row and not row.isspace()]
    if not rows:
        return np.empty((0, 2))
    if len(rows) > room:
        raise InkError(f"There are more than {MAX_POINTS:,} points; a formula has some hundreds.")
    width = max(layout.x, layout.y) + 1
    if "'" not in text and '"' not in text and "*" not in text:
        plain = _plain_points(rows, layout, width)
        if plain is not None:
            return plain
    points = np.empty((len(rows), 2))
    states = [_Channel() for _ in range(width)]
    for number, spaced in enumerate(rows):
        row = " ".join(spaced.split())  # the pattern would try every way to share out a long gap
        values = _VALUE.findall(row)
        if len(values) < width:
            raise InkError(f"A point of a trace is {row[:40]!r}, which has no x and y.")
        if _VALUE.sub("", row).strip():
            raise InkError(f"A point of a trace is {row[:40]!r}, which is not made of numbers.")
        found = [state.read(*value) for state, value in zip(states, values, strict=False)]
        points[number] = found[layout.x], found[layout.y]
    return points * (layout.x_sign, layout.y_sign)


def _plain_points(rows: Sequence[str], layout: _Format, width: int) -> Points | None:
    """Read points that are plain numbers, the same count in each; None where they are written otherwise."""
    split = [row.split() for row in rows]
    if min(map(len, split)) < width:
        return None
    try:
        pairs = [(float(row[layout.x]), float(row[layout.y])) for row in split]
    except ValueError:
        return None
    return np.array(pairs) * (layout.x_sign, layout.y_sign)


@dataclass
class _Channel:
    """What a channel of a trace remembers from point to point."""

    mode: str = "!"  # places; ' differences; " differences of differences
    value: float = 0.0
    speed: float = 0.0

    def read(self, mode: str, number: str, word: str) -> float:
        """Take the next value of the channel, and return the place that it means."""
        self.mode = mode or self.mode
        if word:  # * and ? repeat what was; T and F are no places
            if self.mode != "!":
                self.value += self.speed
            return self.value
        try:
            value = float(int(number[1:], 16)) if number.startswith("#") else float(number)
        except OverflowError as error:  # a whole number beyond what a float can be
            raise InkError("A trace holds a number that is far too large.") from error
        if self.mode == "!":
            self.speed, self.value = 0.0, value
        else:
            self.speed = value if self.mode == "'" else self.speed + value
            self.value += self.speed
        return self.value


# --- both -----------------------------------------------------------------------------------------------


def _without_empty(strokes: list[Points], symbols: list[Symbol]) -> tuple[list[Points], list[Symbol]]:
    """Leave out strokes without points, and number the strokes of symbols anew."""
    numbers = {old: new for new, old in enumerate(i for i, stroke in enumerate(strokes) if len(stroke))}
    kept = [stroke for stroke in strokes if len(stroke)]
    moved = [Symbol(s.label, tuple(numbers[n] for n in s.strokes if n in numbers)) for s in symbols]
    return kept, [symbol for symbol in moved if symbol.strokes]


def _finish(
    strokes: Sequence[Points], *, latex: str, symbols: Sequence[Symbol], name: str, writer: str
) -> Ink:
    """Check what was read.

    Raises:
        InkError: if there are no strokes, or a coordinate is no number that a page could have.
    """
    if not strokes:
        raise InkError("The file holds no strokes, so there is nothing to read.")
    points = np.concatenate(list(strokes))
    if not np.isfinite(points).all() or np.abs(points).max() > MAX_VALUE:
        raise InkError("A coordinate is not a number, or far too large to be a place on a page.")
    return Ink(tuple(strokes), latex=latex, symbols=tuple(symbols), name=name, writer=writer)


def write_inkml(ink: Ink, path: Path) -> None:
    """Write ink as InkML, with one group of traces a symbol as CROHME has them."""
    lines = ['<ink xmlns="http://www.w3.org/2003/InkML">']
    lines.append(
        '<traceFormat><channel name="X" type="decimal"/><channel name="Y" type="decimal"/></traceFormat>'
    )
    for kind, text in (("UI", ink.name), ("writer", ink.writer), ("truth", ink.latex)):
        if text:
            lines.append(f'<annotation type="{kind}">{escape(text)}</annotation>')
    for number, stroke in enumerate(ink.strokes):
        points = ", ".join(f"{_number(x)} {_number(y)}" for x, y in stroke.tolist())
        lines.append(f'<trace id="{number}">{points}</trace>')
    if ink.symbols:
        lines.append("<traceGroup>")
        for symbol in ink.symbols:
            views = "".join(f'<traceView traceDataRef="{number}"/>' for number in symbol.strokes)
            label = f'<annotation type="truth">{escape(symbol.label)}</annotation>'
            lines.append(f"<traceGroup>{label}{views}</traceGroup>")
        lines.append("</traceGroup>")
    with atomic_write(path) as file:
        file.write("\n".join([*lines, "</ink>\n"]))


def _number(value: float) -> str:
    return str(int(value)) if value == math.floor(value) else repr(value)
