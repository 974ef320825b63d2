"""The paper's figures of attention, and what it says about attention measured: docs/attention.md.

    python -m benchmarks.attention DATA [--models nopool,strips,pinpoint] [--split test] [--limit 300]
    python -m benchmarks.attention                 the tables of the page anew from results/attention.json

DATA is a dataset with boxes (`i2l build --boxes`). The models read its first formulas greedily and without
the guard. Numbers go to results/attention.json, the pictures to docs/pictures/attention; the pictures are of
the formulas below, which TeX draws.
"""

import argparse
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw, ImageFont

from benchmarks.results.add import rounded
from benchmarks.results.markdown import NOTHING, table
from benchmarks.results.page import DOCS, fill_page
from benchmarks.results.paper import TRAINING
from benchmarks.results.store import FOLDER, write_json
from i2l.config import ReadingOptions
from i2l.dataset.format import DatasetReader
from i2l.dataset.model_view import open_split
from i2l.evaluation.judge import BatchReader
from i2l.evaluation.scores import ROUNDS, Interval
from i2l.explain.attention import FOCUS_SHARE, attention_centres, cells_for_share, mean_intervals
from i2l.explain.drawings import contact_sheet
from i2l.explain.explanation import Explanation, explain_image
from i2l.explain.localization import METRICS, LocalizationSample, format_metric, localized_tokens
from i2l.explain.localization_report import (
    VALIDATION,
    LocalizationReport,
    inked_cells,
    replay_split,
    report_localization,
    require_boxes,
)
from i2l.files import atomic_write
from i2l.formulas.normalize import normalize_formula
from i2l.inference.boxes import visible_tokens
from i2l.inference.model_folder import find_model
from i2l.inference.reader import Reader
from i2l.model.config import ReceptiveField
from i2l.rendering.render import render_formulas

MODELS: Final = "nopool,strips,pinpoint"
RESULTS: Final = FOLDER / "attention.json"
PAGE: Final = DOCS / "attention.md"
PICTURES: Final = DOCS / "pictures" / "attention"
NUM_FITTED: Final = 100  # formulas of validation on which the share of attention in a box is fitted
# Written for the pictures; each has what the paper's figure has, a fraction or a font, and scripts.
FORMULAS: Final = {
    "fraction": r"u_{k} = \frac{x^{2} + y}{2 a} , \qquad k \geq 0 , \qquad \mathrm{Re} \, z < 1",
    "sum": r"\sum_{k=1}^{n} a_{k} = \int_{0}^{\infty} \mathrm{d} t \, t^{n-1} e^{-t}",
}
_BRACES: Final = ("{", "}")  # which get no panel: there would be twice as many

RIGHT, UP, DOWN, DENOMINATOR = "right", "up", "down", "denominator"
KINDS: Final = (RIGHT, UP, DOWN, DENOMINATOR)  # of moves
_MOVED_PX: Final = 2.0  # by which the centre of attention must go where the token is, to have gone there
_ON_LINE_PX: Final = 4.0  # tokens on one line differ in height by no more

Array = npt.NDArray[np.float64]
Values = dict[str, Array]  # of one reading, by the name of a figure
Json = dict[str, Any]


def denominator_starts(tokens: Sequence[str]) -> set[int]:
    """Find the places of the braces that open a denominator."""
    starts: set[int] = set()
    openers: list[str] = []  # what stands before each brace that is open
    closed = ""  # what stood before the brace that was closed last
    for place, token in enumerate(tokens):
        before = tokens[place - 1] if place else ""
        if token == "{":
            if before == "}" and closed == r"\frac":
                starts.add(place)
            openers.append(before)
        elif token == "}" and openers:
            closed = openers.pop()
    return starts


