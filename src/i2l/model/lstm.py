"""The peephole LSTM of Graves and a stack of them; gate order: input, cell, forget, output."""

import torch
from torch import Tensor, nn

from i2l.model.glorot import glorot_

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
