"""`python -m benchmarks.formats FORMULAS`: how many formulas each format says, and says back.

Each formula is written in every format, given to that format's own program, and what the program made of it
is compared with what the formula shows (`benchmarks.format_readers`). MathML is parsed by Chromium, Typst by
the compiler of `pip install typst`, AsciiMath by MathJax (`npm install mathjax-full@3`, the folder by
--mathjax), Office Math by Python's XML reader, plain text by a reader of ours, and a Word document by
LibreOffice, which gives its own MathML back, where it is installed (`apt install libreoffice-writer-nogui
libreoffice-math-nogui`). Pictures are drawn, and the Typst that they are drawn of is compared as Typst is.
What a format refuses is counted by name.
"""

import argparse
import json
import random
import re
import shutil
import subprocess
import tempfile
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from benchmarks import format_readers as readers
from i2l.formats.convert import Formula, TextFormat, formula_docx, write_formula
from i2l.formats.layout import FormatError, Row
from i2l.formats.translate import read_layout
from i2l.formats.typst import to_typst
from i2l.formulas.lexer import FormulaError, decode_line, read_lines

Form = list[Any]
Reader = Callable[[list[str]], Iterator[Form | str]]  # a form, or what the program said was wrong

_MATHJAX = r"""
const js = process.argv.at(-1) + '/mathjax-full/js/';
const {mathjax} = require(js + 'mathjax.js');
const {AsciiMath} = require(js + 'input/asciimath.js');
const {SerializedMmlVisitor} = require(js + 'core/MmlTree/SerializedMmlVisitor.js');
const {liteAdaptor} = require(js + 'adaptors/liteAdaptor.js');
const {RegisterHTMLHandler} = require(js + 'handlers/html.js');
RegisterHTMLHandler(liteAdaptor());
const page = mathjax.document('', {InputJax: new AsciiMath({})});
const visitor = new SerializedMmlVisitor();
for (const line of JSON.parse(require('fs').readFileSync(0, 'utf8'))) {
  try {
    console.log(visitor.visitTree(page.convert(line, {end: 20})).replace(/\n\s*/g, ''));
  } catch (error) {
    console.log(String(error));
  }
}
"""
_CHROMIUM = """(texts) => texts.map((text) => {
  const box = document.createElement("div");
  document.body.append(box);
  box.innerHTML = text;
  const math = box.firstElementChild;
  const {width, height} = math.getBoundingClientRect();
  const result = [new XMLSerializer().serializeToString(math), width, height, box.children.length];
  box.remove();
  return result;
})"""


def read_mathml(texts: list[str], browser: Any = None) -> Iterator[Form | str]:  # noqa: ANN401 - Playwright's
    """Let Chromium parse and draw MathML, and read its document back."""
    from playwright.sync_api import sync_playwright

    if browser is None:
        with sync_playwright() as driver:
            path = shutil.which("chromium") or shutil.which("chromium-browser")
            opened = driver.chromium.launch(executable_path=path, args=["--no-sandbox"])
            yield from read_mathml(texts, opened)
            opened.close()
        return
    page = browser.new_page()
    for written, width, height, count in page.evaluate(_CHROMIUM, texts):
        if count != 1 or not width or not height:
            yield "nothing drawn"
        else:
            yield readers.form_of_mathml(ElementTree.fromstring(written), fonts=True)
    page.close()


def read_omml(texts: list[str]) -> Iterator[Form | str]:
    """Read Office Math as XML."""
    for text in texts:
        yield readers.form_of_omml(ElementTree.fromstring(text), fonts=True)


def read_typst(texts: list[str]) -> Iterator[Form | str]:
    """Let Typst compile each formula, and read the tree that its parser made."""
    import typst

    fonts = typst.Fonts(include_system_fonts=False)
    for text in texts:
        source = f"#set page(width: auto, height: auto)\n$ {text} $".encode()
        try:
            typst.compile(source, format="svg", font_paths=fonts)
            (tree, *_) = json.loads(typst.query(source, "math.equation", font_paths=fonts))
        except Exception as error:
            yield str(error)
            continue
        yield readers.form_of_typst(tree["body"])


def read_asciimath(texts: list[str], folder: Path) -> Iterator[Form | str]:
    """Let MathJax read AsciiMath."""
    script = subprocess.run(
        ["node", "-e", _MATHJAX, str(folder.resolve())],
        input=json.dumps(texts),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    for line in script.stdout.splitlines():
        yield readers.form_of_mathml(ElementTree.fromstring(line)) if line.startswith("<") else line


def read_plain(texts: list[str]) -> Iterator[Form | str]:
    """Read plain text."""
    for text in texts:
        yield readers.without_limits(readers.form_of_plain(text))


def open_in_libreoffice(content: bytes) -> list[ElementTree.Element]:
    """Let LibreOffice open a Word document, and return the MathML of each formula that it found, in order.

    LibreOffice rewrites Office Math in its own language of formulas, StarMath, in which some things cannot be
    said (a bar that is not a fence, the words `and` and `or`, a bracket without its partner): what it shows
    may be less than what Word shows.
    """
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "formulas.docx")
        source.write_bytes(content)
        command = ["soffice", f"-env:UserInstallation=file://{folder}/profile", "--headless"]
        command += ["--convert-to", "odt", "--outdir", folder, str(source)]
        subprocess.run(command, check=True, capture_output=True, timeout=300)
        with zipfile.ZipFile(source.with_suffix(".odt")) as archive:
            names = re.findall(r'xlink:href="\./(Object \d+)"', archive.read("content.xml").decode())
            return [ElementTree.fromstring(archive.read(f"{name}/content.xml")) for name in names]


