"""Pictures: PNG is decoded here, bit for bit as Pillow does it; other formats by the browser, before Python is asked.

A decoded picture is an array, (H, W) or (H, W, channels), with the name that Pillow has for its mode.
"""

import enum
import struct
import zlib

import numpy as np

from PIL import UnidentifiedImageError

_RESIZE, _BOX_BLUR, _CONVOLVE, _SHRINK, _UNFILTER = range(15, 20)  # numbers of kernels
_SIGNATURE = b"\x89PNG\r\n\x1a\n"
# By bit depth and colour type: the mode, and how many samples a pixel has.
_MODES = {
    **{(depth, 0): (mode, 1) for depth, mode in ((1, "1"), (2, "L"), (4, "L"), (8, "L"), (16, "I;16"))},
    **{(depth, 2): ("RGB", 3) for depth in (8, 16)},
    **{(depth, 3): ("P", 1) for depth in (1, 2, 4, 8)},
    **{(depth, 4): ("LA", 2) for depth in (8, 16)},
    **{(depth, 6): ("RGBA", 4) for depth in (8, 16)},
}
# Of an interlaced picture: first row and column of each pass, and the steps between them.
_PASSES = ((0, 0, 8, 8), (0, 4, 8, 8), (4, 0, 8, 4), (0, 2, 4, 4), (2, 0, 4, 2), (0, 1, 2, 2), (1, 0, 2, 1))

MAX_IMAGE_PIXELS = 89_478_485  # as in Pillow; twice as many are refused
DECODERS = {}
ID = ["PNG"]


class DecompressionBombError(Exception):
    """A picture with far too many pixels."""


class DecompressionBombWarning(RuntimeWarning):
    """Stands for a warning that is not given here."""


class Transpose(enum.Enum):
    """Turns; the browser has made them already."""

    FLIP_LEFT_RIGHT = 0
    FLIP_TOP_BOTTOM = 1
    ROTATE_90 = 2
    ROTATE_180 = 3
    ROTATE_270 = 4
    TRANSPOSE = 5
    TRANSVERSE = 6


class Resampling(enum.IntEnum):
    """How pictures are made larger or smaller, by Pillow's numbers."""

    BILINEAR = 2
    BICUBIC = 3
    BOX = 4


def init():
    """Nothing is to be prepared."""


