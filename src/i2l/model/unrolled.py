"""The recurrent loop over all steps of known words, with its own backward pass.

Autograd would add each step's share to the gradient of the large kernels: one product per step that reads
and writes all of them. Here the loop keeps its inputs and the gradients of its sums, and one product per
kernel at the end does it all. What lies outside the recurrence (embedding, image's share of the attention,
output layer) is not here.

The embedded words are columns of the first layer's input beside the context. To multiply them beforehand
would save 3 % of that product, but write and read a tensor as large as all gates.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from i2l.model.decoder_kernels import (
    AttentionWeights,
    attention_backward,
    attention_forward,
    lstm_backward,
    lstm_forward,
    lstm_sums_backward,
)

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
