"""Judging a model in training by what it reads: decoding on the device, scores, pictures of attention.

Scores compare token ids with their targets, for thousands of formulas at once and on any device. Ids come
padded: (N, T) integers, each row ended by its first eos (0). Everything from there on is ignored.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import interpolate, pad

from i2l.formulas.vocabulary import Vocabulary
from i2l.model.network import Network
from i2l.training.batches import shuffled
from i2l.training.device_split import ResidentSplit
from i2l.training.distributed import Processes

EOS_ID = 0
MAX_ORDER = 4


@dataclass(frozen=True)
class ScoreResult:
    """How well a set of formulas was read."""

    bleu: float  # corpus BLEU-4 over ids, 0 .. 1, one reference, no smoothing
    edit_distance: float  # mean over formulas of Levenshtein distance / target length; may exceed 1
    exact_match: float  # share of formulas that are right token by token
    length_ratio: float  # mean over formulas of predicted length / target length
    num_formulas: int


def score_formulas(predicted: Tensor, target: Tensor) -> ScoreResult:
    """Compare predicted ids (N, P) with target ids (N, T)."""
    distances = edit_distances(predicted, target)
    target_lengths = formula_lengths(target).clamp(min=1)
    return ScoreResult(
        bleu=corpus_bleu(predicted, target),
        edit_distance=(distances / target_lengths).mean().item(),
        exact_match=(distances == 0).double().mean().item(),
        length_ratio=(formula_lengths(predicted) / target_lengths).mean().item(),
        num_formulas=len(target),
    )


def formula_lengths(token_ids: Tensor) -> Tensor:
    """Count the ids before the first eos of each row."""
    return (token_ids != EOS_ID).cumprod(dim=1).sum(dim=1)


def corpus_bleu(predicted: Tensor, target: Tensor) -> float:
    """Corpus BLEU-4 as multi-bleu and sacreBLEU define it, on ids."""
    ids, lengths = _stack(predicted, target)  # (2, N, W), (2, N)
    num_ids = int(ids.max()) + 1
    places = torch.arange(ids.shape[2], device=ids.device)
    # An n-gram of a formula gets one number: that of its first n-1 ids, joined with its last id.
    grams = torch.arange(ids.shape[1], device=ids.device)[:, None].expand(ids.shape).clone()
    log_precision = 0.0
    for order in range(1, MAX_ORDER + 1):
        whole = places + order <= lengths[..., None]
        joined = grams * num_ids + ids.roll(1 - order, dims=2)
        numbers, inverse = torch.unique(joined[whole], return_inverse=True)
        grams[whole] = inverse
        is_target = whole.nonzero()[:, 0]
        counts = torch.bincount(is_target * len(numbers) + inverse, minlength=2 * len(numbers)).view(2, -1)
        matched, total = int(counts.amin(dim=0).sum()), int(counts[0].sum())
        if matched == 0:
            return 0.0
        log_precision += math.log(matched / total) / MAX_ORDER
    predicted_length, target_length = lengths.sum(dim=1).tolist()
    return math.exp(log_precision + min(0.0, 1 - target_length / predicted_length))


def edit_distances(predicted: Tensor, target: Tensor) -> Tensor:
    """Levenshtein distance of each row pair, (N,).

    One pass over the predicted ids; within a row of the table, insertions are a running minimum, so all
    formulas and all target places advance together.
    """
    ids, lengths = _stack(predicted, target)
    (predicted, target), (predicted_lengths, target_lengths) = ids, lengths
    places = torch.arange(ids.shape[2] + 1, device=ids.device)
    row = places.expand(ids.shape[1], -1)  # distance from the first i predicted to the first j target ids
    distances: Tensor = target_lengths
    for done in range(1, int(predicted_lengths.max()) + 1):
        substituted = row[:, :-1] + (predicted[:, done - 1, None] != target)
        best = torch.minimum(row + 1, pad(substituted, (1, 0), value=ids.shape[2] + done))
        row = (best - places).cummin(dim=1).values + places
        here = row.gather(1, target_lengths[:, None])[:, 0]
        distances = torch.where(predicted_lengths == done, here, distances)
    return distances


def _stack(predicted: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    width = max(predicted.shape[1], target.shape[1], 1)
    ids = torch.stack([pad(part.long(), (0, width - part.shape[1])) for part in (predicted, target)])
    return ids, torch.stack([formula_lengths(part) for part in ids])


# (model, pixels (B, H, W), max_tokens) -> token ids (B, at most max_tokens), ended by eos or by the limit
Decode = Callable[[Network, Tensor, int], Tensor]
FINISHED_CHECK_EVERY = (
    16  # steps between looks at whether all formulas have ended; each look waits for the device
)
BATCH_SIZE = 256
SHUFFLE_SEED = 0  # which samples a limited validation reads does not depend on the run's seed


def greedy_decode(model: Network, pixels: Tensor, max_tokens: int) -> Tensor:
    """Take the likeliest token at every step until eos."""
    memory = model.encode(pixels)
    state = model.start(memory)
    token_ids = torch.full((len(pixels),), Vocabulary.bos_id, device=pixels.device)
    finished = torch.zeros(len(pixels), dtype=torch.bool, device=pixels.device)
    chosen = []
    for step in range(1, max_tokens + 1):
        logits, state, _ = model.step(memory, state, token_ids)
        logits[:, Vocabulary.bos_id] = -torch.inf
        token_ids = logits.argmax(dim=1).masked_fill(finished, Vocabulary.eos_id)
        finished = finished | (token_ids == Vocabulary.eos_id)
        chosen.append(token_ids)
        if step % FINISHED_CHECK_EVERY == 0 and bool(finished.all()):
            break
    return torch.stack(chosen, dim=1)


class Validator:
    """Reads (part of) a split with each decoder and scores the readings.

    In float32, whatever the training runs in: bfloat16 makes ties between likely tokens.
    """

    def __init__(
        self,
        data: ResidentSplit,
        *,
        decoders: Mapping[str, Decode],
        processes: Processes,
        max_tokens: int,
        num_samples: int = 0,
    ) -> None:
        """Choose the samples: the first ``num_samples`` of a fixed shuffle, or all if 0."""
        self.data = data
        self.indices = shuffled(len(data), seed=SHUFFLE_SEED, stream=0)[: num_samples or None]
        self._decoders = decoders
        self._processes = processes
        self._max_tokens = max_tokens

    def __call__(self, model: Network) -> dict[str, ScoreResult]:
        """Score the model's readings, by decoder; every process reads its share and gets all scores."""
        # Images of one width have formulas of about one length, so a batch ends together.
        ordered = self.indices[np.argsort(self.data.sizes[self.indices, 1], kind="stable")]
        shares = [ordered[rank :: self._processes.count] for rank in range(self._processes.count)]
        indices = torch.from_numpy(np.concatenate(shares)).to(self._processes.device)
        target, _ = self.data.targets(indices, num_tokens=int(self.data.lengths[self.indices].max()))
        results = {}
        for name, own in self._read(model, shares[self._processes.rank]).items():
            predicted = torch.cat([torch.from_numpy(part) for part in self._processes.gather(own)])
            results[name] = score_formulas(predicted.to(indices.device), target)
        return results

    @torch.no_grad()
    def _read(self, model: Network, share: NDArray[np.int64]) -> dict[str, NDArray[np.int32]]:
        shape = len(share), self._max_tokens
        readings = {name: np.full(shape, Vocabulary.eos_id, dtype=np.int32) for name in self._decoders}
        for first in range(0, len(share), BATCH_SIZE):
            indices = torch.from_numpy(share[first : first + BATCH_SIZE]).to(self._processes.device)
            pixels = self.data.canvases(indices)
            for name, decode in self._decoders.items():
                token_ids = decode(model, pixels, self._max_tokens)
                readings[name][first : first + len(indices), : token_ids.shape[1]] = token_ids.cpu()
        return readings


@torch.no_grad()
def attention_picture(
    model: Network, data: ResidentSplit, index: int, *, max_steps: int
) -> NDArray[np.uint8]:
    """Draw where the model looks for each of the first tokens it reads, one strip under the other.

    Each strip is the image, darkened where the attention of this step is below its maximum.
    """
    pixels = data.canvases(torch.tensor([index], device=next(model.parameters()).device))
    memory = model.encode(pixels)
    state = model.start(memory)
    token_ids = torch.full((1,), Vocabulary.bos_id, device=pixels.device)
    strips: list[Tensor] = []
    while len(strips) < max_steps and int(token_ids) != Vocabulary.eos_id:
        logits, state, attention = model.step(memory, state, token_ids)
        token_ids = logits.argmax(dim=1)
        light = interpolate(attention[None].float(), size=pixels.shape[1:], mode="nearest")[0]
        strips.append(pixels[0] * (0.2 + 0.8 * light[0] / light.max()))
    picture: NDArray[np.uint8] = torch.cat(strips).byte().cpu().numpy()
    return picture
