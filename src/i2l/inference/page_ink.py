"""The ink of a prepared image, on the canvas: where each token was read, and how much was read by none."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from i2l.config import ModelConfig
from i2l.images.canvas import FRAME_PX, centre
from i2l.images.ink_symbols import Boxes, join_pieces, measure_pieces
from i2l.images.prepare import Box, PreparedImage
from i2l.inference.attention_boxes import choose_symbols, find_ink, visible_tokens
from i2l.inference.unread import unread_ink
from i2l.model.receptive_field import receptive_field

MAX_PIECES: Final = 1000  # to look for symbols among them: a formula has some hundreds, grain has thousands


@dataclass(frozen=True)
class PageInk:
    """Connected pieces of ink on a model's canvas; none if they are grain."""

    image: PreparedImage
    config: ModelConfig
    corner: tuple[int, int]  # of the image on the canvas: left, top
    pieces: Boxes
    amounts: NDArray[np.int64]  # of their pixels

    @classmethod
    def find(cls, image: PreparedImage, config: ModelConfig) -> "PageInk":
        """Look for the ink on the image, which is all there is on the canvas."""
        pieces, amounts = measure_pieces(find_ink(image.pixels))
        if len(pieces) > MAX_PIECES:
            pieces, amounts = pieces[:0], amounts[:0]
        height, width = image.pixels.shape
        canvas_height, canvas_width = config.canvas_shape
        corner = centre(width, canvas_width) + FRAME_PX, centre(height, canvas_height) + FRAME_PX
        return cls(image, config, corner, pieces + np.array(corner * 2), amounts)

    @cached_property
    def num_symbols(self) -> int:
        """How many symbols there are, as far as that shows: letters that touch are one."""
        return len(join_pieces(self.pieces))

    def unread(self, tokens: Sequence[str], attention: NDArray[np.float32]) -> float:
        """Give the share of ink that a reading leaves out."""
        field = receptive_field(self.config)
        return unread_ink(tokens, attention, self.pieces, self.amounts, field=field)

    def boxes(
        self, tokens: Sequence[str], attention: NDArray[np.float32], *, share: float
    ) -> tuple[Box | None, ...]:
        """Find where in the file each token was read; `share` as in `i2l.inference.attention_boxes`."""
        boxes: list[Box | None] = [None] * len(tokens)
        if not tokens or not len(self.pieces):
            return tuple(boxes)
        places = np.flatnonzero(visible_tokens(tokens))
        symbols = join_pieces(self.pieces)
        found = choose_symbols(attention[places], symbols, field=receptive_field(self.config), share=share)
        x, y = self.corner
        for place, box in zip(places.tolist(), found, strict=True):
            if box is not None:
                left, top, right, bottom = box
                boxes[place] = self.image.to_file((left - x, top - y, right - x, bottom - y))
        return tuple(boxes)
