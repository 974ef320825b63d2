"""How good the formula language is, measured on real lists: `python -m benchmarks.normalize DATA`.

DATA holds `formulas/NAME.raw.txt.xz` with `NAME.norm.txt.xz` line for line from im2markup's normaliser, and
`eval/*.norm.txt`. Prints one table; `--differences FILE` lists where we and im2markup part, by class.
"""

import argparse
import json
import lzma
import re
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from itertools import islice
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from i2l.formulas.lexer import FormulaError
from i2l.formulas.normalize import normalize_formula
from i2l.formulas.pretty import pretty_formula
from i2l.rendering.render import RenderResult, render_formulas

COMPARED = ("hepth2003_display", "arxiv_display", "wikipedia_en")
RENDERED = ("hepth2003_display", "arxiv_display")
SPACED_LENGTH = re.compile(r"([hv]space) \{ ([^}]*) \}")

CLASSES = (  # what im2markup loses, by the first token where the two part: a test on (ours, theirs)
    ("cases: brace drawn twice", lambda ours, theirs: ours == r"\begin{cases}" and theirs == r"\left\{"),
    ("words of \\textrm and the like: spaces lost", lambda ours, theirs: theirs.startswith(r"\text")),
    (
        "words that are no \\mathrm: hyphens, commas, italic correction, size",
        lambda ours, theirs: theirs == r"\mathrm",
    ),
    (
        "\\tfrac, \\dfrac, \\tbinom: size lost",
        lambda ours, theirs: ours[1:2] in "td" and theirs in (r"\frac", r"\binom"),
    ),
    ("\\limits, \\nolimits lost", lambda ours, theirs: ours in (r"\limits", r"\nolimits")),
    ("prime lost before ^", lambda ours, theirs: ours == r"\prime"),
    ("root index lost", lambda ours, theirs: theirs == "[object"),
    ("command inside \\mathrm spelled out", lambda ours, theirs: theirs == "\\" and ours[:1] == "\\"),
    ("\\\\ outside an array made a thin space", lambda ours, theirs: theirs == r"\,"),
    ("\\operatorname* in two tokens", lambda ours, theirs: ours.endswith("*")),
    ("position or column specification lost", lambda ours, theirs: ours in ("@", "[")),
    ("space of \\limsup, \\liminf lost", lambda ours, theirs: ours == r"\,"),
    ("[c] of an array read as a cell", lambda ours, theirs: theirs == "}"),
    ("space inside a text lost", lambda ours, theirs: ours == "~"),
    ("x_-- read as one script", lambda ours, theirs: theirs == "--"),
    ("reach of \\rm, primes or fills in a cell", lambda ours, theirs: "{" in (ours, theirs) or theirs == "'"),
    ("empty row lost", lambda ours, theirs: ours == "}" or theirs == r"\displaystyle"),
)


def read(path: Path) -> list[str]:
    """Give the lines of a list."""
    data = path.read_bytes()
    return (lzma.decompress(data) if path.suffix == ".xz" else data).decode().split("\n")[:-1]


def check(lines: list[str]) -> Counter[str]:
    """Normalise lines twice."""
    counts: Counter[str] = Counter(lines=len(lines))
    for line in lines:
        try:
            formula = normalize_formula(line).formula
        except FormulaError as error:
            counts["rejected"] += 1
            counts[f"rejected: {error.reason}"] += 1
            continue
        counts["unchanged"] += formula == " ".join(line.split())
        try:
            counts["idempotent"] += normalize_formula(formula).formula == formula
        except FormulaError:
            counts["canonical form rejected"] += 1
    return counts


def chunks(lines: list[str], size: int = 20_000) -> Iterator[list[str]]:
    """Cut a list for the processes."""
    iterator = iter(lines)
    while chunk := list(islice(iterator, size)):
        yield chunk


def difference(ours: str, theirs: str) -> str:
    """Name the class of the first difference."""
    pairs = zip([*ours.split(), "(end)"], [*theirs.split(), "(end)"], strict=False)
    mine, other = next((pair for pair in pairs if pair[0] != pair[1]), ("", ""))
    return next((name for name, test in CLASSES if test(mine, other)), "other")


def same_picture(one: RenderResult, other: RenderResult) -> bool:
    """Tell whether two renderings are equal pixel for pixel."""
    return one.pixels is not None and other.pixels is not None and np.array_equal(one.pixels, other.pixels)


