"""Tokens given back to the model, step by step: what it looked at and what else it considered at each.

Beam search keeps the attention of its winner. This computes it again from the printed tokens alone, so it
also works for a reading whose attention was not kept, and shows that attention belongs to what was printed.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from i2l.formulas.vocabulary import Vocabulary
from i2l.inference.attention_boxes import Attention
from i2l.inference.backends import Backend


@dataclass(frozen=True)
class Replay:
    """One reading, step by step, eos last."""

    log_probs: npt.NDArray[np.float32]  # of every token of the vocabulary, (T + 1, K)
    attention: Attention  # (T + 1, rows, columns)


def replay_tokens(
    backend: Backend, canvases: npt.NDArray[np.uint8], readings: Sequence[Sequence[int]]
) -> list[Replay]:
    """Feed readings back to the model.

    Args:
        backend: a model.
        canvases: the images on the model's canvas, (B, height, width).
        readings: the token ids of each, without eos.
    """
    arrays = backend.arrays
    memory = backend.encode(canvases)
    state = backend.start(memory)
    steps = max(len(reading) for reading in readings) + 1
    inputs = np.full((len(readings), steps), Vocabulary.eos_id, np.int64)
    inputs[:, 0] = Vocabulary.bos_id
    for row, reading in zip(inputs, readings, strict=True):
        row[1 : len(reading) + 1] = reading
    log_probs, attention = [], []
    for token_ids in inputs.T:
        logits, state, seen = backend.step(memory, state, arrays.integers(token_ids))
        log_probs.append(arrays.numpy(arrays.log_softmax(logits)))
        attention.append(arrays.numpy(seen))
    all_log_probs, all_attention = np.stack(log_probs, axis=1), np.stack(attention, axis=1)
    return [
        Replay(
            all_log_probs[row, : len(reading) + 1], all_attention[row, : len(reading) + 1].astype(np.float32)
        )
        for row, reading in enumerate(readings)
    ]


def find_alternatives(
    log_probs: npt.NDArray[np.float32], token_ids: Sequence[int], vocabulary: Vocabulary, *, count: int
) -> list[list[tuple[str, float]]]:
    """Give for each step the likeliest other tokens and their probabilities; bos is none.

    Args:
        log_probs: of a replay, (T, K).
        token_ids: the tokens that were read, as many as steps.
        vocabulary: of the model.
        count: how many others.
    """
    others = log_probs.astype(np.float64)
    others[:, Vocabulary.bos_id] = -np.inf
    others[np.arange(len(token_ids)), list(token_ids)] = -np.inf
    best = np.argsort(-others, axis=1, kind="stable")[:, :count]
    return [
        [(vocabulary.tokens[index], float(np.exp(row[index]))) for index in places if row[index] > -np.inf]
        for row, places in zip(others, best.tolist(), strict=True)
    ]
