"""The paper's network: encoder, recurrent cell and output layer, for training and decoding step by step."""

import torch
from torch import Tensor, nn
from torch.export import Dim

from i2l.images.prepare import WHITE
from i2l.model.calstm.config import CalstmConfig
from i2l.model.calstm.encoder import Encoder
from i2l.model.calstm.layers import CALSTM, CALSTMStack, InitModel, OutputLayer, glorot_
from i2l.model.calstm.training_pass import fast_forward
from i2l.model.network import ExportExample, Network, NetworkOutput, Window, shift_right


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

        This is the plain form, one step after the other; `i2l.model.calstm.training_pass` is faster.
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
