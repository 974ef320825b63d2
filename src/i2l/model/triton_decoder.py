"""The functions of `i2l.model.decoder_kernels` as Triton kernels, for bfloat16 and float32.

What they save is launches: inside the loop every kernel is small, and a step's time is about the number of
kernels. Attention from the first layer's activations to the context is one kernel, one program per sample;
softmax and weighted sum share one pass over the features.
"""

# ruff: noqa: ANN001, ANN202, N803 - the arguments of kernels are pointers, numbers and constants
import torch
import triton
import triton.language as tl
from torch import Tensor

from i2l.model.decoder_kernels import AttentionWeights
from i2l.model.lstm import FORGET_BIAS

LSTM_BLOCK = 256
ATTENTION_WARPS = 16
ATTENTION_TILE = 16384  # numbers of one tile: 32 registers of each of 512 threads
SUM_ROWS = 8  # the sums over all steps: rows and columns of a tile, and how many tiles a program adds
SUM_COLUMNS = 128
SUM_REPEATS = 16


@triton.jit
def _tanh(x):
    return 2 * tl.sigmoid(2 * x) - 1


@triton.jit
def _attention_forward_kernel(
    sums, prepared, hidden, hidden_bias, score, score_bias, features,
    first, second, scores, normalizer, context, context_stride,
    U1: tl.constexpr, U2: tl.constexpr, L: tl.constexpr, D: tl.constexpr,
    U2P: tl.constexpr, DP: tl.constexpr, UB: tl.constexpr, LB: tl.constexpr,
):  # fmt: skip
    sample = tl.program_id(0)
    j = tl.arange(0, U2P)
    products = tl.zeros([UB, U2P], tl.float32)
    for start in tl.static_range(0, U1, UB):
        k = start + tl.arange(0, UB)
        share = tl.load(sums + sample * U1 + k, mask=k < U1, other=0).to(tl.float32)
        image = tl.load(prepared + sample * U1 + k, mask=k < U1, other=0).to(tl.float32)
        active = _tanh(share + image)
        tl.store(first + sample * U1 + k, active, mask=k < U1)
        there = (k < U1)[:, None] & (j < U2)[None, :]
        kernel = tl.load(hidden + k[:, None] * U2 + j[None, :], mask=there, other=0).to(tl.float32)
        products += kernel * active[:, None]
    bias = tl.load(hidden_bias + j, mask=j < U2, other=0).to(tl.float32)
    upper = _tanh(tl.sum(products, axis=0) + bias)
    tl.store(second + sample * U2 + j, upper, mask=j < U2)

    d = tl.arange(0, DP)
    weighted = tl.zeros([LB, DP], tl.float32)
    largest = -float("inf")
    total = 0.0
    for start in tl.static_range(0, L, LB):
        place = start + tl.arange(0, LB)
        there = (place < L)[:, None] & (j < U2)[None, :]
        kernel = tl.load(score + place[:, None] * U2 + j[None, :], mask=there, other=0).to(tl.float32)
        bias = tl.load(score_bias + place, mask=place < L, other=0).to(tl.float32)
        value = tl.sum(kernel * upper[None, :], axis=1) + bias
        tl.store(scores + sample * L + place, value, mask=place < L)
        value = tl.where(place < L, value, -float("inf"))
        larger = tl.maximum(largest, tl.max(value, axis=0))
        share = tl.exp(value - larger)
        scale = tl.exp(largest - larger)
        total = total * scale + tl.sum(share, axis=0)
        there = (place < L)[:, None] & (d < D)[None, :]
        vectors = tl.load(features + (sample * L + place[:, None]) * D + d[None, :], mask=there, other=0)
        weighted = weighted * scale + share[:, None] * vectors.to(tl.float32)
        largest = larger
    tl.store(context + sample * context_stride + d, tl.sum(weighted, axis=0) / total, mask=d < D)
    tl.store(normalizer + sample, largest + tl.log(total))


