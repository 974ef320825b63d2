"""Localisation of a model on a dataset: readings replayed for their attention, measured, written down."""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from html import escape
from importlib.resources import files
from itertools import islice
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from i2l.config import ModelConfig
from i2l.explain.attention_claims import AttentionClaims, measure_claims
from i2l.explain.box_fit import ShareFit
from i2l.explain.localization import LocalizationResult, evaluate_localization, fit_localization
from i2l.explain.localization_report import localization_section
from i2l.explain.localized_tokens import LocalizationSample
from i2l.explain.replay import replay_tokens
from i2l.files import atomic_write
from i2l.formulas.vocabulary import Vocabulary
from i2l.images.canvas import FRAME_PX, place_on_canvas
from i2l.images.ink_symbols import Ink
from i2l.inference.attention_boxes import Box, find_ink
from i2l.inference.backends import Backend
from i2l.model.receptive_field import ReceptiveField, receptive_field

_NUM_GALLERY: Final = 200  # samples that the gallery is chosen from
_BATCH: Final = 32


@dataclass(frozen=True)
class LocalizationReport:
    """Everything that was found out about where a model looks."""

    result: LocalizationResult
    claims: AttentionClaims
    fit: ShareFit | None
    section: str  # HTML


class LocalizationModel:
    """A model whose readings can be replayed."""

    def __init__(self, backend: Backend, *, vocabulary: Vocabulary, config: ModelConfig) -> None:
        self._backend = backend
        self._vocabulary = vocabulary
        self._config = config
        self.field = receptive_field(config)

    def replay(
        self,
        *,
        names: Sequence[str],
        targets: Sequence[str],
        images: Sequence[npt.NDArray[np.uint8]],
        boxes: Sequence[Sequence[Box | None] | None],
        readings: Sequence[str],
    ) -> Iterator[LocalizationSample]:
        """Give the samples that have boxes, with the attention of what was read; formulas are canonical.

        An image that is too large for the canvas, or of which nothing was read, is left out.
        """
        height, width = (side - 2 * FRAME_PX for side in self._config.canvas_shape)
        places = [
            place
            for place, image in enumerate(images)
            if boxes[place] and readings[place] and image.shape[0] <= height and image.shape[1] <= width
        ]
        places.sort(key=lambda place: images[place].shape[::-1])  # alike ones share a batch
        for start in range(0, len(places), _BATCH):
            batch = places[start : start + _BATCH]
            tokens = [readings[place].split() for place in batch]
            canvases = place_on_canvas(
                [images[place] for place in batch], canvas_shape=self._config.canvas_shape
            )
            replays = replay_tokens(
                self._backend, canvases, [self._vocabulary.encode(reading) for reading in tokens]
            )
            for place, reading, replay in zip(batch, tokens, replays, strict=True):
                yield LocalizationSample(
                    name=names[place],
                    pixels=images[place],
                    target=targets[place].split(),
                    boxes=boxes[place] or [],
                    prediction=reading,
                    attention=replay.attention,
                )


def report_localization(
    samples: Iterable[LocalizationSample],
    *,
    field: ReceptiveField,
    validation: Iterable[LocalizationSample] = (),
    share: float,
    rounds: int,
) -> LocalizationReport:
    """Measure where a model looks.

    Args:
        samples: what it read.
        field: of the model.
        validation: other samples, to fit the share of attention that a box holds.
        share: what to take without any.
        rounds: of resampling, for the intervals.

    Raises:
        LocalizationError: if no token was read right and has a true box.
    """
    others = list(validation)
    fit = fit_localization(others, field=field) if others else None
    given = list(samples)
    result = evaluate_localization(given, field=field, share=fit.share if fit else share, rounds=rounds)
    claims = measure_claims((sample.attention, inked_cells(sample, field)) for sample in given)
    gallery = list(islice(given, _NUM_GALLERY))
    section = localization_section(result, claims, field=field, fit=fit, gallery=gallery)
    return LocalizationReport(result, claims, fit, section)


def inked_cells(sample: LocalizationSample, field: ReceptiveField) -> Ink:
    """Tell which cells have ink in their core, (rows, columns)."""
    ink = find_ink(place_on_canvas([sample.pixels], canvas_shape=field.canvas_shape)[0])
    frame = field.rows.core_start_px, field.columns.core_start_px
    rows, columns = field.grid
    cores = ink[
        frame[0] : frame[0] + rows * field.rows.stride_px,
        frame[1] : frame[1] + columns * field.columns.stride_px,
    ]
    return np.asarray(
        cores.reshape(rows, field.rows.stride_px, columns, field.columns.stride_px).any(axis=(1, 3))
    )


def write_localization(report: LocalizationReport, folder: Path, *, title: str) -> None:
    """Write `localization.json` with all figures, and `localization.html` to look at."""
    content = {
        "title": title,
        "localization": asdict(report.result),
        "attention": asdict(report.claims),
        "fit": asdict(report.fit) if report.fit else None,
    }
    with atomic_write(folder / "localization.json") as file:
        json.dump(content, file, ensure_ascii=False, indent=1)
        file.write("\n")
    style = files("i2l.evaluation").joinpath("page", "report.css").read_text(encoding="utf-8")
    with atomic_write(folder / "localization.html") as file:
        file.write(
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
            '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
            f"<title>{escape(title)}</title>\n<style>\n{style}\n</style>\n</head>\n<body>\n"
            f"<header><h1>{escape(title)}</h1></header>\n{report.section}\n</body>\n</html>\n"
        )
