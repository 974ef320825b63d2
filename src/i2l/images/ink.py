"""Ink on paper out of any picture, the symbols it forms, and whether it is made of strokes at all.

`extract_ink` says how dark each pixel is against its background, whatever the colours. White type on black,
blue on yellow, a transparent background, a photograph with a shadow on it: what counts is the distance to
the background. Black on white comes out exactly as it went in.

`find_symbols` finds symbols from ink alone: connected pieces, and pieces that belong together like those of
`=`. Runs of ink in neighbouring rows that touch, also by a corner, are of one piece. It is done in NumPy,
since reading must not need SciPy.

`deep_share` and `stroke_likeness` tell strokes, which formulas are made of, from shades, clouds and solid
areas, `is_grain` tells symbols from grain. What their limits rest on is in docs/reading.md. `looks_written`
tells strokes that a hand drew.
"""

import math
from typing import Final

import numpy as np
import numpy.typing as npt
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray
from PIL import Image, ImageChops, ImageFilter

from i2l.images.open import EmptyImageError

Ink = NDArray[np.uint8]  # 0 is paper, 255 full ink
InkMask = npt.NDArray[np.bool_]
Boxes = npt.NDArray[np.int64]  # (N, 4): left, top, right, bottom, half-open

# Finding ink.
CLEAN_SHARE: Final = 0.4  # of pixels that are exactly paper or full ink, in an image without noise
EDGE_PX: Final = 3
EDGE_SHARE: Final = 0.7  # of the edge must be of one colour to be paper
WHITE: Final = 255
WHITE_SHARE: Final = 0.1  # of a narrow picture must be white, for that to be its paper
MIN_CONTRAST: Final = 24
FULL_CONTRAST: Final = 200  # ink at least this dark is left as it is
CELL_SHARE: Final = 0.4  # side of the cells in which light is measured, over the root of the shorter side
REACH_CELLS: Final = 4  # strokes are narrower than twice as many cells
SMOOTHED_GRAIN: Final = 0.15  # of the contrast of ink: grain above it is smoothed
SMOOTHING: Final = ImageFilter.Kernel((3, 3), (1, 2, 1, 2, 4, 2, 1, 2, 1))
PEAK_PX: Final = 16  # cells in which the darkness of ink is measured
PEAK_REACH: Final = 3  # cells to each side that are looked at
FULL_PEAK: Final = 1.1  # of the mean of their peaks: thin strokes among them are fainter
MAX_GAIN: Final = 3  # what is fainter by more is no ink
NOISY_INK: Final = 40  # in a noisy image, what is fainter is no ink
SPECK_INK: Final = 16  # mean of a pixel and its neighbours that makes it more than a speck

# Joining pieces to symbols, in pixels of the model's canvas, where a line of symbols is about 30 tall.
_MAX_GAP_PX: Final = 10  # between bars of one symbol
_WIDEST_PX: Final = 40  # of such bars; a fraction's bar over a root of its width is another symbol
_DOT_PX: Final = 6  # of an i or a j, at most; and its gap
_STEM_PX: Final = 16
_MAX_PIECES: Final = 2000  # more is grain: every pair of them would take minutes
_COVERED: Final = 0.8  # of the width of a piece, by another above or below it

# Telling strokes from other ink.
MAX_DEEP_SHARE: Final = 0.4  # of ink that lies deeper in other ink than strokes do
MIN_LIKENESS: Final = 0.25  # of ink to the strokes of its picture
MANY_GRAINS: Final = 400  # pieces of hardly a pixel; pictures of formulas have up to 100
GRAIN_SHARE: Final = 0.4  # of all pieces, that are such grains
_GRAIN_PX: Final = 2  # pixels that a grain has at most
_DEPTH: Final = 0.25  # of the size of a symbol; bold strokes are half as deep
_NARROW_PX: Final = 12  # a bar that was cropped to its ink
_WORK_PX: Final = 20  # size of a symbol where this is measured

