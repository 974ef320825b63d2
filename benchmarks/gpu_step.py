"""How fast a training step is: the plain model, the fast path, and the fast path as a CUDA graph.

    PYTHONPATH=src python benchmarks/gpu_step.py --preset nopool --batch 128

Images are noise, but sizes and lengths are those of real formulas (SAMPLES). The script first checks the
fast path against the plain one on the device, then measures forward, backward and optimiser; with graphs it
measures the most frequent shapes and weighs them by their share. About two minutes on an H200.
``--tiny --device cpu`` rehearses everything but the graphs.
"""

import argparse
import contextlib
import json
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from i2l.config import ObjectiveConfig
from i2l.model.calstm.config import CalstmConfig
from i2l.model.calstm.encoder import encode_windows
from i2l.model.calstm.network import Recognizer, fast_forward
from i2l.model.config import model_preset
from i2l.model.network import Window, assign_windows, centred_windows, gather_windows
from i2l.training.monitor import peak_flops, training_flops

# Tokens with eos, height and width in pixels of 96 formulas, evenly spaced over 670 of im2latex's validation
# set that were rendered in the paper's style (200 dpi) and fit its limits.
SAMPLES = """
15,34,165 19,81,215 20,39,239 21,39,215 22,33,218 23,34,268 24,38,231 26,34,273 27,39,167 27,38,383
28,38,285 29,81,296 30,35,332 31,72,269 31,74,497 32,76,453 33,40,345 34,40,318 34,39,455 35,61,307
36,42,212 36,53,331 37,40,355 38,47,278 39,74,168 40,40,277 41,89,289 41,34,606 42,42,547 43,97,399
43,61,510 44,74,439 44,36,546 45,32,427 46,68,438 46,81,668 47,38,456 48,34,309 48,34,442 49,78,236
49,81,446 50,35,407 51,79,433 52,39,261 52,68,457 52,38,558 53,81,477 54,87,367 54,78,531 55,81,493
56,82,516 57,69,475 57,69,609 58,61,545 59,82,622 60,49,313 60,79,633 62,61,484 63,74,443 64,74,537
64,31,898 66,73,533 67,42,526 68,97,510 69,44,431 69,74,657 70,76,762 72,41,438 73,39,393 74,81,445
75,81,554 75,74,846 76,82,657 78,79,552 79,69,765 81,80,572 82,40,678 83,68,834 85,101,685 86,88,788
88,91,626 89,94,774 90,105,640 92,74,779 94,44,801 95,46,857 98,82,666 99,87,788 101,75,752
105,74,866 108,74,913 111,38,690 118,96,807 126,81,968 136,40,969 144,121,583
"""
LENGTH_CLASSES = (29, 36, 42, 49, 56, 65, 76, 89, 106, 151)  # the paper's, with eos
TINY = {"height_px": 128, "width_px": 1088, "channels": (4, 4, 8, 8, 8), "lstm_units": 24, "init_units": 8}
OBJECTIVE = ObjectiveConfig()


@dataclass(frozen=True)
class Shape:
    """The fixed shape of a batch."""

    tokens: int
    window: Window


@dataclass(frozen=True)
class Batch:
    """Noise in the shape of formulas: images one after the other in one tensor, and their tokens."""

    storage: Tensor  # uint8
    offsets: Tensor  # (B,)
    sizes: Tensor  # (B, 2)
    token_ids: Tensor  # (B, T)
    lengths: Tensor  # (B,)

    def pixels(self, window: Window, config: CalstmConfig) -> Tensor:
        """The window's part of each canvas."""
        return gather_windows(
            self.storage, self.offsets, self.sizes, window=window, canvas_shape=config.canvas_shape
        )


def shape_counts(config: CalstmConfig, step: int) -> Counter[Shape]:
    """Count the samples by the shape that holds them."""
    rows = np.array([[int(part) for part in entry.split(",")] for entry in SAMPLES.split()])
    windows = centred_windows(
        area=(config.height_px, config.width_px),
        cell_px=config.cell_px,
        heights_px=config.window_heights_px,
        step=step,
    )
    chosen = assign_windows(rows[:, 1:], windows, canvas_shape=config.canvas_shape)
    tokens = [next(limit for limit in LENGTH_CLASSES if limit >= count) for count in rows[:, 0]]
    return Counter(Shape(t, windows[w]) for t, w in zip(tokens, chosen, strict=True))


