"""Where the curves go: RUN/metrics.jsonl, one JSON object a row, and the same scalars in TensorBoard.

A resumed run first forgets the rows after its checkpoint, so every step appears once.
"""

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from i2l.errors import require_extra
from i2l.files import atomic_write

METRICS_FILE = "metrics.jsonl"


class Monitor:
    """Writes rows of scalars, and pictures, of one run."""

    def __init__(self, run: Path, *, step: int) -> None:
        """Open the run's files to go on after ``step``."""
        tensorboard = require_extra("torch.utils.tensorboard", "train")
        self._writer = tensorboard.SummaryWriter(run / "tensorboard", purge_step=step + 1)
        path = run / METRICS_FILE
        rows = read_rows(path)
        with atomic_write(path) as file:
            for row in rows:
                if row["step"] <= step:
                    file.write(json.dumps(row) + "\n")
        self._file = path.open("a", encoding="utf-8")

    def write(self, kind: str, step: int, scalars: Mapping[str, float]) -> None:
        """Write one row; ``kind``, such as "train", is the first part of its TensorBoard tags."""
        row: dict[str, Any] = {"kind": kind, "step": step}
        row |= {name: value if math.isfinite(value) else str(value) for name, value in scalars.items()}
        self._file.write(json.dumps(row) + "\n")
        self._file.flush()
        for name, value in scalars.items():
            self._writer.add_scalar(f"{kind}/{name}", value, step)
        self._writer.flush()

    def write_picture(self, name: str, step: int, pixels: NDArray[np.uint8]) -> None:
        """Add a grey picture (H, W) to TensorBoard."""
        self._writer.add_image(name, pixels, step, dataformats="HW")

    def close(self) -> None:
        """Flush and close the files."""
        self._file.close()
        self._writer.close()


def read_rows(path: Path) -> list[dict[str, Any]]:
    """Read the rows of a metrics file; a last line cut short by a kill is left out."""
    rows = []
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else []:
        try:
            rows.append(json.loads(line))
        except ValueError:
            break
    return rows
