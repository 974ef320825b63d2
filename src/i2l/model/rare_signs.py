"""Signs that training saw more often than the world has them, made as rare again as they are.

    python -m i2l.model.rare_signs CHECKPOINT OUT LISTS...

So that a model knows every sign of amssymb, training data shows each of them some hundred times, alone and in
real formulas, where papers have it once in a million tokens. Such a model takes a blurred nabla for a white
triangle. The scores of signs that LISTS hardly have are lowered by a constant, which a clear picture
outweighs and a doubtful one does not; so is that of the italic alphabet, whose letters look like plain ones.
"""

import math
import shutil
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import torch

from i2l.files import write_checksums
from i2l.formulas import commands
from i2l.formulas.commands import respell
from i2l.formulas.lexer import decode_line, read_lines
from i2l.formulas.vocabulary import Vocabulary
from i2l.model.checkpoint import WEIGHTS, read_checkpoint
from i2l.model.config import read_model_config

RARE_COUNT: Final = 100  # a sign that LISTS have less often is as rare as can be ...
COMMON_COUNT: Final = 3000  # ... and one that they have so often is not rare at all
RARE_SCORE: Final = -3.2  # added to the logit: the odds of the rarest signs fall to a 25th
ITALIC_SCORE: Final = -2.5
SIGNS: Final = frozenset(
    {
        *(*commands.LETTERS, *commands.BINARIES, *commands.RELATIONS, *commands.ARROW_SIGNS),
        *(*commands.OPERATORS, *commands.ACCENTS, *commands.STRETCHED_ARROWS),
    }
)


def score_changes(vocabulary: Vocabulary, counts: Counter[str]) -> torch.Tensor:
    """Say what to add to the score of each token, from how often real formulas have it."""
    return torch.tensor(
        [
            ITALIC_SCORE
            if token == r"\mathit"
            else RARE_SCORE * _rarity(counts[token]) * (token in SIGNS and token[0] == "\\")
            for token in vocabulary.tokens
        ]
    )


def _rarity(count: int) -> float:
    """Tell how rare a sign is: 1 up to `RARE_COUNT`, 0 from `COMMON_COUNT` on, by the logarithm between."""
    between = math.log(COMMON_COUNT / max(count, RARE_COUNT)) / math.log(COMMON_COUNT / RARE_COUNT)
    return max(0.0, between)


def count_tokens(lists: Iterable[Path]) -> Counter[str]:
    """Count the tokens of lists of canonical formulas."""
    counts: Counter[str] = Counter()
    for path in lists:
        for line in read_lines(path):
            counts.update(respell(decode_line(line)).split())
    return counts


def main() -> None:
    """Write a checkpoint with lowered scores."""
    from safetensors.torch import save_file

    source, out, *lists = map(Path, sys.argv[1:])
    checkpoint = read_checkpoint(source)
    weights = checkpoint.load_weights()
    scores = read_model_config(checkpoint.config["model"]).score_bias
    weights[scores] = weights[scores] + score_changes(checkpoint.vocabulary, count_tokens(lists))
    shutil.copytree(checkpoint.path, out, ignore=shutil.ignore_patterns(WEIGHTS, "training.pt"))
    save_file(weights, out / WEIGHTS)
    write_checksums(out)


if __name__ == "__main__":
    main()
