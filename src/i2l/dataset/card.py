"""What a dataset says of itself: `dataset.json` for programs, `README.md` for people and for Hugging Face.

Small charts as SVG text, drawn by hand so that a report needs no plotting library and no network.

`report.html`: the dataset at a glance, in one file that needs nothing else.
"""

import base64
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from html import escape
from math import ceil, log10
from pathlib import Path
from typing import Any

import numpy as np

from i2l.dataset.format import CARD_FILE, FORMAT, Split
from i2l.dataset.shards import encode_png, shard_schema, style_from_text
from i2l.dataset.sources import SPLITS, TRAIN, file_sha256
from i2l.dataset.verdicts import (
    DUPLICATE,
    EMPTY,
    KEPT,
    LEAK,
    NO_SPLIT,
    RARE,
    REJECTED,
    TOO_HIGH,
    TOO_LONG,
    TOO_WIDE,
    Settlement,
)
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

{_markdown_table(["step", "all", *SPLITS], step_rows(card))}

Frequencies and vocabulary come from the training split alone.

{unknown}

## Verdicts

{_markdown_table(["verdict", *card["verdicts"]], _verdict_rows(card["verdicts"]))}

## Columns

{_markdown_table(["column", "holds"], [[f"`{column}`", COLUMNS[column]] for column in columns])}

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


_WIDTH, _HEIGHT = 460, 200  # of the plotting area, in SVG units
_LEFT, _BOTTOM, _TOP, _RIGHT = 62, 36, 10, 24


def bar_chart(counts: Mapping[str, int]) -> str:
    """Draw one horizontal bar per name, longest first, with its number."""
    rows = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    largest = max(counts.values(), default=1) or 1
    label_width, bar_width, row_height = 160, 300, 22
    bars = []
    for index, (name, count) in enumerate(rows):
        y = index * row_height
        length = count / largest * bar_width
        bars.append(
            f'<text x="{label_width - 8}" y="{y + 15}" text-anchor="end">{escape(name)}</text>'
            f'<rect x="{label_width}" y="{y + 3}" width="{max(length, 1):.1f}" height="16"/>'
            f'<text x="{label_width + length + 6:.1f}" y="{y + 15}" class="value">{count:,}</text>'
        )
    return _svg(label_width + bar_width + 80, max(len(rows), 1) * row_height, "".join(bars))


def histogram(counts: Mapping[int, int], *, limit: int, num_bins: int, unit: str) -> str:
    """Draw how many values fall into each of the equal bins between 0 and the limit, inclusive."""
    size = max(1, ceil((limit + 1) / num_bins))
    bins = [0] * ceil((limit + 1) / size)
    for value, count in counts.items():
        bins[min(value, limit) // size] += count
    largest = max(bins, default=0) or 1
    step = _WIDTH / len(bins)
    bars = []
    for index, count in enumerate(bins):
        height = count / largest * _HEIGHT
        first = index * size
        span = f"{first}" if size == 1 else f"{first} to {min(first + size - 1, limit)}"
        bars.append(
            f'<rect x="{_LEFT + index * step:.1f}" y="{_TOP + _HEIGHT - height:.1f}" '
            f'width="{max(step - 1, 0.5):.1f}" height="{height:.1f}">'
            f"<title>{span} {escape(unit)}: {count:,}</title></rect>"
        )
    ticks_x = [(value, _LEFT + value / (len(bins) * size) * _WIDTH) for value in _round_steps(limit, 6)]
    ticks_y = [(value, _TOP + _HEIGHT - value / largest * _HEIGHT) for value in _round_steps(largest, 5)]
    return _framed("".join(bars), ticks_x, ticks_y, unit)


def rank_chart(counts: Sequence[int], *, unit: str, minimum: int) -> str:
    """Draw counts against their rank, both on a logarithmic scale; a dashed line marks the minimum."""
    ranked = sorted(counts, reverse=True)
    largest = max(ranked, default=1)
    decades_x = max(ceil(log10(max(len(ranked), 2))), 1)
    decades_y = max(ceil(log10(max(largest, 2))), 1)

    def x_of(rank: int) -> float:
        return _LEFT + log10(rank) / decades_x * _WIDTH

    def y_of(count: int) -> float:
        return _TOP + _HEIGHT - log10(max(count, 1)) / decades_y * _HEIGHT

    points = " ".join(f"{x_of(rank):.1f},{y_of(count):.1f}" for rank, count in enumerate(ranked, start=1))
    dashed = f'<path class="limit" d="M{_LEFT} {y_of(minimum):.1f}h{_WIDTH}"/>'
    ticks_x = [(10**power, x_of(10**power)) for power in range(decades_x + 1)]
    ticks_y = [(10**power, y_of(10**power)) for power in range(decades_y + 1)]
    return _framed(f'<polyline points="{points}"/>{dashed}', ticks_x, ticks_y, unit)


def _round_steps(largest: float, at_most: int) -> list[int]:
    """Give 0, s, 2s... up to the largest, with s of the form 1, 2 or 5 times a power of ten."""
    step = 1
    while largest / step > at_most:
        step = step * 5 // 2 if str(step)[0] == "2" else step * 2
    return list(range(0, int(largest) + 1, step))


def _framed(
    content: str, ticks_x: list[tuple[int, float]], ticks_y: list[tuple[int, float]], unit: str
) -> str:
    axes = "".join(
        f'<path class="grid" d="M{_LEFT} {y:.1f}h{_WIDTH}"/>'
        f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{value:,}</text>'
        for value, y in ticks_y
    )
    axes += "".join(
        f'<text x="{x:.1f}" y="{_TOP + _HEIGHT + 16}" text-anchor="middle">{value:,}</text>'
        for value, x in ticks_x
    )
    caption = (
        f'<text x="{_LEFT + _WIDTH / 2}" y="{_TOP + _HEIGHT + 31}" text-anchor="middle" class="value">'
        f"{escape(unit)}</text>"
    )
    return _svg(_LEFT + _WIDTH + _RIGHT, _TOP + _HEIGHT + _BOTTOM, axes + content + caption)


def _svg(width: float, height: float, content: str) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" viewBox="0 0 {width:g} {height:g}" '
        f'width="{width:g}">'
        f"{content}</svg>"
    )


