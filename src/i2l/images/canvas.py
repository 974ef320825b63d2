"""Where an image lies on the model's canvas: centred, inside a white frame; in training as in reading."""

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from i2l.images.open import ImageError

WHITE: Final = 255
FAINT: Final = 230  # pixels at least so light are no sign of ink: grain of scans and of JPEG
FRAME_PX: Final = 1  # on each side


class ImageTooLargeError(ImageError):
    """An image that does not fit on the canvas."""


def centre(size_px: int, canvas_px: int) -> int:
    """Give where a centred image starts inside the frame; an odd pixel of space goes to the far side."""
    return (canvas_px - size_px) // 2 - FRAME_PX


def place_on_canvas(
    images: Sequence[npt.NDArray[np.uint8]], *, canvas_shape: tuple[int, int]
) -> npt.NDArray[np.uint8]:
    """Centre each image (H, W) on a white canvas: (B, canvas height, canvas width).

    Raises:
        ImageTooLargeError: if an image would reach into the frame.
    """
    height, width = canvas_shape
    pixels = np.full((len(images), height, width), WHITE, np.uint8)
    for canvas, image in zip(pixels, images, strict=True):
        rows, columns = image.shape
        top, left = centre(rows, height), centre(columns, width)
        if top < 0 or left < 0:
            raise ImageTooLargeError(
                f"The image has {columns} x {rows} pixels; the model reads at most "
                f"{width - 2 * FRAME_PX} x {height - 2 * FRAME_PX}. Crop or scale it down."
            )
        canvas[top + FRAME_PX : top + FRAME_PX + rows, left + FRAME_PX : left + FRAME_PX + columns] = image
    return pixels
