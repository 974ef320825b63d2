import contextlib
import io
import os
import subprocess
import sys
import time

import numpy as np
import pytest
from PIL import ExifTags, Image, ImageOps

from i2l.images.open import EmptyImageError, ImageError, NotAnImageError, OversizedImageError, open_image
from tests.images.hostile import hostile_file, png, tiff_in_pieces


def saved(kind, size):
    file = io.BytesIO()
    Image.new("RGB", size).save(file, kind)
    return file.getvalue()


def test_paths_bytes_images_and_arrays(tmp_path):
    path = tmp_path / "a.png"
    image = Image.new("L", (3, 2), 7)
    image.save(path)
    sources = [
        path,
        str(path),
        path.read_bytes(),
        io.BytesIO(path.read_bytes()),
        image,
        np.full((2, 3), 7, np.uint8),
    ]
    assert {open_image(source).size for source in sources} == {(3, 2)}


def test_what_comes_from_a_stream_may_be_as_long_as_a_file_and_no_longer(monkeypatch):
    content = png(3, 2, bytes(4) * 2)
    monkeypatch.setattr("i2l.images.open.MAX_FILE_BYTES", len(content))
    assert open_image(io.BytesIO(content)).size == open_image(content).size == (3, 2)
    for source in (io.BytesIO(content + b"."), content + b"."):
        with pytest.raises(OversizedImageError, match="The file has"):
            open_image(source)


def test_files_that_are_closed_or_open_as_text(tmp_path):
    closed = io.BytesIO()
    closed.close()
    with pytest.raises(NotAnImageError, match="Cannot read the file"):
        open_image(closed)
    with pytest.raises(NotAnImageError, match="binary mode"):
        open_image(io.StringIO("a.png"))


@pytest.mark.parametrize(
    ("data", "error", "words"),
    [
        (b"", NotAnImageError, "is empty"),
        (b"hello", NotAnImageError, "not an image of a known format"),
        (b"%PDF-1.7 ...", NotAnImageError, "PDF"),
        (
            b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n%%EndComments\n",
            NotAnImageError,
            "not an image of a known format",
        ),
        (saved("ICNS", (16, 16)), NotAnImageError, "not an image of a known format"),
        (png(50_000, 50_000, b""), OversizedImageError, "limit|too many pixels"),
        (png(8_000, 8_000, b""), OversizedImageError, "8,000 x 8,000 pixels; the limit is 50 million"),
        (png(10, 10, b"\x00" * 3), NotAnImageError, "damaged"),
        (b"qoif" + (3000).to_bytes(4) * 2 + b"\x03\x00" + b"\xfd" * 99, OversizedImageError, "2 million"),
    ],
    ids=["nothing", "text", "pdf", "postscript", "icon", "huge", "large", "cut", "slow"],
)
def test_each_failure_has_its_own_words(data, error, words):
    with pytest.raises(error, match=words):
        open_image(data)


def test_an_image_that_was_opened_but_not_decoded():
    data = png(40, 40, b"\x00" * 9)
    with pytest.raises(NotAnImageError, match="The image is damaged"):
        open_image(Image.open(io.BytesIO(data)))
    with pytest.raises(OversizedImageError):
        open_image(Image.open(io.BytesIO(png(8_000, 8_000, b""))))


def test_what_is_not_a_file(tmp_path):
    with pytest.raises(NotAnImageError, match="not a file"):
        open_image(tmp_path)
    with pytest.raises(NotAnImageError, match=r"^Cannot open \S+absent\.png: No such file or directory\.$"):
        open_image(tmp_path / "absent.png")
    with pytest.raises(NotAnImageError, match="Cannot open"):
        open_image("a\x00b")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(NotAnImageError, match="not a file"):
        open_image(tmp_path / "pipe")


def test_a_file_of_ten_gigabytes_is_not_read(tmp_path):
    path = tmp_path / "large.tiff"
    with path.open("wb") as file:
        Image.new("L", (4, 4)).save(file, "TIFF")
        file.truncate(10 * 10**9)
    started = time.monotonic()
    with pytest.raises(OversizedImageError, match="10,000 MB"):
        open_image(path)
    assert time.monotonic() - started < 1


def test_arrays_that_are_no_images():
    for array in (np.zeros(3), np.zeros((2, 2, 5)), np.array([["a"]]), np.full((2, 2), np.nan)):
        with pytest.raises(NotAnImageError):
            open_image(array)
    with pytest.raises(EmptyImageError):
        open_image(np.zeros((0, 5), np.uint8))


def test_memory_stays_bounded():
    """The largest picture that is let in, and one that says it is larger, under a limit of 1.5 GiB."""
    code = """
import io, resource, sys
resource.setrlimit(resource.RLIMIT_AS, (3 * 2**29, 3 * 2**29))
from PIL import ExifTags, Image, ImageOps
from i2l.images.open import OversizedImageError
from i2l.images.prepare import prepare_image
from tests.images.hostile import png
try:
    prepare_image(png(50_000, 50_000, b"\\0" * 10_000), canvas_shape=(130, 1090))
except OversizedImageError:
    pass
file = io.BytesIO()
large = Image.new("RGBA", (7000, 7000), (255, 255, 255, 255))
large.paste((0, 0, 0, 255), (3000, 3000, 3300, 3100))
large.save(file, "PNG", compress_level=1)
del large
prepare_image(file.getvalue(), canvas_shape=(130, 1090))
"""
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True, timeout=120)