def make_batch(shape: Shape, batch: int, vocab_size: int, device: torch.device) -> Batch:
    """Fill a shape: images of the window's size, and formulas up to its length."""
    generator = torch.Generator().manual_seed(0)
    size = torch.tensor([shape.window.height_px, shape.window.width_px])
    area = int(size.prod())
    storage = torch.randint(0, 256, (batch * area + 1,), generator=generator, dtype=torch.uint8)
    storage[-1] = 255
    lengths = torch.randint(max(shape.tokens - 8, 1), shape.tokens + 1, (batch,), generator=generator)
    token_ids = torch.randint(2, vocab_size, (batch, shape.tokens), generator=generator)
    token_ids[torch.arange(shape.tokens) >= (lengths - 1).unsqueeze(1)] = 0
    made = Batch(storage, torch.arange(batch) * area, size.repeat(batch, 1), token_ids, lengths)
    return Batch(*(part.to(device) for part in vars(made).values()))


class Runner:
    """A model, its gradients in fixed places, and the ways to run a step."""

    def __init__(self, config: CalstmConfig, vocab_size: int, device: torch.device) -> None:
        torch.manual_seed(0)
        self.config, self.vocab_size, self.device = config, vocab_size, device
        self.model = Recognizer(config, vocab_size=vocab_size).to(device)
        self.parameters = list(self.model.parameters())
        self.zero()
        self.optimizer = torch.optim.Adam(self.parameters, lr=1e-4, betas=(0.5, 0.9), fused=True)
        self.whole = Window(config.height_px, config.width_px, 0, 0)

    def zero(self) -> None:
        """Make room for the gradients, or clear it."""
        for parameter in self.parameters:
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
        torch._foreach_zero_([parameter.grad for parameter in self.parameters])

    def plain(self, batch: Batch, shape: Shape, dtype: torch.dtype) -> Tensor:
        """The gradients by the plain model, with autocast."""
        self.zero()
        pixels = torch.nn.functional.pad(batch.pixels(self.whole, self.config), (1, 1, 1, 1), value=255)
        with torch.autocast(self.device.type, dtype=dtype, enabled=dtype != torch.float32):
            output = self.model(pixels, batch.token_ids, batch.lengths)
        loss = self.model.loss(output, batch.token_ids, batch.lengths, objective=OBJECTIVE).total
        loss.backward()
        return output.logits.detach()

    def fast(self, batch: Batch, shape: Shape, dtype: torch.dtype) -> Tensor:
        """The gradients by the fast path."""
        self.zero()
        pixels = batch.pixels(shape.window, self.config)
        output = fast_forward(self.model, pixels, batch.token_ids, window=shape.window, dtype=dtype)
        loss = self.model.loss(output, batch.token_ids, batch.lengths, objective=OBJECTIVE).total
        loss.backward()
        return output.logits.detach()

    def parts(self, batch: Batch, shape: Shape, dtype: torch.dtype) -> dict[str, Callable[[], object]]:
        """Pieces of a step, for a table of where the time goes."""
        area = self.config.height_px, self.config.width_px

        def encode() -> Tensor:
            pixels = batch.pixels(shape.window, self.config)
            return encode_windows(self.model.encoder, pixels, window=shape.window, area=area, dtype=dtype)

        def encode_only() -> object:
            with torch.no_grad():
                return encode()

        def encode_backward() -> None:
            features = encode()
            features.backward(torch.ones_like(features))

        def forward_only() -> object:
            with torch.no_grad():
                pixels = batch.pixels(shape.window, self.config)
                output = fast_forward(self.model, pixels, batch.token_ids, window=shape.window, dtype=dtype)
                return self.model.loss(output, batch.token_ids, batch.lengths, objective=OBJECTIVE).total

        return {
            "gather": lambda: batch.pixels(shape.window, self.config),
            "gather + encoder": encode_only,
            "gather + encoder, both ways": encode_backward,
            "whole forward": forward_only,
            "zero + whole, both ways": lambda: self.fast(batch, shape, dtype),
        }


def synchronize(device: torch.device) -> None:
    """Wait for the device."""
    if device.type == "cuda":
        torch.cuda.synchronize()


