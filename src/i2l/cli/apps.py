"""The commands that keep i2l at hand: `i2l serve`, `i2l snip` and `i2l watch`.

`i2l serve`: the page and the HTTP API.

`i2l snip`: a region of the screen in, LaTeX on the clipboard.

`i2l watch`: pictures on the clipboard in, LaTeX on the clipboard.
"""

import os
from typing import Annotated

import typer

from i2l.cli.read import MODEL_HELP
from i2l.errors import require_extra


def serve(
    host: Annotated[str, typer.Option(help="Where to listen; 0.0.0.0 is everywhere.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes a free one.")] = 8501,
    model: Annotated[str | None, typer.Option(help=MODEL_HELP, metavar="NAME|DIR")] = None,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open the page.")] = True,
    workers: Annotated[int, typer.Option(min=1, help="Processes that read.")] = 1,
    threads: Annotated[
        int | None, typer.Option(min=1, help="Threads a worker; the processors shared out if not given.")
    ] = None,
    max_batch: Annotated[
        int, typer.Option(min=1, help="Images that are read together; 1 is no batching.")
    ] = 32,
    queue: Annotated[int, typer.Option(min=1, help="Images that may wait; more get a 503.")] = 128,
    timeout: Annotated[float, typer.Option(min=0.1, help="Seconds for a request.")] = 30.0,
    max_upload: Annotated[float, typer.Option(min=0.01, help="Megabytes of an image file.")] = 20.0,
    max_pixels: Annotated[float, typer.Option(min=0.01, help="Million pixels of an image.")] = 25.0,
    token: Annotated[
        str | None,
        typer.Option(
            envvar="I2L_TOKEN", help="Ask for this token; better set as I2L_TOKEN.", show_envvar=True
        ),
    ] = None,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(
            help="A name that the server goes by; default: the local ones, or any if --host is not local."
        ),
    ] = None,
    allow_origin: Annotated[
        list[str] | None, typer.Option(help="Another site whose pages may ask (CORS).")
    ] = None,
) -> None:
    """Serve the page and the API: paste a picture of a formula, get LaTeX, see where each symbol was read.

    Examples:

        i2l serve

        I2L_TOKEN=... i2l serve --host 0.0.0.0 --no-browser --workers 4

        curl -F file=@formula.png http://127.0.0.1:8501/api/read
    """
    for module in ("fastapi", "uvicorn", "python_multipart", "prometheus_client"):
        require_extra(module, "serve")
    from i2l.inference.model_folder import find_model
    from i2l.inference.onnx_backend import available_threads
    from i2l.web.app import is_loopback, run_server
    from i2l.web.routes import ServeOptions
    from i2l.web.security import LOOPBACK, require_usable_token

    token = os.environ.get("I2L_TOKEN") if token is None else token  # typer takes an empty one for none
    if token is not None:
        require_usable_token(token)
    local = is_loopback(host)
    if not local and token is None:
        typer.echo(f"Anyone who reaches {host} may ask. Set I2L_TOKEN to change that.", err=True)
    find_model(model)  # what is wrong with the name is said before anything starts
    options = ServeOptions(
        model=model,
        workers=workers,
        threads=threads or max(1, available_threads() // workers),
        max_batch=max_batch,
        queue_size=queue,
        timeout_s=timeout,
        max_upload_bytes=int(max_upload * 1e6),
        max_pixels=int(max_pixels * 1e6),
        token=token,
        hosts=tuple(allow_host or (LOOPBACK if local else ())),
        origins=tuple(allow_origin or ()),
    )
    run_server(options, host=host, port=port, open_browser=browser)


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
    model: Annotated[str | None, typer.Option(help=MODEL_HELP, metavar="NAME|DIR")] = None,
) -> None:
    """Choose a region of the screen, read it, and find its LaTeX on the clipboard.

    Made for a key of your own: docs/desktop.md says how to bind one. Escape ends it.

    Examples:

        i2l snip --resident

        i2l snip --window --delay 3
    """
    from i2l.desktop.resident import check_format
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
    model: Annotated[str | None, typer.Option(help=MODEL_HELP, metavar="NAME|DIR")] = None,
) -> None:
    """Read every picture that lands on the clipboard, print it and copy it, until Ctrl-C.

    What is on the clipboard at the beginning is left alone. A picture that cannot be read stays there.

    Example: `i2l watch`, then take screenshots of formulas with whatever you like.
    """
    from i2l.desktop.clipboard import copy_text
    from i2l.desktop.resident import check_format
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
