"""Formulas or labelled pictures to a dataset: the stages in their order, each taken up where it was left."""

import os
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from importlib.metadata import version
from itertools import islice
from pathlib import Path
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from i2l import __version__
from i2l.dataset.card import summarize, write_card, write_readme, write_report
from i2l.dataset.format import BANK_FILE, CARD_FILE, FORMAT, VERDICTS_FILE, VOCABULARY_FILE, DatasetReader
from i2l.dataset.shards import (
    ShardOptions,
    check_styles,
    lay_out_pages,
    lay_out_shards,
    write_pages,
    write_shard,
)
from i2l.dataset.sources import (
    HAND_STYLES,
    SPLITS,
    TRAIN,
    InputError,
    LineNames,
    Origin,
    Recipe,
    Source,
    StoredNames,
    file_sha256,
    origins_writer,
    pictures_sha256,
)
from i2l.dataset.stages import (
    INKS_FILE,
    LINES,
    SELECTED,
    BuildProgress,
    Engine,
    LocalEngine,
    RayEngine,
    StageOptions,
    normalize_part,
    picture_part,
)
from i2l.dataset.verdicts import (
    DUPLICATE,
    EARLY_REASONS,
    UNASSIGNED,
    VERDICTS_SCHEMA,
    BuildOutcome,
    Selection,
    count_tokens,
    decide_verdicts,
    select_lines,
)
from i2l.dataset.work import (
    BuildError,
    Plan,
    WorkFolder,
    disk_errors_explained,
    plan_differences,
    read_part,
    write_part,
)
from i2l.errors import require_choice
from i2l.files import atomic_write
from i2l.formulas.expansion import Macros
from i2l.formulas.vocabulary import Vocabulary
from i2l.ink.bank import Bank
from i2l.ink.strokes import Ink
from i2l.rendering.sandbox import tex_path

EngineName = Literal["local", "ray"]

PART_LINES = 2_000  # about 4 s of work, which is what a kill can cost


@dataclass(frozen=True)
class BuildOptions:
    """What the bytes of the dataset depend on, besides its inputs."""

    recipe: Recipe
    seed: int = 0  # of the splits, and of the styles where a recipe draws them
    compact: bool = False  # vector pages instead of pixels
    boxes: bool = True  # of rendered formulas; those of pictures are not known
    part_lines: int = PART_LINES


@dataclass(frozen=True)
class EngineOptions:
    """Who does the work; nothing here changes the result."""

    name: EngineName = "local"
    jobs: int | None = None  # None: one for each core
    address: str | None = None  # of a Ray cluster; None: start one on this machine

    def start(self, scratch: Path) -> Engine:
        """Make the engine.

        Raises:
            I2LError: if there is none of that name.
        """
        require_choice(self.name, EngineName, "engine")
        if self.name == "ray":
            return RayEngine(address=self.address, jobs=self.jobs)
        return LocalEngine(jobs=self.jobs or os.cpu_count() or 1, scratch=scratch)


def build_dataset(
    sources: Sequence[Source],
    *,
    out: Path,
    options: BuildOptions,
    engine: EngineOptions | None = None,
    quiet: bool = False,
) -> DatasetReader:
    """Build a dataset, or go on with one that was interrupted; `out` appears when all of it is there.

    Raises:
        BuildError: if `out` holds something else, or the build cannot go on.
        LinesError: if an input file cannot be read.
        InputError: if an input is not what it should be.
        TexError: if a style cannot be drawn on this machine.
    """
    recipe = options.recipe
    if min(recipe.val_fraction, recipe.test_fraction) < 0 or recipe.val_fraction + recipe.test_fraction >= 1:
        raise BuildError("The shares of val and test must be at least 0, and less than 1 together.")
    _check_sources(sources, options)
    plan = make_plan(sources, options)
    work = WorkFolder(out.parent / f".{out.name}.work")
    if (out / CARD_FILE).exists():
        dataset = DatasetReader(out)
        if differing := plan_differences(dataset.card["plan"], plan):
            raise BuildError(
                f"{out} holds a dataset that differs in: {', '.join(differing)}. Choose another --out."
            )
    else:
        if out.exists() and (os.path.ismount(out) or not out.is_dir() or any(out.iterdir())):
            raise BuildError(f"{out} is in use; choose an --out that does not exist yet.")
        workers = (engine or EngineOptions()).start(work.scratch)
        with disk_errors_explained(out.parent), work.claimed(plan), BuildProgress(quiet=quiet) as progress:
            _Build(sources, options, work, plan, workers, progress).run()
            os.rename(work.result, out)
        dataset = DatasetReader(out)
    shutil.rmtree(work.path, ignore_errors=True)
    return dataset


