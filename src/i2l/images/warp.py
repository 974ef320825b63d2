"""How a photograph moves points: a sheet that is bent, tilted and turned before the camera.

Points are columns and rows of the drawn page, from there to the photograph and back; both ways are exact, so
that pixels and boxes move alike.
"""

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from i2l.images.photo import Photo

Points = NDArray[np.float64]  # (N, 2): column, row
Box = tuple[int, int, int, int]

_DISTANCE = 1.5  # of the camera, in widths of the formula
_MIN_WIDTH_EM = 25.0  # nobody takes a photograph of a single letter from an inch away
_FLAT_PX = 96  # perspective is straight over this distance, within half a pixel ...
_BENT_PX = 24  # ... and so is a bent sheet over this one
_SAMPLES = 9  # points along the side of a box
_ALONG = np.arange(_SAMPLES) / (_SAMPLES - 1)


@dataclass(frozen=True)
class Warp:
    """The way from a drawn page of one size to a photograph of it, and back."""

    forward: NDArray[np.float64]  # (3, 3), of the sheet made flat, around the middle of the page
    middle: tuple[float, float]
    bend_px: float
    bend_middle: float
    half_width: float
    left: int = 0  # where the photograph starts
    top: int = 0

    def to_photo(self, points: Points) -> Points:
        """Give where points of the page come to lie."""
        x, y = (points - self.middle).T
        return self._project(self.forward, x, y + self._arc(x)) - (self.left, self.top)

    def to_page(self, points: Points) -> Points:
        """Give which points of the page lie there."""
        columns, rows = (points + np.array([self.left, self.top])).T
        x, y = self._project(np.linalg.inv(self.forward).astype(np.float64), columns, rows).T
        return np.stack([x, y - self._arc(x)], axis=1) + self.middle

    def box(self, box: Box) -> Box:
        """Give the box around what was in a box of the page."""
        points = self.to_photo(outline(*box))
        left, top = np.floor(points.min(axis=0) + 0.01)
        right, bottom = np.ceil(points.max(axis=0) - 0.01)
        return int(left), int(top), int(right), int(bottom)

    def apply(self, image: Image.Image, origin: tuple[int, int], size: tuple[int, int]) -> Image.Image:
        """Take the photograph, width and height given, of a sheet whose corner has a place on the page."""
        columns = _edges(size[0], _BENT_PX if self.bend_px else _FLAT_PX)
        rows = _edges(size[1], _FLAT_PX)
        ends = np.stack(np.meshgrid(columns, rows), axis=2).reshape(-1, 2).astype(np.float64)
        places = (self.to_page(ends) - origin).reshape(len(rows), len(columns), 2).tolist()
        cells = []
        for row, (top, bottom) in enumerate(pairwise(rows)):
            for column, (left, right) in enumerate(pairwise(columns)):
                corners = ((row, column), (row + 1, column), (row + 1, column + 1), (row, column + 1))
                quad = tuple(value for i, j in corners for value in places[i][j])
                cells.append(((left, top, right, bottom), quad))
        return image.transform(size, Image.Transform.MESH, cells, Image.Resampling.BILINEAR, fillcolor=255)

    def _arc(self, x: Points) -> Points:
        part = (x / self.half_width - self.bend_middle) / (1 + abs(self.bend_middle))
        return self.bend_px * part * part

    @staticmethod
    def _project(matrix: NDArray[np.float64], x: Points, y: Points) -> Points:
        across, down, depth = matrix @ np.stack([x, y, np.ones_like(x)])
        return np.stack([across / depth, down / depth], axis=1)


def _edges(length: int, step: int) -> list[int]:
    """Cut a length into equal parts of about a step."""
    parts = max(1, round(length / step))
    return [round(length * part / parts) for part in range(parts + 1)]


def make_warp(photo: Photo, *, width: int, height: int, em_px: float) -> Warp:
    """Say how a photograph moves the points of a page of that size."""
    turn, tilt_x, tilt_y = (
        math.radians(angle) for angle in (-photo.rotation_deg, photo.tilt_x_deg, photo.tilt_y_deg)
    )
    distance = _DISTANCE * max(width, _MIN_WIDTH_EM * em_px)
    (cos_x, sin_x), (cos_y, sin_y) = ((math.cos(angle), math.sin(angle)) for angle in (tilt_x, tilt_y))
    tilted = np.array(
        [
            [cos_y, sin_x * sin_y, 0],
            [0, cos_x, 0],
            [-sin_y / distance, sin_x * cos_y / distance, 1],
        ]
    )
    turned = np.array([[math.cos(turn), -math.sin(turn), 0], [math.sin(turn), math.cos(turn), 0], [0, 0, 1]])
    return Warp(
        forward=turned @ tilted,
        middle=(width / 2, height / 2),
        bend_px=photo.bend_em * em_px,
        bend_middle=photo.bend_middle,
        half_width=max(width / 2, 6 * em_px),  # a short formula sees a short part of the arc
    )


def outline(left: float, top: float, right: float, bottom: float) -> Points:
    """Give points all along the sides of a box."""
    points = np.empty((4, _SAMPLES, 2))
    points[:2, :, 0] = left + (right - left) * _ALONG
    points[0, :, 1], points[1, :, 1] = top, bottom
    points[2, :, 0], points[3, :, 0] = left, right
    points[2:, :, 1] = top + (bottom - top) * _ALONG
    return points.reshape(-1, 2)
