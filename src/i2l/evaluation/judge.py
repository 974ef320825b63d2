"""A model tried on samples: it reads them, is scored, and reads them again disturbed.

A disturbance (`--sweep`) draws the same formulas larger, smaller, blurred or in other fonts, to see how the
scores hold up.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np

from i2l.errors import I2LError
from i2l.evaluation.breakdown import SubsetScores
from i2l.evaluation.compare import Evaluation, EvaluationOptions, Listener, Pairs, evaluate_pairs
from i2l.evaluation.image_match import Pixels
from i2l.evaluation.read_samples import BatchReader, ReadingLog, Samples, gallery_inputs
from i2l.evaluation.results import Curve
from i2l.evaluation.scores import FIGURES
from i2l.evaluation.visual import prepare_formula
from i2l.rendering.render import render_formulas
from i2l.rendering.styles import FONTS, PAPER, Style

_NUM_POINTS: Final = 9  # of a range
_LOGARITHMIC: Final = frozenset({"scale"})
_DRAW: Final[dict[str, Callable[[float], Style]]] = {
    # Even dpi: the reference point of a page falls on a pixel corner.
    "scale": lambda value: replace(PAPER, dpi=max(2, 2 * round(PAPER.dpi * value / 2))),
    "blur": lambda value: replace(PAPER, blur_px=value),
    "noise": lambda value: replace(PAPER, noise=value),
    "rotation": lambda value: replace(PAPER, rotation_deg=value),
    "jpeg": lambda value: replace(PAPER, jpeg_quality=round(value)),
}
_UNITS: Final = {
    "scale": "times the size of the paper's images",
    "font": "",
    "blur": "pixels of deviation",
    "noise": "grey levels of deviation",
    "rotation": "degrees",
    "jpeg": "quality",
}


class SweepError(I2LError):
    """A sweep that cannot be read from the command line."""


@dataclass(frozen=True)
class Sweep:
    """One disturbance in several strengths."""

    name: str
    styles: dict[str, Style]  # by label

    @property
    def title(self) -> str:
        """What is disturbed, with its unit."""
        unit = _UNITS[self.name]
        return f"{self.name} ({unit})" if unit else self.name


def parse_sweep(text: str) -> Sweep:
    """Read `scale=0.4:2.5` (nine steps), `blur=0:3:7` (seven), `scale=0.5,1,2` or `font=times,palatino`.

    Raises:
        SweepError: if it means nothing.
    """
    name, _, values = text.partition("=")
    if name not in _UNITS or not values:
        raise SweepError(
            f"Cannot sweep {text!r}; write NAME=FROM:TO, NAME=FROM:TO:STEPS or NAME=A,B,C "
            f"with one of {', '.join(_UNITS)} as name."
        )
    if name == "font":
        fonts = list(FONTS) if values == "all" else values.split(",")
        if unknown := sorted(set(fonts) - set(FONTS)):
            raise SweepError(f"There is no font {', '.join(unknown)}; there are {', '.join(FONTS)}, or all.")
        return Sweep(name, {font: replace(PAPER, font=font) for font in fonts})
    return Sweep(name, {f"{value:g}": _DRAW[name](value) for value in _numbers(name, values)})


def _numbers(name: str, values: str) -> list[float]:
    try:
        if ":" not in values:
            return [float(value) for value in values.split(",")]
        first, last, *steps = values.split(":")
        num_points = int(steps[0]) if steps else _NUM_POINTS
        space = np.geomspace if name in _LOGARITHMIC else np.linspace
        return [float(f"{value:.3g}") for value in space(float(first), float(last), num_points)]
    except (ValueError, IndexError) as error:
        raise SweepError(f"Cannot read the values of --sweep {name}={values}: {error}") from error


def run_sweep(
    sweep: Sweep,
    targets: Sequence[str],
    read: Callable[[Sequence[Pixels]], Sequence[str]],
    *,
    options: EvaluationOptions,
    progress: Listener | None = None,
) -> Curve:
    """Draw the targets in every style of a sweep, have them read, and score.

    A target that one of the styles cannot draw is left out of all, so that the points of the curve compare.

    Raises:
        SweepError: if none is left.
    """
    latex = [prepare_formula(target, canonical=True).latex for target in targets]
    images = {
        label: [result.pixels for result in render_formulas(latex, style=style, jobs=options.jobs)]
        for label, style in sweep.styles.items()
    }
    drawn = [index for index in range(len(targets)) if all(row[index] is not None for row in images.values())]
    if not drawn:
        raise SweepError(f"No formula could be drawn in all styles of the sweep {sweep.name}.")
    points = []
    for number, (label, row) in enumerate(images.items()):
        pixels = [image for index in drawn if (image := row[index]) is not None]
        pairs = Pairs([str(index) for index in drawn], [targets[i] for i in drawn], list(read(pixels)))
        scores = evaluate_pairs(pairs, options=options, source={}).result.figures
        headline = {figure.key: scores[figure.key] for figure in FIGURES if figure.headline}
        points.append(SubsetScores(label, len(drawn), headline))
        if progress:
            progress(f"sweep {sweep.name}", number + 1, len(images))
    return Curve(sweep.title, points)


_PLAIN, _PICTURE = "plain", "picture"  # as they are, or prepared: how images are read


@dataclass(frozen=True)
class Trial:
    """What came of it."""

    evaluation: Evaluation
    inputs: list[bytes]  # images for the report


def try_model(
    reader: BatchReader,
    samples: Samples,
    *,
    out: Path,
    options: EvaluationOptions,
    sweeps: Sequence[Sweep] = (),
    sweep_samples: int = 0,
    progress: Listener | None = None,
) -> Trial:
    """Have the model read the samples and every sweep of the first ``sweep_samples`` of them (0: of all).

    Readings are kept in ``out``/readings.jsonl: killed, the same call goes on.
    """
    about = {"model": reader.describe(), "reading": reader.describe_options()}
    log = ReadingLog(out / "readings.jsonl", reader=about)
    readings, faults = _read(reader, samples, log, progress)
    pairs = Pairs(samples.names, samples.targets, readings, samples.faults | faults)
    source = {"title": reader.path.name, **about, **samples.source}
    evaluation = evaluate_pairs(pairs, options=options, source=source, progress=progress)

    def read_disturbed(images: Sequence[Pixels]) -> list[str]:
        found = log.read(images, reader.read_pictures, kind=_PICTURE, progress=progress)
        return ["" if isinstance(reading, I2LError) else reading for reading in found]

    targets = samples.targets[: sweep_samples or None]
    curves = [
        run_sweep(sweep, targets, read_disturbed, options=options, progress=progress) for sweep in sweeps
    ]
    evaluation = replace(evaluation, result=replace(evaluation.result, curves=curves))
    return Trial(evaluation, gallery_inputs(samples.images, evaluation.visuals))


def _read(
    reader: BatchReader, samples: Samples, log: ReadingLog, progress: Listener | None
) -> tuple[list[str], dict[str, list[str]]]:
    """The readings, and what went wrong; a sample that was not read has an empty reading."""
    paths = [image for image in samples.images if isinstance(image, Path)]
    images = [image for image in samples.images if not isinstance(image, Path)]
    found: Sequence[str | I2LError]
    if paths:
        found = log.read(paths, reader.read_pictures, kind=_PICTURE, progress=progress)
    else:
        found = log.read(images, reader.read, kind=_PLAIN, progress=progress)
    found = [*found, *[""] * samples.num_unreadable]
    too_large = [name for name, image in zip(samples.names, images, strict=False) if not reader.fits(image)]
    failed = [
        f"{name}: {reading}"
        for name, reading in zip(samples.names, found, strict=True)
        if isinstance(reading, I2LError)
    ]
    faults = {
        "image too large for the model": too_large,
        "image too large at the model's scale, or nothing on it": samples.names[len(samples.images) :],
        "picture not read": failed,
    }
    readings = ["" if isinstance(reading, I2LError) else reading for reading in found]
    return readings, {kind: places for kind, places in faults.items() if places}
