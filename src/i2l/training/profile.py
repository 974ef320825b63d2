"""Where the time of a step goes: our own phases, and the operations that cost most.

A captured graph runs as one piece, so only the engines "plain" and "fast" show the phases inside it.
"""

import time

import torch
from torch.profiler import ProfilerActivity, profile

from i2l.training.trainer import Trainer

WARM_STEPS = 5
PROFILED_STEPS = 10
NUM_OPERATIONS = 20


def profile_steps(trainer: Trainer, *, device: torch.device) -> str:
    """Run some steps, and give tables of phases and operations. The trainer is used up."""
    for _ in range(WARM_STEPS):
        trainer.step()
    _wait(device)
    started_s = time.perf_counter()
    num_images = sum(len(trainer.step().indices) for _ in range(PROFILED_STEPS))
    _wait(device)
    seconds = time.perf_counter() - started_s
    activities = [ProfilerActivity.CPU] + [ProfilerActivity.CUDA] * (device.type == "cuda")
    with profile(activities=activities) as profiler:
        for _ in range(PROFILED_STEPS):
            trainer.step()
        _wait(device)
    events = profiler.key_averages()
    on_device = device.type == "cuda"
    lines = [
        f"{1000 * seconds / PROFILED_STEPS:.1f} ms a step, {num_images / seconds:,.0f} images/s "
        "(without the profiler); phases, with it, ms a step:"
    ]
    for event in events:
        if event.key.startswith("i2l: ") and event.device_type.name == "CPU":
            phase_us = event.device_time_total if on_device else event.cpu_time_total
            lines.append(f"  {event.key.removeprefix('i2l: '):<10} {phase_us / 1000 / PROFILED_STEPS:9.2f}")
    sort_by = "self_device_time_total" if on_device else "self_cpu_time_total"
    table = events.table(sort_by=sort_by, row_limit=NUM_OPERATIONS, max_name_column_width=60)
    return "\n".join([*lines, table])


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
