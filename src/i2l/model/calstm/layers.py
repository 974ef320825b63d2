"""Glorot's uniform initialisation with the fans stated by the caller, as a kernel may be stored in parts.

Where to look next: a distribution over the image's locations, given the state of the top LSTM.

Both forms split their first layer: what depends on the image alone is computed once per image (`prepare`),
what depends on the state at every step. The sum is the paper's product with the concatenated inputs.

The peephole LSTM of Graves and a stack of them; gate order: input, cell, forget, output.

The two ends of the decoder: the state it starts from, and the scores of the next token.

The paper's CALSTM: attention and an LSTM stack as one recurrent cell, which can itself be stacked.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, cast

import torch
from torch import Tensor, nn


def glorot_(tensor: Tensor, *, fan_in: int, fan_out: int) -> Tensor:
    """Fill in place, uniform within sqrt(6 / (fan_in + fan_out))."""
    limit = math.sqrt(6 / (fan_in + fan_out))
    with torch.no_grad():
        return tensor.uniform_(-limit, limit)


def linear(units_in: int, units_out: int, *, bias: bool = True, fan_in: int | None = None) -> nn.Linear:
    """A fully connected layer: Glorot kernel, zero bias.

    ``fan_in`` counts the inputs of the whole kernel where this layer holds only a part of it.
    """
    layer = nn.Linear(units_in, units_out, bias=bias)
    glorot_(layer.weight, fan_in=fan_in or units_in, fan_out=units_out)
    if bias:
        nn.init.zeros_(layer.bias)
    return layer


class FullAttention(nn.Module):
    """The paper's attention: one MLP reads the whole flattened image and the state, scores all locations."""

    def __init__(
        self, *, locations: int, feature_units: int, state_units: int, units: tuple[int, int]
    ) -> None:
        super().__init__()
        first, second = (max(width, locations) for width in units)
        fan_in = locations * feature_units + state_units
        self.image = linear(locations * feature_units, first, fan_in=fan_in)
        self.state = linear(state_units, first, bias=False, fan_in=fan_in)
        self.hidden = linear(first, second)
        self.score = linear(second, locations)

    def prepare(self, features: Tensor) -> Tensor:
        """The image's share of the first layer: (B, L, D) to (B, units)."""
        prepared: Tensor = self.image(features.flatten(1))
        return prepared

    def forward(self, prepared: Tensor, hidden: Tensor) -> Tensor:
        """Compute the attention (B * k, L) for the states (B * k, n) of k hypotheses per image."""
        state = self.state(hidden).unflatten(0, (prepared.shape[0], -1))  # (B, k, units)
        first = torch.tanh(prepared.unsqueeze(1) + state).flatten(0, 1)
        return torch.softmax(self.score(torch.tanh(self.hidden(first))), dim=1)


class SharedAttention(nn.Module):
    """The attention of Xu et al.: one MLP reads one location and the state, and scores that location."""

    def __init__(self, *, feature_units: int, state_units: int, units: tuple[int, int]) -> None:
        super().__init__()
        first, second = units
        fan_in = feature_units + state_units
        self.location = linear(feature_units, first, fan_in=fan_in)
        self.state = linear(state_units, first, bias=False, fan_in=fan_in)
        self.hidden = linear(first, second)
        self.score = linear(second, 1)

    def prepare(self, features: Tensor) -> Tensor:
        """Each location's share of the first layer: (B, L, D) to (B, L, units)."""
        prepared: Tensor = self.location(features)
        return prepared

    def forward(self, prepared: Tensor, hidden: Tensor) -> Tensor:
        """Compute the attention (B * k, L) for the states (B * k, n) of k hypotheses per image."""
        state = self.state(hidden).unflatten(0, (prepared.shape[0], -1))  # (B, k, units)
        first = torch.tanh(prepared.unsqueeze(1) + state.unsqueeze(2)).flatten(0, 1)  # (B * k, L, units)
        return torch.softmax(self.score(torch.tanh(self.hidden(first))).squeeze(2), dim=1)


FORGET_BIAS = 1.0  # added at run time; the stored bias starts at zero


