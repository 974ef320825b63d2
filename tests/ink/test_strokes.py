"""Ink out of files: every variant of InkML and JSON, there and back, and a clear word for what is no ink."""

import gzip
import json
import random
import time
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from i2l.ink import strokes
from i2l.ink.strokes import (
    MAX_POINTS,
    Ink,
    InkError,
    Symbol,
    ink_from_json,
    looks_like_ink,
    open_ink,
    read_ink,
    read_inks,
    take_ink,
    write_inkml,
)
from tests.ink.written import row_of

CROHME = """<ink xmlns="http://www.w3.org/2003/InkML">
<traceFormat><channel name="X" type="decimal"/><channel name="Y" type="decimal"/></traceFormat>
<annotation type="truth">$x^2$</annotation><annotation type="UI">2011_IVC_1</annotation>
<annotation type="writer">w1</annotation>
<annotationXML type="truth" encoding="Content-MathML"><math xmlns="http://www.w3.org/1998/Math/MathML">
<mi xml:id="x_1">x</mi></math></annotationXML>
<trace id="0">10 20, 11 21, 12 22</trace><trace id="1">13 20, 9 25</trace><trace id="2">30 5, 31 6</trace>
<traceGroup xml:id="7"><annotation type="truth">From CROHME</annotation>
<traceGroup xml:id="8"><annotation type="truth">x</annotation><traceView traceDataRef="0"/>
<traceView traceDataRef="1"/><annotationXML href="x_1"/></traceGroup>
<traceGroup xml:id="9"><annotation type="truth">2</annotation><traceView traceDataRef="2"/></traceGroup>
</traceGroup></ink>"""
MATHWRITING = """<?xml version="1.0" encoding="UTF-8"?><ink xmlns="http://www.w3.org/2003/InkML">
<annotation type="label">\\frac{1}{2}</annotation>
<annotation type="normalizedLabel">\\frac {1} {2}</annotation>
<annotation type="sampleId">abc</annotation>
<trace>1.5 2.5 0.0,2.5 3.5 16.0</trace><trace>4 5 120,6 7 140</trace></ink>"""
CHANNELS = """<inkml:ink xmlns:inkml="http://www.w3.org/2003/InkML"><inkml:definitions>
<inkml:context xml:id="c1"><inkml:inkSource xml:id="s"><inkml:traceFormat xml:id="f1">
<inkml:intermittentChannels><inkml:channel name="B" type="boolean"/></inkml:intermittentChannels>
<inkml:channel name="T" type="integer"/><inkml:channel name="Y" type="integer" orientation="-ve"/>
<inkml:channel name="X" type="integer"/><inkml:channel name="F" type="integer"/>
</inkml:traceFormat></inkml:inkSource></inkml:context>
<inkml:context xml:id="c2" traceFormatRef="#f1"/></inkml:definitions>
<inkml:trace contextRef="#c2">0 100 5 9, 1 110 6 9 T, 2 120 7 9 F</inkml:trace>
<inkml:trace contextRef="#c2" type="penUp">3 0 0 0</inkml:trace></inkml:ink>"""


def test_crohme_has_symbols_and_a_label():
    ink = read_ink(CROHME)
    assert ink.latex == "$x^2$"
    assert (ink.name, ink.writer) == ("2011_IVC_1", "w1")
    assert ink.symbols == (Symbol("x", (0, 1)), Symbol("2", (2,)))
    assert ink.strokes[0].tolist() == [[10, 20], [11, 21], [12, 22]]


def test_mathwriting_has_times_and_a_normalised_label():
    ink = read_ink(MATHWRITING)
    assert ink.latex == r"\frac {1} {2}"
    assert [stroke.tolist() for stroke in ink.strokes] == [[[1.5, 2.5], [2.5, 3.5]], [[4, 5], [6, 7]]]


def test_channels_stand_in_any_order_and_a_lifted_pen_draws_nothing():
    ink = read_ink(CHANNELS)
    assert [stroke.tolist() for stroke in ink.strokes] == [[[5, -100], [6, -110], [7, -120]]]


