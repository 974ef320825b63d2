"""The recurrent loop over all steps of known words, with its own backward pass.

Autograd would add each step's share to the gradient of the large kernels: one product per step that reads
and writes all of them. Here the loop keeps its inputs and the gradients of its sums, and one product per
kernel at the end does it all. What lies outside the recurrence (embedding, image's share of the attention,
output layer) is not here.

The embedded words are columns of the first layer's input beside the context. To multiply them beforehand
would save 3 % of that product, but write and read a tensor as large as all gates.

One step of attention and of an LSTM layer, forward and backward: torch, or Triton on a CUDA device.

All functions write into tensors that the caller made (``out_*``), since they run once per word, and take the
products with large matrices as given. States and sums of many numbers are in the type of the cell states
(float32, or float64 in tests); what only feeds a product may be bfloat16. Each function has its counterpart
of the same name in `i2l.model.calstm.triton_kernels`.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from i2l.model.calstm.layers import FORGET_BIAS


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
        from i2l.model.calstm import triton_kernels

        return triton_kernels.attention_forward(
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
        from i2l.model.calstm import triton_kernels

        return triton_kernels.attention_backward(
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
        from i2l.model.calstm import triton_kernels

        return triton_kernels.lstm_forward(
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
        from i2l.model.calstm import triton_kernels

        return triton_kernels.lstm_backward(
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
    """Compute the gradients of bias (4n,) and peepholes (3, n), over all steps at once.

    Args:
        grad_sums: (T, B, 4n)
        cells: (T + 1, B, n), the cell states from before the first step to after the last.
    """
    if grad_sums.is_cuda:
        from i2l.model.calstm import triton_kernels

        return triton_kernels.lstm_sums_backward(grad_sums, cells)
    grad = grad_sums.to(cells.dtype)
    grad_input, _, grad_forget, grad_output = grad.chunk(4, dim=2)
    old, new = cells[:-1], cells[1:]
    peepholes = [(grad_input * old), (grad_forget * old), (grad_output * new)]
    return grad.sum((0, 1)), torch.stack([product.sum((0, 1)) for product in peepholes])


ALIGNMENT = 8  # tensor cores want rows of a multiple of 16 bytes


def aligned(units: int) -> int:
    """Round up to a width that products like."""
    return -(-units // ALIGNMENT) * ALIGNMENT


@dataclass(frozen=True)
class UnrolledInputs:
    """What the loop reads. Unit counts are aligned; surplus units have zero weights, and stay zero.

    Everything that multiplies is in one type, which may be bfloat16; biases, peepholes and cells are wide.
    """

    embedded: Tensor  # (T, B, m)
    features: Tensor  # (B, L, D)
    prepared: Tensor  # (B, U1), the image's share of the attention's first layer
    attention_state: Tensor  # (U1, n)
    attention: AttentionWeights
    kernels: list[Tensor]  # per layer (4n, inputs + n), inputs and n aligned each
    biases: list[Tensor]  # per layer (4n,)
    peepholes: list[Tensor]  # per layer (3, n)
    hiddens: list[Tensor]  # per layer (B, n), the initial state
    cells: list[Tensor]  # per layer (B, n)
    cell_clip: float | None
    upward: Tensor | None = None  # (layers - 1, T, B, n): dropout's factors of what a layer hands upwards

    def tensors(self) -> list[Tensor]:
        """All tensors that may have gradients, in the order of the fields."""
        single = [self.embedded, self.features, self.prepared, self.attention_state]
        upper = self.attention
        return [
            *single,
            *(upper.hidden, upper.hidden_bias, upper.score, upper.score_bias),
            *(*self.kernels, *self.biases, *self.peepholes, *self.hiddens, *self.cells),
        ]

    @classmethod
    def from_tensors(
        cls, tensors: tuple[Tensor, ...], cell_clip: float | None, upward: Tensor | None
    ) -> "UnrolledInputs":
        """Undo `tensors`."""
        layers = len(tensors[8:]) // 5
        lists = [list(tensors[8 + layers * i : 8 + layers * (i + 1)]) for i in range(5)]
        kernels, biases, peepholes, hiddens, cells = lists
        return cls(
            embedded=tensors[0],
            features=tensors[1],
            prepared=tensors[2],
            attention_state=tensors[3],
            attention=AttentionWeights(*tensors[4:8]),
            kernels=kernels,
            biases=biases,
            peepholes=peepholes,
            hiddens=hiddens,
            cells=cells,
            cell_clip=cell_clip,
            upward=upward,
        )


@dataclass(frozen=True)
class _Trace:
    """What the forward loop leaves for the backward one; time comes first."""

    inputs: list[Tensor]  # per layer (T + 1, B, inputs + n): what its kernel multiplied
    sums: list[Tensor]  # per layer (T, B, 4n)
    cells: list[Tensor]  # per layer (T + 1, B, n)
    first: Tensor  # (T, B, U1)
    second: Tensor  # (T, B, U2)
    scores: Tensor  # (T, B, L)
    normalizer: Tensor  # (T, B)

    def tensors(self) -> list[Tensor]:
        single = [self.first, self.second, self.scores, self.normalizer]
        return [*single, *self.inputs, *self.sums, *self.cells]

    @classmethod
    def from_tensors(cls, tensors: tuple[Tensor, ...]) -> "_Trace":
        layers = len(tensors[4:]) // 3
        inputs, sums, cells = (list(tensors[4 + layers * i : 4 + layers * (i + 1)]) for i in range(3))
        first, second, scores, normalizer = tensors[:4]
        return cls(inputs, sums, cells, first, second, scores, normalizer)


def _empty_trace(loop: UnrolledInputs) -> _Trace:
    """Make room for all steps, and put in place what is known before the first."""
    steps, batch, embedding_units = loop.embedded.shape
    units = loop.cells[0].shape[1]
    locations, second_units = loop.attention.score.shape
    narrow, wide = loop.embedded, loop.cells[0]
    inputs, cells = [], []
    for kernel, hidden, cell in zip(loop.kernels, loop.hiddens, loop.cells, strict=True):
        buffer = narrow.new_zeros(steps + 1, batch, kernel.shape[1])
        buffer[0, :, -units:] = hidden
        inputs.append(buffer)
        states = wide.new_empty(steps + 1, batch, units)
        states[0] = cell
        cells.append(states)
    inputs[0][:steps, :, :embedding_units] = loop.embedded
    return _Trace(
        inputs=inputs,
        sums=[narrow.new_empty(steps, batch, 4 * units) for _ in loop.kernels],
        cells=cells,
        first=narrow.new_empty(steps, batch, loop.prepared.shape[1]),
        second=narrow.new_empty(steps, batch, second_units),
        scores=wide.new_empty(steps, batch, locations),
        normalizer=wide.new_empty(steps, batch),
    )


def _context(loop: UnrolledInputs) -> slice:
    """The columns of the first layer's input that hold the context."""
    start = loop.embedded.shape[2]
    return slice(start, start + loop.features.shape[2])


