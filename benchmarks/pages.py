"""How well formulas are found and read on whole pages.

    python -m benchmarks.pages set SOURCE --into PAGES [--dpi 200] [--count 60]    pages to be judged by
    python -m benchmarks.pages find PAGES... [--photo]                             F1 of boxes
    python -m benchmarks.pages fonts SOURCE [--count 60]                           the same in PDFs, by fonts
    python -m benchmarks.pages read PAGES [--count 13]                             expression rate, end to end
    python -m benchmarks.pages speed PAGES                                         seconds of one page
    python -m benchmarks.pages book FILE.pdf --into OUT [--count 300]              memory, time of a long PDF
    python -m benchmarks.pages sheet PAGES --into SHEET.png                        what was found, to look at

SOURCE is prose in TeX that the detector was not trained with. A box counts as found if a box of the same kind
overlaps it by the given share (intersection over union), each once. Of an inline formula that TeX broke over
two lines each part counts. `--photo` turns every page by up to 3 degrees, gives it perspective, shadow, blur,
noise and JPEG; the boxes it should find are those of the page as it was, seen through all of that.
"""

import argparse
import io
import itertools
import json
import math
import random
import statistics
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFilter

from i2l.pages.corpus import TEST_CLASSES
from i2l.pages.document import PageFile
from i2l.pages.find import DETECTOR_FOLDER, Detector
from i2l.pages.gather import DISPLAYED, INLINE
from i2l.pages.marked import make_documents, make_pages, make_web_pages, mark_pages, write_pages
from i2l.pages.reader import PageReader, homography, project, straighten

SCORES = ((DISPLAYED, 0.5), (DISPLAYED, 0.8), (INLINE, 0.5), ("number", 0.5))


Box = Sequence[float]


def overlap(first: Box, second: Box) -> float:
    """Intersection over union of two boxes."""
    width = min(first[2], second[2]) - max(first[0], second[0])
    height = min(first[3], second[3]) - max(first[1], second[1])
    if width <= 0 or height <= 0:
        return 0.0
    areas = [(box[2] - box[0]) * (box[3] - box[1]) for box in (first, second)]
    return width * height / (sum(areas) - width * height)


def match(truth: Sequence[Box], found: Sequence[Box], least: float) -> list[tuple[int, int]]:
    """Pair boxes, those that overlap most first; return the pairs of places."""
    pairs = sorted(
        ((overlap(a, b), i, j) for i, a in enumerate(truth) for j, b in enumerate(found)), reverse=True
    )
    taken: set[tuple[str, int]] = set()
    matched = []
    for share, i, j in pairs:
        if share >= least and ("t", i) not in taken and ("f", j) not in taken:
            taken |= {("t", i), ("f", j)}
            matched.append((i, j))
    return matched


def pages_of(folder: Path) -> Iterator[tuple[Path, Image.Image, dict[str, Any]]]:
    """Yield the pages of a folder."""
    for path in sorted(folder.glob("*.json")):
        yield path, Image.open(path.with_suffix(".png")), json.loads(path.read_text())