def measure_moves(sample: LocalizationSample, field: ReceptiveField) -> Values:
    """Compare how attention moves from one visible token to the next with how their boxes lie.

    Of moves to the right along a line, up into a script or limit, down into one, and from a numerator down to
    its denominator: whether the centre of attention goes that way, how far, and how far the token is.
    """
    counted = localized_tokens(sample, canvas_shape=field.canvas_shape)
    stride = np.array([field.rows.stride_px, field.columns.stride_px])
    looks = attention_centres(counted.attention.astype(np.float64)) * stride
    left, top, right, bottom = counted.boxes.T
    places = np.stack([top + bottom, left + right], axis=1) / 2
    visible, denominators = visible_tokens(sample.prediction), denominator_starts(sample.prediction)
    found: dict[str, list[float]] = {
        f"{kind}_{figure}": [] for kind in KINDS for figure in ("goes", "px", "true_px")
    }
    steps = counted.steps.tolist()
    for number, (step, following) in enumerate(pairwise(steps)):
        between = range(step + 1, following)
        if following <= step or any(visible[place] for place in between):
            continue
        look, place = (values[number + 1] - values[number] for values in (looks, places))
        marks = [sample.prediction[index] for index in between if sample.prediction[index] not in _BRACES]
        if denominators & set(between):
            kind, axis, sign = DENOMINATOR, 0, 1
        elif marks[-1:] == ["^"]:
            kind, axis, sign = UP, 0, -1
        elif marks[-1:] == ["_"]:
            kind, axis, sign = DOWN, 0, 1
        elif abs(place[0]) <= _ON_LINE_PX and place[1] > 0:
            kind, axis, sign = RIGHT, 1, 1
        else:
            continue
        found[f"{kind}_goes"].append(float(sign * look[axis] > _MOVED_PX))
        found[f"{kind}_px"].append(sign * look[axis])
        found[f"{kind}_true_px"].append(sign * place[axis])
    return {name: np.array(values, np.float64) for name, values in found.items()}


def measure_extent(sample: LocalizationSample, field: ReceptiveField) -> Values:
    """Compute how many rows and columns of pixels hold 90 % of each step's attention."""
    rows, columns = (
        cells_for_share(sample.attention.sum(axis=axis), FOCUS_SHARE).astype(np.float64) for axis in (2, 1)
    )
    return {"height_px": rows * field.rows.stride_px, "width_px": columns * field.columns.stride_px}


def measure_ends(sample: LocalizationSample, field: ReceptiveField) -> Values:
    """Compute the attention left of all ink at the first step, and right of all ink at the last."""
    inked = np.flatnonzero(inked_cells(sample, field).any(axis=0))
    columns = sample.attention.sum(axis=1, dtype=np.float64)
    return {
        "left_first": columns[:1, : inked[0]].sum(axis=1),
        "right_eos": columns[-1:, inked[-1] + 1 :].sum(axis=1),
    }


def measure_model(model: str, *, data: Path, split: str, limit: int, rounds: int = ROUNDS) -> Json:
    """Have a model read the first formulas of a split, and measure where it looked."""
    reader = BatchReader(ReadingOptions(model=find_model(model), beam_width=1, guard=False))
    field, dataset = reader.model.config.receptive_field(), DatasetReader(data)

    def replayed(name: str, count: int) -> list[LocalizationSample]:
        rows = open_split(
            dataset, name, canvas_shape=field.canvas_shape, dpi=reader.model.limits.dpi, limit=count, jobs=1
        )
        readings = reader.read(rows.pixels(range(min(count, len(rows))), jobs=1))
        return list(replay_split(reader.model, rows, readings, jobs=1))

    fitted = VALIDATION in dataset.splits and split != VALIDATION
    validation = replayed(VALIDATION, NUM_FITTED) if fitted else []
    samples = replayed(split, limit)
    report = report_localization(
        samples, field=field, validation=validation, share=reader.model.box_share, rounds=rounds
    )
    parts = [
        measure_moves(sample, field) | measure_extent(sample, field) | measure_ends(sample, field)
        for sample in samples
    ]
    return _published(reader.model.name, samples, field, report, parts, rounds)


