"""Any image a person may have, opened safely: limits come before decoding, and every failure is one error.

Pillow reads the size from a file's head; what is too large is refused there. PostScript is not opened, since
that means running it, nor are icons of macOS: their head does not say how large the picture inside is.
"""

import io
import os
import stat
import struct
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Final

import numpy as np
from numpy.typing import NDArray
from PIL import ExifTags, Image, UnidentifiedImageError

from i2l.errors import I2LError

MAX_FILE_BYTES: Final = 256 << 20
MAX_PIXELS: Final = 50_000_000  # the largest photographs of telephones
MAX_SLOW_PIXELS: Final = 2_000_000  # for formats that Pillow decodes in Python, about a microsecond a byte
MAX_HEAVY_PIXELS: Final = 25_000_000  # for those whose decoder needs more than 20 bytes a pixel
HEAVY: Final = frozenset({"JPEG2000"})
MAX_STRIPS: Final = 100_000
SUFFIXES: Final = frozenset(  # of what counts as an image in a folder
    {".png", ".jpg", ".jpeg", ".gif", ".bmp", ".tif", ".tiff", ".webp", ".ppm", ".pgm", ".avif"}
)
REFUSED: Final = frozenset({"EPS", "ICNS"})
_TIFF_FORMS: Final = {  # where the first directory is, how many entries it has, and the tag and count of each
    b"II*\0": ("<I", "<H", "<H2xI4x"),
    b"MM\0*": (">I", ">H", ">H2xI4x"),
    b"II+\0": ("<Q", "<Q", "<H2xQ8x"),
    b"MM\0+": (">Q", ">Q", ">H2xQ8x"),
}
_PIECES: Final = frozenset({273, 279, 324, 325})  # tags of TIFF: places and lengths of strips and tiles
_TURNS: Final = {  # what undoes each orientation of Exif; 1 is upright
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
# where Pillow finds the rotation that a camera noted
_NOTES_OF_ROTATION: Final = (
    "exif",
    "xmp",
    "XML:com.adobe.xmp",
    "Raw profile type exif",
    "Raw profile type APP1",
)

ImageSource = Image.Image | NDArray[Any] | bytes | BinaryIO | str | os.PathLike[str]

ImageSources = Iterable[ImageSource] | str | os.PathLike[str]  # many images, or the path of their folder


class ImageError(I2LError):
    """An image that cannot be read; the message says why and what to do."""


class NotAnImageError(ImageError):
    """Data that no image format explains, or a damaged file."""


class OversizedImageError(ImageError):
    """An image beyond the limits; it was not decoded."""


class EmptyImageError(ImageError):
    """An image with nothing on it."""


def open_image(source: ImageSource) -> Image.Image:
    """Decode an image: a path, a file or its bytes, an array, or an image that is open already.

    Of several frames the first is taken; the rotation that a camera noted is applied.

    Raises:
        ImageError: if there is no image in it, or one beyond the limits.
    """
    if isinstance(source, np.ndarray):
        return _from_array(source)
    if isinstance(source, Image.Image):
        with _explained("The image"):
            return _load(source)
    if not isinstance(source, bytes | str | os.PathLike):
        source = _read_file(source)
    if isinstance(source, bytes):
        _check_file_size(len(source))
        return _decode(io.BytesIO(source), "the data")
    path = Path(source)
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise NotAnImageError(f"{path} is not a file.")
        _check_file_size(status.st_size)
        with path.open("rb") as file:
            return _decode(file, path.name)
    except OSError as error:
        raise NotAnImageError(f"Cannot open {path}: {error.strerror or error}.") from error
    except ValueError as error:
        raise NotAnImageError(f"Cannot open {path}: {error}.") from error


def list_sources(sources: ImageSources) -> list[ImageSource]:
    """List many images; a path is that of a folder of images.

    Raises:
        ImageError: if the path is none of a folder, or there is no image in it.
        I2LError: if it is one image.
    """
    if isinstance(sources, str | os.PathLike):
        folder = Path(sources)
        if not folder.is_dir():
            raise I2LError(f"{folder} is not a folder; give a list of images, or read one image with `read`.")
        return [*images_in(folder)]
    if isinstance(sources, bytes | np.ndarray | Image.Image) or hasattr(sources, "read"):
        raise I2LError("This is one image; give a list of images, or read it with `read`.")
    return list(sources)


def images_in(folder: Path) -> list[Path]:
    """List the images of a folder, in the order of their names.

    Raises:
        ImageError: if there is none.
    """
    inside = sorted(path for path in folder.iterdir() if path.suffix.lower() in SUFFIXES)
    if not inside:
        raise ImageError(f"There is no image in the folder {folder}.")
    return inside


def _read_file(file: BinaryIO) -> bytes:
    if not hasattr(file, "read"):
        raise TypeError(f"An image is a path, a file or its bytes, an array or a PIL image, not {file!r}.")
    try:
        content: object = file.read(MAX_FILE_BYTES + 1)
    except (OSError, ValueError) as error:
        raise NotAnImageError(f"Cannot read the file: {error}.") from error
    if not isinstance(content, bytes):
        raise NotAnImageError("The file is open as text; open it in binary mode.")
    return content


def _decode(file: Any, name: str) -> Image.Image:  # noqa: ANN401 - a binary file that can seek
    head = file.read(1024)
    file.seek(0)
    if not head:
        raise NotAnImageError(f"{name} is empty.")
    if head.startswith(b"%PDF"):
        raise NotAnImageError(f"{name} is a PDF; read its pages with: i2l page {name}")
    with _explained(name):
        check_strips(file)
        Image.init()
        with Image.open(file, formats=[kind for kind in Image.ID if kind not in REFUSED]) as image:
            return _load(image)


def check_strips(file: BinaryIO) -> None:
    """Refuse a TIFF in far more pieces than there are in any picture, before Pillow makes a list of them.

    Nine million pieces, which fit into 18 MB, took 3 GB.

    Raises:
        OversizedImageError: if it is such a file.
    """
    head = file.read(16)
    form = _TIFF_FORMS.get(head[:4])
    if form is not None:
        first, number, entry = form
        file.seek(*struct.unpack_from(first, head, 4 if number.endswith("H") else 8))
        (num_entries,) = struct.unpack(number, file.read(struct.calcsize(number)))
        entry_bytes = struct.calcsize(entry)
        table = file.read(min(num_entries, 0xFFFF) * entry_bytes)
        for tag, count in struct.iter_unpack(entry, table[: len(table) // entry_bytes * entry_bytes]):
            if tag in _PIECES and count > MAX_STRIPS:
                raise OversizedImageError(
                    f"The image is in {count:,} pieces; the limit is {MAX_STRIPS:,}. Save it again."
                )
    file.seek(0)


def _load(image: Image.Image) -> Image.Image:
    """Decode what is within the limits; apply the camera's rotation."""
    slow = any(tile[0] in Image.DECODERS for tile in getattr(image, "tile", ()))
    heavy = image.format in HEAVY
    _check_pixels(image.size, MAX_SLOW_PIXELS if slow else MAX_HEAVY_PIXELS if heavy else MAX_PIXELS)
    image.load()
    return _upright(image)


@contextmanager
def _explained(name: str) -> Iterator[None]:
    """Turn whatever Pillow raises into an error that says what is wrong with the image."""
    try:
        yield
    except ImageError:
        raise
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        raise OversizedImageError(
            f"{name} has too many pixels to be decoded. Crop the formula out of it."
        ) from error
    except MemoryError as error:
        raise OversizedImageError(f"{name} does not fit into memory.") from error
    except UnidentifiedImageError as error:
        raise NotAnImageError(f"{name} is not an image of a known format.") from error
    except Exception as error:  # each of Pillow's decoders fails in its own way on a damaged file
        reason = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        raise NotAnImageError(f"{name} is damaged or not an image ({reason[:200]}).") from error


def _upright(image: Image.Image) -> Image.Image:
    """Turn an image as the camera noted; one that stands upright is not copied, since it may be large."""
    try:
        turn = _TURNS.get(image.getexif().get(ExifTags.Base.Orientation, 1))
    except Exception:  # a damaged note about rotation does not make the image unreadable
        return image
    if turn is None:
        return image
    turned = image.transpose(turn)
    for note in _NOTES_OF_ROTATION:  # or opening the open image again would turn it again
        turned.info.pop(note, None)
    return turned


def _from_array(array: NDArray[Any]) -> Image.Image:
    if array.ndim == 3 and array.shape[2] == 1:
        array = array[:, :, 0]
    if array.ndim not in (2, 3) or (array.ndim == 3 and array.shape[2] not in (2, 3, 4)):
        raise NotAnImageError(
            f"An array of shape {array.shape} is no image; give (H, W), (H, W, 3) or (H, W, 4)."
        )
    _check_pixels((array.shape[1], array.shape[0]), MAX_PIXELS)
    if array.dtype.kind == "f":
        if not np.isfinite(array).all():
            raise NotAnImageError("The array holds values that are not numbers.")
        array = array * 255 if array.max(initial=0) <= 1 else array
    elif array.dtype == np.bool_:
        array = array.astype(np.uint8) * 255
    elif array.dtype == np.uint16:
        array = array // 257
    elif array.dtype.kind not in "ui":
        raise NotAnImageError(f"An array of {array.dtype} is no image.")
    return Image.fromarray(np.clip(array, 0, 255).astype(np.uint8))


def _check_file_size(size_bytes: int) -> None:
    if size_bytes > MAX_FILE_BYTES:
        raise OversizedImageError(
            f"The file has {size_bytes / 1e6:,.0f} MB; the limit is {MAX_FILE_BYTES / 1e6:,.0f} MB. "
            "Crop the formula out of it."
        )


def _check_pixels(size: tuple[int, int], limit: int) -> None:
    width, height = size
    if width * height > limit:
        raise OversizedImageError(
            f"The image has {width:,} x {height:,} pixels; the limit is {limit / 1e6:,.0f} million. "
            "Crop the formula out of it."
        )
    if width < 1 or height < 1:
        raise EmptyImageError("The image has no pixels.")
