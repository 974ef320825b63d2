"""How fast formulas become images, and whether a batch loses any: `python -m benchmarks.render`.

Without arguments it measures on formulas of its own. With files of formulas (`--formulas FILE...`, plain or
.xz) it renders those, and compiles everything that failed in its batch once more alone.
"""

import argparse
import math
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from unittest.mock import patch

import numpy as np
from PIL import Image
from rich.console import Console
from rich.table import Table

from i2l.formulas.lexer import FormulaError, decode_line, read_lines
from i2l.formulas.normalize import normalize_formula
from i2l.rendering import sandbox
from i2l.rendering.isolation import find_isolation
from i2l.rendering.rasterize import ink_box
from i2l.rendering.render import render_formulas
from i2l.rendering.sandbox import run_tex
from i2l.rendering.styles import PAPER
from i2l.rendering.tex import document, formula_lines
from tests.rendering.random_formulas import random_formula

Row = tuple[str, str, str]  # what, measured, wanted

_DOCUMENT = r"\documentclass[12pt]{article}\pagestyle{empty}\usepackage{amsmath,amssymb,bm,mathrsfs}"
_PYPDFIUM = (
    "import sys, pypdfium2; pypdfium2.PdfDocument('f.pdf')[0].render(scale=200/72).to_pil().save('f.png')"
)


def measure(num_formulas: int = 4000, num_single: int = 20) -> list[Row]:
    """One core: formula to cropped image at 200 dpi, in batches and with two processes a formula."""
    formulas = [random_formula(seed) for seed in range(num_formulas)]
    start = time.perf_counter()
    results = render_formulas(formulas)
    ours_s = (time.perf_counter() - start) / num_formulas
    assert all(result.pixels is not None for result in results)
    start, tex_s = time.perf_counter(), 0.0
    for formula in formulas[:num_single]:
        tex_s += render_singly(formula) / num_single
    single_s = (time.perf_counter() - start) / num_single
    start = time.perf_counter()
    found = render_formulas(formulas[:1000], boxes=True)
    boxes_s = (time.perf_counter() - start) / 1000
    share = sum(result.boxes is not None for result in found) / len(found)
    return [
        ("formula to 200-dpi image, one core", f"{1000 * ours_s:.2f} ms", ""),
        ("the same, pdflatex and a rasteriser process each", f"{1000 * single_s:.0f} ms", ""),
        ("of that, pdflatex", f"{1000 * tex_s:.0f} ms", ""),
        ("times faster", f"{single_s / ours_s:.0f}", "100"),
        ("times faster than pdflatex alone", f"{tex_s / ours_s:.0f}", ""),
        ("with token boxes", f"{1000 * boxes_s:.2f} ms", ""),
        ("formulas with a box for every visible token", f"{100 * share:.1f} %", "97 %"),
        *measure_isolation(formulas[:1000]),
    ]


def measure_isolation(formulas: list[str], rounds: int = 5) -> list[Row]:
    """The speed with isolation as a share of the speed without, in turns; the best of each counts.

    Counted in CPU seconds of this process and of those it starts: other work on the machine does not matter.
    """
    single = document(PAPER, [formula_lines(0, "x")])
    works: dict[str, Callable[[], object]] = {
        "a batch": lambda: render_formulas(formulas),
        "a TeX process alone": lambda: run_tex(single, trusted=True),
    }
    isolation = find_isolation()
    rows = [("isolation here", isolation.name if isolation else "none", "")]
    for what, work in works.items():
        best = {True: math.inf, False: math.inf}
        for isolated in [True, False] * rounds:
            with patch.object(sandbox, "find_isolation", lambda on=isolated: isolation if on else None):
                start = sum(os.times()[:4])
                work()
                best[isolated] = min(best[isolated], sum(os.times()[:4]) - start)
        rows.append(
            (f"speed with isolation, of that without: {what}", f"{best[False] / best[True]:.2f}", "0.9")
        )
    return rows


def render_singly(formula: str) -> float:
    """Render one formula the usual way, and give the seconds that pdflatex took of it.

    pdflatex, then the fastest rasteriser that is installed, then cropping.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        document = (
            rf"{_DOCUMENT}\begin{{document}}\begin{{displaymath}}{formula}\end{{displaymath}}\end{{document}}"
        )
        (folder / "f.tex").write_text(document)
        command = ["pdflatex", "-interaction=batchmode", "f.tex"]
        start = time.perf_counter()
        subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)
        tex_s = time.perf_counter() - start
        subprocess.run(_rasteriser(), cwd=folder, check=True)
        pixels = np.asarray(Image.open(folder / "f.png").convert("L"))
    box = ink_box(pixels)
    assert box is not None
    left, top, right, bottom = box
    Image.fromarray(pixels[top:bottom, left:right])
    return tex_s


def _rasteriser() -> list[str]:
    if shutil.which("pdftoppm"):
        return ["pdftoppm", "-r", "200", "-gray", "-png", "-singlefile", "f.pdf", "f"]
    if shutil.which("gs"):
        return ["gs", "-q", "-sDEVICE=pnggray", "-r200", "-dTextAlphaBits=4", "-o", "f.png", "f.pdf"]
    return [sys.executable, "-c", _PYPDFIUM]


def count_losses(formulas: list[str], jobs: int) -> list[Row]:
    """Render formulas in batches, then each failed one alone: what compiles alone was lost."""
    start = time.perf_counter()
    results = render_formulas(formulas, jobs=jobs)
    seconds = time.perf_counter() - start
    failed = [result for result in results if result.reason is not None]
    lost = [result for result in failed if render_formulas([result.formula])[0].reason is None]
    for result in lost:
        print(f"lost: {result.reason}: {result.message}: {result.formula}", file=sys.stderr)
    reasons = ", ".join(f"{count} {reason}" for reason, count in Counter(r.reason for r in failed).items())
    return [
        ("formulas rendered", str(len(formulas)), ""),
        (f"a second, {jobs} process(es)", f"{len(formulas) / seconds:.0f}", ""),
        ("failed in the batch", reasons or "0", ""),
        ("of these compile alone", str(len(lost)), "0"),
    ]


def main() -> None:
    """Parse the arguments, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--formulas", nargs="+", type=Path, default=[])
    parser.add_argument("--limit", type=int, default=20_000)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--isolation", action="store_true", help="only what the isolation costs")
    parser.add_argument("--raw", action="store_true", help="render the lines as they are, not normalised")
    options = parser.parse_args()
    lines = (decode_line(line) for path in options.formulas for line in read_lines(path))
    formulas = []
    for line in islice(lines, options.limit):
        try:
            formulas.append(line if options.raw else normalize_formula(line).latex)
        except FormulaError:
            continue
    table = Table("what", "measured", "wanted")
    if options.isolation:
        rows = measure_isolation([random_formula(seed) for seed in range(1000)])
    else:
        rows = count_losses(formulas, options.jobs) if formulas else measure()
    for row in rows:
        table.add_row(*row)
    Console().print(table)


if __name__ == "__main__":
    main()
