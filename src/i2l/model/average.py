"""Weights between those of two checkpoints, of which one went on from the other.

    python -m i2l.model.average LATER EARLIER SHARE OUT

A run that goes on with other data forgets some of what it knew. SHARE of the later weights and the rest of
the earlier ones keep most of both. Tokens that only the later one has keep their weights.
"""

import shutil
import sys
from pathlib import Path

import torch
from torch import Tensor

from i2l.files import write_checksums
from i2l.model.checkpoint import WEIGHTS, CheckpointError, read_checkpoint


def average_weights(
    later: dict[str, Tensor], earlier: dict[str, Tensor], *, share: float
) -> dict[str, Tensor]:
    """Mix two sets of weights; rows that the earlier one lacks stay the later one's.

    Raises:
        CheckpointError: if they are not of the same network.
    """
    if later.keys() != earlier.keys():
        raise CheckpointError("The two checkpoints are of different networks.")
    mixed = {}
    for name, weight in later.items():
        old = earlier[name]
        if old.shape[1:] != weight.shape[1:] or len(old) > len(weight):
            raise CheckpointError(f"The two checkpoints have another shape of {name}.")
        both = share * weight[: len(old)] + (1 - share) * old
        mixed[name] = torch.cat([both, weight[len(old) :]])
    return mixed


def main() -> None:
    """Write the checkpoint between two others."""
    from safetensors.torch import save_file

    later, earlier = (read_checkpoint(Path(path)) for path in sys.argv[1:3])
    share, out = float(sys.argv[3]), Path(sys.argv[4])
    earlier.require_vocabulary(later.vocabulary, grown=True)
    weights = average_weights(later.load_weights(), earlier.load_weights(), share=share)
    shutil.copytree(later.path, out, ignore=shutil.ignore_patterns(WEIGHTS, "training.pt"))
    save_file(weights, out / WEIGHTS)
    write_checksums(out)


if __name__ == "__main__":
    main()
