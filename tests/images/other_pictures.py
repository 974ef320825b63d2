"""Pictures without a formula, drawn by seed: shades, grain, textures, shapes, scenes, icons, empty pages."""

import io
import math
from collections.abc import Callable

import numpy as np
from PIL import Image, ImageDraw, ImageFilter

Random = np.random.Generator


def _size(random: Random) -> tuple[int, int]:
    return int(random.integers(120, 700)), int(random.integers(80, 500))


def _colour(random: Random) -> tuple[int, int, int]:
    red, green, blue = random.integers(0, 256, 3).tolist()
    return red, green, blue


def _cloud(random: Random, width: int, height: int, roughness: float) -> np.ndarray:
    """Noise whose strength falls with its frequency, as that of scenes does; from 0 to 1."""
    frequency = np.hypot(np.fft.fftfreq(height)[:, None], np.fft.rfftfreq(width)[None])
    frequency[0, 0] = 1
    phases = np.exp(2j * np.pi * random.random(frequency.shape))
    values = np.fft.irfft2(phases * frequency**-roughness, s=(height, width))
    return (values - values.min()) / np.ptp(values)


def gradient(random: Random) -> Image.Image:
    """From one colour to another: along a direction, or around a point."""
    width, height = _size(random)
    y, x = np.mgrid[:height, :width]
    if random.random() < 0.5:
        angle = random.random() * 2 * math.pi
        ramp = x * math.cos(angle) + y * math.sin(angle)
    else:
        ramp = np.hypot(x - width * random.random(), y - height * random.random())
    ramp = (ramp - ramp.min()) / np.ptp(ramp)
    first, last = (np.array(_colour(random)) for _ in range(2))
    if np.abs(first - last).max() < 100:
        first, last = np.zeros(3), np.full(3, 255)
    return Image.fromarray((first + ramp[:, :, None] * (last - first)).astype(np.uint8))


def grain(random: Random) -> Image.Image:
    """Noise: of every pixel, of some pixels, or in clouds."""
    width, height = _size(random)
    kind = random.integers(3)
    if kind == 0:
        values = random.normal(128, random.uniform(20, 80), (height, width))
    elif kind == 1:
        values = np.where(random.random((height, width)) < random.uniform(0.1, 0.4), 0, 255)
    else:
        values = 255 * _cloud(random, width, height, random.uniform(0.8, 2))
    return Image.fromarray(np.clip(values, 0, 255).astype(np.uint8))


