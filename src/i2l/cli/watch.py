"""`i2l watch`: pictures on the clipboard in, LaTeX on the clipboard."""

from typing import Annotated

import typer


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
