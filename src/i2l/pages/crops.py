"""Crops of packed pages for the detector to learn from, drawn and worn on the device that trains.

All pages lie in the memory of the device, one byte a pixel. A crop is drawn as a camera or a scanner of some
resolution sees it, then its ink is worn: it runs or thins, is blurred, made noisy and cleaned again as
`i2l.images.ink` does it, compressed, or cut to black and white. So a GPU waits for nobody.
"""

import math
import random
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFilter
from torch import Tensor
from torch.nn import functional

from i2l.images.ink import find_pieces
from i2l.pages.gather import CELL_PX, NUM_CLASSES
from i2l.pages.packed import OWNER_SHIFT, REGION_SHIFT, SHADES, PackedPage, unpack_pages

NO_INK: Final = 255  # the owner of a cell without ink
_FOREIGN_SHARE: Final = 0.1  # of the pages, which come once more with their words as square characters
_UNTOUCHED_SHARE: Final = 0.45  # of the crops, which stay as they were drawn
_INKED: Final = 60 / 255  # mean ink of a cell that has an owner
_GROUP: Final = 8  # crops that are drawn at one resolution
_SEEN_PX: Final = (
    5.0,
    5.75,
    6.5,
    7.25,
    8.0,
    9.0,
    10.0,
    11.0,
    12.0,
    13.0,
    14.0,
    15.5,
)  # small letters' heights
_USUAL_PX: Final = (10.0, 11.0, 12.0, 13.0, 14.0)  # ... in most pictures that people bring
_COARSE_PX: Final = 10.0  # where a page's own small letters are lower, it is not drawn larger than it is
_COARSE_SHARE: Final = 0.12  # of the crops, at least, if there are such pages: screenshots are
_SCALE_SPREAD: Final = 0.16  # of the logarithm of the scale
_BEYOND: Final = 0.125  # of a crop that may lie beyond the page
_JPEG_LUMINANCE: Final = (
    16, 11, 10, 16, 24, 40, 51, 61, 12, 12, 14, 19, 26, 58, 60, 55, 14, 13, 16, 24, 40, 57, 69, 56,
    14, 17, 22, 29, 51, 87, 80, 62, 18, 22, 37, 56, 68, 109, 103, 77, 24, 35, 55, 64, 81, 104, 113, 92,
    49, 64, 78, 87, 103, 121, 120, 101, 72, 92, 95, 98, 112, 100, 103, 99,
)  # fmt: skip


class Crops(NamedTuple):
    """Crops as the network sees them, and what every cell of them is."""

    ink: Tensor  # (N, 1, H, W), from 0 to 1
    region: Tensor  # (N, H/2, W/2)
    owner: Tensor  # (N, H/2, W/2): 0 text, else the kind from 1; NO_INK where there is none


class _Places(NamedTuple):
    """Where crops lie: each on a page, whose pixels start somewhere, with two sides and a middle on it."""

    starts: Tensor  # (N,)
    heights: Tensor  # (N,)
    widths: Tensor  # (N,)
    steps: Tensor  # (N, 2, 2): what lies across the crop, and down it, as columns and rows of the page
    middles: Tensor  # (N, 2): column and row


def put(values: Sequence[Any], device: str) -> Tensor:
    """Bring numbers to a device without waiting for what it is at."""
    return torch.tensor(values).to(device, non_blocking=True)


def load_pages(files: Sequence[Path], *, workers: int, seed: int = 0) -> list[PackedPage]:
    """Unpack pages by several processes, and some of them once more in another script."""
    tasks = [(path, seed + number) for number, path in enumerate(files)]
    if workers > 1:
        try:
            with ProcessPoolExecutor(min(workers, len(tasks)), get_context("fork")) as pool:
                return [page for pages in pool.map(_load, tasks) for page in pages]
        except (OSError, BrokenProcessPool) as error:
            print(f"No processes can be started ({error}); the pages are unpacked by this one.", flush=True)
    return [page for task in tasks for page in _load(task)]


def _load(task: tuple[Path, int]) -> list[PackedPage]:
    path, seed = task
    source = random.Random(seed)
    pages: list[PackedPage] = []
    for page in unpack_pages(path):
        pages.append(page)
        if source.random() < _FOREIGN_SHARE:
            pages.append(in_another_script(page, source))
    return pages


