"""What a dataset says of itself: `dataset.json` for programs, `README.md` for people and for Hugging Face."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from i2l.dataset.filters import DUPLICATE, EMPTY, LEAK, REJECTED, TOO_LONG
from i2l.dataset.format import CARD_FILE, FORMAT
from i2l.dataset.recipes import SPLITS
from i2l.dataset.schema import shard_schema
from i2l.dataset.settle import KEPT, NO_SPLIT, RARE, Settlement
from i2l.dataset.sources import file_sha256
from i2l.dataset.stages import TOO_HIGH, TOO_WIDE
from i2l.dataset.work import Plan
from i2l.files import CHECKSUMS, atomic_write, write_checksums

Card = dict[str, Any]

COLUMNS = {
    "id": "`file:line` of the input",
    "image": "PNG, 8-bit grey, cropped to ink",
    "pages": "file with the vector page of the sample; `i2l.dataset.format.DatasetReader` draws it",
    "page": "page in that file, counted from 0",
    "formula": "canonical LaTeX, tokens joined by single spaces",
    "tokens": "the same as a list",
    "width": "of the image, in pixels",
    "height": "of the image, in pixels",
    "boxes": "left, top, right, bottom in pixels (half-open) of every token; null if it draws nothing",
    "style": "how it was drawn; `paper` is a display in 12pt article at 200 dpi",
}


def summarize(plan: Plan, settlement: Settlement, *, files: Sequence[str], num_tokens: int) -> Card:
    """Collect all that a card says, but for the checksums."""
    splits = {}
    for split in SPLITS:
        if rows := len(settlement.rows[split]):
            splits[split] = {
                "num_samples": rows,
                "num_with_boxes": settlement.num_with_boxes[split],
                "num_with_unknown_tokens": settlement.num_with_unknown[split],
                "unknown_tokens": dict(ranked(settlement.unknown_tokens[split])),
                "files": [name for name in files if name.startswith(f"data/{split}-")],
            }
    return {
        "format": FORMAT,
        "num_given": settlement.totals().total(),
        "num_kept": settlement.totals()[KEPT],
        "num_tokens": num_tokens,
        "splits": splits,
        "verdicts": {
            split: dict(ranked(settlement.verdicts[split]))
            for split in (*SPLITS, NO_SPLIT)
            if settlement.verdicts[split]
        },
        "steps": count_steps(plan["recipe"], settlement.verdicts),
        "plan": plan,
    }


def count_steps(recipe: Mapping[str, Any], verdicts: Mapping[str, Mapping[str, int]]) -> list[Card]:
    """Count what was left after each step, by split; a split is named from where all its lines are known."""
    before_rendering = {EMPTY, REJECTED, TOO_LONG, DUPLICATE, LEAK}
    after_rendering = {TOO_WIDE, TOO_HIGH, RARE, KEPT}
    found = {verdict for counter in verdicts.values() for verdict in counter}
    size = f"{recipe['max_width_px']} x {recipe['max_height_px']} px"
    steps: list[tuple[str, set[str]]] = [
        ("given", set()),
        ("normalised", {EMPTY, REJECTED}),
        (f"at most {recipe['max_tokens']} tokens", {TOO_LONG}),
        ("no duplicate", {DUPLICATE}),
        ("not in a split that judges", {LEAK}),
        ("rendered", found - before_rendering - after_rendering),
        (f"at most {size}", {TOO_WIDE, TOO_HIGH}),
        (f"tokens seen {recipe['min_token_count']} times in training", {RARE}),
    ]
    left: dict[str, Counter[str]] = {split: Counter(counter) for split, counter in verdicts.items()}
    counted = []
    for name, dropped in steps:
        for counter in left.values():
            for verdict in dropped:
                del counter[verdict]
        totals = {split: counter.total() for split, counter in left.items()}
        drawn = totals.get(NO_SPLIT, 0) == 0
        by_split = {split: totals.get(split, 0) for split in SPLITS} if drawn else {}
        counted.append({"name": name, "all": sum(totals.values()), **by_split})
    return counted


def ranked(counts: Mapping[str, int]) -> list[tuple[str, int]]:
    """Sort counts, largest first, equal ones by name."""
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))


def title_of(card: Card) -> str:
    """Give the dataset's title; it does not depend on the folder, so that neither do the bytes."""
    return f"Formulas, recipe {card['plan']['recipe']['name']}"


