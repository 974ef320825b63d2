"""Builds what the model in the box learns from: one command, from lists of formulas and books to datasets.

    python -m recipes.box_data LISTS --books BOOKS --judged FILE... --mathjax node_modules --out DATA

LISTS is a folder of lists, one formula a line; BOOKS one of TeX sources. Whatever looks like a formula of the
files that are judged by, and has four symbols or more, is left out of every list; single signs stay in, since
a model that never saw `i` alone reads it as something else. A book named like a file that is judged by is
passed over. MathJax and its fonts come from npm (`benchmarks/wild/screens.py` has the line); without
--mathjax web pages are drawn by KaTeX alone.

Each list and each dataset that is there is left as it is, so a second call goes on where the first stopped.
The last line is the command that trains.
"""

import argparse
import json
import random
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from i2l.dataset.verdicts import loose_key
from i2l.files import atomic_write
from i2l.formulas.lexer import FormulaError, read_lines
from i2l.formulas.normalize import normalize_formula

VOCABULARY: Final = Path(__file__).parents[1] / "src/i2l/models/pinpoint/vocab.json"
_TOLD_APART: Final = 4  # symbols: shorter formulas stay, though they look like one that is judged

# What the files of the lists hold: their names begin so.
LISTS: Final = {
    "im2latex_train_part": ("im2latex_train",),
    "hepth2003": ("hepth2003",),
    "arxiv": ("arxiv", "texnet", "pix2tex_arxiv"),
    "everyday": ("wikipedia", "pix2tex_wiki"),
    "arrays": ("hepth_arrays",),
}
_COMPOSED_OF: Final = ("hepth2003", "arxiv")


@dataclass(frozen=True)
class Part:
    """Some lines of a list, at the share 1."""

    name: str  # of the list that `make_lists` writes
    lines: int


@dataclass(frozen=True)
class Mixture:
    """One dataset: which lines are drawn, and how. Samples are named by the list that they come from."""

    name: str
    recipe: str  # of `i2l build`; "screens": drawn by a browser
    parts: tuple[Part, ...]
    boxes: bool = True


MIXTURES: Final = (
    Mixture(
        "papers",
        "i2l-140k",
        (
            *(Part("im2latex_train_part", 4_590), Part("hepth2003", 46_000), Part("arxiv", 200_000)),
            *(Part("everyday", 40_000), Part("short", 20_000)),
        ),
        boxes=False,
    ),
    Mixture(
        "displays",
        "displays",
        (Part("composed", 15_000), Part("books", 7_000), Part("arrays", 6_000), Part("physics", 5_000)),
        boxes=False,
    ),
    Mixture(
        "world",
        "world-displays",
        (Part("composed", 10_000), Part("books", 8_000), Part("physics", 10_000), Part("school", 6_000)),
    ),
    Mixture("signs", "world", (Part("signs", 30_000), Part("short", 8_000))),
    Mixture(
        "clean",
        "clean",
        (
            *(Part("arxiv", 20_000), Part("everyday", 6_000), Part("signs", 20_000)),
            *(Part("composed", 8_000), Part("books", 5_000), Part("physics", 6_000)),
        ),
    ),
    Mixture(
        "unicode",
        "unicode",
        (Part("arxiv", 12_000), Part("everyday", 8_000), Part("composed", 6_000), Part("books", 3_000)),
        boxes=False,
    ),
    Mixture(
        "photo",
        "photo",
        (Part("arxiv", 9_000), Part("everyday", 6_000), Part("composed", 5_000), Part("school", 4_000)),
    ),
    Mixture(
        "screens",
        "screens",
        (Part("arxiv", 5_000), Part("everyday", 4_000), Part("composed", 1_500), Part("books", 1_500)),
        boxes=False,
    ),
)


def judged_keys(files: Iterable[Path]) -> set[str]:
    """Give what formulas look like that must not be trained on: of lists, labels of pictures, or extracts."""
    keys = set()
    for file in files:
        for line in read_lines(file):
            text = line.decode(errors="replace")
            text = json.loads(text)["latex"] if ".jsonl" in file.suffixes else text.split("\t")[-1]
            keys.add(_key(text))
    return {key for key in keys if len(key.split()) >= _TOLD_APART}


def _key(formula: str) -> str:
    try:
        return loose_key(normalize_formula(formula).tokens)
    except FormulaError:
        return ""


def _lists(folder: Path, names: Sequence[str]) -> list[Path]:
    return [
        path
        for path in sorted(folder.iterdir())
        if path.name.startswith(tuple(names)) and not (".raw." in path.name and _normalised(path).exists())
    ]


def _normalised(path: Path) -> Path:
    return path.with_name(path.name.replace(".raw.", ".norm."))


def write_lines(path: Path, lines: Iterable[str]) -> None:
    """Write a list, whole or not at all."""
    with atomic_write(path) as file:
        file.writelines(f"{line}\n" for line in lines)


def choose_lines(files: Sequence[Path], *, count: int, keys: set[str], seed: int) -> Iterator[str]:
    """Draw lines of some files, canonical, without those that look like one that is judged by."""
    lines = [line.decode(errors="replace") for file in files for line in read_lines(file)]
    random.Random(seed).shuffle(lines)
    given = 0
    for line in lines:
        if given == count:
            return
        try:
            result = normalize_formula(json.loads(line)["latex"] if line.startswith('{"') else line)
        except FormulaError:
            continue
        if result.formula and loose_key(result.tokens) not in keys:
            given += 1
            yield result.formula


