"""The paper's network: encoder, recurrent cell and output layer, for training and decoding step by step.

`Recognizer.forward` is the plain form. Training takes `fast_forward`, which gives the same numbers and
gradients by three changes, none of the mathematics: the encoder sees only the window that holds the ink;
whatever does not take part in the recurrence is computed for all steps at once; and the recurrence has its
own backward pass. Products are in ``dtype`` (bfloat16 on a GPU); cell states, softmax and loss stay in the
parameters' type.
"""

from collections.abc import Iterable
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.export import Dim
from torch.nn import functional

from i2l.images.prepare import WHITE
from i2l.model.calstm.config import CalstmConfig
from i2l.model.calstm.encoder import Encoder, encode_windows
from i2l.model.calstm.layers import (
    CALSTM,
    CALSTMStack,
    FullAttention,
    InitModel,
    OutputLayer,
    PeepholeLSTM,
    glorot_,
)
from i2l.model.calstm.unrolled import AttentionWeights, UnrolledInputs, aligned, run_unrolled
from i2l.model.network import ExportExample, Network, NetworkOutput, Window, shift_right


def unrolls(config: CalstmConfig) -> bool:
    """Say whether the fast loop covers this model; the others take the plain loop after the fast encoder."""
    return (
        config.attention == "full"
        and not config.beta_gate
        and not config.lstm_skip
        and config.calstm_cells == 1
    )


def fast_forward(
    model: "Recognizer", pixels: Tensor, token_ids: Tensor, *, window: Window, dtype: torch.dtype
) -> NetworkOutput:
    """Score each target given the true words before it, as `Recognizer.forward`.

    Shapes depend on the arguments' shapes and the window alone and nothing waits for the device, so a CUDA
    graph can hold this and its backward pass.

    Args:
        model: its parameters get their gradients.
        pixels: (B, window height, window width), uint8: the window's part of the canvas.
        token_ids: (B, T), the targets.
        window: holds all ink.
        dtype: of the products.
    """
    config = model.config
    area = config.height_px, config.width_px
    features = encode_windows(model.encoder, pixels, window=window, area=area, dtype=dtype).flatten(1, 2)
    if not unrolls(config):
        wide = model.embedding.weight.dtype
        return model.read(features.to(wide), token_ids)
    words = shift_right(token_ids).T  # (T, B)
    embedded = embed(model.embedding.weight, words, dtype)  # (T, B, m)
    output, context, attention = run_unrolled(_loop_inputs(model, features, embedded, dtype))
    output = functional.dropout(output, config.dropout, model.training)
    logits = _score(model, embedded, output, context)  # (T, B, K)
    attention = attention.view(*attention.shape[:2], *config.grid)  # (T, B, rows, columns)
    return NetworkOutput(logits=logits.transpose(0, 1), attention=attention.transpose(0, 1))


def embed(weight: Tensor, token_ids: Tensor, dtype: torch.dtype) -> Tensor:
    """Look words up by a product: its gradient is one too, where that of an index would have to sort."""
    vocabulary = torch.arange(aligned(len(weight)), device=weight.device)
    chosen = (token_ids.unsqueeze(-1) == vocabulary).to(dtype)
    return chosen @ functional.pad(weight.to(dtype), (0, 0, 0, len(vocabulary) - len(weight)))


def dense(layer: nn.Linear, inputs: Tensor) -> Tensor:
    """Apply a layer in the type of its inputs and with aligned widths: surplus outputs are zero.

    Surplus inputs, from a layer before, meet zero weights.
    """
    units, columns = layer.weight.shape
    surplus = aligned(units) - units
    kernel = functional.pad(layer.weight.to(inputs.dtype), (0, inputs.shape[-1] - columns, 0, surplus))
    bias = None if layer.bias is None else functional.pad(layer.bias.to(inputs.dtype), (0, surplus))
    return functional.linear(inputs, kernel, bias)


