"""TeX sources to a list of formulas: units of work for an engine, then one file in the order of the sources.

Parts are files of the work folder, as in a build: an extraction that was killed goes on where it stopped.
"""

import gzip
import json
import lzma
import os
import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import IO, Any

from i2l import __version__
from i2l.dataset.build import EngineOptions
from i2l.dataset.sources import distinct_names
from i2l.dataset.stages import BuildProgress
from i2l.dataset.verdicts import hash64
from i2l.dataset.work import Plan, WorkFolder, disk_errors_explained
from i2l.extraction.archives import Verdict, list_units, open_unit
from i2l.extraction.harvest import Formula, FormulaFilters, HarvestOptions, harvest
from i2l.files import atomic_write

KEPT = "formula"
MAX_UNITS_PER_PART = 64
PARTS = 256  # as long as each part gets a unit


@dataclass(frozen=True)
class ExtractOptions:
    """What the bytes of the list depend on, besides the sources."""

    harvest: HarvestOptions = field(default_factory=HarvestOptions)
    filters: FormulaFilters = field(default_factory=FormulaFilters)


@dataclass(frozen=True)
class _Unit:
    path: Path
    name: str


def extract_formulas(
    sources: Sequence[Path],
    *,
    out: Path,
    options: ExtractOptions,
    engine: EngineOptions | None = None,
    quiet: bool = False,
) -> Counter[str]:
    """Write the formulas of all sources, and a verdict for all that is none beside them; count the verdicts.

    Raises:
        SourceError: if a source is not there.
        BuildError: if another extraction is at work in the same place, or a worker dies.
    """
    units = _name_units(sources)
    size = min(MAX_UNITS_PER_PART, -(-len(units) // PARTS)) or 1
    parts = [units[start : start + size] for start in range(0, len(units), size)]
    plan = _make_plan(units, options)
    work = WorkFolder(out.parent / f".{out.name}.work")
    workers = (engine or EngineOptions()).start(work.scratch)
    with disk_errors_explained(out.parent), work.claimed(plan), BuildProgress(quiet=quiet) as progress:
        missing = [index for index in range(len(parts)) if not _part(work, index).exists()]
        done = len(parts) - len(missing)
        with progress.stage("extract", total=len(parts), unit="parts", done=done) as advance:
            for _ in workers.run(partial(extract_part, work, parts, options), missing):
                advance(1)
        counts = _write_list(work, len(parts), out, options.filters)
    shutil.rmtree(work.path, ignore_errors=True)
    return counts


def verdicts_path(out: Path) -> Path:
    """Name the file of verdicts that lies beside a list of formulas."""
    stem, _, packed = out.name.partition(".jsonl")
    return out.with_name(f"{stem}.verdicts.jsonl{packed}")


def extract_part(
    work: WorkFolder, parts: Sequence[Sequence[_Unit]], options: ExtractOptions, index: int
) -> None:
    """Read the units of one part, and write what is found in them."""
    with atomic_write(_part(work, index)) as file:
        for unit in parts[index]:
            for found in _read_unit(unit, options.harvest):
                reason = options.filters.reason(found) if isinstance(found, Formula) else None
                row = found if reason is None else Verdict(found.file, reason, "", found.span)
                file.write(json.dumps(row._asdict()) + "\n")


def _read_unit(unit: _Unit, options: HarvestOptions) -> Iterator[Formula | Verdict]:
    """Yield what a unit holds; whatever goes wrong with a source, the others are read."""
    for bundle in open_unit(unit.path, unit.name):
        try:
            yield from harvest(bundle, options)
        except (ArithmeticError, LookupError, MemoryError, RecursionError, TypeError, ValueError) as error:
            yield Verdict(bundle.name, "failed", f"{type(error).__name__}: {error}")


def _part(work: WorkFolder, index: int) -> Path:
    return work.path / "parts" / f"{index:06d}.jsonl"


def _name_units(sources: Sequence[Path]) -> list[_Unit]:
    """Name every unit after the source that it lies in."""
    names = distinct_names(sources)
    units = []
    for source, name in zip(sources, names, strict=True):
        for path in list_units([source]):
            inside = path.relative_to(source).as_posix()
            units.append(_Unit(path.absolute(), name if inside == "." else f"{name}/{inside}"))
    return units


def _make_plan(units: Sequence[_Unit], options: ExtractOptions) -> Plan:
    sizes = {}
    for unit in units:
        status = os.stat(unit.path)
        sizes[unit.name] = f"{status.st_size} bytes of {status.st_mtime_ns}"
    return {"i2l": __version__, "options": asdict(options), "sources": sizes}


def _write_list(work: WorkFolder, num_parts: int, out: Path, filters: FormulaFilters) -> Counter[str]:
    """Put the parts together in their order; what the filters can only tell of all formulas is told here."""
    counts: Counter[str] = Counter()
    seen: set[int] = set()
    threshold = int(filters.sample * 2**64)
    with (
        atomic_write(out, "wb") as packed,
        _writer(packed, out) as formulas,
        atomic_write(verdicts_path(out), "wb") as packed_verdicts,
        _writer(packed_verdicts, out) as verdicts,
    ):
        for index in range(num_parts):
            for line in _part(work, index).read_bytes().splitlines(keepends=True):
                row: dict[str, Any] = json.loads(line)
                if "latex" not in row:
                    counts[row["verdict"]] += 1
                    verdicts.write(line)
                    continue
                reason = None
                fingerprint = hash64(row["latex"])
                if filters.unique and fingerprint in seen:
                    reason = "duplicate"
                elif filters.sample < 1 and hash64(f"{filters.seed} {row['latex']}") >= threshold:
                    reason = "not-drawn"
                if filters.unique:
                    seen.add(fingerprint)
                counts[reason or KEPT] += 1
                if reason is None:
                    formulas.write(line)
                else:
                    other = Verdict(row["file"], reason, "", row["span"])
                    verdicts.write(json.dumps(other._asdict()).encode() + b"\n")
    return counts


def _writer(file: IO[bytes], out: Path) -> Any:  # noqa: ANN401 - a context manager over IO[bytes], of three kinds
    if out.suffix == ".xz":
        return lzma.open(file, "wb")
    if out.suffix == ".gz":
        return gzip.GzipFile("", "wb", fileobj=file, mtime=0)
    return _Plain(file)


class _Plain:
    """A file that is closed by who opened it."""

    def __init__(self, file: IO[bytes]) -> None:
        self.write = file.write

    def __enter__(self) -> "_Plain":
        return self

    def __exit__(self, *_: object) -> None:
        pass
