"""One step of attention and of an LSTM layer, forward and backward: torch, or Triton on a CUDA device.

All functions write into tensors that the caller made (``out_*``), since they run once per word, and take the
products with large matrices as given. States and sums of many numbers are in the type of the cell states
(float32, or float64 in tests); what only feeds a product may be bfloat16. Each function has its counterpart
of the same name in `i2l.model.triton_decoder`.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from i2l.model.lstm import FORGET_BIAS


@dataclass(frozen=True)
class AttentionWeights:
    """The upper two layers of the attention MLP."""

    hidden: Tensor  # (U1, U2), transposed: both directions then read it row by row
    hidden_bias: Tensor  # (U2,)
    score: Tensor  # (L, U2)
    score_bias: Tensor  # (L,)


def attention_forward(
    sums: Tensor,
    prepared: Tensor,
    weights: AttentionWeights,
    features: Tensor,
    *,
    out_first: Tensor,
    out_second: Tensor,
    out_scores: Tensor,
    out_normalizer: Tensor,
    out_context: Tensor,
) -> None:
    """From the state's share of the first layer to the context.

    Args:
        sums: (B, U1), the top state times its kernel.
        prepared: (B, U1), the image's share, bias included.
        weights: of the upper layers.
        features: (B, L, D)
        out_first: (B, U1), activations of the first layer.
        out_second: (B, U2), of the second.
        out_scores: (B, L), before the softmax.
        out_normalizer: (B,), log of the sum of their exponentials: attention = exp(scores - normalizer).
        out_context: (B, D)
    """
    if sums.is_cuda:
        from i2l.model import triton_decoder

        return triton_decoder.attention_forward(
            sums, prepared, weights, features, out_first, out_second, out_scores, out_normalizer, out_context
        )
    wide = out_scores.dtype
    out_first.copy_(torch.tanh(sums.to(wide) + prepared.to(wide)))
    out_second.copy_(torch.tanh(out_first.to(wide) @ weights.hidden.to(wide) + weights.hidden_bias))
    out_scores.copy_(out_second.to(wide) @ weights.score.to(wide).T + weights.score_bias)
    out_normalizer.copy_(torch.logsumexp(out_scores, dim=1))
    attention = torch.exp(out_scores - out_normalizer.unsqueeze(1))
    out_context.copy_(torch.bmm(attention.unsqueeze(1), features.to(wide)).squeeze(1))
    return None


def attention_backward(
    grad_context: Tensor,
    grad_context_output: Tensor,
    grad_attention: Tensor | None,
    weights: AttentionWeights,
    features: Tensor,
    *,
    context: Tensor,
    first: Tensor,
    second: Tensor,
    scores: Tensor,
    normalizer: Tensor,
    out_context: Tensor,
    out_scores: Tensor,
    out_second: Tensor,
    out_first: Tensor,
) -> None:
    """From the gradients of the context to those of the sums of each layer.

    Args:
        grad_context: (B, D), by way of the LSTMs.
        grad_context_output: (B, D), by way of the output layer.
        grad_attention: (B, L), or None if attention was not used otherwise.
        weights: of the upper layers.
        features: (B, L, D)
        context: and the next four: what `attention_forward` gave.
        first: (B, U1)
        second: (B, U2)
        scores: (B, L)
        normalizer: (B,)
        out_context: (B, D), the sum of the context's gradients.
        out_scores: (B, L), gradient of the scores.
        out_second: (B, U2), gradient of the second layer's sums.
        out_first: (B, U1), gradient of the first layer's sums.
    """
    if grad_context.is_cuda:
        from i2l.model import triton_decoder

        return triton_decoder.attention_backward(
            grad_context,
            grad_context_output,
            grad_attention,
            weights,
            features,
            (context, first, second, scores, normalizer),
            (out_context, out_scores, out_second, out_first),
        )
    wide = scores.dtype
    grad = grad_context.to(wide) + grad_context_output.to(wide)
    out_context.copy_(grad)
    attention = torch.exp(scores - normalizer.unsqueeze(1))
    by_location = torch.bmm(features.to(wide), grad.unsqueeze(2)).squeeze(2)  # (B, L)
    # The mean of by_location under the attention is the product of context and gradient.
    mean = (context.to(wide) * grad).sum(1, keepdim=True)
    if grad_attention is not None:
        by_location = by_location + grad_attention
        mean = mean + (attention * grad_attention).sum(1, keepdim=True)
    grad_scores = attention * (by_location - mean)
    out_scores.copy_(grad_scores)
    grad_second = (grad_scores @ weights.score.to(wide)) * (1 - second.to(wide).square())
    out_second.copy_(grad_second)
    out_first.copy_((grad_second @ weights.hidden.to(wide).T) * (1 - first.to(wide).square()))
    return None


def _gates(
    sums: Tensor, bias: Tensor, peepholes: Tensor, cell: Tensor, clip: float | None
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    input_sum, candidate, forget_sum, output_sum = (sums.to(cell.dtype) + bias).chunk(4, dim=1)
    input_gate = torch.sigmoid(input_sum + peepholes[0] * cell)
    candidate = torch.tanh(candidate)
    forget_gate = torch.sigmoid(forget_sum + peepholes[1] * cell + FORGET_BIAS)
    free_cell = forget_gate * cell + input_gate * candidate
    new_cell = free_cell if clip is None else free_cell.clamp(-clip, clip)
    output_gate = torch.sigmoid(output_sum + peepholes[2] * new_cell)
    return input_gate, candidate, forget_gate, output_gate, free_cell, new_cell


def lstm_forward(
    sums: Tensor,
    bias: Tensor,
    peepholes: Tensor,
    cell: Tensor,
    clip: float | None,
    *,
    out_cell: Tensor,
    out_hidden: Tensor,
    out_upward: Tensor | None,
) -> None:
    """From the products of a layer's inputs with its kernel to its new state.

    Args:
        sums: (B, 4n), gates in the order input, cell, forget, output.
        bias: (4n,)
        peepholes: (3, n)
        cell: (B, n), the old cell state.
        clip: limit of the new cell state.
        out_cell: (B, n)
        out_hidden: (B, n)
        out_upward: (B, n), where the layer above reads the hidden state; None for the top layer.
    """
    if sums.is_cuda:
        from i2l.model import triton_decoder

        return triton_decoder.lstm_forward(
            sums, bias, peepholes, cell, clip, out_cell, out_hidden, out_upward
        )
    *_, output_gate, _, new_cell = _gates(sums, bias, peepholes, cell, clip)
    out_cell.copy_(new_cell)
    out_hidden.copy_(output_gate * torch.tanh(new_cell))
    if out_upward is not None:
        out_upward.copy_(out_hidden)
    return None


def lstm_backward(
    grad_above: Tensor,
    grad_recurrent: Tensor | None,
    grad_cell: Tensor,
    sums: Tensor,
    bias: Tensor,
    peepholes: Tensor,
    cell: Tensor,
    clip: float | None,
    *,
    out_sums: Tensor,
) -> None:
    """From the gradients of a layer's new state to those of its gates and old cell state.

    The gates are computed anew from their sums: near 0 and 1 a gate kept in bfloat16 would be too coarse.

    Args:
        grad_above: (B, n), gradient of the hidden state by way of what reads it at this step.
        grad_recurrent: (B, n), by way of the next step; None at the last.
        grad_cell: (B, n), gradient of the new cell state; overwritten by that of the old one.
        sums: (B, 4n), as are the next four: what `lstm_forward` got.
        bias: (4n,)
        peepholes: (3, n)
        cell: (B, n)
        clip: limit of the new cell state.
        out_sums: (B, 4n)
    """
    if sums.is_cuda:
        from i2l.model import triton_decoder

        return triton_decoder.lstm_backward(
            grad_above, grad_recurrent, grad_cell, sums, bias, peepholes, cell, clip, out_sums
        )
    input_gate, candidate, forget_gate, output_gate, free_cell, new_cell = _gates(
        sums, bias, peepholes, cell, clip
    )
    grad_hidden = grad_above.to(cell.dtype)
    if grad_recurrent is not None:
        grad_hidden = grad_hidden + grad_recurrent.to(cell.dtype)
    active = torch.tanh(new_cell)
    grad_output = grad_hidden * active * output_gate * (1 - output_gate)
    grad = grad_cell + grad_hidden * output_gate * (1 - active.square()) + grad_output * peepholes[2]
    if clip is not None:
        grad = grad * (free_cell.abs() <= clip)
    grad_input = grad * candidate * input_gate * (1 - input_gate)
    grad_candidate = grad * input_gate * (1 - candidate.square())
    grad_forget = grad * cell * forget_gate * (1 - forget_gate)
    grad_cell.copy_(grad * forget_gate + grad_input * peepholes[0] + grad_forget * peepholes[1])
    out_sums.copy_(torch.cat([grad_input, grad_candidate, grad_forget, grad_output], dim=1))
    return None


def lstm_sums_backward(grad_sums: Tensor, cells: Tensor) -> tuple[Tensor, Tensor]:
    """Give the gradients of bias (4n,) and peepholes (3, n), over all steps at once.

    Args:
        grad_sums: (T, B, 4n)
        cells: (T + 1, B, n), the cell states from before the first step to after the last.
    """
    if grad_sums.is_cuda:
        from i2l.model import triton_decoder

        return triton_decoder.lstm_sums_backward(grad_sums, cells)
    grad = grad_sums.to(cells.dtype)
    grad_input, _, grad_forget, grad_output = grad.chunk(4, dim=2)
    old, new = cells[:-1], cells[1:]
    peepholes = [(grad_input * old), (grad_forget * old), (grad_output * new)]
    return grad.sum((0, 1)), torch.stack([product.sum((0, 1)) for product in peepholes])