@pytest.mark.parametrize(
    ("trace", "points"),
    [
        ("125 125,'1 '2,2 3", [[125, 125], [126, 127], [128, 130]]),  # differences go on until told otherwise
        ("10 10,'5 '5,\"1 \"-1,1 -1", [[10, 10], [15, 15], [21, 19], [28, 22]]),  # then their differences
        ("10 10,'5 '5,!7 !8", [[10, 10], [15, 15], [7, 8]]),
        ("1130 1155,'-4'10,-3-5", [[1130, 1155], [1126, 1165], [1123, 1160]]),  # signs part numbers
        ("#A #F, * 3", [[10, 15], [10, 3]]),  # hexadecimal, and the last value again
        ("1e1 .5", [[10, 0.5]]),
    ],
)
def test_points_as_the_standard_writes_them(trace, points):
    assert read_ink(f"<ink><trace>{trace}</trace></ink>").strokes[0].tolist() == points


def test_a_stroke_in_two_traces_is_one():
    ink = read_ink(
        '<ink><trace id="a" continuation="begin">1 2</trace>'
        '<trace id="b" continuation="end" priorRef="#a">3 4</trace></ink>'
    )
    assert [stroke.tolist() for stroke in ink.strokes] == [[[1, 2], [3, 4]]]


def test_other_encodings_are_read():
    text = CROHME.replace("w1", "Zoë")
    assert read_ink(text.encode("utf-16")).writer == "Zoë"
    assert read_ink(f'<?xml version="1.0" encoding="iso-8859-1"?>{text}'.encode("iso-8859-1")).writer == "Zoë"
    assert read_ink(b"\xef\xbb\xbf" + text.encode()).writer == "Zoë"


POINTS = [[1.0, 2.0], [3.5, 4.0]]


@pytest.mark.parametrize(
    "value",
    [
        [POINTS],
        {"strokes": [POINTS]},
        {"strokes": [[[*point, 17, 0.5] for point in POINTS]]},
        [{"points": POINTS}],
        [{"x": [1, 3.5], "y": [2, 4]}],
        [[{"x": x, "y": y} for x, y in POINTS]],
        {"strokes": {"strokes": {"x": [[1, 3.5]], "y": [[2, 4]]}}},  # Mathpix
        {"strokes": [[], POINTS, []]},
    ],
)
def test_json_of_every_kind_is_the_same_ink(value):
    for ink in (read_ink(json.dumps(value)), ink_from_json(value), take_ink(value)):
        assert [stroke.tolist() for stroke in ink.strokes] == [POINTS]
        assert looks_like_ink(json.dumps(value).encode())


def test_arrays_paths_and_bytes_are_taken(tmp_path):
    path = tmp_path / "a.inkml"
    path.write_text(CROHME)
    expected = read_ink(CROHME).strokes[0]
    for source in (
        path,
        str(path),
        CROHME,
        CROHME.encode(),
        [np.array(expected)],
        [[tuple(p) for p in expected]],
    ):
        np.testing.assert_array_equal(take_ink(source).strokes[0], expected)
    with pytest.raises(InkError, match="Cannot read"):
        take_ink(tmp_path / "missing.inkml")
    with pytest.raises(InkError, match="not int"):
        take_ink(5)


COORDINATES = st.floats(-1e6, 1e6).map(lambda value: round(value, 3))
STROKES = st.lists(
    st.lists(st.tuples(COORDINATES, COORDINATES), min_size=1, max_size=6), min_size=1, max_size=5
)


@given(strokes=STROKES, label=st.text(st.characters(codec="utf-8", exclude_categories=["C"]), max_size=8))
@settings(max_examples=60, deadline=None)
def test_ink_survives_both_formats(tmp_path_factory, strokes, label):
    label = label.strip()
    ink = Ink(
        tuple(np.array(stroke) for stroke in strokes),
        latex=label,
        symbols=(Symbol("x", (0,)),),
        name="n",
        writer="w",
    )
    path = tmp_path_factory.mktemp("ink") / "a.inkml"
    write_inkml(ink, path)
    for again in (open_ink(path), read_ink(json.dumps(ink.to_dict()))):
        assert (again.latex, again.name, again.writer, again.symbols) == (label, "n", "w", ink.symbols)
        for one, other in zip(again.strokes, ink.strokes, strict=True):
            np.testing.assert_array_equal(one, other)


