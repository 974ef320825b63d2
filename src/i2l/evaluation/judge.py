"""A model tried on samples: it reads them, is scored, and reads them again disturbed.

A disturbance (`--sweep`) draws the same formulas larger, smaller, blurred or in other fonts, to see how the
scores hold up.

Samples are a split of a dataset, which is read as it is by the paper's search, or a folder of pictures with
labels, which `Reader` reads as it reads those of users.

A reading that was interrupted goes on where it was. The file of readings has one JSON object a line: first
model and options, then the readings, each under the hash of its image. A file of another model or of other
options is begun anew; a line that was cut off by a kill is read again.
"""

import hashlib
import io
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, TypeVar

import numpy as np
from PIL import Image

from i2l.config import ReadingOptions
from i2l.dataset.format import CARD_FILE, DatasetReader
from i2l.dataset.model_view import open_split
from i2l.errors import I2LError
from i2l.evaluation.breakdown import SubsetScores
from i2l.evaluation.compare import (
    Evaluation,
    EvaluationOptions,
    Listener,
    Pairs,
    PairsError,
    evaluate_pairs,
    read_targets,
)
from i2l.evaluation.results import Curve, describe_file, hash_files
from i2l.evaluation.scores import FIGURES
from i2l.evaluation.visual import Pixels, VisualSample, encode_png, prepare_formula
from i2l.files import CHECKSUMS
from i2l.images.open import SUFFIXES, ImageError, ImageSource, open_image
from i2l.images.prepare import FRAME_PX, REFERENCE_DPI, place_on_canvas
from i2l.inference.decoding import BeamOptions, Hypothesis, beam_search
from i2l.inference.grammar import FormulaGuard
from i2l.inference.reader import Reader
from i2l.rendering.render import render_formulas
from i2l.rendering.styles import FONTS, PAPER, Style

_SHOWN_PX: Final = (1600, 400)  # the largest image in a report


@dataclass(frozen=True)
class Samples:
    """What a model is to read, and what it should say."""

    names: list[str]
    targets: list[str]
    images: Sequence[Pixels | Path]  # of a dataset: grey, cropped to the ink; of a folder: any picture
    source: dict[str, Any]
    faults: dict[str, list[str]] = field(default_factory=dict)
    # Samples without an image, which come last in names and targets: the model cannot read them.
    num_unreadable: int = 0


def load_split(
    data: Path,
    split: str,
    *,
    canvas_shape: tuple[int, int],
    dpi: float = REFERENCE_DPI,
    limit: int = 0,
    jobs: int | None = None,
) -> Samples:
    """Read a split of a dataset as a model sees it; only its first samples, if ``limit`` is not 0.

    Raises:
        DatasetError: if there is no such dataset or split.
    """
    rows = open_split(DatasetReader(data), split, canvas_shape=canvas_shape, dpi=dpi, limit=limit, jobs=jobs)
    indices = list(range(len(rows)))[: limit or None]
    card = describe_file(data / CARD_FILE)  # it holds the checksums of all other files
    return Samples(
        names=[rows.ids[index] for index in indices] + list(rows.left_out),
        targets=[rows.formulas[index] for index in indices] + list(rows.left_out_formulas),
        images=rows.pixels(indices, jobs=jobs),
        source={"dataset": {"path": str(data), "split": split, "sha256": card["sha256"]}},
        num_unreadable=len(rows.left_out),
    )


def find_pictures(folder: Path, labels: Path, *, limit: int = 0) -> Samples:
    """Pair the pictures of a folder with a file of labels; only the first labels, if ``limit`` is not 0.

    Raises:
        PairsError: if the labels have no names or are malformed, or there is no such folder.
    """
    if not folder.is_dir():
        raise PairsError(f"There is no folder {folder}.")
    targets = read_targets(labels)
    if targets.names is None:
        raise PairsError(f"The lines of {labels} must name their pictures: NAME<tab>FORMULA.")
    names = targets.names[: limit or None]
    paths = [folder / name for name in names]
    there = [path for path in paths if path.is_file()]
    named = {folder / name for name in targets.names}
    faults = {
        "picture missing": [path.name for path in paths if not path.is_file()],
        "picture without label": sorted(
            path.name for path in folder.iterdir() if path.suffix.lower() in SUFFIXES and path not in named
        ),
    }
    return Samples(
        names=names,
        targets=targets.formulas[: limit or None],
        images=paths,
        source={
            "images": {"path": str(folder), "sha256": hash_files(there)},
            "labels": describe_file(labels),
        },
        faults={kind: places for kind, places in faults.items() if places},
    )


def gallery_inputs(images: Sequence[Pixels | Path], visuals: Sequence[VisualSample]) -> list[bytes]:
    """The images as the report shows them; nothing for one that looks like the render of its target."""
    return [_encode(image, visual) for image, visual in zip(images, visuals, strict=False)]


def _encode(image: Pixels | Path, visual: VisualSample) -> bytes:
    """An image of any kind in about 4 kB."""
    if isinstance(image, Path):
        try:
            picture = open_image(image).convert("L")
        except ImageError:
            return b""
        picture.thumbnail(_SHOWN_PX)
    elif encode_png(image) == visual.target_png:
        return b""
    else:
        picture = Image.fromarray(image)
    buffer = io.BytesIO()
    picture.save(buffer, "WEBP", quality=60)
    return buffer.getvalue()


# Files of a model that change no reading.
_FILES_THAT_CHANGE_NO_READING: Final = {
    "training.pt",
    "metrics.json",
    "README.md",
    "calibration.json",
    CHECKSUMS,
}


_DESCRIBED: Final = ("beam_width", "length_penalty", "guard", "batch_size", "device")  # in a report


