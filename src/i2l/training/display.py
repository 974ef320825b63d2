"""What a person sees while a run lasts: a live bar on a terminal, plain lines in a log."""

from collections.abc import Mapping

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn

UNITS = {
    "loss": "{:.4f}",
    "bleu": "{:.4f}",
    "edit_distance": "{:.4f}",
    "exact_match": "{:.1%}",
    "token_accuracy": "{:.1%}",
    "learning_rate": "{:.2e}",
    "gradient_norm": "{:.2f}",
    "images_per_s": "{:,.0f}",
    "tokens_per_s": "{:,.0f}",
    "model_flop_utilisation": "{:.1%}",
    "memory_gib": "{:.1f}",
}
BRIEF = ("loss", "token_accuracy", "images_per_s")  # what fits beside the bar


class Display:
    """Shows notes, steps and validations on stderr; silent in all processes but the first."""

    def __init__(self, *, quiet: bool) -> None:
        self._console = Console(stderr=True, quiet=quiet, highlight=False, soft_wrap=True)
        self._progress = Progress(
            BarColumn(bar_width=24),
            TaskProgressColumn(),
            TextColumn("{task.description}"),
            console=self._console,
            disable=quiet or not self._console.is_terminal,
            refresh_per_second=4,
        )
        self._task = self._progress.add_task("", total=1.0)

    def start(self) -> None:
        """Show the bar."""
        self._progress.start()

    def stop(self) -> None:
        """Take the bar away; what was printed stays."""
        self._progress.stop()

    def note(self, text: str) -> None:
        """Print a line that stays."""
        self._console.print(text, markup=False)

    def step(
        self,
        *,
        step: int,
        epochs: float,
        done: float,
        time_left_s: float | None,
        scalars: Mapping[str, float],
    ) -> None:
        """Show where the run stands; in a log this is one line."""
        left = "" if time_left_s is None else f"  {format_duration(time_left_s)} left"
        if self._progress.disable:
            self.note(f"step {step:,}  epoch {epochs:.2f}  {format_scalars(scalars)}{left}")
        else:
            brief = format_scalars({name: scalars[name] for name in BRIEF if name in scalars})
            self._progress.update(self._task, completed=done, description=f"step {step:,}  {brief}{left}")


def format_scalars(scalars: Mapping[str, float]) -> str:
    """Write the scalars that have a known unit, in its order, as ``name value`` pairs."""
    return "  ".join(
        f"{name.replace('_per_s', '/s').replace('_', ' ')} {form.format(scalars[name])}"
        for name, form in UNITS.items()
        if name in scalars
    )


def format_duration(seconds: float) -> str:
    """Write seconds as m:ss or h:mm:ss."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
