"""What becomes of every input line: the names of all verdicts, and the rules that decide them.

Every line of a build ends with exactly one verdict of the table below. Most verdicts are known from the line
alone; three steps need to see all lines, and are here:

- `select_lines` draws the splits and finds duplicates and leaks. It works on 64-bit hashes, in arrays: a
  hundred million lines take 0.8 GB a column, and the odds that any two of them share a hash by chance are
  1 in 3,700. So this step stays on one machine, whatever the size of the build.
- `count_tokens` adds up how often each token occurs in training, from which rare tokens follow.
- `decide_verdicts` passes over the parts in order and writes the verdict of every line. It holds counters and
  row numbers, and no samples.
"""

import hashlib
import json
import re
from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from i2l import rendering
from i2l.dataset.sources import SPLITS, TEST, TRAIN, VAL, LineNames
from i2l.dataset.work import BuildError, WorkFolder, read_part
from i2l.formulas.lexer import Token

KEPT: Final = "kept"
EMPTY, REJECTED, TOO_LONG = "empty", "rejected-by-normaliser", "too-long"
DUPLICATE, LEAK = "duplicate", "leak"
BAD_LABEL, NO_PICTURE, BAD_PICTURE = "bad-label", "no-picture", "bad-picture"
TOO_WIDE, TOO_HIGH, NO_INK, RARE = "too-wide", "too-high", "no-ink", "rare-token"
NO_HAND = "no-hand"

# The steps of a build, in their order; each can be the end of a line.
NORMALISED, SHORT_ENOUGH, NO_DUPLICATE, NO_LEAK, PICTURED, SMALL_ENOUGH, COMMON_TOKENS, WRITTEN = range(8)


class VerdictKind(NamedTuple):
    """What one verdict says, and at which step of the build a line gets it."""

    name: str
    step: int
    meaning: str
    # whether lines get it for different causes, which are in their messages
    has_causes: bool = False


VERDICT_KINDS: Final = (
    VerdictKind(EMPTY, NORMALISED, "the line holds no formula"),
    VerdictKind(REJECTED, NORMALISED, "the normaliser cannot read the formula", has_causes=True),
    VerdictKind(BAD_LABEL, NORMALISED, "the line of labels names no picture, or one named before", True),
    VerdictKind(NO_PICTURE, NORMALISED, "the picture that the line names is not in the folder"),
    VerdictKind(TOO_LONG, SHORT_ENOUGH, "the formula has more tokens than the recipe allows"),
    VerdictKind(DUPLICATE, NO_DUPLICATE, "an earlier line of the split has the same formula"),
    VerdictKind(LEAK, NO_LEAK, "a line of a split that judges looks the same"),
    VerdictKind(rendering.TEX_ERROR, PICTURED, "TeX does not accept the formula", has_causes=True),
    VerdictKind(rendering.TIMEOUT, PICTURED, "TeX was not done in time", has_causes=True),
    VerdictKind(rendering.TOO_LARGE, PICTURED, "the formula does not fit on its page", has_causes=True),
    VerdictKind(rendering.REFUSED, PICTURED, "the formula could harm the machine", has_causes=True),
    VerdictKind(NO_INK, PICTURED, "the formula draws nothing, or the picture shows nothing", has_causes=True),
    VerdictKind(NO_HAND, PICTURED, "no hand can write a sign of it, or its places are not known", True),
    VerdictKind(BAD_PICTURE, PICTURED, "the picture cannot be opened, or has no symbols", has_causes=True),
    VerdictKind(TOO_WIDE, SMALL_ENOUGH, "the image is wider than the recipe allows"),
    VerdictKind(TOO_HIGH, SMALL_ENOUGH, "the image is higher than the recipe allows"),
    VerdictKind(RARE, COMMON_TOKENS, "a training formula has a token that is rare in training", True),
    VerdictKind(KEPT, WRITTEN, "the sample is in the dataset"),
)
# Verdicts that are known before there is a picture; the position here is the code in the arrays.
EARLY_REASONS: Final = ("", EMPTY, REJECTED, TOO_LONG, DUPLICATE, LEAK, BAD_LABEL, NO_PICTURE)
NO_SPLIT: Final = "none"  # of a line that was rejected before its split could be drawn
UNASSIGNED: Final = len(SPLITS)  # the code of that split
VERDICTS_SCHEMA: Final = pa.schema(
    [("id", pa.string()), ("split", pa.string()), ("verdict", pa.string()), ("message", pa.string())]
)

_SPLIT_NAMES: Final = (*SPLITS, NO_SPLIT)
_WITH_CAUSES: Final = frozenset(kind.name for kind in VERDICT_KINDS if kind.has_causes)
_STRUCTURE: Final = frozenset({"_", "^", "&", "\\\\"})
_SIZES: Final = ("\\left", "\\right")

Codes = npt.NDArray[np.uint8]
Hashes = npt.NDArray[np.uint64]
Indices = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Selection:
    """The fate of every line before rendering."""

    splits: Codes  # position in SPLITS, or UNASSIGNED
    reasons: Codes  # position in EARLY_REASONS; 0 is rendered
    others: Indices  # for duplicates and leaks the line that was kept instead, else -1


def hash64(text: str) -> int:
    """Return the 64-bit hash of a string, the same on every machine."""
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")


def loose_key(tokens: Sequence[Token]) -> str:
    """Write down what a formula shows: no spacing, braces, fonts, nor sizes of delimiters.

    Two formulas of one key look alike, so one of them in training would give away the other in a test.
    """
    shown = (token.text for token in tokens if token.visible or token.text in _STRUCTURE)
    return " ".join(_without_size(text) for text in shown)


