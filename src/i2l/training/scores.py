"""Scores of token ids against their targets, for thousands of formulas at once and on any device.

Ids come padded: (N, T) integers, each row ended by its first eos (0). Everything from there on is ignored.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import pad

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
    """Give the number of ids before the first eos of each row."""
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