def _published(
    name: str,
    samples: Sequence[LocalizationSample],
    field: ReceptiveField,
    report: LocalizationReport,
    parts: Sequence[Values],
    rounds: int,
) -> Json:
    """Put the figures of a model together as JSON, without anything of the data."""
    figures = report.claims.intervals | mean_intervals(parts, rounds=rounds)
    content = {
        "name": name,
        "grid": list(field.grid),
        "core_px": [field.rows.stride_px, field.columns.stride_px],
        "num_formulas": len(samples),
        "num_steps": report.claims.num_steps,
        "num_moves": {kind: sum(len(part[f"{kind}_goes"]) for part in parts) for kind in KINDS},
        "exact": float(np.mean([list(sample.target) == list(sample.prediction) for sample in samples])),
        "figures": {name: asdict(interval) for name, interval in figures.items()},
        "cell_counts": report.claims.cell_counts,
        "num_tokens": report.result.num_tokens,
        "share": report.result.share,
        "localization": {
            system.label: {key: asdict(interval) for key, interval in system.figures.items()}
            for system in report.result.systems
        },
    }
    return dict(rounded(content))


@dataclass(frozen=True)
class Row:
    """A line of the table of claims: words, a figure, and how to write it."""

    label: str
    figure: str
    form: Callable[[Json, Interval], str]


def _share(model: Json, interval: Interval) -> str:
    return f"{100 * interval.value:.1f} % ({100 * interval.low:.1f} to {100 * interval.high:.1f})"


def _number(model: Json, interval: Interval, *, digits: int = 2) -> str:
    return f"{interval.value:.{digits}f} ({interval.low:.{digits}f} to {interval.high:.{digits}f})"


def _area(model: Json, interval: Interval) -> str:
    core = math.prod(model["core_px"])
    return f"{core * interval.value:,.0f} ({core * interval.low:,.0f} to {core * interval.high:,.0f})"


def _pixel_bits(model: Json, interval: Interval) -> str:
    """Write entropy as if a cell's attention were spread evenly over the pixels of its core."""
    bits = math.log2(math.prod(model["core_px"]))
    return _number(model, Interval(interval.value + bits, interval.low + bits, interval.high + bits))


def _moved(kind: str, model: Json, interval: Interval) -> str:
    """Write how far attention goes, and how far the token's box is."""
    return f"{_number(model, interval, digits=1)} of {model['figures'][f'{kind}_true_px']['value']:.1f}"


def _upright(form: Callable[[Json, Interval], str]) -> Callable[[Json, Interval], str]:
    """Write a figure of moves up or down, which a network of one row of cells cannot make."""
    return lambda model, interval: NOTHING if model["grid"][0] == 1 else form(model, interval)


_one_digit: Final = partial(_number, digits=1)
# What was measured about each claim of the paper, whose words stand on the page.
CLAIMS: Final[dict[str, tuple[Row, ...]]] = {
    "focus": (
        Row("steps at which at most four cells hold 90 % of attention", "share_up_to_four", _share),
        Row("cells that hold 90 %, mean", "mean_cells", _number),
        Row("attention within one cell of the fullest", "around_peak", _share),
        Row("steps with one place: no cell farther off has 10 %", "one_place", _share),
    ),
    "sharpness": (
        Row("pixels that hold 90 % of attention, mean", "mean_cells", _area),
        Row("... columns of pixels", "width_px", _one_digit),
        Row("... rows of pixels", "height_px", _one_digit),
        Row("entropy over cells, bits", "mean_entropy_bits", _number),
        Row("entropy over pixels, bits", "mean_entropy_bits", _pixel_bits),
    ),
    "scanning": (
        Row("step and place from left to right, Spearman", "order_correlation", partial(_number, digits=3)),
        Row("next sign on the line: attention goes right", f"{RIGHT}_goes", _share),
        Row("... pixels, of those that the token is away", f"{RIGHT}_px", partial(_moved, RIGHT)),
        Row("up into a script or limit: goes up", f"{UP}_goes", _upright(_share)),
        Row("... pixels, of those that the token is away", f"{UP}_px", _upright(partial(_moved, UP))),
        Row("down into a script or limit: goes down", f"{DOWN}_goes", _upright(_share)),
        Row("... pixels, of those that the token is away", f"{DOWN}_px", _upright(partial(_moved, DOWN))),
        Row("numerator to denominator: goes down", f"{DENOMINATOR}_goes", _upright(_share)),
        Row(
            "... pixels, of those that the token is away",
            f"{DENOMINATOR}_px",
            _upright(partial(_moved, DENOMINATOR)),
        ),
    ),
    "margins": (
        Row("attention beyond the outermost ink: first step", "margin_first", _share),
        Row("... steps between", "margin_between", _share),
        Row("... end", "margin_eos", _share),
        Row("first step: left of all ink", "left_first", _share),
        Row("end: right of all ink", "right_eos", _share),
        Row("attention on cells without ink: first step", "empty_first", _share),
        Row("... steps between", "empty_between", _share),
        Row("... end", "empty_eos", _share),
    ),
}


