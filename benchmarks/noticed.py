"""How often handwriting is noticed, and how often print is taken for it.

    python -m benchmarks.noticed DATA [--limit N] [--kind NAME] [--fit]

DATA has the folders `real-images`, `wild`, `eval`, `formulas` and `handwriting`. A picture is noticed if
the reader that was told no model gave it to the one for handwriting or, where that is not installed, said
what it takes it for. It may look written (`i2l.images.ink.looks_written`) and yet be read as print.

Inks of CROHME are drawn with pens as people have them, formulas with the fonts, faults and cameras of the
training styles. `--fit` gives the weights of the test: they are fitted on CROHME's training inks and on every
other drawn formula; all other rows of the table are new to them.
"""

import argparse
import lzma
import random
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from benchmarks.wild.judging import wilson
from i2l.errors import I2LError
from i2l.images.ink import looks_written, print_likeness
from i2l.images.open import ImageSource
from i2l.images.prepare import PreparedImage
from i2l.inference.model_folder import HANDWRITING
from i2l.inference.reader import Reader
from i2l.ink.pens import draw_ink, draw_pen
from i2l.ink.strokes import read_inks
from i2l.rendering.render import render_formulas
from i2l.rendering.styles import PAPER, Style, photo_style, world_style

SIZES = (1.0, 1.0, 1.5, 2.0, 3.0)  # of drawn inks
STYLES = 24  # that are drawn; each costs a TeX process
MARGIN = (
    1.0  # by which the fitted score must speak for writing: a picture of print costs more than one of ink
)


def main() -> None:
    """Print a row for every kind of picture, or the fitted weights."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--limit", type=int, default=1000, help="pictures of a kind")
    parser.add_argument("--kind", default="", help="only kinds whose names begin so")
    parser.add_argument("--fit", action="store_true")
    options = parser.parse_args()
    reader = Reader(threads=1)  # with the model for handwriting, where that is installed
    kinds = pictures_of(options.data, options.limit)
    if options.fit:
        fit(
            {name: kinds[name] for name in ("CROHME train", "drawn, plain", "drawn, fonts", "drawn, photos")},
            reader,
        )
        return
    print("pictures: number, look written, noticed (95 %)")
    for name, source in kinds.items():
        if name != "CROHME train" and name.startswith(options.kind):
            print(f"{name}: {measure(source(), reader)}", flush=True)


def measure(pictures: Iterator[ImageSource], reader: Reader) -> str:
    """Count pictures, those that look written, and those that are noticed."""
    number = look = noticed = 0
    for picture in pictures:
        number += 1
        form = prepare(reader, picture)
        written = form is not None and looks_written(form.pixels)
        look += written
        try:
            reading = reader.read(picture)
            noticed += reading.model == HANDWRITING or reading.note is not None
        except I2LError:
            noticed += written
    interval = wilson(noticed, number)
    return f"{number}, {look}, {noticed} ({interval.low:.1%} to {interval.high:.1%})"


def prepare(reader: Reader, picture: ImageSource) -> PreparedImage | None:
    """Prepare a picture at its likeliest scale; None if there is no formula in it."""
    try:
        return reader.prepare(picture)[-1]
    except I2LError:
        return None


def pictures_of(data: Path, limit: int) -> dict[str, Callable[[], Iterator[ImageSource]]]:
    """Return for each kind what gives its pictures."""
    wild: dict[str, list[str]] = {}
    for line in (data / "wild" / "kinds.tsv").read_text(encoding="utf-8").splitlines():
        name, kind = line.split("\t")
        wild.setdefault(kind, []).append(str(data / "wild" / "images" / name))
    real = sorted(str(path) for path in (data / "real-images" / "images").iterdir())
    with lzma.open(data / "formulas" / "wikipedia_en.norm.txt.xz", "rt") as file:
        short = file.read().splitlines()
    long = (data / "eval" / "im2latex_val.norm.txt").read_text(encoding="utf-8").splitlines()
    inks = data / "handwriting"
    return {
        "another renderer": lambda: iter(spread(real, limit)),
        **{f"wild, {kind}": (lambda names=names: iter(names)) for kind, names in sorted(wild.items())},
        "drawn, plain": lambda: draw(spread(short, limit), lambda _: PAPER),
        "drawn, fonts": lambda: draw(spread(long, limit // 3), lambda seed: world_style(seed % STYLES)),
        "drawn, photos": lambda: draw(spread(long, limit // 3), photo_style),
        "CROHME 2013": lambda: draw_inks(inks / "crohme_test2013.jsonl.xz", limit),
        "CROHME 2014": lambda: draw_inks(inks / "crohme_test2014.jsonl.xz", limit),
        "CROHME train": lambda: draw_inks(inks / "crohme_train.jsonl.xz", limit),
    }


def spread(items: list[str], limit: int) -> list[str]:
    """Take so many, evenly over all."""
    return items[:: max(1, -(-len(items) // limit))]


def draw(formulas: list[str], style: Callable[[int], Style]) -> Iterator[ImageSource]:
    """Draw formulas, each in a style of its own."""
    for result in render_formulas(formulas, style=[style(seed) for seed in range(len(formulas))]):
        if result.pixels is not None:
            yield result.pixels


def draw_inks(path: Path, limit: int) -> Iterator[ImageSource]:
    """Draw inks with the pens that people have, larger and smaller."""
    inks = list(read_inks(path))
    for seed, ink in enumerate(inks[:: max(1, -(-len(inks) // limit))]):
        source = random.Random(seed)
        pixels, _, _ = draw_ink(ink, pen=draw_pen(source), margin_px=20)
        image, size = Image.fromarray(pixels), source.choice(SIZES)
        yield image.resize((round(size * image.width), round(size * image.height)), Image.Resampling.BICUBIC)


def fit(kinds: dict[str, Callable[[], Iterator[ImageSource]]], reader: Reader) -> None:
    """Fit a logistic model of what is print; both sides count the same."""
    rows: list[tuple[float, ...]] = []
    printed: list[bool] = []
    for name, source in kinds.items():
        for number, picture in enumerate(source()):
            form = prepare(reader, picture) if number % 2 or name == "CROHME train" else None
            measures = None if form is None else print_likeness(form.pixels)
            if measures is not None:
                rows.append((1.0, *measures))
                printed.append(name != "CROHME train")
    table, target = np.array(rows), np.array(printed, dtype=np.float64)
    counts = np.where(target == 1, 0.5 / target.sum(), 0.5 / (1 - target).sum()) * len(target)
    weights: NDArray[np.float64] = np.zeros(table.shape[1])
    for _ in range(50):  # Newton's steps
        given = 1 / (1 + np.exp(-table @ weights))
        slope = table.T @ (counts * (given - target)) + 1e-3 * weights
        curve = (table * (counts * given * (1 - given))[:, None]).T @ table + 1e-3 * np.eye(len(weights))
        weights -= np.linalg.solve(curve, slope)
    bias, *others = weights.round(1).tolist()
    print(f"PRINT_BIAS = {bias + MARGIN:.1f}; PRINT_WEIGHTS = {others}")


if __name__ == "__main__":
    main()
