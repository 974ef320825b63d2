r"""One evaluation, from files of formulas to results.

A file holds one formula a line, either alone or after a name and a tab (`17.png<TAB>\frac { a } { b }`).
Named lines are matched by name, others by their place in the file; whatever is wrong with a file is counted
and said. The pairs of target and prediction are then compared in several processes, resampled for intervals,
and broken down, with progress on stderr.
"""

import multiprocessing
import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Protocol, Self

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from i2l.errors import I2LError
from i2l.evaluation.breakdown import (
    Blocks,
    align_tokens,
    find_confusions,
    scores_by_construct,
    scores_by_length,
    scores_by_token,
)
from i2l.evaluation.results import EvaluationResult
from i2l.evaluation.scores import ROUNDS, Columns, available_figures, bootstrap_figures, text_columns
from i2l.evaluation.visual import (
    PreparedFormula,
    VisualSample,
    compare_images,
    prepare_formula,
    visual_columns,
)


class PairsError(I2LError):
    """Files that cannot be paired."""


@dataclass(frozen=True)
class FormulaFile:
    """The lines of one file."""

    formulas: list[str]
    names: list[str] | None  # None if the lines carry no names
    malformed: dict[int, str]  # index of the line -> what is wrong; its formula is empty


@dataclass(frozen=True)
class Pairs:
    """Targets and predictions, in the order of the targets; a prediction that is not there is empty."""

    names: list[str]
    targets: list[str]
    predictions: list[str]
    faults: dict[str, list[str]] = field(default_factory=dict)  # kind of fault -> the places that have it

    def __len__(self) -> int:
        return len(self.targets)


