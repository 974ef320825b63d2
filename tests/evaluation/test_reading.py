"""A model tried on samples: batches change nothing, what does not fit is said, hashes tell models apart."""

import io
import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from PIL import Image
from typer.testing import CliRunner

from i2l.cli import app
from i2l.config import ObjectiveConfig, ReadingOptions, TrainConfig
from i2l.dataset.sources import text_sources
from i2l.errors import I2LError
from i2l.evaluation.compare import EvaluationOptions, PairsError
from i2l.evaluation.judge import (
    BatchReader,
    ReadingLog,
    find_pictures,
    gallery_inputs,
    load_split,
    try_model,
)
from i2l.evaluation.results import save_results
from i2l.formulas.vocabulary import Vocabulary
from i2l.inference.reader import Reader
from i2l.model.calstm.config import CalstmConfig
from i2l.model.calstm.network import Recognizer
from i2l.model.checkpoint import save_checkpoint

TOKENS = ["x", "+", "=", *"abcdef"]
WIDE = ReadingOptions(beam_width=10, guard=False, batch_size=32, device="auto")
SHORT = replace(WIDE, max_tokens=40, device="cpu")  # a network that was not trained never ends
CONFIG = CalstmConfig(
    height_px=64,
    width_px=96,
    channels=(3, 4, 5, 6, 8),
    attention_units=(12, 7),
    embedding_units=5,
    lstm_units=9,
    init_units=6,
    output_units=13,
)


@pytest.fixture
def checkpoint(tmp_path):
    def save(vocabulary, seed=0):
        torch.manual_seed(seed)
        model = Recognizer(CONFIG, vocab_size=len(vocabulary))
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.mul_(3)  # so that readings differ
        path = tmp_path / f"checkpoint-{seed}"
        save_checkpoint(
            path,
            step=1,
            weights=model.state_dict(),
            config={
                "model": CONFIG.to_dict(),
                "objective": ObjectiveConfig().to_dict(),
                "training": TrainConfig().to_dict(),
            },
            vocabulary=vocabulary,
            metrics={},
            training_state=None,
        )
        return path

    return save


def random_images(num_images):
    generator = np.random.default_rng(0)
    shapes = generator.integers(4, 60, size=(num_images, 2))
    return [generator.integers(0, 256, shape, dtype=np.uint8) for shape in shapes]


def test_batches_change_no_reading(checkpoint):
    path = checkpoint(Vocabulary.from_formula_tokens(TOKENS))
    images = random_images(7)
    singly = BatchReader(replace(SHORT, model=path, beam_width=2, batch_size=1)).read(images)
    together = BatchReader(replace(SHORT, model=path, beam_width=2, batch_size=4)).read(images)
    assert singly == together
    assert len(set(singly)) > 1
    assert all(set(reading.split()) <= set(TOKENS) for reading in singly)


def test_an_image_that_does_not_fit_gives_nothing(checkpoint):
    reader = BatchReader(
        replace(WIDE, model=checkpoint(Vocabulary.from_formula_tokens(TOKENS)), beam_width=1)
    )
    images = [*random_images(1), np.zeros((65, 10), np.uint8), np.zeros((10, 97), np.uint8)]
    assert [reader.fits(pixels) for pixels in images] == [True, False, False]
    assert reader.read(images)[1:] == ["", ""]


def test_hashes_tell_models_apart(checkpoint):
    vocabulary = Vocabulary.from_formula_tokens(TOKENS)
    hashes = [
        BatchReader(replace(WIDE, model=path)).describe()["sha256"]
        for path in (checkpoint(vocabulary, 0), checkpoint(vocabulary, 1), checkpoint(vocabulary, 1))
    ]
    assert hashes[0] != hashes[1]
    assert hashes[1] == hashes[2]
    renamed = checkpoint(Vocabulary.from_formula_tokens([*TOKENS[:-1], "g"]), 1)  # the same weights
    assert BatchReader(replace(WIDE, model=renamed)).describe()["sha256"] != hashes[1]


def test_trial_on_a_dataset(checkpoint, small_build, tmp_path):
    (tmp_path / "a.txt").write_text("\n".join(f"x + {a} = {b}" for a in "abcdef" for b in "abcdef"))
    dataset = small_build(text_sources([tmp_path / "a.txt"]))
    samples = load_split(dataset.path, "train", canvas_shape=(66, 98), limit=6, jobs=1)
    assert len(samples.images) == len(samples.targets) == 6
    samples = replace(
        samples, names=[*samples.names, "wide:1"], targets=[*samples.targets, "W"], num_unreadable=1
    )
    read_options = replace(SHORT, beam_width=1)
    reader = BatchReader(replace(read_options, model=checkpoint(dataset.vocabulary)))
    trial = try_model(
        reader,
        samples,
        out=tmp_path / "out",
        options=EvaluationOptions(canonical=False, render=False, rounds=10, jobs=1),
    )
    result = trial.evaluation.result
    assert [" ".join(tokens) for tokens in result.targets] == samples.targets
    assert [" ".join(tokens) for tokens in result.predictions] == [*reader.read(samples.images), ""]
    assert result.faults["image too large at the model's scale, or nothing on it"] == ["wide:1"]
    save_results(result, tmp_path / "results.json")
    source = json.loads((tmp_path / "results.json").read_text())["source"]
    assert len(source["model"]["sha256"]) == len(source["dataset"]["sha256"]) == 64
    assert source["dataset"]["split"] == "train"
    assert source["reading"]["beam_width"] == 1


