"""Small datasets in memory, and a model small enough to train in seconds on a CPU."""

import random
import shutil

import numpy as np
import pytest
from PIL import Image, ImageDraw

from i2l.dataset.format import PixelBuffer, pixel_offsets
from i2l.formulas.vocabulary import Vocabulary
from i2l.rendering.render import render_formulas
from i2l.rendering.styles import Style
from i2l.training.device_split import ResidentSplit
from i2l.training.run import build_trainer
from i2l.training.settings import resolve_config

SMALL_MODEL = {
    "height_px": 32,
    "width_px": 80,
    "channels": [8, 16, 24, 32],
    "attention_units": [32, 32],
    "embedding_units": 16,
    "lstm_units": 64,
    "init_units": 16,
    "output_units": 32,
}


class MemorySplit:
    left_out = ()

    def __init__(self, formulas, images):
        self.formulas, self.images = formulas, images
        self.ids = [f"memory:{number}" for number in range(len(formulas))]
        self.sizes = np.array([image.shape for image in images])

    def load_all(self, *, jobs=None):
        flat = np.concatenate([image.ravel() for image in self.images])
        return PixelBuffer(flat, pixel_offsets(self.sizes), self.sizes)


class MemoryDataset:
    def __init__(self, vocabulary, splits):
        self.vocabulary, self._splits = vocabulary, splits
        self.splits = tuple(splits)

    def split(self, name, *, jobs=None):
        return self._splits[name]


def make_trainer(dataset, config, processes):
    """The training split of a dataset on the processes' device, and a trainer for it."""
    data = ResidentSplit(
        dataset.split("train"),
        vocabulary=dataset.vocabulary,
        canvas_shape=config.model.canvas_shape,
        device=processes.device,
    )
    return data, build_trainer(data, config=config, vocab_size=len(dataset.vocabulary), processes=processes)


def make_formulas(count, *, seed=0):
    """Distinct canonical formulas of 4 to 15 tokens."""
    rng = random.Random(seed)
    parts = ["{0} + {1}", "{0} _ {{ {1} }}", "{0} ^ {{ {1} }}", "\\frac {{ {0} }} {{ {1} }}", "{0} = {1} {0}"]
    formulas = {}
    while len(formulas) < count:
        letters = [rng.choice("abcdexyz123") for _ in range(4)]
        pairs = [letters[:2], letters[2:]][: rng.choice([1, 2])]
        formulas[" ".join(rng.choice(parts).format(*pair) for pair in pairs)] = None
    return list(formulas)


def draw_formulas(formulas):
    """Render by TeX where it is installed; else draw the tokens as text."""
    if shutil.which("pdflatex"):
        return [result.pixels for result in render_formulas(formulas, style=Style(dpi=70))]
    images = []
    for formula in formulas:
        image = Image.new("L", (78, 14), 255)
        ImageDraw.Draw(image).text((1, 1), formula.replace(" ", "")[:12], fill=0)
        images.append(np.asarray(image))
    return images


def make_dataset(count, *, num_validation=8):
    formulas = make_formulas(count)
    images = draw_formulas(formulas)
    vocabulary = Vocabulary.from_formula_tokens(token for formula in formulas for token in formula.split())
    validation = MemorySplit(formulas[:num_validation], images[:num_validation])
    return MemoryDataset(vocabulary, {"train": MemorySplit(formulas, images), "val": validation})


def small_config(model=None, objective=None, **training):
    settings = {"batch_size": 8, "length_classes": [8, 16], "log_every": 5, "seed": 3} | training
    changes = {"model": SMALL_MODEL | (model or {}), "training": settings, "objective": objective or {}}
    return resolve_config(changes=changes)


@pytest.fixture(scope="session")
def dataset():
    return make_dataset(64)
