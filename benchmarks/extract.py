r"""Formulas from TeX sources: how many of TeX's own displays are found, how many compile alone, how fast.

    python -m benchmarks.extract books/*.tar.xz
    python -m benchmarks.extract books/*.tar.xz --count --mutations 2000

`--count` compiles every document of the sources with a hook in `\everydisplay`, and compares what TeX counts
with what is found in the same document. Slides are set as a handout, each once. Pictures are left out of the
run, files that are missing are passed over, and a document that TeX gives up is named and not counted.
"""

import argparse
import random
import re
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from i2l.extraction.archives import Bundle, list_units, open_unit
from i2l.extraction.document import DocumentReader, find_formulas
from i2l.extraction.harvest import Formula, HarvestOptions, harvest
from i2l.formulas.commands import DISPLAYS
from i2l.formulas.lexer import FormulaError
from i2l.formulas.normalize import normalize_formula
from i2l.rendering.tex import compile_formulas

MIN_INLINE = 8
TIMEOUT_S = 1800
PICTURES = ("tikzcd", "tikzpicture")
HOOK = (
    r"\PassOptionsToClass{handout}{beamer}"  # a slide is set once, and not again for each of its steps
    r"\makeatletter\def\@missingfileerror#1#2{\def\@missingfile@area{}\def\@missingfile@base{null}"
    r"\def\@missingfile@ext{tex}}\makeatother"  # null.tex is LaTeX's own file with nothing in it
    r"\AddToHook{begindocument/before}{"
    r"\ifcsname inputpdft\endcsname\renewcommand\inputpdft[2]{}\fi%s}"
    r"\AddToHook{begindocument/end}{\everydisplay\expandafter{\the\everydisplay"
    r"\immediate\write16{^^Ji2l-display}}}"
)
_CODE = re.compile(rb"\\begin\{asy\}.*?\\end\{asy\}", re.DOTALL)  # pictures in a language of their own
WITHOUT_PICTURES = r"\RequirePackage{environ}" + "".join(
    rf"\ifcsname {name}\endcsname\RenewEnviron{{{name}}}[1][]{{}}\fi" for name in PICTURES
)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("sources", nargs="+", type=Path)
    parser.add_argument(
        "--sample", type=int, default=500, help="formulas of a source to compile, of each kind"
    )
    parser.add_argument("--count", action="store_true", help="count displays by TeX too")
    parser.add_argument("--every", type=int, default=1, help="count in every n-th document only")
    parser.add_argument("--document", help="count in the document of this name only, such as book/main.tex")
    parser.add_argument("--mutations", type=int, default=0, help="damaged files to read")
    options = parser.parse_args()
    for source in options.sources:
        print(f"\n{source.name}")
        bundles = [bundle for unit in list_units([source]) for bundle in open_unit(unit, unit.name)]
        formulas = measure_harvest(bundles)
        for kind, rows in formulas.items():
            drawn = random.Random(1).sample(rows, min(options.sample, len(rows)))
            measure_compiling(kind, drawn)
        if options.count:
            count_displays(bundles, options.every, options.document)
        if options.mutations:
            read_mutations(bundles, options.mutations)


def measure_harvest(bundles: Sequence[Bundle]) -> dict[str, list[str]]:
    """Harvest all, and print counts and speed; give the displays and the inline formulas."""
    start = time.process_time()
    rows = [row for bundle in bundles for row in harvest(bundle, HarvestOptions(min_inline=MIN_INLINE))]
    seconds = time.process_time() - start
    size = sum(len(data) for bundle in bundles for data in bundle.files.values()) / 1e6
    print(f"  {size:.1f} MB in {seconds:.1f} s of CPU time: {size / seconds * 60:.0f} MB a minute")
    kinds: dict[str, list[str]] = {"displays": [], "inline": []}
    verdicts: Counter[str] = Counter()
    for row in rows:
        if isinstance(row, Formula):
            kinds["inline" if row.environment in ("$", r"\(", "math") else "displays"].append(row.latex)
        else:
            verdicts[row.verdict] += 1
    print(f"  {len(kinds['displays']):,} displays, {len(kinds['inline']):,} inline; {dict(verdicts)}")
    return kinds