class _PackKernels(torch.autograd.Function):
    """The two kernels of an LSTM layer in one, with aligned unit counts and in the type of the products.

    One pass over the weights in each direction, where cast, pad and concatenate would make three.
    """

    @staticmethod
    def forward(ctx: Any, inputs: Tensor, recurrent: Tensor, dtype: torch.dtype) -> Tensor:  # noqa: ANN401
        units, columns = recurrent.shape[1], inputs.shape[1]
        rows, start = aligned(units), aligned(columns)
        packed = inputs.new_zeros(4, rows, start + rows, dtype=dtype)
        packed[:, :units, :columns] = inputs.view(4, units, columns)
        packed[:, :units, start : start + units] = recurrent.view(4, units, units)
        ctx.sizes, ctx.dtype = (units, columns, start), inputs.dtype
        return packed.view(4 * rows, start + rows)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None]:  # noqa: ANN401
        units, columns, start = ctx.sizes
        parts = grad.view(4, -1, grad.shape[1])[:, :units]
        inputs = parts[:, :, :columns].to(ctx.dtype).reshape(4 * units, columns)
        recurrent = parts[:, :, start : start + units].to(ctx.dtype).reshape(4 * units, units)
        return inputs, recurrent, None


def _loop_inputs(
    model: "Recognizer", features: Tensor, embedded: Tensor, dtype: torch.dtype
) -> UnrolledInputs:
    """Put what the loop reads into its form."""
    cell = cast(CALSTM, model.cell)
    attention = cast(FullAttention, cell.attention)
    layers = list(cast(Iterable[PeepholeLSTM], cell.stack.layers))
    units = model.config.lstm_units
    surplus = aligned(units) - units
    features = features.contiguous()
    hiddens, cells = _initial_state(model, features)
    return UnrolledInputs(
        embedded=embedded,
        features=features,
        prepared=dense(attention.image, features.flatten(1))[:, : attention.image.out_features].contiguous(),
        attention_state=functional.pad(attention.state.weight.to(dtype), (0, surplus)),
        attention=AttentionWeights(
            hidden=attention.hidden.weight.to(dtype).T.contiguous(),
            hidden_bias=attention.hidden.bias,
            score=attention.score.weight.to(dtype),
            score_bias=attention.score.bias,
        ),
        kernels=[
            _PackKernels.apply(layer.input_kernel, layer.recurrent_kernel, dtype)  # type: ignore[no-untyped-call]
            for layer in layers
        ],
        biases=[functional.pad(layer.bias.view(4, units), (0, surplus)).flatten() for layer in layers],
        peepholes=[functional.pad(layer.peepholes, (0, surplus)) for layer in layers],
        hiddens=[hidden.to(dtype) for hidden in hiddens],
        cells=cells,
        cell_clip=model.config.cell_clip,
        upward=_upward_factors(model, embedded, aligned(units)),
    )


def _upward_factors(model: "Recognizer", embedded: Tensor, units: int) -> Tensor | None:
    """Dropout's factors of what each layer but the top one hands upwards at every step."""
    dropout, layers = model.config.dropout, model.config.lstm_layers
    if not (dropout and model.training and layers > 1):
        return None
    return functional.dropout(embedded.new_ones(layers - 1, *embedded.shape[:2], units), dropout)


def _initial_state(model: "Recognizer", features: Tensor) -> tuple[list[Tensor], list[Tensor]]:
    """Hidden and cell state per layer before the first step, (B, aligned n) each, in the parameters' type."""
    wide = model.embedding.weight.dtype
    names = model.cell.state_names
    if model.init_model is None:
        zeros = features.new_zeros(len(features), aligned(model.config.lstm_units), dtype=wide)
        state = dict.fromkeys(names, zeros)
    else:
        hidden = torch.tanh(dense(model.init_model.hidden, features.flatten(1)))
        parts = cast(Iterable[nn.Linear], model.init_model.parts)
        state = {
            name: torch.tanh(dense(part, hidden).to(wide)) for name, part in zip(names, parts, strict=True)
        }
    layers = range(model.config.lstm_layers)
    return [state[f"hidden{q}"] for q in layers], [state[f"cell{q}"] for q in layers]


