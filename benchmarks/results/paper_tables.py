"""The paper's tables with our rows beside the authors', from the published files alone."""

from collections.abc import Callable, Sequence
from typing import Final

from benchmarks.results.markdown import NOTHING, distance, percent, points, score, table
from benchmarks.results.paper import CURVE, NAMES, TARGETS, TEST_SCORES, TRAINING, TRAINING_90K
from benchmarks.results.score_tables import compare
from benchmarks.results.store import COMPARED, HEPTH, Run, load_runs
from i2l.evaluation.scores import FIGURE_BY_KEY, paired_bootstrap

_PAPER_KEYS: Final = ("bleu_moses", "edit_distance", "im2markup_match_no_spaces", "compiles_somehow")
_HEPTH_PAIRS: Final = (  # each a run and the one that differs from it in one thing (the third in two)
    ("nopool", "strips"),
    ("strips-no-init", "strips"),
    ("nopool-no-init-beta", "nopool"),
    ("strips-no-init", "strips-no-init-alpha"),
    ("nopool-no-skips", "nopool"),
)


def bars(runs: Sequence[Run]) -> str:
    """What had to be reached, and whether it was; the best run of each model with an init model."""
    rows = []
    for paper in TEST_SCORES[:2]:
        wanted = dict(
            zip(
                _PAPER_KEYS,
                (paper.bleu, paper.edit_distance, paper.visual_match, paper.compiles),
                strict=True,
            )
        )
        run = _best(runs, paper.model)
        for key, bar in wanted.items():
            if run is None or bar is None:
                continue
            figure, found = FIGURE_BY_KEY[key], run.figures()[key]
            met = found.value >= bar if figure.higher_is_better else found.value <= bar
            rows.append(
                [
                    run.title,
                    figure.label,
                    distance(bar) if key == "edit_distance" else percent(bar),
                    score(key, found, with_interval=True),
                    "met" if met else "**missed**",
                ]
            )
    run = _best(runs, "nopool")
    minutes = _minutes_to(run, 0.88)[0] if run else None
    if run and minutes:
        rows.append([run.title, "minutes to validation BLEU 88", "30", f"{minutes:.1f}", "met"])
    return table(["run", "score", "bar", "ours (95 % interval)", ""], rows, words=2)


def test_scores(runs: Sequence[Run]) -> str:
    """The paper's table of test scores."""
    rows = [
        [
            paper.dataset,
            NAMES.get(paper.model, paper.model),
            percent(paper.bleu),
            distance(paper.edit_distance),
            percent(paper.visual_match),
            percent(paper.compiles),
        ]
        for paper in TEST_SCORES
    ]
    for run in runs:
        figures = run.figures()
        rows.append(["**ours**", f"**{run.title}**", *(score(key, figures[key]) for key in _PAPER_KEYS)])
    return table(["data", "model", "BLEU", "edits per token", "visual match", "compiles"], rows, words=2)


def training(runs: Sequence[Run]) -> str:
    """The paper's table of training metrics, ours under theirs."""
    rows = [
        [
            f"{NAMES[paper.model]}, the authors",
            _yes(paper.init_model),
            str(paper.beta1),
            str(paper.epochs),
            percent(paper.train_bleu),
            percent(paper.bleu),
            distance(paper.edit_distance),
            f"{paper.ase:.2f}",
            "beam 10",
        ]
        for paper in TRAINING
    ]
    for run in runs:
        settings, val = run.settings["settings"], run.part("val")
        assert val is not None
        rows.append(
            [
                f"**{run.title}**",
                _yes(settings["model"]["init_model"]),
                f"{settings['training']['beta1']:g}",
                f"{run.settings['epochs']:g}",
                percent(run.settings["train_bleu"]),
                percent(val["figures"]["bleu_moses"]["value"]),
                distance(val["figures"]["edit_distance"]["value"]),
                f"{run.settings['ase']:.2f}",
                val["search"].replace("beam", "beam "),
            ]
        )
    head = ["model", "init model", "β1", "epochs", "train BLEU", "val BLEU", "val edits", "ASE_N", "search"]
    return table(head, rows)


def init_model(runs: Sequence[Run]) -> str:
    """What the init model is worth: theirs on validation, ours paired on test."""
    rows = []
    on_hepth = load_runs(HEPTH)
    for model in ("nopool", "strips"):
        theirs = {paper.init_model: paper.bleu for paper in TRAINING if paper.model == model}
        row = [
            NAMES[model],
            percent(theirs[True]),
            percent(theirs[False]),
            points(theirs[True] - theirs[False]),
        ]
        pair = _init_pair(runs, model) or _init_pair(on_hepth, model)
        if pair is None:
            rows.append([*row, NOTHING, NOTHING, "not trained"])
            continue
        row[0] += f", ours on {pair[0].settings['data']['num_samples']['train']:,} formulas"
        found = paired_bootstrap(pair[0].counts, pair[1].counts, COMPARED[:1])["bleu_moses"]
        gap = found.interval
        rows.append(
            [
                *row,
                percent(found.second),
                percent(found.first),
                f"{points(gap.value)} ({points(gap.low)} to {points(gap.high)}), p = {found.p_value:.3f}",
            ]
        )
    head = ["model", "theirs, with", "without", "gain", "ours, with", "without", "gain (95 % interval)"]
    return table(head, rows)