def texture(random: Random) -> Image.Image:
    """Squares, stripes, dots or waves that fill the picture."""
    width, height = _size(random)
    y, x = np.mgrid[:height, :width]
    step = int(random.integers(8, 60))
    kind = random.integers(4)
    if kind == 0:
        on = (x // step + y // step) % 2 == 0
    elif kind == 1:
        angle = random.random() * math.pi
        on = ((x * math.cos(angle) + y * math.sin(angle)) // step) % 2 == 0
    elif kind == 2:
        on = np.hypot(x % step - step / 2, y % step - step / 2) < step * random.uniform(0.2, 0.45)
    else:
        on = np.sin(x / step * 2) + np.sin(y / step * 2 + np.sin(x / step)) > 0
    first, last = np.array(_colour(random)), np.array(_colour(random))
    if np.abs(first - last).max() < 100:
        first, last = np.zeros(3), np.full(3, 255)
    return Image.fromarray(np.where(on[:, :, None], first, last).astype(np.uint8))


def shape(random: Random) -> Image.Image:
    """One large filled shape, or several."""
    width, height = max(_size(random), (200, 200)), 0
    width, height = width[0], max(width[1], 160)
    image = Image.new("RGB", (width, height), "white")
    pen = ImageDraw.Draw(image)
    for _ in range(int(random.integers(1, 4))):
        colour = tuple(value // 2 for value in _colour(random))
        x, y = random.uniform(0.3, 0.7) * width, random.uniform(0.3, 0.7) * height
        radius = random.uniform(0.25, 0.45) * min(width, height)
        corners = int(random.integers(3, 9))
        if random.random() < 0.4:
            pen.ellipse((x - radius * random.uniform(1, 1.6), y - radius, x + radius, y + radius), colour)
        else:
            turn = random.random() * 6
            angles = [turn + 2 * math.pi * corner / corners for corner in range(corners)]
            pen.polygon([(x + radius * math.cos(a), y + radius * math.sin(a)) for a in angles], colour)
    return image


def scene(random: Random) -> Image.Image:
    """What a photograph may have: sky, hills, a sun; or clouds of colour; with grain and JPEG."""
    width, height = (int(side) for side in random.integers(200, 900, 2))
    y, x = np.mgrid[:height, :width]
    if random.random() < 0.5:
        layers = [_cloud(random, width, height, random.uniform(1.2, 2)) for _ in range(3)]
        pixels = np.stack(layers, axis=2) * 255
    else:
        sky = np.array([120, 170, 240]) + (y / height)[:, :, None] * np.array([100, 60, 0])
        pixels = np.clip(sky, 0, 255)
        sun = np.hypot(x - width * random.random(), y - height * 0.25) < height * 0.1
        pixels[sun] = (255, 230, 120)
        for level, colour in ((0.55, (90, 120, 90)), (0.75, (50, 90, 40))):
            line = _cloud(random, width, 2, 1.5)[0] * 0.3 + level
            pixels[y / height > line[None]] = colour
        pixels = pixels + 25 * (_cloud(random, width, height, 1)[:, :, None] - 0.5)
    pixels = pixels + random.normal(0, random.uniform(1, 8), pixels.shape)
    image = Image.fromarray(np.clip(pixels, 0, 255).astype(np.uint8))
    image = image.filter(ImageFilter.GaussianBlur(random.uniform(0, 1.5)))
    file = io.BytesIO()
    image.save(file, "JPEG", quality=int(random.integers(40, 95)))
    return Image.open(io.BytesIO(file.getvalue()))


def icon(random: Random) -> Image.Image:
    """A house, a face, an envelope, a picture's sign or a battery, in thick lines or filled."""
    size = int(random.integers(64, 400))
    image = Image.new("RGB", (size, size), "white")
    pen = ImageDraw.Draw(image)
    colour = tuple(value // 2 for value in _colour(random))
    thick = max(2, size // int(random.integers(12, 30)))

    def at(*places: float) -> list[float]:
        return [place * size for place in places]

    kind = random.integers(5)
    if kind == 0:
        pen.polygon(at(0.5, 0.1, 0.95, 0.5, 0.05, 0.5), colour)
        pen.rectangle(at(0.18, 0.5, 0.82, 0.92), colour)
        pen.rectangle(at(0.42, 0.62, 0.58, 0.92), "white")
    elif kind == 1:
        pen.ellipse(at(0.08, 0.08, 0.92, 0.92), outline=colour, width=thick)
        for left in (0.3, 0.6):
            pen.ellipse(at(left, 0.32, left + 0.1, 0.44), colour)
        pen.arc(at(0.27, 0.35, 0.73, 0.78), 20, 160, colour, thick)
    elif kind == 2:
        pen.rectangle(at(0.06, 0.2, 0.94, 0.8), outline=colour, width=thick)
        pen.line(at(0.06, 0.2, 0.5, 0.55, 0.94, 0.2), colour, thick)
    elif kind == 3:
        pen.rectangle(at(0.06, 0.12, 0.94, 0.88), outline=colour, width=thick)
        pen.polygon(at(0.12, 0.8, 0.38, 0.4, 0.56, 0.65, 0.68, 0.52, 0.88, 0.8), colour)
        pen.ellipse(at(0.66, 0.22, 0.8, 0.36), colour)
    else:
        pen.rectangle(at(0.06, 0.3, 0.86, 0.7), outline=colour, width=thick)
        pen.rectangle(at(0.86, 0.42, 0.95, 0.58), colour)
        pen.rectangle(at(0.12, 0.36, 0.12 + random.uniform(0.2, 0.65), 0.64), colour)
    return image


def empty_page(random: Random) -> Image.Image:
    """Paper: of one colour, with the grain and shade of a scan or a photograph."""
    width, height = _size(random)
    kind = random.integers(3)
    paper = np.full((height, width), random.integers(200, 256), np.float64)
    if kind >= 1:
        paper += random.normal(0, random.uniform(0.5, 5), paper.shape)
    if kind == 2:
        y, x = np.mgrid[:height, :width]
        paper -= x / width * random.uniform(-40, 40) + y / height * random.uniform(0, 60)
    return Image.fromarray(np.clip(paper, 0, 255).astype(np.uint8))


KINDS: dict[str, Callable[[Random], Image.Image]] = {
    "gradient": gradient,
    "grain": grain,
    "texture": texture,
    "shape": shape,
    "scene": scene,
    "icon": icon,
    "empty page": empty_page,
}


def other_pictures(num_each: int, *, seed: int = 0) -> list[tuple[str, Image.Image]]:
    """So many pictures of each kind, with names."""
    return [
        (f"{kind} {number}", draw(np.random.default_rng((seed, place, number))))
        for place, (kind, draw) in enumerate(KINDS.items())
        for number in range(num_each)
    ]
