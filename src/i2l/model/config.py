"""What a network says about itself without torch: its settings, its limits, and which pixels it needs to see.

Every network has a folder of its own here. Its config class, a `ModelConfig`, holds the settings that are
saved with the weights and answers all questions that need no weights; its torch module, an
`i2l.model.network.Network`, does the computing. `NETWORKS` is the one list of them: whoever adds a network
adds one line there.

A `ReceptiveField` says which pixels of the canvas each cell of the attention grid sees, worked out from the
network's layers. Along each axis a cell has a core (the cores of all cells tile the area inside the white
frame) and a field: all pixels that can change its feature vector. For the paper's encoder a core is 32 pixels
and a field 94, for that of pinpoint 16 and 142. Coordinates are those of the canvas, frame included.
"""

import dataclasses
import pkgutil
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from i2l.files import ConfigError, JsonConfig
from i2l.images.prepare import FRAME_PX, MAX_SHRINK, NEIGHBOUR_FACTOR, REFERENCE_DPI

if TYPE_CHECKING:
    from i2l.model.network import Network

# Where the config class of each network is, by the name that stands in saved configs.
NETWORKS: Final = {
    "calstm": "i2l.model.calstm.config:CalstmConfig",
    "pinpoint": "i2l.model.pinpoint.config:PinpointConfig",
}

Memory = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class Limits:
    """What a model can take and give; whoever asks for more is told so before anything is computed."""

    max_tokens: int  # of the longest formula that it learns to write
    max_steps: int  # tokens that a reading may have, the end of the formula counted
    canvas_shape: tuple[int, int]  # height and width of the pixels that it reads, white frame included
    dpi: float  # it reads type that is as large as 12 pt at so many dots an inch; pictures are scaled to that
    max_shrink: float  # a formula too large for the canvas may be made smaller, down to this share
    scale_step: float  # where the scale of a picture is in doubt, those this factor away are tried too
    one_scale: bool  # it knows no image but those drawn at its scale: there a picture is tried as it is, too


@dataclass(frozen=True)
class Layer:
    """A convolution or a pooling, along one axis."""

    kernel: int
    stride: int
    padding: int


@dataclass(frozen=True)
class AxisField:
    """The cells along one axis of the canvas."""

    num_cells: int
    canvas_px: int
    stride_px: int  # from one cell to the next; also the size of a core
    core_start_px: int  # of the first cell
    field_start_px: int  # of the first cell; negative where the field reaches beyond the canvas
    field_px: int  # size of a field that the canvas does not cut
    edge_px: int = 0  # of the canvas on either side that no cell sees

    def core(self, cell: int) -> tuple[int, int]:
        """Return the pixels of a cell's own part of the canvas, half-open."""
        start = self.core_start_px + cell * self.stride_px
        return start, start + self.stride_px

    def field(self, cell: int) -> tuple[int, int]:
        """Return the pixels that a cell sees, half-open, cut at the canvas."""
        start = self.field_start_px + cell * self.stride_px
        return max(start, self.edge_px), min(start + self.field_px, self.canvas_px - self.edge_px)

    def centre(self, cell: int) -> float:
        """Return the middle of a cell's core."""
        return self.core_start_px + (cell + 0.5) * self.stride_px


@dataclass(frozen=True)
class ReceptiveField:
    """The cells of the attention grid on the canvas."""

    rows: AxisField
    columns: AxisField

    @property
    def grid(self) -> tuple[int, int]:
        """Rows and columns of the attention grid."""
        return self.rows.num_cells, self.columns.num_cells

    @property
    def canvas_shape(self) -> tuple[int, int]:
        """Height and width of the canvas, frame included."""
        return self.rows.canvas_px, self.columns.canvas_px


