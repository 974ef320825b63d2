"""What a dataset says of itself: `dataset.json` for programs, `README.md` and `report.html` for people.

`README.md` has the header that Hugging Face reads. `report.html` shows the dataset at a glance, in one file
that needs nothing else.
"""

import base64
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from markupsafe import Markup
from PIL import Image

from i2l.dataset.format import CARD_FILE, FORMAT, Split
from i2l.dataset.shards import PICTURE_TEXT, encode_png, shard_schema, style_from_text
from i2l.dataset.sources import HAND_STYLES, SPLITS, TRAIN, file_sha256
from i2l.dataset.verdicts import (
    COMMON_TOKENS,
    KEPT,
    NO_DUPLICATE,
    NO_HAND,
    NO_LEAK,
    NO_SPLIT,
    NORMALISED,
    PICTURED,
    SHORT_ENOUGH,
    SMALL_ENOUGH,
    VERDICT_KINDS,
    BuildOutcome,
)
from i2l.dataset.work import Plan
from i2l.files import CHECKSUMS, atomic_write, write_checksums
from i2l.html import bar_chart, fill_template, histogram, page_file, rank_chart
from i2l.ink.pens import drawn_signs

Card = dict[str, Any]

COLUMNS = {
    "id": "`file:line` of the input, or `labels:picture`",
    "image": "PNG, 8-bit grey, cropped to ink; a picture that was given is stored as its file was",
    "pages": "file with the vector page of the sample; `i2l.dataset.format.DatasetReader` draws it",
    "page": "page in that file, counted from 0",
    "ink": "number of the ink in `ink/bank.npz`; null for a formula written with its symbols",
    "formula": "canonical LaTeX, tokens joined by single spaces",
    "tokens": "the same as a list",
    "width": "of the image, in pixels",
    "height": "of the image, in pixels",
    "boxes": "left, top, right, bottom in pixels (half-open) of every token; null if it draws nothing",
    "style": "how it was drawn; `paper` is a display in 12pt article at 200 dpi, `picture` was given, "
    "`hand:SEED` was written by hand",
}


def summarize(
    plan: Plan, outcome: BuildOutcome, *, files: Sequence[str], num_tokens: int, num_lines: Sequence[int]
) -> Card:
    """Collect all that a card says, but for the checksums.

    Args:
        plan: of the build.
        outcome: of the build.
        files: the shards.
        num_tokens: of the vocabulary.
        num_lines: of each source.
    """
    splits = {}
    for split in SPLITS:
        if rows := len(outcome.rows[split]):
            splits[split] = {
                "num_samples": rows,
                "num_with_boxes": outcome.num_with_boxes[split],
                "num_with_unknown_tokens": outcome.num_with_unknown[split],
                "unknown_tokens": dict(ranked(outcome.unknown_tokens[split])),
                "files": [name for name in files if name.startswith(f"data/{split}-")],
            }
    return {
        "format": FORMAT,
        "num_given": outcome.totals().total(),
        "num_kept": outcome.totals()[KEPT],
        "num_tokens": num_tokens,
        "splits": splits,
        "verdicts": {
            split: dict(ranked(outcome.verdicts[split]))
            for split in (*SPLITS, NO_SPLIT)
            if outcome.verdicts[split]
        },
        "steps": count_steps(plan["recipe"], outcome.verdicts),
        "sources": [
            {
                "name": source["name"],
                "holds": "inks" if source.get("copies") else "pictures" if source["pictures"] else "formulas",
                "num_given": num_given,
                "num_kept": outcome.kept_by_source[index],
            }
            for index, (source, num_given) in enumerate(zip(plan["inputs"], num_lines, strict=True))
        ],
        "plan": plan,
    } | ({"unwritten": _unwritten(outcome)} if plan["recipe"]["styles"] == HAND_STYLES else {})


def _unwritten(outcome: BuildOutcome) -> dict[str, int]:
    """Count why formulas could not be written by hand, the commonest cause first."""
    causes = {cause: count for (verdict, cause), count in outcome.causes.items() if verdict == NO_HAND}
    return dict(ranked(causes))


