"""One way of opening a split for a model: training, evaluation and calibration see the same images."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from i2l.dataset.format import DatasetError, DatasetReader, PixelBuffer
from i2l.dataset.model_view import (
    JoinedDataset,
    KnownSplit,
    Preparation,
    PreparedSplit,
    _cropped,
    open_split,
)
from i2l.dataset.shards import style_from_text
from i2l.dataset.sources import RECIPES, text_sources
from i2l.evaluation.judge import load_split
from i2l.formulas.vocabulary import Vocabulary
from i2l.images.prepare import FRAME_PX
from tests.dataset.fakes import RECIPE

WORLD = replace(RECIPES["world"], min_token_count=1, val_fraction=0.1, test_fraction=0.1)
CANVAS = (162, 402)
LINES = [f"{a} + {b} = {c}" for a in "abc" for b in "abcx" for c in "xab"] + [f"W + {a}" for a in "abcx"]


@pytest.fixture
def built(small_build, tmp_path):
    (tmp_path / "formulas.txt").write_text("\n".join(LINES))
    sources = text_sources([tmp_path / "formulas.txt"])
    return lambda **changes: small_build(sources, **changes)


def test_a_world_dataset_in_pixel_form_opens_at_the_models_scale(built):
    dataset = built(recipe=WORLD, compact=False)
    stored = dataset.split("train")
    split = JoinedDataset([dataset.path], canvas_shape=CANVAS).split("train", jobs=1)
    images = split.load_all()
    assert len(split) == len(images) > 20
    for number, sample in enumerate(split.ids):
        place = stored.ids.index(sample)
        style = style_from_text(stored.styles[place])
        scale = 200 * 12 / (style.dpi * style.size_pt)
        width = stored.sizes[place, 1] * scale
        assert width * 0.8 - 2 <= images[number].shape[1] <= width + 2  # noise may end in white


def test_a_dataset_opens_at_the_dpi_of_the_model(built):
    dataset = built(out="paper")
    stored = dataset.split("train")
    split = open_split(dataset, "train", canvas_shape=CANVAS, dpi=100, jobs=1)
    places = [stored.ids.index(sample) for sample in split.ids]
    np.testing.assert_allclose(split.sizes, stored.sizes[places] / 2, atol=3)
    joined = JoinedDataset([dataset.path], canvas_shape=CANVAS, dpi=100).split("train", jobs=1)
    np.testing.assert_array_equal(joined.sizes, split.sizes)


def test_what_is_left_out_is_named(built):
    dataset = built(recipe=WORLD)
    stored = dataset.split("train")
    split = open_split(dataset, "train", canvas_shape=CANVAS, jobs=1)
    assert all("W" in formula for formula in split.left_out_formulas)
    assert sorted([*split.ids, *split.left_out]) == sorted(stored.ids)
    assert split.left_out
    both = JoinedDataset([dataset.path, built(out="paper").path], canvas_shape=CANVAS).split("train", jobs=1)
    assert both.left_out == split.left_out
    with pytest.raises(DatasetError, match="can read no sample"):
        open_split(dataset, "train", canvas_shape=(4, 4), jobs=1)


def test_boxes_move_with_the_images(built):
    split = open_split(built(recipe=WORLD, boxes=True), "train", canvas_shape=CANVAS, jobs=1)
    table, row = split.token_boxes(), 0
    for formula, boxes in zip(split.formulas, split.boxes(range(len(split))), strict=True):
        for number, box in enumerate(boxes):
            if number % 2:
                np.testing.assert_allclose(table[row + number], box, atol=1)
            else:
                assert box is None
        row += len(formula.split())
    assert row == len(table)


def test_an_evaluation_reads_what_training_sees(built):
    dataset = built(recipe=WORLD)
    split = open_split(dataset, "train", canvas_shape=CANVAS, limit=12, jobs=1)
    samples = load_split(dataset.path, "train", canvas_shape=CANVAS, limit=12, jobs=1)
    assert len(samples.names) == len(samples.targets) == 12
    assert samples.num_unreadable == len(split.left_out)
    assert samples.names == [*split.ids, *split.left_out]
    for image, prepared in zip(samples.images, split.pixels(range(len(split))), strict=True):
        np.testing.assert_array_equal(image, prepared)


def test_the_papers_style_comes_out_as_it_went_in(built):
    dataset = built(recipe=RECIPE)
    split = open_split(DatasetReader(dataset.path), "train", canvas_shape=CANVAS)
    assert not split.left_out
    np.testing.assert_array_equal(split.load_all().data, dataset.split("train").load_all().data)


def test_samples_of_known_tokens_keep_their_pixels_and_boxes():
    """Against the samples one by one: every third has a token that the vocabulary lacks."""
    formulas = ["x + y", "x", r"\unheard x", "y y", "x y", r"y \unheard", "y"]
    counts = [len(formula.split()) for formula in formulas]
    sizes = np.array([[2, 3], [1, 1], [4, 2], [3, 3], [2, 2], [1, 5], [2, 1]], np.int32)
    offsets = np.concatenate([[0], np.cumsum(sizes.prod(axis=1))])
    whole = SimpleNamespace(
        formulas=formulas,
        ids=[f"s{number}" for number in range(7)],
        sizes=sizes,
        num_tokens=np.array(counts),
        left_out=["before"],
        load_all=lambda *, jobs=None: PixelBuffer(np.arange(offsets[-1], dtype=np.uint8), offsets, sizes),
        token_boxes=lambda: np.arange(4 * sum(counts), dtype=np.int16).reshape(-1, 4),
    )
    known = KnownSplit(whole, Vocabulary.from_formula_tokens(["x", "+", "y"]))
    kept = [0, 1, 3, 4, 6]
    assert known.ids == [f"s{number}" for number in kept]
    assert known.left_out == ["before", "s2", "s5"]
    buffer, starts = known.load_all(), np.cumsum([0, *counts])
    for place, number in enumerate(kept):
        start, size = int(buffer.offsets[place]), int(np.prod(known.sizes[place]))
        assert buffer.data[start : start + size].tolist() == list(range(offsets[number], offsets[number + 1]))
    rows = [row for number in kept for row in range(starts[number], starts[number + 1])]
    assert known.token_boxes().tolist() == whole.token_boxes()[rows].tolist()
    whole.token_boxes = lambda: None
    assert known.token_boxes() is None


@pytest.mark.parametrize(("height", "width", "fits"), [(10, 20, True), (11, 20, False), (10, 21, False)])
def test_clean_pixels_are_cropped_to_their_ink_if_that_fits(height, width, fits):
    image = np.full((height + 9, width + 9), 255, np.uint8)
    image[3 : 3 + height, 4 : 4 + width] = 0
    prepared, ink = _cropped(image, (10 + 2 * FRAME_PX, 20 + 2 * FRAME_PX))
    if fits:
        assert prepared == Preparation(height, width, 1.0, 4, 3)
        assert ink.shape == (height, width)
    assert (ink.size > 0) is fits
    prepared, ink = _cropped(np.full((5, 5), 255, np.uint8), (100, 100))
    assert (prepared, ink.size) == (Preparation(), 0)


def test_boxes_of_all_tokens_are_those_of_each_sample():
    """Samples that were scaled and cropped, the second of which the model cannot read."""
    stored = [[(1, 2, 4, 7), None], [(0, 0, 9, 9)], [(3, 3, 8, 5)]]
    table = np.array([box or (0, 0, 0, 0) for boxes in stored for box in boxes], np.int16)
    split = object.__new__(PreparedSplit)
    split._split = SimpleNamespace(
        token_boxes=lambda: table,
        boxes=lambda indices: [stored[index] for index in indices],
        num_tokens=np.array([2, 1, 1]),
    )
    split._kept = np.array([0, 2])
    split._done = [Preparation(9, 9, 1.2, 0.5, 0.25), Preparation(9, 9, 0.9, 2.0, 1.0)]
    singly = [box or (0, 0, 0, 0) for boxes in split.boxes([0, 1]) for box in boxes]
    assert singly[0] == (1, 2, 4, 8)
    assert split.token_boxes().tolist() == [list(box) for box in singly]
