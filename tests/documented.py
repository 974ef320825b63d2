"""The commands of README.md and docs/, and a small world in which they can be run as they stand there."""

import json
import lzma
import random
import re
import shutil
import subprocess
import sys
import tarfile
from dataclasses import dataclass
from pathlib import Path

from PIL import Image

from i2l.formulas.vocabulary import Vocabulary
from i2l.ink.strokes import write_inkml
from tests.ink.written import row_of, small_inks

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
BIN = Path(sys.executable).parent

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.DOTALL | re.MULTILINE)
_INDENTED = re.compile(r"(?<=\n\n)((?: {4}\S.*\n| {8,}\S.*\n)+)")
_COMMAND = re.compile(
    r"(?:[A-Z0-9_]+=\S+ )?(?:i2l|make|pip|sh|python|torchrun|cat|curl|docker|echo|xclip|npm|pipx)\b"
)

# Commands that are not run here, by how they begin, and why.
NOT_RUN = {
    "make": "`make demo` and `make test` are what a bare machine is tried with; this is a part of the second",
    "pip install": "`make demo` and `make test` install by the same lines, with constraints.txt",
    "sh recipes/smoke.sh": "the same steps, of minutes; what they are made of runs here",
    "docker": "needs Docker",
    "torchrun": "eight GPUs; tests/training has two processes",
    "i2l snip": "needs a screen and a person; tests/desktop has both",
    "i2l watch": "the same",
    "pipx": "installs from an index",
    "xclip": "needs a screen; `--copy` has its own tests",
    "i2l build --formulas lists/*.txt.xz": "a cluster; tests/dataset has a local one",
    "python -m benchmarks": "measures on data that is not ours to give; `make bench` runs what needs none",
    "npm": "fetches from a registry",
    "python -m http.server": "serves until it is ended; tests/web/test_site.py does so",
    "i2l page": "needs papers and scans; tests/pages makes its own",
    "python -m i2l.pages.train": "an hour on prose that is not ours to give; tests/pages trains for seconds",
    "i2l build --formulas train.txt --val val.txt --test test.txt": "the world is made with it",
    "i2l train --data data/90k --preset nopool --out runs/nopool": "the world is made with it",
    "i2l export runs/nopool": "the world is made with it",
    "i2l build --formulas LISTS... --val VAL --test TEST --recipe world": "as many fonts as formulas: minutes"
    " of TeX; SHORT is drawn so, of few",
    "i2l build --formulas composed2.txt": "the same, of displays",
    "i2l build --formulas mixed.txt": "the same, as photographs",
    "i2l train --data PAPER --data WORLD --data SHORT": "the run after it goes on from the first here",
    "i2l evaluate --model pinpoint --data DATA --split test --beam-width": "the one with --sweep does it too",
    "i2l evaluate --model pinpoint --data BOXES": "as in docs/explaining.md",
    "i2l export LOWERED": "takes 15 s, like that of runs/nopool; tests/inference exports a pinpoint",
    "i2l calibrate pinpoint": "as in docs/reading.md, and it needs the export",
    "i2l calibrate MODEL": "the same as at the top of docs/reading.md",
    "i2l train --data data/hand": "goes on from the model in the box, which is too large to train here",
    "i2l export runs/hand": "needs that run",
    "i2l calibrate models/hand": "the same",
    "i2l read formula.inkml --model hand": "needs it installed; test_models.py installs a small one",
    "i2l evaluate --model nopool": "needs it installed; as in docs/evaluating.md with a model of its own",
    "i2l evaluate --compare FLOAT16": "as in docs/evaluating.md, and it needs that evaluation",
}
_SMALL = (
    "--device cpu --max-steps 1 --set training.precision=float32 --set training.engine=plain"
    " --set training.batch_size=4 --set training.length_classes=[16,40,150]"
    " --set training.min_shape_batches=1 --set training.validation_samples=2"
)
_SMALL_CALSTM = (
    " --set model.height_px=128 --set model.width_px=320 --set model.channels=[4,4,4,4,4]"
    " --set model.attention_units=[8,8] --set model.embedding_units=8 --set model.lstm_units=8"
    " --set model.init_units=8 --set model.output_units=8"
)
_SMALL_TRANSFORMER = (
    " --set model.height_px=128 --set model.width_px=640 --set model.channels=[4,4,4,8]"
    " --set model.depths=[0,1,1,1] --set model.decoder_units=48"
    " --set model.decoder_layers=1"
)
# What stands on the pages, and what stands here instead.
_HERE = {
    "LISTS...": "a.txt b.txt.xz",
    "BOOKS...": "book",
    "I2L_TOKEN=...": "I2L_TOKEN=secret",
    " ... ": " ",
    "--max-tokens 8": "--max-tokens 2",
    "--min-token-count 20": "--min-token-count 1",
    "--count 60000": "--count 6",
    "--count 110000": "--count 6",
    "--sweep-samples 200": "--sweep-samples 2",
    "scale=0.5,0.7,1,1.4,2": "scale=0.5",
    "font=computer-modern,times,palatino,stix2,libertinus,euler": "font=euler",
}


