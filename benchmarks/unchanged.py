"""Did a change of the code change what it does? Digests of readings, of a build and of training, to compare.

    python -m benchmarks.unchanged before.json --images FOLDER --lists LISTS...     before the change
    python -m benchmarks.unchanged after.json --images FOLDER --lists LISTS...      after it
    python -m benchmarks.unchanged --compare before.json after.json

Everything goes through the `i2l` command of the package that this Python imports, so both sides may have any
inner shape. Of readings the JSON counts, times aside; of a dataset its formulas, images, boxes and
vocabulary, by both engines; of training the weights, to the last bit, after one step and after an epoch of
each network. Seconds are kept beside, for a ratio of speeds: run both sides on an idle machine for that.
"""

import argparse
import hashlib
import json
import lzma
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

TRAIN_LINES = 40
EPOCH_STEPS = 5  # of the batches below
SHORT = 150  # characters of a line that is trained on
TRAIN = ["--device", "cpu", "--batch-size", "8", "--seed", "7", "--precision", "float32"]


def run(*arguments: object) -> tuple[str, float]:
    """Run one `i2l` command and return what it printed and how long it took."""
    begun = time.monotonic()
    command = [sys.executable, "-m", "i2l", *map(str, arguments)]
    done = subprocess.run(command, check=False, stdout=subprocess.PIPE, text=True)
    if done.returncode not in (0, 1):  # 1: some image or line has an error, which is an answer too
        raise SystemExit(f"{' '.join(command)} ended with status {done.returncode}")
    return done.stdout, time.monotonic() - begun


def first_lines(path: Path, count: int) -> list[str]:
    """Return the first lines of a text file, which may be packed by xz."""
    with lzma.open(path, "rt") if path.suffix == ".xz" else path.open() as lines:
        return [line.rstrip("\n") for line in islice(lines, count)]


def digest(*parts: bytes) -> str:
    """Return a short hash of bytes in their order."""
    found = hashlib.sha256()
    for part in parts:
        found.update(len(part).to_bytes(8, "little") + part)
    return found.hexdigest()[:16]


def of_readings(images: Path, *, without_boxes: bool) -> dict[str, object]:
    """Read a folder of images and digest the JSON of each, without its times."""
    printed, seconds = run("read", images, "--json")
    lines = []
    for line in printed.splitlines():
        reading = json.loads(line)
        for field in [name for name in reading if "second" in name or "time" in name or name == "ms"]:
            del reading[field]
        if without_boxes:
            reading["tokens"] = [{**token, "box": None} for token in reading.get("tokens", [])]
        lines.append(json.dumps(reading, sort_keys=True).encode())
    return {"readings": len(lines), "digest": digest(*lines), "seconds": seconds}


def of_dataset(folder: Path) -> str:
    """Digest the rows of a dataset, whatever the shards are called and however they are cut."""
    import pyarrow.parquet as parquet

    rows = []
    for shard in sorted(folder.glob("data/**/*.parquet")):
        for row in parquet.read_table(shard).to_pylist():
            rows.append(repr(sorted(row.items())).encode())
    vocabulary = [path.read_bytes() for path in sorted(folder.glob("vocab.json"))]
    return digest(*sorted(rows), *vocabulary)


def of_weights(run_folder: Path) -> str:
    """Digest all weights that a run has saved."""
    found = sorted(run_folder.rglob("*.safetensors"))
    if not found:
        raise SystemExit(f"No weights in {run_folder}")
    return digest(*(path.read_bytes() for path in found))


def measure(
    images: Path, lists: list[Path], num_lines: int, folder: Path, *, without_boxes: bool
) -> Iterator[tuple[str, object]]:
    """Yield the digests of the package that is imported, each under its name."""
    yield "read", of_readings(images, without_boxes=without_boxes)
    lines = [line for path in lists for line in first_lines(path, num_lines // len(lists))]
    formulas = folder / "formulas.txt"
    formulas.write_text("\n".join(lines) + "\n")
    for engine in ("local", "ray"):
        out = folder / engine
        _, seconds = run(
            "build", "--formulas", formulas, "--out", out, "--engine", engine, "--jobs", 2, "--seed", 3
        )
        yield f"build {engine}", {"digest": of_dataset(out), "seconds": seconds}
    few = folder / "few.txt"
    few.write_text("\n".join(list(filter(lambda line: len(line) < SHORT, lines))[:TRAIN_LINES]) + "\n")
    run("build", "--formulas", few, "--out", folder / "few", "--seed", 3, "--min-token-count", 1)
    for preset in ("nopool", "strips", "pinpoint"):
        for name, steps in (("one step", 1), ("an epoch", EPOCH_STEPS)):
            out = folder / f"{preset}-{steps}"
            options = [*TRAIN, "--max-steps", steps]
            _, seconds = run("train", "--data", folder / "few", "--preset", preset, "--out", out, *options)
            yield f"train {preset}, {name}", {"digest": of_weights(out), "seconds": seconds}


def compare(before: Path, after: Path) -> int:
    """Print what differs between two files of digests, and the ratio of times; 1 if anything differs."""
    old, new = json.loads(before.read_text()), json.loads(after.read_text())
    differs = 0
    for name in old:
        same = old[name]["digest"] == new.get(name, {}).get("digest")
        differs |= not same
        ratio = new[name]["seconds"] / old[name]["seconds"] if name in new else float("nan")
        print(f"{name:28} {'same' if same else 'DIFFERS':8} time after / before {ratio:.2f}")
    return differs


def main() -> int:
    """Measure one side, or compare two."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("out", type=Path, nargs="?")
    parser.add_argument("--images", type=Path)
    parser.add_argument("--lists", type=Path, nargs="+")
    parser.add_argument("--lines", type=int, default=20_000)
    parser.add_argument("--without-boxes", action="store_true", help="for a change of how boxes are found")
    parser.add_argument("--compare", type=Path, nargs=2)
    options = parser.parse_args()
    if options.compare:
        return compare(*options.compare)
    with tempfile.TemporaryDirectory() as folder:
        found = {}
        for name, value in measure(
            options.images, options.lists, options.lines, Path(folder), without_boxes=options.without_boxes
        ):
            found[name] = value
            options.out.write_text(json.dumps(found, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
