import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from i2l.images.prepare import ImageTooLargeError
from i2l.images.prepare import place_on_canvas as place_arrays
from i2l.model.config import model_preset
from i2l.model.network import assign_windows, centred_windows, crop_window, gather_windows

CANVAS = model_preset("nopool").canvas_shape
WINDOWS = centred_windows(area=(128, 1088), cell_px=32, heights_px=(42, 82))


def place_on_canvas(images, *, canvas_shape):
    return torch.from_numpy(place_arrays(images, canvas_shape=canvas_shape))


def test_an_image_is_centred_by_floor():
    canvas = place_on_canvas([np.zeros((3, 5), np.uint8)], canvas_shape=(10, 20))[0]
    rows, columns = torch.nonzero(canvas == 0, as_tuple=True)
    assert (rows.min(), rows.max(), columns.min(), columns.max()) == (3, 5, 7, 11)


def test_windows_of_the_paper():
    assert {window.height_px for window in WINDOWS} == {42, 82, 128}
    assert sorted({window.width_px for window in WINDOWS}) == [64, 192, 320, 448, 576, 704, 832, 960, 1088]
    assert (WINDOWS[-1].height_px, WINDOWS[-1].width_px) == (128, 1088)
    for window in WINDOWS:
        assert 2 * window.top_px + window.height_px == 128
        assert 2 * window.left_px + window.width_px == 1088


@given(st.lists(st.tuples(st.integers(1, 128), st.integers(1, 1088)), min_size=1, max_size=4))
def test_a_window_shows_all_ink_and_is_the_smallest(sizes):
    images = [np.zeros(size, np.uint8) for size in sizes]
    pixels = place_on_canvas(images, canvas_shape=CANVAS)
    chosen = assign_windows(np.array(sizes), WINDOWS, canvas_shape=CANVAS)
    for index, (canvas, image) in enumerate(zip(pixels, images, strict=True)):
        inks = [(crop_window(canvas[None], window) == 0).sum() for window in WINDOWS]
        assert next(i for i, ink in enumerate(inks) if ink == image.size) == chosen[index]


def test_gathered_windows_are_crops_of_the_canvas():
    generator = np.random.default_rng(0)
    sizes = np.array([(5, 9), (64, 63), (63, 190), (1, 1)])
    images = [generator.integers(0, 255, size).astype(np.uint8) for size in sizes]
    storage = torch.from_numpy(np.concatenate([*(image.ravel() for image in images), [255]])).to(torch.uint8)
    offsets = torch.from_numpy(np.cumsum([0, *(image.size for image in images[:-1])]))
    window = WINDOWS[assign_windows(sizes, WINDOWS, canvas_shape=CANVAS).max()]
    gathered = gather_windows(storage, offsets, torch.from_numpy(sizes), window=window, canvas_shape=CANVAS)
    expected = crop_window(place_on_canvas(images, canvas_shape=CANVAS), window)
    assert torch.equal(gathered, expected)


def test_an_image_that_does_not_fit_is_refused():
    with pytest.raises(ImageTooLargeError, match="at most 1088 x 128"):
        place_on_canvas([np.zeros((129, 5), np.uint8)], canvas_shape=CANVAS)
    with pytest.raises(ImageTooLargeError, match="1089 x 4"):
        assign_windows(np.array([(4, 1089)]), WINDOWS, canvas_shape=CANVAS)
