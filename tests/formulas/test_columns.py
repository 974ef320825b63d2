"""Repetitions in column specifications: written out when small, refused at once when not."""

import time

import pytest

from i2l.formulas.lexer import FormulaError
from i2l.formulas.normalize import normalize_formula


def array(columns):
    return rf"\begin{{array}}{{{columns}}}a&b\end{{array}}"


@pytest.mark.parametrize("columns", ["*{2}{c}", "*2c", "*{002}{c}", "*{1}{*{2}{c}}"])
def test_small_repetitions_are_written_out(columns):
    assert normalize_formula(array(columns)).formula == normalize_formula(array("cc")).formula


@pytest.mark.parametrize(
    "columns",
    [
        "*{77777}{c}",
        "*{+77777}{c}",
        "*{00000077777}{c}",
        "*{" + "9" * 5000 + "}{c}",
        "*{²}{c}",
        "*{٣}{c}",
        "*{200}{*{200}{c}}",
        "*{14}{*{14}{*{14}{*{14}{*{14}{c}}}}}",
        "*{}{c}",
        "*",
    ],
)
def test_other_repetitions_are_refused_at_once(columns):
    start = time.process_time()
    with pytest.raises(FormulaError):
        normalize_formula(array(columns))
    assert time.process_time() - start < 1
