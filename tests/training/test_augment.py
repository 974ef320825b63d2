import numpy as np
import pytest
import torch

from i2l.model.network import Window, cover_cells
from i2l.training.augment import Augmentation, View, _through_pixels, boxes_in_cells, gather_view
from tests.kept import assert_kept, outline

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


def test_plain_images_are_moved_only():
    image = np.random.default_rng(0).integers(0, 255, (5, 9)).astype(np.uint8)
    changes = {"zoom": 0.3, "turn": 0.1, "bend_px": 1.0, "coarse": 0.5, "blur_px": 1.0, "weight": 0.5}
    view = gather(image, plain=0.25, shift_px=2, **changes)
    alike = [
        np.array_equal(pixels[top : top + 5, left : left + 9], image)
        for pixels, top, left in zip(
            view.pixels, view.top.round().long(), view.left.round().long(), strict=True
        )
    ]
    assert 0.18 < sum(alike) / len(alike) < 0.32
    assert not any((view.zoom != 1).numpy() & alike)
    assert not gather(image, count=9, **changes).zoom.eq(1).any()


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
    covered = cover_cells(boxes_in_cells(boxes, view, cell_px=16), (2, 3))[0]
    # the first lies at 8 to 16, 4 to 12; the second at 12 to 28, 8 to 16
    assert covered[0].tolist() == [[1, 0, 0], [0, 0, 0]]
    assert covered[1].tolist() == [[pytest.approx(1 / 3), 1, 0], [0, 0, 0]]
    assert covered[2].sum() == 0


def test_turned_images_are_whole_and_boxes_go_with_them():
    image = np.full((8, 24), 255, dtype=np.uint8)
    image[1:4, 2:6] = 0  # two symbols, and the box of each
    image[5:7, 17:22] = 0
    boxes = torch.tensor([[[2, 1, 6, 4], [17, 5, 22, 7]]]).float().repeat(300, 1, 1)
    view = gather(image, turn=0.2, slant=0.3, stretch=0.4, zoom=0.2)
    grid = view.pixels.shape[1], view.pixels.shape[2]
    covered = cover_cells(boxes_in_cells(boxes, view, cell_px=1), grid)
    for pixels, cells in zip(view.pixels, covered, strict=True):
        ink = 1 - pixels.float() / 255
        assert ink.sum().item() > 0
        assert ink[(cells.amax(dim=0) == 0)].sum().item() < 0.15 * ink.sum().item()
        for symbol in cells:
            assert ink[symbol > 0].sum().item() > 0.3 * ink.sum().item() * 0.5
    assert view.turned is not None
    areas = torch.linalg.det(view.turned) * view.zoom**2
    assert (1 - view.pixels.float() / 255).sum(dim=(1, 2)).allclose(22 * areas, rtol=0.12, atol=0.5)
    assert len({tuple(p.flatten().tolist()) for p in view.pixels}) == 300


def test_each_way_of_turning_is_what_its_name_says():
    wide = np.zeros((2, 12), np.uint8)
    angles = gather(wide, turn=0.3).turned
    assert angles.mT @ angles == pytest.approx(np.eye(2)[None].repeat(300, 0), abs=1e-5)  # nothing but turned
    assert angles[:, 1, 0].abs().max() == pytest.approx(np.sin(0.3), rel=0.05)
    slanted = gather(wide, slant=0.5).turned
    assert (slanted[:, 0, 0] == 1).all()
    assert (slanted[:, 1, 0] == 0).all()
    assert slanted[:, 0, 1].abs().max() == pytest.approx(0.5, rel=0.05)
    stretched = gather(wide, stretch=0.4).turned
    assert (stretched[:, 0, 0] / stretched[:, 1, 1]).log().abs().max() == pytest.approx(0.4, rel=0.05)
    assert torch.linalg.det(stretched).allclose(torch.ones(300))


def test_bends_are_small_and_smooth():
    image = np.full((10, 30), 255, np.uint8)
    image[4:6] = 0
    view = gather(image, bend_px=1.0)
    assert torch.equal(view.turned, torch.eye(2).expand(300, 2, 2))
    ink = 1 - view.pixels.float() / 255
    rows = (ink * (torch.arange(16) + 0.5).view(-1, 1)).sum(1) / ink.sum(1).clamp(min=1e-6)
    moved = (rows - 8)[:, 8:32]
    assert 0.5 < moved.abs().max() < 4
    assert moved.abs().median() < 0.8
    assert moved.diff(dim=1).abs().max() < 0.6


def test_a_seed_changes_images_as_it_did():
    """A training can be told and compared by its settings and its seed."""
    rows, columns = np.mgrid[:9, :25]
    image = ((rows * 37 + columns * columns * 11) % 256).astype(np.uint8)
    measured = {}
    for name, changes in {
        "place and scale": {"shift_px": 2, "zoom": 0.3, "zoom_symbol": 0.6},
        "turned": {"turn": 0.1, "slant": 0.2, "stretch": 0.3},
        "bent": {"bend_px": 1.5, "zoom": 0.1},
        "blurred and bold": {"blur_px": 1.2, "weight": 0.5},
    }.items():
        for num_tokens in (1, 4, 20):
            torch.manual_seed(3)
            view = gather(image, count=4, num_tokens=num_tokens, **changes)
            for number, pixels in enumerate(view.pixels.numpy()):
                place = [float(part[number]) for part in (view.top, view.left, view.zoom)]
                measured[f"{name}, {num_tokens} tokens, {number}"] = [*place, *outline(255 - pixels)]
    assert_kept("augmented", measured, relative=0.01)


def test_a_coarse_image_is_one_of_larger_pixels_enlarged():
    ink = torch.rand(1, 8, 12)
    large = ink.reshape(1, 4, 2, 6, 2).mean(dim=(2, 4))
    enlarged = torch.nn.functional.interpolate(large[None], scale_factor=2, mode="bilinear")[0]
    across, down = (
        torch.zeros(1, size, size).scatter_add(
            2, *_through_pixels(size, torch.tensor([2.0]), torch.tensor([0.0]), most_px=2.5)
        )
        for size in (12, 8)
    )
    seen = down @ ink @ across.mT
    assert torch.allclose(seen[:, 1:-1, 1:-1], enlarged[:, 1:-1, 1:-1], atol=1e-6)


def test_half_of_the_images_are_coarse_and_none_loses_ink():
    image = np.full((5, 11), 255, dtype=np.uint8)
    image[::2, ::2] = 0
    view = gather(image, coarse=0.7)
    plain = gather(image, count=1).pixels[0]
    untouched = (view.pixels == plain).all(dim=2).all(dim=1)
    assert 0.4 < untouched.float().mean() < 0.6
    ink = (255 - view.pixels.float()).sum(dim=(1, 2)) / 255
    assert ink[untouched].eq(18).all()
    assert ink.numpy() == pytest.approx(18, rel=0.12)
    assert len({pixels.numpy().tobytes() for pixels in view.pixels}) > 100  # sides and places differ
