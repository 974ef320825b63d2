"""What a model was told about itself on a validation split, above all what its confidence means.

The model's probability of a reading is mapped to how often such readings are right.

The map is isotonic: the rising step function that is nearest to what was seen on a validation split (by the
pool-adjacent-violators algorithm), drawn through the middles of its steps.
"""

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from i2l.errors import I2LError
from i2l.files import atomic_write

FORMAT = "i2l-calibration-1"
MIN_SAMPLES = 50
GROUP_SIZE = 20  # readings: fewer say little about a share


class CalibrationError(I2LError):
    """Data or a file that no calibration can be made from."""


@dataclass(frozen=True)
class Calibration:
    """A rising line through points (probability the model gives, share that is right)."""

    given: tuple[float, ...]
    right: tuple[float, ...]
    error: float  # expected calibration error, measured on readings that were not fitted
    num_samples: int
    box_share: float | None = None  # of a token's attention, for its box; None if that was not fitted

    def __call__(self, probabilities: ArrayLike) -> NDArray[np.float64]:
        """Map the model's probabilities to calibrated ones."""
        return np.interp(np.asarray(probabilities, np.float64), self.given, self.right)

    def save(self, path: Path) -> None:
        """Write the JSON file."""
        content = {
            "format": FORMAT,
            "given": self.given,
            "right": self.right,
            "expected_calibration_error": self.error,
            "num_samples": self.num_samples,
            "box_share": self.box_share,
        }
        with atomic_write(path) as file:
            json.dump(content, file, indent=1)
            file.write("\n")

    @classmethod
    def load(cls, path: Path) -> "Calibration":
        """Read a file that `save` wrote.

        Raises:
            CalibrationError: if it is not such a file.
        """
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            if content["format"] != FORMAT:
                raise CalibrationError(f"{path} is of format {content['format']!r}, not {FORMAT!r}.")
            return cls(
                given=tuple(content["given"]),
                right=tuple(content["right"]),
                error=content["expected_calibration_error"],
                num_samples=content["num_samples"],
                box_share=content.get("box_share"),
            )
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise CalibrationError(f"Cannot read the calibration {path}: {error}") from error


def expected_calibration_error(probabilities: ArrayLike, correct: ArrayLike, *, bins: int = 15) -> float:
    """Give the mean distance between confidence and share of right readings, over bins of equal size."""
    given, right = np.asarray(probabilities, np.float64), np.asarray(correct, np.float64)
    order = np.argsort(given, kind="stable")
    parts = np.array_split(order, min(bins, len(order)))
    return float(sum(abs(given[part].sum() - right[part].sum()) for part in parts) / len(order))


def fit_calibration(probabilities: ArrayLike, correct: ArrayLike) -> Calibration:
    """Fit the calibration of readings of a validation split.

    The error it carries is honest: each half of the readings is judged by the fit of the other half.

    Args:
        probabilities: that the model gave its readings, (N,).
        correct: whether each reading was right, (N,).

    Raises:
        CalibrationError: if there are too few readings, or values that are no probabilities.
    """
    given, right = np.asarray(probabilities, np.float64), np.asarray(correct, np.float64)
    if given.shape != right.shape or given.ndim != 1 or len(given) < MIN_SAMPLES:
        raise CalibrationError(f"A calibration needs at least {MIN_SAMPLES} readings, one verdict each.")
    if not ((given >= 0) & (given <= 1)).all():
        raise CalibrationError("Confidence must lie between 0 and 1.")
    halves = np.arange(len(given)) % 2 == 0
    errors = []
    for half in (halves, ~halves):
        points = _isotonic(given[half], right[half])
        mapped = np.interp(given[~half], *points)
        errors.append(expected_calibration_error(mapped, right[~half]))
    return Calibration(*_isotonic(given, right), error=float(np.mean(errors)), num_samples=len(given))


def _isotonic(
    given: NDArray[np.float64], right: NDArray[np.float64]
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Give the points of the line: groups of neighbours, pooled until the shares of right readings rise."""
    groups = np.array_split(np.argsort(given, kind="stable"), max(1, len(given) // GROUP_SIZE))
    steps: list[NDArray[np.float64]] = []  # readings, sum of given, number of right ones
    for group in groups:
        steps.append(np.array([len(group), given[group].sum(), right[group].sum()]))
        while len(steps) > 1 and steps[-2][2] / steps[-2][0] >= steps[-1][2] / steps[-1][0]:
            last = steps.pop()
            steps[-1] = steps[-1] + last
    counts, totals, wins = np.stack(steps, axis=1)
    return tuple((totals / counts).tolist()), tuple((wins / counts).tolist())
