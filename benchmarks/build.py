"""How long a whole build takes and how much memory: `python -m benchmarks.build FILES...`.

Runs `i2l build` on the first lines of the files and watches it. Memory is the proportional share (PSS) of the
command and of everything it starts, TeX included, five times a second. `--compact` also loads what was built.
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from rich.console import Console
from rich.table import Table

from i2l.dataset.format import DatasetReader

MEBIBYTE = 1 << 20


def descendants(root: int) -> Iterator[int]:
    """Give a process and all that descend from it."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:  # gone
                continue
            children.setdefault(int(fields[1]), []).append(int(entry.name))
    waiting = [root]
    while waiting:
        process = waiting.pop()
        yield process
        waiting += children.get(process, [])


def memory_bytes(root: int) -> int:
    """Add up what a process and its descendants hold, shared pages by their share."""
    total = 0
    for process in descendants(root):
        try:
            lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
        except OSError:
            continue
        total += sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))
    return total


def watch(process: subprocess.Popen[bytes], interval_s: float = 0.2) -> int:
    """Wait for the end of a process; give the most memory that it had."""
    peak = 0
    done = threading.Event()

    def measure() -> None:
        nonlocal peak
        while not done.wait(interval_s):
            peak = max(peak, memory_bytes(process.pid))

    watcher = threading.Thread(target=measure)
    watcher.start()
    process.wait()
    done.set()
    watcher.join()
    return peak


def folder_bytes(folder: Path) -> int:
    """Add up the sizes of all files."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def main() -> None:
    """Build, watch, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", type=Path, nargs="+")
    parser.add_argument("--lines", type=int, default=100_000)
    parser.add_argument("--recipe", default="im2latex-90k")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--compact", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="i2l-bench-") as folder:
        out = Path(folder) / "dataset"
        command = [sys.executable, "-m", "i2l", "build", *map(str, options.files), "--out", str(out)]
        command += ["--limit", str(options.lines), "--recipe", options.recipe, "--jobs", str(options.jobs)]
        command += ["--compact"] if options.compact else []
        start = time.perf_counter()
        process = subprocess.Popen(command)
        peak = watch(process)
        elapsed_s = time.perf_counter() - start
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu_s = used.ru_utime + used.ru_stime
        if process.returncode:
            sys.exit(process.returncode)
        dataset = DatasetReader(out)
        splits = dataset.card["splits"].values()
        kept = dataset.card["num_kept"]
        table = Table("build", "measured", "wanted", title=f"{options.jobs} jobs, recipe {options.recipe}")
        table.add_row("lines given", f"{dataset.card['num_given']:,}", "")
        table.add_row("samples kept", f"{kept:,}", "")
        table.add_row(
            "with boxes", f"{sum(s['num_with_boxes'] for s in splits) / kept:.2%}", "97 % (not compact)"
        )
        table.add_row("time", f"{elapsed_s:.0f} s", "360 s for 100,000 lines, 2 jobs")
        table.add_row("CPU time", f"{cpu_s:.0f} s", "")  # of all processes: what counts on a busy machine
        table.add_row("peak memory", f"{peak / MEBIBYTE:,.0f} MiB", "3,072 MiB")
        table.add_row(
            "size", f"{folder_bytes(out) / MEBIBYTE:,.1f} MiB, {folder_bytes(out) / kept:,.0f} bytes each", ""
        )
        start = time.perf_counter()
        num_pixels = sum(dataset.split(name).load_all(jobs=options.jobs).data.size for name in dataset.splits)
        table.add_row(
            "load all", f"{time.perf_counter() - start:.0f} s, {num_pixels / 1e9:.2f} GB of pixels", ""
        )
        Console().print(table)


if __name__ == "__main__":
    main()
