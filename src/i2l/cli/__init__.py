"""The `i2l` command: for readers first, then one subcommand per stage of making a model, in pipeline order.

Each file here parses, calls and prints.
"""

import sys
from collections.abc import Callable
from typing import Any, Final, NoReturn

import typer
from typer.core import TyperCommand

from i2l import __version__
from i2l.cli.apps import serve, snip, watch
from i2l.cli.build import build, extract, render
from i2l.cli.evaluate import evaluate
from i2l.cli.formulas import compose, convert, normalize, parts
from i2l.cli.models import calibrate, export, models, train
from i2l.cli.read import explain, page, read
from i2l.errors import I2LError

PANELS: Final[dict[str, tuple[Callable[..., Any], ...]]] = {
    "Read formulas": (read, explain, serve, page, convert, snip, watch, models),
    "Make and judge models": (
        *(extract, normalize, parts, compose, render, build),
        *(train, evaluate, calibrate, export),
    ),
}
RENAMED: Final = {"--beam": "--beam-width", "--processes": "--jobs"}  # still taken, no longer shown


class _Command(TyperCommand):
    """A subcommand that also takes the names that options had before."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401 - Typer has its own click
        """Parse, with old names replaced by new ones."""
        return super().parse_args(ctx, [_renamed(argument) for argument in args])


def _renamed(argument: str) -> str:
    name, equals, value = argument.partition("=")
    return RENAMED.get(name, name) + equals + value


app = typer.Typer(
    name="i2l",
    help="Read the image of a printed formula, write its LaTeX, and show where each symbol was read.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    rich_markup_mode="markdown",
    pretty_exceptions_show_locals=False,
)
for panel, commands in PANELS.items():
    for command in commands:
        app.command(cls=_Command, rich_help_panel=panel)(command)


def _print_version(value: bool) -> None:
    if value:
        typer.echo(f"i2l {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: bool = typer.Option(False, "--version", callback=_print_version, is_eager=True, help="Show it."),
) -> None:
    pass


def main() -> None:
    """Run the command line; an expected error becomes one line on stderr and exit status 1."""
    try:
        app()
    except I2LError as error:
        _fail(str(error))
    except SystemExit as ended:
        if isinstance(ended.__context__, BrokenPipeError):  # nobody reads on, which Typer ends with 1
            sys.exit(141)
        raise
    except OSError as error:
        if error.filename is None:
            raise
        _fail(f"{error.filename}: {error.strerror}.")


def _fail(reason: str) -> NoReturn:
    from rich.console import Console  # costs as much as all of the rest, and is needed only here
    from rich.text import Text

    message = Text.assemble(("error:", "bold red"), f" {reason}")  # as text: names may hold brackets
    Console(stderr=True, highlight=False).print(message, soft_wrap=True)
    sys.exit(1)
