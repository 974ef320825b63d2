"""Part `boxes`: where tokens were read, against true boxes at half to double size, and on screenshots.

The mean IoU is over the visible tokens that were read right, at the true place of each; one without a box
counts 0. A token shares its box if another visible token of the same reading has the very same box.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np

from benchmarks.wild.judging import Judged, Row, Sample, judge, mean_interval, read_samples
from benchmarks.wild.screens import choose_formulas, load_screens, screens_folder, take_screenshots
from i2l.errors import I2LError
from i2l.explain.localization import box_iou, matched_tokens
from i2l.formulas.normalize import normalize_formula
from i2l.inference.boxes import visible_tokens
from i2l.inference.reader import Reader
from i2l.inference.reading import Reading
from i2l.rendering.render import Box, render_formulas
from i2l.rendering.styles import PAPER

SIZES: Final = (0.5, 0.7, 1.0, 1.4, 2.0)  # times the paper's 200 dpi
FORMULAS: Final = 60
_SCREENS: Final = "screenshots at 1x"


@dataclass(frozen=True)
class TokenPlaces:
    """What one reading says about places."""

    overlap: float  # sum of IoU over the tokens that have a true box and were read right
    compared: int
    shared: int
    visible: int


def measure_places(reading: Reading, reference: Sequence[str], true: Sequence[Box | None]) -> TokenPlaces:
    """Compare the boxes of a reading with the true ones; there may be none of these."""
    overlap, compared = 0.0, 0
    if true:
        for place, step in matched_tokens(reference, reading.tokens):
            wanted, found = true[place], reading.boxes[step]
            if wanted is not None:
                compared += 1
                overlap += 0.0 if found is None else box_iou(found, wanted)
    visible = [box for box, shown in zip(reading.boxes, visible_tokens(reading.tokens), strict=True) if shown]
    count = Counter(tuple(np.round(box, 1)) for box in visible if box is not None)
    shared = sum(number for number in count.values() if number > 1)
    return TokenPlaces(overlap, compared, shared, len(visible))


def measure_boxes(
    reader: Reader, data: Path, cache: Path, mathjax: Path | None, *, limit: int | None
) -> tuple[list[Row], list[Judged]]:
    """Read formulas with true boxes at every size, and screenshots at 1x; a row for each."""
    formulas = choose_formulas(data)
    samples, true = _draw(formulas[: limit or FORMULAS])
    folder = screens_folder(formulas, cache)
    screens = [one for one in take_screenshots(formulas, folder, mathjax) if one.scale == 1]
    for sample in load_screens(formulas, screens, folder, limit=2 * (limit or FORMULAS)):
        samples.append(replace(sample, group=_SCREENS))
        true.append([])
    readings = read_samples(reader, samples, part="boxes")
    places = [
        None if isinstance(reading, I2LError) else measure_places(reading, sample.reference.split(), boxes)
        for sample, reading, boxes in zip(samples, readings, true, strict=True)
    ]
    judged = judge(samples, readings)
    table = []
    for group in [*(f"{size:g}x" for size in SIZES), _SCREENS]:
        members = [one for sample, one in zip(samples, places, strict=True) if sample.group == group and one]
        table += [_row(group, members)] if members else []
    sizes = [one for sample, one in zip(samples, places, strict=True) if sample.group != _SCREENS and one]
    return [_row("0.5x to 2x", sizes), *table], judged


def _draw(formulas: Sequence[str]) -> tuple[list[Sample], list[list[Box | None]]]:
    samples, true = [], []
    for size in SIZES:
        style = replace(PAPER, dpi=round(PAPER.dpi * size))
        renders = render_formulas(
            [normalize_formula(formula).latex for formula in formulas], style=style, boxes=True
        )
        for number, (formula, render) in enumerate(zip(formulas, renders, strict=True)):
            if render.pixels is not None and render.boxes is not None:
                samples.append(Sample(f"{size:g}x", str(number), render.pixels, formula))
                true.append(render.boxes)
    return samples, true


def _row(label: str, places: Sequence[TokenPlaces]) -> Row:
    figures = {"shared_boxes": mean_interval([one.shared for one in places], [one.visible for one in places])}
    if any(one.compared for one in places):
        figures["mean_iou"] = mean_interval([one.overlap for one in places], [one.compared for one in places])
    return Row(label, len(places), figures, f"{sum(one.visible for one in places)} visible tokens")
