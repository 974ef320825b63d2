"""The detector of formulas: its network, and how it is trained on pages that TeX has set.

    python -m i2l.pages.train pages SOURCE... --into PAGES --count 3000     set pages with known formulas
    python -m i2l.pages.train web SOURCE... --into PAGES --modules FOLDER   the same as web pages, in Chromium
    python -m i2l.pages.train pack PAGES... --into PACKED                   pack them, to be carried
    python -m i2l.pages.train train PACKED --into RUN --minutes 60          train; goes on where it was left
    python -m i2l.pages.train export RUN --into MODEL                       write it as ONNX, to be used

The network looks at ink in which letters are as high everywhere (`SYMBOL_PX`) and says two things for every
cell of two by two pixels. Its *region*: none, a line of an inline formula, a display, or an equation number;
gaps between the symbols of a formula belong to it. And whose *ink* it is: text, inline, display or number.
It is small, so that a page takes a moment.
"""

import argparse
import copy
import io
import itertools
import math
import time
import warnings
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from i2l.errors import I2LError
from i2l.files import atomic_write, write_checksums
from i2l.pages.corpus import TRAINING_CLASSES
from i2l.pages.crops import NO_INK, Crops, CropSource, load_pages, put
from i2l.pages.find import DETECTOR_FILE, MULTIPLE_PX, SYMBOL_KEY
from i2l.pages.gather import NUM_CLASSES
from i2l.pages.marked import make_pages, make_web_pages, write_pages
from i2l.pages.packed import list_packed, pack_pages
from i2l.pages.variety import read_strangers

SYMBOL_PX: Final = 10.0  # height of small letters where the network looks: at 7 bold type was missed
CROP_PX: Final = 768
CHECKPOINT: Final = "detector.pt"  # the mean of the last networks, to be exported
LATEST: Final = "network.pt"  # the last one, and beside it what the optimizer knows: to go on with
OPTIMIZER: Final = "optimizer.pt"
_STEM: Final = 16  # channels at a stride of 2
_WIDTHS: Final = (48, 80, 144, 192)  # channels at strides of 4, 8, 16, 32
_DEPTHS: Final = (2, 3, 5, 3)
_REACHES: Final = (0, 0, 2, 3)  # of blocks that look around channel by channel; 0: all channels at once
_CLASS_WEIGHTS: Final = (1.0, 1.3, 1.0, 1.5)  # nothing or text, inline, displayed, number: some are rare
_EMPTY_WEIGHT: Final = 0.15  # of a cell with neither ink nor formula in the loss
_MEMORY: Final = 0.999  # of the mean of networks
_MAX_FAILURES: Final = 50  # steps in a row whose gradient is no number
_SAVE_S: Final = 100
_SAY_S: Final = 20


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


class PlainBlock(nn.Module):
    """A residual block that looks around and mixes at once: faster where there are many cells."""

    def __init__(self, width: int) -> None:
        """Make a block of so many channels."""
        super().__init__()
        self.look = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(width)

    def forward(self, cells: Tensor) -> Tensor:
        """Return cells of the same shape."""  # (N, C, H, W) --> (N, C, H, W)
        return cells + functional.relu(self.norm(self.look(cells)))


def _block(width: int, reach: int) -> nn.Module:
    return Block(width, reach) if reach else PlainBlock(width)


