"""Pixels to a grid of feature vectors: five convolutions, each with tanh and a 2x2 max-pool.

What the fast encoder does besides convolving, forward and backward: torch, or Triton on a CUDA device.

Grids are (B, rows, columns, channels): the layout that convolutions on a GPU want. Each function has its
counterpart of the same name in `i2l.model.calstm.triton_kernels`.

The encoder on a window of the canvas: exactly the features of the whole canvas, at a part of the cost.

Outside the window the canvas is white, so after each layer the grid equals that of a blank canvas, except at
positions that have seen a pixel of the window. A 3x3 convolution spreads those by one position, and pooling
halves them, so they stay few. Each layer computes only these, and reads one position more on each side, which
the layer before computed or which is blank.

The blank canvas is known from a small one. By the same argument its border is felt by the outermost position
of each grid only; all others are alike. A blank canvas of 3 x 3 cells holds a copy of every value.

At an edge of the canvas itself there is nothing beyond: the first layer meets the white frame, later layers
meet zeros.
"""

from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from i2l.model.calstm.layers import glorot_
from i2l.model.network import Window

KERNEL = 3


def whiten(pixels: Tensor, dtype: torch.dtype) -> Tensor:
    """Map grey levels 0..255 to -0.5..0.5; white is +0.5."""
    return (pixels.to(dtype) - 127.5) / 255


def regroup(grid: Tensor, *, pool_rows: int, pool_columns: int) -> Tensor:
    """Concatenate neighbouring feature vectors in strides, row by row within a stride.

    Args:
        grid: (B, C, R, W)
        pool_rows: vectors of this many rows become one, top to bottom.
        pool_columns: and of this many columns, left to right.

    Returns:
        (B, R / pool_rows, W / pool_columns, pool_rows * pool_columns * C)
    """
    batch, channels, rows, columns = grid.shape
    grid = grid.permute(0, 2, 3, 1)  # (B, R, W, C)
    grid = grid.reshape(
        batch, rows // pool_rows, pool_rows, columns // pool_columns, pool_columns, channels
    ).transpose(2, 3)
    return grid.flatten(3)


def convolution(units_in: int, units_out: int, *, padding: int) -> nn.Conv2d:
    """A 3x3 convolution: Glorot kernel, zero bias."""
    layer = nn.Conv2d(units_in, units_out, KERNEL, padding=padding)
    glorot_(layer.weight, fan_in=KERNEL * KERNEL * units_in, fan_out=KERNEL * KERNEL * units_out)
    nn.init.zeros_(layer.bias)  # type: ignore[arg-type]
    return layer


class Encoder(nn.Module):
    """The paper's convolutional encoder.

    The first convolution is VALID: the canvas brings its own white frame. The others are zero-padded.
    """

    def __init__(self, *, channels: Sequence[int], pool_rows: int = 1, pool_columns: int = 1) -> None:
        super().__init__()
        self.pool_rows, self.pool_columns = pool_rows, pool_columns
        inputs = [1, *channels[:-1]]
        self.convolutions = nn.ModuleList(
            convolution(units_in, units_out, padding=0 if index == 0 else 1)
            for index, (units_in, units_out) in enumerate(zip(inputs, channels, strict=True))
        )

    def kernels(self, dtype: torch.dtype) -> tuple[list[Tensor], list[Tensor]]:
        """Return the kernels in the type they multiply in, channels last, and the biases as they are."""
        layers = cast(Iterable[nn.Conv2d], self.convolutions)
        kernels = [layer.weight.to(dtype, memory_format=torch.channels_last) for layer in layers]
        return kernels, [cast(Tensor, layer.bias) for layer in layers]

    def forward(self, pixels: Tensor) -> Tensor:
        """Encode whole canvases.

        Args:
            pixels: (B, H + 2, W + 2), uint8.

        Returns:
            (B, rows, columns, D)
        """
        grid = whiten(pixels, next(self.parameters()).dtype).unsqueeze(1)  # (B, 1, H + 2, W + 2)
        for layer in self.convolutions:
            grid = functional.max_pool2d(torch.tanh(layer(grid)), 2)  # (B, C, H / 2, W / 2), ...
        return regroup(grid, pool_rows=self.pool_rows, pool_columns=self.pool_columns)


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
        from i2l.model.calstm import triton_kernels

        return triton_kernels.pool_and_paste(raw, bias, background, top, left)
    four = torch.stack([raw[:, i::2, j::2] for i in (0, 1) for j in (0, 1)])
    largest, choice = four.max(dim=0)
    rows, columns = largest.shape[1:3]
    grid = background.expand(len(raw), *background.shape).clone()
    grid[:, top : top + rows, left : left + columns] = torch.tanh(largest + bias)
    return grid, choice.to(torch.uint8)