def in_another_script(page: PackedPage, source: random.Random) -> PackedPage:
    """Write the words of a page in square characters of a few strokes each, as Chinese and Japanese look.

    The formulas stay. No such font is needed: what counts is that text may be dense and is not Latin.
    """
    symbol_px = page.symbol_px
    shades = page.pixels & SHADES
    is_text = (page.pixels >> OWNER_SHIFT) & (NUM_CLASSES - 1) == 0
    text = Image.fromarray(np.where(is_text & (shades >= 7), 255, 0).astype(np.uint8))
    reach = max(3, 2 * round(0.35 * symbol_px) + 1)
    words = find_pieces(np.asarray(text.filter(ImageFilter.MaxFilter(reach))) > 0)
    image = Image.fromarray(np.where(is_text, 0, shades).astype(np.uint8))
    pen = ImageDraw.Draw(image)
    side = symbol_px * source.uniform(1.6, 2.1)
    width = max(1, round(symbol_px * source.uniform(0.08, 0.2)))
    signs = [[[source.random() for _ in range(4)] for _ in range(source.randint(3, 9))] for _ in range(60)]
    for left, top, right, bottom in words.tolist():
        if not 0.8 * symbol_px < bottom - top < 4 * symbol_px or right - left < 0.8 * symbol_px:
            continue
        middle = (top + bottom) / 2
        count = max(1, round((right - left) / (1.1 * side)))
        for number in range(count):
            x, y = left + number * (right - left) / count, middle - side / 2
            for a, b, c, d in source.choice(signs):
                across = a < 0.45
                end = (c, b) if across else (a, d) if a < 0.8 else (c, d)
                start = x + b * side if not across else x
                pen.line((start, y + b * side, x + end[0] * side, y + end[1] * side), SHADES, width)
    drawn: NDArray[np.uint8] = (page.pixels & ~np.uint8(SHADES)) | np.asarray(image)
    return PackedPage(drawn, symbol_px)


def _parted(symbols: Sequence[float]) -> tuple[list[int], list[int]]:
    """Return the places of the coarse pages, and of the others."""
    coarse = [index for index, symbol_px in enumerate(symbols) if symbol_px < _COARSE_PX]
    return coarse, [index for index, symbol_px in enumerate(symbols) if symbol_px >= _COARSE_PX]