def photograph(image: Image.Image, seed: int) -> tuple[Image.Image, NDArray[np.float64]]:
    """Imitate a photograph or a scan of a page; return it, and the projection from the page to it."""
    source = random.Random(seed)
    width, height = image.size
    margin = 0.04 * width
    angle = math.radians(source.uniform(-3, 3))
    middle = np.array([width / 2 + margin, height / 2 + margin])
    corners = [(0, 0), (width, 0), (width, height), (0, height)]
    lean = 0.02 * width
    seen = []
    for x, y in corners:
        dx, dy = x + margin - middle[0], y + margin - middle[1]
        seen.append(
            (
                middle[0] + dx * math.cos(angle) - dy * math.sin(angle) + source.uniform(-lean, lean),
                middle[1] + dx * math.sin(angle) + dy * math.cos(angle) + source.uniform(-lean, lean),
            )
        )
    to_photo = homography(corners, seen)
    size = int(width + 2 * margin), int(height + 2 * margin)
    back = np.linalg.inv(to_photo)
    back /= back[2, 2]
    photo = image.convert("L").transform(
        size, Image.Transform.PERSPECTIVE, tuple(back.ravel()[:8]), Image.Resampling.BICUBIC, fillcolor=255
    )
    pixels = np.asarray(photo).astype(np.float32)
    rows, columns = np.mgrid[-1 : 1 : size[1] * 1j, -1 : 1 : size[0] * 1j].astype(np.float32)
    light = source.uniform(0, 2 * math.pi)
    shade = 1 - source.uniform(0.1, 0.35) * (1 + math.cos(light) * columns + math.sin(light) * rows) / 2
    ink = source.uniform(10, 70)
    pixels = (ink + pixels * (240 - ink) / 255) * shade
    generator = np.random.default_rng(seed)
    pixels += generator.normal(0, source.uniform(1, 6), pixels.shape)
    photo = Image.fromarray(np.clip(pixels, 0, 255).astype(np.uint8)).filter(
        ImageFilter.GaussianBlur(source.uniform(0.2, 0.9))
    )
    held = io.BytesIO()
    photo.save(held, "JPEG", quality=source.randint(50, 90))
    return Image.open(io.BytesIO(held.getvalue())), to_photo


def moved(box: Box, matrix: NDArray[np.float64]) -> Box:
    """The box around a box after a projection."""
    left, top, right, bottom = box
    points = project(matrix, np.array([(left, top), (right, top), (right, bottom), (left, bottom)], float))
    return (*points.min(axis=0), *points.max(axis=0))


def find(folders: Sequence[Path], photo: bool, detector: Detector) -> None:
    """Print precision, recall and F1 of every kind."""
    for folder in folders:
        counts: dict[Any, list[int]] = defaultdict(lambda: [0, 0, 0])
        looks: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0])
        pages = 0
        for number, (_, page, about) in enumerate(pages_of(folder)):
            matrix, straight = np.eye(3), page
            if photo:
                taken, matrix = photograph(page, number)
                picture = straighten(taken)
                straight = picture.image
                if picture.to_given is not None:
                    matrix = np.linalg.inv(picture.to_given) @ matrix
            found = detector.find(straight)
            pages += 1
            for kind, least in SCORES:
                truth = [moved(box["box"], matrix) for box in about["boxes"] if box["kind"] == kind]
                mine = [f.box for f in (*found.formulas, *found.numbers) if f.kind == kind]
                hits = len(match(truth, mine, least))
                for place, value in enumerate((hits, len(truth), len(mine))):
                    counts[kind, least][place] += value
                    if (kind, least) == SCORES[0]:
                        looks[about["look"].split()[0]][place] += value
        print(f"{folder}  {pages} pages{', photographed' if photo else ''}")
        for (kind, least), (hits, true, mine) in counts.items():
            f1 = 2 * hits / max(true + mine, 1)
            precision, recall = hits / max(mine, 1), hits / max(true, 1)
            said = f"F1 {f1:.3f}  precision {precision:.3f}  recall {recall:.3f}"
            print(f"  {kind} IoU {least}: {said}  of {true}")
        for look, (hits, true, mine) in sorted(looks.items()):
            print(f"    displayed in {look}: F1 {2 * hits / max(true + mine, 1):.3f} of {true}")


