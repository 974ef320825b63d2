"""Part `calibration`: whether confidence means what it says, over the readings of all parts together.

A picture that the reader refused has no confidence, and is left out. Handwriting is left out too: no figure
of the package promises anything about it. So is the part about boxes, which shows the same formulas at five
sizes and on web pages, and would be more than all else together.
"""

from collections.abc import Mapping, Sequence

from benchmarks.wild.judging import Judged, Row, mean_interval, wilson
from i2l.evaluation.scores import Interval
from i2l.inference.confidence import expected_calibration_error

SURE = 0.9
_LEFT_OUT = frozenset({"hand"})
_LEFT_OUT_PARTS = frozenset({"boxes"})


def measure_calibration(judged: Mapping[str, Sequence[Judged]]) -> list[Row]:
    """Give a row for all parts together, and one for each."""
    read = {
        part: [one for one in members if not one.error and one.group not in _LEFT_OUT]
        for part, members in judged.items()
        if part not in _LEFT_OUT_PARTS
    }
    everything = [one for members in read.values() for one in members]
    rows = [_row("all parts", everything)] if everything else []
    return rows + [_row(part, members) for part, members in read.items() if members]


def _row(label: str, members: Sequence[Judged]) -> Row:
    error = expected_calibration_error([one.confidence for one in members], [one.right for one in members])
    wrong = [one for one in members if not one.right]
    return Row(
        label,
        len(members),
        {
            "calibration_error": Interval(error, error, error),
            "confidence": mean_interval([one.confidence for one in members]),
            "right": wilson(sum(one.right for one in members), len(members)),
            "wrong_but_sure": wilson(sum(one.confidence > SURE for one in wrong), len(wrong)),
        },
        f"{len(wrong)} wrong",
    )
