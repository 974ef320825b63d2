"""Prediction files as they come: whatever is wrong is counted, nothing is dropped in silence."""

import pytest

from i2l.evaluation.compare import PairsError, pair_files


@pytest.fixture
def paired(tmp_path):
    def pair(targets, predictions):
        paths = tmp_path / "targets", tmp_path / "predictions"
        for path, content in zip(paths, (targets, predictions), strict=True):
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return pair_files(*paths)

    return pair


def test_lines_are_paired_by_place(paired):
    pairs = paired("a\nb\nc\n", "x\ny\nz\n")
    assert (pairs.names, pairs.targets, pairs.predictions) == (
        ["1", "2", "3"],
        ["a", "b", "c"],
        ["x", "y", "z"],
    )
    assert pairs.faults == {}


def test_every_fault_of_plain_lines_is_counted(paired):
    pairs = paired(b"a\nb\nc\nd\n", b"x\r\n\n\xff\xfe\n")
    assert pairs.predictions == ["x", "", "", ""]
    assert pairs.faults == {"missing": ["4"], "empty": ["2"], "malformed": ["3: not UTF-8"]}
    assert paired("a\nb\n", "x\ny\nz\n\nw\n").faults == {"extra": ["line 3", "line 4", "line 5"]}
    assert paired("a\n\nc\n", "x\ny\nz\n").faults == {"empty target": ["2"]}
    assert paired(b"a\nb\n", b"x\x00y\nz\n").faults == {"malformed": ["1: a zero byte"]}


def test_blank_lines_at_the_end_are_no_fault(paired):
    assert paired("a\nb\n", "x\ny\n\n\n").faults == {}


def test_names_pair_in_any_order(paired):
    pairs = paired("1.png\ta\n2.png\tb\n", "2.png\ty\n1.png\tx\n")
    assert (pairs.names, pairs.predictions) == (["1.png", "2.png"], ["x", "y"])
    assert pairs.faults == {}


def test_every_fault_of_named_lines_is_counted(paired):
    pairs = paired("1\ta\n2\tb\n3\tc\n4\td\n", b"1\tx\n9\tq\n2\t\n1\tagain\nno tab\n\tno name\n4\t\xff\n")
    assert pairs.predictions == ["x", "", "", ""]
    assert pairs.faults == {
        "missing": ["3", "4"],
        "empty": ["2"],
        "extra": ["9"],
        "duplicate": ["1"],
        "malformed": [
            "line 5: no name and tab before the formula",
            "line 6: no name and tab before the formula",
            "line 7: not UTF-8",
        ],
    }


def test_plain_predictions_for_named_targets_go_by_place(paired):
    pairs = paired("1.png\ta\n2.png\tb\n", "x\n")
    assert (pairs.names, pairs.predictions) == (["1.png", "2.png"], ["x", ""])
    assert pairs.faults == {"missing": ["2.png"]}


@pytest.mark.parametrize(
    ("targets", "predictions", "words"),
    [
        ("a\n", "1\tx\n", "names its lines"),
        ("", "x\n", "is empty"),
        ("a\n", "\n\n", "is empty"),
        ("1\ta\nb\n", "1\tx\n", "line 2"),
        ("1\ta\n1\tb\n", "1\tx\n", "twice"),
        (b"\xff\n", "x\n", "not UTF-8"),
    ],
)
def test_what_cannot_be_paired_is_refused(paired, targets, predictions, words):
    with pytest.raises(PairsError, match=words):
        paired(targets, predictions)


def test_a_missing_file_is_refused(tmp_path):
    (tmp_path / "targets").write_text("a\n")
    with pytest.raises(PairsError, match="Cannot read"):
        pair_files(tmp_path / "targets", tmp_path / "nowhere")
