"""The windows of the canvas that hold all the ink of an image that `i2l.images.prepare` has centred on it.

The outermost pixel of the canvas on each side is a white frame; a window is a part of the area inside it.
Since images are centred, a few windows hold them all, and a whole batch can share one:
`i2l.model.calstm.encoder` encodes just that part.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn.functional import pad

from i2l.images.prepare import FRAME_PX, WHITE, ImageTooLargeError, centre


@dataclass(frozen=True, order=True)
class Window:
    """A part of the canvas, in pixels inside the frame."""

    height_px: int
    width_px: int
    top_px: int
    left_px: int


def centred_windows(
    *, area: tuple[int, int], cell_px: int, heights_px: Sequence[int], step: int = 2
) -> list[Window]:
    """Return windows that grow from the middle of the area, small ones first; the last is the whole area.

    Args:
        area: height and width inside the frame.
        cell_px: the side of the encoder's cell.
        heights_px: of the windows that are lower than the area.
        step: a window reaches this many cells further to the left and right than the next smaller one.
    """
    height, width = area
    heights = [*(lower for lower in heights_px if lower < height), height]
    widths = range(width, 0, -2 * step * cell_px)
    windows = [
        Window(rows, columns, centre(rows, height + 2 * FRAME_PX), (width - columns) // 2)
        for rows in heights
        for columns in widths
    ]
    return sorted(windows, key=lambda window: (window.height_px * window.width_px, window))


def assign_windows(
    sizes: npt.NDArray[np.integer], windows: Sequence[Window], *, canvas_shape: tuple[int, int]
) -> npt.NDArray[np.int64]:
    """Find for each image (height, width) the first window that holds it when it is centred: (N, 2) to (N,).

    Raises:
        ImageTooLargeError: if no window holds an image.
    """
    starts = (np.asarray(canvas_shape) - sizes) // 2 - FRAME_PX  # as `centre`
    ends = starts + sizes
    chosen = np.full(len(sizes), -1, np.int64)
    for index, window in reversed(list(enumerate(windows))):
        first = np.array([window.top_px, window.left_px])
        last = first + np.array([window.height_px, window.width_px])
        chosen[((starts >= first) & (ends <= last)).all(1)] = index
    if (chosen < 0).any():
        rows, columns = sizes[chosen < 0][0]
        raise ImageTooLargeError(f"No window holds an image of {columns} x {rows} pixels; leave it out.")
    return chosen


def crop_window(pixels: Tensor, window: Window) -> Tensor:
    """Cut the window out of whole canvases: (B, canvas height, canvas width) to (B, height, width)."""
    top, left = window.top_px + FRAME_PX, window.left_px + FRAME_PX
    return pixels[:, top : top + window.height_px, left : left + window.width_px]


def place_window(pixels: Tensor, window: Window, *, canvas_shape: tuple[int, int]) -> Tensor:
    """Undo `crop_window`: (B, height, width) to white canvases (B, canvas height, canvas width)."""
    top, left = window.top_px + FRAME_PX, window.left_px + FRAME_PX
    bottom = canvas_shape[0] - top - window.height_px
    right = canvas_shape[1] - left - window.width_px
    return pad(pixels, (left, right, top, bottom), value=WHITE)


def centred_places(sizes: Tensor, window: Window, canvas_shape: tuple[int, int]) -> tuple[Tensor, Tensor]:
    """Return the top and left of centred images in a window of the canvas: (B, 2) to (B,) each."""
    heights, widths = sizes.unbind(1)
    top = (canvas_shape[0] - heights) // 2 - FRAME_PX - window.top_px
    left = (canvas_shape[1] - widths) // 2 - FRAME_PX - window.left_px
    return top, left


def gather_windows(
    storage: Tensor,
    offsets: Tensor,
    sizes: Tensor,
    *,
    window: Window,
    canvas_shape: tuple[int, int],
    places: tuple[Tensor, Tensor] | None = None,
) -> Tensor:
    """Cut the window's view of images that lie one after the other in one long tensor.

    All on the device of the storage and without waiting for it, so a CUDA graph may hold this.

    Args:
        storage: uint8, one dimension: the images' pixels row by row. One pixel of white follows the last.
        offsets: (B,) int64, where each image starts.
        sizes: (B, 2) int64, height and width of each.
        window: one that holds the centred images.
        canvas_shape: of the model.
        places: the top and left of each image in the window, (B,) int64 each; in the middle if None.

    Returns:
        (B, height, width), uint8
    """
    device = storage.device
    heights, widths = (part.view(-1, 1, 1) for part in sizes.unbind(1))
    top, left = (part.view(-1, 1, 1) for part in places or centred_places(sizes, window, canvas_shape))
    rows = torch.arange(window.height_px, device=device).view(1, -1, 1) - top  # in the image
    columns = torch.arange(window.width_px, device=device).view(1, 1, -1) - left
    inside = (rows >= 0) & (rows < heights) & (columns >= 0) & (columns < widths)
    index = torch.where(inside, offsets.view(-1, 1, 1) + rows * widths + columns, storage.numel() - 1)
    return storage[index]
