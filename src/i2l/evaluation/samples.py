"""Images with their formulas, for a model to be tried on: a split of a dataset, or a folder with labels."""

import io
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from PIL import Image

from i2l.dataset.format import CARD_FILE, DatasetReader
from i2l.dataset.prepared import open_split
from i2l.evaluation.image_match import Pixels
from i2l.evaluation.pairs import PairsError, read_targets
from i2l.evaluation.results import describe_file, hash_files
from i2l.evaluation.visual import VisualSample, encode_png
from i2l.images.open import SUFFIXES, ImageError, open_image

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
    data: Path, split: str, *, canvas_shape: tuple[int, int], limit: int = 0, jobs: int | None = None
) -> Samples:
    """Read a split of a dataset as a model sees it; only its first samples, if ``limit`` is not 0.

    Raises:
        DatasetError: if there is no such dataset or split.
    """
    rows = open_split(DatasetReader(data), split, canvas_shape=canvas_shape, limit=limit, jobs=jobs)
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
