"""The dataset as others open it."""

import json
from types import SimpleNamespace

import numpy as np
import pyarrow.parquet as pq
import pytest
from PIL import Image

from i2l.dataset.format import (
    ZOOM_ROOM_PX,
    DatasetError,
    DatasetReader,
    StoredSamples,
    _has_shape,
    fill_buffer,
)
from i2l.dataset.sources import text_sources
from tests.damage import damages


@pytest.fixture
def dataset(small_build, tmp_path):
    (tmp_path / "a.txt").write_text("\n".join(f"x + {a} = {b}" for a in "abcdef" for b in "abcdef"))
    return small_build(text_sources([tmp_path / "a.txt"]))


def test_hugging_face_opens_it(dataset, tmp_path, monkeypatch):
    monkeypatch.setenv("HF_DATASETS_OFFLINE", "1")
    datasets = pytest.importorskip("datasets")
    opened = datasets.load_dataset(str(dataset.path), cache_dir=str(tmp_path / "cache"))
    assert {name: len(split) for name, split in opened.items()} == {
        name: len(dataset.split(name)) for name in dataset.splits
    }
    row, split = opened["train"][1], dataset.split("train")
    assert (row["formula"], row["id"]) == (split.formulas[1], split.ids[1])
    assert row["tokens"] == split.formulas[1].split()
    assert row["image"].size == (row["width"], row["height"]) == tuple(split.sizes[1][::-1])
    assert row["boxes"][:2] == [None, [1, 0, 2, 10]]
    assert row["style"] == "paper"


def test_pyarrow_opens_it(dataset):
    table = pq.read_table(dataset.path / "data")
    assert len(table) == dataset.card["num_kept"]
    assert table["image"][0].as_py()["bytes"].startswith(b"\x89PNG")


def test_what_is_no_dataset_is_refused(dataset, tmp_path):
    with pytest.raises(DatasetError, match="not a dataset made by"):
        DatasetReader(tmp_path)
    with pytest.raises(DatasetError, match="no split 'train2'; it has: train, val, test"):
        dataset.split("train2")
    (dataset.path / "data/val-00000-of-00001.parquet").unlink()
    with pytest.raises(DatasetError, match=r"missing: .*val-00000"):
        dataset.split("val")
    (dataset.path / "SHA256SUMS").unlink()
    card = dataset.path / "dataset.json"
    card.write_text(json.dumps(json.loads(card.read_text()) | {"format": "i2l-dataset-0"}))
    with pytest.raises(DatasetError, match="of this version"):
        DatasetReader(dataset.path)


def use(path):
    """Read all that a dataset has."""
    reader = DatasetReader(path)
    assert reader.vocabulary
    assert all(reader.split(name).formulas for name in reader.splits)
    reader.verify()


def test_every_damaged_file_is_named(dataset):
    use(dataset.path)
    seen = set()
    for name in damages(dataset.path):
        seen.add(name)
        with pytest.raises(DatasetError) as caught:
            use(dataset.path)
        assert name in str(caught.value) or name == "SHA256SUMS"
        assert "\n" not in str(caught.value)
    assert {"dataset.json", "vocab.json", "README.md", "data/train-00000-of-00001.parquet"} < seen


def test_a_damaged_split_is_not_read(dataset):
    """A byte within the pixels or the formulas, which Parquet itself does not notice."""
    [file] = (dataset.path / "data").glob("train-*")
    content = bytearray(file.read_bytes())
    content[len(content) // 3] ^= 1
    file.write_bytes(content)
    with pytest.raises(DatasetError, match=r"train-00000-of-00001\.parquet is missing or damaged"):
        DatasetReader(dataset.path).split("train")


def test_a_damaged_file_is_named(dataset):
    split = dataset.split("train")
    assert len(split.sizes) == len(split._places[1])  # read before the damage
    [file] = (dataset.path / "data").glob("train-*")
    file.write_bytes(file.read_bytes()[:-9])
    with pytest.raises(
        DatasetError,
        match=r"is damaged.*train-00000-of-00001\.parquet|train-00000-of-00001\.parquet is damaged",
    ):
        split.pixels([0])


def test_sizes_that_do_not_fit_the_pixels_are_noticed(dataset):
    split = dataset.split("train")
    split.sizes[0] += 1
    with pytest.raises(DatasetError, match=r"Sample 0 of .* is not"):
        split.pixels([0])


def test_pixels_for_which_the_disk_has_no_room_are_an_error_before_the_work(monkeypatch, tmp_path):
    monkeypatch.setattr("i2l.dataset.format.MIN_SAMPLES_FOR_PROCESSES", 1)
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=999))
    places = np.zeros(1, np.int32)
    samples = StoredSamples(tmp_path / "none", places, ["paper"], np.ones((1, 2), np.int32), places)
    with pytest.raises(DatasetError, match="set TMPDIR to a larger disk"):
        fill_buffer(1_000, [samples], print, jobs=2)


@pytest.mark.parametrize(("zoom", "room"), [(1.0, 0), (2.0, ZOOM_ROOM_PX), (0.5, ZOOM_ROOM_PX)])
def test_an_image_has_the_size_that_was_stored_up_to_the_room_of_a_zoom(zoom, room):
    height, width = int(40 * zoom), int(60 * zoom)
    for down, right, fits in [(0, 0, True), (room, -room, True), (room + 1, 0, False), (0, -room - 1, False)]:
        image = np.zeros((height + down, width + right), np.uint8)
        for given in (image, Image.fromarray(image)):
            assert _has_shape(given, np.array([40, 60], np.int32), zoom) is fits
