"""Takes over a finished run: its settings, curve, readings and scores, reduced to what is published."""

import gzip
import hashlib
import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from statistics import median
from typing import Any, Final, TypeAlias

import numpy as np
import yaml

from benchmarks.results.mistakes import count_mistakes, count_signs
from benchmarks.results.store import COUNTS, write_json
from i2l.dataset.format import DatasetReader
from i2l.errors import I2LError
from i2l.evaluation.scores import available_figures, bootstrap_figures, text_columns

Json: TypeAlias = Any

_DIGITS: Final = 6
_WORST: Final = 5  # samples, without which the edit distance is given too
_TRAIN: Final = ("loss", "token_accuracy", "teacher_forced_bleu", "learning_rate", "images_per_s")
_VALIDATION: Final = ("bleu", "edit_distance", "exact_match", "num_formulas")


def add_run(
    folder: Path,
    *,
    title: str,
    run: Path,
    config: Path,
    readings: Path,
    data: Path,
    evaluations: Mapping[str, Path],
    hardware: str,
    note: str,
) -> None:
    """Write the folder of a run.

    Args:
        folder: of the run in `results/`.
        title: as tables call it.
        run: what `i2l train` left: its metrics.jsonl.
        config: its config.yaml.
        readings: folder with test.beam10.txt.gz and the like.
        data: the dataset it was trained on.
        evaluations: for test and val, what `i2l evaluate` wrote about its readings.
        hardware: in words.
        note: what else should be known.

    Raises:
        I2LError: if an evaluation is about other formulas or readings.
    """
    folder.mkdir(parents=True, exist_ok=True)
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    curve = reduce_curve(rows)
    write_json(folder / "curve.json", curve)
    settings = _describe(rows, curve, config=config, data=data)
    write_json(folder / "run.json", {"title": title, **settings, "hardware": hardware, "note": note})
    kept = {}
    for split in ("test", "val"):
        search = next(s for s in ("beam10", "greedy") if (readings / f"{split}.{s}.txt.gz").is_file())
        path = readings / f"{split}.{search}.txt.gz"
        (folder / path.name).write_bytes(path.read_bytes())
        kept[split] = search
    for split, evaluation in evaluations.items():
        results = json.loads((evaluation / "results.json").read_text(encoding="utf-8"))
        samples = results["samples"]
        if samples["target"] != DatasetReader(data).split(split).formulas:
            raise I2LError(
                f"{evaluation} is not about the formulas of {split} in {data}; evaluate against them."
            )
        if results["source"]["predictions"]["sha256"] != _hash_text(folder / f"{split}.{kept[split]}.txt.gz"):
            raise I2LError(
                f"{evaluation} is about other readings than {kept[split]} of {split} in {readings}."
            )
        write_json(folder / f"{split}.json", publishable(results) | {"search": kept[split]})
        if split == "test":
            counts = {name: rounded(samples["counts"][name]) for name in COUNTS}
            write_json(folder / "counts.json.gz", counts)
        else:
            targets, found = ([line.split() for line in samples[side]] for side in ("target", "prediction"))
            training = Counter(t for f in DatasetReader(data).split("train").formulas for t in f.split())
            mistakes = count_mistakes(targets, found, samples["counts"])
            write_json(folder / "mistakes.json", mistakes | count_signs(targets, found, training))


def publishable(results: Mapping[str, Any]) -> dict[str, Any]:
    """Results without the formulas of the data and without names of files."""
    kept = {
        key: rounded(results[key])
        for key in (
            "format",
            "versions",
            "options",
            "num_samples",
            "figures",
            "by_length",
            "by_construct",
            "curves",
        )
    }
    kept["by_token"] = [rounded(entry) for entry in results["by_token"][:60]]
    kept["confusions"] = [
        [entry["target"], entry["prediction"], entry["count"]] for entry in results["confusions"]
    ]
    kept["faults"] = {kind: fault["count"] for kind, fault in results["faults"].items()}
    for name in ("jobs", "processes"):
        kept["options"].pop(name, None)
    ratios = sorted(results["samples"]["counts"]["edits_per_token"])
    kept["edit_distance_without_worst"] = {
        "samples": _WORST,
        "value": round(float(np.mean(ratios[:-_WORST])), _DIGITS),
        "share_of_the_worst": round(ratios[-1] / len(ratios), _DIGITS),
    }
    return kept


def publish_evaluation(source: Path, target: Path) -> None:
    """Take over an evaluation on other images."""
    write_json(target, publishable(json.loads((source / "results.json").read_text(encoding="utf-8"))))


def publish_localization(source: Path, target: Path) -> None:
    """Take over a measurement of attention, without its samples."""
    content = json.loads((source / "localization.json").read_text(encoding="utf-8"))
    content["localization"].pop("sample_iou")
    write_json(target, rounded({key: content[key] for key in ("localization", "attention", "fit")}))


def text_figures(targets: list[list[str]], readings: list[list[str]]) -> dict[str, Any]:
    """Every score of text with its interval, as JSON."""
    columns = text_columns(targets, readings)
    found = bootstrap_figures(columns, available_figures(columns))
    return {key: rounded(asdict(interval)) for key, interval in found.items()}


def _describe(
    rows: list[dict[str, Any]], curve: dict[str, Any], *, config: Path, data: Path
) -> dict[str, Any]:
    settings = yaml.safe_load(config.read_text(encoding="utf-8"))
    last = [row for row in rows if row["kind"] == "train"][-1]
    card = DatasetReader(data).card
    return {
        "model": "strips" if settings["model"]["pool_rows"] > 1 else "nopool",
        "settings": settings,
        "data": {
            "recipe": card["plan"]["recipe"]["name"],
            "lists": [given["name"].split(".")[0] for given in card["plan"]["inputs"]],
            "num_samples": {name: split["num_samples"] for name, split in card["splits"].items()},
        },
        "steps": max(row["step"] for row in rows),
        "epochs": round(last["epochs"], 2),
        "minutes": curve["train"]["minutes"][-1],
        "images_per_s": round(settings["training"]["batch_size"] * last["step"] / last["elapsed_s"]),
        "images_per_s_median": round(median(curve["train"]["images_per_s"])),
        "train_bleu": round(last["teacher_forced_bleu"], _DIGITS),
        "ase": round(last["ase"], 3),
    }


def reduce_curve(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """What is plotted of metrics.jsonl, with minutes also for validations."""
    train = [row for row in rows if row["kind"] == "train"]
    clock = [row["step"] for row in train], [row["elapsed_s"] / 60 for row in train]
    validation = [
        {
            "step": row["step"],
            "minutes": round(float(np.interp(row["step"], *clock)), 3),
            "search": row["kind"].partition("/")[2],
            **{key: rounded(row[key]) for key in _VALIDATION},
        }
        for row in rows
        if row["kind"].startswith("validation")
    ]
    columns = {key: [rounded(row[key]) for row in train] for key in _TRAIN}
    minutes = [round(value, 3) for value in clock[1]]
    return {"train": {"step": clock[0], "minutes": minutes, **columns}, "validation": validation}


def _hash_text(path: Path) -> str:
    return hashlib.sha256(gzip.decompress(path.read_bytes())).hexdigest()


def rounded(value: Json) -> Json:
    """The same with fewer digits."""
    if isinstance(value, float):
        return float(f"{value:.{_DIGITS}g}") if abs(value) > 1 else round(value, _DIGITS)
    if isinstance(value, dict):
        return {key: rounded(part) for key, part in value.items()}
    return [rounded(part) for part in value] if isinstance(value, list) else value
