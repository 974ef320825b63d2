"""Displays of one row: plain formulas, unless a rule stands in them."""

import pytest

from i2l.formulas.normalize import normalize_formula


@pytest.mark.parametrize("name", ["align", "gather", "eqnarray", "split"])
def test_one_row_is_a_plain_formula_and_a_rule_keeps_the_array(name):
    plain = normalize_formula(rf"\begin{{{name}}} a = b \end{{{name}}}").formula
    assert r"\begin" not in plain
    ruled = normalize_formula(rf"\begin{{{name}}} a = b \\ \hline \end{{{name}}}").formula
    assert ruled.count(r"\begin") == ruled.count(r"\hline") == 1
    assert normalize_formula(ruled).formula == ruled
