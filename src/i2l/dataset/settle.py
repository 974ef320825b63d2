"""The last word on every line: rare tokens, vocabulary, one verdict a line, the rows of each split.

Passes over the parts in order, in the build's own process; they hold counters and row numbers, no samples.
"""

import json
import re
from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from i2l.dataset.filters import DUPLICATE, EARLY_REASONS, EMPTY, LEAK, TOO_LONG
from i2l.dataset.recipes import SPLITS, TRAIN
from i2l.dataset.sources import LineNames
from i2l.dataset.stages import TOO_HIGH, TOO_WIDE
from i2l.dataset.work import BuildError, WorkFolder, read_part

KEPT, RARE = "kept", "rare-token"
NO_SPLIT = "none"  # of a line that was rejected before its split could be drawn
VERDICTS = pa.schema(
    [("id", pa.string()), ("split", pa.string()), ("verdict", pa.string()), ("message", pa.string())]
)
_SPLIT_NAMES = (*SPLITS, NO_SPLIT)
_SELF_EXPLAINING = (KEPT, EMPTY, TOO_LONG, TOO_WIDE, TOO_HIGH, DUPLICATE, LEAK)


@dataclass
class Settlement:
    """What became of the lines."""

    # every line counted once: by split, then by verdict
    verdicts: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    # the more telling messages, without what differs from line to line
    causes: Counter[tuple[str, str]] = field(default_factory=Counter)
    # the kept lines of each split, as numbers over all inputs
    rows: dict[str, "array[int]"] = field(default_factory=lambda: {split: array("q") for split in SPLITS})
    # what TeX sees of their styles, as positions in `looks`
    looks_of: dict[str, "array[int]"] = field(default_factory=lambda: {split: array("H") for split in SPLITS})
    looks: dict[str, int] = field(default_factory=dict)
    # of kept formulas, by split
    lengths: dict[str, Counter[int]] = field(default_factory=lambda: defaultdict(Counter))
    widths: dict[str, Counter[int]] = field(default_factory=lambda: defaultdict(Counter))
    heights: dict[str, Counter[int]] = field(default_factory=lambda: defaultdict(Counter))
    token_counts: Counter[str] = field(default_factory=Counter)  # of training alone
    num_with_boxes: Counter[str] = field(default_factory=Counter)
    # kept formulas of val and test with a token that is rare in training or not there, and those tokens
    num_with_unknown: Counter[str] = field(default_factory=Counter)
    unknown_tokens: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))

    def totals(self) -> Counter[str]:
        """Count lines by verdict."""
        return sum(self.verdicts.values(), Counter())


def count_tokens(folder: WorkFolder, num_parts: int) -> Counter[str]:
    """Add up the token counts of the rendered training formulas; each part has counted its own."""
    counts: Counter[str] = Counter()
    for index in range(num_parts):
        metadata = read_part(folder.part("rendered", index)).schema.metadata
        counts.update(json.loads(metadata[b"token_counts"]))
    return counts


def settle(
    folder: WorkFolder,
    num_parts: int,
    *,
    part_lines: int,
    names: LineNames,
    counts: Counter[str],
    minimum: int,
    write_verdicts: Callable[[pa.Table], None],
) -> Settlement:
    """Give every line its verdict, and collect what the dataset card says.

    Tokens with fewer `counts` than the minimum are rare: a training formula with one is dropped, a formula
    of val or test is kept, and counted.

    Raises:
        BuildError: if the verdicts do not account for every line once.
    """
    settlement = Settlement()
    common = {token for token, count in counts.items() if count >= minimum}
    for index in range(num_parts):
        verdicts = _early_verdicts(folder, index, names=names, first_line=index * part_lines)
        for row in _rendered_rows(folder, index):
            verdict = verdicts[row["row"]]
            if row["reason"] is not None:
                verdict["verdict"], verdict["message"] = row["reason"], row["message"]
                continue
            unknown = [token for token in row["formula"].split() if token not in common]
            if unknown and row["split"] == TRAIN:
                rarest = min(unknown, key=lambda token: (counts[token], token))
                verdict["verdict"] = RARE
                verdict["message"] = (
                    f"{rarest} occurs {counts[rarest]} times in training, at least {minimum} are needed"
                )
                continue
            verdict["verdict"] = KEPT
            _count_kept(settlement, row, index * part_lines + row["row"], unknown)
        for verdict in verdicts:
            settlement.verdicts[verdict["split"]][verdict["verdict"]] += 1
            if verdict["verdict"] not in _SELF_EXPLAINING:
                settlement.causes[verdict["verdict"], _cause(verdict["message"])] += 1
        write_verdicts(pa.Table.from_pylist(verdicts, schema=VERDICTS))
    totals = settlement.totals()
    if totals.total() != len(names) or totals[KEPT] != sum(map(len, settlement.rows.values())):
        raise BuildError(f"{len(names)} lines were given, but {totals.total()} have a verdict: {totals}.")
    return settlement


def _early_verdicts(
    folder: WorkFolder, index: int, *, names: LineNames, first_line: int
) -> list[dict[str, Any]]:
    selected = read_part(folder.part("selected", index)).to_pylist()
    messages = read_part(folder.part("normalized", index))["message"].to_pylist()
    verdicts = []
    for row, (line, message) in enumerate(zip(selected, messages, strict=True)):
        reason = EARLY_REASONS[line["reason"]]
        verdicts.append(
            {
                "id": names[first_line + row],
                "split": _SPLIT_NAMES[line["split"]],
                "verdict": reason,
                "message": f"like {names[line['other']]}" if reason in (DUPLICATE, LEAK) else message or "",
            }
        )
    return verdicts


def _rendered_rows(folder: WorkFolder, index: int) -> Iterator[dict[str, Any]]:
    """Give the rendered lines of a part, with their formula and split, without their images."""
    rendered = read_part(folder.part("rendered", index))
    rows = rendered["row"].to_numpy()
    normalized = read_part(folder.part("normalized", index)).select(["formula", "num_tokens"]).take(rows)
    splits = read_part(folder.part("selected", index))["split"].to_numpy()[rows]
    columns = rendered.select(["row", "reason", "message", "width", "height", "look"])
    has_boxes = rendered["boxes"].is_valid().to_numpy()
    for drawn, formula, split, boxed in zip(
        columns.to_pylist(), normalized.to_pylist(), splits, has_boxes, strict=True
    ):
        yield drawn | formula | {"split": SPLITS[split], "has_boxes": bool(boxed)}


def _count_kept(settlement: Settlement, row: dict[str, Any], number: int, unknown: list[str]) -> None:
    split = row["split"]
    settlement.rows[split].append(number)
    settlement.looks_of[split].append(settlement.looks.setdefault(row["look"], len(settlement.looks)))
    settlement.lengths[split][row["num_tokens"]] += 1
    settlement.widths[split][row["width"]] += 1
    settlement.heights[split][row["height"]] += 1
    settlement.num_with_boxes[split] += row["has_boxes"]
    if split == TRAIN:
        settlement.token_counts.update(row["formula"].split())
    if unknown:
        settlement.num_with_unknown[split] += 1
        settlement.unknown_tokens[split].update(unknown)


def _cause(message: str) -> str:
    return re.sub(r" at character \d+| occurs \d+ times .*", "", message)