def _halved(before: int, after: int, side: int = 3) -> list[nn.Module]:
    """Make layers to half as many cells each way."""
    look = nn.Conv2d(before, after, side, stride=2, padding=side // 2, bias=False)
    return [look, nn.BatchNorm2d(after), nn.ReLU()]


class DetectorNetwork(nn.Module):
    """Ink to what every cell is: down to a stride of 32 and back, with what was seen on the way.

    The way back ends at a stride of 4, where four cells are answered for at once.
    """

    def __init__(
        self,
        widths: tuple[int, ...] = _WIDTHS,
        depths: tuple[int, ...] = _DEPTHS,
        reaches: tuple[int, ...] = _REACHES,
    ) -> None:
        """Make a network with so many channels, and blocks of such a reach, at each stride from 4 on."""
        super().__init__()
        self.stem = nn.Sequential(*_halved(1, _STEM, 5))
        self.downs = nn.ModuleList(
            nn.Sequential(*_halved(before, width), *(_block(width, reach) for _ in range(depth)))
            for before, width, depth, reach in zip(
                (_STEM, *widths[:-1]), widths, depths, reaches, strict=True
            )
        )
        self.sides = nn.ModuleList(nn.Conv2d(below, width, 1) for width, below in itertools.pairwise(widths))
        self.ups = nn.ModuleList(
            _block(width, reach) for width, reach in zip(widths[:-1], reaches, strict=False)
        )
        self.head = nn.Conv2d(widths[0], 4 * 2 * NUM_CLASSES, 1)

    def forward(self, ink: Tensor) -> Tensor:
        """Return the scores of the regions, then of the ink, for each cell."""
        # (N, 1, H, W) --> (N, 8, H/2, W/2)
        cells = self.stem(ink)
        seen: list[Tensor] = []
        for down in self.downs:
            cells = down(cells)
            seen.append(cells)
        cells = seen.pop()
        for level in reversed(range(len(seen))):
            wide = functional.interpolate(self.sides[level](cells), scale_factor=2.0, mode="nearest")
            cells = self.ups[level](seen[level] + wide)
        return functional.pixel_shuffle(self.head(cells), 2)


class _Probabilities(nn.Module):
    """What is exported: the network, and a softmax over each of its two answers."""

    def __init__(self, network: DetectorNetwork) -> None:
        super().__init__()
        self.network = network

    def forward(self, ink: Tensor) -> Tensor:
        scores = self.network(ink)
        region, owner = scores[:, :NUM_CLASSES], scores[:, NUM_CLASSES:]
        return torch.cat([region.softmax(1), owner.softmax(1)], 1)


def detector_loss(scores: Tensor, region: Tensor, owner: Tensor) -> Tensor:
    """Return the mean surprise of the two answers; empty paper counts little."""
    # (N, 8, H, W), (N, H, W), (N, H, W) --> ()
    by_cell = functional.cross_entropy(scores[:, :NUM_CLASSES], region, reduction="none")
    rare = put(_CLASS_WEIGHTS, str(scores.device))
    weight = torch.where((region > 0) | (owner != NO_INK), 1.0, _EMPTY_WEIGHT) * rare[region]
    regions = (by_cell * weight).sum() / weight.sum()
    owners = functional.cross_entropy(scores[:, NUM_CLASSES:], owner, rare, ignore_index=NO_INK)
    return regions + owners


def learning_rate(rate: float, step: int, done: float) -> float:
    """Return the rate of learning of a step: it rises for 50 steps, and falls as the time is used up."""
    return rate * min(1.0, (step + 1) / 50) * max(0.02, 0.5 + 0.5 * math.cos(math.pi * done))


class Trainer:
    """A network that learns, the mean of its last states, and where both are kept."""

    def __init__(self, run: Path, *, rate: float, device: str) -> None:
        """Make a network, or go on with that of an earlier run."""
        self._run, self._rate, self._device = run, rate, device
        self.network = DetectorNetwork().to(device)
        self.network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        self._mean = copy.deepcopy(self.network).eval()
        self._pairs = list(
            zip(self._mean.state_dict().values(), self.network.state_dict().values(), strict=True)
        )
        self._optimizer = torch.optim.AdamW(self.network.parameters(), lr=rate, weight_decay=1e-2)
        self.step, self.minutes = 0, 0.0  # of all calls so far
        self._failures, self._loss = 0, torch.zeros((), device=device)
        self._last = self._loss, self._loss  # loss and length of the gradient of the step that was begun
        if all((run / name).is_file() for name in (CHECKPOINT, LATEST, OPTIMIZER)):
            saved, latest, optimizer = (
                torch.load(run / name, map_location=device, weights_only=True)
                for name in (CHECKPOINT, LATEST, OPTIMIZER)
            )
            self._mean.load_state_dict(saved["network"])
            self.network.load_state_dict(latest)
            self._optimizer.load_state_dict(optimizer)
            self.step, self.minutes = saved["step"], saved["minutes"]

    def find_gradient(self, crops: Crops, done: float) -> None:
        """Begin a step, of a run of which a share is done; the device may still be at it afterwards."""
        for group in self._optimizer.param_groups:
            group["lr"] = learning_rate(self._rate, self.step, done)
        with torch.autocast(torch.device(self._device).type, torch.bfloat16):  # half the time
            scores = self.network(crops.ink.contiguous(memory_format=torch.channels_last))
        loss = detector_loss(scores.float(), crops.region.long(), crops.owner.long())
        self._optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        self._last = loss.detach(), nn.utils.clip_grad_norm_(self.network.parameters(), 1.0)

    def follow_gradient(self) -> None:
        """End a step; a gradient that is no number is passed over, as of crops that happen to be empty.

        Raises:
            I2LError: if no gradient is a number any more.
        """
        loss, norm = self._last
        if not math.isfinite(norm.item()):
            self._failures += 1
            if self._failures > _MAX_FAILURES:
                raise I2LError(
                    f"The loss is no number after {self.step} steps; start anew with a lower --rate."
                )
            return
        self._failures = 0
        self._optimizer.step()
        self.step += 1
        kept = min(_MEMORY, self.step / (self.step + 10))
        with torch.no_grad():
            for value, now in self._pairs:
                if value.is_floating_point():
                    value.lerp_(now, 1 - kept)
                else:
                    value.copy_(now)
            self._loss.lerp_(loss, max(0.02, 1 / self.step))

    @property
    def loss(self) -> float:
        """The loss of late."""
        return self._loss.item()

    def save(self) -> None:
        """Keep all that is needed to go on, each part whole or not at all."""
        latest = {name: value.contiguous() for name, value in self.network.state_dict().items()}
        mean = {name: value.contiguous() for name, value in self._mean.state_dict().items()}
        saved: dict[str, Any] = {
            LATEST: latest,
            OPTIMIZER: self._optimizer.state_dict(),
            CHECKPOINT: {
                "network": mean,
                "step": self.step,
                "minutes": self.minutes,
                SYMBOL_KEY: SYMBOL_PX,
            },
        }
        for name, values in saved.items():
            with atomic_write(self._run / name, "wb") as file:
                torch.save(values, file)


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
    crop_px: int = CROP_PX,
    whole_minutes: float | None = None,
) -> None:
    """Train for a time, which unpacking the pages is part of, and save the network every few minutes.

    An earlier run is gone on with. The rate of learning falls to nothing at the end of the time, or of
    `whole_minutes` where that is the time of several calls together. One step is made in any case.
    """
    started = time.monotonic()
    run.mkdir(parents=True, exist_ok=True)
    held = load_pages(list_packed(pages), workers=workers, seed=seed)  # before the device is touched
    print(f"{len(held)} pages unpacked in {time.monotonic() - started:.0f} s", flush=True)
    torch.backends.cudnn.benchmark = True
    trainer = Trainer(run, rate=rate, device=device)
    torch.manual_seed(seed + trainer.step)
    source = CropSource(held, crop_px=crop_px, symbol_px=SYMBOL_PX, device=device, seed=seed + trainer.step)
    del held
    saved_at = said_at = time.monotonic()
    crops, first, before = source.draw(batch), trainer.step, trainer.minutes
    while (spent := (time.monotonic() - started) / 60) < minutes or trainer.step == first:
        trainer.minutes = before + spent
        done = spent / minutes if whole_minutes is None else trainer.minutes / whole_minutes
        try:
            trainer.find_gradient(crops, min(done, 1.0))
            crops = source.draw(batch)  # is asked for before the device has found the gradient
            trainer.follow_gradient()
        except torch.OutOfMemoryError:  # another process may have taken it meanwhile
            batch = max(1, batch // 2)
            print(f"The memory of the device is full; steps have {batch} crops from now on.", flush=True)
            torch.cuda.empty_cache()
            crops = Crops(*(part[:batch] for part in crops))
        now = time.monotonic()
        if now - said_at > _SAY_S:
            said_at = now
            time_of = f"{spent:.1f} of {minutes:g} min"
            print(f"step {trainer.step}  loss {trainer.loss:.4f}  {time_of}", flush=True)
        if now - saved_at > _SAVE_S:
            saved_at = now
            trainer.save()
    trainer.save()


def export(run: Path, folder: Path) -> None:
    """Write the ONNX model of a run, and check that it answers as the network does.

    Raises:
        I2LError: if there is no run, or the answers differ.
    """
    import onnx
    import onnxruntime

    if not (run / CHECKPOINT).is_file():
        raise I2LError(f"{run} has no {CHECKPOINT}; train first.")
    network = DetectorNetwork()
    saved = torch.load(run / CHECKPOINT, map_location="cpu", weights_only=True)
    network.load_state_dict(saved["network"])
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
    model = onnx.load_from_string(held.getvalue())
    onnx.helper.set_model_props(model, {SYMBOL_KEY: str(saved[SYMBOL_KEY])})
    with atomic_write(folder / DETECTOR_FILE, "wb") as file:
        file.write(model.SerializeToString())
    session = onnxruntime.InferenceSession(folder / DETECTOR_FILE, providers=["CPUExecutionProvider"])
    with torch.inference_mode():
        expected = answers(ink).numpy()
    difference = float(np.abs(session.run(None, {"ink": ink.numpy()})[0] - expected).max())
    if difference > 1e-3:
        raise I2LError(f"The exported detector differs by {difference:.2g}; this is a fault of the export.")
    write_checksums(folder)


def main() -> None:
    """Set pages, pack them, train, or export."""
    parser = argparse.ArgumentParser(
        prog="python -m i2l.pages.train", description="Make the detector of formulas."
    )
    commands = parser.add_subparsers(dest="command", required=True)
    pages = commands.add_parser("pages", help="set pages by TeX whose formulas are known")
    pages.add_argument(
        "--classes", default=",".join(TRAINING_CLASSES), help="document classes to choose from"
    )
    pages.add_argument("--varied", action="store_true", help="with vectors, references and bits of code")
    pages.add_argument("--dpi", type=int, help="of all pages, which pack better then; any if not given")
    web = commands.add_parser("web", help="draw web pages whose formulas are known, in Chromium")
    web.add_argument("--modules", type=Path, help="folder that npm has filled with MathJax and fonts")
    for command in (pages, web):
        command.add_argument(
            "sources", nargs="+", type=Path, help="folders, files or archives of TeX sources"
        )
        command.add_argument("--formulas", nargs="*", type=Path, help="lists of other authors' formulas")
        command.add_argument("--into", type=Path, required=True, help="folder of the pages")
        command.add_argument("--count", type=int, default=3000, help="how many")
        command.add_argument("--seed", type=int, default=0)
    packing = commands.add_parser("pack", help="pack pages, to be carried to where is trained")
    packing.add_argument("pages", nargs="+", type=Path, help="folders of pages")
    packing.add_argument("--into", type=Path, required=True, help="folder of the packed pages")
    training = commands.add_parser("train", help="train the network")
    training.add_argument("pages", type=Path, help="folder of the packed pages")
    training.add_argument("--into", type=Path, required=True, help="folder of the run")
    training.add_argument("--minutes", type=float, default=60, help="how long")
    training.add_argument(
        "--whole", type=float, help="minutes of this call and all others that go on with it"
    )
    training.add_argument("--batch", type=int, default=4, help="crops of a step")
    training.add_argument("--rate", type=float, default=3e-3, help="of learning")
    training.add_argument("--device", default="cpu")
    training.add_argument("--workers", type=int, default=0, help="processes that unpack the pages")
    training.add_argument("--seed", type=int, default=0)
    exporting = commands.add_parser("export", help="write the ONNX model")
    exporting.add_argument("run", type=Path, help="folder of the run")
    exporting.add_argument("--into", type=Path, required=True, help="folder of the model")
    options = parser.parse_args()
    if options.command == "pages":
        made = make_pages(
            options.sources,
            classes=options.classes.split(","),
            seed=options.seed,
            dpi=options.dpi,
            varied=options.varied,
            others=read_strangers(options.formulas) if options.formulas else None,
        )
        write_pages(made, options.into, options.count)
    elif options.command == "web":
        others = read_strangers(options.formulas) if options.formulas else None
        with closing(
            make_web_pages(options.sources, seed=options.seed, modules=options.modules, others=others)
        ) as drawn:
            write_pages(drawn, options.into, options.count)
    elif options.command == "pack":
        print(f"{pack_pages(options.pages, options.into)} pages packed")
    elif options.command == "train":
        train(
            options.pages,
            options.into,
            minutes=options.minutes,
            batch=options.batch,
            rate=options.rate,
            device=options.device,
            workers=options.workers,
            seed=options.seed,
            whole_minutes=options.whole,
        )
    else:
        export(options.run, options.into)


if __name__ == "__main__":
    main()
