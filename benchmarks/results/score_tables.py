"""Our own tables of docs/results.md, from the published files alone."""

from collections.abc import Callable, Sequence
from typing import Any, Final

from benchmarks.results.markdown import NOTHING, distance, points, score, table
from benchmarks.results.mistakes import LIMIT
from benchmarks.results.store import COMPARED, FIRST, VARIANTS, Run
from i2l.evaluation.scores import FIGURES, Figure, Interval, paired_bootstrap
from i2l.explain.localization import METRICS, format_metric

_SUBSETS: Final = ("bleu_moses", "tolerant_match", "strict_match", "character_f1")
_ATTENTION: Final[dict[str, tuple[str, Callable[[float], str]]]] = {
    "mean_cells": ("cells that hold 90 % of a step's attention, mean", "{:.2f}".format),
    "share_up_to_four": ("steps with at most four such cells", "{:.1%}".format),
    "around_peak": ("attention within one cell of the peak", "{:.1%}".format),
    "order_correlation": ("step and place from left to right, Spearman", "{:.3f}".format),
    "right": ("steps that go on to the right", "{:.1%}".format),
    "still": ("... stay", "{:.1%}".format),
    "left": ("... go back", "{:.1%}".format),
    "empty_first": ("attention on cells without ink: first step", "{:.1%}".format),
    "empty_between": ("... steps between", "{:.1%}".format),
    "empty_eos": ("... end token", "{:.1%}".format),
    "ase": ("ASE_N (the authors: NOPOOL 4.58, STRIPS 5.38)", "{:.2f}".format),
}
_RULES: Final = {
    "as read": "as read",
    "guard": "guard: well-formed, and repetition stopped",
    "no length norm": "most probable, not most probable a token",
    "both": "both",
}


def all_scores(runs: Sequence[Run]) -> str:
    """Every score of the evaluator."""
    figures = [run.figures() for run in runs]
    rows = [
        [figure.label, *(score(figure.key, found.get(figure.key), with_interval=True) for found in figures)]
        for figure in FIGURES
    ]
    return table(["score", *(run.title for run in runs)], rows)


def differences(runs: Sequence[Run]) -> str:
    """Runs against each other on the same samples."""
    by_name = {run.name: run for run in runs}
    ends = (FIRST, *VARIANTS)
    names = [(name, name.removesuffix(end)) for end in ends for name in by_name if name.endswith(end)]
    names.append(("nopool", "strips"))
    return compare([(by_name[a], by_name[b]) for a, b in names if a in by_name and b in by_name])


def compare(pairs: Sequence[tuple[Run, Run]]) -> str:
    """The second run of each pair minus the first, on the same test formulas."""
    found = [paired_bootstrap(first.counts, second.counts, COMPARED) for first, second in pairs]
    rows = []
    for figure in COMPARED:
        row = [figure.label]
        for compared in found:
            gap = compared[figure.key]
            shown = [
                _change(figure, value) for value in (gap.interval.value, gap.interval.low, gap.interval.high)
            ]
            row.append(f"{shown[0]} ({shown[1]} to {shown[2]}), p = {gap.p_value:.3f}")
        rows.append(row)
    head = ["score", *(f"{second.title} minus {first.title}" for first, second in pairs)]
    return table(head, rows)


def edit_distance(runs: Sequence[Run]) -> str:
    """Where the edits per token come from, and what other rules of search give."""
    head = ["run", "as read", "without the worst 5", "the worst one alone", "readings that never end"]
    again = [(run, run.part("reread")) for run in runs]
    rows = []
    for run in runs:
        test = run.part("test")
        assert test is not None
        without = test["edit_distance_without_worst"]
        _, readings = run.readings("test")
        endless = sum(len(reading.split()) >= LIMIT for reading in readings)
        rows.append(
            [
                run.title,
                score("edit_distance", run.figures()["edit_distance"], with_interval=True),
                distance(without["value"]),
                distance(without["share_of_the_worst"]),
                f"{endless} of {len(readings):,}",
            ]
        )
    lines = [table(head, rows)]
    for run, part in again:
        if part:
            rows = [
                [
                    words,
                    ", ".join(map(str, part["rules"][rule]["num_tokens"])),
                    *(
                        score(key, Interval(**part["rules"][rule]["figures"][key]), with_interval=True)
                        for key in ("edit_distance", "bleu_moses")
                    ),
                ]
                for rule, words in _RULES.items()
            ]
            head = [f"{run.title}: {part['num_reread']} read again", "tokens read", "edits per token", "BLEU"]
            lines.append(table(head, rows, words=2))
        if part and "first" in part:
            lines.append(_reread_all(run, part["first"]))
    return "\n\n".join(lines)


def _reread_all(run: Run, part: dict[str, Any]) -> str:
    """The first images, read again whether they need it or not."""
    head = [
        f"{run.title}: first {part['num_samples']} of test, {part['num_changed']} readings change",
        "edits per token",
        "BLEU",
        "exact match",
    ]
    keys = ("edit_distance", "bleu_moses", "exact_match")
    rows = [
        [
            _RULES[rule],
            *(score(key, Interval(**part[rule][key]), with_interval=True) for key in keys),
        ]
        for rule in ("as read", "no length norm")
    ]
    return table(head, rows)


