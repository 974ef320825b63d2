"""Builds with the real renderer: both forms alike, killed builds, Ray."""

import os
import random
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from i2l.dataset import shards
from i2l.dataset.build import BuildOptions, EngineOptions, build_dataset
from i2l.dataset.extract import ExtractOptions, extract_formulas
from i2l.dataset.format import DatasetReader
from i2l.dataset.model_view import JoinedDataset, PreparedSplit
from i2l.dataset.sources import RECIPES, text_sources
from i2l.dataset.work import BuildError
from i2l.images.prepare import prepare_image
from i2l.rendering.styles import FONTS, world_style
from i2l.rendering.tex import TexError
from tests.dataset.fakes import folder_bytes
from tests.dataset.test_pictures import build as build_pictures
from tests.dataset.test_pictures import folder  # noqa: F401 - a fixture

pytestmark = pytest.mark.tex

RECIPE = replace(RECIPES["im2latex-90k"], min_token_count=2, val_fraction=0.1, test_fraction=0.1)
OPTIONS = BuildOptions(recipe=RECIPE, part_lines=36)


def formula_lines(count):
    """Formulas with fractions, roots, arrays and text, a few of them bad."""
    kinds = [
        r"\frac{%s}{1+x} = \sqrt{y_{%d}}",
        r"\left( %s^{%d} + \hat a \right)",
        r"\begin{array}{ll} %s & %d \\ b & c \end{array}",
        r"\sum_{i=0}^{%s} \mathbf{v}_%d \hspace{1cm} \mbox{if so}",
        r"%s \undefined %d",
        r"\int_0^\infty e^{-%s t} \, d t = %d",
    ]
    return [kinds[i % len(kinds)] % ("abcdefgh"[i % 8], i // 8) for i in range(count)]


@pytest.fixture
def sources(tmp_path):
    (tmp_path / "formulas.txt").write_text("\n".join(formula_lines(72)))
    return text_sources([tmp_path / "formulas.txt"])


def build(sources, out, options=OPTIONS, jobs=1, engine="local"):
    engine = EngineOptions(name=engine, jobs=jobs)
    return build_dataset(sources, out=out, options=options, engine=engine, quiet=True)


def test_token_boxes_are_the_boxes_of_all_samples(sources, tmp_path):
    split = build(sources, tmp_path / "pixels").split("train")
    table, row = split.token_boxes(), 0
    for formula, boxes in zip(split.formulas, split.boxes(range(len(split))), strict=True):
        count = len(formula.split())
        expected = [box or (0, 0, 0, 0) for box in boxes or [None] * count]
        assert table[row : row + count].tolist() == [list(box) for box in expected]
        row += count
    assert row == len(table)
    without = build(sources, tmp_path / "bare", replace(OPTIONS, boxes=False)).split("train")
    assert without.token_boxes() is None


@pytest.mark.parametrize("name", ["world", "photo"])
def test_a_prepared_split_is_what_a_reader_sees(sources, tmp_path, name):
    recipe = replace(RECIPES[name], min_token_count=2, val_fraction=0.1, test_fraction=0.1)
    world = build(sources, tmp_path / "world", replace(OPTIONS, recipe=recipe, compact=True)).split("train")
    canvas_shape = (258, 1282)
    prepared = PreparedSplit(world, canvas_shape=canvas_shape, jobs=1)
    assert len(prepared.formulas) == len(prepared.ids) == len(prepared.sizes) > 0.8 * len(world)
    images, boxes = prepared.load_all(), prepared.token_boxes()
    heights = []
    row = 0
    for number, (formula, sample_id) in enumerate(zip(prepared.formulas, prepared.ids, strict=True)):
        index = world.ids.index(sample_id)
        style = shards.style_from_text(world.styles[index])
        scale = 2400 / (style.dpi * style.size_pt)
        (expected,) = prepare_image(world.pixels([index])[0], canvas_shape=canvas_shape, scale=scale)
        assert np.array_equal(images[number], expected.pixels)
        for token, box in zip(formula.split(), boxes[row:], strict=False):
            if token == "=" and box[2] > box[0]:
                heights.append(box[3] - box[1])
        row += len(formula.split())
    assert row == len(boxes)
    assert np.std(heights) < 0.25 * np.mean(heights)  # all at one scale, whatever the dpi and the font


def test_datasets_join(sources, tmp_path):
    build(sources, tmp_path / "paper", replace(OPTIONS, compact=True, boxes=False))
    recipe = replace(RECIPES["world"], min_token_count=1, val_fraction=0.1, test_fraction=0.1)
    build(sources, tmp_path / "world", replace(OPTIONS, recipe=recipe, compact=True))
    joined = JoinedDataset([tmp_path / "paper", tmp_path / "world"], canvas_shape=(258, 1282))
    paper, world = (DatasetReader(tmp_path / name) for name in ("paper", "world"))
    assert set(joined.vocabulary.tokens) == set(paper.vocabulary.tokens) | set(world.vocabulary.tokens)
    train, first = joined.split("train"), paper.split("train")
    assert train.formulas[: len(first)] == first.formulas
    assert len(train.formulas) == len(train.sizes) == len(train.ids) > len(first)
    images, own = train.load_all(jobs=1), first.load_all(jobs=1)
    for index in (0, len(own) - 1):
        assert np.array_equal(images[index], own[index])
    for index in (len(own), len(train.sizes) - 1):
        assert images[index].shape == tuple(train.sizes[index])
        assert images[index].min() < 100
    boxes = train.token_boxes()
    num_own = sum(len(formula.split()) for formula in first.formulas)
    assert not boxes[:num_own].any()
    assert boxes[num_own:].any()
    assert joined.split("val").formulas == paper.split("val").formulas


def test_both_forms_give_the_same_arrays(sources, tmp_path):
    one = build(sources, tmp_path / "pixels")
    other = build(sources, tmp_path / "compact", replace(OPTIONS, compact=True))
    assert one.vocabulary == other.vocabulary
    assert one.splits == other.splits == ("train", "val", "test")
    for name in one.splits:
        first, second = one.split(name), other.split(name)
        assert first.formulas == second.formulas
        np.testing.assert_array_equal(first.load_all().data, second.load_all().data)
        assert first.boxes([0]) == second.boxes([0])
        [drawn], [stored] = first.pixels([len(first) - 1]), second.pixels([len(first) - 1])
        np.testing.assert_array_equal(drawn, stored)
    assert one.card["verdicts"]["train"]["tex-error"] > 0


WORLD = replace(RECIPES["world"], min_token_count=1, val_fraction=0.1, test_fraction=0.1)


@pytest.mark.slow
def test_styles_of_the_world_in_both_forms(sources, tmp_path, monkeypatch):
    fonts = ["computer-modern", "latin-modern"]  # the others need more packages than tests may ask for
    monkeypatch.setattr(shards, "FONTS", fonts)
    monkeypatch.setattr(
        shards, "world_style", lambda seed: replace(world_style(seed), font=fonts[seed // 36 % 2], bold=False)
    )
    options = replace(OPTIONS, recipe=WORLD, seed=7)
    one = build(sources, tmp_path / "pixels", options).split("train")
    other = build(sources, tmp_path / "compact", replace(options, compact=True, boxes=False)).split("train")
    assert len(set(one.styles)) == len(one)
    assert one.styles == other.styles
    np.testing.assert_array_equal(one.load_all().data, other.load_all().data)


def test_a_missing_font_is_an_error_before_the_work(sources, tmp_path, monkeypatch):
    monkeypatch.setitem(FONTS, "lead", r"\usepackage{leadtype}")
    monkeypatch.setattr(shards, "FONTS", ["lead"])
    with pytest.raises(TexError, match=r"leadtype\.sty"):
        build(sources, tmp_path / "out", replace(OPTIONS, recipe=WORLD))
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_processes_load_what_one_process_loads(sources, tmp_path, monkeypatch):
    monkeypatch.setattr("i2l.dataset.format.MIN_SAMPLES_FOR_PROCESSES", 1)
    monkeypatch.setattr("i2l.dataset.format.SAMPLES_PER_TASK", 10)
    for compact in (False, True):
        split = build(sources, tmp_path / f"compact-{compact}", replace(OPTIONS, compact=compact)).split(
            "train"
        )
        order = random.Random(0).sample(range(len(split)), len(split))
        for one, other in zip(split.pixels(order, jobs=1), split.pixels(order, jobs=2), strict=True):
            np.testing.assert_array_equal(one, other)


MANY_PARTS = replace(OPTIONS, boxes=False, part_lines=20)
COMMAND = """
import sys
from pathlib import Path
from tests.dataset.test_build_tex import MANY_PARTS, build
from i2l.dataset.sources import text_sources
if __name__ == "__main__":
    build(text_sources([Path(sys.argv[1])]), Path(sys.argv[2]), MANY_PARTS, jobs=2)
"""


@pytest.mark.slow
def test_killed_twenty_times_and_resumed(tmp_path):
    source = tmp_path / "formulas.txt"
    source.write_text("\n".join(formula_lines(300)))
    expected = folder_bytes(build(text_sources([source]), tmp_path / "undisturbed", MANY_PARTS).path)
    script = tmp_path / "build.py"
    script.write_text(COMMAND)
    out = tmp_path / "out"
    rng = random.Random(3)
    kills = 0
    for attempt in range(60):
        process = subprocess.Popen(
            [sys.executable, script, source, out],
            start_new_session=True,
            env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        )
        try:
            # the first second goes by with imports
            process.wait(timeout=rng.uniform(0.7, 2.4) if kills < 20 else 200)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            kills += 1
            assert not out.exists() or folder_bytes(out) == expected
            continue
        assert process.returncode == 0, attempt
        if kills >= 20:
            break
        (out).rename(tmp_path / f"early-{attempt}")  # done before the twentieth kill: once more
    assert kills == 20
    assert folder_bytes(out) == expected


@pytest.fixture
def local_ray():
    """Ray gives its node 30 s to start, which a busy machine may not make at once."""
    ray = pytest.importorskip("ray")
    for patience in (2, 1, 0):
        try:
            ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False)
            break
        except Exception:
            ray.shutdown()
            if not patience:
                raise
    yield
    ray.shutdown()


def fail(part):
    raise BuildError(f"part {part} has no room")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # Ray's own
def test_ray_gives_the_same_bytes(sources, tmp_path, local_ray, folder):  # noqa: F811
    expected = folder_bytes(build(sources, tmp_path / "local").path)
    assert folder_bytes(build(sources, tmp_path / "ray", jobs=2, engine="ray").path) == expected
    expected = folder_bytes(build_pictures(folder, tmp_path / "local-pictures").path)
    pictures = build_pictures(folder, tmp_path / "ray-pictures", engine=EngineOptions(name="ray", jobs=2))
    assert folder_bytes(pictures.path) == expected
    for number in range(3):
        (tmp_path / "papers" / str(number)).mkdir(parents=True)
        (tmp_path / "papers" / str(number) / "a.tex").write_text(rf"\documentclass{{a}}\[ x_{number} \]")
    for engine in ("local", "ray"):
        workers = EngineOptions(name=engine, jobs=1)
        out = tmp_path / f"{engine}.jsonl"
        extract_formulas([tmp_path / "papers"], out=out, options=ExtractOptions(), engine=workers, quiet=True)
    assert (tmp_path / "ray.jsonl").read_bytes() == (tmp_path / "local.jsonl").read_bytes() != b""
    with pytest.raises(BuildError, match="On a node of the cluster: part 1 has no room"):
        list(EngineOptions(name="ray").start(tmp_path).run(fail, [1]))
