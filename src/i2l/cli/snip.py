"""`i2l snip`: a region of the screen in, LaTeX on the clipboard."""

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