def read_formula_file(path: Path) -> FormulaFile:
    """Read a file of formulas; it is one of named lines if its first line with content has a tab.

    Raises:
        PairsError: if there is no such file, or nothing in it.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise PairsError(f"Cannot read {path}: {error.strerror}") from error
    lines = content.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    while lines and not lines[-1].strip():
        lines.pop()
    if not lines:
        raise PairsError(f"{path} is empty; it must hold one formula a line.")
    named = b"\t" in next(line for line in lines if line.strip())
    parsed = [_parse_line(line, named) for line in lines]
    return FormulaFile(
        formulas=[formula for _, formula, _ in parsed],
        names=[name for name, _, _ in parsed] if named else None,
        malformed={index: wrong for index, (_, _, wrong) in enumerate(parsed) if wrong},
    )


def _parse_line(line: bytes, named: bool) -> tuple[str, str, str]:
    """Name, formula, and what is wrong."""
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError:
        return "", "", "not UTF-8"
    if "\x00" in text:
        return "", "", "a zero byte"
    if not named:
        return "", text.strip(), ""
    name, tab, formula = text.partition("\t")
    if not tab or not name.strip():
        return "", "", "no name and tab before the formula"
    return name.strip(), formula.strip(), ""


def pair_files(targets: Path, predictions: Path) -> Pairs:
    """Pair the lines of two files.

    Raises:
        PairsError: if a file is missing or empty, targets are malformed, or only the predictions have names.
    """
    gold = read_targets(targets)
    found = read_formula_file(predictions)
    if found.names is not None and gold.names is None:
        raise PairsError(
            f"{predictions} names its lines and {targets} does not: add the names there, or remove them here."
        )
    if found.names is None or gold.names is None:
        return _pair_by_place(gold, found)
    return _pair_by_name(gold, found)


def read_targets(path: Path) -> FormulaFile:
    """Read a file of targets, in which every line must be right.

    Raises:
        PairsError: if it is missing, empty or malformed, or names a line twice.
    """
    gold = read_formula_file(path)
    for index, wrong in gold.malformed.items():
        raise PairsError(f"{path}, line {index + 1}: {wrong}. Targets must be whole; mend the file.")
    if gold.names is not None and len(set(gold.names)) < len(gold.names):
        twice = next(name for name in gold.names if gold.names.count(name) > 1)
        raise PairsError(f"{path} has the name {twice!r} twice.")
    return gold


def target_names(targets: FormulaFile) -> list[str]:
    """The names of the targets; the number of the line where they have none."""
    return targets.names or [str(number + 1) for number in range(len(targets.formulas))]


def _pair_by_place(gold: FormulaFile, found: FormulaFile) -> Pairs:
    names = target_names(gold)
    formulas = found.formulas[: len(names)]
    faults = {
        "missing": names[len(formulas) :],
        "empty": [
            names[index]
            for index, formula in enumerate(formulas)
            if not formula and index not in found.malformed
        ],
        "extra": [f"line {index + 1}" for index in range(len(names), len(found.formulas))],
        "malformed": [
            f"{names[index]}: {why}" for index, why in found.malformed.items() if index < len(names)
        ],
    }
    formulas += [""] * (len(names) - len(formulas))
    return Pairs(names, gold.formulas, formulas, _complete(faults, gold))


def _pair_by_name(gold: FormulaFile, found: FormulaFile) -> Pairs:
    names = target_names(gold)
    wanted = set(names)
    by_name: dict[str, str] = {}
    extra, duplicate = [], []
    for index, name in enumerate(found.names or []):
        if index in found.malformed:
            continue
        if name not in wanted:
            extra.append(name)
        elif name in by_name:
            duplicate.append(name)
        else:
            by_name[name] = found.formulas[index]
    faults = {
        "missing": [name for name in names if name not in by_name],
        "empty": [name for name in names if name in by_name and not by_name[name]],
        "extra": extra,
        "duplicate": duplicate,
        "malformed": [f"line {index + 1}: {why}" for index, why in found.malformed.items()],
    }
    return Pairs(names, gold.formulas, [by_name.get(name, "") for name in names], _complete(faults, gold))


def _complete(faults: dict[str, list[str]], gold: FormulaFile) -> dict[str, list[str]]:
    names = target_names(gold)
    faults["empty target"] = [name for name, formula in zip(names, gold.formulas, strict=True) if not formula]
    return {kind: places for kind, places in faults.items() if places}


class EvaluationProgress:
    """A bar for every stage that reports; gone when all is done."""

    def __init__(self) -> None:
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            transient=True,
        )
        self._tasks: dict[str, TaskID] = {}

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._progress.stop()

    def __call__(self, stage: str, done: int, total: int) -> None:
        """Show that ``done`` of ``total`` have passed ``stage``."""
        if stage not in self._tasks:
            self._tasks[stage] = self._progress.add_task(stage, total=total)
        self._progress.update(self._tasks[stage], completed=done)


# Pairs that one process gets at a time: TeX starts about nine times for a chunk.
_CHUNK_PAIRS: Final = 100, 500  # at least and at most: what one process compares at once


class Listener(Protocol):
    """Told how far the work is."""

    def __call__(self, stage: str, done: int, total: int) -> None:
        """``done`` of ``total`` have passed ``stage``."""


@dataclass(frozen=True)
class EvaluationOptions:
    """How to compare."""

    canonical: bool = True  # put both sides into canonical tokens first
    render: bool = True  # compare pictures too
    rounds: int = ROUNDS  # of resampling
    jobs: int = os.cpu_count() or 1


@dataclass(frozen=True)
class Evaluation:
    """Results, and the renders that only the report needs."""

    result: EvaluationResult
    visuals: list[VisualSample]  # empty if nothing was rendered


@dataclass(frozen=True)
class _Compared:
    """One chunk of pairs, compared."""

    targets: list[list[str]]
    predictions: list[list[str]]
    unparsed: list[tuple[bool, bool]]
    failures: list[str]  # what went wrong while a pair was compared; empty if nothing
    blocks: list[Blocks]
    columns: Columns
    visuals: list[VisualSample]


def evaluate_pairs(
    pairs: Pairs,
    *,
    options: EvaluationOptions,
    source: Mapping[str, Any],
    progress: Listener | None = None,
) -> Evaluation:
    """Compute every score of a set of predictions.

    Raises:
        MissingDependencyError: if pdflatex is not installed.
    """
    chunks, done = [], 0
    for chunk in _compare_all(list(zip(pairs.targets, pairs.predictions, strict=True)), options):
        chunks.append(chunk)
        done += len(chunk.targets)
        if progress:
            progress("comparing", done, len(pairs))
    compared = _join(chunks)
    columns, targets, predictions = compared.columns, compared.targets, compared.predictions
    blocks, visuals = compared.blocks, compared.visuals
    rounds = options.rounds
    result = EvaluationResult(
        source={"date": datetime.now(UTC).date().isoformat(), **source},
        options=asdict(options),
        faults=pairs.faults | _faults_found(pairs.names, compared),
        names=pairs.names,
        targets=targets,
        predictions=predictions,
        blocks=blocks,
        columns=columns,
        prediction_reasons=[visual.prediction_reason for visual in visuals],
        messages=[visual.message for visual in visuals],
        figures=bootstrap_figures(columns, available_figures(columns), rounds=rounds),
        by_length=scores_by_length(columns, targets, rounds=rounds),
        by_construct=scores_by_construct(columns, targets, rounds=rounds),
        by_token=scores_by_token(targets, predictions, blocks, rounds=rounds),
        confusions=find_confusions(pairs.names, targets, predictions, blocks),
    )
    return Evaluation(result, visuals)


def _compare_all(formulas: Sequence[tuple[str, str]], options: EvaluationOptions) -> Iterator[_Compared]:
    size = min(max(len(formulas) // (2 * options.jobs), _CHUNK_PAIRS[0]), _CHUNK_PAIRS[1])
    chunks = [formulas[start : start + size] for start in range(0, len(formulas), size)]
    compare = partial(_compare_chunk, canonical=options.canonical, render=options.render)
    if options.jobs <= 1 or len(chunks) <= 1:
        yield from map(compare, chunks)
        return
    # Spawned, not forked: the caller may hold a model, with the threads of its libraries.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(options.jobs, mp_context=context) as pool:
        yield from pool.map(compare, chunks)


def _compare_chunk(formulas: Sequence[tuple[str, str]], *, canonical: bool, render: bool) -> _Compared:
    """Compare pairs; one that our own code fails on is found by halving, and counts as read wrong."""
    try:
        pairs = [
            (prepare_formula(target, canonical=canonical), prepare_formula(prediction, canonical=canonical))
            for target, prediction in formulas
        ]
        return _compare(pairs, render=render)
    except I2LError:
        raise  # what a person must mend first, as a missing TeX
    except Exception as error:  # one pair never ends an evaluation of thousands
        compare = partial(_compare_chunk, canonical=canonical, render=render)
        if len(formulas) > 1:
            middle = len(formulas) // 2
            return _join([compare(formulas[:middle]), compare(formulas[middle:])])
        failure = f"{type(error).__name__}: {error}"
    ((target, prediction),) = formulas
    if prediction:
        compared = compare([(target, "")])
    else:  # it is the target that fails
        nothing = PreparedFormula(tokens=[], latex="", symbols=None)
        compared = _compare([(replace(nothing, tokens=target.split()), nothing)], render=render)
    return replace(compared, failures=[failure])


def _compare(pairs: Sequence[tuple[PreparedFormula, PreparedFormula]], *, render: bool) -> _Compared:
    targets = [target.tokens for target, _ in pairs]
    predictions = [prediction.tokens for _, prediction in pairs]
    visuals = compare_images(pairs) if render else []
    return _Compared(
        targets=targets,
        predictions=predictions,
        unparsed=[(not target.parsed, not prediction.parsed) for target, prediction in pairs],
        failures=[""] * len(pairs),
        blocks=[align_tokens(*sides) for sides in zip(targets, predictions, strict=True)],
        columns=text_columns(targets, predictions) | visual_columns(visuals),
        visuals=visuals,
    )


def _join(chunks: Sequence[_Compared]) -> _Compared:
    """Put chunks of pairs together, in their order."""
    return _Compared(
        targets=[tokens for chunk in chunks for tokens in chunk.targets],
        predictions=[tokens for chunk in chunks for tokens in chunk.predictions],
        unparsed=[flags for chunk in chunks for flags in chunk.unparsed],
        failures=[failure for chunk in chunks for failure in chunk.failures],
        blocks=[block for chunk in chunks for block in chunk.blocks],
        columns={
            name: np.concatenate([chunk.columns[name] for chunk in chunks]) for name in chunks[0].columns
        },
        visuals=[visual for chunk in chunks for visual in chunk.visuals],
    )


def _faults_found(names: Sequence[str], compared: _Compared) -> dict[str, list[str]]:
    """What turned out to be wrong with the formulas themselves."""
    faults = {
        "unparsed target": [name for name, (flag, _) in zip(names, compared.unparsed, strict=True) if flag],
        "unparsed prediction": [
            name for name, (_, flag) in zip(names, compared.unparsed, strict=True) if flag
        ],
        "target not rendered": [
            name for name, visual in zip(names, compared.visuals, strict=False) if visual.target_reason
        ],
        "pair not compared, counted as wrong": [
            f"{name} ({failure})" for name, failure in zip(names, compared.failures, strict=True) if failure
        ],
    }
    return {kind: places for kind, places in faults.items() if places}