def convolved_axis(
    layers: Sequence[Layer], *, canvas_px: int, num_cells: int, edge_px: int = 0, pooled: int = 1
) -> AxisField:
    """Walk down the layers: where the first cell's field starts, its size, and the step to the next cell.

    Args:
        layers: from the pixels upwards.
        canvas_px: the size of the canvas along this axis.
        num_cells: of the attention grid.
        edge_px: that the first layer is not given, on either side.
        pooled: how many positions after the last layer make one cell.
    """
    start, size, step = edge_px, 1, 1
    for layer in layers:
        start -= step * layer.padding
        size += (layer.kernel - 1) * step
        step *= layer.stride
    core_start = start + (size - step) // 2  # the core is the middle of the field
    return AxisField(
        num_cells=num_cells,
        canvas_px=canvas_px,
        stride_px=step * pooled,
        core_start_px=core_start,
        field_start_px=start,
        field_px=size + (pooled - 1) * step,
        edge_px=edge_px,
    )


@dataclass(frozen=True)
class InkWindow:
    """A part of the canvas, around the ink of some images, that an exported encoder is run on."""

    images: slice  # of the batch
    rows: slice  # of the canvas, frame included
    columns: slice
    cells: NDArray[np.int64]  # the encoder's second input, with which each network says where its cells lie


@dataclass(frozen=True, kw_only=True)
class ModelConfig(JsonConfig, ABC):
    """The settings that every network has, and the questions that every network answers."""

    network: ClassVar[str]  # its name in `NETWORKS`
    presets: ClassVar[Mapping[str, Mapping[str, Any]]]  # by name, what differs from the defaults
    window_heights_px: ClassVar[tuple[int, ...]]  # of the windows that training cuts from the canvas
    score_bias: ClassVar[str]  # the name of the weight that is added to the scores of tokens
    one_scale: ClassVar[bool] = False  # as in `Limits`

    # The area that the grid covers; the canvas adds a white frame of one pixel on each side.
    height_px: int
    width_px: int

    # The longest formula that it learns to write, and how much longer a reading may get, as in the paper.
    max_tokens: int
    extra_tokens: int = 20

    # The scale that it is trained and read at, as in `Limits`.
    dpi: float = REFERENCE_DPI
    max_shrink: float = MAX_SHRINK
    scale_step: float = NEIGHBOUR_FACTOR

    def __post_init__(self) -> None:
        """Check what cannot be checked by the types; networks check their own settings after these.

        Raises:
            ConfigError: if the sizes do not fit together.
        """
        if self.height_px % self.cell_px or self.width_px % self.cell_px:
            raise ConfigError(f"height_px and width_px must be multiples of {self.cell_px}.")
        if self.max_tokens < 1 or self.extra_tokens < 0:
            raise ConfigError("max_tokens must be at least 1, and extra_tokens at least 0.")
        if not (self.dpi > 0 and 0 < self.max_shrink <= 1 <= self.scale_step):
            raise ConfigError("dpi must be above 0, max_shrink at most 1 and scale_step at least 1.")

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as JSON values, with the name of the network."""
        return {"network": self.network, **super().to_dict()}

    @property
    def max_steps(self) -> int:
        """How many tokens a reading may have, the end of the formula counted."""
        return self.max_tokens + self.extra_tokens + 1

    @property
    def canvas_shape(self) -> tuple[int, int]:
        """Height and width of the pixels that the model reads, white frame included."""
        return self.height_px + 2 * FRAME_PX, self.width_px + 2 * FRAME_PX

    @property
    def limits(self) -> Limits:
        """What the model can take and give."""
        return Limits(
            max_tokens=self.max_tokens,
            max_steps=self.max_steps,
            canvas_shape=self.canvas_shape,
            dpi=self.dpi,
            max_shrink=self.max_shrink,
            scale_step=self.scale_step,
            one_scale=self.one_scale,
        )

    @property
    @abstractmethod
    def cell_px(self) -> int:
        """The side of one of the encoder's cells."""

    @property
    @abstractmethod
    def grid(self) -> tuple[int, int]:
        """Rows and columns that attention is spread over."""

    @abstractmethod
    def receptive_field(self) -> ReceptiveField:
        """Work out which pixels of the canvas each cell of the grid sees."""

    @property
    @abstractmethod
    def description(self) -> str:
        """What the model card says about the decoder, in a few words."""

    @property
    def window_margin_px(self) -> int:
        """How far a window of training must reach beyond the ink on each side."""
        return 0

    @abstractmethod
    def find_windows(self, pixels: NDArray[np.uint8]) -> list[InkWindow]:
        """Choose what the exported encoder is run on, one window after the other, for canvases (B, H, W)."""

    def join_memories(self, memories: Sequence[Memory]) -> Memory:
        """Make one memory of those that the encoder computed from the windows, in their order."""
        if len(memories) == 1:
            return memories[0]
        return {name: np.concatenate([memory[name] for memory in memories]) for name in memories[0]}

    @abstractmethod
    def build(self, *, vocab_size: int) -> "Network":
        """Make the network, with new weights; this is the one method that loads torch."""