def _score(model: "Recognizer", embedded: Tensor, output: Tensor, context: Tensor) -> Tensor:
    """The output layer for all steps: its first kernel in parts, so that nothing is concatenated."""
    layer = model.output.first
    units = model.config.lstm_units
    parts, widths = [output], [units]
    if model.output.skips:
        parts, widths = [embedded, output, context], [embedded.shape[2], units, context.shape[2]]
    inputs = [part.flatten(0, 1) for part in parts]
    surplus = aligned(layer.out_features) - layer.out_features
    first = functional.pad(layer.bias.to(embedded.dtype), (0, surplus))
    for part, kernel in zip(inputs, torch.split(layer.weight, widths, dim=1), strict=True):
        padded = functional.pad(kernel.to(part.dtype), (0, part.shape[1] - kernel.shape[1], 0, surplus))
        first = first + functional.linear(part, padded)  # (T * B, units)
    second = torch.tanh(dense(model.output.second, torch.tanh(first)))
    logits = dense(model.output.score, second)[:, : model.vocab_size]
    return logits.view(*output.shape[:2], -1)


class Recognizer(Network):
    """I2L-NOPOOL, I2L-STRIPS and their variants."""

    config: CalstmConfig

    def __init__(self, config: CalstmConfig, *, vocab_size: int) -> None:
        super().__init__(config, vocab_size=vocab_size)
        rows, columns = config.grid
        locations = rows * columns
        self.encoder = Encoder(
            channels=config.channels, pool_rows=config.pool_rows, pool_columns=config.pool_columns
        )
        self.embedding = nn.Embedding(vocab_size, config.embedding_units)
        glorot_(self.embedding.weight, fan_in=vocab_size, fan_out=config.embedding_units)
        cells = [
            CALSTM(
                input_units=config.embedding_units if index == 0 else config.lstm_units,
                locations=locations,
                feature_units=config.feature_units,
                units=config.lstm_units,
                layers=config.lstm_layers,
                attention=config.attention,
                attention_units=config.attention_units,
                beta_gate=config.beta_gate,
                skip=config.lstm_skip,
                cell_clip=config.cell_clip,
                dropout=config.dropout,
            )
            for index in range(config.calstm_cells)
        ]
        self.cell: CALSTM | CALSTMStack = cells[0] if len(cells) == 1 else CALSTMStack(cells)
        self.output = OutputLayer(
            embedding_units=config.embedding_units,
            state_units=config.lstm_units,
            feature_units=config.feature_units,
            units=config.output_units,
            vocab_size=vocab_size,
            skips=config.output_skips,
        )
        self.init_model = (
            InitModel(
                image_units=locations * config.feature_units,
                hidden_units=config.init_units,
                units=config.lstm_units,
                state_names=self.cell.state_names,
            )
            if config.init_model
            else None
        )

    @property
    def state_names(self) -> list[str]:
        """The keys of the state: a cell and a hidden state per layer."""
        return self.cell.state_names

    def encode(self, pixels: Tensor) -> dict[str, Tensor]:
        """Compute the memory; "features" in it is (B, L, D)."""
        features = self.encoder(pixels).flatten(1, 2)  # (B, L, D)
        return self.cell.prepare(features)

    def start(self, memory: dict[str, Tensor]) -> dict[str, Tensor]:
        """Return the state before the first step: each part (B, n)."""
        features = memory["features"]
        if self.init_model is not None:
            state: dict[str, Tensor] = self.init_model(features)
            return state
        zeros = features.new_zeros(features.shape[0], self.config.lstm_units)
        return dict.fromkeys(self.cell.state_names, zeros)

    def step(
        self, memory: dict[str, Tensor], state: dict[str, Tensor], token_ids: Tensor
    ) -> tuple[Tensor, dict[str, Tensor], Tensor]:
        """Read one token per hypothesis and score the next; see `Network.step`."""
        embedded = self.embedding(token_ids)  # (B * k, m)
        result = self.cell(embedded, state, memory)
        logits = self.output(embedded, result.output, result.context)
        return logits, result.state, result.attention.unflatten(1, self.config.grid)

    def forward(self, pixels: Tensor, token_ids: Tensor, lengths: Tensor) -> NetworkOutput:
        """Score each target given the true words before it; see `Network.forward`.

        This is the plain form, one step after the other; `i2l.model.calstm.network` is faster.
        """
        return self.read(self.encoder(pixels).flatten(1, 2), token_ids)

    def read(self, features: Tensor, token_ids: Tensor) -> NetworkOutput:
        """Do as `forward`, from the features (B, L, D)."""
        memory = self.cell.prepare(features)
        state = self.start(memory)
        steps = []
        for inputs in shift_right(token_ids).unbind(1):
            logits, state, attention = self.step(memory, state, inputs)
            steps.append((logits, attention))
        all_logits, all_attention = zip(*steps, strict=True)
        return NetworkOutput(
            logits=torch.stack(all_logits, dim=1), attention=torch.stack(all_attention, dim=1)
        )

    def training_pass(
        self,
        pixels: Tensor,
        token_ids: Tensor,
        lengths: Tensor,
        *,
        window: Window,
        precision: str,
        fast: bool,
    ) -> NetworkOutput:
        """Do as `forward`, from a window of the canvas; see `Network.training_pass`."""
        if fast:
            dtype: torch.dtype = getattr(torch, precision)
            return fast_forward(self, pixels, token_ids, window=window, dtype=dtype)
        return super().training_pass(
            pixels, token_ids, lengths, window=window, precision=precision, fast=False
        )

    def export_encoder(self) -> nn.Module:
        """Return the encoder that finds each location in the window or on a blank canvas."""
        return _WindowEncoder(self)

    @torch.no_grad()
    def export_example(self) -> ExportExample:
        """Return blank canvases; a window may have any size."""
        pixels = torch.full((2, *self.config.canvas_shape), WHITE, dtype=torch.uint8)
        memory = self.encode(pixels)
        return ExportExample(
            pixels=pixels,
            cells=torch.arange(memory["features"].shape[1]),
            memory=memory,
            state=self.start(memory),
            encoder_shapes=({0: Dim.DYNAMIC, 1: Dim.DYNAMIC, 2: Dim.DYNAMIC}, None),
        )

    def regularized_parameters(self) -> list[nn.Parameter]:
        """The weights under L2: all kernels and the embedding; no bias, and nothing of the LSTMs."""
        return [
            parameter
            for name, parameter in self.named_parameters()
            if ".stack." not in name and not name.endswith("bias")
        ]


class _WindowEncoder(nn.Module):
    """Pixels of a window, and where each location finds its features, to memory and first state."""

    def __init__(self, model: Recognizer) -> None:
        super().__init__()
        self.model = model
        canvas = torch.full((1, *model.config.canvas_shape), WHITE, dtype=torch.uint8)
        self.register_buffer("blank", model.encoder(canvas).flatten(1, 2))

    def forward(self, pixels: Tensor, cells: Tensor) -> tuple[Tensor, ...]:
        window = self.model.encoder(pixels).flatten(1, 2)
        blank: Tensor = self.blank  # type: ignore[assignment]
        features = torch.cat([window, blank.expand(window.shape[0], -1, -1)], dim=1)[:, cells]
        memory = self.model.cell.prepare(features)
        state = self.model.start(memory)
        return (*memory.values(), *(state[name] for name in self.model.state_names))
