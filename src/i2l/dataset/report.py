"""`report.html`: the dataset at a glance, in one file that needs nothing else."""

import base64
from collections import Counter
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from i2l.dataset.card import Card, ranked, step_rows, title_of
from i2l.dataset.charts import bar_chart, histogram, rank_chart
from i2l.dataset.draw import encode_png, style_from_text
from i2l.dataset.format import Split
from i2l.dataset.recipes import SPLITS, TRAIN
from i2l.dataset.settle import KEPT, Settlement
from i2l.files import atomic_write

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
        + _table(["", "all", *SPLITS], step_rows(card))
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
        f'<div class="list">{_table(["verdict", "cause", "lines"], rows)}</div>' if rows else "<p>None.</p>"
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


def _table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
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