class CropSource:
    """All pages on a device, and crops of them without end."""

    def __init__(
        self, pages: Iterable[PackedPage], *, crop_px: int, symbol_px: float, device: str, seed: int
    ) -> None:
        """Bring the pages to the device.

        Args:
            pages: what to draw from.
            crop_px: side of a crop.
            symbol_px: height of small letters in it.
            device: where all is drawn.
            seed: of all choices.
        """
        held = list(pages)
        self._device, self._crop_px, self._symbol_px = device, crop_px, symbol_px
        self._source = random.Random(seed)
        self._noise = torch.Generator(device).manual_seed(seed)
        sizes = [page.pixels.size for page in held]
        self._starts = [0, *np.cumsum(sizes).tolist()]
        self._shapes = [page.pixels.shape for page in held]
        self._symbols = [page.symbol_px for page in held]
        self._pixels = torch.zeros(
            self._starts[-1] + 1, dtype=torch.uint8, device=device
        )  # the last is paper
        for start, page in zip(self._starts, held, strict=False):
            flat = torch.from_numpy(np.ascontiguousarray(page.pixels).reshape(-1))
            self._pixels[start : start + len(flat)] = flat.to(device)
        self._smaller: dict[int, Tensor] = {}
        # A page is drawn from as often as it has crops, so that large ones are seen all over.
        areas = [size / symbol**2 for size, symbol in zip(sizes, self._symbols, strict=True)]
        weights = [max(1.0, area * (symbol_px / crop_px) ** 2) for area in areas]
        self._coarse, self._fine = (
            (kind, [weights[index] for index in kind]) for kind in _parted(self._symbols)
        )
        share = sum(self._coarse[1]) / max(sum(weights), 1e-9)
        self._coarse_share = max(share, _COARSE_SHARE) if 0 < share < 1 else share

    def draw(self, count: int) -> Crops:
        """Draw so many crops."""
        parts = [self._draw_group(min(_GROUP, count - first)) for first in range(0, count, _GROUP)]
        return Crops(*(torch.cat(part) for part in zip(*parts, strict=True)))

    def _draw_group(self, count: int) -> Crops:
        source = self._source
        if source.random() < self._coarse_share:
            chosen = source.choices(*self._coarse, k=count)
            seen_px = source.choice([size for size in _SEEN_PX if size <= _COARSE_PX])
        else:
            chosen = source.choices(*self._fine, k=count)
            seen_px = source.choice(_USUAL_PX if source.random() < 0.5 else _SEEN_PX)
        places = self._place(chosen)
        side = max(CELL_PX, round(self._crop_px * seen_px / self._symbol_px))
        fine = 2 if seen_px > 9 else 3
        seen = self._look(places, side * fine)
        ink = functional.avg_pool2d((seen & SHADES).float()[:, None] / SHADES, fine)
        worn = put([source.random() >= _UNTOUCHED_SHARE for _ in range(count)], self._device)
        ink = torch.where(worn[:, None, None, None], self._wear(ink), ink)
        if side > self._crop_px:
            boxes = self._boxes(side)
            ink = boxes @ ink @ boxes.T
        else:
            size = (self._crop_px, self._crop_px)
            ink = functional.interpolate(ink, size, mode="bilinear", align_corners=False)
        ink = ink.clamp(0, 1)
        cells = self._crop_px // CELL_PX
        region = self._look(places, cells) >> REGION_SHIFT
        return Crops(ink, region, self._owners(ink, self._look(places, 4 * cells)))

    def _boxes(self, side: int) -> Tensor:
        """Return what makes a row of pixels smaller as Pillow's box filter does: (crop, side)."""
        if side not in self._smaller:
            scale = side / self._crop_px
            middles = (torch.arange(self._crop_px, dtype=torch.float64) + 0.5) * scale
            away = (torch.arange(side, dtype=torch.float64)[None] + 0.5 - middles[:, None]) / scale
            weights = ((away > -0.5) & (away <= 0.5)).double()
            self._smaller[side] = (weights / weights.sum(1, keepdim=True)).float().to(self._device)
        return self._smaller[side]

    def _place(self, chosen: Sequence[int]) -> _Places:
        """Choose where crops of pages lie, how large they are, and how they are turned."""
        source = self._source
        steps, middles = [], []
        for index in chosen:
            height, width = self._shapes[index]
            scale = self._symbols[index] / self._symbol_px * math.exp(source.gauss(0, _SCALE_SPREAD))
            side = self._crop_px * scale
            turn = math.radians(source.gauss(0, 0.6)) if source.random() < 0.35 else 0.0
            lean = source.gauss(0, 0.02) if source.random() < 0.2 else 0.0
            wide = side * math.exp(source.gauss(0, 0.04))
            steps.append(
                [
                    [wide * math.cos(turn), wide * math.sin(turn)],
                    [-side * math.sin(turn) + side * lean, side * math.cos(turn)],
                ]
            )
            middle = []
            for length, room in ((wide, width), (side, height)):
                slack = max(room / 2 - length * (0.5 - _BEYOND), _BEYOND * length)
                middle.append(room / 2 + source.uniform(-slack, slack))
            middles.append(middle)
        about = put([[self._starts[index], *self._shapes[index]] for index in chosen], self._device)
        starts, heights, widths = about.unbind(1)
        return _Places(starts, heights, widths, put(steps, self._device), put(middles, self._device))

    def _look(self, places: _Places, side: int) -> Tensor:
        """Return the pixels of pages at the middles of a grid of cells: (N, side, side) bytes."""
        line = (torch.arange(side, device=self._device) + 0.5) / side - 0.5
        across, down = line[None, None, :], line[None, :, None]
        column, row = (
            (middle[:, None, None] + step[:, 0, None, None] * across + step[:, 1, None, None] * down)
            .floor()
            .long()
            for middle, step in zip(places.middles.T, places.steps.permute(2, 0, 1), strict=True)
        )
        heights, widths = places.heights[:, None, None], places.widths[:, None, None]
        inside = (column >= 0) & (column < widths) & (row >= 0) & (row < heights)
        index = places.starts[:, None, None] + row * widths + column
        return self._pixels[torch.where(inside, index, len(self._pixels) - 1)]

    def _owners(self, ink: Tensor, fine: Tensor) -> Tensor:
        """Say for each cell with ink whose it is: that of the most ink in it, as the page has it."""
        shades = (fine & SHADES).float()
        whose = (fine >> OWNER_SHIFT) & (NUM_CLASSES - 1)
        amounts = torch.stack(
            [
                functional.avg_pool2d(torch.where(whose == kind, shades, 0.0), 4)
                for kind in range(NUM_CLASSES)
            ],
            1,
        )
        amounts[:, 1:] *= 2  # the marks end where strokes are hard, so rims count as text
        owners = amounts.argmax(1).to(torch.uint8)
        inked = functional.avg_pool2d(ink, CELL_PX)[:, 0] >= _INKED
        return torch.where(inked, owners, NO_INK)

    def _wear(self, ink: Tensor) -> Tensor:
        """Make ink look printed badly, scanned, photographed or sent around."""
        ink = self._run(ink)
        if self._source.random() < 0.6:
            ink = self._blur(ink)
        if self._source.random() < 0.35:
            ink = self._compress(ink)
        if self._source.random() < 0.6:
            ink = self._add_noise(ink)
        if self._source.random() < 0.12:
            ink = (ink > self._uniform(ink, 0.2, 0.45)).float()
        return ink

    def _uniform(self, like: Tensor, low: float, high: float) -> Tensor:
        """Draw a number for each crop, (N, 1, 1, 1)."""
        drawn = torch.rand((len(like), 1, 1, 1), generator=self._noise, device=self._device)
        return low + (high - low) * drawn

    def _run(self, ink: Tensor) -> Tensor:
        """Let ink run, or thin it, in a part of the crops."""
        chance, amount = self._uniform(ink, 0, 1), self._uniform(ink, 0.15, 0.9)
        wide = functional.max_pool2d(ink, 3, 1, 1)
        thin = -functional.max_pool2d(-ink, 3, 1, 1)
        ink = torch.where(chance < 0.15, ink + amount * (wide - ink), ink)
        return torch.where(chance > 0.88, ink + 0.3 * amount * (thin - ink), ink)

    def _blur(self, ink: Tensor) -> Tensor:
        count = len(ink)
        width = self._uniform(ink, 0.3, 1.2)[:, :, 0]
        offsets = torch.arange(-3, 4, device=self._device, dtype=torch.float32)
        kernel = torch.exp(-(offsets**2) / (2 * width**2))  # (N, 1, 7)
        kernel = kernel / kernel.sum(2, keepdim=True)
        flat = ink.transpose(0, 1)
        flat = functional.conv2d(flat, kernel[:, :, None], padding=(0, 3), groups=count)
        flat = functional.conv2d(flat, kernel[:, :, :, None], padding=(3, 0), groups=count)
        return flat.transpose(0, 1)

    def _compress(self, ink: Tensor) -> Tensor:
        """Round the waves in squares of eight pixels, as JPEG does."""
        height, width = ink.shape[2:]
        padded = functional.pad(ink, (0, -width % 8, 0, -height % 8))
        count, _, rows, columns = padded.shape
        place = torch.arange(8, device=self._device, dtype=torch.float32)
        waves = torch.cos((2 * place[None] + 1) * place[:, None] * math.pi / 16) / 2
        waves[0] /= math.sqrt(2)
        table = put(_JPEG_LUMINANCE, self._device).reshape(8, 8) / 255
        coarse = table * torch.exp(self._uniform(ink, math.log(0.2), math.log(2.0)))[..., None, None]
        blocks = padded.reshape(count, 1, rows // 8, 8, columns // 8, 8).transpose(3, 4)
        strengths = waves @ blocks @ waves.T
        blocks = waves.T @ (torch.round(strengths / coarse) * coarse) @ waves
        whole = blocks.transpose(3, 4).reshape(count, 1, rows, columns)
        return whole[:, :, :height, :width].clamp(0, 1)

    def _add_noise(self, ink: Tensor) -> Tensor:
        """Add grain, and take it off again as `i2l.images.ink.extract_ink` does."""
        strength = torch.exp(self._uniform(ink, math.log(0.006), math.log(0.09)))
        grain = torch.randn(ink.shape, generator=self._noise, device=self._device)
        noisy = ink * self._uniform(ink, 0.6, 1.0) + strength * grain
        smooth = functional.avg_pool2d(noisy, 3, 1, 1)
        noisy = torch.where(strength > 0.05, 0.5 * noisy + 0.5 * smooth, noisy)
        left = (noisy - 2 * strength - 4 / 255).clamp(min=0)
        peaks = functional.avg_pool2d(left, 2).amax((1, 2, 3))  # of two pixels each way: grain has none
        left = (left / peaks.clamp(min=0.2)[:, None, None, None]).clamp(max=1)
        kept = torch.where(left >= 40 / 255, left, 0.0)
        return torch.where(functional.avg_pool2d(kept, 3, 1, 1) >= 16 / 255, kept, 0.0)
