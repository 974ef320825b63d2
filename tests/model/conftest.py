import numpy as np
import torch

from i2l.model.calstm.config import CalstmConfig
from i2l.model.calstm.network import Recognizer

VOCAB_SIZE = 11


def small_config(**changes):
    settings = {
        "height_px": 64,
        "width_px": 96,
        "channels": (3, 4, 5, 6, 8),
        "attention_units": (12, 7),
        "embedding_units": 5,
        "lstm_units": 9,
        "init_units": 6,
        "output_units": 13,
    }
    return CalstmConfig(**(settings | changes))


def make_model(config, *, dtype=torch.float64, seed=0, scale=2.0):
    """A model with weights larger than at the start of training, so that no part of it is idle."""
    torch.manual_seed(seed)
    model = Recognizer(config, vocab_size=VOCAB_SIZE).to(dtype)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith("bias"):
                parameter.uniform_(-0.3, 0.3)
            else:
                parameter.mul_(scale)
    return model


def make_batch(config, *, batch=3, steps=6, seed=0):
    """Canvases with some ink, targets that end in eos, and their lengths."""
    generator = np.random.default_rng(seed)
    height, width = config.canvas_shape
    pixels = np.full((batch, height, width), 255, np.uint8)
    for image in pixels:
        rows, columns = generator.integers(8, height // 2), generator.integers(8, width // 2)
        top, left = (height - rows) // 2, (width - columns) // 2
        image[top : top + rows, left : left + columns] = generator.integers(0, 256, (rows, columns))
    lengths = generator.integers(2, steps + 1, batch)
    lengths[0] = steps
    token_ids = generator.integers(2, VOCAB_SIZE, (batch, steps))
    for row, length in zip(token_ids, lengths, strict=True):
        row[length - 1 :] = 0
    return torch.from_numpy(pixels), torch.from_numpy(token_ids), torch.from_numpy(lengths)
