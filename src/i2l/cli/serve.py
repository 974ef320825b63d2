"""`i2l serve`: the page and the HTTP API."""

import os
from typing import Annotated

import typer

from i2l.errors import require_extra


def serve(
    host: Annotated[str, typer.Option(help="Where to listen; 0.0.0.0 is everywhere.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes a free one.")] = 8501,
    model: Annotated[
        str | None, typer.Option(help="A bundled model's name, or a folder.", metavar="NAME|DIR")
    ] = None,
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
    from i2l.web.security import LOOPBACK, require_usable_token
    from i2l.web.server_state import ServeOptions

    token = os.environ.get("I2L_TOKEN") if token is None else token  # typer takes an empty one for none
    if token is not None:
        require_usable_token(token)
    local = is_loopback(host)
    if not local and token is None:
        typer.echo(f"Anyone who reaches {host} may ask. Set I2L_TOKEN to change that.", err=True)
    options = ServeOptions(
        model=str(find_model(model)),
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