def seconds_per_call(call: Callable[[], object], device: torch.device, repeats: int) -> float:
    """Time a call after one for warming up."""
    call()
    synchronize(device)
    started = time.perf_counter()
    for _ in range(repeats):
        call()
    synchronize(device)
    return (time.perf_counter() - started) / repeats


def capture(call: Callable[[], object], pool: object) -> torch.cuda.CUDAGraph:
    """Capture a call as a CUDA graph; it runs once before, so that everything is compiled and planned."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        call()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, pool=pool, stream=stream):
        call()
    return graph


def relative(found: list[Tensor], expected: list[Tensor]) -> float:
    """The largest difference of a parameter's gradient, relative to its norm."""
    pairs = zip(found, expected, strict=True)
    return max(((a - b).norm() / b.norm().clamp(min=1e-6)).item() for a, b in pairs)


def check(runner: Runner, dtype: torch.dtype) -> dict[str, float]:
    """Compare the fast path with the plain one in float32, and both in ``dtype`` with plain float32."""
    area = runner.config.height_px, runner.config.width_px
    windows = centred_windows(area=area, cell_px=32, heights_px=CalstmConfig.window_heights_px)
    shape = Shape(24, windows[8])
    batch = make_batch(shape, 8, runner.vocab_size, runner.device)
    found = {}
    for name, run, kind in (
        ("exact", runner.plain, torch.float32),
        ("fast", runner.fast, torch.float32),
        ("plain low", runner.plain, dtype),
        ("fast low", runner.fast, dtype),
    ):
        logits = run(batch, shape, kind).float()
        found[name] = logits, [parameter.grad.clone() for parameter in runner.parameters]
    exact_logits, exact_gradients = found.pop("exact")
    result = {}
    for name, (logits, gradients) in found.items():
        result[f"{name}: logits"] = (logits - exact_logits).abs().max().item()
        result[f"{name}: gradients"] = relative(gradients, exact_gradients)
    print("differences from plain float32:", {name: f"{value:.1e}" for name, value in result.items()})
    assert result["fast: logits"] < 1e-4, "the fast path differs from the plain one"
    # A near tie in a max-pool may fall either way in float32, and moves the gradients of the first layers.
    assert result["fast: gradients"] < 5e-3, "gradients of the fast path differ from the plain ones"
    assert result["fast low: logits"] < 2 * result["plain low: logits"] + 1e-2
    assert result["fast low: gradients"] < 2 * result["plain low: gradients"] + 1e-2
    return result


def measure_graphs(
    runner: Runner, counts: Counter[Shape], args: argparse.Namespace, dtype: torch.dtype
) -> tuple[float, int]:
    """Time a captured step of the most frequent shapes; give the mean over samples, and the share covered."""
    pool = torch.cuda.graph_pool_handle()
    total, covered = 0.0, 0
    for shape, count in counts.most_common(args.shapes):
        batch = make_batch(shape, args.batch, runner.vocab_size, runner.device)
        started = time.perf_counter()
        graph = capture(lambda shape=shape, batch=batch: runner.fast(batch, shape, dtype), pool)
        captured_s = time.perf_counter() - started

        def step(graph: torch.cuda.CUDAGraph = graph) -> None:
            graph.replay()
            runner.optimizer.step()

        step_s = seconds_per_call(step, runner.device, args.repeats)
        window = shape.window
        print(
            f"  {shape.tokens:3} tokens, {window.width_px:4} x {window.height_px:3} px, {count:2} of 96: "
            f"{1e3 * step_s:6.2f} ms, {args.batch / step_s:7,.0f} images/s (captured in {captured_s:.1f} s)",
            flush=True,
        )
        total, covered = total + count * step_s, covered + count
    return total / covered, covered


def measure_parts(runner: Runner, shape: Shape, args: argparse.Namespace, dtype: torch.dtype) -> None:
    """Print where the time of a step goes."""
    batch = make_batch(shape, args.batch, runner.vocab_size, runner.device)
    calls = runner.parts(batch, shape, dtype)
    if runner.device.type == "cuda":
        pool = torch.cuda.graph_pool_handle()
        calls = {name: capture(call, pool).replay for name, call in calls.items()}
    calls["optimizer"] = runner.optimizer.step
    print(f"parts of a step of {shape.tokens} tokens, {shape.window.width_px} x {shape.window.height_px} px:")
    for name, call in calls.items():
        print(f"  {name:28} {1e3 * seconds_per_call(call, runner.device, args.repeats):7.2f} ms", flush=True)


