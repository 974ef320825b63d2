"""Does the canonical form of a display draw what its author wrote? Compared glyph by glyph, as TeX sets them.

    python -m benchmarks.wild.canonical DATA

Each display is set once in its own environment and once in its canonical form, and the two pages are read
from the PDF: which glyphs and rules there are, and where. They are the same if the glyphs are, and
each lies within half a point of where it should, once the whole page has been shifted. What differs is
printed: it is a fault of the normaliser, or a liberty that it takes.
"""

import argparse
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from benchmarks.wild.displays import BOOK, Display, load_displays
from i2l.formulas.normalize import normalize_formula
from i2l.rendering.rasterize import Glyph, Ink, PdfInk
from i2l.rendering.sandbox import run_tex
from i2l.rendering.styles import PAPER, preamble

_NEAR_PT: Final = 0.5
_ON_A_PAGE: Final = r"""
\pdfcompresslevel=0 \pdfobjcompresslevel=0 \pdfgentounicode=0
\pagestyle{empty} \hfuzz=\maxdimen \hbadness=10000 \vbadness=10000
\pdfpagewidth=60in \pdfpageheight=30in \textwidth=58in \textheight=28in
"""
_Place = tuple[str, float, float]  # what it is, and where


def set_pages(displays: Sequence[str]) -> list[list[Ink]]:
    """Set displays, each on a page of its own, and give what each page draws."""
    body = "\n\\newpage\n".join(rf"\mbox{{}}{display}" for display in displays)
    source = f"{preamble(PAPER)}\n{_ON_A_PAGE}\n\\begin{{document}}\n{body}\n\\end{{document}}\n"
    ink = PdfInk(run_tex(source, trusted=False, cpu_s=60).pdf)
    return [ink.page(number) for number in range(len(displays))]


def compare_pages(raw: Sequence[Ink], canonical: Sequence[Ink]) -> str:
    """Say how two pages differ: nothing if they do not, "glyphs", or "places" with the largest distance."""
    places = [sorted(map(_place, page)) for page in (raw, canonical)]
    names = [Counter(name for name, _, _ in page) for page in places]
    if names[0] != names[1]:
        gone, new = names[0] - names[1], names[1] - names[0]
        return f"glyphs: {dict(gone) or 'none'} gone, {dict(new) or 'none'} new"
    if not places[0]:
        return ""
    corners = [(min(x for _, x, _ in page), max(y for _, _, y in page)) for page in places]
    moved = 0.0
    for page, (left, top) in zip(places, corners, strict=True):
        page[:] = sorted((name, round(x - left, 2), round(y - top, 2)) for name, x, y in page)
    for name in names[0]:
        here, there = ([(x, y) for own, x, y in page if own == name] for page in places)
        for x, y in here:
            nearest = min(there, key=lambda one: max(abs(one[0] - x), abs(one[1] - y)))
            moved = max(moved, abs(nearest[0] - x), abs(nearest[1] - y))
    return f"places: off by up to {moved:.1f} pt" if moved > _NEAR_PT else ""


def _place(ink: Ink) -> _Place:
    if isinstance(ink, Glyph):
        return f"{ink.font.split('+')[-1]}:{ink.code}:{ink.size:.1f}", ink.x, ink.y
    return "rule", ink.left, ink.bottom


def main() -> None:
    """Compare all displays, and print those that differ."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path)
    parser.add_argument("--cache", type=Path, default=Path(".wild-cache"))
    options = parser.parse_args()
    displays, _ = load_displays(options.data, options.cache)
    displays = [display for display in displays if display.environment != "dmath"]  # breaks lines by itself
    verdicts: Counter[str] = Counter()
    for start in range(0, len(displays), 50):
        batch = displays[start : start + 50]
        for display, verdict in zip(batch, _compare(batch), strict=True):
            verdicts[verdict.partition(":")[0] or "same"] += 1
            if verdict:
                print(f"{verdict}\n  {display.source!r}\n  {display.formula}")
    print(f"{BOOK}: {dict(verdicts)} of {len(displays)}")


def _compare(batch: Sequence[Display]) -> list[str]:
    raw = set_pages([display.source for display in batch])
    canonical = set_pages(
        [f"\\begin{{equation*}}{normalize_formula(one.formula).latex}\\end{{equation*}}" for one in batch]
    )
    return [compare_pages(one, other) for one, other in zip(raw, canonical, strict=True)]


if __name__ == "__main__":
    main()
