"""What was read on pages, written down: JSON for programs, Markdown and CSV for people, HTML to look at.

Pages are written one by one, so that a book needs no more memory than its largest page. The HTML shows every
page with its formulas outlined: hovering shows the reading typeset, by the browser's own MathML, and a click
copies its LaTeX. It needs no network and runs one small script of its own.
"""

import csv
import io
import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any, Final, Literal

from markupsafe import Markup

from i2l.errors import I2LError
from i2l.files import atomic_write
from i2l.formats.convert import FormatError, write_formula
from i2l.formulas.lexer import FormulaError
from i2l.html import fill_template, page_file
from i2l.pages.reader import PageFormula, PageReading

PageFormat = Literal["json", "markdown", "html", "csv"]
SUFFIXES: Final[dict[str, str]] = {"json": ".json", "markdown": ".md", "html": ".html", "csv": ".csv"}
CSV_COLUMNS: Final = (
    *("file", "page", "formula", "kind", "number", "left", "top", "right", "bottom"),
    *("score", "confidence", "latex", "error"),
)


def write_pages(
    pages: Iterable[PageReading], into: Path, output: PageFormat, *, name: str, pictures: str | None = None
) -> None:
    """Write the pages of a file; it appears under its name only when it is whole.

    Args:
        pages: in their order.
        into: the file to write.
        output: its format.
        name: of the file that was read.
        pictures: for HTML, the folder of the pages' pictures, as seen from the file.
    """
    with atomic_write(into) as file:
        print_pages(pages, file, output, name=name, pictures=pictures)


def print_pages(
    pages: Iterable[PageReading], file: IO[str], output: PageFormat, *, name: str, pictures: str | None = None
) -> None:
    """Write pages to an open file; arguments as in `write_pages`.

    Raises:
        I2LError: if there is no such format, or HTML has no pictures.
    """
    if output == "html" and pictures is None:
        raise I2LError("HTML shows the pages, which are files beside it; say where with -o.")
    if output == "html":
        parts = _html_parts(pages, name, pictures or "")
    elif output == "json":
        parts = _json_parts(pages, name)
    elif output == "markdown":
        parts = _markdown_parts(pages, name)
    elif output == "csv":
        parts = _csv_parts(pages)
    else:
        raise I2LError(f"There is no format {output!r}; choose one of {', '.join(SUFFIXES)}.")
    for part in parts:
        file.write(part)


def _json_parts(pages: Iterable[PageReading], name: str) -> Iterator[str]:
    yield f'{{"file": {json.dumps(name)}, "pages": ['
    for index, page in enumerate(pages):
        yield (",\n" if index else "\n") + json.dumps(page.to_dict(), ensure_ascii=False)
    yield "\n]}\n"


def _markdown_parts(pages: Iterable[PageReading], name: str) -> Iterator[str]:
    yield f"# Formulas of {_plain(name)}\n"
    for page in pages:
        yield f"\n## Page {page.page}\n"
        if page.error:
            yield f"\n{_plain(page.error)}\n"
        inline: list[str] = []
        for formula in page.formulas:
            if formula.kind == "inline":
                inline.append(_in_dollars(formula))
                continue
            if inline:
                yield f"\n{', '.join(inline)}\n"
                inline = []
            tag = f" \\tag*{{{formula.number}}}" if formula.number else ""
            yield f"\n$$\n{formula.latex}{tag}\n$$\n" if formula.latex else f"\n*{_unread(formula)}*\n"
        if inline:
            yield f"\n{', '.join(inline)}\n"


def _in_dollars(formula: PageFormula) -> str:
    return f"${formula.latex}$" if formula.latex else f"*{_unread(formula)}*"


def _unread(formula: PageFormula) -> str:
    left, top, right, bottom = formula.box
    where = f"{left:g}, {top:g} to {right:g}, {bottom:g}"
    return f"a formula that could not be read, from {where}"


def _plain(text: str) -> str:
    return (
        text.replace("\\", "\\\\")
        .replace("*", "\\*")
        .replace("_", "\\_")
        .replace("<", "&lt;")
        .replace("\n", " ")
    )


def _csv_parts(pages: Iterable[PageReading]) -> Iterator[str]:
    yield _csv_line(CSV_COLUMNS)
    for page in pages:
        if page.error:
            yield _csv_line([page.file, page.page, *[""] * (len(CSV_COLUMNS) - 3), page.error])
        for index, formula in enumerate(page.formulas, 1):
            yield _csv_line(
                [
                    *(page.file, page.page, index, formula.kind, formula.number or "", *formula.box),
                    *(formula.score, formula.confidence, formula.latex, formula.error or ""),
                ]
            )


def _csv_line(values: Iterable[Any]) -> str:
    held = io.StringIO()
    csv.writer(held).writerow([_harmless(value) for value in values])
    return held.getvalue()


def _harmless(value: Any) -> Any:  # noqa: ANN401 - a cell of any type
    """Keep a spreadsheet from taking LaTeX such as `=1+1` for a sum of its own."""
    return f"'{value}" if isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t", "\r") else value


def _html_parts(pages: Iterable[PageReading], name: str, pictures: str) -> Iterator[str]:
    yield fill_template("i2l.pages", "head.html", name=name, style=page_file("i2l.pages", "pages.css"))
    for page in pages:
        shown = [_shown(formula, page) for formula in page.formulas]
        yield fill_template("i2l.pages", "page.html", page=page, formulas=shown, pictures=pictures)
    yield fill_template("i2l.pages", "foot.html", script=page_file("i2l.pages", "pages.js"))


def _shown(formula: PageFormula, page: PageReading) -> dict[str, Any]:
    """Give what the template needs of a formula: its place in shares of the page, and its reading typeset."""
    left, top, right, bottom = formula.box
    width, height = max(page.width, 1), max(page.height, 1)
    return {
        "formula": formula,
        "left": 100 * left / width,
        "top": 100 * top / height,
        "width": 100 * (right - left) / width,
        "height": 100 * (bottom - top) / height,
        "mathml": _typeset(formula.latex),
    }


def _typeset(latex: str) -> Markup | None:
    """Write a formula in MathML, which our own writer has escaped; None if it cannot be said in it."""
    if not latex:
        return None
    try:
        return Markup(write_formula(latex, "mathml"))
    except (FormatError, FormulaError, RecursionError):
        return None


def output_path(out: Path, folder: Path, output: PageFormat) -> Path:
    """Return where the file of a document goes: beside the folder of its pages."""
    return out / (folder.name.removesuffix(".pages") + SUFFIXES[output])


def pictures_from(into: Path, folder: Path) -> str:
    """Return the folder of pictures as a page sees it that is written into a file."""
    from urllib.parse import quote

    return quote(Path(os.path.relpath(folder, into.parent)).as_posix())