# Telling writing from print: a logistic model of what `print_likeness` measures, as
# `python -m benchmarks.noticed DATA --fit` gives it.
PRINT_BIAS: Final = -6.7
PRINT_WEIGHTS: Final = (10.2, 4.0, 6.7, 12.8, -1.4)
_SOLID_PX: Final = 12  # of ink that a symbol has, at least
_TALL_PX: Final = 64  # higher ones are brackets
_FEW_SYMBOLS: Final = 3
_MANY_SYMBOLS: Final = 80  # more tell nothing more
_NO_BARS: Final = 0.75  # in the place of what bars fill, where there are none


def extract_ink(image: Image.Image) -> Ink:
    """Return the darkness of each pixel against the background, (H, W).

    Raises:
        EmptyImageError: if nothing stands out from the background.
    """
    colours = image_colours(image)
    ink = np.abs(colours - _background(colours)).max(axis=2)
    narrow = min(ink.shape) <= _NARROW_PX  # too little to tell light from shadow
    if not narrow and ((ink == 0) | (ink == ink.max())).mean() < CLEAN_SHARE:
        ink = _without_noise(_shadowless(colours))
    peak = int(ink.max(initial=0))
    if peak < MIN_CONTRAST:
        raise EmptyImageError("The image is empty: nothing stands out from its background.")
    if peak < FULL_CONTRAST:
        ink = ink.astype(np.int32) * 255 // peak
    strength: Ink = np.clip(ink, 0, 255).astype(np.uint8)
    return strength


def image_colours(image: Image.Image) -> NDArray[np.int16]:
    """Return the channels, (H, W, 1 or 3), with what is transparent as white paper."""
    mode = image.mode
    if mode.startswith("I") or mode == "F":
        return _wide_grey(np.asarray(image))
    if mode in ("LA", "La", "PA", "RGBA", "RGBa") or "transparency" in image.info:
        return _over_paper(np.asarray(image.convert("RGBA")).astype(np.int16))
    if mode == "LAB":
        image = image.getchannel(0)  # lightness
    elif mode not in ("1", "L", "RGB"):
        image = image.convert("RGB")
    channels = np.asarray(image.convert("L") if mode == "1" else image).astype(np.int16)
    return channels[:, :, None] if channels.ndim == 2 else channels


def _background(colours: NDArray[np.int16]) -> NDArray[np.int16]:
    """Return the colour of the paper: that along the edge if it is one, else the most usual one.

    A narrow picture is all edge, and a bracket that was cropped to its ink may have more ink than paper: if
    there is white in it, that is the paper.
    """
    narrow = min(colours.shape[:2]) <= _NARROW_PX
    if narrow and (colours.min(axis=2) == WHITE).mean() >= WHITE_SHARE:
        return np.full(colours.shape[2], WHITE, dtype=np.int16)
    band = EDGE_PX
    edges = (colours[:band], colours[-band:], colours[:, :band], colours[:, -band:])
    edge = np.concatenate([part.reshape(-1, colours.shape[2]) for part in edges])
    colour = np.median(edge, axis=0)
    if (np.abs(edge - colour).max(axis=1) < MIN_CONTRAST).mean() < EDGE_SHARE:
        colour = np.median(colours.reshape(-1, colours.shape[2]), axis=0)
    paper: NDArray[np.int16] = colour.astype(np.int16)
    return paper


def _wide_grey(values: NDArray[np.generic]) -> NDArray[np.int16]:
    """Bring 16-bit, 32-bit and floating grey to 0..255: by the range of the bits used, else of the image."""
    grey = np.nan_to_num(values.astype(np.float64), posinf=0.0, neginf=0.0)
    low, high = float(grey.min()), float(grey.max())
    tops = [top for top in (255.0, 4095.0, 65535.0) if high <= top]  # of 8, 12 and 16 bits
    if tops and low >= 0 and high > 1:
        low, high = 0.0, tops[0]
    scaled = (grey - low) * (255 / max(high - low, 1e-12))
    return np.rint(scaled).astype(np.int16)[:, :, None]


def _over_paper(colours: NDArray[np.int16]) -> NDArray[np.int16]:
    """Lay a transparent picture on white; on black if its ink is white."""
    alpha = colours[:, :, 3:].astype(np.int32)
    for paper in (255, 0):
        laid = (colours[:, :, :3] * alpha + paper * (255 - alpha)) // 255
        if np.ptp(laid, axis=(0, 1)).max() >= MIN_CONTRAST:
            break
    return laid.astype(np.int16)


