"""What happens to the pixels after a page is drawn: margins, shades, blur, noise and JPEG, or a photograph.

A photograph shows the sheet with all that is on it, bent and tilted, through lens and light. It is grey
throughout: reading divides a photograph's mean colour by its paper's, so colours are other greys. Its size
depends on the page and its style alone, whatever lies beside the formula, so that datasets can tell it
beforehand. Paper and sensor have textures (noise, grain, fibres), which are made once and repeated.

Integers and a fixed bit stream only, so that a style gives the same bytes on every machine (JPEG: with the
same libjpeg; photographs: with the same Pillow).
"""

import io
import math
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Final

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageChops, ImageDraw, ImageFilter

from i2l.rendering.rasterize import WHITE, PageImage, Pixels
from i2l.rendering.styles import BOTTOM, LEFT, RIGHT, TOP, Photo, Style, Warp, make_warp, outline

Texture = NDArray[np.int16]

DEVIATION = 32
_HEIGHT, _WIDTH = 512, 1024
_NUM_FIBRES = 900


def cut_texture(texture: Texture, shape: tuple[int, int], seed: int) -> Texture:
    """Cut a piece out of a texture, repeated as needed, at a place that depends on the seed."""
    row, column = seed * 7919 % _HEIGHT, seed * 104_729 % _WIDTH
    rows = np.arange(row, row + shape[0]) % _HEIGHT
    columns = np.arange(column, column + shape[1]) % _WIDTH
    piece: Texture = texture.take(rows, axis=0).take(columns, axis=1)
    return piece


@cache
def white_noise() -> Texture:
    """Make the noise of a sensor: every pixel for itself."""
    return _level(_raw(1))


@cache
def soft_noise() -> Texture:
    """Make coloured specks, which a camera smooths, as they look in grey."""
    return _level(_blurred(_raw(2), 2.2))


@cache
def paper_grain() -> Texture:
    """Make the grain of paper: fine, with larger clouds."""
    fine, clouds = _level(_blurred(_raw(3), 0.8)), _level(_blurred(_raw(4), 5.0))
    return _level(4 * fine + 3 * clouds)