@dataclass(frozen=True)
class Command:
    """One command, and what the page says it prints, if it says so."""

    page: Path
    line: int
    text: str
    printed: str | None = None

    @property
    def why_not(self) -> str | None:
        """Why it is not run here."""
        return next((why for start, why in NOT_RUN.items() if self.text.startswith(start)), None)

    @property
    def small(self) -> str:
        """The command as it is run here: with names for what the page leaves open, and small."""
        text = re.sub(r"\s+#.*", "", self.text)
        for documented, here in _HERE.items():
            text = text.replace(documented, here)
        if " train " in text:
            text += " " + _SMALL + (_SMALL_TRANSFORMER if "pinpoint" in text else _SMALL_CALSTM)
            text += "" if "--data" in text else " --data DATA"
            text += "" if "--out" in text else " --out RUN"
        if " build " in text:
            text += "" if " --min-token-count " in text else " --min-token-count 1"
            text += "" if " --val " in text or " --from " in text else " --val-fraction 0.3"
        if " evaluate " in text and " --data " in text:
            text = re.sub(r" --limit \d+", "", text) + " --limit 4"
        if " calibrate " in text:  # which needs 50 readings, of all kinds together
            text = re.sub(r" --limit \d+", "", text) + " --limit 26"
        if re.search(r"\bi2l (build|extract|evaluate|calibrate)\b", text):
            text += " --jobs 1"  # starting others takes longer than the work
        return text


def commands_of(page: Path) -> list[Command]:
    """Find the commands of a page: in blocks without a language, fenced or indented."""
    text = page.read_text(encoding="utf-8")
    blocks = [(match.start(2), match[2]) for match in _FENCE.finditer(text) if not match[1]]
    plain = _FENCE.sub(lambda match: "\n" * match[0].count("\n"), text)
    blocks += [
        (text.find(match[1]), re.sub("^ {4}", "", match[1], flags=re.M))
        for match in _INDENTED.finditer(plain)
    ]
    found = []
    for start, block in blocks:
        first_line = text.count("\n", 0, start) + 1
        lines = block.splitlines()
        if not _COMMAND.match(lines[0].removeprefix("$ ")):
            continue
        found += _commands_of_block(page, first_line, lines)
    return found


def _commands_of_block(page: Path, first_line: int, lines: list[str]) -> list[Command]:
    found: list[Command] = []
    printed: dict[int, list[str]] = {}
    transcript = lines[0].startswith("$ ")
    number = 0
    while number < len(lines):
        at, line = number, lines[number].removeprefix("$ ")
        while line.endswith("\\"):
            number += 1
            line = line[:-1] + lines[number].strip()
        if transcript and not lines[at].startswith("$ "):
            printed.setdefault(len(found) - 1, []).append(line)
        else:
            found.append(Command(page, first_line + at, line))
        number += 1
    return [
        Command(one.page, one.line, one.text, "\n".join(printed[place]) if place in printed else None)
        for place, one in enumerate(found)
    ]


def python_of(page: Path) -> list[str]:
    """Find the Python of a page."""
    return [match[2] for match in _FENCE.finditer(page.read_text(encoding="utf-8")) if match[1] == "python"]


def environment(folder: Path) -> dict[str, str]:
    """The variables of a command: our own `i2l` first, nothing of the person who runs the tests."""
    return {
        "PATH": f"{BIN}:/usr/bin:/bin",
        "HOME": str(folder),
        "PYTHONPATH": str(ROOT / "src"),
        "LANG": "C.UTF-8",
        "OMP_NUM_THREADS": "1",  # more would wait for each other
    }


def run(command: str, folder: Path, *, timeout_s: float = 900) -> str:
    """Run a line of shell; give what it printed.

    Raises:
        AssertionError: if it failed, with what it said.
    """
    result = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
        env=environment(folder),
    )
    assert result.returncode == 0, f"{command}\n{result.stdout[-2000:]}\n{result.stderr[-4000:]}"
    return result.stdout


def clear_target(command: str, folder: Path) -> None:
    """Take away what a command will make, if it is there from before."""
    for name in re.findall(r"(?:--out|-o) (\S+)", command):
        target = folder / name
        if target.is_dir() and not target.is_symlink():
            shutil.rmtree(target)
        else:
            target.unlink(missing_ok=True)


