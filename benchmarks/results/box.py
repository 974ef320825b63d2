"""The model in the box: what it had to reach and what it reaches, from `results/box/` and the model's folder.

test.json, real.json, sweep.json, localization.json   as of a run
test.txt.gz      its readings of the test split
wild.json        what `benchmarks.wild` measured
measured.json    eight bits against float32, the race against pix2tex, scores without what no picture shows
"""

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

import numpy as np

from benchmarks.results.add import publish_evaluation, publish_localization
from benchmarks.results.markdown import distance, percent, points, score, table
from benchmarks.results.score_tables import all_scores, localization, real, subsets, sweep
from benchmarks.results.store import FOLDER, Run, write_compressed, write_json
from benchmarks.results.wild_tables import publish_wild, wild_boxes, wild_calibration, wild_scores, wild_speed
from i2l.errors import I2LError
from i2l.evaluation.scores import FIGURE_BY_KEY, Interval, bootstrap_figures, paired_bootstrap, text_columns
from i2l.formulas.commands import SPACES
from i2l.inference.model_folder import BUNDLED, bundled_models, read_calibration

_BARS: Final = {
    "bleu_moses": 0.92,
    "edit_distance": 0.045,
    "im2markup_match_no_spaces": 0.85,
    "strict_match": 0.70,
    "compiles": 0.999,
}
_REAL_BLEU, _SWEEP_LOSS, _POINTING, _CALIBRATION, _ROUNDING, _FASTER = 0.90, 0.03, 0.95, 0.03, 0.002, 5
_MAX_MB: Final = 32
_DROPPED: Final = frozenset({r"\,", r"\;", r"\:"})  # by the renderer of the other images
_UNSEEN: Final = SPACES | {"{", "}"}
_COMPARED: Final = "nopool"  # whose localisation must be beaten


class Box(Run):
    """The folder of the model in the box."""

    @property
    def title(self) -> str:
        """As tables call it."""
        return "PINPOINT"


def load_box(folder: Path = FOLDER) -> Box:
    """The published figures."""
    return Box(folder / "box")


def take_over(
    evaluations: Mapping[str, Path | None], *, race: Path | None, float32: Path | None, wild: Path | None
) -> None:
    """Publish what was measured; what is None stays as it is.

    Args:
        evaluations: of "test", "real", "sweep" and "localization", what `i2l evaluate` wrote.
        race: what `benchmarks/pix2tex_peer.py --race` wrote.
        float32: an evaluation of the unrounded model on the first samples of test.
        wild: what `python -m benchmarks.wild` wrote.
    """
    folder = load_box().path
    folder.mkdir(parents=True, exist_ok=True)
    for name, source in evaluations.items():
        if source:
            publish = publish_localization if name == "localization" else publish_evaluation
            publish(source, folder / f"{name}.json")
    if source := evaluations.get("test"):
        write_compressed(folder / "test.txt.gz", "\n".join(_samples(source)["prediction"]) + "\n")
    if wild:
        publish_wild(wild, folder / "wild.json")
    measured = load_box().part("measured") or {}
    if source := evaluations.get("real"):
        measured["dropped_spaces"] = _without(source, _DROPPED, at_best=True)
    if source := evaluations.get("test"):
        measured["invisible"] = {"spaces": _without(source, SPACES), "and braces": _without(source, _UNSEEN)}
    if race:
        measured["race"] = json.loads(race.read_text(encoding="utf-8"))
    if float32:
        if not evaluations.get("test"):
            raise I2LError("--float32 is compared with --test; give both.")
        measured["rounding"] = _compare_rounding(evaluations["test"], float32)
    write_json(folder / "measured.json", measured)


def _samples(evaluation: Path | None) -> dict[str, Any]:
    assert evaluation
    samples: dict[str, Any] = json.loads((evaluation / "results.json").read_text(encoding="utf-8"))["samples"]
    return samples


def _without(evaluation: Path | None, tokens: Collection[str], *, at_best: bool = False) -> dict[str, Any]:
    """Score as labelled, without some tokens on both sides, and what leaving out just these would give."""
    samples = _samples(evaluation)
    targets, readings = ([text.split() for text in samples[name]] for name in ("target", "prediction"))
    bare, bare_readings = (
        [[token for token in text if token not in tokens] for text in texts] for texts in (targets, readings)
    )
    pairs = {"as_labelled": (targets, readings), "without": (bare, bare_readings)}
    if at_best:
        pairs["at_best"] = targets, bare
    figures = [FIGURE_BY_KEY[key] for key in ("bleu_moses", "edit_distance")]
    return {
        name: {key: asdict(found) for key, found in bootstrap_figures(text_columns(*pair), figures).items()}
        for name, pair in pairs.items()
    }


def _compare_rounding(rounded: Path | None, float32: Path) -> dict[str, Any]:
    """Compare BLEU on the samples that both have read."""
    small, large = _samples(rounded), _samples(float32)
    count = len(large["target"])
    if small["target"][:count] != large["target"]:
        raise I2LError(f"{float32} is not about the first formulas of {rounded}.")
    figure = FIGURE_BY_KEY["bleu_moses"]
    columns = [
        {name: np.array(part["counts"][name][:count], dtype=np.float64) for name in figure.columns}
        for part in (large, small)
    ]
    found = paired_bootstrap(columns[0], columns[1], [figure])["bleu_moses"]
    return {"samples": count, "bleu": asdict(found.interval)}


