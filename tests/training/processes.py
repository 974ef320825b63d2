"""Processes that tests start: `killable OUT` trains a small run, `gradients OUT` saves gradients."""

import sys
from pathlib import Path

import torch

from i2l.training.distributed import Processes
from i2l.training.run import TrainOptions, train
from tests.training.conftest import make_dataset, make_trainer, small_config

KILLABLE = small_config(
    max_steps=40, log_every=1, checkpoint_every=4, ema_decay=0.9, learning_rate=1e-3, model={"dropout": 0.1}
)


def step_gradients(num_steps):
    """Take some steps; give the joined gradients of each, and the weights after them."""
    dataset, config = make_dataset(64), small_config(learning_rate=1e-3, clip_norm=1.0, seed=5)
    processes = Processes(device="cpu")
    _, trainer = make_trainer(dataset, config, processes)
    gradients = []
    for _ in range(num_steps):
        trainer.step()
        gradients.append(torch.cat([p.grad.flatten() for p in trainer.model.parameters()]).clone())
    weights = torch.cat([p.detach().flatten() for p in trainer.model.parameters()])
    rank = processes.rank
    processes.close()
    return rank, torch.stack(gradients), weights


if __name__ == "__main__":
    torch.set_num_threads(1)
    job, out = sys.argv[1], Path(sys.argv[2])
    if job == "killable":
        train(make_dataset(64), out=out, config=KILLABLE, options=TrainOptions(device="cpu"))
    else:
        rank, *tensors = step_gradients(3)
        torch.save(tensors, out / f"{rank}.pt")
