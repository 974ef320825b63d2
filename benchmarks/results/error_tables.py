"""The tables of docs/errors.md, from what was mistaken in each run."""

import json
from collections.abc import Callable, Sequence
from typing import Final

from benchmarks.results.markdown import NOTHING, code, percent, table
from benchmarks.results.mistakes import FREQUENCIES, KINDS, LEVELS
from benchmarks.results.store import EXAMPLES, Run
from i2l.explain.localization import TOKEN_CLASSES

_KIND_WORDS: Final = {
    "runaway": "readings that never end",
    "spaces": r"spaces: `\,` `~` `\quad` `\hspace { ... }`",
    "fonts": r"fonts and styles: `\cal` or `\mathcal`, `\mathrm`, `\displaystyle`",
    "braces": "braces",
    "delimiters": r"size of delimiters: `(` or `\left(` or `\big(`",
    "names": r"names of one sign: `\to` or `\rightarrow`, `*` or `\ast`",
    "layout": r"layout: `array`, `&`, `\\`, `\stackrel`, `\atop`",
    "scripts": "scripts: `_` `^` lost, found or exchanged",
    "symbol": "wrong sign, as many as there are",
    "missing": "a piece missing",
    "extra": "a piece too much",
    "rewritten": "a piece read as another of other length",
}
_LEVEL_WORDS: Final = {
    "exact": "the same tokens",
    "spaces": "differ in spaces only",
    "fonts": "... and font commands",
    "braces": "... and braces",
    "delimiters": "... and the size of delimiters",
    "names": "... and names of one sign",
    "signs": "a sign or the layout is different",
    "runaway": "the reading never ended",
}
_NUM_PAIRS: Final = 24


def edit_kinds(runs: Sequence[Run]) -> str:
    """Edits by kind, the runs side by side."""
    parts = [(run, part) for run in runs if not run.is_variant and (part := run.part("mistakes"))]
    rows = []
    for kind in KINDS:
        cells = []
        for _, part in parts:
            total = sum(part["edits"].values())
            per_thousand = 1000 * part["edits"][kind] / part["num_tokens"]
            share = percent(part["edits"][kind] / total, 1)
            cells.append(f"{per_thousand:.1f} ({share}; {part['samples'][kind]:,})")
        rows.append([_KIND_WORDS[kind], *cells])
    totals = [f"{1000 * sum(part['edits'].values()) / part['num_tokens']:.1f}" for _, part in parts]
    rows.append(["**all**", *totals])
    searches = [(run.part("val") or {}).get("search", "") for run, _ in parts]
    head = [f"{run.title}, {search}" for (run, _), search in zip(parts, searches, strict=True)]
    return table(["edits of 1,000 tokens (share; formulas with it)", *head], rows)


def verdicts(runs: Sequence[Run]) -> str:
    """What a reading comes to, and what its picture says; of the best run."""
    run = _best(runs)
    part = run.part("mistakes") or {}
    rows = []
    for level in LEVELS:
        found = part["levels"].get(level)
        if found:
            shares = [percent(found[key] / found["samples"], 1) for key in _JUDGES]
            size = f"{found['samples']:,} ({percent(found['samples'] / part['num_samples'], 1)})"
            rows.append([_LEVEL_WORDS[level], size, *shares])
    sums = {key: sum(level[key] for level in part["levels"].values()) for key in _JUDGES}
    rows.append(
        [
            "**all**",
            f"{part['num_samples']:,}",
            *(percent(sums[key] / part["num_samples"], 1) for key in _JUDGES),
        ]
    )
    return table([run.title, "formulas", *_JUDGES.values()], rows)


def pairs(runs: Sequence[Run]) -> str:
    """The most frequent exchanges of signs, of the best run."""
    run = _best(runs)
    found = (run.part("mistakes") or {})["pairs"][:_NUM_PAIRS]
    cells = [f"{code(target)} as {code(reading)} {count}" for target, reading, count in found]
    rows = [cells[start : start + 4] for start in range(0, len(cells), 4)]
    rows = [row + [""] * (4 - len(row)) for row in rows]
    return table([run.title, "", "", ""], rows, words=4)


def signs(runs: Sequence[Run]) -> str:
    """Signs read wrong, by kind and by how often training has them."""
    parts = [(run, part) for run in runs if not run.is_variant and (part := run.part("mistakes"))]
    rows = []
    for group, labels in (("by_class", TOKEN_CLASSES), ("by_frequency", (*FREQUENCIES.values(), "more"))):
        for label in labels:
            found = [part[group].get(label) for _, part in parts]
            if found[-1]:
                wrong = [percent(1 - f["right"] / f["signs"]) if f else NOTHING for f in found]
                words = label if group == "by_class" else f"in training: {label}"
                rows.append([words, f"{found[-1]['signs']:,}", *wrong])
    return table(["signs read wrong", "signs", *(run.title for run, _ in parts)], rows)


def examples(runs: Sequence[Run]) -> str:
    """Pairs with their pictures."""
    rows = [
        [
            f"{example['what']}: {example['verdict']}",
            f"![{example['name']}](results/{example['name']}.png)",
            f"{code(example['target'])}<br>{code(example['reading'])}",
        ]
        for example in json.loads(EXAMPLES.read_text(encoding="utf-8"))
    ]
    return table(["", "target above, reading below", "tokens"], rows, words=3)


_JUDGES: Final = {
    "strict_match": "identical pixels",
    "tolerant_match": "same but for space",
    "expression_right": "every sign in its place",
    "compiles": "compiles",
}


def _best(runs: Sequence[Run]) -> Run:
    return max(
        (run for run in runs if run.part("mistakes")), key=lambda run: run.figures("val")["bleu_moses"].value
    )


TABLES: Final[dict[str, Callable[[Sequence[Run]], str]]] = {
    "edit-kinds": edit_kinds,
    "verdicts": verdicts,
    "pairs": pairs,
    "signs": signs,
    "examples": examples,
}
