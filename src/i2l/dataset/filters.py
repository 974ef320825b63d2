"""Rules that need to see every formula: splits, duplicates, leaks. On 64-bit hashes only, in arrays.

A hundred million lines are 0.8 GB a column here, and the odds of any two of them meeting by chance in 64 bits
are 1 in 3,700; so this step stays on one machine whatever the size of the build.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from i2l.dataset.recipes import SPLITS, TEST, TRAIN, VAL
from i2l.formulas.tokens import Token

# verdicts that are known before rendering; the position here is the code in the arrays
EMPTY, REJECTED, TOO_LONG, DUPLICATE, LEAK = (
    "empty",
    "rejected-by-normaliser",
    "too-long",
    "duplicate",
    "leak",
)
EARLY_REASONS = ("", EMPTY, REJECTED, TOO_LONG, DUPLICATE, LEAK)
UNASSIGNED = len(SPLITS)  # the split code of a line that was rejected before a split could be drawn

_STRUCTURE = frozenset({"_", "^", "&", "\\\\"})
_SIZES = ("\\left", "\\right")

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
    """Give the 64-bit hash of a string, the same on every machine."""
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
    """Give for each wanted hash the first position among the others, or -1."""
    if len(among) == 0:
        return np.full(len(wanted), -1, dtype=np.int64)
    order = np.argsort(among, kind="stable")
    place = np.searchsorted(among[order], wanted)
    found = order[np.minimum(place, len(among) - 1)]
    return np.where(among[found] == wanted, found, -1)
