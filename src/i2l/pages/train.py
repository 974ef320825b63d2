"""The detector of formulas: its network, and how it is trained on pages that TeX has set.

    python -m i2l.pages.train pages SOURCE... --into PAGES --count 3000     set pages with known formulas
    python -m i2l.pages.train web SOURCE... --into PAGES --modules FOLDER   the same as web pages, in Chromium
    python -m i2l.pages.train train PAGES --into RUN --minutes 60           train; goes on where it was left
    python -m i2l.pages.train export RUN --into MODEL                       write it as ONNX, to be used

The network looks at ink in which letters are as high everywhere (`i2l.pages.find.SYMBOL_PX`) and says two
things for every cell of two by two pixels. Its *region*: none, a line of an inline formula, a display, or an
equation number; gaps between the symbols of a formula belong to it. And whose *ink* it is: text, inline,
display or number. It is small, so that an hour of one processor trains it and a page takes a moment.
"""

import argparse
import io
import itertools
import json
import math
import random
import time
import warnings
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFilter
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

from i2l.errors import I2LError
from i2l.files import atomic_write, write_checksums
from i2l.images.ink import extract_ink, find_pieces
from i2l.images.open import EmptyImageError
from i2l.pages.corpus import TRAINING_CLASSES
from i2l.pages.find import (
    CELL_PX,
    DETECTOR_FILE,
    DISPLAYED,
    INLINE,
    KINDS,
    MULTIPLE_PX,
    NUM_CLASSES,
    NUMBER,
    SYMBOL_PX,
    measure_symbols,
)
from i2l.pages.marked import make_pages, make_web_pages, write_pages
from i2l.rendering.camera import degrade
from i2l.rendering.rasterize import PageImage
from i2l.rendering.styles import Style

CHECKPOINT: Final = "detector.pt"
CROP_PX: Final = 512
_WIDTHS: Final = (12, 24, 64, 96, 128)  # channels at strides 2, 4, 8, 16, 32
_DEPTHS: Final = (1, 1, 3, 3, 2)
_UNTOUCHED_SHARE: Final = 0.5  # of the crops, which stay as TeX drew them
_FOREIGN_SHARE: Final = 0.12  # of the crops, whose words are made square characters
_LIST_EVERY: Final = 400  # crops, after which new pages are looked for
_CLASS_WEIGHTS: Final = (1.0, 2.0, 1.0, 1.5)  # nothing or text, inline, displayed, number: some are rare
_EMPTY_WEIGHT: Final = 0.15  # of a cell with neither ink nor formula in the loss
_IDENTITY: Final = (1.0, 0.0, 0.0, 1.0, 0.0, 0.0)


class Block(nn.Module):
    """A residual block: every channel looks around, then channels are mixed."""

    def __init__(self, width: int, reach: int) -> None:
        """Make a block of so many channels that looks so many cells to each side."""
        super().__init__()
        self.around = nn.Conv2d(width, width, 2 * reach + 1, padding=reach, groups=width, bias=False)
        self.norm = nn.BatchNorm2d(width)
        self.mix = nn.Conv2d(width, 2 * width, 1)
        self.back = nn.Conv2d(2 * width, width, 1)

    def forward(self, cells: Tensor) -> Tensor:
        """Return cells of the same shape."""  # (N, C, H, W) --> (N, C, H, W)
        mixed: Tensor = self.back(functional.relu(self.mix(self.norm(self.around(cells)))))
        return cells + mixed


class DetectorNetwork(nn.Module):
    """Ink to what every cell is: down to a stride of 32 and back, with what was seen on the way."""

    def __init__(self, widths: tuple[int, ...] = _WIDTHS, depths: tuple[int, ...] = _DEPTHS) -> None:
        """Make a network with so many channels and blocks at each stride."""
        super().__init__()
        inputs = (1, *widths[:-1])
        self.downs = nn.ModuleList(
            nn.Sequential(
                nn.Conv2d(
                    before,
                    width,
                    5 if before == 1 else 3,
                    stride=2,
                    padding=2 if before == 1 else 1,
                    bias=False,
                ),
                nn.BatchNorm2d(width),
                nn.ReLU(),
                *(Block(width, 1 if level < 2 else 2) for _ in range(depth)),
            )
            for level, (before, width, depth) in enumerate(zip(inputs, widths, depths, strict=True))
        )
        self.sides = nn.ModuleList(nn.Conv2d(below, width, 1) for width, below in itertools.pairwise(widths))
        self.ups = nn.ModuleList(Block(width, 1) for width in widths[:-1])
        self.head = nn.Conv2d(widths[0], 2 * NUM_CLASSES, 1)

    def forward(self, ink: Tensor) -> Tensor:
        """Return the scores of the regions, then of the ink, for each cell."""
        # (N, 1, H, W) --> (N, 8, H/2, W/2)
        seen: list[Tensor] = []
        for down in self.downs:
            ink = down(ink)
            seen.append(ink)
        cells = seen.pop()
        for level in reversed(range(len(seen))):
            wide = functional.interpolate(self.sides[level](cells), scale_factor=2.0, mode="nearest")
            cells = self.ups[level](seen[level] + wide)
        scores: Tensor = self.head(cells)
        return scores