def compare_pictures(raw: list[str], norm: list[str]) -> dict[str, float]:
    """Render raw, canonical, pretty and im2markup's form, and compare the pixels."""
    kept = [
        (line, normalize_formula(line), theirs)
        for line, theirs in zip(raw, norm, strict=True)
        if accepted(line)
    ]
    sources = render_formulas([line for line, _, _ in kept])
    canonical = render_formulas([result.latex for _, result, _ in kept])
    pretty = render_formulas([pretty_formula(result.formula) for _, result, _ in kept])
    theirs = render_formulas(
        [SPACED_LENGTH.sub(lambda m: f"{m[1]}{{{m[2].replace(' ', '')}}}", t) for _, _, t in kept]
    )
    good = [index for index, result in enumerate(sources) if result.reason is None]
    both = [index for index in good if canonical[index].reason is None]
    both_theirs = [index for index in good if theirs[index].reason is None]
    kept_by_them = [index for index in both_theirs if same_picture(sources[index], theirs[index])]
    return {
        "raw that compile": len(good),
        "identical pixels": np.mean([same_picture(sources[i], canonical[i]) for i in both]),
        "compiled before, not after": 1 - len(both) / len(good),
        "im2markup: identical pixels": len(kept_by_them) / len(both_theirs),
        "im2markup: compiled before, not after": 1 - len(both_theirs) / len(good),
        "our tokens where im2markup keeps the picture": np.mean(
            [kept[i][1].formula == " ".join(kept[i][2].split()) for i in kept_by_them]
        ),
        "pretty: same pixels": np.mean([same_picture(canonical[i], pretty[i]) for i in both]),
        "pretty: same tokens": np.mean(
            [normalize_formula(pretty_formula(r.formula)).formula == r.formula for _, r, _ in kept]
        ),
    }


def accepted(line: str) -> bool:
    """Tell whether a line is a formula."""
    try:
        normalize_formula(line)
    except FormulaError:
        return False
    return True


def main() -> None:
    """Measure everything and print it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--rendered", type=int, default=3000, help="lines of each list to render")
    parser.add_argument("--differences", type=Path, help="write the classes of difference with examples here")
    options = parser.parse_args()
    console = Console(width=120)
    table = Table("what", "figure", title="formula language")

    formulas = sorted((options.data / "formulas").glob("*.txt.xz"))
    lists = {path.name: read(path) for path in [*formulas, *sorted((options.data / "eval").glob("*.txt"))]}
    with ProcessPoolExecutor(2) as pool:
        counts = {name: sum(pool.map(check, chunks(lines)), Counter()) for name, lines in lists.items()}
    total = sum(counts.values(), Counter())
    kept = total["lines"] - total["rejected"]
    table.add_row("lines of all lists", f"{total['lines']:,}")
    table.add_row("idempotent, of those accepted", f"{total['idempotent']:,} of {kept:,}")
    raw = sum((counts[name] for name in counts if ".raw." in name), Counter())
    table.add_row("raw lines accepted", f"{1 - raw['rejected'] / raw['lines']:.4%} of {raw['lines']:,}")
    for name in counts:
        if not name.endswith(".xz"):
            table.add_row(f"{name}: unchanged", f"{counts[name]['unchanged'] / counts[name]['lines']:.2%}")

    classes: dict[str, dict[str, list[tuple[str, str, str]]]] = {}
    for name in COMPARED:
        same = 0
        pairs = list(zip(lists[f"{name}.raw.txt.xz"], lists[f"{name}.norm.txt.xz"], strict=True))[:20_000]
        for line, theirs in pairs:
            ours = normalize_formula(line).formula if accepted(line) else "(rejected)"
            if ours == " ".join(theirs.split()):
                same += 1
            else:
                cases = classes.setdefault(name, {}).setdefault(difference(ours, theirs), [])
                cases.append((line, ours, theirs))
        table.add_row(f"{name}: tokens of im2markup", f"{same / len(pairs):.2%} of {len(pairs):,}")
        for reason, cases in sorted(classes.get(name, {}).items(), key=lambda item: -len(item[1])):
            table.add_row(f"    {reason}", f"{len(cases):,}")
    for name in RENDERED:
        step = max(1, len(lists[f"{name}.raw.txt.xz"]) // options.rendered)
        picked = [lists[f"{name}.{form}.txt.xz"][::step][: options.rendered] for form in ("raw", "norm")]
        for what, figure in compare_pictures(*picked).items():
            table.add_row(f"{name}: {what}", f"{figure:.3%}" if figure <= 1 else f"{figure:,}")

    sample = lists["hepth2003_display.raw.txt.xz"]
    start = time.process_time()
    check_speed = sum(accepted(line) for line in sample)
    table.add_row("formulas per second, one core", f"{check_speed / (time.process_time() - start):,.0f}")
    console.print(table)
    if options.differences:
        examples = {
            name: {
                reason: {"count": len(cases), "examples": cases[:20]} for reason, cases in by_class.items()
            }
            for name, by_class in classes.items()
        }
        options.differences.write_text(json.dumps(examples, indent=1))


if __name__ == "__main__":
    main()
