"""The samples as the report's page wants them: small JSON pieces that the browser reads one at a time."""

import base64
import json
from collections.abc import Sequence
from typing import Any, Final

from i2l.evaluation.results import EvaluationResult
from i2l.evaluation.visual import VisualSample

FAILED, WRONG, RIGHT_OTHERWISE, RIGHT = "failed", "wrong", "otherwise", "right"
CATEGORIES: Final = {
    WRONG: "Wrong",
    FAILED: "Did not compile",
    RIGHT_OTHERWISE: "Right, but other tokens",
    RIGHT: "Right",
}
_PIECE: Final = 20  # samples
# All images together, in base64. What has the least to show goes without images first.
_IMAGE_BYTES: Final = 22_000_000
_PRIORITY: Final = (WRONG, FAILED, RIGHT_OTHERWISE, RIGHT)


def sample_category(result: EvaluationResult, index: int) -> str:
    """What became of a sample. Without renders only the tokens tell."""
    columns = result.columns
    if columns["exact"][index]:
        return RIGHT
    if "compiles" in columns and not columns["compiles"][index]:
        return FAILED
    if "tolerant_match" in columns and columns["tolerant_match"][index]:
        return RIGHT_OTHERWISE
    return WRONG


def gallery_scripts(
    result: EvaluationResult, visuals: Sequence[VisualSample], inputs: Sequence[bytes]
) -> tuple[str, int]:
    """The script elements with all samples, and how many had to go without images.

    Args:
        result: the samples and their scores.
        visuals: their renders, or nothing.
        inputs: for each sample the image that was read, as WebP, empty if it looks like the target's render;
            or nothing.
    """
    categories = [sample_category(result, index) for index in range(len(result))]
    drawn = _within_budget(categories, visuals, inputs)
    samples = [
        _sample(result, index, visuals[index] if index in drawn else None, inputs)
        for index in range(len(result))
    ]
    names = list(CATEGORIES)
    columns = result.columns
    scores = columns.get("character_f1", 1 - columns["edits_per_token"])
    index = {
        "categories": CATEGORIES,
        "category": [names.index(category) for category in categories],
        "score": [round(float(score), 3) for score in scores],
        "length": [len(tokens) for tokens in result.targets],
        "piece": _PIECE,
    }
    scripts = [_script("gallery-index", index)]
    scripts += [
        _script(f"gallery-{number}", samples[start : start + _PIECE])
        for number, start in enumerate(range(0, len(samples), _PIECE))
    ]
    return "\n".join(scripts), len(visuals) - len(drawn)


def _within_budget(
    categories: Sequence[str], visuals: Sequence[VisualSample], inputs: Sequence[bytes]
) -> set[int]:
    order = sorted(range(len(visuals)), key=lambda index: (_PRIORITY.index(categories[index]), index))
    drawn, used = set(), 0
    for index in order:
        visual = visuals[index]
        size = len(visual.target_png) + len(visual.prediction_png) + (len(inputs[index]) if inputs else 0)
        used += size * 4 // 3
        if used > _IMAGE_BYTES:
            break
        drawn.add(index)
    return drawn


def _sample(
    result: EvaluationResult, index: int, visual: VisualSample | None, inputs: Sequence[bytes]
) -> dict[str, Any]:
    sample: dict[str, Any] = {
        "name": result.names[index],
        "target": " ".join(result.targets[index]),
        "prediction": " ".join(result.predictions[index]),
        "blocks": result.blocks[index],
    }
    if "tolerant_match" in result.columns:
        sample["scores"] = {
            name: round(float(result.columns[name][index]), 3)
            for name in ("character_f1", "tolerant_match", "strict_match", "im2markup_match_no_spaces")
        }
        sample["message"] = result.messages[index]
    if visual is not None:
        sample["targetImage"] = _base64(visual.target_png)
        sample["predictionImage"] = _base64(visual.prediction_png)
        if visual.difference is not None:
            sample["shift"] = visual.difference.shift_px
            sample["columns"] = visual.difference.blocks
        if inputs:
            sample["inputImage"] = _base64(inputs[index])
    return sample


def _base64(content: bytes) -> str:
    return base64.b64encode(content).decode()


def _script(identifier: str, content: object) -> str:
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
    return f'<script type="application/json" id="{identifier}">{text}</script>'