def profile(runner: Runner, shape: Shape, args: argparse.Namespace, dtype: torch.dtype) -> None:
    """Print the kernels that take most of a captured step."""
    batch = make_batch(shape, args.batch, runner.vocab_size, runner.device)
    graph = capture(lambda: runner.fast(batch, shape, dtype), torch.cuda.graph_pool_handle())
    graph.replay()
    torch.cuda.synchronize()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as recorded:
        graph.replay()
        runner.optimizer.step()
        torch.cuda.synchronize()
    rows = sorted(recorded.key_averages(), key=lambda row: -row.self_device_time_total)
    print("kernels of one step:   total us  calls  mean us")
    for row in rows[:45]:
        mean = row.self_device_time_total / max(row.count, 1)
        print(f"  {row.self_device_time_total:10,.0f} {row.count:6} {mean:8.1f}  {row.key[:120]}")


def parse() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--preset", default="nopool", choices=["nopool", "strips"])
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--vocab-size", type=int, default=500)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--dtype", default="bfloat16")
    parser.add_argument("--window-step", type=int, default=4, help="cells by which windows differ on a side")
    parser.add_argument("--shapes", type=int, default=12, help="how many of the most frequent to measure")
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--no-init", action="store_true", help="without the init model")
    parser.add_argument("--cudnn-benchmark", action="store_true", help="let cuDNN try all its algorithms")
    parser.add_argument("--profile", action="store_true", help="print the kernels of a step")
    parser.add_argument("--skip-plain", action="store_true")
    parser.add_argument("--tiny", action="store_true", help="a small network, to rehearse on a CPU")
    return parser.parse_args()


def main() -> int:
    """Check, measure, and print a line of JSON at the end."""
    args = parse()
    device, dtype = torch.device(args.device), getattr(torch, args.dtype)
    torch.backends.cudnn.benchmark = args.cudnn_benchmark
    config = replace(model_preset(args.preset), init_model=not args.no_init)
    if args.tiny:
        config = replace(config, **TINY)
        args.batch, args.repeats = min(args.batch, 4), 1
    counts = shape_counts(config, args.window_step)
    windows = sorted({shape.window for shape in counts})
    typical = Shape(65, next(w for w in windows if w.height_px > 64 and w.width_px > 500))
    runner = Runner(config, args.vocab_size, device)
    result = {"preset": args.preset, "batch": args.batch, **check(runner, dtype)}

    batch = make_batch(typical, args.batch, args.vocab_size, device)
    for name, run in (("plain", runner.plain), ("fast", runner.fast)):
        if name == "plain" and args.skip_plain:
            continue
        call = lambda run=run: (run(batch, typical, dtype), runner.optimizer.step())  # noqa: E731
        with contextlib.suppress(torch.cuda.OutOfMemoryError):
            step_s = seconds_per_call(call, device, max(args.repeats // 4, 1))
            result[f"{name} eager images/s"] = args.batch / step_s
            print(f"{name}, eager, 65 tokens: {1e3 * step_s:.1f} ms, {args.batch / step_s:,.0f} images/s")
    measure_parts(runner, typical, args, dtype)

    if device.type == "cuda":
        print(f"graphs: {len(counts)} shapes in all")
        mean_s, covered = measure_graphs(runner, counts, args, dtype)
        result["graph images/s"] = args.batch / mean_s
        result["share of samples covered"] = covered / sum(counts.values())
        result["memory GiB"] = torch.cuda.max_memory_allocated() / 2**30
        per_image, per_token = training_flops(config, vocab_size=args.vocab_size)
        tokens = np.mean([int(entry.split(",")[0]) for entry in SAMPLES.split()])
        flops = (per_image + per_token * tokens) * args.batch / mean_s
        result["TFLOP/s, counted on the whole canvas"] = flops / 1e12
        peak = peak_flops(device)
        result["model FLOP utilisation"] = flops / peak if peak else float("nan")
        if args.profile:
            profile(runner, typical, args, dtype)
    print(json.dumps(result))
    return 0


if __name__ == "__main__":
    sys.exit(main())