NUM_CONTACTS = 60
SCREEN_DPI = 100
NUM_CAUSES = 25
NUM_TOKENS = 40

_STYLE = """
:root { color-scheme: light dark; --ink: #1c2330; --dim: #667085; --line: #d8dde6; --fill: #3d6fb6;
  --page: #fff; --card: #f5f7fa; --mark: #c2410c; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e9ef; --dim: #9aa3b2; --line: #343b48;
  --fill: #6f9fe3; --page: #14181f; --card: #1d232d; --mark: #fb923c; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 2rem 1.5rem 4rem; max-width: 1180px; color: var(--ink);
  background: var(--page); font: 15px/1.5 system-ui, sans-serif; }
h1 { margin: 0; font-size: 1.7rem; } h2 { margin: 2.6rem 0 .8rem; font-size: 1.15rem; }
p { max-width: 46rem; } .dim { color: var(--dim); }
.tiles { display: flex; flex-wrap: wrap; gap: .8rem; margin: 1.4rem 0; }
.tile { background: var(--card); border-radius: 8px; padding: .7rem 1.1rem; min-width: 8.5rem; }
.tile b { display: block; font-size: 1.45rem; font-weight: 600; } .tile span { color: var(--dim); }
.grid2 { display: grid; grid-template-columns: repeat(auto-fit, minmax(440px, 1fr)); gap: 1.2rem 2rem; }
figure { margin: 0; } figcaption { color: var(--dim); margin-bottom: .3rem; }
table { border-collapse: collapse; } th, td { padding: .25rem .9rem .25rem 0; text-align: left;
  border-bottom: 1px solid var(--line); } th { color: var(--dim); font-weight: 500; }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; }
code { font: 13px ui-monospace, monospace; overflow-wrap: anywhere; }
svg { max-width: 100%; height: auto; font: 12px system-ui, sans-serif; }
svg text { fill: var(--ink); } svg .value { fill: var(--dim); } svg rect { fill: var(--fill); }
svg .grid { stroke: var(--line); fill: none; }
svg polyline { stroke: var(--fill); stroke-width: 2; fill: none; }
svg .limit { stroke: var(--mark); stroke-dasharray: 5 4; fill: none; }
.list { max-height: 24rem; overflow-y: auto; }
.sheet { columns: 3 330px; column-gap: 1rem; }
.sheet div { break-inside: avoid; background: #fff; border: 1px solid var(--line); border-radius: 6px;
  padding: .6rem; margin-bottom: .8rem; text-align: center; }
.sheet img { max-width: 100%; }
"""


def write_report(result: Path, card: Card, settlement: Settlement) -> None:
    """Draw the report of the dataset in `result`."""
    recipe = card["plan"]["recipe"]
    sections = [
        _head(card),
        '<div class="grid2">',
        "<div><h2>Lines left after every step</h2>"
        + _html_table(["", "all", *SPLITS], step_rows(card))
        + "</div>",
        "<div><h2>Lines lost</h2>" + _losses(card) + "</div>",
        "</div>",
        "<h2>Most frequent causes</h2>" + _causes(settlement),
        "<h2>Samples</h2>" + _histograms(settlement, recipe),
        "<h2>Tokens</h2>" + _tokens(card, settlement.token_counts, recipe["min_token_count"]),
        "<h2>A few of them</h2>" + _contact_sheet(Split(result, card["splits"][TRAIN]["files"])),
    ]
    with atomic_write(result / "report.html") as file:
        file.write(
            '<!doctype html><html lang="en"><head><meta charset="utf-8">'
            f"<title>{escape(title_of(card))}</title>"
            '<meta name="viewport" content="width=device-width, initial-scale=1">'
            f"<style>{_STYLE}</style></head><body>{''.join(sections)}</body></html>\n"
        )