def make_world(folder: Path) -> None:
    """Put there what the pages speak of: images, lists, a dataset, a run, a model, small ones."""
    for name in ("examples", "recipes", "src"):
        (folder / name).symlink_to(ROOT / name)
    image = ROOT / "examples" / "1-paper.png"
    for name in ("formula.png", "one.png", "two.png", "scans/a.png", "scans/b.png"):
        (folder / name).parent.mkdir(exist_ok=True)
        shutil.copy(image, folder / name)
    page = Image.new("L", (1000, 700), 255)  # with a formula where docs/reading.md looks for one
    page.paste(Image.open(image).convert("L"), (150, 305))
    page.save(folder / "page.png")
    page.save(folder / "paper.pdf", save_all=True, append_images=[page, page])
    formulas = [f"{a} {sign} {b} = {c}" for a in "abcxyz" for b in "abc" for sign in "+-" for c in "abxyz2"]
    random.Random(0).shuffle(formulas)
    _write_lists(folder, formulas)
    _write_sources(folder, formulas[100:112])
    _write_inks(folder, formulas[112:120])
    run(
        "i2l build --formulas train.txt --val val.txt --test test.txt --out data/90k --min-token-count 1 -q",
        folder,
    )
    run(f"i2l train --data data/90k --preset nopool --out runs/nopool {_SMALL}{_SMALL_CALSTM}", folder)
    run("i2l export runs/nopool -o models/nopool --precision int8", folder)
    _name_what_pages_leave_open(folder)


def _write_lists(folder: Path, formulas: list[str]) -> None:
    """Lists of formulas, and im2latex-100k as it was published."""
    lists = {
        "train": formulas[:24],
        "val": formulas[24:56],
        "test": formulas[56:62],
        "a": formulas[62:74],
        "arrays": [f"\\begin{{array}} {{ c c }} {a} & {b} \\end{{array}}" for a in "abc" for b in "xyz"],
    }
    for name, lines in lists.items():
        (folder / f"{name}.txt").write_text("\n".join(lines) + "\n")
    (folder / "b.txt.xz").write_bytes(lzma.compress("\n".join(formulas[74:86]).encode()))
    published = folder / "downloads" / "im2latex"
    published.mkdir(parents=True)
    (published / "im2latex_formulas.lst").write_text("\n".join(formulas[:20]))
    for name, numbers in (("train", range(12)), ("validate", range(12, 16)), ("test", range(16, 20))):
        (published / f"im2latex_{name}.lst").write_text("".join(f"{number} x basic\n" for number in numbers))


def _write_sources(folder: Path, formulas: list[str]) -> None:
    """A book and a paper in TeX."""
    displays = [f"\\begin{{equation}}\n{formula}\n\\end{{equation}}\n" for formula in formulas]
    document = "\\documentclass{{article}}\n\\begin{{document}}\n{}\\end{{document}}\n"
    (folder / "book").mkdir()
    (folder / "book" / "main.tex").write_text(document.format("\\input{chapter}\n"))
    (folder / "book" / "chapter.tex").write_text("".join(displays[:-2]))
    paper = folder / "paper.tex"
    paper.write_text(document.format("".join(displays[-2:]) + "where $x = a + b + c$.\n"))
    with tarfile.open(folder / "paper.tar.gz", "w:gz") as archive:
        archive.add(paper, paper.name)
    paper.unlink()


def _write_inks(folder: Path, formulas: list[str]) -> None:
    """Handwriting under the names of CROHME's files, and one formula as InkML and as JSON."""
    ink = row_of(["x", "+", "y"], latex="x+y", name="one")
    write_inkml(ink, folder / "formula.inkml")
    (folder / "strokes.json").write_text(json.dumps(ink.to_dict()))
    other = row_of(["a", "=", "b"], latex="a=b", name="two")  # not what the training inks show
    for name, inks in (("train", small_inks(3)), ("test2013", [other]), ("test2014", [other])):
        lines = "".join(json.dumps(one.to_dict()) + "\n" for one in inks)
        (folder / f"crohme_{name}.jsonl.xz").write_bytes(lzma.compress(lines.encode()))
    (folder / "labels.txt").write_text("\n".join(formulas))
    (folder / "formulas.txt.xz").write_bytes(lzma.compress("\n".join(formulas).encode()))
    (folder / "models").mkdir()
    (folder / "models" / "hand").symlink_to(ROOT / "src" / "i2l" / "models" / "pinpoint")


def _name_what_pages_leave_open(folder: Path) -> None:
    """DATA, VAL and the like, and the images of `--images`."""
    photos = folder / "photos"
    run("i2l render --formulas test.txt -o photos", folder)
    names = sorted(path.name for path in photos.glob("*.png"))
    formulas = (folder / "test.txt").read_text().splitlines()
    for name in ("labels.tsv", "LABELS", "pix2tex.tsv"):
        (folder / name).write_text("".join(f"{n}\t{f}\n" for n, f in zip(names, formulas, strict=True)))
    shutil.copytree(photos, folder / "IMAGES")
    for name in names[:2]:
        with Image.open(photos / name) as picture:
            picture.save(folder / Path(name).with_suffix(".jpg"))
    for name in ("DATA", "BOXES", "WORLD", "WORLD_DISPLAYS", "PHOTO"):
        (folder / name).symlink_to("data/90k")
    for name in ("mine", "photo"):
        (folder / "data" / name).symlink_to("90k")
    (folder / "SECOND").symlink_to("FIRST")
    (folder / "VAL").symlink_to("val.txt")
    for name in ("TEST", "test.beam10.txt"):
        (folder / name).symlink_to("test.txt")
    grown = Vocabulary.load(folder / "data" / "90k" / "vocab.json").grown([r"\alpha"])
    grown.save(folder / "GROWN.json")
