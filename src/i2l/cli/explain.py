"""`i2l explain`: an image in, a page or a picture of what the model looked at for each token out."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from i2l.errors import I2LError
from i2l.inference.options import BEAM_WIDTH, ReadingOptions

if TYPE_CHECKING:
    from i2l.explain.explanation import Explanation

FORMATS = (".html", ".gif", ".png", ".svg")


def explain(
    image: Annotated[Path, typer.Argument(help="The image of a formula.")],
    out: Annotated[
        Path,
        typer.Option(
            "--out",
            "-o",
            help="FILE.html: a page to explore. FILE.gif: the scan. FILE.png: a panel for each token. "
            "FILE.svg: all boxes.",
        ),
    ] = Path("explained.html"),
    model: Annotated[
        str | None, typer.Option(help="A bundled model's name, or a folder.", metavar="NAME|DIR")
    ] = None,
    boxes: Annotated[
        bool, typer.Option("--boxes", help="In a PNG: all boxes on the image instead of the panels.")
    ] = False,
    spread: Annotated[
        Literal["nearest", "field", "bilinear", "gaussian"],
        typer.Option(
            help="How a cell's attention is drawn in PNG and GIF: on its own part of the image, on all that "
            "it sees, or fading out."
        ),
    ] = "bilinear",
    share: Annotated[
        float | None,
        typer.Option(
            min=0.05, max=1, help="Of a token's attention that its box holds; as fitted if not given."
        ),
    ] = None,
    beam_width: Annotated[int, typer.Option(min=1, help="Of the search; 1 is greedy.")] = BEAM_WIDTH,
    guard: Annotated[
        bool, typer.Option("--guard/--no-guard", help="Write only well-formed formulas, stop repetition.")
    ] = True,
    scale: Annotated[
        float | None, typer.Option(help="Enlarge the image by this instead of estimating it.")
    ] = None,
) -> None:
    """Read an image and show, token by token, where the model looked.

    Prints the LaTeX, and on stderr the name of the file that it wrote.

    Examples:

        i2l explain formula.png -o formula.html

        i2l explain formula.png -o boxes.svg
    """
    if out.suffix.lower() not in FORMATS:
        raise I2LError(f"Cannot write {out}: its name must end in {', '.join(FORMATS)}.")
    from i2l.explain.explanation import explain_image
    from i2l.files import atomic_write
    from i2l.inference.reader import Reader

    reader = Reader.from_options(ReadingOptions(model=model, beam_width=beam_width, guard=guard))
    explanation = explain_image(reader, image, title=image.name, scale=scale, share=share)
    content = _draw(explanation, out.suffix.lower(), boxes, spread)
    with atomic_write(out, "wb") as file:
        file.write(content)
    typer.echo(explanation.latex)
    typer.echo(f"Written: {out}", err=True)


def _draw(
    explanation: "Explanation",
    kind: str,
    boxes: bool,
    spread: Literal["nearest", "field", "bilinear", "gaussian"],
) -> bytes:
    import io

    from i2l.explain.drawings import boxes_picture, boxes_svg, contact_sheet, explanation_page, scan_gif

    if kind == ".html":
        return explanation_page(explanation).encode()
    if kind == ".svg":
        return boxes_svg(explanation).encode()
    if kind == ".gif":
        return scan_gif(explanation, spread=spread)
    picture = boxes_picture(explanation) if boxes else contact_sheet(explanation, spread=spread)
    buffer = io.BytesIO()
    picture.save(buffer, "png", optimize=True)
    return buffer.getvalue()