def _head(card: Card) -> str:
    plan = card["plan"]
    tiles = {"lines given": card["num_given"], "samples kept": card["num_kept"]}
    tiles |= {split: entry["num_samples"] for split, entry in card["splits"].items()}
    tiles["tokens in the vocabulary"] = card["num_tokens"]
    cells = "".join(
        f'<div class="tile"><b>{value:,}</b><span>{label}</span></div>' for label, value in tiles.items()
    )
    versions = ", ".join(f"{package} {number}" for package, number in plan["versions"].items())
    inputs = ", ".join(source["name"] for source in plan["inputs"])
    return (
        f"<h1>{escape(title_of(card))}</h1>"
        f'<p class="dim">Seed {plan["seed"]}, {plan["form"]}. '
        f"From {escape(inputs)}. Made with {escape(versions)}.</p>"
        f'<div class="tiles">{cells}</div>'
    )


def _losses(card: Card) -> str:
    lost: Counter[str] = Counter()
    for counts in card["verdicts"].values():
        lost.update({verdict: count for verdict, count in counts.items() if verdict != KEPT})
    return bar_chart(lost) if lost else "<p>None.</p>"


def _causes(settlement: Settlement) -> str:
    causes = sorted(settlement.causes.items(), key=lambda item: (-item[1], item[0]))[:NUM_CAUSES]
    rows = [[verdict, f"<code>{escape(cause)}</code>", count] for (verdict, cause), count in causes]
    return (
        f'<div class="list">{_html_table(["verdict", "cause", "lines"], rows)}</div>'
        if rows
        else "<p>None.</p>"
    )


def _histograms(settlement: Settlement, recipe: Mapping[str, Any]) -> str:
    charts = [
        ("length", settlement.lengths, recipe["max_tokens"], 50, "tokens"),
        ("width", settlement.widths, recipe["max_width_px"], 55, "px"),
        ("height", settlement.heights, recipe["max_height_px"], 64, "px"),
    ]
    figures = []
    for title, by_split, limit, num_bins, unit in charts:
        values: Counter[int] = Counter()
        for counter in by_split.values():
            values.update(counter)
        figures.append(
            f"<figure><figcaption>{title}: {_summary(values)} {unit}</figcaption>"
            f"{histogram(values, limit=limit, num_bins=num_bins, unit=unit)}</figure>"
        )
    return f'<div class="grid2">{"".join(figures)}</div>'


def _tokens(card: Card, counts: Counter[str], minimum: int) -> str:
    unknown: Counter[str] = Counter()
    for entry in card["splits"].values():
        unknown.update(entry["unknown_tokens"])
    ranks = rank_chart(list(counts.values()), unit="rank", minimum=minimum)
    figures = (
        f"<figure><figcaption>occurrences in training by rank; dashed: {minimum}, what a token needed before "
        f"formulas with rarer tokens went</figcaption>{ranks}</figure>"
        f"<figure><figcaption>the most frequent</figcaption>{bar_chart(dict(ranked(counts)[:12]))}</figure>"
    )
    text = ""
    if unknown:
        listed = ranked(unknown)[:NUM_TOKENS]
        names = " ".join(f"<code>{escape(token)}</code>&nbsp;{count}" for token, count in listed)
        which = "These tokens" if len(listed) == len(unknown) else "The most frequent of these tokens"
        num_formulas = sum(entry["num_with_unknown_tokens"] for entry in card["splits"].values())
        text = (
            f"<p>{num_formulas:,} formulas of val and test hold a token that training lacks; they are kept. "
            f"{which}: {names}</p>"
        )
    return f'<div class="grid2">{figures}</div>{text}'


def _contact_sheet(split: Split) -> str:
    """Show samples at equal distances over the split, all at the size they have on paper."""
    indices = np.unique(np.linspace(0, len(split) - 1, NUM_CONTACTS).astype(int))
    images = []
    for index, pixels in zip(indices, split.pixels(indices.tolist(), jobs=1), strict=True):
        data = base64.b64encode(encode_png(pixels)).decode()
        width = round(pixels.shape[1] * SCREEN_DPI / style_from_text(split.styles[index]).dpi)
        title = escape(f"{split.ids[index]}\n{split.formulas[index]}")
        images.append(
            f'<div><img width="{width}" title="{title}" alt="{title}" '
            f'src="data:image/png;base64,{data}"></div>'
        )
    return f'<div class="sheet">{"".join(images)}</div>'


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


def _html_table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    numeric = [any(isinstance(row[column], int) for row in rows) for column in range(len(head))]
    kinds = [' class="n"' if is_number else "" for is_number in numeric]
    cells = "".join(f"<th{kind}>{title}</th>" for title, kind in zip(head, kinds, strict=True))
    body = [f"<tr>{cells}</tr>"]
    for row in rows:
        cells = "".join(
            f"<td{kind}>{f'{cell:,}' if isinstance(cell, int) else cell}</td>"
            for cell, kind in zip(row, kinds, strict=True)
        )
        body.append(f"<tr>{cells}</tr>")
    return f"<table>{''.join(body)}</table>"