def select_lines(
    *,
    given_splits: Codes,
    reasons: Codes,
    fingerprints: Hashes,
    keys: Hashes,
    draws: Hashes,
    val_fraction: float,
    test_fraction: float,
) -> Selection:
    """Draw the splits that are not given, then mark duplicates within a split and leaks between splits.

    `reasons` holds what is known from the line alone; only lines without a reason take part. Of equal
    formulas in a split the first stays. A training line that looks like a line of val or test is a leak, as
    is a val line that looks like one of test. `draws` hash the loose key, so that formulas that look alike
    are drawn into one split.
    """
    good = np.flatnonzero(reasons == 0)
    splits = given_splits.copy()
    unassigned = good[splits[good] == UNASSIGNED]
    splits[unassigned] = _draw_splits(draws[unassigned], val_fraction, test_fraction)
    reasons = reasons.copy()
    others = np.full(len(reasons), -1, dtype=np.int64)

    for split in range(len(SPLITS)):
        lines = good[splits[good] == split]
        _, first, group = np.unique(fingerprints[lines], return_index=True, return_inverse=True)
        firsts = lines[first][group]
        repeated = firsts != lines
        reasons[lines[repeated]] = EARLY_REASONS.index(DUPLICATE)
        others[lines[repeated]] = firsts[repeated]

    for guarded in (TEST, VAL):
        kept = good[(splits[good] == SPLITS.index(guarded)) & (reasons[good] == 0)]
        exposed = [SPLITS.index(split) for split in ((TRAIN, VAL) if guarded == TEST else (TRAIN,))]
        lines = good[np.isin(splits[good], exposed) & (reasons[good] == 0)]
        matches = _find(keys[lines], keys[kept])
        leaked = matches >= 0
        reasons[lines[leaked]] = EARLY_REASONS.index(LEAK)
        others[lines[leaked]] = kept[matches[leaked]]
    return Selection(splits=splits, reasons=reasons, others=others)


def _without_size(text: str) -> str:
    for size in _SIZES:
        if text.startswith(size) and not text[len(size) : len(size) + 1].isalpha():
            return text[len(size) :]
    return text


def _draw_splits(draws: Hashes, val_fraction: float, test_fraction: float) -> Codes:
    share = draws / 2.0**64
    splits = np.full(len(draws), SPLITS.index(TRAIN), dtype=np.uint8)
    splits[share < val_fraction + test_fraction] = SPLITS.index(VAL)
    splits[share < test_fraction] = SPLITS.index(TEST)
    return splits


def _find(wanted: Hashes, among: Hashes) -> Indices:
    """Find for each wanted hash its first position among the others, or -1."""
    if len(among) == 0:
        return np.full(len(wanted), -1, dtype=np.int64)
    order = np.argsort(among, kind="stable")
    place = np.searchsorted(among[order], wanted)
    found = order[np.minimum(place, len(among) - 1)]
    return np.where(among[found] == wanted, found, -1)


@dataclass
class BuildOutcome:
    """What became of the lines: how many got each verdict, which are kept, and what those are like."""

    # every line counted once: by split, then by verdict
    verdicts: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    # the more telling messages, without what differs from line to line
    causes: Counter[tuple[str, str]] = field(default_factory=Counter)
    # kept lines by the position of their source
    kept_by_source: Counter[int] = field(default_factory=Counter)
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


def decide_verdicts(
    folder: WorkFolder,
    num_parts: int,
    *,
    part_lines: int,
    names: LineNames,
    counts: Counter[str],
    minimum: int,
    write_verdicts: Callable[[pa.Table], None],
) -> BuildOutcome:
    """Decide the verdict of every line, write it, and collect what the dataset card says.

    Tokens with fewer `counts` than the minimum are rare: a training formula with one is dropped, a formula
    of val or test is kept, and counted.

    Raises:
        BuildError: if the verdicts do not account for every line once.
    """
    outcome = BuildOutcome()
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
            number = index * part_lines + row["row"]
            outcome.kept_by_source[names.source_of(number)] += 1
            _count_kept(outcome, row, number, unknown)
        for verdict in verdicts:
            outcome.verdicts[verdict["split"]][verdict["verdict"]] += 1
            if verdict["verdict"] in _WITH_CAUSES:
                outcome.causes[verdict["verdict"], _cause(verdict["message"])] += 1
        write_verdicts(pa.Table.from_pylist(verdicts, schema=VERDICTS_SCHEMA))
    totals = outcome.totals()
    if totals.total() != len(names) or totals[KEPT] != sum(map(len, outcome.rows.values())):
        raise BuildError(f"{len(names)} lines were given, but {totals.total()} have a verdict: {totals}.")
    return outcome


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
    """Yield the lines of a part that have a picture, with formula and split, without the image itself."""
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


def _count_kept(outcome: BuildOutcome, row: dict[str, Any], number: int, unknown: list[str]) -> None:
    split = row["split"]
    outcome.rows[split].append(number)
    outcome.looks_of[split].append(outcome.looks.setdefault(row["look"], len(outcome.looks)))
    outcome.lengths[split][row["num_tokens"]] += 1
    outcome.widths[split][row["width"]] += 1
    outcome.heights[split][row["height"]] += 1
    outcome.num_with_boxes[split] += row["has_boxes"]
    if split == TRAIN:
        outcome.token_counts.update(row["formula"].split())
    if unknown:
        outcome.num_with_unknown[split] += 1
        outcome.unknown_tokens[split].update(unknown)


def _cause(message: str) -> str:
    return re.sub(r" at character \d+| occurs \d+ times .*", "", message)
