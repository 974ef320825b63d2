"""What is saved with a checkpoint: frozen descriptions of the model and its objective, to and from JSON."""

import dataclasses
import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Self

from i2l.errors import I2LError

EXTRA_TOKENS = 20  # that reading may write beyond the longest formula of training


class ConfigError(I2LError):
    """A configuration that cannot be used."""


class JsonConfig:
    """A frozen dataclass that turns into a JSON object and back."""

    def to_dict(self) -> dict[str, Any]:
        """Give the fields as JSON values."""
        return dataclasses.asdict(self)  # type: ignore[call-overload, no-any-return]

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Self:
        """Build the configuration from decoded JSON; lists become tuples.

        Raises:
            ConfigError: for a field that does not exist, or a value that the class refuses.
        """
        known = {field.name for field in dataclasses.fields(cls)}  # type: ignore[arg-type]
        unknown = sorted(set(fields) - known)
        if unknown:
            raise ConfigError(f"{cls.__name__} has no field {', '.join(unknown)}; it has {sorted(known)}.")
        return cls(**{name: tuple(v) if isinstance(v, list) else v for name, v in fields.items()})


@dataclass(frozen=True, kw_only=True)
class ModelConfig(JsonConfig):
    """The network. The defaults are the paper's I2L-NOPOOL."""

    # "calstm" is the paper's; "transformer" has the encoder and decoder of its own section below.
    network: Literal["calstm", "transformer"] = "calstm"

    # Image: the area that the grid covers; the canvas adds a white frame of one pixel on each side.
    height_px: int = 128
    width_px: int = 1088

    # The longest formula that it learns to write; reading may run EXTRA_TOKENS longer, as in the paper.
    max_tokens: int = 150

    # Encoder: channels after each halving of the image, then feature vectors concatenated in strides.
    channels: tuple[int, ...] = (64, 128, 256, 512, 512)
    pool_rows: int = 1
    pool_columns: int = 1

    # Attention: "full" reads the whole image (the paper), "shared" one location at a time (Xu et al.).
    # The units of "full" are raised to the number of locations where that is larger.
    attention: Literal["full", "shared"] = "full"
    attention_units: tuple[int, int] = (256, 128)
    beta_gate: bool = False

    # LSTM stack. The cell is not clipped: the paper's equations have no clip. (The cell of TensorFlow 1.3
    # that the authors used may have clipped at 3; set 3.0 to follow that.)
    embedding_units: int = 64
    lstm_layers: int = 2
    lstm_units: int = 1500
    lstm_skip: bool = False  # every layer above the first also reads the stack's input
    cell_clip: float | None = None
    calstm_cells: int = 1  # attention + LSTM stack together are a cell; that many are stacked

    # Initial state from the image; without it the state starts at zero.
    init_model: bool = True
    init_units: int = 100

    # Output layer: its two hidden layers have this many units, raised to the vocabulary's size if larger.
    output_units: int = 358
    dropout: float = 0.0  # on what a layer hands upwards, never on the recurrence

    # Transformer: residual blocks after each halving, then the decoder.
    depths: tuple[int, ...] = (0, 2, 3, 1)
    reach_px: int = 4  # what is further from ink takes no part
    decoder_units: int = 384
    decoder_layers: int = 4
    decoder_heads: int = 6
    decoder_shared_heads: int = 2  # keys and values of earlier words that the heads share among them

    def __post_init__(self) -> None:
        """Check what cannot be checked by the types.

        Raises:
            ConfigError: if the sizes do not fit together.
        """
        cell_px = self.cell_px
        if self.height_px % cell_px or self.width_px % cell_px:
            raise ConfigError(f"height_px and width_px must be multiples of {cell_px}.")
        rows, columns = self.encoder_grid
        if rows % self.pool_rows or columns % self.pool_columns:
            raise ConfigError(f"pool_rows and pool_columns must divide the grid {rows} x {columns}.")
        if self.attention not in ("full", "shared"):
            raise ConfigError(f"attention must be 'full' or 'shared', not {self.attention!r}.")
        if self.max_tokens < 1:
            raise ConfigError("max_tokens must be at least 1.")
        if not 0 <= self.dropout < 1:
            raise ConfigError("dropout must be at least 0 and below 1.")
        if self.network not in ("calstm", "transformer"):
            raise ConfigError(f"network must be 'calstm' or 'transformer', not {self.network!r}.")
        if self.network == "transformer":
            self._check_transformer()

    def _check_transformer(self) -> None:
        if len(self.depths) != len(self.channels) or self.pool_rows * self.pool_columns != 1:
            raise ConfigError("A transformer has as many depths as channels, and pools no features.")
        if self.decoder_units % (4 * self.decoder_heads) or self.decoder_heads % self.decoder_shared_heads:
            raise ConfigError(
                "decoder_units must be a multiple of 4 decoder_heads, and those of decoder_shared_heads."
            )

    @property
    def max_steps(self) -> int:
        """How many tokens reading may write, eos included."""
        return self.max_tokens + EXTRA_TOKENS + 1

    @property
    def canvas_shape(self) -> tuple[int, int]:
        """Height and width of the pixels that the model reads, white frame included."""
        return self.height_px + 2, self.width_px + 2

    @property
    def cell_px(self) -> int:
        """The side of one of the encoder's cells."""
        return int(2 ** len(self.channels))

    def near_cells(self, first_px: int, last_px: int, *, num_cells: int) -> tuple[int, int]:
        """Give, along an axis, the first cell that a transformer needs for ink from and to these pixels.

        Returns:
            That cell, and the one after the last.
        """
        first, last = first_px - self.reach_px, last_px + self.reach_px
        return max(first // self.cell_px, 0), min(last // self.cell_px + 1, num_cells)

    @property
    def encoder_grid(self) -> tuple[int, int]:
        """Rows and columns of the encoder's cells, before feature pooling."""
        return self.height_px // self.cell_px, self.width_px // self.cell_px

    @property
    def grid(self) -> tuple[int, int]:
        """Rows and columns that attention is spread over."""
        rows, columns = self.encoder_grid
        return rows // self.pool_rows, columns // self.pool_columns

    @property
    def feature_units(self) -> int:
        """Length of one feature vector."""
        return self.channels[-1] * self.pool_rows * self.pool_columns


PRESETS: dict[str, ModelConfig] = {
    "nopool": ModelConfig(),
    "strips": ModelConfig(pool_rows=4),
    "pinpoint": ModelConfig(
        network="transformer",
        height_px=1408,
        width_px=1600,
        max_tokens=600,
        channels=(32, 64, 128, 256),
        dropout=0.1,
    ),
}


def model_preset(name: str, **changes: Any) -> ModelConfig:  # noqa: ANN401 - any field of ModelConfig
    """Give a preset with some fields changed, such as ``init_model=False``.

    Raises:
        ConfigError: for a preset or field that does not exist.
    """
    if name not in PRESETS:
        raise ConfigError(f"There is no preset {name!r}; choose one of {', '.join(PRESETS)}.")
    return ModelConfig.from_dict(PRESETS[name].to_dict() | changes)


@dataclass(frozen=True, kw_only=True)
class ObjectiveConfig(JsonConfig):
    """What training minimises. The defaults are the paper's published runs."""

    l2: float = 5e-5  # times half the squared kernels and embedding; no bias, nothing of the LSTMs
    alpha_penalty: float = 0.0  # lambda_A, times |batch mean of ASE_N - ASE_T|
    ase_target: float = 5.27  # ASE_T
    guidance: float = 0.0  # times the log-loss of attention lying on the token's box, where boxes are known
    label_smoothing: float = 0.0


ENGINES = ("auto", "plain", "fast", "graph")


@dataclass(frozen=True, kw_only=True)
class TrainConfig(JsonConfig):
    """How a model is trained. The defaults are the paper's; 0 turns a limit or an option off."""

    # Order: a batch holds samples of one length class (most tokens, eos not counted) and of one window.
    seed: int = 0
    batch_size: int = 56  # over all processes together
    # A batch of large images or long formulas is halved until it has no more pixels and tokens than these.
    batch_pixels: int = 0
    batch_tokens: int = 0
    length_classes: tuple[int, ...] = (28, 35, 41, 48, 55, 64, 75, 88, 105, 150)
    window_step: int = 0  # windows of the canvas differ by so many cells on either side; 0: always all of it
    min_shape_batches: int = 1  # a shape with fewer batches an epoch joins a larger one; each costs planning
    emphasis: tuple[str, ...] = ()  # "NAME=3": samples whose id starts with NAME come three times an epoch

    # What is learnt
    spelling: Literal["written", "im2latex"] = "written"  # of training labels; see `i2l.formulas.spelling`
    # How images are seen, another way every time (see `i2l.training.augment`):
    shift_px: int = 0  # up to so many pixels off the middle
    zoom: float = 0.0  # larger or smaller, by up to this log
    zoom_symbol: float = 0.0  # for one symbol, whose scale cannot be estimated; falls to `zoom` with more
    blur_px: float = 0.0  # blurred, by up to this deviation
    weight: float = 0.0  # ink times a factor of up to this log, down to half of it; blurred strokes widen

    # Arithmetic
    precision: Literal["float32", "bfloat16"] = "float32"  # of matrix products; weights are always float32
    engine: Literal["auto", "plain", "fast", "graph"] = "auto"  # all compute the same; graph is for GPUs
    autotune: bool = False  # let cuDNN try its algorithms on each new shape

    # Optimiser
    optimizer: Literal["adam", "adamw"] = "adam"
    learning_rate: float = 1e-4
    beta1: float = 0.5
    beta2: float = 0.9
    epsilon: float = 1e-8
    weight_decay: float = 0.0  # AdamW's own; the paper's L2 is objective.l2
    clip_norm: float = 0.0
    ema_decay: float = 0.0  # of the averaged weights that are validated and saved

    # Schedule: warm-up, then constant, or a cosine over whichever limit of the run is nearest.
    schedule: Literal["constant", "cosine"] = "constant"
    warmup_steps: int = 0
    final_fraction: float = 0.0  # of the learning rate, at the end of the cosine
    max_steps: int = 0
    max_epochs: int = 0
    budget_minutes: float = 0.0  # of training, over all resumed parts; start-up not counted

    # What is written, in steps
    log_every: int = 100
    validate_every: int = 0  # 0: once an epoch
    validation_samples: int = 0  # the first so many of a fixed shuffle; 0: all
    beam_width: int = 0  # validate by beam search too, and choose the best checkpoint by it; 0: greedy only
    checkpoint_every: int = 1000
    keep_every: int = 0  # checkpoints at multiples of this are never deleted

    def __post_init__(self) -> None:
        """Check what cannot be checked by the types.

        Raises:
            ConfigError: if the values do not fit together; the message names all that is wrong.
        """
        wrong = [
            text
            for text, bad in (
                ("batch_size and log_every must be at least 1", min(self.batch_size, self.log_every) < 1),
                ("length_classes must rise", not self.length_classes or _falls(self.length_classes)),
                ("precision must be float32 or bfloat16", self.precision not in ("float32", "bfloat16")),
                ("engine must be auto, plain, fast or graph", self.engine not in ENGINES),
                ("optimizer must be adam or adamw", self.optimizer not in ("adam", "adamw")),
                ("spelling must be written or im2latex", self.spelling not in ("written", "im2latex")),
                ("schedule must be constant or cosine", self.schedule not in ("constant", "cosine")),
                ("a cosine needs max_steps, max_epochs or budget_minutes", self._cosine_without_end),
                ("ema_decay must be at least 0 and below 1", not 0 <= self.ema_decay < 1),
            )
            if bad
        ]
        if wrong:
            raise ConfigError(f"TrainConfig: {'; '.join(wrong)}.")

    @property
    def _cosine_without_end(self) -> bool:
        return self.schedule == "cosine" and not (self.max_steps or self.max_epochs or self.budget_minutes)


def _falls(numbers: tuple[int, ...]) -> bool:
    return any(a >= b for a, b in itertools.pairwise(numbers))