class PeepholeLSTM(nn.Module):
    """One layer. Peepholes are diagonal: input and forget gate see the old cell, output gate the new one."""

    def __init__(self, *, input_units: int, units: int, cell_clip: float | None = None) -> None:
        super().__init__()
        self.cell_clip = cell_clip
        self.input_kernel = nn.Parameter(torch.empty(4 * units, input_units))
        self.recurrent_kernel = nn.Parameter(torch.empty(4 * units, units))
        self.bias = nn.Parameter(torch.zeros(4 * units))
        self.peepholes = nn.Parameter(torch.empty(3, units))  # of the input, forget and output gate
        for kernel in (self.input_kernel, self.recurrent_kernel):
            glorot_(kernel, fan_in=input_units + units, fan_out=4 * units)
        glorot_(self.peepholes, fan_in=units, fan_out=units)

    def forward(self, inputs: Tensor, hidden: Tensor, cell: Tensor) -> tuple[Tensor, Tensor]:
        """One step: (B, in), (B, n), (B, n) to the new hidden and cell state, (B, n) each."""
        sums = inputs @ self.input_kernel.T + hidden @ self.recurrent_kernel.T + self.bias  # (B, 4n)
        input_sum, candidate, forget_sum, output_sum = sums.chunk(4, dim=1)  # (B, n) each
        input_peephole, forget_peephole, output_peephole = self.peepholes.unbind()
        input_gate = torch.sigmoid(input_sum + input_peephole * cell)
        forget_gate = torch.sigmoid(forget_sum + forget_peephole * cell + FORGET_BIAS)
        cell = forget_gate * cell + input_gate * torch.tanh(candidate)
        if self.cell_clip is not None:
            cell = cell.clamp(-self.cell_clip, self.cell_clip)
        output_gate = torch.sigmoid(output_sum + output_peephole * cell)
        return output_gate * torch.tanh(cell), cell


