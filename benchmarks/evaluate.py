"""How fast the evaluation is, and what the image matchers let pass: `python -m benchmarks.evaluate`.

Without arguments it measures on formulas of its own. With a file of formulas (`--formulas FILE`, canonical
tokens, one formula a line) it takes those, and `--matchers` also tries the matchers on known changes of them:
spacing only, a symbol removed, put in, or replaced by a similar one.
"""

import argparse
import os
import random
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from i2l.evaluation.compare import EvaluationOptions, Pairs, evaluate_pairs
from i2l.evaluation.report import write_report
from i2l.evaluation.results import save_results
from i2l.evaluation.visual import match_images
from i2l.formulas.lexer import FormulaError
from i2l.formulas.normalize import normalize_formula
from i2l.rendering.render import render_formulas
from tests.rendering.random_formulas import random_formula

Row = tuple[str, str, str]  # what, measured, wanted

NUM_PAIRS = 5000
SYMBOLS = [*"abcdefghijklmnopqrstuvwxyz0123456789", r"\alpha", r"\beta", r"\mu", r"\nu"]
SIMILAR = {"i": "j", "1": "l", ".": ",", "-": "=", "u": "v", "n": "m", r"\nu": "v", "0": "O", "c": "e"}
REMOVED = [".", ",", r"\prime", "i", "1", "-", "|"]
SPACES = [r"\,", r"\;", r"\:", "~", r"\!"]


def measure(formulas: Sequence[str] = ()) -> list[Row]:
    """Score 5,000 pairs, half of them with errors, with two processes; then write the report."""
    targets = list(formulas[:NUM_PAIRS]) or [random_formula(seed) for seed in range(NUM_PAIRS)]
    generator = random.Random(0)
    predictions = [misread(target, generator) for target in targets]
    pairs = Pairs([str(number) for number in range(len(targets))], targets, predictions)
    start, busy = time.perf_counter(), sum(os.times()[:4])
    evaluation = evaluate_pairs(pairs, options=EvaluationOptions(jobs=2), source={})
    wall_s, cpu_s = time.perf_counter() - start, sum(os.times()[:4]) - busy
    with tempfile.TemporaryDirectory() as name:
        start = time.perf_counter()
        report, results = Path(name) / "report.html", Path(name) / "results.json"
        write_report(evaluation.result, report, visuals=evaluation.visuals)
        save_results(evaluation.result, results)
        write_s = time.perf_counter() - start
        size_mb = report.stat().st_size / 1e6
    return [
        (f"all scores of {len(targets):,} pairs, renders too, two processes", f"{wall_s:.0f} s", "120 s"),
        ("processor time of that", f"{cpu_s:.0f} s", ""),
        ("report and results written", f"{write_s:.1f} s", ""),
        ("size of the report", f"{size_mb:.1f} MB", "30 MB"),
    ]


def misread(formula: str, generator: random.Random) -> str:
    """The formula as a reader might have read it: a third right, the others with one to four errors."""
    tokens = formula.split()
    for _ in range(generator.choice([0, 0, 1, 1, 2, 4])):
        place = generator.randrange(len(tokens))
        kind = generator.random()
        if kind < 0.5 and len(tokens[place]) == 1 and tokens[place].isalnum():
            tokens[place] = generator.choice(SYMBOLS)
        elif kind < 0.7:
            tokens.insert(place, generator.choice([*SYMBOLS, r"\,"]))
        elif kind < 0.9 and tokens[place] not in "{}" and len(tokens) > 1:
            del tokens[place]
        elif tokens[place] in ("_", "^"):
            tokens[place] = "_^"[tokens[place] == "_"]
    return " ".join(tokens)


def try_matchers(formulas: Sequence[str], *, num_pairs: int = 1000) -> list[Row]:
    """How often each matcher calls two different renders the same, by what was changed."""
    generator = random.Random(1)
    rows = []
    for name, change in CHANGES.items():
        pairs = []
        for formula in generator.sample(list(formulas), len(formulas)):
            changed = change(formula.split(), generator)
            if changed:
                pairs.append((_latex(formula), _latex(" ".join(changed))))
            if len(pairs) == num_pairs:
                break
        drawn = render_formulas([side for pair in pairs for side in pair], jobs=2)
        matches = [
            match_images(target.pixels, prediction.pixels)
            for target, prediction in zip(drawn[::2], drawn[1::2], strict=True)
            if target.pixels is not None and prediction.pixels is not None
        ]
        matches = [match for match in matches if not match.strict]
        shares = {
            attribute: np.mean([getattr(match, attribute) for match in matches])
            for attribute in ("im2markup", "im2markup_no_spaces", "tolerant")
        }
        passed = ", ".join(f"{attribute} {100 * share:.1f} %" for attribute, share in shares.items())
        rows.append((f"{name} ({len(matches)} pairs): passed by", passed, ""))
    return rows


def _latex(formula: str) -> str:
    try:
        return normalize_formula(formula).latex
    except FormulaError:
        return formula


def _places(tokens: Sequence[str]) -> list[int]:
    """Where a token can be put in: outside of braces, not between a command or script and its argument."""
    depth, places = 0, []
    for index, token in enumerate(tokens):
        before = tokens[index - 1] if index else ""
        if depth == 0 and before not in ("_", "^") and before[:1] != "\\" and token not in "_^{}&":
            places.append(index)
        depth += (token == "{") - (token == "}")
    return places


def _space(tokens: list[str], generator: random.Random) -> list[str]:
    return _insert(tokens, generator.choice(SPACES), generator)


def _more(tokens: list[str], generator: random.Random) -> list[str]:
    return _insert(tokens, generator.choice(SYMBOLS), generator)


def _insert(tokens: list[str], token: str, generator: random.Random) -> list[str]:
    places = [place for place in _places(tokens) if place]
    if not places:
        return []
    place = generator.choice(places)
    return [*tokens[:place], token, *tokens[place:]]


def _less(tokens: list[str], generator: random.Random) -> list[str]:
    places = [index for index, token in enumerate(tokens) if token in REMOVED]
    if not places:
        return []
    place = generator.choice(places)
    return [*tokens[:place], "{", "}", *tokens[place + 1 :]]


def _other(tokens: list[str], generator: random.Random) -> list[str]:
    places = [index for index, token in enumerate(tokens) if token in SIMILAR]
    if not places:
        return []
    place = generator.choice(places)
    return [*tokens[:place], SIMILAR[tokens[place]], *tokens[place + 1 :]]


CHANGES: dict[str, Callable[[list[str], random.Random], list[str]]] = {
    "spacing only": _space,
    "a symbol removed": _less,
    "a symbol replaced by a similar one": _other,
    "a symbol put in": _more,
}


def main() -> None:
    """Print what was measured."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--formulas", type=Path, help="file of canonical formulas, one a line")
    parser.add_argument("--matchers", action="store_true", help="also try the matchers on known changes")
    arguments = parser.parse_args()
    formulas = arguments.formulas.read_text().splitlines() if arguments.formulas else []
    table = Table("what", "measured", "wanted")
    for row in measure(formulas):
        table.add_row(*row)
    if arguments.matchers:
        own = formulas or [random_formula(seed) for seed in range(NUM_PAIRS)]
        for row in try_matchers(own):
            table.add_row(*row)
    Console().print(table)


if __name__ == "__main__":
    main()