BOMB = (
    '<?xml version="1.0"?><!DOCTYPE ink [<!ENTITY a "1 1,"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">'
    '<!ENTITY c "&b;&b;&b;&b;&b;&b;&b;&b;">]><ink><trace>&c;</trace></ink>'
)
HOSTILE = {
    "empty": (b"", "empty"),
    "blank": (b" \n\t ", "empty"),
    "bomb": (BOMB.encode(), "document type"),
    "outer entity": (
        b'<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]><ink><trace>&e;</trace></ink>',
        "document type",
    ),
    "cut off": (CROHME[:300].encode(), "damaged"),
    "svg": (b'<svg xmlns="http://www.w3.org/2000/svg"/>', "not InkML"),
    "no strokes": (b"<ink/>", "no strokes"),
    "not a number": (b"<ink><trace>nan nan</trace></ink>", "not a number|not made of numbers|no x and y"),
    "infinite": (b"<ink><trace>inf 1</trace></ink>", "not a number|not made of numbers|no x and y"),
    "huge": (b"<ink><trace>1e300 1</trace></ink>", "far too large"),
    "whole number": (b"<ink><trace>#" + b"F" * 400 + b" 1</trace></ink>", "far too large"),
    "gaps": (b"<ink><trace>one" + b" " * 500_000 + b"two</trace></ink>", "no x and y"),
    "gaps between numbers": (b"<ink><trace>'1 '1" + b"\t" * 500_000 + b"x</trace></ink>", "made of numbers"),
    "channels": (
        b'<ink><traceFormat><channel name="X"/>'
        + b'<channel name="Z"/>' * 90_000
        + b'<channel name="Y"/></traceFormat>'
        + b"<trace/>" * 4_900
        + b"</ink>",
        "no strokes",
    ),
    "gzip": (gzip.compress(CROHME.encode()), "packed by gzip"),
    "overflow": (b"<ink><trace>1e999 1</trace></ink>", "far too large"),
    "words": (b"<ink><trace>one two</trace></ink>", "no x and y|not made of numbers"),
    "one channel": (b"<ink><trace>1, 2</trace></ink>", "no x and y"),
    "no x": (b'<ink><traceFormat><channel name="T"/></traceFormat><trace>1</trace></ink>', "no channels X"),
    "deep": (b"<ink>" + b"<traceGroup>" * 5000 + b"</traceGroup>" * 5000 + b"</ink>", "nested"),
    "elements": (b"<ink>" + b"<a/>" * 200_000 + b"</ink>", "too many elements"),
    "points": (b"<ink><trace>" + b"1 1," * (MAX_POINTS + 1) + b"</trace></ink>", "points"),
    "strokes": (b"<ink>" + b"<trace>1 1</trace>" * 6000 + b"</ink>", "strokes"),
    "encoding": (b'<?xml version="1.0" encoding="klingon"?><ink/>', "damaged|encoding"),
    "bytes": (bytes(range(256)), "neither InkML nor JSON"),
    "long": (b"[" * (17 << 20), "MiB"),
    "deep json": (b"[" * 100_000 + b"]" * 100_000, "neither InkML nor JSON|nested"),
    "wrong json": (b'{"strokes": 5}', "list of lists"),
    "text points": (b'[[["1", "2"]]]', "no number"),
    "json nan": (b"[[[NaN, 1]]]", "not a number"),
    "json infinity": (b"[[[1, Infinity]]]", "not a number"),
    "far away": (b"[[[1, 1], [1000000001, 1]]]", "far too large"),
    "json integer": (b"[[[1" + b"0" * 400 + b", 1]]]", "too large"),
    "json points": (json.dumps([[[1, 1]] * (MAX_POINTS + 1)]).encode(), "points"),
    "json strokes": (json.dumps([[[1, 1]]] * 5001).encode(), "strokes"),
    "no such stroke": (b'{"strokes": [[[1, 1]]], "symbols": [["x", [3]]]}', "not there"),
    "a stroke before the first": (b'{"strokes": [[[1, 1]]], "symbols": [["x", [-1]]]}', "not there"),
    "ragged columns": (b'{"x": [[1]], "y": []}', "same length"),
    "null": (b"null", "list of lists"),
}