def draw_pictures(folder, num_pictures):
    """Pictures of a few black letters' worth of strokes, at several scales."""
    folder.mkdir()
    generator = np.random.default_rng(1)
    for number in range(num_pictures):
        zoom = 1 + number % 3
        pixels = np.full((30 * zoom, 70 * zoom), 255, dtype=np.uint8)
        for _ in range(4):
            top, left = generator.integers(4 * zoom, 12 * zoom), generator.integers(2 * zoom, 60 * zoom)
            pixels[top : top + 12 * zoom, left : left + 2 * zoom] = 0
            pixels[top + 10 * zoom : top + 12 * zoom, left : left + 7 * zoom] = 0
        Image.fromarray(pixels).save(folder / f"{number}.png")


def test_pictures_are_read_as_by_the_reader(checkpoint, tmp_path):
    path = checkpoint(Vocabulary.from_formula_tokens(TOKENS))
    draw_pictures(tmp_path / "pictures", 6)
    pictures = sorted((tmp_path / "pictures").iterdir())
    ours = BatchReader(replace(SHORT, model=path, beam_width=3, batch_size=4)).read_pictures(pictures)
    readings = Reader(path, beam_width=3, guard=False, batch_size=2, max_tokens=40).read_many(pictures)
    assert ours == [" ".join(reading.tokens) for reading in readings]


def test_trial_on_a_folder(checkpoint, tmp_path):
    folder = tmp_path / "pictures"
    draw_pictures(folder, 4)
    (folder / "broken.png").write_bytes(b"no image")
    (folder / "about.txt").write_text("no picture")
    names = ["0.png", "broken.png", "nowhere.png", "1.png", "2.png"]
    labels = tmp_path / "labels.tsv"
    labels.write_text("".join(f"{name}\tx + a\n" for name in names))
    read_options = replace(SHORT, beam_width=1)
    trial = try_model(
        BatchReader(replace(read_options, model=checkpoint(Vocabulary.from_formula_tokens(TOKENS)))),
        find_pictures(folder, labels),
        out=tmp_path / "out",
        options=EvaluationOptions(canonical=False, render=False, rounds=10, jobs=1),
    )
    result = trial.evaluation.result
    assert len(result) == 5
    assert result.predictions[1] == result.predictions[2] == []
    assert result.faults["picture missing"] == ["nowhere.png"]
    assert result.faults["picture without label"] == ["3.png"]
    assert [place.partition(":")[0] for place in result.faults["picture not read"]] == [
        "broken.png",
        "nowhere.png",
    ]


def test_a_report_shows_large_pictures_small(tmp_path):
    Image.new("L", (4000, 1200), 255).save(tmp_path / "scan.png")
    (tmp_path / "broken.png").write_bytes(b"no image")
    shown, nothing = gallery_inputs([tmp_path / "scan.png", tmp_path / "broken.png"], [None, None])
    with Image.open(io.BytesIO(shown)) as picture:
        assert picture.size == (1333, 400)
    assert nothing == b""


def test_labels_must_name_pictures(tmp_path):
    (tmp_path / "labels").write_text("x + a\n")
    with pytest.raises(PairsError, match="must name"):
        find_pictures(tmp_path, tmp_path / "labels")
    with pytest.raises(PairsError, match="no folder"):
        find_pictures(tmp_path / "nowhere", tmp_path / "labels")


def test_a_killed_reading_goes_on(tmp_path):
    images = random_images(5)
    asked = []

    def read(some):
        asked.append(len(some))
        return [
            I2LError("too dark") if pixels.shape == images[0].shape else str(pixels.shape) for pixels in some
        ]

    path = tmp_path / "readings.jsonl"
    first = ReadingLog(path, reader={"model": 1}).read(images[:3], read, kind="plain")
    content = path.read_bytes()
    path.write_bytes(content[:-10])  # killed while it wrote
    log = ReadingLog(path, reader={"model": 1})
    found = log.read(images, read, kind="plain")
    assert asked == [3, 3]  # the two whole ones are known
    assert [str(reading) for reading in found[:3]] == [str(reading) for reading in first]
    assert str(found[0]) == "too dark"
    assert isinstance(found[0], I2LError)
    log.read(images, read, kind="picture")
    ReadingLog(path, reader={"model": 2}).read(images, read, kind="plain")
    assert asked == [3, 3, 5, 5]  # another way of reading, another model


def test_labels_in_ordinary_latex(checkpoint, tmp_path, monkeypatch):
    """Labels are made canonical, as references are; one that cannot be parsed is named and counted."""
    folder = tmp_path / "pictures"
    draw_pictures(folder, 4)
    (tmp_path / "labels.tsv").write_text(
        "0.png\tx^2+a\n1.png\t\\frac{a}{b}\n2.png\t{x\n3.png\tx+{a\\over b}\n"
    )
    written = ["x ^ { 2 } + a", r"\frac { a } { b }", "x", r"x + { \frac { a } { b } }"]
    monkeypatch.setattr(BatchReader, "read_pictures", lambda self, pictures: written)
    model = checkpoint(Vocabulary.from_formula_tokens(TOKENS))
    command = ["evaluate", "--model", str(model), "--images", str(folder)]
    command += ["--labels", str(tmp_path / "labels.tsv"), "--text-only", "--rounds", "10", "--out"]
    done = CliRunner().invoke(app, [*command, str(tmp_path / "out")], env={"COLUMNS": "120"})
    assert done.exit_code == 0, done.exception
    assert "1 × unparsed target: 2.png" in done.output
    content = json.loads((tmp_path / "out" / "results.json").read_text())
    assert content["figures"]["exact_match"]["value"] == 0.75
    assert content["samples"]["target"][0] == "x ^ { 2 } + a"
    assert content["source"]["reading"]["guard"] is True
    done = CliRunner().invoke(app, [*command, str(tmp_path / "as-is"), "--as-is"])
    content = json.loads((tmp_path / "as-is" / "results.json").read_text())
    assert content["figures"]["exact_match"]["value"] == 0
