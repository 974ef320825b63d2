import numpy as np
import pytest
import torch

from i2l.formulas.vocabulary import UnknownTokenError, Vocabulary
from i2l.model.network import Window
from i2l.training import device_split
from i2l.training.device_split import DataError, ResidentSplit
from tests.training.conftest import MemorySplit

VOCABULARY = Vocabulary.from_formula_tokens(["a", "b", "c"])


def random_split(rng, count, max_height, max_width):
    shapes = zip(rng.integers(1, max_height + 1, count), rng.integers(1, max_width + 1, count), strict=True)
    images = [rng.integers(0, 256, shape, dtype=np.uint8) for shape in shapes]
    return MemorySplit(
        [" ".join("abc"[i] for i in rng.integers(0, 3, 1 + n % 7)) for n in range(count)], images
    )


def load(split, **changes):
    settings = {"vocabulary": VOCABULARY, "canvas_shape": (10, 34), "device": torch.device("cpu")} | changes
    return ResidentSplit(split, **settings)


def test_images_stand_centred_on_white(monkeypatch):
    monkeypatch.setattr(device_split, "CHUNK_BYTES", 100)
    split = random_split(np.random.default_rng(0), 20, 8, 32)
    data = load(split)
    indices = torch.tensor([19, 0, 7, 7, 4])
    canvases = data.canvases(indices)
    assert canvases.dtype == torch.uint8
    for canvas, index in zip(canvases.numpy(), indices.tolist(), strict=True):
        image = split.images[index]
        expected = np.full((10, 34), 255, dtype=np.uint8)
        top, left = (10 - image.shape[0]) // 2, (34 - image.shape[1]) // 2
        expected[top : top + image.shape[0], left : left + image.shape[1]] = image
        assert np.array_equal(canvas, expected)
    view = data.windows(indices, Window(height_px=6, width_px=20, top_px=1, left_px=6))
    assert torch.equal(view, canvases[:, 2:8, 7:27])


def test_labels_are_respelt_on_request():
    split = MemorySplit(["a { b }"], [np.zeros((2, 2), np.uint8)])
    split.formulas = [r"\mathcal { b }"]
    vocabulary = Vocabulary.from_formula_tokens([r"\mathcal", r"\cal", "{", "}", "b"])
    written, respelt = (
        load(split, vocabulary=vocabulary, spelling=spelling) for spelling in ("written", "im2latex")
    )
    for data, expected in ((written, r"\mathcal { b }"), (respelt, r"{ \cal b }")):
        token_ids, _ = data.targets(torch.tensor([0]), num_tokens=5)
        assert " ".join(vocabulary.decode(token_ids[0].tolist())) == expected


def test_boxes_lie_beside_their_tokens():
    split = MemorySplit(["a b", "c"], [np.zeros((2, 2), np.uint8)] * 2)
    split.token_boxes = lambda: np.array([[1, 2, 3, 4], [0, 0, 0, 0], [5, 6, 7, 8]], np.int16)
    boxes = load(split, boxes=True).boxes(torch.tensor([1, 0]), num_tokens=3)
    assert boxes.tolist() == [[[5, 6, 7, 8], [0] * 4, [0] * 4], [[1, 2, 3, 4], [0] * 4, [0] * 4]]
    split.token_boxes = lambda: None
    with pytest.raises(DataError, match=r"guidance and objective\.placement need the boxes of tokens"):
        load(split, boxes=True)


def test_targets_end_and_are_padded_with_eos():
    data = load(MemorySplit(["a b", "c", "b b b"], [np.zeros((2, 2), np.uint8)] * 3))
    token_ids, lengths = data.targets(torch.tensor([2, 0, 1]), num_tokens=5)
    assert token_ids.tolist() == [[3, 3, 3, 0, 0], [2, 3, 0, 0, 0], [4, 0, 0, 0, 0]]
    assert lengths.tolist() == [4, 3, 2]
    assert data.lengths.tolist() == [3, 2, 4]


def test_samples_that_do_not_fit_are_named():
    with pytest.raises(DataError, match="1 images are larger than the model's 8 x 32 px"):
        load(MemorySplit(["a", "a"], [np.zeros((8, 32), np.uint8), np.zeros((9, 4), np.uint8)]))


def test_a_token_outside_the_vocabulary_never_matches():
    split = MemorySplit(["a z"], [np.zeros((2, 2), np.uint8)])
    with pytest.raises(UnknownTokenError, match="'z'"):
        load(split)
    token_ids, _ = load(split, unknown_tokens=True).targets(torch.tensor([0]), num_tokens=3)
    assert token_ids.tolist() == [[2, len(VOCABULARY), 0]]
