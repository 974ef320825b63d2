"""The functions of `i2l.model.encoder_kernels` as Triton kernels, for bfloat16 and float32.

What they save is memory traffic: pooling, bias, tanh and the copy onto the background are one pass over a
convolution's output. The first layer, with one input channel, never writes its full-size output at all: it
reads bytes and writes pooled values. Gradients of biases and of the first kernel are summed per program and
then over programs, so they do not depend on the order in which programs run.
"""

# ruff: noqa: ANN001, ANN202, N803 - the arguments of kernels are pointers, numbers and constants
import torch
import triton
import triton.language as tl
from torch import Tensor

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
