"""Reads again those test images whose reading did not end by itself, with other rules of search.

Only these readings are replaced in the scores: which they are is known without the targets, by their length.
"""

from dataclasses import replace
from pathlib import Path
from typing import Final

from benchmarks.results.add import text_figures
from benchmarks.results.mistakes import LIMIT
from benchmarks.results.store import Run, write_json
from i2l.config import ReadingOptions
from i2l.dataset.format import DatasetReader
from i2l.evaluation.judge import BatchReader

PAPER_READING: Final = ReadingOptions(beam_width=10, guard=False, batch_size=32, device="auto")
RULES: Final = {
    "as read": PAPER_READING,
    "guard": replace(PAPER_READING, guard=True),
    "no length norm": replace(PAPER_READING, length_penalty=0.0),
    "both": replace(PAPER_READING, guard=True, length_penalty=0.0),
}


def reread(run: Run, *, model: Path, data: Path, first: int = 0) -> None:
    """Write reread.json: what each rule gives, and the scores with only these readings replaced.

    With ``first``, so many images of the test split are read again without a division by length whatever
    their reading, to see what that does to those that end by themselves.
    """
    rows = DatasetReader(data).split("test")
    _, readings = run.readings("test")
    chosen = [index for index, reading in enumerate(readings) if len(reading.split()) >= LIMIT]
    images = rows.pixels(chosen)
    targets = [formula.split() for formula in rows.formulas]
    rules = {}
    for name, options in RULES.items():
        tokens = [reading.split() for reading in readings]
        if name != "as read":
            for index, reading in zip(
                chosen, BatchReader(replace(options, model=model)).read(images), strict=True
            ):
                tokens[index] = reading.split()
        rules[name] = {
            "num_tokens": [len(tokens[index]) for index in chosen],
            "figures": text_figures(targets, tokens),
        }
    content: dict[str, object] = {"num_reread": len(chosen), "rules": rules}
    if first:
        found = BatchReader(replace(RULES["no length norm"], model=model)).read(rows.pixels(range(first)))
        content["first"] = {
            "num_samples": first,
            "num_changed": sum(new != old for new, old in zip(found, readings[:first], strict=True)),
            "as read": text_figures(targets[:first], [reading.split() for reading in readings[:first]]),
            "no length norm": text_figures(targets[:first], [reading.split() for reading in found]),
        }
    write_json(run.path / "reread.json", content)