def _run_forward(loop: UnrolledInputs) -> _Trace:
    trace = _empty_trace(loop)
    steps, batch, _ = loop.embedded.shape
    units = loop.cells[0].shape[1]
    context = _context(loop)
    attention_sums = loop.embedded.new_empty(batch, loop.prepared.shape[1])
    for t in range(steps):
        torch.mm(trace.inputs[-1][t, :, -units:], loop.attention_state.T, out=attention_sums)
        attention_forward(
            attention_sums,
            loop.prepared,
            loop.attention,
            loop.features,
            out_first=trace.first[t],
            out_second=trace.second[t],
            out_scores=trace.scores[t],
            out_normalizer=trace.normalizer[t],
            out_context=trace.inputs[0][t, :, context],
        )
        for q, kernel in enumerate(loop.kernels):
            torch.mm(trace.inputs[q][t], kernel.T, out=trace.sums[q][t])
            above = trace.inputs[q + 1][t, :, :units] if q + 1 < len(loop.kernels) else None
            lstm_forward(
                trace.sums[q][t],
                loop.biases[q],
                loop.peepholes[q],
                trace.cells[q][t],
                loop.cell_clip,
                out_cell=trace.cells[q][t + 1],
                out_hidden=trace.inputs[q][t + 1, :, -units:],
                out_upward=above,
            )
            if above is not None and loop.upward is not None:
                above.mul_(loop.upward[q, t])
    return trace


@dataclass(frozen=True)
class _Gradients:
    """What the backward loop leaves for the products at its end; time comes first."""

    inputs: list[Tensor]  # of the first layer (T, B, inputs + n); of the others the first step's, (B, 2n)
    sums: list[Tensor]  # per layer (T, B, 4n)
    cells: list[Tensor]  # per layer (B, n), of the initial state
    context: Tensor  # (T, B, D)
    scores: Tensor  # (T, B, L)
    second: Tensor  # (T, B, U2)
    first: Tensor  # (T, B, U1)

    def step_inputs(self, layer: int, t: int) -> Tensor:
        """The gradient of a layer's input at a step; upper layers keep that of one step only."""
        return self.inputs[0][t] if layer == 0 else self.inputs[layer]


