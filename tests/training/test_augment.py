import numpy as np
import pytest
import torch

from i2l.model.network import Window
from i2l.training.augment import Augmentation, View, cover_cells, gather_view

CANVAS = (18, 42)
AREA = Window(height_px=16, width_px=40, top_px=0, left_px=0)


def gather(image, *, window=AREA, count=300, num_tokens=20, **changes):
    storage = torch.from_numpy(np.append(image.ravel(), np.uint8(255)))
    return gather_view(
        storage,
        torch.zeros(count, dtype=torch.int64),
        torch.tensor([image.shape] * count),
        window=window,
        canvas_shape=CANVAS,
        num_tokens=torch.full((count,), num_tokens),
        augmentation=Augmentation(**changes),
    )


def test_without_augmentation_images_stand_in_the_middle():
    image = np.arange(1, 13, dtype=np.uint8).reshape(3, 4)
    view = gather(image, count=2)
    assert (view.top[0], view.left[0], view.zoom[0]) == (6, 18, 1)
    assert np.array_equal(view.pixels[1, 6:9, 18:22], image)
    assert (view.pixels != 255).sum() == 24


def test_shifted_images_are_whole_and_everywhere_they_may_be():
    image = np.arange(1, 13, dtype=np.uint8).reshape(3, 4)
    view = gather(image, shift_px=2)
    for pixels, top, left in zip(view.pixels, view.top.long(), view.left.long(), strict=True):
        assert np.array_equal(pixels[top : top + 3, left : left + 4], image)
        assert (pixels != 255).sum() == 12
    places = set(zip(view.top.tolist(), view.left.tolist(), strict=True))
    assert places == {(top, left) for top in range(4, 9) for left in range(16, 21)}
    narrow = gather(image, window=Window(height_px=4, width_px=4, top_px=6, left_px=18), shift_px=2)
    assert set(narrow.top.tolist()) == {0, 1}  # the window has no more room
    assert set(narrow.left.tolist()) == {0}


def test_zoomed_images_keep_their_shape_and_fit():
    image = np.full((6, 20), 0, dtype=np.uint8)
    view = gather(image, zoom=0.4, shift_px=3)
    assert 0.6 < view.zoom.min() < 0.75
    assert 1.3 < view.zoom.max() < 1.5
    for pixels, top, left, zoom in zip(view.pixels, view.top, view.left, view.zoom, strict=True):
        ink = (255 - pixels.float()) / 255
        assert ink.sum().item() == pytest.approx(120 * zoom.item() ** 2, rel=0.08)
        rows, columns = torch.arange(16) + 0.5, torch.arange(40) + 0.5
        assert (ink.sum(1) @ rows / ink.sum()).item() == pytest.approx((top + 3 * zoom).item(), abs=0.5)
        assert (ink.sum(0) @ columns / ink.sum()).item() == pytest.approx((left + 10 * zoom).item(), abs=0.5)
    full = gather(np.zeros((16, 40), np.uint8), zoom=0.4)
    assert full.zoom.max() == 1


@pytest.mark.parametrize(("num_tokens", "widest"), [(1, 0.8), (9, 0.4), (17, 0.2), (30, 0.2)])
def test_the_fewer_tokens_the_wider_the_zoom(num_tokens, widest):
    zooms = gather(np.zeros((3, 4), np.uint8), num_tokens=num_tokens, zoom=0.2, zoom_symbol=0.8).zoom.log()
    assert zooms.abs().max() <= widest + 1e-6
    assert zooms.min() < 0.9 * -widest
    assert zooms.max() > 0.9 * widest


def test_a_zoom_of_one_changes_nothing():
    image = np.random.default_rng(0).integers(0, 255, (5, 9)).astype(np.uint8)
    plain, zoomed = gather(image, count=1), gather(image, count=1, zoom=1e-9)
    assert torch.equal(plain.pixels, zoomed.pixels)


def test_weight_leaves_paper():
    image = np.array([[0, 150, 255]], dtype=np.uint8)
    view = gather(image, weight=0.8)
    middle = view.pixels[:, 7, 18:21]
    assert middle[:, 0].min() == 0
    assert 60 < middle[:, 0].max() < 90  # down to exp(-0.4) of the ink
    assert set(middle[:, 2].tolist()) == {255}
    assert middle[:, 1].min() < 30
    assert middle[:, 1].max() > 175


def test_blur_moves_no_ink_and_spares_some_images():
    view = gather(np.zeros((1, 1), dtype=np.uint8), blur_px=1.5)
    ink = 1 - view.pixels.float() / 255
    assert ink.sum(dim=(1, 2)).allclose(torch.ones(300), atol=0.06)
    assert ink.amax(dim=(1, 2)).max() > 0.99
    assert ink.amax(dim=(1, 2)).min() < 0.12
    rows, columns = ink.sum(2)[:, 3:12], ink.sum(1)[:, 15:24]
    torch.testing.assert_close(rows, columns, rtol=0, atol=0.03)  # the same in both directions
    torch.testing.assert_close(rows, rows.flip(1), rtol=0, atol=0.03)


def test_blur_then_weight_makes_strokes_bolder():
    image = np.full((9, 3), 255, dtype=np.uint8)
    image[:, 1] = 0
    bold = (gather(image, blur_px=1.0, weight=1.0).pixels < 128).sum(dim=(1, 2))
    assert bold.max() >= 2 * 9


def test_cells_are_covered_as_the_boxes_lie():
    view = View(torch.zeros(1, 32, 48), torch.tensor([4.0]), torch.tensor([8.0]), torch.tensor([2.0]))
    boxes = torch.tensor([[[0, 0, 4, 4], [2, 2, 10, 6], [0, 0, 0, 0]]]).float()
    covered = cover_cells(boxes, view, cell_px=16)[0]
    # the first lies at 8 to 16, 4 to 12; the second at 12 to 28, 8 to 16
    assert covered[0].tolist() == [[1, 0, 0], [0, 0, 0]]
    assert covered[1].tolist() == [[pytest.approx(1 / 3), 1, 0], [0, 0, 0]]
    assert covered[2].sum() == 0
