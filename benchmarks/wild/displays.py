"""Part `displays`: the displayed formulas of a book that no model has been trained on, drawn and read.

The book comes as its TeX sources in an archive, which `i2l extract` reads. The displays with two rows or more
are one group for each way to draw them; those of one row are groups beside them. A display is canonicalised
first, so that what is judged is what any list of formulas would hold. `benchmarks.wild.canonical` tells where
that changes the picture.
"""

import hashlib
import json
import re
import sys
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from benchmarks.wild.judging import (
    Judged,
    Row,
    Sample,
    balanced,
    judge,
    read_samples,
    rows,
    show_progress,
    summarize,
)
from i2l.dataset.build import EngineOptions
from i2l.dataset.extract import KEPT, ExtractOptions, extract_formulas
from i2l.files import atomic_write
from i2l.formulas.lexer import FormulaError
from i2l.formulas.normalize import normalize_formula
from i2l.inference.reader import Reader
from i2l.rendering.render import render_formulas
from i2l.rendering.styles import PAPER, Style

BOOK: Final = "physicsplay"
ONE_ROW: Final = "one row"
SEVERAL: Final = "several rows"
# The paper's own style, and three as other books and screens have them.
STYLES: Final = {
    "Computer Modern 12 pt, 200 dpi": PAPER,
    "Times 10 pt, 150 dpi": Style(font="times", size_pt=10, dpi=150),
    "Palatino 11 pt, 300 dpi": Style(font="palatino", size_pt=11, dpi=300),
    "STIX 12 pt, 110 dpi": Style(font="stix2", size_pt=12, dpi=110),
}
LENGTHS: Final = {  # in tokens
    "up to 100 tokens": (0, 101),
    "101 to 200 tokens": (101, 201),
    "201 to 400 tokens": (201, 401),
    "over 400 tokens": (401, sys.maxsize),
}
_NO_INK: Final = re.compile(r"\\(?:label|tag\*?|index)\s*(?:\[[^][]*\])?\s*\{[^{}]*\}|\\(?:nonumber|notag)\b")


@dataclass(frozen=True)
class Display:
    """A displayed formula with its macros written out."""

    environment: str
    source: str  # LaTeX that may stand in a document by itself
    formula: str  # canonical tokens
    rows: int


def read_displays(extracted: Path) -> tuple[list[Display], Counter[str]]:
    """Read the displays that `i2l extract` found, each once, and count what was left out and why."""
    left_out: Counter[str] = Counter()
    displays: dict[str, Display] = {}
    for line in extracted.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        environment = row["environment"].removesuffix("*")
        try:
            display = _make_display(environment, _NO_INK.sub("", row["latex"]).strip())
        except FormulaError:
            left_out["not parsed"] += 1
            continue
        if not display.formula:
            left_out["empty"] += 1
        elif display.formula in displays:
            left_out["seen before"] += 1
        else:
            displays[display.formula] = display
    return list(displays.values()), left_out


def _make_display(environment: str, latex: str) -> Display:
    """Make a display of what stands in the list: with its environment where that sets several rows."""
    if latex.startswith(r"\begin{" + environment):
        source = latex.replace(f"{{{environment}}}", f"{{{environment}*}}")  # without numbers
    else:
        source = f"\\begin{{equation*}}\n{latex}\n\\end{{equation*}}"
    canonical = normalize_formula(latex).formula
    return Display(environment, re.sub(r"\n\s*\n", "\n", source), canonical, count_rows(canonical.split()))


def count_rows(tokens: list[str]) -> int:
    """Give the rows of the tallest array of a canonical formula; 1 if it has none.

    Canonical arrays end each row with a double backslash.
    """
    tallest, open_arrays = 1, [0]
    for token in tokens:
        if token.startswith(r"\begin{"):
            open_arrays.append(0)
        elif token == r"\\" or token.startswith(r"\\["):
            open_arrays[-1] += 1
        elif token.startswith(r"\end{") and len(open_arrays) > 1:
            tallest = max(tallest, open_arrays.pop())
    return tallest


def load_displays(data: Path, cache: Path) -> tuple[list[Display], dict[str, int]]:
    """Give the displays of the book that TeX can draw, spread over the book, and count the others by reason.

    TeX is asked once; its answers are kept in the cache.
    """
    archive = data / "tex-sources" / f"{BOOK}.tar.xz"
    extracted = cache / f"{BOOK}.jsonl"
    cache.mkdir(parents=True, exist_ok=True)
    verdicts = extract_formulas(
        [archive], out=extracted, options=ExtractOptions(), engine=EngineOptions(jobs=1), quiet=True
    )
    found, left_out = read_displays(extracted)
    kept = cache / f"{BOOK}-{hashlib.sha256(extracted.read_bytes()).hexdigest()[:12]}.json"
    if kept.is_file():
        content = json.loads(kept.read_text(encoding="utf-8"))
        return [Display(**display) for display in content["displays"]], content["left_out"]
    left_out.update({verdict: count for verdict, count in verdicts.items() if verdict != KEPT})
    show_progress(f"displays: {len(found)} found, drawing them to see which ones TeX takes")
    renders = render_formulas([normalize_formula(display.formula).latex for display in found])
    left_out.update(f"not drawn: {render.reason}" for render in renders if render.reason)
    displays = spread([display for display, one in zip(found, renders, strict=True) if not one.reason])
    with atomic_write(kept) as file:
        json.dump({"displays": [asdict(one) for one in displays], "left_out": left_out}, file)
    return displays, dict(left_out)


def draw_displays(displays: list[Display], *, limit: int | None) -> list[Sample]:
    """Draw displays in each style; with a limit, only so many pictures of each number of rows."""
    names = list(STYLES)
    wanted: list[tuple[str, str, str]] = []  # group, style, formula
    for group, members in (
        (SEVERAL, [display for display in displays if display.rows > 1]),
        (ONE_ROW, [display for display in displays if display.rows == 1]),
    ):
        wanted += [
            (group, names[condition], members[number].formula)
            for number, condition in balanced(len(members), len(names), limit=limit)
        ]
    renders = render_formulas(
        [normalize_formula(formula).latex for _, _, formula in wanted],
        style=[STYLES[style] for _, style, _ in wanted],
    )
    return [
        Sample(f"{group}, {style}", str(number), render.pixels, formula, STYLES[style])
        for number, ((group, style, formula), render) in enumerate(zip(wanted, renders, strict=True))
        if render.pixels is not None  # a font may lack a sign
    ]


def measure_displays(
    reader: Reader, data: Path, cache: Path, *, limit: int | None
) -> tuple[list[Row], list[Judged], dict[str, int]]:
    """Read the displays of the book; also give what was left out."""
    displays, left_out = load_displays(data, cache)
    samples = draw_displays(displays, limit=limit)
    judged = judge(samples, read_samples(reader, samples, part="displays"))
    table = [
        summarize(f"{group}, all styles", [one for one in judged if one.group.startswith(group)])
        for group in (SEVERAL, ONE_ROW)
    ]
    for label, (low, high) in LENGTHS.items():
        members = [
            one
            for one in judged
            if one.group.startswith(SEVERAL) and low <= len(one.reference.split()) < high
        ]
        table += [summarize(f"{SEVERAL}, {label}", members)] if members else []
    groups = [f"{group}, {style}" for group in (SEVERAL, ONE_ROW) for style in STYLES]
    return table + rows(judged, groups), judged, left_out


def spread(displays: list[Display]) -> list[Display]:
    """Order displays so that the first ones come from all over the book."""
    step = 7919  # a prime: no count of displays shares a factor with it
    return [displays[number * step % len(displays)] for number in range(len(displays))]