def hepth_scores(runs: Sequence[Run]) -> str:
    """The authors' rows on Im2latex-90k, and our runs on a set of its size and kind."""
    tested = {paper.model: paper for paper in TEST_SCORES if paper.dataset == "Im2latex-90k"}
    rows = []
    for paper in TRAINING_90K:
        test = tested.get(paper.model) if paper.init_model else None
        rows.append(
            [
                f"{NAMES[paper.model]}, the authors",
                _yes(paper.init_model),
                str(paper.beta1),
                f"{paper.alpha_penalty:g}",
                str(paper.epochs),
                f"{paper.ase:.2f}",
                percent(paper.bleu),
                distance(paper.edit_distance),
                *((percent(test.bleu), distance(test.edit_distance)) if test else (NOTHING, NOTHING)),
                percent(test.visual_match) if test else NOTHING,
            ]
        )
    for run in load_runs(HEPTH):
        settings, val, test = run.settings["settings"], run.figures("val"), run.figures()
        rows.append(
            [
                f"**{run.title}**",
                _yes(settings["model"]["init_model"]),
                f"{settings['training']['beta1']:g}",
                f"{settings['objective']['alpha_penalty']:g}",
                f"{run.settings['epochs']:g}",
                f"{run.settings['ase']:.2f}",
                score("bleu_moses", val["bleu_moses"]),
                score("edit_distance", val["edit_distance"]),
                *(score(key, test[key], with_interval=True) for key in _PAPER_KEYS[:3]),
            ]
        )
    head = ["model", "init model", "β1", "λ_A", "epochs", "ASE_N", "val BLEU", "val edits"]
    return table([*head, "test BLEU", "test edits", "visual match"], rows)


def hepth_differences(runs: Sequence[Run]) -> str:
    """What each change of a setting does, on the same test formulas."""
    by_name = {run.name: run for run in load_runs(HEPTH)}
    return compare([(by_name[a], by_name[b]) for a, b in _HEPTH_PAIRS if a in by_name and b in by_name])


def minutes(runs: Sequence[Run]) -> str:
    """How long until each BLEU."""
    head = ["run", *(f"{100 * target:.0f}" for target in TARGETS), "best", "minutes in all", "images/s"]
    rows = [
        [
            "NOPOOL, the authors (two GTX 1080 Ti)",
            *(f"about {time:,} min ({100 * bleu:.1f})" for time, bleu in CURVE),
            "89.09",
            "about 3,800",
            f"{56 * 213_965 / 2.3e5:.0f}",
        ]
    ]
    for run in runs:
        reached = [_minutes_to(run, target) for target in TARGETS]
        rows.append(
            [
                f"**{run.title}** ({run.settings['hardware']})",
                *(f"{by:.1f} min ({about:.1f})" if by is not None else "not" for by, about in reached),
                f"{100 * max(row['bleu'] for row in run.curve['validation']):.2f}",
                f"{run.settings['minutes']:.1f}",
                f"{run.settings['images_per_s']:,}",
            ]
        )
    return table(head, rows)


def _best(runs: Sequence[Run], model: str) -> Run | None:
    """The run of a model with the best BLEU on validation; with its init model."""
    found = [
        run
        for run in runs
        if run.settings["model"] == model and run.settings["settings"]["model"]["init_model"]
    ]
    return max(found, key=lambda run: run.figures("val")["bleu_moses"].value, default=None)


def _init_pair(runs: Sequence[Run], model: str) -> tuple[Run, Run] | None:
    """Without and with the init model, all else alike."""
    by_name = {run.name: run for run in runs}
    without, kept = by_name.get(f"{model}-no-init"), by_name.get(model)
    return (without, kept) if without and kept else None


def _minutes_to(run: Run, bleu: float) -> tuple[float | None, float]:
    """When a validation first showed so much, and when it will have been by a straight line between two."""
    before: dict[str, float] = {"minutes": 0.0, "bleu": 0.0}
    for row in run.curve["validation"]:
        if row["bleu"] >= bleu:
            share = (bleu - before["bleu"]) / (row["bleu"] - before["bleu"])
            return row["minutes"], before["minutes"] + share * (row["minutes"] - before["minutes"])
        before = row
    return None, 0.0


def _yes(value: bool) -> str:
    return "yes" if value else "no"


TABLES: Final[dict[str, Callable[[Sequence[Run]], str]]] = {
    "bars": bars,
    "test-scores": test_scores,
    "training": training,
    "init-model": init_model,
    "hepth-scores": hepth_scores,
    "hepth-differences": hepth_differences,
    "minutes": minutes,
}