@pytest.mark.skipif(sys.platform != "linux", reason="the peak of memory is read from /proc")
def test_thin_pictures_and_many_pieces_take_little_memory():
    """Small files of sixteen million columns or rows, of millions of pieces, or of nothing but grain.

    The peak is VmHWM: ru_maxrss of a new process starts at the memory of the process that started it.
    """
    code = """
import re
from pathlib import Path
import numpy as np
from i2l.images.open import ImageError
from i2l.images.prepare import prepare_image
from tests.images.hostile import png, tiff_in_pieces
dotted = lambda width, height: b"".join(b"\\0" + b"\\xff" * (width - 1) + b"\\0" for _ in range(height))
for make in (
    lambda: png(16_000_000, 3, dotted(16_000_000, 3)),
    lambda: png(3, 16_000_000, dotted(3, 5) + b"\\0\\xff\\xff\\xff" * 15_999_995),
    lambda: png(4_000_000, 1, dotted(4_000_000, 1)),
    lambda: png(4_000_000, 12, dotted(4_000_000, 12)),
    lambda: tiff_in_pieces(9_000_000),
    lambda: np.random.default_rng(1).integers(150, 250, (32, 125_000, 3), np.uint8),
):
    try:
        prepare_image(make(), canvas_shape=(130, 1090))
    except ImageError:
        pass
    print(int(re.search("VmHWM:[^0-9]*([0-9]+)", Path("/proc/self/status").read_text())[1]) >> 10)
"""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code], check=True, timeout=250, capture_output=True, text=True
    )
    assert len(done.stdout.split()) == 6
    assert max(map(int, done.stdout.split())) < 400, done.stdout  # MiB; Python and the file itself included


@pytest.mark.parametrize("big", [False, True], ids=["classic", "big"])
@pytest.mark.parametrize("order", ["<", ">"], ids=["little", "great"])
@pytest.mark.filterwarnings("ignore")  # Pillow misses the lengths of the pieces
def test_a_tiff_in_too_many_pieces_is_refused(order, big):
    with pytest.raises(OversizedImageError, match="100,001 pieces; the limit is 100,000"):
        open_image(tiff_in_pieces(100_001, order=order, big=big))
    with contextlib.suppress(NotAnImageError):
        open_image(tiff_in_pieces(100, order=order, big=big))


def test_a_hungry_decoder_gets_smaller_pictures():
    file = io.BytesIO()
    Image.new("L", (2600, 10_000), 255).save(file, "JPEG2000")
    with pytest.raises(OversizedImageError, match="the limit is 25 million"):
        open_image(file.getvalue())


@pytest.mark.parametrize("orientation", range(1, 9))
def test_the_rotation_of_a_camera_is_undone(orientation):
    """As Pillow does it, which also writes all of the notes again."""
    image = Image.fromarray(np.arange(6, dtype=np.uint8).reshape(2, 3) * 40)
    note = Image.Exif()
    note[ExifTags.Base.Orientation] = orientation
    file = io.BytesIO()
    image.save(file, "PNG", exif=note.tobytes())
    expected = ImageOps.exif_transpose(Image.open(io.BytesIO(file.getvalue())))
    opened = open_image(file.getvalue())
    assert np.array_equal(np.asarray(opened), np.asarray(expected))
    assert np.array_equal(np.asarray(open_image(opened)), np.asarray(expected))  # it is not turned again


@pytest.mark.filterwarnings("ignore")  # Pillow has remarks about some of them
def test_hostile_files_open_or_say_why():
    opened, refused = [], []
    for seed in range(300):
        try:
            opened.append(open_image(hostile_file(seed)).size)
        except ImageError as error:
            refused.append(str(error))
    assert min(len(opened), len(refused)) > 60
    assert all(len(message) > 10 for message in refused)


def test_arrays_of_every_kind_are_the_same_picture():
    shown = np.array([[True, False, True], [False, False, True]])
    wide = shown.astype(np.uint16) * 65535
    for array in (shown, shown * 1.0, shown * 255.0, wide, shown.astype(np.int64) * 255):
        assert np.asarray(open_image(array).convert("L")).tolist() == (shown * 255).tolist()


@pytest.mark.filterwarnings("ignore")  # Pillow says that the file is cut off
@pytest.mark.parametrize("big", [False, True], ids=["classic", "big"])
def test_a_tiff_that_ends_anywhere_is_no_image(big):
    whole = tiff_in_pieces(3, big=big)
    for end in range(8, len(whole) - 20):
        with contextlib.suppress(ImageError):
            open_image(whole[:end])
