"""A model tried on samples: it reads them, is scored, and reads them again disturbed."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from i2l.errors import I2LError
from i2l.evaluation.image_match import Pixels
from i2l.evaluation.pairs import Pairs
from i2l.evaluation.reading import BatchReader
from i2l.evaluation.reading_log import ReadingLog
from i2l.evaluation.run import Evaluation, EvaluationOptions, Progress, evaluate_pairs
from i2l.evaluation.samples import Samples, gallery_inputs
from i2l.evaluation.sweep import Sweep, run_sweep

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
    progress: Progress | None = None,
) -> Trial:
    """Have the model read the samples and every sweep of the first ``sweep_samples`` of them (0: of all).

    Readings are kept in ``out``/readings.jsonl: killed, the same call goes on.
    """
    about = {"model": reader.describe(), "reading": asdict(reader.options)}
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
    reader: BatchReader, samples: Samples, log: ReadingLog, progress: Progress | None
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