@pytest.mark.parametrize(
    ("limit", "largest", "content"),
    [
        ("MAX_STROKES", 3, b"[[[1, 1]], [[2, 1]], [[3, 1]]]"),
        ("MAX_STROKES", 3, b"<ink><trace>1 1</trace><trace>2 1</trace><trace>3 1</trace></ink>"),
        ("MAX_POINTS", 4, b"[[[1, 1], [2, 1]], [[3, 1], [4, 1]]]"),
        ("MAX_POINTS", 4, b"<ink><trace>1 1, 2 1</trace><trace>3 1, 4 1</trace></ink>"),
        ("MAX_DEPTH", 3, b"<ink><traceGroup><trace>1 1</trace></traceGroup></ink>"),
        ("MAX_ELEMENTS", 3, b"<ink><trace>1 1</trace><trace>2 1</trace></ink>"),
        ("MAX_VALUE", 20.0, b"[[[1, 20]]]"),
        ("MAX_VALUE", 20.0, b"<ink><trace>-20 1</trace></ink>"),
        ("MAX_FILE_BYTES", 11, b"[[[1, 20]]]"),
    ],
)
def test_ink_up_to_a_limit_is_read_and_more_is_not(monkeypatch, limit, largest, content):
    monkeypatch.setattr(strokes, limit, largest)
    assert read_ink(content).strokes
    monkeypatch.setattr(strokes, limit, largest - 1)
    with pytest.raises(InkError):
        read_ink(content)


@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_files_get_a_clear_word(kind):
    content, word = HOSTILE[kind]
    started = time.process_time()
    with pytest.raises(InkError, match=word):
        read_ink(content)
    assert time.process_time() - started < 10


def test_a_stroke_in_very_many_pieces_is_read_soon():
    """Each piece was put behind a copy of all before it, which took half a minute for a file of 6 MB."""
    piece = b'<trace continuation="middle" priorRef="a">1 1, 2 2</trace>'
    started = time.process_time()
    ink = read_ink(b'<ink><trace id="a">1 1</trace>' + piece * 99_000 + b"</ink>")
    assert [len(stroke) for stroke in ink.strokes] == [198_001]
    assert time.process_time() - started < 8


@pytest.mark.parametrize("source", ["a\0b", "a\ud800"])
def test_what_can_be_no_name_of_a_file_is_said(source):
    with pytest.raises(InkError, match="no name of a file"):
        take_ink(source)


def test_lists_that_hold_themselves_are_refused():
    strokes = []
    strokes.append(strokes)
    with pytest.raises(InkError, match="nested too deeply"):
        take_ink(strokes)
    with pytest.raises(InkError, match="nested too deeply"):
        take_ink({"strokes": strokes})


_LINE = ((1, 1), (2, 3), (4, 5))


@pytest.mark.parametrize(
    "source",
    [
        np.array([_LINE, _LINE]),
        [np.array(_LINE, np.float32), _LINE],
        (_LINE, _LINE),
        {"strokes": [np.array(_LINE), np.array(_LINE)]},
        {"strokes": (_LINE, _LINE)},
        {"strokes": {"x": [np.array([1, 2, 4])] * 2, "y": [np.array([1, 3, 5])] * 2}},
        [[{"x": np.int64(x), "y": np.float32(y)} for x, y in _LINE]] * 2,
        bytearray(json.dumps([_LINE, _LINE]).encode()),
        memoryview(json.dumps([_LINE, _LINE]).encode()),
    ],
)
def test_arrays_and_tuples_are_taken_wherever_lists_are(source):
    ink = take_ink(source)
    assert [stroke.tolist() for stroke in ink.strokes] == [[list(point) for point in _LINE]] * 2