def claim_table(name: str, content: Json) -> str:
    """Write what was measured about one claim, a column a model."""
    models = content["models"]
    rows = [
        [row.label, *(row.form(model, Interval(**model["figures"][row.figure])) for model in models)]
        for row in CLAIMS[name]
    ]
    return table(_head("", models), rows)


def model_table(content: Json) -> str:
    """Write which models were measured, on how much."""
    models = content["models"]
    rows = [
        ["cells", *(f"{model['grid'][0]} x {model['grid'][1]}" for model in models)],
        ["a cell's own pixels", *(f"{model['core_px'][0]} x {model['core_px'][1]}" for model in models)],
        ["formulas", *(f"{model['num_formulas']:,}" for model in models)],
        ["steps, the end counted", *(f"{model['num_steps']:,}" for model in models)],
        ["read exactly, greedily", *(f"{100 * model['exact']:.1f} %" for model in models)],
        ["ASE_N", *(_number(model, Interval(**model["figures"]["ase"])) for model in models)],
        ["... of the paper's own, with init model", *(_paper_ase(model["name"]) for model in models)],
    ]
    return table(_head("", models), rows)


def _paper_ase(name: str) -> str:
    return next((f"{row.ase:.2f}" for row in TRAINING if row.model == name and row.init_model), NOTHING)


def count_table(content: Json) -> str:
    """Write how many cells hold 90 % of a step's attention, as shares of the steps."""
    models = content["models"]
    rows = [
        [label, *(f"{100 * model['cell_counts'][label]:.1f} %" for model in models)]
        for label in models[0]["cell_counts"]
    ]
    return table(_head("cells", models), rows)


def localization_table(content: Json) -> str:
    """Write how well attention points at tokens, side by side, with a scan that never saw the image below."""
    models = content["models"]

    def figures(label: str, key: str) -> list[str]:
        return [_metric(key, model["localization"][label][key]) for model in models]

    rows = [["tokens read right, with a box", *(f"{model['num_tokens']:,}" for model in models)]]
    rows += [[label, *figures("model", key)] for key, label in METRICS.items()]
    for label in ("random", "left to right"):
        rows.append([f"{METRICS['pointing']}: {label}", *figures(label, "pointing")])
    return table(_head("", models), rows)


def _metric(key: str, interval: Json) -> str:
    value, low, high = (format_metric(key, interval[side]) for side in ("value", "low", "high"))
    return f"{value} ({low.removesuffix(' %')} to {high.removesuffix(' %')})"


def _head(first: str, models: Iterable[Json]) -> list[str]:
    return [first, *(model["name"].upper() for model in models)]


def tables(content: Json) -> Mapping[str, Callable[[], str]]:
    """Return the tables of the page by their names."""
    claims = {name: partial(claim_table, name, content) for name in CLAIMS}
    others = {"models": model_table, "cell-counts": count_table, "boxes": localization_table}
    return claims | {name: partial(make, content) for name, make in others.items()}


