"""The commands of the desktop: `i2l snip` and `i2l watch`.

`i2l snip`: a region of the screen in, LaTeX on the clipboard.

`i2l watch`: pictures on the clipboard in, LaTeX on the clipboard.
"""

from typing import Annotated

import typer


def snip(
    output: Annotated[
        str, typer.Option("--format", help="What to copy: any format of `i2l read`.")
    ] = "latex",
    window: Annotated[
        bool,
        typer.Option("--window", help="Show the reading in a window, with buttons for the other formats."),
    ] = False,
    delay: Annotated[
        float, typer.Option(min=0, help="Seconds to wait before choosing, as to open a menu.")
    ] = 0,
    region: Annotated[
        str | None, typer.Option(help="Read this part of the screen, in pixels.", metavar="X,Y,WIDTH,HEIGHT")
    ] = None,
    resident: Annotated[
        bool,
        typer.Option(
            "--resident", help="Leave a process with the model behind for 15 minutes: the next one is quick."
        ),
    ] = False,
    to_stdout: Annotated[
        bool, typer.Option("--print", help="Print the reading; do not copy it, show no notification.")
    ] = False,
    model: Annotated[
        str | None, typer.Option(help="A bundled model's name, or a folder.", metavar="NAME|DIR")
    ] = None,
) -> None:
    """Choose a region of the screen, read it, and find its LaTeX on the clipboard.

    Made for a key of your own: docs/desktop.md says how to bind one. Escape ends it.

    Examples:

        i2l snip --resident

        i2l snip --window --delay 3
    """
    from i2l.desktop.answer import check_format
    from i2l.desktop.screen import Region
    from i2l.desktop.snip import SnipOptions
    from i2l.desktop.snip import snip as snip_region

    options = SnipOptions(
        output=check_format(output),
        model=model,
        region=None if region is None else Region.parse(region),
        delay_s=delay,
        resident=resident,
        window=window,
        copy=not to_stdout,
    )
    text = snip_region(options, warn=lambda message: typer.echo(message, err=True))
    if to_stdout:
        typer.echo(text)


def watch(
    output: Annotated[
        str, typer.Option("--format", help="What to print and copy: any format of `i2l read`.")
    ] = "latex",
    copy: Annotated[
        bool,
        typer.Option("--copy/--no-copy", help="Put each reading on the clipboard, in the picture's place."),
    ] = True,
    model: Annotated[
        str | None, typer.Option(help="A bundled model's name, or a folder.", metavar="NAME|DIR")
    ] = None,
) -> None:
    """Read every picture that lands on the clipboard, print it and copy it, until Ctrl-C.

    What is on the clipboard at the beginning is left alone. A picture that cannot be read stays there.

    Example: `i2l watch`, then take screenshots of formulas with whatever you like.
    """
    from i2l.desktop.answer import check_format
    from i2l.desktop.clipboard import copy_text
    from i2l.desktop.snip import watch_clipboard
    from i2l.errors import I2LError

    check_format(output)

    def ready() -> None:
        typer.echo("Waiting for pictures on the clipboard; Ctrl-C ends it.", err=True)

    try:
        for answer in watch_clipboard(model=model, ready=ready):
            try:
                if isinstance(answer, I2LError):
                    raise answer
                text = answer.text(output)
                typer.echo(text)
                if answer.doubt:
                    typer.echo(answer.doubt, err=True)
                if copy:
                    copy_text(text)
            except I2LError as error:
                typer.echo(str(error), err=True)
    except KeyboardInterrupt:
        pass
