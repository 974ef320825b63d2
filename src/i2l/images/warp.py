"""How a photograph moves points: a sheet that is bent, tilted and turned before the camera.

Points are columns and rows of the drawn page, from there to the photograph and back; both ways are exact, so
that pixels and boxes move alike.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from i2l.images.photo import Photo

Points = NDArray[np.float64]  # (N, 2): column, row
Box = tuple[int, int, int, int]

_DISTANCE = 1.5  # of the camera, in widths of the formula
_MIN_WIDTH_EM = 25.0  # nobody takes a photograph of a single letter from an inch away
_STRIP_PX = 24  # a bent sheet is flat over this distance
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
        width, height = size
        edges = np.linspace(0, width, max(1, round(width / _STRIP_PX)) + 1).round().astype(int)
        ends = np.stack([edges.repeat(2), np.tile([0, height], len(edges))], axis=1).astype(np.float64)
        places = (self.to_page(ends) - origin).reshape(-1, 4)  # top x, top y, bottom x, bottom y
        strips = []
        for index in range(len(edges) - 1):
            here, there = places[index], places[index + 1]
            box = (int(edges[index]), 0, int(edges[index + 1]), height)
            strips.append((box, (*here, there[2], there[3], there[0], there[1])))
        return image.transform(size, Image.Transform.MESH, strips, Image.Resampling.BILINEAR, fillcolor=255)

    def _arc(self, x: Points) -> Points:
        part = (x / self.half_width - self.bend_middle) / (1 + abs(self.bend_middle))
        return self.bend_px * part * part

    @staticmethod
    def _project(matrix: NDArray[np.float64], x: Points, y: Points) -> Points:
        across, down, depth = matrix @ np.stack([x, y, np.ones_like(x)])
        return np.stack([across / depth, down / depth], axis=1)


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