class _Probabilities(nn.Module):
    """What is exported: the network, and a softmax over each of its two answers."""

    def __init__(self, network: DetectorNetwork) -> None:
        super().__init__()
        self.network = network

    def forward(self, ink: Tensor) -> Tensor:
        scores = self.network(ink)
        region, owner = scores[:, :NUM_CLASSES], scores[:, NUM_CLASSES:]
        return torch.cat([region.softmax(1), owner.softmax(1)], 1)


class Sample(NamedTuple):
    """A crop of a page as the network sees it, and what every cell of it is; bytes throughout."""

    ink: Tensor  # (H, W)
    region: Tensor  # (H/2, W/2)
    owner: Tensor  # (H/2, W/2): 0 text, else the kind from 1; 255 no ink


class PageCrops(IterableDataset[Sample]):
    """Random crops of the pages in a folder, at the scale of the network, many of them degraded."""

    def __init__(self, folder: Path, seed: int) -> None:
        """List the pages.

        Raises:
            I2LError: if there are none.
        """
        self._folder = folder
        self._paths = sorted(folder.glob("*.json"))
        if not self._paths:
            raise I2LError(
                f"There are no pages in {folder}; make them with: python -m i2l.pages.train pages."
            )
        self._source = random.Random(seed)
        self._sizes: dict[Path, float] = {}

    def __iter__(self) -> Iterator[Sample]:
        """Yield crops without end; pages may still be added meanwhile."""
        worker = get_worker_info()
        if worker is not None:
            self._source = random.Random(worker.seed)
        for number in itertools.count(1):
            if number % _LIST_EVERY == 0:
                self._paths = sorted(self._folder.glob("*.json"))
            sample = self._draw(self._source.choice(self._paths))
            if sample is not None:
                yield sample

    def _draw(self, path: Path) -> Sample | None:
        source = self._source
        pixels = np.asarray(Image.open(path.with_suffix(".png")))
        classes = np.asarray(Image.open(path.with_suffix(".classes.png")))
        if path not in self._sizes:
            self._sizes[path] = measure_symbols(255 - pixels) or 0.0
        if not self._sizes[path]:
            return None
        factor = SYMBOL_PX / self._sizes[path] * math.exp(source.gauss(0, 0.16))
        side = math.ceil(CROP_PX / factor)
        top = source.randint(-side // 8, max(0, pixels.shape[0] - side + side // 8))
        left = source.randint(-side // 8, max(0, pixels.shape[1] - side + side // 8))
        page = _cut(pixels, left, top, side, 255)
        if source.random() < _FOREIGN_SHARE:
            page = _in_another_script(page, _cut(classes, left, top, side, 0), self._sizes[path], source)
        if source.random() >= _UNTOUCHED_SHARE:
            try:
                ink = extract_ink(Image.fromarray(_degrade(page, source)))
            except EmptyImageError:
                return None
        else:
            ink = 255 - page
        turn = math.radians(source.gauss(0, 0.5)) if source.random() < 0.3 else 0.0
        size = CROP_PX, CROP_PX
        small = _turned(
            Image.fromarray(ink).resize(
                size, Image.Resampling.BOX if factor < 1 else Image.Resampling.BILINEAR
            ),
            turn,
            Image.Resampling.BILINEAR,
        )
        kinds = _turned(
            Image.fromarray(_cut(classes, left, top, side, 0)).resize(size, Image.Resampling.NEAREST),
            turn,
            Image.Resampling.NEAREST,
        )
        boxes = json.loads(path.read_text())["boxes"]
        scale = CROP_PX / side
        made = small, _regions(boxes, left, top, scale, turn), _owners(small, kinds)
        return Sample(*(torch.from_numpy(part.copy()) for part in made))


def _in_another_script(
    page: NDArray[np.uint8], classes: NDArray[np.uint8], symbol_px: float, source: random.Random
) -> NDArray[np.uint8]:
    """Write the words of a page in square characters of a few strokes each, as Chinese and Japanese look.

    The formulas stay. No such font is needed: what counts is that text may be dense and is not Latin.
    """
    kept = np.where(classes > 0, page, 255).astype(np.uint8)
    text = Image.fromarray(np.where((classes == 0) & (page < 150), 255, 0).astype(np.uint8))
    reach = max(3, 2 * round(0.35 * symbol_px) + 1)
    words = find_pieces(np.asarray(text.filter(ImageFilter.MaxFilter(reach))) > 0)
    image = Image.fromarray(kept)
    pen = ImageDraw.Draw(image)
    side = symbol_px * source.uniform(1.6, 2.1)
    width = max(1, round(symbol_px * source.uniform(0.08, 0.2)))
    signs = [[[source.random() for _ in range(4)] for _ in range(source.randint(3, 9))] for _ in range(60)]
    for left, top, right, bottom in words.tolist():
        if not 0.8 * symbol_px < bottom - top < 4 * symbol_px or right - left < 0.8 * symbol_px:
            continue
        middle = (top + bottom) / 2
        count = max(1, round((right - left) / (1.1 * side)))
        for number in range(count):
            x, y = left + number * (right - left) / count, middle - side / 2
            for a, b, c, d in source.choice(signs):
                across = a < 0.45
                end = (c, b) if across else (a, d) if a < 0.8 else (c, d)
                pen.line(
                    (x + b * side if not across else x, y + b * side, x + end[0] * side, y + end[1] * side),
                    0,
                    width,
                )
    return np.asarray(image)


def _cut(pixels: NDArray[np.uint8], left: int, top: int, side: int, paper: int) -> NDArray[np.uint8]:
    """Cut a square out of a page; what lies outside of it is paper."""
    square = np.full((side, side), paper, np.uint8)
    part = pixels[max(0, top) : top + side, max(0, left) : left + side]
    square[max(0, -top) : max(0, -top) + part.shape[0], max(0, -left) : max(0, -left) + part.shape[1]] = part
    return square


def _turned(image: Image.Image, angle: float, resampling: Image.Resampling) -> NDArray[np.uint8]:
    if angle:
        image = image.rotate(math.degrees(angle), resampling)
    return np.asarray(image)


def _degrade(page: NDArray[np.uint8], source: random.Random) -> NDArray[np.uint8]:
    """Make a page look scanned, faded, photographed or sent around."""

    def maybe(share: float, low: float, high: float, otherwise: float) -> float:
        return source.uniform(low, high) if source.random() < share else otherwise

    shape = page.shape
    if source.random() < 0.25:  # ink that ran, or was thin
        image = Image.fromarray(page)
        page = np.asarray(
            image.filter(ImageFilter.MinFilter(3) if source.random() < 0.5 else ImageFilter.BoxBlur(1))
        )
    style = Style(
        ink=int(maybe(0.5, 0, 110, 0)),
        paper=int(maybe(0.5, 190, 255, 255)),
        blur_px=maybe(0.6, 0.3, 1.3, 0.0),
        noise=maybe(0.6, 1, 14, 0.0),
        noise_seed=source.randrange(1 << 20),
        jpeg_quality=int(maybe(0.4, 25, 90, 0)),
    )
    drawn = degrade(PageImage(page, _IDENTITY), style).pixels
    assert drawn is not None
    assert drawn.shape == shape
    if source.random() < 0.4:  # light from a side
        rows, columns = np.mgrid[-1 : 1 : shape[0] * 1j, -1 : 1 : shape[1] * 1j].astype(np.float32)
        angle, depth = source.uniform(0, 2 * math.pi), source.uniform(0.05, 0.3)
        light = 1 - depth * (1 + np.cos(angle) * columns + np.sin(angle) * rows) / 2
        drawn = np.clip(drawn * light, 0, 255).astype(np.uint8)
    if source.random() < 0.12:
        drawn = np.where(drawn > source.uniform(110, 190), 255, 0).astype(np.uint8)
    return drawn


def _regions(
    boxes: list[dict[str, Any]], left: int, top: int, scale: float, turn: float
) -> NDArray[np.uint8]:
    """Draw the regions of formulas into cells; of inline ones only the height of small letters is drawn."""
    cells = CROP_PX // CELL_PX
    region = np.zeros((cells, cells), np.uint8)
    middle = CROP_PX / 2
    for kind in (DISPLAYED, INLINE, NUMBER):
        for box in boxes:
            if box["kind"] != kind:
                continue
            x0, y0, x1, y1 = (
                (value - start) * scale
                for value, start in zip(box["box"], (left, top, left, top), strict=True)
            )
            if kind == INLINE:
                y1 = (box["baseline_px"] - top) * scale
                y0 = y1 - SYMBOL_PX
            if turn:
                x, y = (x0 + x1) / 2 - middle, (y0 + y1) / 2 - middle
                shift_x, shift_y = (
                    x * math.cos(turn) + y * math.sin(turn) - x,
                    y * math.cos(turn) - x * math.sin(turn) - y,
                )
                x0, x1, y0, y1 = x0 + shift_x, x1 + shift_x, y0 + shift_y, y1 + shift_y
            first, last = max(0, round(x0 / CELL_PX)), max(0, round(x1 / CELL_PX), round(x0 / CELL_PX) + 1)
            upper, lower = max(0, round(y0 / CELL_PX)), max(0, round(y1 / CELL_PX), round(y0 / CELL_PX) + 1)
            region[upper:lower, first:last] = KINDS.index(kind) + 1
    return region


def _owners(ink: NDArray[np.uint8], kinds: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Say for each cell with ink whose it is: that of the most ink in it."""
    cells = CROP_PX // CELL_PX
    amounts = np.stack(
        [
            np.where(kinds == kind, ink, 0)
            .reshape(cells, CELL_PX, cells, CELL_PX)
            .sum(axis=(1, 3), dtype=np.int32)
            for kind in range(NUM_CLASSES)
        ]
    )
    amounts[1:] *= 2  # the marks end where strokes are hard, so rims count as text
    owners: NDArray[np.uint8] = amounts.argmax(axis=0).astype(np.uint8)
    owners[amounts.max(axis=0) < 60 * CELL_PX * CELL_PX] = 255
    return owners


def detector_loss(scores: Tensor, region: Tensor, owner: Tensor) -> Tensor:
    """Return the mean surprise of the two answers; empty paper counts little."""
    # (N, 8, H, W), (N, H, W), (N, H, W) --> ()
    by_cell = functional.cross_entropy(scores[:, :NUM_CLASSES], region, reduction="none")
    rare = scores.new_tensor(_CLASS_WEIGHTS)
    weight = torch.where((region > 0) | (owner < 255), 1.0, _EMPTY_WEIGHT) * rare[region]
    regions = (by_cell * weight).sum() / weight.sum()
    owners = functional.cross_entropy(scores[:, NUM_CLASSES:], owner, rare, ignore_index=255)
    return regions + owners


def learning_rate(rate: float, step: int, done: float) -> float:
    """Return the rate of learning of a step: it rises for 50 steps, and falls as the time is used up."""
    return rate * min(1.0, (step + 1) / 50) * max(0.02, 0.5 + 0.5 * math.cos(math.pi * done))


def train(
    pages: Path,
    run: Path,
    *,
    minutes: float,
    batch: int,
    rate: float,
    device: str,
    workers: int = 0,
    seed: int = 0,
) -> None:
    """Train for a time, and save the network every few minutes; an earlier run is gone on with.

    The rate of learning falls to nothing at the end of the time.
    """
    network = DetectorNetwork().to(device).to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    optimizer = torch.optim.AdamW(network.parameters(), lr=rate, weight_decay=1e-2)
    step = 0
    if (run / CHECKPOINT).is_file():
        saved = torch.load(run / CHECKPOINT, map_location=device, weights_only=True)
        network.load_state_dict(saved["network"])
        optimizer.load_state_dict(saved["optimizer"])
        step = saved["step"]
    torch.manual_seed(seed + step)
    crops = iter(DataLoader(PageCrops(pages, seed + step), batch, num_workers=workers))
    started = saved_at = said_at = time.monotonic()
    mean = 0.0
    while (done := (time.monotonic() - started) / 60 / minutes) < 1:
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(rate, step, done)
        sample = Sample(*(part.to(device) for part in next(crops)))
        ink = sample.ink[:, None].float() / 255
        region, owner = sample.region.long(), sample.owner.long()
        with torch.autocast(torch.device(device).type, torch.bfloat16):  # half the time, also on a processor
            scores = network(ink.contiguous(memory_format=torch.channels_last))
        loss = detector_loss(scores.float(), region, owner)
        if not math.isfinite(loss.item()):
            raise I2LError(f"The loss is {loss.item()} after {step} steps; start anew with a lower --rate.")
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimizer.step()
        step += 1
        mean = loss.item() if mean == 0 else 0.98 * mean + 0.02 * loss.item()
        now = time.monotonic()
        if now - said_at > 20:
            said_at = now
            print(f"step {step}  loss {mean:.4f}  {(now - started) / 60:.1f} of {minutes:g} min", flush=True)
        if now - saved_at > 120:
            saved_at = now
            _save(run, network, optimizer, step)
    _save(run, network, optimizer, step)


def _save(run: Path, network: nn.Module, optimizer: torch.optim.Optimizer, step: int) -> None:
    with atomic_write(run / CHECKPOINT, "wb") as file:
        torch.save({"network": network.state_dict(), "optimizer": optimizer.state_dict(), "step": step}, file)


def export(run: Path, folder: Path) -> None:
    """Write the ONNX model of a run, and check that it answers as the network does.

    Raises:
        I2LError: if there is no run, or the answers differ.
    """
    import onnxruntime

    if not (run / CHECKPOINT).is_file():
        raise I2LError(f"{run} has no {CHECKPOINT}; train first.")
    network = DetectorNetwork()
    network.load_state_dict(torch.load(run / CHECKPOINT, map_location="cpu", weights_only=True)["network"])
    answers = _Probabilities(network).eval()
    shape = (1, 1, 4 * MULTIPLE_PX, 5 * MULTIPLE_PX)
    torch.manual_seed(0)
    ink = torch.rand(shape)
    folder.mkdir(parents=True, exist_ok=True)
    held = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # the other exporter fixes the size of the page
        torch.onnx.export(
            answers,
            (ink,),
            held,  # type: ignore[arg-type]
            input_names=["ink"],
            output_names=["cells"],
            dynamic_axes={"ink": {2: "height", 3: "width"}, "cells": {2: "rows", 3: "columns"}},
            opset_version=17,
            dynamo=False,
        )
    with atomic_write(folder / DETECTOR_FILE, "wb") as file:
        file.write(held.getvalue())
    session = onnxruntime.InferenceSession(folder / DETECTOR_FILE, providers=["CPUExecutionProvider"])
    with torch.inference_mode():
        expected = answers(ink).numpy()
    difference = float(np.abs(session.run(None, {"ink": ink.numpy()})[0] - expected).max())
    if difference > 1e-3:
        raise I2LError(f"The exported detector differs by {difference:.2g}; this is a fault of the export.")
    write_checksums(folder)


def main() -> None:
    """Set pages, train, or export."""
    parser = argparse.ArgumentParser(
        prog="python -m i2l.pages.train", description="Make the detector of formulas."
    )
    commands = parser.add_subparsers(dest="command", required=True)
    pages = commands.add_parser("pages", help="set pages by TeX whose formulas are known")
    pages.add_argument(
        "--classes", default=",".join(TRAINING_CLASSES), help="document classes to choose from"
    )
    pages.add_argument("--varied", action="store_true", help="with vectors, references and bits of code")
    web = commands.add_parser("web", help="draw web pages whose formulas are known, in Chromium")
    web.add_argument("--modules", type=Path, help="folder that npm has filled with MathJax and fonts")
    for command in (pages, web):
        command.add_argument(
            "sources", nargs="+", type=Path, help="folders, files or archives of TeX sources"
        )
        command.add_argument("--into", type=Path, required=True, help="folder of the pages")
        command.add_argument("--count", type=int, default=3000, help="how many")
        command.add_argument("--seed", type=int, default=0)
    training = commands.add_parser("train", help="train the network")
    training.add_argument("pages", type=Path, help="folder of the pages")
    training.add_argument("--into", type=Path, required=True, help="folder of the run")
    training.add_argument("--minutes", type=float, default=60, help="how long")
    training.add_argument("--batch", type=int, default=4, help="crops of a step")
    training.add_argument("--rate", type=float, default=4e-3, help="of learning")
    training.add_argument("--device", default="cpu")
    training.add_argument("--workers", type=int, default=0, help="processes that cut crops; a GPU wants many")
    exporting = commands.add_parser("export", help="write the ONNX model")
    exporting.add_argument("run", type=Path, help="folder of the run")
    exporting.add_argument("--into", type=Path, required=True, help="folder of the model")
    options = parser.parse_args()
    if options.command == "pages":
        made = make_pages(
            options.sources, classes=options.classes.split(","), seed=options.seed, varied=options.varied
        )
        write_pages(made, options.into, options.count)
    elif options.command == "web":
        with closing(make_web_pages(options.sources, seed=options.seed, modules=options.modules)) as drawn:
            write_pages(drawn, options.into, options.count)
    elif options.command == "train":
        train(
            options.pages,
            options.into,
            minutes=options.minutes,
            batch=options.batch,
            rate=options.rate,
            device=options.device,
            workers=options.workers,
        )
    else:
        export(options.run, options.into)


if __name__ == "__main__":
    main()