@triton.jit
def _attention_backward_kernel(
    grad, grad_stride, grad_output, grad_attention, hidden, score, features,
    context, context_stride, first, second, scores, normalizer,
    out_context, out_scores, out_second, out_first,
    U1: tl.constexpr, U2: tl.constexpr, L: tl.constexpr, D: tl.constexpr,
    U2P: tl.constexpr, LP: tl.constexpr, DP: tl.constexpr, UB: tl.constexpr, LB: tl.constexpr,
    PENALTY: tl.constexpr,
):  # fmt: skip
    sample = tl.program_id(0)
    d = tl.arange(0, DP)
    by_context = tl.load(grad + sample * grad_stride + d, mask=d < D, other=0).to(tl.float32)
    by_context += tl.load(grad_output + sample * D + d, mask=d < D, other=0).to(tl.float32)
    tl.store(out_context + sample * D + d, by_context, mask=d < D)
    seen = tl.load(context + sample * context_stride + d, mask=d < D, other=0).to(tl.float32)
    mean = tl.sum(seen * by_context, axis=0)
    log_total = tl.load(normalizer + sample)
    if PENALTY:
        place = tl.arange(0, LP)
        value = tl.load(scores + sample * L + place, mask=place < L, other=-float("inf"))
        by_attention = tl.load(grad_attention + sample * L + place, mask=place < L, other=0).to(tl.float32)
        mean += tl.sum(tl.exp(value - log_total) * by_attention, axis=0)

    j = tl.arange(0, U2P)
    products = tl.zeros([LB, U2P], tl.float32)
    for start in tl.static_range(0, L, LB):
        place = start + tl.arange(0, LB)
        there = (place < L)[:, None] & (d < D)[None, :]
        vectors = tl.load(features + (sample * L + place[:, None]) * D + d[None, :], mask=there, other=0)
        by_location = tl.sum(vectors.to(tl.float32) * by_context[None, :], axis=1)
        if PENALTY:
            by_location += tl.load(grad_attention + sample * L + place, mask=place < L, other=0)
        value = tl.load(scores + sample * L + place, mask=place < L, other=-float("inf"))
        by_score = tl.exp(value - log_total) * (by_location - mean)
        tl.store(out_scores + sample * L + place, by_score, mask=place < L)
        there = (place < L)[:, None] & (j < U2)[None, :]
        kernel = tl.load(score + place[:, None] * U2 + j[None, :], mask=there, other=0).to(tl.float32)
        products += by_score[:, None] * kernel
    upper = tl.load(second + sample * U2 + j, mask=j < U2, other=0).to(tl.float32)
    by_second = tl.sum(products, axis=0) * (1 - upper * upper)
    tl.store(out_second + sample * U2 + j, by_second, mask=j < U2)
    for start in tl.static_range(0, U1, UB):
        k = start + tl.arange(0, UB)
        there = (k < U1)[:, None] & (j < U2)[None, :]
        kernel = tl.load(hidden + k[:, None] * U2 + j[None, :], mask=there, other=0).to(tl.float32)
        active = tl.load(first + sample * U1 + k, mask=k < U1, other=0).to(tl.float32)
        by_first = tl.sum(kernel * by_second[None, :], axis=1) * (1 - active * active)
        tl.store(out_first + sample * U1 + k, by_first, mask=k < U1)


@triton.jit
def _gates(sums, bias, peepholes, cell, sample, unit, known, N, FORGET: tl.constexpr, CLIP: tl.constexpr):
    place = sums + sample * 4 * N + unit
    old = tl.load(cell + sample * N + unit, mask=known, other=0)
    input_sum = tl.load(place, mask=known, other=0).to(tl.float32)
    input_sum += tl.load(bias + unit, mask=known, other=0)
    input_sum += tl.load(peepholes + unit, mask=known, other=0) * old
    candidate_sum = tl.load(place + N, mask=known, other=0).to(tl.float32)
    candidate_sum += tl.load(bias + N + unit, mask=known, other=0)
    forget_sum = tl.load(place + 2 * N, mask=known, other=0).to(tl.float32)
    forget_sum += tl.load(bias + 2 * N + unit, mask=known, other=0)
    forget_sum += tl.load(peepholes + N + unit, mask=known, other=0) * old + FORGET
    input_gate = tl.sigmoid(input_sum)
    candidate = _tanh(candidate_sum)
    forget_gate = tl.sigmoid(forget_sum)
    free = forget_gate * old + input_gate * candidate
    new = free
    if CLIP is not None:
        new = tl.minimum(tl.maximum(free, -CLIP), CLIP)
    output_peephole = tl.load(peepholes + 2 * N + unit, mask=known, other=0)
    output_sum = tl.load(place + 3 * N, mask=known, other=0).to(tl.float32)
    output_sum += tl.load(bias + 3 * N + unit, mask=known, other=0)
    output_gate = tl.sigmoid(output_sum + output_peephole * new)
    return old, input_gate, candidate, forget_gate, output_gate, free, new, output_peephole


@triton.jit
def _lstm_forward_kernel(
    sums, bias, peepholes, cell, out_cell, hidden, hidden_stride, upward, upward_stride, N,
    BLOCK: tl.constexpr, FORGET: tl.constexpr, CLIP: tl.constexpr, UPWARD: tl.constexpr,
):  # fmt: skip
    sample = tl.program_id(0)
    unit = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    known = unit < N
    _, _, _, _, output_gate, _, new, _ = _gates(
        sums, bias, peepholes, cell, sample, unit, known, N, FORGET, CLIP
    )
    value = output_gate * _tanh(new)
    tl.store(out_cell + sample * N + unit, new, mask=known)
    tl.store(hidden + sample * hidden_stride + unit, value, mask=known)
    if UPWARD:
        tl.store(upward + sample * upward_stride + unit, value, mask=known)


