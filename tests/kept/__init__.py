"""Numbers that were measured once and must stay: what models were trained with, and how scores were counted.

A test measures and gives its numbers to `assert_kept`, which compares them with those in a file of that name
in this folder. Whoever changes them on purpose writes them anew with `KEEP=1 pytest ...`, sees in the
differences of the file what changed, and says in the commit why.
"""

import json
import os
from pathlib import Path

import numpy as np


def assert_kept(name, measured, *, relative=1e-3):
    """Compare numbers, by their names, with those that were kept; what is below a millionth counts as 0."""
    path = Path(__file__).with_name(f"{name}.json")
    measured = {key: np.asarray(values, np.float64).ravel().tolist() for key, values in measured.items()}
    if os.environ.get("KEEP"):
        lines = (
            f"{json.dumps(key)}: {json.dumps([_short(value) for value in values])}"
            for key, values in measured.items()
        )
        path.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    kept = json.loads(path.read_text())
    assert list(measured) == list(kept)
    for key, values in measured.items():
        np.testing.assert_allclose(values, kept[key], rtol=relative, atol=1e-6, err_msg=key)


def assert_text_kept(name, lines):
    """Compare lines with those that were kept; in a difference of the file each shows by itself."""
    path = Path(__file__).with_name(f"{name}.txt")
    if os.environ.get("KEEP"):
        path.write_text("".join(f"{line}\n" for line in lines))
    assert list(lines) == path.read_text().splitlines()


def _short(value):
    return int(value) if value % 1 == 0 else float(f"{value:.6g}")


def outline(pixels):
    """Put what a picture shows into a few numbers: its size, how dark it is, and where, in waves."""
    pixels = np.asarray(pixels, np.float64)
    rows, columns = np.mgrid[: pixels.shape[0], : pixels.shape[1]]
    waves = (np.cos(0.37 * wave * rows + 0.21 * columns + wave) for wave in (0.1, 0.5, 1.0, 2.3))
    scale = max(np.abs(pixels).mean(), 1e-9)
    return [*pixels.shape, pixels.mean(), *(1 + (pixels * wave).mean() / scale for wave in waves)]
