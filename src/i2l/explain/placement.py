"""Where the pixels of a file lie on the model's canvas, and back: cropped, scaled, placed."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from i2l.images.canvas import FRAME_PX, centre
from i2l.images.prepare import PreparedImage
from i2l.inference.attention_boxes import Box


@dataclass(frozen=True, kw_only=True)
class Placement:
    """An affine map from a file's pixels to the canvas, frame included: canvas = offset + scale * file."""

    height_px: int  # of the file's image, upright
    width_px: int
    scale_x: float = 1.0  # canvas pixels for a pixel of the file
    scale_y: float = 1.0
    offset_x: float = 0.0  # where the file's left edge would lie on the canvas, had it not been cropped
    offset_y: float = 0.0

    @classmethod
    def centred(cls, image_shape: tuple[int, int], *, canvas_shape: tuple[int, int]) -> "Placement":
        """Give the placement of an image that goes on the canvas as it is, as in training."""
        height, width = image_shape
        return cls(
            height_px=height,
            width_px=width,
            offset_x=centre(width, canvas_shape[1]) + FRAME_PX,
            offset_y=centre(height, canvas_shape[0]) + FRAME_PX,
        )

    @classmethod
    def prepared(cls, image: PreparedImage, *, canvas_shape: tuple[int, int]) -> "Placement":
        """Give the placement of an image that was cropped and scaled to be read."""
        height, width = image.pixels.shape
        return cls(
            height_px=image.file_size_px[1],
            width_px=image.file_size_px[0],
            scale_x=image.scale,
            scale_y=image.scale,
            offset_x=centre(width, canvas_shape[1]) + FRAME_PX - image.scale * image.left_px,
            offset_y=centre(height, canvas_shape[0]) + FRAME_PX - image.scale * image.top_px,
        )

    def to_canvas(self, box: Box) -> Box:
        """Give a box of the file on the canvas."""
        left, top, right, bottom = box
        return (
            self.offset_x + self.scale_x * left,
            self.offset_y + self.scale_y * top,
            self.offset_x + self.scale_x * right,
            self.offset_y + self.scale_y * bottom,
        )

    def to_image(self, box: Box) -> Box:
        """Give a box of the canvas in the file, cut at its edges."""
        left, top, right, bottom = box
        return (
            min(max((left - self.offset_x) / self.scale_x, 0.0), self.width_px),
            min(max((top - self.offset_y) / self.scale_y, 0.0), self.height_px),
            min(max((right - self.offset_x) / self.scale_x, 0.0), self.width_px),
            min(max((bottom - self.offset_y) / self.scale_y, 0.0), self.height_px),
        )

    def row_edges(self) -> npt.NDArray[np.float64]:
        """Give where the edges of the file's pixel rows lie on the canvas, (height + 1,)."""
        return self.offset_y + self.scale_y * np.arange(self.height_px + 1, dtype=np.float64)

    def column_edges(self) -> npt.NDArray[np.float64]:
        """Give where the edges of the file's pixel columns lie on the canvas, (width + 1,)."""
        return self.offset_x + self.scale_x * np.arange(self.width_px + 1, dtype=np.float64)