@triton.jit
def _lstm_backward_kernel(
    above, above_stride, recurrent, recurrent_stride, grad_cell, sums, bias, peepholes, cell, out_sums, N,
    BLOCK: tl.constexpr, FORGET: tl.constexpr, CLIP: tl.constexpr, RECURRENT: tl.constexpr,
):  # fmt: skip
    sample = tl.program_id(0)
    unit = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    known = unit < N
    old, input_gate, candidate, forget_gate, output_gate, free, new, output_peephole = _gates(
        sums, bias, peepholes, cell, sample, unit, known, N, FORGET, CLIP
    )
    by_hidden = tl.load(above + sample * above_stride + unit, mask=known, other=0).to(tl.float32)
    if RECURRENT:
        place = recurrent + sample * recurrent_stride + unit
        by_hidden += tl.load(place, mask=known, other=0).to(tl.float32)
    active = _tanh(new)
    by_output = by_hidden * active * output_gate * (1 - output_gate)
    grad = tl.load(grad_cell + sample * N + unit, mask=known, other=0)
    grad += by_hidden * output_gate * (1 - active * active) + by_output * output_peephole
    if CLIP is not None:
        grad = tl.where(tl.abs(free) <= CLIP, grad, 0.0)
    by_input = grad * candidate * input_gate * (1 - input_gate)
    by_candidate = grad * input_gate * (1 - candidate * candidate)
    by_forget = grad * old * forget_gate * (1 - forget_gate)
    by_old = grad * forget_gate + by_input * tl.load(peepholes + unit, mask=known, other=0)
    by_old += by_forget * tl.load(peepholes + N + unit, mask=known, other=0)
    tl.store(grad_cell + sample * N + unit, by_old, mask=known)
    place = out_sums + sample * 4 * N + unit
    tl.store(place, by_input, mask=known)
    tl.store(place + N, by_candidate, mask=known)
    tl.store(place + 2 * N, by_forget, mask=known)
    tl.store(place + 3 * N, by_output, mask=known)


@triton.jit(do_not_specialize=["rows"])
def _lstm_sums_backward_kernel(
    grad_sums, cells, partial, rows, batch, N,
    RB: tl.constexpr, NB: tl.constexpr, REPEATS: tl.constexpr,
):  # fmt: skip
    unit = tl.program_id(0) * NB + tl.arange(0, NB)
    input_bias = tl.zeros([RB, NB], tl.float32)
    candidate_bias = tl.zeros([RB, NB], tl.float32)
    forget_bias = tl.zeros([RB, NB], tl.float32)
    output_bias = tl.zeros([RB, NB], tl.float32)
    input_peephole = tl.zeros([RB, NB], tl.float32)
    forget_peephole = tl.zeros([RB, NB], tl.float32)
    output_peephole = tl.zeros([RB, NB], tl.float32)
    for repeat in range(REPEATS):
        row = (tl.program_id(1).to(tl.int64) * REPEATS + repeat) * RB + tl.arange(0, RB)
        known = (row < rows)[:, None] & (unit < N)[None, :]
        place = grad_sums + (row * 4 * N)[:, None] + unit[None, :]
        state = cells + (row * N)[:, None] + unit[None, :]
        old = tl.load(state, mask=known, other=0)
        new = tl.load(state + batch * N, mask=known, other=0)
        by_input = tl.load(place, mask=known, other=0).to(tl.float32)
        by_forget = tl.load(place + 2 * N, mask=known, other=0).to(tl.float32)
        by_output = tl.load(place + 3 * N, mask=known, other=0).to(tl.float32)
        input_bias += by_input
        candidate_bias += tl.load(place + N, mask=known, other=0).to(tl.float32)
        forget_bias += by_forget
        output_bias += by_output
        input_peephole += by_input * old
        forget_peephole += by_forget * old
        output_peephole += by_output * new
    out = partial + tl.program_id(1) * 7 * N + unit
    tl.store(out, tl.sum(input_bias, axis=0), mask=unit < N)
    tl.store(out + N, tl.sum(candidate_bias, axis=0), mask=unit < N)
    tl.store(out + 2 * N, tl.sum(forget_bias, axis=0), mask=unit < N)
    tl.store(out + 3 * N, tl.sum(output_bias, axis=0), mask=unit < N)
    tl.store(out + 4 * N, tl.sum(input_peephole, axis=0), mask=unit < N)
    tl.store(out + 5 * N, tl.sum(forget_peephole, axis=0), mask=unit < N)
    tl.store(out + 6 * N, tl.sum(output_peephole, axis=0), mask=unit < N)