class BatchReader:
    """A model, and how it reads."""

    def __init__(self, options: ReadingOptions) -> None:
        """Load an exported model, or a checkpoint (which needs torch).

        The batch size of the options is that of a dataset's images, which are read by the paper's search.

        Raises:
            I2LError: if there is none, it is broken, or torch is needed and not installed.
        """
        self._reader = Reader.from_options(replace(options, batch_size=None))
        self.model = self._reader.model
        self._batch_size = options.batch_size or self.model.backend.batch_size
        self._guard = FormulaGuard(self.model.vocabulary) if options.guard else None
        self._beam = BeamOptions(
            width=options.beam_width,
            length_penalty=options.length_penalty,
            max_steps=self.model.config.max_steps,
            keep_attention=False,
        )
        self.options = options
        self.path = self.model.path

    def describe(self) -> dict[str, Any]:
        """Where the model is, and a hash of all that makes it read as it does."""
        files = [
            path
            for path in self.path.iterdir()
            if path.is_file() and path.name not in _FILES_THAT_CHANGE_NO_READING
        ]
        return {"path": str(self.path), "sha256": hash_files(files)}

    def describe_options(self) -> dict[str, Any]:
        """How it reads, as far as that changes what is read."""
        return {name: getattr(self.options, name) for name in _DESCRIBED}

    def fits(self, pixels: Pixels) -> bool:
        """Whether the canvas has room for an image."""
        height, width = (side - 2 * FRAME_PX for side in self.model.config.canvas_shape)
        return bool(pixels.shape[0] <= height and pixels.shape[1] <= width)

    def read(self, images: Sequence[Pixels]) -> list[str]:
        """Read images, grey and cropped to their ink, into canonical tokens; one too large gives nothing."""
        readable = [index for index, pixels in enumerate(images) if self.fits(pixels)]
        readings = [""] * len(images)
        found = self._search([images[index] for index in readable])
        for index, hypothesis in zip(readable, found, strict=True):
            readings[index] = self._formula(hypothesis)
        return readings

    def read_pictures(self, pictures: Sequence[ImageSource]) -> list[str | I2LError]:
        """Read pictures of any kind and scale as `Reader` does; an error stands for what cannot be read."""
        readings = self._reader.read_many(pictures, errors="return")
        return [reading if isinstance(reading, I2LError) else reading.formula for reading in readings]

    def _formula(self, hypothesis: Hypothesis) -> str:
        return " ".join(self.model.vocabulary.decode(hypothesis.token_ids))

    def _search(self, images: Sequence[Pixels]) -> list[Hypothesis]:
        order = sorted(range(len(images)), key=lambda index: images[index].shape[::-1])  # alike ones together
        found: dict[int, Hypothesis] = {}
        backend, canvas_shape = self.model.backend, self.model.config.canvas_shape
        for start in range(0, len(order), self._batch_size):
            batch = order[start : start + self._batch_size]
            canvases = place_on_canvas([images[index] for index in batch], canvas_shape=canvas_shape)
            results = beam_search(
                backend,
                backend.encode(canvases),
                arrays=backend.arrays,
                options=self._beam,
                guard=self._guard,
            )
            found |= {index: hypotheses[0] for index, hypotheses in zip(batch, results, strict=True)}
        return [found[index] for index in range(len(images))]


_IMAGES_BETWEEN_WRITES: Final = 256  # images between two writes

Source = TypeVar("Source", Pixels, Path, Pixels | Path)
Readings = list[str | I2LError]


class ReadingLog:
    """Readings of one model with one set of options."""

    def __init__(self, path: Path, *, reader: dict[str, Any]) -> None:
        """Open a log, with what an earlier run left in it if that had the same ``reader``."""
        self._path = path
        self._known: dict[str, dict[str, str]] = {}
        lines = path.read_bytes().splitlines() if path.is_file() else []
        head = json.dumps({"reader": reader}, sort_keys=True)
        if not lines or lines[0].decode("utf-8", "replace") != head:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(head + "\n", encoding="utf-8")
            return
        for line in lines[1:]:
            try:
                entry = json.loads(line)
                self._known[entry.pop("image")] = entry
            except (ValueError, KeyError):
                continue

    def read(
        self,
        images: Sequence[Source],
        read: Callable[[Sequence[Source]], Sequence[str | I2LError]],
        *,
        kind: str,
        progress: Listener | None = None,
    ) -> Readings:
        """Return the readings of images, and read those that are new; ``kind`` says how they are read."""
        keys = [f"{kind} {_hash(image)}" for image in images]
        new = {key: image for key, image in zip(keys, images, strict=True) if key not in self._known}
        waiting = sorted(new, key=lambda key: _width(new[key]))  # so that a batch has images of one size
        with self._path.open("a", encoding="utf-8") as file:
            for start in range(0, len(waiting), _IMAGES_BETWEEN_WRITES):
                part = waiting[start : start + _IMAGES_BETWEEN_WRITES]
                for key, found in zip(part, read([new[key] for key in part]), strict=True):
                    entry = {"error": str(found)} if isinstance(found, I2LError) else {"formula": found}
                    self._known[key] = entry
                    file.write(json.dumps({"image": key, **entry}) + "\n")
                file.flush()
                if progress:
                    progress("reading", len(images) - len(waiting) + start + len(part), len(images))
        return [_reading(self._known[key]) for key in keys]


def _reading(entry: dict[str, str]) -> str | I2LError:
    return I2LError(entry["error"]) if "error" in entry else entry["formula"]


def _hash(image: Pixels | Path) -> str:
    if not isinstance(image, Path):
        return hashlib.sha256(repr(image.shape).encode() + image.tobytes()).hexdigest()
    try:
        with image.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return f"unreadable {image.name}"


def _width(image: Pixels | Path) -> int:
    return 0 if isinstance(image, Path) else int(image.shape[1])


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
