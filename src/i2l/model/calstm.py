"""The paper's CALSTM: attention and an LSTM stack as one recurrent cell, which can itself be stacked."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, cast

import torch
from torch import Tensor, nn

from i2l.model.attention import FullAttention, SharedAttention
from i2l.model.glorot import linear
from i2l.model.lstm import LSTMStack


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