def network_class(name: str) -> type[ModelConfig]:
    """Return the config class of a network.

    Raises:
        ConfigError: if there is no such network.
    """
    if name not in NETWORKS:
        raise ConfigError(f"There is no network {name!r}; there are {', '.join(NETWORKS)}.")
    found: type[ModelConfig] = pkgutil.resolve_name(NETWORKS[name])
    return found


def presets() -> dict[str, ModelConfig]:
    """Return the presets of all networks, by name."""
    classes = map(network_class, NETWORKS)
    return {name: kind(**changes) for kind in classes for name, changes in kind.presets.items()}


def model_preset(name: str, **changes: Any) -> ModelConfig:  # noqa: ANN401 - any field of its config
    """Return a preset with some fields changed, such as ``init_model=False``.

    Raises:
        ConfigError: for a preset or field that does not exist.
    """
    known = presets()
    if name not in known:
        raise ConfigError(f"There is no preset {name!r}; choose one of {', '.join(known)}.")
    fields = known[name].to_dict()
    del fields["network"]
    return type(known[name]).from_dict(fields | changes)


def read_model_config(fields: Mapping[str, Any]) -> ModelConfig:
    """Read the config of a model from decoded JSON, also as versions before wrote it.

    Raises:
        ConfigError: for a network or field that does not exist, or a value that the network refuses.
    """
    old = _is_mixed(fields)
    own = upgrade_model_fields(fields)
    kind = network_class(own.pop("network", "calstm"))
    if old:
        names = {field.name for field in dataclasses.fields(kind)}
        own = {name: value for name, value in _MIXED_DEFAULTS.items() if name in names} | own
    return kind.from_dict(own)


# Until there was a config for each network, one form had the settings of both, each saved with all of them.
_MIXED_NAMES: Final = {"transformer": "pinpoint"}
_ONLY_CALSTM: Final = frozenset(
    {
        *("pool_rows", "pool_columns", "attention", "attention_units", "beta_gate", "embedding_units"),
        *("lstm_layers", "lstm_units", "lstm_skip", "cell_clip", "calstm_cells", "init_model", "init_units"),
        "output_units",
    }
)
_ONLY_PINPOINT: Final = frozenset(
    {"depths", "reach_px", "decoder_units", "decoder_layers", "decoder_heads", "decoder_shared_heads"}
)
_MIXED_DEFAULTS: Final = {"max_tokens": 150}  # the one setting that came after the first of these configs


def _is_mixed(fields: Mapping[str, Any]) -> bool:
    both = not (_ONLY_CALSTM.isdisjoint(fields) or _ONLY_PINPOINT.isdisjoint(fields))
    network = fields.get("network", "calstm")
    return network in _MIXED_NAMES or (both and network == "calstm")


def upgrade_model_fields(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings of a model in the form of today, without those of the other network."""
    upgraded = dict(fields)
    if _is_mixed(fields):
        network = fields.get("network", "calstm")
        upgraded["network"] = _MIXED_NAMES.get(network, network)
        for name in _ONLY_CALSTM if upgraded["network"] == "pinpoint" else _ONLY_PINPOINT:
            upgraded.pop(name, None)
    return upgraded
