"""The work folder of a build: everything done so far, as files that are either whole or absent.

A build is a row of stages; each cuts its work into numbered parts and writes one file per part. A part whose
file is there is done, so a build that was killed goes on where it stopped. The folder belongs to one plan
(inputs, options, versions), and to one running build at a time.
"""

import errno
import fcntl
import hashlib
import json
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from i2l.errors import I2LError
from i2l.files import atomic_write, file_checksum

_DIGEST_BYTES = hashlib.sha256().digest_size
_ARROW_END = b"ARROW1"

Plan = dict[str, Any]


class BuildError(I2LError):
    """A build that cannot start or go on."""


@dataclass(frozen=True)
class WorkFolder:
    """Paths of the work folder; a plain value, so that it can travel to other processes and machines."""

    path: Path

    def part(self, stage: str, index: int) -> Path:
        """Return the path of the file of one part of a stage."""
        return self.path / stage / f"{index:06d}.arrow"

    def missing(self, stage: str, num_parts: int) -> list[int]:
        """List the parts of a stage that are still to be done."""
        return [index for index in range(num_parts) if not self.part(stage, index).exists()]

    @property
    def result(self) -> Path:
        """The dataset itself, until it moves to its place."""
        return self.path / "result"

    @property
    def scratch(self) -> Path:
        """Room for temporary files of the local workers; emptied at every start."""
        return self.path / "scratch"

    def note_written(self, name: str) -> None:
        """Note that a file of the result is done, with its checksum."""
        with atomic_write(self._note(name)) as file:
            file.write(file_checksum(self.result / name))

    def is_written(self, name: str) -> bool:
        """Say whether a file of the result is done, and still as it was written."""
        path, note = self.result / name, self._note(name)
        return path.is_file() and note.is_file() and note.read_bytes() == file_checksum(path).encode()

    def _note(self, name: str) -> Path:
        return self.path / "written" / f"{name.replace('/', '-')}.sha256"

    @contextmanager
    def claimed(self, plan: Plan) -> Iterator[None]:
        """Hold the folder for one build of this plan: create it, or take up what an earlier run left.

        Raises:
            BuildError: if it belongs to another plan, or a build is running in it.
        """
        self.path.mkdir(parents=True, exist_ok=True)
        with open(self.path / "lock", "w", encoding="utf-8") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise BuildError(
                    f"Another build is at work in {self.path}; wait for it, or stop it."
                ) from None
            self._check_plan(plan)
            for partial in self.path.rglob("*.partial"):
                partial.unlink()
            shutil.rmtree(self.scratch, ignore_errors=True)
            self.scratch.mkdir()
            yield

    def _check_plan(self, plan: Plan) -> None:
        path = self.path / "plan.json"
        if path.exists():
            try:
                old = json.loads(path.read_text(encoding="utf-8"))
            except ValueError as error:
                raise BuildError(
                    f"{path} is damaged; delete the folder {self.path} and build again."
                ) from error
            differing = plan_differences(old, plan)
            if differing:
                raise BuildError(
                    f"{self.path} holds an unfinished build that differs in: {', '.join(differing)}. "
                    "Repeat that build's command to go on with it, or delete the folder to start afresh."
                )
        else:
            with atomic_write(path) as file:
                json.dump(plan, file, indent=1)


def plan_differences(old: Plan, new: Plan) -> list[str]:
    """Name what differs between two plans, as in `recipe.max_tokens (150, now 200)`."""
    flat_old, flat_new = dict(_flatten(old)), dict(_flatten(new))
    names = sorted(flat_old.keys() | flat_new.keys())
    return [
        f"{name} ({flat_old.get(name)}, now {flat_new.get(name)})"
        for name in names
        if flat_old.get(name) != flat_new.get(name)
    ]


def _flatten(value: object, prefix: str = "") -> Iterator[tuple[str, object]]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _flatten(inner, f"{prefix}.{key}" if prefix else str(key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _flatten(inner, f"{prefix}[{index}]")
    else:
        yield prefix, value


def write_part(path: Path, table: pa.Table) -> None:
    """Write a table so that `read_part` can map it into memory, with its checksum after it."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    content = sink.getvalue()
    with atomic_write(path, "wb") as file:
        file.write(content)
        file.write(hashlib.sha256(content).digest())


def read_part(path: Path) -> pa.Table:
    """Map a table into memory, after comparing it with its checksum.

    Raises:
        BuildError: if the file has changed since it was written.
    """
    try:
        with pa.memory_map(str(path)) as file:
            content = file.read_buffer()
        if content[-len(_ARROW_END) :].to_pybytes() != _ARROW_END:  # earlier versions wrote no checksum
            content, digest = content[:-_DIGEST_BYTES], content[-_DIGEST_BYTES:].to_pybytes()
            if hashlib.sha256(content).digest() != digest:
                raise _damaged(path)
        return pa.ipc.open_file(pa.BufferReader(content)).read_all()
    except (OSError, pa.ArrowException) as error:
        raise _damaged(path) from error


def _damaged(path: Path) -> BuildError:
    return BuildError(
        f"{path} is missing or damaged; delete the folder {path.parent.parent} and build again."
    )


@contextmanager
def disk_errors_explained(folder: Path) -> Iterator[None]:
    """Turn a full disk or a folder that may not be written into words.

    Raises:
        BuildError: for such a problem.
    """
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            place = error.filename or folder
            raise BuildError(
                f"The disk of {place} is full; make room, then repeat the command to go on."
            ) from error
        if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
            raise BuildError(f"Cannot write to {error.filename or folder}: {error.strerror}.") from error
        raise