class Image:
    """A picture."""

    tile = ()

    def __init__(self, pixels, mode, *, image_format=None, info=None, palette=None):
        self._pixels, self.mode, self.format = pixels, mode, image_format
        self.info = {} if info is None else info
        self.palette = palette

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None

    @property
    def size(self):
        return self._pixels.shape[1], self._pixels.shape[0]

    @property
    def width(self):
        return self.size[0]

    @property
    def height(self):
        return self.size[1]

    def _array(self):
        return self._pixels

    def load(self):
        """The pixels are there."""

    def getexif(self):
        return {}

    def _like(self, pixels, mode=None):
        return Image(pixels, mode or self.mode, info=self.info, palette=self.palette)

    def crop(self, box):
        left, top, right, bottom = box
        return self._like(self._pixels[top:bottom, left:right].copy())

    def getchannel(self, channel):
        return self._like(self._pixels[:, :, channel].copy(), "L")

    def convert(self, mode):
        """Change the mode: to L from 1, to RGB and RGBA from all."""
        if mode == self.mode:
            return self
        if mode == "L":
            return self._like(self._pixels.astype(np.uint8) * 255, "L")
        return Image(self._coloured(mode), mode)

    def _coloured(self, mode):
        pixels, alpha = self._pixels, None
        transparency = self.info.get("transparency")
        if self.mode == "P":
            colours = np.array(list(self.palette), np.uint8).reshape(-1, 3)
            alphas = np.full(len(colours), 255, np.uint8)
            if isinstance(transparency, bytes):
                shown = list(transparency)[: len(colours)]
                alphas[: len(shown)] = np.array(shown, np.uint8)
            pixels, alpha = colours[pixels], alphas[pixels]
        elif self.mode in ("LA", "RGBA"):
            pixels, alpha = pixels[:, :, :-1], pixels[:, :, -1]
        elif self.mode == "1":
            pixels = pixels.astype(np.uint8) * 255
        if alpha is None and transparency is not None:
            wanted = np.array([transparency] if isinstance(transparency, int) else list(transparency))
            if self.mode == "1":
                wanted = wanted * 255
            seen = pixels.reshape(*pixels.shape[:2], -1) != wanted
            alpha = seen.any(axis=2).astype(np.uint8) * 255
        if pixels.ndim == 2:
            pixels = pixels[:, :, None]
        height, width = pixels.shape[:2]
        out = np.full((height, width, len(mode)), 255, np.uint8)
        out[:, :, :3] = pixels
        if mode == "RGBA" and alpha is not None:
            out[:, :, 3] = alpha
        return out

    def reduce(self, factor):
        """Take the mean of squares."""
        pixels = np.ascontiguousarray(self._pixels)
        height, width = pixels.shape[:2]
        out = np.zeros((-(-height // factor), -(-width // factor), *pixels.shape[2:]), np.uint8)
        channels = pixels.shape[2] if pixels.ndim == 3 else 1
        np.call_kernel(_SHRINK, pixels.address, width, height, channels, factor, out.address)
        return self._like(out)

    def filter(self, wanted):
        """Blur a grey picture."""
        pixels = np.ascontiguousarray(self._pixels)
        height, width = pixels.shape
        out = np.zeros(pixels.shape, np.uint8)
        if hasattr(wanted, "radius"):
            np.call_kernel(_BOX_BLUR, pixels.address, width, height, wanted.radius, out.address)
        else:
            weights = np.array(wanted.kernel, np.float32) / sum(wanted.kernel)
            np.call_kernel(_CONVOLVE, pixels.address, width, height, weights.address, out.address)
        return self._like(out)

    def resize(self, size, resample, box=None):
        """Make a grey picture larger or smaller."""
        width, height = size
        pixels = np.ascontiguousarray(self._pixels)
        out = np.zeros((height, width), np.uint8)
        edges = np.array([float(edge) for edge in box or (0, 0, *self.size)], np.float64)
        np.call_kernel(
            *(_RESIZE, pixels.address, *self.size, out.address, width, height, int(resample), edges.address)
        )
        return self._like(out)


def fromarray(pixels):
    """Make a picture of an array of bytes."""
    modes = {2: "LA", 3: "RGB", 4: "RGBA"}
    return Image(np.ascontiguousarray(pixels), "L" if pixels.ndim == 2 else modes[pixels.shape[2]])


def from_browser(pixels, width, height):
    """Take what the browser decoded, four bytes a pixel."""
    whole = np.frombytes(pixels, (height, width, 4), np.uint8)
    if (whole[:, :, 3] == 255).all():
        return Image(np.ascontiguousarray(whole[:, :, :3]), "RGB")
    return Image(whole, "RGBA")


def open(file, formats=None):
    """Read the head of a PNG; its pixels are decoded by `load`."""
    data = file.read()
    if not data.startswith(_SIGNATURE):
        raise UnidentifiedImageError("cannot identify image file")
    return _PngImage(data)


def _chunks(data):
    """Yield the chunks of a PNG; what is cut off at the end is left out."""
    at = len(_SIGNATURE)
    while at + 8 <= len(data):
        length, name = struct.unpack_from(">I4s", data, at)
        body = data[at + 8 : at + 8 + length]
        yield name, body
        if name == b"IEND":
            return
        if len(body) == length and name != b"IDAT":
            (checksum,) = struct.unpack_from(">I", data, at + 8 + length)
            if zlib.crc32(name + body) != checksum:
                raise SyntaxError(f"broken PNG file (bad header checksum in {name!r})")
        at += 12 + length


class _PngImage(Image):
    """A PNG whose pixels are decoded when they are asked for."""

    format = "PNG"

    def __init__(self, data):
        self.info, self.palette, self._pixels, self.format = {}, None, None, "PNG"
        packed, head = [], None
        for name, body in _chunks(data):
            if name == b"IHDR":
                head = struct.unpack(">IIBBBBB", body)
            elif name == b"PLTE":
                self.palette = body
            elif name == b"tRNS":
                self._see_through = body
            elif name == b"IDAT":
                packed.append(body)
        if head is None or head[2:4] not in _MODES:
            raise UnidentifiedImageError("cannot identify image file")
        self._size = head[:2]
        if self._size[0] * self._size[1] > 2 * MAX_IMAGE_PIXELS:
            raise DecompressionBombError("too many pixels")
        self._depth, self._kind, self._interlaced = head[2], head[3], head[6]
        self.mode, self._samples = _MODES[self._depth, self._kind]
        self._packed = packed
        if hasattr(self, "_see_through"):
            self._note_transparency(self._see_through)

    @property
    def size(self):
        return self._size

    def _note_transparency(self, body):
        if self._kind == 3:
            self.info["transparency"] = body
        elif self._kind == 0:
            self.info["transparency"] = struct.unpack(">H", body[:2])[0]
        elif self._kind == 2:
            self.info["transparency"] = struct.unpack(">HHH", body[:6])

    def load(self):
        if self._pixels is not None:
            return
        width, height = self._size
        passes = _PASSES if self._interlaced else ((0, 0, 1, 1),)
        sizes = [
            (max(0, -(-(height - top) // down)), max(0, -(-(width - left) // across)))
            for top, left, down, across in passes
        ]
        needed = sum(rows * (self._row_bytes(columns) + 1) for rows, columns in sizes if columns)
        lines = zlib.decompressobj().decompress(b"".join(self._packed), needed)
        if len(lines) < needed:
            raise OSError("image file is truncated")
        shape = (height, width, self._samples) if self._samples > 1 else (height, width)
        wide = self.mode == "I;16"
        pixels = np.zeros(shape, np.uint16 if wide else np.bool_ if self.mode == "1" else np.uint8)
        start = 0
        for (top, left, down, across), (rows, columns) in zip(passes, sizes, strict=True):
            if rows and columns:
                end = start + rows * (self._row_bytes(columns) + 1)
                pixels[top::down, left::across] = self._decode(lines[start:end], rows, columns)
                start = end
        self._pixels, self._packed = pixels, []

    def _row_bytes(self, columns):
        return -(-columns * self._samples * self._depth // 8)

    def _decode(self, lines, rows, columns):
        """Undo the filters of some rows, and take the samples out of their bytes."""
        row_bytes, samples = self._row_bytes(columns), self._samples
        source = np.frombytes(lines, (len(lines),), np.uint8)
        unpacked = np.zeros((rows, row_bytes), np.uint8)
        pixel_bytes = max(1, samples * self._depth // 8)
        if not np.call_kernel(_UNFILTER, source.address, row_bytes, rows, pixel_bytes, unpacked.address):
            raise OSError("broken data stream when reading image file")
        if self._depth == 16:
            pairs = unpacked.reshape(rows, columns * samples, 2)
            if self.mode == "I;16":
                values = pairs[:, :, 0].astype(np.uint16) * np.uint16(256) + pairs[:, :, 1]
            else:
                values = pairs[:, :, 0]
        elif self._depth < 8:
            values = self._unpack_bits(unpacked, rows, columns)
        else:
            values = unpacked
        return values.reshape(rows, columns, samples) if samples > 1 else values.reshape(rows, columns)

    def _unpack_bits(self, unpacked, rows, columns):
        per_byte, top = 8 // self._depth, 2**self._depth - 1
        parts = [
            (unpacked // np.uint8(2 ** (8 - self._depth * (place + 1)))) & np.uint8(top)
            for place in range(per_byte)
        ]
        values = np.stack(parts, axis=2).reshape(rows, -1)[:, :columns]
        return values * np.uint8(255 // top) if self.mode == "L" else values
