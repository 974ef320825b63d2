"""The encoder on a window of the canvas: exactly the features of the whole canvas, at a part of the cost.

Outside the window the canvas is white, so after each layer the grid equals that of a blank canvas, except at
positions that have seen a pixel of the window. A 3x3 convolution spreads those by one position, and pooling
halves them, so they stay few. Each layer computes only these, and reads one position more on each side, which
the layer before computed or which is blank.

The blank canvas is known from a small one. By the same argument its border is felt by the outermost position
of each grid only; all others are alike. A blank canvas of 3 x 3 cells holds a copy of every value.

At an edge of the canvas itself there is nothing beyond: the first layer meets the white frame, later layers
meet zeros.
"""

from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from i2l.model.canvas import Window
from i2l.model.encoder import Encoder, regroup
from i2l.model.encoder_kernels import (
    background_backward,
    first_layer,
    first_layer_backward,
    pool_and_paste,
    pool_and_paste_backward,
)

Span = tuple[int, int]


def seen_spans(start_px: int, size_px: int, total_px: int, layers: int) -> list[Span]:
    """Give along one axis, for the pixels and after each layer, the positions that have seen the window."""
    first, last, total = start_px, start_px + size_px, total_px
    spans = [(first, last)]
    for _ in range(layers):
        total //= 2
        first, last = max((first - 1) // 2, 0), min((last + 2) // 2, total)
        spans.append((first, last))
    return spans


def read_span(seen_next: Span) -> Span:
    """Give the positions that the next layer reads to compute its own; they may reach beyond the canvas."""
    return 2 * seen_next[0] - 1, 2 * seen_next[1] + 1


@cache
def selection(span: Span, total: int, small: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """Give the matrix that picks, from a small blank grid, the values of a large one: (span, small).

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
    """Give the part of a large blank grid, (R, S, C), from a small one, (r, s, C)."""
    small_rows, small_columns, channels = blank.shape
    pick_rows = selection(rows, shape[0], small_rows, blank.dtype, blank.device)
    pick_columns = selection(columns, shape[1], small_columns, blank.dtype, blank.device)
    tall = (pick_rows @ blank.flatten(1)).view(-1, small_columns, channels)
    return pick_columns @ tall


def blank_grids(kernels: list[Tensor], biases: list[Tensor], area: tuple[int, int]) -> list[Tensor]:
    """Encode a blank canvas of at most 3 x 3 cells; give the grid after each layer, (rows, columns, C)."""
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
    """Give the features of whole canvases from the window that holds their ink.

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
