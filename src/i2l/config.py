"""How a model is trained, as it is saved with every checkpoint, and how it reads: frozen configs and options.

The configs turn into JSON and back. That of the network itself is the network's own; see `i2l.model.config`.
"""

import itertools
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from i2l.files import ConfigError, JsonConfig


@dataclass(frozen=True, kw_only=True)
class ObjectiveConfig(JsonConfig):
    """What training minimises. The defaults are the paper's published runs."""

    l2: float = 5e-5  # times half the squared kernels and embedding; no bias, nothing of the LSTMs
    alpha_penalty: float = 0.0  # lambda_A, times |batch mean of ASE_N - ASE_T|
    ase_target: float = 5.27  # ASE_T
    guidance: float = 0.0  # times the log-loss of attention lying on the token's box, where boxes are known
    placement: float = 0.0  # times how far attention's peak lies from the middle half of the box, in cells
    label_smoothing: float = 0.0

    @property
    def wants_boxes(self) -> bool:
        """Whether attention is told where tokens stand."""
        return bool(self.guidance or self.placement)


ENGINES = ("auto", "plain", "fast", "graph")


@dataclass(frozen=True, kw_only=True)
class TrainConfig(JsonConfig):
    """How a model is trained. The defaults are the paper's; 0 turns a limit or an option off."""

    # Order: a batch holds samples of one length class (most tokens, eos not counted) and of one window.
    # A class beyond the longest formula of the model is cut to that.
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
    spelling: Literal["written", "im2latex"] = "written"  # of training labels; see `i2l.formulas.commands`
    # How images are seen, another way every time (see `i2l.training.augment`):
    shift_px: int = 0  # up to so many pixels off the middle
    zoom: float = 0.0  # larger or smaller, by up to this log
    zoom_symbol: float = 0.0  # for one symbol, whose scale cannot be estimated; falls to `zoom` with more
    turn: float = 0.0  # turned, by up to so many radians
    slant: float = 0.0  # slanted, by up to this part of the height
    stretch: float = 0.0  # wider for its height, or narrower, by up to this log
    bend_px: float = 0.0  # bent: points of a wide grid are moved, by up to this deviation
    coarse: float = 0.0  # half of the images through larger pixels, by up to this log of their side
    blur_px: float = 0.0  # blurred, by up to this deviation
    weight: float = 0.0  # ink times a factor of up to this log, down to half of it; blurred strokes widen
    plain: float = 0.0  # share of images that are moved only, and otherwise shown as they are

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


BEAM_WIDTH: Final = 5  # on trained models ten hypotheses find nothing better (docs/LOG.md)


@dataclass(frozen=True, kw_only=True)
class ReadingOptions:
    """How to read: one object for reading, explaining, evaluating and serving.

    What `Reader` can be told. The reader checks the values when it loads the model they are for.
    """

    # The model: the name of an installed one, a folder that `i2l export` wrote, or a checkpoint (which needs
    # torch); the model in the box if None.
    model: str | Path | None = None
    handwriting: bool = True  # if no model is named: notice handwriting, and read it with the model for it
    device: str = "cpu"  # of a checkpoint: as torch names it, or "auto"; an exported model runs on the CPU

    # The search
    beam_width: int = BEAM_WIDTH  # hypotheses that are followed at once; 1 is greedy
    n_best: int = 1  # readings that the search makes certain; those written the same way are one
    length_penalty: float = 1.0  # how much the search favours longer readings; 0 ranks by probability alone
    max_tokens: int | None = None  # longest formula; as long as the model can write if None

    # What is let through
    guard: bool = True  # write only what is a formula, and stop repetition
    check: bool = True  # refuse a picture in which nothing looks like a formula

    # The work
    threads: int | None = None  # of one call; all processors if None. The result does not depend on it.
    batch_size: int | None = None  # images that a thread reads together; what suits the model if None