def _shadowless(colours: NDArray[np.int16]) -> Ink:
    """Divide by the paper's own lightness; type lighter than its paper is inverted.

    The paper's lightness is a closing of a smaller picture: the lightest around each place, and of those the
    darkest around. Strokes vanish from it, while slopes and edges of light and shadow stay where they are.
    """
    grey = np.clip(colours.mean(axis=2) if colours.shape[2] > 1 else colours[:, :, 0], 0, 255)
    picture = Image.fromarray(grey.astype(np.uint8))
    cell = max(2, round(CELL_SHARE * math.sqrt(min(picture.size))))
    small = picture.reduce(cell)
    around = small.filter(ImageFilter.BoxBlur(REACH_CELLS))
    apart = np.asarray(small).astype(np.int64) - np.asarray(around)
    if np.sum(apart**3) > 0:  # the few that stand out are light: they are the type
        picture, small = ImageChops.invert(picture), ImageChops.invert(small)
    light = _close(np.asarray(small))
    paper = Image.fromarray(light).filter(ImageFilter.BoxBlur(1))
    box = (0, 0, picture.width / cell, picture.height / cell)
    lightness = np.asarray(paper.resize(picture.size, Image.Resampling.BILINEAR, box=box)).astype(np.int32)
    shares = np.asarray(picture) * np.int32(255) // np.maximum(lightness, 1)
    ink: Ink = (255 - np.minimum(shares, 255)).astype(np.uint8)
    return ink


def _close(values: Ink) -> Ink:
    """Fill what is darker than its surroundings and narrower than twice the reach."""
    values = np.pad(values, 2 * REACH_CELLS, mode="edge")  # a shadow in a corner goes on beyond it
    for pick in (np.max, np.min):
        for axis in (0, 1):
            values = pick(sliding_window_view(values, 2 * REACH_CELLS + 1, axis=axis), axis=2)
    return values


