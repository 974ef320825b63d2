"""The test formulas that were left out, and the scores over the whole split with them read as nothing.

Peers who judge by the whole official split meet these formulas too. An empty reading has no n-grams, adds to
the length that BLEU compares readings with, costs one edit for each token, draws nothing and matches nothing.
"""

import math
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from benchmarks.results.box import load_box
from benchmarks.results.markdown import distance, percent, table
from benchmarks.results.store import FOLDER, Run, read_lines, write_json

_FILE: Final = "left_out.json"
_SHARES: Final = ("exact_match", "im2markup_match_no_spaces", "strict_match", "compiles")
_HEAD: Final = ("BLEU", "edits per token", "exact", "match without spaces", "identical pixels", "compiles")


def count_left_out(data: Path, lines: Path, folder: Path = FOLDER) -> None:
    """Count the lines of a judging split that a dataset does not hold, by reason, and their tokens.

    Args:
        data: what `i2l build --test LINES` wrote.
        lines: the formulas of the split, one a line, tokens set off by spaces.
        folder: of the results.
    """
    import pyarrow.parquet as pq

    formulas = read_lines(lines)
    verdicts = pq.read_table(data / "verdicts.parquet", columns=["id", "verdict"]).to_pylist()
    reasons, tokens = Counter[str](), 0
    for row in verdicts:
        name, _, number = row["id"].rpartition(":")
        if name == lines.name and row["verdict"] != "kept":
            reasons[row["verdict"]] += 1
            tokens += len(formulas[int(number) - 1].split())
    content = {"num_lines": len(formulas), "num_tokens": tokens, "reasons": dict(reasons.most_common())}
    write_json(folder / _FILE, content)


def whole_split(runs: Sequence[Run]) -> str:
    """Every run and the model in the box: over what was read, and over the whole split."""
    left_out = Run(FOLDER).part(_FILE.removesuffix(".json"))
    if not left_out or not runs:
        return "Not measured yet."
    rows = []
    for run in [*runs, load_box()]:
        figures = run.figures()
        read = {key: figures[key].value for key in ("bleu_moses", "edit_distance", *_SHARES)}
        num_read = left_out["num_lines"] - sum(left_out["reasons"].values())
        whole = _with_empty(read, _reading_length(run), num_read, left_out)
        rows.append([f"**{run.title}**", f"{num_read:,} read", *_cells(read)])
        rows.append(["", f"all {left_out['num_lines']:,}", *_cells(whole)])
    return table(["", "formulas", *_HEAD], rows, words=2)


def _reading_length(run: Run) -> int:
    """The tokens of all readings of test."""
    _, readings = run.readings("test")
    readings = readings or read_lines(run.path / "test.txt.gz")
    return sum(len(reading.split()) for reading in readings)


def _with_empty(
    read: dict[str, float], reading_length: int, num_read: int, left_out: dict[str, Any]
) -> dict[str, float]:
    """The scores with an empty reading for each formula left out; readings are shorter than targets."""
    num_left_out = left_out["num_lines"] - num_read
    whole = {key: read[key] * num_read / left_out["num_lines"] for key in _SHARES}
    whole["bleu_moses"] = read["bleu_moses"] * math.exp(-left_out["num_tokens"] / reading_length)
    edits = read["edit_distance"] * num_read + num_left_out
    return whole | {"edit_distance": edits / left_out["num_lines"]}


def _cells(scores: dict[str, float]) -> list[str]:
    shares = [percent(scores[key]) for key in _SHARES]
    return [percent(scores["bleu_moses"]), distance(scores["edit_distance"]), *shares]
