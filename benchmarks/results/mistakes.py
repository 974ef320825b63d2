r"""Sorts what a reader got wrong: what is only spelling, what is a wrong sign, and how the pictures compare.

Both sides are reduced step by step: without spaces, then without font commands, then without braces, and so
on. The edits that vanish with a step are put down to it, so that all kinds sum up to the edit distance, and
a sample belongs to the first step after which both sides are the same. What no step explains is about signs
and layout, and is sorted by the blocks of a shortest edit script.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from rapidfuzz.distance import Levenshtein

from i2l.evaluation.breakdown import Blocks, align_tokens
from i2l.evaluation.scores import without_spacing
from i2l.explain.localization import token_class

Tokens = Sequence[str]

LIMIT: Final = 171  # tokens: a reading of so many did not end by itself
FREQUENCIES: Final = {  # in training: less than this -> label
    1: "never",
    300: "1 to 299",
    1_000: "300 to 999",
    10_000: "1,000 to 9,999",
    100_000: "10,000 to 99,999",
}
_NUM_PAIRS: Final = 30  # exchanges that are listed

_FONT_NAMES: Final = (
    "cal mathcal bf mathbf rm mathrm it mathit sf mathsf tt mathtt sl em bm boldmath boldsymbol text textrm "
    "textbf textit mbox operatorname operatorname* mathbb Bbb mathfrak frak mathscr scr mit protect "
    "displaystyle textstyle scriptstyle scriptscriptstyle normalsize small large Large tiny footnotesize"
)
_FONTS: Final = {f"\\{name}" for name in re.split(" ", _FONT_NAMES)}
_SIZE: Final = re.compile(r"\\(?:left|right|[bB]igg?[lrm]?)(?![a-zA-Z])")
_SAME: Final = {  # one name of each sign that has several
    name: names.split()[0]
    for names in (
        r"\leq \le",
        r"\geq \ge",
        r"\neq \ne",
        r"\to \rightarrow",
        r"\ldots \dots",
        r"\wedge \land",
        r"\vee \lor",
        r"| \vert \mid \lvert \rvert",
        r"\| \Vert \parallel",
        r"* \ast",
        r"\dagger \dag",
        r"\ddagger \ddag",
        r"\{ \lbrace",
        r"\} \rbrace",
        r"\leftarrow \gets",
        r": \colon",
        r"[ \lbrack",
        r"] \rbrack",
        r"_ \sb",
        r"^ \sp",
        r"\perp \bot",
    )
    for name in names.split()
}
_LAYOUT: Final = {"&", r"\\", r"\stackrel", r"\atop", r"\substack", r"\underset", r"\overset", r"\hline"}
_SCRIPTS: Final = {"_", "^", r"\limits", r"\nolimits", r"\prime"}


def _without_braces(tokens: Tokens) -> list[str]:
    return [token for token in tokens if token not in "{}"]


def _without_fonts(tokens: Tokens) -> list[str]:
    return [token for token in tokens if token not in _FONTS]


def _without_sizes(tokens: Tokens) -> list[str]:
    bare = (_SIZE.sub("", token) for token in tokens)
    return [new for new, old in zip(bare, tokens, strict=True) if new and (new != "." or old == ".")]


def _with_one_name(tokens: Tokens) -> list[str]:
    return [_SAME.get(token, token) for token in tokens]


_STEPS: Final[dict[str, Callable[[Tokens], list[str]]]] = {
    "spaces": without_spacing,
    "fonts": _without_fonts,
    "braces": _without_braces,
    "delimiters": _without_sizes,
    "names": _with_one_name,
}
# What is left is one of these.
KINDS: Final = ("runaway", *_STEPS, "layout", "scripts", "symbol", "missing", "extra", "rewritten")
LEVELS: Final = ("exact", *_STEPS, "signs", "runaway")


def count_mistakes(
    targets: Sequence[Tokens], predictions: Sequence[Tokens], counts: Mapping[str, Sequence[float]]
) -> dict[str, Any]:
    """Sort all edits and all samples.

    Args:
        targets: canonical tokens.
        predictions: what was read.
        counts: of `i2l evaluate`: how the pictures of every sample compare.
    """
    edits: Counter[str] = Counter()
    samples: Counter[str] = Counter()
    levels = {level: Counter[str]() for level in LEVELS}
    pairs: Counter[tuple[str, str]] = Counter()
    for number, (target, prediction) in enumerate(zip(targets, predictions, strict=True)):
        found = _sort_edits(target, prediction, pairs)
        edits.update(found)
        samples.update(set(found))
        level = _level(target, prediction)
        levels[level].update(
            samples=1,
            **{name: int(counts[name][number]) for name in ("strict_match", "tolerant_match")},
            **{name: int(counts[name][number]) for name in ("expression_right", "compiles")},
        )
    return {
        "num_samples": len(targets),
        "num_tokens": sum(map(len, targets)),
        "edits": {kind: edits[kind] for kind in KINDS},
        "samples": {kind: samples[kind] for kind in KINDS},
        "levels": {level: dict(counter) for level, counter in levels.items() if counter},
        "pairs": [[*pair, count] for pair, count in pairs.most_common(_NUM_PAIRS)],
    }


def count_signs(
    targets: Sequence[Tokens], predictions: Sequence[Tokens], training: Mapping[str, int]
) -> dict[str, Any]:
    """How many signs were read right, spelling aside: by their kind, and by how often training has them.

    Args:
        targets: canonical tokens.
        predictions: what was read.
        training: how often each token occurs in training.
    """
    frequency: Counter[str] = Counter()
    for token, count in training.items():
        for sign in _with_one_name(_without_sizes([token])):
            frequency[sign] += count
    groups: dict[str, dict[str, Counter[str]]] = {
        "by_class": defaultdict(Counter),
        "by_frequency": defaultdict(Counter),
    }
    for target, prediction in zip(targets, predictions, strict=True):
        if len(prediction) >= LIMIT:
            continue
        reduced, found = _reduced(target), _reduced(prediction)
        wrong = {place for start, end, _, _ in align_tokens(reduced, found) for place in range(start, end)}
        for place, sign in enumerate(reduced):
            if sign in _SCRIPTS or sign in _LAYOUT or sign.startswith((r"\begin", r"\end")):
                continue
            counted = {"signs": 1, "right": int(place not in wrong)}
            groups["by_class"][token_class(sign)].update(counted)
            groups["by_frequency"][_frequency_label(frequency[sign])].update(counted)
    return {name: {label: dict(counts) for label, counts in group.items()} for name, group in groups.items()}


def _reduced(tokens: Tokens) -> list[str]:
    for reduce in _STEPS.values():
        tokens = reduce(tokens)
    return list(tokens)


def _frequency_label(count: int) -> str:
    return next((label for limit, label in FREQUENCIES.items() if count < limit), "more")


def _level(target: Tokens, prediction: Tokens) -> str:
    if len(prediction) >= LIMIT:
        return "runaway"
    if list(target) == list(prediction):
        return "exact"
    for name, reduce in _STEPS.items():
        target, prediction = reduce(target), reduce(prediction)
        if target == prediction:
            return name
    return "signs"


def _sort_edits(target: Tokens, prediction: Tokens, pairs: Counter[tuple[str, str]]) -> Counter[str]:
    distance = Levenshtein.distance(target, prediction)
    if len(prediction) >= LIMIT:
        return Counter({"runaway": distance})
    found: Counter[str] = Counter()
    for name, reduce in _STEPS.items():
        target, prediction = reduce(target), reduce(prediction)
        left = Levenshtein.distance(target, prediction)
        if distance > left:
            found[name] += distance - left
        distance = left
    for start, end, other_start, other_end in _joined(align_tokens(target, prediction)):
        old, new = target[start:end], prediction[other_start:other_end]
        kind = _kind_of_block(old, new)
        found[kind] += max(len(old), len(new))
        if kind == "symbol":
            pairs.update((a, b) for a, b in zip(old, new, strict=True) if a != b)
    return found


def _joined(blocks: Blocks) -> Blocks:
    """Join blocks that follow on each other: an exchange and the token that came with it."""
    joined: Blocks = []
    for block in blocks:
        if joined and (joined[-1][1], joined[-1][3]) == (block[0], block[2]):
            joined[-1] = (joined[-1][0], block[1], joined[-1][2], block[3])
        else:
            joined.append(block)
    return joined


def _kind_of_block(old: Tokens, new: Tokens) -> str:
    tokens = {*old, *new}
    if tokens & _LAYOUT or any(token.startswith((r"\begin", r"\end")) for token in tokens):
        return "layout"
    if tokens <= _SCRIPTS:
        return "scripts"
    if len(old) == len(new):
        return "symbol"
    if not new:
        return "missing"
    return "rewritten" if old else "extra"