def judge_docx(formulas: list[str]) -> dict[str, Any]:
    """Write all formulas into one Word document, and count those that LibreOffice shows alike."""
    refused: Counter[str] = Counter()
    said = []
    for formula in formulas:
        try:
            formula_docx(formula)
            said.append(formula)
        except (FormatError, FormulaError) as error:
            refused[getattr(error, "construct", str(error))] += 1
    found = open_in_libreoffice(formula_docx(*said))
    same = 0
    for formula, element in zip(said, found, strict=True):
        (shown, *_notes) = element[0]  # what StarMath says stands beside it
        try:
            same += readers.form_of_mathml(shown) == readers.form_of_layout(read_layout(formula))
        except ValueError:  # an element that we never write
            continue
    return {"said": len(said), "same": same, "refused": refused, "wrong": []}


def _as_drawn(formula: str) -> str:
    """Write the Typst of which pictures are made, after drawing both kinds."""
    for output in ("svg", "png"):
        assert Formula(formula).write(output)
    return to_typst(read_layout(formula), drawn=True)


def expected(layout: Row, output: TextFormat) -> Form:
    """Give the form that a format should give back."""
    form = readers.form_of_layout(layout, fonts=output in ("mathml", "omml"))
    if output == "unicode":
        return list(readers.without_limits(form))
    return list(readers.as_asciimath_shows(form)) if output == "asciimath" else form


def judge(
    formulas: list[str], output: TextFormat, reader: Reader, *, write: Callable[[str], str] | None = None
) -> dict[str, Any]:
    """Write every formula in a format, or by another function for it, and count what comes back."""
    write = write or (lambda formula: write_formula(formula, output))
    refused: Counter[str] = Counter()
    said: list[tuple[str, Row, str]] = []
    for formula in formulas:
        try:
            said.append((formula, read_layout(formula), write(formula)))
        except FormatError as error:
            refused[error.construct] += 1
        except FormulaError as error:
            refused[error.reason] += 1
    wrong = []
    for (formula, layout, text), found in zip(said, reader([text for _, _, text in said]), strict=True):
        wanted = expected(layout, output)
        if found != wanted:
            wrong.append({"formula": formula, "written": text, "wanted": wanted, "found": found})
    return {"said": len(said), "same": len(said) - len(wrong), "refused": refused, "wrong": wrong}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("formulas", type=Path, help="One formula a line.")
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--mathjax", type=Path, help="The node_modules with mathjax-full.")
    parser.add_argument("--only", help="One format.")
    parser.add_argument("--show", type=int, default=0, help="Print so many that came back wrong.")
    options = parser.parse_args()
    lines = [decode_line(line) for line in read_lines(options.formulas)]
    formulas = random.Random(0).sample(lines, min(options.count, len(lines)))
    judges: dict[str, Callable[[], dict[str, Any]]] = {
        "mathml": lambda: judge(formulas, "mathml", read_mathml),
        "omml": lambda: judge(formulas, "omml", read_omml),
        "typst": lambda: judge(formulas, "typst", read_typst),
        "svg, png": lambda: judge(formulas, "typst", read_typst, write=_as_drawn),
        "unicode": lambda: judge(formulas, "unicode", read_plain),
    }
    if options.mathjax:
        judges["asciimath"] = lambda: judge(
            formulas, "asciimath", lambda texts: read_asciimath(texts, options.mathjax)
        )
    if shutil.which("soffice"):
        judges["docx"] = lambda: judge_docx(formulas)
    else:
        print("docx: LibreOffice is not installed, so nobody opens the document.")
    print(f"{'format':12}{'said':>8}{'same':>8}{'refused':>9}{'wrong':>7}")
    for name, judged in judges.items():
        if options.only not in (None, name):
            continue
        result = judged()
        wrong, refused = result["wrong"], result["refused"]
        print(
            f"{name:12}{result['said']:8}{result['same']:8}{refused.total():9}{len(wrong):7}", dict(refused)
        )
        for one in wrong[: options.show]:
            _show(one)


def _show(one: dict[str, Any]) -> None:
    wanted, found = one["wanted"], one["found"]
    place = next((at for at, pair in enumerate(zip(wanted, found, strict=False)) if pair[0] != pair[1]), 0)
    print(f"  {one['formula']}\n    {one['written']}")
    print(f"    wanted: {wanted[place : place + 3]}\n    found:  {found[place : place + 3]}")


if __name__ == "__main__":
    main()
