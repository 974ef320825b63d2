"""Weights small enough to travel: a checkpoint packed in bfloat16 or int8, in parts of a given size.

    python -m i2l.model.transport pack RUN PACKED --precision int8
    python -m i2l.model.transport join PACKED CHECKPOINT

The parts joined are one safetensors file that carries config, vocabulary and metrics too, so a checkpoint
(without training state) can be made of it. Matrices come back rounded to bfloat16, or, with int8, off by at
most 1/254 of the largest weight of their row; vectors stay float32.
"""

import argparse
import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors.torch import load, save
from torch import Tensor

from i2l.files import atomic_write, find_damage, write_checksums
from i2l.model.checkpoint import CONFIG, METRICS, VOCABULARY, WEIGHTS, CheckpointError, read_checkpoint

MAX_PART_BYTES = 15 * 2**20
DIGEST_BYTES = hashlib.sha256().digest_size
SCALE = ".int8-scale"
TEXTS = (VOCABULARY, METRICS, CONFIG)  # the config last: with it the folder is a checkpoint


def pack_checkpoint(
    checkpoint: Path, packed: Path, *, precision: str = "bfloat16", max_part_bytes: int = MAX_PART_BYTES
) -> list[Path]:
    """Write a checkpoint (or the best one of a run) as small parts, and return their paths in order.

    Args:
        checkpoint: a checkpoint or run folder.
        packed: the folder to write.
        precision: "bfloat16" or "int8" (per row).
        max_part_bytes: no part is larger.
    """
    source = read_checkpoint(checkpoint)
    shrink = {"bfloat16": to_bfloat16, "int8": to_int8}[precision]
    texts = {name: (source.path / name).read_text(encoding="utf-8") for name in TEXTS}
    content = save(shrink(source.load_weights()), metadata=texts)
    content += hashlib.sha256(content).digest()
    parts: list[Path] = []
    for start in range(0, len(content), max_part_bytes):
        parts.append(packed / f"weights.part-{len(parts):03d}")
        with atomic_write(parts[-1], "wb") as file:
            file.write(content[start : start + max_part_bytes])
    write_checksums(packed)
    return parts


def join_checkpoint(packed: Path, checkpoint: Path) -> None:
    """Make a checkpoint folder, with float32 weights, of the parts that `pack_checkpoint` wrote.

    Raises:
        CheckpointError: if a part is missing or damaged.
    """
    parts = sorted(packed.glob("weights.part-*"))
    if damage := find_damage(packed, [part.name for part in parts]):
        raise CheckpointError(damage)
    joined = b"".join(part.read_bytes() for part in parts)
    content, digest = joined[:-DIGEST_BYTES], joined[-DIGEST_BYTES:]
    if hashlib.sha256(content).digest() != digest:
        raise CheckpointError(f"A part in {packed} is missing or damaged; copy all of them again.")
    header_bytes = int.from_bytes(content[:8], "little")
    texts = json.loads(content[8 : 8 + header_bytes])["__metadata__"]
    with atomic_write(checkpoint / WEIGHTS, "wb") as file:
        file.write(save(to_float32(load(content))))
    for name in TEXTS:
        with atomic_write(checkpoint / name) as file:
            file.write(texts[name])
    write_checksums(checkpoint)


def to_bfloat16(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Round matrices to bfloat16; vectors are few and stay."""
    return {
        name: weight.to(torch.bfloat16) if weight.ndim > 1 else weight for name, weight in weights.items()
    }


def to_int8(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Quantise each row of each matrix to int8 with its own scale; vectors stay."""
    packed = {}
    for name, weight in weights.items():
        if weight.ndim > 1:
            scale = weight.flatten(1).abs().amax(dim=1).clamp(min=1e-30) / 127
            packed[name + SCALE] = scale
            rows = weight / scale.view(-1, *[1] * (weight.ndim - 1))
            packed[name] = rows.round().to(torch.int8)
        else:
            packed[name] = weight
    return packed


def to_float32(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Undo `to_bfloat16` or `to_int8`, up to the rounding."""
    restored = {}
    for name, weight in weights.items():
        if name.endswith(SCALE):
            continue
        restored[name] = weight.float()
        if name + SCALE in weights:
            restored[name] *= weights[name + SCALE].view(-1, *[1] * (weight.ndim - 1))
    return restored


def main() -> None:
    """Pack or join from the command line."""
    parser = argparse.ArgumentParser(prog="python -m i2l.model.transport", description=__doc__.split("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    pack = commands.add_parser("pack", help="checkpoint or run folder -> small parts")
    pack.add_argument("source", type=Path)
    pack.add_argument("target", type=Path)
    pack.add_argument("--precision", choices=["bfloat16", "int8"], default="bfloat16")
    join = commands.add_parser("join", help="small parts -> checkpoint folder")
    join.add_argument("source", type=Path)
    join.add_argument("target", type=Path)
    options = parser.parse_args()
    if options.command == "join":
        join_checkpoint(options.source, options.target)
        print(options.target)
    else:
        for path in pack_checkpoint(options.source, options.target, precision=options.precision):
            print(f"{path}  {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