def pool_and_paste_backward(
    grad: Tensor, grid: Tensor, choice: Tensor, top: int, left: int
) -> tuple[Tensor, Tensor]:
    """Compute the gradients of ``raw`` (B, 2h, 2w, C) and ``bias`` (C,) from the grid's, (B, R, S, C)."""
    if grad.is_cuda:
        from i2l.model.calstm import triton_kernels

        return triton_kernels.pool_and_paste_backward(grad, grid, choice, top, left)
    batch, rows, columns, channels = choice.shape
    inside = (slice(None), slice(top, top + rows), slice(left, left + columns))
    grad_sum = grad[inside] * (1 - grid[inside].square())  # (B, h, w, C)
    grad_raw = grad.new_zeros(batch, 2 * rows, 2 * columns, channels)
    for index in range(4):
        grad_raw[:, index // 2 :: 2, index % 2 :: 2] = grad_sum * (choice == index)
    return grad_raw, grad_sum.sum((0, 1, 2))


def background_backward(grad: Tensor, rows: tuple[int, int], columns: tuple[int, int]) -> Tensor:
    """Compute the gradient of the background (R, S, C): the batch's sum, zero where something was pasted."""
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
        from i2l.model.calstm import triton_kernels

        return triton_kernels.first_layer(pixels, kernel, bias, background, margins, top, left)
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
    """Compute the gradients of ``kernel`` (C, 1, 3, 3) and ``bias`` (C,) from that of the grid."""
    if grad.is_cuda:
        from i2l.model.calstm import triton_kernels

        return triton_kernels.first_layer_backward(grad, grid, choice, pixels, margins, top, left)
    grad_raw, grad_bias = pool_and_paste_backward(grad, grid, choice, top, left)
    framed = functional.pad(whiten(pixels, grad.dtype), margins, value=0.5)
    channels, (height, width) = grad.shape[-1], grad_raw.shape[1:3]
    patches = torch.stack(  # (B, H, W, 9)
        [framed[:, i : i + height, j : j + width] for i in range(3) for j in range(3)], dim=3
    )
    grad_kernel = grad_raw.reshape(-1, channels).T @ patches.reshape(-1, 9)
    return grad_kernel.view(channels, 1, 3, 3), grad_bias


Span = tuple[int, int]


def seen_spans(start_px: int, size_px: int, total_px: int, layers: int) -> list[Span]:
    """Find along one axis, for the pixels and after each layer, the positions that have seen the window."""
    first, last, total = start_px, start_px + size_px, total_px
    spans = [(first, last)]
    for _ in range(layers):
        total //= 2
        first, last = max((first - 1) // 2, 0), min((last + 2) // 2, total)
        spans.append((first, last))
    return spans


def read_span(seen_next: Span) -> Span:
    """Find the positions that the next layer reads to compute its own; they may reach beyond the canvas."""
    return 2 * seen_next[0] - 1, 2 * seen_next[1] + 1


@cache
def selection(span: Span, total: int, small: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """Make the matrix that picks, from a small blank grid, the values of a large one: (span, small).

    A product with it, not an index: its gradient is a product too, and needs no atomic additions. A position
    outside the canvas picks nothing, and so is zero. Cached, since it may not be made while a CUDA graph is
    captured.
    """
    matrix = torch.zeros(span[1] - span[0], small, dtype=dtype)
    half = small // 2
    for row, position in enumerate(range(*span)):
        if 0 <= position < total:
            after = position - (total - small)
            matrix[row, position if position < half else after if after > half else half] = 1
    return matrix.to(device)


def spread(blank: Tensor, rows: Span, columns: Span, shape: tuple[int, int]) -> Tensor:
    """Make the part of a large blank grid, (R, S, C), from a small one, (r, s, C)."""
    small_rows, small_columns, channels = blank.shape
    pick_rows = selection(rows, shape[0], small_rows, blank.dtype, blank.device)
    pick_columns = selection(columns, shape[1], small_columns, blank.dtype, blank.device)
    tall = (pick_rows @ blank.flatten(1)).view(-1, small_columns, channels)
    return pick_columns @ tall


def blank_grids(kernels: list[Tensor], biases: list[Tensor], area: tuple[int, int]) -> list[Tensor]:
    """Encode a blank canvas of at most 3 x 3 cells: the grid after each layer, (rows, columns, C)."""
    cell_px = 2 ** len(kernels)
    height, width = (min(size, 3 * cell_px) for size in area)
    grid = kernels[0].new_full((1, 1, height + 2, width + 2), 0.5)
    grids = []
    for index, (kernel, bias) in enumerate(zip(kernels, biases, strict=True)):
        raw = functional.max_pool2d(functional.conv2d(grid, kernel, padding=0 if index == 0 else 1), 2)
        grid = torch.tanh(raw + bias.view(-1, 1, 1)).to(kernel.dtype)
        grids.append(grid[0].permute(1, 2, 0))
    return grids


class _FirstLayer(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,  # noqa: ANN401
        pixels: Tensor,
        kernel: Tensor,
        bias: Tensor,
        background: Tensor,
        margins: tuple[int, int, int, int],
        offset: tuple[int, int],
    ) -> Tensor:
        grid, choice = first_layer(pixels, kernel, bias, background, margins, *offset)
        ctx.save_for_backward(grid, choice, pixels)
        ctx.margins, ctx.offset, ctx.dtypes = margins, offset, (kernel.dtype, bias.dtype)
        return grid

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:  # noqa: ANN401
        grid, choice, pixels = ctx.saved_tensors
        grad = grad.contiguous()
        kernel, bias = first_layer_backward(grad, grid, choice, pixels, ctx.margins, *ctx.offset)
        background = _pasted_over(grad, choice, ctx.offset)
        return None, kernel.to(ctx.dtypes[0]), bias.to(ctx.dtypes[1]), background, None, None


class _PoolAndPaste(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,  # noqa: ANN401
        raw: Tensor,
        bias: Tensor,
        background: Tensor,
        offset: tuple[int, int],
    ) -> Tensor:
        grid, choice = pool_and_paste(raw, bias, background, *offset)
        ctx.save_for_backward(grid, choice)
        ctx.offset, ctx.dtype = offset, bias.dtype
        return grid

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:  # noqa: ANN401
        grid, choice = ctx.saved_tensors
        grad = grad.contiguous()
        raw, bias = pool_and_paste_backward(grad, grid, choice, *ctx.offset)
        return raw, bias.to(ctx.dtype), _pasted_over(grad, choice, ctx.offset), None


def _pasted_over(grad: Tensor, choice: Tensor, offset: tuple[int, int]) -> Tensor:
    rows, columns = choice.shape[1:3]
    return background_backward(grad, (offset[0], offset[0] + rows), (offset[1], offset[1] + columns))


def _margins(seen: list[Span]) -> tuple[int, int]:
    """How many white pixels before and after the window the first layer reads."""
    (start, end), (first, last) = seen[0], read_span(seen[1])
    return start - first, last - end


def encode_windows(
    encoder: Encoder, pixels: Tensor, *, window: Window, area: tuple[int, int], dtype: torch.dtype
) -> Tensor:
    """Compute the features of whole canvases from the window that holds their ink.

    Args:
        encoder: its weights are used, and get their gradients.
        pixels: (B, window height, window width), uint8.
        window: where the pixels lie.
        area: height and width of the canvas without its frame.
        dtype: of the convolutions.

    Returns:
        (B, rows, columns, D), as `Encoder.forward` gives.
    """
    kernels, biases = encoder.kernels(dtype)
    layers = len(kernels)
    seen_rows = seen_spans(window.top_px, window.height_px, area[0], layers)
    seen_columns = seen_spans(window.left_px, window.width_px, area[1], layers)
    grid = pixels
    for index, blank in enumerate(blank_grids(kernels, biases, area), start=1):
        shape = area[0] >> index, area[1] >> index
        rows, columns = (0, shape[0]), (0, shape[1])  # after the last layer: the whole grid
        if index < layers:
            rows, columns = read_span(seen_rows[index + 1]), read_span(seen_columns[index + 1])
        background = spread(blank, rows, columns, shape)
        offset = seen_rows[index][0] - rows[0], seen_columns[index][0] - columns[0]
        if index == 1:
            left, right = _margins(seen_columns)
            top, bottom = _margins(seen_rows)
            grid = _FirstLayer.apply(  # type: ignore[no-untyped-call]
                grid, kernels[0], biases[0], background, (left, right, top, bottom), offset
            )
        else:
            raw = functional.conv2d(grid.permute(0, 3, 1, 2), kernels[index - 1]).permute(0, 2, 3, 1)
            grid = _PoolAndPaste.apply(  # type: ignore[no-untyped-call]
                raw.contiguous(), biases[index - 1], background, offset
            )
    return regroup(grid.permute(0, 3, 1, 2), pool_rows=encoder.pool_rows, pool_columns=encoder.pool_columns)
