"""Reading an image: the exported networks against the torch eager loop, in one run.

    python -m benchmarks.read --preset pinpoint
    python -m benchmarks.read --compare 200 --preset strips --steps 12
    python -m benchmarks.read --repeat 10 --model MODEL --pictures a.png b.png

Random weights: the work is the same as with trained ones. Every formula is made to take as many steps as
given; all sides search with the same code, ten hypotheses a step and the image-constant work done once.
`--compare` reads so many images with torch and with ONNX and counts those whose tokens differ: in torch once
by the same search, once by a plain loop over single hypotheses. `--repeat` reads pictures so many times with
one thread and with four, and counts the different answers, attention included. `--hostile` reads so many
broken and malicious files (those of the tests), and says what became of them.

    python -m benchmarks.read --hostile 2000 --model MODEL
"""

import argparse
import contextlib
import hashlib
import json
import resource
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from i2l.config import ObjectiveConfig, TrainConfig
from i2l.errors import I2LError
from i2l.formulas.vocabulary import Vocabulary
from i2l.images.prepare import place_on_canvas
from i2l.inference.decoding import Backend, BeamOptions, Hypothesis, beam_search
from i2l.inference.export import export_model
from i2l.inference.model_folder import read_model_folder
from i2l.inference.onnx_backend import OnnxBackend
from i2l.inference.reader import Reader
from i2l.inference.torch_backend import TorchBackend
from i2l.model.checkpoint import save_checkpoint
from i2l.model.config import model_preset
from i2l.model.network import Network
from tests.images.hostile import hostile_file
from tests.inference.toy import log_softmax, plain_beam_search

VOCAB_SIZE = 500
SIZE_PX = (60, 500)  # a formula of about 60 tokens at 200 dpi


def make_checkpoint(folder: Path, preset: str) -> Network:
    """Write a checkpoint with random weights that never ends a formula by itself."""
    torch.manual_seed(0)
    config = model_preset(preset)
    model = config.build(vocab_size=VOCAB_SIZE)
    output = model.get_submodule(config.score_bias.split(".")[0])  # the part that scores the tokens
    with torch.no_grad():
        for parameter in output.parameters():
            parameter.mul_(4)
        model.get_parameter(config.score_bias)[Vocabulary.eos_id] = -100
    save_checkpoint(
        folder,
        step=0,
        weights=model.state_dict(),
        config={
            "model": config.to_dict(),
            "objective": ObjectiveConfig().to_dict(),
            "training": TrainConfig().to_dict(),
        },
        vocabulary=Vocabulary.from_formula_tokens([f"t{index}" for index in range(VOCAB_SIZE - 2)]),
        metrics={},
        training_state=None,
    )
    return model.eval()


def make_images(count: int, canvas_shape: tuple[int, int]) -> NDArray[np.uint8]:
    """Scribbles on the canvas."""
    random = np.random.default_rng(0)
    images = [
        np.where(random.random(SIZE_PX) < 0.2, random.integers(0, 200, SIZE_PX), 255).astype(np.uint8)
        for _ in range(count)
    ]
    return place_on_canvas(images, canvas_shape=canvas_shape)


def read(backend: Backend, pixels: NDArray[np.uint8], steps: int) -> list[list[Hypothesis]]:
    """Search, as `Reader` does."""
    options = BeamOptions(width=10, max_steps=steps)
    return beam_search(backend, backend.encode(pixels), arrays=backend.arrays, options=options)


def seconds(call: Callable[[NDArray[np.uint8]], object], images: NDArray[np.uint8]) -> float:
    """Give the median time for one image, after one to warm up."""
    call(images[:1])
    times = []
    for image in images:
        started = time.perf_counter()
        call(image[None])
        times.append(time.perf_counter() - started)
    return float(np.median(times))


def build(folder: Path, preset: str, threads: int) -> dict[str, Backend]:
    """Give each side by its name, torch first."""
    model = make_checkpoint(folder / "checkpoint", preset)
    backends: dict[str, Backend] = {"torch eager": TorchBackend(model)}
    for precision in ("float32", "int8", "int4"):
        result = export_model(folder / "checkpoint", folder / precision, precision=precision)
        print(f"{precision}: {result.size_bytes / 1e6:.0f} MB, off by {result.parity.logits:.0e} in logits")
        backends[f"ONNX {precision}"] = OnnxBackend(read_model_folder(folder / precision), threads=threads)
    return backends