def fonts(sources: Sequence[Path], count: int, seed: int, detector: Detector) -> None:
    """Print F1 on PDFs that were born digital, with and without what their fonts say."""
    counts: dict[Any, list[int]] = defaultdict(lambda: [0, 0, 0])
    pages = believed = 0
    for document in make_documents(sources, classes=TEST_CLASSES, seed=seed):
        marked = mark_pages(document.pdf, document.formulas, document.look.size_pt, itertools.repeat(200))
        with PageFile(document.pdf) as file:
            for number, page in enumerate(marked, 1):
                hints = file.page(number).hints
                pages += 1
                believed += hints is not None
                for way, given in (("picture", None), ("picture and fonts", hints)):
                    found = detector.find(Image.fromarray(page.pixels), given)
                    for kind, least in SCORES:
                        truth = [box.box for box in page.boxes if box.kind == kind]
                        mine = [f.box for f in (*found.formulas, *found.numbers) if f.kind == kind]
                        hits = len(match(truth, mine, least))
                        for place, value in enumerate((hits, len(truth), len(mine))):
                            counts[way, kind, least][place] += value
        if pages >= count:
            break
    print(f"{pages} pages of PDFs, {believed} with fonts of formulas")
    for (way, kind, least), (hits, true, mine) in sorted(counts.items()):
        print(f"  {way}: {kind} IoU {least}: F1 {2 * hits / max(true + mine, 1):.3f} of {true}")


