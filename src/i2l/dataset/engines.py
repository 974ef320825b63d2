"""Engines run the parts of a stage: local processes, or Ray Data. The parts do not know which.

A build shows its progress on stderr: one bar a stage, with its rate and the time left.
"""

import logging
import multiprocessing
import signal
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from i2l.dataset.format import end_with_parent
from i2l.dataset.work import BuildError
from i2l.errors import I2LError, require_extra

Job = Callable[[int], None]
INTERRUPT_S = 0.5


class Engine(Protocol):
    """Runs a task for each of many numbers, in any order, and names each number as it is done."""

    def run(self, task: Job, parts: Sequence[int]) -> Iterator[int]:
        """Yield the number of every finished part; the first failure is raised."""


class LocalEngine:
    """Processes of this machine; with one job, this process itself."""

    def __init__(self, *, jobs: int, scratch: Path) -> None:
        self.jobs = jobs
        self.scratch = scratch

    def run(self, task: Job, parts: Sequence[int]) -> Iterator[int]:
        """Run the task for each part.

        Raises:
            BuildError: if a worker process dies.
        """
        if self.jobs == 1 or len(parts) < 2:
            for part in parts:
                task(part)
                yield part
            return
        with ProcessPoolExecutor(
            max_workers=min(self.jobs, len(parts)),
            mp_context=multiprocessing.get_context("spawn"),  # safe whatever threads the caller has
            initializer=_start_worker,
            initargs=(str(self.scratch),),
        ) as pool:
            futures = {pool.submit(task, part): part for part in parts}
            try:
                for future in as_completed(futures):
                    future.result()
                    yield futures[future]
            except BrokenProcessPool as error:
                time.sleep(INTERRUPT_S)  # Ctrl-C may have ended a worker before it reaches this process
                raise BuildError(
                    "A worker process was killed, probably for want of memory; "
                    "repeat the command to go on, with fewer --jobs if it happens again."
                ) from error
            finally:
                pool.shutdown(wait=True, cancel_futures=True)


class RayEngine:
    """Ray Data on one machine or a cluster whose nodes share the file system of the output folder."""

    def __init__(self, *, address: str | None, jobs: int | None) -> None:
        self._ray = require_extra("ray", "cluster")
        require_extra("ray.data", "cluster")
        if not self._ray.is_initialized():
            self._ray.init(
                address=address or "local",
                num_cpus=jobs if address is None else None,
                include_dashboard=False if address is None else None,
                log_to_driver=False,
                logging_level=logging.WARNING,
            )
        logging.getLogger("ray.data").setLevel(logging.ERROR)
        self._ray.data.DataContext.get_current().enable_progress_bars = False  # we have our own

    def run(self, task: Job, parts: Sequence[int]) -> Iterator[int]:
        """Run the task for each part, one Ray task a part; Ray repeats those of a lost node.

        Raises:
            BuildError: if a task fails.
        """

        def run_row(row: dict[str, Any]) -> dict[str, Any]:
            # An expected error travels as a row: Ray would wrap it in pages of its own.
            try:
                task(row["item"])
            except (I2LError, OSError) as error:
                return row | {"error": str(error)}
            return row | {"error": ""}

        if parts:
            dataset = self._ray.data.from_items(list(parts), override_num_blocks=len(parts))
            for row in dataset.map(run_row).iter_rows():
                if row["error"]:
                    raise BuildError(f"On a node of the cluster: {row['error']}")
                yield row["item"]


def _start_worker(scratch: str) -> None:
    """Keep temporary files in the work folder; end at once with Ctrl-C, or when the build itself is killed.

    At once: the same Ctrl-C reaches TeX, and a worker that lived on would call the formula a failure. In the
    background of a script, where Ctrl-C is ignored, it stays so.
    """
    tempfile.tempdir = scratch
    if signal.getsignal(signal.SIGINT) != signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    end_with_parent()


Advance = Callable[[int], None]


class _Rate(ProgressColumn):
    """What is done in a second, such as `512 lines/s`."""

    def render(self, task: Task) -> Text:
        elapsed_s = task.finished_time or task.elapsed
        done = task.completed - task.fields["done"]
        return Text(f"{done / elapsed_s:,.0f} {task.fields['unit']}/s" if done and elapsed_s else "")


class BuildProgress:
    """Shows the stages of a build, or nothing if quiet."""

    def __init__(self, *, quiet: bool) -> None:
        self._progress = Progress(
            TextColumn("{task.description:<10}"),
            BarColumn(),
            MofNCompleteColumn(),
            _Rate(),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            disable=quiet,
        )

    @contextmanager
    def stage(self, name: str, *, total: int, unit: str, done: int = 0) -> Iterator[Advance]:
        """Show a bar; `done` is what an earlier run has left, and does not count in the rate."""
        task = self._progress.add_task(name, total=total, completed=done, unit=unit, done=done)
        yield lambda amount: self._progress.advance(task, amount)

    def __enter__(self) -> "BuildProgress":
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()