def count_steps(recipe: Mapping[str, Any], verdicts: Mapping[str, Mapping[str, int]]) -> list[Card]:
    """Count what was left after each step, by split; a split is named from where all its lines are known."""
    size = f"{recipe['max_width_px']} x {recipe['max_height_px']} px"
    titles = {
        NORMALISED: "normalised",
        SHORT_ENOUGH: f"at most {recipe['max_tokens']} tokens",
        NO_DUPLICATE: "no duplicate",
        NO_LEAK: "not in a split that judges",
        PICTURED: "rendered",
        SMALL_ENOUGH: f"at most {size}",
        COMMON_TOKENS: f"tokens seen {recipe['min_token_count']} times in training",
    }
    steps: list[tuple[str, set[str]]] = [("given", set())]
    steps += [
        (title, {kind.name for kind in VERDICT_KINDS if kind.step == step}) for step, title in titles.items()
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
    """Return the dataset's title; it does not depend on the folder, so that neither do the bytes."""
    return f"Formulas, recipe {card['plan']['recipe']['name']}"


def step_rows(card: Card) -> list[list[object]]:
    """Return the steps as rows of a table: name, all, and each split where it is known."""
    return [[step["name"], *(step.get(split, "") for split in ("all", *SPLITS))] for step in card["steps"]]


def source_rows(card: Card) -> list[list[object]]:
    """Return the sources as rows of a table: name, what it holds, lines given, samples kept."""
    return [[source[key] for key in ("name", "holds", "num_given", "num_kept")] for source in card["sources"]]


def write_readme(result: Path, card: Card) -> None:
    """Write the dataset card, with the header that Hugging Face reads."""
    plan = card["plan"]
    title = title_of(card)
    compact = plan["form"] == "compact"
    configs = "".join(f"  - split: {split}\n    path: data/{split}-*\n" for split in card["splits"])
    hand = plan["recipe"]["styles"] == HAND_STYLES
    columns = shard_schema(compact=compact, boxes=plan["boxes"], hand=hand).names
    inputs = "\n".join(
        f"- `{source['name']}`, {entry['holds']}, {source['split'] or 'split by the seed'}"
        + (f", first {source['limit']:,} lines" if source["limit"] is not None else "")
        + (", with macros of its own" if source["macros"] else "")
        + f": {entry['num_kept']:,} samples of {entry['num_given']:,} lines"
        for source, entry in zip(plan["inputs"], card["sources"], strict=True)
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

{_markdown_table(["step", "all", *SPLITS], step_rows(card))}

Frequencies and vocabulary come from the training split alone.

{unknown}

## Verdicts

{_markdown_table(["verdict", *card["verdicts"]], _verdict_rows(card["verdicts"]))}

## Columns

{_markdown_table(["column", "holds"], [[f"`{column}`", COLUMNS[column]] for column in columns])}

{_hand_section(card) if hand else ""}## Inputs

{inputs}
"""
    with atomic_write(result / "README.md") as file:
        file.write(text)


def _hand_section(card: Card) -> str:
    """Say how formulas were written, which were left out, and whose licence the inks have."""
    drawn = ", ".join(f"`{name}`" for name in sorted(drawn_signs()))
    causes = [[cause, count] for cause, count in card["unwritten"].items()]
    left_out = _markdown_table(["cause", "formulas"], causes) if causes else "None was left out."
    return f"""## Handwriting

Formulas are laid out by TeX, and each symbol is replaced by one that a person wrote, of one writer as far as
the inks have it. Inks are drawn as they are, and again with other pens, slants and papers. Labels leave out
what ink cannot show: sizes of delimiters, spaces, upright letters. No ink has these signs, so they are drawn
from simple strokes: {drawn}.

Formulas that could not be written were left out:

{left_out}

The strokes are in `ink/bank.npz`, under the licence of the inks, which a model trained on them inherits.
CROHME's is CC BY-NC-SA 3.0.

"""


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


def _markdown_table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
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


NUM_CONTACTS = 60
SCREEN_DPI = 100
MAX_CONTACT_PX = 330  # the width of a column of the contact sheet, which a photograph is made to fit
NUM_CAUSES = 25
NUM_TOKENS = 40
NUM_TOKEN_BARS = 12


def write_report(result: Path, card: Card, outcome: BuildOutcome) -> None:
    """Write `report.html` into the dataset in `result`."""
    plan, recipe = card["plan"], card["plan"]["recipe"]
    unknown: Counter[str] = Counter()
    for entry in card["splits"].values():
        unknown.update(entry["unknown_tokens"])
    text = fill_template(
        "i2l.dataset",
        "report.html",
        title=title_of(card),
        style=page_file("i2l.dataset", "report.css"),
        plan=plan,
        inputs=", ".join(source["name"] for source in plan["inputs"]),
        versions=", ".join(f"{package} {number}" for package, number in plan["versions"].items()),
        tiles=_tiles(card),
        split_heads=["all", *SPLITS],
        steps=[_with_commas(row) for row in step_rows(card)],
        sources=[_with_commas(row) for row in source_rows(card)],
        lost=_lost_chart(card),
        causes=[
            (verdict, cause, count)
            for (verdict, cause), count in sorted(
                outcome.causes.items(), key=lambda item: (-item[1], item[0])
            )[:NUM_CAUSES]
        ],
        histograms=_histograms(outcome, recipe),
        token_charts=_token_charts(outcome.token_counts, recipe["min_token_count"]),
        unknown=ranked(unknown)[:NUM_TOKENS],
        num_unknown=len(unknown),
        num_with_unknown=sum(entry["num_with_unknown_tokens"] for entry in card["splits"].values()),
        contacts=list(_contacts(Split(result, card["splits"][TRAIN]["files"]))),
    )
    with atomic_write(result / "report.html") as file:
        file.write(text)


def _tiles(card: Card) -> dict[str, int]:
    tiles = {"lines given": card["num_given"], "samples kept": card["num_kept"]}
    tiles |= {split: entry["num_samples"] for split, entry in card["splits"].items()}
    return tiles | {"tokens in the vocabulary": card["num_tokens"]}


def _with_commas(row: Sequence[object]) -> list[object]:
    return [f"{cell:,}" if isinstance(cell, int) else cell for cell in row]


def _lost_chart(card: Card) -> Markup | None:
    lost: Counter[str] = Counter()
    for counts in card["verdicts"].values():
        lost.update({verdict: count for verdict, count in counts.items() if verdict != KEPT})
    return bar_chart(lost) if lost else None


def _histograms(outcome: BuildOutcome, recipe: Mapping[str, Any]) -> list[tuple[str, Markup]]:
    charts = [
        ("length", outcome.lengths, recipe["max_tokens"], 50, "tokens"),
        ("width", outcome.widths, recipe["max_width_px"], 55, "px"),
        ("height", outcome.heights, recipe["max_height_px"], 64, "px"),
    ]
    figures = []
    for title, by_split, limit, num_bins, unit in charts:
        values: Counter[int] = Counter()
        for counter in by_split.values():
            values.update(counter)
        drawing = histogram(values, limit=limit, num_bins=num_bins, unit=unit)
        figures.append((f"{title}: {_summary(values)} {unit}", drawing))
    return figures


def _token_charts(counts: Counter[str], minimum: int) -> list[tuple[str, Markup]]:
    ranks = (
        f"occurrences in training by rank; dashed: {minimum}, what a token needed before "
        "formulas with rarer ones were dropped"
    )
    return [
        (ranks, rank_chart(list(counts.values()), unit="rank", minimum=minimum)),
        ("most frequent tokens of training", bar_chart(dict(ranked(counts)[:NUM_TOKEN_BARS]))),
    ]


def _contacts(split: Split) -> Iterator[dict[str, object]]:
    """Yield samples at equal distances over the split, all at the size they have on paper."""
    indices = np.unique(np.linspace(0, len(split) - 1, NUM_CONTACTS).astype(int))
    for index, pixels in zip(indices, split.pixels(indices.tolist(), jobs=1), strict=True):
        style, image = split.styles[index], Image.fromarray(pixels)
        if style == PICTURE_TEXT:
            image.thumbnail((MAX_CONTACT_PX, MAX_CONTACT_PX))
            width = image.width
        else:
            width = round(image.width * SCREEN_DPI / style_from_text(style).dpi)
        data = base64.b64encode(encode_png(np.asarray(image))).decode()
        title = f"{split.ids[index]}\n{split.formulas[index]}"
        yield {"width": width, "title": title, "url": f"data:image/png;base64,{data}"}


def _summary(values: Counter[int]) -> str:
    total = values.total()
    seen = 0
    median = 0
    for value in sorted(values):
        seen += values[value]
        if 2 * seen >= total:
            median = value
            break
    mean = sum(value * count for value, count in values.items()) / total
    return f"{min(values):,} to {max(values):,}, median {median:,}, mean {mean:,.1f}"
