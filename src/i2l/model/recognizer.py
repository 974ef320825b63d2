"""The whole network: encoder, recurrent cell and output layer, for training and for decoding step by step."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from i2l.config import ModelConfig, ObjectiveConfig
from i2l.formulas.vocabulary import Vocabulary
from i2l.model.calstm import CALSTM, CALSTMStack
from i2l.model.encoder import Encoder
from i2l.model.glorot import glorot_
from i2l.model.heads import InitModel, OutputLayer
from i2l.model.objective import ObjectiveResult, attention_errors, half_squared_norm, log_loss


@dataclass(frozen=True)
class RecognizerOutput:
    """What the network says about a batch when each true word is fed to the next step."""

    logits: Tensor  # (B, T, K)
    attention: Tensor  # (B, T, rows, columns)


def shift_right(token_ids: Tensor) -> Tensor:
    """The input at each step is the word before the target: bos first, (B, T) to (B, T)."""
    first = torch.full_like(token_ids[:, :1], Vocabulary.bos_id)
    return torch.cat([first, token_ids[:, :-1]], dim=1)


class Recognizer(nn.Module):
    """Reads the image of a formula and writes its tokens.

    Training calls `forward` and `loss`. Decoding calls `encode` once per image, `start`, and `step` once
    per token. `step` takes k hypotheses per image: the rows of the state and of ``token_ids`` are then
    B * k, with those of one image next to each other, and the memory is never copied per hypothesis.
    """

    def __init__(self, config: ModelConfig, *, vocab_size: int) -> None:
        super().__init__()
        self.config = config
        self.vocab_size = vocab_size
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

    def encode(self, pixels: Tensor) -> dict[str, Tensor]:
        """Compute all that decoding needs from the images.

        Args:
            pixels: (B, H + 2, W + 2), uint8 grey on the model's canvas, white = 255.

        Returns:
            The memory: tensors with a leading batch dimension; "features" is (B, L, D).
        """
        features = self.encoder(pixels).flatten(1, 2)  # (B, L, D)
        return self.cell.prepare(features)

    def start(self, memory: dict[str, Tensor]) -> dict[str, Tensor]:
        """Give the state before the first step, one hypothesis per image: each part (B, n)."""
        features = memory["features"]
        if self.init_model is not None:
            state: dict[str, Tensor] = self.init_model(features)
            return state
        zeros = features.new_zeros(features.shape[0], self.config.lstm_units)
        return dict.fromkeys(self.cell.state_names, zeros)

    def step(
        self, memory: dict[str, Tensor], state: dict[str, Tensor], token_ids: Tensor
    ) -> tuple[Tensor, dict[str, Tensor], Tensor]:
        """Read one token per hypothesis and score the next.

        Args:
            memory: of B images.
            state: each part (B * k, n).
            token_ids: (B * k,), the last token of each hypothesis; bos at first.

        Returns:
            logits (B * k, K), the new state, and the attention (B * k, rows, columns).
        """
        embedded = self.embedding(token_ids)  # (B * k, m)
        result = self.cell(embedded, state, memory)
        logits = self.output(embedded, result.output, result.context)
        return logits, result.state, result.attention.unflatten(1, self.config.grid)

    def forward(self, pixels: Tensor, token_ids: Tensor, lengths: Tensor) -> RecognizerOutput:
        """Score each target given the true words before it.

        This is the plain form, one step after the other; `i2l.model.fast` gives the same faster.

        Args:
            pixels: (B, H + 2, W + 2), uint8 grey on the model's canvas.
            token_ids: (B, T), the targets: words, then eos; eos also pads.
            lengths: (B,), words counted with eos. What stands after them is computed all the same.
        """
        return self.read(self.encoder(pixels).flatten(1, 2), token_ids)

    def read(self, features: Tensor, token_ids: Tensor) -> RecognizerOutput:
        """Do as `forward`, from the features (B, L, D)."""
        memory = self.cell.prepare(features)
        state = self.start(memory)
        steps = []
        for inputs in shift_right(token_ids).unbind(1):
            logits, state, attention = self.step(memory, state, inputs)
            steps.append((logits, attention))
        all_logits, all_attention = zip(*steps, strict=True)
        return RecognizerOutput(
            logits=torch.stack(all_logits, dim=1), attention=torch.stack(all_attention, dim=1)
        )

    def regularized_parameters(self) -> list[nn.Parameter]:
        """The weights under L2: all kernels and the embedding; no bias, and nothing of the LSTMs."""
        return [
            parameter
            for name, parameter in self.named_parameters()
            if ".stack." not in name and not name.endswith("bias")
        ]

    def loss(
        self,
        output: RecognizerOutput,
        token_ids: Tensor,
        lengths: Tensor,
        *,
        objective: ObjectiveConfig,
    ) -> ObjectiveResult:
        """Compute the objective of a batch; targets and lengths as in `forward`."""
        word_loss = log_loss(output.logits, token_ids, lengths, label_smoothing=objective.label_smoothing)
        ase, aae = (errors.mean() for errors in attention_errors(output.attention, lengths))
        alpha_penalty = (ase - objective.ase_target).abs()
        regularization = half_squared_norm(self.regularized_parameters())
        total = word_loss
        if objective.l2:
            total = total + objective.l2 * regularization
        if objective.alpha_penalty:
            total = total + objective.alpha_penalty * alpha_penalty
        return ObjectiveResult(
            total=total,
            log_loss=word_loss,
            regularization=regularization,
            alpha_penalty=alpha_penalty,
            ase=ase,
            aae=aae,
        )
