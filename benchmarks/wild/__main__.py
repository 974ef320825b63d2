"""What a model reads beyond clean single formulas, measured.

    python -m benchmarks.wild DATA -o OUT.json
    python -m benchmarks.wild DATA --model FOLDER --parts wild,displays --limit 200 -o OUT.json

DATA is a folder with wild/ (images/, labels.tsv, kinds.tsv), tex-sources/physicsplay.tar.xz and
eval/im2latex_val.norm.txt. Parts:

    wild         pictures of other projects, by kind
    displays     displayed formulas of a book, of one row and of several, in four styles
    screens      web pages of KaTeX and MathJax in Chromium: four fonts, three scales, light and dark
    tokens       every token of the vocabulary, alone and in six contexts, in four fonts
    boxes        where tokens were read: IoU at half to double size, boxes that tokens share
    speed        one formula of 50 tokens against the model named by --against, and one of 500
    calibration  over the readings of the parts above that were measured

A limit is one of pictures in a part (formulas in boxes), taken so that all conditions stay in it. A file that
is there is added to: parts that are measured again replace what it had, so that calibration is over all of
it. Screenshots and what TeX draws are kept in the cache. Readings and references stay in OUT.json, which
holds text of the data; `python -m benchmarks.results box --wild OUT.json` publishes the figures alone.
What another system has read in the pictures of wild, as `benchmarks/pix2tex_peer.py` writes it, is judged by

    python -m benchmarks.wild DATA --predictions pix2tex.tsv
"""

import argparse
import json
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from benchmarks.wild.boxes import measure_boxes
from benchmarks.wild.calibration import measure_calibration
from benchmarks.wild.displays import measure_displays
from benchmarks.wild.judging import Judged, Row, row_as_json
from benchmarks.wild.pictures import judge_predictions, measure_pictures
from benchmarks.wild.screens import measure_screens
from benchmarks.wild.speed import measure_speed
from benchmarks.wild.tokens import measure_tokens
from i2l.files import atomic_write
from i2l.inference.reader import Reader

PARTS: Final = ("wild", "displays", "screens", "tokens", "boxes", "speed", "calibration")
_LABELS: Final = {
    "expression_rate": "expression rate",
    "character_f1": "character F1",
    "mean_iou": "mean IoU",
    "shared_boxes": "boxes shared",
    "calibration_error": "calibration error",
    "confidence": "mean confidence",
    "right": "right",
    "wrong_but_sure": "wrong ones over .9 sure",
}


def main() -> None:
    """Measure the parts asked for, one after the other; each is written as soon as it is done."""
    options = _parse()
    if options.predictions:
        print(part_as_text(_part(*judge_predictions(options.data, options.predictions))))
        return
    if not options.output:
        raise SystemExit("Say where the figures go: -o OUT.json")
    reader = Reader(options.model)
    content: dict[str, Any] = {"model": str(options.model or reader.model.path.name), "parts": {}}
    if options.output.is_file():
        content["parts"] = json.loads(options.output.read_text(encoding="utf-8"))["parts"]
    for name in options.parts:
        started = time.perf_counter()
        content["parts"][name] = part = measure(name, reader, options, content["parts"])
        part["seconds"] = round(time.perf_counter() - started, 1)
        with atomic_write(options.output) as file:
            json.dump(content, file, ensure_ascii=False, indent=1)
        print(f"\n{name} ({part['seconds']:.0f} s)")
        print(part_as_text(part), flush=True)


def measure(name: str, reader: Reader, options: argparse.Namespace, parts: dict[str, Any]) -> dict[str, Any]:
    """Measure one part; `parts` are those that were measured before."""
    data, cache, limit = options.data, options.cache, options.limit
    if name == "wild":
        return _part(*measure_pictures(reader, data, limit=limit))
    if name == "displays":
        rows, judged, left_out = measure_displays(reader, data, cache, limit=limit)
        return _part(rows, judged) | {"left_out": left_out}
    if name == "screens":
        return _part(*measure_screens(reader, data, cache, options.mathjax, limit=limit))
    if name == "tokens":
        rows, judged, by_token = measure_tokens(reader, limit=limit)
        return _part(rows, judged) | {"by_token": by_token}
    if name == "boxes":
        return _part(*measure_boxes(reader, data, cache, options.mathjax, limit=limit))
    if name == "speed":
        return {"speed": measure_speed(reader, Reader(options.against), data)}
    judged_before = {
        part: [Judged(**one) for one in found["readings"]]
        for part, found in parts.items()
        if found.get("readings")
    }
    return _part(measure_calibration(judged_before), [])


def _part(rows: list[Row], judged: list[Judged]) -> dict[str, Any]:
    return {"rows": [row_as_json(row) for row in rows], "readings": [asdict(one) for one in judged]}


def part_as_text(part: dict[str, Any]) -> str:
    """Give the rows of a part as lines."""
    if "speed" in part:
        return "\n".join(f"  {key}: {value}" for key, value in part["speed"].items())
    lines = []
    for row in part["rows"]:
        figures = "   ".join(
            _figure_as_text(key, *(found[side] for side in ("value", "low", "high")))
            for key, found in row["figures"].items()
        )
        lines.append(f"  {row['label']:<52}{row['samples']:>6}   {figures}   {row['notes']}")
    if "left_out" in part:
        lines.append(f"  left out: {part['left_out']}")
    return "\n".join(lines)


def _figure_as_text(key: str, value: float, low: float, high: float) -> str:
    return f"{_LABELS[key]} {100 * value:.1f} ({100 * low:.1f} to {100 * high:.1f})"


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.wild",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("data", type=Path)
    parser.add_argument("--model", help="folder, checkpoint or name; the model in the box if not given")
    parser.add_argument("--against", help="model to compare the speed with; the one in the box if not given")
    parser.add_argument("--parts", default=",".join(PARTS), help="with commas between them; all if not given")
    parser.add_argument("--limit", type=int, help="pictures in each part")
    parser.add_argument("--cache", type=Path, default=Path(".wild-cache"))
    parser.add_argument(
        "--mathjax", type=Path, help="node_modules with MathJax; if not given, only KaTeX is shown"
    )
    parser.add_argument(
        "--predictions", type=Path, help="judge these readings of the pictures of wild instead"
    )
    parser.add_argument("-o", "--output", type=Path)
    options = parser.parse_args()
    options.parts = [name for name in PARTS if name in options.parts.split(",")]
    return options


if __name__ == "__main__":
    main()
