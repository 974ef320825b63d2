"""A small model that has learnt eight formulas by heart, as a checkpoint and as exported folders."""

import json
import os
from pathlib import Path

import numpy as np
import pytest
import torch
from filelock import FileLock
from PIL import Image, ImageDraw, ImageFont

from i2l.config import ObjectiveConfig, TrainConfig
from i2l.files import CHECKSUMS
from i2l.formulas.vocabulary import Vocabulary
from i2l.images.prepare import place_on_canvas
from i2l.inference.model_folder import CONFIG as CONFIG_FILE
from i2l.inference.model_folder import ENTRY_POINTS
from i2l.model.calstm.config import CalstmConfig
from i2l.model.calstm.network import Recognizer
from i2l.model.checkpoint import save_checkpoint

FORMULAS = [
    "a",
    "b + c",
    "a = b",
    "x ^ { 2 } = y",
    "x ^ { a + b }",
    "c _ { 2 } + x",
    "y = x ^ { 2 } + c",
    "a + b + c = x",
]
CONFIG = CalstmConfig(
    height_px=64,
    width_px=192,
    channels=(8, 12, 16, 24, 24),
    attention_units=(32, 24),
    embedding_units=16,
    lstm_units=64,
    init_units=16,
    output_units=64,
)


def draw_formula(formula, *, ink=0, paper=255, size=30):
    """Draw letters and scripts one after the other; grey pixels with a margin."""
    canvas = Image.new("L", (12 * size, 3 * size), paper)
    pen = ImageDraw.Draw(canvas)
    left, level, small = 10, 0, False
    for token in formula.split(" "):
        if token in "^_":
            level = -size // 2 if token == "^" else size // 2
        elif token in "{}":
            small = token == "{"
            level = level if small else 0
        else:
            font = ImageFont.load_default(size * 2 // 3 if small else size)
            pen.text((left, size + level), token, ink, font, anchor="lm")
            left += round(font.getlength(token)) + 3
    return np.asarray(canvas)[:, : left + 10]


def ink_of(pixels):
    rows, columns = np.nonzero(pixels < 255)
    return pixels[rows.min() : rows.max() + 1, columns.min() : columns.max() + 1]


def train_by_heart(vocabulary):
    torch.manual_seed(0)
    model = Recognizer(CONFIG, vocab_size=len(vocabulary))
    images = [ink_of(draw_formula(formula)) for formula in FORMULAS]
    pixels = torch.from_numpy(place_on_canvas(images, canvas_shape=CONFIG.canvas_shape))
    ids = [[*vocabulary.encode(formula.split(" ")), 0] for formula in FORMULAS]
    lengths = torch.tensor([len(row) for row in ids])
    token_ids = torch.zeros(len(ids), int(lengths.max()), dtype=torch.int64)
    for row, values in zip(token_ids, ids, strict=True):
        row[: len(values)] = torch.tensor(values)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for _ in range(400):
        loss = model.loss(
            model(pixels, token_ids, lengths), token_ids, lengths, objective=ObjectiveConfig(l2=0)
        )
        optimizer.zero_grad()
        loss.total.backward()
        optimizer.step()
        if loss.total < 0.02:
            break
    return model


@pytest.fixture(scope="session")
def shared_folder(tmp_path_factory):
    """A folder that all worker processes of one test run share."""
    root = tmp_path_factory.getbasetemp()
    root = root.parent if os.environ.get("PYTEST_XDIST_WORKER") else root
    folder = root / "inference"
    folder.mkdir(exist_ok=True)
    return folder


@pytest.fixture(scope="session")
def checkpoint(shared_folder):
    """The trained model as a checkpoint folder."""
    path = shared_folder / "checkpoint"
    with FileLock(shared_folder / "checkpoint.lock"):
        if not path.exists():
            vocabulary = Vocabulary.from_formula_tokens({t for f in FORMULAS for t in f.split(" ")})
            model = train_by_heart(vocabulary)
            save_checkpoint(
                path,
                step=400,
                weights=model.state_dict(),
                config={
                    "model": CONFIG.to_dict(),
                    "objective": ObjectiveConfig().to_dict(),
                    "training": TrainConfig().to_dict(),
                },
                vocabulary=vocabulary,
                metrics={"bleu": 1.0},
                training_state=None,
            )
    return path


@pytest.fixture(scope="session")
def exported(shared_folder, checkpoint):
    """The trained model, exported in each precision: a folder by its name."""
    from i2l.inference import export

    path = shared_folder / "exported"
    with FileLock(shared_folder / "exported.lock"):
        if not path.exists():
            traced = {}
            trace = export._to_onnx

            def trace_once(module, *args, **options):
                """The networks of all precisions are the same before they are made smaller."""
                kind = type(module)
                if kind not in traced:
                    traced[kind] = trace(module, *args, **options)
                copy = type(traced[kind])()
                copy.CopyFrom(traced[kind])
                return copy

            export._to_onnx, large = trace_once, export.INT4_MIN_WEIGHTS
            export.INT4_MIN_WEIGHTS = 1 << 10  # the matrices of this network are small
            try:
                for precision in ("float32", "float16", "int8", "int4"):
                    export.export_model(checkpoint, path.with_suffix(".new") / precision, precision=precision)
            finally:
                export._to_onnx, export.INT4_MIN_WEIGHTS = trace, large
            path.with_suffix(".new").rename(path)
    return {folder.name: folder for folder in sorted(Path(path).iterdir())}


def taught_handwriting(model, folder, *, licence="CC BY-NC-SA 3.0"):
    """A copy of a model that says that it was taught handwriting."""
    folder.mkdir(parents=True)
    for path in model.iterdir():
        if path.name == CONFIG_FILE:
            content = json.loads(path.read_text())
            content["source"] |= {"handwriting": True, "licence": licence}
            (folder / CONFIG_FILE).write_text(json.dumps(content))
        elif path.name != CHECKSUMS:
            (folder / path.name).symlink_to(path)
    return folder


def make_installed(folder, package, models):
    """What pip leaves behind where it has installed a distribution with models."""
    (folder / package).mkdir(parents=True)
    for name, path in models.items():
        (folder / package / name).symlink_to(path)
    about = folder / f"{package}-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    entries = "\n".join(f"{name} = {package}" for name in models)
    (about / "entry_points.txt").write_text(f"[{ENTRY_POINTS}]\n{entries}\n")
    return folder