def _run(arguments: Sequence[str | Path], *, output: Path | None = None) -> None:
    command = [sys.executable, "-m", "i2l", *map(str, arguments)]
    print("$ i2l", *map(str, arguments), flush=True)
    if output is None:
        subprocess.run(command, check=True)
        return
    with atomic_write(output) as file:
        subprocess.run(command, check=True, stdout=file)


def make_lists(options: argparse.Namespace, needed: dict[str, int], folder: Path) -> None:
    """Write the lists that datasets are drawn from, each as long as needed; those that are there stay."""
    keys = judged_keys(options.judged)
    print(f"{len(keys)} formulas are judged by, and are left out.", flush=True)
    sources = {name: _lists(options.lists, starts) for name, starts in LISTS.items()}
    if not (extract := folder / "books.jsonl").exists():
        judged = {path.name.split(".")[0] for path in options.judged}
        books = [path for path in sorted(options.books.iterdir()) if path.name.split(".")[0] not in judged]
        _run(["extract", *books, "-o", extract, "--min-tokens", "5"])
    sources["books"] = [extract]
    made = {name: folder / f"{name}.txt" for name in needed}
    for name, files in sources.items():
        if not made[name].exists():
            write_lines(made[name], choose_lines(files, count=needed[name], keys=keys, seed=options.seed))
            print(f"{made[name]}: done", flush=True)
    formulas = [made[name] for name in _COMPOSED_OF]
    composed = {
        "composed": ["compose", *formulas],
        "physics": ["compose", *formulas, "--physics"],
        "school": ["compose", *formulas, "--school"],
        "signs": ["compose", *formulas, "--signs", "--max-tokens", "40"],
        "short": ["parts", *formulas, made["everyday"], "--max-tokens", "8"],
    }
    for name, command in composed.items():
        if made[name].exists():
            continue
        if command[0] == "compose":
            command += ["--count", str(max(1, needed[name])), "--seed", str(options.seed)]
        raw = folder / f"{name}.raw"
        _run([*command, "--vocabulary", VOCABULARY], output=raw)
        write_lines(made[name], choose_lines([raw], count=needed[name], keys=keys, seed=options.seed))
        raw.unlink()


def build(options: argparse.Namespace, mixture: Mixture, lists: Path, starts: dict[str, int]) -> None:
    """Draw a mixture. `starts` says how much of each list the mixtures before have used up."""
    out, folder = options.out / mixture.name, options.out / "parts" / mixture.name
    if out.exists():
        return
    files = []
    for part in mixture.parts:
        start = starts.get(part.name, 0)
        lines = (lists / f"{part.name}.txt").read_text(encoding="utf-8").splitlines()
        files.append(folder / f"{part.name}.txt")
        write_lines(files[-1], lines[start : start + _scaled(part, options.share)])
    common = [
        "--out",
        out,
        "--min-token-count",
        "1",
        "--val-fraction",
        "0",
        "--test-fraction",
        "0",
        "--quiet",
    ]
    if mixture.recipe == "screens":
        for file in files:
            pictures = options.out / "pictures" / file.stem
            flags = ["--mathjax", str(options.mathjax)] if options.mathjax else []
            module = [sys.executable, "-m", "benchmarks.wild.screens", str(file), "--into", str(pictures)]
            subprocess.run([*module, "--seed", str(options.seed), *flags], check=True)
            common += ["--images", pictures, "--labels", pictures / "labels.tsv"]
        _run(["build", "--recipe", "world-displays", *common])
        return
    lists_of = [word for file in files for word in ("--formulas", file)]
    drawn = ["--recipe", mixture.recipe, "--compact", "--boxes" if mixture.boxes else "--no-boxes"]
    _run(["build", *lists_of, *drawn, "--seed", str(options.seed), *common])


def _scaled(part: Part, share: float) -> int:
    return round(part.lines * share)


def main() -> None:
    """Make the lists, then the datasets one after the other."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("lists", type=Path, help="folder of lists of formulas")
    parser.add_argument("--books", type=Path, required=True, help="folder of TeX sources")
    parser.add_argument(
        "--judged", type=Path, nargs="+", default=[], help="lists, labels or extracts (.jsonl)"
    )
    parser.add_argument("--mathjax", type=Path, help="node_modules with MathJax and its fonts")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--share", type=float, default=1.0, help="of the sizes in this file")
    parser.add_argument("--only", help="names of datasets, with commas between them")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    lists = options.out / "lists"
    lists.mkdir(parents=True, exist_ok=True)
    needed: dict[str, int] = {}
    for mixture in MIXTURES:
        for part in mixture.parts:
            needed[part.name] = needed.get(part.name, 0) + _scaled(part, options.share)
    make_lists(options, needed, lists)
    wanted = options.only.split(",") if options.only else [mixture.name for mixture in MIXTURES]
    starts: dict[str, int] = {}
    for mixture in MIXTURES:
        if mixture.name in wanted:
            build(options, mixture, lists, starts)
        for part in mixture.parts:
            starts[part.name] = starts.get(part.name, 0) + _scaled(part, options.share)
    data = " ".join(f"--data {options.out / mixture.name}" for mixture in MIXTURES)
    print(f"i2l train {data} --preset pinpoint --config recipes/displays.yaml --out RUN")


if __name__ == "__main__":
    main()