def step_rows(card: Card) -> list[list[object]]:
    """Give the steps as rows of a table: name, all, and each split where it is known."""
    return [[step["name"], *(step.get(split, "") for split in ("all", *SPLITS))] for step in card["steps"]]


def write_readme(result: Path, card: Card) -> None:
    """Write the dataset card, with the header that Hugging Face reads."""
    plan = card["plan"]
    title = title_of(card)
    compact = plan["form"] == "compact"
    configs = "".join(f"  - split: {split}\n    path: data/{split}-*\n" for split in card["splits"])
    columns = shard_schema(compact=compact, boxes=plan["boxes"]).names
    inputs = "\n".join(
        f"- `{source['name']}`, {source['split'] or 'split by the seed'}"
        + (f", first {source['limit']:,} lines" if source["limit"] is not None else "")
        for source in plan["inputs"]
    )
    unknown = "\n".join(
        f"- {split}: {entry['num_with_unknown_tokens']:,} of {entry['num_samples']:,} formulas hold a token "
        "that training lacks; they are kept."
        for split, entry in card["splits"].items()
        if split != SPLITS[0]
    )
    text = f"""---
pretty_name: {title}
task_categories:
- image-to-text
tags:
- latex
- ocr
- formulas
configs:
- config_name: default
  data_files:
{configs}---

# {title}

Images of formulas with their LaTeX, built by `i2l build` with the recipe `{plan["recipe"]["name"]}` and seed
{plan["seed"]}: {card["num_kept"]:,} samples of {card["num_given"]:,} lines, {card["num_tokens"]:,} tokens.
`report.html` shows them, `verdicts.parquet` has the fate of every line, `dataset.json` is for programs.

## Lines left after every step

{_table(["step", "all", *SPLITS], step_rows(card))}

Frequencies and vocabulary come from the training split alone.

{unknown}

## Verdicts

{_table(["verdict", *card["verdicts"]], _verdict_rows(card["verdicts"]))}

## Columns

{_table(["column", "holds"], [[f"`{column}`", COLUMNS[column]] for column in columns])}

## Inputs

{inputs}
"""
    with atomic_write(result / "README.md") as file:
        file.write(text)


def write_card(result: Path, card: Card) -> None:
    """Write `dataset.json`, with the checksum of every other file, and then its own beside it."""
    no_part = (CARD_FILE, CHECKSUMS)
    files = sorted(path for path in result.rglob("*") if path.is_file() and path.name not in no_part)
    checksums = {path.relative_to(result).as_posix(): file_sha256(path) for path in files}
    with atomic_write(result / CARD_FILE) as file:
        json.dump(card | {"sha256": checksums}, file, indent=1)
        file.write("\n")
    write_checksums(result)


def _verdict_rows(verdicts: Mapping[str, Mapping[str, int]]) -> list[list[object]]:
    totals: Counter[str] = Counter()
    for counts in verdicts.values():
        totals.update(counts)
    return [
        [verdict, *(counts.get(verdict, 0) for counts in verdicts.values())] for verdict, _ in ranked(totals)
    ]


def _table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Write a Markdown table; numbers get separators and stand to the right."""
    numeric = [any(isinstance(row[column], int) for row in rows) for column in range(len(head))]
    lines = [
        f"| {' | '.join(head)} |",
        "|" + "|".join("---:" if is_number else "---" for is_number in numeric) + "|",
    ]
    for row in rows:
        cells = [f"{cell:,}" if isinstance(cell, int) else str(cell) for cell in row]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)
