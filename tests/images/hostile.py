"""Files that no reader should trust, made from a seed: damaged, oversized, odd and plain wrong ones."""

import io
import struct
import zlib

import numpy as np
from PIL import Image, ImageDraw, features

FORMATS = ["PNG", "JPEG", "GIF", "BMP", "TIFF", "PPM", "ICO", "TGA", "PCX", "SGI", "DIB", "MSP", "QOI", "DDS"]
MODES = {
    "PNG": ["1", "L", "P", "LA", "RGB", "RGBA", "I;16"],
    "TIFF": ["1", "L", "P", "RGB", "RGBA", "CMYK", "LAB", "I;16", "F"],
    "JPEG": ["L", "RGB", "CMYK"],
    "MSP": ["1"],
    "PCX": ["1", "L", "P", "RGB"],
    "DDS": ["RGBA"],
    "QOI": ["RGB"],
}
HEADS = [
    b"",
    b"\x89PNG\r\n\x1a\n",
    b"\xff\xd8\xff\xe0",
    b"GIF89a",
    b"II*\x00",
    b"MM\x00*",
    b"BM",
    b"RIFF",
    b"%PDF-1.4",
    b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n",
    b"P6\n9 9\n255\n",
    b"<svg>",
    b"PK\x03\x04",
    b"\x00\x00\x01\x00",
]


def picture(random, mode="RGB"):
    """Some strokes on paper, or grain, of any small size."""
    width, height = (int(random.choice([1, 2, 7, 33, 120, 400])) for _ in range(2))
    image = Image.new("RGB", (width, height), tuple(random.integers(0, 256, 3).tolist()))
    draw = ImageDraw.Draw(image)
    for _ in range(int(random.integers(0, 8))):
        points = [tuple(random.integers(0, [width, height]).tolist()) for _ in range(3)]
        draw.line(points, tuple(random.integers(0, 256, 3).tolist()), int(random.integers(1, 4)))
    if random.random() < 0.1:
        image = Image.fromarray(random.integers(0, 256, (height, width, 3)).astype(np.uint8))
    if mode == "LAB":
        return Image.merge("LAB", image.split())
    if mode == "I;16":
        return Image.fromarray(np.asarray(image.convert("L")).astype(np.uint16) * 257)
    return image.convert(mode)


def encoded(random):
    """A sound file of any format that Pillow writes here."""
    kinds = [
        *FORMATS,
        *(name for name, module in (("WEBP", "webp"), ("JPEG2000", "jpg_2000")) if features.check(module)),
    ]
    kind = str(random.choice(kinds))
    mode = str(random.choice(MODES.get(kind, ["L", "RGB"])))
    file = io.BytesIO()
    image = picture(random, mode)
    options = {"sizes": [(min(image.width, 256), min(image.height, 256))]} if kind == "ICO" else {}
    if kind in ("GIF", "PNG", "TIFF") and random.random() < 0.3 and mode != "I;16":
        options = {
            "save_all": True,
            "append_images": [picture(random, mode).resize(image.size) for _ in range(3)],
        }
    image.save(file, kind, **options)
    return file.getvalue()


def truncated(random):
    data = encoded(random)
    return data[: int(random.integers(0, len(data)))]


def corrupted(random):
    data = bytearray(encoded(random))
    for place in random.integers(0, len(data), int(random.integers(1, 20))):
        data[place] = int(random.integers(0, 256))
    return bytes(data)


def noise(random):
    return HEADS[random.integers(len(HEADS))] + random.bytes(int(random.integers(0, 2000)))


def png(width, height, rows, *, bits=8, colour=0):
    """A PNG by hand, so that its head can say anything."""

    def chunk(kind, content):
        return (
            struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
        )

    head = struct.pack(">IIBBBBB", width, height, bits, colour, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", head)
        + chunk(b"IDAT", zlib.compress(rows))
        + chunk(b"IEND", b"")
    )


def bomb(random):
    """A small file that says it is, or unpacks to, something enormous."""
    side = int(random.choice([9_000, 50_000, 2**31 - 1]))
    kind = int(random.integers(4))
    if kind == 0:
        return png(side, side, b"\x00" * 1000)
    if kind == 1:
        return b"GIF89a" + struct.pack("<HHBBB", 65535, 65535, 0x80, 0, 0) + b"\x00\x00\x00\xff\xff\xff"
    if kind == 2:
        return f"P5\n{side} {side}\n255\n".encode()
    return b"BM" + struct.pack("<IHHIIiiHHIIiiII", 54, 0, 0, 54, 40, side, side, 1, 24, 0, 0, 0, 0, 0, 0)


def hostile_file(seed):
    """Give the bytes of one file."""
    random = np.random.default_rng(seed)
    makers = [encoded, truncated, corrupted, noise, bomb]
    return makers[random.choice(len(makers), p=[0.25, 0.3, 0.3, 0.1, 0.05])](random)


def tiff_in_pieces(number, *, order="<", big=False):
    """A TIFF of one column whose every row is a piece of its own."""
    word, long = ("Q", 16) if big else ("I", 4)
    entries = [(256, 4, 1, 1), (257, 4, 1, number), (258, 3, 1, 8), (259, 3, 1, 1), (262, 3, 1, 1)]
    entries += [(273, 3, number, 0), (277, 3, 1, 1), (278, 4, 1, 1)]
    start = 16 if big else 8
    places = start + (8 if big else 2) + len(entries) * (20 if big else 12) + long
    content = (b"II" if order == "<" else b"MM") + struct.pack(f"{order}H", 43 if big else 42)
    content += struct.pack(f"{order}HHQ", 8, 0, start) if big else struct.pack(f"{order}I", start)
    content += struct.pack(f"{order}{'Q' if big else 'H'}", len(entries))
    for tag, kind, count, value in entries:
        short = kind == 3 and count == 1
        held = struct.pack(f"{order}H", value) if short else struct.pack(f"{order}{word}", value or places)
        content += struct.pack(f"{order}HH{word}", tag, kind, count) + held.ljust(8 if big else 4, b"\0")
    return content.ljust(places, b"\0") + struct.pack(f"{order}H", 8) * number