@cache
def paper_fibres() -> Texture:
    """Make short hairs, darker and lighter than the paper."""
    image = Image.new("L", (_WIDTH, _HEIGHT), 128)
    pen = ImageDraw.Draw(image)
    numbers = np.random.PCG64(5).random_raw(_NUM_FIBRES * 6).reshape(-1, 6)
    for x, y, first, second, third, shade in (numbers >> np.uint64(32)).tolist():
        points = [(x % _WIDTH, y % _HEIGHT)]
        for step in (first, second, third):
            points.append((points[-1][0] + step % 13 - 6, points[-1][1] + step // 13 % 9 - 4))
        pen.line(points, fill=(70, 100, 160)[shade % 3])
    softened = np.asarray(image.filter(ImageFilter.BoxBlur(0.6))).astype(np.int16)
    return (softened - 128) * DEVIATION // 32


def _raw(seed: int) -> NDArray[np.uint8]:
    # The raw stream never changes; the mean of four bytes is close to normal.
    stream = np.random.PCG64(seed).random_raw(_HEIGHT * _WIDTH // 2).view(np.uint8)
    sums = stream.reshape(_HEIGHT, _WIDTH, 4).sum(axis=2, dtype=np.int32)
    noise: NDArray[np.uint8] = (sums // 4).astype(np.uint8)
    return noise


def _blurred(noise: NDArray[np.uint8], radius_px: float) -> Texture:
    wide = (np.clip((noise.astype(np.int32) - 128) * 2 + 128, 0, 255)).astype(np.uint8)
    return np.asarray(Image.fromarray(wide).filter(ImageFilter.GaussianBlur(radius_px))).astype(np.int16)


def _level(values: NDArray[np.integer]) -> Texture:
    centred = values.astype(np.float64) - values.mean()
    levelled: Texture = np.rint(centred * (DEVIATION / centred.std())).astype(np.int16)
    return levelled


Neighbour = Callable[[int], Pixels | None]  # the ink of the page so many pages on, at the same scale

_MAX_SHOWN: Final = 0.6  # of the height of a line that is cut off by the edge of the picture
_LIGHT_PX: Final = 8  # light changes over this distance
_KERNEL_PX: Final = 5  # Pillow's largest filter
_MAX_RADIUS_PX: Final = 2.4
_MAX_MOTION_PX: Final = 4.0
_RULE_EM: Final = 0.05
_LEVEL: Final = 128  # units of texture for a grey level
_MM_PER_INCH: Final = 25.4


def take_photo(page: Pixels, style: Style, photo: Photo, neighbour: Neighbour) -> tuple[Pixels, Warp]:
    """Photograph a page; return the picture, and where points of the page came to lie."""
    height, width = page.shape
    em_px = style.dpi * style.size_pt / 72
    warp = make_warp(photo, width=width, height=height, em_px=em_px)
    room = _room(style, photo, em_px)
    ink = warp.to_photo(outline(0, 0, width, height))
    left, top = (math.floor(low) - room[side] for low, side in zip(ink.min(axis=0), (LEFT, TOP), strict=True))
    right, bottom = (
        math.ceil(high) + room[side] for high, side in zip(ink.max(axis=0), (RIGHT, BOTTOM), strict=True)
    )
    warp = replace(warp, left=left, top=top)
    size = right - left, bottom - top
    seen = warp.to_page(outline(0, 0, *size))
    origin = np.floor(seen.min(axis=0)).astype(int) - 2
    extent = np.ceil(seen.max(axis=0)).astype(int) + 2 - origin
    sheet = _Sheet(page, (-int(origin[0]), -int(origin[1])), (int(extent[1]), int(extent[0])), em_px)
    _draw_sheet(sheet, style, photo, neighbour)
    image = warp.apply(Image.fromarray(sheet.pixels), (int(origin[0]), int(origin[1])), size)
    return _develop(image, style, photo), warp


def _room(style: Style, photo: Photo, em_px: float) -> dict[int, int]:
    """Return the pixels between the formula and the edge of the picture, by side."""
    margins = {
        TOP: (style.margin_top_px, photo.cut_top_em),
        BOTTOM: (style.margin_bottom_px, photo.cut_bottom_em),
        LEFT: (style.margin_left_px, photo.cut_left_em),
        RIGHT: (style.margin_right_px, photo.cut_right_em),
    }
    gap = photo.gap_em * em_px
    room = {}
    for side, (margin, cut_em) in margins.items():
        room[side] = round(gap + cut_em * em_px) if cut_em else margin
        if photo.frame_sides & side:
            room[side] = max(room[side], math.ceil(gap + 3 * _RULE_EM * em_px))
    return room


class _Sheet:
    """The paper around a formula, white at first, and what is put on it."""

    def __init__(self, page: Pixels, place: tuple[int, int], shape: tuple[int, int], em_px: float) -> None:
        self.pixels: Pixels = np.full(shape, WHITE, dtype=np.uint8)
        self.em_px = em_px
        self.left, self.top = place
        self.bottom, self.right = self.top + page.shape[0], self.left + page.shape[1]
        self.put(page, self.left, self.top)

    def put(self, ink: Pixels, left: int, top: int) -> None:
        """Lay ink over what is there; what lies beyond the edge is lost."""
        skip_rows, skip_columns = max(0, -top), max(0, -left)
        target = self.pixels[max(0, top) :, max(0, left) :]
        piece = ink[skip_rows : skip_rows + target.shape[0], skip_columns : skip_columns + target.shape[1]]
        target = target[: piece.shape[0], : piece.shape[1]]
        np.minimum(target, piece, out=target)

    def put_beside(self, ink: Pixels, side: int, gap_px: float, shown_px: float, shift: float) -> None:
        """Lay a neighbour beside the formula, so far off that no more than a part of it is in the picture."""
        height, width = ink.shape
        extent = height if side in (TOP, BOTTOM) else width
        gap = round(gap_px + max(0.0, shown_px - _MAX_SHOWN * extent))
        along = (self.left + self.right - width) // 2 + round(shift * 4 * self.em_px)
        across = (self.top + self.bottom - height) // 2
        places = {
            TOP: (along, self.top - gap - height),
            BOTTOM: (along, self.bottom + gap),
            LEFT: (self.left - gap - width, across),
            RIGHT: (self.right + gap, across),
        }
        self.put(ink, *places[side])

    def draw_line(self, *, row: float | None = None, column: float | None = None, ink: int = 255) -> None:
        """Draw a thin straight line from edge to edge."""
        thickness = max(1, round(_RULE_EM * self.em_px))
        start = round(row if row is not None else column or 0.0)
        line = slice(max(0, start), max(0, start + thickness))
        target = self.pixels[line] if row is not None else self.pixels[:, line]
        np.minimum(target, np.uint8(WHITE - ink), out=target)


def _draw_sheet(sheet: _Sheet, style: Style, photo: Photo, neighbour: Neighbour) -> None:
    gap = photo.gap_em * sheet.em_px
    cuts = (
        (TOP, photo.cut_top_em, -1),
        (BOTTOM, photo.cut_bottom_em, 1),
        (LEFT, photo.cut_left_em, -2),
        (RIGHT, photo.cut_right_em, 2),
    )
    for side, cut_em, offset in cuts:
        if cut_em and (ink := neighbour(offset)) is not None:
            sheet.put_beside(ink, side, gap, cut_em * sheet.em_px, photo.seed % 17 / 8 - 1)
    if photo.back and (ink := neighbour(3)) is not None:
        faint = WHITE - ((WHITE - ink[:, ::-1]).astype(np.uint16) * photo.back // WHITE).astype(np.uint8)
        shift = photo.seed % 13 / 6 - 1
        sheet.put(faint, sheet.left + round(shift * 3 * sheet.em_px), sheet.top + round(shift * sheet.em_px))
    if photo.frame_sides:
        places = {TOP: sheet.top - gap, BOTTOM: sheet.bottom + gap}
        for side, row in places.items():
            if photo.frame_sides & side:
                sheet.draw_line(row=row)
        places = {LEFT: sheet.left - gap, RIGHT: sheet.right + gap}
        for side, column in places.items():
            if photo.frame_sides & side:
                sheet.draw_line(column=column)
    if photo.ruling_mm:
        step = photo.ruling_mm / _MM_PER_INCH * style.dpi
        start = photo.seed % 11 / 11 * step
        for row in np.arange(start, sheet.pixels.shape[0], step):
            sheet.draw_line(row=float(row), ink=photo.ruling)
        if photo.squared:
            for column in np.arange(start, sheet.pixels.shape[1], step):
                sheet.draw_line(column=float(column), ink=photo.ruling)


def _develop(image: Image.Image, style: Style, photo: Photo) -> Pixels:
    """Turn the ink that the lens saw into the greys that the sensor wrote."""
    for kernel in _lens(photo):
        image = image.filter(kernel)
    image = image.point(
        [style.ink + (grey * (style.paper - style.ink) + 127) // WHITE for grey in range(256)]
    )
    if photo.gradient or photo.shadow or photo.vignette:
        image = ImageChops.multiply(image, _light(image.size, photo))
    if photo.sharpen:
        image = image.filter(ImageFilter.UnsharpMask(radius=1.5, percent=photo.sharpen, threshold=0))
    return _add_texture(np.asarray(image), style, photo)


def _add_texture(pixels: Pixels, style: Style, photo: Photo) -> Pixels:
    """Add grain, fibres, noise and moiré, together: weak ones count before they are rounded."""
    layers = (
        (photo.grain, paper_grain),
        (photo.fibres, paper_fibres),
        (photo.colour_noise, soft_noise),
        (style.noise, white_noise),
    )
    total: Texture = np.full(pixels.shape, _LEVEL // 2, dtype=np.int16)
    for number, (deviation, texture) in enumerate(layers):
        weight = np.int16(round(deviation * _LEVEL / DEVIATION))
        if weight:
            total += cut_texture(texture(), pixels.shape, photo.seed + 31 * number) * weight
    if photo.moire:
        total += _moire(pixels.shape, photo)
    total //= _LEVEL
    total += pixels
    return np.clip(total, 0, WHITE).astype(np.uint8)


def _moire(shape: tuple[int, int], photo: Photo) -> Texture:
    """Draw two gratings that beat with each other."""
    amplitude = photo.moire / 2 * _LEVEL
    waves = np.zeros(shape, dtype=np.float32)
    for period_px, angle_deg in (
        (photo.moire_px, photo.moire_deg),
        (1.07 * photo.moire_px, photo.moire_deg + 4),
    ):
        frequency, angle = 2 * math.pi / period_px, math.radians(angle_deg)
        rows = np.arange(shape[0], dtype=np.float32)[:, None] * np.float32(frequency * math.sin(angle))
        columns = np.arange(shape[1], dtype=np.float32) * np.float32(frequency * math.cos(angle))
        waves += np.cos(rows) * np.cos(columns)
        waves -= np.sin(rows) * np.sin(columns)
    rounded: Texture = np.rint(waves * np.float32(amplitude)).astype(np.int16)
    return rounded


def _lens(photo: Photo) -> list[ImageFilter.Kernel]:
    """Return the filters that blur as lens and hand did; a large blur is made of several small ones."""
    kernels = []
    if photo.defocus_px:
        times = math.ceil((photo.defocus_px / _MAX_RADIUS_PX) ** 2)
        kernels += [_disc(round(photo.defocus_px / math.sqrt(times), 1))] * times
    if photo.motion_px:
        times = math.ceil((photo.motion_px / _MAX_MOTION_PX) ** 2)
        kernels += [
            _streak(round(photo.motion_px / math.sqrt(times), 1), round(photo.motion_deg, -1))
        ] * times
    return kernels


@cache
def _disc(radius_px: float) -> ImageFilter.Kernel:
    fine = (np.arange(_KERNEL_PX * 8) + 0.5) / 8 - _KERNEL_PX / 2
    inside = fine**2 + fine[:, None] ** 2 <= max(radius_px, 0.5) ** 2
    return _kernel(inside.reshape(_KERNEL_PX, 8, _KERNEL_PX, 8).sum(axis=(1, 3)))


@cache
def _streak(length_px: float, angle_deg: float) -> ImageFilter.Kernel:
    steps = np.linspace(-length_px / 2, length_px / 2, 33)
    columns, rows = (steps * turn(math.radians(angle_deg)) for turn in (math.cos, math.sin))
    places = np.arange(_KERNEL_PX) - _KERNEL_PX // 2
    near_columns, near_rows = (
        np.maximum(0, 1 - np.abs(places[:, None] - value)) for value in (columns, rows)
    )
    return _kernel(np.rint(near_rows @ near_columns.T * 64))


def _kernel(weights: NDArray[np.generic]) -> ImageFilter.Kernel:
    values = weights.astype(int).ravel().tolist()
    return ImageFilter.Kernel((_KERNEL_PX, _KERNEL_PX), values, scale=sum(values))


def _light(size: tuple[int, int], photo: Photo) -> Image.Image:
    """Return the share of light that reaches each pixel, 255 for all of it."""
    width, height = size
    columns, rows = max(2, width // _LIGHT_PX), max(2, height // _LIGHT_PX)
    largest = max(width, height)
    x = np.linspace(-width / largest, width / largest, columns)
    y = np.linspace(-height / largest, height / largest, rows)[:, None]

    def along(angle_deg: float) -> NDArray[np.float64]:
        angle = math.radians(angle_deg)
        across, down = math.cos(angle), math.sin(angle)
        reach = (abs(across) * width + abs(down) * height) / largest
        return (x * across + y * down) / reach  # -1 to 1

    light = 1 - photo.gradient * (0.5 + 0.5 * along(photo.gradient_deg))
    if photo.shadow:
        depth = np.clip((along(photo.shadow_deg) - photo.shadow_place) / photo.shadow_soft + 0.5, 0, 1)
        light = light * (1 - photo.shadow * depth * depth * (3 - 2 * depth))
    if photo.vignette:
        light = light * (1 - photo.vignette * (x * x + y * y) / (x[-1] ** 2 + y[-1, 0] ** 2))
    small = Image.fromarray(np.rint(light * WHITE).astype(np.uint8))
    return small.resize(size, Image.Resampling.BILINEAR)


def degrade(
    image: PageImage, style: Style, neighbour: Neighbour = lambda offset: None, *, coarse: float = 1.0
) -> PageImage:
    """Do to a drawn page what its style says, and keep track of where its points go.

    ``neighbour`` draws the page so many pages on, for photographs with neighbours of the formula in them;
    ``coarse`` is how many pixels of a photograph are one of the sensor, as in a part of a larger one.
    """
    if image.pixels is None:
        return image
    if style.photo is not None:
        pixels, warp = take_photo(image.pixels, style, style.photo, neighbour)
        return PageImage(_sensed(pixels, style.jpeg_quality, coarse), image.matrix, warp=warp)
    pixels = image.pixels
    rows, columns = (
        (style.margin_top_px, style.margin_bottom_px),
        (style.margin_left_px, style.margin_right_px),
    )
    if any(rows + columns):
        pixels = np.pad(pixels, (rows, columns), constant_values=WHITE)
    if style.ink or style.paper != WHITE:
        shades = style.ink + (np.arange(256) * (style.paper - style.ink) + 127) // 255
        pixels = shades.astype(np.uint8)[pixels]
    if style.blur_px:
        pixels = _blur(pixels, style.blur_px)
    if style.noise:
        pixels = _add_noise(pixels, style.noise, style.noise_seed)
    a, b, c, d, e, f = image.matrix
    matrix = a, b, c, d, e + style.margin_left_px, f + style.margin_top_px
    return PageImage(_jpeg(pixels, style.jpeg_quality), matrix)


def _blur(pixels: Pixels, deviation_px: float) -> Pixels:
    radius = math.ceil(2.5 * deviation_px)
    bell = np.exp(-0.5 * (np.arange(-radius, radius + 1) / deviation_px) ** 2)
    weights = np.round(bell / bell.sum() * 256).astype(np.int32)
    weights[radius] += 256 - weights.sum()
    for axis in (0, 1):
        length = pixels.shape[axis]
        padded = np.pad(
            pixels, [(radius, radius) if axis == other else (0, 0) for other in (0, 1)], mode="edge"
        )
        total = np.full(pixels.shape, 128, dtype=np.int32)
        for shift, weight in enumerate(weights):
            total += weight * padded.take(np.arange(shift, shift + length), axis=axis)
        pixels = (total >> 8).astype(np.uint8)
    return pixels


def _add_noise(pixels: Pixels, deviation: float, seed: int) -> Pixels:
    # The sum of four bytes is close to normal, with a deviation of 147.8; the raw stream never changes.
    stream = np.random.PCG64(seed).random_raw((pixels.size + 1) // 2)
    sums = stream.view(np.uint8).reshape(-1, 4).sum(axis=1, dtype=np.int32)[: pixels.size] - 510
    offsets = (sums.reshape(pixels.shape) * round(deviation * 65536 / 147.8) + 32768) >> 16
    noisy: Pixels = np.clip(pixels + offsets, 0, 255).astype(np.uint8)
    return noisy


def _sensed(pixels: Pixels, quality: int, coarse: float) -> Pixels:
    """Return what a file has of a photograph with fewer pixels, as large as it would be with all of them."""
    if coarse <= 1:
        return _jpeg(pixels, quality)
    height, width = pixels.shape
    size = max(1, round(width / coarse)), max(1, round(height / coarse))
    small = np.asarray(Image.fromarray(pixels).resize(size, Image.Resampling.BOX))
    return np.asarray(
        Image.fromarray(_jpeg(small, quality)).resize((width, height), Image.Resampling.BICUBIC)
    )


def _jpeg(pixels: Pixels, quality: int) -> Pixels:
    if not quality:
        return pixels
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, format="jpeg", quality=quality)
    return np.asarray(Image.open(file), dtype=np.uint8)