def measure_compiling(kind: str, formulas: Sequence[str]) -> None:
    """Print how many formulas TeX sets by themselves, as they are and normalised."""
    normalized = []
    for formula in formulas:
        try:
            normalized.append(normalize_formula(formula).latex)
        except FormulaError:
            continue
    for name, given in (
        ("as they are", [in_a_display(formula) for formula in formulas]),
        ("normalised", normalized),
    ):
        good = sum(result.page is not None for result in compile_formulas(given).formulas)
        share = good / max(1, len(formulas))
        print(f"  {kind} that compile alone, {name}: {good} of {len(formulas)} ({share:.2%})")


def in_a_display(formula: str) -> str:
    """Write an environment that opens a display as the one of the same lines inside a display."""
    match = re.fullmatch(r"\\begin\{(\w+)\*?\}(.*)\\end\{\1\*?\}", formula, re.DOTALL)
    inner = DISPLAYS.get(match[1]) if match else None
    if match is None or inner is None:
        return formula
    if inner == "eqnarray":
        return rf"\begin{{array}}{{rcl}}{match[2]}\end{{array}}"
    return rf"\begin{{{inner}}}{match[2]}\end{{{inner}}}"


def count_displays(bundles: Sequence[Bundle], every: int, document: str | None) -> None:
    """Compare the displays of each document, or of the one that is named, with TeX's own count."""
    told = found = agreed = 0
    for bundle in bundles:
        with tempfile.TemporaryDirectory() as folder:
            for name, data in bundle.files.items():
                target = bundle.find(name) or name  # a link that became a file
                path = Path(folder) / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(_CODE.sub(b"", bundle.files.get(target, data)))
            roots = [document] if document else [name for name in bundle.tex_names() if bundle.is_root(name)]
            for root in roots[::every]:
                by_tex = count_by_tex(Path(folder), root)
                by_us = count_by_us(bundle, root)
                print(f"    {root}: {'not compiled' if by_tex is None else by_tex} by TeX, {by_us} found")
                if by_tex is not None:
                    told, found, agreed = told + by_tex, found + by_us, agreed + min(by_tex, by_us)
    if told and found:
        print(f"  displays: {told:,} by TeX, {found:,} found")
        print(f"  {agreed / told:.2%} of TeX's are found, {agreed / found:.2%} of ours are TeX's")


def count_by_us(bundle: Bundle, root: str) -> int:
    """Count the displays of one document as they are found."""
    document = DocumentReader(bundle, root).read()
    every = (found for found in find_formulas(document.text) if not isinstance(found, int))
    return sum(found.start >= document.body_start and not found.inline for found in every)


def count_by_tex(folder: Path, root: str) -> int | None:
    """Count the displays that TeX sets; None if it gives up."""
    for pictures in (WITHOUT_PICTURES, ""):
        path = folder / root
        command = [
            "pdflatex",
            "-draftmode",
            "-no-shell-escape",
            "-interaction=nonstopmode",
            "-jobname=i2lcount",
        ]
        command.append((HOOK % pictures) + rf"\input{{{path.name}}}")
        try:
            run = subprocess.run(
                command, cwd=path.parent, capture_output=True, timeout=TIMEOUT_S, check=False
            )
        except subprocess.TimeoutExpired:
            return None
        if b"Fatal error" not in run.stdout and b"begindocument/end" not in run.stderr:
            return run.stdout.count(b"i2l-display")
    return None


def mutations(data: bytes, random_source: random.Random) -> Iterator[bytes]:
    """Damage a file again and again."""
    pieces = (
        b"\\",
        b"{",
        b"}",
        b"$",
        b"%",
        b"#",
        b"\\begin{",
        b"\\end{equation}",
        b"\\def\\a",
        b"\0",
        b"\xff",
    )
    while True:
        damaged = bytearray(data)
        for _ in range(random_source.randint(1, 20)):
            place = random_source.randrange(len(damaged) + 1)
            damaged[place : place + random_source.randrange(40)] = random_source.choice(pieces)
        yield bytes(damaged)


def read_mutations(bundles: Sequence[Bundle], count: int) -> None:
    """Read damaged files, each alone; an error ends the benchmark."""
    random_source = random.Random(1)
    files = [data for bundle in bundles for name, data in bundle.files.items() if name.endswith(".tex")]
    slowest = 0.0
    for number in range(count):
        data = next(mutations(files[number % len(files)][:200_000], random_source))
        start = time.process_time()
        list(harvest(Bundle("", {"a.tex": data}), HarvestOptions(min_inline=1)))
        slowest = max(slowest, time.process_time() - start)
    print(f"  {count} damaged files read without an error, the slowest in {slowest:.1f} s")


if __name__ == "__main__":
    main()
