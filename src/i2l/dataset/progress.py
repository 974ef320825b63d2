"""Progress of a build on stderr: one bar a stage, with its rate and the time left."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

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
