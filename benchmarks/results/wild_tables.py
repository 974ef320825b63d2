"""What `python -m benchmarks.wild` measured, published without the data's text, and as tables."""

import json
from pathlib import Path
from typing import Any, Final

from benchmarks.results.markdown import NOTHING, percent, table
from benchmarks.results.store import Run, write_json

_TITLES: Final = {
    "wild": "pictures of other projects",
    "displays": "a book's displays",
    "screens": "web pages",
    "tokens": "tokens",
}
# What is wanted, as a share, of the rows that have a bar: expression rate and character F1.
_BARS: Final = {
    ("wild", "print"): (0.95, None),
    ("wild", "lines"): (0.65, None),
    ("wild", "photo"): (0.75, None),
    ("displays", "several rows, all styles"): (0.80, 0.97),
    ("screens", "all"): (0.95, None),
    ("tokens", "all"): (0.97, None),
}
_MAX_SHARED, _MIN_IOU, _MAX_ERROR, _MAX_SURE, _MAX_RATIO, _MAX_LONG_S = 0.03, 0.85, 0.03, 0.1, 1.1, 3
_NOT_MEASURED: Final = "Not measured."
_PUBLISHED: Final = ("rows", "left_out", "by_token", "speed", "seconds")


def publish_wild(measured: Path, published: Path) -> None:
    """Take over the figures of a run; readings and references, which are text of the data, stay behind."""
    content = json.loads(measured.read_text(encoding="utf-8"))
    parts = {
        name: {key: part[key] for key in _PUBLISHED if key in part} for name, part in content["parts"].items()
    }
    write_json(published, {"model": Path(content["model"]).name, "parts": parts})


def wild_scores(box: Run) -> str:
    """Expression rates and character F1 of pictures, displays, web pages and tokens."""
    rows = []
    for part, title in _TITLES.items():
        for row in _rows(box, part):
            bars = _BARS.get((part, row["label"]), (None, None))
            cells = [
                _against(row["figures"][key], bar, digits=1)
                for key, bar in zip(("expression_rate", "character_f1"), bars, strict=True)
            ]
            rows.append([f"{title}: {row['label']}", f"{row['samples']:,}", *cells, row["notes"]])
    return _table(["", "pictures", "expression rate (95 %)", "character F1 (95 %)", "of these"], rows)


def wild_boxes(box: Run) -> str:
    """Mean IoU and shared boxes by size, and on screenshots."""
    rows = []
    for row in _rows(box, "boxes"):
        iou = row["figures"].get("mean_iou")
        all_sizes, screens = row["label"] == "0.5x to 2x", row["label"].startswith("screenshots")
        rows.append(
            [
                row["label"],
                f"{row['samples']:,}",
                _against(iou, _MIN_IOU if all_sizes else None, digits=1) if iou else NOTHING,
                _against(
                    row["figures"]["shared_boxes"], _MAX_SHARED if screens else None, digits=1, higher=False
                ),
            ]
        )
    return _table(["size", "pictures", "mean IoU (95 %)", "tokens that share a box (95 %)"], rows)


def wild_calibration(box: Run) -> str:
    """Calibration error, and how many wrong readings are called sure, by part."""
    rows = []
    for row in _rows(box, "calibration"):
        figures, everything = row["figures"], row["label"] == "all parts"
        error = figures["calibration_error"]["value"]
        wanted = f", wanted: {_MAX_ERROR}" if everything and error > _MAX_ERROR else ""
        rows.append(
            [
                row["label"],
                f"{row['samples']:,}",
                percent(figures["right"]["value"], 1),
                percent(figures["confidence"]["value"], 1),
                f"{error:.3f}{wanted}",
                _against(
                    figures["wrong_but_sure"], _MAX_SURE if everything else None, digits=1, higher=False
                ),
            ]
        )
    head = [
        "part",
        "readings",
        "right",
        "mean confidence",
        "calibration error",
        "wrong ones over .9 sure (95 %)",
    ]
    return _table(head, rows)


def wild_speed(box: Run) -> str:
    """Seconds for short and long formulas."""
    if "speed" not in _parts(box):
        return _NOT_MEASURED
    speed = _parts(box)["speed"]["speed"]
    width, height = speed["long_size_px"]
    rows = [
        [
            f"{speed['short_tokens']} tokens: times as long as the model it is compared with",
            f"{speed['ratio']:.2f}",
            f"at most {_MAX_RATIO}",
        ],
        [
            f"{speed['long_tokens']} tokens, {width} x {height} pixels: seconds",
            f"{speed['long_s']:.1f}" if "long_s" in speed else "refused: too large",
            f"at most {_MAX_LONG_S}",
        ],
    ]
    return table(["one formula", "measured", "wanted"], rows)


def _table(head: list[str], rows: list[list[str]]) -> str:
    return table(head, rows) if rows else _NOT_MEASURED


def _parts(box: Run) -> dict[str, Any]:
    return (box.part("wild") or {"parts": {}})["parts"]  # type: ignore[no-any-return]


def _rows(box: Run, part: str) -> list[dict[str, Any]]:
    return _parts(box).get(part, {}).get("rows", [])  # type: ignore[no-any-return]


def _against(found: dict[str, float], bar: float | None, *, digits: int, higher: bool = True) -> str:
    """Give a share with its interval, and the bar where it is missed."""
    text = f"{percent(found['value'], digits)} ({100 * found['low']:.1f} to {100 * found['high']:.1f})"
    if bar is None or (found["value"] >= bar if higher else found["value"] <= bar):
        return text
    return f"{text}, wanted: {100 * bar:g}"