class LSTMStack(nn.Module):
    """Layers on top of each other: each reads the hidden state of the one below, at the same step."""

    def __init__(
        self,
        *,
        input_units: int,
        units: int,
        layers: int,
        skip: bool = False,
        cell_clip: float | None = None,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.skip = skip
        self.dropout = nn.Dropout(dropout)
        upper_units = units + input_units if skip else units
        self.layers = nn.ModuleList(
            PeepholeLSTM(
                input_units=input_units if index == 0 else upper_units, units=units, cell_clip=cell_clip
            )
            for index in range(layers)
        )

    @property
    def state_names(self) -> list[str]:
        """The keys of the state: a cell and a hidden state per layer."""
        return [f"{part}{index}" for index in range(len(self.layers)) for part in ("cell", "hidden")]

    @property
    def top(self) -> str:
        """The key of the top layer's hidden state."""
        return f"hidden{len(self.layers) - 1}"

    def forward(self, inputs: Tensor, state: dict[str, Tensor]) -> tuple[Tensor, dict[str, Tensor]]:
        """One step: (B, in) and the old state to the top layer's output, (B, n), and the new state."""
        new_state: dict[str, Tensor] = {}
        output = inputs
        for index, layer in enumerate(self.layers):
            if index > 0 and self.skip:
                output = torch.cat([output, inputs], dim=1)
            hidden, cell = layer(output, state[f"hidden{index}"], state[f"cell{index}"])
            new_state[f"hidden{index}"], new_state[f"cell{index}"] = hidden, cell
            output = self.dropout(hidden)
        return output, new_state


class InitModel(nn.Module):
    """The initial state from the whole image: a hidden layer, then one output layer per part of the state."""

    def __init__(
        self, *, image_units: int, hidden_units: int, units: int, state_names: Sequence[str]
    ) -> None:
        super().__init__()
        self.state_names = list(state_names)
        self.hidden = linear(image_units, hidden_units)
        self.parts = nn.ModuleList(linear(hidden_units, units) for _ in self.state_names)

    def forward(self, features: Tensor) -> dict[str, Tensor]:
        """Compute each part of the state, (B, n), from the features (B, L, D)."""
        hidden = torch.tanh(self.hidden(features.flatten(1)))
        return {
            name: torch.tanh(part(hidden)) for name, part in zip(self.state_names, self.parts, strict=True)
        }


class OutputLayer(nn.Module):
    """The deep output layer: an MLP over the word read, the stack's output and the context.

    The word and the context skip the LSTM stack; without skips the layer reads the stack's output alone.
    """

    def __init__(
        self,
        *,
        embedding_units: int,
        state_units: int,
        feature_units: int,
        units: int,
        vocab_size: int,
        skips: bool = True,
    ) -> None:
        super().__init__()
        units = max(units, vocab_size)
        self.skips = skips
        input_units = embedding_units + state_units + feature_units if skips else state_units
        self.first = linear(input_units, units)
        self.second = linear(units, units)
        self.score = linear(units, vocab_size)

    def forward(self, embedded: Tensor, output: Tensor, context: Tensor) -> Tensor:
        """Compute the logits (..., K) from (..., m), (..., n) and (..., D)."""
        inputs = torch.cat([embedded, output, context], dim=-1) if self.skips else output
        first = torch.tanh(self.first(inputs))
        logits: Tensor = self.score(torch.tanh(self.second(first)))
        return logits


@dataclass(frozen=True)
class CellResult:
    """What one step of a cell gives; k hypotheses per image stand next to each other."""

    output: Tensor  # (B * k, n), the activation H_t
    context: Tensor  # (B * k, D), what attention read from the image, z_t
    attention: Tensor  # (B * k, L), alpha_t
    state: dict[str, Tensor]  # C_t, each (B * k, n)


class CALSTM(nn.Module):
    """Attention chooses what the LSTM stack sees; the stack's top state steers the next step's attention."""

    def __init__(
        self,
        *,
        input_units: int,
        locations: int,
        feature_units: int,
        units: int,
        layers: int,
        attention: Literal["full", "shared"] = "full",
        attention_units: tuple[int, int] = (256, 128),
        beta_gate: bool = False,
        skip: bool = False,
        cell_clip: float | None = None,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.attention: FullAttention | SharedAttention
        if attention == "full":
            self.attention = FullAttention(
                locations=locations, feature_units=feature_units, state_units=units, units=attention_units
            )
        else:
            self.attention = SharedAttention(
                feature_units=feature_units, state_units=units, units=attention_units
            )
        self.beta = linear(units, 1) if beta_gate else None
        self.stack = LSTMStack(
            input_units=input_units + feature_units,
            units=units,
            layers=layers,
            skip=skip,
            cell_clip=cell_clip,
            dropout=dropout,
        )

    @property
    def state_names(self) -> list[str]:
        """The keys of the state."""
        return self.stack.state_names

    def prepare(self, features: Tensor) -> dict[str, Tensor]:
        """Compute once per image what every step needs: from (B, L, D)."""
        return {"features": features, "attention": self.attention.prepare(features)}

    def forward(self, inputs: Tensor, state: dict[str, Tensor], memory: dict[str, Tensor]) -> CellResult:
        """Take one step for k hypotheses per image, which stand next to each other.

        Args:
            inputs: (B * k, m)
            state: each (B * k, n)
            memory: what `prepare` gave for B images.
        """
        features = memory["features"]  # (B, L, D)
        top = state[self.stack.top]
        attention = self.attention(memory["attention"], top)  # (B * k, L)
        grouped = attention.unflatten(0, (features.shape[0], -1))  # (B, k, L)
        context = torch.bmm(grouped, features).flatten(0, 1)  # (B * k, D)
        if self.beta is not None:
            context = torch.sigmoid(self.beta(top)) * context
        output, new_state = self.stack(torch.cat([inputs, context], dim=1), state)
        return CellResult(output=output, context=context, attention=attention, state=new_state)


class CALSTMStack(nn.Module):
    """Cells on top of each other: each reads the output of the one below, and looks at the image for itself.

    Context and attention of the result are those of the top cell.
    """

    def __init__(self, cells: Sequence[CALSTM]) -> None:
        super().__init__()
        self.cells = nn.ModuleList(cells)

    @property
    def state_names(self) -> list[str]:
        """The keys of the state: those of each cell, under its number."""
        return [f"{index}.{name}" for index, cell in self._numbered() for name in cell.state_names]

    def _numbered(self) -> Iterator[tuple[int, CALSTM]]:
        """The cells with their type, which ModuleList loses."""
        return enumerate(cast(Iterable[CALSTM], self.cells))

    def prepare(self, features: Tensor) -> dict[str, Tensor]:
        """Compute once per image what every step needs: from (B, L, D)."""
        memory = {"features": features}
        for index, cell in self._numbered():
            memory[f"attention{index}"] = cell.attention.prepare(features)
        return memory

    def forward(self, inputs: Tensor, state: dict[str, Tensor], memory: dict[str, Tensor]) -> CellResult:
        """Take one step, as `CALSTM.forward`."""
        new_state: dict[str, Tensor] = {}
        for index, cell in self._numbered():
            result: CellResult = cell(
                inputs,
                {name: state[f"{index}.{name}"] for name in cell.state_names},
                {"features": memory["features"], "attention": memory[f"attention{index}"]},
            )
            new_state |= {f"{index}.{name}": value for name, value in result.state.items()}
            inputs = result.output
        return CellResult(
            output=result.output, context=result.context, attention=result.attention, state=new_state
        )
