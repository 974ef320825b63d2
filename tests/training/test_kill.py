"""Processes that die, and processes that work together."""

import os
import random
import signal
import socket
import subprocess
import sys
import time

import pytest
import torch

from i2l.model.checkpoint import last_checkpoint
from i2l.training.monitor import read_rows
from i2l.training.run import TrainOptions, train
from tests.training.conftest import make_dataset
from tests.training.processes import KILLABLE, step_gradients


def start(job, out, **environment):
    command = [sys.executable, "-m", "tests.training.processes", job, str(out)]
    return subprocess.Popen(command, env=os.environ | environment, stderr=subprocess.DEVNULL)


def last_step(run):
    return max([row["step"] for row in read_rows(run / "metrics.jsonl")], default=0)


@pytest.mark.slow
def test_killed_at_any_step_and_resumed_a_run_ends_bit_identical(tmp_path):
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    train(make_dataset(64), out=whole, config=KILLABLE, options=TrainOptions(device="cpu"))
    rng, kills = random.Random(0), 0
    for target in (3, 14, 29):
        process = start("killable", killed)
        while process.poll() is None and last_step(killed) < target:
            time.sleep(0.002)
        time.sleep(rng.uniform(0, 0.05))
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
            kills += 1
        process.wait()
    assert kills == 3
    assert start("killable", killed).wait() == 0
    first, second = last_checkpoint(whole), last_checkpoint(killed)
    assert first.name == second.name == "step-00000040"
    assert (first / "weights.safetensors").read_bytes() == (second / "weights.safetensors").read_bytes()
    states = [torch.load(path / "training.pt", weights_only=True) for path in (first, second)]
    for a, b in zip(*(state["own_weights"].values() for state in states), strict=True):
        assert torch.equal(a, b)
    losses = [
        [(row["step"], row["loss"]) for row in read_rows(run / "metrics.jsonl") if row["kind"] == "train"]
        for run in (whole, killed)
    ]
    assert losses[0] == losses[1]
    assert len(losses[0]) == 40


@pytest.mark.slow
def test_two_processes_give_the_gradients_of_one(tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    shared = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2"}
    processes = [start("gradients", tmp_path, RANK=rank, LOCAL_RANK=rank, **shared) for rank in ("0", "1")]
    _, gradients, weights = step_gradients(3)
    assert [process.wait() for process in processes] == [0, 0]
    joined, other = (torch.load(tmp_path / f"{rank}.pt") for rank in (0, 1))
    assert torch.equal(joined[0], other[0])  # both hold the same
    assert torch.equal(joined[1], other[1])
    assert gradients.abs().max() > 1e-3
    assert (joined[0] - gradients).abs().max() < 1e-6
    assert (joined[1] - weights).abs().max() < 1e-5
