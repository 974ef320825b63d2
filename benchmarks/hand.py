r"""How well a model reads handwriting, by the scores of the field and by our own.

    python -m benchmarks.hand crohme_test2013.jsonl.xz crohme_test2014.jsonl.xz --model MODEL -o OUT.json

Each file has one ink a line, as `i2l.ink.strokes` reads them (a folder of InkML does too), with its label and
its symbols. Inks are drawn with a plain pen and read as images; nothing is known of the strokes' order.

- Expression rate: the sequence of labels is the annotated one; then with at most one, two and three errors,
  as edits of that sequence. Both sides are normalised to what ink shows: \sin is one label, \left( is (.
- Picture: the typeset reading shows every symbol in its place, and none too many (needs TeX).
- Pointing: of the visible tokens that were read right, the share whose attention has its peak in the box of
  the strokes of that very symbol; in the second figure the ink that the token points at must lie there (see
  `point_at_ink`); in the third the peak's cell must touch the box, as in `i2l explain`.
- Calibration: expected error of the confidence, right being an expression without error.

An ink whose label is no formula, or that the reader refuses, counts as read wrong.
"""

import argparse
import json
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from rapidfuzz.distance import Levenshtein
from rich.console import Console
from rich.progress import track
from rich.table import Table

from benchmarks.wild.judging import wilson
from i2l.errors import I2LError
from i2l.evaluation.visual import compare_images, prepare_formula
from i2l.explain.localization import LocalizationSample, localized_tokens, point_at_ink, score_tokens
from i2l.files import atomic_write
from i2l.formulas.lexer import FormulaError, Token
from i2l.inference.confidence import expected_calibration_error
from i2l.inference.reader import Reader
from i2l.inference.reading import Reading
from i2l.ink.bank import formula_units, ink_latex, label_tokens, written_formula, written_tokens
from i2l.ink.hand import match_symbols
from i2l.ink.strokes import Ink, read_inks
from i2l.rendering.render import render_formulas

MAX_ERRORS = 3
USUAL_TOKENS = 18, 22  # of the label of an ink whose time is given by itself, both counted


@dataclass
class Judged:
    """One ink, and how it was read."""

    name: str
    label: list[str]  # empty if the annotation is no formula
    reading: list[str]
    confidence: float = 0.0
    seconds: float = 0.0
    fault: str = ""
    num_tokens: int = 0  # of the label
    pointing: list[float] = field(default_factory=list)  # of each token that counts
    ink_pointing: list[float] = field(default_factory=list)
    cell_pointing: list[float] = field(default_factory=list)

    @property
    def errors(self) -> int:
        """How many labels must be changed, left out or put in."""
        if not self.label:
            return max(len(self.reading), MAX_ERRORS + 1)
        return int(Levenshtein.distance(self.label, self.reading))


