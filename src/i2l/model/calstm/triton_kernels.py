"""The functions of `i2l.model.calstm.encoder` as Triton kernels, for bfloat16 and float32.

What they save is memory traffic: pooling, bias, tanh and the copy onto the background are one pass over a
convolution's output. The first layer, with one input channel, never writes its full-size output at all: it
reads bytes and writes pooled values. Gradients of biases and of the first kernel are summed per program and
then over programs, so they do not depend on the order in which programs run.

The functions of `i2l.model.calstm.unrolled` as Triton kernels, for bfloat16 and float32.

What they save is launches: inside the loop every kernel is small, and a step's time is about the number of
kernels. Attention from the first layer's activations to the context is one kernel, one program per sample;
softmax and weighted sum share one pass over the features.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from i2l.model.calstm.layers import FORGET_BIAS
from i2l.model.calstm.unrolled import AttentionWeights

# ruff: noqa: ANN001, ANN202, N803 - the arguments of kernels are pointers, numbers and constants

POSITIONS = 16  # of one tile
FIRST_POSITIONS = 32  # in the first layer, whose products want larger tiles
REPEATS = 16  # tiles of one program where it sums over them
# Numbers that change with the shape of a batch: a kernel specialised on them would be compiled anew for each.
GEOMETRY = [
    *("positions", "rows", "columns", "height", "width", "top", "left"),
    *("image_height", "image_width", "margin_top", "margin_left"),
]


@triton.jit
def _tanh(x):
    return 2 * tl.sigmoid(2 * x) - 1


@triton.jit
def _largest(best, pick, value, index: tl.constexpr):
    pick = tl.where(value > best, index, pick)
    return tl.maximum(best, value), pick


@triton.jit(do_not_specialize=GEOMETRY[:7])
def _pool_and_paste_kernel(
    raw, bias, background, grid, choice, positions, rows, columns, height, width, top, left,
    C: tl.constexpr, P: tl.constexpr, CB: tl.constexpr,
):  # fmt: skip
    position = tl.program_id(0).to(tl.int64) * P + tl.arange(0, P)
    channel = tl.program_id(1) * CB + tl.arange(0, CB)
    known = (position < positions)[:, None] & (channel < C)[None, :]
    column = position % columns
    row = (position // columns) % rows
    sample = position // (columns * rows)
    i, j = row - top, column - left
    inside = (i >= 0) & (i < height) & (j >= 0) & (j < width)
    pasted = inside[:, None] & known
    line = 2 * width * C
    corner = raw + (((sample * height + i) * 2 * line) + 2 * j * C)[:, None] + channel[None, :]
    best = tl.load(corner, mask=pasted, other=0).to(tl.float32)
    pick = tl.zeros([P, CB], tl.int32)
    best, pick = _largest(best, pick, tl.load(corner + C, mask=pasted, other=0).to(tl.float32), 1)
    best, pick = _largest(best, pick, tl.load(corner + line, mask=pasted, other=0).to(tl.float32), 2)
    best, pick = _largest(best, pick, tl.load(corner + line + C, mask=pasted, other=0).to(tl.float32), 3)
    value = _tanh(best + tl.load(bias + channel, mask=channel < C, other=0).to(tl.float32)[None, :])
    cell = ((row * columns + column) * C)[:, None] + channel[None, :]
    blank = tl.load(background + cell, mask=known & ~pasted, other=0).to(tl.float32)
    place = (position * C)[:, None] + channel[None, :]
    tl.store(grid + place, tl.where(pasted, value, blank), mask=known)
    place = (((sample * height + i) * width + j) * C)[:, None] + channel[None, :]
    tl.store(choice + place, pick.to(tl.uint8), mask=pasted)


@triton.jit(do_not_specialize=GEOMETRY[:7])
def _pool_and_paste_backward_kernel(
    grad, grid, choice, grad_raw, partial_bias, positions, rows, columns, height, width, top, left,
    C: tl.constexpr, P: tl.constexpr, CB: tl.constexpr, REPEATS: tl.constexpr,
):  # fmt: skip
    channel = tl.program_id(1) * CB + tl.arange(0, CB)
    total = tl.zeros([P, CB], tl.float32)
    for repeat in range(REPEATS):
        position = (tl.program_id(0).to(tl.int64) * REPEATS + repeat) * P + tl.arange(0, P)
        known = (position < positions)[:, None] & (channel < C)[None, :]
        j = position % width
        i = (position // width) % height
        sample = position // (width * height)
        place = (((sample * rows + i + top) * columns + j + left) * C)[:, None] + channel[None, :]
        value = tl.load(grid + place, mask=known, other=0).to(tl.float32)
        grad_sum = tl.load(grad + place, mask=known, other=0).to(tl.float32) * (1 - value * value)
        total += grad_sum
        pick = tl.load(choice + (position * C)[:, None] + channel[None, :], mask=known, other=0)
        line = 2 * width * C
        corner = grad_raw + (((sample * height + i) * 2 * line) + 2 * j * C)[:, None] + channel[None, :]
        tl.store(corner, tl.where(pick == 0, grad_sum, 0.0), mask=known)
        tl.store(corner + C, tl.where(pick == 1, grad_sum, 0.0), mask=known)
        tl.store(corner + line, tl.where(pick == 2, grad_sum, 0.0), mask=known)
        tl.store(corner + line + C, tl.where(pick == 3, grad_sum, 0.0), mask=known)
    tl.store(partial_bias + tl.program_id(0) * C + channel, tl.sum(total, axis=0), mask=channel < C)


@triton.jit
def _patches(pixels, sample, top, left, known, image_height, image_width, BIAS: tl.constexpr):
    """The 3x3 patches at one tile of positions, (P, 16): nine columns, then BIAS, then zeros.

    A pixel p becomes 2p - 255, which bfloat16 holds exactly; 510 times what `whiten` gives. White outside.
    """
    tap = tl.arange(0, 16)[None, :]
    y, x = top[:, None] + tap // 3, left[:, None] + tap % 3
    inside = known[:, None] & (y >= 0) & (y < image_height) & (x >= 0) & (x < image_width) & (tap < 9)
    place = (sample[:, None] * image_height + y) * image_width + x
    pixel = 2 * tl.load(pixels + place, mask=inside, other=255).to(tl.float32) - 255
    return tl.where(tap < 9, pixel, tl.where(tap == 9, BIAS, 0.0))


@triton.jit(do_not_specialize=GEOMETRY)
def _first_layer_kernel(
    pixels, kernel, bias, background, grid, choice, positions, rows, columns, height, width, top, left,
    image_height, image_width, margin_top, margin_left,
    C: tl.constexpr, P: tl.constexpr, CB: tl.constexpr,
):  # fmt: skip
    position = tl.program_id(0).to(tl.int64) * P + tl.arange(0, P)
    channel = tl.arange(0, CB)
    held = channel < C
    known = (position < positions)[:, None] & held[None, :]
    column = position % columns
    row = (position // columns) % rows
    sample = position // (columns * rows)
    i, j = row - top, column - left
    inside = (position < positions) & (i >= 0) & (i < height) & (j >= 0) & (j < width)
    tap = tl.arange(0, 16)
    used = (tap < 9)[:, None] & held[None, :]
    weight = tl.load(kernel + tap[:, None] * C + channel[None, :], mask=used, other=0)
    best = tl.full([P, CB], -float("inf"), tl.float32)
    pick = tl.zeros([P, CB], tl.int32)
    for corner in tl.static_range(4):
        y, x = 2 * i + corner // 2 - margin_top, 2 * j + corner % 2 - margin_left
        patch = _patches(pixels, sample, y, x, inside, image_height, image_width, 0.0)
        value = tl.dot(patch.to(weight.dtype), weight, input_precision="ieee") / 510
        best, pick = _largest(best, pick, value, corner)
    pasted = inside[:, None] & held[None, :]
    value = _tanh(best + tl.load(bias + channel, mask=held, other=0).to(tl.float32)[None, :])
    cell = ((row * columns + column) * C)[:, None] + channel[None, :]
    blank = tl.load(background + cell, mask=known & ~pasted, other=0).to(tl.float32)
    place = (position * C)[:, None] + channel[None, :]
    tl.store(grid + place, tl.where(pasted, value, blank), mask=known)
    place = (((sample * height + i) * width + j) * C)[:, None] + channel[None, :]
    tl.store(choice + place, pick.to(tl.uint8), mask=pasted)


@triton.jit(do_not_specialize=GEOMETRY)
def _first_layer_backward_kernel(
    grad, grid, choice, pixels, partial, positions, rows, columns, height, width, top, left,
    image_height, image_width, margin_top, margin_left,
    C: tl.constexpr, P: tl.constexpr, CB: tl.constexpr, REPEATS: tl.constexpr,
):  # fmt: skip
    """Rows 0 to 8 of the result are the kernel's, row 9 is the bias's; all 510 times too large."""
    channel = tl.arange(0, CB)
    held = channel < C
    total = tl.zeros([16, CB], tl.float32)
    for repeat in range(REPEATS):
        position = (tl.program_id(0).to(tl.int64) * REPEATS + repeat) * P + tl.arange(0, P)
        known = (position < positions)[:, None] & held[None, :]
        j = position % width
        i = (position // width) % height
        sample = position // (width * height)
        place = (((sample * rows + i + top) * columns + j + left) * C)[:, None] + channel[None, :]
        value = tl.load(grid + place, mask=known, other=0)
        slope = 1 - value.to(tl.float32) * value.to(tl.float32)
        grad_sum = tl.load(grad + place, mask=known, other=0).to(tl.float32) * slope
        pick = tl.load(choice + (position * C)[:, None] + channel[None, :], mask=known, other=0)
        for corner in tl.static_range(4):
            y, x = 2 * i + corner // 2 - margin_top, 2 * j + corner % 2 - margin_left
            real = position < positions
            patch = _patches(pixels, sample, y, x, real, image_height, image_width, 510.0)
            chosen = tl.where(pick == corner, grad_sum, 0.0)
            total += tl.dot(tl.trans(patch.to(value.dtype)), chosen.to(value.dtype), input_precision="ieee")
    tap = tl.arange(0, 16)[:, None]
    out = partial + (tl.program_id(0) * 16 + tap) * C + channel[None, :]
    tl.store(out, total, mask=held[None, :])


def _channel_block(channels: int) -> int:
    block: int = triton.next_power_of_2(channels)
    return min(128, block)


def pool_and_paste(
    raw: Tensor, bias: Tensor, background: Tensor, top: int, left: int
) -> tuple[Tensor, Tensor]:
    """See `encoder_kernels.pool_and_paste`."""
    batch, height, width, channels = raw.shape
    height, width = height // 2, width // 2
    rows, columns, _ = background.shape
    grid = raw.new_empty(batch, rows, columns, channels)
    choice = raw.new_empty(batch, height, width, channels, dtype=torch.uint8)
    positions, block = batch * rows * columns, _channel_block(channels)
    programs = triton.cdiv(positions, POSITIONS), triton.cdiv(channels, block)
    _pool_and_paste_kernel[programs](
        raw, bias, background.contiguous(), grid, choice, positions, rows, columns, height, width, top, left,
        C=channels, P=POSITIONS, CB=block,
    )  # fmt: skip
    return grid, choice


def pool_and_paste_backward(
    grad: Tensor, grid: Tensor, choice: Tensor, top: int, left: int
) -> tuple[Tensor, Tensor]:
    """See `encoder_kernels.pool_and_paste_backward`."""
    batch, height, width, channels = choice.shape
    _, rows, columns, _ = grid.shape
    grad_raw = grad.new_empty(batch, 2 * height, 2 * width, channels)
    positions, block = batch * height * width, _channel_block(channels)
    programs = triton.cdiv(positions, POSITIONS * REPEATS), triton.cdiv(channels, block)
    partial = grad.new_empty(programs[0], channels, dtype=torch.float32)
    _pool_and_paste_backward_kernel[programs](
        grad, grid, choice, grad_raw, partial, positions, rows, columns, height, width, top, left,
        C=channels, P=POSITIONS, CB=block, REPEATS=REPEATS,
    )  # fmt: skip
    return grad_raw, partial.sum(0)


def first_layer(
    pixels: Tensor,
    kernel: Tensor,
    bias: Tensor,
    background: Tensor,
    margins: tuple[int, int, int, int],
    top: int,
    left: int,
) -> tuple[Tensor, Tensor]:
    """See `encoder_kernels.first_layer`."""
    batch, image_height, image_width = pixels.shape
    height = (image_height + margins[2] + margins[3] - 2) // 2
    width = (image_width + margins[0] + margins[1] - 2) // 2
    rows, columns, channels = background.shape
    grid = kernel.new_empty(batch, rows, columns, channels)
    choice = kernel.new_empty(batch, height, width, channels, dtype=torch.uint8)
    positions = batch * rows * columns
    _first_layer_kernel[(triton.cdiv(positions, FIRST_POSITIONS),)](
        pixels.contiguous(), kernel.reshape(channels, 9).T.contiguous(), bias, background.contiguous(),
        grid, choice, positions, rows, columns, height, width, top, left,
        image_height, image_width, margins[2], margins[0],
        C=channels, P=FIRST_POSITIONS, CB=max(16, triton.next_power_of_2(channels)),
    )  # fmt: skip
    return grid, choice


def first_layer_backward(
    grad: Tensor,
    grid: Tensor,
    choice: Tensor,
    pixels: Tensor,
    margins: tuple[int, int, int, int],
    top: int,
    left: int,
) -> tuple[Tensor, Tensor]:
    """See `encoder_kernels.first_layer_backward`."""
    batch, height, width, channels = choice.shape
    _, rows, columns, _ = grid.shape
    positions = batch * height * width
    programs = triton.cdiv(positions, FIRST_POSITIONS * REPEATS)
    partial = grad.new_empty(programs, 16, channels, dtype=torch.float32)
    _first_layer_backward_kernel[(programs,)](
        grad, grid, choice, pixels.contiguous(), partial, positions, rows, columns, height, width, top, left,
        pixels.shape[1], pixels.shape[2], margins[2], margins[0],
        C=channels, P=FIRST_POSITIONS, CB=max(16, triton.next_power_of_2(channels)), REPEATS=REPEATS,
    )  # fmt: skip
    total = partial.sum(0) / 510  # (16, C)
    return total[:9].T.reshape(channels, 1, 3, 3), total[9]


# ruff: noqa: ANN001, ANN202, N803 - the arguments of kernels are pointers, numbers and constants


LSTM_BLOCK = 256
ATTENTION_WARPS = 16
ATTENTION_TILE = 16384  # numbers of one tile: 32 registers of each of 512 threads
SUM_ROWS = 8  # the sums over all steps: rows and columns of a tile, and how many tiles a program adds
SUM_COLUMNS = 128
SUM_REPEATS = 16


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