def _attention_sizes(weights: AttentionWeights, features: Tensor) -> dict[str, int]:
    first_units, second_units = weights.hidden.shape
    _, locations, feature_units = features.shape
    padded_units, padded_features = (
        triton.next_power_of_2(second_units),
        triton.next_power_of_2(feature_units),
    )
    return {
        "U1": first_units,
        "U2": second_units,
        "L": locations,
        "D": feature_units,
        "U2P": padded_units,
        "DP": padded_features,
        "UB": min(triton.next_power_of_2(first_units), max(ATTENTION_TILE // padded_units, 1)),
        "LB": min(triton.next_power_of_2(locations), max(ATTENTION_TILE // padded_features, 1)),
    }


def attention_forward(
    sums: Tensor,
    prepared: Tensor,
    weights: AttentionWeights,
    features: Tensor,
    out_first: Tensor,
    out_second: Tensor,
    out_scores: Tensor,
    out_normalizer: Tensor,
    out_context: Tensor,
) -> None:
    """See `decoder_kernels.attention_forward`."""
    _attention_forward_kernel[(len(sums),)](
        sums, prepared, weights.hidden, weights.hidden_bias, weights.score, weights.score_bias, features,
        out_first, out_second, out_scores, out_normalizer, out_context, out_context.stride(0),
        **_attention_sizes(weights, features), num_warps=ATTENTION_WARPS,
    )  # fmt: skip


def attention_backward(
    grad_context: Tensor,
    grad_context_output: Tensor,
    grad_attention: Tensor | None,
    weights: AttentionWeights,
    features: Tensor,
    trace: tuple[Tensor, Tensor, Tensor, Tensor, Tensor],
    out: tuple[Tensor, Tensor, Tensor, Tensor],
) -> None:
    """See `decoder_kernels.attention_backward`; the last two are its named arguments in order."""
    context, *rest = trace
    _attention_backward_kernel[(len(grad_context),)](
        grad_context, grad_context.stride(0), grad_context_output,
        context if grad_attention is None else grad_attention,
        weights.hidden, weights.score, features, context, context.stride(0), *rest, *out,
        **_attention_sizes(weights, features), LP=triton.next_power_of_2(features.shape[1]),
        PENALTY=grad_attention is not None, num_warps=ATTENTION_WARPS,
    )  # fmt: skip


def lstm_forward(
    sums: Tensor,
    bias: Tensor,
    peepholes: Tensor,
    cell: Tensor,
    clip: float | None,
    out_cell: Tensor,
    out_hidden: Tensor,
    out_upward: Tensor | None,
) -> None:
    """See `decoder_kernels.lstm_forward`."""
    batch, units = cell.shape
    upward = out_hidden if out_upward is None else out_upward
    _lstm_forward_kernel[(batch, triton.cdiv(units, LSTM_BLOCK))](
        sums, bias, peepholes, cell, out_cell, out_hidden, out_hidden.stride(0), upward, upward.stride(0),
        units, BLOCK=LSTM_BLOCK, FORGET=FORGET_BIAS, CLIP=clip, UPWARD=out_upward is not None,
    )  # fmt: skip


def lstm_backward(
    grad_above: Tensor,
    grad_recurrent: Tensor | None,
    grad_cell: Tensor,
    sums: Tensor,
    bias: Tensor,
    peepholes: Tensor,
    cell: Tensor,
    clip: float | None,
    out_sums: Tensor,
) -> None:
    """See `decoder_kernels.lstm_backward`."""
    batch, units = cell.shape
    recurrent = grad_above if grad_recurrent is None else grad_recurrent
    _lstm_backward_kernel[(batch, triton.cdiv(units, LSTM_BLOCK))](
        grad_above, grad_above.stride(0), recurrent, recurrent.stride(0), grad_cell, sums, bias, peepholes,
        cell, out_sums, units,
        BLOCK=LSTM_BLOCK, FORGET=FORGET_BIAS, CLIP=clip, RECURRENT=grad_recurrent is not None,
    )  # fmt: skip


def lstm_sums_backward(grad_sums: Tensor, cells: Tensor) -> tuple[Tensor, Tensor]:
    """See `decoder_kernels.lstm_sums_backward`."""
    steps, batch, _ = grad_sums.shape
    units = cells.shape[2]
    rows = steps * batch
    programs = triton.cdiv(rows, SUM_ROWS * SUM_REPEATS)
    partial = cells.new_empty(programs, 7, units, dtype=torch.float32)
    _lstm_sums_backward_kernel[(triton.cdiv(units, SUM_COLUMNS), programs)](
        grad_sums, cells, partial, rows, batch, units,
        RB=SUM_ROWS, NB=SUM_COLUMNS, REPEATS=SUM_REPEATS,
    )  # fmt: skip
    total = partial.sum(0)
    return total[:4].flatten(), total[4:]
