"""How to read: one frozen object for reading, explaining, evaluating and serving."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

BEAM_WIDTH: Final = 5  # on trained models ten hypotheses find nothing better (docs/LOG.md)


@dataclass(frozen=True, kw_only=True)
class ReadingOptions:
    """What `Reader` can be told. The reader checks the values when it loads the model they are for."""

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