def _run_backward(
    loop: UnrolledInputs, trace: _Trace, output: Tensor, context: Tensor, attention: Tensor | None
) -> _Gradients:
    steps = len(trace.first)
    units = loop.cells[0].shape[1]
    columns = _context(loop)
    layers = range(len(loop.kernels))
    grads = _Gradients(
        inputs=[torch.empty_like(trace.inputs[q][:steps] if q == 0 else trace.inputs[q][0]) for q in layers],
        sums=[torch.empty_like(sums) for sums in trace.sums],
        cells=[torch.zeros_like(cell) for cell in loop.cells],
        context=torch.empty_like(context),
        scores=torch.empty_like(trace.scores, dtype=context.dtype),
        second=torch.empty_like(trace.second),
        first=torch.empty_like(trace.first),
    )
    for t in reversed(range(steps)):
        above = output[t]
        for q in reversed(layers):
            recurrent = grads.step_inputs(q, t + 1)[:, -units:] if t + 1 < steps else None
            lstm_backward(
                above,
                recurrent,
                grads.cells[q],
                trace.sums[q][t],
                loop.biases[q],
                loop.peepholes[q],
                trace.cells[q][t],
                loop.cell_clip,
                out_sums=grads.sums[q][t],
            )
            torch.mm(grads.sums[q][t], loop.kernels[q], out=grads.step_inputs(q, t))
            above = grads.step_inputs(q, t)[:, :units]
            if q > 0 and loop.upward is not None:
                above = above * loop.upward[q - 1, t]
        attention_backward(
            grads.inputs[0][t, :, columns],
            context[t],
            None if attention is None else attention[t],
            loop.attention,
            loop.features,
            context=trace.inputs[0][t, :, columns],
            first=trace.first[t],
            second=trace.second[t],
            scores=trace.scores[t],
            normalizer=trace.normalizer[t],
            out_context=grads.context[t],
            out_scores=grads.scores[t],
            out_second=grads.second[t],
            out_first=grads.first[t],
        )
        grads.step_inputs(layers[-1], t)[:, -units:].addmm_(grads.first[t], loop.attention_state)
    return grads


def _collect(loop: UnrolledInputs, trace: _Trace, grads: _Gradients) -> list[Tensor]:
    """The gradients of all inputs, in the order of `UnrolledInputs.tensors`: one product per kernel."""
    steps = len(trace.first)
    units = loop.cells[0].shape[1]
    attention = torch.exp(trace.scores - trace.normalizer.unsqueeze(2)).to(grads.context.dtype)
    first, second, scores = (part.flatten(0, 1) for part in (grads.first, grads.second, grads.scores))
    rows = [inputs[:steps].flatten(0, 1) for inputs in trace.inputs]  # (T * B, inputs + n)
    sums = [part.flatten(0, 1) for part in grads.sums]  # (T * B, 4n)
    wide = loop.cells[0].dtype
    vectors = [lstm_sums_backward(part, cells) for part, cells in zip(grads.sums, trace.cells, strict=True)]
    return [
        grads.inputs[0][:, :, : loop.embedded.shape[2]],
        torch.bmm(attention.permute(1, 2, 0), grads.context.transpose(0, 1)),  # features (B, L, D)
        grads.first.sum(0),
        first.T @ rows[-1][:, -units:],
        trace.first.flatten(0, 1).T @ second,
        second.sum(0, dtype=wide),
        scores.T @ trace.second.flatten(0, 1),
        scores.sum(0, dtype=wide),
        *(part.T @ row for part, row in zip(sums, rows, strict=True)),
        *(bias for bias, _ in vectors),
        *(peepholes for _, peepholes in vectors),
        *(grads.step_inputs(q, 0)[:, -units:] for q in range(len(sums))),
        *grads.cells,
    ]


class _Unrolled(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,  # noqa: ANN401
        cell_clip: float | None,
        upward: Tensor | None,
        *tensors: Tensor,
    ) -> tuple[Tensor, Tensor, Tensor]:
        loop = UnrolledInputs.from_tensors(tensors, cell_clip, upward)
        trace = _run_forward(loop)
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(*tensors, *trace.tensors())
        ctx.num_inputs, ctx.cell_clip, ctx.upward = len(tensors), cell_clip, upward
        units = loop.cells[0].shape[1]
        attention = torch.exp(trace.scores - trace.normalizer.unsqueeze(2))
        return trace.inputs[-1][1:, :, -units:], trace.inputs[0][:-1, :, _context(loop)], attention

    @staticmethod
    def backward(
        ctx: Any,  # noqa: ANN401
        output: Tensor | None,
        context: Tensor | None,
        attention: Tensor | None,
    ) -> tuple[Tensor | None, ...]:
        loop = UnrolledInputs.from_tensors(ctx.saved_tensors[: ctx.num_inputs], ctx.cell_clip, ctx.upward)
        trace = _Trace.from_tensors(ctx.saved_tensors[ctx.num_inputs :])
        steps, batch, _ = loop.embedded.shape
        if output is None:
            output = loop.embedded.new_zeros(steps, batch, loop.cells[0].shape[1])
        if context is None:
            context = loop.embedded.new_zeros(steps, batch, loop.features.shape[2])
        if attention is not None:
            attention = attention.contiguous()
        grads = _run_backward(loop, trace, output.contiguous(), context.contiguous(), attention)
        return None, None, *_collect(loop, trace, grads)


def run_unrolled(loop: UnrolledInputs) -> tuple[Tensor, Tensor, Tensor]:
    """Run all steps.

    Returns:
        The top layer's output (T, B, n), the context (T, B, D) and the attention (T, B, L).
    """
    output, context, attention = _Unrolled.apply(  # type: ignore[no-untyped-call]
        loop.cell_clip, loop.upward, *loop.tensors()
    )
    return output, context, attention
