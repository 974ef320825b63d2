"""The stages that run part by part, in any process or machine: read files of the work folder, write one."""

import json
from collections import Counter
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from i2l.dataset.shards import BOXES, align_boxes, encode_png, style_text, styles_of_lines
from i2l.dataset.sources import SPLITS, TRAIN, Recipe
from i2l.dataset.verdicts import (
    EARLY_REASONS,
    EMPTY,
    NO_INK,
    REJECTED,
    TOO_HIGH,
    TOO_LONG,
    TOO_WIDE,
    hash64,
    loose_key,
)
from i2l.dataset.work import WorkFolder, read_part, write_part
from i2l.formulas.expansion import Macros
from i2l.formulas.lexer import FormulaError
from i2l.formulas.lines import decode_line
from i2l.formulas.normalize import normalize_formula
from i2l.rendering.render import RenderResult, render_formulas
from i2l.rendering.styles import Style

# the name is null where the line's number gives it
LINES = pa.schema([("split", pa.uint8()), ("text", pa.binary()), ("name", pa.string())])
NORMALIZED = pa.schema(
    [
        ("reason", pa.uint8()),  # position in EARLY_REASONS
        ("message", pa.string()),
        ("formula", pa.string()),  # what is stored and learnt
        ("latex", pa.string()),  # the same as TeX must see it
        ("num_tokens", pa.int32()),
        ("fingerprint", pa.uint64()),  # equal for equal formulas
        ("key", pa.uint64()),  # equal for formulas that look alike
        ("draw", pa.uint64()),  # decides the split
    ]
)
SELECTED = pa.schema([("split", pa.uint8()), ("reason", pa.uint8()), ("other", pa.int64())])
RENDERED = pa.schema(
    [
        ("row", pa.int32()),  # position in the part
        ("reason", pa.string()),  # null: kept so far
        ("message", pa.string()),
        ("image", pa.binary()),
        ("width", pa.int16()),
        ("height", pa.int16()),
        ("boxes", BOXES),
        ("style", pa.string()),
        ("look", pa.string()),  # what TeX sees of the style
    ]
)


@dataclass(frozen=True)
class StageOptions:
    """What the work on a part depends on, besides the files of the stages before it."""

    folder: WorkFolder
    recipe: Recipe
    seed: int
    part_lines: int
    boxes: bool
    compact: bool
    macros: Macros | None


def normalize_part(options: StageOptions, index: int) -> None:
    """Normalise the lines of a part, and hash what the global step compares."""
    lines = read_part(options.folder.part("lines", index))
    rows = [_normalize(line, options) for line in lines["text"].to_pylist()]
    write_part(options.folder.part("normalized", index), pa.Table.from_pylist(rows, schema=NORMALIZED))


def _normalize(line: bytes, options: StageOptions) -> dict[str, object]:
    if not line.strip():
        return {"reason": EARLY_REASONS.index(EMPTY), "message": "an empty line"}
    try:
        normalized = normalize_formula(decode_line(line), macros=options.macros)
    except FormulaError as error:
        reason = EMPTY if error.reason == EMPTY else REJECTED  # a comment alone is an empty formula
        return {"reason": EARLY_REASONS.index(reason), "message": str(error)}
    num_tokens = len(normalized.tokens)
    row = {"formula": normalized.formula, "latex": normalized.latex, "num_tokens": num_tokens}
    if num_tokens > options.recipe.max_tokens:
        message = f"{num_tokens} tokens, at most {options.recipe.max_tokens}"
        return row | {"reason": EARLY_REASONS.index(TOO_LONG), "message": message}
    key = loose_key(normalized.tokens)
    hashes = {
        "fingerprint": hash64(normalized.formula),
        "key": hash64(key),
        "draw": hash64(f"{options.seed} {key}"),
    }
    return row | hashes | {"reason": 0}


def render_part(options: StageOptions, index: int) -> None:
    """Draw the formulas of a part that are still in, and count the tokens of those that train.

    Raises:
        OSError: if there is no room for TeX's files.
    """
    folder = options.folder
    selected = read_part(folder.part("selected", index))
    rows = np.flatnonzero(selected["reason"].to_numpy() == 0)
    normalized = read_part(folder.part("normalized", index)).take(rows)
    formulas = normalized["formula"].to_pylist()
    numbers = (index * options.part_lines + rows).tolist()
    styles = styles_of_lines(options.recipe.styles, seed=options.seed, lines=numbers)
    drawn = render_formulas(normalized["latex"].to_pylist(), style=styles, boxes=options.boxes)
    trains = selected["split"].to_numpy()[rows] == SPLITS.index(TRAIN)
    counts: Counter[str] = Counter()
    rendered = []
    for row, formula, result, style, train in zip(rows, formulas, drawn, styles, trains, strict=True):
        rendered.append({"row": int(row)} | _rendered_row(formula, result, style, options))
        if train and rendered[-1]["reason"] is None:
            counts.update(formula.split())
    table = pa.Table.from_pylist(rendered, schema=RENDERED)
    table = table.replace_schema_metadata({"token_counts": json.dumps(counts, sort_keys=True)})
    write_part(folder.part("rendered", index), table)


def _rendered_row(
    formula: str, result: RenderResult, style: Style, options: StageOptions
) -> dict[str, object]:
    reason, message = result.reason, result.message
    if result.pixels is None:
        return {"reason": NO_INK if reason == "empty" else reason, "message": message}
    height, width = result.pixels.shape
    limits = options.recipe
    if width > limits.max_width_px:
        return {"reason": TOO_WIDE, "message": f"{width} px wide, at most {limits.max_width_px}"}
    if height > limits.max_height_px:
        return {"reason": TOO_HIGH, "message": f"{height} px high, at most {limits.max_height_px}"}
    return {
        "reason": None,
        "image": None if options.compact else encode_png(result.pixels),
        "width": width,
        "height": height,
        "boxes": result.boxes and align_boxes(formula, result.formula, result.boxes),
        "style": style_text(style),
        "look": style_text(style.tex_part()),
    }