@pytest.mark.parametrize(
    ("declared", "encoding"),
    [
        ("utf-16", "utf-8"),
        ("utf-16", "utf-8-sig"),
        ("UTF-8", "utf-16"),
        ("UTF-16", "utf-16"),
        ("iso-8859-1", "latin-1"),
        ("iso-8859-1", "utf-16"),
        ("windows-1252", "cp1252"),
        ("utf-16", None),
        ("iso-8859-1", None),
    ],
)
def test_an_encoding_that_is_declared_wrongly_does_no_harm(declared, encoding):
    """Programs write one and declare another; what is a string already has none at all."""
    text = f"""<?xml version="1.0" encoding='{declared}'?>
        <ink><annotation type="truth">\xe9</annotation><trace>1 1, 2 2</trace></ink>"""
    ink = take_ink(text if encoding is None else text.encode(encoding))
    assert ink.latex == "\xe9"


def test_pieces_of_a_stroke_name_the_piece_before_them():
    """As in the standard, where each of three pieces names the last one; a view may name any."""
    ink = read_ink(
        """<ink><trace id="a" continuation="begin">1 1</trace>
        <trace id="b" continuation="middle" priorRef="#a">2 2</trace>
        <trace id="c" continuation="end" priorRef="#b">3 3</trace><trace id="d">5 5</trace>
        <traceGroup><annotation type="truth">x</annotation><traceView traceDataRef="#c"/></traceGroup>
        </ink>"""
    )
    assert [stroke.tolist() for stroke in ink.strokes] == [[[1, 1], [2, 2], [3, 3]], [[5, 5]]]
    assert [(symbol.label, symbol.strokes) for symbol in ink.symbols] == [("x", (0,))]


def test_a_thousand_mutated_files_never_crash():
    """Each is either ink or gets a sentence, in bounded time and memory."""
    source = random.Random(5)
    originals = [
        text.encode() for text in (CROHME, MATHWRITING, CHANNELS, json.dumps(row_of(["x", "2"]).to_dict()))
    ]
    pieces = [
        b"<",
        b">",
        b" " * 400,
        b"#" + b"F" * 300,
        b"&a;",
        b"'",
        b'"',
        b"*",
        b"1e9999",
        b"\x00",
        b"\xff",
        b"<trace>",
        b"]",
        b"NaN",
        b"-",
    ]
    read, words = 0, []
    started = time.process_time()
    tracemalloc.start()
    for _ in range(1000):
        content = bytearray(source.choice(originals))
        for _ in range(source.randrange(1, 4)):
            place = source.randrange(len(content) + 1)
            match source.randrange(4):
                case 0:
                    del content[place : place + source.randrange(1, 40)]
                case 1:
                    content[place:place] = source.choice(pieces)
                case 2:
                    content[place : place + 1] = bytes([source.randrange(256)])
                case 3:
                    content[place:place] = content[source.randrange(len(content) + 1) :][
                        : source.randrange(80)
                    ]
            content = content or bytearray(b" ")
        try:
            ink = read_ink(bytes(content))
            assert ink.strokes
            assert all(np.isfinite(stroke).all() for stroke in ink.strokes)
            read += 1
        except InkError as error:
            words.append(str(error))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert read > 40
    assert len(words) > 100
    assert all(15 < len(word) < 300 for word in words)
    assert peak < 50e6
    assert time.process_time() - started < 20


def test_many_inks_of_a_folder_or_a_file(tmp_path):
    (tmp_path / "b.inkml").write_text(MATHWRITING)
    (tmp_path / "a.inkml").write_text(CROHME)
    assert [ink.latex for ink in read_inks(tmp_path)] == ["$x^2$", r"\frac {1} {2}"]
    file = tmp_path / "inks.jsonl"
    file.write_text("".join(json.dumps(row_of(["x"], name=name).to_dict()) + "\n" for name in "pq"))
    assert [ink.name for ink in read_inks(file)] == ["p", "q"]
    file.write_text('[[[1, 1]]]\n{"strokes": 1}\n')
    with pytest.raises(InkError, match=r"inks\.jsonl, line 2: Strokes are"):
        list(read_inks(file))
    (tmp_path / "empty").mkdir()
    with pytest.raises(InkError, match="no InkML"):
        list(read_inks(tmp_path / "empty"))