def main() -> None:
    """Read every file, print a table, and write all readings."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("data", nargs="+", type=Path, help="files of inks, or folders of InkML")
    parser.add_argument("--model", help="of the box if not given")
    parser.add_argument("--limit", type=int, default=0, help="read only so many, evenly over each file")
    parser.add_argument("--beam-width", type=int, default=5)
    parser.add_argument("--threads", type=int, default=None)
    parser.add_argument("--no-tex", action="store_true", help="without pictures and boxes, which need TeX")
    parser.add_argument("-o", "--output", type=Path)
    options = parser.parse_args()
    reader = Reader(options.model, beam_width=options.beam_width, threads=options.threads, check=False)
    table = Table("inks", "number", "figure", "value", "95 %")
    content: dict[str, Any] = {"model": str(options.model or reader.model.path.name), "files": {}}
    for path in options.data:
        judged = read_all(path, reader, limit=options.limit, tex=not options.no_tex)
        figures = score(judged, tex=not options.no_tex)
        for name, (value, low, high) in figures.items():
            table.add_row(path.name, str(len(judged)), name, f"{value:.4g}", f"{low:.4g} to {high:.4g}")
        content["files"][path.name] = {
            "number": len(judged),
            "figures": figures,
            "readings": [
                [one.name, " ".join(one.label), " ".join(one.reading), round(one.confidence, 4), one.fault]
                for one in judged
            ],
        }
        if options.output:
            with atomic_write(options.output) as file:
                json.dump(content, file, ensure_ascii=False, indent=1)
    Console().print(table)


def read_all(path: Path, reader: Reader, *, limit: int, tex: bool) -> list[Judged]:
    """Read the inks of a file; with TeX, also measure where attention was."""
    inks = list(read_inks(path))
    if limit:
        inks = inks[:: -(-len(inks) // limit)]
    labels = [_label(ink) for ink in inks]
    formulas = list(dict.fromkeys(" ".join(token.text for token in tokens) for tokens in labels if tokens))
    layouts = {
        result.formula: result.boxes for result in (render_formulas(formulas, boxes=True) if tex else [])
    }
    judged = []
    for ink, tokens in track(list(zip(inks, labels, strict=True)), path.name, transient=True):
        texts = [token.text for token in tokens]
        one = Judged(ink.name, label_tokens(texts), [], num_tokens=len(texts))
        judged.append(one)
        started = time.perf_counter()
        try:
            reading = reader.read_strokes(ink)
        except I2LError as error:
            one.fault = str(error)
            continue
        one.seconds = time.perf_counter() - started
        one.reading, one.confidence = label_tokens(reading.tokens), reading.confidence
        boxes = layouts.get(" ".join(texts))
        if boxes is not None and len(boxes) == len(tokens):
            _point(one, ink, tokens, boxes, reading, reader)
    return judged


def _label(ink: Ink) -> list[Token]:
    try:
        return written_formula(ink_latex(ink)).tokens
    except FormulaError:
        return []


def _point(
    one: Judged, ink: Ink, tokens: list[Token], boxes: list[Any], reading: Reading, reader: Reader
) -> None:
    """Note for each visible token that was read right whether attention lay on its symbol."""
    units = formula_units(tokens)
    found: list[tuple[int, int, int, int] | None] = [None] * len(tokens)
    for unit, symbol in zip(units, match_symbols(ink, units, boxes), strict=True):
        if symbol is None or len(unit.tokens) > 1:  # the letters of a word are no symbols of their own
            continue
        points = np.concatenate([ink.strokes[number] for number in symbol.strokes])
        low, high = points.min(axis=0), points.max(axis=0)
        box = reading.prepared.from_file((*low, *high))
        found[unit.tokens[0]] = (
            int(np.floor(box[0])) - 1,
            int(np.floor(box[1])) - 1,
            int(np.ceil(box[2])) + 1,
            int(np.ceil(box[3])) + 1,
        )
    area = reader.model.config.receptive_field()
    sample = LocalizationSample(
        name=ink.name,
        pixels=reading.prepared.pixels,
        target=[token.text for token in tokens],
        boxes=found,
        prediction=list(reading.tokens),
        attention=reading.attention,
    )
    counted = localized_tokens(sample, canvas_shape=area.canvas_shape)
    if counted.tokens:
        scores = score_tokens(
            counted.attention, counted.boxes, counted.ink, field=area, share=reader.model.box_share
        )
        one.pointing, one.cell_pointing = scores["pointing"].tolist(), scores["cell_pointing"].tolist()
        one.ink_pointing = point_at_ink(
            counted.attention,
            counted.boxes,
            counted.ink,
            field=area,
            among=reading.attention[: len(reading.tokens)],  # what was read wrong looks too
        ).tolist()


def score(judged: list[Judged], *, tex: bool) -> dict[str, tuple[float, float, float]]:
    """Give every figure with its interval."""
    number = len(judged)
    rows = {}
    for most in range(MAX_ERRORS + 1):
        name = "expression rate" if most == 0 else f"at most {most} error{'s' * (most > 1)}"
        rows[name] = wilson(sum(one.errors <= most for one in judged), number)
    edits = sum(one.errors for one in judged if one.label)
    rate = edits / max(sum(len(one.label) for one in judged), 1)
    figures = {name: (row.value, row.low, row.high) for name, row in rows.items()}
    figures["errors a label"] = (rate, rate, rate)
    if tex:
        pairs = [
            tuple(prepare_formula(" ".join(written_tokens(side)), canonical=True) for side in sides)
            for sides in ((one.label, one.reading) for one in judged)
        ]
        right = sum(sample.counts["expression_right"] for sample in compare_images(pairs))  # type: ignore[arg-type]
        row = wilson(int(right), number)
        figures["picture right"] = (row.value, row.low, row.high)
        for name in ("pointing", "ink_pointing", "cell_pointing"):
            values = [value for one in judged for value in getattr(one, name)]
            row = wilson(round(sum(values)), max(len(values), 1))
            figures[f"{name.replace('_', ' ')}, {len(values)} tokens"] = (row.value, row.low, row.high)
    read = [one for one in judged if not one.fault]
    if read:
        error = expected_calibration_error(
            [one.confidence for one in read], [one.errors == 0 for one in read]
        )
        figures["calibration error"] = (error, error, error)
        figures["seconds an ink"] = _spread([one.seconds for one in read])
        first, last = USUAL_TOKENS
        usual = [one.seconds for one in read if first <= one.num_tokens <= last]
        if usual:
            figures[f"seconds, {first} to {last} tokens, {len(usual)} inks"] = _spread(usual)
    figures["refused"] = (float(number - len(read)),) * 3
    return figures


def _spread(values: list[float]) -> tuple[float, float, float]:
    """Give the median, and what a twentieth of the values is below and above."""
    middle, low, high = np.percentile(values, [50, 5, 95]).tolist()
    return middle, low, high


if __name__ == "__main__":
    main()
