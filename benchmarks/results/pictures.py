"""Draws the examples of docs/errors.md and docs/gallery.md: the target above, the reading below."""

import json
import random
from collections.abc import Sequence
from difflib import SequenceMatcher
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
from PIL import Image
from rapidfuzz.distance import Levenshtein

from benchmarks.results.store import EXAMPLES, Run
from benchmarks.results.store import FOLDER as RESULTS
from i2l.evaluation.scores import without_spacing
from i2l.evaluation.visual import MAX_INK
from i2l.formulas.lexer import FormulaError, decode_line, read_lines
from i2l.formulas.normalize import normalize_formula
from i2l.rendering.render import render_formulas

FOLDER: Final = Path(__file__).parents[2] / "docs" / "results"
GALLERY_RUNS: Final = ("nopool", "strips")
GALLERY_SIZE: Final = 5  # examples of each kind
GALLERY_TOKENS: Final = range(12, 70)  # of targets that fit the page
BAD_EDITS: Final = 0.15  # edits per token from which a reading is bad
_UNSEEN: Final = frozenset(["{", "}", r"\left", r"\right"])
_MARGIN_PX: Final = 12
_WHITE, _BLACK, _RULE = 0, 1, 2  # places in the palette
_PALETTE: Final = (255, 255, 255, 20, 20, 20, 200, 205, 215)


def draw_examples() -> None:
    """Write one PNG an example; needs pdflatex."""
    examples = json.loads(EXAMPLES.read_text(encoding="utf-8"))
    formulas = [
        normalize_formula(example[side]).latex for example in examples for side in ("target", "reading")
    ]
    renders = [render.pixels for render in render_formulas(formulas)]
    for number, example in enumerate(examples):
        target, reading = renders[2 * number : 2 * number + 2]
        if target is None or reading is None:
            raise ValueError(f"TeX cannot draw example {example['name']}.")
        picture = Image.fromarray(_stack(target, reading), mode="P")
        picture.putpalette(_PALETTE)
        picture.save(FOLDER / f"{example['name']}.png", optimize=True)


def _stack(above: npt.NDArray[np.uint8], below: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """Both on one sheet in black and white, a rule between them."""
    width = max(above.shape[1], below.shape[1]) + 2 * _MARGIN_PX
    height = above.shape[0] + below.shape[0] + 4 * _MARGIN_PX
    sheet = np.full((height, width), _WHITE, dtype=np.uint8)
    middle = above.shape[0] + 2 * _MARGIN_PX
    sheet[middle, :] = _RULE
    for pixels, top in ((above, _MARGIN_PX), (below, middle + _MARGIN_PX)):
        ink = np.where(pixels <= MAX_INK, _BLACK, _WHITE)
        sheet[top : top + pixels.shape[0], _MARGIN_PX : _MARGIN_PX + pixels.shape[1]] = ink
    return sheet


def draw_gallery(lines: Path) -> None:
    """Draw good, bad and any readings of the test split by each network, one sheet a kind; needs pdflatex.

    Args:
        lines: the formulas of the split, one a line.
    """
    targets = [_canonical(decode_line(line)) for line in read_lines(lines)]
    for name in GALLERY_RUNS:
        _, readings = Run(RESULTS / name).readings("test")
        pairs = [pair for pair in _paired(targets, readings) if len(pair[0].split()) in GALLERY_TOKENS]
        kinds = {
            "good": [(target, reading) for target, reading in pairs if target == reading],
            "bad": [(target, reading) for target, reading in pairs if _edits(target, reading) > BAD_EDITS],
            "random": pairs,
        }
        for kind, chosen in kinds.items():
            random.Random(0).shuffle(chosen)
            _draw_sheet(chosen, FOLDER / f"gallery-{name}-{kind}.png")


def _edits(target: str, reading: str) -> float:
    """Count the edits per token that are not about spaces, braces and the height of fences."""
    shown, read = (
        [token for token in without_spacing(text.split()) if token not in _UNSEEN]
        for text in (target, reading)
    )
    return float(Levenshtein.distance(shown, read) / max(len(shown), 1))


def _canonical(formula: str) -> str:
    try:
        return normalize_formula(formula).formula
    except FormulaError:
        return ""


def _paired(targets: Sequence[str], readings: Sequence[str]) -> list[tuple[str, str]]:
    """Pair targets with readings, which lack the formulas that were left out.

    Between two readings that are exact stand as many readings as targets wherever nothing was left out; only
    those are paired.
    """
    pairs: list[tuple[str, str]] = []
    matcher = SequenceMatcher(None, targets, readings, autojunk=False)
    for kind, start, end, other_start, other_end in matcher.get_opcodes():
        if kind == "equal" or (kind == "replace" and end - start == other_end - other_start):
            pairs += zip(targets[start:end], readings[other_start:other_end], strict=True)
    return pairs


def _draw_sheet(pairs: Sequence[tuple[str, str]], path: Path) -> None:
    """Draw the first pairs of which TeX can draw both sides, below each other."""
    candidates = pairs[: 3 * GALLERY_SIZE]
    renders = [render.pixels for render in render_formulas([side for pair in candidates for side in pair])]
    sheets = []
    for target, reading in zip(renders[::2], renders[1::2], strict=True):
        if target is not None and reading is not None:
            sheets.append(_stack(target, reading))
    sheets = sheets[:GALLERY_SIZE]
    width = max(sheet.shape[1] for sheet in sheets)
    rows = []
    for sheet in sheets:
        rows.append(np.pad(sheet, ((0, 0), (0, width - sheet.shape[1])), constant_values=_WHITE))
        rows.append(np.full((3, width), _RULE, dtype=np.uint8))
    picture = Image.fromarray(np.concatenate(rows[:-1]), mode="P")
    picture.putpalette(_PALETTE)
    picture.save(path, optimize=True)
