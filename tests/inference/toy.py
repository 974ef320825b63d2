"""A tiny recurrent model on NumPy arrays or torch tensors, and plain searches to compare beam search with."""

import itertools
import math

import numpy as np
import torch

EOS, BOS = 0, 1


class ToyModel:
    """Logits depend on the image and on every token before; attention is the state, so it can be checked."""

    def __init__(self, *, vocab_size=5, units=4, seed=0, sharpness=1.5):
        random = np.random.default_rng(seed)
        self.vocab_size = vocab_size
        self.inputs = random.normal(size=(vocab_size, units)).astype(np.float32)
        self.recurrent = (0.6 * random.normal(size=(units, units))).astype(np.float32)  # forgets slowly
        self.outputs = (sharpness * random.normal(size=(units, vocab_size))).astype(np.float32)

    def memory(self, images):
        return {"features": images}

    def start(self, memory):
        return {"hidden": memory["features"] * 1}

    def step(self, memory, state, token_ids):
        features = memory["features"]
        repeats = len(token_ids) // len(features)
        inputs, recurrent, outputs = (
            torch.from_numpy(x) if isinstance(features, torch.Tensor) else x
            for x in (self.inputs, self.recurrent, self.outputs)
        )
        repeat = features.repeat_interleave if isinstance(features, torch.Tensor) else features.repeat
        total = state["hidden"] @ recurrent + inputs[token_ids] + 0.5 * repeat(repeats, 0)
        hidden = torch.tanh(total) if isinstance(total, torch.Tensor) else np.tanh(total)
        return hidden @ outputs, {"hidden": hidden}, hidden.reshape(len(hidden), 2, -1)


def log_softmax(logits):
    logits = np.asarray(logits, np.float64)
    shifted = logits - logits.max()
    return shifted - math.log(np.exp(shifted).sum())


def teacher_force(model, image, token_ids):
    """Log-probability and attention of each token of one sequence for one image."""
    memory = model.memory(image[None])
    state, last = model.start(memory), BOS
    log_probs, attention = [], []
    for token in token_ids:
        logits, state, look = model.step(memory, state, np.array([last]))
        log_probs.append(log_softmax(logits[0])[token])
        attention.append(look[0])
        last = token
    return np.array(log_probs), np.array(attention)


def penalty(length, alpha=1.0):
    return ((5 + length) / 6) ** alpha


def brute_force(model, image, *, max_steps, alpha=1.0):
    """Score every sequence that ends within the limit, or reaches it: best first."""
    words = [token for token in range(model.vocab_size) if token not in (EOS, BOS)]
    scored = []
    for length in range(max_steps + 1):
        for tokens in itertools.product(words, repeat=length):
            ended = (*tokens, EOS) if length < max_steps else tokens
            log_prob = teacher_force(model, image, ended)[0].sum()
            scored.append((log_prob / penalty(length, alpha), log_prob, list(tokens)))
    return sorted(scored, key=lambda entry: -entry[0])


def plain_beam_search(step, start, *, width, max_steps, alpha=1.0):
    """Search one image with Python lists and one hypothesis at a time, to the end: no early stop, no batch.

    Args:
        step: (state, token) -> log-probabilities (K,), state
        start: the state before the first token.
    """
    beam = [([], 0.0, False, start)]
    for _ in range(max_steps):
        candidates = []
        for tokens, log_prob, finished, state in beam:
            if finished:
                candidates.append((log_prob / penalty(len(tokens), alpha), tokens, log_prob, True, state))
                continue
            log_probs, new_state = step(state, tokens[-1] if tokens else BOS)
            for token in np.argsort(-log_probs)[: width + 2]:
                if token == BOS:
                    continue
                total = log_prob + float(log_probs[token])
                if token == EOS:
                    candidates.append((total / penalty(len(tokens), alpha), tokens, total, True, new_state))
                else:
                    grown = [*tokens, int(token)]
                    candidates.append((total / penalty(len(grown), alpha), grown, total, False, new_state))
        candidates.sort(key=lambda entry: -entry[0])
        beam = [entry[1:] for entry in candidates[:width]]
        if all(finished for _, _, finished, _ in beam):
            break
    return [(tokens, log_prob, log_prob / penalty(len(tokens), alpha)) for tokens, log_prob, _, _ in beam]
