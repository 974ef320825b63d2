"""The small NumPy and Pillow of the static site give what the real ones give."""

import json
import math
import struct
import subprocess
import zlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.web import library_cases
from tests.web.site import RECIPE, node

pytestmark = pytest.mark.slow


def picture_files(folder):
    """PNG files of every kind: depths, palettes, transparency, interlacing."""
    grey = Image.fromarray(library_cases.GREY)
    colour = Image.merge(
        "RGB", (grey, Image.fromarray(library_cases.SMOOTH), grey.transpose(Image.Transpose.ROTATE_180))
    )
    clear = colour.copy()
    clear.putalpha(Image.fromarray(library_cases.SMOOTH))
    kinds = {
        "grey": (grey, {}),
        "one-bit": (grey.convert("1"), {}),
        "two-bit": (grey.quantize(4), {"bits": 2}),
        "palette": (colour.quantize(17), {}),
        "palette-clear": (colour.quantize(200), {"transparency": bytes([0, 128, 255, 7])}),
        "grey-clear": (grey, {"transparency": 7}),
        "colour": (colour, {}),
        "colour-clear": (colour, {"transparency": colour.getpixel((3, 3))}),
        "grey-alpha": (clear.convert("LA"), {}),
        "alpha": (clear, {}),
        "deep": (Image.fromarray(np.asarray(grey).astype(np.uint16) * 257 + 3), {}),
    }
    for name, (image, options) in kinds.items():
        image.save(folder / f"{name}.png", **options)
    (folder / "interlaced.png").write_bytes(interlaced(library_cases.SMOOTH))
    return sorted(folder.glob("*.png"))


def interlaced(pixels):
    """A grey PNG in seven passes, which Pillow reads but does not write."""
    height, width = pixels.shape
    starts = (
        (0, 0, 8, 8),
        (0, 4, 8, 8),
        (4, 0, 8, 4),
        (0, 2, 4, 4),
        (2, 0, 4, 2),
        (0, 1, 2, 2),
        (1, 0, 2, 1),
    )
    lines = b"".join(
        b"\0" + row.tobytes() for top, left, down, across in starts for row in pixels[top::down, left::across]
    )

    def chunk(name, body):
        return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))

    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 1)
    parts = chunk(b"IHDR", head), chunk(b"IDAT", zlib.compress(lines)), chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


def test_they_give_what_numpy_and_pillow_give(tmp_path):
    files = picture_files(tmp_path)
    script = Path(__file__).parent / "library_cases.mjs"
    cases = Path(library_cases.__file__)
    command = [*node(), script, RECIPE, cases, *files]
    answer = subprocess.run(command, check=False, capture_output=True, text=True)
    assert answer.returncode == 0, answer.stderr[-2000:]
    ours = json.loads(answer.stdout)
    theirs = json.loads(json.dumps(library_cases.results([path.read_bytes() for path in files])))
    pictures = [
        f"{line} ({number})" for number in range(2) for line in library_cases.PICTURES.strip().splitlines()
    ]
    names = [*library_cases.EXPRESSIONS.strip().splitlines(), *pictures, *(path.name for path in files)]
    different = [
        name for name, one, other in zip(names, ours, theirs, strict=True) if not nearly_the_same(one, other)
    ]
    assert different == []


def nearly_the_same(one, other):
    """The same numbers, but for the last bits of what was summed, or taken from a table of logarithms."""
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(nearly_the_same, one, other))
    if isinstance(one, float) or isinstance(other, float):
        return one == other or math.isclose(one, other, rel_tol=3e-7, abs_tol=1e-9)
    return one == other
