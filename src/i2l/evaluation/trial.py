"""A model tried on samples: it reads them, is scored, and reads them again disturbed."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from i2l.errors import I2LError
from i2l.evaluation.image_match import Pixels
from i2l.evaluation.pairs import Pairs
from i2l.evaluation.reading import BatchReader, ReadOptions
from i2l.evaluation.run import Evaluation, EvaluationOptions, Progress, evaluate_pairs
from i2l.evaluation.samples import Samples, gallery_inputs
from i2l.evaluation.sweep import Sweep, run_sweep


@dataclass(frozen=True)
class Trial:
    """What came of it."""

    evaluation: Evaluation
    inputs: list[bytes]  # images for the report


def try_model(
    reader: BatchReader,
    samples: Samples,
    *,
    options: EvaluationOptions,
    read_options: ReadOptions,
    sweeps: Sequence[Sweep] = (),
    sweep_samples: int = 0,
    progress: Progress | None = None,
) -> Trial:
    """Have the model read the samples and every sweep of the first ``sweep_samples`` of them (0: of all)."""
    readings, faults = _read(reader, samples, progress)
    source = {"title": reader.path.name, "model": reader.describe(), "reading": asdict(read_options)}
    pairs = Pairs(samples.names, samples.targets, readings, samples.faults | faults)
    evaluation = evaluate_pairs(pairs, options=options, source=source | samples.source, progress=progress)

    def read_disturbed(images: Sequence[Pixels]) -> list[str]:
        return ["" if isinstance(found, I2LError) else found for found in reader.read_pictures(images)]

    curves = [
        run_sweep(
            sweep,
            samples.targets[: sweep_samples or None],
            read_disturbed,
            options=options,
            progress=progress,
        )
        for sweep in sweeps
    ]
    evaluation = replace(evaluation, result=replace(evaluation.result, curves=curves))
    return Trial(evaluation, gallery_inputs(samples.images, evaluation.visuals))


def _read(
    reader: BatchReader, samples: Samples, progress: Progress | None
) -> tuple[list[str], dict[str, list[str]]]:
    """The readings, and what went wrong; a sample that was not read has an empty reading."""
    paths = [image for image in samples.images if isinstance(image, Path)]
    if paths:
        found = reader.read_pictures(paths, progress=progress)
        failed = [
            f"{name}: {reading}"
            for name, reading in zip(samples.names, found, strict=True)
            if isinstance(reading, I2LError)
        ]
        return ["" if isinstance(reading, I2LError) else reading for reading in found], _some(
            {"picture not read": failed}
        )
    images = [image for image in samples.images if not isinstance(image, Path)]
    too_large = [name for name, image in zip(samples.names, images, strict=True) if not reader.fits(image)]
    return reader.read(images, progress=progress), _some({"image too large for the model": too_large})


def _some(faults: dict[str, list[str]]) -> dict[str, list[str]]:
    return {kind: places for kind, places in faults.items() if places}