def write_page(content: Json, page: Path) -> None:
    """Put the tables into the page; the words around them are kept."""
    text = fill_page(page.read_text(encoding="utf-8"), tables(content))
    with atomic_write(page) as file:
        file.write(text)


_PANEL_WIDTH_PX: Final = 545  # half of the paper's canvas
_TITLE_PX: Final = 26


def draw_pictures(
    models: Sequence[str], formulas: Mapping[str, npt.NDArray[np.uint8]], folder: Path
) -> list[Path]:
    """Draw a picture a formula: a column a model, a panel a token, over the whole canvas of the first model.

    Args:
        models: their names or folders.
        formulas: images of formulas at the models' scale, by the names of the pictures.
        folder: for the pictures.
    """
    readers = [Reader(find_model(model)) for model in models]
    shape = readers[0].model.config.canvas_shape
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for name, pixels in formulas.items():
        sheets = []
        for reader in readers:
            explanation = explain_image(reader, pixels, title=name, scale=1.0).on_canvas(shape)
            sheets.append((_caption(reader), _sheet(explanation)))
        paths.append(folder / f"{name}.png")
        with atomic_write(paths[-1], "wb") as file:
            _beside(sheets).quantize(64).save(file, "png", optimize=True)
    return paths


def _sheet(explanation: Explanation) -> Image.Image:
    tokens = tuple(token for token in explanation.tokens if token.text not in _BRACES)
    return contact_sheet(
        replace(explanation, tokens=tokens), spread="nearest", columns=1, panel_width_px=_PANEL_WIDTH_PX
    )


def _caption(reader: Reader) -> str:
    field = reader.model.config.receptive_field()
    return f"{reader.model.name.upper()}: cells of {field.columns.stride_px} x {field.rows.stride_px} pixels"


def _beside(sheets: Sequence[tuple[str, Image.Image]]) -> Image.Image:
    """Put sheets beside each other, each under its title."""
    height = max(sheet.height for _, sheet in sheets) + 2 * _TITLE_PX
    picture = Image.new("L", (sum(sheet.width for _, sheet in sheets), height), "white")
    draw, font, left = ImageDraw.Draw(picture), ImageFont.load_default(_TITLE_PX), 0
    for title, sheet in sheets:
        draw.text((left + sheet.width / 2, _TITLE_PX / 2), title, fill=28, font=font, anchor="ma")
        picture.paste(sheet.convert("L"), (left, 2 * _TITLE_PX))
        left += sheet.width
    return picture


def render_examples() -> dict[str, npt.NDArray[np.uint8]]:
    """Draw the formulas of the pictures by TeX, in the paper's style."""
    results = render_formulas([normalize_formula(formula).latex for formula in FORMULAS.values()])
    drawn = {name: result.pixels for name, result in zip(FORMULAS, results, strict=True)}
    return {name: pixels for name, pixels in drawn.items() if pixels is not None}


def main(arguments: Sequence[str] | None = None) -> None:
    """Do what the command line says."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path, nargs="?", help="a dataset with boxes")
    parser.add_argument("--models", default=MODELS, help="names or folders, with commas between them")
    parser.add_argument("--split", default="test", help="of the dataset")
    parser.add_argument("--limit", type=int, default=300, help="formulas that each model reads")
    options = parser.parse_args(arguments)
    if options.data is not None:
        require_boxes(options.data, options.split)
        models = options.models.split(",")
        for path in draw_pictures(models, render_examples(), PICTURES):
            print(path)
        measured = []
        for model in models:
            measured.append(measure_model(model, data=options.data, split=options.split, limit=options.limit))
            print(model, json.dumps(measured[-1]["localization"]["model"]["pointing"]))
        write_json(RESULTS, {"split": options.split, "models": measured})
    write_page(json.loads(RESULTS.read_text(encoding="utf-8")), PAGE)


if __name__ == "__main__":
    main()
