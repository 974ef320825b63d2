"""Training images seen another way every time: moved, larger or smaller, blurred, lighter or heavier."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import conv2d

from i2l.images.prepare import WHITE
from i2l.model.network import Window, centred_places, gather_windows

BLUR_REACH_PX = 4
MEASURABLE_TOKENS = 17  # from so many tokens on the scale of a picture can be estimated


@dataclass(frozen=True)
class Augmentation:
    """How far an image may change; the fields of `TrainConfig` of these names."""

    shift_px: int = 0
    zoom: float = 0.0
    zoom_symbol: float = 0.0
    blur_px: float = 0.0
    weight: float = 0.0


@dataclass(frozen=True)
class View:
    """Images in a window, and where: pixel (x, y) of an image lies at (left + zoom x, top + zoom y)."""

    pixels: Tensor  # (B, height, width), uint8
    top: Tensor  # (B,)
    left: Tensor
    zoom: Tensor


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
    zoom = torch.ones(len(sizes), device=device)
    if augmentation.zoom:
        chance = torch.rand(len(sizes), device=device)
        few = (MEASURABLE_TOKENS - num_tokens) / (MEASURABLE_TOKENS - 1)  # 1 for one token
        widest = (augmentation.zoom_symbol * few).clamp(min=augmentation.zoom)
        zoom = torch.exp(widest * (2 * chance - 1))
        zoom = torch.minimum(zoom, (room / sizes).amin(dim=1))  # it must fit
    zoomed = (sizes * zoom.unsqueeze(1)).floor().long().clamp(min=1)
    places = torch.stack(centred_places(zoomed, window, canvas_shape), dim=1)  # (B, 2)
    if augmentation.shift_px:
        limit = augmentation.shift_px
        places = places + torch.randint(-limit, limit + 1, places.shape, device=device)
        places = torch.minimum(places.clamp(min=0), room - zoomed)
    top, left = places.unbind(1)
    if augmentation.zoom:
        pixels = _gather_zoomed(storage, offsets, sizes, zoom, top, left, window)
    else:
        pixels = gather_windows(
            storage, offsets, sizes, window=window, canvas_shape=canvas_shape, places=(top, left)
        )
    if augmentation.blur_px or augmentation.weight:
        ink = 1 - pixels.float() / WHITE
        if augmentation.blur_px:
            ink = _blur(ink, augmentation.blur_px * torch.rand(len(sizes), device=device))
        if augmentation.weight:
            chance = torch.rand(len(sizes), 1, 1, device=device)
            ink = (ink * torch.exp(augmentation.weight * (1.5 * chance - 0.5))).clamp(max=1)
        pixels = (WHITE * (1 - ink)).round().byte()
    return View(pixels, top.float(), left.float(), zoom)


def _gather_zoomed(
    storage: Tensor, offsets: Tensor, sizes: Tensor, zoom: Tensor, top: Tensor, left: Tensor, window: Window
) -> Tensor:
    """Draw images larger or smaller, mixing the four pixels around each point: (B, height, width), uint8."""
    heights, widths = (part.view(-1, 1, 1) for part in sizes.unbind(1))
    starts, white = offsets.view(-1, 1, 1), storage.numel() - 1
    axes = []
    for size_px, start in ((window.height_px, top), (window.width_px, left)):
        points = torch.arange(size_px, device=storage.device) + 0.5 - start.unsqueeze(1)
        axes.append(points / zoom.unsqueeze(1) - 0.5)  # (B, size), in the image
    rows, columns = axes[0].unsqueeze(2), axes[1].unsqueeze(1)
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


def cover_cells(boxes: Tensor, view: View, *, cell_px: int) -> Tensor:
    """Say how much of each cell of the view the boxes cover, the best covered cell of each box 1.

    Args:
        boxes: left, top, right and bottom in the image, (B, T, 4); an empty one covers nothing.
        view: where the images are.
        cell_px: the side of a cell.

    Returns:
        (B, T, rows, columns)
    """
    overlaps = []
    for start, end, corner, size_px in (
        (boxes[..., 1], boxes[..., 3], view.top, view.pixels.shape[1]),
        (boxes[..., 0], boxes[..., 2], view.left, view.pixels.shape[2]),
    ):
        zoom, offset = view.zoom.unsqueeze(1), corner.unsqueeze(1)
        first, last = offset + zoom * start, offset + zoom * end  # (B, T)
        edges = torch.arange(0, size_px, cell_px, device=boxes.device)
        low = torch.maximum(first.unsqueeze(2), edges)
        high = torch.minimum(last.unsqueeze(2), edges + cell_px)
        overlap = (high - low).clamp(min=0)
        overlaps.append(overlap / overlap.amax(dim=2, keepdim=True).clamp(min=math.ulp(1.0)))
    rows, columns = overlaps
    return rows.unsqueeze(3) * columns.unsqueeze(2)
