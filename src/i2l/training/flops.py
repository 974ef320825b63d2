"""How much arithmetic a model asks for, to say how much of the device's peak a run uses."""

import torch
from torch.utils.flop_counter import FlopCounterMode

from i2l.config import ModelConfig
from i2l.model.build import build_network

# Dense bfloat16 peaks by the vendors' datasheets, by a part of the device's name.
PEAK_FLOPS = {"H200": 989e12, "H100": 989e12, "A100": 312e12, "L40S": 362e12, "RTX 4090": 165e12}
TRAINING_FACTOR = 3  # the backward pass has two products for each one of the forward pass


def training_flops(config: ModelConfig, *, vocab_size: int) -> tuple[float, float]:
    """Count the floating-point operations of training, per image and per step of the decoder.

    Counted on the plain model with the whole canvas; what a faster path leaves out still counts as done.
    """
    with torch.device("meta"):
        model = build_network(config, vocab_size=vocab_size)
    counts = []
    for num_tokens in (1, 2):
        pixels = torch.zeros((1, *config.canvas_shape), dtype=torch.uint8, device="meta")
        token_ids = torch.zeros((1, num_tokens), dtype=torch.long, device="meta")
        with FlopCounterMode(display=False) as counter, torch.no_grad():
            model(pixels, token_ids, torch.tensor([num_tokens], device="meta"))
        counts.append(TRAINING_FACTOR * counter.get_total_flops())
    per_token = counts[1] - counts[0]
    return counts[0] - per_token, per_token


def peak_flops(device: torch.device) -> float | None:
    """Give the peak of this device, or None if it is not known."""
    if device.type != "cuda":
        return None
    name = torch.cuda.get_device_name(device)
    return next((peak for part, peak in PEAK_FLOPS.items() if part in name), None)