def measure(
    images: int = 5, steps: int = 60, threads: int = 2, preset: str = "nopool"
) -> list[tuple[str, str, str]]:
    """Time each side; give rows for `make bench`."""
    torch.set_num_threads(threads)
    with tempfile.TemporaryDirectory() as folder:
        backends = build(Path(folder), preset, threads)
        pixels = make_images(images, model_preset(preset).canvas_shape)
        times = {
            name: seconds(lambda part, side=side: read(side, part, steps), pixels)
            for name, side in backends.items()
        }
    eager = times.pop("torch eager")
    what = f"{preset.upper()}, beam 10, {steps} tokens, {threads} threads: torch eager {eager:.2f} s an image"
    return [
        (f"{what}, {name} {time_s:.2f} s", f"{eager / time_s:.1f} times faster", "3 times (int8)")
        for name, time_s in times.items()
    ]


def main() -> None:
    """Time, or compare."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--preset", default="nopool", help="of the network")
    parser.add_argument("--images", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--compare", type=int, default=0, help="read so many images by torch and by ONNX")
    parser.add_argument("--repeat", type=int, default=0, help="read the pictures so often")
    parser.add_argument("--hostile", type=int, default=0, help="read so many broken files")
    parser.add_argument("--model", type=Path, help="to repeat with, or to read broken files with")
    parser.add_argument("--pictures", type=Path, nargs="+", default=[], help="to repeat")
    options = parser.parse_args()
    if options.repeat:
        repeat(options.model, options.pictures, options.repeat)
        return
    if options.hostile:
        read_hostile(options.model, options.hostile)
        return
    if not options.compare:
        for row in measure(options.images, options.steps, options.threads, options.preset):
            print("  ".join(row))
        return
    torch.set_num_threads(options.threads)
    with tempfile.TemporaryDirectory() as folder:
        backends = build(Path(folder), options.preset, options.threads)
        images = make_images(options.compare, model_preset(options.preset).canvas_shape)
        compare(backends["torch eager"], backends["ONNX float32"], images, options.steps)


def compare(torch_side: Backend, onnx_side: Backend, images: NDArray[np.uint8], steps: int) -> None:
    """Count the images that are read differently."""
    others: list[list[tuple[list[int], float]]] = [[], []]
    ours = []
    for first in range(0, len(images), 8):
        part = images[first : first + 8]
        ours += [(best.token_ids, best.score) for (best,) in read(onnx_side, part, steps)]
        others[0] += [(best.token_ids, best.score) for (best,) in read(torch_side, part, steps)]
        others[1] += [plain_loop(torch_side, image, steps) for image in part]
    for name, theirs in zip(("the same search", "a plain loop"), others, strict=True):
        different = sum(a[0] != b[0] for a, b in zip(ours, theirs, strict=True))
        largest = max(abs(a[1] - b[1]) for a, b in zip(ours, theirs, strict=True))
        print(
            f"{len(images)} images against {name} in torch: {different} with other tokens, "
            f"scores differ by at most {largest:.1e}"
        )


def plain_loop(backend: Backend, image: NDArray[np.uint8], steps: int) -> tuple[list[int], float]:
    """Read one image with torch, one hypothesis at a time."""
    memory = backend.encode(image[None])

    def step(state: object, token: int) -> tuple[NDArray[np.float64], object]:
        logits, new_state, _ = backend.step(memory, state, torch.tensor([token]))
        return log_softmax(logits[0].numpy()), new_state

    tokens, _, score = plain_beam_search(step, backend.start(memory), width=10, max_steps=steps)[0]
    return tokens, score


def repeat(model: Path, pictures: list[Path], times: int) -> None:
    """Count the different answers to the same pictures; the time they took is no part of an answer."""
    for together in (False, True):
        answers = set()
        for threads in (1, 4):
            reader = Reader(model, threads=threads)
            for _ in range(times):
                readings = (
                    reader.read_many(pictures) if together else [reader.read(file) for file in pictures]
                )
                digest = hashlib.sha256()
                for reading in readings:
                    content = {**reading.to_dict(), "seconds": 0, "log_prob": reading.log_prob}
                    digest.update(json.dumps(content).encode() + reading.attention.tobytes())
                answers.add(digest.hexdigest())
        how = "together" if together else "one by one"
        print(f"{len(pictures)} pictures {how}, {times} times with 1 and 4 threads: {len(answers)} answer(s)")


def read_hostile(model: Path, count: int) -> None:
    """Read broken files on one thread; anything but a reading or one of our errors is a crash."""
    reader = Reader(model, threads=1)
    peak_mib = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024  # noqa: E731
    loaded_mib = peak_mib()
    readings, slowest_s = 0, 0.0
    for number in range(count):
        content = hostile_file(number)
        started = time.process_time()
        with contextlib.suppress(I2LError):
            reader.read(content)
            readings += 1
        slowest_s = max(slowest_s, time.process_time() - started)
    print(
        f"{count} files: {readings} readings, {count - readings} errors, slowest {slowest_s:.1f} s of the "
        f"processor, peak {peak_mib():.0f} MiB ({loaded_mib:.0f} MiB with the model loaded)"
    )


if __name__ == "__main__":
    main()
