"""Training images, another way every time: moved, zoomed, turned, bent, coarse, blurred, dark or light."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import conv2d, interpolate

from i2l.images.prepare import WHITE
from i2l.model.network import Window, centred_places, gather_windows

BEND_PX = 40  # how far apart the points are that a bend moves, each by its own chance
BLUR_REACH_PX = 4
MEASURABLE_TOKENS = 17  # from so many tokens on the scale of a picture can be estimated


@dataclass(frozen=True)
class Augmentation:
    """How far an image may change; the fields of `TrainConfig` of these names."""

    shift_px: int = 0
    zoom: float = 0.0
    zoom_symbol: float = 0.0
    turn: float = 0.0
    slant: float = 0.0
    stretch: float = 0.0
    bend_px: float = 0.0
    coarse: float = 0.0
    blur_px: float = 0.0
    weight: float = 0.0
    plain: float = 0.0

    @property
    def turns(self) -> bool:
        """Whether images change in another way than by their place and scale."""
        return bool(self.turn or self.slant or self.stretch or self.bend_px)


@dataclass(frozen=True)
class View:
    """Images in a window, and where.

    Pixel (x, y) of an image lies at (left + zoom x', top + zoom y'), where (x', y') is ``turned`` times
    (x, y), or (x, y) itself; a bend moves it a few pixels from there.
    """

    pixels: Tensor  # (B, height, width), uint8
    top: Tensor  # (B,)
    left: Tensor
    zoom: Tensor
    turned: Tensor | None = None  # (B, 2, 2)


def gather_view(
    storage: Tensor,
    offsets: Tensor,
    sizes: Tensor,
    *,
    window: Window,
    canvas_shape: tuple[int, int],
    num_tokens: Tensor,
    augmentation: Augmentation,
) -> View:
    """Cut a window's view of images as `i2l.model.network.gather_windows` does, each changed by chance.

    Args:
        storage: as there, like the three that follow.
        offsets: likewise.
        sizes: likewise.
        window: likewise.
        canvas_shape: likewise.
        num_tokens: of each formula, (B,).
        augmentation: how far they may change.
    """
    device = storage.device
    # filled on the device: nothing may be copied there while a CUDA graph is captured
    room = torch.cat([torch.full((1,), size, device=device) for size in (window.height_px, window.width_px)])
    changed = torch.ones(len(sizes), device=device)  # how much of the changes each image gets
    if augmentation.plain:
        changed = (torch.rand(len(sizes), device=device) >= augmentation.plain).float()
    turned = _draw_turns(changed, augmentation) if augmentation.turns else None
    extents, before = sizes.float(), torch.zeros(len(sizes), 2, device=device)
    if turned is not None:  # the box of the turned image, and how far it reaches before the image's corner
        across, down = turned[:, 0] * sizes.flip(1), turned[:, 1] * sizes.flip(1)  # of width and height
        extents = torch.stack([down.abs().sum(1), across.abs().sum(1)], dim=1)
        before = torch.stack([-down.clamp(max=0).sum(1), -across.clamp(max=0).sum(1)], dim=1)
    zoom = torch.ones(len(sizes), device=device)
    if augmentation.zoom or turned is not None:
        chance = torch.rand(len(sizes), device=device)
        few = (MEASURABLE_TOKENS - num_tokens) / (MEASURABLE_TOKENS - 1)  # 1 for one token
        widest = (augmentation.zoom_symbol * few).clamp(min=augmentation.zoom)
        zoom = torch.exp(changed * widest * (2 * chance - 1))
        zoom = torch.minimum(zoom, (room / extents).amin(dim=1))  # it must fit
    zoomed = (extents * zoom.unsqueeze(1)).floor().long().clamp(min=1)
    places = torch.stack(centred_places(zoomed, window, canvas_shape), dim=1)  # (B, 2)
    if augmentation.shift_px:
        limit = augmentation.shift_px
        places = places + torch.randint(-limit, limit + 1, places.shape, device=device)
        places = torch.minimum(places.clamp(min=0), room - zoomed)
    top, left = (places + before * zoom.unsqueeze(1)).unbind(1)
    if augmentation.zoom or turned is not None:
        view = View(storage, top, left, zoom, turned)
        bends_px = changed * augmentation.bend_px if augmentation.bend_px else None
        pixels = _gather_zoomed(storage, offsets, sizes, view, window, bends_px)
    else:
        top, left = places.unbind(1)
        pixels = gather_windows(
            storage, offsets, sizes, window=window, canvas_shape=canvas_shape, places=(top, left)
        )
    if augmentation.coarse or augmentation.blur_px or augmentation.weight:
        ink = 1 - pixels.float() / WHITE
        if augmentation.coarse:
            chance = torch.rand(len(sizes), device=device)
            sides_px = torch.exp(changed * augmentation.coarse * (2 * chance - 1).clamp(min=0))
            ink = _coarsen(ink, sides_px, math.exp(augmentation.coarse))
        if augmentation.blur_px:
            ink = _blur(ink, changed * augmentation.blur_px * torch.rand(len(sizes), device=device))
        if augmentation.weight:
            chance = torch.rand(len(sizes), device=device)
            factor = torch.exp(changed * augmentation.weight * (1.5 * chance - 0.5))
            ink = (ink * factor.view(-1, 1, 1)).clamp(max=1)
        pixels = (WHITE * (1 - ink)).round().byte()
    return View(pixels, top.float(), left.float(), zoom, turned)


def _draw_turns(changed: Tensor, augmentation: Augmentation) -> Tensor:
    """Draw by chance how images are stretched, slanted and turned: (B, 2, 2), for points (x, y).

    `changed` (B,) says how much of that each image gets.
    """
    angle, slant, stretch = (
        limit * changed * (2 * torch.rand_like(changed) - 1)
        for limit in (augmentation.turn, augmentation.slant, augmentation.stretch)
    )
    wide = torch.exp(stretch / 2)
    # slanted after it was stretched, and then turned
    matrix = (
        wide * angle.cos(),
        (slant * angle.cos() - angle.sin()) / wide,
        wide * angle.sin(),
        (slant * angle.sin() + angle.cos()) / wide,
    )
    return torch.stack(matrix, dim=1).view(-1, 2, 2)


def _gather_zoomed(
    storage: Tensor, offsets: Tensor, sizes: Tensor, view: View, window: Window, bends_px: Tensor | None
) -> Tensor:
    """Draw images larger, smaller or turned, mixing the four pixels around each point: (B, H, W), uint8.

    `bends_px` (B,) says how far each may be bent.
    """
    heights, widths = (part.view(-1, 1, 1) for part in sizes.unbind(1))
    starts, white = offsets.view(-1, 1, 1), storage.numel() - 1
    axes = []
    for size_px, start in ((window.height_px, view.top), (window.width_px, view.left)):
        points = torch.arange(size_px, device=storage.device) + 0.5 - start.unsqueeze(1)
        axes.append(points / view.zoom.unsqueeze(1))  # (B, size), in the image
    rows, columns = axes[0].unsqueeze(2), axes[1].unsqueeze(1)
    if view.turned is not None:
        rows, columns = _turn_back(rows, columns, view.turned)
    if bends_px is not None:
        moved = _draw_bends(bends_px, window)
        rows, columns = rows + moved[:, 0], columns + moved[:, 1]
    rows, columns = rows - 0.5, columns - 0.5
    mixed = torch.zeros(1, device=storage.device)
    for down in (0, 1):
        row = rows.floor().long() + down
        row_share = 1 - (rows - row).abs()
        for right in (0, 1):
            column = columns.floor().long() + right
            inside = (row >= 0) & (row < heights) & (column >= 0) & (column < widths)
            index = torch.where(inside, starts + row * widths + column, white)
            mixed = mixed + storage[index] * (row_share * (1 - (columns - column).abs()))
    return mixed.round().byte()


def _turn_back(rows: Tensor, columns: Tensor, turned: Tensor) -> tuple[Tensor, Tensor]:
    """Find the points of images that come to lie at these places when they are turned: two of (B, H, W)."""
    (a, b), (c, d) = (row.unbind(1) for row in turned.unbind(1))
    scale = a * d - b * c
    a, b, c, d = ((part / scale).view(-1, 1, 1) for part in (a, b, c, d))
    return a * rows - c * columns, d * columns - b * rows


def _draw_bends(bends_px: Tensor, window: Window) -> Tensor:
    """Draw how far each pixel is looked for from its place, down and to the right: (B, 2, H, W), smooth."""
    points = [2 + size // BEND_PX for size in (window.height_px, window.width_px)]
    strength = (bends_px * torch.rand_like(bends_px)).view(-1, 1, 1, 1)
    moves = strength * torch.randn(len(bends_px), 2, *points, device=bends_px.device)
    size = (window.height_px, window.width_px)
    return interpolate(moves, size=size, mode="bicubic", align_corners=True)


def _coarsen(ink: Tensor, sides_px: Tensor, most_px: float) -> Tensor:
    """Show each image as if it had been taken with larger pixels, and enlarged again: (B, H, W).

    A picture of half the resolution comes to the model at twice its size. Every large pixel has the mean of
    the ink under it, and between the middles of two the values go over into each other. Pixels of side 1
    change nothing; none may have more than `most_px`.
    """
    seen = ink
    for _ in range(2):  # along the rows, then along the columns
        first = (sides_px > 1) * sides_px * torch.rand_like(sides_px)  # where the large pixels begin
        places, shares = _through_pixels(seen.shape[2], sides_px, first, most_px)
        through = torch.zeros(1, device=ink.device)
        for place, share in zip(places.unbind(2), shares.unbind(2), strict=True):
            through = through + share.unsqueeze(1) * seen.gather(2, place.unsqueeze(1).expand_as(seen))
        seen = through.mT.contiguous()
    return seen


def _through_pixels(
    size_px: int, sides_px: Tensor, first_px: Tensor, most_px: float
) -> tuple[Tensor, Tensor]:
    """Find which pixels of an axis are seen at each of its places, and their shares: two of (B, size, few).

    A place is seen through the two large pixels whose middles are nearest.
    """
    sides, first = sides_px.view(-1, 1, 1), first_px.view(-1, 1, 1)
    seen = torch.arange(size_px, device=sides_px.device).view(1, -1, 1)
    between = (seen + 0.5 - first) / sides - 0.5  # counted in large pixels, from the middle of the first
    left = between.floor()
    pixels = (first + left * sides).floor() + torch.arange(math.ceil(2 * most_px) + 1, device=sides_px.device)
    shares = torch.zeros(1, device=sides_px.device)
    for large, weight in ((left, left + 1 - between), (left + 1, between - left)):
        start = first + large * sides
        covered = torch.minimum(pixels + 1, start + sides) - torch.maximum(pixels, start)
        shares = shares + weight * covered.clamp(min=0) / sides
    inside = (pixels >= 0) & (pixels < size_px)  # beyond the edge there is no ink
    return pixels.clamp(0, size_px - 1).long(), shares * inside


def _blur(ink: Tensor, deviations_px: Tensor) -> Tensor:
    """Blur each image by its own deviation, of up to about two pixels: (B, H, W)."""
    places = torch.arange(-BLUR_REACH_PX, BLUR_REACH_PX + 1, device=ink.device)
    bells = torch.exp(-0.5 * (places / deviations_px.clamp(min=0.1).unsqueeze(1)) ** 2)
    bells = (bells / bells.sum(dim=1, keepdim=True)).unsqueeze(1)  # (B, 1, places)
    blurred = ink.unsqueeze(0)  # images as channels, each with a kernel of its own
    for kernels, padding in (
        (bells.unsqueeze(3), (BLUR_REACH_PX, 0)),
        (bells.unsqueeze(2), (0, BLUR_REACH_PX)),
    ):
        blurred = conv2d(blurred, kernels, padding=padding, groups=len(ink))
    return blurred.squeeze(0)


def boxes_in_cells(boxes: Tensor, view: View, *, cell_px: int) -> Tensor:
    """Say where boxes lie on the grid of the view.

    Args:
        boxes: left, top, right and bottom in the image, (B, T, 4); an empty one stays empty.
        view: where the images are.
        cell_px: the side of a cell.

    Returns:
        The same corners, (B, T, 4), in cells of the view from its left and upper edge.
    """
    if view.turned is not None:  # the box around the turned box
        middles, halves = (boxes[..., :2] + boxes[..., 2:]) / 2, (boxes[..., 2:] - boxes[..., :2]) / 2
        turned = view.turned.unsqueeze(1)  # (B, 1, 2, 2); summed, as a product may round to ten bits
        middles = (turned * middles.unsqueeze(2)).sum(dim=3)
        halves = (turned.abs() * halves.unsqueeze(2)).sum(dim=3)
        boxes = torch.cat([middles - halves, middles + halves], dim=-1)
    corner = torch.stack([view.left, view.top] * 2, dim=-1).unsqueeze(1)  # (B, 1, 4)
    return (corner + view.zoom[:, None, None] * boxes) / cell_px