def _check_sources(sources: Sequence[Source], options: BuildOptions) -> None:
    """Refuse sources that cannot be told apart, or that the form of the dataset has no room for."""
    twice = [name for name, count in Counter(source.name for source in sources).items() if count > 1]
    if twice:
        raise InputError(f"Two inputs are called {twice[0]}, so ids would be the same; rename one of them.")
    if options.compact and any(source.pictures is not None for source in sources):
        raise BuildError("Pictures have no vector pages to store; leave out --compact.")
    hand, inks = options.recipe.styles == HAND_STYLES, any(source.copies for source in sources)
    if hand != inks:
        raise BuildError(
            "The recipe hand writes with the symbols of inks, and no other recipe does: "
            "give both --recipe hand and --inks, or neither."
        )
    if hand and any(source.pictures is not None for source in sources):
        raise BuildError("Pictures and inks are two datasets; build both, and train on both.")
    if hand and options.compact and not options.boxes:
        raise BuildError("Symbols of compact handwriting are drawn into their boxes; leave out --no-boxes.")


def make_plan(sources: Sequence[Source], options: BuildOptions) -> Plan:
    """Write down all that the bytes of the dataset depend on."""
    versions = {"i2l": __version__} | {name: version(name) for name in ("pillow", "pyarrow", "pypdfium2")}
    if _renders(sources):
        call = [tex_path(), "--version"]
        banner = subprocess.run(call, capture_output=True, text=True, check=True).stdout
        versions["pdflatex"] = banner.partition("\n")[0]
    return {
        "format": FORMAT,
        "inputs": [
            {
                "name": source.name,
                "split": source.split,
                "limit": source.limit,
                "sha256": [file_sha256(path) for path in source.files()],
                "pictures": pictures_sha256(source),
                "macros": source.macros and file_sha256(source.macros),
            }
            | ({"copies": source.copies} if source.copies else {})
            for source in sources
        ],
        "recipe": asdict(options.recipe),
        "seed": options.seed,
        "form": "compact" if options.compact else "pixels",
        "boxes": _has_boxes(sources, options),
        "part_lines": options.part_lines,
        "versions": versions,
    }


def _renders(sources: Sequence[Source]) -> bool:
    """Tell whether any source has formulas to render, for which TeX is needed."""
    return any(source.pictures is None for source in sources)


def _has_boxes(sources: Sequence[Source], options: BuildOptions) -> bool:
    """Tell whether the dataset gets a column of boxes; only what is rendered has any."""
    return options.boxes and _renders(sources)