def subsets(runs: Sequence[Run]) -> str:
    """The scores by length and by construct, without the variants."""
    shown = [run for run in runs if not run.is_variant]
    parts = [run.part("test") for run in shown]
    rows = []
    for group in ("by_length", "by_construct"):
        for number, subset in enumerate(parts[0][group] if parts[0] else []):
            cells = []
            for key in _SUBSETS:
                values = [part[group][number]["figures"][key]["value"] for part in parts if part]
                cells.append(" / ".join(f"{100 * value:.1f}" for value in values))
            label = f"{subset['label']} tokens" if group == "by_length" else subset["label"]
            rows.append([label, f"{subset['num_samples']:,}", *cells])
    titles = " / ".join(run.title for run in shown)
    head = ["subset", "samples", "BLEU", "tolerant match", "identical pixels", "character F1"]
    return f"Each cell: {titles}.\n\n{table(head, rows)}"


def localization(runs: Sequence[Run]) -> str:
    """Where models look: the latest beside looks that know nothing, then all side by side."""
    parts = [(run, part) for run in runs if (part := run.part("localization"))]
    if not parts:
        return "Not measured yet."
    lines = []
    for run, part in parts:
        if not run.is_latest:
            continue
        found = part["localization"]
        head = [
            f"{run.title}: {found['num_tokens']:,} tokens of {found['num_samples']:,} formulas",
            *(system["label"] for system in found["systems"]),
        ]
        rows = [
            [label, *(_metric(key, system, number == 0) for number, system in enumerate(found["systems"]))]
            for key, label in METRICS.items()
        ]
        lines.append(table(head, rows))
    rows = []
    if len(parts) > 1:
        rows += [
            [label, *(_metric(key, part["localization"]["systems"][0], False) for _, part in parts)]
            for key, label in METRICS.items()
        ]
    rows += [
        [words, *(shown(part["attention"][key]) for _, part in parts)]
        for key, (words, shown) in _ATTENTION.items()
    ]
    lines.append(table(["attention", *(run.title for run, _ in parts)], rows))
    return "\n\n".join(lines)


def real(runs: Sequence[Run]) -> str:
    """Images of another renderer, beside our own for the latest runs."""
    columns: dict[str, dict[str, Any]] = {}
    for run in runs:
        if part := run.part("real"):
            columns[f"{run.title}, theirs ({part['num_samples']:,})"] = part["figures"]
            test = run.part("test")
            if run.is_latest and test:
                columns[f"{run.title}, ours, test ({test['num_samples']:,})"] = test["figures"]
    if not columns:
        return "Not measured yet."
    rows = [
        [
            figure.label,
            *(score(figure.key, Interval(**c[figure.key]), with_interval=True) for c in columns.values()),
        ]
        for figure in FIGURES
        if all(figure.key in column for column in columns.values())
    ]
    return table(["score", *columns], rows)


def sweep(runs: Sequence[Run]) -> str:
    """Our own images, disturbed."""
    parts = [(run, part) for run in runs if (part := run.part("sweep"))]
    if not parts:
        return "Not measured yet."
    rows = [
        [
            f"{run.title}, {curve['name']}",
            point["label"],
            f"{point['num_samples']:,}",
            *(score(key, Interval(**point["figures"][key]), with_interval=True) for key in _SUBSETS),
        ]
        for run, part in parts
        for curve in part["curves"]
        for point in curve["points"]
    ]
    head = ["run", "disturbance", "samples", "BLEU", "tolerant match", "identical pixels", "character F1"]
    return table(head, rows, words=2)


def settings(runs: Sequence[Run]) -> str:
    """How each was trained."""

    def row(label: str, value: Callable[[Run], str]) -> list[str]:
        return [label, *(value(run) for run in runs)]

    def of(section: str, *names: str) -> Callable[[Run], str]:
        return lambda run: ", ".join(_setting(run.settings["settings"][section].get(name)) for name in names)

    rows = [
        row("training formulas", lambda run: f"{run.settings['data']['num_samples']['train']:,}"),
        row("lists", lambda run: ", ".join(run.settings["data"]["lists"][:-2])),
        row("steps, epochs", lambda run: f"{run.settings['steps']:,}, {run.settings['epochs']:g}"),
        row("batch", of("training", "batch_size")),
        row("optimiser", of("training", "optimizer", "learning_rate", "beta1", "beta2")),
        row("schedule", of("training", "schedule", "warmup_steps", "final_fraction")),
        row("clipping, averaging", of("training", "clip_norm", "ema_decay")),
        row("precision", of("training", "precision")),
        row("L2", of("objective", "l2")),
        row("dropout", of("model", "dropout")),
        row("label smoothing", of("objective", "label_smoothing")),
        row("shifted images, px", of("training", "shift_px")),
        row("spelling", of("training", "spelling")),
        row("seen more often", of("training", "emphasis")),
        row("images/s, median", lambda run: f"{run.settings['images_per_s_median']:,}"),
        row("note", lambda run: run.settings["note"] or NOTHING),
    ]
    return table(["", *(run.title for run in runs)], rows, words=1 + len(runs))


def _change(figure: Figure, value: float) -> str:
    return points(value) if figure.higher_is_better else f"{value:+.4f}"


def _metric(key: str, system: dict[str, Any], with_interval: bool) -> str:
    found = system["figures"][key]
    text = format_metric(key, found["value"])
    if not with_interval:
        return text
    return f"{text} ({format_metric(key, found['low'])} to {format_metric(key, found['high'])})"


def _setting(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value)) or NOTHING
    if value is None:  # a setting that did not exist yet
        return NOTHING
    return f"{value:g}" if isinstance(value, float) else str(value)


TABLES: Final[dict[str, Callable[[Sequence[Run]], str]]] = {
    "all-scores": all_scores,
    "differences": differences,
    "edit-distance": edit_distance,
    "subsets": subsets,
    "localization": localization,
    "real": real,
    "sweep": sweep,
    "settings": settings,
}
