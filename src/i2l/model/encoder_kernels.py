"""What the fast encoder does besides convolving, forward and backward: torch, or Triton on a CUDA device.

Grids are (B, rows, columns, channels): the layout that convolutions on a GPU want. Each function has its
counterpart of the same name in `i2l.model.triton_encoder`.
"""

import torch
from torch import Tensor
from torch.nn import functional

from i2l.model.encoder import whiten


def pool_and_paste(
    raw: Tensor, bias: Tensor, background: Tensor, top: int, left: int
) -> tuple[Tensor, Tensor]:
    """Max-pool by 2x2, add the bias, apply tanh, and paste the result onto a background.

    Pooling comes first: tanh and the bias keep the order of numbers, and so act on a quarter of them.

    Args:
        raw: (B, 2h, 2w, C), a convolution's output without its bias.
        bias: (C,)
        background: (R, S, C), the same for all samples.
        top: row of the background where the result goes.
        left: column, likewise.

    Returns:
        The grid (B, R, S, C), and which of the four was largest, (B, h, w, C) uint8.
    """
    if raw.is_cuda:
        from i2l.model import triton_encoder

        return triton_encoder.pool_and_paste(raw, bias, background, top, left)
    four = torch.stack([raw[:, i::2, j::2] for i in (0, 1) for j in (0, 1)])
    largest, choice = four.max(dim=0)
    rows, columns = largest.shape[1:3]
    grid = background.expand(len(raw), *background.shape).clone()
    grid[:, top : top + rows, left : left + columns] = torch.tanh(largest + bias)
    return grid, choice.to(torch.uint8)


def pool_and_paste_backward(
    grad: Tensor, grid: Tensor, choice: Tensor, top: int, left: int
) -> tuple[Tensor, Tensor]:
    """Give the gradients of ``raw`` (B, 2h, 2w, C) and ``bias`` (C,) from that of the grid (B, R, S, C)."""
    if grad.is_cuda:
        from i2l.model import triton_encoder

        return triton_encoder.pool_and_paste_backward(grad, grid, choice, top, left)
    batch, rows, columns, channels = choice.shape
    inside = (slice(None), slice(top, top + rows), slice(left, left + columns))
    grad_sum = grad[inside] * (1 - grid[inside].square())  # (B, h, w, C)
    grad_raw = grad.new_zeros(batch, 2 * rows, 2 * columns, channels)
    for index in range(4):
        grad_raw[:, index // 2 :: 2, index % 2 :: 2] = grad_sum * (choice == index)
    return grad_raw, grad_sum.sum((0, 1, 2))


def background_backward(grad: Tensor, rows: tuple[int, int], columns: tuple[int, int]) -> Tensor:
    """Give the gradient of the background (R, S, C): the batch's sum, zero where something was pasted."""
    (top, bottom), (left, right) = rows, columns
    total = torch.zeros_like(grad[0])
    total[:top] = grad[:, :top].sum(0)
    total[bottom:] = grad[:, bottom:].sum(0)
    total[top:bottom, :left] = grad[:, top:bottom, :left].sum(0)
    total[top:bottom, right:] = grad[:, top:bottom, right:].sum(0)
    return total


def first_layer(
    pixels: Tensor,
    kernel: Tensor,
    bias: Tensor,
    background: Tensor,
    margins: tuple[int, int, int, int],
    top: int,
    left: int,
) -> tuple[Tensor, Tensor]:
    """Whiten the pixels and convolve them, then as `pool_and_paste`.

    Args:
        pixels: (B, H, W), uint8.
        kernel: (C, 1, 3, 3)
        bias: (C,)
        background: (R, S, C)
        margins: white pixels to add on the left, right, top and bottom.
        top: row of the background where the result goes.
        left: column, likewise.
    """
    if pixels.is_cuda:
        from i2l.model import triton_encoder

        return triton_encoder.first_layer(pixels, kernel, bias, background, margins, top, left)
    framed = functional.pad(whiten(pixels, kernel.dtype), margins, value=0.5)
    raw = functional.conv2d(framed.unsqueeze(1), kernel).permute(0, 2, 3, 1)
    return pool_and_paste(raw, bias, background, top, left)


def first_layer_backward(
    grad: Tensor,
    grid: Tensor,
    choice: Tensor,
    pixels: Tensor,
    margins: tuple[int, int, int, int],
    top: int,
    left: int,
) -> tuple[Tensor, Tensor]:
    """Give the gradients of ``kernel`` (C, 1, 3, 3) and ``bias`` (C,) from that of the grid."""
    if grad.is_cuda:
        from i2l.model import triton_encoder

        return triton_encoder.first_layer_backward(grad, grid, choice, pixels, margins, top, left)
    grad_raw, grad_bias = pool_and_paste_backward(grad, grid, choice, top, left)
    framed = functional.pad(whiten(pixels, grad.dtype), margins, value=0.5)
    channels, (height, width) = grad.shape[-1], grad_raw.shape[1:3]
    patches = torch.stack(  # (B, H, W, 9)
        [framed[:, i : i + height, j : j + width] for i in range(3) for j in range(3)], dim=3
    )
    grad_kernel = grad_raw.reshape(-1, channels).T @ patches.reshape(-1, 9)
    return grad_kernel.view(channels, 1, 3, 3), grad_bias
