"""The paper's network: encoder, recurrent cell and output layer, for training and decoding step by step."""

import torch
from torch import Tensor, nn

from i2l.config import ModelConfig
from i2l.model.calstm.encoder import Encoder
from i2l.model.calstm.layers import CALSTM, CALSTMStack, InitModel, OutputLayer, glorot_
from i2l.model.network import Network, NetworkOutput, shift_right


class Recognizer(Network):
    """I2L-NOPOOL, I2L-STRIPS and their variants."""

    def __init__(self, config: ModelConfig, *, vocab_size: int) -> None:
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
        """Give the state before the first step: each part (B, n)."""
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

    def regularized_parameters(self) -> list[nn.Parameter]:
        """The weights under L2: all kernels and the embedding; no bias, and nothing of the LSTMs."""
        return [
            parameter
            for name, parameter in self.named_parameters()
            if ".stack." not in name and not name.endswith("bias")
        ]
