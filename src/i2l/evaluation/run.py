"""One evaluation, from pairs to results: compare in several processes, resample, break down."""

import multiprocessing
import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any, Final, Protocol

import numpy as np

from i2l.errors import I2LError
from i2l.evaluation.bootstrap import ROUNDS, bootstrap_figures
from i2l.evaluation.breakdown import (
    Blocks,
    align_tokens,
    find_confusions,
    scores_by_construct,
    scores_by_length,
    scores_by_token,
)
from i2l.evaluation.figures import available_figures
from i2l.evaluation.pairs import Pairs
from i2l.evaluation.prepare import PreparedFormula, prepare_formula
from i2l.evaluation.results import EvaluationResult
from i2l.evaluation.text_metrics import Columns, text_columns
from i2l.evaluation.visual import VisualSample, compare_images, visual_columns

# Pairs that one process gets at a time: TeX starts about nine times for a chunk.
_CHUNK: Final = 100, 500


class Progress(Protocol):
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
    progress: Progress | None = None,
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
        source=dict(source),
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
    size = min(max(len(formulas) // (2 * options.jobs), _CHUNK[0]), _CHUNK[1])
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