def bars(box: Box) -> str:
    """What had to be reached, and whether it was."""
    rows: list[list[str]] = []

    def add(what: str, bar: str, ours: str, met: bool) -> None:
        rows.append([what, bar, ours, "met" if met else "**missed**"])

    figures = box.figures()
    for key, bar in _BARS.items():
        figure, found = FIGURE_BY_KEY[key], figures[key]
        met = found.value >= bar if figure.higher_is_better else found.value <= bar
        shown = percent(bar, 1) if figure.higher_is_better else distance(bar)
        add(f"test: {figure.label}", shown, score(key, found, with_interval=True), met)
    bleu = box.figures("real")["bleu_moses"]
    shown = score("bleu_moses", bleu, with_interval=True)
    add("someone else's renderer: BLEU", percent(_REAL_BLEU, 0), shown, bleu.value >= _REAL_BLEU)
    for curve in (box.part("sweep") or {"curves": []})["curves"]:
        values = {point["label"]: point["figures"]["bleu_moses"]["value"] for point in curve["points"]}
        worst = min(values, key=lambda label: values[label])
        loss = max(values.values()) - values[worst]
        add(
            f"{curve['name']}: BLEU lost against the best point",
            f"{100 * _SWEEP_LOSS:g}",
            f"{100 * loss:.2f} (at {worst})",
            loss <= _SWEEP_LOSS,
        )
    rows += _localization_rows(box)
    name = bundled_models()[0]
    calibration = read_calibration(BUNDLED / name)
    if calibration:
        error = calibration.error
        add("calibration error of the confidence", f"{_CALIBRATION}", f"{error:.3f}", error <= _CALIBRATION)
    measured = box.part("measured") or {}
    if rounding := measured.get("rounding"):
        lost = -rounding["bleu"]["value"]
        low, high = (points(rounding["bleu"][side]) for side in ("low", "high"))
        add(
            f"eight bits against float32: BLEU lost ({rounding['samples']:,} of test)",
            f"{100 * _ROUNDING:g}",
            f"{100 * lost:.2f} (change {low} to {high})",
            lost <= _ROUNDING,
        )
    if race := measured.get("race"):
        faster = race["pix2tex_s"] / race["i2l_s"]
        add(
            f"times as fast as pix2tex ({race['images']} images, {race['threads']} threads)",
            f"{_FASTER}",
            f"{faster:.1f}",
            faster >= _FASTER,
        )
    size_mb = sum(path.stat().st_size for path in (BUNDLED / name).iterdir()) / 2**20
    add("size, MiB", f"{_MAX_MB}", f"{size_mb:.1f}", size_mb <= _MAX_MB)
    return table(["what", "bar", "reached (95 % interval)", ""], rows)


def dropped_spaces(box: Box) -> str:
    """Images of another renderer, with and without the spaces that it left out."""
    measured = (box.part("measured") or {})["dropped_spaces"]
    names = {
        "as_labelled": "as labelled",
        "without": r"without `\,` `\;` `\:` in label and reading",
        "at_best": "as labelled, if all else were read right",
    }
    return table(["", "BLEU", "edits per token"], [_scores(measured, name, names[name]) for name in names])


def invisible(box: Box) -> str:
    """What is left of the edits on test without what draws nothing."""
    parts = (box.part("measured") or {})["invisible"]
    rows = [_scores(parts["spaces"], "as_labelled", "as labelled")]
    rows.append(_scores(parts["spaces"], "without", "without spaces"))
    rows.append(_scores(parts["and braces"], "without", "without spaces and braces"))
    return table(["", "BLEU", "edits per token"], rows)


def _scores(part: Mapping[str, Any], name: str, label: str) -> list[str]:
    found = {key: Interval(**value) for key, value in part[name].items()}
    return [label, *(score(key, found[key], with_interval=True) for key in ("bleu_moses", "edit_distance"))]


def _localization_rows(box: Box) -> list[list[str]]:
    part = box.part("localization")
    if not part:
        return []
    figures = part["localization"]["systems"][0]["figures"]
    pointing = figures["cell_pointing"]["value"]
    other = Run(FOLDER / _COMPARED).part("localization")
    assert other
    theirs = other["localization"]["systems"][0]["figures"]
    better = [
        found["value"] < theirs[key]["value"]
        if key.startswith("distance")
        else found["value"] > theirs[key]["value"]
        for key, found in figures.items()
    ]
    return [
        [
            "attention's peak in the token's box, dilated by half a cell",
            percent(_POINTING, 0),
            percent(pointing, 1),
            "met" if pointing >= _POINTING else "**missed**",
        ],
        [
            "localisation figures better than NOPOOL's",
            str(len(better)),
            str(sum(better)),
            "met" if all(better) else "**missed**",
        ],
    ]


def _of(make: Callable[[Sequence[Run]], str]) -> Callable[[Box], str]:
    return lambda box: make([box])


TABLES: Final[dict[str, Callable[[Box], str]]] = {
    "box-bars": bars,
    "box-scores": _of(all_scores),
    "box-subsets": _of(subsets),
    "box-real": _of(real),
    "box-sweep": _of(sweep),
    "box-localization": _of(localization),
    "box-dropped-spaces": dropped_spaces,
    "box-invisible": invisible,
    "box-wild-scores": wild_scores,
    "box-wild-boxes": wild_boxes,
    "box-wild-calibration": wild_calibration,
    "box-wild-speed": wild_speed,
}