def sheet(folder: Path, into: Path, detector: Detector, count: int) -> None:
    """Draw what should be found (yellow) and what was (red, blue, green) on some pages, side by side."""
    tiles = []
    for _path, image, about in pages_of(folder):
        found = detector.find(image)
        shown = image.convert("RGB")
        pen = ImageDraw.Draw(shown)
        for box in about["boxes"]:
            left, top, right, bottom = box["box"]
            pen.rectangle((left - 3, top - 3, right + 2, bottom + 2), outline=(255, 190, 0))
        for item in (*found.formulas, *found.numbers):
            colour = {INLINE: (0, 0, 255), DISPLAYED: (255, 0, 0)}.get(item.kind, (0, 160, 0))
            left, top, right, bottom = item.box
            pen.rectangle((left - 1, top - 1, right, bottom), outline=colour, width=2)
        shown.thumbnail((640, 900))
        tiles.append(shown)
        if len(tiles) == count:
            break
    width = max(tile.width for tile in tiles)
    height = max(tile.height for tile in tiles)
    across = min(3, len(tiles))
    rows = -(-len(tiles) // across)
    whole = Image.new("RGB", (across * width, rows * height), (255, 255, 255))
    for index, tile in enumerate(tiles):
        whole.paste(tile, (index % across * width, index // across * height))
    whole.save(into, quality=30, method=6)


def read(folder: Path, detector: Path, count: int | None) -> None:
    """Print the expression rate of the displays: found, read, and every symbol in its place."""
    from i2l.evaluation.visual import compare_images, prepare_formula, visual_columns

    reader = PageReader(detector=detector, tokens=False)
    pairs, missed = [], 0
    for _, image, about in itertools.islice(pages_of(folder), count):
        truth = [box for box in about["boxes"] if box["kind"] == DISPLAYED and box["whole"]]
        found = [formula for formula in reader.read_page(image).formulas if formula.kind == DISPLAYED]
        matched = match([box["box"] for box in truth], [formula.box for formula in found], 0.5)
        missed += len(truth) - len(matched)
        pairs += [
            (
                prepare_formula(truth[i]["latex"], canonical=True),
                prepare_formula(found[j].latex, canonical=True),
            )
            for i, j in matched
        ]
    columns = visual_columns(compare_images(pairs))
    right = int(columns["expression_right"].sum())
    print(
        f"{folder}: {right} of {len(pairs) + missed} displays right, {right / (len(pairs) + missed):.1%}"
        f" ({missed} not found; of those found {right / max(len(pairs), 1):.1%})"
    )


def speed(folder: Path, detector: Path) -> None:
    """Print the seconds of finding, and of finding and reading, for each page with 10 to 30 formulas."""
    reader = PageReader(detector=detector)
    finding, reading, formulas = [], [], []
    for _, image, _ in pages_of(folder):
        image.load()
        found = reader.read_page(image, read=False)
        if not 10 <= len(found.formulas) <= 30:
            continue
        finding.append(reader.read_page(image, read=False).seconds)
        reading.append(reader.read_page(image).seconds)
        formulas.append(len(found.formulas))
        if len(finding) == 7:
            break
    print(
        f"{folder}: finding {statistics.median(finding):.2f} s, finding and reading "
        f"{statistics.median(reading):.2f} s for {statistics.mean(formulas):.0f} formulas"
        f" (median of {len(finding)})"
    )


def resident_mib(process: int) -> float:
    """Memory of a process and of all that it has started."""
    try:
        status = Path(f"/proc/{process}/status").read_text()
        children = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    except OSError:  # it has just ended
        return 0.0
    kib = [int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS:")]
    return sum(kib) / 1024 + sum(resident_mib(int(child)) for child in children)


def watch(command: list[str], pages: Path, until: int | None) -> tuple[float, int]:
    """Run a command until it ends, or is killed after some pages; return the most MiB, and the pages."""
    most = 0.0
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        while process.poll() is None:
            most = max(most, resident_mib(process.pid))
            if until is not None and len(list(pages.glob("0*.json"))) >= until:
                process.kill()
            time.sleep(0.05)
    return most, len(list(pages.glob("0*.json")))


def book(path: Path, count: int, into: Path) -> None:
    """Read a long PDF by `i2l page`, which is killed once and goes on; print time and memory."""
    command = [sys.executable, "-m", "i2l", "page", str(path), "--pages", f"1-{count}", "-o", str(into)]
    pages, started = into / f"{path.stem}.pages", time.perf_counter()
    first, half = watch(command, pages, count // 2)
    second, done = watch(command, pages, None)
    seconds = time.perf_counter() - started
    print(f"{done} pages ({half} before it was killed), {seconds / done:.1f} s a page")
    print(f"at most {first:.0f} MiB before and {second:.0f} MiB after, all processes together")


def main() -> None:
    """Run one of the measurements."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.pages", description=__doc__.split("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    setting = commands.add_parser("set")
    setting.add_argument("sources", nargs="+", type=Path)
    setting.add_argument("--into", type=Path, required=True)
    setting.add_argument("--dpi", type=int, default=200)
    setting.add_argument("--count", type=int, default=60)
    setting.add_argument("--seed", type=int, default=1)
    setting.add_argument("--classes", default=",".join(TEST_CLASSES))
    setting.add_argument("--web", action="store_true", help="web pages in Chromium instead")
    setting.add_argument("--modules", type=Path, help="folder that npm has filled with MathJax and fonts")
    for name in ("find", "fonts", "read", "speed", "sheet", "book"):
        command = commands.add_parser(name)
        command.add_argument("pages", nargs="+", type=Path)
        command.add_argument("--detector", type=Path, default=DETECTOR_FOLDER)
        command.add_argument("--photo", action="store_true")
        command.add_argument("--into", type=Path, default=Path("sheet.png"))
        command.add_argument("--count", type=int)
    options = parser.parse_args()
    if options.command == "set":
        sources, seed = options.sources, options.seed
        if options.web:
            with closing(
                make_web_pages(sources, seed=seed, modules=options.modules, levelled=False)
            ) as drawn:
                write_pages(drawn, options.into, options.count)
        else:
            made = make_pages(sources, classes=options.classes.split(","), seed=seed, dpi=options.dpi)
            write_pages(made, options.into, options.count)
    elif options.command == "find":
        find(options.pages, options.photo, Detector(options.detector))
    elif options.command == "read":
        for folder in options.pages:
            read(folder, options.detector, options.count)
    elif options.command == "speed":
        speed(options.pages[0], options.detector)
    elif options.command == "book":
        book(options.pages[0], options.count or 300, options.into)
    elif options.command == "fonts":
        fonts(options.pages, options.count or 60, 1, Detector(options.detector))
    elif options.command == "sheet":
        sheet(options.pages[0], options.into, Detector(options.detector), options.count or 6)


if __name__ == "__main__":
    main()