class _Build:
    """One build at work in its folder."""

    def __init__(
        self,
        sources: Sequence[Source],
        options: BuildOptions,
        folder: WorkFolder,
        plan: Plan,
        engine: Engine,
        progress: BuildProgress,
    ) -> None:
        self.sources = sources
        self.options = options
        self.folder = folder
        self.plan = plan
        self.engine = engine
        self.progress = progress
        self.stage_options = StageOptions(
            folder=folder,
            recipe=options.recipe,
            seed=options.seed,
            part_lines=options.part_lines,
            boxes=options.boxes,
            compact=options.compact,
            macros=[None if source.macros is None else Macros.load(source.macros) for source in sources],
        )

    @property
    def hand(self) -> bool:
        """Whether formulas are written by hand."""
        return self.options.recipe.styles == HAND_STYLES

    def run(self) -> None:
        """Do what is left to do."""
        self.names = self.cut_lines()
        self.num_parts = -(-len(self.names) // self.options.part_lines)
        self.run_parts("normalize", "normalized", partial(normalize_part, self.stage_options))
        self.select()
        if self.hand:
            self.open_bank()
        self.run_parts("render", "rendered", partial(picture_part, self.stage_options))
        counts = count_tokens(self.folder, self.num_parts)
        outcome = self.decide_verdicts(counts)
        minimum = self.options.recipe.min_token_count
        vocabulary = [token for token, count in counts.items() if count >= minimum]
        Vocabulary.from_formula_tokens(vocabulary).save(self.folder.result / VOCABULARY_FILE)
        files = self.write_files(outcome)
        card = summarize(
            self.plan, outcome, files=files, num_tokens=len(vocabulary), num_lines=self.names.num_lines
        )
        write_report(self.folder.result, card, outcome)
        write_readme(self.folder.result, card)
        write_card(self.folder.result, card)

    def cut_lines(self) -> LineNames:
        """Copy the inputs into parts of equal length, so that any worker can read any part."""
        counts = self.folder.part("counts", 0)
        if not counts.exists():
            if _renders(self.sources):
                check_styles(self.options.recipe.styles)  # before any work, and once
            num_lines = [0] * len(self.sources)
            inks: list[Ink] = []
            with origins_writer(self.folder.result, self.sources) as write_origin:
                lines = self.read_sources(num_lines, write_origin, inks)
                index = 0
                while rows := list(islice(lines, self.options.part_lines)):
                    write_part(self.folder.part("lines", index), pa.Table.from_pylist(rows, schema=LINES))
                    index += 1
            if self.hand:
                Bank.of(inks).save(self.folder.path / INKS_FILE)
            write_part(counts, pa.table({"lines": pa.array(num_lines, pa.int64())}))
        num_lines = read_part(counts)["lines"].to_pylist()
        if sum(num_lines) == 0:
            raise BuildError("The inputs hold no lines.")
        names = [source.name for source in self.sources]
        if not any(source.names_lines for source in self.sources):
            return LineNames(names=names, num_lines=num_lines)
        own_names = StoredNames(self.folder, part_lines=self.options.part_lines)
        return LineNames(names=names, num_lines=num_lines, own_names=own_names)

    def read_sources(
        self, num_lines: list[int], write_origin: Callable[[Origin], None], inks: list[Ink]
    ) -> Iterator[dict[str, object]]:
        """Yield the lines of all sources as rows of the parts; count those of each source, collect inks."""
        for index, source in enumerate(self.sources):
            split = UNASSIGNED if source.split is None else SPLITS.index(source.split)
            for line in source.lines():
                num_lines[index] += 1
                if line.origin is not None:
                    write_origin(line.origin)
                row = line._asdict() | {"source": index, "split": split}
                del row["origin"]
                if line.ink is not None:
                    if line.copy == 0:
                        inks.append(line.ink)
                    row["ink"] = len(inks) - 1
                yield row

    def run_parts(self, title: str, stage: str, task: Callable[[int], None]) -> None:
        """Run a stage over the parts of the input that are still missing."""
        missing = self.folder.missing(stage, self.num_parts)
        size, total = self.options.part_lines, len(self.names)
        sizes = {part: min(size, total - part * size) for part in missing}
        with self.progress.stage(
            title, total=total, unit="lines", done=total - sum(sizes.values())
        ) as advance:
            for part in self.engine.run(task, missing):
                advance(sizes[part])

    def run_files(self, title: str, files: Sequence[str], task: Callable[[int], None]) -> None:
        """Run a stage over the files of the result that are still missing, or not as they were written."""
        missing = [index for index, name in enumerate(files) if not self.folder.is_written(name)]
        with self.progress.stage(
            title, total=len(files), unit="files", done=len(files) - len(missing)
        ) as advance:
            for index in self.engine.run(task, missing):
                self.folder.note_written(files[index])
                advance(1)

    def select(self) -> None:
        """Run the rules that need all lines, and write their verdicts part by part."""
        parts = range(self.num_parts)
        if not self.folder.missing("selected", self.num_parts):
            return
        columns = ["reason", "fingerprint", "key", "draw"]
        table = pa.concat_tables(read_part(self.folder.part("normalized", i)).select(columns) for i in parts)
        given = pa.concat_tables(read_part(self.folder.part("lines", i)).select(["split"]) for i in parts)
        reasons, fingerprints, keys, draws = (
            table[name].fill_null(0).to_numpy().astype(dtype)
            for name, dtype in zip(columns, (np.uint8, np.uint64, np.uint64, np.uint64), strict=True)
        )
        selection = select_lines(
            given_splits=given["split"].to_numpy(),
            reasons=reasons,
            fingerprints=fingerprints,
            keys=keys,
            draws=draws,
            val_fraction=self.options.recipe.val_fraction,
            test_fraction=self.options.recipe.test_fraction,
        )
        if self.hand:
            self.keep_first_copies(selection)
        selected = pa.table([selection.splits, selection.reasons, selection.others], schema=SELECTED)
        for index in parts:
            rows = selected.slice(index * self.options.part_lines, self.options.part_lines)
            write_part(self.folder.part("selected", index), rows)

    def keep_first_copies(self, selection: Selection) -> None:
        """Leave one drawing of each ink in the splits that judge; the others are called duplicates."""
        copies = np.concatenate(
            [read_part(self.folder.part("lines", i))["copy"].to_numpy() for i in range(self.num_parts)]
        )
        judges = selection.splits != SPLITS.index(TRAIN)
        again = np.flatnonzero(judges & (copies > 0) & (selection.reasons == 0))
        selection.reasons[again] = EARLY_REASONS.index(DUPLICATE)
        selection.others[again] = again - copies[again]

    def open_bank(self) -> None:
        """Write the bank of the dataset: all inks, but only the symbols of those that are for training."""
        path = self.folder.result / BANK_FILE
        if path.exists():
            return
        bank = Bank.load(self.folder.path / INKS_FILE)
        trains = np.zeros(len(bank), dtype=bool)
        for index in range(self.num_parts):
            inks = read_part(self.folder.part("lines", index))["ink"].to_numpy(zero_copy_only=False)
            selected = read_part(self.folder.part("selected", index))
            kept = (selected["reason"].to_numpy() == 0) & (
                selected["split"].to_numpy() == SPLITS.index(TRAIN)
            )
            chosen = inks[kept & ~np.isnan(inks.astype(np.float64))].astype(np.int64)
            trains[chosen] = True
        bank.restricted(trains.tolist()).save(path)

    def decide_verdicts(self, token_counts: Counter[str]) -> BuildOutcome:
        """Decide the verdict of every line, and write them all down."""
        with (
            atomic_write(self.folder.result / VERDICTS_FILE, "wb") as file,
            pq.ParquetWriter(file, VERDICTS_SCHEMA, compression="zstd") as writer,
        ):
            outcome = decide_verdicts(
                self.folder,
                self.num_parts,
                part_lines=self.options.part_lines,
                names=self.names,
                counts=token_counts,
                minimum=self.options.recipe.min_token_count,
                write_verdicts=writer.write_table,
            )
        if not outcome.rows[SPLITS[0]]:
            counts = ", ".join(f"{count:,} {verdict}" for verdict, count in outcome.totals().most_common())
            raise BuildError(
                f"No training formula is left ({counts}). With few formulas every token is rare: "
                "set --min-token-count 1, or give more of them."
            )
        return outcome

    def write_files(self, outcome: BuildOutcome) -> list[str]:
        """Write the shards, and the pages of the compact form; name the shards."""
        options = ShardOptions(
            folder=self.folder,
            part_lines=self.options.part_lines,
            names=self.names,
            compact=self.options.compact,
            boxes=_has_boxes(self.sources, self.options),
            pictures=any(source.pictures is not None for source in self.sources),
            hand=self.hand,
        )
        lines = {split: np.asarray(rows) for split, rows in outcome.rows.items() if rows}
        pages: dict[str, pa.Table] = {}
        if self.options.compact and not self.hand:
            files, pages = lay_out_pages(
                self.folder, lines, looks=list(outcome.looks), looks_of=outcome.looks_of
            )
            self.run_files("pages", files, partial(write_pages, options))
        files = lay_out_shards(self.folder, lines, pages)
        self.run_files("shards", files, partial(write_shard, options))
        return files
