"""`i2l render`: formulas in, pictures out."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

if TYPE_CHECKING:
    from PIL.Image import Image

    from i2l.rendering.render import RenderResult
    from i2l.rendering.styles import Style


def render(
    formulas: Annotated[
        list[str] | None, typer.Argument(help="LaTeX, as it would stand in a display.")
    ] = None,
    out: Annotated[
        Path, typer.Option("--out", "-o", help="The PNG file; for several formulas a folder.")
    ] = Path("formula.png"),
    file: Annotated[
        Path | None, typer.Option("--formulas", help="A file with one formula a line, plain, .xz or .gz.")
    ] = None,
    style: Annotated[
        Literal["paper", "world", "photo"],
        typer.Option(
            help="`paper`: 12 pt, 200 dpi, cropped; `world`: fonts, sizes and damage by seed; `photo`: "
            "photographed, by seed."
        ),
    ] = "paper",
    seed: Annotated[
        int, typer.Option(help="Of the first formula's `world` or `photo` style; the next has the next.")
    ] = 0,
    dpi: Annotated[int | None, typer.Option(min=20, max=2400, help="Instead of the style's own.")] = None,
    boxes: Annotated[
        bool, typer.Option("--boxes", help="Enlarge the picture and outline every token on it.")
    ] = False,
    jobs: Annotated[int, typer.Option(min=1, help="Processes.")] = 1,
) -> None:
    r"""Draw formulas with TeX.

    Example: `i2l render 'x^2 + \frac{a}{b}' -o x.png`; with `--boxes` to see where each token is.
    """
    from i2l.errors import I2LError
    from i2l.files import atomic_write
    from i2l.formulas.lexer import decode_line, read_lines
    from i2l.rendering.render import render_formulas

    formulas = list(formulas or []) + ([decode_line(line) for line in read_lines(file)] if file else [])
    if not formulas:
        raise I2LError("Nothing to draw: give a formula, or a file of them with --formulas.")
    single = len(formulas) == 1 and file is None
    if single and out.suffix.lower() != ".png":
        raise I2LError(f"Cannot write {out}: its name must end in .png.")
    styles = [_style(style, seed + number, dpi) for number in range(len(formulas))]
    results = render_formulas(formulas, style=styles, boxes=boxes, jobs=jobs)
    num_failed = 0
    for number, result in enumerate(results, start=1):
        where = "" if single else f"formula {number}: "
        if result.pixels is None:
            num_failed += 1
            typer.echo(f"error: {where}{result.reason}: {result.message}", err=True)
            continue
        if boxes and result.boxes is None:
            typer.echo(f"warning: {where}the ink could not be told apart by token: no boxes", err=True)
        with atomic_write(out if single else out / f"{number:06d}.png", "wb") as target:
            _picture(result, boxes).save(target, format="png")
    if num_failed < len(results):
        typer.echo(f"Written: {out}", err=True)
    if num_failed:
        raise typer.Exit(1)


def _style(name: str, seed: int, dpi: int | None) -> "Style":
    from dataclasses import replace

    from i2l.rendering.styles import PAPER, photo_style, world_style

    style = PAPER if name == "paper" else photo_style(seed) if name == "photo" else world_style(seed)
    return style if dpi is None else replace(style, dpi=dpi)


def _picture(result: "RenderResult", boxes: bool) -> "Image":
    from PIL.Image import fromarray

    from i2l.rendering.render import draw_boxes

    assert result.pixels is not None
    return draw_boxes(result.pixels, result.boxes or []) if boxes else fromarray(result.pixels)
