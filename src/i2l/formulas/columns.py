"""Column specifications of arrays: repetitions written out, the rest kept."""

import re

from i2l.formulas.tokens import FormulaError
from i2l.formulas.tree import Symbol

MAX_COLUMNS = 200
_NUMBER = re.compile(r"0{0,99}[0-9]{1,6}")  # a count that Python and TeX read alike


def expand_columns(symbols: list[Symbol], used: int) -> list[Symbol]:
    """Write `*{3}{c|}` out as `c|c|c|`, cut to the columns that are used; everything else stays.

    MathType writes `*{20}{c}` for any matrix; TeX draws nothing for the columns without a cell.

    Raises:
        FormulaError: for a repetition without a count, or too many columns.
    """
    columns: list[Symbol] = []
    index = 0
    while index < len(symbols):
        symbol = symbols[index]
        index += 1
        if symbol.text != "*":
            columns.append(symbol)
            continue
        count, index = _argument(symbols, index)
        repeated, index = _argument(symbols, index)
        digits = "".join(part.text for part in count)
        times = int(digits) if _NUMBER.fullmatch(digits) else MAX_COLUMNS + 1
        if times * max(1, len(repeated)) > MAX_COLUMNS:
            raise FormulaError("bad column specification", symbol.start, digits[:20])
        columns += expand_columns(repeated, MAX_COLUMNS) * times
        if len(columns) > MAX_COLUMNS:
            raise FormulaError("too many columns", symbol.start)
    if any(symbol.text == "*" for symbol in symbols) and all(symbol.text in "lcr" for symbol in columns):
        columns = columns[:used]
    if len(columns) > MAX_COLUMNS:
        raise FormulaError("too many columns", columns[0].start)
    return columns


def _argument(symbols: list[Symbol], index: int) -> tuple[list[Symbol], int]:
    """Take the group or symbol at an index; give what is in it and the index after it."""
    if index >= len(symbols):
        raise FormulaError("bad column specification", symbols[-1].start)
    if symbols[index].text != "{":
        return [symbols[index]], index + 1
    depth, end = 1, index + 1
    while depth:
        if end >= len(symbols):
            raise FormulaError("bad column specification", symbols[index].start)
        depth += (symbols[end].text == "{") - (symbols[end].text == "}")
        end += 1
    return symbols[index + 1 : end - 1], end