def _without_noise(ink: Ink) -> NDArray[np.int16]:
    """Take off what the paper's own grain amounts to; where that is much, smooth it first."""
    middle, grain, contrast = _measure_grain(ink)
    if grain > SMOOTHED_GRAIN * contrast:
        ink = np.asarray(Image.fromarray(ink).filter(SMOOTHING))
        middle, grain, _ = _measure_grain(ink)
    left = np.maximum(ink.astype(np.int16) - np.int16(min(middle + grain + 4, 128)), 0)
    counts = np.bincount(left.ravel(), minlength=256)
    counts[0] = 0
    peak = _rank(counts, 0.95)
    if peak < MIN_CONTRAST:
        return np.zeros_like(left)
    darkened = np.minimum(left.astype(np.int32) * 255 // _local_peaks(left, peak), 255)
    kept = np.where(darkened >= NOISY_INK, darkened, 0).astype(np.uint8)
    around = np.asarray(Image.fromarray(kept).filter(ImageFilter.BoxBlur(1)))
    return np.where(around >= SPECK_INK, kept, 0).astype(np.int16)


def _local_peaks(ink: NDArray[np.int16], peak: int) -> NDArray[np.int32]:
    """Return how dark full ink is around each place: type on a dark ground fades where the light does."""
    height, width = ink.shape
    rows, columns = -(-height // PEAK_PX), -(-width // PEAK_PX)
    padded = np.zeros((rows * PEAK_PX, columns * PEAK_PX), dtype=np.int16)
    padded[:height, :width] = np.minimum(ink, peak)
    peaks = padded.reshape(rows, PEAK_PX, columns, PEAK_PX).max(axis=(1, 3))
    inked = peaks * MAX_GAIN >= peak  # others hold no ink, only grain
    sums, counts = (
        np.asarray(Image.fromarray(values.astype(np.uint8)).filter(ImageFilter.BoxBlur(PEAK_REACH)))
        for values in (peaks * inked, inked * 255)
    )
    means = np.where(counts > 0, sums * (255 * FULL_PEAK) / np.maximum(counts, 1), peak)
    local = Image.fromarray(np.clip(means, peak / MAX_GAIN, peak).astype(np.uint8))
    box = (0, 0, width / PEAK_PX, height / PEAK_PX)
    return np.asarray(local.resize((width, height), Image.Resampling.BILINEAR, box=box)).astype(np.int32)


def _measure_grain(ink: Ink) -> tuple[int, int, int]:
    """Return how dark paper is in the middle, and how much darker its grain and the ink reach."""
    counts = np.bincount(ink.ravel(), minlength=256)
    middle = _rank(counts, 0.5)
    distances = np.bincount(np.abs(np.arange(256) - middle), weights=counts, minlength=256)
    return middle, 3 * _rank(distances, 0.5), _rank(counts, 0.98) - middle


def _rank(counts: NDArray[np.generic], share: float) -> int:
    """Return the value that a share of the counted values does not exceed."""
    sums = np.cumsum(counts)
    return int(np.searchsorted(sums, share * sums[-1]))


def ink_bounds(ink: Ink) -> tuple[int, int, int, int]:
    """Return left, top, right, bottom (half-open) of all ink.

    Raises:
        EmptyImageError: if there is none.
    """
    rows = np.flatnonzero(ink.any(axis=1))
    columns = np.flatnonzero(ink.any(axis=0))
    if not len(rows):
        raise EmptyImageError("The image is empty: nothing stands out from its background.")
    return int(columns[0]), int(rows[0]), int(columns[-1]) + 1, int(rows[-1]) + 1


def find_symbols(ink: InkMask) -> Boxes:
    """Return the box of each symbol."""
    return join_pieces(find_pieces(ink))


def join_pieces(pieces: Boxes) -> Boxes:
    """Return the box of each symbol from those of connected pieces of ink.

    Stacked pieces are one symbol if they are about as wide as each other (`=`, `\\leq`) or one is a dot over
    a stem (`i`). Letters that touch are one symbol too.
    """
    if len(pieces) > _MAX_PIECES:
        return pieces
    width = pieces[:, 2] - pieces[:, 0]
    height = pieces[:, 3] - pieces[:, 1]
    first, second = np.triu_indices(len(pieces), 1)
    overlap = np.minimum(pieces[first, 2], pieces[second, 2]) - np.maximum(
        pieces[first, 0], pieces[second, 0]
    )
    gap = np.maximum(pieces[first, 1], pieces[second, 1]) - np.minimum(pieces[first, 3], pieces[second, 3])
    wider, narrower = np.maximum(width[first], width[second]), np.minimum(width[first], width[second])
    alike = (
        (overlap >= _COVERED * wider) & (wider <= _WIDEST_PX) & (gap <= np.minimum(0.6 * wider, _MAX_GAP_PX))
    )
    dotted = (
        (overlap >= _COVERED * narrower)
        & (np.maximum(narrower, np.minimum(height[first], height[second])) <= _DOT_PX)
        & (wider <= _STEM_PX)
        & (gap <= _DOT_PX)
    )
    joined = (gap >= 0) & (alike | dotted)
    return _enclose(pieces, _connect(len(pieces), first[joined], second[joined]))


def find_pieces(ink: InkMask) -> Boxes:
    """Return the box of each connected piece of ink."""
    return measure_pieces(ink)[0]


def measure_pieces(ink: InkMask) -> tuple[Boxes, npt.NDArray[np.int64]]:
    """Return the box of each connected piece of ink, and how many pixels it has."""
    runs, group = find_runs(ink)
    amounts = np.bincount(group, weights=runs[:, 2] - runs[:, 0]).astype(np.int64)
    return _enclose(runs, group), amounts


def find_runs(ink: InkMask) -> tuple[Boxes, npt.NDArray[np.int64]]:
    """Return the runs of ink, row by row, each as a box one pixel high, and the piece that each is of."""
    steps = np.diff(np.pad(ink.astype(np.int8), ((0, 0), (1, 1))), axis=1)
    rows, starts = np.nonzero(steps == 1)
    ends = np.nonzero(steps == -1)[1]
    runs = np.stack([starts, rows, ends, rows + 1], axis=1).astype(np.int64)
    # Runs come row by row, left to right, so their places in one long line rise.
    pitch = ink.shape[1] + 2
    below = (rows + 1) * pitch
    first = np.searchsorted(rows * pitch + ends, below + starts, side="left")
    last = np.searchsorted(rows * pitch + starts, below + ends, side="right")
    counts = np.maximum(last - first, 0)
    upper = np.repeat(np.arange(len(runs)), counts)
    lower = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts) + np.repeat(first, counts)
    return runs, _connect(len(runs), upper, lower)


def _connect(
    num_items: int, first: npt.NDArray[np.int64], second: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    """Return the number of each item's group, where pairs of items are of one group."""
    groups = np.arange(num_items)
    while True:
        lowest = np.minimum(groups[first], groups[second])
        joined = groups.copy()
        np.minimum.at(joined, first, lowest)
        np.minimum.at(joined, second, lowest)
        joined = joined[joined]
        if np.array_equal(joined, groups):
            break
        groups = joined
    return np.unique(groups, return_inverse=True)[1]


def _enclose(boxes: Boxes, group: npt.NDArray[np.int64]) -> Boxes:
    """Return one box for each group of boxes."""
    num_groups = int(group.max(initial=-1)) + 1
    corners = np.full((num_groups, 2), np.iinfo(np.int64).max)
    ends = np.zeros((num_groups, 2), np.int64)
    np.minimum.at(corners, group, boxes[:, :2])
    np.maximum.at(ends, group, boxes[:, 2:])
    return np.concatenate([corners, ends], axis=1)


def is_grain(ink: InkMask) -> bool:
    """Tell whether ink is specks, as grain has them: hundreds of single pixels, hardly fewer than others."""
    _, amounts = measure_pieces(ink)
    grains = np.count_nonzero(amounts <= _GRAIN_PX)
    return bool(grains > MANY_GRAINS and grains >= GRAIN_SHARE * len(amounts))


def deep_share(ink: Ink, *, symbol_px: float) -> float:
    """Return the share of ink that lies deeper inside other ink than half of a very bold stroke."""
    ink = _at_work_size(ink, symbol_px)
    radius = _radius(symbol_px)
    deep = _slide(np.pad(ink, radius), radius, np.minimum)[radius:-radius, radius:-radius]
    return float(deep.sum(dtype=np.int64) / max(int(ink.sum(dtype=np.int64)), 1))


def stroke_likeness(grey: NDArray[np.uint8], ink: Ink, *, symbol_px: float) -> float:
    """Return how well ink agrees with the strokes of the picture that it was found in, at most 1.

    Strokes are what closing (or, of light ones, opening) fills up: what is darker than all that lies a little
    to either side. A shade has none, wherever its ink was found. The correlation with these is given, and 1
    for a picture of nothing but paper and full ink, or one as narrow as a stroke.
    """
    if min(grey.shape) < _NARROW_PX or ((grey == grey.min()) | (grey == grey.max())).mean() >= CLEAN_SHARE:
        return 1.0
    grey, ink = (_at_work_size(pixels, symbol_px) for pixels in (grey, ink))
    return max(_correlation(_top_hat(pixels, _radius(symbol_px)), ink) for pixels in (grey, 255 - grey))


def _top_hat(grey: NDArray[np.uint8], radius: int) -> NDArray[np.uint8]:
    """Return how much darker each pixel is than the least dark way past it on both sides."""
    margin = 2 * radius
    padded = np.pad(grey, margin, mode="edge")
    closed = _slide(_slide(padded, radius, np.maximum), radius, np.minimum)
    return closed[margin:-margin, margin:-margin] - grey


def _correlation(first: NDArray[np.uint8], second: NDArray[np.uint8]) -> float:
    if first.std() == 0 or second.std() == 0:
        return 0.0
    return float(np.corrcoef(first.ravel(), second.ravel())[0, 1])


def _radius(symbol_px: float) -> int:
    return max(1, round(_DEPTH * min(symbol_px, _WORK_PX)))


def _at_work_size(pixels: NDArray[np.uint8], symbol_px: float) -> NDArray[np.uint8]:
    """Make a picture smaller, if its symbols are larger than is needed."""
    if symbol_px <= _WORK_PX:
        return pixels
    width, height = (max(1, round(side * _WORK_PX / symbol_px)) for side in pixels.shape[::-1])
    return np.asarray(Image.fromarray(pixels).resize((width, height), Image.Resampling.BOX))


def _slide(pixels: NDArray[np.uint8], radius: int, choose: np.ufunc) -> NDArray[np.uint8]:
    """Return for each pixel the least (or most) of the square around it; nothing counts from outside."""
    for _ in range(2):
        chosen = pixels.copy()
        for shift in range(1, radius + 1):
            choose(chosen[shift:], pixels[:-shift], out=chosen[shift:])
            choose(chosen[:-shift], pixels[shift:], out=chosen[:-shift])
        pixels = chosen.T
    return pixels


def looks_written(pixels: NDArray[np.uint8]) -> bool:
    """Tell whether the ink of a prepared picture was written by hand, rather than printed.

    A few symbols are too few to tell; then it is not said of them.
    """
    measures = print_likeness(pixels)
    return measures is not None and PRINT_BIAS + float(np.dot(PRINT_WEIGHTS, measures)) < 0


def print_likeness(pixels: NDArray[np.uint8]) -> tuple[float, ...] | None:
    """Measure how even ink is, grey on white at the scale of a model; None if there are too few symbols.

    - How alike each symbol is to that other one of its size which is most alike.
    - The share of symbols that begin or end on a level with another one as high.
    - How much of their boxes long bars fill, which is all of it if they are straight and level.
    - The share of edges that are upright or level, at the tilt of the picture.
    - The logarithm of the number of symbols, among which a pair is found the more easily.
    """
    strength = 255 - pixels
    boxes, amounts = measure_pieces(strength > 127)
    boxes, amounts = boxes[amounts >= _SOLID_PX], amounts[amounts >= _SOLID_PX]
    width, height = boxes[:, 2] - boxes[:, 0], boxes[:, 3] - boxes[:, 1]
    compact = (height >= _DOT_PX) & (width <= 3 * height) & (height <= 4 * width) & (height <= _TALL_PX)
    symbols = boxes[compact][:_MANY_SYMBOLS]
    if len(symbols) < _FEW_SYMBOLS:
        return None
    bars = (width >= 2.5 * height) & (width >= _SOLID_PX)
    filled = np.average((amounts / (width * height))[bars], weights=width[bars]) if bars.any() else _NO_BARS
    level = boxes[height >= _DOT_PX][:_MANY_SYMBOLS]
    apart = np.abs(level[:, None, 1::2] - level[:, 1::2]).max(axis=2)  # of tops and bottoms
    np.fill_diagonal(apart, _TALL_PX)
    return (
        float(_twins(strength, symbols).mean()),
        float((apart <= 1).any(axis=1).mean()),
        float(filled),
        _upright_edges(strength),
        math.log(len(symbols)),
    )


def _twins(ink: Ink, symbols: Boxes) -> NDArray[np.float64]:
    """Return for each symbol its correlation with that other one of its size which is most like it."""
    sides = symbols[:, 2:] - symbols[:, :2]
    shapes = np.stack(
        [
            np.asarray(
                Image.fromarray(ink[top:bottom, left:right]).resize((16, 16), Image.Resampling.BILINEAR)
            )
            for left, top, right, bottom in symbols
        ]
    )
    flat = shapes.reshape(len(symbols), -1).astype(np.float64)
    flat -= flat.mean(axis=1, keepdims=True)
    flat /= np.maximum(np.linalg.norm(flat, axis=1, keepdims=True), 1e-9)
    alike = np.where((np.abs(sides[:, None] - sides) <= 2).all(axis=2), flat @ flat.T, 0.0)
    np.fill_diagonal(alike, 0.0)
    best: NDArray[np.float64] = alike.max(axis=1)
    return best


def _upright_edges(ink: Ink) -> float:
    """Return the share of edges that are upright or level, within a few degrees, at the best small tilt."""
    smooth = np.asarray(Image.fromarray(np.pad(ink, 2)).filter(SMOOTHING)).astype(np.float64)
    down, across = np.gradient(smooth)
    angles = (np.rad2deg(np.arctan2(down, across)) + 2.5) % 90
    shares = np.bincount((angles // 5).astype(np.int64).ravel() % 18, np.hypot(down, across).ravel(), 18)
    return float(max(shares[0], shares[1], shares[-1]) / max(shares.sum(), 1e-9))
